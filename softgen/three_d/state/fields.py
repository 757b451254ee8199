"""UnitFields: the state of a fixed function whose fields are in several commands or blocks of memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits.record import Record, to_float
from softgen.errors import GpuFault, SpecError
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state

UNITS = {"CLIP_STATE": "CLIP", "SF_STATE": "SF", "WM_STATE": "PS"}  # blocks of state -> their stages


@lru_cache(1024)
def _fraction(name: str, field: str, gen: float) -> int:
    return catalogue.layout(name, gen).field(field).type.fraction


class UnitFields:
    """Fields by name; the first record that has one gives it. Hashable: the same state is the same key."""

    def __init__(self, gen: float, records: tuple[tuple[str, Record], ...]) -> None:
        self.gen, self.records, self._hash = gen, records, hash(records)  # dozens of fields, and each plan is looked for by it

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitFields) and self.gen == other.gen and self.records == other.records

    def _find(self, field: str) -> tuple[str, Any] | None:
        for name, record in self.records:
            if hasattr(type(record), field):
                return name, getattr(record, field)
        return None

    def __getattr__(self, field: str) -> int:
        if field.startswith("__"):
            raise AttributeError(field)
        found = self._find(field)
        if found is None:
            raise SpecError(f"gen {self.gen:g}: none of {', '.join(name for name, _ in self.records)} has a field {field!r}")
        return int(found[1])

    def get(self, field: str, default: int = 0) -> int:
        """A field that not every generation has."""
        found = self._find(field)
        return default if found is None else int(found[1])

    def real(self, field: str) -> float:
        """A float field."""
        return to_float(getattr(self, field))

    def fixed(self, field: str) -> float:
        """A fixed-point field."""
        value = getattr(self, field)
        found = self._find(field)
        assert found is not None
        return float(value / (1 << _fraction(found[0], field, self.gen)))


def unit_fields(state: DrawState, *names: str) -> UnitFields:
    """The state under these names, of those that the generation has: blocks of memory and commands."""
    catalogued = catalogue.catalogue()
    known = [name for name in names if catalogued.get(name, state.gen) is not None]
    return UnitFields(state.gen, tuple((name, unit_state(state, UNITS[name]) if name in UNITS else state.command(name)) for name in known))


def structures(state: DrawState, name: str, start: int, count: int, pointer: str = "") -> tuple[Record, ...]:
    """Consecutive structures in memory: up to `count`, or as many as there is memory for; the first must be there. `pointer`: the command
    whose pointer leads to them."""
    size, found = 4 * catalogue.layout(name, state.gen).dwords, [state.structure(name, start, pointer)]
    try:
        for i in range(1, count):
            found.append(state.structure(name, start + size * i, pointer))
    except GpuFault:  # an array may have 16 elements, of which software makes those it uses
        pass
    return tuple(found)

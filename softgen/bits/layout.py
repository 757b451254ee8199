"""Layouts: the position of each field of a command, structure, register, message or instruction.

Positions are counted from bit 0 of dword 0 of the layout, or of the element inside a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from softgen.bits.field import BitField, Effect, FieldCondition, FieldType, Group, Header, claimed_bits
from softgen.bits.generation import GENERATIONS
from softgen.bits.pack import compile_place, pack
from softgen.bits.record import Record
from softgen.bits.unpack import compile_unpack
from softgen.errors import SpecError

__all__ = ["GENERATIONS", "KEY_SHIFT", "BitField", "Effect", "FieldCondition", "FieldType", "Group", "Header", "Layout", "generations",
           "guess_length"]  # fmt: skip

# Which header bits a key names, and the default position of the length (BDW 48-90, G45 940-951).
MI, BLITTER, GFXPIPE = 0, 2, 3
KEY_SHIFT = {MI: 23, BLITTER: 22, GFXPIPE: 16}


@dataclass(frozen=True, eq=False)
class Layout:
    """The fields of one command, structure, register, message or instruction on one generation."""

    kind: str
    name: str
    gen: float
    dwords: int  # the least it can have
    maximum: int | None  # the most; None: no limit
    fields: tuple[BitField, ...]
    groups: tuple[Group, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()  # (name, expression over the fields)
    header: Header | None = None
    engines: tuple[str, ...] = ()
    offset: int | None = None  # registers
    relative: bool = False  # registers: the offset counts from where the engine's registers start
    count: int = 1  # registers: how many stand in a row
    effect: Effect | None = None  # commands: what executing it does
    source: str = ""
    page: str = ""
    line: int = 0
    cache: dict[int, int] = field(default_factory=dict, repr=False)
    codes: dict[bool, bytes] = field(default_factory=dict, repr=False)  # bytecode of `unpack` (True) and `raw`, once compiled

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without functions."""
        return {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}

    @property
    def key(self) -> str:
        if self.header:
            return self.header.key
        return "" if self.offset is None else f"{'+' if self.relative else ''}{self.offset:#x}"

    @property
    def variable(self) -> bool:
        return self.maximum != self.dwords

    def length(self, header: int) -> int:
        """The length in dwords of a command with this header."""
        return self.header.dwords(header, self.dwords) if self.header else self.dwords

    def reserved(self, dwords: int | None = None) -> int:
        """Bits no field claims; they must be zero."""
        dwords = self.dwords if dwords is None else dwords
        if dwords not in self.cache:
            claimed = claimed_bits(self.fields, self.groups, dwords * 32) | (self.header.claimed if self.header else 0)
            self.cache[dwords] = (1 << dwords * 32) - 1 & ~claimed
        return self.cache[dwords]

    @cached_property
    def unpack(self) -> Callable[[Any], Record]:
        """dwords -> record with natural values: signed integers, floats, addresses in place."""
        return compile_unpack(self.name, self.fields, self.groups, self.derived, True, self.codes)

    @cached_property
    def raw(self) -> Callable[[Any], Record]:
        """dwords -> record of integers: signed integers and addresses in place, fixed point and floats as bit patterns."""
        return compile_unpack(self.name, self.fields, self.groups, self.derived, False, self.codes)

    @cached_property
    def place(self) -> Callable[[Any], int]:
        """Whole numbers by field name -> all bits as one number; quick, for layouts without header, groups and scaled fields."""
        return compile_place(self.name, self.fields)

    def pack(self, **given: Any) -> list[int]:
        return pack(self.name, self.gen, self.dwords, self.header, self.fields, self.groups, given)

    def walk(self) -> Iterator[tuple[BitField, tuple[Group, ...]]]:
        """Every field with the groups it stands in, outermost first."""
        yield from ((field, ()) for field in self.fields)
        yield from _walk(self.groups, ())

    def field(self, name: str) -> BitField:
        found = next((field for field in self.fields if field.name == name), None)
        if found is None:
            raise SpecError(f"{self.page}: {self.name} has no field {name!r} on gen {self.gen:g}")
        return found


def _walk(groups: tuple[Group, ...], outer: tuple[Group, ...]) -> Iterator[tuple[BitField, tuple[Group, ...]]]:
    for group in groups:
        yield from ((field, (*outer, group)) for field in group.fields)
        yield from _walk(group.groups, (*outer, group))


def guess_length(header: int) -> int | None:
    """Length of an unknown command, from its type alone (BDW 48-90; G45 940-951); None: not a command."""
    match header >> 29:
        case 0:
            return 1 if header >> 23 < 0x10 else (header & 0xFF) + 2
        case 2:
            return (header & 0xFF) + 2
        case 3:
            return (header & (0xFFF if header >> 27 & 3 == 2 else 0xFF)) + 2
    return None


@lru_cache
def generations(text: str) -> frozenset[float]:
    """'8+' -> {8, 9, 11};  '7..7.5' -> {7, 7.5};  '..7.5' -> {4, 4.5, 7, 7.5};  '9' -> {9};  '7,9+' -> {7, 9, 11}."""
    found: set[float] = set()
    for part in text.split(","):
        first, dots, last = part.removesuffix("+").partition("..")
        low = float(first) if first else GENERATIONS[0]
        high = GENERATIONS[-1] if part.endswith("+") else float(last) if dots else low
        found |= {g for g in GENERATIONS if low <= g <= high}
        for named in (first, last):
            if named and float(named) not in GENERATIONS:
                raise ValueError(named)
    if not found:
        raise ValueError(text)
    return frozenset(found)

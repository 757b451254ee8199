"""Submission: which register writes start work, and what they start.

A port listens to the registers of every engine. `write` answers with the starts a write causes: usually none, and contexts
(by descriptor) or a ring (by its four registers) when the last write of a submission comes. Offsets are in submission.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from softgen.bits import catalogue
from softgen.bits.generation import SPEC, Device
from softgen.bits.units import DWORD_MASK


@dataclass(frozen=True)
class SubmissionTable:
    """How work reaches the engines of a device: a table of submission.toml."""

    kind: str
    registers: dict[str, int]  # offsets from an engine's base
    go: str  # the register whose writing starts work
    slots: int
    engines: dict[int, str]  # base -> engine
    done: dict[str, int]  # register, mask and value that say an engine has finished
    status: dict[str, int]  # the register that says what an engine does, and its values
    events: dict[str, int]  # where in the status page events of contexts go

    def base(self, engine: str) -> int:
        """The offset of the first engine of this name."""
        return next(base for base, name in self.engines.items() if name == engine)


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads((SPEC / "device" / "submission.toml").read_text("utf-8"))


@cache
def submissions() -> dict[str, SubmissionTable]:
    return {
        kind: SubmissionTable(kind, table["registers"], table["go"], table.get("slots", 1),
                         {int(base, 0): name for base, name in table["engine"].items()}, table.get("done", {}),
                         table.get("status", {}), table.get("events", {}))
        for kind, table in _tables().items() if "go" in table
    }  # fmt: skip


@cache
def context_image() -> dict[str, int]:
    """What a context image is written with: commands and register offsets."""
    return dict(_tables()["context_image"])


@dataclass(frozen=True)
class ImageList:
    """A list of registers in a context's image."""

    at: int  # dword of its header
    engine: str = ""  # whose images have it; "": every engine's
    header: int = 0
    registers: tuple[str, ...] = ()


@cache
def image_lists() -> tuple[ImageList, ...]:
    return tuple(ImageList(**{**row, "registers": tuple(row.get("registers", ()))}) for row in _tables()["image_lists"])


@dataclass(frozen=True)
class ImageSection:
    """A unit's part of a render context's image."""

    at: int  # dword where it begins; 0 after the first: where the one before ends
    structure: str
    per_subslice: int = 0  # dwords after it, for each subslice


@cache
def image_sections() -> tuple[ImageSection, ...]:
    return tuple(ImageSection(**row) for row in _tables()["image_sections"])


@cache
def context_registers() -> frozenset[str]:
    """Registers that every context has to itself, by the lists of the engines' part of images; the clock is everybody's."""
    return frozenset(name for image_list in image_lists() for name in image_list.registers) - {"TIMESTAMP"}


def submission(device: Device) -> SubmissionTable:
    return submissions()[device.generation.submission]


@dataclass(frozen=True)
class EngineStart:
    """The start of an engine: on a context, or on its ring."""

    engine: str
    base: int
    descriptor: tuple[int, int] | None = None  # low, high
    ring: Any = None  # RING_REGISTERS


class SubmissionPort(Protocol):
    def write(self, offset: int, value: int) -> Iterable[EngineStart]: ...


class ExeclistPort:
    """Both elements go through one port, the second first, the high half first; the fourth write starts."""

    def __init__(self, table: SubmissionTable, device: Device) -> None:
        self.slots = table.slots
        self.engines = {base + table.registers["port"]: (base, engine) for base, engine in table.engines.items()}
        self.written: dict[int, list[int]] = {}

    def write(self, offset: int, value: int) -> list[EngineStart]:
        if offset not in self.engines:
            return []
        base, engine = self.engines[offset]
        written = self.written.setdefault(base, [])
        written.append(value & DWORD_MASK)
        if len(written) < 2 * self.slots:
            return []
        del self.written[base]
        elements = [(written[i + 1], written[i]) for i in range(0, len(written), 2)]
        return [EngineStart(engine, base, element) for element in reversed(elements)]

    def sequence(self, engine: str, low: int, high: int) -> list[tuple[int, int]]:
        """The writes that start one context."""
        port = next(offset for offset, (_, name) in self.engines.items() if name == engine)
        return [*[(port, 0)] * (2 * self.slots - 2), (port, high), (port, low)]


class SubmitQueuePort:
    """A queue of slots per engine, started by writing its control register; a started queue is empty."""

    def __init__(self, table: SubmissionTable, device: Device) -> None:
        self.table, self.slots = table, table.slots
        self.written: dict[int, int] = {}

    def write(self, offset: int, value: int) -> list[EngineStart]:
        for base, engine in self.table.engines.items():
            if self._low(base) <= offset < self._low(base) + 8 * self.slots:
                self.written[offset] = value & DWORD_MASK
            elif offset == base + self.table.registers["control"] and value & 1:
                return [EngineStart(engine, base, element) for element in self._take(base)]
        return []

    def _low(self, base: int) -> int:
        return base + self.table.registers["low"]

    def _take(self, base: int) -> list[tuple[int, int]]:
        slots = [self._low(base) + 8 * i for i in range(self.slots)]
        return [(self.written.pop(slot, 0), self.written.pop(slot + 4, 0)) for slot in slots]

    def sequence(self, engine: str, low: int, high: int) -> list[tuple[int, int]]:
        base, registers = self.table.base(engine), self.table.registers
        return [(base + registers["low"], low), (base + registers["high"], high), (base + registers["control"], 1)]


class RingPort:
    """One ring per engine; writing its tail starts it. The engine moves the head along."""

    def __init__(self, table: SubmissionTable, device: Device) -> None:
        self.table = table
        self.layout = catalogue.layout("RING_REGISTERS", device.generation.number)
        self.values: dict[int, int] = {}

    def write(self, offset: int, value: int) -> list[EngineStart]:
        registers = self.table.registers
        for base, engine in self.table.engines.items():
            if offset - base not in registers.values():
                continue
            self.values[offset] = value & DWORD_MASK
            if offset != base + registers["tail"]:
                return []
            ring = self.layout.unpack([self.values.get(base + registers[name], 0) for name in ("tail", "head", "start", "control")])
            if not ring.enable:
                return []
            self.values[base + registers["head"]] = value & DWORD_MASK
            return [EngineStart(engine, base, ring=ring)]
        return []


PORTS: dict[str, Any] = {"execlist": ExeclistPort, "submit_queue": SubmitQueuePort, "ring": RingPort}


def port(device: Device) -> Any:
    """The port of a device, as its generation is built."""
    table = submission(device)
    return PORTS[table.kind](table, device)

"""Partition of the register file into vector variables, for a kernel that is one function.

Instructions record which bytes they read and write; the partition is computed when all accesses are known. Bytes that are used together
are one part: a vector of dwords in a variable of its own, which LLVM promotes to a vector register. Large groups of registers that
overlap in changing ways, and groups of three, are split at register boundaries, and an access may then span several parts. Registers that
an address register may reach stay in the thread's block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from softgen.bits.units import GRF_BYTES
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.mask import YES
from softgen.lanes.llvm.scalar import LlvmPointer
from softgen.lanes.types import LaneType, u8, u32
from softgen.lanes.value import Value

UNIT, WIDE = 4, 8  # bytes that every part is a multiple of, and where something in it is as large
LARGEST = 128  # bytes of a part that is more than one register
TRUE = YES
SAVED = "saved"  # the place of registers of an earlier iteration (pipelining.py), which no exit spills


Span = tuple[int, int, bool]  # from, to, and whether something in it is wide


@dataclass(eq=False)
class RegisterAccess:
    """A read (`result` names the value) or a write (`value` under `mask`) at a position of the function's text."""

    place: str
    type: LaneType
    offsets: tuple[int, ...]
    result: str = ""
    value: str = ""
    mask: str = TRUE
    ip: int = 0  # of the instruction
    channel: int | None = None  # of lane 0, where lane i belongs to channel + i and no inactive channel's lane is read
    everyone: bool = False  # a write for every active channel of the instruction

    @property
    def span(self) -> tuple[int, int]:
        return min(self.offsets), max(self.offsets) + self.type.bytes


def overlap(a: RegisterAccess, b: RegisterAccess) -> bool:
    (low, high), (start, end) = a.span, b.span
    return a.place == b.place and low < end and start < high


@dataclass(eq=False)
class RegisterPart:
    """Bytes of one place from `start` to `end`."""

    place: str
    start: int
    end: int
    variable: str = ""  # empty where it stays in the block
    written: bool = False

    @property
    def dwords(self) -> int:
        return (self.end - self.start) // 4

    def stack(self, m: LlvmMachine) -> LlvmPointer:
        """The variable; LLVM makes it a vector register, or spills it."""
        return LlvmPointer(m.code, self.variable)


class RegisterPartition:
    def __init__(self, m: LlvmMachine) -> None:
        self.m = m
        self.accesses: list[RegisterAccess] = []
        self.in_block: set[str] = set()  # places that an address register reaches
        self.parts: dict[str, list[RegisterPart]] = {}
        self._starts: dict[str, list[int]] = {}

    def partition(self) -> None:
        """Compute the parts, when every access is known."""
        spans: dict[str, list[Span]] = {}
        for access in self.accesses:
            low, high = access.span
            spans.setdefault(access.place, []).append((low // UNIT * UNIT, -(-high // UNIT) * UNIT, access.type.bytes > UNIT))
        for place, found in spans.items():
            whole = {(low, high) for low, high, _ in found}  # what single accesses use
            parts = [RegisterPart(place, *part) for span in _merged(found) for part in self._apart(place, *span, span in whole)]
            for part in parts:
                if place not in self.in_block:
                    part.variable = self.m.stack(u32, part.dwords).text
            self.parts[place], self._starts[place] = parts, [part.start for part in parts]
        for access in self.accesses:
            for part in self.covering(access) if not access.result else ():
                part.written = True

    def _apart(self, place: str, low: int, high: int, whole: bool) -> list[tuple[int, int]]:
        """Split a span at register boundaries if it is large, or a vector of another size than a power of 2 that no access uses as a whole:
        LLVM takes such vectors apart, element by element, where accesses overlap in part."""
        size = high - low
        if size <= LARGEST and (whole or size & size - 1 == 0) or place in self.in_block:
            return [(low, high)]
        cuts = [low, *range(low // GRF_BYTES * GRF_BYTES + GRF_BYTES, high, GRF_BYTES), high]
        return list(pairwise(cuts))

    def covering(self, access: RegisterAccess) -> list[RegisterPart]:
        """The contiguous parts that an access spans."""
        place, (low, high) = access.place, access.span
        first, last = (bisect_right(self._starts[place], at) for at in (low, high - 1))
        return self.parts[place][first - 1 : last]

    def all(self) -> Iterable[RegisterPart]:
        return (part for parts in self.parts.values() for part in parts)

    # -- code ----------------------------------------------------------------------------------------------------------

    def expand(self, access: RegisterAccess) -> None:
        """Write the code of an access at the machine's current position."""
        parts = self.covering(access)
        if access.result:
            self.m.code.keep_promise(self._operand(access, access.result), self._read(access, parts))
        else:
            self._write(access, parts)

    def _operand(self, access: RegisterAccess, name: str) -> Value:
        return Value(self.m, access.type, len(access.offsets), name)

    def reload(self, part: RegisterPart) -> None:
        """Load a part from the block into its variable."""
        home = self.home(part)
        part.stack(self.m).store(home.load_lanes(u32, part.dwords, align=8))

    def spill(self, part: RegisterPart) -> None:
        """Store a part's variable to the block."""
        dwords = part.stack(self.m).load_lanes(u32, part.dwords)
        self.home(part).store(dwords, align=8)

    def home(self, part: RegisterPart) -> LlvmPointer:
        return self._at(part.place, part.start)

    def _held(self, part: RegisterPart) -> LlvmPointer:
        return part.stack(self.m) if part.variable else self.home(part)

    def _at(self, place: str, offset: int) -> LlvmPointer:
        return self.m.pointer("block").at(BLOCK_OFFSETS[place] + offset)

    def _whole(self, parts: list[RegisterPart], type: LaneType, lanes: int) -> Value:
        """All parts of an access as one vector. Some may have stayed in the block."""
        found: Value | None = None
        for part in parts:
            dwords = self._held(part).load_lanes(u32, part.dwords, align=0 if part.variable else UNIT)
            found = dwords if found is None else self._joined(found, dwords)
        assert found is not None
        return self._as(found, type, lanes)

    def _as(self, value: Value, type: LaneType, lanes: int) -> Value:
        """Bytes of a value as lanes of another type."""
        return self.m._value(type, lanes, self.m._regroup(value.type, value.lanes, type, lanes, value.payload))

    def _joined(self, a: Value, b: Value) -> Value:
        widest, lanes = max(a.lanes, b.lanes), (a.lanes, b.lanes)
        a, b = (x if x.lanes == widest else self.m.pick(x, [*range(x.lanes), *[None] * (widest - x.lanes)]) for x in (a, b))
        return self.m.pick(a, [*range(lanes[0]), *range(widest, widest + lanes[1])], b)

    def _read(self, access: RegisterAccess, parts: list[RegisterPart]) -> Value:
        if not any(part.variable for part in parts):
            return self._read_directly(access)
        type, count, indices = self._elements(access, parts)
        picked = self.m.pick(self._whole(parts, type, count), indices)
        return picked if len(indices) == len(access.offsets) and type is not u8 else self._as(picked, access.type, len(access.offsets))

    def _elements(self, access: RegisterAccess, parts: list[RegisterPart]) -> tuple[LaneType, int, list[int]]:
        """The parts as elements, and which of them the access is: elements of its type, or bytes where it straddles these."""
        size, start, end = access.type.bytes, parts[0].start, parts[-1].end
        offsets = [offset - start for offset in access.offsets]
        if any(offset % size for offset in offsets):
            return u8, end - start, [offset + byte for offset in offsets for byte in range(size)]
        return access.type, (end - start) // size, [offset // size for offset in offsets]

    def _read_directly(self, access: RegisterAccess) -> Value:
        """Load from the block."""
        m, type, offsets = self.m, access.type, access.offsets
        at = self._at(access.place, offsets[0])
        if all(offset == offsets[0] + lane * type.bytes for lane, offset in enumerate(offsets)):
            return at.load_lanes(type, len(offsets), align=1)
        if len(set(offsets)) == 1:
            return m.code.splat_lanes(at.load(type, align=1), len(offsets))
        found: Value | None = None
        for lane, offset in enumerate(offsets):
            found = m.code.with_lane(found, lane, self._at(access.place, offset).load(type, align=1), len(offsets))
        assert found is not None
        return found

    def _write(self, access: RegisterAccess, parts: list[RegisterPart]) -> None:
        m, value = self.m, self._operand(access, access.value)
        if access.mask != TRUE:
            old = self._read(access, parts)
            value = m._value(value.type, value.lanes, m._select(value.type, value.lanes, access.mask, value.payload, old.payload))
        if not any(part.variable for part in parts):
            self._write_directly(access, value)
            return
        type, count, indices = self._elements(access, parts)
        value = self._as(value, type, len(indices))
        if indices != list(range(count)):
            value = self._blend(indices, self._whole(parts, type, count), value)
        dwords = sum(part.dwords for part in parts)
        value = self._as(value, u32, dwords)
        at = 0
        for part in parts:
            piece = value if len(parts) == 1 else m.pick(value, range(at, at + part.dwords))
            self._held(part).store(piece, align=8 if part.variable else UNIT)
            at += part.dwords

    def _blend(self, indices: Sequence[int], old: Value, value: Value) -> Value:
        """New elements among old ones; where two are for one place, the later wins."""
        source = {to: lane for lane, to in enumerate(indices)}
        count = old.lanes
        spread = self.m.pick(value, [source.get(to) for to in range(count)])
        return self.m.pick(old, [count + to if to in source else to for to in range(count)], spread)

    def _write_directly(self, access: RegisterAccess, value: Value) -> None:
        type, offsets = access.type, access.offsets
        if all(offset == offsets[0] + lane * type.bytes for lane, offset in enumerate(offsets)):
            self._at(access.place, offsets[0]).store(value, align=1)
            return
        for lane, offset in enumerate(offsets):
            at = self._at(access.place, offset)
            at.store(self.m.code.lane(value, lane), align=1)


def _merged(spans: list[Span]) -> list[tuple[int, int]]:
    """Merge overlapping spans; one with 8-byte elements is aligned to 8 bytes."""
    while True:
        merged: list[Span] = []
        for low, high, wide in sorted(set(spans)):
            if merged and low < merged[-1][1]:
                first, last, before = merged[-1]
                merged[-1] = first, max(last, high), before or wide
            else:
                merged.append((low, high, wide))
        spans = [(low // WIDE * WIDE, -(-high // WIDE) * WIDE, True) if wide else (low, high, False) for low, high, wide in merged]
        if spans == merged:
            return [(low, high) for low, high, _ in merged]

"""Latched commands that a record was made from: which of their bits are compared before it is used again, and which are copied into it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.field import BitField
from softgen.bits.layout import Layout
from softgen.bits.units import DWORD_MASK
from softgen.command import MarkedLatched, SlotPlace
from softgen.three_d.draw.draw_structures import LatchedBits, LatchedCommand, LatchedDwords, LatchedPointer


class NotKept(Exception):
    """The draw has something that cannot be compared or copied in C: its record is built for it alone."""


class ComparedCommands(NamedTuple):
    """What is compared of commands; `data` is the memory that `dwords` point to."""

    commands: list[LatchedCommand]
    dwords: list[LatchedDwords]
    bits: list[LatchedBits]
    data: object


class LatchedBytes:
    """Dwords of latched commands. What is copied into plans is not compared."""

    def __init__(self, latched: MarkedLatched, gen: float, address_bits: int) -> None:
        self.latched, self.gen, self.wrap = latched, gen, (1 << address_bits) - 1
        self._copied: dict[int, int] = {}  # bits of dwords, by offset

    def place(self, name: str) -> SlotPlace:
        found = self.latched.place(name)
        if found is None or not found.latched:
            raise NotKept(f"{name} was not latched")
        return found

    def layout(self, name: str) -> Layout:
        return catalogue.layout(name, self.gen)

    # -- copied ------------------------------------------------------------------------------------------------------------------

    def pointer(self, field: BitField, start: int, base: int = 0) -> LatchedPointer:
        """A pointer by its field in a command or element whose first dword is at `start`; `base`: what it counts from."""
        first = field.low // 32
        mask = (1 << field.high + 1) - (1 << field.low) >> 32 * first
        for n in range(field.high // 32 - first + 1):
            self._copy(start + first + n, mask >> 32 * n & DWORD_MASK)
        return LatchedPointer(start + first, field.high // 32 - first + 1, mask & self.wrap, base)

    def number(self, field: BitField, start: int) -> int:
        """The same of a field that is a whole dword: its offset."""
        if field.width != 32 or field.low % 32:
            raise NotKept(f"{field.name} is no whole dword")
        self._copy(start + field.low // 32, DWORD_MASK)
        return start + field.low // 32

    def ignore(self, start: int, count: int) -> None:
        """Dwords that plans have nothing of."""
        for offset in range(start, start + count):
            self._copy(offset, DWORD_MASK)

    def _copy(self, offset: int, mask: int) -> None:
        self._copied[offset] = self._copied.get(offset, 0) | mask

    # -- compared ----------------------------------------------------------------------------------------------------------------

    def compared(self, names: Iterable[str]) -> ComparedCommands:
        """All of these commands but what is copied. A command that was never met has no slot: callers look at `slots`, too."""
        commands, parts, bits, data = list[LatchedCommand](), list[tuple[int, int, int]](), list[LatchedBits](), array("I")
        copied, latched = sorted(self._copied), self.latched
        for name in names:
            place = latched.place(name)
            if place is None:
                continue
            commands.append(LatchedCommand(place.slot, place.latched, place.length, 0, place.present))
            start, size = place.offset, place.size
            if not size:
                continue
            now, end = latched.raw(start, size), start + size
            for offset in copied[bisect_left(copied, start) : bisect_left(copied, end)]:
                if offset > start:
                    parts.append((start, offset - start, len(data)))
                    data.extend(now[start - end : offset - end])
                if mask := ~self._copied[offset] & DWORD_MASK:
                    bits.append(LatchedBits(offset, mask, now[offset - end] & mask))
                start = offset + 1
            if start < end:
                parts.append((start, end - start, len(data)))
                data.extend(now[start - end :])
        address = data.buffer_info()[0]
        return ComparedCommands(commands, [LatchedDwords(start, count, address + 4 * at) for start, count, at in parts], bits, data)

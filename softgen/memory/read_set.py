"""ReadSet: the bytes of memory that a result was made from, compared with memory before the result is used again.

    reads = ReadSet([ReadRange(0, offset, data)], bases=1)
    reads.same(space, [address])              # the same bytes, at the base's address now

Each range counts from a base that may move: drivers write the same state elsewhere for each batch. A base is a number that is given when
the set is compared, or a pointer in memory, which counts from bases itself. One C function compares a set (read_set.c).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from softgen.bits.units import DWORD
from softgen.errors import SoftgenError, Unsupported
from softgen.library import load
from softgen.memory import guard, read_set_h
from softgen.memory.read_set_h import BasedPointer, BasedRange, MemoryReads
from softgen.memory.space import Space

ENDLESS = 2**64 - 1


class ReadRange(NamedTuple):
    """Bytes that were read at an offset from a base."""

    base: int
    offset: int
    data: bytes


class ReadPointer(NamedTuple):
    """A dword at an offset from a base (`parent`) whose bits under a mask, added to another base, are the next base."""

    parent: int
    offset: int
    base: int
    mask: int


@cache
def _comparing() -> int:
    return ctypes.cast(load("softgen.memory._guard", read_set_h).read_set_same, ctypes.c_void_p).value or 0


class ReadSet:
    """Ranges of memory with what they held. `bases`: how many are given; those of `pointers` follow."""

    def __init__(self, ranges: Iterable[ReadRange], bases: int = 1, pointers: Iterable[ReadPointer] = ()) -> None:
        self.ranges, self.pointers, self.base_count = tuple(ranges), tuple(pointers), bases
        self.bases = (ctypes.c_uint64 * (bases + len(self.pointers)))()  # as they were when the set was compared last
        made = [BasedRange(held.offset, len(held.data), held.data, held.base) for held in self.ranges]
        led = [BasedPointer(held.offset, held.parent, held.base, held.mask) for held in self.pointers]
        self._kept = (BasedRange * len(made))(*made), (BasedPointer * len(led))(*led)
        arrays = (ctypes.addressof(array) for array in (self.bases, self._kept[1], self._kept[0]))
        self._record, self._fault = MemoryReads(0, 0, 0, *arrays, bases, len(led), len(made)), guard.FaultRecord()
        self._call, self._arguments = guard.quick_call(), (_comparing(), ctypes.addressof(self._record), ctypes.addressof(self._fault))

    def same(self, space: Space, bases: Sequence[int] = (0,), end: int = ENDLESS) -> bool:
        """Whether memory holds the same bytes, at these bases; pointers past `end` read as 0. What is not mapped is not the same."""
        record = self._record
        self.bases[: self.base_count] = list[Any](bases)
        record.wrap, record.end = (1 << space.bits) - 1, end
        try:
            record.table = ctypes.addressof(space.table)
        except Unsupported:
            return self._same_read(space)
        return not self._call(*self._arguments) and bool(self._fault.result)

    def _same_read(self, space: Space) -> bool:
        """Comparison in a space without host addresses."""
        bases, wrap, end = self.bases, int(self._record.wrap), int(self._record.end)
        try:
            for number, held in enumerate(self.pointers, self.base_count):
                address = int(bases[held.parent]) + held.offset
                value = space.read32(address & wrap) if address + DWORD <= end else 0
                bases[number] = int(bases[held.base]) + (value & held.mask) & wrap
            return all(space.read(int(bases[base]) + offset & wrap, len(data)) == data for base, offset, data in self.ranges)
        except SoftgenError:
            return False

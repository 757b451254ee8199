"""Flushed floats, tracked within a segment: registers whose 32-bit floats hold no denormal, and SSA values that do not.

An instruction whose denormals are flushed flushes its sources and its result. What it reads from a register that an instruction before it
wrote is flushed already: flushing it again is a test, an `and` and a masked move, a fifth of what a kernel of floats has.

A fact is of a dword as a whole (the write was unmasked, or the fact held before), or of the channel that wrote it: then it holds where the
same lane reads it under the same mask. Results are the same bits with and without facts: flushing twice is flushing once.
"""

from __future__ import annotations

from collections.abc import Iterable

from softgen.bits.units import DWORD
from softgen.eu.translate.registers import TRUE
from softgen.lanes.types import LaneType, f32
from softgen.lanes.value import Value

ANY = -1  # lane of a fact that holds for all
Fact = tuple[str, int]  # mask and lane of the write


class FlushedRegisters:
    """What is flushed at the instruction being translated. Names of values are those of the text, so nothing outlives what undoes text."""

    enabled = True  # tests turn it off

    def __init__(self) -> None:
        self._dwords: dict[int, Fact] = {}
        self._values: set[str] = set()

    def clear(self) -> None:
        """A resume point, or text that is undone."""
        self._dwords.clear()
        self._values.clear()

    def holds(self, value: Value) -> bool:
        """Whether no lane that counts is a denormal."""
        return self.enabled and value.type is f32 and value.payload in self._values

    def note(self, value: Value) -> None:
        if value.type is f32:
            self._values.add(value.payload)

    def invalidate(self, spans: Iterable[tuple[int, int]]) -> None:
        for low, high in spans:
            for dword in range(low // DWORD, -(-high // DWORD)):
                self._dwords.pop(dword, None)

    def wrote(self, value: Value, offsets: tuple[int, ...], mask: str) -> None:
        """Record a write of `value` to registers, each offset once, under a mask."""
        if not self.holds(value) or any(offset % DWORD for offset in offsets):
            self.invalidate((offset, offset + value.type.bytes) for offset in offsets)
            return
        for lane, offset in enumerate(offsets):
            whole = mask == TRUE or self._dwords.get(offset // DWORD, ("", 0))[1] == ANY
            self._dwords[offset // DWORD] = (TRUE, ANY) if whole else (mask, lane)

    def read(self, type: LaneType, offsets: tuple[int, ...], result: Value, mask: str) -> None:
        """Record what is known of a value that was read by lanes of a mask."""
        if type is not f32 or any(offset % DWORD for offset in offsets):
            return
        facts = [self._dwords.get(offset // DWORD) for offset in offsets]
        if all(fact is not None and (fact[1] == ANY or fact == (mask, lane)) for lane, fact in enumerate(facts)):
            self._values.add(result.payload)

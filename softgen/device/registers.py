"""The register file: a dword at each offset.

Reads   TIMESTAMP CTX_TIMESTAMP EIR EMR HWSTAM IMR
Writes  nothing

Most registers keep what is written. Those whose page has mask bits in the upper half change only the bits whose mask bit is set, and
keep no mask. Timestamps move by themselves; an engine's registers are the same kind wherever the engine's start. The error identity
register is cleared by ones, except the bit of an error that only a reset ends (KBL 1686-1688). Units that must know when a register is
read or written say so with on_read and on_write.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from softgen.bits import registers
from softgen.bits.generation import Device, Generation
from softgen.bits.registers import Place

DWORD = (1 << 32) - 1
HALF = (1 << 16) - 1
TIMESTAMP_BITS = 36
NANOSECONDS = 1_000_000_000
MOVING = ("TIMESTAMP", "CTX_TIMESTAMP")
MASKED_AFTER_RESET = ("EMR", "HWSTAM", "IMR")  # all bits (public Linux i915)
FATAL = "instruction_error"


def host_clock(device: Device) -> Callable[[], int]:
    """Ticks of the GPU's timestamp, by the host's clock."""
    rate = device.limit("timestamp_hz")
    return lambda: time.monotonic_ns() * rate // NANOSECONDS & (1 << TIMESTAMP_BITS) - 1


class Registers:
    def __init__(self, generation: Generation, clock: Callable[[], int]) -> None:
        self.generation, self.clock = generation, clock
        self.values: dict[int, int] = {}
        self._places: dict[int, Place | None] = {}
        self._plain: set[int] = set()  # registers that just keep what is written
        self._reads: dict[int, Callable[[], int]] = {}
        self._writes: dict[int, Callable[[int], None]] = {}

    def on_read(self, offset: int, answer: Callable[[], int]) -> None:
        self._reads[offset] = answer

    def on_write(self, offset: int, take: Callable[[int], None]) -> None:
        """`take` gets what is written, instead of the register."""
        self._writes[offset] = take
        self._plain.discard(offset)

    def place(self, offset: int) -> Place | None:
        if offset not in self._places:
            self._places[offset] = registers.place(offset, self.generation.number)
        return self._places[offset]

    def read(self, offset: int) -> int:
        if offset in self._reads:
            return self._reads[offset]() & DWORD
        if offset in self.values:
            place = self._places.get(offset)
            if place is None or place.layout.name not in MOVING:
                return self.values[offset]
        place = self.place(offset)
        if place and place.layout.name in MOVING:
            return self.clock() >> 32 * place.dword & DWORD
        return self.values.get(offset, DWORD if place and place.layout.name in MASKED_AFTER_RESET else 0)

    def write(self, offset: int, value: int) -> None:
        if offset in self._plain:
            self.values[offset] = value & DWORD
            return
        if offset in self._writes:
            self._writes[offset](value & DWORD)
            return
        place = self.place(offset)
        if place and masked(place):
            mask = value >> 16
            value = self.values.get(offset, 0) & ~mask & HALF | value & mask
        elif place and place.layout.name == "EIR":
            value = self.values.get(offset, 0) & (~value | place.layout.field(FATAL).mask)
        else:
            self._plain.add(offset)
        self.values[offset] = value & DWORD

    def raise_error(self, offset: int, value: int) -> None:
        """Into the error identity register, by the hardware."""
        self.values[offset] = value & DWORD


def masked(place: Place) -> bool:
    """Whether a register's page has mask bits in its upper half."""
    return any(one.name.endswith("_mask") and 16 <= one.low - 32 * place.dword < 32 for one in place.layout.fields)

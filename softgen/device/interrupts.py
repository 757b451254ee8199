"""Interrupts: what engines raise, as events, and the registers that collect them.

Reads   ENGINE_INTERRUPT GT_INTERRUPT IMR HWSTAM
Writes  events; GT_INTERRUPT; the copy of the status in the hardware status page

A bit that is not masked is kept in the identity register until a one is written there; one more event is remembered and comes back
after that (KBL 12849-12875). Events are kept whatever the masks say, for those who look from outside.
"""

from __future__ import annotations

import tomllib
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import SPEC, Generation
from softgen.bits.units import DWORD_MASK
from softgen.device.registers import DeviceRegisters

MOST_EVENTS = 4096


@dataclass(frozen=True)
class InterruptEvent:
    """An interrupt as it was raised."""

    engine: str
    base: int
    cause: str


class InterruptCause(NamedTuple):
    """A cause of interrupts of an engine."""

    event: InterruptEvent
    bit: int  # among the engine's
    imr: int  # offset of the engine's own mask
    place: tuple[int, int] | None  # the GT_INTERRUPT that collects it, and the shift of the engine's bits there


@cache
def places() -> dict[int, tuple[int, int]]:
    text = (SPEC / "device" / "interrupts.toml").read_text("utf-8")
    return {int(base, 0): (number, shift) for base, (number, shift) in tomllib.loads(text).items()}


@cache
def _bit(cause: str, gen: float) -> int:
    layout = catalogue().get("ENGINE_INTERRUPT", gen)
    return next((field.mask for field in layout.fields if field.name == cause), 0) if layout else 0


_event = cache(InterruptEvent)  # one object for all that are equal


class Interrupts:
    """Interrupts as engines raise them; `names` are those of engines, by where their registers start; `on_event` is called with each."""

    def __init__(self, generation: Generation, registers: DeviceRegisters, names: Mapping[int, str],
                 on_event: Callable[[InterruptEvent], None] | None = None) -> None:  # fmt: skip
        self.generation, self.registers, self.names, self.on_event = generation, registers, names, on_event
        self.events: deque[InterruptEvent] = deque(maxlen=MOST_EVENTS)
        self.layout = catalogue().get("GT_INTERRUPT", generation.number)
        self._causes: dict[tuple[int, str], InterruptCause] = {}
        self.again: Counter[tuple[int, int]] = Counter()  # (identity register, bit) that happened once more
        if self.layout is not None:
            for number in range(self.layout.count):
                registers.values[self._offset(number, "mask")] = DWORD_MASK  # KBL 12832: all masked
                registers.on_write(self._offset(number, "identity"), partial(self._clear, number))

    def _offset(self, number: int, part: str) -> int:
        assert self.layout is not None
        return (self.layout.offset or 0) + 4 * self.layout.dwords * number + self.layout.field(part).low // 8

    def _cause(self, base: int, cause: str) -> InterruptCause:
        place = places().get(base) if self.layout is not None else None
        imr = catalogue().layout("IMR", self.generation.number).offset or 0 if place is not None else 0
        return InterruptCause(_event(self.names.get(base, ""), base, cause), _bit(cause, self.generation.number), base + imr, place)

    def raised(self, base: int, cause: str) -> int:
        """Something happened: an event for everyone, a bit for those it is not masked from. Answers the engine's bit."""
        found = self._causes.get((base, cause))
        if found is None:
            found = self._causes[base, cause] = self._cause(base, cause)
        event, bit, imr, place = found
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)
        if place is not None and bit & ~self.registers.values.get(imr, DWORD_MASK):  # all masked until it is written
            self._collect(place[0], bit << place[1])
        return bit

    def _collect(self, number: int, bit: int) -> None:
        values, identity = self.registers.values, self._offset(number, "identity")
        with self.registers.lock:
            self._add(values, identity, number, bit)

    def _add(self, values: dict[int, int], identity: int, number: int, bit: int) -> None:
        if bit & values.get(self._offset(number, "mask"), 0):
            return
        if values.get(identity, 0) & bit:
            self.again[identity, bit] = 1  # a second one is remembered, a third is not
        values[identity] = values.get(identity, 0) | bit

    def _clear(self, number: int, ones: int) -> None:
        with self.registers.lock:
            self._clear_bits(self.registers.values, self._offset(number, "identity"), ones)

    def _clear_bits(self, values: dict[int, int], identity: int, ones: int) -> None:
        left = values.get(identity, 0) & ~ones
        for (register, bit), more in list(self.again.items()):
            if register == identity and bit & ones and more:
                left |= bit
                del self.again[register, bit]
        values[identity] = left

    def asserted(self) -> bool:
        """Whether the machine is interrupted now: something enabled is there."""
        if self.layout is None:
            return False
        values = self.registers.values
        return any(values.get(self._offset(n, "identity"), 0) & values.get(self._offset(n, "enable"), 0) for n in range(self.layout.count))

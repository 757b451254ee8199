"""An engine's registers by their names, as the commands that it executes see them."""

from __future__ import annotations

from collections.abc import Sequence

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.streamer.interface import RegisterFile


class EngineRegisters:
    """A register file, and where the engine's own registers start in it."""

    generation: Generation

    def __init__(self, registers: RegisterFile, base: int) -> None:
        self.registers, self.base = registers, base
        self._counting: dict[str, tuple[int, int]] = {}  # offset and dwords of registers that count
        self.counted_names: tuple[str, ...] = ()  # registers of `count`,
        self._counted: list[int] = []  # and by how much they are still to be advanced

    def register(self, offset: int, relative: object = False) -> int:
        """A register's absolute offset; `relative`: `offset` counts from where the engine's registers start."""
        return offset + self.base if relative else offset

    def own(self, name: str, number: int = 0) -> int:
        """The offset of one of the engine's registers; `number` counts in a row of them."""
        layout = catalogue().layout(name, self.generation.number)
        return (layout.offset or 0) + 4 * layout.dwords * number + (self.base if layout.relative else 0)

    def get(self, name: str, number: int = 0) -> int:
        """The value of a register, all its dwords."""
        if self.counted_names:
            self.write_counts()
        offset, dwords = self.own(name, number), catalogue().layout(name, self.generation.number).dwords
        return sum(self.registers.read(offset + 4 * i) << 32 * i for i in range(dwords))

    def predicate(self) -> bool:
        """MI_PREDICATE_RESULT: draws, walkers and stores with their predicate enabled happen only when it is set."""
        return bool(self.get("MI_PREDICATE_RESULT") & 1)

    def set(self, name: str, value: int, number: int = 0) -> None:
        if self.counted_names:
            self.write_counts()
        offset, dwords = self.own(name, number), catalogue().layout(name, self.generation.number).dwords
        for i in range(dwords):
            self.registers.write(offset + 4 * i, value >> 32 * i & 0xFFFFFFFF)

    def add(self, name: str, count: int) -> None:
        """Advance a counting register."""
        found = self._counting.get(name)
        if found is None:
            found = self._counting[name] = self.own(name), catalogue().layout(name, self.generation.number).dwords
        offset, dwords = found
        for place in range(offset, offset + 4 * dwords, 4):
            count += self.registers.read(place)
            self.registers.write(place, count & 0xFFFFFFFF)
            count >>= 32
            if not count:  # no carry
                return

    def count(self, names: tuple[str, ...], counts: Sequence[int]) -> None:
        """The same for several, which are written before something looks at them: `get`, and commands that may read any register."""
        if names is self.counted_names:
            self._counted = [held + count for held, count in zip(self._counted, counts, strict=True)]
        else:
            self.write_counts()
            self.counted_names, self._counted = names, list(counts)

    def write_counts(self) -> None:
        """Advance the registers that wait for it."""
        names, counts = self.counted_names, self._counted
        self.counted_names, self._counted = (), []
        for name, count in zip(names, counts, strict=True):
            if count:
                self.add(name, count)

"""Read-ahead of command dwords: commands are a few dwords each, and every access to a space has its cost."""

from __future__ import annotations

import sys
from array import array

from softgen.memory.space import Space

NOTHING = array("I")
PIECE = 1 << 12  # bytes read ahead: a command that writes memory has them read again


class Window:
    """Sequential reading from a space. `dwords(address, n)` gives as many of n as are mapped."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.start = self.end = 0
        self.data = NOTHING  # what was read ahead, from `start` to `end`

    def dwords(self, address: int, count: int) -> list[int]:
        if not self.start <= address <= self.end - 4 * count:
            self._load(address, 4 * count)
        first = address - self.start >> 2
        return self.data[first : first + count].tolist()

    def first(self, address: int) -> int | None:
        """One dword, if it is mapped."""
        if not self.start <= address <= self.end - 4:
            self._load(address, 4)
            if address > self.end - 4:
                return None
        return self.data[address - self.start >> 2]

    def ahead(self, address: int) -> int | None:
        """The same, if it was read ahead."""
        return self.data[address - self.start >> 2] if self.start <= address <= self.end - 4 else None

    def host(self, address: int) -> tuple[int, int]:
        """The host address of a dword that was read ahead, and how many dwords are readable from there."""
        offset = address - self.start
        return self.data.buffer_info()[0] + offset, (self.end - address) // 4

    def forget(self) -> None:
        """Read again what is asked for next: memory may have changed."""
        self.start, self.end, self.data = 0, 0, NOTHING

    def _load(self, address: int, size: int) -> None:
        data = self.space.read_mapped(address, max(size, PIECE))
        self.data = array("I", data if len(data) % 4 == 0 else data[: len(data) & ~3])
        if sys.byteorder == "big":
            self.data.byteswap()
        self.start, self.end = address, address + 4 * len(self.data)

"""Buffer objects by address: which ranges of an address space they take, and where there is room."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from softgen.bits.units import PAGE_SIZE
from softgen.driver.gem_object import GemObject

LOWEST = 0x10_0000  # nothing is placed below: a small number used as an address must be a fault


class Placement:
    """Ranges that do not overlap, each of one buffer; looked up in O(log n) however many there are."""

    def __init__(self) -> None:
        self.address: dict[GemObject, int] = {}
        self.owner: dict[int, GemObject] = {}
        self.starts: list[int] = []
        self.floor = LOWEST  # no page is free between LOWEST and here
        self.changes = 0  # counted, for who keeps what follows from it

    def __len__(self) -> int:
        return len(self.starts)

    def get(self, bo: GemObject) -> int | None:
        return self.address.get(bo)

    def put(self, bo: GemObject, address: int) -> None:
        """Place a buffer; the range must be free."""
        self.remove(bo)
        self.changes += 1
        self.address[bo], self.owner[address] = address, bo
        insort(self.starts, address)

    def remove(self, bo: GemObject) -> int | None:
        """Free a buffer's range; where it was."""
        address = self.address.pop(bo, None)
        if address is not None:
            self.changes += 1
            del self.owner[address], self.starts[bisect_left(self.starts, address)]
            self.floor = min(self.floor, max(address - PAGE_SIZE, LOWEST))  # a page below it was too little room for any buffer
        return address

    def overlapping(self, start: int, end: int) -> list[GemObject]:
        """Buffers with a byte in a range."""
        first = max(bisect_right(self.starts, start) - 1, 0)
        found = (self.owner[address] for address in self.starts[first : bisect_left(self.starts, end)])
        return [bo for bo in found if start < self.address[bo] + bo.size]

    def free(self, size: int, alignment: int) -> int:
        """The lowest aligned address with room for so many bytes, and a page between it and its neighbours that catches overruns."""
        at, packed = aligned(self.floor, alignment), True
        for number in range(max(bisect_right(self.starts, at) - 1, 0), len(self.starts)):
            start = self.starts[number]
            if at + size + PAGE_SIZE <= start:
                break
            packed = packed and start < at + 2 * PAGE_SIZE
            at = max(at, aligned(start + self.owner[start].size + PAGE_SIZE, alignment))
        if packed and alignment <= PAGE_SIZE:
            self.floor = at  # until something is placed there, the next search begins at the same place
        return at


def aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment

"""Buffer objects by address: which ranges of an address space they take, and where there is room."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable

from softgen.bits.units import PAGE_SIZE
from softgen.driver.objects.gem_object import GemObject

MOST_FLOORS = 32
LOWEST = 0x10_0000  # nothing is placed below: a small number used as an address must be a fault


class Placement:
    """Ranges that do not overlap, each of one buffer; looked up in O(log n) however many there are."""

    def __init__(self, charge: Callable[[int], None] = lambda count: None) -> None:
        """`charge` is called with the number of buffers that are placed, or negative, removed."""
        self.charge = charge
        self.address: dict[GemObject, int] = {}
        self.owner: dict[int, GemObject] = {}
        self.starts: list[int] = []
        self.floors: dict[tuple[int, int], int] = {}  # by alignment and size: there is no room for such a buffer between LOWEST and here
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
        self.charge(1)

    def remove(self, bo: GemObject) -> int | None:
        """Free a buffer's range; where it was."""
        address = self.address.pop(bo, None)
        if address is not None:
            self.changes += 1
            self.charge(-1)
            del self.owner[address], self.starts[bisect_left(self.starts, address)]
            for wanted, floor in self.floors.items():
                self.floors[wanted] = min(floor, max(address - wanted[1] - PAGE_SIZE, LOWEST))
        return address

    def overlapping(self, start: int, end: int) -> list[GemObject]:
        """Buffers with a byte in a range."""
        first = max(bisect_right(self.starts, start) - 1, 0)
        found = (self.owner[address] for address in self.starts[first : bisect_left(self.starts, end)])
        return [bo for bo in found if start < self.address[bo] + bo.size]

    def free(self, size: int, alignment: int) -> int:
        """The lowest aligned address with room for so many bytes, and a page between it and its neighbours that catches overruns."""
        at = aligned(self._floor(size, alignment), alignment)
        packed = at <= aligned(self._floor(PAGE_SIZE, alignment), alignment)  # and not even a page is free below
        for number in range(max(bisect_right(self.starts, at) - 1, 0), len(self.starts)):
            start = self.starts[number]
            if at + size + PAGE_SIZE <= start:
                break
            packed = packed and start < at + 2 * PAGE_SIZE  # not even a page is free there
            at = max(at, aligned(start + self.owner[start].size + PAGE_SIZE, alignment))
        for room in {size, PAGE_SIZE} if packed else {size}:
            self._note(alignment, room, at)
        return at

    def _floor(self, size: int, alignment: int) -> int:
        """Where a search begins: there is no room below."""
        return max((floor for (unit, room), floor in self.floors.items() if unit <= alignment and room <= size), default=LOWEST)

    def _note(self, alignment: int, size: int, floor: int) -> None:
        """Where the next search for such a buffer, or one that needs more room, begins."""
        self.floors[alignment, size] = floor
        if len(self.floors) > MOST_FLOORS:
            del self.floors[min(self.floors, key=self.floors.__getitem__)]


def aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment

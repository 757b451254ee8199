"""Page tables as host mappings: what compiled code sees of a space that real tables describe.

In:  the pages that the tables name, as runs that lie together. Out: one fixed host mapping of physical memory for each run, in arenas.
The bytes are those that PhysicalMemory reads and writes, never a copy. A mirror is brought up to date when it is asked for after the tables
changed; runs that stayed as they were are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from softgen.bits.units import PAGE_SIZE
from softgen.errors import GpuFault, Unsupported
from softgen.memory.address_space import AddressSpace, BufferMapping
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import Translation

if TYPE_CHECKING:
    from softgen.memory.page_table import PageTableSpace

MAX_RUNS = 1 << 14  # host mappings for one space; a process may have about four times as many (vm.max_map_count)
_UNSEEN = memoryview(b"")  # Python reads through the tables, not through a mapping


class HostMirror(AddressSpace):
    """Host mappings of a PageTableSpace; its reasons for faults are those of the walk."""

    def __init__(self, tables: PageTableSpace) -> None:
        super().__init__(tables.name, max(tables.bits, 32))
        self.tables = tables
        self._shown: frozenset[Translation] = frozenset()

    def update(self) -> None:
        """Show what the tables say now."""
        now = frozenset(self._runs())
        gone, new = self._shown - now, now - self._shown
        if not gone and not new:
            return
        table = self.table
        with self._changing:
            for page in gone:
                self._withdraw(page.start, page.start + page.size)
            self._shown -= gone
            self._index = self._indexed(self._shown)
            for page in new:
                self._place(self._mapping(page), table)
            self._shown = now
            self._index = self._indexed(now)

    def _runs(self) -> Iterator[Translation]:
        count = 0
        for page in self.tables.pages():
            for run in backed_parts(self.tables.memory, page):
                count += 1
                if count > MAX_RUNS:
                    more = f"more than {MAX_RUNS} pieces of physical memory"
                    raise Unsupported(f"{self.name}: its pages lie in {more}, too many for host mappings: compiled code cannot reach it")
                yield run

    def _mapping(self, page: Translation) -> BufferMapping:
        return BufferMapping(page.start, page.start + page.size, self.tables.memory, page.physical, page.writable, _UNSEEN)

    def _indexed(self, pages: frozenset[Translation]) -> tuple[list[int], list[BufferMapping]]:
        mappings = [self._mapping(page) for page in sorted(pages)]
        return [mapping.start for mapping in mappings], mappings

    # -- for those who ask about a fault ---------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        return self.tables.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self.tables.write(address, data)

    def extent(self, address: int, limit: int) -> int:
        return self.tables.extent(address, limit)

    def why(self, address: int, access: str) -> str:
        try:
            self.tables.translate(address, access)
            self.tables.read(address, 1)
        except GpuFault as fault:
            return fault.why
        return "the page tables map it now and did not when the work began"


def backed_parts(memory: PhysicalMemory, page: Translation) -> Iterator[Translation]:
    """The parts of a page that may be touched: all of it, or where unwritten memory faults, what was written."""
    if memory.zero:
        yield page
        return
    at, end = page.physical, page.physical + page.size
    while at < end:
        good = memory.extent(at, end - at)
        if good:
            yield Translation(page.start + at - page.physical, good, at, page.writable)
        at += good or PAGE_SIZE

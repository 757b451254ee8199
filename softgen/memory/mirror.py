"""HostMirror: the pages of a page-table space as host mappings, for compiled code.

In:  the pages that the tables map, as contiguous runs. Out: one fixed host mapping of physical memory for each run, in arenas.
The bytes are those of PhysicalMemory, never a copy. `update` is called after the tables changed; unchanged runs keep their mappings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from softgen.bits.units import PAGE_SIZE
from softgen.errors import GpuFault, Unsupported
from softgen.memory.address_space import AddressSpace, BufferMapping
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import PageTranslation

MAX_RUNS = 1 << 14  # host mappings of one space; a process may have about four times as many (vm.max_map_count)
_UNSEEN = memoryview(b"")  # Python reads through the tables, not through a mapping


class PageTables(Protocol):
    """A space described by page tables, as its mirror uses it."""

    name: str
    bits: int
    memory: PhysicalMemory

    def pages(self) -> Iterator[PageTranslation]: ...

    def translate(self, address: int, access: str = "read") -> PageTranslation: ...

    def read(self, address: int, size: int) -> bytes: ...

    def write(self, address: int, data: bytes) -> None: ...

    def extent(self, address: int, limit: int) -> int: ...


class HostMirror(AddressSpace):
    """The host mappings of a space with page tables; causes of faults are those of the page-table walk."""

    def __init__(self, tables: PageTables) -> None:
        super().__init__(tables.name, max(tables.bits, 32))
        self.tables = tables
        self._shown: frozenset[PageTranslation] = frozenset()

    def update(self) -> None:
        """Map what the tables map now."""
        now = frozenset(self._runs())
        gone, new = self._shown - now, now - self._shown
        if not gone and not new:
            return
        table = self.table
        with self._changing:
            for page in gone:
                self._withdraw(page.start, page.start + page.size)
            self._shown -= gone
            self._hold(self._shown)
            for page in new:
                self._reserve_parts(page.start, page.start + page.size, table)  # all first: a page may be in the tail of another's arena
            for page in new:
                self._place(self._mapping(page), table)
            self._shown = now
            self._hold(now)

    def _runs(self) -> Iterator[PageTranslation]:
        count = 0
        for page in self.tables.pages():
            for run in backed_parts(self.tables.memory, page):
                count += 1
                if count > MAX_RUNS:
                    more = f"more than {MAX_RUNS} pieces of physical memory"
                    raise Unsupported(f"{self.name}: its pages lie in {more}, too many for host mappings: compiled code cannot reach it")
                yield run

    def _mapping(self, page: PageTranslation) -> BufferMapping:
        return BufferMapping(page.start, page.start + page.size, self.tables.memory, page.physical, page.writable, _UNSEEN)

    def _hold(self, pages: frozenset[PageTranslation]) -> None:
        self._held = {page.start: self._mapping(page) for page in pages}
        self._starts = sorted(self._held)

    # -- access, and causes of faults ------------------------------------------------------------------------------------

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
        return "the page tables map it now, but did not when the work began"


def backed_parts(memory: PhysicalMemory, page: PageTranslation) -> Iterator[PageTranslation]:
    """The accessible ranges of a page: all of it, or only what was written, where reads of unwritten memory fault."""
    if memory.zero:
        yield page
        return
    at, end = page.physical, page.physical + page.size
    while at < end:
        good = memory.extent(at, end - at)
        if good:
            yield PageTranslation(page.start + at - page.physical, good, at, page.writable)
        at += good or PAGE_SIZE

"""Memory of an AUB trace: physical pages, the GGTT, and pages written at graphics addresses that no table maps.

Records address memory in four ways (`memory_space` of aub.toml): physical, through the global table, through a context's tables, and
the global table itself. What is written at graphics addresses before any table maps them is kept apart and moves to its
place when a table does ("loose" pages); older tools never write tables at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.generation import Generation
from softgen.bits.units import PAGE_SIZE
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from softgen.memory.space import ArenaTable, MappedRegion, Space

TABLE_BITS = 23  # 2^20 entries of 8 bytes: the global table of 4 GiB
KEPT_TABLES = 64


class LooseMemory(Space):
    """Pages at graphics addresses that no page table maps."""

    def __init__(self, name: str, limit: int, bits: int = 48) -> None:
        self.name, self.limit, self.bits = name, limit, bits
        self.pages: dict[int, bytearray] = {}
        self.fresh: dict[int, list[tuple[int, int]]] = {}  # page -> what was written in it since work last started

    def read(self, address: int, size: int) -> bytes:
        return b"".join(bytes(page[start:end]) for page, start, end in self._pieces(address, size, "read"))

    def write(self, address: int, data: bytes) -> None:
        if address + len(data) > 1 << self.bits:
            raise GpuFault(max(address, 1 << self.bits), "write", self.name, why=self.outside(1 << self.bits))
        for number in range(address // PAGE_SIZE, -(-(address + len(data)) // PAGE_SIZE)):
            if number not in self.pages:
                if len(self.pages) * PAGE_SIZE >= self.limit:
                    raise SoftgenError(f"{self.name}: more than {self.limit:#x} bytes written (at {address:#x})")
                self.pages[number] = bytearray(PAGE_SIZE)
        done = 0
        for page, start, end in self._pieces(address, len(data), "write"):
            page[start:end] = data[done : done + end - start]
            self.fresh.setdefault((address + done) // PAGE_SIZE, []).append((start, end))
            done += end - start

    def extent(self, address: int, limit: int) -> int:
        at = address
        while at < address + limit and at // PAGE_SIZE in self.pages:
            at = at // PAGE_SIZE * PAGE_SIZE + PAGE_SIZE
        return min(at - address, max(limit, 0))

    def regions(self) -> Iterator[MappedRegion]:
        start = end = -1
        for number in sorted(self.pages):
            if number * PAGE_SIZE != end:
                if end >= 0:
                    yield MappedRegion(start, end - start, self.name)
                start = number * PAGE_SIZE
            end = number * PAGE_SIZE + PAGE_SIZE
        if end >= 0:
            yield MappedRegion(start, end - start, self.name)

    def _pieces(self, address: int, size: int, access: str) -> Iterator[tuple[bytearray, int, int]]:
        if self.extent(address, size) < size:
            bad = address + self.extent(address, size)
            raise GpuFault(bad, access, self.name, why=self.outside(bad))
        at, end = address, address + size
        while at < end:
            stop = min(at // PAGE_SIZE * PAGE_SIZE + PAGE_SIZE, end)
            yield self.pages[at // PAGE_SIZE], at % PAGE_SIZE, at % PAGE_SIZE + stop - at
            at = stop


class TracedSpace(Space):
    """Address space of page tables, with loose pages where nothing is mapped."""

    def __init__(self, name: str, tables: PageTableSpace, loose: LooseMemory) -> None:
        self.name, self.tables, self.loose, self.bits = name, tables, loose, loose.bits

    def read(self, address: int, size: int) -> bytes:
        if not self.loose.pages:
            return self.tables.read(address, size)
        return b"".join(space.read(at, count) for space, at, count in self._parts(address, size, "read"))

    def write(self, address: int, data: bytes) -> None:
        done = 0
        for space, at, count in list(self._parts(address, len(data), "write")):
            space.write(at, data[done : done + count])
            done += count

    def place(self, address: int, data: bytes) -> bool:
        """Write from a trace: unmapped pages become loose. True where any did."""
        loose, done = False, 0
        while done < len(data):
            at = address + done
            count = min(self.tables.extent(at, len(data) - done) or PAGE_SIZE - at % PAGE_SIZE, len(data) - done)
            mapped = self.tables.extent(at, 1) == 1
            (self.tables if mapped else self.loose).write(at, data[done : done + count])
            loose, done = loose or not mapped, done + count
        return loose

    def settle(self) -> None:
        """Move loose pages to the physical pages that tables map now. Each page is tried once, when work starts after it was written."""
        for number, pieces in self.loose.fresh.items():
            if self.tables.extent(number * PAGE_SIZE, PAGE_SIZE) < PAGE_SIZE:
                continue
            loose, page = self.loose.pages.pop(number), self.tables.translate(number * PAGE_SIZE)
            for start, end in pieces:  # a read-only entry binds the GPU, not the trace
                self.tables.memory.write(page.physical + number * PAGE_SIZE - page.start + start, bytes(loose[start:end]))
        self.loose.fresh.clear()

    def extent(self, address: int, limit: int) -> int:
        done = 0
        while done < limit:
            at, left = address + done, limit - done
            more = self.tables.extent(at, left) or self.loose.extent(at, min(PAGE_SIZE - at % PAGE_SIZE, left))
            if not more:
                break
            done += more
        return done

    @property
    def table(self) -> ArenaTable:
        if self.loose.pages:
            count = len(self.loose.pages)
            raise Unsupported(f"{self.name}: {count} of its pages are in no page table: compiled code cannot reach it")
        return self.tables.table

    def mapped(self, address: int, limit: int) -> int:
        return self.tables.mapped(address, limit)

    def regions(self) -> Iterator[MappedRegion]:
        yield from sorted([*self.tables.regions(), *self.loose.regions()])

    def _parts(self, address: int, size: int, access: str) -> Iterator[tuple[Space, int, int]]:
        at, end = address, address + size
        while at < end:
            count = self.tables.extent(at, end - at)
            if count:
                yield self.tables, at, count
            else:
                count = min(PAGE_SIZE - at % PAGE_SIZE, end - at)
                if not self.loose.extent(at, 1):
                    self.tables.translate(at, access)  # its fault says where the walk stopped
                yield self.loose, at, count
            at += count


class AubMemory:
    """All memory of one trace."""

    def __init__(self, generation: Generation, limit: int) -> None:
        """`limit` bytes are kept at most, of physical and of loose memory each."""
        self.generation = generation
        self.physical = PhysicalMemory("physical memory", limit=limit)
        self.entries = PhysicalMemory("global table", bits=TABLE_BITS)
        tables = PageTableSpace.global_table("global table", generation, self.physical, self.entries)
        self.global_space = TracedSpace("global memory", tables, LooseMemory("global memory", limit))
        self.loose = LooseMemory("context memory", limit)  # written at a context's addresses before any context is known
        self._contexts: dict[int | tuple[int, ...], TracedSpace] = {}

    def write(self, space: str, address: int, data: bytes) -> bool:
        """Write to the memory space of a record; True where some of it is unmapped."""
        if space == "global":
            return self.global_space.place(address, data)
        if space == "context":
            self.loose.write(address, data)
            return True
        (self.entries if space == "global_entry" else self.physical).write(address, data)
        return False

    def space(self, name: str, context: Space | None) -> Space:
        """The address space of an expectation."""
        return {"global": self.global_space, "context": context or self.loose, "global_entry": self.entries}.get(name, self.physical)

    def context(self, root: int | tuple[int, ...]) -> TracedSpace:
        """The space of a context whose tables begin at `root`; the same object for the same tables, so that translations are kept."""
        if root not in self._contexts:
            if len(self._contexts) >= KEPT_TABLES:
                self._contexts.clear()
            tables = PageTableSpace.four_level(f"context memory (tables at {_first(root):#x})", self.generation, self.physical, root)
            self._contexts[root] = TracedSpace(tables.name, tables, self.loose)
        return self._contexts[root]


def _first(root: int | tuple[int, ...]) -> int:
    return root if isinstance(root, int) else root[0]

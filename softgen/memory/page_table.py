"""PageTableSpace: an address space described by page tables in physical memory, for work from rings, AUB files or TBX.

It has the same interface as AddressSpace. Each access is translated as the hardware does, and a fault names the level at which the walk
stopped. Translations and the host mappings for compiled code are cached until the tables are written or invalidate() is called.
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.generation import Generation
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.mirror import HostMirror, backed_parts
from softgen.memory.physical import PhysicalMemory
from softgen.memory.space import LARGEST_ACCESS, ArenaTable, MappedRegion, Space
from softgen.memory.walk import FourLevelWalk, GlobalWalk, PageTableWalk, PageTranslation, TwoLevelWalk

_KEPT = 1 << 16  # cached translations; a full cache is cleared
_MOST_ENTRIES = 1 << 18  # that pages() visits: tables may map the whole space to one scratch page


class PageTableSpace(Space):
    """Physical memory accessed through page tables. Constructed by one of the class methods."""

    def __init__(self, name: str, walk: PageTableWalk) -> None:
        self.name, self.walk, self.bits, self.memory = name, walk, walk.bits, walk.memory
        self._kept: dict[int, PageTranslation] = {}
        self._epoch = walk.epoch
        self._mirror: HostMirror | None = None
        self._mirrored: tuple[int, int] | None = None  # state of the tables when the mirror was last updated

    @classmethod
    def global_table(
        cls, name: str, generation: Generation, memory: PhysicalMemory, entries: PhysicalMemory, base: int = 0
    ) -> PageTableSpace:
        """The global GTT. `entries` holds the table from `base` on: entry i at base + 4 * i, or 8 * i from Gen8 on."""
        return cls(name, GlobalWalk(generation, memory, entries, base))

    @classmethod
    def two_level(
        cls,
        name: str,
        generation: Generation,
        memory: PhysicalMemory,
        entries: PhysicalMemory,
        pp_dir_base: int,
        pp_dir_dclv: int = 0xFFFFFFFF,
    ) -> PageTableSpace:
        """A context's PPGTT on Gen7. The two register values locate its page directory in the global table's array."""
        return cls(name, TwoLevelWalk(generation, memory, entries, pp_dir_base, pp_dir_dclv))

    @classmethod
    def four_level(cls, name: str, generation: Generation, memory: PhysicalMemory, root: int | tuple[int, ...]) -> PageTableSpace:
        """A context's PPGTT on Gen8 and later: a PML4's address for 48 bits, or a tuple of four page directories (PDP0 first) for 32."""
        return cls(name, FourLevelWalk(generation, memory, root))

    def translate(self, address: int, access: str = "read") -> PageTranslation:
        """The translation of an address: its physical address is page.physical + address - page.start."""
        if self._epoch != self.walk.epoch:
            self._kept.clear()
            self._epoch = self.walk.epoch
        page = self._kept.get(address >> 12)
        if page is None:
            if address >> self.bits:
                raise GpuFault(address, access, self.name, why=self.outside(address))
            found = self.walk.translate(address)
            if not isinstance(found, PageTranslation):
                raise GpuFault(address, access, self.name, why=found.why)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            page = self._kept[address >> 12] = found
        if access == "write" and not page.writable:
            raise GpuFault(address, access, self.name, why="the page tables map it read-only")
        return page

    def invalidate(self) -> None:
        """Discard cached translations. Needed only after compiled code wrote the tables: writes through PhysicalMemory are tracked."""
        self._kept.clear()
        self._mirrored = None
        self.walk.invalidate()

    @property
    def table(self) -> ArenaTable:
        """Host addresses of what the tables map now. To be read again for each piece of work: a write to a table through PhysicalMemory
        advances the walk's epoch and the next read updates the mappings; tables written by compiled code need invalidate() first."""
        if self._mirror is None:
            self._mirror = HostMirror(self)
        if self._mirrored != self._now():
            self._mirror.update()
            self._mirrored = self._now()  # after the walk, which starts watching the tables it reads
        return self._mirror.table

    def contiguous(self, address: int, size: int) -> int | None:
        return self._mirror.contiguous(address, size) if self._mirror else None

    def mapped(self, address: int, limit: int) -> int:
        return self._mirror.mapped(address, limit) if self._mirror else 0

    def _now(self) -> tuple[int, int]:
        return self.walk.epoch, 0 if self.memory.zero else self.memory.pages_written

    # Access

    def read(self, address: int, size: int) -> bytes:
        if size > 0 and self.memory.zero:  # the common case: a read within one page
            page = self.translate(address)
            if address + size <= page.start + page.size:
                return self.memory.read(page.physical + address - page.start, size)
        return b"".join(self.memory.read(physical, room) for physical, room in self._runs(address, size, "read"))

    def write(self, address: int, data: bytes) -> None:
        where = list(self._runs(address, len(data), "write"))
        done = 0
        for physical, size in where:
            self.memory.write(physical, data[done : done + size])
            done += size

    def extent(self, address: int, limit: int) -> int:
        at, end = address, min(address + limit, 1 << self.bits)
        while 0 <= at < end:
            try:
                page = self.translate(at)
            except GpuFault:
                break
            room = min(page.start + page.size, end) - at
            good = self.memory.extent(page.physical + at - page.start, room)
            at += good
            if good < room:
                break
        return at - address

    def regions(self) -> Iterator[MappedRegion]:
        start = size = 0
        for page in self.pages():
            if page.start != start + size:
                if size:
                    yield MappedRegion(start, size, self.name)
                start, size = page.start, 0
            size += page.size
        if size:
            yield MappedRegion(start, size, self.name)

    def pages(self, start: int = 0, end: int | None = None, limit: int = _MOST_ENTRIES) -> Iterator[PageTranslation]:
        """Every page between two addresses, in rising order; pages that are contiguous in physical memory are merged."""
        end = 1 << self.bits if end is None else min(end, 1 << self.bits)
        pending: PageTranslation | None = None
        for _ in range(limit):
            if start >= end:
                break
            found = self.walk.translate(start)
            start = found.start + found.size
            if not isinstance(found, PageTranslation):
                continue
            if pending and found == (pending.start + pending.size, found.size, pending.physical + pending.size, pending.writable):
                pending = pending._replace(size=pending.size + found.size)
                continue
            if pending:
                yield pending
            pending = found
        else:
            if start < end:
                raise Unsupported(f"{self.name}: the page tables have more than {limit} entries; {start:#x} was reached")
        if pending:
            yield pending

    def fill(self, space: AddressSpace, start: int = 0, end: int | None = None) -> None:
        """Map the pages into an AddressSpace, which does not follow later changes of the tables."""
        for page in self.pages(start, end):
            for run in backed_parts(self.memory, page):
                space.map(run.start, self.memory, run.physical, run.size, run.writable)

    def _runs(self, address: int, size: int, access: str) -> Iterator[tuple[int, int]]:
        """(physical address, size) of an access, page by page."""
        if not 0 <= size <= LARGEST_ACCESS:
            raise SoftgenError(f"{self.name}: {access} at {address:#x}: {size:#x} bytes at once; the most is {LARGEST_ACCESS:#x}")
        end = address + size
        while address < end:
            page = self.translate(address, access)
            physical = page.physical + address - page.start
            room = min(end, page.start + page.size) - address
            good = room if access == "write" else self.memory.extent(physical, room)
            if good < room:
                raise GpuFault(address + good, access, self.name, why=f"physical {physical + good:#x} was never written")
            yield physical, room
            address += room

"""Page-table walks: the translation of one address by the tables in physical memory.

Reads   GLOBAL_TABLE_ENTRY PAGE_TABLE_ENTRY PAGE_DIRECTORY_ENTRY PAGE_DIRECTORY_POINTER_ENTRY PML4_ENTRY PP_DIR_BASE PP_DIR_DCLV
Writes  nothing

A walk reads at most four entries, so a table that points to itself costs no more than a valid one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from typing import Any, NamedTuple

from softgen.bits.catalogue import layout
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.units import PAGE_SIZE
from softgen.errors import DriverError, SpecError
from softgen.memory.physical import PhysicalMemory


class PageTranslation(NamedTuple):
    """A range of addresses that is contiguous in graphics and in physical memory."""

    start: int
    size: int
    physical: int
    writable: bool


class Unmapped(NamedTuple):
    """A range of unmapped addresses, and the level at which the walk stopped."""

    start: int
    size: int
    why: str


class TableReader:
    """Reader of table entries in one memory; caches table pages until one of them is written."""

    def __init__(self, memory: PhysicalMemory) -> None:
        self.memory = memory
        self._pages: dict[int, array[int]] = {}
        self._epoch = memory.epoch

    def entry(self, address: int, dwords: int) -> array[int] | None:
        """The dwords at an address; None where nothing was ever written."""
        if self._epoch != self.memory.epoch:
            self.invalidate()
        page = self._pages.get(address // PAGE_SIZE)
        if page is None:
            self.memory.watch(address)  # a missing table is watched too
            if not self.memory.written(address):
                return None
            page = self._pages[address // PAGE_SIZE] = array("I", self.memory.read(address // PAGE_SIZE * PAGE_SIZE, PAGE_SIZE))
        at = address % PAGE_SIZE // 4
        return page[at : at + dwords]

    def invalidate(self) -> None:
        self._pages.clear()
        self._epoch = self.memory.epoch


class PageTableWalk(ABC):
    """A walk of one table format from its root."""

    bits: int

    def __init__(self, memory: PhysicalMemory) -> None:
        self.memory = memory  # of pages, and by default of tables
        self.tables = TableReader(memory)
        self._forms: dict[str, Layout] = {}

    @abstractmethod
    def translate(self, address: int) -> PageTranslation | Unmapped:
        """The translation of an address below 2^bits, or why it is unmapped."""

    @property
    def epoch(self) -> int:
        """Advances when an entry that a walk read may have changed."""
        return self.memory.epoch

    def invalidate(self) -> None:
        self.tables.invalidate()

    def read(self, tables: TableReader, name: str, gen: float, at: int) -> tuple[Any, str]:
        """(entry, "") or (None, cause); the cause names the entry's address."""
        form = self._forms.get(name)
        if form is None:
            form = self._forms[name] = layout(name, gen)
        dwords = tables.entry(at, form.dwords)
        if dwords is not None:
            entry = form.unpack(dwords)
            if entry.present:
                return entry, ""
            state = f"is {sum(dword << 32 * i for i, dword in enumerate(dwords)):#x}, not present"
        else:
            state = "was never written"
        return None, f"not mapped: {_TITLE[name]} entry at {tables.memory.name} {at:#x} {state}"

    def page(self, address: int, size: int, physical: int, writable: bool) -> PageTranslation | Unmapped:
        start = address // size * size
        if physical + size > self.memory.capacity:
            return Unmapped(
                start, size, f"not mapped: its page at {physical:#x} is beyond the {self.memory.bits} bits of {self.memory.name}"
            )
        return PageTranslation(start, size, physical, writable)

    def hole(self, address: int, size: int, why: str, tables: TableReader, at: int, whole: int) -> Unmapped:
        """The unmapped range of a missing entry, which maps `size` bytes; the `whole` bytes of its table if that was never written."""
        size = size if tables.memory.written(at) else whole
        return Unmapped(address // size * size, size, why)


_TITLE = {
    "GLOBAL_TABLE_ENTRY": "global table",
    "PAGE_TABLE_ENTRY": "page table",
    "PAGE_DIRECTORY_ENTRY": "page directory",
    "PAGE_DIRECTORY_POINTER_ENTRY": "page directory pointer",
    "PML4_ENTRY": "PML4",
}


class GlobalWalk(PageTableWalk):
    """The global table: an array of entries, in a memory of its own (AUB, TBX) or in physical memory."""

    bits = 32

    def __init__(self, generation: Generation, memory: PhysicalMemory, entries: PhysicalMemory, base: int = 0) -> None:
        super().__init__(memory)
        if base % PAGE_SIZE:
            raise DriverError(f"the global table begins at a page, not at {base:#x}")
        self.gen, self.base, self.entries = generation.number, base, TableReader(entries)
        self.stride = layout("GLOBAL_TABLE_ENTRY", self.gen).dwords * 4

    def translate(self, address: int) -> PageTranslation | Unmapped:
        at = self.base + address // PAGE_SIZE * self.stride
        entry, why = self.read(self.entries, "GLOBAL_TABLE_ENTRY", self.gen, at)
        if entry is None:
            return self.hole(address, PAGE_SIZE, why, self.entries, at, PAGE_SIZE // self.stride * PAGE_SIZE)
        return self.page(address, PAGE_SIZE, entry.page, bool(entry.writable))

    @property
    def epoch(self) -> int:
        return self.entries.memory.epoch

    def invalidate(self) -> None:
        self.entries.invalidate()


class TwoLevelWalk(PageTableWalk):
    """Gen7: 512 directory entries inside the global table's array, each for 4 MiB; page tables in physical memory."""

    bits = 31
    PART = 1 << 22
    GROUP = 16  # directory entries in a cacheline, one bit of PP_DIR_DCLV

    def __init__(self, generation: Generation, memory: PhysicalMemory, entries: PhysicalMemory, pp_dir_base: int, pp_dir_dclv: int) -> None:
        super().__init__(memory)
        if generation.ppgtt != "two_level":
            raise SpecError(f"{generation} has no page directory in the global table")
        self.gen, self.entries = generation.number, TableReader(entries)
        self.directory = layout("PP_DIR_BASE", self.gen).unpack([pp_dir_base]).offset
        self.valid = layout("PP_DIR_DCLV", self.gen).unpack([pp_dir_dclv]).cachelines_valid

    def translate(self, address: int) -> PageTranslation | Unmapped:
        index = address // self.PART
        start = index * self.PART
        if not self.valid >> index // self.GROUP & 1:
            return Unmapped(start, self.PART, f"not mapped: page directory entry {index} is not valid in PP_DIR_DCLV {self.valid:#010x}")
        entry, why = self.read(self.entries, "PAGE_DIRECTORY_ENTRY", self.gen, self.directory + index * 4)
        if entry is None:
            return Unmapped(start, self.PART, why)
        at = entry.table + (address - start) // PAGE_SIZE * 4
        entry, why = self.read(self.tables, "PAGE_TABLE_ENTRY", self.gen, at)
        if entry is None:
            return self.hole(address, PAGE_SIZE, why, self.tables, at, self.PART)
        return self.page(address, PAGE_SIZE, entry.page, bool(entry.writable))

    @property
    def epoch(self) -> int:
        return self.entries.memory.epoch + self.memory.epoch

    def invalidate(self) -> None:
        self.entries.invalidate()
        self.tables.invalidate()


class FourLevelWalk(PageTableWalk):
    """Gen8 and later: 512 entries of 64 bits in each table. The root is a PML4, or four page directories for 32-bit spaces."""

    LEVELS = (("PML4_ENTRY", 39), ("PAGE_DIRECTORY_POINTER_ENTRY", 30), ("PAGE_DIRECTORY_ENTRY", 21), ("PAGE_TABLE_ENTRY", 12))
    MASK = 511

    def __init__(self, generation: Generation, memory: PhysicalMemory, root: int | tuple[int, ...]) -> None:
        super().__init__(memory)
        if generation.ppgtt != "four_level":
            raise SpecError(f"{generation} has no four-level page tables")
        self.gen, self.bits = generation.number, 48 if isinstance(root, int) else 32
        if not isinstance(root, int) and len(root) != 4:
            raise DriverError(f"a 32-bit space has four page directories, not {len(root)}")
        # A root is a pointer without a present bit; drivers leave its low bits clear or write them like an entry's.
        self.roots = tuple(base & -PAGE_SIZE for base in ((root,) if isinstance(root, int) else root))

    def translate(self, address: int) -> PageTranslation | Unmapped:
        first = 0 if self.bits == 48 else 2
        table = self.roots[0 if self.bits == 48 else address >> 30]
        if self.bits == 32 and not table:
            return Unmapped(address >> 30 << 30, 1 << 30, f"not mapped: page directory pointer {address >> 30} is zero")
        writable, stride = True, 1
        for name, shift in self.LEVELS[first:]:
            index = address >> shift & self.MASK & -stride
            at, size = table + index * 8, stride << shift
            entry, why = self.read(self.tables, name, self.gen, at)
            if entry is None:
                return self.hole(address, size, why, self.tables, at, 512 << shift)
            writable = writable and bool(entry.writable)
            if shift == 12:
                return self.page(address, size, entry.page_64k if stride > 1 else entry.page, writable)
            if name != "PML4_ENTRY" and entry.page_size:
                return self.page(address, size, entry.page, writable)
            if name == "PAGE_DIRECTORY_ENTRY" and entry.holds_64k:
                stride = 16
            table = entry.table
        raise AssertionError("the last level returns")

"""The memory of a GPU that is driven through registers and page tables: physical pages, the global table, contexts' tables.

Reads   GLOBAL_TABLE_ENTRY PP_DIR_BASE PP_DIR_DCLV GFX_MODE
Writes  physical memory, the global table
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from softgen.bits.generation import Generation
from softgen.bits.units import PAGE_SIZE
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from softgen.memory.space import Space

TABLE_BITS = 23  # 2^20 entries of 8 bytes: the global table of 4 GiB
KEPT_TABLES = 64


class TableMemory(Protocol):
    """Memory behind page tables, as engines use it."""

    @property
    def global_space(self) -> Space: ...
    def context(self, root: int | tuple[int, ...]) -> Space: ...
    def two_level(self, pp_dir_base: int, pp_dir_dclv: int) -> Space: ...
    def update_table(self, address: int, entries: list[int]) -> None: ...


class DeviceMemory:
    """Physical memory with a global table and contexts' tables in it."""

    def __init__(self, generation: Generation, limit: int = 1 << 34) -> None:
        """At most `limit` bytes of physical memory are ever kept."""
        self.generation = generation
        self.physical = PhysicalMemory("physical memory", limit=limit)
        self.entries = PhysicalMemory("global table", bits=TABLE_BITS)
        self.global_space: Space = PageTableSpace.global_table("global memory", generation, self.physical, self.entries)
        self._contexts: dict[int | tuple[int, ...], PageTableSpace] = {}

    def context(self, root: int | tuple[int, ...]) -> Space:
        """The space of a context whose tables begin at `root`; the same object for the same tables, so that translations are kept."""
        first = root if isinstance(root, int) else root[0]
        name = f"context memory (tables at {first:#x})"
        return self._kept(root, lambda: PageTableSpace.four_level(name, self.generation, self.physical, root))

    def two_level(self, pp_dir_base: int, pp_dir_dclv: int) -> Space:
        """A context's space on Gen7, by the registers that name its directory."""
        tables = self.generation, self.physical, self.entries, pp_dir_base, pp_dir_dclv
        return self._kept((pp_dir_base, pp_dir_dclv), lambda: PageTableSpace.two_level("context memory", *tables))

    def _kept(self, key: int | tuple[int, ...], make: Callable[[], PageTableSpace]) -> PageTableSpace:
        if key not in self._contexts:
            if len(self._contexts) >= KEPT_TABLES:
                self._contexts.clear()
            self._contexts[key] = make()
        return self._contexts[key]

    def write_entry(self, index: int, value: int) -> None:
        """One entry of the global table."""
        size = self.generation.ggtt_entry // 8
        self.entries.write(index * size, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def update_table(self, address: int, entries: list[int]) -> None:
        """MI_UPDATE_GTT: entries for the pages from a global address on."""
        for number, value in enumerate(entries):
            self.write_entry(address // PAGE_SIZE + number, value)

"""AddressSpace: buffers mapped page by page at graphics addresses.

Python reads and writes the buffers directly. Compiled code needs host addresses: from the first use of `table` on, each mapping is also
a fixed host mapping inside a 4 GiB arena, found with one lookup in the table.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from softgen.bits.units import PAGE_SIZE
from softgen.errors import DriverError, GpuFault, SoftgenError
from softgen.memory import arena, host
from softgen.memory.arena import ARENA_SIZE, Arena
from softgen.memory.space import ArenaTable, MappedRegion, Space
from softgen.memory.store import Store

PART_COUNT = 1 << 48 - 32  # entries of a table: compiled code may look up any canonical address, however few bits the space has


class BufferMapping(NamedTuple):
    """Pages of a buffer mapped at a graphics address."""

    start: int
    end: int
    store: Store
    offset: int
    writable: bool
    view: memoryview  # the pages; they stay valid after an unmap by another thread while a reader holds the mapping

    def part(self, start: int, end: int) -> BufferMapping:
        skip = start - self.start
        return self._replace(start=start, end=end, offset=self.offset + skip, view=self.view[skip : skip + end - start])


class AddressSpace(Space):
    """An address space of 2^bits bytes. A buffer may be mapped at several addresses and in several spaces."""

    def __init__(self, name: str, bits: int = 48) -> None:
        if not 32 <= bits <= 48:
            raise DriverError(f"address space {name}: addresses have 32 to 48 bits, not {bits}")
        self.name, self.bits = name, bits
        self.changes: int = 0
        self._index: tuple[list[int], list[BufferMapping]] = [], []  # starts, mappings: replaced as a whole, so that readers need no lock
        self._arenas: dict[int, Arena] = {}
        self._table: ArenaTable | None = None
        self._changing = threading.Lock()
        weakref.finalize(self, _release, self._arenas).atexit = False

    # Mapping

    def map(self, address: int, buffer: Store, offset: int = 0, size: int | None = None, writable: bool = True) -> None:
        """Map `size` bytes of a buffer (default: all from `offset` on) at an address. Whole pages; an existing mapping is an error."""
        size = host.round_up(buffer.capacity - offset if size is None else size)
        self._check_range(address, size, f"map {buffer.name!r}")
        if offset % PAGE_SIZE or not 0 <= offset <= buffer.capacity - size:
            raise DriverError(
                f"{self.name}: cannot map {size:#x} bytes from {offset:#x} of {buffer.name!r}: it has {buffer.capacity:#x}, in whole pages"
            )
        mapping = BufferMapping(address, address + size, buffer, offset, writable, buffer.window(offset, size))
        with self._changing:
            starts, mappings = self._index
            at = bisect_right(starts, address)
            for other in mappings[max(at - 1, 0) : at + 1]:
                if other.start < mapping.end and address < other.end:
                    raise DriverError(
                        f"{self.name}: cannot map {buffer.name!r} at {address:#x}..{mapping.end:#x}: "
                        f"{other.store.name!r} is at {other.start:#x}..{other.end:#x}"
                    )
            self.changes += 1
            if self._table is not None:
                self._place(mapping, self._table)
            self._index = [*starts[:at], address, *starts[at:]], [*mappings[:at], mapping, *mappings[at:]]

    def unmap(self, address: int, size: int) -> None:
        """Unmap pages; unmapped pages among them are allowed."""
        self._check_range(address, size, "unmap")
        end = address + size
        with self._changing:
            self.changes += 1
            starts, mappings = self._index
            first, last = max(bisect_right(starts, address) - 1, 0), bisect_left(starts, end)
            kept: list[BufferMapping] = []
            for mapping in mappings[first:last]:
                if mapping.start < address:
                    kept.append(mapping.part(mapping.start, min(mapping.end, address)))
                if end < mapping.end:
                    kept.append(mapping.part(end, mapping.end))
            starts = [*starts[:first], *(mapping.start for mapping in kept), *starts[last:]]
            self._index = (
                starts,
                [*mappings[:first], *kept, *mappings[last:]],
            )  # removed from the index before the host mapping, so that readers do not find it
            self._withdraw(address, end)

    def close(self) -> None:
        """Release every mapping and arena now instead of at garbage collection."""
        with self._changing:
            self.changes += 1
            self._index = [], []
            self._table = None
            _release(self._arenas)

    @property
    def table(self) -> ArenaTable:
        """For compiled code: the host base of each 4 GiB part. Parts without mappings point to an arena in which every access faults."""
        if (found := self._table) is not None:
            return found
        with self._changing:
            if self._table is None:  # two threads may want it at once
                self._table = self._new_table()
            return self._table

    def _new_table(self) -> ArenaTable:
        table = (ctypes.c_uint64 * PART_COUNT)()
        void = arena.void().to_bytes(8, sys.byteorder)
        memoryview(table).cast("B")[:] = void * len(table)
        for mapping in self._index[1]:
            self._place(mapping, table)
        return table

    def contiguous(self, address: int, size: int) -> int | None:
        part, over, table = address // ARENA_SIZE, address % ARENA_SIZE + size - ARENA_SIZE, self.table
        if over > ARENA_SIZE or address + size > 1 << self.bits:
            return None
        with self._changing:
            if over > 0 and part not in self._arenas:
                self._reserve(part, table)
            if over > 0 and over > (arena := self._arenas[part]).tail:
                begin, arena.tail = arena.tail, host.round_up(over)
                self._show_tail(part, begin, arena.tail)
        return table[part] + address % ARENA_SIZE

    def mapped(self, address: int, limit: int) -> int:
        good = 0
        for mapping, _, _ in self._run(address, limit):
            if not mapping.writable:
                break
            good = min(mapping.end - address, limit)
        return good

    def _check_range(self, address: int, size: int, verb: str) -> None:
        if address % PAGE_SIZE or size % PAGE_SIZE or size <= 0:
            raise DriverError(f"{self.name}: cannot {verb} at {address:#x}, {size:#x} bytes: only whole pages of {PAGE_SIZE} bytes")
        if address < 0 or address + size > 1 << self.bits:
            raise DriverError(f"{self.name}: cannot {verb} at {address:#x}..{address + size:#x}: addresses have {self.bits} bits")

    def _place(self, mapping: BufferMapping, table: ArenaTable) -> None:
        self._reserve_parts(mapping.start, mapping.end, table)
        try:
            self._show(mapping, self._pieces(mapping.start, mapping.end))
        except SoftgenError:
            self._withdraw(mapping.start, mapping.end)
            raise

    def _reserve_parts(self, start: int, end: int, table: ArenaTable) -> None:
        """Reserve the arenas of a range of addresses."""
        for part in range(start // ARENA_SIZE, (end - 1) // ARENA_SIZE + 1):
            if part not in self._arenas:
                self._reserve(part, table)

    def _reserve(self, part: int, table: ArenaTable) -> None:
        new = Arena(self, part)
        table[part] = new.base  # first: who finds an arena counts on it, even if an interrupt came between
        self._arenas[part] = new
        self._show_tail(part, 0, new.tail)

    def _show_tail(self, part: int, begin: int, end: int) -> None:
        """Map bytes `begin` to `end` of the next part after the end of a part's arena."""
        border, base = (part + 1) * ARENA_SIZE, self._arenas[part].base
        for mapping in self._index[1]:
            first, last = max(mapping.start, border + begin), min(mapping.end, border + end)
            if first < last:
                self._show(mapping, iter([(base + ARENA_SIZE + first - border, first, last - first)]))

    def _show(self, mapping: BufferMapping, pieces: Iterator[tuple[int, int, int]]) -> None:
        for at, start, size in pieces:
            host.map_file(mapping.store.fd, mapping.offset + start - mapping.start, size, mapping.writable, at)

    def _withdraw(self, start: int, end: int) -> None:
        for at, _, size in self._pieces(start, end):
            host.unmap_to_reservation(at, size)

    def _pieces(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(host address, graphics address, size) of every host range that shows these addresses: arenas, and tails of preceding arenas."""
        for part in range(start // ARENA_SIZE, (end - 1) // ARENA_SIZE + 1):
            first, last = max(start, part * ARENA_SIZE), min(end, (part + 1) * ARENA_SIZE)
            if part in self._arenas:
                yield self._arenas[part].base + first % ARENA_SIZE, first, last - first
            before = self._arenas.get(part - 1)
            if before and first % ARENA_SIZE < before.tail:
                last = min(last, part * ARENA_SIZE + before.tail)
                yield before.base + ARENA_SIZE + first % ARENA_SIZE, first, last - first

    # Access

    def read(self, address: int, size: int) -> bytes:
        starts, mappings = self._index
        following = bisect_right(starts, address)
        if following and size > 0:
            start, end, _, _, _, view = mappings[following - 1]
            if address + size <= end:
                at = address - start
                return bytes(view[at : at + size])
        return b"".join(view[first:last] for view, first, last in self._parts(address, size, "read"))

    def view(self, address: int, size: int) -> memoryview | None:
        starts, mappings = self._index
        following = bisect_right(starts, address)
        if not following or size <= 0:
            return None
        start, end, _, _, _, view = mappings[following - 1]
        at = address - start
        return view[at : at + size] if address + size <= end else None

    def write(self, address: int, data: bytes) -> None:
        starts, mappings = self._index
        following = bisect_right(starts, address)
        if following:
            start, end, _, _, writable, view = mappings[following - 1]
            last = address + len(data)
            if writable and last <= end:
                view[address - start : last - start] = data
                return
        done = 0
        for view, first, last in self._parts(address, len(data), "write"):
            view[first:last] = data[done : done + last - first]
            done += last - first

    def extent(self, address: int, limit: int) -> int:
        starts, mappings = self._index
        at = bisect_right(starts, address) - 1
        if at >= 0 and limit > 0 and address + limit <= mappings[at].end:
            return limit
        good = 0
        for mapping, _, _ in self._run(address, limit):
            good = min(mapping.end - address, limit)
        return good

    def regions(self) -> Iterator[MappedRegion]:
        for mapping in self._index[1]:
            yield MappedRegion(mapping.start, mapping.end - mapping.start, mapping.store.name)

    def why(self, address: int, access: str) -> str:
        """The cause of a fault in compiled code."""
        for mapping, _, _ in self._run(address, 1):
            if access == "write" and not mapping.writable:
                return f"{mapping.store.name!r} is mapped read-only"
            return f"the memory of {mapping.store.name!r} was released"
        return self.outside(address)

    def _run(self, address: int, size: int) -> Iterator[tuple[BufferMapping, int, int]]:
        """The adjacent mappings from an address on, with the range of each that lies within `size` bytes."""
        starts, mappings = self._index
        end = address + size
        at = bisect_right(starts, address) - 1
        while 0 <= at < len(mappings) and address < end and mappings[at].start <= address < mappings[at].end:
            mapping = mappings[at]
            last = min(mapping.end, end)
            yield mapping, address - mapping.start, last - mapping.start
            address, at = last, at + 1

    def _parts(self, address: int, size: int, access: str) -> list[tuple[memoryview, int, int]]:
        if size < 0:
            raise ValueError(f"{self.name}: a {access} of {size} bytes")
        parts, bad = [], address
        for mapping, first, last in self._run(address, size):
            if access == "write" and not mapping.writable:
                break
            parts.append((mapping.view, first, last))
            bad = mapping.start + last
        if bad < address + size:
            raise GpuFault(bad, access, self.name, why=self.why(bad, access))
        return parts


def _release(arenas: dict[int, Arena]) -> None:
    while arenas:
        arenas.popitem()[1].release()

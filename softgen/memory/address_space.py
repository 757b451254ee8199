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
        self._changes = ctypes.c_uint64()  # where compiled code sees it
        # Mappings by their first address. All starts are held, also in the middle of a change: readers need no lock, no interrupt harms.
        self._starts: list[int] = []
        self._held: dict[int, BufferMapping] = {}
        self._arenas: dict[int, Arena] = {}
        self._table: ArenaTable | None = None
        self._changing = threading.Lock()
        weakref.finalize(self, _release, self._arenas).atexit = False

    @property
    def changes(self) -> int:  # type: ignore[override]
        """Counts mappings that were added or removed."""
        return self._changes.value

    @property
    def changes_address(self) -> int:
        """Host address of the count, for compiled code."""
        return ctypes.addressof(self._changes)

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
            at = bisect_right(self._starts, address)
            for other in self._among(address, mapping.end):
                if other.start < mapping.end and address < other.end:
                    raise DriverError(
                        f"{self.name}: cannot map {buffer.name!r} at {address:#x}..{mapping.end:#x}: "
                        f"{other.store.name!r} is at {other.start:#x}..{other.end:#x}"
                    )
            self._changes.value += 1
            if self._table is not None:
                self._place(mapping, self._table)
            self._held[address] = mapping
            self._starts.insert(at, address)

    def unmap(self, address: int, size: int) -> None:
        """Unmap pages; unmapped pages among them are allowed."""
        self._check_range(address, size, "unmap")
        end = address + size
        with self._changing:
            self._changes.value += 1
            changed, kept = self._among(address, end), list[BufferMapping]()
            for mapping in changed:
                if mapping.start < address:
                    kept.append(mapping.part(mapping.start, min(mapping.end, address)))
                if end < mapping.end:
                    kept.append(mapping.part(end, mapping.end))
            self._replace(changed, kept)  # before the host mapping goes, so that readers do not find it
            self._withdraw(address, end)

    def close(self) -> None:
        """Release every mapping and arena now instead of at garbage collection."""
        with self._changing:
            self._changes.value += 1
            self._starts, self._held = [], {}
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
        for start in self._starts:
            self._place(self._held[start], table)
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
        for mapping in self._among(border + begin, border + end):
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
        if size > 0 and (found := self._near(address)) is not None:
            start, end, _, _, _, view = found
            if start <= address and address + size <= end:
                at = address - start
                return bytes(view[at : at + size])
        return b"".join(view[first:last] for view, first, last in self._parts(address, size, "read"))

    def view(self, address: int, size: int) -> memoryview | None:
        if size <= 0:
            return None
        found = self._near(address)
        if found is None or not found.start <= address < found.end:
            found = next((mapping for mapping, _, _ in self._run(address, 1)), None)
        if found is None or address + size > found.end:
            return None
        at = address - found.start
        return found.view[at : at + size]

    def write(self, address: int, data: bytes) -> None:
        if (found := self._near(address)) is not None:
            start, end, _, _, writable, view = found
            last = address + len(data)
            if writable and start <= address and last <= end:
                view[address - start : last - start] = data
                return
        done = 0
        for view, first, last in self._parts(address, len(data), "write"):
            view[first:last] = data[done : done + last - first]
            done += last - first

    def extent(self, address: int, limit: int) -> int:
        found = self._near(address)
        if found is not None and limit > 0 and found.start <= address and address + limit <= found.end:
            return limit
        good = 0
        for mapping, _, _ in self._run(address, limit):
            good = min(mapping.end - address, limit)
        return good

    def regions(self) -> Iterator[MappedRegion]:
        with self._changing:
            mappings = [self._held[start] for start in self._starts]
        for mapping in mappings:
            yield MappedRegion(mapping.start, mapping.end - mapping.start, mapping.store.name)

    def why(self, address: int, access: str) -> str:
        """The cause of a fault in compiled code."""
        for mapping, _, _ in self._run(address, 1):
            if access == "write" and not mapping.writable:
                return f"{mapping.store.name!r} is mapped read-only"
            return f"the memory of {mapping.store.name!r} was released"
        return self.outside(address)

    def _near(self, address: int) -> BufferMapping | None:
        """The mapping that an address is in, if it is in any. Without the lock: while another thread changes something it may be another
        one or none, so that who does not find the address in it asks _run."""
        starts = self._starts
        try:
            return self._held[starts[bisect_right(starts, address) - 1]]
        except (IndexError, KeyError):
            return None

    def _among(self, start: int, end: int) -> list[BufferMapping]:
        """The mappings that a range of addresses may be in: all that start in it, and the last before; under the lock."""
        starts = self._starts
        return [self._held[each] for each in starts[max(bisect_right(starts, start) - 1, 0) : bisect_left(starts, end)]]

    def _replace(self, changed: list[BufferMapping], kept: list[BufferMapping]) -> None:
        """Put parts in the place of adjacent mappings; under the lock."""
        if not changed:
            return
        first, parts = bisect_left(self._starts, changed[0].start), {mapping.start: mapping for mapping in kept}
        self._held.update(parts)
        self._starts[first : first + len(changed)] = sorted(parts)
        for mapping in changed:
            if mapping.start not in parts:
                del self._held[mapping.start]

    def _run(self, address: int, size: int) -> list[tuple[BufferMapping, int, int]]:
        """The adjacent mappings from an address on, with the range of each that lies within `size` bytes."""
        end, found = address + size, list[tuple[BufferMapping, int, int]]()
        with self._changing:
            for mapping in self._among(address, end):
                if not mapping.start <= address < mapping.end:
                    break
                last = min(mapping.end, end)
                found.append((mapping, address - mapping.start, last - mapping.start))
                address = last
        return found

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

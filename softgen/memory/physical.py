"""PhysicalMemory: sparse memory behind page tables, which tracks the pages that were written.

It is one memfd of the size of the physical address space, in which only written pages take memory, so that any address of a trace can be
stored, and an address space for compiled code can map pages of it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator

from softgen.bits.units import PAGE_SIZE
from softgen.errors import DriverError, GpuFault, SoftgenError
from softgen.memory import host
from softgen.memory.space import LARGEST_ACCESS, MappedRegion, Space
from softgen.memory.store import view_of


class PhysicalMemory(Space):
    """Physical memory of 2^bits bytes. `unwritten`: reads of unwritten pages give "zero" or "fault"; at most `limit` bytes are stored."""

    def __init__(self, name: str = "physical memory", bits: int = 46, unwritten: str = "zero", limit: int = 1 << 34) -> None:
        if not 12 <= bits <= 46 or unwritten not in ("zero", "fault"):
            raise DriverError(f"{name}: physical memory has 12 to 46 bits and unwritten 'zero' or 'fault', not {bits} and {unwritten!r}")
        self.name, self.bits, self.limit, self.capacity = name, bits, limit, 1 << bits
        self.zero = unwritten == "zero"
        self.epoch = 0  # advances when a watched page is written
        self._written: set[int] = set()
        self._watched: set[int] = set()
        self.fd = host.with_descriptors(lambda: os.memfd_create(f"softgen {name}"[:200], os.MFD_CLOEXEC))
        weakref.finalize(self, os.close, self.fd).atexit = False
        try:
            os.ftruncate(self.fd, self.capacity)
        except OSError as error:
            raise SoftgenError(f"{name}: cannot make a sparse file of 2^{bits} bytes: {error.strerror}") from None

    def read(self, address: int, size: int) -> bytes:
        self._check(address, size, "read")
        if not self.zero and (good := self.extent(address, size)) < size:
            raise GpuFault(address + good, "read", self.name, why="never written")
        return os.pread(self.fd, size, address)

    def write(self, address: int, data: bytes) -> None:
        self._check(address, len(data), "write")
        self.mark(address, len(data))
        done = 0
        while done < len(data):
            done += os.pwrite(self.fd, data[done:], address + done)

    def mark(self, address: int, size: int) -> None:
        """Mark bytes as written."""
        pages = range(address // PAGE_SIZE, -(-(address + size) // PAGE_SIZE))
        if len(self._written) * PAGE_SIZE > self.limit - size and not self._written.issuperset(pages):
            raise SoftgenError(f"{self.name}: more than {self.limit:#x} bytes written (at {address:#x})")
        self._written.update(pages)
        if not self._watched.isdisjoint(pages):
            self._watched.clear()
            self.epoch += 1

    def extent(self, address: int, limit: int) -> int:
        if not 0 <= address < self.capacity:
            return 0
        end = min(address + max(limit, 0), self.capacity)
        if self.zero:
            return end - address
        at = address
        while at < end and at // PAGE_SIZE in self._written:
            at = (at // PAGE_SIZE + 1) * PAGE_SIZE
        return min(at, end) - address

    def regions(self) -> Iterator[MappedRegion]:
        """Contiguous ranges of written pages."""
        start = size = 0
        for page in sorted(self._written):
            if size and page * PAGE_SIZE == start + size:
                size += PAGE_SIZE
                continue
            if size:
                yield MappedRegion(start, size, self.name)
            start, size = page * PAGE_SIZE, PAGE_SIZE
        if size:
            yield MappedRegion(start, size, self.name)

    def written(self, address: int) -> bool:
        """Whether the page of an address was ever written."""
        return address // PAGE_SIZE in self._written

    @property
    def pages_written(self) -> int:
        return len(self._written)

    def watch(self, address: int) -> None:
        """Advance `epoch` at the next write to the page of an address: a reader has cached its contents."""
        self._watched.add(address // PAGE_SIZE)

    def window(self, offset: int, size: int) -> memoryview:
        return view_of(host.map_file(self.fd, offset, size, writable=True), size)

    def _check(self, address: int, size: int, access: str) -> None:
        if not 0 <= size <= LARGEST_ACCESS:
            raise SoftgenError(f"{self.name}: {access} at {address:#x}: {size:#x} bytes at once; the most is {LARGEST_ACCESS:#x}")
        if not 0 <= address <= self.capacity - size:
            first = address if address < 0 else max(address, self.capacity)
            raise GpuFault(first, access, self.name, why=f"beyond the {self.bits}-bit space")

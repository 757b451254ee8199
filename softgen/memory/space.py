"""Space: the interface of every address space."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from softgen.errors import Unsupported

LARGEST_ACCESS = 1 << 30  # bytes of a single read or write


ArenaTable = ctypes.Array[ctypes.c_uint64]  # host bases of an address space's 4 GiB parts


class MappedRegion(NamedTuple):
    """A contiguous range of mapped addresses."""

    start: int
    size: int
    label: str


class Space(ABC):
    """An address space. Addresses are unsigned and `bits` wide; an access to an unmapped address raises GpuFault naming the first."""

    name: str
    bits: int
    changes: int | None = None  # counts mappings that were added or removed; None: unknown

    @abstractmethod
    def read(self, address: int, size: int) -> bytes: ...

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Write bytes; a write that faults changes nothing."""

    @abstractmethod
    def extent(self, address: int, limit: int) -> int:
        """The number of contiguous readable bytes at an address, up to `limit`; 0 where the first is unmapped."""

    @abstractmethod
    def regions(self) -> Iterator[MappedRegion]:
        """The mapped ranges, in rising order."""

    def read_mapped(self, address: int, limit: int) -> bytes:
        """As many bytes at an address as are readable, up to `limit`."""
        size = self.extent(address, limit)
        return self.read(address, size) if size else b""

    def view(self, address: int, size: int) -> memoryview | None:
        """The memory itself, of bytes that are mapped as one piece; None where the space has no such view of them."""
        return None

    @property
    def table(self) -> ArenaTable:
        """For compiled code: the host base of each 4 GiB part of 2^48 bytes, valid until the space changes. Raises Unsupported where the
        space has no host addresses; then only the interpreter can run."""
        raise Unsupported(f"{self.name} has no host addresses: compiled code cannot reach it")

    def contiguous(self, address: int, size: int) -> int | None:
        """For compiled code: the host address at which these bytes are contiguous while `table` is valid; None where there is none."""
        return None

    def mapped(self, address: int, limit: int) -> int:
        """For compiled code: the number of contiguous bytes at an address, up to `limit`, that no access can miss, read or written, while
        `table` is valid; 0 where nothing is known of it."""
        return 0

    def read32(self, address: int) -> int:
        return int.from_bytes(self.read(address, 4), "little")

    def read64(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def write32(self, address: int, value: int) -> None:
        self.write(address, (value & 0xFFFFFFFF).to_bytes(4, "little"))

    def write64(self, address: int, value: int) -> None:
        self.write(address, (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"))

    def outside(self, address: int) -> str:
        """The cause of a fault at an unmapped address."""
        return "not mapped" if 0 <= address >> self.bits < 1 else f"beyond the {self.bits}-bit space"

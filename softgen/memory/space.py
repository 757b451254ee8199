"""What every address space offers: bytes at addresses, extents and regions."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from softgen.errors import Unsupported

LARGEST_ACCESS = 1 << 30  # one read or write of a space that has no end of its own


ArenaTable = ctypes.Array[ctypes.c_uint64]  # host bases of an address space's 4 GiB parts


class MappedRegion(NamedTuple):
    """A stretch of addresses without a hole."""

    start: int
    size: int
    label: str


class Space(ABC):
    """Addresses are unsigned and `bits` wide; an access to nothing is a GpuFault that names the first bad address."""

    name: str
    bits: int

    @abstractmethod
    def read(self, address: int, size: int) -> bytes: ...

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """All or nothing: a write that would fault changes no byte."""

    @abstractmethod
    def extent(self, address: int, limit: int) -> int:
        """How many of the next `limit` bytes are readable without a hole; 0 means the first is not."""

    @abstractmethod
    def regions(self) -> Iterator[MappedRegion]:
        """What is mapped, in rising order."""

    @property
    def table(self) -> ArenaTable:
        """For compiled code: host base of each 4 GiB part of 2^48 bytes, valid until the space changes. Unsupported, with the reason, where
        there is none; then only the reference can run."""
        raise Unsupported(f"{self.name} has no host addresses: compiled code cannot reach it")

    def in_one_piece(self, address: int, size: int) -> int | None:
        """For compiled code: the host address where all these bytes are seen side by side, as long as `table` is valid. None: nowhere."""
        return None

    def read32(self, address: int) -> int:
        return int.from_bytes(self.read(address, 4), "little")

    def read64(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def write32(self, address: int, value: int) -> None:
        self.write(address, (value & 0xFFFFFFFF).to_bytes(4, "little"))

    def write64(self, address: int, value: int) -> None:
        self.write(address, (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"))

    def outside(self, address: int) -> str:
        """Why an address no page can have is bad, or why one that could is."""
        return "not mapped" if 0 <= address >> self.bits < 1 else f"beyond the {self.bits}-bit space"

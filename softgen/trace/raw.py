"""Raw batches as traces: a file of commands for a GPU that the user names; no other memory is mapped."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from softgen.bits.generation import device
from softgen.errors import DecodeError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Events, Work

ADDRESS = 0x10000000
MAX_BYTES = 1 << 30


class FileSpace(AddressSpace):
    """Address space that ends with the file: the padding of its last page is not readable."""

    end = 0

    def extent(self, address: int, limit: int) -> int:
        return max(0, min(super().extent(address, limit), self.end - address))


class RawTrace(Events):
    """One batch at `address`, for one engine."""

    def __init__(self, path: str | os.PathLike[str], gpu: str, engine: str = "render", address: int = ADDRESS) -> None:
        super().__init__(str(path), device(gpu))
        self.path, self.engine, self.address = Path(path), engine, address
        self.buffer, self.size = self._load()

    def _load(self) -> tuple[MemfdBuffer, int]:
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                status = os.fstat(file.fileno())
                self._check(status)
                buffer = MemfdBuffer(status.st_size, self.path.name)
                done = file.readinto(buffer.view)
        except OSError as error:
            raise DecodeError(f"{self.path}: cannot be read: {error.strerror}") from None
        return buffer, done

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise DecodeError(f"{self.path}: is no file")
        if status.st_size == 0:
            raise DecodeError(f"{self.path}: is empty")
        if status.st_size % 4:
            raise DecodeError(f"{self.path}: a batch is whole dwords, not {status.st_size} bytes")
        end, bits = self.address + status.st_size, self.device.generation.address_bits
        if status.st_size > MAX_BYTES or end > 1 << bits:
            room = min(MAX_BYTES, (1 << bits) - self.address)
            raise DecodeError(f"{self.path}: a batch at {self.address:#x} must be at most {room:#x} bytes, not {status.st_size:#x}")

    def events(self) -> Iterator[Work]:
        space = FileSpace(self.path.name, self.device.generation.address_bits)
        space.map(self.address, self.buffer, writable=False)
        space.end = self.address + self.size
        yield Work(self.engine, space, self.address, "batch", 0, self.path.name, end=self.address + self.size)

"""Mesa's hang dumps (.dmp) as traces: buffers of a context and the address of the batch. They do not name the GPU.

Reads   HANG_DUMP_BLOCK HANG_DUMP_HEADER HANG_DUMP_BUFFER HANG_DUMP_BUFFER_2 HANG_DUMP_MAP HANG_DUMP_EXEC HANG_DUMP_HW_IMAGE
        HANG_DUMP_HW_IMAGE_2 HANG_DUMP_VM_FLAGS
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from softgen.bits import catalogue
from softgen.bits.generation import device
from softgen.bits.units import PAGE_SIZE
from softgen.errors import DecodeError, SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Events, Work

MAGIC = 0x4245012345676463
START = re.compile(rb"(?s)\x01\0\0\0.{4}" + re.escape(MAGIC.to_bytes(8, "little")))
VERSIONS = (1, 2)
MOST_BYTES = 4 << 30  # of a file
MOST_MAPPED = 1 << 36  # bytes that only read as zero: they cost addresses, not memory
MOST_BLOCKS = 4096
# type -> page, by version; None: the same in both
BLOCKS = {
    (1, None): "HANG_DUMP_HEADER", (2, 1): "HANG_DUMP_BUFFER", (2, 2): "HANG_DUMP_BUFFER_2", (3, None): "HANG_DUMP_MAP",
    (4, None): "HANG_DUMP_EXEC", (5, 1): "HANG_DUMP_HW_IMAGE", (5, 2): "HANG_DUMP_HW_IMAGE_2", (6, 2): "HANG_DUMP_VM_FLAGS",
}  # fmt: skip
FOLLOWED = ("HANG_DUMP_BUFFER", "HANG_DUMP_BUFFER_2", "HANG_DUMP_HW_IMAGE", "HANG_DUMP_HW_IMAGE_2")  # by as many bytes as they say


class HangDumpTrace(Events):
    """A hang dump: work for the render engine."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None) -> None:
        if gpu is None:
            raise DecodeError(f"{path}: is a hang dump, which does not say for which GPU it is; name one with --gpu")
        self.path = Path(path)
        super().__init__(str(path), device(gpu))

    def events(self) -> Iterator[Work]:
        space = AddressSpace(self.path.name, self.device.generation.address_bits)
        sequence = mapped = 0
        for offset, name, fields, data in self._blocks():
            if name == "HANG_DUMP_EXEC":
                yield Work("render", space, fields.address, "batch", sequence, f"batch {sequence} of the dump")
                sequence += 1
            elif name == "HANG_DUMP_MAP":
                mapped += fields.bytes
                if mapped > MOST_MAPPED:
                    raise self.wrong(offset, f"maps more than {MOST_MAPPED:#x} bytes that nobody saved")
                self._map(space, offset, fields, None)
            elif name.startswith("HANG_DUMP_BUFFER"):
                self._map(space, offset, fields, data)
            elif name.startswith("HANG_DUMP_HW_IMAGE"):
                self.note("the context image of the hardware is not restored: a batch that counts on earlier state lacks it")
        if not sequence:
            self.note("the dump names no batch to execute")

    def _blocks(self) -> Iterator[tuple[int, str, Any, MemfdBuffer | None]]:
        with self._open() as file:
            offset, version = 0, 1
            for number in range(MOST_BLOCKS + 1):
                start = file.read(8)
                if not start:
                    return
                if number == MOST_BLOCKS:
                    raise self.wrong(offset, f"is one block more than the {MOST_BLOCKS} a dump may have")
                name, fields, size = self._block(file, offset, start, version)
                if name == "HANG_DUMP_HEADER":
                    version = self._version(offset, fields)
                follow = fields.bytes if name in FOLLOWED else 0
                data = self._data(file, offset, name, follow) if follow else None
                yield offset, name, fields, data
                offset += size + follow

    def _block(self, file: BinaryIO, offset: int, start: bytes, version: int) -> tuple[str, Any, int]:
        if len(start) < 8:
            raise self.wrong(offset, "ends inside a block; the file may be cut off")
        number = int.from_bytes(start[:4], "little")
        name = BLOCKS.get((number, None)) or BLOCKS.get((number, version))
        if name is None:
            raise self.wrong(offset, f"has type {number}, which version {version} of the format does not have")
        layout = catalogue.layout(name, self.device.generation.number)
        data = start + file.read(4 * layout.dwords - 8)
        if len(data) < 4 * layout.dwords:
            raise self.wrong(offset, "ends inside a block; the file may be cut off")
        return name, layout.unpack(memoryview(data).cast("I")), len(data)

    def _version(self, offset: int, fields: Any) -> int:
        if fields.magic != MAGIC or fields.version not in VERSIONS:
            known = " or ".join(map(str, VERSIONS))
            raise self.wrong(offset, f"is no header of version {known}: {fields.magic:#x}, version {fields.version}")
        return int(fields.version)

    def _data(self, file: BinaryIO, offset: int, name: str, size: int) -> MemfdBuffer | None:
        left = os.fstat(file.fileno()).st_size - file.tell()
        if size > left:
            raise self.wrong(offset, f"says {size:#x} bytes follow; the file has {max(0, left):#x} more")
        if name.startswith("HANG_DUMP_HW_IMAGE"):
            file.seek(size, os.SEEK_CUR)
            return None
        buffer = self._buffer(offset, size)
        file.readinto(buffer.view)  # type: ignore[attr-defined]
        return buffer

    def _buffer(self, offset: int, size: int) -> MemfdBuffer:
        try:
            return MemfdBuffer(size, f"block at {offset:#x}")
        except (SoftgenError, OSError, MemoryError) as error:
            raise self.wrong(offset, f"no memory for {size:#x} bytes: {error}") from None

    def _map(self, space: AddressSpace, offset: int, fields: Any, data: MemfdBuffer | None) -> None:
        address, size = fields.address & (1 << space.bits) - 1, fields.bytes  # addresses may be written with their sign above
        if not size:
            return
        if address % PAGE_SIZE or address + size > 1 << space.bits:
            raise self.wrong(offset, f"{size:#x} bytes at {address:#x} are no pages of a {space.bits}-bit space")
        try:
            space.map(address, data or self._buffer(offset, size))
        except SoftgenError as error:
            raise self.wrong(offset, str(error)) from None

    def _open(self) -> BinaryIO:
        try:
            file = os.fdopen(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
        except OSError as error:
            raise DecodeError(f"{self.path}: cannot be read: {error.strerror}") from None
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            file.close()
            raise DecodeError(f"{self.path}: is no file of at most {MOST_BYTES:#x} bytes")
        return file

    def wrong(self, offset: int, why: str) -> DecodeError:
        return DecodeError(f"{self.path} at {offset:#x}: {why}")

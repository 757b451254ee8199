"""Iterator over the records of an AUB file of any size.

A record is dword 0 (type, opcode, subopcode, length) and what its page says; data follows, inside the length or, for a classic block,
behind it. Only a window of the file is in memory at a time.
"""

from __future__ import annotations

import os
import stat
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from softgen.bits import catalogue
from softgen.bits.layout import GENERATIONS, Layout
from softgen.errors import DecodeError
from softgen.trace import tables

WINDOW = 1 << 20
RECORD_TYPE = 7


@cache
def page(name: str) -> Layout:
    """A record's page: the same on every generation."""
    return catalogue.layout(name, GENERATIONS[-1])


@dataclass(frozen=True)
class AubRecord:
    """A record; `name` is "" when no page describes it."""

    name: str
    offset: int
    fields: Any
    data: FileData
    opcode: int
    subopcode: int


@dataclass(frozen=True)
class FileData:
    """Bytes of a file, read on demand."""

    file: AubFile
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        size = self.size - start if size is None else min(size, self.size - start)
        return self.file.read(self.offset + start, max(size, 0))

    def part(self, start: int, size: int) -> FileData:
        return FileData(self.file, self.offset + start, size)

    def text(self) -> str:
        """Text up to its first zero byte."""
        return self.read(0, 4096).split(b"\0", 1)[0].decode("utf-8", "replace")


class AubFile:
    """A file of records."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = os.fdopen(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
        except OSError as error:
            raise DecodeError(f"{self.path}: cannot be read: {error.strerror}") from None
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise DecodeError(f"{self.path}: is no file")
        self.size = status.st_size
        self._start, self._window = 0, b""

    def wrong(self, offset: int, why: str) -> DecodeError:
        return DecodeError(f"{self.path} at {offset:#x}: {why}")

    def read(self, offset: int, size: int) -> bytes:
        start = offset - self._start
        if 0 <= start and start + size <= len(self._window):
            return self._window[start : start + size]
        try:
            data = os.pread(self._file.fileno(), max(size, WINDOW), offset)
        except OSError as error:
            raise self.wrong(offset, f"cannot be read: {error.strerror}") from None
        if len(data) < size:
            raise self.wrong(offset, f"the file ends after {len(data):#x} of {size:#x} bytes")
        self._start, self._window = offset, data
        return data[:size]

    def dwords(self, offset: int, count: int) -> array[int]:
        return array("I", self.read(offset, 4 * count))

    def records(self) -> Iterator[AubRecord]:
        """Every record; a DecodeError at the first malformed one."""
        offset = 0
        while offset < self.size:
            if self.size - offset < 4:
                raise self.wrong(offset, f"{self.size - offset} bytes are left, too few for a record")
            record, offset = self._record(offset)
            yield record

    def _record(self, offset: int) -> tuple[AubRecord, int]:
        """The record at an offset, and the offset of the next."""
        dword = self.dwords(offset, 1)
        head = page("AUB_RECORD").unpack(dword)
        bias = tables.biases().get(head.opcode)
        if head.type != RECORD_TYPE or bias is None:
            raise self.wrong(offset, f"no AUB record starts with {dword[0]:#010x}")
        dwords = head.length + bias
        self._need(offset, dwords * 4, tables.records().get((head.opcode, head.subopcode), "record"))
        name = tables.records().get((head.opcode, head.subopcode), "")
        if name == "AUB_BLOCK" and dwords >= page("AUB_BLOCK_64").dwords:
            name = "AUB_BLOCK_64"
        if not name:
            data = FileData(self, offset + 4, 4 * dwords - 4)
            return AubRecord(name, offset, None, data, head.opcode, head.subopcode), offset + 4 * dwords
        layout = page(name)
        if dwords < layout.dwords:
            raise self.wrong(offset, f"{name} must have at least {layout.dwords} dwords, not {dwords}")
        fields = layout.unpack(self.dwords(offset, layout.dwords))
        end = offset + 4 * dwords
        if name.startswith("AUB_BLOCK"):
            data, end = FileData(self, end, fields.bytes), end + (fields.bytes + 3) // 4 * 4
            self._need(offset, end - offset, name)
        else:
            data = FileData(self, offset + 4 * layout.dwords, 4 * (dwords - layout.dwords))
        return AubRecord(name, offset, fields, data, head.opcode, head.subopcode), end

    def _need(self, offset: int, size: int, name: str) -> None:
        if offset + size > self.size:
            raise self.wrong(offset, f"{name} of {size:#x} bytes, but the file ends {self.size - offset:#x} bytes on")


def looks_like_aub(start: bytes) -> bool:
    """Whether a file with these first bytes begins with a known record."""
    if len(start) < 4:
        return False
    head = page("AUB_RECORD").unpack(struct.unpack_from("<I", start))
    return head.type == RECORD_TYPE and (head.opcode, head.subopcode) in tables.records()


# -- the way back ------------------------------------------------------------------------------------------------


def encode(name: str, data: bytes = b"", **fields: Any) -> bytes:
    """A record as bytes; data is padded to a dword."""
    layout = page(name)
    data += bytes(-len(data) % 4)
    opcode, subopcode = next(key for key, known in tables.records().items() if known == name or f"{known}_64" == name)
    inside = 0 if name.startswith("AUB_BLOCK") else len(data) // 4
    length = layout.dwords + inside - tables.biases()[opcode]
    record = page("AUB_RECORD").pack(type=RECORD_TYPE, opcode=opcode, subopcode=subopcode, length=length)[0]
    return struct.pack(f"<{layout.dwords}I", *layout.pack(record=record, **fields)) + data

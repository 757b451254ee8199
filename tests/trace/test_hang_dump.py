"""Hang dumps written here, from the published structures, and read."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DecodeError, SoftgenError
from softgen.trace import hang_dump
from softgen.trace.file import open_trace

MAGIC = 0x4245012345676463
BATCH = struct.pack("<2I", 0x05000000, 0)
PAGE = 4096


def header(version: int = 1) -> bytes:
    return struct.pack("<IIQII", 1, 0, MAGIC, version, 0)


def buffer(address: int, data: bytes, version: int = 1, size: int | None = None) -> bytes:
    properties = struct.pack("<5I", 2, 1, 1, 0, 1) if version == 2 else b""
    name = b"a buffer".ljust(64, b"\0") + (bytes(4) if version == 2 else b"")  # aligned to eight bytes
    return struct.pack("<II", 2, 0) + properties + name + struct.pack("<QQ", address, len(data) if size is None else size) + data


def mapped(address: int, size: int) -> bytes:
    return struct.pack("<II64sQQ", 3, 0, b"a map", address, size)


def execute(address: int) -> bytes:
    return struct.pack("<IIQ", 4, 0, address)


def image(data: bytes, version: int = 1) -> bytes:
    return struct.pack("<IIQ", 5, 0, len(data)) + (struct.pack("<Q", 0) if version == 2 else b"") + data


FLAGS = struct.pack("<III", 6, 0, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hang.dmp"


@pytest.mark.parametrize("version", [1, 2])
def test_buffers_maps_and_batches(file: Path, version: int) -> None:
    parts = [header(version), buffer(0x10000, BATCH.ljust(PAGE, b"\1"), version), image(b"context" * 100, version), mapped(0x20000, 0x2000)]
    parts += [FLAGS] if version == 2 else []
    parts += [execute(0x10000), buffer(0xFFFF8000_00000000, b"\2" * 100, version), execute(0x8000_00000000)]
    file.write_bytes(b"".join(parts))
    trace = open_trace(file, "kbl")
    first, second = trace.work()
    assert (first.engine, first.kind, first.batch, first.sequence, second.batch) == ("render", "batch", 0x10000, 0, 0x8000_00000000)
    assert first.space.read(0x10000, 12) == BATCH + b"\1" * 4 and first.space.read(0x21FF0, 16) == bytes(16)
    assert second.space.read(second.batch, 101) == b"\2" * 100 + b"\0"
    assert any("context image of the hardware is not restored" in note for note in trace.notes)


def test_batches_of_a_dump_are_counted_from_zero(file: Path) -> None:
    file.write_bytes(header() + buffer(0x10000, BATCH) + b"".join(execute(0x10000) for _ in range(3)))
    trace = open_trace(file, "kbl")
    assert [(work.sequence, work.label) for work in trace.work()] == [(n, f"batch {n} of the dump") for n in range(3)]
    assert trace.notes == []


def test_a_large_buffer_is_whole(file: Path) -> None:
    content = os.urandom((3 << 20) + 100)
    file.write_bytes(header() + buffer(0x100000, content) + buffer(0x10000, BATCH) + execute(0x10000))
    (work,) = open_trace(file, "kbl").work()
    assert work.space.read(0x100000, len(content) + 8) == content + bytes(8) and work.space.read(0x10000, 8) == BATCH


WRONG = {
    "version": (header(3), "at 0x0: is no header of version 1 or 2: 0x4245012345676463, version 3"),
    "cut": (header() + buffer(0x1000, BATCH)[:40], "at 0x18: ends inside a block; the file may be cut off"),
    "cut data": (header() + buffer(0x1000, BATCH, size=PAGE), "at 0x18: says 0x1000 bytes follow; the file has 0x8 more"),
    "type": (header() + struct.pack("<II", 9, 0), "at 0x18: has type 9, which version 1 of the format does not have"),
    "newer type": (header() + FLAGS, "at 0x18: has type 6, which version 1"),
    "address": (header() + buffer(0x1004, BATCH), "at 0x18: 0x8 bytes at 0x1004 are no pages of a 48-bit space"),
    "twice": (header() + buffer(0x1000, BATCH) * 2, "at 0x78: .*cannot map"),
    "huge map": (header() + mapped(0x1000, 1 << 40), "maps more than 0x1000000000 bytes that nobody saved"),
    "huge buffer": (header() + buffer(0x1000, BATCH, size=1 << 60), "says 0x1000000000000000 bytes follow"),
    "odd end": (header() + b"\4\0", "ends inside a block"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "why"), WRONG.values(), ids=WRONG)
def test_damage_is_told_with_its_place(file: Path, content: bytes, why: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DecodeError, match=why) as error:
        list(open_trace(file, "kbl").events())
    assert str(file) in str(error.value)


def test_what_is_no_file_or_too_large_is_refused(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(DecodeError, match="is no file of at most 0x100000000 bytes"):
        list(hang_dump.HangDumpTrace(file, "kbl").events())
    file.unlink()
    file.write_bytes(header())
    os.truncate(file, (4 << 30) + 1)  # sparse: it takes no room
    with pytest.raises(DecodeError, match="is no file of at most 0x100000000 bytes"):
        list(hang_dump.HangDumpTrace(file, "kbl").events())


def test_a_dump_without_a_batch_says_so(file: Path) -> None:
    file.write_bytes(header())
    trace = open_trace(file, "icl")
    assert list(trace.work()) == [] and trace.notes == ["the dump names no batch to execute"]


def test_too_many_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_dump, "MOST_BLOCKS", 3)
    file.write_bytes(header() + execute(0) * 4)
    with pytest.raises(DecodeError, match="one block more than the 3 a dump may have"):
        list(open_trace(file, "icl").events())


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_behind_the_header(tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.dmp"
    path.write_bytes(header(2) + (buffer(0x1000, BATCH, 2) + content)[cut // 2 :])
    try:
        list(open_trace(path, "kbl").events())
    except SoftgenError as error:
        assert str(path) in str(error)

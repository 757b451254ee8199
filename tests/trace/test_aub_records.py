"""Records of AUB files: where each begins and ends, and how much of a file is in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from softgen.errors import DecodeError
from softgen.trace.aub_records import AubFile, FileData, encode, looks_like_aub
from tests.conftest import SHARED, needs_shared
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import dwords

FILES = sorted((SHARED / "aub").glob("*.aub"))
MIB = 1 << 20


def file_of(tmp_path: Path, content: bytes) -> AubFile:
    (tmp_path / "t.aub").write_bytes(content)
    return AubFile(tmp_path / "t.aub")


@needs_shared("aub")
def test_only_a_window_of_a_file_is_in_memory() -> None:
    file = AubFile(FILES[0])
    assert sum(1 for _ in file.records()) == 464
    assert len(file._window) <= MIB


def test_a_window_of_a_mebibyte_moves_along_the_file(tmp_path: Path) -> None:
    """Each part is read once; what is larger than a window, whole."""
    comment = a.trace(0x08, 0, data=bytes(range(256)) * 512)  # eight of them reach a little beyond the first window
    file = file_of(tmp_path, comment * 24)
    windows = [(file._start, len(file._window)) for _ in file.records()]
    assert windows == [(number // 8 * 8 * len(comment), MIB) for number in range(24)]
    assert file.read(5, 2 * MIB) == (comment * 24)[5 : 5 + 2 * MIB] and file.read(2 * MIB, 9) == (comment * 24)[2 * MIB : 2 * MIB + 9]


def test_what_is_in_the_window_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read, asked = file_of(tmp_path, bytes(2 * MIB)), os.pread, list[int]()
    monkeypatch.setattr(os, "pread", lambda number, size, offset: (asked.append(offset), read(number, size, offset))[1])
    for offset, size in ((8, 4), (8, 4), (8, MIB), (7 + MIB, 1), (8, 0), (7, 4), (8, MIB - 1), (8, MIB)):
        assert file.read(offset, size) == bytes(size)
    assert asked == [8, 7, 8]


def test_what_is_read_may_lie_before_inside_and_across_the_end_of_the_window(tmp_path: Path) -> None:
    content = bytes(range(256)) * (6 << 10)
    file = file_of(tmp_path, content)
    for offset, size in ((MIB // 2, 4), (MIB // 2 + 8, 8), (0, 4), (MIB - 2, 4), (MIB - 3, 2), (len(content) - 4, 4), (7, 0)):
        assert file.read(offset, size) == content[offset : offset + size], (offset, size)
    with pytest.raises(DecodeError, match=r"t\.aub at 0x17fffe: the file ends after 0x2 of 0x4 bytes"):
        file.read(len(content) - 2, 4)


def test_data_of_a_record_is_read_in_parts(tmp_path: Path) -> None:
    data = FileData(file_of(tmp_path, b"..abcdef.."), 2, 6)
    assert len(data) == 6 and data.read() == b"abcdef"
    assert (data.read(2), data.read(2, 3), data.read(4, 100), data.read(6, 1), data.read(9)) == (b"cdef", b"cde", b"ef", b"", b"")
    part = data.part(1, 3)
    assert (len(part), part.read(), part.read(1)) == (3, b"bcd", b"cd")


@pytest.mark.parametrize("content, text", [(b"abc\0def\0", "abc"), (b"abcd", "abcd"), (b"\0", ""), (b"a\xffb\0", "a\ufffdb"),
                                           (b"x" * 5000, "x" * 4096)])  # fmt: skip
def test_text_ends_with_its_first_zero_byte(tmp_path: Path, content: bytes, text: str) -> None:
    assert FileData(file_of(tmp_path, content), 0, len(content)).text() == text


def test_each_record_has_its_data_and_the_next_follows_it(tmp_path: Path) -> None:
    """A classic block's data stands behind its length, padded to dwords; a record that no page describes is all data."""
    parts = [a.trace(0x55, 1, 2, data=b"unknown!"), a.block(a.DATA, 0x1000, b"abcde"), a.block(a.DATA, 0x1000, b"wide", wide=True),
             a.block(a.COMMENT, 0, b""), a.memory_write(0x50000, b"xyz"), a.version("skl", b"text\0"), a.trace(0x56)]  # fmt: skip
    records = list(file_of(tmp_path, b"".join(parts)).records())
    assert [record.offset for record in records] == [sum(map(len, parts[:number])) for number in range(len(parts))]
    assert [(record.name, record.data.read()) for record in records] == [
        ("", dwords(1, 2) + b"unknown!"), ("AUB_BLOCK", b"abcde"), ("AUB_BLOCK_64", b"wide"), ("AUB_BLOCK", b""),
        ("AUB_MEMORY_WRITE", b"xyz\0"), ("AUB_VERSION", b"text\0\0\0\0"), ("", b""),
    ]  # fmt: skip
    assert [(record.opcode, record.subopcode) for record in records[:2]] == [(0x2E, 0x55), (0x01, 0x41)]
    assert [record.fields.address for record in records[1:3]] == [0x1000, 0x1000] and records[0].fields is None


def test_a_file_is_known_by_its_first_record() -> None:
    assert looks_like_aub(a.version()[:4]) and looks_like_aub(a.header()) and looks_like_aub(a.memory_write(0, b"x"))
    assert not any(map(looks_like_aub, (b"", a.version()[:3], a.trace(0x55), dwords(6 << 29 | 0x2E << 23 | 0x0E << 16))))


def test_our_pages_agree_with_the_bytes() -> None:
    """encode() against records written by hand."""
    assert encode("AUB_REGISTER_WRITE", offset=0x2230, size=2, mask=0xFFFFFFFF, value=7) == a.register_write(0x2230, 7)
    assert encode("AUB_MEMORY_WRITE", b"abc", address=1 << 40, space=2, bytes=3) == a.memory_write(1 << 40, b"abc")
    assert encode("AUB_MEMORY_COMPARE", b"abcd", address=5, space=5, not_equal=1, bytes=4) == a.memory_compare(5, b"abcd", 5, 0x80)
    assert encode("AUB_BLOCK", b"abcd", operation=1, type=2, space=4, address=9, bytes=4) == a.block(1, 9, b"abcd", 2, 4)
    assert encode("AUB_BLOCK_64", b"abcd", operation=1, address=1 << 32, bytes=4) == a.block(1, 1 << 32, b"abcd", wide=True)
    assert encode("AUB_PREDICATE", state=1, target=4) == a.predicate(1, 4)

"""Command dwords that are read ahead: what of them is mapped, and where compiled code finds them."""

from __future__ import annotations

import ctypes
import struct

import pytest

from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.window import PIECE, Window

START, BYTES = 0x10000, 3 * PIECE
END = START + BYTES
FIRST = 0x100  # the value of the first dword; each is one more than the one before


@pytest.fixture
def window() -> Window:
    space, buffer = AddressSpace("window", 48), MemfdBuffer(BYTES, "dwords")
    buffer.view[:] = struct.pack(f"<{BYTES // 4}I", *range(FIRST, FIRST + BYTES // 4))
    space.map(START, buffer)
    return Window(space)


def value(address: int) -> int:
    return FIRST + (address - START) // 4


@pytest.mark.parametrize("address, count, mapped", [
    (START, 1, 1), (START + 4, 3, 3), (START, PIECE // 4, PIECE // 4), (START + 8, PIECE // 4 + 1, PIECE // 4 + 1),
    (END - 4, 1, 1), (END - 4, 2, 1), (END - 12, 8, 3), (END, 1, 0), (START - 4, 2, 0),
])  # fmt: skip
def test_as_many_dwords_as_are_mapped(window: Window, address: int, count: int, mapped: int) -> None:
    expected = [value(address) + number for number in range(mapped)]
    assert window.dwords(address, count) == expected
    window.dwords(START, 1)  # the same from what was read ahead, or partly from it
    assert window.dwords(address, count) == expected
    assert window.first(address) == (expected[0] if expected else None)


def test_what_was_read_ahead_stays_until_it_is_forgotten(window: Window) -> None:
    """A piece from the address on that was asked for, however few dwords of it."""
    assert window.ahead(START) is None and window.first(START + 4) == FIRST + 1
    edge = START + 4 + PIECE
    assert [window.ahead(address) for address in (START, START + 4, edge - 4, edge)] == [None, FIRST + 1, value(edge - 4), None]
    window.space.write32(START + 8, 7)
    assert window.dwords(START + 4, 2) == [FIRST + 1, FIRST + 2] and window.first(edge - 4) == value(edge - 4)
    assert window.ahead(START + 4) is not None  # the last dword of a piece is no reason to read another
    window.forget()
    assert window.ahead(START + 8) is None and window.first(START + 8) == 7


@pytest.mark.parametrize("start, address, count", [
    (START, START, PIECE // 4), (START, START + 12, PIECE // 4 - 3), (START + 8, START + 8 + PIECE - 4, 1), (END - 20, END - 20, 5),
])  # fmt: skip
def test_compiled_code_reads_the_dwords_where_they_stand(window: Window, start: int, address: int, count: int) -> None:
    window.first(start)
    host, readable = window.host(address)
    assert readable == count
    assert list((ctypes.c_uint32 * count).from_address(host)) == [value(address) + number for number in range(count)]


@pytest.mark.parametrize("left", range(1, 13))
def test_bytes_at_the_end_that_are_no_dword_are_left_out(window: Window, left: int) -> None:
    """A dump may name any address as its batch."""
    data = window.space.read(END - left, left)
    assert window.dwords(END - left, 4) == list(struct.unpack_from(f"<{left // 4}I", data))
    assert window.first(END - left) == (struct.unpack_from("<I", data)[0] if left >= 4 else None)
    assert window.end == END - left % 4

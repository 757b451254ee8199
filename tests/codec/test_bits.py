"""Bits and codes of streams: exp-Golomb numbers, emulation bytes, tables of variable-length codes."""

from __future__ import annotations

import ctypes
from itertools import product

import pytest

from softgen.codec.library import library


class Bits(ctypes.Structure):
    """struct bits of reader.h."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint64), ("at", ctypes.c_uint64)]


class Code(ctypes.Structure):
    """struct vlc_code of vlc.h."""

    _fields_ = [("code", ctypes.c_uint32), ("length", ctypes.c_int16), ("value", ctypes.c_int16)]


def stripped(data: bytes) -> bytes:
    target = ctypes.create_string_buffer(len(data) + 1)
    size = library().remove_emulation(target, data, ctypes.c_uint64(len(data)))
    return target.raw[:size]


@pytest.mark.parametrize(("data", "payload"), [
    (b"", b""), (b"\1\0\0\3\1", b"\1\0\0\1"), (b"\0\0\3\0\0\3\0", b"\0\0\0\0\0"), (b"\0\0\0\3\4", b"\0\0\0\4"), (b"\0\3\0\3", b"\0\3\0\3"),
    (b"\0\0\3", b"\0\0"), (b"\0\0\3\3", b"\0\0\3"),
])  # fmt: skip
def test_the_third_byte_of_an_emulation_prefix_goes(data: bytes, payload: bytes) -> None:
    assert stripped(data) == payload


def emulated(payload: bytes) -> bytes:
    """What a coder makes of a payload (H.264 7.4.1.1)."""
    out, zeros = bytearray(), 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(out)


def test_all_short_payloads_come_back() -> None:
    for payload in product((0, 1, 3, 4), repeat=6):
        assert stripped(emulated(bytes(payload))) == bytes(payload)


def table(codes: list[tuple[str, int]], first: int, room: int = 4096) -> tuple[ctypes.Array[ctypes.c_int16], int]:
    entries = (ctypes.c_int16 * (2 * room))()
    made = (Code * len(codes))(*(Code(int(text, 2), len(text), value) for text, value in codes))
    return entries, library().vlc_build(entries, room, first, made, len(codes))


def read(entries: object, first: int, text: str, data_bits: str = "") -> tuple[int, int]:
    """The value of the code a text of bits begins with, and the bits it took."""
    padded = text.ljust(-(-len(text) // 8) * 8, "0")
    data = int(padded, 2).to_bytes(len(padded) // 8, "big") + bytes(16)
    bits = Bits(data, len(padded) // 8, 0)
    return library().vlc_next(ctypes.byref(bits), entries, first), bits.at


@pytest.mark.parametrize("first", [1, 2, 3, 5, 9])
def test_codes_longer_and_shorter_than_the_first_table(first: int) -> None:
    codes = [("1", 7), ("01", -3), ("0011", 40), ("0010", 41), ("00011", 5), ("000101", 6), ("0001001", 8)]
    entries, used = table(codes, first)
    assert 1 << first <= used <= 4096
    for text, value in codes:
        assert read(entries, first, text + "1011") == (value, len(text))
    assert read(entries, first, "0000000000") == (-32768, 0)
    assert read(entries, first, "0001000111") == (-32768, 0)


def test_a_table_without_room_is_refused() -> None:
    assert table([("0" * 12 + "1", 1)], 9, 512)[1] == -1
    assert table([("0" * 12 + "1", 1)], 9, 528)[1] == 528

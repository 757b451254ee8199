"""Memory inside an error state: base 85, deflated data and listed dwords, whole, damaged and cut off."""

from __future__ import annotations

import os
import tracemalloc
import zlib
from pathlib import Path

import pytest

from softgen.errors import DecodeError
from softgen.trace import error_data
from softgen.trace.error_data import PIECE, ZEROS, Listed, Room, unfold
from softgen.trace.error_text import Block
from tests.trace import error_bytes as e

PAGE = 4096


def unfolded(packed: bytes, marker: str = ":", room: int = 1 << 30) -> list[bytes]:
    return unfold((marker + e.base85(packed.ljust(-(-len(packed) // 4) * 4, b"\0"))).encode(), Room(room), DecodeError)


def base85(text: bytes, complain: type[DecodeError]) -> bytes:
    return b"".join(error_data.base85(text, complain))


def test_base_85_has_five_characters_for_a_dword() -> None:
    """The most significant first, counted from '!'; z alone is zero."""
    assert base85(b'!!!!"', DecodeError) == (1).to_bytes(4, "little")
    assert base85(b'"!!!!', DecodeError) == (85**4).to_bytes(4, "little")
    assert base85(b"!#$%&z", DecodeError) == (2 * 85**3 + 3 * 85**2 + 4 * 85 + 5).to_bytes(4, "little") + bytes(4)
    assert base85(b"s8W-!", DecodeError) == b"\xff" * 4
    assert base85(b"", DecodeError) == b""


@pytest.mark.parametrize("text, why", [
    (b's8W-"', "dword 0 does not fit 32 bits"), (b"zs8W-!uuuuu", "dword 2 does not fit 32 bits"),
    (b"!!!!!!!", "its last dword has 2 of 5 characters; the file may be cut off"),
    (b"!!!!!v!!!!", "b'v' at column 7 is no character of base 85"), (b" !!!!", "b' ' at column 2 is no character of base 85"),
    (b"z!!!!!!z!!!", "a z at column 9 stands inside a dword"), (b"zz!z", "a z at column 5 stands inside a dword"),
])  # fmt: skip
def test_what_is_no_base_85_is_told_with_its_column(text: bytes, why: str) -> None:
    """Columns of the line, which begins with a marker."""
    with pytest.raises(DecodeError) as error:
        base85(text, DecodeError)
    assert str(error.value) == why


@pytest.mark.parametrize("piece", [40, 44, 52, 1000])
def test_base_85_is_decoded_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they end, also inside a dword; columns and dwords are those of the whole line."""
    monkeypatch.setattr(error_data, "PIECE", piece)
    data = b"".join(os.urandom(4) if number % 3 else bytes(4) for number in range(400))
    text = e.base85(data).encode()
    pieces = list(error_data.base85(text, DecodeError))
    assert b"".join(pieces) == data and max(map(len, pieces)) <= piece
    for wrong, why in ((b"v!!!!", rf"b'v' at column {len(text) + 2} "), (b"!!z!!!", f"a z at column {len(text) + 4} "),
                       (b'zs8W-"', "dword 401 does not fit"), (b"!!!", "its last dword has 3 of 5")):  # fmt: skip
        with pytest.raises(DecodeError, match=why):
            base85(text + wrong, DecodeError)


def test_plain_memory_is_counted_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_data, "base85", lambda text, complain: pytest.fail("it is decoded"))
    with pytest.raises(DecodeError, match="the memory in this file unfolds to more than 0x1f bytes"):
        unfold(b"~zzz!!!!!z!!!!!!!!!!z", Room(31), DecodeError)


def test_zeros_take_no_memory() -> None:
    """20 MiB of z took 1.4 GiB, and 20 seconds."""
    pieces = unfold(b"~" + b"z" * (5 * PIECE), Room(1 << 30), DecodeError)
    assert len(pieces) == 20 and all(piece is ZEROS for piece in pieces)


def test_decoding_takes_little_more_than_what_is_decoded() -> None:
    text = b"~" + b"s8W-!" * (8 * PIECE // 5)
    tracemalloc.start()
    try:
        pieces = unfold(text, Room(1 << 30), DecodeError)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert set(b"".join(pieces)) == {255} and most < 5 * 8 * PIECE, most


@pytest.mark.parametrize("piece", [1000, 4004, PIECE])
def test_a_stream_is_inflated_from_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_data, "PIECE", piece)
    data = os.urandom(5 * PAGE) + bytes(20 * PAGE)
    packed = zlib.compress(data)
    assert b"".join(unfolded(packed)) == data
    with pytest.raises(DecodeError, match=r"(399|40)\d\d? bytes follow the end of its deflated data"):
        unfolded(packed + bytes(4000))


def test_memory_is_deflated_or_plain_or_missing() -> None:
    data = os.urandom(2 * PAGE)
    assert b"".join(unfolded(e.deflate(data))) == b"".join(unfolded(zlib.compress(data))) == data
    assert unfolded(data, "~") == [data]
    assert unfolded(b"", ":") == unfolded(b"", "~") == []


def test_large_memory_comes_in_pieces_and_zeros_are_shared() -> None:
    data = bytes(PIECE) + b"x" * PAGE + bytes(2 * PIECE)
    pieces = unfolded(zlib.compress(data))
    assert b"".join(pieces) == data and [len(piece) for piece in pieces] == [PIECE, PIECE, PIECE, PAGE]
    assert [piece is ZEROS for piece in pieces] == [True, False, True, False]


@pytest.mark.parametrize("marker", [":", "~"])
def test_memory_takes_room(marker: str) -> None:
    packed = e.deflate(b"x" * 2 * PAGE) if marker == ":" else b"x" * 2 * PAGE
    room = Room(3 * PAGE)
    unfold((marker + e.base85(packed.ljust(-(-len(packed) // 4) * 4, b"\0"))).encode(), room, DecodeError)
    assert (room.left, room.most) == (PAGE, 3 * PAGE)
    assert sum(map(len, unfolded(packed, marker, 2 * PAGE))) == 2 * PAGE
    with pytest.raises(DecodeError, match="the memory in this file unfolds to more than 0x1fff bytes"):
        unfolded(packed, marker, 2 * PAGE - 1)


@pytest.mark.parametrize("pages, cut, why", [(3, 0, ""), (3, 100, "its deflated data ends after 0x2800 bytes, inside a page"),
                                             (0, 100, "its deflated data ends after 0x800 bytes, inside a page")])  # fmt: skip
def test_a_stream_without_its_end_holds_whole_pages(pages: int, cut: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older kernels may leave out its end, but never a part of a page."""
    monkeypatch.setattr(error_data, "PIECE", 1000)  # what was inflated is counted over all pieces
    data = os.urandom(PAGE * pages if not cut else PAGE * max(0, pages - 1) + PAGE // 2)
    packer = zlib.compressobj()
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    if not why:
        assert b"".join(unfolded(packed)) == data
        return
    with pytest.raises(DecodeError) as error:
        unfolded(packed)
    assert str(error.value) == f"{why}; the file may be cut off"


def test_damaged_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_data, "PIECE", 1000)
    packer = zlib.compressobj(0)  # stored, so that nothing before the damage is lost
    good = packer.compress(bytes(range(250)) * 14) + packer.flush(zlib.Z_FULL_FLUSH)
    with pytest.raises(DecodeError, match=r"cannot be inflated after 0xd41 bytes: Error -3"):
        unfolded(good + b"\xff" * 8)
    whole = zlib.compress(bytes(PAGE))
    whole = whole.ljust(-(-len(whole) // 4) * 4, b"\0")
    with pytest.raises(DecodeError, match=r"[4-7] bytes follow the end of its deflated data"):
        unfolded(whole + b"more")
    with pytest.raises(DecodeError, match="its deflated data ends after 0x0 bytes, inside a page"):
        unfolded(zlib.compress(b"")[:2])


def test_bytes_behind_a_stream_fill_its_last_dword() -> None:
    for size in range(PAGE, PAGE + 40, 8):  # streams of every length modulo four
        data = os.urandom(size)
        assert b"".join(unfolded(zlib.compress(data))) == data


@pytest.mark.parametrize("room, left", [(9, 1), (8, 0), (7, -1)])
def test_memory_that_is_listed_takes_room(room: int, left: int) -> None:
    listed, given = Listed(), Room(room)
    assert listed.add(b"00000000 :  7a000003", DecodeError) and listed.add(b"00000004 : 00100002", DecodeError)
    block = Block(3, "rcs0", "ring", 0x1000, text=listed)
    if left < 0:
        with pytest.raises(DecodeError, match=r"^error:3: the memory in this file unfolds to more than 0x7 bytes$"):
            block.unfold(given, Path("error"))
    else:
        assert block.unfold(given, Path("error")) == [b"\x03\0\0\x7a\x02\0\x10\0"]
    assert given.left == left


def test_dwords_are_listed_with_their_offsets() -> None:
    listed = Listed()
    assert listed.add(b"00000000 :  7a000003", DecodeError) and listed.add(b"00000004 : 00100002", DecodeError)
    assert listed.add(b"[0008] 01020304 05060708 090a0b0c", DecodeError) and listed.add(b"[00000014] 0d0e0f10", DecodeError)
    assert listed.data.hex() == "0300007a" "02001000" "04030201" "08070605" "0c0b0a09" "100f0e0d"  # fmt: skip
    for text in (b"", b"00000018 7a000003", b"00000018 :   7a000003", b"[018] 01020304", b"[0018]", b"[0018] 01020304 0506", b"ring"):
        assert not listed.add(text, DecodeError), text
    for text in (b"00000014 :  7a000003", b"[001c] 01020304"):
        with pytest.raises(DecodeError, match=r"offset 0x1[4c] follows 0x18 bytes; a line is missing"):
            listed.add(text, DecodeError)

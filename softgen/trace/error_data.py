"""Memory inside an error state: dwords written as text, plainly or in base 85, the latter often deflated first.

    ":" + base 85 of a zlib stream        "~" + base 85 of the bytes        "00000000 :  7a000003" per dword        "[0000] a b c d"

Base 85 here: a dword is five characters from '!', the most significant first, and 'z' alone is zero. A few kilobytes may inflate to
more than the host has, so every caller says how much room there is; pieces that are zero cost nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from softgen.bits.units import DWORD, PAGE_SIZE
from softgen.errors import DecodeError

PIECE = 1 << 20
ZEROS = bytes(PIECE)
DIGITS = 5  # characters of a dword in base 85
ALL_ZEROS = b"z" * (PIECE // DWORD)
DEFLATED, PLAIN = b":", b"~"
OFFSET_AND_DWORD = re.compile(rb"([0-9a-f]{8}) : {1,2}([0-9a-f]{8})$")
ROW = re.compile(rb"\[([0-9a-f]{4,8})\]((?: [0-9a-f]{8})+)$")
Complain = Callable[[str], DecodeError]


@dataclass
class Room:
    """Budget of bytes that the memory in one file may still unpack to."""

    left: int
    most: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.left

    def take(self, size: int, complain: Complain) -> None:
        self.left -= size
        if self.left < 0:
            raise complain(f"the memory in this file unfolds to more than {self.most:#x} bytes")


def unfold(text: bytes, room: Room, complain: Complain) -> list[bytes]:
    """Decode a `:` or `~` line to bytes, in chunks."""
    packed = text[1:].rstrip()
    if not packed:
        return []  # the kernel found no room for a single page
    if text[:1] == PLAIN:
        zeros = packed.count(b"z")
        room.take(DWORD * (zeros + (len(packed) - zeros) // DIGITS), complain)
        return list(base85(packed, complain))
    return list(_inflate(base85(packed, complain), room, complain))


def base85(text: bytes, complain: Complain) -> Iterator[bytes]:
    """Decode base 85: five characters per little-endian dword. In pieces of PIECE bytes at most, ZEROS among them."""
    at = done = 0
    while at < len(text):
        some = text[at : at + PIECE // DWORD]
        if some == ALL_ZEROS:
            piece, taken = ZEROS, len(some)
        else:
            piece, taken = _dwords(some, at, done // DWORD, complain)
        if not taken:
            raise complain(f"its last dword has {len(some)} of {DIGITS} characters; the file may be cut off")
        at, done = at + taken, done + len(piece)
        yield piece


def _dwords(text: bytes, at: int, number: int, complain: Complain) -> tuple[bytes, int]:
    """The whole dwords of a part of base 85, from character `at` and dword `number` on, and how many characters they take."""
    import numpy as np  # only files with such memory need it

    found = np.frombuffer(text, np.uint8)
    zeros = np.flatnonzero(found == ord("z"))
    wrong = np.flatnonzero((found < ord("!")) | (found > ord("u")) & (found != ord("z")))
    if len(wrong):
        raise complain(f"{text[wrong[0] : wrong[0] + 1]!r} at column {at + int(wrong[0]) + 2} is no character of base 85")
    inside = np.flatnonzero((zeros - np.arange(len(zeros))) % DIGITS)
    if len(inside):
        raise complain(f"a z at column {at + int(zeros[inside[0]]) + 2} stands inside a dword")
    taken = len(text) - (len(text) - len(zeros)) % DIGITS
    digits = np.frombuffer(text[:taken].replace(b"z", b"!" * DIGITS), np.uint8).reshape(-1, DIGITS) - np.uint8(ord("!"))
    values = np.zeros(len(digits), np.uint64)
    for digit in digits.T:
        values = values * np.uint64(85) + digit
    if len(values) and int(values.max()) >> 32:
        raise complain(f"dword {number + int(values.argmax())} does not fit 32 bits")
    return values.astype("<u4").tobytes(), taken


def _inflate(parts: Iterator[bytes], room: Room, complain: Complain) -> Iterator[bytes]:
    """Inflate a zlib stream. Older kernels may leave out its end, but never a part of a page."""
    stream, done, behind = zlib.decompressobj(), 0, 0
    try:
        for part in parts:
            behind += len(part) if stream.eof else 0
            while not stream.eof and (piece := stream.decompress(part, PIECE)):
                part, done = stream.unconsumed_tail, done + len(piece)
                room.take(len(piece), complain)
                yield ZEROS if piece == ZEROS else piece
    except zlib.error as error:
        raise complain(f"cannot be inflated after {done:#x} bytes: {error}") from None
    if not stream.eof and (done % PAGE_SIZE or not done):
        raise complain(f"its deflated data ends after {done:#x} bytes, inside a page; the file may be cut off")
    if (behind := behind + len(stream.unused_data)) >= DWORD:  # fewer only fill up the last dword
        raise complain(f"{behind} bytes follow the end of its deflated data")


class Listed:
    """Memory written dword by dword, each line with its offset."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: bytes, complain: Complain) -> bool:
        """Parse a line; False where it holds no dwords."""
        if m := OFFSET_AND_DWORD.match(text):
            values = m[2]
        elif m := ROW.match(text):
            values = m[2].replace(b" ", b"")
        else:
            return False
        if int(m[1], 16) != len(self.data):
            raise complain(f"offset {int(m[1], 16):#x} follows {len(self.data):#x} bytes; a line is missing")
        for at in range(0, len(values), 8):
            self.data += int(values[at : at + 8], 16).to_bytes(4, "little")
        return True

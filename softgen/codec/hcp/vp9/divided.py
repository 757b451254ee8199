"""Pictures of VP9 with several columns of tiles, divided among host threads.

Columns of tiles share nothing but references and probabilities, which are read alone. Each part of a picture is decoded from a copy of its
structure with counts of its own, whose sum is what one thread counts; the loop filter then goes down the picture, each row of superblocks
behind that above.
"""

from __future__ import annotations

import ctypes

import numpy as np

from softgen.codec.hcp.parts import PartRun
from softgen.codec.hcp.picture import give_room, take_room
from softgen.codec.hcp.vp9.structures import COUNT_BYTES, REFERENCES, Vp9Join, Vp9Load, Vp9Picture
from softgen.codec.library import library, run_rows
from softgen.codec.picture import Samples
from softgen.command import CommandStreamer
from softgen.errors import GpuFault

SUPERBLOCK = 64  # samples
UNIT_BYTES, MORE_BYTES, ALIGNMENT = 80, 1 << 17, 64  # 80: of a block, its place in the grid, motion and segments, twice


class WorkArrays:
    """Arrays that C code uses while a picture is decoded, one behind the other."""

    def __init__(self, units: int) -> None:
        """`units`: of 8x8 samples, from which the size of most arrays follows."""
        self._room, self._used, self._more = take_room(units * UNIT_BYTES + MORE_BYTES), 0, list[Samples]()

    def new(self, size: int, data: bytes = b"") -> Samples:
        """Zeros, of which the first are `data`."""
        found = self._room[self._used : self._used + size]
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        if found.size < size:
            found = np.zeros(size, np.uint8)
            self._more.append(found)
        if data:
            found[: len(data)] = np.frombuffer(data, np.uint8)
        return found

    def close(self) -> None:
        """Nothing points to the arrays any more."""
        give_room(self._room)


def decode_divided(cs: CommandStreamer, vp9: Vp9Picture, count: int, keep: WorkArrays) -> None:
    """Decode a picture on `count` host threads."""
    code, address = library(), ctypes.addressof(vp9)
    run_rows(cs, code.vp9_open, vp9)
    if not vp9.intra_only:
        _load(cs, vp9, count)
    columns = 1 << vp9.tile_columns
    parts = [Vp9Picture.from_buffer_copy(vp9) for _ in range(count)]
    for number, part in enumerate(parts):
        part.first_tile, part.end_tile = number * columns // count, (number + 1) * columns // count
        part.counts = keep.new(COUNT_BYTES).ctypes.data
    PartRun(code.vp9_tiles, parts).run(cs)
    for part in parts:
        run_rows(cs, code.vp9_join, Vp9Join(address, ctypes.addressof(part)))
    run_rows(cs, code.vp9_conceal, vp9)
    filtered = np.zeros(-(-vp9.height // SUPERBLOCK), np.uint32)
    vp9.divided, vp9.next_row, vp9.filtered = 1, 0, filtered.ctypes.data
    PartRun(code.vp9_filter_rows, [vp9] * count).run(cs)
    run_rows(cs, code.vp9_close, vp9)


def _load(cs: CommandStreamer, vp9: Vp9Picture, count: int) -> None:
    """Read the samples of references before threads do. What is not mapped is an error of the block that refers to it, if any does."""
    for slot in vp9.references:
        slot.areas = 0  # threads find them read whole
    loads = [Vp9Load(ctypes.addressof(vp9), first, count) for first in range(min(count, REFERENCES))]
    try:
        PartRun(library().vp9_load, loads).run(cs)
    except GpuFault:
        return

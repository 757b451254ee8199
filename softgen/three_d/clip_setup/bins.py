"""Bins: the numbers of the records that touch each tile (bins.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from softgen.threads.compare.selection import TileSelection
from softgen.three_d.structures import TILE, Bins, RecordArray, library
from softgen.three_d.vertices.chunk import Bytes, aligned

NUMBERS = 1 << 16  # pairs of tile and record that bins hold, or one for each tile if that is more


class Binning(ctypes.Structure):
    """struct binning of geometry.h."""

    _fields_ = [("records", ctypes.c_uint64), ("bins", ctypes.c_uint64), ("tiles", ctypes.c_uint64), ("ends", ctypes.c_uint64),
                ("start", ctypes.c_uint64)]  # fmt: skip


class BinMemory:
    """Bins for surfaces of any size, reused; they hold the records of one call of `fill` at a time."""

    def __init__(self, numbers: int = NUMBERS) -> None:
        self.least, self.bins = numbers, Bins()
        self._first, self._numbers, self._tiles, self._ends = (aligned(0) for _ in range(4))
        self.binning = Binning(bins=ctypes.addressof(self.bins))

    def resize(self, extent: tuple[int, int]) -> None:
        """Tiles for a surface of this size in pixels."""
        self.bins.tiles_x, self.bins.tiles_y = (-(-side // TILE) for side in extent)
        tiles = self.bins.tiles_x * self.bins.tiles_y
        self.bins.capacity = max(self.least, tiles)
        self._first, self._numbers = grown(self._first, 4 * (tiles + 1)), grown(self._numbers, 4 * self.bins.capacity)
        self._tiles = grown(self._tiles, 4 * self.bins.capacity)
        self.binning.tiles = self._tiles.ctypes.data
        self.bins.first, self.bins.numbers = self._first.ctypes.data, self._numbers.ctypes.data

    def fit(self, records: RecordArray) -> None:
        """Makes room for so many records."""
        if len(self._ends) < 4 * records.capacity:
            self._ends = aligned(4 * records.capacity)
            self.binning.ends = self._ends.ctypes.data

    def fill(self, records: RecordArray, start: int = 0) -> int:
        """Sorts records from number `start` on; how many there was room for, at least one if there are any."""
        binning = self.binning
        self.fit(records)
        binning.records, binning.start = ctypes.addressof(records), start
        return int(_fill()(ctypes.byref(binning)))


class SelectedBins:
    """Bins with the records of some tiles only."""

    def __init__(self, bins: Bins, selection: TileSelection) -> None:
        count = bins.tiles_x * bins.tiles_y
        first, numbers = _dwords(bins.first, count + 1), _dwords(bins.numbers, bins.capacity)
        lengths = np.diff(first.astype(np.int64))
        kept = np.zeros(count, np.int64)
        chosen = selection.tiles(np.flatnonzero(lengths))
        kept[chosen] = lengths[chosen]
        selection.objects_seen = max(selection.objects_seen, int(kept.max(initial=0)))
        if selection.objects is not None:
            kept = np.minimum(kept, selection.objects)
        self._first = np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)
        parts = [numbers[first[tile] : first[tile] + kept[tile]] for tile in np.flatnonzero(kept)]
        self._numbers = np.concatenate([np.zeros(0, np.uint32), *parts])
        self.bins = Bins(self._first.ctypes.data, self._numbers.ctypes.data, bins.tiles_x, bins.tiles_y, len(self._numbers))


def _dwords(address: int, count: int) -> npt.NDArray[np.uint32]:
    return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))


@cache
def _fill() -> Callable[..., int]:
    found = library().bins_fill
    found.restype = ctypes.c_int64
    return found


def grown(held: Bytes, size: int) -> Bytes:
    """The same memory if it is large enough."""
    return held if len(held) >= size else aligned(size)

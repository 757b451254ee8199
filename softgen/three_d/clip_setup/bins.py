"""Bins: the numbers of the records that touch each tile (bins.c)."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.threads.compare.selection import TileSelection
from softgen.three_d.clip_setup.geometry_h import Binning, BinStagePlan
from softgen.three_d.draw.draw_structures import DrawReason, StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage, WalkedDraw
from softgen.three_d.structures import TILE, Bins, RecordArray
from softgen.three_d.vertices.chunk import Bytes, aligned

NUMBERS = 1 << 16  # pairs of tile and record that bins hold, or one for each tile if that is more


class BinSizes(NamedTuple):
    """Tiles across and down; pairs of tile and record that bins hold."""

    tiles_x: int
    tiles_y: int
    capacity: int


class BinMemory:
    """Bins for surfaces of any size, reused; they hold as many records at a time as there is room for."""

    def __init__(self, numbers: int = NUMBERS) -> None:
        self.least, self.bins = numbers, Bins()
        self._sizes: dict[tuple[int, int], BinSizes] = {}  # by extent: there is memory for all of them
        self._first, self._numbers, self._tiles, self._ends = (aligned(0) for _ in range(4))
        self.binning = Binning(bins=ctypes.addressof(self.bins))

    def resize(self, extent: tuple[int, int]) -> BinSizes:
        """Tiles for a surface of this size in pixels."""
        found = self._sizes.get(extent)
        if found is None:
            across, down = (-(-side // TILE) for side in extent)
            found = self._sizes[extent] = BinSizes(across, down, max(self.least, across * down))
            self._first, self._numbers = grown(self._first, 4 * (across * down + 1)), grown(self._numbers, 4 * found.capacity)
            self._tiles = grown(self._tiles, 4 * found.capacity)
            self.binning.tiles = self._tiles.ctypes.data
            self.bins.first, self.bins.numbers = self._first.ctypes.data, self._numbers.ctypes.data
        return found

    def fit(self, records: RecordArray) -> None:
        """Makes room for so many records."""
        if len(self._ends) < 4 * records.capacity:
            self._ends = aligned(4 * records.capacity)
            self.binning.ends = self._ends.ctypes.data


class BinStage(Stage):
    """Records by tile, as many at a time as bins can hold."""

    name, run = "bins", "stage_bins"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        if record.plans.draws_nothing:
            return False
        memory = record.pipeline.memory
        self._plan = BinStagePlan(*memory.bins.resize(record.plans.extent))
        memory.bins.fit(memory.array)
        into.plan, into.loop = ctypes.addressof(self._plan), ctypes.addressof(memory.bins.binning)
        return True

    def resize(self, memory: BinMemory, extent: tuple[int, int]) -> None:
        """For draws to surfaces of another size."""
        self._plan.tiles_x, self._plan.tiles_y, self._plan.capacity = memory.resize(extent)

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why == DrawReason.SELECT:
            select(walk.pipeline.memory.bins.bins, walk.cs.dispatcher.selection)
        else:
            super().answer(walk, why)


def select(bins: Bins, selection: TileSelection) -> None:
    """Leaves in bins the records of some tiles only."""
    count = bins.tiles_x * bins.tiles_y
    first = _dwords(bins.first, count + 1)
    lengths = np.diff(first.astype(np.int64))
    kept = np.zeros(count, np.int64)
    chosen = selection.tiles(np.flatnonzero(lengths))
    kept[chosen] = lengths[chosen]
    selection.objects_seen = max(selection.objects_seen, int(kept.max(initial=0)))
    if selection.objects is not None:
        kept = np.minimum(kept, selection.objects)
    numbers = _dwords(bins.numbers, bins.capacity)
    left = [numbers[first[tile] : first[tile] + kept[tile]].copy() for tile in np.flatnonzero(kept)]
    first[:] = np.concatenate([[0], np.cumsum(kept)])
    for tile, held in zip(np.flatnonzero(kept), left, strict=True):
        numbers[first[tile] : first[tile + 1]] = held


def _dwords(address: int, count: int) -> npt.NDArray[np.uint32]:
    return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))


def grown(held: Bytes, size: int) -> Bytes:
    """The same memory if it is large enough."""
    return held if len(held) >= size else aligned(size)

"""Rectangles of a surface filled with one value: fast clears, and depth and stencil clears.

In:  where a level of a surface is, a value, setup records whose bounding boxes are the rectangles. Out: memory changed.
"""

from __future__ import annotations

import ctypes

from softgen.errors import Unsupported
from softgen.eu.native import GuardedCall
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions.pixel_backend import SurfacePlacement
from softgen.surface.samples import SPREAD
from softgen.surface.tile_table import tile_offsets
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage, WalkedDraw
from softgen.three_d.structures import RecordArray, library

CLEAR = "a clear"  # what accesses memory, in messages


class FillPlan(ctypes.Structure):
    """struct fill of fill.c."""

    _fields_ = [
        ("table", ctypes.c_uint64), ("base", ctypes.c_uint64), ("pitch", ctypes.c_uint64),
        ("tile_columns", ctypes.c_uint32), ("tile_rows", ctypes.c_uint32), ("column", ctypes.c_uint64), ("row", ctypes.c_uint64),
        ("bytes", ctypes.c_uint32), ("left", ctypes.c_uint32), ("top", ctypes.c_uint32),
        ("width", ctypes.c_uint32), ("height", ctypes.c_uint32),
        ("slice_rows", ctypes.c_uint32), ("first_slice", ctypes.c_uint32), ("slices", ctypes.c_uint32),
        ("scale_x", ctypes.c_uint32), ("scale_y", ctypes.c_uint32),
        ("samples", ctypes.c_uint32), ("sample_mask", ctypes.c_uint32), ("across", ctypes.c_uint32), ("down", ctypes.c_uint32),
        ("value", ctypes.c_uint8 * 16), ("mask", ctypes.c_uint8 * 16),
        ("records", ctypes.c_uint64), ("count", ctypes.c_uint64), ("next", ctypes.c_uint64),
    ]  # fmt: skip


def plan(place: SurfacePlacement, tiling: str, value: bytes, mask: bytes, scale: tuple[int, int] = (1, 1),
         samples: tuple[int, int] = (1, 1)) -> FillPlan:  # fmt: skip
    """A plan to fill pixels with `value` where `mask` has bits; rectangles count in `scale` pixels. `samples`: how many pixels have, which
    are beside each other, and those that are filled."""
    if place.columns:
        raise Unsupported("clears of a surface whose slices are beside each other: not yet simulated")
    found = FillPlan(base=place.base, pitch=place.pitch, bytes=len(value), left=place.left, top=place.top, width=place.width,
                     height=place.height, slice_rows=place.rows, first_slice=place.first, slices=place.slices, scale_x=scale[0],
                     scale_y=scale[1], samples=samples[0], sample_mask=samples[1])  # fmt: skip
    found.across, found.down = SPREAD[samples[0]]
    if tiling != "linear":
        columns, rows = tile_offsets(tiling)
        found.tile_columns, found.tile_rows = len(columns).bit_length() - 1, len(rows).bit_length() - 1
        found.column, found.row = columns.ctypes.data, rows.ctypes.data  # kept by tile_offsets
        found.pitch >>= tiling == "w_major"  # counts two rows as one
    found.value[: len(value)], found.mask[: len(mask)] = value, mask
    return found


def fill(space: Space, plan: FillPlan, records: RecordArray) -> None:
    """Fill the bounding boxes of setup records."""
    table = space.table
    plan.table, plan.records, plan.count, plan.next = ctypes.addressof(table), records.records, records.count, 0
    call = GuardedCall(library().fill_records)
    if call(plan) is None:
        call.record.ip = 0  # no instruction's
        raise call.fault(space, lambda ip: CLEAR)


class FillStage(Stage):
    """Rectangles that a draw clears; it has no pixels to shade."""

    name, run = "clear", "stage_fill"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        clear = record.plans.clear
        if clear is None:
            return False
        self._plan, self._kept = FillPlan.from_buffer_copy(clear), clear
        into.loop = ctypes.addressof(self._plan)
        if record.keeper is not None:
            record.keeper.tables.read_alone(record.state, "PS")  # of the binding table, the render target
        return True

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        walk.fault.ip = 0  # no instruction's
        raise guard.fault(walk.fault, walk.cs.space, lambda ip: CLEAR)

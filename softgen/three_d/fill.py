"""Rectangles of a surface filled with one value: fast clears, and depth and stencil clears.

In:  a SurfaceImage's level, a value, setup records whose bounding boxes are the rectangles. Out: memory changed.
"""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from softgen.errors import Unsupported
from softgen.eu.native import GuardedCall
from softgen.memory.space import Space
from softgen.surface import tiling
from softgen.surface.image import SurfaceImage, levels
from softgen.three_d.structures import library

Words = npt.NDArray[np.uint32]


class FillPlan(ctypes.Structure):
    """struct fill of fill.c."""

    _fields_ = [
        ("table", ctypes.c_uint64), ("base", ctypes.c_uint64), ("pitch", ctypes.c_uint64),
        ("tile_columns", ctypes.c_uint32), ("tile_rows", ctypes.c_uint32), ("column", ctypes.c_uint64), ("row", ctypes.c_uint64),
        ("bytes", ctypes.c_uint32), ("left", ctypes.c_uint32), ("top", ctypes.c_uint32),
        ("width", ctypes.c_uint32), ("height", ctypes.c_uint32),
        ("slice_rows", ctypes.c_uint32), ("first_slice", ctypes.c_uint32), ("slices", ctypes.c_uint32),
        ("scale_x", ctypes.c_uint32), ("scale_y", ctypes.c_uint32),
        ("value", ctypes.c_uint8 * 16), ("mask", ctypes.c_uint8 * 16),
        ("records", ctypes.c_uint64), ("count", ctypes.c_uint64), ("next", ctypes.c_uint64),
    ]  # fmt: skip


@cache
def tile_offsets(name: str) -> tuple[Words, Words]:
    """Of a tiling: what each byte of a row, and each row, adds to the offset within a tile."""
    order = tiling.orders().get(name)
    if order is None:
        raise Unsupported(f"surfaces with tiling {name}: not yet simulated")
    parts = []
    for which in "XY":
        places = [at for at, letter in enumerate(reversed(order)) if letter == which]
        numbers = np.arange(1 << len(places), dtype=np.uint32)
        parts.append(sum(((numbers >> np.uint32(bit) & 1) << np.uint32(at) for bit, at in enumerate(places)), np.zeros_like(numbers)))
    return parts[0], parts[1]


def plan(image: SurfaceImage, level: int, value: bytes, mask: bytes, scale: tuple[int, int] = (1, 1)) -> FillPlan:
    """A plan to fill texels of a level with `value` where `mask` has bits; rectangles count in `scale` pixels."""
    found = FillPlan(base=image.base, bytes=image.size, slice_rows=image.rows, first_slice=image.first, scale_x=scale[0], scale_y=scale[1])
    left, top, width, height = next(islice(levels(image), level, None))
    found.left, found.top, found.width, found.height = left + image.at[0], top + image.at[1], width, height
    found.slices = image.depth if image.is_array or image.kind == "3d" else 1
    found.pitch = image.pitch
    if image.tiling != "linear":
        columns, rows = tile_offsets(image.tiling)
        found.tile_columns, found.tile_rows = len(columns).bit_length() - 1, len(rows).bit_length() - 1
        found.column, found.row = columns.ctypes.data, rows.ctypes.data  # kept by tile_offsets
        found.pitch >>= image.tiling == "w_major"  # counts two rows as one
    found.value[: len(value)], found.mask[: len(mask)] = value, mask
    return found


def fill(space: Space, plan: FillPlan, records: int, count: int) -> None:
    """Fill the bounding boxes of `count` setup records at a host address."""
    table = space.table
    plan.table, plan.records, plan.count, plan.next = ctypes.addressof(table), records, count, 0
    call = GuardedCall(library().fill_records)
    if call(plan) is None:
        raise call.fault(space, lambda ip: "clear")

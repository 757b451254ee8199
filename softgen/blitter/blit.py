"""Blits: rectangles of surfaces copied and filled by blit.c, under the guard.

In:  surfaces, a rectangle, a raster operation as masks. Out: memory changed.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

from softgen.blitter import blit_h
from softgen.blitter.blit_h import GROUP, BlitPlan, SurfaceSide
from softgen.blitter.raster import RasterMasks
from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.eu import native
from softgen.library import load
from softgen.surface.tile_table import tile_offsets
from softgen.surface.tiling import orders

AT_ONCE = 1 << 24  # bytes between two polls of the time limit


class BlitSurface(NamedTuple):
    """Pixels in memory, and the byte of a row and the row at which a rectangle begins."""

    base: int
    pitch: int  # bytes
    tiling: str
    x: int
    y: int


@cache
def library() -> ctypes.CDLL:
    """blit.c."""
    return load("softgen.blitter._blit", blit_h)


def blit(cs: CommandStreamer, masks: RasterMasks, size: tuple[int, int], destination: BlitSurface,
         source: BlitSurface | None = None) -> None:  # fmt: skip
    """Combine rectangles of `size` bytes and rows; without a source no mask may read one. Raises GpuFault."""
    row_bytes, rows = size
    if row_bytes <= 0 or rows <= 0:
        return
    table, padded = cs.space.table, -(-row_bytes // GROUP) * GROUP
    buffers = ctypes.create_string_buffer(2 * padded)
    first, backwards = ctypes.addressof(buffers), source is not None and overlaps_backwards(destination, source, size)
    plan = BlitPlan(ctypes.addressof(table), (1 << cs.space.bits) - 1, _side(destination), _side(source), row_bytes, rows, 0, AT_ONCE,
                    backwards, masks.reads_source, masks.reads_destination, 0, first, first + padded,
                    *(_halves(mask) for mask in masks))  # fmt: skip
    call = native.GuardedCall(library().blit_rows)
    try:
        while left := call(plan):
            if cs.timed_out():
                raise SoftgenError(f"time is up: {left} of {rows} rows left")
    finally:
        cs.memory_changed()
    if left is None:
        raise call.fault(cs.space, str)


def overlaps_backwards(destination: BlitSurface, source: BlitSurface, size: tuple[int, int]) -> bool:
    """Whether rows have to be copied from the last to the first, lest a copy reads what it has written: the destination follows the source
    in the same rows of memory (public: Intel 815 PRM, "When the Source and Destination Locations Overlap"; there software chooses where
    to start, while the commands here have no bit for it)."""
    if destination.pitch != source.pitch or destination.tiling != source.tiling:
        return False
    row_bytes, rows = size
    if destination.tiling != "linear":
        return 0 < rows_below(destination, source) < rows
    distance = destination.base - source.base + (destination.y - source.y) * destination.pitch + destination.x - source.x
    forward = -distance if destination.pitch < 0 else distance
    return 0 < forward < rows * abs(destination.pitch) + row_bytes


def rows_below(destination: BlitSurface, source: BlitSurface) -> int:
    """How many rows of the source's surface the destination's first pixel is below the source's. Bases may be whole tiles apart: then one
    surface shows the other's tiles, moved by so many."""
    order = orders()[destination.tiling]
    columns, rows, distance = order.count("X"), order.count("Y"), destination.base - source.base
    across = destination.pitch >> columns
    if not distance or across <= 0 or distance % (1 << len(order)):
        return destination.y - source.y if not distance else 0
    down, right = divmod(distance >> len(order), across)
    return (down + (destination.x + (right << columns)) // (across << columns) << rows) + destination.y - source.y


def _side(surface: BlitSurface | None) -> SurfaceSide:
    if surface is None:
        return SurfaceSide()
    side = SurfaceSide(base=surface.base, pitch=surface.pitch, x=surface.x, y=surface.y)
    if surface.tiling != "linear":
        columns, rows = tile_offsets(surface.tiling)  # which keeps them
        order = orders()[surface.tiling]
        side.column, side.row = columns.ctypes.data, rows.ctypes.data
        side.tile_columns, side.tile_rows = order.count("X"), order.count("Y")
        side.run = 1 << len(order) - len(order.rstrip("X"))
    return side


def _halves(mask: int) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * 2)(mask & 0xFFFFFFFFFFFFFFFF, mask >> 64)

"""Rectangles of bytes in surfaces, read and written by C code under the guard (block_access.c).

In:  a surface's place and tiling, columns and rows. Out: bytes row by row, or memory changed; GpuFault where there is none.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError
from softgen.library import AGAIN
from softgen.library import load as load_part
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.surface.tile_table import tile_offsets
from softgen.surface.tiling import orders

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


class BlockAccess(ctypes.Structure):
    """struct block_access of block_access.c."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("table", "address_mask", "base")), ("across", ctypes.c_int64),
        ("column", ctypes.c_uint64), ("row", ctypes.c_uint64), ("tile_columns", ctypes.c_uint32), ("tile_rows", ctypes.c_uint32),
        ("xs", ctypes.c_uint64), ("ys", ctypes.c_uint64), ("columns", ctypes.c_uint32), ("rows", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64), ("mask", ctypes.c_uint64),
    ]  # fmt: skip


class SurfaceWalk(NamedTuple):
    """Where a surface's rows are."""

    space: Space
    base: int
    tiling: str
    pitch: int


@cache
def library() -> ctypes.CDLL:
    """The C code."""
    found = load_part("softgen.shared_functions._blocks")
    size = (ctypes.c_uint64 * 1)()
    if found.block_layout(size) != 1 or size[0] != ctypes.sizeof(BlockAccess):
        raise SoftgenError(f"softgen.shared_functions._blocks is of another version; {AGAIN}")
    return found


@cache
def _entry(name: str) -> int:
    return int(ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0)


@cache
def _tiles(tiling: str) -> tuple[int, int, int, int]:
    """Host addresses of a tiling's tables, and log2 of a tile's bytes and rows. The tables are kept by tile_offsets()."""
    columns, rows = tile_offsets(tiling)
    order = orders()[tiling]
    return columns.ctypes.data, rows.ctypes.data, order.count("X"), order.count("Y")


def read(walk: SurfaceWalk, xs: Places, ys: Places, mask: Bytes | None = None) -> Bytes:
    """The bytes of these columns and rows; zero for those that the mask leaves out."""
    found = np.zeros((len(ys), len(xs)), np.uint8)
    _run("block_gather", walk, xs, ys, found, mask)
    return found


def write(walk: SurfaceWalk, xs: Places, ys: Places, data: Bytes, mask: Bytes | None = None) -> None:
    """Write bytes to these columns and rows, but for those that the mask leaves out."""
    _run("block_scatter", walk, xs, ys, np.ascontiguousarray(data), mask)


def addresses(walk: SurfaceWalk, xs: Places, ys: Places) -> npt.NDArray[np.uint64]:
    """Where these bytes are, row by row: for those who watch accesses."""
    if walk.tiling == "linear":
        offsets = ys[:, None] * walk.pitch + xs
    else:
        (column, row), (_, _, across, down) = tile_offsets(walk.tiling), _tiles(walk.tiling)
        tiles = (ys >> down)[:, None] * (walk.pitch >> across + (walk.tiling == "w_major")) + (xs >> across)
        inside = column[xs & (1 << across) - 1] + row[ys & (1 << down) - 1].astype(np.int64)[:, None]
        offsets = (tiles << across + down) + inside
    return (offsets.ravel() + walk.base & (1 << walk.space.bits) - 1).astype(np.uint64)


@cache
def run(tiling: str) -> int:
    """Bytes of a row that are one after another in a tile, a power of two: all rows have the same. 1 in linear surfaces, whose rows are."""
    if tiling == "linear":
        return 1
    columns, found = tile_offsets(tiling)[0].astype(np.int64), 1
    while found < len(columns) and (np.diff(columns.reshape(-1, 2 * found), axis=1) == 1).all():
        found *= 2
    return found


def place(record: Any, walk: SurfaceWalk) -> None:
    """Enter into a structure of C where a surface is, and its tiling's tables."""
    record.base, record.across = walk.base, walk.pitch
    if walk.tiling != "linear":
        record.column, record.row, record.tile_columns, record.tile_rows = _tiles(walk.tiling)
        record.across = walk.pitch >> record.tile_columns + (walk.tiling == "w_major")


def _run(name: str, walk: SurfaceWalk, xs: Places, ys: Places, data: Bytes, mask: Bytes | None) -> None:
    space = walk.space
    record = BlockAccess(ctypes.addressof(space.table), (1 << space.bits) - 1)
    place(record, walk)
    record.xs, record.ys, record.columns, record.rows = xs.ctypes.data, ys.ctypes.data, len(xs), len(ys)
    record.bytes, record.mask = data.ctypes.data, 0 if mask is None else mask.ctypes.data
    guard.call(_entry(name), ctypes.addressof(record), space, lambda ip: "")

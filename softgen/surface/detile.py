"""Rectangles of tiled surfaces in host memory, copied into rows by compiled code (detile.c)."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError
from softgen.library import load
from softgen.surface import detile_h
from softgen.surface.detile_h import DetilePlan
from softgen.surface.tile_table import tile_offsets

Octets = npt.NDArray[np.uint8]


class TiledRows(NamedTuple):
    """A rectangle of a surface: the surface's tiling and pitch, and the rectangle in bytes and rows."""

    tiling: str
    pitch: int
    x: int
    y: int
    bytes: int
    lines: int


@cache
def library() -> ctypes.CDLL:
    return load("softgen.surface._coded", detile_h)


@cache
def contiguous(tiling: str) -> int:
    """Bytes of a row that are contiguous in a tile."""
    column, _ = tile_offsets(tiling)
    size = 1
    while size < len(column) and int(column[size]) == size:
        size *= 2
    return size


def detile(surface: memoryview | Octets, wanted: TiledRows, rows: Octets) -> None:
    """Copy a rectangle of the surface that begins at the first byte of host memory into contiguous rows."""
    source = np.frombuffer(surface, np.uint8)
    if min(wanted[1:]) < 0 or wanted.x + wanted.bytes > wanted.pitch:
        raise SoftgenError(f"a rectangle of {wanted.bytes} bytes at {wanted.x} of rows of {wanted.pitch} bytes")
    plan = DetilePlan(surface=source.ctypes.data, rows=rows.ctypes.data, pitch=wanted.pitch, x=wanted.x, y=wanted.y, bytes=wanted.bytes,
                      count=wanted.lines)  # fmt: skip
    end = (wanted.y + wanted.lines - 1) * wanted.pitch + wanted.x + wanted.bytes
    if wanted.tiling != "linear":
        column, row = tile_offsets(wanted.tiling)
        plan.column, plan.row, plan.run = column.ctypes.data, row.ctypes.data, contiguous(wanted.tiling)
        plan.tile_columns, plan.tile_rows = len(column).bit_length() - 1, len(row).bit_length() - 1
        end = -(-(wanted.y + wanted.lines) // len(row)) * len(row) * wanted.pitch
        if wanted.pitch % len(column):
            raise SoftgenError(f"a pitch of {wanted.pitch} bytes is no multiple of a tile's {len(column)}")
    if end > len(source) or wanted.bytes * wanted.lines > rows.nbytes:
        raise SoftgenError(f"{wanted.lines} {wanted.tiling} rows of {wanted.pitch} bytes from {wanted.y} on do not fit {len(source)} bytes")
    library().surface_detile(ctypes.byref(plan))

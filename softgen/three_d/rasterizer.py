"""Rasterizer: which pixels an object covers (rasterizer.c), and what state says about it.

Reads   WM_STATE or 3DSTATE_WM; 3DSTATE_POLY_STIPPLE_PATTERN 3DSTATE_POLY_STIPPLE_OFFSET 3DSTATE_MULTISAMPLE 3DSTATE_SAMPLE_MASK
        3DSTATE_RASTER 3DSTATE_RAST_MULTISAMPLE
Writes  a RasterPlan, which rasterizer.c reads
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.three_d.state import DrawState

ROWS = 32  # and columns of a polygon stipple
# Objects that polygon stipple masks (G45 6524-6536).
STIPPLED = ("polygon", "trifan", "trilist", "tristrip", "tristrip_reverse")
STATE = ("3DSTATE_POLY_STIPPLE_PATTERN", "3DSTATE_POLY_STIPPLE_OFFSET", "3DSTATE_MULTISAMPLE", "3DSTATE_SAMPLE_MASK", "3DSTATE_RASTER",
         "3DSTATE_RAST_MULTISAMPLE")  # fmt: skip
# State that changes coverage and is not built, by command.
NOT_BUILT = {
    "3DSTATE_MULTISAMPLE": ("number_of_multisamples",),
    "3DSTATE_RAST_MULTISAMPLE": ("number_of_rasterization_multisamples",),
    "3DSTATE_RASTER": ("forced_sample_count", "conservative_rasterization_enable"),
}


class RasterPlan(ctypes.Structure):
    """struct raster_plan of pixels.h."""

    _fields_ = [("stipple", ctypes.c_uint32 * ROWS), ("stippled", ctypes.c_uint64)]


class PixelBlock(ctypes.Structure):
    """struct pixel_block of three_d.h: covered pixels of a 4x4 block."""

    _fields_ = [("x", ctypes.c_uint16), ("y", ctypes.c_uint16), ("mask", ctypes.c_uint32)]


def refuse(name: str, record: Record | None, fields: tuple[str, ...]) -> None:
    """Raises Unsupported if one of the fields is set."""
    for field in fields:
        if record is not None and field in record._fields and getattr(record, field):
            raise Unsupported(f"{name}: {field} = {getattr(record, field)}")


def raster_plan(state: DrawState, windower: Record) -> RasterPlan:
    """The plan for a draw; `windower` is WM_STATE or 3DSTATE_WM."""
    for name, fields in NOT_BUILT.items():
        refuse(name, state.get(name), fields)
    if not windower.polygon_stipple_enable:
        return RasterPlan()
    pattern, offset = state.get("3DSTATE_POLY_STIPPLE_PATTERN"), state.get("3DSTATE_POLY_STIPPLE_OFFSET")
    if pattern is None:
        raise DecodeError("polygon_stipple_enable, but no 3DSTATE_POLY_STIPPLE_PATTERN has set a pattern")
    x, y = (offset.polygon_stipple_x_offset, offset.polygon_stipple_y_offset) if offset is not None else (0, 0)
    rows = [pattern.row[(number + y) % ROWS].pattern for number in range(ROWS)]
    return RasterPlan((ctypes.c_uint32 * ROWS)(*(row << x | row >> ROWS - x for row in rows)), stippled_topologies(state.gen))


def draws_nothing(state: DrawState) -> bool:
    """Whether the sample mask excludes the only sample (BDW-WM-02)."""
    mask = state.get("3DSTATE_SAMPLE_MASK")
    return mask is not None and not mask.sample_mask & 1


@cache
def topologies(gen: float, names: tuple[str, ...]) -> int:
    """3DPRIM_* codes as a set of bits."""
    codes = {name: code for code, name in catalogue().enumeration("3D_Prim_Topo_Type", gen).items()}
    return sum(1 << codes[name] for name in names if name in codes)


def stippled_topologies(gen: float) -> int:
    return topologies(gen, STIPPLED)

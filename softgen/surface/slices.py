"""Slices of surfaces: how many rows are from one to the next.

Reads   RENDER_SURFACE_STATE
"""

from __future__ import annotations

from softgen.bits.describe import value_name
from softgen.bits.generation import generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.surface import tiling


def slice_rows(layout: Layout, state: Record, arrangement: str, height: int, align: int) -> int:
    """Rows from slice to slice (QPitch): a field, or by the size of the first two levels.

    Arrays with full spacing leave room for all levels: h0 + h1 + 12j on Gen7, 11j before (public Mesa isl.c,
    isl_calc_array_pitch_el_rows_gfx4_2d). QPitch does not count for packed slices (BDW: arrays, multisamples and cube maps only).
    """
    if arrangement == "packed":
        return -(-height // align) * align
    qpitch = int(state.qpitch_rows) if "qpitch_rows" in state._fields else None
    twice = qpitch is not None and _doubles_qpitch(layout, state)
    return rows_between(layout.gen, height, align, qpitch, is_spaced(layout, state)) * (2 if twice else 1)


def rows_between(gen: float, height: int, align: int, qpitch: int | None, spaced: bool) -> int:
    """Rows from slice to slice that are not packed. `qpitch`: the field, where there is one; `spaced`: with room for all levels."""
    first, second = (-(-(max(height >> level, 1)) // align) * align for level in (0, 1))
    if qpitch is not None:
        return qpitch or first
    return first + second + generation(gen).qpitch_alignments * align if spaced else first


def is_spaced(layout: Layout, state: Record) -> bool:
    """Whether slices of an array leave room for all levels."""
    return "surface_array_spacing" not in state._fields or value_name(layout, state, "surface_array_spacing") == "full"


def _doubles_qpitch(layout: Layout, state: Record) -> bool:
    """Whether slices are two QPitches apart: those of a 3D surface with W tiles, whose tiles are rows of Y tiles taken in pairs. No manual
    says so (public Mesa isl_surface_state.c, get_qpitch: found on hardware)."""
    kind, walk = value_name(layout, state, "surface_type"), tiling.NAMES[int(state.tile_mode)]
    return kind == "3d" and walk == "w_major" and kind not in generation(layout.gen).packed_surfaces

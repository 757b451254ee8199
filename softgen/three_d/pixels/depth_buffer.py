"""Depth and stencil buffers: where their pixels are.

In:  3DSTATE_DEPTH_BUFFER, 3DSTATE_STENCIL_BUFFER; 3DSTATE_DRAWING_RECTANGLE on Gen4.
Out: DepthBuffers, for the pixel backend and for clears.

Reads   3DSTATE_DEPTH_BUFFER 3DSTATE_STENCIL_BUFFER 3DSTATE_DRAWING_RECTANGLE
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.pixel_backend import SurfacePlacement
from softgen.shared_functions.pixel_backend.depth import FORMATS
from softgen.surface.levels import level_table
from softgen.surface.samples import spread
from softgen.three_d.pixels.render_target import render_target
from softgen.three_d.samples.sample_plan import stored_samples
from softgen.three_d.state.state import DrawState

DEPTH, STENCIL = "3DSTATE_DEPTH_BUFFER", "3DSTATE_STENCIL_BUFFER"
DRAWING = "3DSTATE_DRAWING_RECTANGLE"
SPAN, NARROW = 4, 16  # pixels of a span in each direction; bits of colours of which two spans are aligned
REACH = 1 << 32  # bytes that a buffer may extend over
NOWHERE = SurfacePlacement()


@dataclass(frozen=True)
class DepthBuffers:
    """The buffers of a draw. Without a depth buffer `format` is empty."""

    format: str = ""
    tiling: str = "y_major"
    depth: SurfacePlacement = NOWHERE
    stencil: SurfacePlacement = NOWHERE
    has_stencil: bool = False
    separate_stencil: bool = True
    depth_write: bool = True  # whether the buffers may be written at all
    stencil_write: bool = True


def is_there(state: DrawState) -> bool:
    """Whether there is a depth buffer; a null surface is none."""
    buffer = state.get(DEPTH)
    return buffer is not None and value_name(catalogue.layout(DEPTH, state.gen), buffer, "surface_type") != "null"


def depth_buffers(state: DrawState, samples: int = 0) -> DepthBuffers:
    """The depth and stencil buffers of a draw; `samples`: of a pixel, where 3DSTATE_MULTISAMPLE does not say it."""
    buffer, samples = state.get(DEPTH), samples or stored_samples(state)
    if buffer is None:
        return DepthBuffers()
    separate = catalogue.catalogue().get(STENCIL, state.gen) is not None
    if not is_there(state):
        return DepthBuffers(separate_stencil=separate)
    page = catalogue.layout(DEPTH, state.gen)
    kind, format = value_name(page, buffer, "surface_type"), value_name(page, buffer, "surface_format")
    mode = int(getattr(buffer, "tiled_resource_mode", 0))
    if format not in FORMATS or mode:
        described = f"a {kind} surface of format {format}, level {buffer.lod}, tiled_resource_mode {mode}"
        raise Unsupported(f"{DEPTH}: {described}: not yet simulated")
    place = _packed_placement if kind in state.generation.packed_surfaces else partial(_placement, samples)
    placement = place(state, buffer, buffer, *_alignment(state, format))
    stencil, has_stencil = NOWHERE, not separate and FORMATS[format][2] is not None
    if separate and (found := state.get(STENCIL)) is not None:
        has_stencil = bool(getattr(found, "stencil_buffer_enable", 1))
        stencil = place(state, buffer, found, 8, 8) if has_stencil else stencil
    return DepthBuffers(format, _tiling(buffer), placement, stencil, has_stencil, separate, bool(getattr(buffer, "depth_write_enable", 1)),
                        bool(getattr(buffer, "stencil_write_enable", 1)))  # fmt: skip


def _tiling(buffer: Record) -> str:
    """Depth buffers are Y-tiled from Gen7 on; before, the command says."""
    if "tiled_surface" not in buffer._fields:
        return "y_major"
    if buffer.tiled_surface and not buffer.tile_walk:
        raise DecodeError(f"{DEPTH}: tile_walk 0 of a tiled depth buffer, which must be Y-major (G45 6923-6930)")
    return "y_major" if buffer.tiled_surface else "linear"


def _alignment(state: DrawState, format: str) -> tuple[int, int]:
    """The alignment of levels, in pixels and rows (public Mesa isl_gfx4.c, isl_gfx7.c)."""
    if state.generation.unit_state:
        return 4, 2
    return (8, 4) if format == "d16_unorm" else (4, 4)


def _placement(samples: int, state: DrawState, buffer: Record, where: Record, across: int, down: int) -> SurfacePlacement:
    """Where the level of a buffer is; sizes are the depth buffer's, address and pitch those of `where`."""
    lod, width, height = int(buffer.lod), int(buffer.width) + 1, int(buffer.height) + 1
    x = y = 0
    beside = 0 if getattr(buffer, "mip_map_layout_mode", 0) else 1  # the level that the next one is to the right of (G45 7037)
    for level in range(lod):  # the others are below each other
        if level == beside:
            x += -(-max(width >> level, 1) // across) * across
        else:
            y += -(-max(height >> level, 1) // down) * down
    slices, pitch = int(buffer.render_target_view_extent) + 1, int(where.surface_pitch) + 1
    rows = _rows(state, where, spread(samples, width, height)[1], down)
    right, lower = coordinate_offset(state)
    x, y = x + right, y + lower
    if samples > 1 and lod:
        raise DecodeError(f"{DEPTH}: level {lod} of a buffer of {samples} samples: these have one level")
    if (rows * (int(buffer.minimum_array_element) + slices) + y + spread(samples, width, height)[1]) * pitch >= REACH:
        raise Unsupported(f"{DEPTH}: a buffer of more than {REACH:#x} bytes: not yet simulated")
    return SurfacePlacement(int(where.surface_base_address), max(width >> lod, 1), max(height >> lod, 1), slices, pitch, rows,
                            int(buffer.minimum_array_element), x & 0xFFFFFFFF, y & 0xFFFFFFFF)  # fmt: skip


class _PackedLevels(NamedTuple):
    """What level_table needs of a buffer whose slices are beside each other."""

    kind: str
    width: int
    height: int
    depth: int
    align: tuple[int, int]
    layout: str = "packed"
    block: tuple[int, int] = (1, 1)
    tail: None = None


def _packed_placement(state: DrawState, buffer: Record, where: Record, across: int, down: int) -> SurfacePlacement:
    """The same for a buffer of a type of which 2^L slices of level L are beside each other."""
    lod, width, height = int(buffer.lod), int(buffer.width) + 1, int(buffer.height) + 1
    kind = value_name(catalogue.layout(DEPTH, state.gen), buffer, "surface_type")
    table = level_table(_PackedLevels(kind, width, height, int(buffer.depth) + 1, (across, down)))
    x, y = coordinate_offset(state)
    first, slices, pitch = int(buffer.minimum_array_element), int(buffer.render_target_view_extent) + 1, int(where.surface_pitch) + 1
    if (table.down[lod] * ((first + slices >> lod) + 1) + table.top[lod] + height) * pitch >= REACH:
        raise Unsupported(f"{DEPTH}: a buffer of more than {REACH:#x} bytes: not yet simulated")
    left, top = table.left[lod] + x & 0xFFFFFFFF, table.top[lod] + y & 0xFFFFFFFF
    return SurfacePlacement(int(where.surface_base_address), max(width >> lod, 1), max(height >> lod, 1), slices, pitch, table.down[lod],
                            first, left, top, lod, table.across[lod])  # fmt: skip


def coordinate_offset(state: DrawState) -> tuple[int, int]:
    """What is added to a pixel's coordinates in the depth buffer: fields, or on Gen4 what takes the drawing rectangle's origin away,
    but for its low bits, with which spans of colour and depth stay aligned (G45 7773-7780)."""
    buffer = state.get(DEPTH)
    if "depth_coordinate_offset_x" in getattr(buffer, "_fields", ()):
        return int(buffer.depth_coordinate_offset_x), int(buffer.depth_coordinate_offset_y)  # type: ignore[union-attr]
    if not getattr(buffer, "depth_buffer_coordinate_offset_disable", 0) or (drawing := state.get(DRAWING)) is None:
        return 0, 0
    target = render_target(state)
    across = 2 * SPAN if target is not None and target.format.bits == NARROW else SPAN
    x, y = int(drawing.drawing_rectangle_origin_x), int(drawing.drawing_rectangle_origin_y)
    return -(x - x % across), -(y - y % SPAN)


def _rows(state: DrawState, where: Record, height: int, down: int) -> int:
    """Rows from slice to slice: a field, or by the heights of two levels and room for the others (public Mesa isl.c)."""
    if "qpitch_rows" in where._fields:
        return int(where.qpitch_rows)
    first, second = (-(-max(height >> level, 1) // down) * down for level in (0, 1))
    return first + second + (11 if state.generation.unit_state else 12) * down

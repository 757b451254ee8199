"""Fast clears, resolves and HiZ operations. Memory is always resolved: auxiliary surfaces are never interpreted.

Reads   3DSTATE_PS 3DSTATE_WM 3DSTATE_WM_HZ_OP 3DSTATE_CLEAR_PARAMS RENDER_SURFACE_STATE CLEAR_COLOR
Writes  clear values, into the colour, depth and stencil surfaces themselves

A fast clear writes the clear colour to all pixels that its rectangle stands for; resolves have nothing to do. That is indistinguishable as
long as every reader is this device, or comes after a resolve.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import u32
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.surface import texel
from softgen.surface.image import SurfaceImage
from softgen.three_d import fill
from softgen.three_d.state import DrawState

CHANNELS = ("red", "green", "blue", "alpha")
# A bit of the colour control surface stands for so many bytes and rows of pixels, by tiling (public: Mesa isl_format_layout.csv)
CONTROL_BLOCK = {"y_major": (32, 4), "x_major": (64, 2)}
COLUMNS = 8  # such blocks that a unit of a fast clear's rectangle is wide (public: Mesa blorp_clear.c)
ONE = 0x3F800000


def is_resolve(state: DrawState) -> bool:
    """Whether a draw resolves a colour surface: it writes nothing, even with fast clear enabled (Ice Lake's ambiguate sets both)."""
    shader = state.get("3DSTATE_PS")
    names = ("render_target_resolve_type", "render_target_resolve_enable")
    return shader is not None and any(getattr(shader, name, 0) for name in names)


def is_fast_clear(state: DrawState) -> bool:
    return bool(getattr(state.get("3DSTATE_PS"), "render_target_fast_clear_enable", 0))


def fast_clear(state: DrawState) -> fill.FillPlan:
    """The plan of a fast clear of render target 0."""
    table = state.command("3DSTATE_BINDING_TABLE_POINTERS_PS").pointer_to_binding_table
    surfaces = Surfaces(state.generation, state.space, state.bases, table)
    image, surface = surfaces.picture(0, False), surfaces.state(0)
    if image.tiling not in CONTROL_BLOCK:
        raise Unsupported(f"fast clear of a surface with tiling {image.tiling}: not yet simulated")
    width, rows = CONTROL_BLOCK[image.tiling]
    scale = COLUMNS * width // image.size, state.generation.fast_clear_rows * rows
    value = texel_bytes(image, clear_color(state, surface, texel.is_integer(image.format)))
    return fill.plan(image, int(surface.mip_count_lod), value, b"\xff" * image.size, scale)


def clear_color(state: DrawState, surface: Record, is_integer: bool) -> tuple[int, ...]:
    """The bits of the four channels: where the surface state points to, in it, or 0 and 1 for a bit each on older generations."""
    if getattr(surface, "clear_value_address_enable", 0):
        address = surface.clear_value_address & (1 << state.space.bits) - 1
        return tuple(state.space.read32(address + 4 * number) for number in range(len(CHANNELS)))
    values = tuple(int(getattr(surface, f"{name}_clear_color")) for name in CHANNELS)
    if state.generation.clear_color_bits == 1 and not is_integer:
        return tuple(ONE * value for value in values)
    return values


def texel_bytes(image: SurfaceImage, color: tuple[int, ...]) -> bytes:
    """A colour as a texel of the surface. Drivers give sRGB colours as they are stored."""
    m, format = NumpyMachine(), replace(image.format, space="linear")
    words = texel.pack(m, format, [m.constant(u32, value, 1) for value in color])
    return b"".join(np.asarray(word.payload, np.uint32).tobytes() for word in words)[: image.size]

"""Fast clears, resolves and HiZ operations. Memory is always resolved: auxiliary surfaces are never interpreted.

Reads   3DSTATE_PS 3DSTATE_WM 3DSTATE_WM_HZ_OP 3DSTATE_CLEAR_PARAMS RENDER_SURFACE_STATE CLEAR_COLOR
Writes  clear values, into the colour, depth and stencil surfaces themselves

A fast clear writes the clear colour to all pixels that its rectangle stands for; resolves have nothing to do. That is indistinguishable as
long as every reader is this device, or comes after a resolve.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np

from softgen.bits.record import Record, to_float
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.pixel_backend.depth import FORMATS
from softgen.shared_functions.pixel_backend.surface import target_surface
from softgen.surface import texel
from softgen.surface.image import SurfaceImage
from softgen.surface.samples import CHANNELS, clear_bits, control_format
from softgen.three_d.pixels import fill
from softgen.three_d.pixels.depth_buffer import depth_buffers
from softgen.three_d.samples.sample_plan import stored_samples
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table
from softgen.three_d.structures import RecordArray, SetupRecord

# A bit of the colour control surface stands for so many bytes and rows of pixels, by tiling (public: Mesa isl_format_layout.csv)
CONTROL_BLOCK = {"y_major": (32, 4), "x_major": (64, 2)}
COLUMNS = 8  # such blocks that a unit of a fast clear's rectangle is wide (public: Mesa blorp_clear.c)
# Columns and rows of pixels that a unit of it stands for, of surfaces with so many samples (public: Mesa blorp_clear.c)
SAMPLE_CLEAR = {2: (8, 2), 4: (8, 2), 8: (2, 2), 16: (1, 2)}
DEPTH_BLOCK, STENCIL_BLOCK = (8, 4), (8, 8)  # pixels that a clear of the full surface clears as a whole
COLOR_RESOLVES = ("render_target_resolve_type", "render_target_resolve_enable")
DEPTH_RESOLVES = ("legacy_depth_buffer_resolve_enable", "legacy_hierarchical_depth_buffer_resolve_enable")


def is_resolve(state: DrawState) -> bool:
    """Whether a draw resolves a surface: it writes nothing, even with fast clear enabled (Ice Lake's ambiguate sets both)."""
    shader, wm = state.get("3DSTATE_PS"), state.get("3DSTATE_WM")
    return any(getattr(shader, name, 0) for name in COLOR_RESOLVES) or any(getattr(wm, name, 0) for name in DEPTH_RESOLVES)


def rectangle_clear(state: DrawState) -> fill.FillPlan | None:
    """The plan of a draw that clears its rectangles and runs no pixel shader; None for other draws."""
    if getattr(state.get("3DSTATE_PS"), "render_target_fast_clear_enable", 0):
        return _fast_clear(state)
    if getattr(state.get("3DSTATE_WM"), "legacy_depth_buffer_clear_enable", 0):
        count = stored_samples(state)
        return _depth_clear(state, (count, (1 << count) - 1))
    return None


def _fast_clear(state: DrawState) -> fill.FillPlan:
    surfaces = Surfaces(state.generation, state.table_space("PS"), state.bases, binding_table(state, "PS"))
    image, surface = surfaces.picture(0, False, samples=True), surfaces.state(0)
    if image.samples > 1:
        return _sample_clear(image, surface)
    if image.tiling not in CONTROL_BLOCK:
        raise Unsupported(f"fast clear of a surface with tiling {image.tiling}: not yet simulated")
    width, rows = CONTROL_BLOCK[image.tiling]
    target, place = target_surface(image, surface, "render target 0")
    if target.rotation:
        raise Unsupported(f"fast clear of a surface that is rotated by {target.rotation} degrees: not yet simulated")
    value = texel_bytes(image, clear_color(state, surface, texel.is_integer(image.format)))
    scale = COLUMNS * width // image.size, state.generation.fast_clear_rows * rows
    return fill.plan(place, image.tiling, value, b"\xff" * image.size, scale)


def _sample_clear(image: SurfaceImage, surface: Record) -> fill.FillPlan:
    """Of a surface with several samples, the control surface says that all of them have the clear colour."""
    if image.control is None:
        raise Unsupported(f"fast clear of a surface of {image.samples} samples without a control surface: not yet simulated")
    _, place = target_surface(image, surface, "render target 0")
    place = replace(place, base=image.control.base, pitch=image.control.pitch, rows=image.control.rows, left=0, top=0)
    ones = b"\xff" * (control_format(image.samples).bits // 8)
    return fill.plan(place, "y_major", ones, ones, SAMPLE_CLEAR[image.samples])


# -- depth and stencil -------------------------------------------------------------------------------------------------


def hiz(state: DrawState, command: Record) -> None:
    """3DSTATE_WM_HZ_OP: clears write the buffers; resolves of depth and HiZ have nothing to do."""
    count = 1 << command.number_of_multisamples  # and mask are its own, whatever other commands say (BDW 13887-13898, 13954-13971)
    samples = count, command.sample_mask & (1 << count) - 1
    if not samples[1]:
        return
    if command.depth_buffer_clear_enable:
        _clear(state, command, _depth_clear(state, samples), DEPTH_BLOCK)
    if command.stencil_buffer_clear_enable:
        _clear(state, command, _stencil_clear(state, command.stencil_clear_value, samples), STENCIL_BLOCK)


def _clear(state: DrawState, command: Record, plan: fill.FillPlan, block: tuple[int, int]) -> None:
    """Clear a rectangle of all layers; of the full surface, whole blocks (BDW 13850-13866)."""
    across, down = block if command.full_surface_depth_and_stencil_clear else (1, 1)
    boxes = (SetupRecord * plan.slices)()
    for layer, box in enumerate(boxes):
        box.x0, box.x1 = command.clear_rectangle_x_min // across * across, -(-command.clear_rectangle_x_max // across) * across
        box.y0, box.y1 = command.clear_rectangle_y_min // down * down, -(-command.clear_rectangle_y_max // down) * down
        box.layer = layer
    fill.fill(state.space, plan, RecordArray(records=ctypes.addressof(boxes), count=len(boxes), capacity=len(boxes)))


def _depth_clear(state: DrawState, samples: tuple[int, int]) -> fill.FillPlan:
    buffers = depth_buffers(state, samples[0])
    if not buffers.format:
        raise DecodeError("a depth clear without a depth buffer")
    size, unorm_bits, *_ = FORMATS[buffers.format]
    clear = state.command("3DSTATE_CLEAR_PARAMS")
    if not clear.depth_clear_value_valid:
        raise Unsupported("3DSTATE_CLEAR_PARAMS.depth_clear_value_valid = 0, a clear to the depth of the rectangle: not yet simulated")
    value = depth_bits(clear.depth_clear_value, unorm_bits, state.generation.clear_depth_is_float)
    mask = (1 << (unorm_bits or 32)) - 1
    return fill.plan(buffers.depth, buffers.tiling, value.to_bytes(size, "little"), mask.to_bytes(size, "little"), samples=samples)


def depth_bits(value: int, unorm_bits: int, is_float: bool) -> int:
    """A depth clear value as the buffer holds it (`unorm_bits` 0: floats); it is given as a float, or as it is stored."""
    if not is_float or not unorm_bits:
        return value
    return int(np.rint(min(max(to_float(value), 0.0), 1.0) * ((1 << unorm_bits) - 1)))


def _stencil_clear(state: DrawState, value: int, samples: tuple[int, int]) -> fill.FillPlan:
    buffers = depth_buffers(state, samples[0])
    if not buffers.has_stencil or not buffers.separate_stencil:
        raise DecodeError("a stencil clear without a stencil buffer")
    return fill.plan(buffers.stencil, "w_major", bytes([value]), b"\xff", samples=samples)


# -- colours -----------------------------------------------------------------------------------------------------------


def clear_color(state: DrawState, surface: Record, is_integer: bool) -> tuple[int, ...]:
    """The bits of the four channels: where the surface state points to, in it, or 0 and 1 for a bit each on older generations."""
    if getattr(surface, "clear_value_address_enable", 0):
        return tuple(state.space.read32(surface.clear_value_address + 4 * number) for number in range(len(CHANNELS)))
    return clear_bits(surface, state.generation.clear_color_bits, is_integer)


def texel_bytes(image: SurfaceImage, color: tuple[int, ...]) -> bytes:
    """A colour as a texel of the surface. Drivers give sRGB colours as they are stored."""
    m, format = NumpyMachine(), replace(image.format, space="linear")
    words = texel.pack(m, format, [m.constant(u32, value, 1) for value in color])
    return b"".join(np.asarray(word.payload, np.uint32).tobytes() for word in words)[: image.size]

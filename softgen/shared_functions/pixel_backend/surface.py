"""Addresses of pixels, and loads and stores of their words.

Sixteen pixels are often an aligned block of 4x4; such a block of 32-bit words in a Y-tiled surface is 64 contiguous bytes, and is loaded
and stored at once. Otherwise each pixel has an address.

Reads   RENDER_SURFACE_STATE
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from softgen.bits.formats import Format
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordView
from softgen.lanes.types import LaneType, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.pixel_backend.state import SurfacePlacement, TargetState
from softgen.surface import texel, tiling
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage

BLOCK = 16  # pixels of 4x4
REACH = 1 << 32  # bytes that a surface may extend over: offsets have 32 bits
# The channel of each pixel of a block in reading order: channels go by subspans of 2x2 pixels.
CHANNEL_OF = tuple((row // 2 * 2 + column // 2) * 4 + row % 2 * 2 + column % 2 for row in range(4) for column in range(4))
PIXEL_OF = tuple(CHANNEL_OF.index(channel) for channel in range(BLOCK))


@dataclass(frozen=True)
class TargetSurface:
    """What code for a render target depends on, besides its blend state; `format` is None for a null target."""

    format: Format | None
    tiling: str = "linear"
    order: str = "rgba"  # the shader channel that red, green, blue and alpha of the surface take; - for none


@dataclass(frozen=True)
class Pixels:
    """Positions of pixels. Sixteen of them are a block of 4x4 where the one lane of `block` holds, or always where it is None."""

    x: Value
    y: Value
    block: Value | None = None

    @property
    def lanes(self) -> int:
        return self.x.lanes


def target_surface(image: SurfaceImage, state: Record, what: str) -> tuple[TargetSurface, SurfacePlacement]:
    """The code and the numbers of a render target. Its level is the one that surfaces of other uses have as their last."""
    if image.kind == "null":
        return TargetSurface(None), SurfacePlacement()
    rotated = int(getattr(state, "render_target_and_sample_unorm_rotation", 0))
    if image.kind == "buffer" or rotated:
        kind = "a buffer" if image.kind == "buffer" else "rotated"
        raise Unsupported(f"{what} is {kind}: not yet simulated for render targets")
    texel.check(image.format)
    level = image.levels - 1
    left, top, width, height = image.level_box(level)
    if level and image.layout == "packed":
        raise Unsupported(f"{what}, level {level} of a {image.kind} surface: not yet simulated for render targets")
    left, top = left + image.at[0], top + image.at[1]
    slices = int(state.render_target_view_extent) + 1
    end = (image.rows * (image.first + slices) + top + height) * image.pitch
    if end >= REACH or image.across:
        raise Unsupported(f"{what} extends over {end:#x} bytes: not yet simulated for render targets")
    placement = SurfacePlacement(image.base, width, height, slices, image.pitch, image.rows, image.first, left, top)
    return TargetSurface(image.format, image.tiling, _order(image)), placement


def _order(image: SurfaceImage) -> str:
    """Shader channel selects reorder channels; the first shader channel that selects a surface channel is written to it (KBL 20098-20151).
    """
    found = dict.fromkeys(CHANNEL_NAMES, "-")
    for shader, select in reversed(list(zip(CHANNEL_NAMES, image.select, strict=True))):
        if select in found:
            found[select] = shader[0]
    return "".join(found.values())


def own_state(state: TargetState, surface: Record) -> TargetState:
    """The blend state of a target; surface states of early generations have a part of it."""
    if "color_blend_enable" not in surface._fields:
        return state
    disabled = "".join(name[0] for name in CHANNEL_NAMES if getattr(surface, f"write_disable_{name}"))
    blend = state.color if surface.color_blend_enable else None
    return replace(state, color=blend, alpha=state.alpha if blend else None, write_disable=disabled)


# -- lane programs ---------------------------------------------------------------------------------------------------


def one_block(m: Machine, x: Value, y: Value) -> Pixels:
    """A block of 4x4 pixels from its upper left one (single lanes)."""
    places = m.lane_index(BLOCK)
    column, row = (places & 1) | (places >> 1 & 2), (places >> 1 & 1) | (places >> 2 & 2)
    return Pixels(m.broadcast(x, BLOCK) + column, m.broadcast(y, BLOCK) + row)


def subspans(m: Machine, places: Value) -> Pixels:
    """The pixels of subspans, by the places of their upper left pixels."""
    lanes = 4 * places.lanes
    spread, number = m.shuffle(places, [lane // 4 for lane in range(lanes)]), m.lane_index(lanes)
    x, y = (spread & 0xFFFF) + (number & 1), (spread >> 16) + (number >> 1 & 1)
    if lanes != BLOCK:
        return Pixels(x, y)
    first = m.slice(places, 0, 1)
    block = m.broadcast(first, 4) + m.constant(u32, [0, 2, 2 << 16, 2 << 16 | 2])
    return Pixels(x, y, m.all(places == block))


def inside(m: Machine, view: RecordView, pixels: Pixels) -> Value:
    """The pixels inside a surface."""
    width, height = (m.broadcast(view.load(name), pixels.lanes) for name in ("width", "height"))
    return (pixels.x < width) & (pixels.y < height)


def address(m: Machine, view: RecordView, tiled: str, size: int, pixels: Pixels, layer: Value) -> Value:
    """The offsets of pixels of `size` bytes from a surface's base. An array index that the surface does not have counts as its first
    (KBL 20625-20629)."""
    index = m.select(layer < view.load("slices"), layer, m.like(layer, 0)) + view.load("first")
    top, left, pitch = index * view.load("rows") + view.load("top"), view.load("left"), view.load("pitch")
    x, y = (value + m.broadcast(start, pixels.lanes) for value, start in ((pixels.x, left), (pixels.y, top)))
    return tiling.offset(m, tiled, m.broadcast(pitch, pixels.lanes), x * size, y)


def has_blocks(tiled: str, size: int) -> bool:
    """Whether blocks of 4x4 pixels of `size` bytes can be contiguous."""
    return tiled == "y_major" and size == u32.bytes


def load(m: Machine, type: LaneType, memory: Region, block: bool, pixels: Pixels, at: Value, mask: Value) -> Value:
    """Words of pixels, by offsets. `block`: whether those of a block may be contiguous (`has_blocks`)."""
    if not block or pixels.lanes != BLOCK:
        return m.load(type, memory, at, mask)
    found = m.variable(m.constant(type, 0, pixels.lanes))
    for _ in m.If(_is_block(m, pixels, at)):
        held = m.load_block(type, BLOCK, memory, m.slice(at, 0, 1), m.shuffle(mask, CHANNEL_OF))
        found.value = m.shuffle(held, PIXEL_OF)
    for _ in m.Else():
        found.value = m.load(type, memory, at, mask)
    return found.value


def store(m: Machine, value: Value, memory: Region, block: bool, pixels: Pixels, at: Value, mask: Value) -> None:
    if not block or pixels.lanes != BLOCK:
        m.store(value, memory, at, mask)
        return
    for _ in m.If(_is_block(m, pixels, at)):
        m.store_block(m.shuffle(value, CHANNEL_OF), memory, m.slice(at, 0, 1), m.shuffle(mask, CHANNEL_OF))
    for _ in m.Else():
        m.store(value, memory, at, mask)


def _is_block(m: Machine, pixels: Pixels, at: Value) -> Value:
    """Whether the words of a block are contiguous: where its first is at a multiple of 64 bytes."""
    even = (m.slice(at, 0, 1) & BLOCK * u32.bytes - 1) == 0
    return even if pixels.block is None else even & pixels.block

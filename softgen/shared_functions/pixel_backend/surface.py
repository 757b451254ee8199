"""Addresses of pixels, and loads and stores of their words.

Sixteen pixels are often an aligned block of 4x4, eight one of 4x2. Such a block is loaded and stored at once where its words are contiguous
(32 bits in Y-tiled surfaces, 8 bits in W-tiled ones), or else row by row. Otherwise each pixel has an address.

Reads   RENDER_SURFACE_STATE
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from softgen.bits.formats import Format
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordView
from softgen.lanes.types import LaneType, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.pixel_backend.state import SurfacePlacement, TargetState
from softgen.surface import samples, texel, tiling
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage
from softgen.surface.levels import level_table

BLOCK = 16  # pixels of 4x4
CUBE_FACES = 6
ALL_COLUMNS = 12  # slices of a surface are fewer than 2^12
REACH = 1 << 32  # bytes that a surface may extend over: offsets have 32 bits
# Formats of targets that can be rotated (KBL 19593-19597)
ROTATED = frozenset(("B5G6R5_UNORM", "B5G6R5_UNORM_SRGB", "R8G8B8A8_UNORM", "R8G8B8A8_UNORM_SRGB", "B8G8R8A8_UNORM", "B8G8R8X8_UNORM",
                     "B8G8R8A8_UNORM_SRGB", "B8G8R8X8_UNORM_SRGB", "B10G10R10A2_UNORM", "B10G10R10X2_UNORM", "B10G10R10A2_UNORM_SRGB",
                     "R10G10B10A2_UNORM", "R10G10B10A2_UNORM_SRGB", "R16G16B16A16_FLOAT", "R16G16B16X16_FLOAT"))  # fmt: skip


class BlockShape(NamedTuple):
    """How the pixels of an aligned block are in memory: contiguous, or in as many pieces as it has rows."""

    order: tuple[int, ...]  # channels as they follow each other
    pieces: int
    align: int  # the offset of the first pixel is a multiple of so many bytes


@cache
def block_shape(tiled: str, size: int, lanes: int) -> BlockShape | None:
    """The shape of blocks of `lanes` pixels of `size` bytes; None where each pixel is accessed by itself. Channels go by subspans of 2x2
    pixels, and so do the bytes of W tiles."""
    if tiled == "w_major":
        return BlockShape(tuple(range(lanes)), 1, lanes) if size == 1 else None
    if size > u32.bytes:
        return None
    reading = tuple((row // 2 * 2 + column // 2) * 4 + row % 2 * 2 + column % 2 for row in range(lanes // 4) for column in range(4))
    if tiled == "y_major" and size == u32.bytes:
        return BlockShape(reading, 1, 4 * lanes)
    return BlockShape(reading, lanes // 4, 1 if tiled == "linear" else 4 * size) if tiled in ("linear", "x_major", "y_major") else None


@dataclass(frozen=True)
class TargetSurface:
    """What code for a render target depends on, besides its blend state; `format` is None for a null target."""

    format: Format | None
    tiling: str = "linear"
    order: str = "rgba"  # the shader channel that red, green, blue and alpha of the surface take; - for none
    rotation: int = 0  # degrees, clockwise, of the picture in memory
    samples: int = 1
    interleaved: bool = False  # samples are beside each other, not in slices
    control: bool = False  # a control surface says which samples have the clear colour
    clear_in_memory: bool = False  # not in the record


class PixelSample(NamedTuple):
    """Which sample of pixels is meant: a number, or lanes; of how many, and whether they are beside each other."""

    number: int | Value
    samples: int
    interleaved: bool


@dataclass(frozen=True)
class Pixels:
    """Positions of pixels. They are a block where the one lane of `block` holds, or always where it is None."""

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
    if image.kind == "buffer":
        raise Unsupported(f"{what} is a buffer: not yet simulated for render targets")
    if image.lines != (1, 0):
        raise Unsupported(f"{what} has vertical_line_stride 1: not yet simulated for render targets")
    if tiling.slices(image.tiling):
        raise Unsupported(f"{what} has tiling {image.tiling}: not yet simulated for render targets")
    texel.check(image.format)
    rotation = _rotation(image, state, what)
    if image.samples > 1 and (image.levels > 1 or rotation):
        raise DecodeError(f"{what} has {image.samples} samples and {image.levels} levels, rotated by {rotation} degrees: not possible")
    level = image.levels - 1
    left, top, width, height = image.level_box(level)
    left, top = left + image.at[0], top + image.at[1]
    slices = CUBE_FACES if image.kind == "cube" else int(state.render_target_view_extent) + 1  # KBL 20625-20629
    rows, columns, across = _slice_steps(image, level)
    last = image.first + slices - 1 if image.interleaved else (image.first + slices) * image.samples - 1
    stored = samples.spread(image.samples, width, height)[1] if image.interleaved else height
    end = _end(image, rows * (last >> columns) + top + stored)
    if end > REACH:
        raise Unsupported(f"{what} extends over {end:#x} bytes: not yet simulated for render targets")
    placement = SurfacePlacement(image.base, width, height, slices, image.pitch, rows, image.first, left, top, columns, across)
    control = image.control
    return TargetSurface(image.format, image.tiling, _order(image), rotation, image.samples, image.interleaved, control is not None,
                         control is not None and control.clear_at > 0), placement  # fmt: skip


def _end(image: SurfaceImage, rows: int) -> int:
    """Bytes of a surface up to a row, with all of its tiles."""
    tile = 1 << (tiling.orders()[image.tiling].count("Y") if image.tiling != "linear" else 0)  # rows
    return -(-rows // tile) * tile * image.pitch


def renumbered(surface: TargetSurface, placement: SurfacePlacement, image: SurfaceImage) -> SurfacePlacement | None:
    """Where a target is, given a plain image that differs from its own in numbers only; None: look at all of it."""
    if surface.format is None or surface.rotation or surface.control or placement.columns:
        return None
    left, top, width, height = image.level_box(image.levels - 1)
    if _end(image, image.rows * (placement.first + placement.slices - 1) + top + height) > REACH:
        return None
    return SurfacePlacement(image.base, width, height, placement.slices, image.pitch, image.rows, placement.first, left, top)


def _rotation(image: SurfaceImage, state: Record, what: str) -> int:
    """Degrees by which a target is rotated when it is written; only plain X-tiled pictures of some formats can be (KBL 19558-19597)."""
    rotation = int(getattr(state, "render_target_and_sample_unorm_rotation", 0)) * 90
    if not rotation:
        return 0
    plain = image.kind == "2d" and not image.is_array and image.levels == 1 and image.at == (0, 0) and image.tiling == "x_major"
    if rotation == 180 or not plain or image.format.name not in ROTATED:
        kind = f"{image.tiling} {image.kind}{' array' if image.is_array else ''} of format {image.format.name}"
        raise DecodeError(f"{what} is rotated by {rotation} degrees: not possible for a render target, {kind} (KBL 19572-19597)")
    if image.width % 2 or image.height % 2:
        raise DecodeError(f"{what}, {image.width}x{image.height}, is rotated by {rotation} degrees: both must be even (KBL 19590-19591)")
    return rotation


def _slice_steps(image: SurfaceImage, level: int) -> tuple[int, int, int]:
    """Rows from slice to slice; or how many slices are beside each other (as a power of two), and pixels between them."""
    if image.layout == "packed":
        table = level_table(image)
        return int(table.down[level]), level, int(table.across[level])
    return (image.rows, 0, 0) if not image.across else (0, ALL_COLUMNS, image.across)


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
    block = m.broadcast(m.slice(places, 0, 1), places.lanes) + m.constant(u32, [0, 2, 2 << 16, 2 << 16 | 2][: places.lanes])
    return Pixels(x, y, m.all(places == block))


def inside(m: Machine, view: RecordView, pixels: Pixels) -> Value:
    """The pixels inside a surface."""
    width, height = (m.broadcast(view.load(name), pixels.lanes) for name in ("width", "height"))
    return (pixels.x < width) & (pixels.y < height)


def _rotated(m: Machine, view: RecordView, pixels: Pixels, rotation: int) -> Pixels:
    """Where pixels of a rotated target are in memory. The hardware rotates clockwise (public: i915 skl_plane_ctl_rotate, of planes)."""
    last_column, last_row = (m.broadcast(view.load(name), pixels.lanes) - 1 for name in ("width", "height"))
    return Pixels(last_row - pixels.y, pixels.x) if rotation == 90 else Pixels(pixels.y, last_column - pixels.x)


def _interleaved(m: Machine, pixels: Pixels, sample: PixelSample) -> Pixels:
    """Where a sample of pixels is in memory."""
    number = sample.number
    lanes = m.constant(u32, number, pixels.lanes) if isinstance(number, int) else m.broadcast(number, pixels.lanes)
    return Pixels(*samples.interleave(m, sample.samples, pixels.x, pixels.y, lanes))


class PixelAddresses:
    """The addresses of pixels of `size` bytes in a surface. An array index that the surface does not have counts as its first (KBL
    20625-20629)."""

    def __init__(self, m: Machine, view: RecordView, tiled: str, size: int, pixels: Pixels, layer: Value, rotation: int = 0,
                 sample: PixelSample | None = None) -> None:  # fmt: skip
        self.m, self.tiled, self.size, self.pixels = m, tiled, size, pixels if not rotation else _rotated(m, view, pixels, rotation)
        self.shape = block_shape(tiled, size, pixels.lanes) if not rotation else None
        index = m.select(layer < view.load("slices"), layer, m.like(layer, 0)) + view.load("first")
        self.pitch = view.load("pitch")
        if sample is not None and sample.interleaved:
            self.pixels, self.shape = _interleaved(m, pixels, sample), None
        elif sample is not None:
            self._enter_slice(view, index, sample)
            return
        columns = view.load("columns")
        beside = index & (m.like(index, 1) << columns) - 1
        self.left, self.top = beside * view.load("across") + view.load("left"), (index >> columns) * view.load("rows") + view.load("top")

    def _enter_slice(self, view: RecordView, index: Value, sample: PixelSample) -> None:
        """The slices of an array element's samples follow one another; pixels of different slices are no block."""
        number, first, rows, top = sample.number, index * sample.samples, view.load("rows"), view.load("top")
        if isinstance(number, Value) and number.lanes > 1:
            self.shape = None
            first, rows, top = (self.m.broadcast(value, number.lanes) for value in (first, rows, top))
        self.left, self.top = view.load("left"), (first + number) * rows + top

    def _offsets(self, x: Value, y: Value) -> Value:
        m = self.m
        left, top, pitch = (value if value.lanes == x.lanes else m.broadcast(value, x.lanes) for value in (self.left, self.top, self.pitch))
        return tiling.offset(m, self.tiled, pitch, (x + left) * self.size, y + top)

    def all(self) -> Value:
        """Offsets from the surface's base."""
        return self._offsets(self.pixels.x, self.pixels.y)

    def _first(self, row: int = 0) -> Value:
        """The offset of the first pixel, or of the one some rows below it."""
        x, y = (self.m.slice(value, 0, 1) for value in (self.pixels.x, self.pixels.y))
        return self._offsets(x, y + row if row else y)

    def load(self, type: LaneType, memory: Region, mask: Value) -> Value:
        """Words of pixels."""
        m, shape = self.m, self.shape
        if shape is None:
            return m.load(type, memory, self.all(), mask)
        found, first = m.variable(m.constant(type, 0, mask.lanes)), self._first()
        for _ in m.If(self._is_block(shape, first)):
            on, count = m.shuffle(mask, shape.order), mask.lanes // shape.pieces
            parts = [m.load_block(type, count, memory, self._first(row) if row else first, m.slice(on, row * count, count))
                     for row in range(shape.pieces)]  # fmt: skip
            found.value = m.shuffle(m.concat(*parts), [shape.order.index(channel) for channel in range(mask.lanes)])
        for _ in m.Else():
            found.value = m.load(type, memory, self.all(), mask)
        return found.value

    def store(self, value: Value, memory: Region, mask: Value) -> None:
        m, shape = self.m, self.shape
        if shape is None:
            m.store(value, memory, self.all(), mask)
            return
        first = self._first()
        for _ in m.If(self._is_block(shape, first)):
            given, on, count = m.shuffle(value, shape.order), m.shuffle(mask, shape.order), mask.lanes // shape.pieces
            for row in range(shape.pieces):
                part, some = m.slice(given, row * count, count), m.slice(on, row * count, count)
                m.store_block(part, memory, self._first(row) if row else first, some)
        for _ in m.Else():
            m.store(value, memory, self.all(), mask)

    def _is_block(self, shape: BlockShape, first: Value) -> Value:
        even = (first & shape.align - 1) == 0
        return even if self.pixels.block is None else even & self.pixels.block

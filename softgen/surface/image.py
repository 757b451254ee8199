"""Images: a surface state understood, and where its texels are (public: Intel PRM, memory data formats; Mesa isl).

Levels of a picture stand below each other and from the third on beside the second; slices are `rows` apart.

Reads   RENDER_SURFACE_STATE
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softgen.bits.describe import value_name
from softgen.bits.formats import Format, surface_formats
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Value
from softgen.surface import tiling

TILINGS = {0: "linear", 1: "w_major", 2: "x_major", 3: "y_major"}
CHANNEL_NAMES = ("red", "green", "blue", "alpha")


@dataclass(frozen=True)
class SurfaceImage:
    """A surface of texels. Sizes are those of level 0 and of all there is, `first` the array element that counts as zero."""

    kind: str  # 1d 2d 3d cube buffer null
    format: Format
    base: int
    width: int
    height: int
    depth: int
    is_array: bool
    pitch: int
    tiling: str
    rows: int  # from one slice to the next
    levels: int
    level: int  # the level that messages call zero
    first: int
    align: tuple[int, int]
    at: tuple[int, int]  # texels that the picture begins after
    select: tuple[str, ...] = CHANNEL_NAMES  # what a reader gets as red, green, blue and alpha
    base_level: int = 0  # in halves: below it a picture is magnified
    samples: int = 1
    palette: int = 0
    across: int = 0  # texels from one slice to the next, where they stand side by side

    @property
    def size(self) -> int:
        """Bytes of a texel."""
        return self.format.bits // 8

    @property
    def coordinates(self) -> int:
        return {"1d": 1, "2d": 2, "cube": 2, "3d": 3, "buffer": 1, "null": 0}[self.kind] + (self.is_array and self.kind != "3d")


def broadcast_number(m: Machine, number: int | Value, type: LaneType, lanes: int) -> Value:
    """A number of an image in every lane."""
    if isinstance(number, Value):
        return m.broadcast(m.convert(number, type), lanes)
    return m.constant(type, number, lanes)


def image_from_state(layout: Layout, state: Record, what: str) -> SurfaceImage:
    """An image by its surface state; what is not simulated is refused by name."""
    kind = value_name(layout, state, "surface_type")
    format = surface_formats().get(state.surface_format)
    if kind == "strbuf" or format is None:
        raise Unsupported(f"{what} is a {kind} surface of format {state.surface_format}: not yet simulated for this message")
    if kind in ("buffer", "null"):
        entries = int(state.number_of_entries) if kind == "buffer" else 0
        return SurfaceImage(kind, format, int(state.surface_base_address), entries, 1, 1, False, state.surface_pitch + 1, "linear", 0, 1, 0,
                            0, (1, 1), (0, 0))  # fmt: skip
    if getattr(state, "number_of_multisamples", 0):
        raise Unsupported(f"{what} has number_of_multisamples {value_name(layout, state, 'number_of_multisamples')}: not yet simulated for "
                          "this message")  # fmt: skip
    align = _alignment(layout, state, "horizontal"), _alignment(layout, state, "vertical")
    width, height = int(state.width) + 1, (int(state.height) + 1 if kind != "1d" else 1)
    is_array = bool(state.surface_array) if "surface_array" in state._fields else False
    across = _across(state, kind)
    return SurfaceImage(
        kind, format, int(state.surface_base_address), width, height, int(state.depth) + 1, is_array, int(state.surface_pitch) + 1,
        _tiling(layout, state, kind, format, what),
        rows=0 if across else _rows(layout, state, kind, height, align[1]),
        levels=int(state.mip_count_lod) + 1,
        level=int(state.surface_min_lod),
        first=int(state.minimum_array_element),
        align=align,
        at=(int(state.x_offset_texels), int(state.y_offset_rows)),
        select=_select(layout, state),
        base_level=int(state.base_mip_level) if "base_mip_level" in state._fields else 0,
        palette=int(getattr(state, "multisample_position_palette_index", 0)),
        across=across,
    )  # fmt: skip


def _tiling(layout: Layout, state: Record, kind: str, format: Format, what: str) -> str:
    """Tiled resources order the bits of a tile by the size of a texel."""
    if not getattr(state, "tiled_resource_mode", 0):
        return TILINGS[int(state.tile_mode)]
    mode = value_name(layout, state, "tiled_resource_mode")
    if kind != "2d" or state.mip_count_lod or f"{mode}_{format.bits}" not in tiling.orders():
        described = f"a {kind} surface of {format.bits} bits with {state.mip_count_lod + 1} levels"
        raise Unsupported(f"{what} is {described} in {mode}: not yet simulated for this message")
    return f"{mode}_{format.bits}"


def _across(state: Record, kind: str) -> int:
    return int(state.qpitch_texels) if kind == "1d" and "qpitch_texels" in state._fields else 0


def _select(layout: Layout, state: Record) -> tuple[str, ...]:
    """What stands for red, green, blue and alpha (KBL 20098-20151)."""
    names = [f"shader_channel_select_{channel}" for channel in CHANNEL_NAMES]
    if names[0] not in state._fields:
        return CHANNEL_NAMES
    return tuple(value_name(layout, state, name) for name in names)


def _alignment(layout: Layout, state: Record, way: str) -> int:
    """Texels or rows that levels are aligned to."""
    name = f"surface_{way}_alignment"
    said = value_name(layout, state, name).split()[0] if name in state._fields else ""
    return int(said) if said.isdigit() else 4


def _rows(layout: Layout, state: Record, kind: str, height: int, align: int) -> int:
    """Rows from slice to slice (QPitch): a field, or by the size of the first two levels.

    Arrays of Gen7 with full spacing leave room for all levels, h0 + h1 + 12j; 11j is Sandy Bridge's and older (public Mesa isl.c,
    isl_calc_array_pitch_el_rows_gfx4_2d). Level 0 of a 3D surface has its slices one below the other.
    """
    if "qpitch_rows" in state._fields and state.qpitch_rows:
        return int(state.qpitch_rows)
    first, second = (-(-(max(height >> level, 1)) // align) * align for level in (0, 1))
    spaced = kind != "3d" and "surface_array_spacing" in state._fields and value_name(layout, state, "surface_array_spacing") == "full"
    return first + second + 12 * align if spaced else first


def levels(image: SurfaceImage) -> Iterator[tuple[int, int, int, int]]:
    """x, y, width and height of each level, in texels."""
    x = y = 0
    across, down = image.align
    for level in range(image.level + image.levels):
        width, height = max(image.width >> level, 1), max(image.height >> level, 1)
        yield x, y, width, height
        if level == 1:
            x += -(-width // across) * across
        else:
            y += -(-height // down) * down


def locate(m: Machine, image: SurfaceImage, coordinates: list[Value], lod: Value | None) -> tuple[Value, Value]:
    """The byte offset of texels from the base, and which of them there are. Coordinates and level are u32."""
    lanes = coordinates[0].lanes if coordinates else 1
    zero = m.constant(u32, 0, lanes)
    u, *rest = [*coordinates, *[zero] * 3][:3]
    if image.kind in ("buffer", "null"):
        if image.kind == "null":
            return m.convert(u, u64), m.constant(bool_, 0, lanes)
        return m.convert(u, u64) * broadcast_number(m, image.pitch, u64, lanes), u < broadcast_number(m, image.width, u32, lanes)
    v, r = (zero, rest[0]) if image.kind == "1d" else (rest[0], rest[1])
    if image.level or image.levels > 1:
        x, y, inside = _leveled(m, image, u, v, r, zero if lod is None else lod)
    else:
        x, y, inside = u, v, (u < broadcast_number(m, image.width, u32, lanes)) & (r < _slices(m, image, lanes))
        inside = inside if image.kind == "1d" else inside & (v < broadcast_number(m, image.height, u32, lanes))
        inside = inside if lod is None else inside & (lod == 0)
    far = [m.convert(value, u64) for value in (x, y, r)]
    slices = far[2] + broadcast_number(m, image.first, u64, lanes)
    down = far[1] + slices * broadcast_number(m, image.rows, u64, lanes) + image.at[1]
    along = far[0] + image.at[0] if image.kind != "1d" else far[0] + slices * broadcast_number(m, image.across, u64, lanes) + image.at[0]
    return tiling.offset(m, image.tiling, broadcast_number(m, image.pitch, u64, lanes), along * image.size, down), inside


def _leveled(m: Machine, image: SurfaceImage, u: Value, v: Value, r: Value, lod: Value) -> tuple[Value, Value, Value]:
    """Where a texel of a level stands in the picture of all levels, and whether it is there."""
    if image.kind in ("1d", "3d"):
        raise Unsupported(f"a {image.kind} surface with levels: not yet simulated for this message")
    x, y, inside = u, v, m.constant(bool_, 0, u.lanes)
    for level, (left, top, width, height) in enumerate(levels(image)):
        if level >= image.level:
            here = lod == level - image.level
            there = here & (u < width) & (v < height) & (r < _slices(m, image, u.lanes))
            x, y, inside = m.select(here, u + left, x), m.select(here, v + top, y), inside | there
    return x, y, inside


def _slices(m: Machine, image: SurfaceImage, lanes: int) -> Value:
    if image.kind != "3d" and not image.is_array:
        return m.constant(u32, 6 if image.kind == "cube" else 1, lanes)
    depth = broadcast_number(m, image.depth, u32, lanes)
    return depth * 6 if image.kind == "cube" else depth

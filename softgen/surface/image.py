"""SurfaceImage: a decoded surface state, and the addresses of its texels (public: Intel PRM, memory data formats; Mesa isl).

levels.py has the placement of mip levels; array slices are `rows` apart.

Reads   RENDER_SURFACE_STATE
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.formats import Format, surface_formats
from softgen.bits.generation import generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Value
from softgen.surface import blocks, tiling
from softgen.surface.levels import LevelTable, MipTail, level_table, lookup, mip_tail
from softgen.surface.samples import SampleControl, sample_fields, stored_fields, stored_rows
from softgen.surface.slices import slice_rows

CHANNEL_NAMES = ("red", "green", "blue", "alpha")
FACES = ("positive_x", "negative_x", "positive_y", "negative_y", "positive_z", "negative_z")
ALL_FACES = (1 << len(FACES)) - 1
NO_FORMAT = 0xC7  # R8G8B8A8_UNORM, in place of what null surfaces say: nothing of their state counts but the type (KBL 18924-18935)


@dataclass(frozen=True)
class SurfaceImage:
    """A surface of texels. Sizes are those of level 0 of the whole surface; `first` is the minimum array element."""

    kind: str  # 1d 2d 3d cube buffer null
    format: Format
    base: int
    width: int
    height: int
    depth: int
    is_array: bool
    pitch: int
    tiling: str
    rows: int  # from one array slice to the next (QPitch)
    levels: int
    level: int  # the surface's minimum LOD: the level that messages address as 0
    first: int
    align: tuple[int, int]
    at: tuple[int, int]  # X and Y offset of the image, in texels and rows
    select: tuple[str, ...] = CHANNEL_NAMES  # shader channel selects of red, green, blue and alpha
    base_level: int = 0  # base mip level
    samples: int = 1
    interleaved: bool = False  # samples are beside each other, not in slices (samples.py)
    control: SampleControl | None = None  # which slices have the samples
    palette: int = 0
    across: int = 0  # texels from one slice to the next, for 1D surfaces
    layout: str = "below"  # of levels and slices: below packed row (levels.py)
    resource_lod: int = 0  # resource minimum LOD, in 256ths
    near: bool = False  # offsets of texels fit in 32 bits, and the image is in one part of the address space
    lines: tuple[int, int] = (1, 0)  # from line to line, and the first: 2 where the image is a field of a frame
    averages_corners: bool = True  # the texel that a cube map lacks at a corner is the average of the other three
    tail: MipTail | None = None  # levels that share a tile
    quilt: tuple[int, int] = (1, 1)  # slices across and down that the sampler takes as one image
    faces: int = ALL_FACES  # that a cube map has, a bit for each; the sampler has border colour for the others
    run_time: LevelTable | None = None  # in compiled programs
    entries: tuple[int, ...] = ()  # of the palette, where texels are indices into one
    linear: Value | None = None  # in compiled programs: the address of the table for sRGB (texel.linear_table), or of the palette

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    @property
    def size(self) -> int:
        """Bytes of a texel, or of a block of them."""
        return self.format.bits // 8

    @property
    def block(self) -> tuple[int, int]:
        """Texels across and down of what has an address: more than one where they are compressed. Distances of levels and slices,
        alignments, and X and Y offset count these."""
        return self.format.block

    @property
    def mipmapped(self) -> bool:
        """Whether there is more to address than level 0 of the whole surface. Compiled programs read the numbers at run time."""
        return _at_run_time(self.levels) or self.levels != 1 or self.level != 0

    @property
    def partial(self) -> bool:
        """Whether it is a cube map without some of its faces."""
        return self.faces != ALL_FACES

    @property
    def moved(self) -> bool:
        """Whether the image begins at an X or Y offset."""
        return any(_at_run_time(offset) or offset != 0 for offset in self.at)

    @cached_property
    def table(self) -> LevelTable:
        return self.run_time or level_table(self)

    def level_box(self, level: int) -> tuple[int, int, int, int]:
        """Place, width and height of a level of the whole surface, in texels and rows, of an image whose sizes are numbers."""
        table = level_table(self)
        assert isinstance(table.left, tuple) and isinstance(table.top, tuple)
        return table.left[level], table.top[level], max(self.width >> level, 1), max(self.height >> level, 1)

    @property
    def coordinates(self) -> int:
        return {"1d": 1, "2d": 2, "cube": 2, "3d": 3, "buffer": 1, "null": 0}[self.kind] + (self.is_array and self.kind != "3d")


def _at_run_time(number: object) -> bool:
    """Whether a property of an image is a lane of a compiled program."""
    return isinstance(number, Value)


def broadcast_number(m: Machine, number: float | Value, type: LaneType, lanes: int) -> Value:
    """A property of an image, a number or a lane, in every lane."""
    if isinstance(number, Value):
        return m.broadcast(m.convert(number, type), lanes)
    return m.constant(type, number, lanes)


def image_from_state(layout: Layout, state: Record, what: str) -> SurfaceImage:
    """The image that a surface state describes; raises Unsupported for surfaces that are not simulated."""
    try:
        return _decoded(layout.gen, state)
    except (Unsupported, DecodeError) as error:
        raise type(error)(f"{what} {error}") from None


@lru_cache(1024)
def _decoded(gen: float, state: Record) -> SurfaceImage:
    """The image of a state; every draw asks for its textures again. Errors are sentences without their subject."""
    layout = catalogue.layout("RENDER_SURFACE_STATE", gen)
    kind = value_name(layout, state, "surface_type")
    format = surface_formats().get(NO_FORMAT if kind == "null" else state.surface_format)
    whole = kind in ("buffer", "null")
    if kind == "strbuf" or format is None or not (format.bits or whole):  # planar and raw formats have no texels
        name = state.surface_format if format is None else format.name
        raise Unsupported(f"is a {kind} surface of format {name}: not yet simulated for this message")
    if whole:
        entries, pitch = int(state.number_of_entries) if kind == "buffer" else 0, int(state.surface_pitch) + 1
        base = int(state.surface_base_address)
        image = SurfaceImage(kind, format, base, entries, 1, 1, False, pitch, "linear", 0, 1, 0, 0, (1, 1), (0, 0), _select(layout, state))
        return replace(image, near=is_near(image.base, entries * pitch))
    align = _alignment(layout, state, "horizontal", 0), _alignment(layout, state, "vertical", 1)
    width, height = int(state.width) + 1, (int(state.height) + 1 if kind != "1d" else 1)
    across, arrangement = int(state.qpitch_texels) if _in_row(state, kind) else 0, _layout(layout, state, kind)
    image = SurfaceImage(
        kind, format, int(state.surface_base_address), width, height, int(state.depth) + 1, _is_array(state, kind),
        int(state.surface_pitch) + 1,
        _tiling(layout, state, kind, format),
        rows=0 if across else slice_rows(layout, state, arrangement, stored_rows(layout, state, height), align[1]),
        levels=int(state.mip_count_lod) + 1,
        level=int(state.surface_min_lod),
        first=int(state.minimum_array_element),
        align=align,
        at=(int(state.x_offset_texels), int(state.y_offset_rows)),
        select=_select(layout, state),
        base_level=int(state.base_mip_level) if "base_mip_level" in state._fields else 0,
        palette=int(getattr(state, "multisample_position_palette_index", 0)),
        across=across,
        layout=arrangement,
        resource_lod=int(getattr(state, "resource_min_lod", 0)),
        lines=_lines(state, kind),
        averages_corners=bool(getattr(state, "cube_map_corner_mode", 1)),
        faces=_faces(state) if kind == "cube" else ALL_FACES,
        quilt=(int(getattr(state, "quilt_width", 0)) + 1, int(getattr(state, "quilt_height", 0)) + 1),
    )  # fmt: skip
    image, samples = _in_tiles(gen, _in_blocks(gen, image), state), sample_fields(layout, state, format, height)
    image = replace(image, **samples) if samples else image
    return replace(image, near=is_near(image.base, reach(as_stored(image))))


def _in_blocks(gen: float, image: SurfaceImage) -> SurfaceImage:
    """A compressed image's numbers of texels as numbers of blocks."""
    wide, high = image.block
    moved = image if wide == high == 1 else replace(image, at=(image.at[0] // wide, image.at[1] // high))
    if moved is image or generation(gen).levels_in_blocks:
        return moved
    return replace(moved, align=(max(image.align[0] // wide, 1), max(image.align[1] // high, 1)), rows=-(-image.rows // high))


def _in_tiles(gen: float, image: SurfaceImage, state: Record) -> SurfaceImage:
    """A tiled resource: levels begin with tiles, the last ones share one (KBL 19821-19858)."""
    if not getattr(state, "tiled_resource_mode", 0):
        return image
    order, large = tiling.orders()[image.tiling], image.tiling.startswith("tileys")
    align = (1 << order.count("X")) // image.size, 1 << order.count("Y")
    ascending = generation(gen).mip_tail_order == "ascending"
    return replace(image, align=align, tail=mip_tail(int(state.mip_tail_start_lod), image.format.bits, large, ascending))


def as_stored(image: SurfaceImage) -> SurfaceImage:
    """A multisampled image as the one of one sample that is in memory."""
    return replace(image, **stored_fields(image.samples, image.interleaved, (image.width, image.height), (image.depth, image.first)))


def is_near(base: int, size: int) -> bool:
    """Whether an image is inside one aligned 4 GiB of addresses and its dwords are aligned."""
    return base % (1 << u32.bits) + size <= 1 << u32.bits and not base % u32.bytes


def reach(image: SurfaceImage) -> int:
    """Bytes from the base on that texels of any level may occupy, in whole tiles."""
    table, slices = level_table(image), (image.depth if image.is_array or image.kind == "3d" else 1) * (6 if image.kind == "cube" else 1)
    last, packed = image.first + slices - 1, image.layout == "packed"
    beside = enumerate(zip(table.left, table.across, strict=True))
    wide: int = max(left + (across << level if packed else across) for level, (left, across) in beside)
    high: int = max(top + down for top, down in zip(table.top, table.down, strict=True))
    order = "" if image.tiling == "linear" else tiling.orders()[image.tiling]
    deep = order.count("Z")
    columns = (wide + last * image.across + image.at[0]) * image.size
    rows = (high + (last >> deep) * image.rows + image.at[1]) * image.lines[0]
    return ((rows - 1) * image.pitch << deep) + (columns - 1 << order.count("Y") + deep) + (1 << len(order))


def _faces(state: Record) -> int:
    """The faces of a cube map that are enabled (KBL 19177-19263)."""
    return sum(1 << number for number, name in enumerate(FACES) if getattr(state, f"cube_face_enable_{name}"))


def _is_array(state: Record, kind: str) -> bool:
    """Gen4.5 has no bit that says so: there the depth of 1D and 2D surfaces does."""
    if "surface_array" in state._fields:
        return bool(state.surface_array)
    return kind in ("1d", "2d") and int(state.depth) > 0


def _layout(layout: Layout, state: Record, kind: str) -> str:
    """The name of the level layout."""
    if "mip_map_layout_mode" in state._fields and state.mip_map_layout_mode and state.mip_count_lod:
        raise Unsupported(f"has mip_map_layout_mode {value_name(layout, state, 'mip_map_layout_mode')}: not yet simulated")
    if kind in generation(layout.gen).packed_surfaces:
        return "packed"
    return "row" if _in_row(state, kind) else "below"


def _tiling(layout: Layout, state: Record, kind: str, format: Format) -> str:
    """The name of the tiling; tiled resources (TileYf, TileYs) have one for each texel size."""
    if not getattr(state, "tiled_resource_mode", 0):
        return tiling.NAMES[int(state.tile_mode)]
    mode = value_name(layout, state, "tiled_resource_mode")
    if kind == "1d":
        raise DecodeError(f"is a 1D surface in {mode}, which 1D surfaces cannot be (KBL 19769-19770)")
    name, tail = f"{mode}_3d_{format.bits}" if kind == "3d" else f"{mode}_{format.bits}", state.mip_tail_start_lod <= state.mip_count_lod
    if name not in tiling.orders() or kind == "3d" and tail:  # where the levels of a 3D mip tail are is in no manual at hand
        described = f"a {kind} surface of {format.bits} bits with {state.mip_count_lod + 1} levels"
        raise Unsupported(f"is {described} in {mode}{', some in a mip tail' if tail else ''}: not yet simulated for this message")
    return name


def _lines(state: Record, kind: str) -> tuple[int, int]:
    """Every line, or every other one of a 2D surface that is no array, from the first or second on (KBL 19102-19120)."""
    if kind != "2d" or not state.vertical_line_stride or _is_array(state, kind):
        return 1, 0
    return 2, int(state.vertical_line_stride_offset)


def _in_row(state: Record, kind: str) -> bool:
    """Whether levels and slices are in one row: linear 1D surfaces since Gen9. Tiled ones are as they were (KBL 19096-19101; public: Mesa
    isl.c, isl_surf_choose_dim_layout)."""
    return kind == "1d" and "qpitch_texels" in state._fields and not state.tile_mode


def _select(layout: Layout, state: Record) -> tuple[str, ...]:
    """The shader channel selects (KBL 20098-20151)."""
    names = [f"shader_channel_select_{channel}" for channel in CHANNEL_NAMES]
    if names[0] not in state._fields:
        return CHANNEL_NAMES
    return tuple(value_name(layout, state, name) for name in names)


def _alignment(layout: Layout, state: Record, way: str, axis: int) -> int:
    """The alignment of mip levels in texels or rows: a field, or fixed for the generation."""
    name = f"surface_{way}_alignment"
    said = value_name(layout, state, name).split()[0] if name in state._fields else ""
    return int(said) if said.isdigit() else int(generation(layout.gen).level_alignment[axis])


def locate(m: Machine, image: SurfaceImage, coordinates: list[Value], lod: Value | None, type: LaneType = u64) -> tuple[Value, Value]:
    """The byte offsets of texels from the base, and the lanes whose coordinates are inside the image. Coordinates and LOD are u32.
    Offsets may be u32 where the image is `near`."""
    lanes = coordinates[0].lanes
    zero = m.constant(u32, 0, lanes)
    u, rest = coordinates[0], [*coordinates[1:], zero, zero]
    if image.kind in ("buffer", "null"):
        if image.kind == "null":
            return m.convert(u, type), m.constant(bool_, 0, lanes)
        return m.convert(u, type) * broadcast_number(m, image.pitch, type, lanes), u < broadcast_number(m, image.width, u32, lanes)
    v, r = (zero, rest[0]) if image.kind == "1d" else (rest[0], rest[1])
    level = None
    if image.mipmapped:
        asked = zero if lod is None else lod
        inside = asked < broadcast_number(m, image.levels, u32, lanes)
        level = m.select(inside, asked, 0) + broadcast_number(m, image.level, u32, lanes)
    else:
        inside = m.constant(bool_, 1, lanes) if lod is None else lod == 0
    inside = inside & (u < extent(m, image, 0, level, lanes)) & (r < slices(m, image, level, lanes))
    if image.kind != "1d":
        inside = inside & (v < extent(m, image, 1, level, lanes))
    return offset(m, image, u, v, r, level, type), inside


def extent(m: Machine, image: SurfaceImage, axis: int, level: Value | None, lanes: int) -> Value:
    """Texels along an axis of a level (u32), counted from level 0 of the whole surface."""
    full = broadcast_number(m, (image.width, image.height, image.depth)[axis], u32, lanes)
    return full if level is None else m.max(full >> (level & u32.bits - 1), 1)


def slices(m: Machine, image: SurfaceImage, level: Value | None, lanes: int) -> Value:
    """Slices of a level: array elements, cube faces, or planes of a 3D surface."""
    if image.kind == "3d":
        return extent(m, image, 2, level, lanes)
    if not image.is_array:
        return m.constant(u32, 6 if image.kind == "cube" else 1, lanes)
    depth = broadcast_number(m, image.depth, u32, lanes)
    return depth * 6 if image.kind == "cube" else depth


def offset(m: Machine, image: SurfaceImage, u: Value, v: Value, r: Value, level: Value | None, type: LaneType) -> Value:
    """The byte offset of a texel that is inside: a part for its column and a part for its row."""
    return row_offset(m, image, v, r, level, type) + column_offset(m, image, u, r, level, type)


def column_offset(m: Machine, image: SurfaceImage, u: Value, r: Value, level: Value | None, type: LaneType) -> Value:
    """The part of a texel's offset that its column decides, with its slice where slices are beside each other."""
    lanes, column = u.lanes, m.convert(blocks.block_of(m, u, image.block[0]) if blocks.compressed(image.format) else u, type)
    if image.layout == "packed":
        if level is not None:
            beside = r & ((m.constant(u32, 1, lanes) << (level & u32.bits - 1)) - 1)
            column = column + m.convert(beside * lookup(m, image.table.across, level), type)
    elif image.kind == "1d":
        column = column + _slices_apart(m, image, r, image.across, type)
    if level is not None:
        column = column + m.convert(lookup(m, image.table.left, level), type)
    if image.moved:
        column = column + broadcast_number(m, image.at[0], type, lanes)
    return tiling.column(m, image.tiling, column * image.size)


def row_offset(m: Machine, image: SurfaceImage, v: Value, r: Value, level: Value | None, type: LaneType) -> Value:
    """The part of a texel's offset that its row and slice decide."""
    lanes, row = v.lanes, m.convert(blocks.block_of(m, v, image.block[1]) if blocks.compressed(image.format) else v, type)
    tile = tiling.slices(image.tiling)
    if tile:  # a tile has slices: rows count those of one (KBL 19311-19313)
        r = r + broadcast_number(m, image.first, u32, lanes)
        row = row + m.convert(r >> tile, type) * broadcast_number(m, image.rows, type, lanes)
    elif image.layout == "packed" and level is not None:
        row = row + m.convert((r >> (level & u32.bits - 1)) * lookup(m, image.table.down, level), type)
    else:
        row = row + _slices_apart(m, image, r, image.rows, type)
    if level is not None:
        row = row + m.convert(lookup(m, image.table.top, level), type)
    if image.moved:
        row = row + broadcast_number(m, image.at[1], type, lanes)
    step, first = image.lines
    if step > 1:
        row = row * step + first
    found = tiling.row(m, image.tiling, broadcast_number(m, image.pitch, type, lanes), row)
    return found + tiling.slice_part(image.tiling, m.convert(r, type)) if tile else found


def _slices_apart(m: Machine, image: SurfaceImage, r: Value, apart: int | Value, type: LaneType) -> Value:
    """The distance of a slice from the first of the whole surface."""
    start = broadcast_number(m, image.first * apart, type, r.lanes)
    if not image.is_array and image.kind not in ("3d", "cube"):
        return start
    return m.convert(r, type) * broadcast_number(m, apart, type, r.lanes) + start

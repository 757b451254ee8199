"""Images: what a surface state says, and where texels are, worked out again one texel at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32, u64
from softgen.surface.image import SurfaceImage, image_from_state, locate, reach

RGBA8 = 0xC7  # R8G8B8A8_UNORM
KINDS = {"1d": 0, "2d": 1, "3d": 2, "cube": 3, "buffer": 4, "strbuf": 5}


def made(gen: float, kind: str = "2d", **values: Any) -> SurfaceImage:
    """A surface of 16 x 10 texels and three slices, linear, rows of 64 bytes."""
    page = layout("RENDER_SURFACE_STATE", gen)
    fields = {"surface_type": KINDS[kind], "surface_format": RGBA8, "width": 15, "height": 9, "depth": 2, "surface_pitch": 63}
    fields |= {f"cube_face_enable_{sign}_{axis}": 1 for sign in ("negative", "positive") for axis in "xyz" if kind == "cube"} | values
    return image_from_state(page, page.unpack(page.pack(**fields)), "surface 0")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind, array, layout", [("2d", True, "below"), ("2d", False, "below"), ("3d", False, "packed"),
                                                 ("cube", False, "packed")])  # fmt: skip
def test_surfaces_of_gen45_have_alignments_and_arrays_by_rule(kind: str, array: bool, layout: str) -> None:
    """No field says it: 4 texels and 2 rows, h0 + h1 + 11j, and an array where there is depth (public Mesa isl.c, isl_gfx4.c)."""
    image = made(4.5, kind, depth=2 if array or kind == "3d" else 0, tiled_surface=1, tile_walk=1, mip_count_lod=1)
    assert (image.align, image.is_array, image.layout, image.tiling, image.levels) == ((4, 2), array, layout, "y_major", 2)
    assert image.rows == (10 if layout == "packed" else 10 + 6 + 22)
    with pytest.raises(Unsupported, match="mip_map_layout_mode right"):
        made(4.5, mip_map_layout_mode=1, mip_count_lod=1)


@pytest.mark.parametrize("gen, layouts", [(7, ("packed", "below", "below")), (7.5, ("packed", "below", "below")),
                                          (8, ("packed", "below", "below")), (9, ("below", "below", "row")),
                                          (11, ("below", "below", "row"))])  # fmt: skip
def test_layouts_of_later_generations(gen: float, layouts: tuple[str, ...]) -> None:
    assert tuple(made(gen, kind).layout for kind in ("3d", "cube", "1d")) == layouts


@pytest.mark.parametrize("gen", [9, 11])
def test_tiled_1d_surfaces_are_laid_out_like_2d_ones(gen: float) -> None:
    """Depth buffers of 1D textures are such (public: Mesa isl.c): levels below each other, QPitch in rows."""
    image = made(gen, "1d", tile_mode=3, surface_array=1, surface_qpitch=2, surface_vertical_alignment=1, mip_count_lod=2)
    assert (image.layout, image.rows, image.across, image.level_box(1)[:2]) == ("below", 8, 0, (0, 4))
    assert made(gen, "1d", surface_array=1, surface_qpitch=2).across == 8


# h0 + h1 + 12j, with heights aligned to j (public Mesa isl.c: "the QPitch equation changed slightly in Ivybridge").
@pytest.mark.parametrize("gen", [7, 7.5])
@pytest.mark.parametrize("alignment, rows", [(0, 10 + 6 + 24), (1, 12 + 8 + 48)])
def test_slices_of_gen7_with_full_spacing(gen: float, alignment: int, rows: int) -> None:
    for kind in ("2d", "cube"):
        assert made(gen, kind, surface_array=1, surface_vertical_alignment=alignment, surface_array_spacing=0).rows == rows


@pytest.mark.parametrize("gen", [7, 7.5])
@pytest.mark.parametrize("alignment, rows", [(0, 10), (1, 12)])
def test_slices_of_gen7_with_level_0_only(gen: float, alignment: int, rows: int) -> None:
    assert made(gen, surface_array=1, surface_vertical_alignment=alignment, surface_array_spacing=1).rows == rows


@pytest.mark.parametrize("gen", [7, 7.5])
def test_slices_of_a_3d_surface_are_one_below_the_other(gen: float) -> None:
    assert made(gen, "3d", surface_vertical_alignment=1, surface_array_spacing=0).rows == 12


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_later_generations_say_it_in_a_field(gen: float) -> None:
    assert made(gen, surface_array=1, surface_vertical_alignment=1, surface_qpitch=5).rows == 20


def test_a_texel_of_the_last_slice() -> None:
    image, m = made(7, surface_array=1, surface_vertical_alignment=0, surface_array_spacing=0), NumpyMachine()
    at = [m.constant(u32, number, 1) for number in (3, 1, 2)]
    where, inside = locate(m, image, at, None)
    assert np.asarray(where.payload).tolist() == [(2 * 40 + 1) * 64 + 3 * 4] and np.asarray(inside.payload).all()


# -- every texel ---------------------------------------------------------------------------------------------------


def plain(kind: str, size: tuple[int, int, int], **values: Any) -> SurfaceImage:
    """A linear image of 4-byte texels, levels aligned to 4 x 2."""
    image = SurfaceImage(kind, surface_formats()[RGBA8], 0, *size, is_array=False, pitch=256, tiling="linear", rows=50, levels=1, level=0,
                         first=0, align=(4, 2), at=(0, 0))  # fmt: skip
    return replace(image, **values)


def up(number: int, step: int) -> int:
    return (number + step - 1) // step * step


def corner(image: SurfaceImage, level: int) -> tuple[int, int]:
    """Level 1 is below level 0, level 2 right of level 1, the others below level 2 (public: Mesa isl, gfx4_2d)."""
    sizes = [(up(max(image.width >> n, 1), image.align[0]), up(max(image.height >> n, 1), image.align[1])) for n in range(level + 1)]
    if level == 0:
        return 0, 0
    return sizes[1][0] if level > 1 else 0, sizes[0][1] + sum(height for _, height in sizes[2:level])


def place(image: SurfaceImage, u: int, v: int, r: int, lod: int) -> int | None:
    """The byte offset of a texel; None where there is none."""
    level = image.level + lod
    slices = {"3d": max(image.depth >> level, 1), "cube": 6}.get(image.kind, 1) * (image.depth if image.is_array else 1)
    width, height = max(image.width >> level, 1), max(image.height >> level, 1) if image.kind != "1d" else 1
    if not (u < width and v < height and r < slices and lod < image.levels):
        return None
    if image.layout == "packed":
        planes = [6 if image.kind == "cube" else max(image.depth >> k, 1) for k in range(level + 1)]
        if r >= planes[level]:
            return None
        x = r % (1 << level) * up(width, image.align[0]) + u
        rows = [up(max(image.height >> k, 1), image.align[1]) for k in range(level + 1)]
        y = sum(rows[k] * -(-planes[k] // (1 << k)) for k in range(level)) + r // (1 << level) * rows[level] + v
        return x * 4 + y * image.pitch
    x, y = corner(image, level)
    if image.layout == "row":
        x, y = sum(up(max(image.width >> k, 1), 64) for k in range(level)), 0
    if image.kind == "1d":
        slice = r + image.first
        return (x + u + slice * image.across + image.at[0]) * 4 + (y + slice * image.rows + image.at[1]) * image.pitch
    return (x + u + image.at[0]) * 4 + (y + v + (r + image.first) * image.rows + image.at[1]) * image.pitch


IMAGES = {
    "2d": plain("2d", (7, 5, 1)),
    "2d array": plain("2d", (7, 5, 3), is_array=True),
    "2d array from an element on": plain("2d", (7, 5, 3), is_array=True, first=2),
    "2d levels": plain("2d", (13, 11, 1), levels=4),
    "2d array levels": plain("2d", (6, 9, 2), is_array=True, levels=3, first=1),
    "levels from the second on": plain("2d", (13, 11, 1), levels=2, level=1),
    "one level, the third": plain("2d", (13, 11, 1), levels=1, level=2),
    "moved": plain("2d", (7, 5, 1), at=(8, 6)),
    "cube": plain("cube", (4, 4, 1)),
    "cube array": plain("cube", (4, 4, 2), is_array=True),
    "cube levels": plain("cube", (6, 6, 1), levels=2),
    "1d": plain("1d", (9, 1, 1)),
    "1d array": plain("1d", (9, 1, 3), is_array=True, across=16, rows=0, first=1),
    "1d array in rows": plain("1d", (9, 1, 3), is_array=True, first=1),
    "1d moved": plain("1d", (9, 1, 1), at=(4, 0)),
    "1d levels": plain("1d", (9, 1, 2), is_array=True, levels=3),
    "1d levels in a row": plain("1d", (70, 1, 2), is_array=True, levels=3, across=256, rows=0, layout="row"),
    "3d": plain("3d", (5, 4, 3)),
    "3d levels": plain("3d", (9, 6, 5), levels=3, level=1),
    "3d packed": plain("3d", (9, 6, 5), levels=4, layout="packed"),
    "cube packed": plain("cube", (8, 8, 1), levels=4, layout="packed"),
    "packed from the second on": plain("3d", (9, 6, 11), levels=2, level=1, layout="packed"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_every_texel_and_those_around(name: str) -> None:
    image, m = replace(IMAGES[name]), NumpyMachine()  # a table of its own
    axes = [range(image.width + 2), range(1 if image.kind == "1d" else image.height + 2), range(14), range(image.levels + 2)]
    points, there = list(itertools.product(*axes)), 0
    for start in range(0, len(points), 256):
        part = points[start : start + 256]
        u, v, r, lod = (m.value(u32, np.array(column, np.uint32)) for column in zip(*part, strict=True))
        where, inside = locate(m, image, [u, r] if image.kind == "1d" else [u, v, r], lod)
        wanted = [place(image, *point) for point in part]
        for point, found, is_inside, at in zip(part, where.payload.tolist(), inside.payload.tolist(), wanted, strict=True):
            assert is_inside == (at is not None) and (at is None or found == at), point
        there += sum(at is not None for at in wanted)
    assert there


@pytest.mark.covering(2)
@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("deeper", [1, 300])
def test_no_texel_is_out_of_reach(name: str, tiling: str, deeper: int) -> None:
    """The bytes that an image may occupy are rather too many, but not many more: what is near is quicker."""
    image, m = replace(IMAGES[name], tiling=tiling, pitch=512, depth=IMAGES[name].depth * deeper), NumpyMachine()
    last = []
    for lod in range(image.levels):
        width, height = (max(size >> image.level + lod, 1) for size in (image.width, image.height))
        planes = max(image.depth >> image.level + lod, 1) if image.kind == "3d" else image.depth if image.is_array else 1
        count = planes * (6 if image.kind == "cube" else 1)
        u, v, r = (m.constant(u32, size - 1, 1) for size in (width, height, count))
        where, inside = locate(m, image, [u, r] if image.kind == "1d" else [u, v, r], m.constant(u32, lod, 1))
        assert inside.payload[0]
        last.append(int(where.payload[0]))
    assert max(last) + 4 <= reach(image)
    assert image.layout == "packed" or reach(image) <= 4 * max(last) + (1 << 16)


# In a linear image it is the last byte of the box around all 16 levels, whose heights are 6 and 2 for each of the others, but for level 1,
# which is beside them: 34 rows; 8 columns, of 4 bytes.
@pytest.mark.parametrize(("changes", "bytes_"), [
    ({}, 33 * 256 + 32),
    ({"at": (8, 6)}, 39 * 256 + 64),
    ({"depth": 3}, 33 * 256 + 32),
    ({"depth": 3, "is_array": True}, (33 + 2 * 50) * 256 + 32),
    ({"depth": 3, "is_array": True, "first": 2}, (33 + 4 * 50) * 256 + 32),
    ({"kind": "cube"}, (33 + 5 * 50) * 256 + 32),
    ({"kind": "cube", "depth": 2, "is_array": True}, (33 + 11 * 50) * 256 + 32),
    ({"kind": "3d", "depth": 3}, (33 + 2 * 50) * 256 + 32),
    ({"depth": 3, "is_array": True, "first": 1, "rows": 0, "across": 16}, 33 * 256 + 32 + 3 * 64),
    ({"lines": (2, 1)}, 67 * 256 + 32),
    ({"layout": "packed", "height": 1}, 31 * 256 + (4 << 15) * 4),  # as many slices beside each other as the last level may have
    ({"tiling": "x_major"}, 33 * 256 + (31 << 3) + 4096),
    ({"tiling": "tileyf_3d_32", "kind": "3d", "depth": 17}, (((33 + 2 * 50) * 256) << 3) + (31 << 7) + 4096),  # slices 0-7, 8-15 and 16-23
])  # fmt: skip
def test_how_far_an_image_reaches(changes: dict[str, Any], bytes_: int) -> None:
    assert reach(replace(plain("2d", (7, 5, 1)), **changes)) == bytes_


@pytest.mark.parametrize("name, size", [("ASTC_LDR_2D_6X5_FLT16", 16), ("ASTC_LDR_2D_10X8_FLT16", 16), ("BC1_UNORM", 8),
                                        ("YCRCB_NORMAL", 4)])  # fmt: skip
def test_texels_of_blocks_are_where_their_block_is(name: str, size: int) -> None:
    """Blocks may be wider than high; of packed YUV, two texels are one."""
    m, (format,) = NumpyMachine(), [item for item in surface_formats().values() if item.name == name]
    image, (wide, high) = replace(plain("2d", (40, 30, 1)), format=format, pitch=1024), format.block
    u, v = np.arange(40, dtype=np.uint32), np.arange(40, dtype=np.uint32) * 7 % 30
    where, inside = locate(m, image, [m.value(u32, u), m.value(u32, v)], None)
    assert where.payload.tolist() == (v // high * 1024 + u // wide * size).tolist() and inside.payload.all()


@pytest.mark.parametrize("name", ["2d levels", "3d", "1d levels in a row"])
def test_properties_of_an_image_may_be_lanes(name: str) -> None:
    """Compiled programs read them at run time, and find the same texels."""
    image, m = replace(IMAGES[name]), NumpyMachine()
    properties = {key: m.constant(u32, getattr(image, key), 1) for key in ("width", "height", "depth", "pitch", "rows", "levels", "across")}
    u, v, r = (m.value(u32, np.arange(24, dtype=np.uint32) % size) for size in (11, 7, 3))
    at, lod = [u, r] if image.kind == "1d" else [u, v, r], m.value(u32, np.arange(24, dtype=np.uint32) % 4)
    (where, inside), wanted = locate(m, replace(image, **properties, run_time=image.table), at, lod), locate(m, image, at, lod)
    assert inside.payload.tolist() == wanted[1].payload.tolist() and inside.payload.any() and not inside.payload.all()
    assert where.payload[inside.payload].tolist() == wanted[0].payload[inside.payload].tolist()


def test_without_a_level_it_is_the_first() -> None:
    m = NumpyMachine()
    for item in (IMAGES["2d"], IMAGES["2d levels"], IMAGES["levels from the second on"]):
        where, inside = locate(m, item, [m.constant(u32, number, 1) for number in (3, 2, 0)], None)
        assert where.payload[0] == place(item, 3, 2, 0, 0) and inside.payload[0]


def test_buffers_and_null_surfaces() -> None:
    m, numbers = NumpyMachine(), np.array([0, 1, 99, 100], np.uint32)
    where, inside = locate(m, plain("buffer", (100, 1, 1), pitch=12), [m.value(u32, numbers)], None)
    assert where.payload.tolist() == [0, 12, 1188, 1200] and inside.payload.tolist() == [True, True, True, False]
    for width in (0, 100):
        where, inside = locate(m, plain("null", (width, 1, 1)), [m.value(u32, numbers)], None)
        assert where.type is u64 and not inside.payload.any(), width


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7, 7.5, 8, 9, 11])
def test_of_a_null_surface_only_the_type_counts(gen: float) -> None:
    """All other fields are ignored (KBL 18918-18935), those that mean nothing elsewhere too: format, tiling, levels, samples."""
    page = layout("RENDER_SURFACE_STATE", gen)
    kind, whole = page.field("surface_type"), (1 << 32 * page.dwords) - 1
    null = 7 << kind.low
    for seed in range(20):
        random = int.from_bytes(np.random.default_rng(seed).bytes(4 * page.dwords), "little")
        for noise in (0, random, whole):
            bits = noise & ~kind.mask | null
            state = page.raw([bits >> 32 * n & 0xFFFFFFFF for n in range(page.dwords)])
            image = image_from_state(page, state, "surface 0")
            assert (image.kind, image.format.name, image.size, image.tiling) == ("null", "R8G8B8A8_UNORM", 4, "linear")


@pytest.mark.parametrize("kind", ["3d", "cube"])
def test_packed_slices_lie_as_the_words_of_isl_have_it(kind: str) -> None:
    """Level 2 of five planes: one plane; of six faces, which are not reduced: four beside each other, then two."""
    image, m = plain(kind, (16, 16, 5), levels=4, layout="packed", align=(4, 2)), NumpyMachine()
    planes = [5, 2, 1, 1] if kind == "3d" else [6] * 4
    below = [sum(up(16 >> k, 2) * -(-planes[k] // (1 << k)) for k in range(level)) for level in range(4)]
    for level in range(4):
        for q in range(planes[level]):
            x, y = q % (1 << level) * up(16 >> level, 4) + 1, below[level] + q // (1 << level) * up(16 >> level, 2)
            where, inside = locate(m, image, [m.constant(u32, number, 1) for number in (1, 0, q)], m.constant(u32, level, 1))
            assert where.payload[0] == 4 * x + 256 * y and inside.payload[0], (level, q)
        outside = locate(m, image, [m.constant(u32, number, 1) for number in (1, 0, planes[level])], m.constant(u32, level, 1))[1]
        assert not outside.payload[0]


def test_near_images_have_the_same_offsets_in_32_bits() -> None:
    m = NumpyMachine()
    for gen in (4.5, 7, 8, 9, 11):
        image = made(gen, mip_count_lod=2, width=99, height=99, depth=0, surface_pitch=511)
        assert image.near
        at = [m.value(u32, np.arange(24, dtype=np.uint32)) for _ in range(3)]
        far, close = (locate(m, image, [*at[:2], m.constant(u32, 0, 24)], m.constant(u32, 2, 24), type)[0] for type in (u64, u32))
        assert far.payload.tolist() == close.payload.tolist()
    assert not made(9, surface_array=1, depth=2047, surface_qpitch=4096, surface_pitch=(1 << 18) - 1).near


@pytest.mark.parametrize(("base", "near"), [(0, True), (0xFFFFF000, True), (0xFFFFF004, False), (0x1_FFFFF000, True), (0x1_FFFFFFFC, False),
                                            (0x1001, False), (0x1002, False)])  # fmt: skip
def test_images_within_4_gib_are_near(base: int, near: bool) -> None:
    """A buffer of 1024 dwords: up to the last byte of the 4 GiB that it begins in; dwords are gathered, so that they must be aligned."""
    assert made(9, "buffer", surface_base_address=base, width=127, height=7, depth=0, surface_pitch=3).near == near


# -- surface states ------------------------------------------------------------------------------------------------


def test_coordinates_that_a_message_gives() -> None:
    wanted = {"2d": 2, "2d array": 3, "cube": 2, "cube array": 3, "1d": 1, "1d array": 2, "3d": 3}
    assert {name: IMAGES[name].coordinates for name in wanted} == wanted
    assert replace(IMAGES["3d"], is_array=True).coordinates == 3 and plain("buffer", (1, 1, 1)).coordinates == 1


@pytest.mark.parametrize("gen", [7, 8, 9, 11])
def test_a_state_is_read(gen: float) -> None:
    image = made(gen, surface_array=1, minimum_array_element=3, mip_count_lod=2, surface_min_lod=1, x_offset=2, y_offset=3,
               surface_base_address=0x1000, surface_vertical_alignment=1, surface_horizontal_alignment=1)  # fmt: skip
    assert (image.kind, image.width, image.height, image.depth, image.pitch, image.base, image.size) == ("2d", 16, 10, 3, 64, 0x1000, 4)
    assert (image.is_array, image.first, image.levels, image.level, image.tiling) == (True, 3, 3, 1, "linear")
    assert image.at == ((8, 6) if gen < 8 else (8, 12)) and image.align == ((8, 4) if gen < 8 else (4, 4))


def test_what_a_state_does_not_say() -> None:
    """Buffers, and generations whose state has no such field: one row, no quilt, no least level; corners of cubes are averages."""
    buffer = made(9, "buffer", surface_pitch=23)
    assert (buffer.height, buffer.depth, buffer.levels, buffer.level, buffer.tiling) == (1, 1, 1, 0, "linear")
    assert (buffer.is_array, buffer.rows, buffer.first, buffer.align, buffer.at) == (False, 0, 0, (1, 1), (0, 0))
    for image in (buffer, made(7), plain("2d", (1, 1, 1))):
        assert (image.quilt, image.resource_lod, image.lines, image.averages_corners, image.partial) == ((1, 1), 0, (1, 0), True, False)
    assert made(9, quilt_width=2, quilt_height=4).quilt == (3, 5)


@pytest.mark.parametrize("gen", [4.5, 7, 8, 9, 11])
def test_faces_that_a_cube_map_has(gen: float) -> None:
    """A bit for each, from positive x on (KBL 19177-19263); with all of them there is nothing to take border colour for."""
    names = ("positive_x", "negative_x", "positive_y", "negative_y", "positive_z", "negative_z")
    assert (made(gen, "cube", depth=0).faces, made(gen, "cube", depth=0).partial) == (0b111111, False)
    for number, name in enumerate(names):
        image = made(gen, "cube", depth=0, **{f"cube_face_enable_{name}": 0})
        assert (image.faces, image.partial) == (0b111111 ^ 1 << number, True)
    assert made(gen, "cube", depth=0, **{f"cube_face_enable_{name}": 0 for name in names}).faces == 0


@pytest.mark.parametrize("gen", [4.5, 7, 9, 11])
@pytest.mark.parametrize("second", [0, 1])
def test_a_field_of_a_frame_has_every_other_line(gen: float, second: int) -> None:
    """Of 2D surfaces that are no arrays (KBL 19102-19120)."""
    fields = {"vertical_line_stride": 1, "vertical_line_stride_offset": second}
    image, m = made(gen, depth=0, **fields), NumpyMachine()
    assert image.lines == (2, second)
    assert locate(m, image, [m.constant(u32, number, 1) for number in (3, 4, 0)], None)[0].payload[0] == (2 * 4 + second) * 64 + 3 * 4
    array = {} if gen < 7 else {"surface_array": 1}
    assert made(gen, **fields, **array).lines == made(gen, "3d", **fields).lines == made(gen, depth=0).lines == (1, 0)


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_channels_may_be_chosen(gen: float) -> None:
    chosen = {"red": 6, "green": 0, "blue": 1, "alpha": 4}
    assert made(gen, **{f"shader_channel_select_{name}": value for name, value in chosen.items()}).select == ("blue", "zero", "one", "red")


def test_gen7_has_channels_as_they_are() -> None:
    assert made(7).select == ("red", "green", "blue", "alpha")


@pytest.mark.parametrize("mode, name", [(0, "linear"), (1, "w_major"), (2, "x_major"), (3, "y_major")])
def test_tilings_of_gen8(mode: int, name: str) -> None:
    assert made(8, tile_mode=mode).tiling == name


@pytest.mark.parametrize("gen, kind, mode, rows", [(9, "3d", 1, 64), (11, "3d", 1, 64), (9, "3d", 3, 32), (9, "2d", 1, 32)])
def test_slices_of_3d_stencil_buffers_are_two_qpitches_apart(gen: float, kind: str, mode: int, rows: int) -> None:
    """Since Gen9, where drivers write half of it (public Mesa isl_surface_state.c)."""
    assert made(gen, kind, tile_mode=mode, surface_qpitch=8).rows == rows


def test_tiled_resources_order_bits_by_texel_size() -> None:
    assert made(9, tile_mode=3, tiled_resource_mode=1).tiling == "tileyf_32"
    assert made(9, "3d", tile_mode=3, tiled_resource_mode=2, mip_tail_start_lod=15).tiling == "tileys_3d_32"
    with pytest.raises(Unsupported, match=r"surface 0 is a 3d surface of 32 bits with 1 levels in tileyf, some in a mip tail"):
        made(9, "3d", tile_mode=3, tiled_resource_mode=1)
    with pytest.raises(DecodeError, match=r"surface 0 is a 1D surface in tileyf, which 1D surfaces cannot be"):
        made(9, "1d", tile_mode=3, tiled_resource_mode=1)


def test_structured_buffers_are_refused() -> None:
    with pytest.raises(Unsupported, match="surface 0 is a strbuf surface"):
        made(9, "strbuf")


@pytest.mark.parametrize(("format", "name"), [(421, "PLANAR_420_8"), (422, "PLANAR_420_16"), (0x1FF, "RAW")])
def test_formats_without_texels_are_refused_by_name(format: int, name: str) -> None:
    """But for buffers, which may be of bytes."""
    with pytest.raises(Unsupported, match=f"surface 0 is a 2d surface of format {name}: not yet simulated"):
        made(9, surface_format=format)
    assert made(9, "buffer", surface_format=0x1FF).kind == "buffer"


def test_1d_arrays_of_gen9_count_texels() -> None:
    image = made(9, "1d", surface_array=1, surface_qpitch=5)
    assert image.across == 20 and image.rows == 0 and image.height == 1


PITCHES = {"linear": 100, "x_major": 1024, "y_major": 256, "w_major": 256}  # bytes; of W tiles, those of two rows


@pytest.mark.behaviour("KBL-SAMP-06", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("mode, name", [(0, "linear"), (1, "w_major"), (2, "x_major"), (3, "y_major")])
def test_the_pitch_is_one_more_than_its_field(gen: float, mode: int, name: str) -> None:
    """Row n of a linear surface is n pitches away, any multiple of bytes; of tiles, a row of them is pitch times their rows away."""
    pitch = PITCHES[name]
    image, m = made(gen, tile_mode=mode, surface_format=0x140, width=63, height=127, surface_pitch=pitch - 1), NumpyMachine()
    rows = {"linear": 1, "x_major": 8, "y_major": 32, "w_major": 64}[name]
    below = {"linear": pitch, "x_major": 8 * pitch, "y_major": 32 * pitch, "w_major": 32 * pitch}[name]
    offsets = [locate(m, image, [m.constant(u32, number, 1) for number in (0, y, 0)], None)[0].payload[0] for y in (0, rows)]
    assert image.pitch == pitch and offsets == [0, below]


@pytest.mark.behaviour("KBL-SAMP-06", shows="action")
def test_the_pitch_of_a_1d_surface_is_ignored_and_that_of_a_buffer_is_its_elements() -> None:
    m = NumpyMachine()
    for pitch in (1, 64, 4096):
        image = made(9, "1d", surface_pitch=pitch - 1, surface_array=1, surface_qpitch=4)
        assert locate(m, image, [m.constant(u32, number, 1) for number in (3, 2)], None)[0].payload[0] == (2 * 16 + 3) * 4
    image = made(9, "buffer", surface_pitch=23)
    assert locate(m, image, [m.constant(u32, 5, 1)], None)[0].payload[0] == 5 * 24


# -- tiled resources ----------------------------------------------------------------------------------------------


FORMATS = {8: 0x140, 16: 0x10A, 32: RGBA8, 64: 0x80, 128: 0}  # R8_UNORM, R16_UNORM, …, R16G16B16A16_UNORM, R32G32B32A32_FLOAT


@pytest.mark.behaviour("KBL-SAMP-04", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize(("mode", "largest"), [(2, {8: (128, 256), 16: (128, 128), 32: (64, 128), 64: (64, 64), 128: (32, 64)}),
                                               (1, {8: (32, 64), 16: (32, 32), 32: (16, 32), 64: (16, 16), 128: (8, 16)})])  # fmt: skip
def test_levels_of_a_mip_tail_share_a_tile_and_no_byte(gen: float, bits: int, mode: int, largest: dict[int, tuple[int, int]]) -> None:
    """The first level may be as large as the manual has it (KBL 19846-19857): then none of them overlap, and all are in one tile."""
    width, height = largest[bits]
    last = max(width, height).bit_length() - 1
    image = made(gen, surface_format=FORMATS[bits], tile_mode=3, tiled_resource_mode=mode, width=width - 1, height=height - 1, depth=0,
               mip_count_lod=last, mip_tail_start_lod=0, surface_pitch=width * 4 * bits // 8 - 1)  # fmt: skip
    texels = np.zeros((image.align[1], image.align[0]), int)
    for level in range(last + 1):
        left, top, wide, high = image.level_box(level)
        assert left + wide <= image.align[0] and top + high <= image.align[1]
        texels[top : top + high, left : left + wide] += 1
    assert texels.max() == 1 and image.align[0] * image.align[1] * bits // 8 == (65536 if mode == 2 else 4096)


@pytest.mark.behaviour("KBL-SAMP-04", shows="action")
def test_levels_before_the_tail_begin_with_tiles() -> None:
    """Tiles of 32x32 texels: level 1 below level 0, level 2 right of it with all that follow."""
    image = made(9, tile_mode=3, tiled_resource_mode=1, width=79, height=49, depth=0, mip_count_lod=6, mip_tail_start_lod=3,
               surface_pitch=511)  # fmt: skip
    boxes = [image.level_box(level) for level in range(7)]
    assert boxes[:3] == [(0, 0, 80, 50), (0, 64, 40, 25), (64, 64, 20, 12)]
    assert boxes[3] == (64 + 16, 96, 10, 6) and boxes[4] == (64 + 8, 96 + 16, 5, 3)
    assert boxes[6] == (64, 96 + 16, 1, 1)
    icl = made(11, tile_mode=3, tiled_resource_mode=1, width=1023, height=0, depth=0, mip_count_lod=10, mip_tail_start_lod=0)
    skl = made(9, tile_mode=3, tiled_resource_mode=1, width=1023, height=0, depth=0, mip_count_lod=10, mip_tail_start_lod=0)
    assert [image.level_box(level)[:2] for image in (skl, icl) for level in (7, 10)] == [(4, 4), (0, 0), (0, 0), (4, 4)]


def test_without_a_tail_every_level_has_tiles_of_its_own() -> None:
    image = made(9, "cube", tile_mode=3, tiled_resource_mode=2, width=255, height=255, depth=0, mip_count_lod=8, mip_tail_start_lod=15)
    assert [image.level_box(level)[:2] for level in range(4)] == [(0, 0), (0, 256), (128, 256), (128, 384)]


# Texels across, down and deep of a tile: what 4 and 64 KiB hold, twice as high as the largest level of a mip tail (KBL 19859-19860).
CUBES = {1: {8: (16, 16, 16), 16: (8, 16, 16), 32: (8, 16, 8), 64: (8, 8, 8), 128: (4, 8, 8)},
         2: {8: (64, 32, 32), 16: (32, 32, 32), 32: (32, 32, 16), 64: (32, 16, 16), 128: (16, 16, 16)}}  # fmt: skip


@pytest.mark.parametrize("first", [1, 7, 8, 20])
def test_the_first_slice_of_a_3d_resource_may_be_any_of_a_tile(first: int) -> None:
    """Tiles of 8 slices: where a surface begins with another, its texels are where they were."""
    fields = {"tile_mode": 3, "tiled_resource_mode": 1, "mip_tail_start_lod": 15, "depth": 31, "surface_pitch": 63, "surface_qpitch": 4}
    m, whole, part = NumpyMachine(), made(9, "3d", **fields), made(9, "3d", **fields, minimum_array_element=first)
    found = [locate(m, image, [m.constant(u32, 3, 1), m.constant(u32, 5, 1), m.constant(u32, at, 1)], None)[0].payload[0]
             for image, at in ((whole, first + 2), (part, 2))]  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.behaviour("KBL-SAMP-04", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("mode", CUBES)
def test_tiles_of_3d_resources_have_several_slices(gen: float, bits: int, mode: int) -> None:
    """Texels of a cube are in one tile, no two at one place; QPitch counts rows of one slice (KBL 19311-19313)."""
    (wide, high, deep), bytes_ = CUBES[mode][bits], bits // 8
    image = made(gen, "3d", surface_format=FORMATS[bits], tile_mode=3, tiled_resource_mode=mode, mip_tail_start_lod=15,
                 width=2 * wide - 1, height=2 * high - 1, depth=2 * deep - 1, surface_pitch=2 * wide * bytes_ - 1,
                 surface_qpitch=2 * high // 4)  # fmt: skip
    size, m, random = 4096 if mode == 1 else 65536, NumpyMachine(), np.random.default_rng(bits)
    assert wide * high * deep * bytes_ == size
    places = np.concatenate([random.integers(0, (2 * deep, 2 * high, 2 * wide), (192, 3)), list(np.ndindex(4, 4, 16 // bytes_))])
    places = np.unique(places, axis=0)[-256:]
    z, y, x = (m.value(u32, np.ascontiguousarray(column, np.uint32)) for column in places.T)
    offsets, inside = locate(m, image, [x, y, z], None)
    found = np.asarray(offsets.payload)
    assert np.asarray(inside.payload).all() and len(set(found.tolist())) == len(places)
    np.testing.assert_array_equal(found // size, (places[:, 0] // deep * 2 + places[:, 1] // high) * 2 + places[:, 2] // wide)
    near = found[(places[:, 0] < 4) & (places[:, 1] < 4) & (places[:, 2] * bytes_ < 16)]
    assert near.max() < 256 and not (found % bytes_).any(), "16 bytes of four rows of four slices are together"

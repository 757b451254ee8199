"""SF, WM and the colour calculator of Gen4.5, from the batch to pixels: what threads get, and what their writes do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import catalogue
from tests.three_d.g45_draw import (
    FAN,
    GEN,
    LINE_STRIP,
    LINES,
    POINTS,
    POLYGON,
    RECTANGLES,
    STRIP,
    STRIP_REVERSE,
    TRIANGLES,
    Fields,
    G45Draw,
    move,
    moves,
    pixel_shader,
    setup_kernel,
    urb_write,
    vertex,
)

TRIANGLE = [vertex(0, 0, attribute=(1, 2, 3, 4)), vertex(8, 0, attribute=(5, 6, 7, 8)), vertex(0, 8, attribute=(9, 10, 11, 12))]
FULL = [vertex(16, 16), vertex(0, 16), vertex(0, 0)]  # a rectangle: lower right, lower left, upper left


def code(enumeration: str, word: str) -> int:
    """The code of an enumeration's value."""
    return next(number for number, text in catalogue().enumeration(enumeration, GEN).items() if text == word)


def compare(word: str) -> int:
    return code("3D_Compare_Function", word)


def blend_factor(word: str) -> int:
    return code("3D_Color_Buffer_Blend_Factor", word)


def operation(word: str) -> int:
    return code("3D_Stencil_Operation", word)


# -- SF: objects and their provoking vertices --------------------------------------------------------------------------
# Attributes are numbers of vertices; the provoking vertex is in r1.1 of the SF thread, an index into its vertices.

PROVOKING = pixel_shader("g8.1<0,1,0>", "g10.0<0,1,0>", "g11.0<0,1,0>", "g12.0<0,1,0>")


def numbered(places: Sequence[tuple[float, float]]) -> list[bytes]:
    return [vertex(x, y, attribute=(n, 0, 0, 0)) for n, (x, y) in enumerate(places)]


def seen(topology: int, places: Sequence[tuple[float, float]], **fields: int) -> list[tuple[set[int], int]]:
    """The objects of a draw in the order of their pixels, from left to right and down: vertices, and which of them provokes."""
    drawn = G45Draw(numbered(places), topology, {"SF_STATE": fields}, ps=PROVOKING, size=(32, 16), fill=0xFFFFFFFF).run()
    found: list[tuple[set[int], int]] = []
    for y, x in np.argwhere((drawn.bits != 0xFFFFFFFF).any(-1)):
        index, corners = int(drawn.bits[y, x, 0]), [int(number) for number in drawn.pixels[y, x, 1:]]
        provoked = set(corners), corners[index]
        if provoked not in found:
            found.append(provoked)
    return found


ZIGZAG = [(0.0, 8.0), (4.0, 0.0), (8.0, 8.0), (12.0, 0.0), (16.0, 8.0)]
AROUND = [(8.0, 8.0), (0.0, 8.0), (0.0, 0.0), (16.0, 0.0), (16.0, 8.0)]


@pytest.mark.behaviour("G45-SF-05", "G45-SF-06", "G45-SF-10", shows="action")
@pytest.mark.parametrize("select", [0, 1, 2])
def test_triangles_of_lists_and_strips(select: int) -> None:
    fields = {"triangle_strip_list_provoking_vertex_select": select}
    assert {(frozenset(a), b) for a, b in seen(TRIANGLES, ZIGZAG[:3], **fields)} == {(frozenset({0, 1, 2}), select)}
    strip = seen(STRIP, ZIGZAG, **fields)
    assert {(frozenset(a), b) for a, b in strip} == {(frozenset({n, n + 1, n + 2}), n + select) for n in range(3)}


@pytest.mark.behaviour("G45-SF-06", "G45-SF-26", shows="action")
@pytest.mark.parametrize(("topology", "winding"), [(STRIP, 0), (STRIP, 1), (STRIP_REVERSE, 0), (STRIP_REVERSE, 1)])
def test_triangles_of_a_strip_all_face_the_same_way(topology: int, winding: int) -> None:
    """A reversed strip the other way."""
    drawn = G45Draw(numbered(ZIGZAG), topology, {"SF_STATE": {"cull_mode": 3, "front_winding": winding}}, size=(32, 16), fill=7).run()
    lit = int((drawn.bits != 7).any(-1).sum())
    whole = G45Draw(numbered(ZIGZAG), topology, size=(32, 16), fill=7).run()
    all_ = int((whole.bits != 7).any(-1).sum())
    assert all_ > 60 and lit == (all_ if (topology == STRIP_REVERSE) ^ (winding == 0) else 0)


@pytest.mark.behaviour("G45-SF-07", "G45-SF-08", "G45-SF-10", shows="action")
def test_fans_and_polygons() -> None:
    for select in (0, 1, 2):
        found = seen(FAN, AROUND, triangle_fan_provoking_vertex_select=select, triangle_strip_list_provoking_vertex_select=1)
        assert {(frozenset(a), b) for a, b in found} == {(frozenset({0, n, n + 1}), [0, n, n + 1][select]) for n in (1, 2, 3)}
        polygon = seen(POLYGON, AROUND, triangle_fan_provoking_vertex_select=select, triangle_strip_list_provoking_vertex_select=select)
        assert {b for _, b in polygon} == {0}, "whatever is selected"


@pytest.mark.behaviour("G45-SF-09", "G45-SF-20", shows="action")
def test_rectangles_have_three_vertices_and_the_first_provokes() -> None:
    found = seen(RECTANGLES, [(8, 8), (0, 8), (0, 0)], triangle_strip_list_provoking_vertex_select=2)
    assert found == [({0, 1, 2}, 0)]


@pytest.mark.behaviour("G45-SF-02", "G45-SF-28", shows="action")
@pytest.mark.parametrize(("topology", "back"), [(POINTS, 0), (17, 1), (LINE_STRIP, 0), (19, 1), (18, 0), (20, 1)])
def test_points_and_lines_face_as_their_topology_says(topology: int, back: int) -> None:
    drawn = G45Draw(numbered([(2.5, 2.5), (9.5, 2.5)]), topology, ps=pixel_shader("g1.6<0,1,0>", "g8.0<0,1,0>")).run()
    assert drawn.lit and {(int(drawn.bits[y, x, 0]) >> 31, int(drawn.bits[y, x, 1]) >> 17 & 1) for x, y in drawn.lit} == {(back, back)}
    if topology in (POINTS, 17):
        assert drawn.lit == [(2, 2), (9, 2)], "a point for each vertex"


@pytest.mark.behaviour("G45-SF-10", shows="action")
@pytest.mark.parametrize("select", [0, 1])
def test_provoking_vertices_of_lines(select: int) -> None:
    state: dict[str, Fields] = {"SF_STATE": {"line_strip_list_provoking_vertex_select": select}}
    drawn = G45Draw(numbered([(2, 2.5), (9, 2.5), (12, 2.5)]), LINE_STRIP, state, ps=PROVOKING).run()
    for x, first in ((4, 0), (10, 1)):
        index, *corners = drawn.bits[2, x, 0], *drawn.pixels[2, x, 1:3]
        assert corners[int(index)] == first + select


@pytest.mark.behaviour("G45-SF-25", "G45-SF-31", "G45-WM-51", shows="action")
@pytest.mark.parametrize("state", [
    {"SF_STATE": {"zero_pixel_triangle_filter_disable": 1}}, {"SF_STATE": {"2x2_pixel_triangle_filter_disable": 1}},
    {"SF_STATE": {"fast_scissor_clip_disable": 1}}, {"3DSTATE_DEPTH_BUFFER": {"software_tiled_rendering_mode": 1}},
])  # fmt: skip
def test_state_that_is_for_speed_changes_nothing(state: dict[str, Fields]) -> None:
    small = [vertex(4.6, 4.6), vertex(4.9, 4.6), vertex(4.6, 4.9)]
    assert (G45Draw([*TRIANGLE, *small], state=state).run().pixels == G45Draw([*TRIANGLE, *small]).run().pixels).all()


# -- WM: what threads get ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-WM-01", "G45-WM-33", "G45-WM-34", "G45-WM-38", shows="action")
def test_masks_and_places_of_a_point() -> None:
    """One pixel of a subspan: both masks have it alone, and all four channels of the subspan are on."""
    before = "\n".join(["mov(1) f0<1>UW 0x0000UW { align1 nomask };", "cmp.z.f0.0(8) null<1>UD g0.0<0,1,0>UD g0.0<0,1,0>UD { align1 };",
                        "mov(8) g20<1>UD f0<0,1,0>UW { align1 nomask };"])  # fmt: skip
    shader = pixel_shader("g0.0<0,1,0>", "g1.2<0,1,0>", "g20<8,8,1>", before=before)
    for x, y in ((4, 6), (5, 6), (4, 7), (5, 7), (11, 13)):
        drawn = G45Draw([vertex(x + 0.5, y + 0.5)], POINTS, ps=shader).run()
        assert drawn.lit == [(x, y)]
        masks, place, on = (int(number) for number in drawn.bits[y, x, :3])
        bit = 1 << (x % 2 + 2 * (y % 2))
        assert masks == bit << 16 | bit and place == (y & ~1) << 16 | (x & ~1) and on == 15


@pytest.mark.behaviour("G45-WM-34", shows="action")
def test_a_kernel_kills_pixels_in_the_lower_mask() -> None:
    keep = "and(1) g0.0<1>UD g0.0<0,1,0>UD 0xffff3333UD { align1 nomask };"
    state: dict[str, Fields] = {"WM_STATE": {"pixel_shader_kills_pixel": 1}}
    drawn = G45Draw(FULL, RECTANGLES, state, ps=pixel_shader(before=keep)).run()
    assert drawn.lit == [(x, y) for y in range(16) for x in range(16) if y % 2 == 0], "pixels 0 and 1 of each subspan"


@pytest.mark.behaviour("G45-WM-13", "G45-WM-24", "G45-WM-39", shows="action")
def test_depth_of_each_channel() -> None:
    """z = (x + 4 y) / 128 at the centres of pixels: it shows which channel is which pixel."""
    corners = [vertex(x, y, ((x - 0.5) + 4 * (y - 0.5)) / 128) for x, y in ((16, 16), (0, 16), (0, 0))]
    drawn = G45Draw(corners, RECTANGLES, {"WM_STATE": {"pixel_shader_uses_source_depth": 1}}, ps=pixel_shader("g2<8,8,1>")).run()
    y, x = np.mgrid[:16, :16]
    np.testing.assert_allclose(drawn.pixels[..., 0], (x + 4 * y) / 128, atol=1e-6)


@pytest.mark.behaviour("G45-WM-41", "G45-GS-17", shows="action")
def test_array_and_viewport_index_are_in_r1() -> None:
    corners = [vertex(0, 0, layer=5, viewport=3), vertex(8, 0, layer=9), vertex(0, 8, layer=9)]
    drawn = G45Draw(corners, ps=pixel_shader("g1.7<0,1,0>")).run()
    assert len(drawn.lit) == 28 and {int(drawn.bits[y, x, 0]) for x, y in drawn.lit} == {3 << 27 | 5 << 16}


@pytest.mark.behaviour("G45-WM-45", "G45-SF-53", shows="action")
def test_threads_of_an_object_share_its_entry() -> None:
    """All pixels of an object have what its one SF thread wrote; those of the other have another's."""
    other = [vertex(8, 8, attribute=(30, 0, 0, 0)), vertex(16, 8), vertex(8, 16)]
    drawn = G45Draw([*TRIANGLE, *other]).run()
    assert {float(drawn.pixels[y, x, 0]) for x, y in drawn.lit if y < 8 and x < 8} == {1.0}
    assert {float(drawn.pixels[y, x, 0]) for x, y in drawn.lit if y >= 8} == {30.0}


# -- WM: depth ---------------------------------------------------------------------------------------------------------

TESTED: Fields = {"depth_test_enable": 1, "depth_test_function": 0, "depth_buffer_write_enable": 1}


def deep(z: float, depth: Any, calc: Fields, wm: Fields | None = None, **more: Any) -> Any:
    """A rectangle of one depth, over the whole buffer."""
    corners = [vertex(16, 16, z), vertex(0, 16, z), vertex(0, 0, z)]
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "WM_STATE": wm or {}, **more.pop("state", {})}
    return G45Draw(corners, more.pop("topology", RECTANGLES), state, depth=depth, **more).run()


def stripes() -> Any:
    """0.25 in even columns, 0.75 in odd ones."""
    return np.tile(np.array([0.25, 0.75], np.float32), (16, 8))


@pytest.mark.behaviour("G45-WM-17", "G45-WM-21", "G45-WM-23", shows="action")
@pytest.mark.parametrize("wm", [{}, {"pixel_shader_kills_pixel": 1}, {"pixel_shader_uses_source_depth": 1}])
def test_early_tests_change_nothing(wm: Fields) -> None:
    """With and without them, of threads that may kill pixels too, which have the depth to send."""
    calc = {**TESTED, "depth_test_function": compare("less")}
    pictures = []
    for early in (0, 1):
        carried = ("g2", "g4") if not early else ("g2",) if "pixel_shader_kills_pixel" in wm else ()  # the source's, the buffer's
        drawn = deep(0.5, stripes(), calc, {**wm, "early_depth_test_enable": early}, ps=pixel_shader(depth=carried))
        pictures.append((drawn.pixels, drawn.depth))
        assert drawn.lit == [(x, y) for y in range(16) for x in range(1, 16, 2)]
        assert (drawn.depth[:, 1::2] == 0.5).all() and (drawn.depth[:, ::2] == 0.25).all()
    assert all((a == b).all() for a, b in zip(*pictures, strict=True))


@pytest.mark.behaviour("G45-WM-22", shows="action")
def test_killed_pixels_write_no_depth() -> None:
    calc, wm = {**TESTED, "depth_test_function": compare("less")}, {"pixel_shader_kills_pixel": 1, "early_depth_test_enable": 1}
    keep = "and(1) g0.0<1>UD g0.0<0,1,0>UD 0xffff3333UD { align1 nomask };"
    drawn = deep(0.5, stripes(), calc, wm, ps=pixel_shader(depth=("g2",), before=keep))
    assert (drawn.depth[::2, 1::2] == 0.5).all() and (drawn.depth[1::2, 1::2] == 0.75).all()


@pytest.mark.behaviour("G45-WM-23", "G45-WM-40", shows="action")
def test_a_computed_depth_is_tested_and_written_after_the_shader() -> None:
    """The kernel has what the buffer holds, and sends that, halved, as its own."""
    calc, wm = {**TESTED, "depth_test_function": compare("less")}, {"pixel_shader_computed_depth": 1, "early_depth_test_enable": 1}
    half = "mul(8) g20<1>F g2<8,8,1>F 0x3f000000F { align1 nomask };"
    # r2 and r3 have the buffer's depth; the message has the source's, then the destination's
    drawn = deep(0.9, stripes(), calc, wm, ps=pixel_shader("g2<8,8,1>", before=half, depth=("g20", "g2")))
    assert (drawn.pixels[..., 0] == stripes()).all() and (drawn.depth == stripes() / 2).all()


@pytest.mark.behaviour("G45-WM-18", "G45-CC-38", shows="action")
def test_without_a_depth_buffer_everything_passes() -> None:
    calc = {**TESTED, "depth_test_function": compare("never")}
    assert len(deep(0.5, None, calc).lit) == 256
    assert not deep(0.5, stripes(), calc).lit


@pytest.mark.behaviour("G45-WM-26", shows="action")
def test_without_threads_depth_is_written_all_the_same() -> None:
    drawn = deep(0.5, stripes(), {**TESTED, "depth_test_function": compare("always")}, {"thread_dispatch_enable": 0})
    assert not drawn.lit and (drawn.depth == 0.5).all()


def planes(*numbers: float) -> str:
    """Numbers in r24 from dword 0 on."""
    bits = np.array(numbers, np.float32).view(np.uint32)
    return "\n".join(f"mov(1) g24.{n}<1>UD {int(word):#010x}UD {{ align1 nomask }};" for n, word in enumerate(bits))


START = 2, 4  # the start vertex of a rectangle


def placed(wm: Fields, **more: Any) -> Any:
    """A rectangle whose vertices say another depth than its SF thread."""
    corners = [vertex(x, y, 0.125) for x, y in ((14, 15), (START[0], 15), START)]
    state: dict[str, Fields] = {"COLOR_CALC_STATE": TESTED, "WM_STATE": wm}
    return G45Draw(corners, RECTANGLES, state, depth=np.full((16, 16), -1, np.float32), **more).run()


def check_slope(depth: Any) -> None:
    y, x = np.mgrid[START[1] : 15, START[0] : 14]
    np.testing.assert_allclose(depth[4:15, 2:14], 0.5 + (x + 0.5 - START[0]) / 64 - (y + 0.5 - START[1]) / 128, atol=1e-6)


@pytest.mark.behaviour("G45-SF-57", "G45-WM-12", shows="action")
@pytest.mark.parametrize("row", [0, 1, 5])
@pytest.mark.parametrize("shaded", [0, 1])
def test_depth_has_the_coefficients_in_the_lower_half_of_a_row(row: int, shaded: int) -> None:
    """Those of the SF thread, from its start vertex on, whatever depths the vertices have. The upper half is W's, and the third dword
    nothing's (G45 5997-6023, 6154-6159)."""
    write = planes(1 / 64, -1 / 128, 99.0, 0.5, 77.0, 77.0, 77.0, 77.0)
    registers = ["g1", "g2", "g3", "g4", "g5", "g5"]
    registers[row] = "g24"
    sf = "\n".join((write, moves(1, *registers), urb_write(7, eot=True)))
    drawn = placed({"depth_coefficient_urb_read_offset": row, "thread_dispatch_enable": shaded}, sf=sf)
    assert bool(drawn.lit) == bool(shaded)
    check_slope(drawn.depth)


@pytest.mark.behaviour("G45-SF-57", shows="action")
def test_depth_is_transposed_as_other_coefficients_are() -> None:
    """Rows of eight Cx, eight Cy and eight Co are read as (Cx, Cy, 0, Co) of each attribute: attribute 2 is the lower half of row 1."""
    rows = ["\n".join((planes(*(number if n == 2 else 55.0 for n in range(8))), move(f"g{30 + at}", "g24<8,8,1>")))
            for at, number in enumerate((1 / 64, -1 / 128, 0.5))]  # fmt: skip
    sf = "\n".join((*rows, moves(1, "g30", "g31", "g32"), urb_write(4, eot=True)))
    state = {"depth_coefficient_urb_read_offset": 1, "transposed_urb_read_enable": 1, "setup_urb_entry_read_length": 2}
    check_slope(placed(state, sf=sf, ps=pixel_shader("g8<0,1,0>")).depth)


@pytest.mark.behaviour("G45-WM-14", "G45-WM-15", "G45-WM-16", shows="action")
@pytest.mark.parametrize(("constant", "scale", "clamp", "legacy", "wanted"), [
    (3.0, 0.0, 0.0, 0, 3), (0.0, 2.0, 0.0, 0, 2 * 64), (3.0, 2.0, 0.0, 0, 3 + 2 * 64), (3.0, 2.0, 40 / 65535, 0, 40),
    (-5.0, 0.0, -3 / 65535, 0, -3), (-5.0, 0.0, 3 / 65535, 0, -5), (0.001, 0.0, 0.0, 1, 0.001 * 65535),
])  # fmt: skip
def test_global_depth_offset(constant: float, scale: float, clamp: float, legacy: int, wanted: float) -> None:
    """In steps of a 16-bit buffer; the depth rises by 64 of them a pixel."""
    step = 64 / 65535
    corners = [vertex(0, 0, 0.25), vertex(16, 0, 0.25 + 16 * step), vertex(0, 16, 0.25)]
    line = [vertex(0, 0.5, 0.25), vertex(16, 0.5, 0.25 + 16 * step)]
    wm = {"global_depth_offset_enable": 1, "global_depth_offset_constant": constant, "global_depth_offset_scale": scale,
          "legacy_global_depth_bias_enable": legacy}  # fmt: skip
    calc = {**TESTED, "depth_test_function": compare("always")}
    found = []
    for fields, topology in (({}, TRIANGLES), (wm, TRIANGLES), (wm, LINES)):
        state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "WM_STATE": fields,
                                    "3DSTATE_GLOBAL_DEPTH_OFFSET_CLAMP": {"global_depth_offset_clamp": clamp}}  # fmt: skip
        drawn = G45Draw(line if topology == LINES else corners, topology, state, depth=np.zeros((16, 16), np.uint16), depth_format=5,
                        sf=setup_kernel(line=topology == LINES)).run()  # fmt: skip
        found.append(drawn.depth.astype(int))
    assert abs(found[1][2, 2] - found[0][2, 2] - wanted) <= 1
    assert abs(found[2][0, 3] - (0.25 * 65535 + 64 * 3.5)) <= 33, "lines have none"


# -- WM: antialiased lines ---------------------------------------------------------------------------------------------

SMOOTH: dict[str, Fields] = {"SF_STATE": {"antialiasing_enable": 1, "line_width": 3.0, "line_end_cap_antialiasing_region_width": 1},
                             "WM_STATE": {"line_antialiasing_region_width": 1, "line_end_cap_antialiasing_region_width": 1}}  # fmt: skip
ALPHA_BYTES = pixel_shader("g1.6<0,1,0>", "g2.4<0,1,0>", "g2.5<0,1,0>", "g10.3<0,1,0>", extra=("g2",))


@pytest.mark.behaviour("G45-WM-05", "G45-WM-07", "G45-WM-36", "G45-WM-35", "G45-SF-39", shows="action")
def test_antialiased_lines_carry_their_coverage() -> None:
    """A level line of three pixels in height, a quarter of a pixel down: bytes of the payload, and alpha that is multiplied by them."""
    line = [vertex(2, 6.25, attribute=(0, 0, 0, 1)), vertex(12, 6.25, attribute=(0, 0, 0, 1))]
    drawn = G45Draw(line, LINES, SMOOTH, ps=ALPHA_BYTES, fill=7).run()
    lit = np.argwhere((drawn.bits != 7).any(-1))
    assert {int(drawn.bits[y, x, 0]) >> 25 & 3 for y, x in lit} == {3}
    column = {int(y): float(drawn.pixels[y, x, 3]) for y, x in lit if x == 6}
    assert column == pytest.approx({5: 1.0, 6: 1.0, 7: 0.5}, abs=1 / 255), "row 7 is a quarter of a pixel inside, half of the ramp"
    bytes_ = {int(drawn.bits[y, x, 1 + part]) >> 8 * n & 255 for y, x in lit for part in (0, 1) for n in range(4)}
    alphas = {round(float(drawn.pixels[y, x, 3]) * 255) for y, x in lit}
    assert alphas <= bytes_, "each pixel's alpha is the byte of its channel"
    triangle = G45Draw(TRIANGLE, TRIANGLES, SMOOTH, ps=pixel_shader("g1.6<0,1,0>")).run()
    assert {int(triangle.bits[y, x, 0]) >> 25 & 3 for x, y in triangle.lit} == {0}, "triangles have none"


# -- colour calculator -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-CC-29", shows="action")
@pytest.mark.parametrize(("post", "wanted"), [(0, 6.0), (1, 1.0)])
def test_what_blending_makes_may_be_clamped(post: int, wanted: float) -> None:
    """To 0 to 1, of a float target; a UNORM target clamps always."""
    calc = {"color_buffer_blend_enable": 1, "source_blend_factor": 1, "destination_blend_factor": 1, "post_blend_color_clamp_enable": post}
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "RENDER_SURFACE_STATE": {"color_blend_enable": 1}}
    corners = [vertex(x, y, attribute=(3, 0, 0, 1)) for x, y in ((16, 16), (0, 16), (0, 0))]
    drawn = G45Draw(corners, RECTANGLES, state, fill=3.0).run()
    assert drawn.pixels[3, 3, 0] == wanted
    narrow = G45Draw(corners, RECTANGLES, state, format="R8G8B8A8_UNORM", fill=0x00000040).run()
    assert int(narrow.pixels[3, 3]) & 255 == 255


@pytest.mark.behaviour("G45-CC-20", shows="action")
@pytest.mark.parametrize(("everywhere", "here", "wanted"), [(0, 0, 3.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 5.0)])
def test_blending_is_enabled_for_all_targets_and_for_each(everywhere: int, here: int, wanted: float) -> None:
    """By COLOR_CALC_STATE and by the target's surface state; otherwise the source goes through (G45 7891-7894)."""
    calc = {"color_buffer_blend_enable": everywhere, "source_blend_factor": 1, "destination_blend_factor": 1}
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "RENDER_SURFACE_STATE": {"color_blend_enable": here}}
    corners = [vertex(x, y, attribute=(3, 0, 0, 1)) for x, y in ((16, 16), (0, 16), (0, 0))]
    assert G45Draw(corners, RECTANGLES, state, fill=2.0).run().pixels[3, 3, 0] == wanted


@pytest.mark.behaviour("G45-CC-01", shows="action")
def test_the_order_of_tests() -> None:
    """A pixel that fails the alpha test changes neither stencil nor depth; one that fails the stencil test changes the stencil alone."""
    replace, keep = operation("replace"), operation("keep")
    calc = {**TESTED, "depth_test_function": compare("always"), "stencil_test_enable": 1, "stencil_buffer_write_enable": 1,
            "stencil_test_function": compare("never"), "stencil_fail_op": replace, "stencil_pass_depth_pass_op": keep,
            "stencil_test_mask": 255, "stencil_write_mask": 255, "stencil_reference_value": 9}  # fmt: skip
    alpha = {"alpha_test_enable": 1, "alpha_test_format": 1, "alpha_test_function": compare("greater"),
             "alpha_reference_value_as_float32": 5.0}  # fmt: skip
    held = np.full((16, 16), 1 << 24 | 0x123456, np.uint32)
    for more, stencil in (({}, 9), (alpha, 1)):
        late = bool(more)
        # with an alpha test payload and message have depths and stencils: r2 the source's, r4 stencils, r5 the buffer's depth
        shader = pixel_shader(extra=("g4",), depth=("g2", "g5")) if late else pixel_shader()
        drawn = deep(0.5, held, {**calc, **more}, {"early_depth_test_enable": 1}, depth_format=2, ps=shader)
        assert not drawn.lit and (drawn.depth == stencil << 24 | 0x123456).all()


@pytest.mark.behaviour("G45-CC-36", shows="action")
def test_operations_that_need_not_read_give_what_reading_would() -> None:
    """Stencil operations replace and zero; depth function always; logic operations that ignore what is there."""
    zero = operation("zero")
    calc = {"stencil_test_enable": 1, "stencil_buffer_write_enable": 1, "stencil_test_function": compare("always"),
            "stencil_write_mask": 255, "stencil_test_mask": 255, "stencil_pass_depth_pass_op": zero, "stencil_fail_op": zero,
            "stencil_pass_depth_fail_op": zero}  # fmt: skip
    drawn = deep(0.5, np.full((16, 16), 7 << 24 | 0x123456, np.uint32), calc, {"early_depth_test_enable": 1}, depth_format=2)
    assert (drawn.depth == 0x123456).all()
    for code, wanted in ((0, 0), (15, 0xFFFFFFFF), (12, 0xFF00FF00)):
        corners = [vertex(x, y, attribute=(0, 1, 0, 1)) for x, y in ((16, 16), (0, 16), (0, 0))]
        state: dict[str, Fields] = {"COLOR_CALC_STATE": {"logic_op_enable": 1, "logic_op_function": code}}
        found = G45Draw(corners, RECTANGLES, state, format="R8G8B8A8_UNORM", fill=0x12345678).run()
        assert (found.pixels == wanted).all(), code


@pytest.mark.behaviour("G45-CC-43", shows="action")
@pytest.mark.parametrize(("alpha", "factor"), [(2.0, 2.0), (100000.0, 65504.0)])
def test_alpha_of_a_format_without_it_is_clamped_as_a_half_float(alpha: float, factor: float) -> None:
    """It multiplies the source's colour, after the clamp before blending to the range of the target's format."""
    calc = {"color_buffer_blend_enable": 1, "source_blend_factor": blend_factor("src_alpha"),
            "destination_blend_factor": blend_factor("zero"), "pre_blend_color_clamp_enable": 1, "post_blend_color_clamp_enable": 1,
            "color_clamp_range": 2}  # fmt: skip
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "RENDER_SURFACE_STATE": {"color_blend_enable": 1}}
    corners = [vertex(x, y, attribute=(2.0**-16, 0, 0, alpha)) for x, y in ((16, 16), (0, 16), (0, 0))]
    drawn = G45Draw(corners, RECTANGLES, state, format="R11G11B10_FLOAT").run()
    red = np.array([int(drawn.pixels[3, 3]) << 4 & 0x7FF0], np.uint16).view(np.float16)[0]
    assert float(red) == pytest.approx(2.0**-16 * factor, rel=1 / 64)


@pytest.mark.behaviour("G45-WM-50", shows="action")
@pytest.mark.parametrize(("fields", "place"), [
    ({}, (0, 0)), ({"lod": 1}, (0, 8)), ({"lod": 2}, (4, 8)), ({"lod": 3}, (4, 10)),
    ({"lod": 1, "mip_map_layout_mode": 1}, (8, 0)), ({"lod": 2, "mip_map_layout_mode": 1}, (8, 4)),
    ({"lod": 3, "mip_map_layout_mode": 1}, (8, 6)), ({"minimum_array_element": 1}, (0, 8 + 4 + 11 * 2)),
])  # fmt: skip
def test_levels_and_slices_of_a_depth_buffer(fields: Fields, place: tuple[int, int]) -> None:
    """Where the first pixel of a level of an 8x8 buffer is: below the level before, or with the other layout to the right of the first."""
    calc = {**TESTED, "depth_test_function": compare("always")}
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "WM_STATE": {"early_depth_test_enable": 1},
                                "3DSTATE_DEPTH_BUFFER": {"width": 7, "height": 7, **fields}}  # fmt: skip
    drawn = G45Draw([vertex(0.5, 0.5, 0.5)], POINTS, state, depth=np.zeros((64, 16), np.float32)).run()
    assert [(int(x), int(y)) for y, x in zip(*drawn.depth.nonzero(), strict=True)] == [place]


@pytest.mark.behaviour("G45-SF-37", shows="action")
@pytest.mark.parametrize(("fine", "row"), [(0, 4), (4, 4), (15, 4), (16, 5)])
def test_diamonds_are_tested_on_a_grid_of_16ths(fine: int, row: int) -> None:
    """A level line at 5 and `fine` 256ths, with 8 sub-pixel bits: up to the next 16th it goes through the bottom corners of row 4."""
    line = [vertex(2.5, 5 + fine / 256), vertex(6.5, 5 + fine / 256)]
    lit = G45Draw(line, LINES, {"SF_STATE": {"line_width": 0.0}}).run().lit
    assert {y for _, y in lit} == {row} and len(lit) >= 3

"""Lines and smooth points: lines.c against rationals."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.three_d.pixels import rasterizer
from softgen.three_d.pixels.pixel_shader import library
from softgen.three_d.pixels.rasterizer import RasterPlan
from softgen.three_d.structures import PrimitiveObject, SetupRecord
from softgen.three_d.three_d_h import OBJECT_CONTINUES as CONTINUES
from softgen.three_d.three_d_h import OBJECT_LAST as LAST
from tests.three_d.geometry_state import chunk_of, geometry_state, line, point, records_of, triangle, vertex
from tests.three_d.pixels.test_rasterizer import blocks, pixels

Pixel = tuple[int, int]
GENERATIONS = (7, 7.5, 8, 9, 11)
# Pixels of ends: on a fine grid, and on the lines where diamonds meet.
place = st.one_of(st.integers(0, 24 * 256).map(lambda n: Fraction(n, 256)), st.integers(0, 48).map(lambda n: Fraction(n, 2)))
end = st.tuples(place, place)


def at(x: Fraction | float, y: Fraction | float, **given: Any) -> bytes:
    """A vertex at pixel coordinates."""
    return vertex((float(x) - 32) / 32, (float(y) - 32) / 32, **given)


def drawn(objects: Sequence[PrimitiveObject], vertices: Sequence[bytes], gen: float = 9, **fields: Any) -> list[SetupRecord]:
    return records_of(geometry_state(gen, **fields), chunk_of(vertices, objects))


def lit(record: SetupRecord, **plan: int) -> set[Pixel]:
    return pixels(blocks(record, plan=RasterPlan(**plan)))


# -- one-pixel lines -----------------------------------------------------------------------------------------------------


def inside(p: tuple[Fraction, Fraction], pixel: Pixel, dx: Fraction, dy: Fraction, legacy: bool) -> bool:
    """Whether a point is in the diamond of a pixel (G45 5411-5512), for a line of this direction."""
    x, y, half = p[0] - pixel[0] - Fraction(1, 2), p[1] - pixel[1] - Fraction(1, 2), Fraction(1, 2)
    if abs(x) + abs(y) != half:
        return abs(x) + abs(y) < half
    if x == 0:
        return y > 0
    plus_one, minus_one = dx == -dy, dx == dy
    if y == 0:
        right = not plus_one if legacy else abs(dy) > abs(dx)
        return right if x > 0 else legacy and plus_one
    if y < 0:
        return False
    return not legacy or (plus_one if x < 0 else minus_one)


def leaves(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], pixel: Pixel, legacy: bool) -> bool:
    """Whether the line has a point in the diamond, and does not end there: points where it may enter, leave, and between them."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    centre, half = (pixel[0] + Fraction(1, 2), pixel[1] + Fraction(1, 2)), Fraction(1, 2)
    if inside(b, pixel, dx, dy, legacy):
        return False
    times = {Fraction(0), Fraction(1)}
    for sx, sy in ((1, 1), (1, -1)):
        step = sx * dx + sy * dy
        start = sx * (a[0] - centre[0]) + sy * (a[1] - centre[1])
        times |= {(bound - start) / step for bound in (half, -half)} if step else set()
    ordered = sorted(t for t in times if 0 <= t <= 1)
    ordered += [(s + t) / 2 for s, t in pairwise(ordered)]
    return any(inside((a[0] + t * dx, a[1] + t * dy), pixel, dx, dy, legacy) for t in ordered)


@pytest.mark.behaviour("BDW-SF-03", "BDW-WM-11", "G45-SF-32", "G45-SF-33", "G45-SF-34", "G45-SF-35", shows="action")
@given(a=end, b=end, legacy=st.booleans())
def test_a_line_of_width_0_lights_the_pixels_whose_diamond_it_leaves(a: Any, b: Any, legacy: bool) -> None:
    """Antialiasing is ignored (G45 5397)."""
    records = drawn([line(0, 1)], [at(*a), at(*b)], line_width=0.0, antialiasing_enable=1)
    found = set().union(*(lit(record, legacy_diamond=int(legacy)) for record in records))
    if a == b:
        assert not records
        return
    xs, ys = (range(max(0, int(min(a[i], b[i])) - 2), int(max(a[i], b[i])) + 3) for i in (0, 1))
    assert found == {(x, y) for x in xs for y in ys if leaves(a, b, (x, y), legacy)}


@given(points=st.lists(end, min_size=3, max_size=6, unique=True), legacy=st.booleans())
def test_lines_of_a_strip_light_no_pixel_twice_where_they_meet(points: Any, legacy: bool) -> None:
    """On a straight way: the pixels of its parts are those of the whole, each once."""
    (x0, y0), (x1, y1) = points[0], points[1]
    middle = (x0 + x1) / 2, (y0 + y1) / 2
    if any(coordinate.denominator > 256 for coordinate in middle):
        return
    vertices = [at(x0, y0), at(*middle), at(x1, y1)]
    whole, first, second = (lit(drawn([line(*ends)], vertices, line_width=0.0)[0], legacy_diamond=int(legacy))
                            for ends in ((0, 2), (0, 1), (1, 2)))  # fmt: skip
    assert not first & second and first | second == whole


@pytest.mark.behaviour("BDW-SF-04", "G45-SF-36", shows="action")
@pytest.mark.parametrize("enabled", [False, True])
def test_the_last_pixel_is_that_of_lists_and_of_a_strips_last_line(enabled: bool) -> None:
    vertices = [at(2.5, 3.5), at(9.5, 3.5)]
    fields = {"line_width": 0.0, "last_pixel_enable": int(enabled)}
    row = {(x, 3) for x in range(2, 9)}
    assert lit(drawn([line(0, 1, flags=LAST)], vertices, **fields)[0]) == (row | {(9, 3)} if enabled else row)
    assert lit(drawn([line(0, 1, topology=3)], vertices, **fields)[0]) == row


# -- stipple -------------------------------------------------------------------------------------------------------------


def pattern(bits: int, repeat: int, length: int, start: int = 0) -> list[int]:
    return [n for n in range(length) if bits >> (start + n) // repeat % 16 & 1]


@pytest.mark.behaviour("BDW-WM-09", "G45-WM-08", shows="action")
@pytest.mark.parametrize("width", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("repeat", [1, 3])
def test_line_stipple_masks_pixels_along_the_major_axis(width: float, repeat: int) -> None:
    bits = 0b1010_0110_0000_1101
    plan = {"line_pattern": bits, "line_repeat": repeat}
    for ends, axis in (((2.5, 20.5, 52.5, 24.5), 0), ((20.5, 2.5, 24.5, 52.5), 1)):
        (record,) = drawn([line(0, 1)], [at(*ends[:2]), at(*ends[2:])], line_width=width, line_stipple_enable=1)
        assert {pixel[axis] for pixel in lit(record, **plan)} == {2 + n for n in pattern(bits, repeat, 50)}


@pytest.mark.behaviour("BDW-WM-09", shows="action")
def test_backwards_the_pattern_begins_at_the_lines_start() -> None:
    (record,) = drawn([line(0, 1)], [at(52.5, 20.5), at(2.5, 20.5)], line_stipple_enable=1)
    assert {x for x, _ in lit(record, line_pattern=0b1011, line_repeat=1)} == {51 - n for n in pattern(0b1011, 1, 50)}


@pytest.mark.behaviour("G45-WM-09", "G45-SF-03", "G45-SF-04", shows="action")
def test_the_pattern_goes_on_along_a_strip_and_begins_anew_with_each_line_of_a_list() -> None:
    vertices = [at(2.5, 4.5), at(12.5, 4.5), at(12.5, 30.5), at(2.5, 30.5)]
    strip = [line(0, 1, topology=3), line(1, 2, flags=CONTINUES, topology=3), line(2, 3, flags=CONTINUES | LAST, topology=3)]
    assert [record.stipple for record in drawn(strip, vertices, line_stipple_enable=1)] == [0, 10, 36]
    listed = [line(0, 1), line(1, 2), line(2, 3)]
    assert [record.stipple for record in drawn(listed, vertices, line_stipple_enable=1)] == [0, 0, 0]


def test_outlines_of_triangles_are_stippled_as_lines_and_not_as_polygons() -> None:
    vertices = [at(2.5, 2.5), at(40.5, 2.5), at(2.5, 40.5)]
    records = drawn([triangle(0, 1, 2), triangle(0, 1, 2)], vertices, front_face_fill_mode=1, back_face_fill_mode=1, line_stipple_enable=1)
    assert [record.stipple for record in records] == 2 * [0, 38, 76]
    whole = lit(records[0])
    masked = RasterPlan(line_pattern=0x5555, line_repeat=1, stippled=1 << 4)  # a polygon stipple without a pixel
    assert pixels(blocks(records[0], plan=masked)) == {(x, y) for x, y in whole if x % 2 == 0}


# -- antialias alpha -----------------------------------------------------------------------------------------------------


def smooth(gen: float, objects: Sequence[PrimitiveObject], vertices: Sequence[bytes], **fields: Any) -> SetupRecord:
    (record,) = drawn(objects, vertices, gen, antialiasing_enable=1, **fields)
    return record


@pytest.mark.behaviour("BDW-SF-09", "G45-SF-39", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("cap,code", [(0.5, 0), (1.0, 1), (2.0, 2), (4.0, 3)])
def test_a_smooth_line_is_a_rectangle_with_caps(gen: float, cap: float, code: int) -> None:
    """Across it by its width, at right angles; along it longer by the cap region at both ends."""
    record = smooth(gen, [line(0, 1)], [at(10, 20), at(40, 20)], line_width=4.0, line_end_cap_antialiasing_region_width=code)
    assert lit(record) == {(x, y) for x in range(math.ceil(9.5 - cap), math.ceil(39.5 + cap)) for y in range(18, 22)}
    slanted = smooth(gen, [line(0, 1)], [at(10, 10), at(40, 40)], line_width=4.0, line_end_cap_antialiasing_region_width=code)
    across, along = ({round(abs(x + s * y - c) / math.sqrt(2), 3) for x, y in lit(slanted)} for s, c in ((-1, 0), (1, 49)))
    assert max(across) <= 2 < max(across) + 0.71 and max(along) <= 15 * math.sqrt(2) + cap < max(along) + 0.71


@pytest.mark.parametrize("gen", GENERATIONS)
def test_smooth_lines_and_points_are_antialiased_unless_the_width_is_0(gen: float) -> None:
    def says(**fields: Any) -> bool:
        return rasterizer.is_antialiased(geometry_state(gen, **fields))

    assert says(antialiasing_enable=1) and not says(antialiasing_enable=1, line_width=0.0) and not says()
    if gen >= 8:
        assert says(smooth_point_enable=1)


@pytest.mark.behaviour("BDW-SF-09", shows="action")
def test_a_smooth_point_reaches_half_a_pixel_further() -> None:
    (record,) = drawn([point(0)], [at(20.5, 20.5)], 9, smooth_point_enable=1, point_width=4.0)
    assert lit(record) == {(x, y) for x in range(18, 23) for y in range(18, 23)} and list(record.line[:3]) == [20 * 256, 20 * 256, 4 * 256]


@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("in_sf, in_raster", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_points_are_smooth_where_both_commands_say_so(gen: float, in_sf: int, in_raster: int) -> None:
    """3DSTATE_SF and 3DSTATE_RASTER have the same bit: they reach further and have an alpha, or neither."""
    state = geometry_state(gen, smooth_point_enable=in_sf, point_width=4.0,
                           commands={"3DSTATE_RASTER": {"cull_mode": 1, "smooth_point_enable": in_raster}})  # fmt: skip
    (record,) = records_of(state, chunk_of([at(20.5, 20.5)], [point(0)]))
    smooth_points = bool(in_sf and in_raster)
    assert (len(lit(record)) > 16) == smooth_points == rasterizer.is_antialiased(state)


def alpha(record: SetupRecord, x: float, y: float, **plan: float) -> float:
    """The antialias alpha of a pixel: with regions of a pixel at sides and half a pixel at caps unless others are given."""
    function = library().antialias_alpha
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_double)
    made = RasterPlan(**{"aa_region": 0.5, "aa_cap_region": 0.5, **plan})
    return float(function(ctypes.addressof(made), ctypes.addressof(record), x, y))


def quantised(value: float) -> float:
    return round(min(max(value, 0), 1) * 255) / 255


@pytest.mark.behaviour("BDW-SF-09", "BDW-SF-10", "G45-SF-40", "G45-WM-06", shows="action")
def test_coverage_rises_from_sides_and_caps() -> None:
    """A level line from (10, 20.5) to (40, 20.5), 4 wide: pixel (x, y) is at (x + 0.5, y + 0.5)."""
    record = smooth(9, [line(0, 1)], [at(10, 20.25), at(40, 20.25)], line_width=4.0)
    assert [alpha(record, 20, y) for y in range(18, 23)] == [quantised(v) for v in (0.5, 1, 1, 1, 0)]
    assert alpha(record, 20, 18, aa_region=1.0) == quantised(0.25)
    assert [alpha(record, x, 20, aa_cap_region=0.5) for x in (9, 10, 39, 40)] == [0, 1, 1, 0]
    long = smooth(9, [line(0, 1)], [at(10, 20.25), at(40, 20.25)], line_width=4.0, line_end_cap_antialiasing_region_width=2)
    assert [alpha(long, x, 20, aa_cap_region=2.0) for x in (7, 8, 9, 10)] == [0, quantised(0.25), quantised(0.75), 1]
    assert alpha(long, 9, 18, aa_cap_region=2.0) == quantised(0.75 * 0.5), "near a corner both are multiplied"


@pytest.mark.behaviour("BDW-SF-10", "G45-WM-06", shows="action")
def test_slope_and_bias_of_all_edges_are_multiplied() -> None:
    """The manual's numbers: 148/255 in the middle of a line, 54/255 a pixel off it (G45 6405-6430)."""
    record = smooth(9, [line(0, 1)], [at(10, 20.5), at(40, 20.5)], line_width=4.0, line_end_cap_antialiasing_region_width=3)
    given = {"aa_slope": 141 / 256, "aa_bias": 87 / 256, "aa_cap_slope": 141 / 256, "aa_cap_bias": 87 / 256}
    assert abs(alpha(record, 25, 20, **given) * 255 - 148) <= 1 and abs(alpha(record, 25, 21, **given) * 255 - 54) <= 1


@pytest.mark.behaviour("G45-SF-41", shows="action")
def test_manhattan_distances_are_longer() -> None:
    record = smooth(9, [line(0, 1)], [at(10, 10), at(40, 40)], line_width=3.0)
    true = 1.5 - math.sqrt(2)  # from the edge to pixel (x + 2, x), with the line at y = x
    assert abs(alpha(record, 26, 24) - true / 0.5) < 0.02
    assert abs(alpha(record, 26, 24, aa_manhattan=1) - true * math.sqrt(2) / 0.5) < 0.02


def test_a_smooth_point_is_a_disc() -> None:
    (record,) = drawn([point(0)], [at(20.5, 20.5)], 9, smooth_point_enable=1, point_width=5.0)
    assert [alpha(record, x, 20) for x in (17, 18, 20, 22, 23)] == [0, 1, 1, 1, 0]
    assert alpha(record, 22, 22) == quantised(3 - math.sqrt(8)) and alpha(record, 22, 21) == quantised(3 - math.sqrt(5))
    (plain,) = drawn([point(0)], [at(20.5, 20.5)], 9, point_width=5.0)
    assert alpha(plain, 22, 22) == 1

"""SETUP: from positions to edges, bounding boxes and planes, against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from softgen.three_d.clip_setup import setup
from softgen.three_d.structures import PrimitiveObject, SetupRecord
from tests.three_d.geometry_state import (
    GENERATIONS,
    chunk_of,
    covered,
    geometry_state,
    line,
    point,
    records_of,
    rectangle,
    triangle,
    value,
    vertex,
)  # fmt: skip

FIXED = [gen for gen in GENERATIONS if gen != 4.5]
Pixel = tuple[int, int]
# NDC coordinates whose pixels are multiples of 1/256: x = 32 ndc + 32
grid = st.integers(-40 * 256, 104 * 256).map(lambda n: (n / 256 - 32) / 32)
corner = st.tuples(grid, grid)


def screen(ndc: float) -> Fraction:
    return Fraction(ndc) * 32 + 32


def polygon_holds(corners: Sequence[tuple[Fraction, Fraction]], x: Fraction, y: Fraction) -> bool:
    """Whether a point is in a convex polygon, by the top-left rule; in rationals."""
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, [*corners[1:], corners[0]], strict=True))
    ordered = corners if area > 0 else corners[::-1]
    for a, b in zip(ordered, [*ordered[1:], ordered[0]], strict=True):
        side = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])
        top_left = b[1] < a[1] or (b[1] == a[1] and b[0] > a[0])
        if side < 0 or (side == 0 and not top_left):
            return False
    return area != 0


def drawn(objects: Sequence[PrimitiveObject], vertices: Sequence[bytes], gen: float = 9, **fields: Any) -> list[SetupRecord]:
    return records_of(geometry_state(gen, **fields), chunk_of(vertices, objects))


# -- conservative rasterization ------------------------------------------------------------------------------------------


def touches(corners: Sequence[tuple[Fraction, Fraction]], x: int, y: int, more: Fraction) -> bool:
    """Whether the square of a pixel, larger by `more` on all sides, has a point in common with a triangle: no side of either parts them."""
    square = [(x - more, y - more), (x + 1 + more, y - more), (x + 1 + more, y + 1 + more), (x - more, y + 1 + more)]
    sides = [(b[0] - a[0], b[1] - a[1]) for shape in (corners, square) for a, b in zip(shape, [*shape[1:], shape[0]], strict=True)]
    for dx, dy in sides:
        ours, theirs = ([dx * p[1] - dy * p[0] for p in shape] for shape in (corners, square))
        if max(ours) < min(theirs) or max(theirs) < min(ours):
            return False
    return True


@pytest.mark.parametrize("gen", [9, 11])
@given(corners=st.lists(corner, min_size=3, max_size=3))
def test_conservative_triangles_cover_all_pixels_that_they_touch(gen: float, corners: list[tuple[float, float]]) -> None:
    """Degenerate ones too; and none that they do not touch, but those about a sharp corner."""
    records = drawn([triangle(0, 1, 2)], [vertex(*c) for c in corners], gen, conservative_rasterization_enable=1, clip_mode=4)
    exact = [(screen(x), screen(y)) for x, y in corners]
    found = {pixel for record in records for pixel in covered(record)}
    for y in range(0, 64, 3):
        for x in range(0, 64, 3):
            if touches(exact, x, y, Fraction(0)):
                assert (x, y) in found
    left, right = math.floor(min(x for x, _ in exact)), math.ceil(max(x for x, _ in exact))
    assert all(left - 1 <= x <= right for x, _ in found)
    if not records or polygon_area(exact) == 0:
        return
    for edge in range(3):  # beyond an edge by more than a pixel's corner reaches, nothing is covered
        a, b, c = exact[edge], exact[(edge + 1) % 3], exact[(edge + 2) % 3]
        for x, y in list(found)[:50]:
            away = side_of(a, b, (Fraction(2 * x + 1, 2), Fraction(2 * y + 1, 2))) * (1 if side_of(a, b, c) > 0 else -1)
            assert away >= -(abs(b[0] - a[0]) + abs(b[1] - a[1])) * Fraction(257, 512)


def polygon_area(corners: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return side_of(corners[0], corners[1], corners[2])


def side_of(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], p: tuple[Fraction, Fraction]) -> Fraction:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def test_a_degenerate_conservative_triangle_is_as_its_first_vertex() -> None:
    vertices = [vertex(-0.5, 0, 0.25), vertex(0.5, 0, 0.75), vertex(0, 0, 0.5)]
    (record,) = drawn([triangle(0, 1, 2)], vertices, 9, conservative_rasterization_enable=1)
    assert record.z.dx == record.z.dy == 0 and record.z.c == 0.625 and {y for _, y in covered(record)} == {31, 32}
    assert not drawn([triangle(0, 1, 2)], vertices, 9)


# -- coverage ------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-WM-25", shows="action")
@given(gen=st.sampled_from(GENERATIONS), corners=st.lists(corner, min_size=3, max_size=3), centre=st.booleans())
def test_triangles_cover_what_rationals_say(gen: float, corners: list[tuple[float, float]], centre: bool) -> None:
    if gen == 4.5:
        fields: dict[str, Any] = dict.fromkeys(("destination_origin_horizontal_bias", "destination_origin_vertical_bias"), 0.5 * centre)
    else:
        fields = {"pixel_location": int(not centre)}
    records = drawn([triangle(0, 1, 2)], [vertex(*c) for c in corners], gen, **fields)
    exact = [(screen(x), screen(y)) for x, y in corners]
    offset = Fraction(int(centre), 2)
    found = {pixel for record in records for pixel in covered(record)}
    for y in range(0, 64, 3):
        for x in range(0, 64, 3):
            assert ((x, y) in found) == polygon_holds(exact, x + offset, y + offset), (x, y)


@pytest.mark.behaviour("BDW-WM-03", shows="action")
@pytest.mark.parametrize("gen", [8, 9])
def test_pixels_are_evaluated_at_their_centre_or_corner(gen: float) -> None:
    """The offset of 0.5 is for several samples at the upper left corner only (BDW 6866-6870)."""
    vertices, found = [vertex(*place) for place in ((-0.5, -0.5), (0.51, -0.5), (-0.5, 0.51))], {}
    for corner in (0, 1):
        for offset in (0, 1):
            fields = {"pixel_location": corner, "pixel_position_offset_enable": offset}
            found[corner, offset] = {pixel for record in drawn([triangle(0, 1, 2)], vertices, gen, **fields) for pixel in covered(record)}
    assert found[0, 0] == found[0, 1] and found[1, 0] == found[1, 1] and found[0, 0] != found[1, 0] and found[0, 0]



@given(a=corner, b=corner, c=corner, d=corner)
def test_triangles_that_share_an_edge_meet_without_gap_or_overlap(a: Any, b: Any, c: Any, d: Any) -> None:
    """Each pixel of their union is in exactly one of them."""
    exact = [(screen(x), screen(y)) for x, y in (a, b, c, d)]

    def side(p: Any) -> Fraction:
        return (exact[1][0] - exact[0][0]) * (p[1] - exact[0][1]) - (exact[1][1] - exact[0][1]) * (p[0] - exact[0][0])

    assume(side(exact[2]) * side(exact[3]) < 0)
    vertices = [vertex(*item) for item in (a, b, c, d)]
    both = triangle(0, 1, 2), triangle(1, 0, 3)
    first, second = ({pixel for record in drawn([item], vertices) for pixel in covered(record)} for item in both)
    assert not first & second
    for y in range(0, 64, 2):
        for x in range(0, 64, 2):
            p = x + Fraction(1, 2), y + Fraction(1, 2)
            if side(p) == 0 and polygon_holds([exact[0], exact[2], exact[1], exact[3]], *p):  # on the common edge: in one of them
                assert (x, y) in first or (x, y) in second


@pytest.mark.behaviour("G45-SF-21", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("bits", [8, 4])
def test_positions_are_rounded_to_the_sub_pixel_grid(gen: float, bits: int) -> None:
    """An edge that a hair's breadth decides: 1/512 behind a pixel's middle rounds to 1/256 behind it with 8 bits, to the middle with 4,
    and so does 1/40."""
    for pixel, x in ((10, 1 / 512), (10, 1 / 40), (40, 1 / 512), (40, 1 / 40)):
        left = (pixel + 0.5 + x - 32) / 32
        vertices = [vertex(left, -1), vertex(1, -1), vertex(left, 1)]
        (record,) = drawn([triangle(0, 1, 2)], vertices, gen, vertex_sub_pixel_precision_select=int(bits == 4))
        assert min(covered(record))[0] == (pixel + 1 if bits == 8 else pixel)


@pytest.mark.behaviour("G45-SF-22", shows="action")
@pytest.mark.parametrize("gen,limit", [(4.5, 8192), (7, 32768), (9, 32768), (11, 32768)])
def test_positions_are_clamped(gen: float, limit: int) -> None:
    """A triangle's far corner, seen in its edge function: steps are the sides of the clamped triangle."""
    far = {"viewport_matrix_element_m00": 1.0, "viewport_matrix_element_m30": 0.0}
    state = geometry_state(gen, far, clip_mode=4)
    (record,) = records_of(state, chunk_of([vertex(0, -1), vertex(1e9, -1), vertex(0, 1)], [triangle(0, 1, 2)]))
    assert max(abs(item) for item in record.edge_dy) == (limit * 256 - 1) * 256


@pytest.mark.behaviour("G45-SF-12", "G45-SF-14", "G45-SF-24", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_invalid_and_degenerate_objects_vanish(gen: float) -> None:
    rows = [(0, 0), (0.5, 0), (0.25, 0), (1e-5, 1e-5), (math.nan, 0)]
    vertices = [vertex(*row) for row in rows] + [vertex(0, 1, math.inf)]
    objects = [triangle(0, 1, 2), triangle(0, 3, 1), line(0, 3), rectangle(0, 1, 2), triangle(4, 1, 3)]
    fields = {"viewport": {"viewport_matrix_element_m22": 0.0}}
    assert drawn(objects, vertices, gen, clip_mode=4) == []
    assert drawn([triangle(0, 1, 5)], vertices, gen, clip_mode=4, **fields) == []  # 0 times infinity
    centre = [vertex(1 / 64, 1 / 64)]  # of a pixel
    assert len(drawn([point(0)], centre, gen, point_width=0.125)) == 1
    assert drawn([point(0)], centre, gen, point_width=0.0) == []


# -- viewports and rectangles ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-13", "G45-SF-15", "G45-SF-11", "BDW-SF-01", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_viewport_transformation(gen: float) -> None:
    """By the leading vertex's viewport; z too. Off, positions are pixels."""
    second = {"viewport_matrix_element_m00": 8.0, "viewport_matrix_element_m30": 16.0, "viewport_matrix_element_m22": 0.25}
    corners = [(-1, -1), (1, -1), (-1, 1)]
    vertices = [vertex(x, y, 0.5, viewport=i % 2) for i in range(2) for x, y in corners] + [vertex(x, y, viewport=1) for x, y in corners]
    maximum = {} if gen == 4.5 else {"maximum_vp_index": 1}
    state = geometry_state(gen, viewports=[{}, second], **maximum)
    first, other, leading = records_of(state, chunk_of(vertices, [triangle(0, 1, 2), triangle(3, 4, 5), triangle(6, 1, 2)]))
    assert (first.x0, first.x1, first.viewport, value(first.z, 5, 5)) == (0, 64, 0, 0.75)
    assert (other.x0, other.x1, other.viewport, value(other.z, 12, 5)) == (8, 24, 1, 0.625)
    assert leading.viewport == 1
    (plain,) = records_of(geometry_state(gen, viewport_transform_enable=0, clip_enable=0),
                          chunk_of([vertex(3, 4), vertex(9, 4), vertex(3, 10)], [triangle(0, 1, 2)]))  # fmt: skip
    assert (plain.x0, plain.y0, plain.x1, plain.y1) == (3, 4, 9, 10)


def float32(number: float) -> float:
    return float(np.float32(number))


@given(m=st.floats(-200, 200, width=32), t=st.floats(-200, 200, width=32), x=st.floats(-1, 1, width=32))
def test_viewport_arithmetic_is_float32(m: float, t: float, x: float) -> None:
    """Multiply, round, add, round; seen in a point's Z."""
    viewport = {"viewport_matrix_element_m22": m, "viewport_matrix_element_m32": t}
    (record,) = records_of(geometry_state(9, viewport), chunk_of([vertex(0, 0, x)], [point(0)]))
    assert record.z.c == float32(float32(np.float32(m) * np.float32(x)) + np.float32(t))


def box(record: SetupRecord) -> tuple[int, int, int, int]:
    return record.x0, record.y0, record.x1, record.y1


FULL = [vertex(3, -1), vertex(-1, -1), vertex(-1, 3)]


@pytest.mark.behaviour("G45-SF-29", "G45-SF-30", "KBL-SF-11", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_scissor(gen: float) -> None:
    scissor = {"scissor_rectangle_x_min": 5, "scissor_rectangle_y_min": 6, "scissor_rectangle_x_max": 20, "scissor_rectangle_y_max": 7}
    objects, enabled = chunk_of(FULL, [triangle(0, 1, 2)]), {"scissor_rectangle_enable": 1}
    assert [box(item) for item in records_of(geometry_state(gen, scissor), objects)] == [(0, 0, 64, 64)]
    assert [box(item) for item in records_of(geometry_state(gen, scissor, **enabled), objects)] == [(5, 6, 21, 8)]
    assert records_of(geometry_state(gen, scissor | {"scissor_rectangle_x_max": 4}, **enabled), objects) == []


@pytest.mark.behaviour("KBL-CLIP-17", shows="layout")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_viewport_extents_limit_what_is_drawn(gen: float) -> None:
    state = geometry_state(gen, {"x_min_viewport": 2.0, "x_max_viewport": 9.0, "y_min_viewport": 3.25, "y_max_viewport": 10.75})
    assert [box(item) for item in records_of(state, chunk_of(FULL, [triangle(0, 1, 2)]))] == [(2, 3, 10, 12)]


@pytest.mark.behaviour("G45-SF-16", "G45-WM-04", "BDW-SF-02", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_drawing_rectangle(gen: float) -> None:
    """Its origin moves objects and scissors; its corners, which are inclusive, limit them, together with a scissor (G45 5375)."""
    limits = {"clipped_drawing_rectangle_x_min": 8, "clipped_drawing_rectangle_x_max": 40, "clipped_drawing_rectangle_y_max": 30}
    origin = {"drawing_rectangle_origin_x": 10, "drawing_rectangle_origin_y": -4}
    scissor = {"scissor_rectangle_x_max": 19, "scissor_rectangle_y_max": 63}
    objects = chunk_of([vertex(-0.5, -0.5), vertex(0.5, -0.5), vertex(-0.5, 0.5)], [triangle(0, 1, 2)])
    wide = {"x_max_viewport": 100.0}
    assert [box(item) for item in records_of(geometry_state(gen, wide, **origin), objects)] == [(26, 12, 58, 44)]
    assert [box(item) for item in records_of(geometry_state(gen, wide, **limits), objects)] == [(16, 16, 41, 31)]
    both = geometry_state(gen, wide | scissor, **limits, scissor_rectangle_enable=1)
    assert [box(item) for item in records_of(both, objects)] == [(16, 16, 20, 31)]
    moved = geometry_state(gen, wide | scissor, **origin, scissor_rectangle_enable=1)
    assert [box(item) for item in records_of(moved, objects)] == [(26, 12, 30, 44)]
    assert records_of(geometry_state(gen, clipped_drawing_rectangle_x_min=9, clipped_drawing_rectangle_x_max=8), objects) == []


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("x, y", [(0, 0), (10, 6), (-4, 3), (7, -5)])
def test_scissors_and_extents_count_from_the_drawing_rectangles_origin(gen: float, x: int, y: int) -> None:
    """Its corners and the surface's edges do not."""
    origin, objects = {"drawing_rectangle_origin_x": x, "drawing_rectangle_origin_y": y}, chunk_of(FULL, [triangle(0, 1, 2)])
    scissor = {"scissor_rectangle_x_min": 12, "scissor_rectangle_y_min": 13, "scissor_rectangle_x_max": 20, "scissor_rectangle_y_max": 31}
    scissored = geometry_state(gen, scissor, **origin, scissor_rectangle_enable=1)
    assert [box(item) for item in records_of(scissored, objects)] == [(12 + x, 13 + y, 21 + x, 32 + y)]
    corners = {"clipped_drawing_rectangle_x_min": 11, "clipped_drawing_rectangle_y_min": 12, "clipped_drawing_rectangle_x_max": 25,
               "clipped_drawing_rectangle_y_max": 26}  # fmt: skip
    assert [box(item) for item in records_of(geometry_state(gen, **origin, **corners), objects)] == [(11, 12, 26, 27)]
    if gen >= 8:
        extents = {"x_min_viewport": 6.0, "x_max_viewport": 30.0, "y_min_viewport": 9.0, "y_max_viewport": 22.0}
        assert [box(item) for item in records_of(geometry_state(gen, extents, **origin), objects)] == [(6 + x, 9 + y, 31 + x, 23 + y)]


FAR = 1e30


@pytest.mark.parametrize(("least", "most", "origin", "pixels"), [
    (3.5, 8.5, 0, (3, 9)), (3.51, 8.49, 0, (4, 9)), (4.49, 9.0, 0, (4, 10)), (-FAR, FAR, 0, (0, 16384)), (-FAR, 9.0, 100, (0, 110)),
    (3.0, FAR, -8000, (0, 16384)), (9.0, FAR, 100, (109, 16384)), (FAR, FAR, 0, (32768, 16384)), (math.nan, 9.0, 100, (100, 110)),
    (3.0, math.nan, 100, (103, 100)), (-math.inf, math.inf, -8000, (0, 16384)),
])  # fmt: skip
@pytest.mark.parametrize("axis", ["x", "y"])
def test_extents_of_viewports_in_pixels(axis: str, least: float, most: float, origin: int, pixels: tuple[int, int]) -> None:
    """A pixel is in if its centre is; extents that are far away or no numbers leave what surfaces may have."""
    state = geometry_state(9, {f"{axis}_min_viewport": least, f"{axis}_max_viewport": most},
                           **{f"drawing_rectangle_origin_{axis}": origin, f"clipped_drawing_rectangle_{axis}_max": 0xFFFF})  # fmt: skip
    found = setup.plan(state, (1 << 20, 1 << 20)).viewport[0]
    assert (getattr(found, f"{axis}0"), getattr(found, f"{axis}1")) == pixels


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_surface_limits_what_is_drawn(gen: float) -> None:
    state = geometry_state(gen)
    assert [box(item) for item in records_of(state, chunk_of(FULL, [triangle(0, 1, 2)]), (33, 17))] == [(0, 0, 33, 17)]


@pytest.mark.behaviour("BDW-CLIP-14", shows="action")
def test_the_layer_is_the_leading_vertexs() -> None:
    vertices = [vertex(0, 0, layer=7), vertex(1, 0, layer=1), vertex(0, 1, layer=2)]
    assert [item.layer for item in drawn([triangle(0, 1, 2), point(2)], vertices)] == [7, 2]
    assert [item.layer for item in drawn([triangle(0, 1, 2)], vertices, force_zero_rta_index_enable=1)] == [0]


# -- facing and culling ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-26", "G45-SF-27", "BDW-SF-07", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("counter_clockwise", [0, 1])
@pytest.mark.parametrize("inverted", [0, 1])
def test_facing_and_culling(gen: float, counter_clockwise: int, inverted: int) -> None:
    """On the screen y points down: (0,0) (1,0) (0,1) goes clockwise. An odd triangle of a strip counts the other way."""
    vertices, flags = [vertex(0, 0), vertex(1, 0), vertex(0, 1)], inverted << 3
    objects = [triangle(0, 1, 2, flags=flags, primitive=1), triangle(0, 2, 1, flags=flags, primitive=2)]
    facing = [counter_clockwise ^ inverted, 1 - (counter_clockwise ^ inverted)]
    for cull, kept in ((0, []), (1, [1, 2]), (2, [1 + facing.index(1)]), (3, [1 + facing.index(0)])):
        found = drawn(objects, vertices, gen, front_winding=counter_clockwise, cull_mode=cull)
        assert [item.primitive for item in found] == kept
        assert [item.back_facing for item in found] == [facing[item.primitive - 1] for item in found]


@pytest.mark.behaviour("G45-SF-28", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_only_triangles_are_culled(gen: float) -> None:
    """Facing of points and lines is their topology's; rectangles face front."""
    vertices = [vertex(0.5, 0.5), vertex(-0.5, 0.5), vertex(-0.5, -0.5)]
    objects = [rectangle(0, 1, 2), line(0, 2), point(1), line(0, 2, flags=1 << 9, topology=19), point(1, flags=1 << 9, topology=17)]
    found = drawn(objects, vertices, gen, cull_mode=0)
    assert [(item.topology, item.back_facing) for item in found] == [(15, 0), (2, 0), (1, 0), (19, 1), (17, 1)]


# -- rectangles, lines, points ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-19", "G45-SF-20", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_rectangle(gen: float) -> None:
    """Lower right, lower left, upper left, as drivers' blits have them."""
    (record,) = drawn([rectangle(0, 1, 2)], [vertex(12, 20, 0.25), vertex(4, 20, 0.5), vertex(4, 10, 0.75)], gen, clip_enable=0,
                      viewport_transform_enable=0)  # fmt: skip
    assert set(covered(record)) == {(x, y) for x in range(4, 12) for y in range(10, 20)}
    assert value(record.z, 4, 19) == pytest.approx(0.5 - 0.25 / 16 + 0.25 / 20)
    assert [value(item, 11, 10) for item in record.linear] == pytest.approx([0.5 / 8 - 9.5 / 10, 9.5 / 10])


@pytest.mark.behaviour("G45-SF-38", shows="action")
@given(gen=st.sampled_from(GENERATIONS), a=corner, b=corner, width=st.sampled_from([1.0, 2.5, 4.0]))
def test_lines_are_parallelograms(gen: float, a: tuple[float, float], b: tuple[float, float], width: float) -> None:
    """Moved by half the width along the minor axis; a diagonal counts as x-major."""
    (x0, y0), (x1, y1) = ((screen(x), screen(y)) for x, y in (a, b))
    half, major = Fraction(width) / 2, abs(x1 - x0) >= abs(y1 - y0)
    dx, dy = (Fraction(0), half) if major else (half, Fraction(0))
    exact = [(x0 - dx, y0 - dy), (x1 - dx, y1 - dy), (x1 + dx, y1 + dy), (x0 + dx, y0 + dy)]
    records = drawn([line(0, 1)], [vertex(*a), vertex(*b)], gen, line_width=width, viewport_xy_clip_test_enable=0)  # as drivers do
    found = {pixel for record in records for pixel in covered(record)}
    for x, y in {(x, y) for x in range(0, 64, 2) for y in range(0, 64, 2)} | set(list(found)[:50]):
        assert ((x, y) in found) == polygon_holds(exact, x + Fraction(1, 2), y + Fraction(1, 2)), (x, y)


@pytest.mark.behaviour("G45-SF-38", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_diagonal_line_is_x_major(gen: float) -> None:
    """From (8.5, 8.5) to (12.5, 12.5), one wide: by rows of half a pixel above and below, not left and right."""
    a, b = (8.5 - 32) / 32, (12.5 - 32) / 32
    (record,) = drawn([line(0, 1)], [vertex(a, a), vertex(b, b)], gen)
    assert covered(record) == [(8, 8), (9, 9), (10, 10), (11, 11)]
    (record,) = drawn([line(0, 1)], [vertex(a, a), vertex(b, b)], gen, line_width=2.0)
    assert sorted(covered(record)) == [(x, y) for x in (8, 9, 10, 11) for y in (x, x + 1)]  # the lower edge is a left one


@pytest.mark.behaviour("G45-SF-17", "G45-SF-18", "G45-SF-44", "BDW-SF-05", "BDW-WM-10", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("right", [0, 1])
def test_points_are_squares(gen: float, right: int) -> None:
    """Two pixels wide about (10.5, 20.5): samples on all four edges; the upper and one of the others are in."""
    centre = [vertex((10.5 - 32) / 32, (20.5 - 32) / 32, width=2.0, flags=0 if gen == 4.5 else None)]
    for source, width in ((1, 2.0), (0, 7.0)):
        (record,) = drawn([point(0)], centre, gen, point_width_source=source, point_width=width, point_rasterization_rule=right)
        assert set(covered(record)) == {(x, y) for x in ((10, 11) if right else (9, 10)) for y in (19, 20)}


@pytest.mark.parametrize("width,pixels", [(0.0, 0), (0.125, 1), (0.875, 1), (2.0, 2), (31.0, 31)])
def test_a_vertexs_point_width_is_as_it_is_on_gen45(width: float, pixels: int) -> None:
    """U8.3 in the vertex header, and no limits in state: a point without width is none."""
    centre = [vertex(1 / 64, 1 / 64, width=width, flags=0)]  # of a pixel
    records = drawn([point(0)], centre, 4.5, point_width_source=0)
    assert len({pixel for record in records for pixel in covered(record)}) == pixels**2 and len(records) == bool(pixels)


@pytest.mark.behaviour("BDW-CLIP-12", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("width,pixels", [(0.0, 2), (1.0, 2), (100.0, 6), (math.nan, 2), (4.0, 4)])
def test_a_vertexs_point_width_is_clamped(gen: float, width: float, pixels: int) -> None:
    centre = [vertex(0, 0, width=width)]
    (record,) = drawn([point(0)], centre, gen, point_width_source=0, minimum_point_width=2.0, maximum_point_width=6.0)
    assert len(set(covered(record))) == pixels**2


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_vertices_that_are_put_on_the_screen_once_are_where_each_object_puts_them(gen: float) -> None:
    """With one viewport, vertices are transformed before objects; with two, for each object: the same bits, also of what is no number."""
    random = np.random.default_rng(int(gen * 2))
    special = [np.nan, np.inf, -np.inf, 1e38, -0.0, 1e-42]
    numbers = random.normal(0, 0.8, (60, 4))
    numbers[:, 2:] = abs(numbers[:, 2:]) + 0.1
    for place, number in enumerate(special * 3):
        numbers[3 * place, place % 4] = number
    vertices = [vertex(*(float(np.float32(number)) for number in row)) for row in numbers]
    corners = random.integers(0, len(vertices), (120, 3)).tolist()
    kinds = (triangle, triangle, rectangle, lambda a, b, c: line(a, b), lambda a, b, c: point(a))
    objects = [kinds[number % len(kinds)](*of) for number, of in enumerate(corners)]
    once, each = ([bytes(made) for made in records_of(geometry_state(gen, cull_mode=1, maximum_vp_index=most), chunk_of(vertices, objects))]
                  for most in (0, 1))  # fmt: skip
    assert once == each and len(once) > 20

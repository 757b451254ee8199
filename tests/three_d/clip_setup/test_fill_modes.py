"""Fill modes: triangles of which edges or vertices are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from softgen.three_d.structures import PrimitiveObject, SetupRecord
from tests.three_d.geometry_state import (
    GENERATIONS,
    attributes_of,
    chunk_of,
    covered,
    geometry_state,
    line,
    point,
    records_of,
    rectangle,
    triangle,
    vertex,
)  # fmt: skip

FIXED = [gen for gen in GENERATIONS if gen != 4.5]
WIREFRAME, POINT = 1, 2
CORNERS = [(-0.5, -0.5, 0.0, 1.0), (0.5, -0.5, 0.5, 1.0), (-0.5, 0.5, 0.25, 1.0)]
VERTICES = [vertex(*c, (10.0 * i, 1, 2, 3)) for i, c in enumerate(CORNERS)]
Pixels = set[tuple[int, int]]


def pixels(records: Sequence[SetupRecord]) -> Pixels:
    return {pixel for record in records for pixel in covered(record)}


def drawn(gen: float, objects: Sequence[PrimitiveObject], vertices: Sequence[bytes] = VERTICES, **fields: Any) -> list[SetupRecord]:
    return records_of(geometry_state(gen, **fields), chunk_of(vertices, objects))


def with_edges(edges: int) -> PrimitiveObject:
    object_ = triangle(0, 1, 2)
    object_.flags = object_.flags & ~(7 << 6) | edges << 6
    return object_


@pytest.mark.behaviour("BDW-SF-08", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("edges", range(8))
def test_wireframe_draws_flagged_edges_as_lines(gen: float, edges: int) -> None:
    found = drawn(gen, [with_edges(edges)], front_face_fill_mode=WIREFRAME, line_width=2.0)
    lines = [line(i, (i + 1) % 3) for i in range(3) if edges >> i & 1]
    assert len(found) == len(lines)
    assert pixels(found) == pixels(drawn(gen, lines, line_width=2.0))


@pytest.mark.behaviour("BDW-SF-08", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("edges", range(8))
def test_point_mode_draws_flagged_vertices_as_points(gen: float, edges: int) -> None:
    found = drawn(gen, [with_edges(edges)], front_face_fill_mode=POINT, point_width=3.0)
    points = [point(i) for i in range(3) if edges >> i & 1]
    assert pixels(found) == pixels(drawn(gen, points, point_width=3.0)) and len(found) == len(points)


@pytest.mark.behaviour("BDW-SF-08", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_front_and_back_have_modes_of_their_own(gen: float) -> None:
    both = [triangle(0, 1, 2), triangle(0, 2, 1)]
    found = drawn(gen, both, front_face_fill_mode=POINT, back_face_fill_mode=WIREFRAME)
    assert [record.back_facing for record in found] == [0, 0, 0, 1, 1, 1]
    assert [abs(record.z.dx) + abs(record.z.dy) > 0 for record in found] == [False] * 3 + [True] * 3
    culled = drawn(gen, both, front_face_fill_mode=POINT, back_face_fill_mode=WIREFRAME, cull_mode=2)
    assert [record.back_facing for record in culled] == [1, 1, 1]
    assert len(drawn(gen, [rectangle(0, 1, 2)], front_face_fill_mode=POINT)) == 1


def test_values_of_edges_are_those_of_the_triangle() -> None:
    """Barycentrics of the triangle's vertices, and its attributes, for all parts."""
    state = geometry_state(9, front_face_fill_mode=WIREFRAME, number_of_sf_output_attributes=1, line_width=2.0)
    chunk = chunk_of(VERTICES, [triangle(0, 1, 2)])
    corners, ends = [(16, 16), (48, 16), (16, 48)], [(0, 0), (1, 0), (0, 1)]
    for i, record in enumerate(records_of(state, chunk)):
        for (x, y), b in [(corners[n], ends[n]) for n in (i, (i + 1) % 3)]:
            at = [plane.c + plane.dx * (x - 0.5) + plane.dy * (y - 0.5) for plane in (*record.linear, *record.perspective)]
            assert at == pytest.approx([*b, *b], abs=1e-9)
    solid = geometry_state(9, number_of_sf_output_attributes=1)
    assert set(attributes_of(state, chunk)) == set(attributes_of(solid, chunk))


@pytest.mark.behaviour("BDW-SF-06", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("mode,name", [(0, "solid"), (WIREFRAME, "wireframe"), (POINT, "point")])
def test_depth_offset_of_a_mode_is_the_triangles(gen: float, mode: int, name: str) -> None:
    """Twice the slope of the triangle, if it is enabled for the mode that it is drawn in."""
    offset = {"global_depth_offset_scale": 2.0, "front_face_fill_mode": mode}
    names = ("solid", "wireframe", "point")
    plain = drawn(gen, [triangle(0, 1, 2)], **offset)
    for enabled in names:
        found = drawn(gen, [triangle(0, 1, 2)], **offset, **{f"global_depth_offset_enable_{enabled}": 1})
        moved = {round(b.z.c - a.z.c, 9) for a, b in zip(plain, found, strict=True)}
        assert moved == {2 * 0.25 / 32 if enabled == name else 0.0}


@pytest.mark.parametrize("gen", FIXED)
def test_of_a_clipped_triangle_its_own_edges_are_drawn(gen: float) -> None:
    """The corner at the right is behind the far plane: the edge that clipping makes, and the vertex, are not drawn."""
    vertices = [vertex(-0.5, -0.5, 0.0), vertex(0.5, -0.5, 2.0), vertex(-0.5, 0.5, 0.0)]
    found = drawn(gen, [triangle(0, 1, 2)], vertices, front_face_fill_mode=WIREFRAME, line_width=2.0)
    assert len(found) == 3
    edges = drawn(gen, [line(0, 1), line(1, 2), line(2, 0)], vertices, line_width=2.0)
    assert pixels(found) == pixels(edges)
    (first, second) = drawn(gen, [triangle(0, 1, 2)], vertices, front_face_fill_mode=POINT, point_width=3.0)
    assert pixels([first, second]) == pixels(drawn(gen, [point(0), point(2)], vertices, point_width=3.0))

"""Planes of setup records: Z, 1/w and barycentrics, depth offset; and what SF threads get of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from softgen.three_d.clip_setup.geometry_h import SfInput
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
from tests.three_d.walk import pieces_of

FIXED = [gen for gen in GENERATIONS if gen != 4.5]
grid = st.integers(0, 64 * 256).map(lambda n: (n / 256 - 32) / 32)
corner = st.tuples(grid, grid, st.floats(-1, 1, width=32), st.sampled_from([0.5, 1.0, 3.0]))


def screen(ndc: float) -> Fraction:
    return Fraction(ndc) * 32 + 32


def weights(corners: Sequence[tuple[Fraction, Fraction]], x: int, y: int) -> list[Fraction]:
    """Exact barycentrics at a pixel's centre."""
    (x0, y0), (x1, y1), (x2, y2) = corners
    px, py = x + Fraction(1, 2) - x0, y + Fraction(1, 2) - y0
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    b1, b2 = (px * (y2 - y0) - py * (x2 - x0)) / area, (py * (x1 - x0) - px * (y1 - y0)) / area
    return [1 - b1 - b2, b1, b2]


@given(corners=st.lists(corner, min_size=3, max_size=3))
def test_planes_of_a_triangle_are_those_of_exact_barycentrics(corners: Any) -> None:
    """Positions are given as x*w, y*w, z*w, so that they are on the grid; w is a power of two or 3."""
    exact = [(screen(x), screen(y)) for x, y, _, _ in corners]
    area = (exact[1][0] - exact[0][0]) * (exact[2][1] - exact[0][1]) - (exact[2][0] - exact[0][0]) * (exact[1][1] - exact[0][1])
    assume(abs(area) >= 1)
    vertices = [vertex(x * w, y * w, z * w, w) for x, y, z, w in corners]
    records = records_of(geometry_state(9, viewport_z_near_clip_test_enable=0, viewport_z_far_clip_test_enable=0),
                         chunk_of(vertices, [triangle(0, 1, 2)]))  # fmt: skip
    rhw = [np.float32(1) / np.float32(w) for *_, w in corners]
    depth = [float(np.float32(0.5) * (np.float32(z * w) / np.float32(w)) + np.float32(0.5)) for *_, z, w in corners]
    for record in records:
        for x, y in covered(record)[::37]:
            b = [float(weight) for weight in weights(exact, x, y)]
            assert [value(item, x, y) for item in record.linear] == pytest.approx(b[1:], abs=1e-9)
            assert value(record.z, x, y) == pytest.approx(sum(i * j for i, j in zip(b, depth, strict=True)), abs=1e-9)
            assert value(record.rhw, x, y) == pytest.approx(sum(i * float(j) for i, j in zip(b, rhw, strict=True)), abs=1e-9)
            expected = [b[1] * float(rhw[1]), b[2] * float(rhw[2])]
            assert [value(item, x, y) for item in record.perspective] == pytest.approx(expected, abs=1e-9)


def test_a_small_triangle_far_from_the_origin_keeps_its_precision() -> None:
    """Two pixels wide at x = 8000: in float32 a plane from pixel (0, 0) would be off by 2^-12."""
    corners = [(8000.0, 8000.0), (8002.0, 8000.0), (8000.0, 8002.0)]
    (record,) = records_of(geometry_state(9, viewport_transform_enable=0, clip_enable=0),
                           chunk_of([vertex(*c) for c in corners], [triangle(0, 1, 2)]), (8192, 8192))  # fmt: skip
    assert [value(item, 8000, 8000) for item in record.linear] == pytest.approx([0.25, 0.25], abs=1e-12)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_planes_of_a_line_change_along_it(gen: float) -> None:
    """Constant across, by the distance along the line (G45 5884-5900: the determinant of a line is its squared length)."""
    (record,) = records_of(geometry_state(gen, line_width=4.0), chunk_of([vertex(-0.5, -0.5, 0), vertex(0.5, 0, 1)], [line(0, 1)]))
    for x, y in covered(record)[::5]:
        t = ((x + 0.5 - 16) * 32 + (y + 0.5 - 16) * 16) / (32**2 + 16**2)
        assert value(record.linear[0], x, y) == pytest.approx(t, abs=1e-9)
        assert value(record.z, x, y) == pytest.approx(0.5 + t / 2, abs=1e-9)
        assert value(record.linear[1], x, y) == 0


@pytest.mark.parametrize("gen", GENERATIONS)
def test_planes_of_a_point(gen: float) -> None:
    """Depth and 1/w are its centre's; b1 and b2 measure the square."""
    w = 0.5 if gen == 4.5 else 2.0  # 1/w is in the vertex on 4.5
    x, y = (0.25, 0.25) if gen == 4.5 else (0.5, 0.5)
    state = geometry_state(gen, point_width=8.0)
    (record,) = records_of(state, chunk_of([vertex(x, y, 0.25 if gen == 4.5 else 0.5, w)], [point(0)]))
    assert (value(record.z, 38, 43), value(record.rhw, 38, 43)) == (0.625, 0.5)
    assert [value(item, 36, 43) for item in record.linear] == pytest.approx([0.5 / 8, 7.5 / 8])
    assert [value(item, 36, 43) for item in record.perspective] == pytest.approx([0.25 / 8, 3.75 / 8])


# -- depth offset ----------------------------------------------------------------------------------------------------------

OFFSET = {"global_depth_offset_scale": 2.0, "global_depth_offset_constant": 10.0}
SLOPED = [vertex(-0.5, -0.5, 0.0), vertex(0.5, -0.5, 0.5), vertex(-0.5, 0.5, 0.25)]
SLOPE = 0.25 / 32  # of z on the screen, along x


def enabled(gen: float) -> dict[str, int]:
    return {"global_depth_offset_enable" if gen == 4.5 else "global_depth_offset_enable_solid": 1}


def depth_buffer(gen: float, code: int) -> dict[str, Any]:
    """Where the format of the depth buffer comes from."""
    if gen in (7, 7.5):
        return {"depth_buffer_surface_format": code}
    return {"commands": {"3DSTATE_DEPTH_BUFFER": {"surface_format": code}}}


def bias(gen: float, objects: Sequence[PrimitiveObject] | None = None, **fields: Any) -> float:
    plain, moved = (records_of(geometry_state(gen, **given), chunk_of(SLOPED, objects or [triangle(0, 1, 2)])) for given in ({}, fields))
    return float(moved[0].z.c - plain[0].z.c)


@pytest.mark.behaviour("BDW-SF-06", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_depth_offset(gen: float) -> None:
    """Scale times the steeper slope, and the constant in units of the depth format."""
    packed = ((2, 1 / (2**24 - 1)), (0, 2 ** (-1 - 23))) if gen < 8 else ()  # with stencil beside it
    for code, unit in ((3, 1 / (2**24 - 1)), (5, 1 / (2**16 - 1)), (1, 2 ** (-1 - 23)), *packed):
        found = bias(gen, **OFFSET, **enabled(gen), **depth_buffer(gen, code))
        assert found == pytest.approx(2 * SLOPE + 10 * unit, rel=1e-6), code
    assert bias(gen, **OFFSET) == 0
    assert bias(gen, **OFFSET, **enabled(gen), **depth_buffer(gen, 3), legacy_global_depth_bias_enable=1) == pytest.approx(2 * SLOPE + 10)


@pytest.mark.behaviour("BDW-SF-06", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("scale,clamp,expected", [(2.0, 0.001, 0.001), (2.0, -0.001, 2 * SLOPE), (-2.0, -0.001, -0.001),
                                                  (-2.0, 0.001, -2 * SLOPE), (2.0, 0.0, 2 * SLOPE)])  # fmt: skip
def test_depth_offset_is_clamped_on_one_side(gen: float, scale: float, clamp: float, expected: float) -> None:
    fields = {"global_depth_offset_scale": scale, "global_depth_offset_clamp": clamp}
    assert bias(gen, **fields, **enabled(gen), **depth_buffer(gen, 3)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_only_triangles_are_offset(gen: float) -> None:
    for objects in ([line(0, 1)], [point(0)], [rectangle(0, 1, 2)]):
        assert bias(gen, objects, **OFFSET, **enabled(gen)) == 0


# -- inputs of SF threads ---------------------------------------------------------------------------------------------------


def sf_inputs(objects: Sequence[PrimitiveObject], vertices: Sequence[bytes], **fields: Any) -> list[tuple[SfInput, SetupRecord]]:
    seen = pieces_of(geometry_state(4.5, **fields), chunk_of(vertices, objects))
    (piece,) = seen.pieces
    held = (SfInput * len(piece.records)).from_address(seen.record.geometry.struct.sf_inputs)
    return [(SfInput.from_buffer_copy(item), record) for item, record in zip(held, piece.records, strict=True)]


def floats(words: Any) -> tuple[float, ...]:
    return struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *words))


PIXELS = {"viewport_transform_enable": 0, "clip_enable": 0}  # positions are pixels


@pytest.mark.behaviour("G45-SF-45", "G45-SF-48", "G45-SF-49", "G45-SF-50", "G45-SF-51", "G45-SF-52", shows="action")
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("provoking", [0, 1, 2])
def test_an_sf_thread_gets_a_triangle_from_its_topmost_vertex_on(order: tuple[int, int, int], provoking: int) -> None:
    """Of two at the same height the left one; clockwise from there, however the triangle came."""
    vertices = [vertex(10, 5, 0.25, 0.5), vertex(30, 5, 0.5, 0.25), vertex(20, 45, 0.75, 0.125)]
    fields = {"front_winding": 1, "sprite_point_enable": 1, **PIXELS}
    ((found, record),) = sf_inputs([triangle(*order, provoking=provoking, topology=6)], vertices, **fields)
    assert (list(found.vertex), found.vertices, found.r1[1]) == ([0, 1, 2], 3, order[provoking])
    clockwise = order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    assert found.r1[0] == 6 | 1 << 16 | clockwise << 17
    assert floats(found.r1)[2:7] == (800, 20, 10, 0, 40)
    assert floats(found.r2)[:6] == (0.25, 0.5, 0.5, 0.25, 0.75, 0.125)
    assert (record.x_start, record.y_start) == (9.5, 4.5)


@pytest.mark.behaviour("G45-SF-46", "G45-SF-48", shows="action")
@pytest.mark.parametrize("swapped", [False, True])
def test_an_sf_thread_gets_a_line_from_its_upper_end_on(swapped: bool) -> None:
    vertices = [vertex(30, 10, 0.25, 0.5), vertex(10, 20, 0.5, 0.25)]
    ((found, record),) = sf_inputs([line(1, 0, provoking=1) if swapped else line(0, 1)], vertices, **PIXELS)
    assert (list(found.vertex)[:2], found.vertices, found.r1[1], found.r1[0]) == ([0, 1], 2, 0, 2)
    assert floats(found.r1)[2:7] == (500, -20, 0, 10, 0)
    assert floats(found.r2)[:4] == (0.25, 0.5, 0.5, 0.25)
    assert (record.x_start, record.y_start) == (29.5, 9.5)


@pytest.mark.behaviour("G45-SF-47", "G45-SF-52", shows="action")
def test_an_sf_thread_gets_the_corners_of_a_point_and_one_vertex() -> None:
    """Upper left, lower right, lower left."""
    ((found, record),) = sf_inputs([point(1)], [vertex(0, 0), vertex(20, 30, 0.5, 0.25)], point_width=4.0, **PIXELS)
    assert (found.vertex[0], found.vertices) == (1, 1)
    assert floats(found.r1)[2:7] == (16, 4, 0, 4, 4)
    assert floats(found.r2)[:6] == (0.5, 0.25) * 3
    assert (record.x_start, record.y_start) == (17.5, 27.5)


@pytest.mark.behaviour("G45-SF-43", shows="action")
def test_start_is_less_the_destination_origin_bias() -> None:
    vertices = [vertex(10, 5), vertex(30, 5), vertex(10, 45)]
    bias = {"destination_origin_horizontal_bias": 0.0, "destination_origin_vertical_bias": 0.5}
    ((_, record),) = sf_inputs([triangle(0, 1, 2)], vertices, **bias, **PIXELS)
    assert (record.x_start, record.y_start, record.y0, record.x0) == (10, 4.5, 5, 10)


def test_floats_that_are_no_numbers_do_not_reach_integers() -> None:
    """Infinite coordinates are clamped."""
    vertices = [vertex(math.inf, 0), vertex(0, -math.inf), vertex(0, 0)]
    records = records_of(geometry_state(9, clip_mode=4), chunk_of(vertices, [triangle(0, 1, 2)]))
    assert all(abs(record.edge[i]) < 2**62 for record in records for i in range(3))

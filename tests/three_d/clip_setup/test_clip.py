"""CLIP: outcodes, what becomes of objects, and what clipping leaves of them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from softgen.errors import DecodeError
from softgen.three_d.clip_setup import clip
from softgen.three_d.clip_setup.clip import DISCARD, MUST, PASS
from softgen.three_d.clip_setup.geometry import GeometryMemory
from softgen.three_d.clip_setup.geometry_h import ClipPlan, ClipResult
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import PrimitiveObject, ScreenPosition, SetupRecord
from tests.three_d.geometry_state import (
    GENERATIONS,
    chunk_of,
    covered,
    geometry_state,
    line,
    point,
    records_of,
    rectangle,
    thing,
    triangle,
    value,
    vertex,
)  # fmt: skip
from tests.three_d.walk import pieces_of

X_MIN, X_MAX, Y_MIN, Y_MAX, Z_MIN, Z_MAX = (1 << bit for bit in (31, 30, 29, 28, 27, 26))
BAD, NEGATIVE_W = 1 << 13, 1 << 12
FIXED = [gen for gen in GENERATIONS if gen != 4.5]  # generations with a fixed-function clipper
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 8.0, -8.0, 8.5, -9.0, 100.0, math.inf, -math.inf, math.nan)
coordinates = st.sampled_from(SPECIAL) | st.floats(-10, 10, width=32)


class ClipOutcome:
    """What CLIP made of a chunk."""

    def __init__(self, state: DrawState, vertices: Sequence[bytes], objects: Sequence[PrimitiveObject]) -> None:
        memory, chunk = GeometryMemory(), chunk_of(vertices, objects)
        seen = pieces_of(state, chunk, memory=memory)
        self.counts, self.records = seen.counts, sum(len(piece.records) for piece in seen.pieces)
        codes = (ctypes.c_uint32 * len(vertices)).from_buffer_copy(memory.outcodes)
        self.outcodes = list(codes)
        results = (ClipResult * len(objects)).from_buffer_copy(memory.results)
        self.actions, self.object_codes = [result.action for result in results], [result.outcodes for result in results]
        positions = (ScreenPosition * len(vertices)).from_address(chunk.vertices.positions)
        self.positions = [(p.x, p.y, p.z, p.rhw) for p in positions]


# -- the test, against a plain twin --------------------------------------------------------------------------------------


def axis(number: float, low: float, high: float, flipped: bool) -> tuple[bool, bool]:
    """Outside of the minimum, of the maximum."""
    return (not number < low, not number > high) if flipped else (number < low, number > high)


def twin(plan: ClipPlan, position: Sequence[float], flags: int) -> int:
    """VertexClipTest (G45 4181-4364), in the order of the manual; flags: user planes that the vertex is outside of."""
    with np.errstate(invalid="ignore", over="ignore"):
        x, y, z, w = (np.float32(item) for item in position)
        if np.isnan(w):
            return BAD
        negative = not w > 0 if plan.clip_space else bool(np.signbit(w))
        scale = w if plan.clip_space else np.float32(1)
        flipped, nan_code = negative and not plan.clip_space, 3 if plan.test_xy or plan.test_guardband else 0
        sets = []
        for limits, tested in ((plan.viewport, plan.test_xy), (plan.guardband[0], plan.test_guardband)):
            pairs = (axis(x, np.float32(limits.x_min) * scale, np.float32(limits.x_max) * scale, flipped),
                     axis(y, np.float32(limits.y_min) * scale, np.float32(limits.y_max) * scale, flipped))  # fmt: skip
            bits = [nan_code if np.isnan(item) else (pair[0] * 2 + pair[1]) * tested for item, pair in zip((x, y), pairs, strict=True)]
            sets.append(bits[0] << 2 | bits[1])
        viewport_code, guard_code = sets[0] if plan.test_xy else sets[1], sets[1] if plan.test_guardband else sets[0]
        pair = (True, True) if np.isnan(z) else axis(z, np.float32(plan.z_min) * scale, scale, flipped)
        code = viewport_code << 28 | guard_code << 22
        code |= Z_MIN * (pair[0] and plan.test_z_min) | Z_MAX * (pair[1] and plan.test_z_max)
        code |= NEGATIVE_W * (negative and plan.test_negative_w)
        return code | (flags & plan.user_clip) << 14 | flags & plan.user_cull


def decided(plan: ClipPlan, codes: Sequence[int]) -> int:
    """ClipDetermination and the clip mode (G45 4383-4512)."""
    codes = [code & ~(15 << 22) & ~(0 if plan.test_xy else 15 << 28) for code in codes] if len(codes) == 1 else codes
    every = any_of = codes[0]
    for code in codes:
        every, any_of = every & code, any_of | code
    rejected = bool(every & ~BAD)
    accepted = not rejected and not any_of & (15 << 22 | Z_MIN | Z_MAX | NEGATIVE_W | (0xFF << 14 if plan.user_must_clip else 0))
    bad, must = bool(any_of & BAD), not rejected and not accepted
    return [DISCARD if rejected or bad else MUST if must else PASS, MUST, DISCARD if rejected or bad else MUST, DISCARD,
            DISCARD if bad else PASS][plan.mode]  # fmt: skip


tests = st.fixed_dictionaries({
    "viewport_xy_clip_test_enable": st.integers(0, 1), "guardband_clip_test_enable": st.integers(0, 1), "api_mode": st.integers(0, 1),
    "user_clip_distance_clip_test_enable_bitmask": st.sampled_from([0, 1, 5]),
})  # fmt: skip


@pytest.mark.behaviour("BDW-CLIP-02", "BDW-CLIP-03", "BDW-CLIP-05", "BDW-CLIP-06", "BDW-CLIP-07", shows="action")
@given(gen=st.sampled_from(FIXED), fields=tests, z=st.integers(0, 1), mode=st.sampled_from([0, 3, 4]), cull=st.sampled_from([0, 2]),
       positions=st.lists(st.tuples(*[coordinates] * 4), min_size=3, max_size=3),
       distances=st.lists(coordinates, min_size=12, max_size=12))  # fmt: skip
def test_fixed_function(gen: float, fields: dict[str, int], z: int, mode: int, cull: int, positions: Any, distances: Any) -> None:
    far = 1 if gen >= 9 else z  # one bit for both planes until 9
    planes = {"viewport_z_near_clip_test_enable": z, "viewport_z_far_clip_test_enable": far}
    enables = {"viewport_z_clip_test_enable": z} if gen < 8 else planes
    state = geometry_state(gen, **fields, **enables, clip_mode=mode, user_clip_distance_cull_test_enable_bitmask=cull)
    plan = clip.plan(state)
    assert (plan.test_z_min, plan.test_z_max) == (z, far)
    vertices = [vertex(*p, distances[4 * i : 4 * i + 4]) for i, p in enumerate(positions)]
    found = ClipOutcome(state, vertices, [triangle(0, 1, 2), line(0, 1), point(0)])
    flags = [sum((not distances[4 * i + k] >= 0) << k for k in range(4)) for i in range(3)]
    codes = [twin(plan, p, f) for p, f in zip(positions, flags, strict=True)]
    assert found.outcodes == codes
    assert found.actions == [decided(plan, codes), decided(plan, codes[:2]), decided(plan, codes[:1])]


@pytest.mark.parametrize("xy, guard", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("z, api", [(0, 0), (1, 0), (1, 1)])
def test_sixteen_vertices_at_a_time_are_what_single_ones_are(xy: int, guard: int, z: int, api: int) -> None:
    """Outcodes and positions of the specialised version, against the twin and against vertices that come in fewer than sixteen."""
    rng = np.random.default_rng(xy + 2 * guard + 4 * z + 8 * api)
    values = rng.uniform(-10, 10, (53, 4)).astype(np.float32)
    special = rng.random(values.shape) < 0.3
    values[special] = rng.choice(np.array(SPECIAL, np.float32), special.sum())
    positions = [tuple(float(item) for item in row) for row in values]
    state = geometry_state(9, viewport_xy_clip_test_enable=xy, guardband_clip_test_enable=guard, viewport_z_near_clip_test_enable=z,
                           viewport_z_far_clip_test_enable=1 - z, api_mode=api)  # fmt: skip
    vertices, plan = [vertex(*p) for p in positions], clip.plan(state)
    objects = [triangle(n, n + 1, n + 2) for n in range(51)]
    found, codes = ClipOutcome(state, vertices, objects), [twin(plan, p, 0) for p in positions]
    assert found.outcodes == codes and len(set(codes)) > (10 if xy or guard else 2)
    assert found.actions == [decided(plan, codes[n : n + 3]) for n in range(51)]
    single = [ClipOutcome(state, vertices[n : n + 3], [triangle(0, 1, 2)]) for n in range(0, 51, 3)]
    np.testing.assert_array_equal(found.positions[:51], [p for item in single for p in item.positions])
    assert found.object_codes[::3] == [item.object_codes[0] for item in single]


@pytest.mark.behaviour("G45-CLIP-02", "G45-CLIP-03", "G45-CLIP-05", "G45-CLIP-06", "G45-CLIP-07", "G45-CLIP-08", "G45-CLIP-09",
                       "G45-CLIP-10", "G45-CLIP-11", "G45-CLIP-13", "G45-CLIP-15", "G45-CLIP-16", "G45-CLIP-17", "G45-CLIP-20",
                       "G45-CLIP-21", "G45-CLIP-22", "G45-CLIP-23", "G45-CLIP-24", "G45-CLIP-25", "G45-CLIP-26", "G45-CLIP-27",
                       "G45-CLIP-28", "G45-CLIP-29", shows="action")  # fmt: skip
@given(fields=tests, z=st.integers(0, 1), w=st.integers(0, 1), must=st.integers(0, 1), screen=st.integers(0, 1), mode=st.integers(0, 4),
       positions=st.lists(st.tuples(*[coordinates] * 4), min_size=3, max_size=3),
       flags=st.lists(st.integers(0, 255), min_size=3, max_size=3))  # fmt: skip
def test_unit(fields: dict[str, int], z: int, w: int, must: int, screen: int, mode: int, positions: Any, flags: Any) -> None:
    """4.5: positions are NDC with 1/w, or on the screen; user clip codes are flags of the vertex header."""
    state = geometry_state(4.5, **fields, viewport_z_clip_test_enable=z, negative_w_clip_test_enable=w, clip_mode=mode,
                           user_clip_flags_must_clip_enable=must, vertex_position_space=screen, screen_space_viewport_x_min=-2.0,
                           screen_space_viewport_x_max=2.0, screen_space_viewport_y_min=-3.0, screen_space_viewport_y_max=3.0)  # fmt: skip
    plan = clip.plan(state)
    assert (plan.viewport.x_max, plan.viewport.y_min) == ((2, -3) if screen else (1, -1))
    vertices = [vertex(*p, flags=f) for p, f in zip(positions, flags, strict=True)]
    found = ClipOutcome(state, vertices, [triangle(0, 1, 2), line(0, 1), point(0)])
    codes = [twin(plan, p, f) for p, f in zip(positions, flags, strict=True)]
    assert found.outcodes == codes
    assert found.actions == [decided(plan, codes), decided(plan, codes[:2]), decided(plan, codes[:1])]


def flagged(plan: ClipPlan, position: Sequence[float], flags: int) -> int:
    """VertexClipTest of [DevCL-B] (G45 3714-3761): no comparison turns round, 1/w below zero is outside user plane 7."""
    x, y, z, w = position
    if math.isnan(w) or flags & 0x80:
        return BAD
    return twin(plan, (x, y, z, abs(w)), flags) | ((plan.user_clip & 0x80) << 14 if np.signbit(np.float32(w)) else 0)


@pytest.mark.behaviour("G45-CLIP-04", "G45-CLIP-18", "G45-CLIP-30", shows="action")
@given(fields=tests, z=st.integers(0, 1), must=st.integers(0, 1), mode=st.integers(0, 4), planes=st.sampled_from([0, 5, 0x40, 0x80, 0xC1]),
       positions=st.lists(st.tuples(*[coordinates] * 4), min_size=3, max_size=3),
       flags=st.lists(st.sampled_from([0, 1, 0x40, 0x41, 0x80]), min_size=3, max_size=3))  # fmt: skip
def test_unit_of_gen_4(fields: dict[str, int], z: int, must: int, mode: int, planes: int, positions: Any, flags: Any) -> None:
    """A bad object is clipped in all modes but one (G45 4484); there is no plane of its own for negative 1/w."""
    given_fields = fields | {"user_clip_distance_clip_test_enable_bitmask": planes}
    state = geometry_state(4, **given_fields, viewport_z_clip_test_enable=z, clip_mode=mode, user_clip_flags_must_clip_enable=must)
    plan = clip.plan(state)
    vertices = [vertex(*p, flags=f) for p, f in zip(positions, flags, strict=True)]
    found = ClipOutcome(state, vertices, [triangle(0, 1, 2), line(0, 1), point(0)])
    codes = [flagged(plan, p, f) for p, f in zip(positions, flags, strict=True)]
    assert found.outcodes == codes
    objects = (codes, codes[:2], codes[:1])
    assert found.actions == [MUST if any(code & BAD for code in given) and mode != 3 else decided(plan, given) for given in objects]


@pytest.mark.behaviour("G45-CLIP-35", "G45-CLIP-37", "G45-CLIP-38", shows="action")
def test_outcodes_of_an_object_are_those_of_a_clip_threads_payload() -> None:
    corners = [vertex(-9, 0, 0, 1, flags=0), vertex(0, 0, 2, 1, flags=0), vertex(0, 9, 0, -1, flags=1)]
    interior = thing((0, 1, 2), topology=14)
    interior.flags &= ~(7 << 6)
    strip = [triangle(0, 1, 2, topology=5), triangle(0, 1, 2, topology=5, flags=1 << 3)]
    objects = [triangle(0, 1, 2), *strip, thing((0, 1, 2), topology=14), interior]
    found = ClipOutcome(geometry_state(4.5, user_clip_distance_clip_test_enable_bitmask=1), corners, objects)
    base = X_MIN | 1 << 25 | Z_MAX | X_MIN | X_MAX | Y_MIN | 1 << 25 | 1 << 24 | 1 << 23 | Z_MIN | Z_MAX | 1 << 14 | NEGATIVE_W
    assert found.actions == [MUST] * 5
    assert [code & 0xFFFFFC00 for code in found.object_codes] == [base] * 5
    assert [code & 0x3FF for code in found.object_codes] == [4, 5, 13, 14 | 3 << 8, 14]


@pytest.mark.behaviour("G45-CLIP-01", "BDW-CLIP-01", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_disabled_lets_everything_pass(gen: float) -> None:
    found = ClipOutcome(geometry_state(gen, clip_enable=0), [vertex(5, 0), vertex(6, 0), vertex(5, 9)], [triangle(0, 1, 2)])
    assert found.actions == [PASS] and found.counts["CL_INVOCATION_COUNT"] == 0


@pytest.mark.parametrize("gen", FIXED)
def test_positions_are_divided_by_w(gen: float) -> None:
    found = ClipOutcome(geometry_state(gen), [vertex(1, -3, 1.5, 4), vertex(2, 2, 2, 2)], [line(0, 1)])
    assert found.positions == [(0.25, -0.75, 0.375, 0.25), (1, 1, 1, 0.5)]


@pytest.mark.behaviour("BDW-CLIP-09", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_perspective_divide_can_be_disabled(gen: float) -> None:
    state = geometry_state(gen, perspective_divide_disable=1, clip_mode=4)
    assert ClipOutcome(state, [vertex(1, -3, 1.5, 4)], [point(0)]).positions == [(1, -3, 1.5, 4)]
    with pytest.raises(DecodeError, match="perspective_divide_disable needs clip_mode accept_all"):
        clip.plan(geometry_state(gen, perspective_divide_disable=1, clip_mode=0))


@pytest.mark.behaviour("BDW-CLIP-04", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_api_mode_chooses_the_near_plane(gen: float) -> None:
    near = [vertex(0, 0, -0.5)]
    assert ClipOutcome(geometry_state(gen, api_mode=0), near, [point(0)]).actions == [PASS]
    assert ClipOutcome(geometry_state(gen, api_mode=1), near, [point(0)]).actions == [DISCARD]


@pytest.mark.behaviour("BDW-CLIP-08", "BDW-VS-12", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_masks_of_the_last_shader_stage(gen: float) -> None:
    """They hold unless the clip unit's are forced."""
    stage = {"enable": 1, "user_clip_distance_clip_test_enable_bitmask": 6, "user_clip_distance_cull_test_enable_bitmask": 8}
    own = {"user_clip_distance_clip_test_enable_bitmask": 1, "user_clip_distance_cull_test_enable_bitmask": 2}
    force = "force_user_clip_distance_clip_test_enable_bitmask", "force_user_clip_distance_cull_test_enable_bitmask"
    for forced, masks in ((1, (1, 2)), (0, (6, 8))):
        plan = clip.plan(geometry_state(gen, commands={"3DSTATE_VS": stage}, **own, **dict.fromkeys(force, forced)))
        assert (plan.user_clip, plan.user_cull) == masks
    disabled = clip.plan(geometry_state(gen, commands={"3DSTATE_VS": {"enable": 0}}, **own, **dict.fromkeys(force, 0)))
    assert (disabled.user_clip, disabled.user_cull) == (1, 2)


@pytest.mark.parametrize("gen", FIXED)
def test_rendering_disabled_by_stream_output_rejects(gen: float) -> None:
    state = geometry_state(gen, rendering_disable=1)
    assert ClipOutcome(state, [vertex(0, 0)], [point(0)]).actions == [DISCARD]
    never = geometry_state(gen)
    never.latched.pop("3DSTATE_STREAMOUT")  # type: ignore[attr-defined]
    assert ClipOutcome(never, [vertex(0, 0)], [point(0)]).actions == [PASS], "nor where nobody says anything of it"


@pytest.mark.behaviour("G45-CLIP-46", "BDW-CLIP-13", shows="action")
def test_the_guardband_is_that_of_the_vertexs_viewport() -> None:
    """An index past the last valid viewport counts as 0."""
    state = geometry_state(9, maximum_vp_index=1, viewports=[{}, {"x_max_clip_guardband": 2.0}, {"x_max_clip_guardband": 2.0}])
    found = ClipOutcome(state, [vertex(5, 0, viewport=0), vertex(5, 0, viewport=1), vertex(5, 0, viewport=2)], [point(0)])
    assert [code >> 24 & 1 for code in found.outcodes] == [0, 1, 0]


@pytest.mark.behaviour("BDW-CLIP-05", "G45-CLIP-12", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_points_are_not_tested_against_the_guardband(gen: float) -> None:
    """Nor against the viewport, if that test is off; the manual's pseudo-code says otherwise, its field's text does not (G45 4090)."""
    far = [vertex(20, 0)]
    assert ClipOutcome(geometry_state(gen, viewport_xy_clip_test_enable=0), far, [point(0)]).actions == [PASS]
    assert ClipOutcome(geometry_state(gen, viewport_xy_clip_test_enable=1), far, [point(0)]).actions == [DISCARD]
    near = geometry_state(gen, {"x_max_clip_guardband": 0.5})
    assert ClipOutcome(near, [vertex(0.75, 0)], [point(0)]).actions == [PASS]


@pytest.mark.behaviour("G45-CLIP-26", "G45-CLIP-29", shows="action")
def test_bad_objects_by_mode() -> None:
    """1/w is no number: only a mode that spawns threads for everything spawns one for it."""
    bad = [vertex(0, 0, 0, math.nan, flags=0)]
    found = [ClipOutcome(geometry_state(4.5, clip_mode=mode), bad, [point(0)]).actions[0] for mode in range(5)]
    assert found == [DISCARD, MUST, DISCARD, DISCARD, DISCARD]


# -- statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-CLIP-16", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("counted", [0, 1])
def test_counters(gen: float, counted: int) -> None:
    """An invocation for each object; a primitive for each that leaves CLIP, of a clipped triangle for each part."""
    vertices = [vertex(-0.5, 0), vertex(0.5, 0), vertex(0, 0.5), vertex(20, 0), vertex(20, 1), vertex(21, 0)]
    objects = [triangle(0, 1, 2), triangle(0, 3, 2), triangle(3, 4, 5)]
    found = ClipOutcome(geometry_state(gen, clipper_statistics_enable=counted, statistics_enable=counted), vertices, objects).counts
    assert (found["CL_INVOCATION_COUNT"], found["CL_PRIMITIVES_COUNT"]) == ((3, 3) if counted else (0, 0))


@pytest.mark.parametrize("gen, expected", [(4.0, 1), (4.5, 0)])
@pytest.mark.parametrize("counted", [0, 1])
def test_where_threads_clip_they_are_counted_or_count(gen: float, expected: int, counted: int) -> None:
    """Of three objects one is clipped. Gen4 counts the threads; later kernels count (G45 4805-4811)."""
    vertices = [vertex(-0.5, 0), vertex(0.5, 0), vertex(0, 0.5), vertex(20, 0), vertex(20, 1), vertex(21, 0)]
    objects = [triangle(0, 1, 2), triangle(0, 3, 2), triangle(3, 4, 5)]
    found = ClipOutcome(geometry_state(gen, clipper_statistics_enable=counted), vertices, objects)
    assert found.actions == [PASS, MUST, DISCARD] and found.counts["CL_INVOCATION_COUNT"] == expected * counted


# -- what clipping leaves -------------------------------------------------------------------------------------------------


def solve(corners: Sequence[Sequence[float]], x: float, y: float) -> Any:
    """Weights of a triangle's vertices at an NDC point, not normalised: the point is in front of the viewer where they sum to w > 0."""
    matrix = np.array([[c[0], c[1], c[3]] for c in corners], np.float64).T
    return np.linalg.solve(matrix, np.array([x, y, 1.0]))


def ndc(x: int, y: int) -> tuple[float, float]:
    return (x + 0.5 - 32) / 32, (y + 0.5 - 32) / 32


positions = st.tuples(st.floats(-30, 30, width=32), st.floats(-30, 30, width=32), st.floats(-3, 3, width=32), st.floats(-2, 4, width=32))


@pytest.mark.behaviour("BDW-CLIP-02", "BDW-CLIP-10", shows="action")
@given(gen=st.sampled_from(FIXED), corners=st.lists(positions, min_size=3, max_size=3))
def test_parts_of_a_clipped_triangle_cover_what_of_it_is_visible(gen: float, corners: Any) -> None:
    """Against weights found by solving for them, at pixels that are not on an edge; barycentrics are those of the whole triangle."""
    state, chunk = geometry_state(gen), chunk_of([vertex(*c) for c in corners], [triangle(0, 1, 2)])
    assume(abs(np.linalg.det(np.array([[c[0], c[1], c[3]] for c in corners]))) > 1)
    assume(all(abs(c[3]) > 0.01 for c in corners))
    records = records_of(state, chunk)
    of_pixel: dict[tuple[int, int], list[SetupRecord]] = {}
    for record in records:
        for pixel in covered(record):
            of_pixel.setdefault(pixel, []).append(record)
    for x, y in [(x, y) for x in range(0, 64, 7) for y in range(0, 64, 7)]:
        check_pixel(corners, x, y, of_pixel.get((x, y), []))


def check_pixel(corners: Any, x: int, y: int, found: list[SetupRecord]) -> None:
    weights = solve(corners, *ndc(x, y))
    total = float(weights.sum())
    near = [solve(corners, *ndc(x + dx, y + dy)) for dx in (-0.1, 0.1) for dy in (-0.1, 0.1)]  # type: ignore[arg-type]
    z = sum(float(w) * c[2] for w, c in zip(weights, corners, strict=True))
    zs = [sum(float(w) * c[2] for w, c in zip(item, corners, strict=True)) for item in near]
    states = {bool((item > 0).all() and -1 < k < 1) for item, k in zip([weights, *near], [z, *zs], strict=True)}
    if len(states) > 1:
        return  # on an edge, or on a Z plane
    assert len(found) == states.pop()
    for record in found:
        b = value(record.perspective[0], x, y) / value(record.rhw, x, y), value(record.perspective[1], x, y) / value(record.rhw, x, y)
        assert b == pytest.approx((weights[1] / total, weights[2] / total), abs=0.05)
        assert value(record.z, x, y) == pytest.approx(z / 2 + 0.5, abs=0.05)


def test_barycentrics_of_a_clipped_triangle_are_exact() -> None:
    """A triangle whose right corner is far out: with and without perspective the values are those of the whole one."""
    corners = [(-0.5, -0.5, 0, 1), (40, -0.5, 0, 2), (-0.5, 0.5, 0, 0.5)]
    state = geometry_state(9, number_of_sf_output_attributes=1)
    (first, *others) = records_of(state, chunk_of([vertex(*c) for c in corners], [triangle(0, 1, 2)]))
    assert others
    screen = [(c[0] / c[3], c[1] / c[3], 0, 1) for c in corners]
    for record in (first, *others):
        for x, y in list(covered(record))[::7]:
            weights = solve(corners, *ndc(x, y))
            assert value(record.perspective[0], x, y) / value(record.rhw, x, y) == pytest.approx(weights[1] / weights.sum(), abs=1e-4)
            linear = solve(screen, *ndc(x, y))
            assert [value(item, x, y) for item in record.linear] == pytest.approx(list(linear[1:]), abs=1e-4)
            assert record.attributes == first.attributes


@pytest.mark.behaviour("BDW-CLIP-07", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_a_user_plane_cuts_a_triangle(gen: float) -> None:
    """Distance 0 is at x = 0."""
    corners = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
    vertices = [vertex(x, y, 0, 1, (x, 0, 0, 0)) for x, y in corners]
    state = geometry_state(gen, user_clip_distance_clip_test_enable_bitmask=1)
    records = records_of(state, chunk_of(vertices, [triangle(0, 1, 2), triangle(2, 1, 3)]))
    assert sorted(pixel for record in records for pixel in covered(record)) == [(x, y) for x in range(32, 64) for y in range(64)]


@pytest.mark.parametrize("gen", FIXED)
def test_a_line_is_cut_at_the_near_plane(gen: float) -> None:
    """From z = 0 to z = -2: half of it is in front."""
    vertices = [vertex(-1, 0.015625, 0), vertex(1, 0.015625, -2)]
    there, back = records_of(geometry_state(gen), chunk_of(vertices, [line(0, 1), line(1, 0)]))
    for record, part in ((there, 10.5 / 64), (back, 1 - 10.5 / 64)):
        assert list(covered(record)) == [(x, 32) for x in range(32)]
        assert value(record.linear[0], 10, 32) == pytest.approx(part, abs=1e-6)
    both = geometry_state(gen, user_clip_distance_clip_test_enable_bitmask=1)
    cut = [vertex(x, y, z, 1, (d, 0, 0, 0)) for (x, y, z), d in zip([(-1, 0.015625, 0), (1, 0.015625, -2)], (-1, 3), strict=True)]
    (record,) = records_of(both, chunk_of(cut, [line(0, 1)]))
    assert list(covered(record)) == [(x, 32) for x in range(16, 32)]


homogeneous = st.tuples(st.floats(-30, 30, width=32), st.floats(-30, 30, width=32), st.floats(-1, 3, width=32))


@given(apex=homogeneous, a=homogeneous, b=homogeneous, weights=st.tuples(st.floats(-3, 3), st.floats(-3, 3)))
def test_a_clipped_edge_is_the_same_for_both_triangles(apex: Any, a: Any, b: Any, weights: Any) -> None:
    """Two triangles with a common edge, whose third corners are on different sides of it, have no pixel in common."""
    assume(abs(np.linalg.det(np.array([a, b, apex]))) > 1e-3)
    other = [weights[0] * i + weights[1] * j - k for i, j, k in zip(a, b, apex, strict=True)]
    vertices = [vertex(x, y, 0.0, w) for x, y, w in (apex, other, a, b)]
    state, seen = geometry_state(9, viewport_z_near_clip_test_enable=0, viewport_z_far_clip_test_enable=0), []
    for objects in ([triangle(2, 3, 0)], [triangle(3, 2, 1)]):
        seen.append({pixel for record in records_of(state, chunk_of(vertices, objects)) for pixel in covered(record)})
    assert not seen[0] & seen[1]


def test_objects_that_are_no_numbers_vanish() -> None:
    """A NaN in a triangle that must be clipped, and in one that passes."""
    vertices = [vertex(math.nan, 0, 0, 1), vertex(20, 0, 0, 1), vertex(0, 1, 0, 1), vertex(0, 0, math.nan, 1)]
    state = geometry_state(9, viewport_z_near_clip_test_enable=0, viewport_z_far_clip_test_enable=0)
    assert records_of(state, chunk_of(vertices, [triangle(0, 1, 2), triangle(3, 2, 2), point(3)])) == []


def test_a_rectangle_is_not_clipped() -> None:
    """It ends at the limits of what is drawn; software keeps it within the guardband (G45 821)."""
    (record,) = records_of(geometry_state(9), chunk_of([vertex(20, 1), vertex(-1, 1), vertex(-1, -1)], [rectangle(0, 1, 2)]))
    assert (record.x0, record.y0, record.x1, record.y1, record.edges) == (0, 0, 64, 64, 4)


def test_the_guardband_may_reach_beyond_the_largest_surface() -> None:
    """A driver's guardband is centred on the render area: corners that clipping leaves at its end are not clamped."""
    gen, center, far = 9, 100.0, 30000.0
    guard = {f"{axis}_{end}_clip_guardband": (sign * 16384.0 + 28) / 50 for axis in "xy" for end, sign in (("min", -1), ("max", 1))}
    matrix = {f"viewport_matrix_element_m{i}{i}": 50.0 for i in (0, 1)} | {f"viewport_matrix_element_m3{i}": center for i in (0, 1)}
    extents = {f"{axis}_{end}": value for axis in "xy" for end, value in (("min_viewport", 50.0), ("max_viewport", 149.0))}
    vertices = [vertex(-far * 3, -far * 3, 0, 3), vertex(far * 7, -far * 7, 0, 7), vertex(-far, far, 0, 1)]
    state = geometry_state(gen, viewport=guard | matrix | extents | {"scissor_rectangle_x_max": 199, "scissor_rectangle_y_max": 199})
    pixels = {pixel for record in records_of(state, chunk_of(vertices, [triangle(0, 1, 2)]), (200, 200)) for pixel in covered(record)}
    assert pixels == {(x, y) for x in range(50, 150) for y in range(50, 150) if x + y < 2 * center - 1}

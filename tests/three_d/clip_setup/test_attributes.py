"""SBE: pixel shader inputs of records, in the layout of payloads."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DecodeError
from softgen.three_d.clip_setup import attributes
from tests.three_d.geometry_state import (
    GENERATIONS,
    attributes_of,
    chunk_of,
    geometry_state,
    line,
    packed,
    point,
    triangle,
    vertex,
)  # fmt: skip

FIXED = [gen for gen in GENERATIONS if gen != 4.5]
SLOTS = 4
Components = list[tuple[float, float, float]]  # of an attribute: a1 - a0, a2 - a0, a0 for each component


def shader_inputs(data: bytes) -> list[Components]:
    floats = struct.unpack(f"<{len(data) // 4}f", data)
    return [[(floats[i + 4 * c], floats[i + 4 * c + 1], floats[i + 4 * c + 3]) for c in range(4)] for i in range(0, len(floats), 16)]


def slot(v: int, n: int) -> tuple[float, float, float, float]:
    """What vertex v has in slot n: values that tell where they are from."""
    return tuple(100.0 * (v + 1) + 10 * n + c + v * v for c in range(4))  # type: ignore[return-value]


CORNERS = [(-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5)]
VERTICES = [vertex(*CORNERS[v], 0, 1, *[slot(v, n) for n in range(SLOTS)]) for v in range(3)]


Details = dict[int, dict[str, Any]]


def made(gen: float, objects: Any, detail: Details | None = None, count: int = 2, **fields: Any) -> list[list[Components]]:
    details = [(detail or {}).get(i, {"source_attribute": i}) for i in range(16)]
    swizzles = {"attribute": details, "attribute_swizzle_enable": int(detail is not None)}
    state = geometry_state(gen, number_of_sf_output_attributes=count, **swizzles, **fields)
    return [shader_inputs(item) for item in attributes_of(state, chunk_of(VERTICES, objects))]


def plain(n: int) -> Components:
    return [(slot(1, n)[c] - slot(0, n)[c], slot(2, n)[c] - slot(0, n)[c], slot(0, n)[c]) for c in range(4)]


def flat(values: Any) -> Components:
    return [(0.0, 0.0, value) for value in values]


@pytest.mark.behaviour("BDW-SBE-01", "BDW-SBE-02", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_attributes_follow_the_read_offset(gen: float) -> None:
    """In units of two slots; the first that is read here is the first behind the position."""
    assert made(gen, [triangle(0, 1, 2)], count=3) == [[plain(0), plain(1), plain(2)]]
    assert made(gen, [triangle(0, 1, 2)], vertex_urb_entry_read_offset=2, count=1) == [[plain(2)]]
    assert made(gen, [triangle(0, 1, 2)], count=0) == [[]]


@pytest.mark.behaviour("BDW-SBE-02", "BDW-VS-11", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_the_read_offset_is_the_last_stages_unless_forced(gen: float) -> None:
    for force, offset in ((0, 2), (1, 1)):
        stage = {"3DSTATE_VS": {"enable": 1, "vertex_urb_entry_output_read_offset": 2}}
        state = geometry_state(gen, number_of_sf_output_attributes=1, force_vertex_urb_entry_read_offset=force, commands=stage)
        assert attributes.plan(state).attributes[0].source == 32 * offset


@pytest.mark.behaviour("BDW-SBE-03", "KBL-SBE-04", "KBL-SBE-05", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_swizzles(gen: float) -> None:
    """Facing takes the next slot for back-facing objects; W goes to X; constants replace components."""
    override = {"component_override_x": 1, "component_override_w": 1}
    detail = {0: {"source_attribute": 1, "swizzle_select": 1}, 1: {"source_attribute": 0, "swizzle_select": 2},
              2: {"source_attribute": 1, "constant_source": 1, **override},
              3: {"source_attribute": 1, "constant_source": 2, **override}}  # fmt: skip
    front, back = made(gen, [triangle(0, 1, 2), triangle(0, 2, 1)], detail, count=4)
    assert front[0] == plain(1)
    assert [inst[2] for inst in back[0]] == [line[2] for line in plain(2)]
    assert front[1] == [plain(0)[3], *plain(0)[1:]]
    assert [inst[2] for inst in back[1]] == [inst[2] for inst in front[1]], "the same slot without facing"
    assert front[2] == [(0, 0, 0), *plain(1)[1:3], (0, 0, 1)]
    assert front[3] == [(0, 0, 1), *plain(1)[1:3], (0, 0, 1)]


@pytest.mark.behaviour("BDW-SBE-03", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_swizzles_can_describe_attributes_from_16_on(gen: float) -> None:
    detail = {i: {"source_attribute": 1} for i in range(16)}
    if gen >= 8:
        detail[0]["swizzle_control_mode"] = 1
    mode = {"attribute_swizzle_control_mode": 1} if gen < 8 else {}
    state = geometry_state(gen, number_of_sf_output_attributes=18, attribute=list(detail.values()), attribute_swizzle_enable=1, **mode)
    assert [attribute.source for attribute in attributes.plan(state).attributes[:18]] == [32 + 16 * n for n in range(16)] + [48, 48]


@pytest.mark.behaviour("BDW-SBE-03", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("enabled", [0, 1])
def test_swizzles_are_applied_where_they_are_enabled(gen: float, enabled: int) -> None:
    """BDW 10006-10016."""
    state = geometry_state(gen, number_of_sf_output_attributes=2, attribute=[{"source_attribute": 1}, {"source_attribute": 0}],
                           attribute_swizzle_enable=enabled)  # fmt: skip
    assert [attribute.source for attribute in attributes.plan(state).attributes[:2]] == ([48, 32] if enabled else [32, 48])


@pytest.mark.parametrize(("gen", "described"), [*((gen, 16) for gen in FIXED), *((gen, 0) for gen in FIXED if gen >= 8)])
def test_attributes_that_no_swizzle_describes_are_their_own(gen: float, described: int) -> None:
    """Those from 16 on, or all where no command has described any."""
    details = [{"source_attribute": 15 - i} for i in range(16)]
    state = geometry_state(gen, number_of_sf_output_attributes=32, attribute=details, attribute_swizzle_enable=1)
    if not described:
        del state.latched["3DSTATE_SBE_SWIZ"]  # type: ignore[attr-defined]
    sources = [15 - n if n < described else n for n in range(32)]
    assert [attribute.source for attribute in attributes.plan(state).attributes] == [32 + 16 * source for source in sources]


@pytest.mark.behaviour("BDW-SBE-08", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("provoking", [0, 1, 2])
def test_flat_attributes_are_the_provoking_vertexs(gen: float, provoking: int) -> None:
    """Of a clipped triangle too: of its own vertices, not of those that clipping makes."""
    whole = made(gen, [triangle(0, 1, 2, provoking=provoking)], constant_interpolation_enable=2)
    assert whole == [[plain(0), flat(slot(provoking, 1))]]
    far = [vertex(-0.5, -0.5, 0, 1, *[slot(0, n) for n in range(2)]), vertex(40, -0.5, 0, 1, *[slot(1, n) for n in range(2)]), VERTICES[2]]
    state = geometry_state(gen, number_of_sf_output_attributes=2, constant_interpolation_enable=2)
    parts = attributes_of(state, chunk_of(far, [triangle(0, 1, 2, provoking=provoking)]))
    assert len(parts) > 1 and [shader_inputs(part) for part in parts] == whole * len(parts)


@pytest.mark.behaviour("BDW-SBE-06", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_primitive_id(gen: float) -> None:
    override = {"primitive_id_override_attribute_select": 1, "primitive_id_override_component_y": 1}
    state = geometry_state(gen, number_of_sf_output_attributes=2, **override)
    (found,) = attributes_of(state, chunk_of(VERTICES, [triangle(0, 1, 2, primitive=0x7F800001)]))
    assert struct.unpack_from("<4I", found, 64 + 16) == (0, 0, 0, 0x7F800001)
    assert shader_inputs(found)[1][0] == plain(1)[0]


@pytest.mark.parametrize("gen", FIXED)
def test_primitive_id_as_a_constant(gen: float) -> None:
    override = {f"component_override_{c}": 1 for c in "xyzw"} | {"constant_source": 3}
    state = geometry_state(gen, number_of_sf_output_attributes=1, attribute=[override], attribute_swizzle_enable=1)
    (found,) = attributes_of(state, chunk_of(VERTICES, [triangle(0, 1, 2, primitive=5)]))
    assert struct.unpack("<16I", found) == (0, 0, 0, 5) * 4


@pytest.mark.behaviour("BDW-SBE-07", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("lower", [0, 1])
def test_point_sprites(gen: float, lower: int) -> None:
    """Of points only: x from 0 to 1, y from the origin's edge on; other attributes are the vertex's."""
    fields = {"point_sprite_texture_coordinate_enable": 2, "point_sprite_texture_coordinate_origin": lower}
    dot, other = made(gen, [point(0), triangle(0, 1, 2)], **fields)
    y = (0.0, -1.0, 1.0) if lower else (0.0, 1.0, 0.0)
    assert dot == [flat(slot(0, 0)), [(1.0, 0.0, 0.0), y, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)]]
    assert other == [plain(0), plain(1)]


@pytest.mark.behaviour("BDW-SF-08", "BDW-SBE-07", shows="action")
@pytest.mark.parametrize("gen", FIXED)
@pytest.mark.parametrize("provoking", range(3))
def test_vertices_of_triangles_are_points_like_others(gen: float, provoking: int) -> None:
    """In point mode: each has its own values and texture coordinates of a sprite, but what is flat is the triangle's."""
    fields = {"point_sprite_texture_coordinate_enable": 2, "front_face_fill_mode": 2, "constant_interpolation_enable": 4}
    found = made(gen, [triangle(0, 1, 2, provoking=provoking)], count=3, **fields)
    sprite = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    assert found == [[flat(slot(v, 0)), sprite, flat(slot(provoking, 2))] for v in range(3)]


@pytest.mark.parametrize("gen", FIXED)
def test_lines_have_one_difference(gen: float) -> None:
    (found,) = made(gen, [line(0, 1)], count=1)
    assert found == [[(line[0], 0.0, line[2]) for line in plain(0)]]


@given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=12, max_size=12))
def test_differences_are_float32(values: list[float]) -> None:
    vertices = [vertex(*CORNERS[v], 0, 1, values[4 * v : 4 * v + 4]) for v in range(3)]
    (found,) = attributes_of(geometry_state(9, number_of_sf_output_attributes=1), chunk_of(vertices, [triangle(0, 1, 2)]))
    a = np.array(values, np.float32).reshape(3, 4)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.stack([a[1] - a[0], a[2] - a[0], np.zeros(4, np.float32), a[0]], 1)
    assert np.array_equal(np.frombuffer(found, np.float32).reshape(4, 4), expected, equal_nan=True)


def test_sources_past_the_end_of_an_entry_are_zero() -> None:
    (found,) = attributes_of(geometry_state(9, number_of_sf_output_attributes=1, vertex_urb_entry_read_offset=60),
                             chunk_of(VERTICES, [triangle(0, 1, 2)]))  # fmt: skip
    assert found == bytes(64)


def test_what_is_refused() -> None:
    with pytest.raises(DecodeError, match="number_of_sf_output_attributes is 33"):
        attributes.plan(geometry_state(9, number_of_sf_output_attributes=33))


@pytest.mark.behaviour("BDW-SBE-09", shows="action")
@pytest.mark.parametrize("gen", FIXED)
def test_components_may_go_the_shorter_way_around(gen: float) -> None:
    """Of a circle of length 1: 0.9 to 0.1 is 0.2 forward. Only where enabled, and not with constant interpolation (BDW 10104-10107)."""
    values = ([0.9, 0.9, 0.1, 0.25], [0.1, 0.1, 0.9, 0.75], [0.5, 0.5, 0.0, 1.0])
    vertices = [vertex(*CORNERS[v], 0, 1, values[v]) for v in range(3)]
    a = np.array(values, np.float32)
    for flat, enables in ((0, 0b1101), (0, 0), (1, 0b1111)):
        wrap = {"wrap_shortest": [{"enables": enables}], "constant_interpolation_enable": flat}
        state = geometry_state(gen, number_of_sf_output_attributes=1, **wrap)
        (found,) = attributes_of(state, chunk_of(vertices, [triangle(0, 1, 2)]))
        rows = np.frombuffer(found, np.float32).reshape(4, 4)
        steps = np.stack([a[1] - a[0], a[2] - a[0]], 1) * (not flat)
        on = np.array([[enables >> c & 1] for c in range(4)]) * (not flat)
        wanted = steps - on * np.where(steps > 0.5, 1, np.where(steps < -0.5, -1, 0))
        assert rows[:, :2] == pytest.approx(wanted, abs=1e-6)
        assert flat or (np.abs(rows[:, :2][on[:, 0] == 1]) <= 0.5).all()


def test_swizzle_commands_are_not_needed_while_swizzles_are_off() -> None:
    state = geometry_state(9, number_of_sf_output_attributes=1)
    del state.latched["3DSTATE_SBE_SWIZ"]  # type: ignore[attr-defined]
    assert attributes.plan(state).attributes[0].source == 32
    assert packed("3DSTATE_SBE_SWIZ", 9, {})


@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize(("forced", "stages", "first"), [
    (1, {}, 1), (0, {}, 0), (0, {"VS": (1, 2)}, 2), (0, {"VS": (0, 2)}, 0), (1, {"VS": (1, 2)}, 1), (0, {"VS": (1, 2), "GS": (1, 3)}, 3),
    (0, {"VS": (1, 2), "DS": (1, 4), "GS": (0, 3)}, 4),
])  # fmt: skip
def test_where_attributes_begin_in_a_vertex_entry(gen: float, forced: int, stages: dict[str, tuple[int, int]], first: int) -> None:
    """As 3DSTATE_SBE says, or the last shader stage that is enabled; at the beginning without one. Offsets are of two slots each."""
    commands = {f"3DSTATE_{stage}": {"enable": enable, "vertex_urb_entry_output_read_offset": offset}
                for stage, (enable, offset) in stages.items()}  # fmt: skip
    state = geometry_state(gen, commands=commands, force_vertex_urb_entry_read_offset=forced, number_of_sf_output_attributes=3)
    assert [found.source for found in attributes.plan(state).attributes[:3]] == [32 * first, 32 * first + 16, 32 * first + 32]

"""PrimitiveID of vertices on Gen4.5, and where primitives start and end: what VF generates for them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from softgen.three_d.vertices.assembly import TOPOLOGIES, cache_disabled
from softgen.three_d.vertices.chunk import Chunk
from tests.three_d.g45_draw import (
    FAN,
    LINE_LOOP,
    LINE_STRIP,
    LINE_STRIP_ADJ,
    LINES,
    LINES_ADJ,
    POINTS,
    POLYGON,
    QUAD_STRIP,
    QUADS,
    RECTANGLES,
    STRIP,
    STRIP_ADJ,
    STRIP_REVERSE,
    TRIANGLES,
    TRIANGLES_ADJ,
    Fields,
    G45Draw,
    moves,
    pixel_shader,
    put_out,
    urb_write,
    vertex,
)
from tests.three_d.geometry_state import BASE, geometry_state, packed
from tests.three_d.made import call, made_state
from tests.three_d.walk import Assembly

CUT = 0xFFFF
# S and R of G45 2673-2693, and what the pseudocode of 2651-2660 gives with them.
WANTED = {
    POINTS: [0, 1, 2, 3, 4, 5], LINES: [0, 0, 1, 1, 2, 2], LINES_ADJ: [0, 0, 0, 0, 1, 1, 1, 1], LINE_STRIP: [0, 0, 1, 2, 3],
    LINE_STRIP_ADJ: [0, 0, 0, 1, 2, 3], LINE_LOOP: [0, 0, 1, 2, 3], TRIANGLES: [0, 0, 0, 1, 1, 1, 2, 2, 2],
    RECTANGLES: [0, 0, 0, 1, 1, 1], TRIANGLES_ADJ: [0] * 6 + [1] * 6, STRIP: [0, 0, 0, 1, 2, 3], STRIP_REVERSE: [0, 0, 0, 1, 2, 3],
    STRIP_ADJ: [0] * 6 + [1, 1, 2, 2], FAN: [0, 0, 0, 1, 2, 3], POLYGON: [0, 0, 0, 1, 2, 3], QUADS: [0] * 4 + [1] * 4,
    QUAD_STRIP: [0, 0, 0, 0, 1, 1, 2, 2],
}  # fmt: skip
# Rows of the table without numbers are those above them.
SAME_ROW = {17: POINTS, 18: LINE_STRIP, 19: LINE_STRIP, 20: LINE_STRIP, 22: FAN}
ELEMENTS = {"all": [
    *({"valid": 1, "source_element_format": code, "source_element_offset": 16 * n, "destination_element_offset": 4 * n,
       **{f"component_{c}_control": 1 for c in range(4)}} for n, code in enumerate((2, 0))),
    {"valid": 1, "source_element_format": 0, "source_element_offset": 32, "destination_element_offset": 8, "component_0_control": 7,
     "component_1_control": 1, "component_2_control": 6, "component_3_control": 5},
]}  # fmt: skip


def gs_kernel(vertices: int) -> str:
    """Puts out a point for each vertex, where it is."""
    lines = []
    for number in range(vertices):
        last = number == vertices - 1
        lines += ["mov(1) g0.2<1>UD 0x00000007UD { align1 nomask };", moves(1, f"g{1 + 2 * number}", f"g{2 + 2 * number}"),
                  urb_write(3, eot=last, allocate=not last)]  # fmt: skip
    return "\n".join(lines)


CORNERS = {POINTS: 1, LINES: 2, LINE_STRIP: 2, LINE_LOOP: 2, LINES_ADJ: 4, LINE_STRIP_ADJ: 4, TRIANGLES_ADJ: 6, STRIP_ADJ: 6, QUADS: 4,
           QUAD_STRIP: 4}  # fmt: skip


def ids(topology: int, indices: Sequence[int], **more: object) -> dict[int, int]:
    """Each vertex's PrimitiveID: GS threads draw a point for it in the column of its number."""
    count = max(index for index in indices if index != CUT) + 1
    vertices = [vertex(n + 0.5, 0.5, attribute=(0, n + 1, 0, 0)) for n in range(count)]
    state: dict[str, Fields] = {"elements": ELEMENTS, "3DSTATE_INDEX_BUFFER": {"cut_index_enable": 1}}
    draw = G45Draw(vertices, topology, state, gs=gs_kernel(CORNERS.get(topology, 3)), size=(32, 1), fill=0x7FFFFFFF, **more)  # type: ignore[arg-type]
    draw.indices = struct.pack(f"<{len(indices)}H", *indices)
    bits = draw.run().bits[0]
    return {x: int(bits[x, 0]) for x in range(32) if bits[x, 0] != 0x7FFFFFFF}


@pytest.mark.behaviour("G45-VF-32", shows="action")
@pytest.mark.parametrize("topology", WANTED)
def test_primitive_ids_advance_with_the_topology(topology: int) -> None:
    wanted = WANTED[topology]
    found = ids(topology, range(len(wanted)))
    assert found == dict(enumerate(wanted))


def assembled(topology: int, indices: Sequence[int], instances: int = 1, indexed: bool = True) -> list[tuple[int, int, int]]:
    """VertexID, InstanceID and PrimitiveID of the entries, in their order; each object has all of its vertices, for GS threads."""
    commands: dict[str, Fields] = {
        "3DSTATE_PIPELINED_POINTERS": {"gs_enable": 1, "pointer_to_gs_state": 0x20040, "pointer_to_sf_state": 0x20080},
        "3DSTATE_INDEX_BUFFER": {"buffer_starting_address": 0x10000, "buffer_ending_address": 0x1FFFF, "index_format": 1,
                                 "cut_index_enable": 1}}  # fmt: skip
    blocks: dict[int, tuple[str, Fields]] = {0x20040: ("GS_STATE", {}), 0x20080: ("SF_STATE", {})}
    state = made_state(4.5, {0x10000: struct.pack(f"<{len(indices)}H", *indices), 0x20000: b""}, commands, blocks=blocks)
    found, chunk = list[tuple[int, int, int]](), Chunk(64, 24, 16)
    assembly = Assembly(state, call(len(indices), topology, indexed, instances=instances), uncached=True)
    while not assembly.finished:
        assembly.fill(chunk)
        ids = assembly.memory.primitive_ids[: 4 * chunk.vertices.count].view(np.uint32)
        found += zip(*(held.tolist() for held in (*assembly.ids(), ids)), strict=True)
    return found


@pytest.mark.behaviour("G45-VF-32", shows="action")
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_vertices_have_the_primitive_ids_of_the_table(topology: int, indexed: bool) -> None:
    """Of each topology that VF knows, in every instance, in several chunks."""
    wanted, first = WANTED[SAME_ROW.get(topology, topology)], 100 if indexed else 0
    vertices = range(first, first + len(wanted))
    found = assembled(topology, vertices, 4, indexed)
    assert set(found) == {(vertex, instance, id) for instance in range(4) for vertex, id in zip(vertices, wanted, strict=True)}


@pytest.mark.behaviour("G45-VF-32", "G45-VF-34", shows="action")
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_primitive_ids_go_on_after_a_cut(topology: int) -> None:
    """With the last ID of the primitive before, as in G45 2651-2660; the end of a strip with adjacent vertices advances it once more."""
    wanted = WANTED[SAME_ROW.get(topology, topology)]
    count, after = len(wanted), wanted[-1] + (topology == STRIP_ADJ)
    found = assembled(topology, [*range(count), CUT, *range(count, 2 * count)])
    assert {vertex: id for vertex, _, id in found} == dict(enumerate([*wanted, *(after + id for id in wanted)]))


@pytest.mark.behaviour("G45-VF-32", shows="action")
def test_primitive_ids_start_again_with_each_instance() -> None:
    """Of two instances the second is drawn over the first: the same IDs, of another instance."""
    vertices = [vertex(n + 0.5, 0.5, attribute=(0, n + 1, 0, 0)) for n in range(6)]
    draw = G45Draw(vertices, TRIANGLES, {"elements": ELEMENTS}, gs=gs_kernel(3), size=(8, 1), primitives=({"instance_count": 2},))
    bits = draw.run().bits[0]
    assert bits[:6, 0].tolist() == [0, 0, 0, 1, 1, 1] and bits[:6, 2].tolist() == [1] * 6


@pytest.mark.behaviour("G45-VF-32", shows="action")
def test_equal_indices_have_ids_of_their_own() -> None:
    """Vertex 0 is in both lines; the second line's ID is what its later draw leaves."""
    assert ids(LINES, [0, 1, 0, 2]) == {0: 1, 1: 0, 2: 1}


@pytest.mark.behaviour("G45-VS-13", shows="action")
@pytest.mark.parametrize("control", range(8))
@pytest.mark.parametrize("component", range(4))
def test_vertices_that_have_ids_are_not_cached(control: int, component: int) -> None:
    """VertexID and PrimitiveID, in any component of a valid element, differ where indices are equal (G45 2754-2759, 2940-2944)."""
    for valid, off in ((1, 0), (0, 0), (1, 1)):
        elements = [{"valid": 1}, {"valid": valid, f"component_{component}_control": control}]
        state = geometry_state(4.5, commands={"3DSTATE_VERTEX_ELEMENTS": {"vertex_element": elements}}, pointer_to_vs_state=0x3000)
        state.space.write(BASE + 0x3000, struct.pack("<7I", *packed("VS_STATE", 4.5, {"vertex_cache_disable": off})))
        assert cache_disabled(state) == (bool(off) or bool(valid) and control in (5, 7))
    assert not cache_disabled(geometry_state(7))


@pytest.mark.behaviour("G45-VF-32", "G45-VF-33", shows="action")
def test_a_cut_starts_the_counters_again_and_keeps_the_id() -> None:
    assert ids(STRIP, [0, 1, 2, 3, CUT, 4, 5, 6, 7]) == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 1, 7: 2}


@pytest.mark.behaviour("G45-VF-34", shows="action")
def test_the_end_of_a_strip_with_adjacent_vertices_advances_the_id() -> None:
    """Once more than its vertices do; a strip too short for an object, whose S counter is not satisfied, does not."""
    six = list(range(6))
    assert ids(STRIP_ADJ, [*six, CUT, *range(6, 12)]) == {**dict.fromkeys(range(6), 0), **dict.fromkeys(range(6, 12), 1)}
    assert ids(STRIP_ADJ, [0, 1, 2, CUT, *range(3, 9)]) == dict.fromkeys(range(3, 9), 0)


@pytest.mark.behaviour("G45-VF-35", shows="action")
def test_where_primitives_start_and_end() -> None:
    """A polygon's first triangle has its first edge, the last one its last, by the vertices that are marked as start and end."""
    corners = [vertex(x, y) for x, y in ((0, 0), (8, 0), (8, 4), (4, 8), (0, 8))]
    kernel = "\n".join(["mov(1) g20.0<1>UD g0.2<0,1,0>UD { align1 nomask };", "mov(1) g2.0<1>UD g20.0<0,1,0>UD { align1 nomask };",
                        "mov(1) g4.0<1>UD g20.0<0,1,0>UD { align1 nomask };", "mov(1) g6.0<1>UD g20.0<0,1,0>UD { align1 nomask };",
                        put_out((0, 1, 2), POLYGON)])  # fmt: skip
    for first, count in ((0, 5), (0, 4), (0, 3)):
        draw = G45Draw(corners, POLYGON, gs=kernel, ps=pixel_shader("g10.0<0,1,0>"))
        draw.primitives = ({"start_vertex_location": first, "vertex_count_per_instance": count},)
        drawn = draw.run()
        edges = {int(drawn.bits[y, x, 0]) >> 8 & 3 for x, y in drawn.lit}
        assert edges == {5: {1, 0, 2}, 4: {1, 2}, 3: {3}}[count]


@pytest.mark.behaviour("G45-VF-35", shows="action")
def test_a_strip_starts_again_after_a_cut() -> None:
    """The next vertex starts a primitive: no line joins it to the one before."""
    points = [vertex(x + 0.5, 0.5) for x in (0, 4, 8, 12)]
    draw = G45Draw(points, LINE_STRIP, {"3DSTATE_INDEX_BUFFER": {"cut_index_enable": 1}}, size=(16, 1))
    lit = {}
    for indices in ((0, 1, 2, 3), (0, 1, CUT, 2, 3)):
        draw.indices = struct.pack(f"<{len(indices)}H", *indices)
        lit[len(indices)] = [x for x, _ in draw.run().lit]
    assert lit[4] == list(range(12)) and lit[5] == [0, 1, 2, 3, 8, 9, 10, 11]

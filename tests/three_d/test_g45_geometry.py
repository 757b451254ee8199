"""VS, GS and CLIP threads of Gen4.5, with kernels of our own: which vertices they get, and what becomes of those they put out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError, Unsupported
from tests.three_d.g45_draw import (
    GEN,
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
    Drawn,
    Fields,
    G45Draw,
    moves,
    pixel_shader,
    put_out,
    send,
    urb_write,
    vertex,
)

COUNTS = ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT",
          "CL_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT")  # fmt: skip
COUNTING: dict[str, Fields] = {"VS_STATE": {"statistics_enable": 1}, "GS_STATE": {"statistics_enable": 1},
                               "SF_STATE": {"statistics_enable": 1},
                               "CLIP_STATE": {"clipper_statistics_enable": 1, "gs_output_object_statistics_enable": 1},
                               "WM_STATE": {"statistics_enable": 1}, "3DSTATE_VF_STATISTICS": {"statistics_enable": 1}}  # fmt: skip
TRIANGLE = [vertex(0, 0, attribute=(1, 2, 3, 4)), vertex(8, 0, attribute=(5, 6, 7, 8)), vertex(0, 8, attribute=(9, 10, 11, 12))]
ALL = (0, 1, 2)


def counted(drawn: Drawn) -> dict[str, int]:
    return {name: drawn.register(name) for name in COUNTS}


def merged(*states: dict[str, Fields]) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    for state in states:
        for name, fields in state.items():
            found[name] = {**found.get(name, {}), **fields}
    return found


# -- objects of GS threads ---------------------------------------------------------------------------------------------
# A thread puts out one point for its object, at a place of its own; the point's attributes are numbers of the vertices it got.


def numbered(count: int) -> list[bytes]:
    """Vertices whose position is (number, 0) and whose attribute begins with the number, from 1 on."""
    return [vertex(n + 0.5, 0.5, attribute=(n + 1, 0, 0, 0)) for n in range(count)]


def objects(topology: int, count: int, vertices: int, **fields: int) -> list[tuple[int, list[int]]]:
    """The objects of a draw as GS threads get them: topology bits of r0.2, and numbers of vertices in the order of the draw.

    A thread writes both into memory, where the first vertex of the object says; the draw's order is that of the pixels."""
    rows = [f"g{1 + 2 * n}" for n in range(vertices)]
    numbers = "\n".join(f"mov(1) m2.{n}<1>UD g{2 + 2 * n}.0<0,1,0>UD {{ align1 nomask }};" for n in range(vertices))
    kernel = "\n".join([
        "mov(1) g20.0<1>UD g0.2<0,1,0>UD { align1 nomask };", "mov(1) g0.2<1>UD 0x00000007UD { align1 nomask };", moves(1, rows[0]),
        "mov(8) m2<1>UD 0x00000000UD { align1 nomask };", numbers,
        "mov(1) m2.6<1>UD g20.0<0,1,0>UD { align1 nomask };", urb_write(3, eot=True),
    ])  # fmt: skip
    shader = pixel_shader("g10.0<0,1,0>", "g10.1<0,1,0>", "g10.2<0,1,0>", "g10.3<0,1,0>")
    more = pixel_shader("g10.4<0,1,0>", "g10.5<0,1,0>", "g10.6<0,1,0>", "g10.7<0,1,0>")
    state: dict[str, Fields] = {"GS_STATE": fields}
    found = []
    pictures = [G45Draw(numbered(count), topology, state, gs=kernel, ps=text, size=(32, 1)).run().bits[0] for text in (shader, more)]
    for x in range(32):
        if pictures[0][x].any():
            held = [*pictures[0][x], *pictures[1][x]]
            found.append((int(held[6]), [round(struct.unpack("<f", struct.pack("<I", held[n]))[0]) - 1 for n in range(vertices)]))
    return found


PLAIN: list[tuple[int, int, list[list[int]]]] = [
    (POINTS, 3, [[0], [1], [2]]), (LINES, 5, [[0, 1], [2, 3]]), (LINE_STRIP, 4, [[0, 1], [1, 2], [2, 3]]),
    (LINE_LOOP, 3, [[0, 1], [1, 2], [2, 0]]), (TRIANGLES, 7, [[0, 1, 2], [3, 4, 5]]), (QUADS, 9, [[0, 1, 2, 3], [4, 5, 6, 7]]),
    (QUAD_STRIP, 6, [[0, 1, 3, 2], [2, 3, 5, 4]]), (LINES_ADJ, 8, [[0, 1, 2, 3], [4, 5, 6, 7]]),
    (LINE_STRIP_ADJ, 6, [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]), (TRIANGLES_ADJ, 12, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]),
    (RECTANGLES, 6, [[0, 1, 2], [3, 4, 5]]), (18, 3, [[0, 1], [1, 2]]),
]  # fmt: skip


@pytest.mark.behaviour("G45-GS-03", "G45-GS-04", "G45-GS-05", "G45-GS-18", "G45-GS-30", shows="action")
@pytest.mark.parametrize(("topology", "count", "wanted"), PLAIN)
def test_vertices_of_an_object(topology: int, count: int, wanted: list[list[int]]) -> None:
    """In the draw's order, and with the draw's topology (G45 3281-3341)."""
    found = objects(topology, count, len(wanted[0]))
    assert [vertices for _, vertices in found] == wanted and {code & 31 for code, _ in found} == {topology}


@pytest.mark.behaviour("G45-GS-06", "G45-GS-07", shows="action")
@pytest.mark.parametrize("reorder", [0, 1])
@pytest.mark.parametrize("topology", [STRIP, STRIP_REVERSE])
def test_strips_say_their_direction_and_may_be_reordered(topology: int, reorder: int) -> None:
    found = objects(topology, 6, 3, reorder_enable=reorder)
    reversed_first = topology == STRIP_REVERSE
    # the pixel of an object is where its first vertex is: that of none is reordered away
    for number, (code, vertices) in enumerate(found):
        turned = (number + reversed_first) % 2 == 1
        swapped = [number, number + 2, number + 1] if turned and reorder else [number, number + 1, number + 2]
        assert vertices == swapped and code & 31 == (STRIP_REVERSE if turned else STRIP)
    assert len(found) == 4


def strip_adjacency(count: int) -> list[list[int]]:
    """The table of G45 3318-3330: windows of the strip, with other vertices at its ends."""
    last, found = count // 2 - 3, []
    for k in range(last + 1):
        far = 2 * k + (5 if k == last else 6)
        if k % 2:
            found.append([2 * k, 2 * k + 3, 2 * k + 4, far, 2 * k + 2, 2 * k - 2])
        else:
            found.append([2 * k, 2 * k - 2 if k else 1, 2 * k + 2, far, 2 * k + 4, 2 * k + 3])
    return found


@pytest.mark.behaviour("G45-GS-08", shows="action")
@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 16])
def test_strips_with_adjacent_vertices(count: int) -> None:
    found = [vertices for _, vertices in objects(STRIP_ADJ, count, 6)]
    assert found == strip_adjacency(count)
    ends = {6: [[0, 1, 2, 5, 4, 3]], 8: [[0, 1, 2, 6, 4, 3], [2, 5, 6, 7, 4, 0]],
            10: [[0, 1, 2, 6, 4, 3], [2, 5, 6, 8, 4, 0], [4, 2, 6, 9, 8, 7]]}  # fmt: skip
    assert found == ends.get(count - count % 2, found)


@pytest.mark.behaviour("G45-GS-09", shows="action")
@pytest.mark.parametrize(("topology", "count", "wanted"), [
    (LINES_ADJ, 8, [[1, 2], [5, 6]]), (LINE_STRIP_ADJ, 5, [[1, 2], [2, 3]]), (TRIANGLES_ADJ, 12, [[0, 2, 4], [6, 8, 10]]),
])  # fmt: skip
def test_adjacent_vertices_can_be_discarded(topology: int, count: int, wanted: list[list[int]]) -> None:
    assert [vertices for _, vertices in objects(topology, count, len(wanted[0]), discard_adjacency=1)] == wanted


@pytest.mark.behaviour("G45-GS-10", shows="action")
def test_polygons_say_which_edges_are_theirs() -> None:
    """Bit 8: the edge of vertices 0 and 1, bit 9: that of 2 and 0."""
    polygon = [vertex(n * 2 + 0.5, 0.5, attribute=(n + 1, 0, 0, 0)) for n in range(5)]
    kernel = "\n".join(["mov(1) g20.0<1>UD g0.2<0,1,0>UD { align1 nomask };", "mov(1) g0.2<1>UD 0x00000007UD { align1 nomask };",
                        moves(1, "g3"), "mov(8) m2<1>UD g20.0<0,1,0>UD { align1 nomask };", urb_write(3, eot=True)])  # fmt: skip
    drawn = G45Draw(polygon, POLYGON, gs=kernel).run()
    assert [int(drawn.bits[0, x, 0]) >> 8 for x in (2, 4, 6)] == [1, 0, 2]


@pytest.mark.behaviour("G45-GS-29", shows="action")
@pytest.mark.parametrize("topology", [17, 19])
def test_back_facing_points_and_lines_are_no_inputs(topology: int) -> None:
    with pytest.raises(DecodeError, match=f"primitive_topology_type {topology}, which GS threads cannot have"):
        G45Draw(TRIANGLE, topology, gs=put_out((0,), POINTS)).run()


# -- what GS threads put out -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-GS-15", shows="action")
def test_the_completing_message_says_the_topology() -> None:
    """An entry is written twice: first with a topology that is none."""
    lines = []
    for n in range(3):
        first = f"mov(1) g0.2<1>UD {31 << 2:#010x}UD {{ align1 nomask }};"
        flags = TRIANGLES << 2 | (n == 0) << 1 | (n == 2)
        part = send(0, 6, 0, 2)
        second = f"mov(1) g0.2<1>UD {flags:#010x}UD {{ align1 nomask }};"
        lines += [first, moves(1, f"g{1 + 2 * n}"), part, second, moves(1, f"g{1 + 2 * n}", f"g{2 + 2 * n}"),
                  urb_write(3, eot=n == 2, allocate=n < 2)]  # fmt: skip
    drawn = G45Draw(TRIANGLE, gs="\n".join(lines)).run()
    assert len(drawn.lit) == 28 and drawn.pixels[0, 0].tolist() == [1, 2, 3, 4]


VIEWPORTS: dict[str, Fields] = {
    "SF_STATE": {"viewport_transform_enable": 1},
    "SF_VIEWPORT": {"each": [{"viewport_matrix_element_m00": 1.0, "viewport_matrix_element_m11": 1.0, "viewport_matrix_element_m22": 1.0,
                              "viewport_matrix_element_m30": float(8 * (n % 2)), "viewport_matrix_element_m31": float(4 * (n // 2 % 2))}
                             for n in range(16)]},
}  # fmt: skip


@pytest.mark.behaviour("G45-GS-16", "G45-GS-17", "G45-SF-11", shows="action")
@pytest.mark.parametrize(("index", "most", "place"), [(1, 3, (8, 0)), (3, 3, (8, 4)), (3, 1, (0, 0)), (2, 2, (0, 4))])
def test_a_viewport_index_past_the_last_is_0(index: int, most: int, place: tuple[int, int]) -> None:
    """With GS threads GS_STATE says which is the last; the entry keeps its index."""
    corners = [vertex(0, 0, viewport=index), vertex(2, 0, viewport=index), vertex(0, 2, viewport=index)]
    kernel = put_out(ALL, TRIANGLES)
    drawn = G45Draw(corners, gs=kernel, state=merged(VIEWPORTS, {"GS_STATE": {"maximum_vpindex": most}})).run()
    assert min(drawn.lit) == place
    direct = G45Draw(corners, state=merged(VIEWPORTS, {"GS_STATE": {"maximum_vpindex": 0}})).run()
    assert min(direct.lit) == (8 * (index % 2), 4 * (index // 2)), "without threads, all 16 are valid"


@pytest.mark.behaviour("G45-GS-17", "G45-SF-18", shows="action")
@pytest.mark.parametrize(("topology", "corners"), [(TRIANGLES, 3), (QUADS, 4)])
def test_gs_threads_put_out_48_vertices_each(topology: int, corners: int) -> None:
    """On average at most, whether their objects have three vertices or more."""
    spots = [vertex(n + 0.5, 0.5) for n in range(corners)]

    def drawn(objects: int, each: int) -> int:
        draw = G45Draw(spots * objects, topology, COUNTING, gs=put_out([0] * each, POINTS), clip=put_out([0], POINTS))
        return draw.run().register("GS_PRIMITIVES_COUNT")

    assert (drawn(1, 48), drawn(2, 48)) == (48, 96)
    with pytest.raises(Unsupported, match="a thread allocates a URB entry, but the stage's URB pool is used up"):
        drawn(1, 49)


def test_point_widths_of_vertices_that_threads_put_out() -> None:
    state: dict[str, Fields] = {"SF_STATE": {"point_width_source": 0}}
    drawn = G45Draw([vertex(8, 8, width=4.0)], POINTS, state, gs=put_out((0,), POINTS)).run()
    assert drawn.lit == [(x, y) for y in range(6, 10) for x in range(6, 10)]


@pytest.mark.behaviour("G45-GS-26", "G45-CLIP-45", "G45-SF-58", "G45-WM-46", shows="action")
def test_statistics_of_stages() -> None:
    """Each stage counts where its state says so; the clip count is the GS kernel's to make, and needs CLIP."""
    gs, clip = put_out(ALL, TRIANGLES, more=0x80), put_out(ALL, TRIANGLES)
    none = dict.fromkeys(COUNTS, 0)
    assert counted(G45Draw(TRIANGLE, gs=gs, clip=clip).run()) == none
    found = counted(G45Draw([*TRIANGLE, *TRIANGLE], gs=gs, clip=clip, state=COUNTING).run())
    assert found == {"IA_VERTICES_COUNT": 6, "IA_PRIMITIVES_COUNT": 2, "VS_INVOCATION_COUNT": 0, "GS_INVOCATION_COUNT": 2,
                     "GS_PRIMITIVES_COUNT": 2, "CL_INVOCATION_COUNT": 6, "CL_PRIMITIVES_COUNT": 2, "PS_INVOCATION_COUNT": 56,
                     "PS_DEPTH_COUNT": 56}  # fmt: skip
    bypassed = counted(G45Draw(TRIANGLE, gs=gs, state=COUNTING).run())
    assert bypassed["GS_PRIMITIVES_COUNT"] == bypassed["CL_INVOCATION_COUNT"] == 0 and bypassed["GS_INVOCATION_COUNT"] == 1


@pytest.mark.behaviour("G45-GS-27", "G45-GS-28", "G45-VF-45", shows="action")
def test_what_software_must_not_do_is_reported() -> None:
    def remarks(draw: G45Draw) -> str:
        return " ".join(draw.run().gpu.remarks)

    fine = G45Draw(TRIANGLE, gs=put_out(ALL, TRIANGLES), clip=put_out(ALL, TRIANGLES), state=COUNTING)
    assert remarks(fine) == ""
    several = G45Draw(TRIANGLE, gs=put_out(ALL, TRIANGLES), state={"GS_STATE": {"single_program_flow": 0}})
    assert "single_program_flow must be 1" in remarks(several)
    assert "statistics_enable 1 needs CLIP enabled" in remarks(G45Draw(TRIANGLE, gs=put_out(ALL, TRIANGLES), state=COUNTING))
    uncounted = {**COUNTING, "CLIP_STATE": {**COUNTING["CLIP_STATE"], "gs_output_object_statistics_enable": 0}}
    both = G45Draw(TRIANGLE, gs=put_out(ALL, TRIANGLES), clip=put_out(ALL, TRIANGLES), state=uncounted)
    assert "statistics_enable 1 needs CLIP enabled, with gs_output_object_statistics_enable 1" in remarks(both)
    for topology in (QUADS, QUAD_STRIP, LINE_LOOP):
        assert "needs GS threads" in remarks(G45Draw([*TRIANGLE, vertex(8, 8)], topology))
    assert "the CLIP stage must be on" in remarks(G45Draw(numbered(4), LINES_ADJ))
    assert remarks(G45Draw(numbered(4), LINES_ADJ, clip=put_out((0, 1), LINES))) == ""


# -- CLIP --------------------------------------------------------------------------------------------------------------

NORMAL: Fields = {"clip_mode": 0, "viewport_xy_clip_test_enable": 1, "vertex_position_space": 1, "screen_space_viewport_x_max": 16.0,
                  "screen_space_viewport_y_max": 16.0}  # fmt: skip


@pytest.mark.behaviour("G45-CLIP-31", shows="action")
@pytest.mark.parametrize(("topology", "put"), [(LINE_STRIP, (0,)), (STRIP, (0,)), (STRIP, (0, 1))])
def test_incomplete_primitives_of_gs_threads_vanish(topology: int, put: Sequence[int]) -> None:
    drawn = G45Draw(TRIANGLE, gs=put_out(put, topology), clip=put_out(ALL, TRIANGLES), state=COUNTING).run()
    assert not drawn.lit and drawn.register("GS_PRIMITIVES_COUNT") == 0


@pytest.mark.behaviour("G45-CLIP-32", shows="action")
@pytest.mark.parametrize(("topology", "becomes"), [
    (LINES_ADJ, LINES), (LINE_STRIP_ADJ, LINE_STRIP), (TRIANGLES_ADJ, TRIANGLES), (STRIP_ADJ, STRIP),
])  # fmt: skip
def test_adjacent_vertices_end_at_clip(topology: int, becomes: int) -> None:
    """What SF threads see is the topology without them, and the vertices between."""
    corners = [vertex(x, y, attribute=(n, 0, 0, 0)) for n, (x, y) in enumerate([(0, 0), (4, 4), (8, 0), (9, 9), (0, 8), (3, 9)])]
    count = 4 if topology in (LINES_ADJ, LINE_STRIP_ADJ) else 6
    shader = pixel_shader("g8.0<0,1,0>", "g10.0<0,1,0>", "g11.0<0,1,0>", "g12.0<0,1,0>")
    drawn = G45Draw(corners[:count], topology, clip=put_out((0, 1), LINES), ps=shader).run()
    x, y = drawn.lit[len(drawn.lit) // 2]
    assert drawn.bits[y, x, 0] & 31 == becomes
    assert set(drawn.pixels[y, x, 1:].tolist()[: 2 if count == 4 else 3]) == ({1, 2} if count == 4 else {0, 2, 4})


@pytest.mark.behaviour("G45-CLIP-33", "G45-CLIP-42", "G45-SF-60", shows="action")
def test_strips_broken_by_discards_keep_their_direction() -> None:
    """The first triangle of the strip is outside; those after it face as they did, which culling shows."""
    corners = [vertex(-30, 0), vertex(-30, 8), vertex(-20, 0), vertex(4, 8), vertex(8, 0), vertex(12, 8)]
    state = merged({"CLIP_STATE": NORMAL}, {"CLIP_STATE": {"guardband_clip_test_enable": 1},
                                            "CLIP_VIEWPORT": {"x_min_clip_guardband": -100.0, "x_max_clip_guardband": 100.0,
                                                              "y_min_clip_guardband": -100.0, "y_max_clip_guardband": 100.0}})  # fmt: skip
    clip = put_out(ALL, TRIANGLES)
    whole = G45Draw(corners, STRIP, clip=clip, state=state).run().lit
    sides = [G45Draw(corners, STRIP, clip=clip, state=merged(state, {"SF_STATE": {"cull_mode": 3, "front_winding": winding}})).run().lit
             for winding in (0, 1)]  # fmt: skip
    assert whole and {len(side) for side in sides} == {0, len(whole)}


@pytest.mark.behaviour("G45-CLIP-41", shows="action")
def test_what_clip_threads_put_out_is_not_tested_again() -> None:
    """Every object goes to a thread, which puts out its vertices as they are, outside too."""
    corners = [vertex(-8, 0), vertex(8, 0), vertex(8, 8)]
    for mode, lit in ((1, True), (3, False)):
        drawn = G45Draw(corners, clip=put_out(ALL, TRIANGLES), state={"CLIP_STATE": {**NORMAL, "clip_mode": mode}}).run()
        assert bool(drawn.lit) == lit


@pytest.mark.behaviour("G45-CLIP-42", shows="action")
def test_order_of_passed_and_clipped_objects() -> None:
    """Objects that pass and those that threads clip, one above the other: the last one is seen."""
    clipped = [vertex(-8, 0, attribute=(2, 0, 0, 0)), vertex(24, 0, attribute=(2, 0, 0, 0)), vertex(8, 16, attribute=(2, 0, 0, 0))]
    passed = [vertex(4, 2, attribute=(1, 0, 0, 0)), vertex(12, 2, attribute=(1, 0, 0, 0)), vertex(8, 8, attribute=(1, 0, 0, 0))]
    for order, seen in (([*clipped, *passed], 1), ([*passed, *clipped], 2)):
        drawn = G45Draw(order, clip=put_out(ALL, TRIANGLES), state={"CLIP_STATE": NORMAL}).run()
        assert drawn.pixels[4, 8, 0] == seen


@pytest.mark.behaviour("G45-CLIP-47", shows="action")
@pytest.mark.parametrize(("y", "outside"), [(-1.0, True), (17.0, True), (8.0, False)])
def test_y_min_of_the_screen_is_above(y: float, outside: bool) -> None:
    """A point above the viewport has bit YMin, one below YMax: r0.2 of its thread."""
    kernel = "\n".join(["mov(1) g20.0<1>UD g0.2<0,1,0>UD { align1 nomask };", "mov(1) g0.2<1>UD 0x00000007UD { align1 nomask };",
                        "mov(8) m1<1>UD g1<8,8,1>UD { align1 nomask };", "mov(1) m1.5<1>UD 0x41000000UD { align1 nomask };",
                        "mov(8) m2<1>UD g20.0<0,1,0>UD { align1 nomask };", urb_write(3, eot=True)])  # fmt: skip
    drawn = G45Draw([vertex(8.5, y)], POINTS, clip=kernel, state={"CLIP_STATE": {**NORMAL, "clip_mode": 1}}).run()
    ((x, row),) = drawn.lit
    assert int(drawn.bits[row, x, 0]) >> 28 & 3 == (2 if y < 0 else 1 if y > 16 else 0)


# -- VS ----------------------------------------------------------------------------------------------------------------

DOUBLE = "\n".join([moves(1, "g1", "g2"), "add(8) m3<1>F g3<8,8,1>F g3<8,8,1>F { align1 nomask };", moves(4, "g4"),
                    send(0, 6, 0xC400, 5, eot=True)])  # fmt: skip
SHADED: Fields = {"enable": 1, "kernel_start_pointer": 0x1000, "vertex_urb_entry_read_length": 2,
                  "dispatch_grf_start_register_for_urb_data": 1, "maximum_number_of_threads": 3, "statistics_enable": 1}  # fmt: skip


def shaded(vertices: Sequence[bytes], indices: Sequence[int] = (), instances: int = 1, **fields: Any) -> Drawn:
    state: dict[str, Fields] = {"VS_STATE": {**SHADED, **fields}}
    return G45Draw(vertices, state=state, vs=DOUBLE, indices=struct.pack(f"<{len(indices)}H", *indices),
                   primitives=({"instance_count": instances},)).run()  # fmt: skip


@pytest.mark.behaviour("G45-VS-10", "G45-VS-11", "G45-VS-12", "G45-VS-16", "G45-VS-19", shows="action")
def test_vertex_shader_threads_write_the_entries() -> None:
    """Attributes are doubled; positions are what they were, in their order."""
    drawn = shaded(TRIANGLE)
    assert drawn.pixels[0, 0].tolist() == [2, 4, 6, 8] and len(drawn.lit) == 28 and drawn.register("VS_INVOCATION_COUNT") == 3
    assert shaded(TRIANGLE, statistics_enable=0).register("VS_INVOCATION_COUNT") == 0


@pytest.mark.behaviour("G45-VS-01", "G45-VS-02", shows="action")
def test_without_vertex_shader_threads_fetched_vertices_go_on() -> None:
    """Other fields of the state do not matter: neither kernel nor read length are valid."""
    drawn = shaded(TRIANGLE, enable=0, kernel_start_pointer=0x0F000000, vertex_urb_entry_read_length=0)
    assert drawn.pixels[0, 0].tolist() == [1, 2, 3, 4] and drawn.register("VS_INVOCATION_COUNT") == 0


@pytest.mark.behaviour("G45-VS-13", "G45-VS-14", "G45-VS-15", shows="action")
def test_equal_indices_are_one_vertex_while_the_cache_is_on() -> None:
    indices = [0, 1, 2, 2, 1, 0]
    assert shaded(TRIANGLE, indices).register("VS_INVOCATION_COUNT") == 3
    assert shaded(TRIANGLE, indices, vertex_cache_disable=1).register("VS_INVOCATION_COUNT") == 6
    assert shaded(TRIANGLE, indices, instances=2).register("VS_INVOCATION_COUNT") == 6, "not between instances"
    assert shaded(TRIANGLE, indices, vertex_cache_disable=1).pixels[0, 0].tolist() == [2, 4, 6, 8]
    ids = [{"valid": 1, "source_element_format": code, "source_element_offset": 16 * n, "destination_element_offset": 4 * n,
            **{f"component_{c}_control": 5 if n == 2 and c == 3 else 1 for c in range(4)}} for n, code in enumerate((2, 0, 0))]  # fmt: skip
    state: dict[str, Fields] = {"VS_STATE": SHADED, "elements": {"all": ids}}
    drawn = G45Draw(TRIANGLE, state=state, vs=DOUBLE, indices=struct.pack("<6H", *indices)).run()
    assert drawn.register("VS_INVOCATION_COUNT") == 6, "vertices that have their ID"


def test_entries_of_two_draws_are_apart() -> None:
    """A cache does not outlive its draw: memory that changed in between is fetched again."""
    store = list(layout("MI_STORE_DATA_IMM", GEN).pack(address=4 << 20 | 32, immediate_data=0x41000000))
    draw = G45Draw(TRIANGLE, primitives=({}, {}), between=[store])
    assert draw.run().pixels[0, 0, 0] == 8

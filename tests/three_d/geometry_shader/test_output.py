"""What geometry shaders put out: how many vertices, which primitives they make, to which streams they go, and that expansion is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from softgen.errors import DecodeError
from tests.conftest import every
from tests.three_d.geometry_shader.shading import DUAL_OBJECT, EVERY, MODES, SID, SIMD8, SINGLE, URB, Shading
from tests.three_d.own_draw import POINTS, TRIANGLES, move, send, vertex
from tests.three_d.stream_out.streaming import corners

PATCHES = 0x1F  # of no vertices
LINES, LINE_STRIP, TRIANGLE_STRIP, FAN, POLYGON = 2, 3, 5, 6, 14
REJECT_ALL = 3
ONE_OBJECT = PATCHES + 6
FEW = [("ivb", DUAL_OBJECT), ("hsw", SINGLE), ("bdw", SINGLE), ("skl", SIMD8), ("icl", SIMD8)]
NOT_RENDERED = {"unit": {"rendering_disable": 1}}


def six(gpu: str, mode: int, **more: Any) -> Shading:
    """One object, whose six vertices are put out."""
    return Shading(gpu, mode, ONE_OBJECT, 6, corners(6), **more)


# -- how many ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-GS-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), EVERY)
@pytest.mark.parametrize("count", [0, 4])
def test_threads_say_how_many(gpu: str, mode: int, count: int) -> None:
    """Less than they have written."""
    shown = six(gpu, mode, count=count).run()
    assert shown.numbers() == list(range(count)) and shown.register("GS_PRIMITIVES_COUNT") == count


@pytest.mark.behaviour("BDW-GS-10", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), [(gpu, mode) for gpu, mode in EVERY if gpu not in ("ivb", "hsw")])
def test_state_says_how_many(gpu: str, mode: int) -> None:
    """Then vertices begin where the count would be, or behind the control data header."""
    for header in (0, 1):
        shown = six(gpu, mode, static=True, header_size=header, unit={"static_output_vertex_count": 5}).run()
        assert shown.numbers() == list(range(5)) and not shown.remarks


@pytest.mark.behaviour("BDW-GS-10", shows="action")
@pytest.mark.parametrize("gpu", [gpu for gpu, mode in EVERY if mode == SIMD8])
def test_threads_that_put_out_nothing(gpu: str) -> None:
    """Their one message has handles and no data (public: Mesa brw_fs_visitor.cpp)."""
    text = "\n".join([move("g113", "g1<8,8,1>", "UD"), send(7 | 1 << 19, 1, source=113, target=URB, opcode="send", eot=True)])
    unit = {"static_output": 1, "static_output_vertex_count": 0}
    shown = six(gpu, SIMD8, unit=unit, more={"more": {"gs": text}}).run()
    assert shown.register("GS_INVOCATION_COUNT") == 1 and not shown.rows() and not shown.remarks


@pytest.mark.parametrize(("gpu", "mode"), FEW)
def test_more_than_entries_have_room_for(gpu: str, mode: int) -> None:
    """Six vertices of 64 bytes; behind a count there is room for five."""
    shown = six(gpu, mode, count=1000, entry=6).run()
    most = 6 if gpu in ("ivb", "hsw") else 5
    assert shown.numbers() == list(range(most)) and [text for text in shown.remarks if f"the {most} vertices" in text]


# -- primitives --------------------------------------------------------------------------------------------------------

PUT_OUT: dict[tuple[int, int], Sequence[Sequence[int]]] = {  # by topology and cuts, which come after a vertex
    (POINTS, 0): [[n] for n in range(6)], (LINES, 0): [[0, 1], [2, 3], [4, 5]], (LINES, 0b000100): [[0, 1], [3, 4]],
    (LINE_STRIP, 0): [[n, n + 1] for n in range(5)], (LINE_STRIP, 0b001011): [[2, 3], [4, 5]],
    (TRIANGLES, 0): [[0, 1, 2], [3, 4, 5]], (TRIANGLES, 0b000010): [[2, 3, 4]],
    (TRIANGLE_STRIP, 0): [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]], (TRIANGLE_STRIP, 0b000001): [[1, 2, 3], [3, 2, 4], [3, 4, 5]],
    (TRIANGLE_STRIP, 0b1111_1000_0100): [[0, 1, 2], [3, 4, 5]],
    (FAN, 0b000001): [[1, 2, 3], [1, 3, 4], [1, 4, 5]], (POLYGON, 0): [[0, n, n + 1] for n in range(1, 5)],
}  # fmt: skip


@pytest.mark.behaviour("BDW-GS-08", "BDW-GS-09", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), FEW)
@pytest.mark.parametrize(("topology", "cuts"), PUT_OUT)
def test_topologies_and_cuts(gpu: str, mode: int, topology: int, cuts: int) -> None:
    """Bits at and after the number of vertices mean nothing."""
    control = {0: cuts, 7: 0xFFFFFFFF} if cuts else {}
    shading = six(gpu, mode, control=control, header_size=bool(cuts), unit={"output_topology": topology})
    shading.more = {"unit": {"reorder_mode": 1}}
    shown, objects = shading.run(), PUT_OUT[topology, cuts]
    assert shown.numbers() == [n for held in objects for n in held]
    assert shown.register("GS_PRIMITIVES_COUNT") == shown.streamed.counts(0)[1] == len(objects)


@pytest.mark.behaviour("BDW-GS-09", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), FEW)
def test_cuts_of_many_vertices(gpu: str, mode: int) -> None:
    """The header's bits go on from dword to dword: a line after each second of 40 vertices."""
    control = {0: 0xAAAAAAAA, 1: 0xAAAAAAAA}
    shown = six(gpu, mode, put=[n % 6 for n in range(40)], control=control, header_size=1, entry=48, unit={"output_topology": 3}).run()
    assert shown.numbers() == [n % 6 for n in range(40)] and shown.streamed.counts(0)[1] == 20


def test_no_such_topology() -> None:
    with pytest.raises(DecodeError, match="3DSTATE_GS: output_topology 10"):
        six("skl", SIMD8, unit={"output_topology": 10}).run()


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-GS-09", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), EVERY)
def test_streams_of_points(gpu: str, mode: int) -> None:
    """Two bits for each vertex: 0 3 1 3 2 0."""
    shown = six(gpu, mode, control={0: 0b00_10_11_01_11_00}, header_size=1, unit={"control_data_format": SID}).run()
    assert [shown.numbers(stream) for stream in range(4)] == [[0, 5], [2], [4], [1, 3]]
    assert shown.register("GS_PRIMITIVES_COUNT") == 6 and not shown.remarks


@pytest.mark.behaviour("BDW-GS-11", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), every(4, EVERY))
def test_the_default_stream(gpu: str, mode: int) -> None:
    """Of vertices whose control data header has none: it has cuts, or there is no header and its format means nothing."""
    for unit in ({"control_data_format": SID}, {"output_topology": LINE_STRIP}):
        header = "output_topology" in unit
        shown = six(gpu, mode, control={0: 0b000100} if header else {}, header_size=header, unit={"default_stream_id": 2, **unit}).run()
        assert shown.numbers(2) == ([0, 1, 1, 2, 3, 4, 4, 5] if header else list(range(6)))
        assert not any(shown.numbers(stream) for stream in (0, 1, 3))


@pytest.mark.behaviour("BDW-GS-01", "BDW-GS-11", shows="action")
@pytest.mark.parametrize("gpu", MODES)
def test_a_disabled_stage_has_stream_0(gpu: str) -> None:
    shading = Shading(gpu, MODES[gpu][-1], unit={"enable": 0, "default_stream_id": 2})
    streamed = shading.streaming().run()
    assert [streamed.counts(stream)[1] for stream in range(4)] == [2, 0, 0, 0]


# -- what later stages read ----------------------------------------------------------------------------------------------

CLIP_SPACE: dict[str, Any] = {
    "3DSTATE_SBE": {"force_vertex_urb_entry_read_length": 0, "force_vertex_urb_entry_read_offset": 0, "vertex_urb_entry_read_offset": 0},
    "3DSTATE_CLIP": {"clip_enable": 1, "perspective_divide_disable": 0}, "3DSTATE_SF": {"viewport_transform_enable": 1},
    "SF_CLIP_VIEWPORT": {"viewport_matrix_element_m00": 8.0, "viewport_matrix_element_m11": 8.0, "x_max_viewport": 15.0,
                         "y_max_viewport": 15.0},
}  # fmt: skip


def clipped(gpu: str, mode: int, third: float, **unit: int) -> Any:
    """A triangle whose attributes are its clip distances, too."""
    vertices = [vertex(x, y, 0.5, 1.0, (0.25, 0.5, third, 0.75)) for x, y in ((0, 0), (0, 1), (1, 0))]
    read = {"vertex_urb_entry_output_read_offset": 1, "vertex_urb_entry_output_length": 1, "output_topology": TRIANGLE_STRIP}
    shading = Shading(gpu, mode, vertices=vertices, unit={**read, **unit}, state=CLIP_SPACE, more={"unit": {"rendering_disable": 0}})
    return shading.run().streamed.drawn


@pytest.mark.behaviour("BDW-GS-18", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), [(gpu, mode) for gpu, mode in EVERY if gpu not in ("ivb", "hsw")])
@pytest.mark.parametrize("test", ["clip", "cull"])
def test_the_geometry_shader_says_what_later_stages_read(gpu: str, mode: int, test: str) -> None:
    """Where attributes are, and which distances count; not so one that is off, behind which nothing says so."""
    shown = clipped(gpu, mode, -0.5)
    assert shown.lit == {(x, y) for x in range(8) for y in range(8) if x + y < 7} and not shown.remarks
    assert shown.pixels[2, 3].tolist() == [0.25, 0.5, -0.5, 0.75]
    assert clipped(gpu, mode, -0.5, vertex_urb_entry_output_read_offset=0).pixels[2, 3].tolist() != [0.25, 0.5, -0.5, 0.75]
    mask = f"user_clip_distance_{test}_test_enable_bitmask"
    assert not clipped(gpu, mode, -0.5, **{mask: 0b0100}).lit
    assert clipped(gpu, mode, 0.5, **{mask: 0b0100}).lit == clipped(gpu, mode, -0.5, **{mask: 0b1011}).lit == shown.lit
    assert clipped(gpu, mode, -0.5, enable=0, **{mask: 0b0100}).lit == shown.lit


# -- bounded expansion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu", "mode"), [("bdw", SINGLE), ("skl", SIMD8)])
def test_more_vertices_than_a_chunk_has(gpu: str, mode: int) -> None:
    """32 instances of two objects with 900 vertices each: they come in chunks, and in order."""
    unit = {"static_output_vertex_count": 900, "instance_control": 31, "output_vertex_size": 1, "output_topology": LINE_STRIP}
    clip = {"clip_enable": 1, "clip_mode": REJECT_ALL, "clipper_statistics_enable": 1}
    shown = Shading(gpu, mode, static=True, entry=450, unit=unit, state={"3DSTATE_CLIP": clip}).run()
    assert shown.register("GS_PRIMITIVES_COUNT") == 2 * 32 * 899
    assert shown.streamed.counts(0)[1] == 2 * 32 * 899 == shown.register("CL_INVOCATION_COUNT")

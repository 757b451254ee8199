"""Stream output: what is written of each object, in which order, and which objects go on."""

from __future__ import annotations

import struct
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.three_d.draw.draw_structures import DrawStruct
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.stream_out.stream_output import StreamOutputStage
from softgen.three_d.structures import ObjectArray, PrimitiveObject
from softgen.three_d.three_d_h import OBJECT_STREAM_SHIFT
from softgen.three_d.vertices.assembly import AssembleStage
from softgen.three_d.vertices.vertex_shader import VertexStage
from tests.three_d.made import PAGE, made_state, record
from tests.three_d.own_draw import DATA
from tests.three_d.stream_out.streaming import FILL, GPUS, Buffer, Declaration, Streamed, Streaming, check, corners, words_of
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER
from tests.three_d.walk import Own, Streamer, walked

HEADER, POSITION, ATTRIBUTE = range(3)
LEADING, TRAILING = range(2)
REJECT_ALL, ACCEPT_ALL = 3, 4
POINTS, LINES, LINE_STRIP, TRIANGLES, STRIP, FAN = range(1, 7)
LINES_ADJACENT, LINE_STRIP_ADJACENT, TRIANGLES_ADJACENT, STRIP_ADJACENT, STRIP_REVERSE = range(9, 14)
RECTANGLES, LOOP = 15, 16
ONE = {0: [Declaration(0, ATTRIBUTE, 0xF), Declaration(0, POSITION, 0x3)]}


# -- order of vertices -------------------------------------------------------------------------------------------------

LISTS: dict[int, list[tuple[int, ...]]] = {
    POINTS: [(n,) for n in range(10)], LINES: [(n, n + 1) for n in range(0, 10, 2)], LINE_STRIP: [(n, n + 1) for n in range(9)],
    LOOP: [*((n, n + 1) for n in range(9)), (9, 0)], TRIANGLES: [(0, 1, 2), (3, 4, 5), (6, 7, 8)],
    FAN: [(0, n, n + 1) for n in range(1, 9)], LINES_ADJACENT: [(1, 2), (5, 6)], LINE_STRIP_ADJACENT: [(n, n + 1) for n in range(1, 8)],
    TRIANGLES_ADJACENT: [(0, 2, 4)], RECTANGLES: [(0, 1, 2), (3, 4, 5), (6, 7, 8)],
}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("topology", LISTS)
def test_buffers_get_lists(gpu: str, topology: int) -> None:
    """Strips, fans and loops as the objects that they are made of, without vertices that are only adjacent."""
    check(Streaming(gpu, ONE, {0: Buffer(24, 0x400)}, corners(10), topology).run(), LISTS[topology])


def strip(topology: int, mode: int) -> list[tuple[int, int, int]]:
    """The triangles of ten vertices."""
    step = 2 if topology == STRIP_ADJACENT else 1
    swapped, found = int(topology != STRIP_REVERSE), []
    for k in range(3 if step == 2 else 8):
        a, b, c = (step * n for n in (k, k + 1, k + 2))
        found.append((a, b, c) if k % 2 != swapped else (b, a, c) if mode == TRAILING else (a, c, b))
    return found


@pytest.mark.behaviour("BDW-SOL-13", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("topology", [STRIP, STRIP_ADJACENT, STRIP_REVERSE])
def test_triangles_of_strips_are_reordered_in_buffers_alone(gpu: str, topology: int) -> None:
    """Every other triangle keeps its first vertex first, or its last one last; what is rendered stays the same."""
    def streamed_with(**unit: Any) -> Streamed:
        return Streaming(gpu, ONE, {0: Buffer(24, 0x400)}, corners(10), topology, unit).run()

    found = [streamed_with(reorder_mode=mode) for mode in (LEADING, TRAILING)]
    for mode, streamed in enumerate(found):
        check(streamed, strip(topology, mode))
    plain = streamed_with(enable=0)
    assert plain.drawn.lit and all((streamed.drawn.pixels == plain.drawn.pixels).all() for streamed in found)


@pytest.mark.parametrize("gpu", GPUS)
def test_instances_follow_each_other(gpu: str) -> None:
    whole = {"vertex_count_per_instance": 4, "instance_count": 3}
    check(Streaming(gpu, ONE, {0: Buffer(24, 0x400)}, corners(4), LINE_STRIP, primitives=[whole]).run(), 3 * [(0, 1), (1, 2), (2, 3)])


# -- what goes on ------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-SOL-01", "BDW-SOL-02", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("enable", "disabled"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_rendering_and_writing_are_independent(gpu: str, enable: int, disabled: int) -> None:
    """CLIP counts what it gets: nothing of what stream output keeps back."""
    drawn = Streaming(gpu, ONE, {0: Buffer(24, offset=48)}, unit={"enable": enable, "rendering_disable": disabled},
                      state={"3DSTATE_CLIP": {"clip_enable": 1, "clip_mode": ACCEPT_ALL}}).run()  # fmt: skip
    if enable:
        check(drawn, [(0, 1, 2), (3, 4, 5)])
    else:
        assert set(drawn.words(0)) == {FILL} and (drawn.counts(0), drawn.offset(0)) == ((0, 0), 48)
    assert bool(drawn.drawn.lit) is not bool(disabled)
    assert drawn.drawn.register("CL_INVOCATION_COUNT") == (0 if disabled else 2)
    assert drawn.drawn.register("IA_PRIMITIVES_COUNT") == 2


@pytest.mark.behaviour("BDW-SOL-02", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize(("disabled", "force", "renders"), [(0, 2, False), (1, 2, False), (0, 3, True), (1, 3, True)])
def test_rendering_is_forced_while_vertices_are_written(gpu: str, disabled: int, force: int, renders: bool) -> None:
    drawn = Streaming(gpu, ONE, {0: Buffer(24)}, unit={"force_rendering": force, "rendering_disable": disabled}).run()
    check(drawn, [(0, 1, 2), (3, 4, 5)])
    assert bool(drawn.drawn.lit) is renders


@pytest.mark.parametrize("gpu", GPUS)
def test_clip_counts_what_it_rejects(gpu: str) -> None:
    """Drivers let CLIP reject all where primitives that are discarded have to be counted."""
    drawn = Streaming(gpu, ONE, {0: Buffer(24)}, state={"3DSTATE_CLIP": {"clip_enable": 1, "clip_mode": REJECT_ALL}}).run()
    check(drawn, [(0, 1, 2), (3, 4, 5)])
    assert drawn.drawn.register("CL_INVOCATION_COUNT") == 2 and not drawn.drawn.lit


BARE = ("CLIP", "RASTER", "SF", "SBE", "SBE_SWIZ", "MULTISAMPLE", "SAMPLE_MASK", "WM", "WM_DEPTH_STENCIL", "WM_CHROMAKEY", "PS_EXTRA",
        "PS_BLEND", "BLEND_STATE_POINTERS", "CC_STATE_POINTERS", "VIEWPORT_STATE_POINTERS_CC", "VIEWPORT_STATE_POINTERS_SF_CLIP",
        "SCISSOR_STATE_POINTERS", "BINDING_TABLE_POINTERS_PS", "CONSTANT_PS", "DEPTH_BUFFER", "DEPTH_STENCIL_STATE_POINTERS")  # fmt: skip


@pytest.mark.parametrize("gpu", GPUS)
def test_memory_is_copied_without_any_shader(gpu: str) -> None:
    """As Vulkan's drivers do it: fetch writes slot 0 of entries, which is data like any other, and no later unit has state."""
    resolve = f"render_target_resolve_{'type' if gpu in ('kbl', 'icl') else 'enable'}"  # of a pixel shader that is not needed
    draw = Streaming(gpu, {0: [Declaration(0, HEADER, 0xF)]}, {0: Buffer(16)}, corners(7), POINTS,
                     {"rendering_disable": 1}, state={"3DSTATE_PS": {resolve: 1}}).draw()  # fmt: skip
    draw.defaults = {name: held for name, held in draw.defaults.items() if name.removeprefix("3DSTATE_") not in BARE}  # type: ignore[misc]
    drawn = draw.run()
    written = np.frombuffer(drawn.space.read(0x900000, 7 * 16), np.uint32).reshape(7, 4)
    assert written.tolist() == [words_of(held)[:4].tolist() for held in corners(7)]


# -- streams -----------------------------------------------------------------------------------------------------------


class Registers(Streamer):
    """A streamer with registers."""

    def __init__(self, state: DrawState) -> None:
        super().__init__(state)
        self.held: dict[str, int] = {}

    def set(self, name: str, value: int) -> None:
        self.held[name] = value

    def add(self, name: str, count: int) -> None:
        self.held[name] = self.held.get(name, 0) + count


def objects_of(draw: DrawStruct) -> Any:
    array = ObjectArray.from_address(draw.chunk.objects)
    return (PrimitiveObject * array.count).from_address(array.objects)


def streams_of(**unit: Any) -> tuple[list[int], dict[str, int], list[list[int]]]:
    """A draw of eight points, whose streams are 0, 1, 2, 3, 0, 1, 2, 3: those that go on, registers, and the first dwords of three buffers,
    of streams 0, 1 and 3. The last has room for one point."""
    left: list[int] = []

    def mark(draw: DrawStruct) -> int:
        for number, held in enumerate(objects_of(draw)):
            held.flags |= number % 4 << OBJECT_STREAM_SHIFT
        return 0

    def look(draw: DrawStruct) -> int:
        left.extend(held.vertex[0] for held in objects_of(draw))
        return 0

    vertices = [struct.pack("<4I", n, 10 + n, 20 + n, 30 + n) for n in range(8)]
    entry = {"stream": [{"output_buffer_slot": n, "register_index": 0, "component_mask": 1 << n} for n in (0, 1, 0, 2)]}
    commands: dict[str, Any] = {
        "3DSTATE_VS": {}, "3DSTATE_URB_VS": {}, "3DSTATE_SF": {}, "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": POINTS},
        "3DSTATE_STREAMOUT": {"statistics_enable": 1, "buffer": [{"surface_pitch": 4}] * 3, **unit},
        "3DSTATE_SO_DECL_LIST": {"stream_to_buffer_selects": [{"buffer_mask": mask} for mask in (1, 2, 0, 4)], "entry": [entry],
                                 "num_entries": [{"count": n} for n in (1, 1, 0, 1)]}}  # fmt: skip
    state = made_state(9, {0x1000: b"".join(vertices), 0x4000: bytes(PAGE)}, commands,
                       {0: {"buffer_pitch": 16, "buffer_starting_address": 0x1000, "buffer_size": 128}},
                       [{"source_element_format": 0, **{f"component_{n}_control": 1 for n in range(4)}}])  # fmt: skip
    state.latched.indexed["3DSTATE_SO_BUFFER"] = {  # type: ignore[attr-defined]
        n: record("3DSTATE_SO_BUFFER", 9, {"so_buffer_enable": 1, "surface_size": size - 1, "surface_base_address": 0x4000 + 0x100 * n})
        for n, size in enumerate((8, 8, 1))}  # fmt: skip
    cs = Registers(state)
    made, _ = walked(cs, state, DrawCall(POINTS, False, 8, 0, 1, 0, 0),
                     [AssembleStage, VertexStage, lambda: Own(mark), StreamOutputStage, lambda: Own(look)])  # fmt: skip
    for stage in made.reporting:
        stage.report(cs)  # type: ignore[arg-type]
    words = [np.frombuffer(state.space.read(0x4000 + 0x100 * n, 16), np.uint32).tolist() for n in range(3)]
    return left, cs.held, words


@pytest.mark.behaviour("BDW-SOL-03", "BDW-SOL-14", shows="action")
@pytest.mark.parametrize("rendered", range(4))
def test_objects_of_one_stream_go_on(rendered: int) -> None:
    """Each stream has buffers and counters of its own; one without buffers writes nothing."""
    left, registers, words = streams_of(enable=1, render_stream_select=rendered)
    assert left == [rendered, 4 + rendered]
    assert words == [[0, 4, 0, 0], [11, 15, 0, 0], [23, 0, 0, 0]], "the second point of stream 3 does not fit"
    assert [registers[f"SO_PRIM_STORAGE_NEEDED{n}"] for n in range(4)] == [2, 2, 2, 2]
    assert [registers[f"SO_NUM_PRIMS_WRITTEN{n}"] for n in range(4)] == [2, 2, 2, 1]
    assert [registers[f"SO_WRITE_OFFSET{n}"] for n in range(4)] == [8, 8, 4, 0]


@pytest.mark.behaviour("BDW-SOL-03", shows="action")
def test_objects_of_all_streams_go_on_where_nothing_is_written() -> None:
    left, registers, words = streams_of(render_stream_select=2)
    assert (left, registers, words) == ([*range(8)], {}, [[0] * 4] * 3)


# -- threads and engines -----------------------------------------------------------------------------------------------


@pytest.mark.covering(1)
@pytest.mark.parametrize(("engine", "threads"), [("reference", 1), ("t0", 1), ("t0", 3), ("t1", 1), ("t1", 2)])
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
def test_the_order_is_that_of_the_draw(gpu: str, engine: str, threads: int) -> None:
    """In every chunk of it, and whichever threads shade its vertices."""
    vertices = corners(330 if engine != "reference" else 60)
    declarations = [Declaration(0, ATTRIBUTE, 0xF), Declaration(0, 0, 7, hole=True), Declaration(1, POSITION, 0x6),
                    Declaration(0, POSITION, 0x8)]  # fmt: skip
    streaming = Streaming(gpu, {0: declarations}, {0: Buffer(36, 0x9000, address=DATA), 1: Buffer(8, 0x3000, address=DATA + 0xA000)},
                          vertices, STRIP, {"reorder_mode": TRAILING}, state={"3DSTATE_VS": VERTEX_SHADER},
                          more={"vs": PASS_VERTICES, "patch": {DATA: struct.pack("<I", FILL) * 0x4000}})  # fmt: skip
    triangles = [(k, k + 1, k + 2) if k % 2 == 0 else (k + 1, k, k + 2) for k in range(len(vertices) - 2)]
    with patch("softgen.three_d.draw.draw_walk.VERTICES", 50), patch("softgen.three_d.draw.draw_walk.PER_LOOP", 2):
        check(streaming.run(engine, threads), triangles)

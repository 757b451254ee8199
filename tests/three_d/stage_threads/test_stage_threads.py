"""GS, CLIP and SF threads of Gen4.5: real kernels of a capture on every engine, a GS kernel of one's own, and the objects of what threads
put out against a plain model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from softgen.bits import catalogue
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.eu.encoding import program
from softgen.eu.interpreter import Interpreter
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.urb.memory import COMPLETE, POOL, USED, UrbMemory
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.clip_setup.bins import BinStage
from softgen.three_d.clip_setup.clip import ClipStage
from softgen.three_d.clip_setup.setup import SetupStage
from softgen.three_d.draw.draw_structures import DrawStruct
from softgen.three_d.draw.stage import Stage
from softgen.three_d.stage_threads.clip_threads import ClipThreadStage
from softgen.three_d.stage_threads.geometry_threads import GeometryThreads
from softgen.three_d.stage_threads.setup_threads import SetupThreadStage
from softgen.three_d.stage_threads.stage_threads import ThreadOutputStruct, ThreadStage, library
from softgen.three_d.stage_threads.thread_output import PUT_OUT, refuse_output, set_topologies
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import ObjectArray, PrimitiveObject, VertexArray
from softgen.three_d.vertices.assembly import ALL_EDGES, EDGES_SHIFT, TOPOLOGIES, TOPOLOGY_SHIFT, AssembleStage
from softgen.three_d.vertices.chunk import Chunk, OutputChunk
from softgen.three_d.vertices.vertex_shader import VertexStage
from tests.conftest import ROOT
from tests.eu.semantics.build import dst, imm, instr, reg
from tests.three_d.captured import draw_call, walk_capture
from tests.three_d.made import made_state
from tests.three_d.walk import DONE, Own, SeenChunk, chunks_of, given, pieces_of

ENGINES = ("reference", "t0", "t1")
TRIANGLES, FAN, POLYGON, QUADS, QUAD_STRIP, LINE_LOOP, LINES, LINE_LIST = 4, 6, 14, 7, 8, 16, 3, 2
RECTANGLE, INVERTED, BACK_FACING, LAST, CONTINUES = 1 << 2, 1 << 3, 1 << 9, 1 << 10, 1 << 11
GEN = 4.5
FRONT, CLIPPED = (AssembleStage, VertexStage), (ClipStage, ClipThreadStage, SetupStage, BinStage)
TRIANGLE = ROOT / "tests" / "data" / "g45-gles-tri"


def with_draw(engine: str, then: Any) -> int:
    """Calls `then(cs, state, call)` at the first triangle of g45-gles-tri; how many instructions the interpreter executed."""
    steps, plain, done = [0], Interpreter.step, list[bool]()

    def counted(self: Interpreter) -> bool:
        steps[0] += 1
        return plain(self)

    def hook(cs: CommandStreamer, cmd: Any) -> None:
        call = draw_call(cs, cmd)
        if call.topology == TRIANGLES and not done:
            done.append(True)
            then(cs, DrawState.of(cs), call)

    with mock.patch.object(Interpreter, "step", counted):
        assert walk_capture(TRIANGLE, hook, EngineDispatcher(engine, threads=1)) == []
    assert done
    return steps[0]


def entries_of(vertices: VertexArray) -> Any:
    raw = (ctypes.c_uint8 * (vertices.count * vertices.stride)).from_address(vertices.entries)
    return np.frombuffer(memoryview(raw), np.uint8).view(np.float32).reshape(vertices.count, -1)


def changed(change: Callable[[VertexArray, ObjectArray], None]) -> Callable[[], Stage]:
    """A stage that changes what the one before it puts out."""

    def run(draw: DrawStruct) -> int:
        change(VertexArray.from_address(draw.chunk.vertices), ObjectArray.from_address(draw.chunk.objects))
        return DONE

    return lambda: Own(run)


def test_a_stages_payload_has_room_for_some_bits_of_a_threads_number() -> None:
    """FFTID: those of 256 SF threads, or of two CLIP threads."""

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        assert [ThreadStage(state, name, 3).thread_mask for name in ("SF", "CLIP")] == [0xFF, 1]

    with_draw("reference", then)


# -- SF ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-53", shows="action")
@pytest.mark.behaviour("G45-FF-06", shows="action")
@pytest.mark.behaviour("G45-FF-14", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_setup_threads_write_plane_coefficients(engine: str) -> None:
    """Mesa's kernel: the planes that its coefficients make give the attributes of all three vertices."""

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        size = ThreadStage(state, "SF", 3).entry_bytes
        seen = pieces_of(state, None, stages=(*FRONT, ClipStage, SetupStage, SetupThreadStage, BinStage), call=call, cs=cs,
                         attribute_bytes=size)  # fmt: skip
        (piece,), (chunk,) = seen.pieces, seen.chunks
        (record,), (data,) = piece.records, piece.attributes
        assert seen.threads["SF"] == 1
        rows = np.frombuffer(data, np.float32).astype(np.float64).reshape(-1, 4)
        for vertex in chunk.words:
            x, y = (vertex[4:6].astype(np.float64) * 32 + 32) - 0.5 - np.array([record.x_start, record.y_start])
            found = rows[:8, 3] + rows[:8, 0] * x + rows[:8, 1] * y
            assert np.allclose(found[[0, 1, 2]], vertex[4:7] * [1, 1, 0.5] + [0, 0, 0.5], atol=1e-2), "position; z of the screen"
            assert np.allclose(found[3], 1) and np.allclose(found[4:6], vertex[12:14], atol=1e-2), "1/w and texture coordinates"

    left = with_draw(engine, then)
    assert engine == "reference" or left == 0, "compiled code executes it all"


# -- CLIP --------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-CLIP-25", shows="action")
@pytest.mark.behaviour("G45-CLIP-35", shows="action")
@pytest.mark.behaviour("G45-CLIP-39", shows="action")
@pytest.mark.behaviour("G45-CLIP-40", shows="action")
@pytest.mark.behaviour("G45-CLIP-44", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_clip_threads_clip_what_must_be(engine: str) -> None:
    """Mesa's kernel makes a fan of four vertices of a triangle with one of its own behind a plane."""

    held: list[Any] = []

    def move_far(vertices: VertexArray, objects: ObjectArray) -> None:
        """The first vertex behind the far plane: normalised z is 3, and 1 / w is 1."""
        entries = entries_of(vertices)
        entries[0, 6] = entries[0, 10] = 3
        held.append(entries.copy())

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        seen = pieces_of(state, None, stages=(*FRONT, changed(move_far), *CLIPPED), call=call, cs=cs)
        (piece,), (chunk,), (before,) = seen.pieces, seen.chunks, held
        assert seen.threads["CLIP"] == 1 and len(piece.records) == 2 and len(chunk.words) == 3 + 4
        after = chunk.words
        assert (after[:3, : before.shape[1]] == before).all(), "source vertices stay"
        corners = [(before[1 + i % 2], before[0]) for i in range(2)]
        wanted = [before[1], before[2], *(a + (b - a) / 3 for a, b in corners)]  # z from 0 to 3 crosses 1 after a third
        for vertex in after[3:]:
            assert vertex[7] == 1 and vertex[6] <= 1
            places = [4, 5, 6, *range(8, 16)]
            found = [np.allclose(vertex[places], item[places], atol=1e-6) for item in wanted]
            assert sum(found) == 1, vertex
        assert all(record.topology == FAN for record in piece.records)

    left = with_draw(engine, then)
    assert engine == "reference" or left == 0, "compiled code executes it all"


@pytest.mark.parametrize("objects", [4, 1000])
def test_objects_keep_their_order_around_clipped_ones(objects: int) -> None:
    """Every other one is clipped; of many, there is room for what threads put out of some at a time."""

    def repeat(vertices: VertexArray, array: ObjectArray) -> None:
        held = (PrimitiveObject * objects).from_address(array.objects)
        for number in range(1, objects):
            held[number] = held[0]
            held[number].primitive = number
        array.count, vertices.count = objects, 6
        entries = entries_of(vertices)
        entries[3:6] = entries[:3]
        entries[0, 6] = entries[0, 10] = 3
        for number in range(1, objects, 2):
            held[number].vertex[:] = [3, 4, 5]

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        seen = pieces_of(state, None, stages=(*FRONT, changed(repeat), *CLIPPED), call=call, cs=cs)
        found = [record.primitive for piece in seen.pieces for record in piece.records]
        assert found == [number for number in range(objects) for _ in range(2 - number % 2)] and seen.threads["CLIP"] == objects // 2
        assert (len(seen.pieces) > 1) == (objects > 4)

    with_draw("t1" if objects > 4 else "t0", then)


# -- GS ----------------------------------------------------------------------------------------------------------------


def gs_kernel(vertices: int, topology: int, used: bool = True) -> bytes:
    """Puts out its vertices, of two registers each, as one primitive; or gives its entry back."""
    items: list[Instruction] = []
    for number in range(vertices if used else 1):
        last = number == vertices - 1 or not used
        flags = topology << 2 | (number == 0) << 1 | last
        items.append(instr(GEN, "mov", dst(0, "ud", sub=8), imm(flags, "ud"), size=1, no_mask=True))
        for part in range(2):
            to = Operand("mrf", "f", 1 + part, horizontal=1)
            items.append(instr(GEN, "mov", to, reg(1 + 2 * number + part, "f"), no_mask=True))
        descriptor = (3 if used else 1) << 20 | (not last) << 16 | 1 << 15 | used << 14 | (not last) << 13
        to = Operand("arf", "ud") if last else dst(0, "ud")
        items.append(Instruction(GEN, "send", 49, "send", 8, no_mask=True, sfid=6, descriptor=descriptor, eot=last, dst=to,
                                 sources=(reg(0, "ud"),)))  # fmt: skip
    return program.assemble(items)


class Overlaid:
    """Latched commands with one of them replaced."""

    def __init__(self, latched: Any, name: str, record: Any) -> None:
        self.latched, self.name, self.record = latched, name, record

    def get(self, name: str) -> Any:
        return self.record if name == self.name else self.latched.get(name)


def with_gs(cs: CommandStreamer, state: DrawState, kernel: bytes, **fields: int) -> DrawState:
    """The state with a GS of this kernel, in memory of its own."""
    base, buffer = 0x7F000000, MemfdBuffer(8192)
    general = state.bases.get("general", 0)
    block = np.array(catalogue.layout("GS_STATE", GEN).pack(
        kernel_start_pointer=base + 4096 - general, vertex_urb_entry_read_length=2, dispatch_grf_start_register_for_urb_data=1,
        urb_entry_allocation_size=1, maximum_number_of_threads=1, number_of_urb_entries=8, **fields), np.uint32)  # fmt: skip
    buffer.array[: block.nbytes] = block.view(np.uint8)
    buffer.array[4096 : 4096 + len(kernel)] = np.frombuffer(kernel, np.uint8)
    if not cs.space.extent(base, 1):
        cs.space.map(base, buffer)
    else:
        cs.space.write(base, buffer.array.tobytes())
    held, name = state.command("3DSTATE_PIPELINED_POINTERS"), "3DSTATE_PIPELINED_POINTERS"
    values = {field: getattr(held, field) for field in held._fields} | {"pointer_to_gs_state": base - general, "gs_enable": 1}
    layout = catalogue.layout(name, GEN)
    pointers = layout.raw(layout.pack(**values))
    return DrawState(state.generation, state.space, Overlaid(state.latched, name, pointers), state.bases, state.register)


def geometry_threads(cs: CommandStreamer, state: DrawState, call: DrawCall, chunk: Chunk) -> list[SeenChunk]:
    """What threads make of a chunk, part by part."""
    return chunks_of(state, call, cs, (given(chunk), GeometryThreads)).chunks


def quad_chunk(quads: int) -> Chunk:
    """Quadrilaterals as assembly makes them for GS threads: three vertices, and the fourth."""
    chunk, rng = Chunk(64, 4096, 4096), np.random.default_rng(3)
    chunk.vertices.count, chunk.objects.count = 4 * quads, 2 * quads
    entries_of(chunk.vertices)[:] = rng.normal(size=(4 * quads, 16))
    held = (PrimitiveObject * (2 * quads)).from_address(chunk.objects.objects)
    flags = 3 | ALL_EDGES << EDGES_SHIFT | POLYGON << TOPOLOGY_SHIFT
    for quad in range(quads):
        a, b, c, d = range(4 * quad, 4 * quad + 4)
        held[2 * quad] = PrimitiveObject((ctypes.c_uint32 * 3)(a, b, c), flags, quad)
        held[2 * quad + 1] = PrimitiveObject((ctypes.c_uint32 * 3)(d, d, d), flags, quad)
    return chunk


@pytest.mark.behaviour("G45-GS-02", shows="action")
@pytest.mark.behaviour("G45-GS-11", shows="action")
@pytest.mark.behaviour("G45-GS-19", shows="action")
@pytest.mark.behaviour("G45-URB-16", shows="action")
@pytest.mark.behaviour("G45-FF-02", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_geometry_threads_get_quadrilaterals_whole(engine: str) -> None:
    """Their vertices come in the order of the draw, and leave as polygons."""
    quads = 5 if engine == "reference" else 70  # more than a batch

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        chunk = quad_chunk(quads)
        before = entries_of(chunk.vertices).copy()
        gs = with_gs(cs, state, gs_kernel(4, POLYGON))
        (made,) = geometry_threads(cs, gs, DrawCall(QUADS, False, 4 * quads, 0, 1, 0, 0), chunk)
        after, found = made.words, made.objects
        assert len(found) == 2 * quads
        for quad in range(quads):
            first, second = found[2 * quad : 2 * quad + 2]
            corners = [first.vertex[0], first.vertex[1], first.vertex[2], second.vertex[2]]
            assert (after[corners][:, :16] == before[4 * quad : 4 * quad + 4]).all() and second.vertex[0] == first.vertex[0]
            assert [item.flags >> TOPOLOGY_SHIFT for item in (first, second)] == [POLYGON] * 2 and first.primitive == quad
            assert [item.flags >> EDGES_SHIFT & 7 for item in (first, second)] == [3, 6], "the diagonal is inside"

    left = with_draw(engine, then)
    assert engine == "reference" or left == 0


@pytest.mark.behaviour("G45-GS-20", shows="action")
@pytest.mark.behaviour("G45-GS-01", shows="action")
def test_geometry_threads_may_put_out_nothing() -> None:
    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        chunk, quads = quad_chunk(3), DrawCall(QUADS, False, 12, 0, 1, 0, 0)
        assert len(geometry_threads(cs, state, quads, chunk)[0].objects) == 6, "GS is off"
        assert not geometry_threads(cs, with_gs(cs, state, gs_kernel(4, POLYGON, used=False)), quads, chunk)

    with_draw("t0", then)


def test_many_objects_go_through_geometry_threads_in_parts() -> None:
    """As many at a time as there is room for what they put out."""
    quads = 600

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        gs = with_gs(cs, state, gs_kernel(4, POLYGON))
        made = geometry_threads(cs, gs, DrawCall(QUADS, False, 4 * quads, 0, 1, 0, 0), quad_chunk(quads))
        assert [item.primitive for part in made for item in part.objects] == [quad for quad in range(quads) for _ in range(2)]
        assert len(made) > 1

    with_draw("t1", then)


@pytest.mark.behaviour("G45-GS-13", shows="action")
def test_topologies_that_may_not_leave_are_refused() -> None:
    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        quads = DrawCall(QUADS, False, 12, 0, 1, 0, 0)
        for topology in (QUADS, 8, 9, 10, 11, 12, 16):  # quadrilaterals, those with adjacency, loops (G45 3431-3456)
            with pytest.raises(DecodeError, match=f"GS thread put out a vertex of topology {topology}, which none may"):
                geometry_threads(cs, with_gs(cs, state, gs_kernel(4, topology)), quads, quad_chunk(3))
        with pytest.raises(DecodeError, match="primitive_topology_type 17, which GS threads cannot have"):
            geometry_threads(cs, with_gs(cs, state, gs_kernel(4, POLYGON)), DrawCall(17, False, 12, 0, 1, 0, 0), quad_chunk(3))

    with_draw("t0", then)


@pytest.mark.parametrize("name", ["GS", "CLIP", "SF"])
@pytest.mark.parametrize(("start", "constants", "length", "vertices", "registers"), [
    (3, 2, 4, 3, 17), (3, 0, 4, 6, 27), (1, 0, 2, 4, 9), (1, 0, 0, 3, None), (1, 5, 0, 3, 6), (4, 1, 1, 1, 6),
])  # fmt: skip
def test_where_a_stages_payload_has_its_parts(name: str, start: int, constants: int, length: int, vertices: int,
                                              registers: int | None) -> None:  # fmt: skip
    """Constants from the register that state says, then what is read of each vertex; the header is there in any case."""
    fields = {"dispatch_grf_start_register_for_urb_data": start, "constant_urb_entry_read_length": constants, "kernel_start_pointer": 0x80,
              "vertex_urb_entry_read_length": length, "urb_entry_allocation_size": 2, "constant_urb_entry_read_offset": 1}  # fmt: skip
    remarks = list[str]()
    state = made_state(GEN, {0x20000: b""}, {"3DSTATE_PIPELINED_POINTERS": {f"pointer_to_{name.lower()}_state": 0x20000}},
                       blocks={0x20000: (f"{name}_STATE", fields)}, warn=remarks.append)  # fmt: skip
    state.curbe = bytes(range(256))
    stage = ThreadStage(state, name, vertices)
    assert (stage.entry_bytes, stage.constant_bytes) == (192, 32 * constants)
    assert (stage.constant_offset, stage.vertex_offset, stage.read_bytes) == (32 * start, 32 * (start + constants), 32 * length)
    dwords = catalogue.layout(f"{name}_THREAD_PAYLOAD", GEN).dwords
    assert stage.registers == (-(-dwords // 8) if registers is None else registers) and stage.batch == 64
    assert any("grf_register_count" in text for text in remarks) == (stage.registers > 16)


@pytest.mark.parametrize(("name", "vertices", "start", "constants", "length"), [
    ("GS", 6, 2, 0, 21), ("GS", 3, 8, 30, 30), ("CLIP", 3, 2, 0, 42), ("CLIP", 3, 5, 63, 20), ("SF", 3, 2, 0, 42),
    ("SF", 3, 11, 60, 19)])  # fmt: skip
def test_payloads_longer_than_a_threads_registers_are_refused(name: str, vertices: int, start: int, constants: int, length: int) -> None:
    """128 fit, whatever grf_register_count says."""
    def stage(start: int) -> ThreadStage:
        fields = {"dispatch_grf_start_register_for_urb_data": start, "constant_urb_entry_read_length": constants,
                  "vertex_urb_entry_read_length": length, "grf_register_count": 7}  # fmt: skip
        state = made_state(GEN, {0x20000: b""}, {"3DSTATE_PIPELINED_POINTERS": {f"pointer_to_{name.lower()}_state": 0x20000}},
                           blocks={0x20000: (f"{name}_STATE", fields)})  # fmt: skip
        state.curbe = bytes(4096)
        return ThreadStage(state, name, vertices)

    assert stage(start).registers == stage(start).dispatch(UrbMemory(np.zeros(0, np.uint8))).registers == 128
    with pytest.raises(DecodeError, match=f"{name}: a payload of 129 registers; threads have 128"):
        stage(start + 1)


def nothing_to_do() -> tuple[ObjectArray, ThreadOutputStruct]:
    """No objects, and room for none."""
    output, pools = ThreadOutputStruct(), np.ones(1, POOL)
    output.held, output.pool = pools, pools.ctypes.data
    return ObjectArray(), output


@pytest.mark.parametrize(("threads", "batch"), [(1, 1), (2, 2), (63, 63), (64, 64)])
def test_a_batch_of_stage_threads_has_scratch_space(threads: int, batch: int) -> None:
    fields = {"per_thread_scratch_space": 1, "maximum_number_of_threads": threads - 1, "scratch_space_base_pointer": 0x4000}
    state = made_state(GEN, {0x20000: b""}, {"3DSTATE_PIPELINED_POINTERS": {"pointer_to_sf_state": 0x20000}},
                       blocks={0x20000: ("SF_STATE", fields)})  # fmt: skip
    stage = ThreadStage(state, "SF", 3)
    held = catalogue.layout("SF_THREAD_PAYLOAD", GEN).raw(stage.header)
    assert stage.batch == batch and (held.scratch_space_offset, held.per_thread_scratch_space) == (0x4000, 1)
    assert stage.fields["scratch"].size == 2048


# -- what threads put out ----------------------------------------------------------------------------------------------


def model(stream: list[tuple[int, int]]) -> list[tuple[list[int], bool, bool]]:
    """Objects of (vertex, dw2): vertices, whether inverted, whether it continues a strip of lines."""
    found: list[tuple[list[int], bool, bool]] = []
    held: list[int] = []
    for vertex, dw2 in stream:
        topology = TOPOLOGIES[dw2 >> 2]
        held = [vertex] if dw2 & 2 else [*held, vertex]
        number, rest = divmod(len(held) - topology.minimum, topology.step)
        if number >= 0 and not rest:
            corners = [held[0] if back == 255 else held[-1 - back] for back in topology.back]
            inverted = bool(topology.inverts) and number % 2 == topology.inverts % 2
            found.append((corners, inverted, topology.strip and (number > 0 or topology.continued)))
        held = [] if dw2 & 1 else held
    return found


class Output:
    """Arrays for what threads put out."""

    def __init__(self, state: DrawState) -> None:
        self.held = OutputChunk(128)
        assert self.held.urb.entries is not None
        self.entries = self.held.urb.entries
        self.struct = ThreadOutputStruct(vertices=self.held.vertices, objects=self.held.objects, entries=self.entries.ctypes.data)
        set_topologies(state, self.struct)


def test_topologies_that_threads_may_put_out() -> None:
    """Points, lines, triangles, polygons and rectangles: no adjacency, quadrilaterals or loops (G45 3336-3341, 4735)."""
    refused = {7, 8, 9, 10, 11, 12, 16, 21}

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        for topology in range(1, 23):
            output, count = Output(state), 6
            entries = output.entries
            for n in range(count):
                entries[2 * n] = (COMPLETE | USED, topology << 2 | (n == 0) << 1 | (n == count - 1), 2 * n + 2 if n + 1 < count else 0, 0)
            library().read_output(ctypes.byref(output.struct), 0, 17)
            if topology in refused:
                with pytest.raises(DecodeError, match=f"a CLIP thread put out a vertex of topology {topology}, which none may"):
                    refuse_output(output.struct, "CLIP")
            else:
                assert output.struct.objects.count and not output.struct.refused

    with_draw("reference", then)


@pytest.mark.parametrize("selects", [(0, 0, 1), (1, 1, 2), (2, 0, 0)])
def test_what_objects_of_threads_are(selects: tuple[int, int, int]) -> None:
    """Their topology, edges of triangles, which way points and lines face, and the vertex that provokes: as the state of SF selects it for
    lines, triangles and fans, the first one of polygons and rectangles (G45 5129, 5135)."""
    line, triangle, fan = selects
    fields = {"line_strip_list_provoking_vertex_select": line, "triangle_strip_list_provoking_vertex_select": triangle,
              "triangle_fan_provoking_vertex_select": fan}  # fmt: skip
    state = made_state(GEN, {0x20000: b""}, {"3DSTATE_PIPELINED_POINTERS": {"pointer_to_sf_state": 0x20000}},
                       blocks={0x20000: ("SF_STATE", fields)})  # fmt: skip
    output = ThreadOutputStruct()
    set_topologies(state, output)
    points, lines, triangles = {1: 0, 17: 0}, dict.fromkeys((2, 3, 18, 19, 20), line), dict.fromkeys((4, 5, 13), triangle)
    provoking = {**points, **lines, **triangles, 6: fan, 22: fan, 14: 0, 15: 0}
    for code, made in enumerate(output.topology):
        corners = 0 if code not in provoking else 1 if code in points else 2 if code in lines else 3
        found = made.flags & 3, made.flags >> 4 & 3, made.flags >> EDGES_SHIFT & 7, made.flags >> TOPOLOGY_SHIFT
        assert found == (corners, provoking.get(code, 0), ALL_EDGES if corners == 3 else 0, code if corners else 0)
        marks = RECTANGLE * (code == 15) | BACK_FACING * (code in (17, 19, 20)) | LAST * (code == LINE_LIST)
        assert made.flags & (RECTANGLE | INVERTED | BACK_FACING | LAST | CONTINUES) == marks and made.corners == corners


@pytest.mark.behaviour("G45-GS-14", shows="action")
@pytest.mark.behaviour("G45-SF-07", shows="action")
@pytest.mark.behaviour("G45-FF-20", shows="action")
def test_objects_of_what_threads_put_out() -> None:
    """Random primitives of all topologies, complete or not."""
    rng = np.random.default_rng(7)

    def then(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        for _ in range(60):
            output = Output(state)
            entries = output.entries
            stream: list[tuple[int, int]] = []
            for _ in range(rng.integers(1, 4)):
                topology, count = int(rng.choice(PUT_OUT)), int(rng.integers(1, 8))
                stream += [(len(stream) + n, topology << 2 | (n == 0) << 1 | (n == count - 1)) for n in range(count)]
            for vertex, dw2 in stream:
                entries[2 * vertex] = (COMPLETE | USED, dw2, 2 * vertex + 2 if vertex + 1 < len(stream) else 0, 0)
            output.held.urb.bytes[: 128 * len(stream)] = rng.integers(0, 64, 128 * len(stream))
            library().read_output(ctypes.byref(output.struct), 0, 17)
            assert not output.struct.refused
            objects = output.struct.objects
            found, wanted = list((PrimitiveObject * objects.count).from_address(objects.objects)), model(stream)
            assert [list(item.vertex[: item.flags & 3]) for item in found] == [corners for corners, _, _ in wanted]
            assert [(bool(item.flags & INVERTED), bool(item.flags & CONTINUES)) for item in found] == [(a, b) for _, a, b in wanted]
            assert all(item.primitive == 17 for item in found)
            positions = np.frombuffer((ctypes.c_float * (4 * len(stream))).from_address(output.struct.vertices.positions), np.float32)
            entered = output.held.urb.bytes.view(np.uint32).reshape(-1, 32)[: len(stream), 4:8]
            assert (positions.reshape(-1, 4).view(np.uint32) == entered).all()

    with_draw("t0", then)

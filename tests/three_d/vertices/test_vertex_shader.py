"""Vertex shader threads: payloads against plain lists of registers, batches and masks; dispatches from state; shaders of captures."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.bits.generation import generations
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.threads.dispatch import DispatchContext, Scratch, ThreadDispatch, control_register
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import LoopPayload
from softgen.three_d.state.state import DrawState
from softgen.three_d.vertices.chunk import Chunk
from softgen.three_d.vertices.vertex_shader import BATCH, VertexShaderPlan
from tests.conftest import needs_shared
from tests.three_d.captured import draw_call, walk
from tests.three_d.made import call, controls, made_state
from tests.three_d.own_draw import OwnDraw, rectangle
from tests.three_d.walk import Pipeline, chunks_of

GENS = tuple(generations())
REGISTER_DWORDS = 8
AT, CONSTANTS, BLOCK = 0x10000, 0x20000, 0x30000
SRC, ONE_INT = 1, 4
CONSTANT_DWORDS = list(range(1000, 1016))
TOO_LONG = 7  # THREADS_TOO_LONG
END = "send(8) null<1>UW g127<0,1,0>UD 0x82000010 7 MsgDesc: mlen 1 rlen 0 { align1 1Q EOT };"
Words = npt.NDArray[np.uint32]


# -- a worker that keeps payloads ------------------------------------------------------------------------------------


class Api(ctypes.Structure):
    """struct threads_api."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("capacity", "payload", "pending", "run", "resume", "context", "begin", "counts")]


class Counts(ctypes.Structure):
    """struct threads_counts."""

    _fields_ = [("threads", ctypes.c_uint64), ("instructions", ctypes.c_uint64)]


class FakeWorker(ctypes.Structure):
    """A struct threads_worker that runs nothing: `batches` holds the payloads and masks of each batch. Registers keep old contents."""

    _fields_ = [("api", ctypes.POINTER(Api))]

    def __init__(self, capacity: int, registers: int, stop: int = -1) -> None:
        super().__init__()
        self.batches: list[tuple[Words, list[int] | None]] = []
        self.blocks = np.full((capacity, registers * REGISTER_DWORDS), 0xDEADBEEF, np.uint32)
        self.stop, self.left = stop, False
        u64, pointer = ctypes.c_uint64, ctypes.c_void_p
        kinds = {"capacity": (u64, pointer), "payload": (pointer, pointer, u64), "pending": (ctypes.c_int64, pointer),
                 "run": (ctypes.c_int64, pointer, pointer, u64, pointer), "resume": (ctypes.c_int64, pointer, pointer),
                 "context": (pointer, pointer), "begin": (None, pointer, u64), "counts": (u64, pointer)}  # fmt: skip
        bodies: dict[str, Any] = {"capacity": lambda w: capacity, "payload": self.payload, "pending": lambda w: self.left,
                                  "run": self.run, "resume": self.resume, "context": lambda w: None, "begin": lambda w, deadline: None,
                                  "counts": lambda w: 0}  # fmt: skip
        self.made = {name: ctypes.CFUNCTYPE(*kinds[name])(bodies[name]) for name in kinds}
        self.held = Api(*(ctypes.cast(self.made[name], pointer) for name in kinds))
        self.api = ctypes.pointer(self.held)

    def payload(self, worker: int, number: int) -> int:
        return int(self.blocks.ctypes.data) + number * self.blocks.strides[0]

    def run(self, worker: int, record: int, count: int, masks: int) -> int:
        found = list((ctypes.c_uint32 * count).from_address(masks)) if masks else None
        self.batches.append((self.blocks[:count].copy(), found))
        self.left = len(self.batches) == self.stop
        return 4 if self.left else 0  # THREADS_DEADLINE

    def resume(self, worker: int, record: int) -> int:
        self.left = False
        return 0

    def loop(self, context: DispatchContext, dispatch: ThreadDispatch) -> Any:
        """As a lease gives loops."""
        self.dispatch = dispatch
        worker = SimpleNamespace(address=ctypes.addressof(self))
        return SimpleNamespace(worker=worker, dispatch=dispatch, statistics=None, answer=lambda context, why, *more: None)

    @property
    def threads(self) -> list[tuple[list[int], int]]:
        """Each thread's dwords and mask."""
        return [(row.tolist(), 0xFF if masks is None else masks[n]) for rows, masks in self.batches for n, row in enumerate(rows)]


# -- state -----------------------------------------------------------------------------------------------------------


def shader_state(gen: float, simd8: bool, vertices: int, constants: bool = True, read_offset: int = 0, **more: Any) -> DrawState:
    """Two elements: a vec4 of dwords 100, 101 … from a buffer, and integer ones."""
    data = struct.pack(f"<{4 * vertices}I", *range(100, 100 + 4 * vertices))
    elements = [{"source_element_format": 2, **controls(SRC, SRC, SRC, SRC)}, controls(*[ONE_INT] * 4)]
    if gen < 7:
        elements[1]["destination_element_offset"] = 4
    bounds = {"max_index": vertices} if gen < 7 else {"end_address": AT + len(data) - 1} if gen < 8 else {"buffer_size": len(data)}
    modify = {} if gen < 7 else {"address_modify_enable": 1}
    unit = {"enable": 1, "kernel_start_pointer": 0x1240, "vertex_urb_entry_read_length": 1, "vertex_urb_entry_read_offset": read_offset,
            "dispatch_grf_start_register_for_urb_data": 3 if simd8 else 1, **more}  # fmt: skip
    if simd8:
        unit["simd8_dispatch_enable"] = 1
    commands: dict[str, Any] = {"3DSTATE_SF": {}, "3DSTATE_VS": unit, "3DSTATE_URB_VS": {"urb_entry_allocation_size": 1}}
    commands["3DSTATE_SAMPLER_STATE_POINTERS_VS"] = {"pointer_to_sampler_state": 0x5540}
    commands["3DSTATE_BINDING_TABLE_POINTERS_VS"] = {"pointer_to_binding_table": 0x660}
    if constants:
        lengths = [{"length": length} for length in (0, 0, 0, 2)]
        commands["3DSTATE_CONSTANT_VS"] = {"read_length": lengths, "constant_buffer": [{"pointer": p} for p in (0, 0, 0, CONSTANTS)]}
    blocks: dict[int, tuple[str, dict[str, Any]]] = {}
    if gen < 7:
        own = {"urb_entry_allocation_size": 1, "sampler_state_pointer": 0x5540, "constant_urb_entry_read_length": 2 * constants}
        blocks = {BLOCK: ("VS_STATE", {**unit, **own}), BLOCK + 64: ("SF_STATE", {})}
        commands = {"3DSTATE_PIPELINED_POINTERS": {"pointer_to_vs_state": BLOCK, "pointer_to_sf_state": BLOCK + 64},
                    "3DSTATE_BINDING_TABLE_POINTERS": {"pointer_to_vs_binding_table": 0x660}}  # fmt: skip
    held = {AT: data, CONSTANTS: struct.pack("<16I", *CONSTANT_DWORDS), BLOCK: b""}
    buffer = {"buffer_pitch": 16, "buffer_starting_address": AT, **bounds, **modify}
    state = made_state(gen, held, commands, {0: buffer}, elements, blocks=blocks)
    state.curbe = held[CONSTANTS]
    return state


def payloads(state: DrawState, vertices: int, capacity: int = BATCH, **worker: Any) -> tuple[list[tuple[list[int], int]], FakeWorker]:
    draw, pipeline = call(vertices, 1), Pipeline()
    chunk = pipeline.front.chunk(128)
    chunk.urb.bytes[:] = 0xFF
    fake = FakeWorker(capacity, 64, **worker)
    chunks_of(state, draw, lease=fake, pipeline=pipeline)
    entries = chunk.urb.bytes[: vertices * 128].reshape(vertices, 128)
    assert not entries[:, :16].any() and entries[:, 16:].all()  # the vertex header alone is cleared
    registers = fake.dispatch.payload.registers * REGISTER_DWORDS
    return [(dwords[:registers], mask) for dwords, mask in fake.threads], fake


def header(gen: float, handles: list[int], thread: int, in_r1: bool) -> list[int]:
    """r0, and r1 of a SIMD8 thread. Gen11 has no binding table pointer there (ICL 2890-2914)."""
    r0 = [*([0, 0] if in_r1 else handles), 0, 0x5540, 0x660 if gen < 11 else 0, thread & 0xF, 0, 0]
    return r0 + handles if in_r1 else r0


def attribute(vertex: int) -> list[int]:
    return [*range(100 + 4 * vertex, 104 + 4 * vertex), 1, 1, 1, 1]


# -- payloads --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VS-03", "G45-VS-04", "G45-VS-05", "G45-VS-08", "BDW-VS-02", "BDW-VS-04", "BDW-VS-05", shows="action")
@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("gen", GENS)
def test_simd4x2_payloads(gen: float, constants: bool) -> None:
    """r0 with two handles, constants as they are in memory, then a register for each element: a half for each vertex."""
    found, fake = payloads(shader_state(gen, False, 5, constants), 5)
    pushed = CONSTANT_DWORDS if constants else []
    for thread, (dwords, mask) in enumerate(found):
        first, second = 2 * thread, min(2 * thread + 1, 4)
        pairs = [attribute(first)[:4] + attribute(second)[:4], attribute(first)[4:] + attribute(second)[4:]]
        assert dwords == header(gen, [2 * first, 2 * second], thread, False) + pushed + pairs[0] + pairs[1]
        assert mask == (0xFF if first != second else 0x0F)
    assert len(found) == 3 and len(fake.batches) == 1


@pytest.mark.behaviour("BDW-VS-02", "BDW-VS-04", "BDW-VS-05", shows="action")
@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_simd8_payloads(gen: float, constants: bool) -> None:
    """r0, eight handles, a register that state leaves free, constants, then a register for each component: a dword for each vertex."""
    found, _ = payloads(shader_state(gen, True, 13, constants), 13)
    for thread, (dwords, mask) in enumerate(found):
        vertices = [min(8 * thread + lane, 12) for lane in range(8)]
        columns = np.array([attribute(vertex) for vertex in vertices]).T.reshape(-1).tolist()
        expected = header(gen, [2 * v for v in vertices], thread, True) + [0] * 8
        assert dwords == expected + (CONSTANT_DWORDS if constants else []) + columns
        assert mask == (0xFF, 0x1F)[thread]
    assert len(found) == 2


@pytest.mark.behaviour("G45-VS-06", "BDW-VS-02", shows="action")
@pytest.mark.parametrize("gen,field", [(4.5, "single_program_flow"), (7, "single_vertex_dispatch"), (8, "single_vertex_dispatch")])
def test_a_thread_for_each_vertex(gen: float, field: str) -> None:
    found, _ = payloads(shader_state(gen, False, 3, False, **{field: 1}), 3)
    assert [(dwords[:2], dwords[8:12], mask) for dwords, mask in found] == [([2 * v, 2 * v], attribute(v)[:4], 0x0F) for v in range(3)]


@pytest.mark.behaviour("BDW-VS-04", shows="action")
def test_a_read_offset_leaves_elements_out() -> None:
    """It counts pairs of elements; what is behind the last is zero."""
    found, _ = payloads(shader_state(9, True, 8, False, read_offset=1), 8)
    assert found[0][0][24:] == [0] * 64


def test_full_batches_need_no_masks() -> None:
    _, fake = payloads(shader_state(9, True, 40, False), 40, 2)
    assert [(len(rows), masks) for rows, masks in fake.batches] == [(2, None), (2, None), (1, None)]
    _, fake = payloads(shader_state(9, True, 39, False), 39, 2)
    assert [(len(rows), masks) for rows, masks in fake.batches] == [(2, None), (2, None), (1, [0x7F])]


def test_a_loop_that_was_left_resumes_its_batch() -> None:
    found, fake = payloads(shader_state(9, True, 40, False), 40, 2, stop=2)
    assert found == payloads(shader_state(9, True, 40, False), 40, 2)[0] and len(fake.batches) == 3


@pytest.mark.behaviour("BDW-VS-06", "BDW-VS-07", shows="action")
@pytest.mark.parametrize("gen,bits", [(4.5, 0xF), (7, 0x3FF), (9, 0x3FF)])
def test_threads_have_scratch_space_of_their_own(gen: float, bits: int) -> None:
    """2 KiB each, from 0x4000 on; the low bits number the threads that run at the same time."""
    state = shader_state(gen, False, 6, False, scratch_space_base_pointer=0x4000, per_thread_scratch_space=1, maximum_number_of_threads=1)
    found, _ = payloads(state, 6, 2)
    assert [dwords[5] for dwords, _ in found] == [0x4000, 0x4801, 0x4000] and [dwords[3] for dwords, _ in found] == [0x5541] * 3
    plan = VertexShaderPlan(state)
    assert plan.batch == 2 and plan.fields["scratch"] == Scratch(0x4000, 2048, 2) and plan.thread_mask == bits


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENS)
@pytest.mark.parametrize(("base", "code", "size"), [(0, 0, None), (0x4000, 0, 1024), (0, 3, 8192), (0x400, 11, 2 << 20)])
def test_scratch_space_of_vertex_shaders(gen: float, base: int, code: int, size: int | None) -> None:
    """2^n KiB for each thread, wherever it is; none without a pointer and a size, as drivers leave it."""
    given = {"scratch_space_base_pointer": base, "per_thread_scratch_space": code, "maximum_number_of_threads": 9}
    shader = VertexShaderPlan(shader_state(gen, False, 6, False, **given))
    assert shader.fields["scratch"] == (None if size is None else Scratch(base, size, 10))
    assert shader.batch == (BATCH if size is None else 10)


# -- payloads longer than registers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("gen", "simd8", "start", "length", "constants"), [
    (4.5, False, 2, 63, False), (7, False, 2, 63, False), (7.5, False, 6, 60, True), (8, True, 6, 15, True), (9, True, 8, 15, False),
    (11, True, 8, 15, False)])  # fmt: skip
def test_payloads_longer_than_a_threads_registers_are_refused(gen: float, simd8: bool, start: int, length: int, constants: bool) -> None:
    """128 fit."""
    def registers(start: int) -> int:
        fields = {"dispatch_grf_start_register_for_urb_data": start, "vertex_urb_entry_read_length": length}
        plan = VertexShaderPlan(shader_state(gen, simd8, 8, constants, **fields))
        return plan.dispatch(Chunk(128, 64, 64), 64 if constants else 0).registers

    assert registers(start) == 128
    with pytest.raises(DecodeError, match="VS: a payload of 129 registers; threads have 128"):
        registers(start + 1)


@pytest.mark.parametrize("gpu, length", [("kbl", 20), ("icl", 63)])
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_a_draw_whose_payloads_are_too_long_is_refused(gpu: str, length: int, engine: str) -> None:
    unit = {"enable": 1, "simd8_dispatch_enable": 1, "vertex_urb_entry_read_length": length, "dispatch_grf_start_register_for_urb_data": 3}
    with pytest.raises(DecodeError, match=f"VS: a payload of {3 + 8 * length} registers"):
        OwnDraw(gpu, rectangle(0, 0, 8, 8), vs=END, state={"3DSTATE_VS": unit}).run(engine)


# -- dispatches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", [4.5, 9])
def test_a_dispatch_is_kept_while_chunk_and_length_of_constants_are_the_same(gen: float) -> None:
    plan, chunks = VertexShaderPlan(shader_state(gen, False, 8)), [Chunk(128, 64, 64) for _ in range(2)]
    first = plan.dispatch(chunks[0], 64)
    assert plan.dispatch(chunks[0], 64) is first and first.payload == LoopPayload(1 + 2 + 2)
    assert plan.dispatch(chunks[0], 96).payload == LoopPayload(1 + 3 + 2)
    other = plan.dispatch(chunks[1], 96)
    assert dict(other.unit_states)["urb"] is chunks[1].urb and plan.dispatch(chunks[1], 96) is other


@pytest.mark.behaviour("BDW-VS-03", "BDW-VS-09", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_a_dispatch_has_what_state_says(gen: float) -> None:
    shader = VertexShaderPlan(shader_state(gen, False, 8, floating_point_mode=1, software_exception_enable=1))
    chunk = Chunk(128, 64, 64)
    found = shader.dispatch(chunk, 64)
    assert (found.kernel, found.binding_table, found.samplers, found.simd, found.threads) == (0x1240, 0x660, 0x5540, 8, BATCH)
    assert found.control == control_register(gen, alternate_float_mode=True, software_enable=1) and found.scratch is None
    assert found.payload == LoopPayload(1 + 2 + 2) and dict(found.unit_states) == {"urb": chunk.urb} and "urb" in found.units
    assert shader.entry_bytes == 128


@pytest.mark.behaviour("BDW-VS-14", "BDW-BT-08", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_counts_of_tables_change_nothing(gen: float) -> None:
    """They say what may be prefetched, also where they are a mask of cache lines."""
    chunk = Chunk(128, 64, 64)
    plain, hinted = (VertexShaderPlan(shader_state(gen, False, 8, **counts)).dispatch(chunk, 64)
                     for counts in ({}, {"binding_table_entry_count": 200, "sampler_count": 3}))  # fmt: skip
    assert plain == hinted


# -- captures --------------------------------------------------------------------------------------------------------


def shaded(name: str, engine: str) -> list[npt.NDArray[np.float32]]:
    """The vertex entries of a capture's draws that have a vertex shader."""
    found: list[npt.NDArray[np.float32]] = []

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        state, made = DrawState.of(cs), draw_call(cs, cmd)
        if VertexShaderPlan(state).enabled:
            found.extend(chunk.words for chunk in chunks_of(state, made, cs).chunks)

    assert walk(name, draw, EngineDispatcher(engine, 1)) == []
    return found


@needs_shared("traces")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("gpu", ["g45", "ivb", "hsw", "bdw", "kbl", "icl"])
def test_the_shader_of_a_captured_triangle(gpu: str, engine: str) -> None:
    """Position and texture coordinates, where the generation's shaders put them (GRAPHICS_THREADS 1.1)."""
    position, texture = (8, 12) if gpu == "g45" else (4, 8)
    found = shaded(f"{gpu}-gles-tri", engine)
    assert len(found) == 3
    for words in found:
        np.testing.assert_allclose(words[:, position : position + 4], [[-0.8, -0.8, 0, 1], [0.8, -0.8, 0, 1], [0, 0.8, 0, 1]], rtol=1e-6)
        np.testing.assert_array_equal(words[:, texture : texture + 2], [[0, 0], [1, 0], [0.5, 1]])

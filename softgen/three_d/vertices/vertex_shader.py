"""Vertex shader: from its state to payloads and dispatches of its threads; vertex_shader.c starts them.

Reads   3DSTATE_VS or VS_STATE, 3DSTATE_URB_VS, 3DSTATE_CONSTANT_VS, VS_THREAD_PAYLOAD VS_SIMD8_PAYLOAD
Writes  vertex URB entries of a chunk

    plan = VertexShaderPlan(state)      # VertexStage is the stage of a draw
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK, GRF_BYTES
from softgen.shared_functions.texture_tables import texture_tables
from softgen.shared_functions.urb.memory import ROW
from softgen.threads.dispatch import UNITS, ThreadDispatch
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.threads.payload import LoopPayload, WrittenMasks, check_length
from softgen.three_d.draw.draw_structures import StageStruct, function
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.rules.software_rules import check_registers
from softgen.three_d.shader_stage import CHANNELS, lane_dwords, payload_header, place, stage_fields, stage_tables, thread_mask
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.structures import StageLoop
from softgen.three_d.vertices.chunk import Chunk, aligned
from softgen.three_d.vertices.vertex_fetch import SLOT, Destination, fetch_key, optional
from softgen.three_d.vertices.vertex_fetch_h import FetchRun, VertexIds

BATCH = 64  # threads
HEADER_DWORDS = 16  # r0 and r1
SLOTS = 2  # vertex elements in a unit of read length or offset
FIRST_HANDLE = "urb_return_handle_0"
PLAIN_KEY = 4  # parameters of a draw that may be among its vertices' data in a kept record
PER_LOOP = 4 * BATCH  # threads that are worth another host thread
SINGLE = ("single_program_flow", "single_vertex_dispatch")  # a thread for each vertex (G45 2803-2806; BDW 12603)


class VertexShaderLoop(ctypes.Structure):
    """A loop over batches of threads (struct vertex_shader)."""

    _fields_ = [
        ("head", StageLoop),
        *((name, ctypes.c_uint64) for name in ("fetch", "vertex_ids", "instance_ids", "primitive_ids", "entries", "stride", "end", "next",
                                               "constants")),
        *((name, ctypes.c_uint32) for name in ("constant_offset", "constant_bytes", "attribute_offset", "lanes", "lane_stride",
                                               "vertices", "handle_offset", "header_bytes", "scratch_step", "thread_mask")),
        ("header", ctypes.c_uint32 * HEADER_DWORDS), ("masks", ctypes.c_uint32 * BATCH),
    ]  # fmt: skip


class VertexStagePlan(ctypes.Structure):
    """struct vertex_stage of vertex_shader.c."""

    _fields_ = [("count", ctypes.c_uint64), ("next", ctypes.c_uint64), ("per_thread", ctypes.c_uint64), ("counts", ctypes.c_uint64),
                ("edges", FetchRun)]  # fmt: skip


@dataclass(frozen=True)
class ThreadShape:
    """How vertices are laid out in a thread's registers: the page of its header, and strides in bytes."""

    page: str
    vertices: int
    vertex_stride: int
    element_stride: int
    component_stride: int


SIMD4X2 = ThreadShape("VS_THREAD_PAYLOAD", 2, GRF_BYTES // 2, GRF_BYTES, 4)  # two vertices, each in a half of every register
SIMD8 = ThreadShape("VS_SIMD8_PAYLOAD", 8, 4, SLOT * GRF_BYTES, GRF_BYTES)  # a register for each component


def thread_shape(unit: Record) -> ThreadShape:
    """SIMD4x2, unless the state has a field for SIMD8 and it is set (BDW 12864)."""
    return SIMD8 if optional(unit, "simd8_dispatch_enable") else SIMD4X2


def entry_bytes(state: DrawState, unit: Record) -> int:
    """The size of a vertex URB entry, in the unit's state block or in a command of its own."""
    command = unit if "urb_entry_allocation_size" in unit._fields else state.command("3DSTATE_URB_VS")
    return (int(command.urb_entry_allocation_size) + 1) * ROW


class VertexShaderPlan:
    """What the state of the vertex shader means, without vertex buffers and the values of constants."""

    def __init__(self, state: DrawState) -> None:
        self.unit = unit = unit_state(state, "VS")
        self.enabled, self.entry_bytes = bool(unit.enable), entry_bytes(state, unit)
        self.one_instance = bool(optional(unit, "simd8_single_instance_dispatch_enable"))
        self.shape = shape = thread_shape(unit)
        self.vertices = 1 if any(optional(unit, name) for name in SINGLE) else shape.vertices
        self.dwords = dwords = SLOTS * SLOT * unit.vertex_urb_entry_read_length
        self.destination = Destination(SLOTS * SLOT * unit.vertex_urb_entry_read_offset, dwords, shape.element_stride,
                                       shape.component_stride)  # fmt: skip
        self.constant_offset = unit.dispatch_grf_start_register_for_urb_data * GRF_BYTES
        if self.enabled:
            self._plan_threads(state)
        self._dispatched: tuple[Chunk, int, ThreadDispatch] | None = None

    def _plan_threads(self, state: DrawState) -> None:
        unit, self.tables = self.unit, texture_tables(state.latched)
        self.fields = {**stage_fields(state.gen, unit, "VS"), **stage_tables(state, "VS")}
        scratch = self.fields["scratch"]
        self.batch = max(min(BATCH, scratch.threads), 1) if scratch is not None else BATCH
        self.header = payload_header(state.gen, self.shape.page, self.fields)
        self.header_array = (ctypes.c_uint32 * HEADER_DWORDS)(*self.header)
        self.thread_mask, self.handle_offset = thread_mask(state.gen, self.shape.page), place(state.gen, self.shape.page, FIRST_HANDLE)
        if state.generation.unit_state:
            registers = unit.dispatch_grf_start_register_for_urb_data + unit.constant_urb_entry_read_length
            check_registers(state, "VS", int(unit.grf_register_count), int(registers + self.dwords // SLOT))

    def registers(self, constant_bytes: int) -> int:
        """Registers of a payload."""
        return int(self.constant_offset + constant_bytes + self.dwords // SLOT * self.shape.element_stride) // GRF_BYTES

    def undefined(self, constant_bytes: int) -> list[UndefinedDwords]:
        """What threads have of vertices that they lack."""
        lanes, first = self.shape.vertices, self.constant_offset + constant_bytes
        found = lane_dwords(self.handle_offset, lanes)
        for register in range(self.dwords // SLOT * self.shape.element_stride // GRF_BYTES):
            found += lane_dwords(first + register * GRF_BYTES, lanes, GRF_BYTES // lanes)
        return found

    def dispatch(self, chunk: Chunk, constant_bytes: int) -> ThreadDispatch:
        """The record of the threads; the same while chunk and length of constants are."""
        held = self._dispatched
        if held is None or held[0] is not chunk or held[1] != constant_bytes:
            registers = self.registers(constant_bytes)
            check_length(registers, "VS")
            made = ThreadDispatch(simd=CHANNELS, threads=self.batch, groups=0, payload=LoopPayload(registers), masks=WrittenMasks(),
                                  units=(*UNITS, "urb"), unit_states=(("urb", chunk.urb), *self.tables),
                                  **self.fields)  # fmt: skip
            held = self._dispatched = chunk, constant_bytes, made
        return held[2]


class VertexStage(ThreadedStage):
    """The vertices of a chunk: shaded, or fetched into their entries."""

    name, run, function = "VS", "stage_vertices", "run_vertex_shader"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        keeper, fetch, chunk = record.keeper, record.fetch, record.chunk
        structure = self._fetch = keeper.own_fetch(fetch) if keeper is not None else fetch.structure
        record.struct.fetch = ctypes.addressof(structure)
        if keeper is not None and (key := fetch_key(record.state, record.call)):
            self._fix_start(record, key)
        made = record.pipeline.front.memory.state
        ids = VertexIds(made.vertex_ids, made.instance_ids, made.primitive_ids)
        run = self._run = FetchRun(record.struct.fetch, ids, chunk.vertices.entries, chunk.vertices.stride)
        plan = self._plan = VertexStagePlan(ctypes.addressof(run) + FetchRun.count.offset)
        into.plan = ctypes.addressof(plan)
        if structure.has_edge_flag:
            self._flags = aligned(chunk.vertices.capacity)
            plan.edges = FetchRun(run.fetch, run.ids, edge_flags=self._flags.ctypes.data)
        if record.front.shader.enabled:
            self._start_threads(record, into)
        else:
            into.function, into.loop = function("fetch_vertices"), ctypes.addressof(run)
        return True

    @staticmethod
    def _fix_start(record: BuiltRecord, key: tuple[int, ...]) -> None:
        """Among the vertices' data are parameters of the command."""
        if len(key) > PLAIN_KEY:
            record.not_kept("extended parameters")
        struct = record.struct
        _, base_vertex, struct.start_vertex, struct.start_instance = key
        struct.fixed_start, struct.base_vertex = 1, base_vertex & DWORD_MASK

    def _start_threads(self, record: BuiltRecord, into: StageStruct) -> None:
        shader, chunk, run = record.front.shader, record.chunk, self._run
        address, size = record.constants("VS")
        self._next = ctypes.c_uint64()  # the vertex at which the next batch begins
        scratch = shader.fields["scratch"]
        loop = VertexShaderLoop(
            StageLoop(), run.fetch, run.ids.vertex, run.ids.instance, run.ids.primitive, run.into, run.stride, 0,
            ctypes.addressof(self._next), address, shader.constant_offset, size, shader.constant_offset + size, shader.shape.vertices,
            shader.shape.vertex_stride, shader.vertices, shader.handle_offset, 4 * len(shader.header),
            scratch.size if scratch is not None else 0, shader.thread_mask, shader.header_array)  # fmt: skip
        at, plan = ctypes.addressof(loop), self._plan
        plan.count, plan.next = at + VertexShaderLoop.end.offset, ctypes.addressof(self._next)
        plan.per_thread, plan.counts = shader.vertices, bool(shader.unit.statistics_enable)
        self.start(record, into, shader.dispatch(chunk, size), loop, at + VertexShaderLoop.header.offset,
                   undefined=lambda: shader.undefined(size))  # fmt: skip

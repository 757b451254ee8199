"""Vertex shader: from its state to payloads and dispatches of its threads; vertex_shader.c starts them.

Reads   3DSTATE_VS or VS_STATE, 3DSTATE_URB_VS, 3DSTATE_CONSTANT_VS, VS_THREAD_PAYLOAD VS_SIMD8_PAYLOAD
Writes  vertex URB entries of a chunk

    shader = VertexShader(state, call)
    shader.run(cs, chunk, assembly)
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.eu.native import address
from softgen.shared_functions.texture_tables import texture_tables
from softgen.shared_functions.urb.memory import ROW
from softgen.threads.dispatch import KIB, UNITS, DispatchContext, NativeLoop, Scratch, ThreadDispatch, control_register, size_code
from softgen.threads.payload import LoopPayload, WrittenMasks, check_length
from softgen.three_d.rules.software_rules import check_registers
from softgen.three_d.state.constants import push_constants
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.unit_state import binding_table, dispatch_context, samplers, unit_state
from softgen.three_d.structures import library
from softgen.three_d.vertices.assembly import VertexIds
from softgen.three_d.vertices.chunk import Chunk
from softgen.three_d.vertices.vertex_fetch import SLOT, Destination, FetchPlan, optional, vertex_fetch

BATCH = 64  # threads
HEADER_DWORDS = 16  # r0 and r1
SLOTS = 2  # vertex elements in a unit of read length or offset
CHANNELS = 8
PER_LOOP = 4 * BATCH  # threads that are worth another host thread
SINGLE = ("single_program_flow", "single_vertex_dispatch")  # a thread for each vertex (G45 2803-2806; BDW 12603)
# State fields and the fields of cr0 that they set.
CONTROL = {"single_program_flow": "single_program_flow", "floating_point_mode": "alternate_float_mode",
           "vector_mask_enable": "vector_mask_enable", "illegal_opcode_exception_enable": "illegal_opcode_enable",
           "software_exception_enable": "software_enable"}  # fmt: skip


class VertexShaderLoop(ctypes.Structure):
    """A loop over batches of threads (struct vertex_shader)."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("worker", "fetch", "vertex_ids", "instance_ids", "primitive_ids", "entries", "stride", "end",
                                               "next", "constants")),
        *((name, ctypes.c_uint32) for name in ("constant_offset", "constant_bytes", "attribute_offset", "lanes", "lane_stride",
                                               "vertices", "handle_offset", "header_bytes", "first_slot", "scratch_step", "thread_mask")),
        ("header", ctypes.c_uint32 * HEADER_DWORDS), ("batches", ctypes.c_uint64), ("masks", ctypes.c_uint32 * BATCH),
    ]  # fmt: skip

    def bind(self, worker: int) -> int:
        self.worker = worker
        return ctypes.addressof(self)


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


def stage_fields(gen: float, unit: Record) -> dict[str, Any]:
    """The fields of a ThreadDispatch that a stage's state determines: kernel, cr0 and scratch space."""
    return {"kernel": unit.kernel_start_pointer, "control": _control(gen, unit), "scratch": _scratch(unit)}


@lru_cache(256)
def _control(gen: float, unit: Record) -> tuple[int, ...]:
    return control_register(gen, **{name: optional(unit, field) for field, name in CONTROL.items() if optional(unit, field)})


def _scratch(unit: Record) -> Scratch | None:
    """2^n KiB for each thread; none where the state has neither a pointer nor a size."""
    if not unit.scratch_space_base_pointer and not unit.per_thread_scratch_space:
        return None
    return Scratch(unit.scratch_space_base_pointer, KIB << unit.per_thread_scratch_space, unit.maximum_number_of_threads + 1)


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
        self.fields = {**stage_fields(state.gen, unit), "binding_table": binding_table(state, "VS"), "samplers": samplers(state, "VS")}
        scratch = self.fields["scratch"]
        self.batch = max(min(BATCH, scratch.threads), 1) if scratch is not None else BATCH
        self.header = _header(state.gen, self.shape.page, self.fields["binding_table"], self.fields["samplers"], scratch)
        self.header_array = (ctypes.c_uint32 * HEADER_DWORDS)(*self.header)
        self.thread_mask, self.handle_offset = _places(state.gen, self.shape.page)
        if state.generation.unit_state:
            registers = unit.dispatch_grf_start_register_for_urb_data + unit.constant_urb_entry_read_length
            check_registers(state, "VS", int(unit.grf_register_count), int(registers + self.dwords // SLOT))

    def registers(self, constant_bytes: int) -> int:
        """Registers of a payload."""
        return int(self.constant_offset + constant_bytes + self.dwords // SLOT * self.shape.element_stride) // GRF_BYTES

    def dispatch(self, chunk: Chunk, constant_bytes: int) -> ThreadDispatch:
        """The record of the threads; the same while chunk and length of constants are."""
        held = self._dispatched
        if held is None or held[0] is not chunk or held[1] != constant_bytes:
            made = ThreadDispatch(simd=CHANNELS, threads=self.batch, groups=0, payload=LoopPayload(self.registers(constant_bytes)),
                                  masks=WrittenMasks(), units=(*UNITS, "urb"), unit_states=(("urb", chunk.urb), *self.tables),
                                  **self.fields)  # fmt: skip
            held = self._dispatched = chunk, constant_bytes, made
        return held[2]


class VertexShader:
    """The vertex shader of a draw. `plan` and `fetch` are those of an earlier draw with the same state."""

    def __init__(self, state: DrawState, call: DrawCall, plan: VertexShaderPlan | None = None, fetch: FetchPlan | None = None) -> None:
        self.plan = plan = plan or VertexShaderPlan(state)
        self.unit, self.enabled, self.entry_bytes = plan.unit, plan.enabled, plan.entry_bytes
        self.fetch: FetchPlan | None = None
        if self.enabled:
            self.constants = push_constants(state, "VS")
            check_length(plan.registers(len(self.constants)), "VS")
            self.fetch = fetch or vertex_fetch(state, call, plan.destination)
            self.attribute_offset = plan.constant_offset + len(self.constants)
            self.fields, self.vertices, self.batch = plan.fields, plan.vertices, plan.batch
            self.shape, self.header = plan.shape, plan.header

    @property
    def counts(self) -> bool:
        """Whether VS_INVOCATION_COUNT advances."""
        return bool(self.unit.statistics_enable)

    @property
    def registers(self) -> int:
        """Registers of a payload."""
        return self.plan.registers(len(self.constants))

    def dispatch(self, chunk: Chunk) -> ThreadDispatch:
        return self.plan.dispatch(chunk, len(self.constants))

    def run(self, cs: CommandStreamer, chunk: Chunk, assembly: VertexIds) -> None:
        """Shades the vertices of a chunk."""
        context = dispatch_context(cs)
        for finished in cs.dispatcher.run_loops(context, self.dispatch(chunk), self.loops(context, chunk, assembly, cs.dispatcher.threads),
                                                cs.timed_out):  # fmt: skip
            cs.counters.threads += finished.threads
            cs.counters.instructions += finished.instructions

    def loops(self, context: DispatchContext, chunk: Chunk, assembly: VertexIds, workers: int) -> list[NativeLoop]:
        """One loop, or several that share the chunk's vertices where that is worth it and there is scratch space."""
        scratch, threads = self.fields["scratch"], -(-chunk.vertices.count // self.vertices)
        most = scratch.threads // self.batch if scratch is not None else workers
        self.next = ctypes.c_uint64()  # the vertex at which the next batch begins
        count = max(min(workers, most, threads // PER_LOOP), 1)
        made = [self.loop(chunk, assembly, number * self.batch) for number in range(count)]
        return [NativeLoop(_loop_function(), loop.bind) for loop in made]

    def loop(self, chunk: Chunk, assembly: VertexIds, first_slot: int) -> VertexShaderLoop:
        assert self.fetch is not None
        vertices, scratch, plan = chunk.vertices, self.fields["scratch"], self.plan
        return VertexShaderLoop(
            0, self.fetch.address, assembly.vertex_ids, assembly.instance_ids, assembly.primitive_ids, vertices.entries,
            vertices.stride, vertices.count, ctypes.addressof(self.next), _bytes_address(self.constants), plan.constant_offset,
            len(self.constants), self.attribute_offset, self.shape.vertices, self.shape.vertex_stride, self.vertices, plan.handle_offset,
            4 * len(self.header), first_slot, scratch.size if scratch is not None else 0, plan.thread_mask, plan.header_array)  # fmt: skip


@cache
def _loop_function() -> int:
    return address(library().run_vertex_shader)


@cache
def _places(gen: float, page: str) -> tuple[int, int]:
    """The bits of a thread's number in its header, and the byte at which handles begin."""
    layout = catalogue.layout(page, gen)
    return (1 << layout.field("fftid").width) - 1, layout.field("urb_return_handle_0").low // 8


def _bytes_address(data: bytes) -> int:
    """Where a bytes object has its bytes; it must be kept."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


@lru_cache(256)
def _header(gen: float, page: str, binding_table: int, samplers: int, scratch: Scratch | None) -> tuple[int, ...]:
    """r0, and what comes before the data: what all threads have there. Handles and scratch space differ."""
    low = 0xFFFFFFE0  # bits of a pointer; a table elsewhere is known to the shared functions alone
    return tuple(catalogue.layout(page, gen).pack(
        sampler_state_pointer=samplers & low, binding_table_pointer=binding_table & low, per_thread_scratch_space=size_code(scratch),
        scratch_space_offset=(scratch.base if scratch is not None else 0) & 0xFFFFFFFF))  # fmt: skip

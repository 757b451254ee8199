"""Stage threads: what the Gen4.5 stages GS, CLIP and SF have in common, whose work EU threads do (stage_threads.c).

Reads   GS_STATE CLIP_STATE SF_STATE GS_THREAD_PAYLOAD CLIP_THREAD_PAYLOAD SF_THREAD_PAYLOAD
Writes  StageThreads: payloads of a stage's threads, but for what each has of its own
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.eu import native
from softgen.shared_functions.urb.memory import ROW, UrbEntry, UrbMemory, UrbPool
from softgen.threads.dispatch import ThreadDispatch, size_code
from softgen.threads.payload import LoopPayload, check_length
from softgen.three_d.rules.software_rules import check_registers
from softgen.three_d.shader_stage import stage_fields
from softgen.three_d.state.constants import curbe_region
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table, unit_state
from softgen.three_d.structures import ObjectArray, StageLoop, VertexArray
from softgen.three_d.three_d_h import OutputTopology

BATCH, HEADER_DWORDS, CHANNELS = 64, 24, 8
TOPOLOGIES = 32


class StageThreads(ctypes.Structure):
    """struct stage_threads of stage_threads.h."""

    _fields_ = [
        ("head", StageLoop), ("constants", ctypes.c_uint64), ("entries", ctypes.c_uint64), ("stride", ctypes.c_uint64),
        ("header", ctypes.c_uint32 * HEADER_DWORDS),
        *((name, ctypes.c_uint32) for name in ("header_bytes", "constant_offset", "constant_bytes", "vertex_offset", "read_offset",
                                               "read_bytes", "scratch_step", "thread_mask", "reserved")),
    ]  # fmt: skip


class ThreadOutputStruct(ctypes.Structure):
    """struct thread_output of stage_threads.h."""

    _fields_ = [("vertices", VertexArray), ("objects", ObjectArray), ("entries", ctypes.c_uint64), ("pool", ctypes.c_uint64),
                ("topology", OutputTopology * TOPOLOGIES),
                *((name, ctypes.c_uint32) for name in ("refused", "invocations", "put_out", "incomplete", "rewritten",
                                                       "reserved"))]  # fmt: skip


class OutputThreads(ctypes.Structure):
    """Objects whose threads put out vertices (struct output_threads)."""

    _fields_ = [*((name, ctypes.c_uint64) for name in ("objects", "output", "from", "next", "end", "batch", "threads")),
                ("handle", ctypes.c_uint32 * BATCH)]  # fmt: skip


def layout() -> list[int]:
    """The numbers that stage_threads_layout gives, as Python has them."""
    kinds = StageThreads, UrbEntry, UrbPool, OutputTopology, ThreadOutputStruct, OutputThreads
    return [*(ctypes.sizeof(kind) for kind in kinds), ThreadOutputStruct.topology.offset]


@cache
def library() -> ctypes.CDLL:
    """The C functions of stages that threads do, their structures checked."""
    return native.load("softgen.three_d._pipeline", "stage_threads_layout", layout())


class Loop(ctypes.Structure):
    """A C loop over a stage's threads; its structure begins with a StageThreads."""

    stage: StageThreads


class ThreadStage:
    """What state means to a stage whose threads have up to `vertices` vertices: GS, CLIP or SF."""

    def __init__(self, state: DrawState, name: str, vertices: int) -> None:
        library()
        self.state, self.name, self.unit = state, name, unit_state(state, name)
        self.entry_bytes = (int(self.unit.urb_entry_allocation_size) + 1) * ROW
        self.constant_bytes = curbe_region(state, name)[1]
        start = self.unit.dispatch_grf_start_register_for_urb_data * GRF_BYTES
        self.constant_offset, self.vertex_offset = start, start + self.constant_bytes
        self.read_bytes = int(self.unit.vertex_urb_entry_read_length) * GRF_BYTES
        samplers = int(getattr(self.unit, "sampler_state_pointer", 0))
        self.fields = {**stage_fields(state.gen, self.unit, name), "binding_table": binding_table(state, name), "samplers": samplers}
        self.header, self.thread_mask = self._header(samplers)
        used = max(self.vertex_offset + vertices * self.read_bytes, 4 * len(self.header))
        self.registers = -(-used // GRF_BYTES)
        check_length(self.registers, name)
        check_registers(state, name, int(self.unit.grf_register_count), self.registers)
        scratch = self.fields["scratch"]
        self.batch = max(min(BATCH, scratch.threads), 1) if scratch is not None else BATCH
        self._dispatched: tuple[UrbMemory, ThreadDispatch] | None = None

    def _header(self, samplers: int) -> tuple[list[int], int]:
        """The dwords that all threads have in common, and the bits of a thread's number in r0.5."""
        page, scratch = catalogue.layout(f"{self.name}_THREAD_PAYLOAD", self.state.gen), self.fields["scratch"]
        values = {"binding_table_pointer": self.fields["binding_table"] & ~31, "scratch_space_offset": scratch.base if scratch else 0,
                  "per_thread_scratch_space": size_code(scratch)}  # fmt: skip
        if any(field.name == "sampler_state_pointer" for field in page.fields):
            values["sampler_state_pointer"] = samplers & ~31
        return list(page.pack(**values)), (1 << page.field("fftid").width) - 1

    def fill(self, loop: Loop, constants: int) -> None:
        """Fill in what a loop's threads have in common; `constants` are at a host address."""
        stage, scratch = loop.stage, self.fields["scratch"]
        stage.constants = constants
        stage.header[: len(self.header)] = self.header
        stage.header_bytes, stage.constant_offset, stage.constant_bytes = 4 * len(self.header), self.constant_offset, self.constant_bytes
        stage.vertex_offset, stage.read_bytes = self.vertex_offset, self.read_bytes
        stage.read_offset = int(self.unit.vertex_urb_entry_read_offset) * GRF_BYTES
        stage.scratch_step, stage.thread_mask = scratch.size if scratch is not None else 0, self.thread_mask

    def dispatch(self, urb: UrbMemory) -> ThreadDispatch:
        """The record of threads that write to a URB; the same while that is."""
        held = self._dispatched
        if held is None or held[0] is not urb:
            made = ThreadDispatch(simd=CHANNELS, threads=self.batch, groups=0, payload=LoopPayload(self.registers),
                                  unit_states=(("urb", urb),), **self.fields)  # fmt: skip
            held = self._dispatched = urb, made
        return held[1]

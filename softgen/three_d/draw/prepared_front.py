"""The front of a prepared draw: assembly, vertex fetch and vertex shader; loops of threads and constants of all its stages."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer, MarkedLatched
from softgen.eu.interpreter import KernelProgram
from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.statistics import KernelStatistics
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.three_d.draw.draw_structures import (
    ConstantRange,
    CurbePart,
    PreparedStruct,
    VertexSource,
    function,
)
from softgen.three_d.draw.shared_stages import SharedStage, set_scratch
from softgen.three_d.state.constants import constant_ranges, curbe_region, gather_pool, offset_disabled
from softgen.three_d.state.latched_state import LatchedBytes, NotPrepared
from softgen.three_d.state.plan_cache import Notes
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.state_pointers import StatePointers
from softgen.three_d.vertices.assembly import Assembly, AssemblyState
from softgen.three_d.vertices.front import FrontPlan, entry_bytes
from softgen.three_d.vertices.vertex_fetch import FetchElement, FetchPlan, FetchRun, VertexFetch, elements_of, fetch_key
from softgen.three_d.vertices.vertex_shader import VertexShader, VertexShaderLoop

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_plans import PipelinePlans

BOUNDS = ("buffer_size", "end_address", "max_index")  # fields of vertex buffers, of which each generation has one
NO_STATISTICS = KernelStatistics(KernelProgram(0, b""), "")  # of stages without threads


class TablePlace(NamedTuple):
    """The pointer of a binding table: the offset of its dword, its bits and their value, and the bytes that 1 of it is worth."""

    offset: int
    mask: int
    pointer: int
    scale: int


class PreparedFront:
    """What a prepared draw keeps, and its stages up to the vertex shader."""

    def __init__(self, pipeline: PipelinePlans, cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        latched = cs.latched
        if not isinstance(latched, MarkedLatched):
            raise NotPrepared("commands are not in slots")
        self.state, self._notes, self._kept = state, Notes(), dict[str, Any]()  # _kept: memory that C code points to
        self.latches, self.slots = LatchedBytes(latched, state.gen, state.space.bits), latched.slots
        self.registers: dict[str, int] = {}  # values that it depends on
        self.loops: dict[str, KeptLoop] = {}  # by stage
        self.own: set[str] = set()  # stages whose loops no other draw has
        self._bound: dict[str, BoundUnits] = {}
        self._headers: dict[str, int] = {}  # addresses of r0 in plans of payloads
        self._places: dict[str, TablePlace] = {}  # of binding tables
        self._dispatches: dict[str, ThreadDispatch] = {}
        self._tables: dict[str, int] = {}  # offsets of binding tables from the surface state base
        self._sources, self._constants, self._parts = list[VertexSource](), list[ConstantRange](), list[CurbePart]()
        self.pointers = StatePointers(self.latches, state) if state.generation.unit_state else None
        self._stage_loops = pipeline.stage_loops
        self.struct = PreparedStruct(topology=call.topology, indexed=call.indexed)

    def _prepare_front(self, pipeline: PipelinePlans, cs: CommandStreamer, context: DispatchContext, seen: DrawState,
                       call: DrawCall) -> None:  # fmt: skip
        front, struct = pipeline.front, self.struct
        plan = front.plan(seen)
        fetch = front.fetch(seen, call, plan)
        assembly = Assembly(seen, call, plan.shader.one_instance, front.memory, plan.uncached)
        if fetch.structure.has_edge_flag or getattr(seen.get("3DSTATE_VF"), "sequential_draw_cut_index_enable", 0):
            raise NotPrepared("edge flags, or cuts without indices")
        self._kept["assembly"] = (ctypes.c_uint8 * AssemblyState.vertex_ids.offset).from_buffer_copy(assembly.state)
        struct.assembly_plan = ctypes.addressof(self._kept["assembly"])
        self.chunk = chunk = front.chunk(entry_bytes(seen, call, plan.shader))
        struct.vertices, struct.objects = ctypes.addressof(chunk.vertices), ctypes.addressof(chunk.objects)
        struct.count_fetched = plan.counts
        if key := fetch_key(seen, call):
            if len(key) > 4:
                raise NotPrepared("parameters of the command among the vertices' data")
            _, base_vertex, struct.start_vertex, struct.start_instance = key
            struct.fixed_start, struct.base_vertex = 1, base_vertex & DWORD_MASK
        fetched = self._own_fetch(seen, fetch)
        struct.fetch = ctypes.addressof(fetched)
        if call.indexed:
            self._index_buffer()
        if plan.shader.enabled:
            self._prepare_shader(cs, context, call, plan, FetchPlan(seen, fetched), assembly)
            return
        run = self._kept["run"] = FetchRun(struct.fetch, assembly.vertex_ids, assembly.instance_ids, assembly.primitive_ids,
                                           chunk.vertices.entries, chunk.vertices.stride)  # fmt: skip
        struct.vertex_function, struct.vertex_argument = function("fetch_vertices"), ctypes.addressof(run)
        struct.vertex_count = struct.vertex_argument + FetchRun.count.offset

    def _own_fetch(self, seen: DrawState, fetch: FetchPlan) -> VertexFetch:
        """A copy of the plan, which gets addresses and sizes of vertex buffers from their commands."""
        held, latches = fetch.structure, self.latches
        made = VertexFetch.from_buffer_copy(held)
        self._kept["fetch"] = made, fetch  # the stores are those of the original
        if not held.count:
            return made
        elements = (FetchElement * held.count)(*(FetchElement * held.count).from_address(held.elements))
        self._kept["elements"], made.elements = elements, ctypes.addressof(elements)
        buffers, of_elements = seen.latched.by_index("3DSTATE_VERTEX_BUFFERS"), elements_of(seen)
        fields = {field.name: field for field in latches.layout("VERTEX_BUFFER_STATE").fields}
        place = latches.place("3DSTATE_VERTEX_BUFFERS")
        read = {of_elements[number].vertex_buffer_index for number in fetch.numbers}
        for buffer in buffers.keys() - read:  # of draws before, such as a clear
            latches.ignore(place.offset + buffer * place.item_size, place.item_size)
        for element, number in zip(elements, fetch.numbers, strict=True):
            buffer = of_elements[number].vertex_buffer_index
            start = place.offset + buffer * place.item_size
            if not getattr(buffers[buffer], "null_vertex_buffer", 0):
                pointer = latches.pointer(fields["buffer_starting_address"], start)
                bounds = (latches.number(fields[name], start) if name in fields else 0 for name in BOUNDS)
                self._sources.append(VertexSource(pointer, *bounds, ctypes.addressof(element)))
        return made

    def _index_buffer(self) -> None:
        name, struct, latches = "3DSTATE_INDEX_BUFFER", self.struct, self.latches
        fields, start = {field.name: field for field in latches.layout(name).fields}, latches.place(name).offset
        struct.index_source, struct.index_end = 1, "buffer_ending_address" in fields
        struct.index_pointer = latches.pointer(fields["buffer_starting_address"], start)
        struct.index_size_offset = latches.number(fields["buffer_ending_address" if struct.index_end else "buffer_size"], start)

    def _prepare_shader(self, cs: CommandStreamer, context: DispatchContext, call: DrawCall, plan: FrontPlan, fetch: FetchPlan,
                        assembly: Assembly) -> None:  # fmt: skip
        """Vertex shader threads."""
        struct, chunk, shader = self.struct, self.chunk, VertexShader(self.state, call, plan.shader, fetch)
        data = self._push_constants("VS")
        shader.next = self._kept["next"] = ctypes.c_uint64()
        loop = self._kept["vertices"] = shader.loop(chunk, assembly, 0)
        loop.constants, struct.vertex_argument = ctypes.addressof(data), ctypes.addressof(loop)
        kept = self._start("VS", cs, context, shader.dispatch(chunk))
        loop.worker = struct.vertex_worker = kept.worker.address
        struct.vertex_function = function("run_vertex_shader")
        struct.vertex_count = struct.vertex_argument + VertexShaderLoop.end.offset
        struct.vertex_next, struct.vertices_per_thread = ctypes.addressof(shader.next), shader.vertices
        struct.count_shaded = shader.counts
        self._headers["VS"] = struct.vertex_argument + VertexShaderLoop.header.offset

    def _start(self, stage: str, cs: CommandStreamer, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        loop = self._stage_loops.get(cs, context, dispatch) if self.pointers is not None and stage != "PS" else None
        if loop is None:
            loop = cs.dispatcher.prepare(context, dispatch)
            self.own.add(stage)
        self.loops[stage], self._bound[stage], self._dispatches[stage] = loop, loop.shared.bound, dispatch
        set_scratch(self.struct, stage, loop)
        return loop

    def share(self, stage: str, loops: int) -> None:
        """Prepares workers for so many loops of a stage."""
        self._kept[f"shared {stage}"] = SharedStage(self.struct, stage, self.loops[stage], loops)

    def unshare(self, stage: str) -> None:
        """Frees the memory of workers but for the first, of a loop of its own."""
        self._kept.pop(f"shared {stage}").remove()

    def _statistics(self, stage: str) -> KernelStatistics:
        """What the kernel of a stage has done, if it has threads."""
        found = self.loops[stage].statistics if stage in self.loops else None
        return found or NO_STATISTICS

    def _push_constants(self, stage: str) -> Any:
        """The memory that gets the constants of a stage before each draw."""
        if self.pointers is not None:
            first, size = curbe_region(self.state, stage)
            held = self._kept[f"constants of {stage}"] = (ctypes.c_uint8 * max(size, 1))()
            if size:
                self._parts.append(CurbePart(first, size, ctypes.addressof(held)))
            return held
        name, state = f"3DSTATE_CONSTANT_{stage}", self.state
        command: Record | None = state.get(name)
        self._notes.commands[name] = command
        ranges = () if command is None else constant_ranges(command)
        into = self._kept[name] = (ctypes.c_uint8 * max(sum(size for *_, size in ranges), 1))()
        group, at = next(group for group in self.latches.layout(name).groups if group.name == "constant_buffer"), ctypes.addressof(into)
        for number, _, size in ranges:
            if number == 0:
                self._first_is_absolute()
            elif number == 1 and gather_pool(self.state) is not None:
                raise NotPrepared("gathered constants")
            start = self.latches.place(name).offset + (group.start + number * group.size) // 32
            self._constants.append(ConstantRange(self.latches.pointer(group.fields[0], start), size, at))
            at += size
        return into

    def _first_is_absolute(self) -> None:
        """The first buffer's address is relative to the dynamic state base where a register says so: then memory decides (constants.py)."""
        def register(name: str) -> int:
            value = self.registers[name] = self.state.register(name)
            return value

        state = self.state
        if not offset_disabled(DrawState(state.generation, state.space, state.latched, state.bases, register)):
            raise NotPrepared("constants relative to the dynamic state base")

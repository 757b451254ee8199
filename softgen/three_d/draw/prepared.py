"""Prepared draws: plans of all stages for one state, which draw.c uses again for as long as that state is the same.

    prepared = PreparedDraw(pipeline, cs, state, call)   # raises NotPrepared where a draw has to go through the stages' Python
    prepared.struct                                      # for draw.c, which compares and runs it

What plans were made from is noted while they are made (plan_cache.py), and compared in C before each draw (draw_state.c): commands, bytes
in memory, kernels, binding table entries. Not compared but copied into the plans before each draw: constants, addresses and sizes of vertex
and index buffers, and where binding tables are. Where units read blocks of state, what pointers lead to is compared (state_pointers.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer
from softgen.eu.thread.block import Context
from softgen.shared_functions.bindings import USED
from softgen.shared_functions.unit import DispatchBindings, HostRange
from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import DispatchContext
from softgen.threads.programs import MemoryRange
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.three_d.clip_setup.geometry import GeometryPiece
from softgen.three_d.draw.draw_structures import (
    ARRAYS,
    WORKS,
    Base,
    HostPlace,
    PointerCopy,
    StageTable,
    TableEntry,
)
from softgen.three_d.draw.prepared_front import PreparedFront, TablePlace
from softgen.three_d.draw.prepared_threads import PreparedClip, PreparedSetup
from softgen.three_d.pixels.fill import FillPlan
from softgen.three_d.pixels.pixel_payload import PayloadPlan
from softgen.three_d.pixels.pixel_shader import PixelPlan
from softgen.three_d.pixels.pixel_state import HEADER_DWORDS
from softgen.three_d.stage_threads import geometry_threads
from softgen.three_d.stage_threads.geometry_threads import counts_objects
from softgen.three_d.stage_threads.thread_output import refuse_output
from softgen.three_d.state.constants import push_constants
from softgen.three_d.state.latched_state import NotPrepared
from softgen.three_d.state.plan_cache import noted
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.state_blocks import StateBlocks
from softgen.three_d.state.state_pointers import base_of
from softgen.three_d.state.unit_state import binding_table, dispatch_context, stage_bases
from softgen.three_d.structures import RecordArray, VertexArray

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans
    from softgen.three_d.stage_threads.clip_threads import ClipThreads
    from softgen.three_d.stage_threads.setup_threads import SetupThreads

LOOK_DRAWS, LOOK_WORK = 64, 1 << 20  # draws, or instructions, between two looks for better code


class PreparedDraw(PreparedFront):
    """Everything that a draw needs of Python, for as long as its state is the same."""

    def __init__(self, pipeline: PipelinePlans, cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        super().__init__(pipeline, cs, state, call)
        seen = noted(state, self._notes)
        seen.get("STATE_SIP")  # of dispatch_context
        self.plans: DrawPlans = pipeline.plans.get(seen)
        context = dispatch_context(cs)
        self._prepare_front(pipeline, cs, context, seen, call)
        self._prepare_geometry()
        if self.pointers is not None:
            if self.plans.clear is not None:
                raise NotPrepared("a clear")
            self._prepare_threads(pipeline, cs, context, seen)
        if self.plans.clear is None:
            self._prepare_pixels(cs, context)
        else:
            self._prepare_clear(self.plans.clear, seen)
        if self._notes.warnings or self._notes.volatile:
            raise NotPrepared("state with a warning, or that cannot be compared")
        self.statistics = [self._statistics(stage) for stage in WORKS]
        self._unsettled = self._find_unsettled()
        self._work = 0, 0  # instructions and draws since the last look for better code
        self.runs = 0
        self._blocks: StateBlocks | None = None
        if self.pointers is None:
            self._tables |= {stage: dispatch.binding_table for stage, dispatch in self._dispatches.items()}
            self._places = {stage: self._table_place(stage) for stage in self._tables}
            self._blocks = StateBlocks(self.latches, self._notes, self._bound, self._dispatches, self._headers)
        self.depend()

    # -- stages ------------------------------------------------------------------------------------------------------------------

    def _prepare_geometry(self) -> None:
        geometry, struct = self.plans.geometry, self.struct
        geometry.begin()
        memory = geometry.memory
        memory.reserve_chunk(self.chunk)
        now = geometry.struct
        now.vertices, now.objects = struct.vertices, struct.objects
        now.outcodes, now.results = memory.addresses
        self._kept["clip results"] = memory.outcodes, memory.results  # a larger chunk gets others
        own = self._kept["geometry"] = self.geometry = type(now).from_buffer_copy(now)
        struct.geometry, struct.attribute_stride, struct.clip_results = ctypes.addressof(own), memory.array.attribute_stride, own.results
        bins = memory.bins
        bins.fit(memory.array)
        struct.tiles_x, struct.tiles_y, struct.bin_capacity = bins.bins.tiles_x, bins.bins.tiles_y, bins.bins.capacity

    def _prepare_threads(self, pipeline: PipelinePlans, cs: CommandStreamer, context: DispatchContext, seen: DrawState) -> None:
        """CLIP and SF threads; plans of CLIP and SETUP of its own, because their viewports are not all compared."""
        own, geometry, struct = self._kept["geometry"], self.plans.geometry, self.struct
        if geometry_threads.enabled(seen):
            raise NotPrepared("GS threads")
        self.viewport_plans = [type(plan).from_buffer_copy(plan) for plan in (geometry.clip, geometry.setup)]
        own.clip, own.setup = map(ctypes.addressof, self.viewport_plans)
        struct.one_viewport, struct.count_objects = 1, counts_objects(seen)
        made = self._kept["setup"] = PreparedSetup(self.state, pipeline.memory.capacity, pipeline.primitives)
        self._headers["SF"] = made.header
        kept = self._start("SF", cs, context, made.dispatch)
        made.loop.stage.worker = struct.setup_worker = kept.worker.address
        made.loop.stage.constants = ctypes.addressof(self._push_constants("SF"))
        struct.setup_loop, struct.attribute_stride = ctypes.addressof(made.loop), made.entry_bytes

    def prepare_clipper(self, cs: CommandStreamer, state: DrawState) -> None:
        """CLIP threads, when the first object is to be clipped."""
        clipper, struct = PreparedClip(state, self.chunk), self.struct
        self._kept["clipper"], self._headers["CLIP"], self.state = clipper, clipper.header, state
        kept = self._start("CLIP", cs, dispatch_context(cs), clipper.dispatch)
        clipper.loop.stage.worker = struct.clip_worker = kept.worker.address
        held, data = self._push_constants("CLIP"), push_constants(state, "CLIP")
        ctypes.memmove(held, data, len(data))
        clipper.loop.stage.constants, struct.clip_loop = ctypes.addressof(held), ctypes.addressof(clipper.loop)
        self.statistics[WORKS.index("CLIP")] = self._statistics("CLIP")
        self._unsettled = self._find_unsettled()

    def clip_elsewhere(self, threads: ClipThreads) -> None:
        """CLIP threads whose vertices have no room in the chunk: they get arrays of their own, until the next chunk."""
        own = self._kept["geometry"]
        made = self._kept["clipped"] = threads.clip_chunk(self.chunk, own.results)
        own.vertices, own.objects, own.results = ctypes.addressof(made.vertices), ctypes.addressof(made.objects), 0

    def refuse(self) -> None:
        """Raise what is wrong with the vertices that CLIP threads put out."""
        refuse_output(self._kept["clipper"].output, "CLIP")

    def share_setup(self, cs: CommandStreamer, threads: SetupThreads) -> None:
        """SF threads of the records there are, on several host threads."""
        own, memory, made = self._kept["geometry"], self.plans.geometry.memory, self._kept["setup"]
        threads.urb = made.urb
        threads.run(cs, GeometryPiece(memory.array, memory.bins.bins, own.sf_inputs, VertexArray.from_address(own.vertices)))

    def _prepare_pixels(self, cs: CommandStreamer, context: DispatchContext) -> None:
        struct, shader, targets, generation = self.struct, self.plans.shader, self.plans.backend, self.state.generation
        pixels = shader.state
        assert pixels is not None
        if shader.draws_nothing or targets.late and not pixels.dispatched:
            raise NotPrepared("no samples, or late tests without threads")
        shader.load_constants(self.state)
        array = RecordArray.from_buffer_copy(self.plans.geometry.memory.array)
        array.attribute_stride = struct.attribute_stride
        plan = PixelPlan.from_buffer_copy(shader.placed(array, targets))
        self._kept["pixels"], struct.pixel_plan = plan, ctypes.addressof(plan)
        self._headers["PS"] = struct.pixel_plan + PixelPlan.payload.offset + PayloadPlan.header.offset
        struct.count_pixels, struct.count_covered = pixels.statistics, generation.counts_tested_pixels
        struct.per_pixel = generation.ps_invocations_per_pixel
        dispatch = shader.dispatch(cs, targets)
        if not pixels.dispatched:
            bound, self._dispatches["PS"] = BoundUnits(context, dispatch), dispatch
            self._bound["PS"] = bound
            made = self._kept["context"] = Context(**bound.fields())
            struct.pixel_context = ctypes.addressof(made)
            return
        if pixels.push_constants:
            plan.payload.constant_data = ctypes.addressof(self._push_constants("PS"))
        struct.pixel_worker = self._start("PS", cs, context, dispatch).worker.address

    def _prepare_clear(self, clear: FillPlan, seen: DrawState) -> None:
        """Rectangles filled with a value; of the binding table, the render target is read."""
        plan = self._kept["clear"] = FillPlan.from_buffer_copy(clear)
        self.struct.clear, self._kept["clear plan"] = ctypes.addressof(plan), clear
        self._kept["header"] = unused = (ctypes.c_uint32 * HEADER_DWORDS)()  # a clear has no threads
        self._headers["PS"], self._tables["PS"] = ctypes.addressof(unused), binding_table(seen, "PS")

    # -- what all this depends on ------------------------------------------------------------------------------------------------

    def depend(self) -> None:
        """Collects what is compared before the draw is used again; anew when threads have made more of it."""
        notes, units = self._notes, [bound.dispatch for bound in self._bound.values()]
        if any(unit.resolved.volatile for unit in units) or any(loop.program.read_routine for loop in self.loops.values()):
            raise NotPrepared("state that cannot be read, or a system routine")
        if any(self._stage_loops.reads(loop) for loop in self.loops.values()):
            raise NotPrepared("threads of several draws that read surfaces")  # from now on, each has loops of its own
        pointed = self.pointers.collect(notes, self._bindings()) if self.pointers is not None else None
        tables = self._stage_tables() if pointed is None else []
        names = dict.fromkeys((*notes.commands, *notes.parts))
        compared = self.latches.compared(names)
        memory = dict(notes.memory) if pointed is None else pointed.elsewhere
        for unit in units if pointed is None else ():
            memory |= unit.resolved.states
        hosts = [HostPlace(held.address, held.host) for unit in units for held in unit.resolved.hosts.values()]
        ranges = [MemoryRange(*place, data) for place, data in memory.items()]
        blocks = self._blocks.compared() if self._blocks is not None else []
        for items in (compared.commands, compared.dwords, compared.bits, ranges, hosts, tables, blocks, self._constants, self._sources):
            self._set(items)
        if pointed is not None:
            for more in (pointed.pointers, pointed.ranges, pointed.bits, self._copies(), self._parts):
                self._set(more)
        programs = [ctypes.addressof(loop.program.range) for loop in self.loops.values()]
        self._kept["programs"] = (ctypes.c_uint64 * len(programs))(*programs)
        self.struct.programs, self.struct.program_count = ctypes.addressof(self._kept["programs"]), len(programs)
        self._kept["data"], self._seen = compared.data, self._known()

    def buffers(self) -> set[HostRange]:
        """What its threads use by host address."""
        return {held for unit in self._bindings().values() for held in unit.resolved.hosts.values()}

    def _set(self, items: Sequence[Any]) -> None:
        """An array of the structure."""
        if items:
            pointer, count = ARRAYS[type(items[0])]
            made = self._kept[pointer] = (type(items[0]) * len(items))(*items)
            setattr(self.struct, pointer, ctypes.addressof(made))
            setattr(self.struct, count, len(items))

    def _known(self) -> tuple[int, ...]:
        found = [bound.dispatch.resolved for bound in self._bound.values()]
        return tuple(count for table in found for count in (
            len(table.entries), len(table.surfaces), len(table.states), len(table.samplers), len(table.blend), len(table.hosts),
            table.volatile))  # fmt: skip

    def _bindings(self) -> dict[str, DispatchBindings]:
        return {stage: bound.dispatch for stage, bound in self._bound.items()}

    def _copies(self) -> list[PointerCopy]:
        """Pointers as headers of payloads have them, and as sampler messages name samplers."""
        assert self.pointers is not None
        found = []
        for stage, bound in self._bound.items():
            header, names = self._headers[stage], self.pointers.names
            wanted = {f"table {stage}": "binding_table_pointer", f"samplers {stage}": "sampler_state_pointer"}
            for name, field in [*wanted.items(), *([("CC", "color_calculator_state_pointer")] if stage == "PS" else [])]:
                if name in names:
                    offset, mask = self._header_pointer(field)
                    low = ctypes.c_uint32.from_address(header + offset).value & ~mask
                    found.append(PointerCopy(names[name], mask, low, 0, header + offset))
            if f"samplers {stage}" in names:
                keys = bound.sampler_keys()
                found += [PointerCopy(names[f"samplers {stage}"], DWORD_MASK, key - keys[0][1] + USED & DWORD_MASK, 0, at)
                          for at, key in keys]  # fmt: skip
        return found

    def _header_pointer(self, field: str) -> tuple[int, int]:
        """The byte offset of a pointer's dword in r0, and its bits there: the same for the threads of every stage."""
        low = self.latches.layout("PS_THREAD_PAYLOAD").field(field).low
        return low // 32 * 4, DWORD_MASK & -1 << low % 32

    # -- binding tables ----------------------------------------------------------------------------------------------------------

    def _stage_tables(self) -> list[StageTable]:
        """Entries that plans and units were made from, wherever the table is."""
        return [self._stage_table(stage) for stage in self._tables]

    def _stage_table(self, stage: str) -> StageTable:
        array = self._table_entries(stage)
        header, place, offset = self._headers[stage], self._places[stage], self._tables[stage]
        base = base_of(self.state, Base.SURFACE)
        self._kept[stage], address = array, base + offset & self.latches.wrap
        pointer = self.latches.layout("BINDING_TABLE_STATE").field("surface_state_pointer")
        header += self._header_pointer("binding_table_pointer")[0]
        return StageTable(*place, address, offset & DWORD_MASK, len(array), ctypes.addressof(array), header, base,
                          (1 << pointer.high + 1) - (1 << pointer.low))  # fmt: skip

    def _table_entries(self, stage: str) -> ctypes.Array[TableEntry]:
        """Entries with what was read of their surface states, by plans or units."""
        base, wrap, notes = base_of(self.state, Base.SURFACE), self.latches.wrap, self._notes
        read = {address: data for (of, address, _), data in notes.surfaces.items() if of == stage}
        entries = {address - table >> 2: data for (of, address), (table, data) in notes.entries.items() if of == stage}
        found, led, page = {}, set[int](), self.latches.layout("BINDING_TABLE_STATE")
        for index, data in entries.items():
            address = base + page.raw(memoryview(data).cast("I")).surface_state_pointer & wrap
            found[index], led = (data, read.get(address, b"")), led | {address}
        if read.keys() - led:
            raise NotPrepared("a surface state that no entry leads to")
        if stage in self._bound:
            resolved = self._bound[stage].dispatch.resolved
            found |= {index: (data, resolved.surfaces.get(index, (0, b""))[1]) for index, data in resolved.entries.items()}
        made = [TableEntry(index, int.from_bytes(data, "little"), len(surface), surface) for index, (data, surface) in found.items()]
        self._kept[f"{stage} entries"] = made
        return (TableEntry * len(made))(*made)

    def _table_place(self, stage: str) -> TablePlace:
        """The pointer of a stage's table; none where no command has set it."""
        name, latches = f"3DSTATE_BINDING_TABLE_POINTERS_{stage}", self.latches
        command, pool = self.state.get(name), self.state.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
        if command is None or not command.pointer_to_binding_table:
            return TablePlace(0, 0, 0, 0)  # compared whole
        scale = command.pool_offset // command.pointer_to_binding_table if pool is not None and pool.binding_table_pool_enable else 1
        pointer = latches.pointer(latches.layout(name).field("pointer_to_binding_table"), latches.place(name).offset)
        return TablePlace(pointer.offset, pointer.mask, command.pointer_to_binding_table, scale)

    def follow(self, state: DrawState) -> None:
        """Binding tables and blocks of state are where commands say now: for units that read more of them. Before that, what was read of
        them was compared. Other draws may have moved what they share with this one."""
        if self.pointers is not None:
            if self.pointers.follow(state, self._notes, self._bindings()):
                bases, offset = stage_bases(state.generation, state.bases), self.pointers.offset
                for stage, bound in self._bound.items():
                    bound.move(bases, offset(f"table {stage}"), offset(f"samplers {stage}"))
            return
        assert self._blocks is not None
        for stage, bound in self._bound.items():
            place = self._places[stage]
            now = self.latches.latched.raw(place.offset, 1)[0] & place.mask
            table = self._tables[stage] + (now - place.pointer) * place.scale
            if bound.dispatch.binding_table != table:
                bound.move_table(table)
        self._blocks.follow()

    # -- after a draw ------------------------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Takes into account what units have resolved since."""
        for bound in self._bound.values():
            bound.renew()
        if self._known() != self._seen:
            self.depend()

    def _find_unsettled(self) -> list[tuple[int, KeptLoop]]:
        """Loops for which the engine may have better code, with the places of their counts."""
        return [(WORKS.index(stage), loop) for stage, loop in self.loops.items() if not loop.settled]

    @property
    def settled(self) -> bool:
        """Whether the engine has no better code for any of its threads."""
        return not self._unsettled

    def ran(self, instructions: Sequence[int]) -> bool:
        """While the engine may have better code for what its threads run: whether it is time to look for it."""
        for number, loop in self._unsettled:  # at once: the next draw with these kernels may be of other state
            loop.engine.ran(loop.program, instructions[number])
        work, draws = self._work[0] + sum(instructions), self._work[1] + 1
        self._work = work, draws
        return draws > LOOK_DRAWS or work >= LOOK_WORK

    def look(self) -> None:
        """Look for better code."""
        self._work = 0, 0
        for loop in self.loops.values():
            loop.ready()
        self._unsettled = self._find_unsettled()
        if self._known() != self._seen:
            self.depend()

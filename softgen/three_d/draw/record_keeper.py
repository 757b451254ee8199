"""RecordKeeper: what a kept record depends on, and what of commands and memory is copied into it before each draw.

    keeper = RecordKeeper(loops, cs, state)      # raises NotKept, here and later, where C cannot compare or copy something
    record = DrawRecord(…, keeper.seen, …, keeper=keeper)
    keeper.depend(record)

What plans were made from is noted while the record is built (plan_cache.py), and compared in C before each draw (draw_state.c): commands,
bytes in memory, kernels, binding table entries. Not compared but copied: constants, addresses and sizes of vertex and index buffers, and
where binding tables are. Where units read blocks of state, what pointers lead to is compared (state_pointers.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer, MarkedLatched
from softgen.shared_functions.bindings import USED
from softgen.shared_functions.unit import DispatchBindings, HostRange
from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.programs import MemoryRange
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.three_d.draw.draw_structures import (
    ARRAYS,
    Base,
    ConstantRange,
    CurbePart,
    HostPlace,
    PointerCopy,
    RecordStruct,
    StageTable,
    VertexSource,
)
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.draw.stage_loops import StageLoops
from softgen.three_d.draw.stage_tables import StageTables
from softgen.three_d.state.constants import constant_ranges, curbe_region, gather_pool, offset_disabled, push_constants
from softgen.three_d.state.latched_state import LatchedBytes, NotKept
from softgen.three_d.state.plan_cache import Notes, noted
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.state_blocks import StateBlocks
from softgen.three_d.state.state_pointers import StatePointers, base_of
from softgen.three_d.state.unit_state import dispatch_context, stage_bases
from softgen.three_d.vertices.vertex_fetch import FetchPlan, elements_of
from softgen.three_d.vertices.vertex_fetch_h import FetchElement, VertexFetch

LOOK_DRAWS, LOOK_WORK = 64, 1 << 20  # draws, or instructions, between two looks for better code
BOUNDS = ("buffer_size", "end_address", "max_index")  # fields of vertex buffers, of which each generation has one


class RecordKeeper:
    """What a record depends on, for as long as that is the same."""

    def __init__(self, loops: StageLoops, cs: CommandStreamer, state: DrawState) -> None:
        latched = cs.latched
        if not isinstance(latched, MarkedLatched):
            raise NotKept("commands are not in slots")
        self._loops, self._dispatcher, self.state, self.notes = loops, cs.dispatcher, state, Notes()
        self.seen = noted(state, self.notes)
        self.seen.get("STATE_SIP")  # of dispatch_context
        self.latches, self._kept = LatchedBytes(latched, state.gen, state.space.bits), dict[str, Any]()  # memory that C points to
        self.registers: dict[str, int] = {}  # values that it depends on
        self.bound: dict[str, BoundUnits] = {}  # by stage
        self.headers: dict[str, int] = {}  # addresses of r0 in plans of payloads
        self.dispatches: dict[str, ThreadDispatch] = {}
        self.sources, self._constants, self._parts = list[VertexSource](), list[ConstantRange](), list[CurbePart]()
        self.pointers = StatePointers(self.latches, state) if state.generation.unit_state else None
        self.tables = StageTables(self)
        self._blocks: StateBlocks | None = None
        self._seen: tuple[int, ...] = ()  # how much units had resolved when it was compared last
        self._work = 0, 0  # instructions and draws since the last look for better code
        self._unsettled: list[tuple[int, KeptLoop]] = []

    # -- for stages, while the record is built -----------------------------------------------------------------------------------------

    def start(self, stage: ThreadedStage, context: DispatchContext, dispatch: ThreadDispatch, header: int) -> KeptLoop:
        """A loop over a stage's threads, of its own or shared with other records."""
        shares = stage.name == "VS" or self.pointers is not None and stage.name != "PS"
        found = self._loops.get(self._dispatcher, context, dispatch) if shares else None
        stage.own = found is None
        found = found or self._dispatcher.prepare(context, dispatch)
        self.bind(stage.name, found.shared.bound, dispatch, header)
        return found

    def bind(self, stage: str, bound: BoundUnits, dispatch: ThreadDispatch, header: int) -> None:
        """Units that a stage has, and where payloads have the pointers that move."""
        self.bound[stage], self.dispatches[stage], self.headers[stage] = bound, dispatch, header

    def push_constants(self, stage: str) -> tuple[int, int]:
        """Address and size of the memory that gets the constants of a stage before each draw."""
        state = self.state
        if self.pointers is not None:
            first, size = curbe_region(state, stage)
            held = self._kept[f"constants of {stage}"] = (ctypes.c_uint8 * max(size, 1))()
            if size:
                data = push_constants(state, stage)  # there must be some
                ctypes.memmove(held, data, len(data))
                self._parts.append(CurbePart(first, size, ctypes.addressof(held)))
            return ctypes.addressof(held), size
        return self._constant_buffers(f"3DSTATE_CONSTANT_{stage}")

    def _constant_buffers(self, name: str) -> tuple[int, int]:
        command: Record | None = self.state.get(name)
        self.notes.commands[name] = command
        ranges = () if command is None else constant_ranges(command)
        size = sum(size for *_, size in ranges)
        into = self._kept[name] = (ctypes.c_uint8 * max(size, 1))()
        group, at = next(group for group in self.latches.layout(name).groups if group.name == "constant_buffer"), ctypes.addressof(into)
        for number, _, length in ranges:
            if number == 0:
                self._first_is_absolute()
            elif number == 1 and gather_pool(self.state) is not None:
                raise NotKept("gathered constants")
            start = self.latches.place(name).offset + (group.start + number * group.size) // 32
            self._constants.append(ConstantRange(self.latches.pointer(group.fields[0], start), length, at))
            at += length
        push_constants(self.state, name.removeprefix("3DSTATE_CONSTANT_"))  # they must be there
        return ctypes.addressof(into), size

    def _first_is_absolute(self) -> None:
        """The first buffer's address is relative to the dynamic state base where a register says so: then memory decides (constants.py)."""
        def register(name: str) -> int:
            value = self.registers[name] = self.state.register(name)
            return value

        state = self.state
        if not offset_disabled(DrawState(state.generation, state.space, state.latched, state.bases, register)):
            raise NotKept("constants relative to the dynamic state base")

    def own_fetch(self, fetch: FetchPlan) -> VertexFetch:
        """A copy of the plan, which gets addresses and sizes of vertex buffers from their commands."""
        held, latches, seen = fetch.structure, self.latches, self.seen
        if held.has_edge_flag:
            raise NotKept("edge flags")
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
                self.sources.append(VertexSource(pointer, *bounds, ctypes.addressof(element)))
        return made

    def index_buffer(self, struct: RecordStruct) -> None:
        """The index buffer's address and size come from its command."""
        name, latches = "3DSTATE_INDEX_BUFFER", self.latches
        fields, start = {field.name: field for field in latches.layout(name).fields}, latches.place(name).offset
        struct.index_source, struct.index_end = 1, "buffer_ending_address" in fields
        struct.index_pointer = latches.pointer(fields["buffer_starting_address"], start)
        struct.index_size_offset = latches.number(fields["buffer_ending_address" if struct.index_end else "buffer_size"], start)

    # -- what all this depends on ------------------------------------------------------------------------------------------------------

    def complete(self, record: BuiltRecord) -> None:
        """After the record was built."""
        if self.notes.warnings or self.notes.volatile:
            raise NotKept("state with a warning, or that cannot be compared")
        if self.pointers is None:
            self.tables.complete()
            base = base_of(self.state, Base.DYNAMIC)
            self._blocks = StateBlocks(self.latches, self.notes, base, self.bound, self.dispatches, self.headers)
            self._fix_bases(record.struct)
        self._find_unsettled(record)
        self.depend(record)

    def _fix_bases(self, into: RecordStruct) -> None:
        """Bases that plans were made for, where not only binding tables, what they lead to, and blocks of state count from them."""
        pool = self.state.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
        fixed = self.notes.bases | ({"surface"} if pool is not None and pool.binding_table_pool_enable else set())
        for base in (Base.SURFACE, Base.DYNAMIC):
            into.bases[base] = base_of(self.state, base)
            into.fixed_bases |= (base.name.lower() in fixed) << base

    def depend(self, record: BuiltRecord) -> None:
        """Collects what is compared before the record is used again; anew when threads have made more of it."""
        notes, units, loops = self.notes, [bound.dispatch for bound in self.bound.values()], record.loops
        if any(unit.resolved.volatile for unit in units) or any(loop.program.read_routine for loop in loops):
            raise NotKept("state that cannot be read, or a system routine")
        if any(self._loops.reads(loop) for loop in loops):
            raise NotKept("threads of several draws that read surfaces")  # from now on, each has loops of its own
        pointed = self.pointers.collect(notes, self._bindings()) if self.pointers is not None else None
        tables: list[StageTable] = self.tables.compared() if pointed is None else []
        compared = self.latches.compared(dict.fromkeys((*notes.commands, *notes.parts)))
        memory = dict(notes.memory) if pointed is None else pointed.elsewhere
        for unit in units if pointed is None else ():
            memory |= unit.resolved.states
        hosts = [HostPlace(held.address, held.host) for unit in units for held in unit.resolved.hosts.values()]
        ranges = [MemoryRange(*place, data) for place, data in memory.items()]
        blocks, into = self._blocks.compared() if self._blocks is not None else [], record.struct
        for items in (compared.commands, compared.dwords, compared.bits, ranges, hosts, tables, blocks, self._constants, self.sources):
            self._set(into, items)
        if pointed is not None:
            for more in (pointed.pointers, pointed.ranges, pointed.bits, self._copies(), self._parts):
                self._set(into, more)
        programs = [ctypes.addressof(loop.program.range) for loop in loops]
        self._kept["programs"] = (ctypes.c_uint64 * len(programs))(*programs)
        into.programs, into.program_count = ctypes.addressof(self._kept["programs"]), len(programs)
        self._kept["data"], self._seen = compared.data, self._known()

    def buffers(self) -> set[HostRange]:
        """What its threads use by host address."""
        return {held for unit in self._bindings().values() for held in unit.resolved.hosts.values()}

    def _set(self, into: RecordStruct, items: Sequence[Any]) -> None:
        """An array of the record."""
        if items:
            pointer, count = ARRAYS[type(items[0])]
            made = self._kept[pointer] = (type(items[0]) * len(items))(*items)
            setattr(into, pointer, ctypes.addressof(made))
            setattr(into, count, len(items))

    def _known(self) -> tuple[int, ...]:
        found = [bound.dispatch.resolved for bound in self.bound.values()]
        return tuple(count for table in found for count in (
            len(table.entries), len(table.surfaces), len(table.states), len(table.samplers), len(table.behind), len(table.blend),
            len(table.hosts), table.volatile))  # fmt: skip

    def _bindings(self) -> dict[str, DispatchBindings]:
        return {stage: bound.dispatch for stage, bound in self.bound.items()}

    def _copies(self) -> list[PointerCopy]:
        """Pointers as headers of payloads have them, and as sampler messages name samplers."""
        assert self.pointers is not None
        found = []
        for stage, bound in self.bound.items():
            header, names = self.headers[stage], self.pointers.names
            wanted = {f"table {stage}": "binding_table_pointer", f"samplers {stage}": "sampler_state_pointer"}
            for name, field in [*wanted.items(), *([("CC", "color_calculator_state_pointer")] if stage == "PS" else [])]:
                if name in names and (place := self.header_pointer(field)) is not None:
                    offset, mask = place
                    low = ctypes.c_uint32.from_address(header + offset).value & ~mask
                    found.append(PointerCopy(names[name], mask, low, 0, header + offset))
            if f"samplers {stage}" in names:
                keys = bound.sampler_keys()
                found += [PointerCopy(names[f"samplers {stage}"], DWORD_MASK, key - keys[0][1] + USED & DWORD_MASK, 0, at)
                          for at, key in keys]  # fmt: skip
        return found

    def header_pointer(self, field: str) -> tuple[int, int] | None:
        """The byte offset of a pointer's dword in r0, and its bits there: the same for threads of every stage. None where r0 has none."""
        page = self.latches.layout("PS_THREAD_PAYLOAD")
        if field not in {held.name for held in page.fields}:
            return None
        low = page.field(field).low
        return low // 32 * 4, DWORD_MASK & -1 << low % 32

    def follow(self, cs: CommandStreamer) -> None:
        """Binding tables and blocks of state are where commands say now: for units that read more of them. Before that, what was read of
        them was compared. Other draws may have moved what they share with this one."""
        if self.pointers is not None:
            state = DrawState.of(cs)
            if self.pointers.follow(state, self.notes, self._bindings()):
                bases, offset = stage_bases(state.generation, state.bases), self.pointers.offset
                for stage, bound in self.bound.items():
                    bound.move(bases, offset(f"table {stage}"), offset(f"samplers {stage}"))
            return
        blocks, bases = self._blocks, dispatch_context(cs).bases
        assert blocks is not None
        for stage, bound in self.bound.items():
            table, samplers, held = self.tables.now(stage), blocks.samplers(stage), bound.dispatch
            if (held.bases, held.binding_table, held.samplers) != (bases, table, samplers):
                bound.move(bases, table, samplers)
            held.blend_moved = blocks.blend_moved(bases.get("dynamic", 0))

    # -- after a draw --------------------------------------------------------------------------------------------------------------------

    def renew(self, record: BuiltRecord) -> None:
        """Takes into account what units have resolved since."""
        for bound in self.bound.values():
            bound.renew()
        if self._known() != self._seen:
            self._find_unsettled(record)
            self.depend(record)

    def _find_unsettled(self, record: BuiltRecord) -> None:
        """Loops for which the engine may have better code, with the number of their stage."""
        self._unsettled = [(number, stage.kept) for number, stage in enumerate(record.threaded)
                           if stage.kept is not None and not stage.kept.settled]  # fmt: skip

    @property
    def settled(self) -> bool:
        """Whether the engine has no better code for any of its threads."""
        return not self._unsettled

    def ran(self, instructions: Sequence[int], draws: int = 1) -> bool:
        """After draws, while the engine may have better code for what its threads run: whether it is time to look for it."""
        for number, loop in self._unsettled:  # at once: the next draw with these kernels may be of other state
            loop.engine.ran(loop.program, instructions[number])
        work, all_draws = self._work[0] + sum(instructions), self._work[1] + draws
        self._work = work, all_draws
        return all_draws > LOOK_DRAWS or work >= LOOK_WORK

    def look(self, record: BuiltRecord) -> None:
        """Look for better code."""
        self._work = 0, 0
        for loop in record.loops:
            loop.ready()
        self._find_unsettled(record)
        if self._known() != self._seen:
            self.depend(record)

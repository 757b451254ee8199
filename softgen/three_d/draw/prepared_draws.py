"""The prepared draws of a hardware context, and the draw under way: draw.c finds the plans for the state and runs the stages.

    if not draws.draw(cs, call): …        # this draw has to go through the stages' Python (draw.py)

Python is called for what threads need of it, for work that is worth several host threads, and for state that was not prepared yet.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer, MarkedLatched
from softgen.errors import GpuFault, SoftgenError
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.threads.native.scheduler import ReturnReason, WorkerPart, guard_function
from softgen.threads.workers.worker import SLICE
from softgen.three_d.clip_setup.geometry import oversized
from softgen.three_d.draw.draw_structures import COUNTS, WORKS, Base, DrawReason, DrawStruct, Stage, function
from softgen.three_d.draw.prepared import PreparedDraw
from softgen.three_d.pixels import fill
from softgen.three_d.pixels.pixel_shader import LOOP_PIXELS, TESTS, PixelLoop
from softgen.three_d.stage_threads.clip_threads import ClipThreads
from softgen.three_d.stage_threads.setup_threads import SetupThreads
from softgen.three_d.state.latched_state import NotPrepared
from softgen.three_d.state.state import DrawCall, DrawState, PipelineContext
from softgen.three_d.state.unit_state import dispatch_context
from softgen.three_d.vertices.assembly import UNKNOWN
from softgen.three_d.vertices.chunk import VERTICES
from softgen.three_d.vertices.vertex_shader import PER_LOOP, VertexShader

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans

LATEST, TRY_AGAIN = 16, 16  # draws that show whether preparing pays; of those that are not prepared then, one in how many is tried
MOST_DRAWS = 384  # kept: those of several frames, whose render targets differ
MOST_WORKERS = 256  # besides the first of each stage; half a megabyte each
CALL = struct.Struct("8I")  # the parameters of DrawStruct
RESULTS = struct.Struct(f"{len(COUNTS) + 3 * len(WORKS)}Q")
RESULTS_AT = DrawStruct.counts.offset
COUNTED = len(COUNTS)
STAGES = {Stage.VERTICES: "VS", Stage.CLIP_THREADS: "CLIP", Stage.SETUP_THREADS: "SF", Stage.PIXELS: "PS"}  # with threads
AFTER = {Stage.VERTICES: Stage.CLIP, Stage.SETUP_THREADS: Stage.BIN, Stage.PIXELS: Stage.BIN}  # what follows such a stage
PIXEL_COUNTS, NOTHING = ("PS_INVOCATION_COUNT", "PS_DEPTH_COUNT"), (0, 0)
FIND, DONE = int(Stage.FIND), int(DrawReason.DONE)  # plain numbers: every draw needs them
NANOSECOND = 1e-9


class Ids(NamedTuple):
    """Where the vertices of a chunk have their IDs."""

    vertex_ids: int
    instance_ids: int
    primitive_ids: int


class PreparedDraws:
    """Draws of one context, one at a time."""

    def __init__(self, pipeline: PipelinePlans) -> None:
        self.pipeline, memory = pipeline, pipeline.memory
        self._draws: dict[int, PreparedDraw] = {}  # by the address of their structures
        self._sharing: dict[tuple[int, str], int] = {}  # workers of its own besides the first, by the address of a draw and the stage
        self._pointers: Any = (ctypes.c_uint64 * MOST_DRAWS)()
        self._loop, self._record, self._running = PixelLoop(), guard.FaultRecord(), (WorkerPart * 1)()
        self._now = DrawStruct(
            draws=ctypes.addressof(self._pointers), assembly=ctypes.addressof(pipeline.front.memory.state),
            records=ctypes.addressof(memory.array), binning=ctypes.addressof(memory.bins.binning), loop=ctypes.addressof(self._loop),
            slice=SLICE, share_vertices=PER_LOOP, share_pixels=LOOP_PIXELS, guard=guard_function(), most_vertices=VERTICES,
        )  # fmt: skip
        self._address, self._call = ctypes.addressof(self._now), guard.library().guard_call
        self._function = function("draw_run")
        # What all of them were prepared for.
        self._latched: object = None
        self._space: object = None
        self._changes: int | None = None  # of the space: buffers of all draws are mapped as they were then
        self._dispatcher: object = None
        self._bases: Mapping[str, int] = {}
        self._slots = 0
        self._moves = False  # units read blocks of state, wherever pointers lead
        self._registers: dict[str, int] = {}
        self._shared = NOTHING  # PIXEL_COUNTS of work that plans have shared out
        self._helped = False  # threads of the draw needed Python
        self._latest: deque[PreparedDraw] = deque(maxlen=LATEST)  # that were prepared
        self._unprepared = 0  # draws that were not, because that would not have paid

    def draw(self, cs: CommandStreamer, call: DrawCall) -> bool:
        """Execute a draw; False: there is no prepared draw for its state, and none is made: it cannot be, or would not pay."""
        if not self._same_environment(cs) and not self._enter(cs):
            return False
        self._follow_mappings(cs)
        topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex = call[:7]
        if self._moves:
            curbe = cs.state(PipelineContext).curbe
            self._now.curbe, self._now.curbe_size = curbe, len(curbe or b"")
        self._now.compared = 0
        CALL.pack_into(self._now, 0, topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex & DWORD_MASK, FIND)
        why = self._run()
        if why != DONE and not self._go_on(cs, call, why):
            return False
        self._finish(cs)
        return True

    def _run(self) -> int | None:
        """Why draw.c returned (DrawReason, or that of a worker); None: at an access to memory that is not mapped."""
        record = self._record
        record.ip = guard.NO_IP
        return None if self._call(self._function, self._address, record) else int(record.result)

    # -- what all draws have in common -------------------------------------------------------------------------------------------

    def _same_environment(self, cs: CommandStreamer) -> bool:
        """Whether all draws were prepared for this."""
        latched, bases = cs.latched, cs.bases
        if latched is not self._latched or cs.space is not self._space or cs.dispatcher is not self._dispatcher:
            return False
        if bases is not self._bases:
            if bases != self._bases and not (self._moves and self._move_surfaces(bases)):
                return False
            self._bases = bases
        if latched.slots != self._slots:  # type: ignore[attr-defined]  # commands that were never met have places now
            return False
        for name, value in self._registers.items():
            if cs.get(name) != value:
                return False
        return True

    def _move_surfaces(self, bases: Mapping[str, int]) -> bool:
        """Another surface state base: pointers count from there. False where other bases differ, too."""
        if any(bases.get(name) != self._bases.get(name) for name in {*bases, *self._bases} - {"surface"}):
            return False
        self._now.bases[Base.SURFACE] = bases.get("surface", 0)
        return True

    def _enter(self, cs: CommandStreamer) -> bool:
        """Forgets all draws; False where none can be prepared."""
        self._clear()
        latched, dispatcher = cs.latched, cs.dispatcher
        if type(cs.space) is not AddressSpace or not dispatcher.prepares:
            return False
        if not isinstance(latched, MarkedLatched):
            return False
        now = self._now
        now.latches, now.memory, now.host_threads = latched.address, ctypes.addressof(cs.space.table), dispatcher.threads
        self._running = (WorkerPart * dispatcher.threads)()
        now.running = ctypes.addressof(self._running)
        self._moves = cs.generation.unit_state
        now.bases[Base.GENERAL], now.bases[Base.SURFACE] = cs.bases.get("general", 0), cs.bases.get("surface", 0)
        self._latched, self._space, self._dispatcher, self._bases, self._slots = latched, cs.space, dispatcher, cs.bases, latched.slots
        return True

    def _follow_mappings(self, cs: CommandStreamer) -> None:
        """Forgets draws whose threads use buffers that are mapped in another way now."""
        if cs.space.changes == self._changes:
            return
        self._changes = cs.space.changes
        changed = {held for held in {held for draw in self._draws.values() for held in draw.buffers()} if not held.holds(cs.space)}
        for draw in [draw for draw in self._draws.values() if not changed.isdisjoint(draw.buffers())]:
            self._forget(draw)

    def _clear(self) -> None:
        self._draws.clear()
        self._sharing.clear()
        self._latest.clear()
        self._registers.clear()
        self.pipeline.stage_loops.clear()
        self._now.draw_count = self._now.previous = 0

    def _forget(self, draw: PreparedDraw) -> None:
        address, now = ctypes.addressof(draw.struct), self._now
        left = [held for held in self._pointers[: now.draw_count] if held != address]
        self._pointers[: len(left)] = left
        now.draw_count, now.previous = len(left), 0
        del self._draws[address]
        for key in [key for key in self._sharing if key[0] == address]:
            del self._sharing[key]
        for other in self._draws.values():
            if other.struct.after == address:
                other.struct.after = 0

    def _remember(self, draw: PreparedDraw) -> None:
        """The draw comes first; the one that was used longest ago makes room."""
        now = self._now
        if now.draw_count == MOST_DRAWS:
            self._forget(self._draws[self._pointers[MOST_DRAWS - 1]])
        address, count = ctypes.addressof(draw.struct), now.draw_count
        self._pointers[1 : count + 1] = self._pointers[:count]
        self._pointers[0], now.draw_count, self._draws[address] = address, count + 1, draw

    @property
    def _current(self) -> PreparedDraw:
        """The draw that was found."""
        return self._draws[self._now.prepared]

    def _prepare(self, cs: CommandStreamer, call: DrawCall) -> DrawPlans | None:
        """Prepares a draw for the state; None where that cannot be, or does not pay."""
        state = DrawState.of(cs)
        self.pipeline.front.memory.topology = UNKNOWN  # prepared draws have left another
        self.pipeline.check(state, call)
        plans = self.pipeline.plans.get(state)
        if not plans.prepares or not self._pays():
            return None
        try:
            made = PreparedDraw(self.pipeline, cs, state, call)
        except NotPrepared:
            plans.prepares = False
            return None
        self._remember(made)
        self._latest.append(made)
        self._registers |= made.registers
        return plans

    def _pays(self) -> bool:
        """Whether a draw is worth preparing. It takes twice the time of a draw by its stages, which is lost with a program that changes
        state with each draw, such as a test of all mip levels."""
        if len(self._latest) < LATEST or any(draw.runs > 1 for draw in self._latest):
            return True
        self._unprepared += 1
        return self._unprepared % TRY_AGAIN == 0

    # -- a draw ------------------------------------------------------------------------------------------------------------------

    def _go_on(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> bool:
        """After draw.c has returned to Python: until the draw is complete. False if it cannot be prepared."""
        now = self._now
        while why is None and now.stage == Stage.FIND:
            if now.prepared:  # its constants are gone
                self._forget(self._current)
                now.compared = 0
            why = self._run()  # else pointers of a draw that was compared lead nowhere now
        if now.stage == Stage.FIND:
            plans, now.compared, now.previous = self._prepare(cs, call), 0, 0
            if plans is None:
                return False
            why = self._run()
            if now.stage == Stage.FIND:  # what was noted cannot be compared in C, or is written while the draw is prepared
                plans.prepares = False
                self._forget(self._draws[self._pointers[0]])
                return False
        try:
            while why != DrawReason.DONE:
                self._answer(cs, call, why)
                why = self._run()
        except BaseException:  # threads may have been left in the middle, and draws share them: the next draw forgets them all
            self._latched = None
            raise
        return True

    def _answer(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> None:
        """Does what draw.c returned for."""
        stage, draw = self._now.stage, self._current
        loop = draw.loops.get(STAGES.get(stage, ""))
        if why == DrawReason.MORE:
            if cs.timed_out():
                raise SoftgenError("time is up: 3DPRIMITIVE has more vertices")
        elif why == DrawReason.NO_CLIPPER:
            self._helped = True
            draw.prepare_clipper(cs, DrawState.of(cs))
        elif why == DrawReason.NO_WORKERS:
            self._share(draw, STAGES[stage], int(self._now.loops))
        elif why == DrawReason.LOOPS:
            self._answer_loops(cs, draw)
        elif why == DrawReason.SHARE:
            self._share_scratch(cs, call, draw)
        elif why in (DrawReason.VIEWPORTS, DrawReason.CLIP_ELSEWHERE, DrawReason.REFUSED):
            self._answer_geometry(cs, draw, why)
        elif loop is None:
            self._answer_without_threads(cs, why)
        else:
            if why != ReturnReason.DEADLINE:
                self._helped = True
                draw.follow(DrawState.of(cs))
            try:
                loop.answer(dispatch_context(cs), why, lambda: self._timed_out(cs), self._record)
            except GpuFault as fault:
                if stage == Stage.PIXELS and self._loop.testing:
                    raise GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why) from None
                raise

    def _answer_geometry(self, cs: CommandStreamer, draw: PreparedDraw, why: int) -> None:
        """What CLIP and its threads need of Python."""
        state, now = DrawState.of(cs), self._now
        if why == DrawReason.VIEWPORTS:
            geometry, now.viewports = self.pipeline.plans.get(state).geometry, 1
            for own, plan in zip(draw.viewport_plans, (geometry.clip, geometry.setup), strict=True):
                ctypes.memmove(ctypes.addressof(own), ctypes.addressof(plan), ctypes.sizeof(plan))
        elif why == DrawReason.CLIP_ELSEWHERE:
            draw.clip_elsewhere(ClipThreads(cs, state))
            now.stage = Stage.SETUP
        else:
            draw.refuse()

    def _answer_without_threads(self, cs: CommandStreamer, why: int | None) -> None:
        """A fault, or the deadline of depth and stencil tests."""
        if why is None:
            stage = self._now.stage
            if stage in (Stage.PIXELS, Stage.FILL):
                self._record.ip = 0  # no instruction's
            raise guard.fault(self._record, cs.space, lambda ip: fill.CLEAR if stage == Stage.FILL else TESTS)
        if cs.timed_out():
            raise SoftgenError(f"time is up: {TESTS}, tile {self._loop.tile}")

    def _timed_out(self, cs: CommandStreamer) -> bool:
        late = cs.timed_out()
        if late and self._now.stage == Stage.PIXELS and not self._loop.started:  # there is no thread to name
            raise SoftgenError(f"time is up: pixel shader, tile {self._loop.tile}, no thread started")
        return late

    def _share(self, draw: PreparedDraw, stage: str, loops: int) -> None:
        """Workers for the loops of a stage; those that other draws were given first make room."""
        draw.share(stage, loops)
        if stage not in draw.own:
            return
        sharing, address = self._sharing, ctypes.addressof(draw.struct)
        sharing[address, stage] = loops - 1
        others = [key for key in sharing if key[0] != address]
        while others and sum(sharing.values()) > MOST_WORKERS:
            other, of_stage = others.pop(0)
            del sharing[other, of_stage]
            self._draws[other].unshare(of_stage)

    def _answer_loops(self, cs: CommandStreamer, draw: PreparedDraw) -> None:
        """Does what loops on several host threads returned for."""
        now, parts = self._now, self._running[: self._now.running_count]
        if any(part.signal or part.result != ReturnReason.DEADLINE for part in parts):
            self._helped = True
            draw.follow(DrawState.of(cs))
        try:
            draw.loops[STAGES[now.stage]].answer_parts(dispatch_context(cs), parts, lambda: self._timed_out(cs))
        except GpuFault as fault:
            if now.stage == Stage.PIXELS and any(PixelLoop.from_address(part.argument).testing for part in parts):
                raise GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why) from None
            raise

    def _share_scratch(self, cs: CommandStreamer, call: DrawCall, draw: PreparedDraw) -> None:
        """The work of a stage on several host threads, whose threads have scratch space: plans share that out anew."""
        now, state, pipeline = self._now, DrawState.of(cs), self.pipeline
        array = pipeline.memory.array
        attributes = array.attributes, array.attribute_stride
        if now.stage == Stage.VERTICES:
            plan, held = pipeline.front.plan(state), pipeline.front.memory.state
            shader = VertexShader(state, call, plan.shader, pipeline.front.fetch(state, call, plan))
            shader.run(cs, draw.chunk, Ids(held.vertex_ids, held.instance_ids, held.primitive_ids))
        elif now.stage == Stage.SETUP_THREADS:
            draw.share_setup(cs, SetupThreads(state))
        else:
            plans = pipeline.plans.get(state)
            array.attributes, array.attribute_stride = attributes  # others have used the memory for their records
            plans.shader.load_constants(state)
            counts = plans.shader.draw(cs, array, pipeline.memory.bins.bins, plans.backend)
            self._shared = self._shared[0] + counts.invocations, self._shared[1] + counts.depth
        now.stage = AFTER[now.stage]
        self._helped = True

    def _finish(self, cs: CommandStreamer) -> None:
        """Counts what the draw has done, and prepares for the next one."""
        now, pipeline, counters = self._now, self.pipeline, cs.counters
        pipeline.memory.user, pipeline.front.memory.topology = None, UNKNOWN  # others find their memory as draw.c left it
        draw = self._current
        draw.runs += 1
        found = RESULTS.unpack_from(now, RESULTS_AT)
        cs.count(COUNTS, found[:COUNTED])
        for statistics, threads, instructions, spent in zip(draw.statistics, found[COUNTED::3], found[COUNTED + 1 :: 3],
                                                            found[COUNTED + 2 :: 3], strict=True):  # fmt: skip
            if threads:
                counters.threads += threads
                counters.instructions += instructions
                statistics.add(threads, instructions, spent * NANOSECOND)
        if self._shared != NOTHING:
            self._add_shared(cs)
        if self._moves and draw.geometry.oversized:
            cs.warn(oversized(draw.geometry))
        if self._helped or not draw.settled:
            self._renew(cs, draw, found[COUNTED + 1 :: 3])
        if draw.plans.targets:
            cs.drawn(draw.plans.targets)

    def _add_shared(self, cs: CommandStreamer) -> None:
        for name, count in zip(PIXEL_COUNTS, self._shared, strict=True):
            if count:
                cs.add(name, count)
        self._shared = NOTHING

    def _renew(self, cs: CommandStreamer, draw: PreparedDraw, instructions: Sequence[int]) -> None:
        """After a draw whose threads needed Python, or whose code is not the best yet."""
        try:
            if self._helped:
                self._helped = False
                draw.follow(DrawState.of(cs))
                draw.renew()
            if not draw.settled and draw.ran(instructions):
                draw.follow(DrawState.of(cs))
                draw.look()
        except NotPrepared:
            self._forget(draw)

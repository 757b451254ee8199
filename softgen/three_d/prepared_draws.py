"""The prepared draws of a hardware context, and the draw under way: draw.c finds the plans for the state and runs the stages.

    if not draws.draw(cs, call): …        # this draw has to go through the stages' Python (draw.py)

Python is called for what threads need of it, for work that is worth several host threads, and for state that was not prepared yet.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, NamedTuple

from softgen.command import CommandStreamer, MarkedLatched
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.threads.scheduler import ReturnReason
from softgen.threads.worker import SLICE
from softgen.three_d import fill
from softgen.three_d.assembly import UNKNOWN
from softgen.three_d.chunk import VERTICES
from softgen.three_d.draw_structures import COUNTS, DrawReason, DrawStruct, Stage, function
from softgen.three_d.latched_state import NotPrepared
from softgen.three_d.pixel_shader import LOOP_PIXELS, TESTS, PixelLoop
from softgen.three_d.prepared import PreparedDraw
from softgen.three_d.state import DrawCall, DrawState
from softgen.three_d.unit_state import dispatch_context
from softgen.three_d.vertex_shader import PER_LOOP, VertexShader

if TYPE_CHECKING:
    from softgen.three_d.draw_plans import DrawPlans, PipelinePlans

MOST_DRAWS = 64  # kept
FRONT = 4  # draws that are found quickly: one further back comes first
CALL = struct.Struct("8I")  # the parameters of DrawStruct
RESULTS = struct.Struct(f"{len(COUNTS) + 6}Q")
RESULTS_AT = DrawStruct.counts.offset
PIXEL_COUNTS, NOTHING = ("PS_INVOCATION_COUNT", "PS_DEPTH_COUNT"), (0, 0)
FIND, DONE = int(Stage.FIND), int(DrawReason.DONE)  # plain numbers: every draw needs them
NANOSECOND, DWORD = 1e-9, 0xFFFFFFFF


class Ids(NamedTuple):
    """Where the vertices of a chunk have their IDs."""

    vertex_ids: int
    instance_ids: int


class PreparedDraws:
    """Draws of one context, one at a time."""

    def __init__(self, pipeline: PipelinePlans) -> None:
        self.pipeline, memory = pipeline, pipeline.memory
        self._draws: list[PreparedDraw] = []
        self._pointers = (ctypes.c_uint64 * MOST_DRAWS)()
        self._loop, self._record = PixelLoop(), guard.FaultRecord()
        self._now = DrawStruct(
            draws=ctypes.addressof(self._pointers), assembly=ctypes.addressof(pipeline.front.memory.state),
            records=ctypes.addressof(memory.array), binning=ctypes.addressof(memory.bins.binning), loop=ctypes.addressof(self._loop),
            slice=SLICE, share_vertices=PER_LOOP, share_pixels=LOOP_PIXELS, most_vertices=VERTICES,
        )  # fmt: skip
        self._address, self._call = ctypes.addressof(self._now), guard.library().guard_call
        self._function = function("draw_run")
        # What all of them were prepared for.
        self._latched: object = None
        self._space: object = None
        self._dispatcher: object = None
        self._bases: object = None
        self._slots = 0
        self._registers: dict[str, int] = {}
        self._shared = NOTHING  # PIXEL_COUNTS of work that was shared
        self._helped = False  # threads of the draw needed Python

    def draw(self, cs: CommandStreamer, call: DrawCall) -> bool:
        """Execute a draw; False: there is no prepared draw for its state, nor can there be one."""
        if not self._same_environment(cs) and not self._enter(cs):
            return False
        topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex = call[:7]
        CALL.pack_into(self._now, 0, topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex & DWORD, FIND)
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
            if bases != self._bases:
                return False
            self._bases = bases
        if latched.slots != self._slots:  # type: ignore[attr-defined]  # commands that were never met have places now
            return False
        for name, value in self._registers.items():
            if cs.get(name) != value:
                return False
        return True

    def _enter(self, cs: CommandStreamer) -> bool:
        """Forgets all draws; False where none can be prepared."""
        self._draws.clear()
        self._registers.clear()
        self._list()
        latched, dispatcher = cs.latched, cs.dispatcher
        if cs.generation.unit_state or type(cs.space) is not AddressSpace or not dispatcher.prepares:
            return False
        if not isinstance(latched, MarkedLatched):
            return False
        now = self._now
        now.latches, now.memory, now.host_threads = latched.address, ctypes.addressof(cs.space.table), dispatcher.threads
        self._latched, self._space, self._dispatcher, self._bases, self._slots = latched, cs.space, dispatcher, cs.bases, latched.slots
        return True

    def _list(self) -> None:
        for number, draw in enumerate(self._draws):
            self._pointers[number] = ctypes.addressof(draw.struct)
        self._now.draw_count = len(self._draws)

    def _forget(self, number: int) -> None:
        del self._draws[number]
        self._list()

    def _prepare(self, cs: CommandStreamer, call: DrawCall) -> DrawPlans | None:
        """Prepares a draw for the state; None where that cannot be."""
        state = DrawState.of(cs)
        self.pipeline.front.memory.topology = UNKNOWN  # prepared draws have left another
        plans = self.pipeline.plans.get(state)
        if not plans.prepares:
            return None
        try:
            made = PreparedDraw(self.pipeline, cs, state, call)
        except NotPrepared:
            plans.prepares = False
            return None
        self._draws.insert(0, made)
        del self._draws[MOST_DRAWS:]
        self._registers |= made.registers
        self._list()
        return plans

    # -- a draw ------------------------------------------------------------------------------------------------------------------

    def _go_on(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> bool:
        """After draw.c has returned to Python: until the draw is complete. False if it cannot be prepared."""
        now = self._now
        while why is None and now.stage == Stage.FIND and now.found < len(self._draws):  # memory of its state is no longer mapped
            self._forget(now.found)
            why = self._run()
        if now.stage == Stage.FIND:
            plans = self._prepare(cs, call)
            if plans is None:
                return False
            why = self._run()
            if now.stage == Stage.FIND:  # what was noted cannot be compared in C, or is written while the draw is prepared
                plans.prepares = False
                self._forget(0)
                return False
        try:
            while why != DrawReason.DONE:
                self._answer(cs, call, why)
                why = self._run()
        except BaseException:  # threads may have been left in the middle
            self._forget(now.found)
            raise
        return True

    def _answer(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> None:
        """Does what draw.c returned for."""
        stage, draw = self._now.stage, self._draws[self._now.found]
        loop = draw.loops.get({Stage.VERTICES: "VS", Stage.PIXELS: "PS"}.get(stage, ""))
        if why == DrawReason.MORE:
            if cs.timed_out():
                raise SoftgenError("time is up: 3DPRIMITIVE has more vertices")
        elif why == DrawReason.NO_CLIPPER:
            raise Unsupported(f"{cs.generation}: an object must be clipped by a CLIP thread, and there is none")
        elif why == DrawReason.SHARE:
            self._share(cs, call, draw)
        elif loop is None:
            self._answer_without_threads(cs, why)
        else:
            if why != ReturnReason.DEADLINE:
                self._helped = True
                draw.follow()
            try:
                loop.answer(dispatch_context(cs), why, lambda: self._timed_out(cs), self._record)
            except GpuFault as fault:
                if stage == Stage.PIXELS and self._loop.testing:
                    raise GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why) from None
                raise

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

    def _share(self, cs: CommandStreamer, call: DrawCall, draw: PreparedDraw) -> None:
        """The work of a stage on several host threads."""
        now, state, pipeline = self._now, DrawState.of(cs), self.pipeline
        if now.stage == Stage.VERTICES:
            plan, held = pipeline.front.plan(state), pipeline.front.memory.state
            shader = VertexShader(state, call, plan.shader, pipeline.front.fetch(state, call, plan))
            shader.run(cs, draw.chunk, Ids(held.vertex_ids, held.instance_ids))
            now.stage = Stage.CLIP
            return
        plans = pipeline.plans.get(state)
        plans.shader.load_constants(state)
        counts = plans.shader.draw(cs, pipeline.memory.array, pipeline.memory.bins.bins, plans.backend)
        self._shared = self._shared[0] + counts.invocations, self._shared[1] + counts.depth
        now.stage = Stage.BIN

    def _finish(self, cs: CommandStreamer) -> None:
        """Counts what the draw has done, and prepares for the next one."""
        now, pipeline, counters = self._now, self.pipeline, cs.counters
        pipeline.memory.user, pipeline.front.memory.topology = None, UNKNOWN  # others find their memory as draw.c left it
        number = now.found
        draw = self._draws[number]
        found = RESULTS.unpack_from(now, RESULTS_AT)
        vertex_threads, vertex_instructions, vertex_time, pixel_threads, pixel_instructions, pixel_time = found[-6:]
        cs.count(COUNTS, found[:-6])
        counters.threads += vertex_threads + pixel_threads
        counters.instructions += vertex_instructions + pixel_instructions
        if vertex_threads:
            draw.vertex_statistics.add(vertex_threads, vertex_instructions, vertex_time * NANOSECOND)
        if pixel_threads:
            draw.pixel_statistics.add(pixel_threads, pixel_instructions, pixel_time * NANOSECOND)
        if self._shared != NOTHING:
            self._add_shared(cs)
        if number >= FRONT:
            self._draws.insert(0, self._draws.pop(number))
            self._list()
        if self._helped or not draw.settled:
            self._renew(draw, vertex_instructions, pixel_instructions)
        if draw.plans.targets:
            cs.drawn(draw.plans.targets)

    def _add_shared(self, cs: CommandStreamer) -> None:
        for name, count in zip(PIXEL_COUNTS, self._shared, strict=True):
            if count:
                cs.add(name, count)
        self._shared = NOTHING

    def _renew(self, draw: PreparedDraw, vertex_instructions: int, pixel_instructions: int) -> None:
        """After a draw whose threads needed Python, or whose code is not the best yet."""
        try:
            if self._helped:
                self._helped = False
                draw.renew()
            if not draw.settled:
                draw.ran(vertex_instructions, pixel_instructions)
        except NotPrepared:
            self._draws.remove(draw)
            self._list()

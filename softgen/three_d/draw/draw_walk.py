"""DrawWalk: the draw under way. draw.c walks the stages of its record; Python answers where a stage returns to it.

    why = walk.find(call)                   # with the kept record for the state, which draw.c looks for
    found = walk.run(cs, call, record)      # with a record that was built for the draw
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer, ConstantUrbEntry
from softgen.errors import SoftgenError
from softgen.memory import guard
from softgen.threads.dispatch import DispatchContext
from softgen.threads.native.scheduler import WorkerPart, guard_function
from softgen.threads.workers.worker import SLICE
from softgen.three_d.draw.draw_structures import COUNTS, MOST_STAGES, DrawReason, DrawStruct, Phase, function
from softgen.three_d.draw.stage import Stage, ThreadedStage
from softgen.three_d.pixels.pixel_shader import LOOP_PIXELS
from softgen.three_d.state.state import DrawCall
from softgen.three_d.state.unit_state import dispatch_context
from softgen.three_d.vertices.chunk import VERTICES
from softgen.three_d.vertices.vertex_shader import PER_LOOP

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_plans import PipelinePlans
    from softgen.three_d.draw.draw_record import DrawRecord

CALL = struct.Struct("8I")  # the parameters of DrawStruct, and its phase
RESULTS = [struct.Struct(f"{len(COUNTS) + 1 + 3 * stages}Q") for stages in range(MOST_STAGES + 1)]  # by stages with threads
RESULTS_AT, COUNTED = DrawStruct.counts.offset, len(COUNTS)
WORKS = COUNTED + 1
FIND, BEGIN, WALK, DONE = int(Phase.FIND), int(Phase.BEGIN), int(Phase.WALK), int(DrawReason.DONE)  # plain numbers: every draw needs them
NANOSECOND = 1e-9
Results = tuple[int, ...]


class DrawWalk:
    """Draws of one context, one at a time."""

    def __init__(self, pipeline: PipelinePlans) -> None:
        self.pipeline, self.fault, self._running = pipeline, guard.FaultRecord(), (WorkerPart * 1)()
        self.struct = DrawStruct(assembly=ctypes.addressof(pipeline.front.memory.state), records=ctypes.addressof(pipeline.memory.array),
                                 slice=SLICE, share_vertices=PER_LOOP, share_pixels=LOOP_PIXELS, guard=guard_function(),
                                 most_vertices=VERTICES)  # fmt: skip
        self._address, self._call = ctypes.addressof(self.struct), guard.library().guard_call
        self._function = function("draw_run")
        self.cs: Any = None  # of the draw under way
        self.record: Any = None
        self.helped = False  # threads of the draw needed Python
        self.shared: Callable[[DrawRecord, ThreadedStage, int], None] = lambda record, stage, loops: None  # called after `share`

    # -- running ---------------------------------------------------------------------------------------------------------------------

    def find(self, call: DrawCall) -> int | None:
        """Walk the draw with the kept record for its state; why draw.c returned."""
        now, fault = self.struct, self.fault
        topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex = call[:7]
        base_vertex &= DWORD_MASK
        CALL.pack_into(now, 0, topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex, FIND)
        now.compared, fault.ip = 0, guard.NO_IP
        return None if self._call(self._function, self._address, fault) else int(fault.result)

    def run(self, cs: CommandStreamer, call: DrawCall, record: DrawRecord) -> Results:
        """Walk a draw to its end, with a record that is not looked for; what it has counted."""
        now, dispatcher = self.struct, cs.dispatcher
        self.enter(cs)
        now.memory, now.select = ctypes.addressof(cs.space.table), dispatcher.selection is not None
        now.found = record.address
        topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex = call[:7]
        base_vertex &= DWORD_MASK
        CALL.pack_into(now, 0, topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex, BEGIN)
        self.go_on(cs, record, self.resume())
        return self.results(len(record.counted))

    def call(self) -> DrawCall:
        """The draw under way, of a command that has all parameters."""
        now = self.struct
        return DrawCall(now.topology, bool(now.indexed), now.vertices, now.start_vertex, now.instances, now.start_instance,
                        ctypes.c_int32(now.base_vertex).value)  # fmt: skip

    def enter(self, cs: CommandStreamer) -> None:
        """Draws have so many host threads from now on."""
        if cs.dispatcher.threads != self.struct.host_threads:
            self._running = (WorkerPart * cs.dispatcher.threads)()
            self.struct.host_threads, self.struct.running = cs.dispatcher.threads, ctypes.addressof(self._running)

    def set_curbe(self, cs: CommandStreamer) -> None:
        curbe = cs.state(ConstantUrbEntry).data
        self.struct.curbe, self.struct.curbe_size = curbe, len(curbe or b"")

    def resume(self) -> int | None:
        """Why draw.c returned (DrawReason, or that of a worker); None: at an access to memory that is not mapped."""
        fault = self.fault
        fault.ip = guard.NO_IP
        return None if self._call(self._function, self._address, fault) else int(fault.result)

    def go_on(self, cs: CommandStreamer, record: DrawRecord, why: int | None) -> None:
        """After draw.c has returned: until the draw is complete."""
        self.cs, self.record = cs, record
        try:
            while why != DONE:
                self._answer(record.stages[self.struct.stage], why)
                why = self.resume()
        finally:
            self.cs = self.record = None

    def _answer(self, stage: Stage, why: int | None) -> None:
        if why == DrawReason.MORE:
            if self.cs.timed_out():
                raise SoftgenError("time is up: 3DPRIMITIVE has more vertices")
        else:
            stage.answer(self, why)

    def results(self, threaded: int) -> Results:
        """COUNTS, oversized objects, and the work of each stage with threads: their number, instructions, nanoseconds."""
        return RESULTS[threaded].unpack_from(self.struct, RESULTS_AT)

    # -- for stages ------------------------------------------------------------------------------------------------------------------

    @property
    def context(self) -> DispatchContext:
        """The environment of the threads."""
        return self.cs.dispatcher.watched(dispatch_context(self.cs))  # type: ignore[no-any-return]

    @property
    def running(self) -> list[WorkerPart]:
        """Loops of the stage under way that are not done."""
        return self._running[: self.struct.running_count]

    def needed_python(self) -> None:
        """Threads need Python: units look at state where it is now."""
        self.helped = True
        if self.record.keeper is not None:
            self.record.keeper.follow(self.cs)

    def share(self, stage: ThreadedStage) -> None:
        """Workers for the loops of the stage under way; those that other records were given first make room."""
        loops = int(self.struct.loops)
        stage.share(loops)
        if self.record.keeper is not None and stage.own:
            self.shared(self.record, stage, loops)

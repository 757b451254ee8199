"""DrawRecord: what a draw's state means to all of its stages, as the walk (draw.c) needs it.

    record = DrawRecord(pipeline, cs, state, call, plans, lease)
    walk.run(cs, record)

A record is built for one draw, and kept for others if its state can be compared in C (`keeper`, record_keeper.py): constants, addresses and
sizes of buffers are then copied into it before each draw. One that is not kept has the values of its draw.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any

from softgen.command import CommandStreamer
from softgen.eu.interpreter import KernelProgram
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.statistics import KernelStatistics
from softgen.three_d import stages
from softgen.three_d.clip_setup.geometry import Geometry
from softgen.three_d.clip_setup.geometry_h import SetupPlan
from softgen.three_d.draw.draw_structures import MOST_STAGES, RecordStruct, StageStruct, function
from softgen.three_d.draw.stage import Stage, ThreadedStage
from softgen.three_d.state.constants import push_constants
from softgen.three_d.state.latched_state import NotKept
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.unit_state import dispatch_context
from softgen.three_d.structures import ChunkStruct, ObjectArray, VertexArray
from softgen.three_d.vertices.chunk import Chunk
from softgen.three_d.vertices.front import FrontPlan
from softgen.three_d.vertices.vertex_fetch import FetchPlan

if TYPE_CHECKING:
    from softgen.threads.workers.kept_loop import KeptLoop, LoopLease
    from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans
    from softgen.three_d.draw.record_keeper import RecordKeeper

NO_STATISTICS = KernelStatistics(KernelProgram(0, b""), "")  # of stages whose threads have not been needed yet


class DrawRecord:
    """The stages of a draw, and what they need. `lease`: where loops over threads come from, unless it is kept."""

    def __init__(self, pipeline: PipelinePlans, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans,
                 lease: LoopLease | None, keeper: RecordKeeper | None = None,
                 rows: tuple[stages.StageRow, ...] | None = None) -> None:  # fmt: skip
        self.pipeline, self.state, self.call, self.plans, self.keeper, self._lease = pipeline, state, call, plans, keeper, lease
        self.cs: Any = cs
        self.context = cs.dispatcher.watched(dispatch_context(cs))
        self.runs = 0
        self.sized: dict[tuple[int, int], SetupPlan] = {}  # of one that follows surfaces, for sizes of render targets
        self._held: list[object] = []  # memory that C points to
        self.struct = RecordStruct(topology=call.topology, indexed=call.indexed)
        self.last_chunk = ChunkStruct()  # what the last stage that was built puts out
        self.patches: Any = None  # PatchArray that HS fills; None: there are no patches
        self.points: Any = None  # DomainChunk that TE fills
        self.array, self.stages = (StageStruct * MOST_STAGES)(), list[Stage]()
        for row in rows if rows is not None else stages.rows(state.generation):
            self._add(stage := row.stage())
            if stage.ends:
                break
        self.struct.stages, self.struct.stage_count = ctypes.addressof(self.array), len(self.stages)
        self.cs = None  # which may be another one's later
        self.reporting = [stage for stage in self.stages if stage.reports]
        self.struct.reports = bool(self.reporting)
        # The stages that count the work of their threads, in order.
        self.threaded = [stage for stage in self.stages if isinstance(stage, ThreadedStage) and stage.into.threaded]
        self.count()

    def _add(self, stage: Stage) -> None:
        into = self.array[len(self.stages)]
        if stage.build(self, into):
            into.run = function(stage.run)
            self.stages.append(stage)

    # What several stages have in common

    @cached_property
    def front(self) -> FrontPlan:
        return self.pipeline.front.plan(self.state)

    @cached_property
    def fetch(self) -> FetchPlan:
        return self.pipeline.front.fetch(self.state, self.call, self.front)

    @cached_property
    def chunk(self) -> Chunk:
        return self.pipeline.front.chunk(self.fetch.entry_bytes)

    @cached_property
    def geometry(self) -> Geometry:
        return Geometry(self.plans.geometry, self.pipeline.memory)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    @property
    def loops(self) -> list[KeptLoop]:
        return [stage.kept for stage in self.threaded if stage.kept is not None]

    def count(self) -> None:
        """Takes note of whose threads are counted: of each stage of `threaded`, what its kernel has done."""
        self.counted = [stage.kept.statistics or NO_STATISTICS if stage.kept is not None else NO_STATISTICS for stage in self.threaded]

    # -- for stages ------------------------------------------------------------------------------------------------------------------

    def hold(self, memory: Any) -> int:
        """Keep a structure or an array as long as the record; its address."""
        self._held.append(memory)
        return ctypes.addressof(memory)

    def not_kept(self, why: str) -> None:
        """The stage has something that C cannot compare or copy."""
        if self.keeper is not None:
            raise NotKept(why)

    def put_out(self, vertices: VertexArray, objects: ObjectArray, urb: UrbMemory) -> ChunkStruct:
        """The arrays that a stage puts out, and the URB that has the entries."""
        self.last_chunk, self.last_urb = ChunkStruct(ctypes.addressof(vertices), ctypes.addressof(objects)), urb
        return self.last_chunk

    def constants(self, stage: str) -> tuple[int, int]:
        """Address and size of a stage's constants."""
        if self.keeper is not None:
            return self.keeper.push_constants(stage)
        data = push_constants(self.state, stage)
        held = (ctypes.c_uint8 * max(len(data), 1)).from_buffer_copy(data or b"\0")
        return self.hold(held), len(data)

    def start(self, stage: ThreadedStage, dispatch: ThreadDispatch, header: int, context: DispatchContext | None = None) -> KeptLoop:
        """A loop over threads; `context`: the environment of one that is needed after the record was built."""
        context = context or self.context
        if self.keeper is not None:
            return self.keeper.start(stage, context, dispatch, header)
        assert self._lease is not None, "a record has loops of its own, or leases them"
        return self._lease.loop(context, dispatch)

"""A draw: its stages in order, over one chunk of vertices after another.

In:  a DrawCall and the state it sees. Out: memory changed; statistics registers.
"""

from __future__ import annotations

from softgen.command import CommandStreamer
from softgen.three_d.clip_setup.geometry import oversized
from softgen.three_d.draw.draw_names import DrawNames
from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans
from softgen.three_d.draw.prepared_draws import PreparedDraws
from softgen.three_d.pixels import fill
from softgen.three_d.stage_threads.clip_threads import ClipThreads
from softgen.three_d.stage_threads.geometry_threads import GeometryThreads
from softgen.three_d.stage_threads.setup_threads import SetupThreads
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.vertices.assembly import UNKNOWN

Statistics = dict[str, int]  # by the name of a register


class Pipeline3D(PipelinePlans):
    """The 3D pipeline of a hardware context."""

    def __init__(self) -> None:
        super().__init__()
        self.thread_counts: Statistics = {}  # of stages whose work threads do, in the last draw
        self.prepared = PreparedDraws(self)

    def __deepcopy__(self, memo: object) -> Pipeline3D:
        """A copy of a context has a pipeline of its own; nothing in it is state."""
        return Pipeline3D()

    def draw(self, cs: CommandStreamer, call: DrawCall) -> None:
        """Execute a draw to its end."""
        if not self.prepared.draw(cs, call):
            self.draw_unprepared(cs, call)

    def draw_unprepared(self, cs: CommandStreamer, call: DrawCall) -> None:
        """The same without a prepared draw, stage by stage."""
        state = DrawState.of(cs)
        self.front.memory.topology = UNKNOWN
        self.check(state, call)
        plans = self.plans.get(state)
        if plans.resolve:
            return
        names = DrawNames(cs.counters.draws - cs.earlier_draws, state, call, plans.target)
        statistics = cs.dispatcher.whole(cs.space, lambda: self._draw(cs, state, call, plans), names)
        for register, count in statistics.items():
            if count:
                cs.add(register, count)
        if plans.targets:
            cs.drawn(plans.targets)

    def _draw(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> Statistics:
        geometry = plans.geometry
        geometry.begin()
        geometry.clipper = ClipThreads(cs, state).clip if state.generation.unit_state else None
        self.thread_counts = {}
        shaded = depth = 0
        if plans.clear is not None:
            self._fill(cs, state, call, plans)
        else:
            shaded, depth = self._shade(cs, state, call, plans)
        front = self.front.counts
        return {**self.thread_counts, "PS_INVOCATION_COUNT": shaded, "PS_DEPTH_COUNT": depth, "IA_VERTICES_COUNT": front.ia_vertices,
                "IA_PRIMITIVES_COUNT": front.ia_primitives, "VS_INVOCATION_COUNT": front.vs_invocations,
                "CL_INVOCATION_COUNT": geometry.invocations + self.thread_counts.get("CL_INVOCATION_COUNT", 0),
                "CL_PRIMITIVES_COUNT": geometry.primitives}  # fmt: skip

    def _fill(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> None:
        """Clear the rectangles of the draw."""
        assert plans.clear is not None
        for chunk in self.front.chunks(cs, state, call):
            for piece in plans.geometry.pieces(chunk):
                if piece.new:
                    fill.fill(state.space, plans.clear, piece.records)

    def _shade(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> tuple[int, int]:
        """Shade the pixels of the draw: what PS_INVOCATION_COUNT and PS_DEPTH_COUNT grow by."""
        shader, targets, shaded, depth = plans.shader, plans.backend, 0, 0
        shader.load_constants(state)
        by_threads = state.generation.unit_state
        objects, setup = (GeometryThreads(cs, state, call), SetupThreads(state)) if by_threads else (None, None)
        for chunk in self.front.chunks(cs, state, call):
            for piece in plans.geometry.pieces(objects.run(chunk) if objects is not None else chunk):
                if setup is not None and piece.new:
                    setup.run(cs, piece)
                counts = shader.draw(cs, piece.records, piece.bins, targets)
                shaded += counts.invocations
                depth += counts.depth
        self.thread_counts = objects.statistics if objects is not None else {}
        if by_threads and plans.geometry.struct.oversized:
            state.warn(oversized(plans.geometry.struct))
        return shaded, depth

"""A draw: its stages in order, over one chunk of vertices after another.

In:  a DrawCall and the state it sees. Out: memory changed; statistics registers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.shared_functions import pixel_backend
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.pixel_backend.functions import early_depth
from softgen.surface.image import SurfaceImage
from softgen.three_d import clears, fill, stages
from softgen.three_d.assembly import UNKNOWN
from softgen.three_d.clip_threads import ClipThreads
from softgen.three_d.color_calculator import color_calculator
from softgen.three_d.front import Front
from softgen.three_d.geometry import Geometry, GeometryMemory
from softgen.three_d.geometry_threads import geometry_threads
from softgen.three_d.pixel_shader import PixelShader, PixelTargets
from softgen.three_d.plan_cache import PlanCache
from softgen.three_d.prepared_draws import PreparedDraws
from softgen.three_d.setup_threads import SetupThreads
from softgen.three_d.state import DrawCall, DrawState
from softgen.three_d.unit_state import binding_table

LARGEST = 16384  # pixels of a side, where no surface limits a draw
MOST_PLANS = 16  # kept
Statistics = dict[str, int]  # by the name of a register


class DrawPlans:
    """What a draw's state means to its stages after the front, without the values of constants."""

    def __init__(self, state: DrawState, memory: GeometryMemory) -> None:
        stages.refuse_missing(state)
        self.prepares = False  # a draw can be prepared (prepared.py)
        self.resolve = clears.is_resolve(state)
        if self.resolve:
            return
        self.target = render_target(state)
        self.targets = [] if self.target is None else [self.target]
        self.geometry = Geometry(state, memory, extent(self.target))
        self.clear = clears.rectangle_clear(state)
        self.prepares = self.clear is None
        if self.clear is None:
            self.shader = PixelShader()
            shaded = self.shader.make_plan(state).dispatched
            self.backend = pixel_targets(state, shaded)


def pixel_targets(state: DrawState, shaded: bool) -> PixelTargets:
    """What the pixel backend does in a draw; without pixel shader threads, no write comes late with depth and stencil tests."""
    colors = color_calculator(state)
    targets = PixelTargets(((pixel_backend.NAME, colors.backend),), late=colors.late and shaded)
    before = colors.early if shaded else colors.early or colors.backend.late
    if before is None or before.state.idle:
        return targets
    tests = early_depth(before, state.space.bits)
    return replace(targets, depth_function=tests.function, depth_target=tests.target, owner=tests)


class Pipeline3D:
    """The 3D pipeline of a hardware context: memory and plans that its draws use one after another."""

    def __init__(self) -> None:
        self.front, self.memory = Front(), GeometryMemory()
        self.plans = PlanCache(partial(DrawPlans, memory=self.memory), MOST_PLANS)
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
        plans = self.plans.get(state)
        if plans.resolve:
            return
        statistics = cs.dispatcher.whole(cs.space, lambda: self._draw(cs, state, call, plans))
        for register, count in statistics.items():
            if count:
                cs.add(register, count)
        if plans.targets:
            cs.drawn(plans.targets)

    def _draw(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> Statistics:
        geometry = plans.geometry
        geometry.begin()
        geometry.clipper = ClipThreads(cs, state).clip if state.generation.unit_state else None
        shaded = depth = 0
        if plans.clear is not None:
            self._fill(cs, state, call, plans)
        else:
            shaded, depth = self._shade(cs, state, call, plans)
        front = self.front.counts
        return {"PS_INVOCATION_COUNT": shaded, "PS_DEPTH_COUNT": depth, "IA_VERTICES_COUNT": front.ia_vertices,
                "IA_PRIMITIVES_COUNT": front.ia_primitives, "VS_INVOCATION_COUNT": front.vs_invocations,
                "CL_INVOCATION_COUNT": geometry.invocations, "CL_PRIMITIVES_COUNT": geometry.primitives}  # fmt: skip

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
        unit_state = state.generation.unit_state
        setup = SetupThreads(state) if unit_state else None
        for chunk in self.front.chunks(cs, state, call):
            for piece in plans.geometry.pieces(geometry_threads(cs, state, call, chunk) if unit_state else chunk):
                if setup is not None and piece.new:
                    setup.run(cs, piece)
                counts = shader.draw(cs, piece.records, piece.bins, targets)
                shaded += counts.invocations
                depth += counts.depth
        return shaded, depth


def render_target(state: DrawState) -> SurfaceImage | None:
    """The level of the first render target; its size bounds the draw, if it is a null surface, too (KBL 18917-18934)."""
    try:
        surfaces = Surfaces(state.generation, state.table_space("PS"), state.bases, binding_table(state, "PS"))
        image = surfaces.picture(0, False)
    except SoftgenError:
        return None  # the message that uses it says what is wrong
    return replace(image, base=state.address("", image.base), level=image.levels - 1, levels=1)


def extent(target: SurfaceImage | None) -> tuple[int, int]:
    """Pixels that a draw may cover."""
    if target is None or target.kind in ("null", "buffer"):
        return LARGEST, LARGEST
    _, _, width, height = target.level_box(target.level)
    return width, height

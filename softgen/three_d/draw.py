"""A draw: its stages in order, over one chunk of vertices after another.

In:  a DrawCall and the state it sees. Out: memory changed; statistics registers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.shared_functions import pixel_backend
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.pixel_backend.functions import early_depth
from softgen.surface.image import SurfaceImage
from softgen.three_d import clears, fill, stages
from softgen.three_d.clip_threads import ClipThreads
from softgen.three_d.color_calculator import color_calculator
from softgen.three_d.front import Front
from softgen.three_d.geometry import Geometry, GeometryMemory
from softgen.three_d.geometry_threads import geometry_threads
from softgen.three_d.pixel_shader import PixelShader, PixelTargets
from softgen.three_d.setup_threads import SetupThreads
from softgen.three_d.state import DrawCall, DrawState
from softgen.three_d.unit_state import binding_table

LARGEST = 16384  # pixels of a side, where no surface limits a draw
Statistics = Counter[str]  # by the name of a register


class Pipeline3D:
    """The 3D pipeline of a hardware context: memory and plans that its draws use one after another."""

    def __init__(self) -> None:
        self.front, self.memory, self.shader = Front(), GeometryMemory(), PixelShader()

    def __deepcopy__(self, memo: object) -> Pipeline3D:
        """A copy of a context has a pipeline of its own; nothing in it is state."""
        return Pipeline3D()

    def draw(self, cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        """Execute a draw to its end."""
        stages.refuse_missing(state)
        if clears.is_resolve(state):
            return
        target = render_target(state)
        statistics = cs.dispatcher.whole(cs.space, lambda: self._draw(cs, state, call, target))
        for register, count in statistics.items():
            cs.add(register, count)
        if target is not None:
            cs.drawn([target])

    def _draw(self, cs: CommandStreamer, state: DrawState, call: DrawCall, target: SurfaceImage | None) -> Statistics:
        clipper = ClipThreads(cs, state).clip if state.generation.unit_state else None
        geometry = Geometry(state, self.memory, extent(target), clipper)
        statistics: Statistics = Counter()
        if (plan := clears.rectangle_clear(state)) is not None:
            for chunk in self.front.chunks(cs, state, call):
                for piece in geometry.pieces(chunk):
                    fill.fill(state.space, plan, piece.records)
        else:
            self._shade(cs, state, call, geometry, statistics)
        front = self.front.counts
        statistics.update(IA_VERTICES_COUNT=front.ia_vertices, IA_PRIMITIVES_COUNT=front.ia_primitives,
                          VS_INVOCATION_COUNT=front.vs_invocations, CL_INVOCATION_COUNT=geometry.invocations,
                          CL_PRIMITIVES_COUNT=geometry.primitives)  # fmt: skip
        return +statistics

    def _shade(self, cs: CommandStreamer, state: DrawState, call: DrawCall, geometry: Geometry, statistics: Statistics) -> None:
        self.shader.prepare(state)
        colors = color_calculator(state)
        targets = PixelTargets(((pixel_backend.NAME, colors.backend),), late=colors.late)
        if colors.early is not None:
            tests = early_depth(colors.early, state.space.bits)
            targets = replace(targets, depth_function=tests.function, depth_target=tests.target, owner=tests)
        setup = SetupThreads(state) if state.generation.unit_state else None
        for chunk in self.front.chunks(cs, state, call):
            for piece in geometry.pieces(geometry_threads(cs, state, call, chunk)):
                if setup is not None:
                    setup.run(cs, piece)
                counts = self.shader.draw(cs, piece.records, piece.bins, targets)
                statistics.update(PS_INVOCATION_COUNT=counts.invocations, PS_DEPTH_COUNT=counts.depth)


def render_target(state: DrawState) -> SurfaceImage | None:
    """The level of the first render target; its size bounds the draw, if it is a null surface, too (KBL 18917-18934)."""
    try:
        surfaces = Surfaces(state.generation, state.space, state.bases, binding_table(state, "PS"))
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

"""The plans of a draw: what its state means to the stages after the front, kept from draw to draw."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from softgen.eu import native
from softgen.shared_functions import pixel_backend
from softgen.shared_functions.pixel_backend import DepthTarget
from softgen.shared_functions.pixel_backend.functions import HeldDepth, early_depth
from softgen.shared_functions.texture_tables import texture_tables
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.surface.image import SurfaceImage
from softgen.three_d.clip_setup.clip import plan as clip_plan
from softgen.three_d.clip_setup.clip import rejects_all
from softgen.three_d.clip_setup.geometry import GeometryMemory
from softgen.three_d.pixels import clears
from softgen.three_d.pixels.color_calculator import ColorCalculator, color_calculator, depth_target
from softgen.three_d.pixels.pixel_shader import PixelLoop, PixelShader
from softgen.three_d.pixels.pixel_targets import PixelTargets
from softgen.three_d.pixels.rasterizer import check_topology, draws_nothing
from softgen.three_d.pixels.render_target import extent, render_target
from softgen.three_d.rules.command_rules import check_order
from softgen.three_d.rules.constant_rules import check_allocated
from softgen.three_d.rules.software_rules import check_state
from softgen.three_d.rules.state_rules import check_commands
from softgen.three_d.rules.urb_fences import FencedEntries
from softgen.three_d.stage_threads.stage_threads import ThreadStage
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.stream_out.stream_output import stops
from softgen.three_d.tessellation.patch_plans import PatchPlans
from softgen.three_d.vertices.front import Front

MOST_PLANS = 16  # kept
NO_EXTENT = 1, 1  # pixels of a draw that reaches none


ColorCalculators = Callable[[DrawState, bool], ColorCalculator]  # with pixel shader threads or without


class DrawPlans:
    """What a draw's state means to its stages after the front, without the values of constants."""

    def __init__(self, state: DrawState, memory: GeometryMemory, colors: ColorCalculators) -> None:
        self._colors = colors
        self.keeps = True  # records of it can be kept (record_keeper.py)
        self.targets: list[SurfaceImage] = []
        self.target: SurfaceImage | None = None
        self.resolve = not (ends := stops(state)) and clears.is_resolve(state)
        if ends:  # the state of units after stream output may be anything
            return
        if self.resolve:
            check_commands(state)
            return
        target = render_target(state)
        check_state(state, target)
        check_commands(state)
        self.clear = clears.rectangle_clear(state)
        self.draws_nothing = self.clear is not None or rejects_all(clip_plan(state)) or draws_nothing(state)  # by pixels' tests and threads
        self.extent = extent(target) if self.clear is not None else NO_EXTENT
        shaded = False
        if not self.draws_nothing:
            shaded, self.extent = self._plan_pixels(state, target)
        self.target = target if self.clear is not None or shaded else None
        self.targets = [] if self.target is None else [self.target]
        self.geometry = memory.plans.get(state, self.extent, shaded)

    def _plan_pixels(self, state: DrawState, target: SurfaceImage | None) -> tuple[bool, tuple[int, int]]:
        """Plan pixel shader, tests and render targets: whether there are threads, and how many pixels the draw may cover."""
        self.shader = PixelShader(state)
        pixels = self.shader.state
        self.backend = pixel_targets(state, pixels.dispatched, pixels.parts.held_depth or pixels.parts.held_stencil, self._colors)
        return pixels.dispatched, extent(target) if pixels.dispatched else tested_extent(self._colors(state, False).early)


def pixel_targets(state: DrawState, shaded: bool, held: bool = False, calculate: ColorCalculators = color_calculator) -> PixelTargets:
    """What the pixel backend does in a draw; without pixel shader threads, no write comes late with depth and stencil tests. `held`:
    payloads have what depth and stencil buffers hold."""
    colors = calculate(state, shaded)
    targets = PixelTargets(((pixel_backend.NAME, colors.backend), *texture_tables(state.latched)), late=colors.late)
    if held and shaded:
        reader = HeldDepth(colors.early or colors.backend.late or depth_target(state), state.space.bits)
        targets = replace(targets, held_function=reader.function, held_target=reader.target, owner=reader)
    if colors.early is None:
        return targets
    tests = early_depth(colors.early, state.space.bits)
    return replace(targets, depth_function=tests.function, depth_target=tests.target, owner=(tests, targets.owner))


def tested_extent(tests: DepthTarget | None) -> tuple[int, int]:
    """Pixels that a draw may cover which only tests depth and stencil."""
    return (tests.depth.width, tests.depth.height) if tests is not None else extent(None)


class PipelinePlans:
    """Memory and plans that the draws of a hardware context use one after another. `stipple`: its Line Stipple Counter."""

    def __init__(self, stipple: ctypes.c_uint32 | None = None) -> None:
        self.front, self.memory = Front(), GeometryMemory(stipple=stipple)
        self.primitives: dict[tuple[int, str], UrbMemory] = {}  # primitive URB entries by their size: as written, as read
        self.thread_stages = PlanCache(ThreadStage, MOST_PLANS)
        self.tessellation = PatchPlans()
        self.pixel_loop = native.on_own_lines(PixelLoop)
        self.fenced, self._marks = FencedEntries(), b""  # of state at the last draw that was looked at here
        self._bases: Mapping[str, int] = {}
        self.colors = PlanCache(color_calculator, MOST_PLANS)
        self.plans = PlanCache(partial(DrawPlans, memory=self.memory, colors=self.colors.get), MOST_PLANS)

    def check(self, state: DrawState, call: DrawCall) -> None:
        """Refuse what is not built of a draw, and warn of what changed since another one. Draws with a kept record were looked at when it
        was built, with the same state."""
        check_topology(state, call.topology)
        check_allocated(state, self._marks)
        self.check_bases(state, call)
        self._marks = state.marks
        self.fenced.check(state)

    def check_bases(self, state: DrawState, call: DrawCall) -> None:
        """Warn of what does not follow bases that have changed since another draw; kept records do."""
        check_order(state, call, self._marks, self._bases)
        self._bases = state.bases

"""Pixel shader: starts a thread for each covered block of pixels (pixel_shader.c), and counts.

    shader = PixelShader(state)             # kept with the plans of a draw
    shader.state.late, shader.state.dispatched

PixelStage is the stage of a draw.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from softgen.bits.units import GRF_BYTES
from softgen.errors import GpuFault, SoftgenError
from softgen.eu.thread.block import BLOCK_OFFSETS, Context
from softgen.memory import guard
from softgen.shared_functions.pixel_interpolator import NAME as INTERPOLATOR
from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import UNITS, Scratch, ThreadDispatch
from softgen.threads.payload import LoopPayload, WrittenMasks
from softgen.three_d import structures
from softgen.three_d.draw.draw_structures import StageStruct, function
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage, WalkedDraw
from softgen.three_d.pixels.one_color import OneColor, one_color, writes_one_color
from softgen.three_d.pixels.pixel_payload import PayloadPlan, place_parts, undefined_pixels
from softgen.three_d.pixels.pixel_state import PixelState, pixel_inputs, pixel_state
from softgen.three_d.pixels.pixel_targets import PixelTargets
from softgen.three_d.pixels.rasterizer import RasterPlan, raster_plan
from softgen.three_d.samples.sample_plan import MOST_SAMPLES
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import StageLoop
from softgen.three_d.three_d_h import PixelBlock

BATCH = 64  # threads
MIN_BATCH, SHARED_BATCH = 2, 16  # that a block may need; at least, where loops share scratch space
TILE_BLOCKS, BLOCK_PIXELS = 256, 16
LOOP_PIXELS = 1 << 14  # of bounding boxes that are worth another host thread
TESTS = "early depth and stencil tests"
FILLS = "render target writes of a rectangle of one colour"


class PixelPlan(ctypes.Structure):
    """struct pixel_plan of pixels.h."""

    _fields_ = [("raster", RasterPlan), ("payload", PayloadPlan), ("depth", ctypes.c_uint64), ("depth_target", ctypes.c_uint64),
                ("held", ctypes.c_uint64), ("held_target", ctypes.c_uint64), ("late", ctypes.c_uint32), ("sideband", ctypes.c_uint32),
                ("generic", ctypes.c_uint32), ("interpolated", ctypes.c_uint32)]  # fmt: skip


class PixelLoop(ctypes.Structure):
    """struct pixel_loop of pixels.h."""

    _fields_ = [
        ("head", StageLoop), ("plan", ctypes.c_uint64), ("records", ctypes.c_uint64), ("bins", ctypes.c_uint64),
        ("next_tile", ctypes.c_uint64), ("context", ctypes.c_uint64),
        ("tile", ctypes.c_uint64), ("entry", ctypes.c_uint32), ("last_entry", ctypes.c_uint32), ("block", ctypes.c_uint32),
        ("block_count", ctypes.c_uint32), ("visits", ctypes.c_uint32), ("testing", ctypes.c_uint32),
        ("part", ctypes.c_uint32), ("parts", ctypes.c_uint32), ("batch", ctypes.c_uint32), ("open", ctypes.c_uint32),
        ("deadline", ctypes.c_uint64),
        ("used", ctypes.c_uint64 * (TILE_BLOCKS // 64)), ("masks", ctypes.c_uint32 * BATCH),
        ("blocks", PixelBlock * TILE_BLOCKS), ("samples", (ctypes.c_uint16 * MOST_SAMPLES) * TILE_BLOCKS),
        ("sample_lit", ctypes.c_uint16 * MOST_SAMPLES), ("sample_step", ctypes.c_float * MOST_SAMPLES),
        ("block_z", ctypes.c_float * BLOCK_PIXELS),
        *((name, ctypes.c_uint64) for name in ("started", "threads", "covered", "lit", "passed")),
    ]  # fmt: skip


class PixelStagePlan(ctypes.Structure):
    """struct pixel_stage of pixels.h."""

    _fields_ = [("plan", ctypes.c_uint64), ("bins", ctypes.c_uint64), ("context", ctypes.c_uint64), ("one_color", ctypes.c_uint64),
                *((name, ctypes.c_uint32) for name in ("counts", "counts_covered", "per_pixel", "reserved"))]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """The C functions of the stages, with the structures of pixels.h checked."""
    found = structures.library()
    ours = [*(ctypes.sizeof(kind) for kind in (RasterPlan, PayloadPlan, PixelPlan, PixelLoop, PixelStagePlan)), PixelLoop.started.offset,
            ctypes.sizeof(OneColor)]  # fmt: skip
    theirs = (ctypes.c_uint64 * len(ours))()
    found.pixels_layout(theirs)
    if list(theirs) != ours:
        raise SoftgenError("softgen.three_d._pipeline is of another version; build it again with `python setup.py build_ext --inplace`")
    return found


class PixelShader:
    """The plan of a draw's pixel shader, and the record of its threads."""

    def __init__(self, state: DrawState) -> None:
        inputs = pixel_inputs(state)
        self.state: PixelState = pixel_state(state, inputs)
        self.plan = PixelPlan(sideband=BLOCK_OFFSETS["pixel"])
        self.plan.raster = raster_plan(state, inputs.windower)
        self._placed: tuple[object, ...] = ()
        self._dispatched: tuple[tuple[object, ...], ThreadDispatch] | None = None

    def placed(self, constants: tuple[int, int], attribute_stride: int, targets: PixelTargets) -> PixelPlan:
        """The plan for constants at an address, of some size, and records with attributes of some size."""
        plan, pixels = self.plan, self.state
        plan.late, plan.depth, plan.depth_target = targets.late, targets.depth_function, targets.depth_target
        plan.held, plan.held_target, plan.interpolated = targets.held_function, targets.held_target, pixels.interpolated
        if pixels.dispatched:
            setup_bytes = attribute_stride if pixels.setup_bytes is None else pixels.setup_bytes
            wanted = pixels.parts, constants[1], setup_bytes if pixels.attributes else 0
            if wanted != self._placed:
                plan.payload = place_parts(*wanted)
                self._placed = wanted
            plan.payload.constant_data = constants[0]
        return plan

    def dispatch(self, targets: PixelTargets, host_threads: int, system_routine: int | None) -> ThreadDispatch:
        """The record of the threads of a loop, or of tests without threads; that of the draw before if nothing has changed."""
        pixels, registers = self.state, self.plan.payload.size // GRF_BYTES
        capacity = _capacity(pixels.scratch, host_threads)
        wanted = targets.unit_states, capacity, registers, system_routine
        if self._dispatched is None or wanted != self._dispatched[0]:
            names = (name for name, _ in targets.unit_states)
            units = tuple(dict.fromkeys((*UNITS, *names, *((INTERPOLATOR,) if pixels.interpolated else ()))))
            made = ThreadDispatch(pixels.kernel, pixels.control, pixels.parts.width, capacity, 0, LoopPayload(registers), WrittenMasks(),
                                  binding_table=pixels.binding_table, samplers=pixels.samplers, scratch=pixels.scratch, units=units,
                                  system_routine=system_routine, unit_states=targets.unit_states,
                                  thread_state=pixels.thread_state, stage="ps")  # fmt: skip
            self._dispatched = wanted, made
        return self._dispatched[1]


def _capacity(scratch: Scratch | None, host_threads: int) -> int:
    """Threads of a loop's batch: those that run at the same time have scratch space of their own, which loops share out."""
    if scratch is None:
        return BATCH
    return min(BATCH, max(scratch.threads // host_threads, min(SHARED_BATCH, scratch.threads), MIN_BATCH))


class PixelStage(ThreadedStage):
    """Pixels of the records in bins: tested, and shaded."""

    name, run, function = "PS", "stage_pixels", "shade_tiles"
    _one_color: OneColor | None = None

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        plans, keeper, generation = record.plans, record.keeper, record.state.generation
        if plans.draws_nothing:
            return False
        library()
        shader, pixels, loop = plans.shader, plans.shader.state, record.pipeline.pixel_loop
        constants = record.constants("PS") if pixels.push_constants and pixels.dispatched else (0, 0)
        self._backend: PixelTargets = plans.backend
        plan = shader.placed(constants, record.geometry.attribute_stride, plans.backend)
        plan = self._plan = PixelPlan.from_buffer_copy(plan) if keeper is not None else plan
        header = ctypes.addressof(plan) + PixelPlan.payload.offset + PayloadPlan.header.offset
        dispatch = shader.dispatch(plans.backend, record.cs.dispatcher.threads, record.cs.system_routine)
        self._stage_plan = PixelStagePlan(
            ctypes.addressof(plan), ctypes.addressof(record.pipeline.memory.bins.bins), 0, 0, pixels.statistics,
            generation.counts_tested_pixels, generation.ps_invocations_per_pixel)  # fmt: skip
        into.plan = ctypes.addressof(self._stage_plan)
        if pixels.dispatched:
            self.start(record, into, dispatch, loop, header, undefined=lambda: undefined_pixels(plan.payload))
            if record.cs.dispatcher.fills and self.kept is not None and writes_one_color(self.kept.program, plan.payload):
                self._one_color = one_color(record.state, plan.raster, plans.backend)
                self._stage_plan.one_color = ctypes.addressof(self._one_color)
            return True
        self._loop, self._bound = loop, BoundUnits(record.context, dispatch)
        self._context = Context(**self._bound.fields())
        self._stage_plan.context = ctypes.addressof(self._context)
        into.loop, into.function = ctypes.addressof(loop), function(self.function)
        if keeper is not None:
            keeper.bind("PS", self._bound, dispatch, header)
        return True

    def draw_to(self, state: DrawState) -> None:
        """The render target is another one of the same kind."""
        if self._one_color is not None:
            made = one_color(state, self._plan.raster, self._backend)
            ctypes.memmove(ctypes.addressof(self._one_color), ctypes.addressof(made), ctypes.sizeof(made))

    # -- answers ---------------------------------------------------------------------------------------------------------------------

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why is None and self._one_color is not None and self._one_color.filling:
            self._one_color.filling = walk.fault.ip = 0  # no instruction's
            raise guard.fault(walk.fault, walk.cs.space, lambda ip: FILLS)
        if self.kept is not None:
            super().answer(walk, why)
        elif why is None:  # tests without threads return for this, or the deadline
            walk.fault.ip = 0  # no instruction's
            raise guard.fault(walk.fault, walk.cs.space, lambda ip: TESTS)
        elif walk.cs.timed_out():
            raise SoftgenError(f"time is up: {TESTS}, tile {self._loop.tile}")

    def timed_out(self, walk: WalkedDraw) -> bool:
        late = walk.cs.timed_out()
        if late and not self._loop.started:  # there is no thread to name
            raise SoftgenError(f"time is up: pixel shader, tile {self._loop.tile}, no thread started")
        return bool(late)

    def explained(self, fault: GpuFault, loops: Sequence[Any]) -> GpuFault:
        if any(loop.testing for loop in loops):
            return GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why)
        return fault

"""Pixel shader: starts a thread for each covered block of pixels (pixel_shader.c), and counts.

    shader = PixelShader()                                # kept with the context: plans last from one draw to the next
    pixels = shader.prepare(state)                        # PixelState: pixels.late, pixels.dispatched
    counts = shader.draw(cs, records, bins, targets)      # for each piece of the draw
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.errors import GpuFault, SoftgenError
from softgen.eu import native
from softgen.eu.thread.block import BLOCK_OFFSETS, Context
from softgen.memory import guard
from softgen.shared_functions.pixel_interpolator import NAME as INTERPOLATOR
from softgen.shared_functions.unit import UnitStates
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import UNITS, NativeLoop, ThreadDispatch
from softgen.threads.payload import LoopPayload, WrittenMasks
from softgen.three_d import structures
from softgen.three_d.clip_setup.bins import SelectedBins
from softgen.three_d.pixels import rasterizer
from softgen.three_d.pixels.pixel_payload import PayloadPlan, place_parts
from softgen.three_d.pixels.pixel_state import PixelInputs, PixelState, pixel_inputs, pixel_state
from softgen.three_d.pixels.rasterizer import PixelBlock, RasterPlan, raster_plan
from softgen.three_d.state.constants import push_constants
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import dispatch_context
from softgen.three_d.structures import Bins, RecordArray

BATCH = 64  # threads
MIN_BATCH = 2  # that a block may need
TILE_BLOCKS = 256
LOOP_PIXELS = 1 << 14  # of bounding boxes that are worth another host thread
TESTS = "early depth and stencil tests"


class PixelPlan(ctypes.Structure):
    """struct pixel_plan of pixels.h."""

    _fields_ = [("raster", RasterPlan), ("payload", PayloadPlan), ("depth", ctypes.c_uint64), ("depth_target", ctypes.c_uint64),
                ("held", ctypes.c_uint64), ("held_target", ctypes.c_uint64), ("late", ctypes.c_uint32), ("sideband", ctypes.c_uint32),
                ("generic", ctypes.c_uint32), ("interpolated", ctypes.c_uint32)]  # fmt: skip


class PixelLoop(ctypes.Structure):
    """struct pixel_loop of pixels.h."""

    _fields_ = [
        ("worker", ctypes.c_uint64), ("plan", ctypes.c_uint64), ("records", ctypes.c_uint64), ("bins", ctypes.c_uint64),
        ("next_tile", ctypes.c_uint64), ("context", ctypes.c_uint64), ("first_slot", ctypes.c_uint64),
        ("tile", ctypes.c_uint64), ("entry", ctypes.c_uint32), ("last_entry", ctypes.c_uint32), ("block", ctypes.c_uint32),
        ("block_count", ctypes.c_uint32), ("visits", ctypes.c_uint32), ("testing", ctypes.c_uint32), ("batch", ctypes.c_uint32),
        ("open", ctypes.c_uint32), ("deadline", ctypes.c_uint64),
        ("used", ctypes.c_uint64 * (TILE_BLOCKS // 64)), ("masks", ctypes.c_uint32 * BATCH),
        ("blocks", PixelBlock * TILE_BLOCKS),
        *((name, ctypes.c_uint64) for name in ("started", "threads", "covered", "lit", "passed")),
    ]  # fmt: skip

    def bind(self, worker: int) -> int:
        self.worker = worker
        return ctypes.addressof(self)


@cache
def library() -> ctypes.CDLL:
    """The C functions of the stages, with the structures of pixels.h checked."""
    found = structures.library()
    ours = [*(ctypes.sizeof(kind) for kind in (RasterPlan, PayloadPlan, PixelPlan, PixelLoop)), PixelLoop.started.offset]
    theirs = (ctypes.c_uint64 * len(ours))()
    found.pixels_layout(theirs)
    found.pixels_boxed.argtypes, found.pixels_boxed.restype = (ctypes.c_void_p, ctypes.c_uint64), ctypes.c_uint64
    if list(theirs) != ours:
        raise SoftgenError("softgen.three_d._pipeline is of another version; build it again with `python setup.py build_ext --inplace`")
    return found


@dataclass(frozen=True)
class PixelTargets:
    """What the pixel backend gives to a draw: states of units, and early depth and stencil tests (`depth_function` of three_d.h)."""

    unit_states: UnitStates = ()
    depth_function: int = 0  # host address; 0: nothing is tested
    depth_target: int = 0  # host address of its record
    held_function: int = 0  # host address of what reads buffers for payloads (`held_function` of three_d.h); 0: they have nothing of them
    held_target: int = 0  # host address of its record
    late: bool = False  # render target writes test depth and stencil
    owner: object = field(default=None, repr=False, compare=False)  # keeps both alive


@dataclass(frozen=True)
class PixelCounts:
    """Work done; the counts of pixels are 0 where statistics are disabled."""

    threads: int = 0
    invocations: int = 0  # PS_INVOCATION_COUNT
    depth: int = 0  # PS_DEPTH_COUNT


def past_deadline(cs: CommandStreamer, loops: Sequence[PixelLoop]) -> bool:
    """Whether the time limit is over; an error if it is before any thread has started, since there is none to name."""
    late = cs.timed_out()
    if late and not loops[0].started:
        raise SoftgenError(f"time is up: pixel shader, tile {loops[0].tile}, no thread started")
    return late


class PixelShader:
    """The pixel shader stage; keeps the plan of the last draw."""

    def __init__(self) -> None:
        self.plan = PixelPlan(sideband=BLOCK_OFFSETS["pixel"])
        self.state: PixelState | None = None
        self._inputs: PixelInputs | None = None
        self._constants: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._constants_address = 0
        self._placed: tuple[object, ...] = ()
        self._dispatched: tuple[tuple[object, ...], ThreadDispatch] | None = None
        self._loops: list[PixelLoop] = []
        self._next_tile = ctypes.c_uint64()
        self._bindings = BindingCache()
        self.draws_nothing = False

    # -- state -----------------------------------------------------------------------------------------------------------

    def prepare(self, state: DrawState) -> PixelState:
        """Make the plan for a draw; most of it lasts while state commands do not change."""
        found = self.make_plan(state)
        self.load_constants(state)
        return found

    def make_plan(self, state: DrawState) -> PixelState:
        """The same without constants."""
        inputs = pixel_inputs(state)
        if self.state is None or inputs != self._inputs:
            self._inputs = None  # until all is made
            self.plan.raster = raster_plan(state, inputs.windower)
            self.state = pixel_state(state, inputs)
            self._inputs = inputs
        self.draws_nothing = rasterizer.draws_nothing(state)
        return self.state

    def load_constants(self, state: DrawState) -> None:
        """Take the constants as they are now in memory."""
        assert self.state is not None, "the plan comes first"
        data = push_constants(state, "PS") if self.state.push_constants and self.state.dispatched else b""
        if len(data) != len(self._constants):
            self._constants = np.zeros(len(data), np.uint8)
            self._constants_address = self._constants.ctypes.data
        if data:
            ctypes.memmove(self._constants_address, data, len(data))

    def _place(self, pixels: PixelState, records: RecordArray) -> None:
        """Places the parts of payloads, if they are not placed already."""
        attribute_bytes = (records.attribute_stride if pixels.setup_bytes is None else pixels.setup_bytes) if pixels.attributes else 0
        wanted = pixels.parts, len(self._constants), attribute_bytes
        if wanted != self._placed:
            self.plan.payload = place_parts(*wanted)
            self._placed = wanted
        self.plan.payload.constant_data = self._constants_address

    def placed(self, records: RecordArray, targets: PixelTargets) -> PixelPlan:
        """The plan for records with so many attributes."""
        assert self.state is not None, "the plan comes first"
        plan = self.plan
        plan.late, plan.depth, plan.depth_target = targets.late, targets.depth_function, targets.depth_target
        plan.held, plan.held_target, plan.interpolated = targets.held_function, targets.held_target, self.state.interpolated
        if self.state.dispatched:
            self._place(self.state, records)
        return plan

    # -- drawing ---------------------------------------------------------------------------------------------------------

    def draw(self, cs: CommandStreamer, records: RecordArray, bins: Bins, targets: PixelTargets | None = None) -> PixelCounts:
        """Shades the records of a piece of the draw that was prepared last."""
        pixels, targets = self.state, targets or PixelTargets()
        assert pixels is not None, "prepare() comes first"
        if cs.dispatcher.selection is not None:
            bins = (selected := SelectedBins(bins, cs.dispatcher.selection)).bins  # noqa: F841  which owns the memory of the bins
        entries = ctypes.c_uint32.from_address(bins.first + 4 * bins.tiles_x * bins.tiles_y).value if records.count else 0
        if not entries or self.draws_nothing:
            return PixelCounts()
        if targets.late and not pixels.dispatched:
            raise SoftgenError("depth and stencil tests are to come with render target writes, but no pixel shader threads are started")
        self.placed(records, targets)
        loops = self._start_loops(records, bins, loop_count(records, min(cs.dispatcher.threads, entries)) if pixels.dispatched else 1)
        if pixels.dispatched:
            self._run_threads(cs, pixels, loops, targets)
        else:
            self._test_only(cs, loops[0], targets)
        return self._counts(cs, pixels, loops)

    def _start_loops(self, records: RecordArray, bins: Bins, count: int) -> list[PixelLoop]:
        while len(self._loops) < count:
            self._loops.append(native.on_own_lines(PixelLoop))
        self._next_tile.value = 0
        for loop in self._loops[:count]:
            ctypes.memset(ctypes.addressof(loop), 0, PixelLoop.blocks.offset)
            loop.plan, loop.next_tile = ctypes.addressof(self.plan), ctypes.addressof(self._next_tile)
            loop.records, loop.bins = ctypes.addressof(records), ctypes.addressof(bins)
            loop.started = loop.threads = loop.covered = loop.lit = loop.passed = 0
        return self._loops[:count]

    def _run_threads(self, cs: CommandStreamer, pixels: PixelState, loops: list[PixelLoop], targets: PixelTargets) -> None:
        if pixels.scratch is not None:
            loops = loops[: max(pixels.scratch.threads // MIN_BATCH, 1)]
        capacity = self._capacity(pixels, len(loops))
        dispatch = self._dispatch(cs, pixels, targets, capacity)
        native_loops = [_bound(loop, number * capacity) for number, loop in enumerate(loops)]

        try:
            for finished in cs.dispatcher.run_loops(dispatch_context(cs), dispatch, native_loops, partial(past_deadline, cs, loops)):
                cs.counters.threads += finished.threads
                cs.counters.instructions += finished.instructions
        except GpuFault as fault:
            if any(loop.testing for loop in loops):
                raise GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why) from None
            raise

    def dispatch(self, cs: CommandStreamer, targets: PixelTargets) -> ThreadDispatch:
        """The record of the threads of one loop, or of tests without threads."""
        assert self.state is not None, "the plan comes first"
        return self._dispatch(cs, self.state, targets, self._capacity(self.state, 1))

    @staticmethod
    def _capacity(pixels: PixelState, loops: int) -> int:
        """Threads of a batch: those that run at the same time have scratch space of their own."""
        return BATCH if pixels.scratch is None else min(BATCH, max(pixels.scratch.threads // loops, MIN_BATCH))

    def _dispatch(self, cs: CommandStreamer, pixels: PixelState, targets: PixelTargets, capacity: int) -> ThreadDispatch:
        """The record of the threads; that of the draw before if nothing has changed."""
        registers = self.plan.payload.size // GRF_BYTES
        wanted = pixels, targets.unit_states, capacity, registers, cs.system_routine
        if self._dispatched is None or wanted != self._dispatched[0]:
            names = (name for name, _ in targets.unit_states)
            units = tuple(dict.fromkeys((*UNITS, *names, *((INTERPOLATOR,) if pixels.interpolated else ()))))
            made = ThreadDispatch(pixels.kernel, pixels.control, pixels.parts.width, capacity, 0, LoopPayload(registers), WrittenMasks(),
                                  binding_table=pixels.binding_table, samplers=pixels.samplers, scratch=pixels.scratch, units=units,
                                  system_routine=cs.system_routine, unit_states=targets.unit_states)  # fmt: skip
            self._dispatched = wanted, made
        return self._dispatched[1]

    def _test_only(self, cs: CommandStreamer, loop: PixelLoop, targets: PixelTargets) -> None:
        """Depth and stencil tests without threads: depth-only draws, and counts of covered pixels."""
        assert self.state is not None
        bound = self._bindings.find(dispatch_context(cs), self._dispatch(cs, self.state, targets, BATCH))
        context, call = Context(), native.GuardedCall(library().shade_tiles)
        for name, value in bound.fields().items():
            setattr(context, name, value)
        loop.context = ctypes.addressof(context)
        while why := call(loop):  # the deadline: there is no other reason without threads
            if cs.timed_out():
                raise SoftgenError(f"time is up: {TESTS}, tile {loop.tile}")
        if why is None:
            call.record.ip = 0  # no instruction's; of the tests
            raise guard.fault(call.record, cs.space, lambda ip: TESTS)

    def _counts(self, cs: CommandStreamer, pixels: PixelState, loops: list[PixelLoop]) -> PixelCounts:
        threads = covered = lit = passed = 0
        for loop in loops:
            threads, covered, lit, passed = threads + loop.threads, covered + loop.covered, lit + loop.lit, passed + loop.passed
        if not pixels.statistics:  # BDW-WM-12
            return PixelCounts(threads)
        shaded = covered if cs.generation.counts_tested_pixels else lit
        return PixelCounts(threads, shaded * cs.generation.ps_invocations_per_pixel if pixels.dispatched else 0, passed)


def loop_count(records: RecordArray, most: int) -> int:
    """Loops that are worth starting, up to `most`."""
    if most < 2:
        return 1
    return max(int(library().pixels_boxed(ctypes.addressof(records), most * LOOP_PIXELS)) // LOOP_PIXELS, 1)


def _bound(loop: PixelLoop, first_slot: int) -> NativeLoop:
    def bind(worker: int) -> int:
        loop.worker, loop.first_slot = worker, first_slot
        return ctypes.addressof(loop)

    return NativeLoop(_loop_function(), bind)


@cache
def _loop_function() -> int:
    return native.address(library().shade_tiles)


__all__ = ["PixelCounts", "PixelShader", "PixelTargets", "library"]

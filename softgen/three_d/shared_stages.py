"""Stages of prepared draws on several host threads: loops like the prepared one, which share its work.

    if shares(loop):
        run_vertices(cs, draw.struct, loop, count)    # after draw.c has returned DRAW_SHARE
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from softgen.command import CommandStreamer
from softgen.errors import GpuFault
from softgen.threads.dispatch import NativeLoop, TimedOut
from softgen.threads.kept_loop import KeptLoop
from softgen.three_d.draw_structures import PreparedStruct, function
from softgen.three_d.pixel_shader import TESTS, PixelLoop, loop_count, past_deadline
from softgen.three_d.setup_threads import PER_LOOP as RECORDS_PER_LOOP
from softgen.three_d.setup_threads import SetupLoop
from softgen.three_d.structures import Bins, RecordArray
from softgen.three_d.unit_state import dispatch_context
from softgen.three_d.vertex_shader import PER_LOOP, VertexShaderLoop


class PixelTotals(NamedTuple):
    """What PS_INVOCATION_COUNT and PS_DEPTH_COUNT grow by."""

    invocations: int
    depth: int


def shares(loop: KeptLoop) -> bool:
    """Whether several loops may run at the same time: threads with scratch space have it by their number in one."""
    return loop.dispatch.scratch is None


def run_vertices(cs: CommandStreamer, draw: PreparedStruct, kept: KeptLoop, count: int) -> None:
    """Vertex shader threads of the chunk."""
    most = -(-count // int(draw.vertices_per_thread)) // PER_LOOP
    _run(cs, kept, "run_vertex_shader", _copies(VertexShaderLoop, draw.vertex_argument, min(cs.dispatcher.threads, most)), cs.timed_out)


def run_setup(cs: CommandStreamer, draw: PreparedStruct, kept: KeptLoop) -> None:
    """SF threads of the records."""
    most = int(SetupLoop.from_address(draw.setup_loop).count) // RECORDS_PER_LOOP
    _run(cs, kept, "run_setup_threads", _copies(SetupLoop, draw.setup_loop, min(cs.dispatcher.threads, most)), cs.timed_out)


def _copies(kind: type[Any], address: int, count: int) -> list[Any]:
    return [kind.from_buffer_copy(kind.from_address(address)) for _ in range(max(count, 1))]


def _run(cs: CommandStreamer, kept: KeptLoop, name: str, loops: Sequence[Any], timed_out: TimedOut) -> None:
    native = [NativeLoop(function(name), loop.bind) for loop in loops]
    for finished in cs.dispatcher.run_kept(dispatch_context(cs), kept, native, timed_out):
        cs.counters.threads += finished.threads
        cs.counters.instructions += finished.instructions


class SharedPixels:
    """Loops of pixel shader threads, kept from draw to draw."""

    def __init__(self) -> None:
        self._loops: list[PixelLoop] = []
        self._next_tile = ctypes.c_uint64()

    def run(self, cs: CommandStreamer, draw: PreparedStruct, kept: KeptLoop, records: RecordArray, bins: Bins) -> PixelTotals:
        entries = ctypes.c_uint32.from_address(bins.first + 4 * bins.tiles_x * bins.tiles_y).value
        loops = self._begin(draw, records, bins, loop_count(records, min(cs.dispatcher.threads, entries)))

        try:
            _run(cs, kept, "shade_tiles", loops, partial(past_deadline, cs, loops))
        except GpuFault as fault:
            if any(loop.testing for loop in loops):
                raise GpuFault(fault.address, fault.access, fault.space, TESTS, fault.why) from None
            raise
        if not draw.count_pixels:
            return PixelTotals(0, 0)
        counted = sum(loop.covered if draw.count_covered else loop.lit for loop in loops)
        return PixelTotals(counted * int(draw.per_pixel), sum(loop.passed for loop in loops))

    def _begin(self, draw: PreparedStruct, records: RecordArray, bins: Bins, count: int) -> list[PixelLoop]:
        while len(self._loops) < count:
            self._loops.append(PixelLoop())
        self._next_tile.value = 0
        for loop in self._loops[:count]:
            ctypes.memset(ctypes.addressof(loop), 0, PixelLoop.blocks.offset)
            loop.plan, loop.next_tile = draw.pixel_plan, ctypes.addressof(self._next_tile)
            loop.records, loop.bins = ctypes.addressof(records), ctypes.addressof(bins)
            loop.started = loop.threads = loop.covered = loop.lit = loop.passed = 0
        return self._loops[:count]

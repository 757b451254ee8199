"""CLIP and SF threads of prepared draws, on Gen4.5: loops and dispatches that last from draw to draw (draw_threads.c).

Reads   CLIP_STATE SF_STATE CLIP_THREAD_PAYLOAD SF_THREAD_PAYLOAD
Writes  SetupLoop ClipLoop
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np

from softgen.command import CommandStreamer
from softgen.shared_functions.urb.memory import ENTRY, POOL, ROW, UrbMemory
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.three_d.stage_threads.clip_threads import ClipLoop
from softgen.three_d.stage_threads.setup_threads import MOST_READ, SetupLoop, transposes
from softgen.three_d.stage_threads.stage_threads import Loop, StageThreads, ThreadOutputStruct, ThreadStage
from softgen.three_d.stage_threads.thread_output import set_topologies
from softgen.three_d.state.latched_state import NotPrepared
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import ObjectArray, PrimitiveObject
from softgen.three_d.vertices.chunk import Chunk, aligned


class StageLoops:
    """Loops of threads that read no surfaces: draws with the same kernel share them, wherever their binding tables are."""

    def __init__(self) -> None:
        self._loops: dict[ThreadDispatch, KeptLoop] = {}
        self._readers: set[ThreadDispatch] = set()

    def clear(self) -> None:
        self._loops.clear()
        self._readers.clear()

    def get(self, cs: CommandStreamer, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop | None:
        """The loop for a dispatch; None for threads that read surfaces."""
        key = replace(dispatch, binding_table=0, samplers=0)
        if key in self._readers:
            return None
        made = self._loops.get(key)
        if made is None or not made.program.current(context):
            made = cs.dispatcher.prepare(context, key)
            if _reads(made):
                self._readers.add(key)
                return None
            self._loops[key] = made
        return made

    def reads(self, loop: KeptLoop) -> bool:
        """Whether threads of a loop here have read a surface after all."""
        found = self._loops.get(loop.dispatch) is loop and _reads(loop)
        if found:
            self._readers.add(loop.dispatch)
            del self._loops[loop.dispatch]
        return found


def _reads(loop: KeptLoop) -> bool:
    found = loop.shared.bound.dispatch.resolved
    return bool(found.states or found.surfaces or found.entries or found.samplers)


def _header(loop: Loop) -> int:
    return ctypes.addressof(loop) + StageThreads.header.offset


class PreparedSetup:
    """SF threads. `primitives`: primitive URB entries for `records` records by the size of an entry, which draws of a context share."""

    def __init__(self, state: DrawState, records: int, primitives: dict[int, UrbMemory]) -> None:
        if transposes(state):
            raise NotPrepared("coefficients that are transposed when they are read")
        stage = ThreadStage(state, "SF", 3)
        self.entry_bytes = stage.entry_bytes
        if self.entry_bytes not in primitives:
            primitives[self.entry_bytes] = UrbMemory(aligned(records * self.entry_bytes + MOST_READ))
        self.urb, self.next = primitives[self.entry_bytes], ctypes.c_uint64()
        self.loop = SetupLoop(next=ctypes.addressof(self.next), entry_bytes=self.entry_bytes, primitives=self.urb.address)
        stage.fill(self.loop, 0, 0)
        self.dispatch, self.header = stage.dispatch(self.urb), _header(self.loop)


class PreparedClip:
    """CLIP threads; what they put out comes after the vertices of the chunk."""

    def __init__(self, state: DrawState, chunk: Chunk) -> None:
        stage, stride, vertices = ThreadStage(state, "CLIP", 3), int(chunk.vertices.stride), int(chunk.vertices.capacity)
        if stage.entry_bytes > stride:
            raise NotPrepared("entries of CLIP threads are longer than those of vertices")
        objects = int(chunk.objects.capacity) + vertices
        self.urb = UrbMemory(chunk.urb.bytes, np.zeros(vertices * (stride // ROW), ENTRY), np.zeros(1, POOL))
        self.objects = aligned(objects * ctypes.sizeof(PrimitiveObject))
        assert self.urb.entries is not None and self.urb.pools is not None
        self.output = ThreadOutputStruct(objects=ObjectArray(self.objects.ctypes.data, 0, objects), entries=self.urb.entries.ctypes.data,
                                         pool=self.urb.pools.ctypes.data)  # fmt: skip
        set_topologies(state, self.output)
        self.loop = ClipLoop(output=ctypes.addressof(self.output))
        stage.fill(self.loop, 0, 0)
        self.dispatch: ThreadDispatch = stage.dispatch(self.urb)
        self.header = _header(self.loop)

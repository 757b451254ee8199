"""CLIP threads: objects that must be clipped, on the generation whose CLIP unit only tests them (clip_threads.c).

    clipper = ClipThreads(cs, state)
    Geometry(state, memory, extent, clipper.clip)

Reads   CLIP_STATE CLIP_THREAD_PAYLOAD
Writes  a chunk whose objects are those that pass and what threads made of the others
"""

from __future__ import annotations

import ctypes

import numpy as np

from softgen.command import CommandStreamer
from softgen.three_d.chunk import Chunk
from softgen.three_d.clip import MUST, ClipResult
from softgen.three_d.geometry import Geometry
from softgen.three_d.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.state import DrawState
from softgen.three_d.thread_output import ThreadOutput


class ClipLoop(Loop):
    """struct clip_threads of clip_threads.c."""

    _fields_ = [("stage", StageThreads),
                *((name, ctypes.c_uint64) for name in ("objects", "results", "output", "from", "next", "batch", "threads")),
                ("handle", ctypes.c_uint32 * BATCH)]  # fmt: skip


class ClipThreads:
    """The CLIP threads of a draw."""

    def __init__(self, cs: CommandStreamer, state: DrawState) -> None:
        self.cs, self.state = cs, state
        self.threads = 0  # so far

    def clip(self, geometry: Geometry, chunk: Chunk) -> Chunk:
        """The chunk with clipped objects."""
        count = int(chunk.objects.count)
        actions = geometry.memory.results.view(np.uint32)[: 2 * count : ctypes.sizeof(ClipResult) // 4]
        stage = ThreadStage(self.state, "CLIP", 3)
        output = ThreadOutput(self.state, chunk, stage.entry_bytes, int((actions == MUST).sum()))
        loop = ClipLoop(objects=ctypes.addressof(chunk.objects), results=geometry.struct.results, output=ctypes.addressof(output.struct))
        stage.fill(loop, output.struct.vertices.entries, output.struct.vertices.stride)
        self.threads += stage.run(self.cs, "run_clip_threads", [loop], output.urb)
        return output.chunk("CLIP")

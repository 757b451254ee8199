"""CLIP threads: objects that must be clipped, on the generation whose CLIP unit only tests them (clip_threads.c).

    clipper = ClipThreads(cs, state)
    Geometry(state, memory, extent, clipper.clip)

Reads   CLIP_STATE CLIP_THREAD_PAYLOAD
Writes  a chunk whose objects are those that pass and what threads made of the others
"""

from __future__ import annotations

import ctypes

from softgen.command import CommandStreamer
from softgen.three_d.clip_setup.clip import MUST, ClipResult
from softgen.three_d.clip_setup.geometry import Geometry
from softgen.three_d.stage_threads.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.stage_threads.thread_output import ThreadOutput
from softgen.three_d.state.state import DrawState
from softgen.three_d.vertices.chunk import Chunk


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
        return self.clip_chunk(chunk, geometry.struct.results)

    def clip_chunk(self, chunk: Chunk, results: int) -> Chunk:
        """The same, given the host address of what CLIP has found about its objects."""
        count = int(chunk.objects.count)
        must = sum(result.action == MUST for result in (ClipResult * count).from_address(results))
        stage = ThreadStage(self.state, "CLIP", 3)
        output = ThreadOutput(self.state, chunk, stage.entry_bytes, must)
        loop = ClipLoop(objects=ctypes.addressof(chunk.objects), results=results, output=ctypes.addressof(output.struct))
        stage.fill(loop, output.struct.vertices.entries, output.struct.vertices.stride)
        self.threads += stage.run(self.cs, "run_clip_threads", [loop], output.urb)
        output.check("CLIP", stage.unit)
        return output.chunk("CLIP")

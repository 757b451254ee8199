"""CLIP threads: objects that must be clipped, on the generation whose CLIP unit only tests them (clip_threads.c).

Reads   CLIP_STATE CLIP_THREAD_PAYLOAD
Writes  a chunk whose objects are those that pass and what threads made of the others
"""

from __future__ import annotations

import ctypes

from softgen.three_d.draw.draw_structures import DrawReason, StageStruct
from softgen.three_d.draw.stage import BuiltRecord, WalkedDraw
from softgen.three_d.stage_threads.stage_threads import Loop, OutputThreads, StageThreads, ThreadStage
from softgen.three_d.stage_threads.thread_output import OutputStage
from softgen.three_d.state.state import DrawState


class ClipLoop(Loop):
    """struct clip_threads of clip_threads.c."""

    _fields_ = [("stage", StageThreads), ("out", OutputThreads), ("results", ctypes.c_uint64), ("vertices", ctypes.c_uint64)]


class ClipThreadStage(OutputStage):
    """A thread for each object that must be clipped. It is built when the first one is: until then its state does not matter."""

    name, run, function = "CLIP", "stage_clip_threads", "run_clip_threads"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        into.plan, into.threaded = ctypes.addressof(record.geometry.struct), 1
        self.into = into
        return True

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why != DrawReason.NEEDED:
            super().answer(walk, why)
            return
        record, state = walk.record, DrawState.of(walk.cs)
        if record.keeper is not None:
            record.keeper.state = state
        threads: ThreadStage = walk.pipeline.thread_stages.get(state, "CLIP", 3)
        self.put_out(record, state, threads, in_place=True)
        self.start_output(record, self.into, threads, ClipLoop(), walk.context)
        record.count()
        walk.helped = True

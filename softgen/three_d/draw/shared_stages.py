"""Stages of prepared draws on several host threads: workers, and loops like the stage's own, which share its work (draw_loops.c).

    shared = SharedStage(draw.struct, "PS", loop, 2)    # after draw.c has returned DRAW_NO_WORKERS
"""

from __future__ import annotations

import ctypes
from typing import Any

from softgen.threads.native.scheduler import WorkerPart
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.three_d.draw.draw_structures import PreparedStruct, SharedLoops
from softgen.three_d.pixels.pixel_shader import PixelLoop
from softgen.three_d.stage_threads.setup_threads import SetupLoop
from softgen.three_d.vertices.vertex_shader import VertexShaderLoop

LOOPS: dict[str, tuple[str, type[Any]]] = {"VS": ("vertex_loops", VertexShaderLoop), "SF": ("setup_loops", SetupLoop),
                                           "PS": ("pixel_loops", PixelLoop)}  # fmt: skip


def set_scratch(draw: PreparedStruct, stage: str, kept: KeptLoop) -> None:
    """Mark a stage whose threads have scratch space: theirs is by their number in one loop."""
    if stage in LOOPS:
        getattr(draw, LOOPS[stage][0]).scratch = kept.dispatch.scratch is not None


class SharedStage:
    """Workers for several loops of a stage, and copies of its loop for all but the first."""

    def __init__(self, draw: PreparedStruct, stage: str, kept: KeptLoop, loops: int) -> None:
        name, kind = LOOPS[stage]
        self._kept, self.workers = kept, kept.workers_for(loops)
        self.parts = (WorkerPart * loops)(*(worker.part() for worker in self.workers))
        self.copies = (kind * (loops - 1))()
        self._held: SharedLoops = getattr(draw, name)
        self._held.parts, self._held.copies = ctypes.addressof(self.parts), ctypes.addressof(self.copies)
        self._held.count, self._held.size = loops, ctypes.sizeof(kind)

    def remove(self) -> None:
        """The draw has one worker again."""
        self._held.parts = self._held.copies = self._held.count = 0
        del self._kept.workers[1:]

"""SF threads: the plane coefficients of setup records, on the generation whose SETUP is fixed but for them (setup_threads.c).

    threads = SetupThreads(state)
    threads.run(cs, piece)      # attributes of its records are then in primitive URB entries

Reads   SF_STATE SF_THREAD_PAYLOAD
Writes  primitive URB entries
"""

from __future__ import annotations

import ctypes

from softgen.command import CommandStreamer
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.three_d.chunk import aligned
from softgen.three_d.geometry import GeometryPiece
from softgen.three_d.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.state import DrawState

MOST_READ = 2 * 63 * 32  # bytes that a pixel shader's state may make its payload read of an entry, past its end
PER_LOOP = 4 * BATCH


class SetupLoop(Loop):
    """struct setup_threads of setup_threads.c."""

    _fields_ = [("stage", StageThreads), ("inputs", ctypes.c_uint64), ("records", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("next", ctypes.c_uint64), ("entry_bytes", ctypes.c_uint64), ("primitives", ctypes.c_uint64)]  # fmt: skip


class SetupThreads:
    """The SF threads of a draw."""

    def __init__(self, state: DrawState) -> None:
        self.stage = ThreadStage(state, "SF", 3)
        self.urb = UrbMemory(aligned(0))

    def run(self, cs: CommandStreamer, piece: GeometryPiece) -> int:
        """Set up the attributes of a piece's records; how many threads there were."""
        records, entry_bytes = piece.records, self.stage.entry_bytes
        if not records.count or not piece.new:
            return 0
        if self.urb.size < records.capacity * entry_bytes:
            self.urb = UrbMemory(aligned(records.capacity * entry_bytes + MOST_READ))
        scratch = self.stage.fields["scratch"]
        most = scratch.threads // self.stage.batch if scratch is not None else cs.dispatcher.threads
        count = max(min(cs.dispatcher.threads, most, records.count // PER_LOOP), 1)
        following = ctypes.c_uint64()
        loops = [SetupLoop(inputs=piece.sf_inputs, records=records.records, count=records.count, next=ctypes.addressof(following),
                           entry_bytes=entry_bytes) for _ in range(count)]  # fmt: skip
        for number, loop in enumerate(loops):
            self.stage.fill(loop, piece.vertices.entries, piece.vertices.stride, number * self.stage.batch)
        records.attributes, records.attribute_stride = self.urb.address, entry_bytes
        return self.stage.run(cs, "run_setup_threads", loops, self.urb)

"""SF threads: the plane coefficients of setup records, on the generation whose SETUP is fixed but for them (setup_threads.c).

    threads = SetupThreads(state)
    threads.run(cs, piece)      # attributes of its records are then in primitive URB entries

Reads   SF_STATE WM_STATE SF_THREAD_PAYLOAD
Writes  primitive URB entries
"""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from softgen.bits.units import OWORD
from softgen.command import CommandStreamer
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.three_d.clip_setup.geometry import GeometryPiece
from softgen.three_d.stage_threads.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices.chunk import aligned

MOST_READ = 2 * 63 * 32  # bytes that a pixel shader's state may make its payload read of an entry, past its end
PER_LOOP = 4 * BATCH
ATTRIBUTES, COEFFICIENT_BLOCK = 8, 24  # of a block of coefficients; its dwords as they are written


class SetupLoop(Loop):
    """struct setup_threads of setup_threads.c."""

    _fields_ = [("stage", StageThreads), ("inputs", ctypes.c_uint64), ("records", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("next", ctypes.c_uint64), ("entry_bytes", ctypes.c_uint64), ("primitives", ctypes.c_uint64)]  # fmt: skip


def transposes(state: DrawState) -> bool:
    """Whether coefficients are transposed when they are read from primitive entries."""
    return bool(unit_state(state, "PS").transposed_urb_read_enable)


def attribute_major(entries: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Entries of rows Cx, Cy and Co of eight attributes (G45 6034-6043), as groups (Cx, Cy, 0, Co) of each attribute (G45 6048-6059)."""
    records, dwords = entries.shape
    blocks = dwords // COEFFICIENT_BLOCK
    rows = entries[:, : blocks * COEFFICIENT_BLOCK].reshape(records, blocks, 3, ATTRIBUTES)
    found = np.zeros((records, blocks, ATTRIBUTES, 4), np.uint32)
    found[..., (0, 1, 3)] = rows.swapaxes(2, 3)
    return found.reshape(records, -1)


class SetupThreads:
    """The SF threads of a draw."""

    def __init__(self, state: DrawState) -> None:
        self.stage, self.transposed = ThreadStage(state, "SF", 3), transposes(state)
        # Transposed, entries are larger; they have room for that in memory.
        self.entry_bytes = -(-self.stage.entry_bytes // (4 * COEFFICIENT_BLOCK)) * ATTRIBUTES * OWORD if self.transposed else (
            self.stage.entry_bytes)  # fmt: skip
        self.urb, self._read = UrbMemory(aligned(0)), aligned(0)

    def run(self, cs: CommandStreamer, piece: GeometryPiece) -> int:
        """Set up the attributes of a piece's records; how many threads there were."""
        records, entry_bytes = piece.records, self.entry_bytes
        if not records.count or not piece.new:
            return 0
        if self.urb.size < (size := records.capacity * entry_bytes + MOST_READ):
            self.urb = UrbMemory(aligned(size))
        scratch = self.stage.fields["scratch"]
        most = scratch.threads // self.stage.batch if scratch is not None else cs.dispatcher.threads
        count = max(min(cs.dispatcher.threads, most, records.count // PER_LOOP), 1)
        following = ctypes.c_uint64()
        loops = [SetupLoop(inputs=piece.sf_inputs, records=records.records, count=records.count, next=ctypes.addressof(following),
                           entry_bytes=entry_bytes) for _ in range(count)]  # fmt: skip
        for number, loop in enumerate(loops):
            self.stage.fill(loop, piece.vertices.entries, piece.vertices.stride, number * self.stage.batch)
        records.attributes, records.attribute_stride = self.urb.address, entry_bytes
        threads = self.stage.run(cs, "run_setup_threads", loops, self.urb)
        if self.transposed:
            records.attributes = self._transpose(int(records.count))
        return threads

    def _transpose(self, count: int) -> int:
        """Transpose the entries of records, as reads do; the address of what they find."""
        written = self.urb.bytes[: count * self.entry_bytes].view(np.uint32).reshape(count, -1)
        owned = -(-self.stage.entry_bytes // (4 * COEFFICIENT_BLOCK)) * COEFFICIENT_BLOCK
        self._read = aligned(count * self.entry_bytes + MOST_READ)
        self._read[: count * self.entry_bytes] = attribute_major(written[:, :owned]).reshape(-1).view(np.uint8)
        return int(self._read.ctypes.data)

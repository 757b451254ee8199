"""SF threads: the plane coefficients of setup records, on the generation whose SETUP is fixed but for them (setup_threads.c).

Reads   SF_STATE WM_STATE SF_THREAD_PAYLOAD
Writes  primitive URB entries, where records have their attributes then
"""

from __future__ import annotations

import ctypes

from softgen.bits.units import GRF_BYTES, OWORD
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.stage_threads.stage_threads import Loop, StageThreads, ThreadStage
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices.chunk import aligned

MOST_READ = 2 * 63 * 32  # bytes that a pixel shader's state may make its payload read of an entry, past its end
ATTRIBUTES, COEFFICIENT_BLOCK = 8, 24  # of a block of coefficients; its dwords as they are written


class SetupLoop(Loop):
    """struct setup_threads of setup_threads.c."""

    _fields_ = [("stage", StageThreads), ("inputs", ctypes.c_uint64), ("records", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("next", ctypes.c_uint64), ("entry_bytes", ctypes.c_uint64), ("primitives", ctypes.c_uint64),
                ("transposed", ctypes.c_uint64), ("depth_at", ctypes.c_uint64)]  # fmt: skip


def transposes(state: DrawState) -> bool:
    """Whether coefficients are transposed when they are read from primitive entries."""
    return bool(unit_state(state, "PS").transposed_urb_read_enable)


def depth_at(state: DrawState) -> int:
    """Where in a primitive entry, as it is read, depth has its coefficients: in the first half of a register (G45 6154-6159)."""
    return int(unit_state(state, "PS").depth_coefficient_urb_read_offset) * GRF_BYTES


class SetupThreadStage(ThreadedStage):
    """A thread for each record."""

    name, run, function = "SF", "stage_setup_threads", "run_setup_threads"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        threads: ThreadStage = record.pipeline.thread_stages.get(record.state, "SF", 3)
        size, transposed = threads.entry_bytes, transposes(record.state)
        if transposed:  # entries are larger as they are read; they have room for that in memory
            size = -(-size // (4 * COEFFICIENT_BLOCK)) * ATTRIBUTES * OWORD
        self._urb, self._read, self._next = _entries(record, size, "SF"), _entries(record, size, "PS"), ctypes.c_uint64()
        loop = SetupLoop(next=ctypes.addressof(self._next), entry_bytes=size, primitives=self._urb.address,
                         transposed=self._read.address if transposed else 0, depth_at=depth_at(record.state))  # fmt: skip
        threads.fill(loop, record.constants("SF")[0])
        into.plan = ctypes.addressof(record.geometry.struct)
        self.start(record, into, threads.dispatch(self._urb), loop, ctypes.addressof(loop) + StageThreads.header.offset)
        return True


def _entries(record: BuiltRecord, size: int, reader: str) -> UrbMemory:
    """Primitive URB entries of this size, for as many records as SETUP makes at a time; the draws of a context share them."""
    held: dict[tuple[int, str], UrbMemory] = record.pipeline.primitives
    capacity = record.pipeline.memory.capacity
    if (size, reader) not in held:
        held[size, reader] = UrbMemory(aligned(capacity * size + MOST_READ))
    return held[size, reader]

"""scheduler.c for Python: the structures it works on.

scheduler.h has the same structures; threads.h is what C loops of pipelines use of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from functools import cache, partial

from softgen.eu import native
from softgen.eu.isa.control_register import mask
from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock, offset
from softgen.memory import guard
from softgen.shared_functions.context import ContextHead

TURN = 20_000  # backward branches that a compiled thread may take in one turn
AXES = 4  # counters of a header patch, and a constant


class ReturnReason(IntEnum):
    """Why the scheduler returned to Python."""

    DONE = 0
    ESCAPED = 1  # the current thread's next instruction is one for the interpreter
    OTHER_MODE = 2  # the current thread's cr0 is not the one its code was made for
    DEADLOCK = 3  # all threads that are left wait
    DEADLINE = 4  # the deadline has passed; call again to go on
    UNKNOWN_STATUS = 5  # compiled code returned a status that does not exist
    TOO_MANY = 6  # a C loop started more threads than a batch may have
    TOO_LONG = 7  # payloads of a C loop are longer than a thread's registers
    HELP = 8  # the groups left are worth more workers


class GroupMember(ctypes.Structure):
    """A thread of the group under way."""

    _fields_ = [("function", ctypes.c_uint64), ("program", ctypes.c_uint64), ("dirty", ctypes.c_uint64)]


class BlockRange(ctypes.Structure):
    """Bytes of a block; `zero` if a thread starts with zeros there."""

    _fields_ = [("start", ctypes.c_uint64), ("size", ctypes.c_uint64), ("zero", ctypes.c_uint64)]


class FallbackAnswer(ctypes.Structure):
    """What becomes of a thread that returned with a status at an ip, where that depends on cr0.0 alone."""

    _fields_ = [
        ("status", ctypes.c_uint32),
        ("control", ctypes.c_uint32),  # cr0.0
        ("ip", ctypes.c_uint32),
        ("then", ctypes.c_uint32),  # cr0.0 afterwards
        ("next", ctypes.c_uint32),
        ("counts", ctypes.c_uint32),  # instructions
        ("function", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
    ]


class GroupShare(ctypes.Structure):
    """The groups of a dispatch that no worker has taken yet, or their pieces: `struct share` of scheduler.h."""

    _fields_ = [
        ("next", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("pieces", ctypes.c_uint64),
        ("workers", ctypes.c_uint64),
        ("worthwhile", ctypes.c_uint64),
        ("halted", ctypes.c_uint64),
        ("constants", ctypes.c_uint64),
        ("constant", ctypes.c_uint64),
        ("constant_offset", ctypes.c_uint64),
        ("threads_done", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
    ]


class WorkerPart(ctypes.Structure):
    """One worker's part of a dispatch: `struct threads_part` of threads.h."""

    _fields_ = [
        ("worker", ctypes.c_uint64),
        ("record", ctypes.c_uint64),
        ("signal", ctypes.c_int64),
        ("result", ctypes.c_int64),
        ("done", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("loop", ctypes.c_uint64),
        ("argument", ctypes.c_uint64),
    ]


class SchedulerState(ctypes.Structure):
    """A dispatch as one host thread runs it: `struct worker` of scheduler.h, which describes the fields."""

    _fields_ = [
        ("api", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
        ("templates", ctypes.c_uint64),
        ("template_stride", ctypes.c_uint64),
        ("members", ctypes.c_uint64),
        ("ranges", ctypes.c_uint64),
        ("range_count", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
        ("clean", ctypes.c_uint64),
        ("joint", ctypes.c_uint64),
        ("in_order", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("turn", ctypes.c_int64),
        ("answers", ctypes.c_uint64),
        ("answer_count", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("total", ctypes.c_uint64),
        ("writer", ctypes.c_uint64),
        ("writer_state", ctypes.c_uint64),
        ("writer_first", ctypes.c_uint64),
        ("written_masks", ctypes.c_uint64),
        ("axes", ctypes.c_uint64),
        ("origin", ctypes.c_uint64 * AXES),
        ("extent", ctypes.c_uint64 * AXES),
        ("patch_offset", ctypes.c_uint64 * AXES),
        ("rows", ctypes.c_uint64),
        ("own_start", ctypes.c_uint64),
        ("own_size", ctypes.c_uint64),
        ("share", ctypes.c_uint64),
        ("chunk", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("taken_at", ctypes.c_uint64),
        ("pieces", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("inside", ctypes.c_uint64),
        ("begin", ctypes.c_uint64),
        ("masks", ctypes.c_uint64),
        ("masked", ctypes.c_uint64),
        ("counter", ctypes.c_uint64 * AXES),
        ("numbered", ctypes.c_uint64),
        ("plain", ctypes.c_uint64),
        ("advanced", ctypes.c_uint64),
        ("ready", ctypes.c_uint64),
        ("fresh", ctypes.c_uint64),
        ("current", ctypes.c_uint64),
        ("left", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("since_clock", ctypes.c_uint64),
        ("executed", ctypes.c_uint64),
        ("apart", ctypes.c_uint64),
        ("threads_done", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
    ]


def layout() -> list[int]:
    """The numbers that threads_layout gives, as Python has them."""
    return [ctypes.sizeof(GroupMember), ctypes.sizeof(BlockRange), ctypes.sizeof(FallbackAnswer), ctypes.sizeof(SchedulerState),
            offset(SchedulerState, "writer"), offset(SchedulerState, "first"), offset(SchedulerState, "instructions"),
            ctypes.sizeof(ControlBlock), ctypes.sizeof(ContextHead), ctypes.sizeof(GroupShare), ctypes.sizeof(WorkerPart),
            ReturnReason.HELP]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    found, places = native.load("softgen.threads._scheduler", "threads_layout", layout()), block.BLOCK_OFFSETS
    found.threads_place.argtypes = (*(ctypes.c_uint64,) * 5, ctypes.c_uint32)
    found.threads_place(block.BLOCK_SIZE, places["control"], places["n"], places["cr"], places["sr"], mask("vector_mask_enable"))
    found.threads_functions.restype = ctypes.c_void_p
    found.threads_parallel.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
    found.threads_restart.argtypes = (*found.threads_parallel.argtypes, ctypes.c_uint64)
    found.threads_parallel.restype = found.threads_restart.restype = ctypes.c_int64
    found.threads_alert.argtypes, found.threads_alert.restype = (ctypes.c_uint64,), None
    return found


@cache
def guard_function() -> int:
    """The host address of guard_call, for C code that runs parts."""
    return native.address(guard.library().guard_call)


def run_parts(parts: ctypes.Array[WorkerPart]) -> bool:
    """Runs the parts of a dispatch, the first on the calling thread, others on helpers (helpers.c); when it returns none of them runs.
    Answers whether all of their groups or loops are done."""
    return bool(library().threads_parallel(parts, len(parts), guard_function()))


def restarting(parts: ctypes.Array[WorkerPart], slice: int) -> Callable[[], int]:
    """A function that does the same for another dispatch of workers that share groups, and have run one before: nothing of it is done.
    They return after `slice` nanoseconds."""
    return partial(library().threads_restart, parts, len(parts), guard_function(), slice)


def alert(count: int) -> None:
    """Wakes so many helpers, if they sleep: a dispatch is being prepared that will need them."""
    library().threads_alert(count)


def helpers() -> int:
    """Host threads that help with dispatches, in this process."""
    return int(library().threads_helpers())


def groups_call(record: guard.FaultRecord | None = None) -> native.GuardedCall:
    """Calls of threads_groups(SchedulerState)."""
    return native.GuardedCall(library().threads_groups, record)

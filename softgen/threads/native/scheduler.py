"""scheduler.c for Python. Its structures are in scheduler.h; threads.h is what C loops of pipelines use of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial

from softgen.eu import native
from softgen.eu.isa.control_register import mask
from softgen.eu.thread import block
from softgen.library import load
from softgen.memory import graphics_memory_h, guard
from softgen.threads.native import scheduler_h, tables_h, threads_h
from softgen.threads.native.scheduler_h import AXES, BlockRange, FallbackAnswer, GroupMember, GroupShare, SchedulerState, SlotRule
from softgen.threads.native.threads_h import ReturnReason
from softgen.threads.native.threads_h import ThreadsPart as WorkerPart

TURN = 20_000  # backward branches that a compiled thread may take in one turn


@cache
def library() -> ctypes.CDLL:
    found, places = load("softgen.threads._scheduler", graphics_memory_h, threads_h, scheduler_h, tables_h), block.BLOCK_OFFSETS
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


__all__ = ["AXES", "TURN", "BlockRange", "FallbackAnswer", "GroupMember", "GroupShare", "ReturnReason", "SchedulerState", "SlotRule",
           "WorkerPart", "alert", "groups_call", "guard_function", "helpers", "library", "restarting", "run_parts"]  # fmt: skip

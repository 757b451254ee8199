"""native.c for Python: the structures it works on, and how to call it.

Compiled code is called with the interpreter lock released, under the guard: what it does to memory that is not there is a GpuFault.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from enum import IntEnum
from functools import cache

from softgen.errors import SoftgenError
from softgen.eu.thread import block
from softgen.eu.thread.block import Context, ControlBlock, offset
from softgen.memory import guard
from softgen.memory.space import Space

TURN = 20_000  # backward branches a compiled thread may take before others have a turn
STEP = 8  # bytes between places where an instruction may start
NOWHERE = 0xFFFFFFFF  # in an index: no instruction starts there


class Reason(IntEnum):
    """Why a run of groups came back."""

    DONE = 0
    ESCAPED = 1  # the current thread's next instruction is one for the reference
    OTHER_MODE = 2  # the current thread's cr0 is not what its function was made for
    STUCK = 3  # all threads that are left wait
    LATE = 4  # the deadline has passed; call again to go on
    STRANGE = 5  # a status nobody knows


class Op(ctypes.Structure):
    """One step of a threaded program."""

    _fields_ = [("function", ctypes.c_uint64), ("ip", ctypes.c_uint32), ("counts", ctypes.c_uint32), ("rest", ctypes.c_uint8 * 48)]


class Program(ctypes.Structure):
    """A threaded program: `index` has for each STEP bytes from `start` on the op to go on with, or NOWHERE."""

    _fields_ = [("ops", ctypes.c_uint64), ("index", ctypes.c_uint64), ("start", ctypes.c_uint64), ("count", ctypes.c_uint64)]


class Member(ctypes.Structure):
    """A thread of the group under way."""

    _fields_ = [("function", ctypes.c_uint64), ("program", ctypes.c_uint64), ("dirty", ctypes.c_uint64)]


class Range(ctypes.Structure):
    """Bytes of a block; `zero` if a thread starts with zeros there."""

    _fields_ = [("start", ctypes.c_uint64), ("size", ctypes.c_uint64), ("zero", ctypes.c_uint64)]


class Answer(ctypes.Structure):
    """What becomes of a thread that came back with a status at an address, where that depends on cr0.0 alone."""

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


class Dispatch(ctypes.Structure):
    """A dispatch as one host thread carries it out; native.c says more."""

    _fields_ = [
        ("context", ctypes.c_uint64),
        ("templates", ctypes.c_uint64),
        ("members", ctypes.c_uint64),
        ("ranges", ctypes.c_uint64),
        ("range_count", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
        ("clean", ctypes.c_uint64),
        ("joint", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("turn", ctypes.c_int64),
        ("answers", ctypes.c_uint64),
        ("answer_count", ctypes.c_uint64),
        ("origin", ctypes.c_uint64 * 3),
        ("extent", ctypes.c_uint64 * 3),
        ("id_offset", ctypes.c_uint64 * 3),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("inside", ctypes.c_uint64),
        ("id", ctypes.c_uint64 * 3),
        ("numbered", ctypes.c_uint64),
        ("current", ctypes.c_uint64),
        ("left", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("since_clock", ctypes.c_uint64),
        ("executed", ctypes.c_uint64),
        ("apart", ctypes.c_uint64),
        ("threads_done", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
    ]


class Single(ctypes.Structure):
    """One thread on its own."""

    _fields_ = [("function", ctypes.c_uint64), ("block", ctypes.c_uint64), ("context", ctypes.c_uint64)]


def layout() -> list[int]:
    """What native_layout gives, as Python sees it."""
    return [ctypes.sizeof(ControlBlock), offset(ControlBlock, "executed"), offset(ControlBlock, "channel_ip"),
            ctypes.sizeof(Context), offset(Context, "budget"), offset(Context, "offsets"),
            ctypes.sizeof(Op), ctypes.sizeof(Program), ctypes.sizeof(Member), ctypes.sizeof(Dispatch),
            offset(Dispatch, "first"), ctypes.sizeof(Answer), offset(Dispatch, "instructions"), ctypes.sizeof(Single),
            ctypes.sizeof(Range)]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    found = importlib.util.find_spec("softgen.eu._native")
    if found is None or found.origin is None:
        raise SoftgenError("softgen.eu._native is not built; run `make` or `python setup.py build_ext --inplace` at the repository's root")
    try:
        native = ctypes.CDLL(found.origin)
        mine = layout()
        theirs = (ctypes.c_uint64 * len(mine))()
        same = native.native_layout(theirs) == len(mine) and list(theirs) == mine
    except (OSError, AttributeError) as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; build it again with `python setup.py build_ext --inplace`") from None
    if not same:
        raise SoftgenError(f"{found.origin} is of another version; build it again with `python setup.py build_ext --inplace`")
    places = block.BLOCK_OFFSETS
    native.native_place.argtypes = (ctypes.c_uint64,) * 4
    native.native_place(block.BLOCK_SIZE, places["control"], places["n"], places["cr"])
    native.native_barrier.argtypes = (ctypes.c_void_p,)
    native.native_barrier.restype = None
    return native


def address(function: Callable[..., object]) -> int:
    """Where a function of a library is."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


@cache
def imports() -> dict[str, int]:
    """What compiled code may call, by the names it uses."""
    native, left = library(), guard.library()
    return {"native_barrier": address(native.native_barrier), "native_threaded": address(native.native_threaded),
            "guard_leave": address(left.guard_leave)}  # fmt: skip


def barrier(context: Context) -> None:
    """A thread of the group has come to the barrier."""
    library().native_barrier(ctypes.addressof(context))


class Call:
    """Guarded calls of one host thread: native_groups(Dispatch) or native_single(Single)."""

    def __init__(self, name: str) -> None:
        self.function = address(getattr(library(), name))
        self.guard = guard.library().guard_call
        self.record = guard.FaultRecord()

    def __call__(self, argument: ctypes.Structure) -> int | None:
        """The function's answer; None if it was left at an access, which fault() then words."""
        self.record.ip = guard.NO_IP
        if self.guard(self.function, ctypes.addressof(argument), self.record):
            return None
        return int(self.record.result)

    def fault(self, space: Space, by: Callable[[int], str]) -> SoftgenError:
        return guard.fault(self.record, space, by)


def single(call: Call, function: int, thread: int, context: Context) -> int | None:
    """One turn of the thread whose block is at `thread`."""
    return call(Single(function, thread, ctypes.addressof(context)))

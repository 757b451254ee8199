"""native.c for Python: the library, and guarded calls.

Compiled code is called with the interpreter lock released, under the guard: an access to memory that is not mapped is a GpuFault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from softgen.errors import SoftgenError
from softgen.eu import native_h
from softgen.eu.native_h import SingleThread
from softgen.eu.thread import block
from softgen.eu.thread.block import Context
from softgen.library import AGAIN
from softgen.library import load as load_part
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions import context_h

LINES = 128  # bytes of two cache lines: hosts fetch them in pairs
StructureT = TypeVar("StructureT", bound=ctypes.Structure)
SPARE_NUMBERS = 256  # a library of another version may have more


def load(module: str, layout_function: str, layout: list[int]) -> ctypes.CDLL:
    """A C part of the package, its structures checked against those that Python has by hand."""
    native = load_part(module)
    theirs = (ctypes.c_uint64 * (len(layout) + SPARE_NUMBERS))()
    if getattr(native, layout_function)(theirs) != len(layout) or theirs[: len(layout)] != layout:
        raise SoftgenError(f"{module} is of another version; {AGAIN}")
    return native


@cache
def library() -> ctypes.CDLL:
    native, places = load_part("softgen.eu._native", native_h, context_h), block.BLOCK_OFFSETS
    native.native_place.argtypes = (ctypes.c_uint64,) * 3
    native.native_place(block.BLOCK_SIZE, places["control"], places["n"])
    native.native_barrier.argtypes = (ctypes.c_void_p,)
    native.native_barrier.restype = None
    return native


def address(function: Callable[..., object]) -> int:
    """The host address of a function of a library."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


def on_own_lines(kind: type[StructureT]) -> StructureT:
    """A structure that shares no cache line with anything else: what one host thread writes all the time would slow down every other that
    uses the rest of the line."""
    size = -(-ctypes.sizeof(kind) // LINES) * LINES
    raw = (ctypes.c_uint8 * (size + LINES))()
    return kind.from_buffer(raw, -ctypes.addressof(raw) % LINES)


@cache
def imports() -> dict[str, int]:
    """Functions that compiled code may call, by name."""
    native, left = library(), guard.library()
    return {"native_barrier": address(native.native_barrier), "native_threaded": address(native.native_threaded),
            "native_interpret": address(native.native_interpret), "native_interpret_pixel": address(native.native_interpret_pixel),
            "guard_leave": address(left.guard_leave)}  # fmt: skip


@cache
def interpreting() -> tuple[int, int]:
    """Code that leaves threads to the interpreter."""
    return imports()["native_interpret"], imports()["native_interpret_pixel"]


class SoughtPixel(ctypes.Structure):
    """struct sought_pixel of native.c."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("x", "y", "stage", "mask", "state", "pixel", "function")]


def seek_pixel(sought: SoughtPixel) -> None:
    """Have the interpreter run the threads of a pixel that begin at `native_interpret_pixel`, from now on."""
    library().native_seek_pixel(ctypes.byref(sought))


def passed() -> int:
    """Threads of pixel shaders that were not interpreted since then."""
    return int(library().native_passed())


def barrier(context: Context) -> None:
    """A thread of the group has reached the barrier."""
    library().native_barrier(ctypes.addressof(context))


class GuardedCall:
    """Guarded calls of one host thread: int64_t f(argument, guard record)."""

    def __init__(self, function: Callable[..., object], record: guard.FaultRecord | None = None) -> None:
        self.function = address(function)
        self.guard = guard.library().guard_call
        self.record = guard.FaultRecord() if record is None else record

    def __call__(self, argument: ctypes.Structure) -> int | None:
        """The function's result; None if it was left at an access, which fault() then describes."""
        return self.at(self.function, ctypes.addressof(argument))

    def at(self, function: int, argument: int) -> int | None:
        """Guarded call of another function."""
        self.record.ip = guard.NO_IP
        if self.guard(function, argument, self.record):
            return None
        return int(self.record.result)

    def fault(self, space: Space, by: Callable[[int], str]) -> SoftgenError:
        return guard.fault(self.record, space, by)


def single_call() -> GuardedCall:
    """For single()."""
    return GuardedCall(library().native_single)


def single(call: GuardedCall, function: int, thread: int, context: Context) -> int | None:
    """One turn of the thread whose block is at `thread`."""
    return call(SingleThread(function, thread, ctypes.addressof(context)))

"""The enhancement engine's C code: its structures checked against Python's, and its entries called under the guard."""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.command import CommandStreamer
from softgen.enhance.structures import ALL
from softgen.errors import SoftgenError
from softgen.eu import native


@cache
def library() -> ctypes.CDLL:
    """The enhancement engine's C code."""
    return native.load("softgen.enhance._enhance", "enhance_layout", [*map(ctypes.sizeof, ALL)])


def call(cs: CommandStreamer, name: str, argument: ctypes.Structure) -> None:
    """Run an entry of the C code. Raises GpuFault at memory that is not mapped, SoftgenError after the time limit."""
    if cs.timed_out():
        raise SoftgenError(f"time is up before {name}")
    guarded = native.GuardedCall(getattr(library(), name))
    try:
        done = guarded(argument)
    finally:
        cs.memory_changed()
    if done is None:
        raise guarded.fault(cs.space, str)

"""A thread and its surroundings as compiled code sees them: two pieces of memory, the same for every generation and every engine.

A block is one thread: registers first, so that a general register's byte offset is its offset in the block, then where its channels are.
A context is what a thread finds around it and is shared by the threads that one host thread runs. native.c has the same structures.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

from softgen.shared_functions.bindings import KNOWN, NUMBERS, SAMPLERS, SURFACES, TEXTURED, TOLD, Bindings, Picture, Surface
from softgen.shared_functions.context import CHANNELS, compose
from softgen.shared_functions.units import UNITS

DEEPEST = 16  # masks of a mask stack

# Architecture registers in the order they stand, each with room for the generation that has most; acc_d and acc_w are the accumulators'
# whole integers (thread.py).
ROOM = {"acc": 64, "acc_d": 128, "acc_w": 256, "a": 32, "f": 8, "mask": 16, "ms": 64, "msd": 4, "sr": 32, "cr": 12, "n": 12, "ip": 4,
        "tdr": 16, "tm": 20, "dbg": 8, "ce": 4, "msg": 32, "sp": 16, "fc": 640, "mme": 256, "null": 32}  # fmt: skip
_ALIGN = 64


class Status(IntEnum):
    """How a run of a thread came to its end for now."""

    RUNNING = 0
    ENDED = 1
    WAITING = 2  # for a notification
    SPENT = 3  # went round its loops often enough: others have a turn
    ESCAPE = 4  # the instruction at ip is one for the reference
    MODE = 5  # cr0 no longer is what the code was made for


class Control(ctypes.Structure):
    """What is no register: where the thread and its channels are."""

    _fields_ = [
        ("ip", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("active", ctypes.c_uint32),  # channels that are at ip
        ("waiting", ctypes.c_uint32),  # 1 + the notification register that a wait stands on, or 0
        ("executed", ctypes.c_uint64),
        ("conditional", ctypes.c_uint32),  # the mask stack's masks
        ("loop", ctypes.c_uint32),
        ("carry_on", ctypes.c_uint32),
        ("conditional_depth", ctypes.c_uint32),
        ("loop_depth", ctypes.c_uint32),
        ("number", ctypes.c_uint32),  # of the thread in its group
        ("conditionals", ctypes.c_uint32 * DEEPEST),
        ("loops", ctypes.c_uint32 * (2 * DEEPEST)),
        ("channel_ip", ctypes.c_uint32 * CHANNELS),  # where the channels that are not at ip wait
    ]


def _places() -> dict[str, int]:
    found, at = {"grf": 0, "mrf": 4096}, 4096 + 512
    for name, room in ROOM.items():
        found[name] = at
        at += -(-room // _ALIGN) * _ALIGN
    found["control"] = at
    return found


PLACES = _places()
# An odd number of cache lines: the same register of all threads of a group must not fall into the same few places of a cache.
SIZE = (-(-(PLACES["control"] + ctypes.sizeof(Control)) // _ALIGN) | 1) * _ALIGN


class Context(compose(field for unit in UNITS for field in unit.fields)):  # type: ignore[misc]
    """The environment of the threads that one host thread runs: the head that native.h has, then what units declare (context.py)."""


def offset(structure: type[ctypes.Structure], name: str) -> int:
    """Where a field stands, for code that is written as text."""
    return int(getattr(structure, name).offset)


__all__ = ["CHANNELS", "DEEPEST", "KNOWN", "NUMBERS", "PLACES", "ROOM", "SAMPLERS", "SIZE", "SURFACES", "TEXTURED", "TOLD", "Bindings",
           "Context", "Control", "Picture", "Status", "Surface", "offset"]  # fmt: skip

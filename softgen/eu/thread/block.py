"""A thread and its surroundings as compiled code sees them: two pieces of memory, the same for every generation and every engine.

A block is one thread: registers first, so that a general register's byte offset is its offset in the block, then where its channels are.
A context is what a thread finds around it and is shared by the threads that one host thread runs. native.c has the same structures.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

CHANNELS = 32
DEEPEST = 16  # masks of a mask stack
SURFACES = 256  # binding table indices

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


KNOWN, TOLD = 1, 3  # values of Surface.known


class Surface(ctypes.Structure):
    """A buffer that messages reach by its binding table index. Without a host address, its messages are for the reference; so is the first
    message with a lane outside (`known` says when that has been told)."""

    _fields_ = [("host", ctypes.c_uint64), ("size", ctypes.c_uint64), ("address", ctypes.c_uint64), ("known", ctypes.c_uint64)]


SAMPLERS = 16  # sampler indices
# What can be done with the texels of a surface, and the place of the function that does it; samples have one for each sampler.
TEXTURED = {("read", 8): 0, ("write", 8): 1, ("load", 8): 2, ("load", 16): 3, ("sample", 8): 4, ("sample", 16): 4 + SAMPLERS}
NUMBERS = ("base", "width", "height", "depth", "pitch", "rows", "first", "across")  # of an image, that code of its kind finds here


class Picture(ctypes.Structure):
    """A surface of texels. A function is `void f(context, picture, arguments, mask)`: arguments are lanes of 32 bits, one parameter behind
    the other, and answers come to stand in their place. Where there is none, messages are for the reference."""

    _fields_ = [("functions", ctypes.c_uint64 * (4 + 2 * SAMPLERS)), *((name, ctypes.c_uint64) for name in NUMBERS)]


class Bindings(ctypes.Structure):
    """What the field `surfaces` of a context points at."""

    _fields_ = [("surfaces", Surface * SURFACES), ("pictures", Picture * SURFACES), ("samplers", ctypes.c_uint64)]  # where states begin


class Context(ctypes.Structure):
    """All pointers are host addresses."""

    _fields_ = [
        ("table", ctypes.c_uint64),  # host bases of the address space's 4 GiB parts
        ("surfaces", ctypes.c_uint64),  # Bindings
        ("local", ctypes.c_uint64),  # shared local memory of the group
        ("local_size", ctypes.c_uint64),
        ("record", ctypes.c_uint64),  # the guard's: its first word is the ip of the message under way
        ("budget", ctypes.c_int64),  # backward branches left in this turn
        ("program", ctypes.c_uint64),  # what the engine made of the kernel, if it is not the function itself
        ("blocks", ctypes.c_uint64),  # the group's threads, SIZE bytes each
        ("threads", ctypes.c_uint64),
        ("arrived", ctypes.c_uint64),  # threads at the barrier
        ("notified", ctypes.c_uint64),  # somebody was, since the group began
        ("general", ctypes.c_uint64),  # general state base address
        ("turns", ctypes.c_uint64),  # threads that a function which runs several has before it, this one counted; none is one
        ("mask", ctypes.c_uint64),  # of the message under way: its channels, and
        ("base", ctypes.c_uint64),  # address that the offsets count from
        ("offsets", ctypes.c_uint64 * CHANNELS),
    ]


def offset(structure: type[ctypes.Structure], name: str) -> int:
    """Where a field stands, for code that is written as text."""
    return int(getattr(structure, name).offset)

"""Thread block and dispatch context: the memory structures that compiled code works on, the same for every generation and engine.

A block is the state of one thread: registers first, so that a general register's byte offset is its offset in the block, then ip, masks and
channel ips, then what fixed functions tell the pixel backend about the thread.
A context is shared by the threads that one host thread runs. native.c declares the same structures.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.shared_functions.context import CHANNELS, compose
from softgen.shared_functions.pixel_dispatch import PixelDispatch
from softgen.shared_functions.units import UNITS

MASK_STACK_DEPTH = 16  # masks of a mask stack

# Architecture registers in their order in the block, and the bytes reserved for each: the most that any generation needs. acc_d and acc_w
# are the integer accumulators in 64 bits (state.py).
REGISTER_SPACE = {"acc": 64, "acc_d": 128, "acc_w": 256, "a": 32, "f": 8, "mask": 16, "ms": 64, "msd": 4, "sr": 32, "cr": 12, "n": 12,
                  "ip": 4, "tdr": 16, "tm": 20, "dbg": 8, "ce": 4, "msg": 32, "sp": 16, "fc": 640, "mme": 256, "null": 32}  # fmt: skip
_ALIGN = 64


class ThreadStatus(IntEnum):
    """Why compiled code returned from a thread."""

    RUNNING = 0
    ENDED = 1
    WAITING = 2  # for a notification
    OUT_OF_BUDGET = 3  # took as many backward branches as this turn allows; other threads run next
    ESCAPE = 4  # fallback: the interpreter executes the instruction at ip
    CR0_CHANGED = 5  # cr0 differs from the value that the code was compiled for


class ControlBlock(ctypes.Structure):
    """The thread state outside registers: ip, status, masks and the ips of channels."""

    _fields_ = [
        ("ip", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("active", ctypes.c_uint32),  # channels whose ip is the thread's
        ("waiting", ctypes.c_uint32),  # 1 + the notification register that a wait instruction waits for, or 0
        ("executed", ctypes.c_uint64),
        ("imask", ctypes.c_uint32),  # IMask, LMask, CMask and the depths of their stacks: generations with a mask stack
        ("lmask", ctypes.c_uint32),
        ("cmask", ctypes.c_uint32),
        ("imask_depth", ctypes.c_uint32),
        ("loop_depth", ctypes.c_uint32),
        ("number", ctypes.c_uint32),  # of the thread in its thread group
        ("imask_stack", ctypes.c_uint32 * MASK_STACK_DEPTH),
        ("loop_stack", ctypes.c_uint32 * (2 * MASK_STACK_DEPTH)),
        ("channel_ip", ctypes.c_uint32 * CHANNELS),  # ips of the channels that are not at the thread's ip
        ("stray", ctypes.c_uint32),  # 1: it returned to where no call was; facts of a translation do not hold any more
    ]


def _offsets() -> dict[str, int]:
    grf = GRF_COUNT * GRF_BYTES
    found, at = {"grf": 0, "mrf": grf}, grf + 16 * GRF_BYTES
    for name, size in REGISTER_SPACE.items():
        found[name] = at
        at += -(-size // _ALIGN) * _ALIGN
    found["control"] = at
    found["pixel"] = at + -(-ctypes.sizeof(ControlBlock) // _ALIGN) * _ALIGN
    return found


BLOCK_OFFSETS = _offsets()
PIXEL_BYTES = ctypes.sizeof(PixelDispatch)
# An odd number of cache lines, so that the same register of all threads of a group does not map to the same few cache sets.
BLOCK_SIZE = (-(-(BLOCK_OFFSETS["pixel"] + PIXEL_BYTES) // _ALIGN) | 1) * _ALIGN


class Context(compose(field for unit in UNITS for field in unit.fields)):  # type: ignore[misc]
    """The environment of the threads that one host thread runs: the head that native.h has, then what units declare (context.py)."""


def offset(structure: type[ctypes.Structure], name: str) -> int:
    """The byte offset of a structure's field, for generated code."""
    return int(getattr(structure, name).offset)


__all__ = ["BLOCK_OFFSETS", "BLOCK_SIZE", "CHANNELS", "MASK_STACK_DEPTH", "PIXEL_BYTES", "REGISTER_SPACE", "Context", "ControlBlock",
           "ThreadStatus", "offset"]  # fmt: skip

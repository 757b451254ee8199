"""Thread block and dispatch context: the memory structures that compiled code works on, the same for every generation and engine.

A block is the state of one thread: registers first, so that a general register's byte offset is its offset in the block, then ip, masks and
channel ips, then what fixed functions tell the pixel backend about the thread.
A context is shared by the threads that one host thread runs.
"""

from __future__ import annotations

import ctypes

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.native_h import MASK_STACK_DEPTH, ControlBlock, ThreadStatus
from softgen.shared_functions.context import CHANNELS, compose
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.shared_functions.units import UNITS

# Architecture registers in their order in the block, and the bytes reserved for each: the most that any generation needs. acc_d and acc_w
# are the integer accumulators in 64 bits (state.py).
REGISTER_SPACE = {"acc": 64, "acc_d": 128, "acc_w": 256, "a": 32, "f": 8, "mask": 16, "ms": 64, "msd": 4, "sr": 32, "cr": 12, "n": 12,
                  "ip": 4, "tdr": 16, "tm": 20, "dbg": 8, "ce": 4, "msg": 32, "sp": 16, "fc": 640, "mme": 256, "null": 32}  # fmt: skip
_ALIGN = 64


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
    """The environment of the threads that one host thread runs: the head that C knows, then what units declare (context.py)."""


def offset(structure: type[ctypes.Structure], name: str) -> int:
    """The byte offset of a structure's field, for generated code."""
    return int(getattr(structure, name).offset)


__all__ = ["BLOCK_OFFSETS", "BLOCK_SIZE", "CHANNELS", "MASK_STACK_DEPTH", "PIXEL_BYTES", "REGISTER_SPACE", "Context", "ControlBlock",
           "ThreadStatus", "offset"]  # fmt: skip

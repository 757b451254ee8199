"""The structures of blocks.h, in the form that Python fills, and calls of its C code."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.errors import DecodeError
from softgen.eu import native

BLOCKS, BLOCK_BYTES = 6, 128
WRONG = ("", "the coefficients end inside a block", "a coefficient's index is outside of its block")


class Units(ctypes.Structure):
    """struct units of blocks.h."""

    _fields_ = [("data", ctypes.c_uint64), ("count", ctypes.c_uint64), ("at", ctypes.c_uint64)]


class ScanMacroblock(ctypes.Structure):
    """struct scan_macroblock of blocks.h."""

    _fields_ = [("units", Units), ("pattern", ctypes.c_uint32), ("written", ctypes.c_uint32), ("out", ctypes.c_uint64)]


class AvcMacroblock(ctypes.Structure):
    """struct avc_macroblock of blocks.h."""

    _fields_ = [("units", Units), *((name, ctypes.c_uint32) for name in (
        "pattern_y", "pattern_cb", "pattern_cr", "dc_y", "dc_cb", "dc_cr", "transform_8x8", "qp_y", "qp_cb", "qp_cr", "scale_y", "scale_cb",
        "scale_cr")), ("out", ctypes.c_uint64)]  # fmt: skip


class Vc1Macroblock(ctypes.Structure):
    """struct vc1_macroblock of blocks.h."""

    _fields_ = [("units", Units), *((name, ctypes.c_uint32) for name in ("pattern", "overlap", "edges")), ("subblocks", ctypes.c_uint8 * 8),
                ("out", ctypes.c_uint64), ("left", ctypes.c_uint64)]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """The front end's C code for blocks."""
    sizes = [ctypes.sizeof(kind) for kind in (ScanMacroblock, AvcMacroblock, Vc1Macroblock)]
    found = native.load("softgen.media._front_end", "blocks_layout", sizes)
    for name in ("scan_blocks", "avc_blocks", "vc1_blocks"):
        getattr(found, name).restype = ctypes.c_int64
    return found


def decode(name: str, made: Any, coefficients: bytes, left: npt.NDArray[np.int16] | None = None) -> npt.NDArray[np.int16]:
    """Calls an entry with units and room for all blocks, which it answers."""
    units = np.frombuffer(coefficients[: len(coefficients) & ~3], np.uint32)
    out = np.zeros(BLOCKS * BLOCK_BYTES // 2, np.int16)
    made.units.data, made.units.count, made.out = int(units.ctypes.data), len(units), int(out.ctypes.data)
    if left is not None:
        made.left = int(left.ctypes.data)
    wrong = getattr(library(), name)(ctypes.byref(made))
    if wrong:
        raise DecodeError(f"{WRONG[wrong]} (unit {made.units.at} of {len(units)})")
    return out

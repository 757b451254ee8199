"""The structures of vld.h and writer.c, in the form that Python fills, and the C code itself."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from softgen.eu import native

MOST_MACROBLOCKS, BLOCKS, BLOCK_BYTES, RECORD_BYTES = 127, 6, 128, 32
DATA_BYTES = MOST_MACROBLOCKS * (RECORD_BYTES + BLOCKS * BLOCK_BYTES)
STREAM_PADDING = 16  # zero bytes behind the data (codec/bits/reader.h)
THREAD = np.dtype([(name, np.uint32) for name in ("offset", "bytes", "index", "x")])
PAYLOAD = np.dtype([("number", np.uint32), ("bytes", np.uint32), ("data", np.uint64)])
ENDS = ("", "a code that does not exist", "macroblocks past column 127", "the end of the data inside a macroblock")


class SliceBits(ctypes.Structure):
    """struct bits of codec/bits/reader.h."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64), ("at", ctypes.c_uint64)]


class VldSlice(ctypes.Structure):
    """struct vld_slice of vld.h."""

    _fields_ = [
        ("bits", SliceBits), ("f_code", ctypes.c_uint8 * 2 * 2),
        *((name, ctypes.c_uint32) for name in ("intra_dc_precision", "structure", "top_field_first", "frame_pred_frame_dct",
                                               "concealment_mv", "q_scale_type", "intra_vlc", "alternate_scan", "type", "x", "y",
                                               "macroblocks", "quantiser_code", "reserved")),
        ("data", ctypes.c_uint64), ("threads", ctypes.c_uint64),
    ]  # fmt: skip


class VldWriter(ctypes.Structure):
    """struct vld_writer of writer.c."""

    _fields_ = [("header", ctypes.c_uint8 * 32), ("constants", ctypes.c_uint64), ("constant_bytes", ctypes.c_uint64),
                ("payloads", ctypes.c_uint64)]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """The front end's C code."""
    sizes = [ctypes.sizeof(VldSlice), THREAD.itemsize, PAYLOAD.itemsize, ctypes.sizeof(VldWriter)]
    found = native.load("softgen.media._front_end", "vld_layout", sizes)
    found.vld_decode.restype = ctypes.c_int64
    return found

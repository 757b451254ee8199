"""The structures of codec.h, in the form that Python fills."""

from __future__ import annotations

import ctypes
from enum import IntEnum

PLANES, MOST_REFERENCES = 3, 16
PADDING = bytes(16)  # behind the data of a stream


class SurfaceLayout(IntEnum):
    """enum surface_layout of codec.h."""

    PLANAR = 0
    INTERLEAVED_CHROMA = 1
    PACKED_YUYV = 2
    PACKED_UYVY = 3
    LUMA_ONLY = 4


class BitStream(ctypes.Structure):
    """struct bits of bits/reader.h."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint64), ("at", ctypes.c_uint64)]


class GraphicsTable(ctypes.Structure):
    """struct graphics of codec.h."""

    _fields_ = [("table", ctypes.c_uint64), ("address_mask", ctypes.c_uint64)]


class VideoSurface(ctypes.Structure):
    """struct surface of codec.h."""

    _fields_ = [
        ("base", ctypes.c_uint64), ("pitch", ctypes.c_int64), ("column", ctypes.c_uint64), ("row", ctypes.c_uint64),
        ("tile_columns", ctypes.c_uint32), ("tile_rows", ctypes.c_uint32), ("run", ctypes.c_uint64), ("layout", ctypes.c_uint32),
        ("chroma_row", ctypes.c_uint32 * 2), ("first_row", ctypes.c_uint32), ("row_step", ctypes.c_uint32),
        ("sample_bytes", ctypes.c_uint32),
    ]  # fmt: skip


class SamplePlane(ctypes.Structure):
    """struct plane of codec.h."""

    _fields_ = [("samples", ctypes.c_uint64), ("stride", ctypes.c_uint32), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]  # fmt: skip


class SampleFrame(ctypes.Structure):
    """struct frame of codec.h."""

    _fields_ = [("plane", SamplePlane * PLANES)]


class ReferenceSlot(ctypes.Structure):
    """struct reference of codec.h."""

    _fields_ = [("address", ctypes.c_uint64), ("frame", SampleFrame), ("areas", ctypes.c_uint64), ("state", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]  # fmt: skip


class PictureRecord(ctypes.Structure):
    """struct picture of codec.h."""

    _fields_ = [
        ("memory", GraphicsTable), ("surfaces", VideoSurface * 2), ("source", VideoSurface), ("frame", SampleFrame),
        ("references", ReferenceSlot * MOST_REFERENCES), ("state", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("width", "height", "shift_x", "shift_y", "block_width", "block_height", "errors",
                                               "concealed", "next_row", "sample_bits")),
    ]  # fmt: skip

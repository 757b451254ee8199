"""The structures of vp8.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

MB_BYTES = 96  # struct vp8_mb
ABOVE_BYTES = 9
SEGMENTS, PARTITIONS = 4, 9


class BoolDecoder(ctypes.Structure):
    """struct bools of bits/bool_coder.h."""

    _fields_ = [("data", ctypes.c_uint64), ("size", ctypes.c_uint64), ("at", ctypes.c_uint64), ("value", ctypes.c_uint64),
                ("spare", ctypes.c_int32), ("range", ctypes.c_uint32)]  # fmt: skip


class Vp8Picture(ctypes.Structure):
    """struct vp8_picture of vp8.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("picture", "mbs", "above", "segments")),
        ("data", ctypes.c_uint64 * PARTITIONS), ("size", ctypes.c_uint64 * PARTITIONS),
        ("coefficients", ctypes.c_uint8 * 1056), ("segment_tree", ctypes.c_uint8 * 3),
        *((name, ctypes.c_uint8) for name in ("skip", "intra", "last", "golden")),
        ("y_modes", ctypes.c_uint8 * 4), ("uv_modes", ctypes.c_uint8 * 3), ("vectors", ctypes.c_uint8 * 19 * 2),
        ("reserved", ctypes.c_uint8 * 2), ("quantisers", ctypes.c_uint16 * 2 * 3 * SEGMENTS), ("levels", ctypes.c_uint8 * SEGMENTS),
        ("reference_delta", ctypes.c_int8 * 4), ("mode_delta", ctypes.c_int8 * 4),
        *((name, ctypes.c_uint32) for name in ("value", "range", "used", "partitions", "key_frame", "segmentation", "read_segments",
                                               "skip_enabled", "deltas", "sharpness", "simple_filter", "bilinear", "full_pixel")),
        ("sign_bias", ctypes.c_uint32 * 4), ("header", BoolDecoder), ("tokens", BoolDecoder * (PARTITIONS - 1)),
        ("row", ctypes.c_uint32), ("broken", ctypes.c_uint32),
    ]  # fmt: skip

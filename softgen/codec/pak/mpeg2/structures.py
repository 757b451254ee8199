"""The structures of pak/mpeg2/mpeg2_pak.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

ENCODER_REST = 176  # bytes of struct mpeg2_encoder that are the C code's own


class Mpeg2Encoder(ctypes.Structure):
    """struct mpeg2_encoder of mpeg2_pak.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("slice", "writer", "source_picture", "objects")),
        *((name, ctypes.c_uint32) for name in ("count", "next", "error", "x", "y", "no_first_header", "intra_slice_flag", "intra_slice")),
        ("rounding", ctypes.c_uint32 * 2 * 2), ("bits", ctypes.c_uint64), ("reciprocals", ctypes.c_uint16 * 64 * 2),
        ("rest", ctypes.c_uint64 * (ENCODER_REST // 8)),
    ]  # fmt: skip

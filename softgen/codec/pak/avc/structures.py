"""The structures of pak/avc/avc_pak.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import GraphicsTable

ENCODER_REST = 8360  # bytes of struct avc_encoder that are the C code's own
CHOICE_BYTES = 172  # struct avc_choice


class AvcEncoder(ctypes.Structure):
    """struct avc_encoder of avc_pak.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("slice", "decoder", "writer", "source_picture")),
        *((name, ctypes.c_uint32) for name in ("round_intra", "round_inter", "end_x", "end_y", "begun", "skip_run", "macroblocks",
                                               "qp_sum")),
        ("bits", ctypes.c_uint64), ("reciprocals", ctypes.c_uint16 * 64 * 4), ("rest", ctypes.c_uint64 * (ENCODER_REST // 8)),
    ]  # fmt: skip


class PakObject(ctypes.Structure):
    """struct pak_object of object.h."""

    _fields_ = [("length", ctypes.c_uint32), ("offset", ctypes.c_uint32), ("dwords", ctypes.c_uint32 * 12)]


class PakObjects(ctypes.Structure):
    """struct pak_objects of object.h."""

    _fields_ = [
        ("encoder", ctypes.c_uint64), ("objects", ctypes.c_uint64), ("memory", GraphicsTable), ("vectors", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("count", "next", "error", "reserved")),
    ]  # fmt: skip

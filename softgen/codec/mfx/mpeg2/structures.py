"""The structures of mpeg2.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import BitStream


class Mpeg2Slice(ctypes.Structure):
    """struct mpeg2_slice of mpeg2.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("bits", BitStream), ("matrix", ctypes.c_uint8 * 64 * 2), ("f_code", ctypes.c_uint8 * 2 * 2),
        *((name, ctypes.c_uint32) for name in ("intra_dc_precision", "structure", "top_field_first", "frame_pred_frame_dct",
                                               "concealment_mv", "q_scale_type", "intra_vlc", "alternate_scan", "type", "row",
                                               "quantiser_code", "reserved")),
    ]  # fmt: skip


class FieldBits(ctypes.Structure):
    """struct mpeg2_place of mpeg2.h."""

    _fields_ = [("dword", ctypes.c_uint32), ("shift", ctypes.c_uint32), ("mask", ctypes.c_uint64)]


class WalkedSlices(ctypes.Structure):
    """struct mpeg2_walked of mpeg2.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("parameters", "room", "room_size", "bases")),
        *((name, FieldBits) for name in ("base", "upper_bound", "length", "start", "bit_offset", "row", "quantiser", "last")),
        ("nanoseconds", ctypes.c_uint64), ("slices", ctypes.c_uint32), ("begun", ctypes.c_uint32),
    ]  # fmt: skip

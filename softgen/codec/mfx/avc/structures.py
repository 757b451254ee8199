"""The structures of avc.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import MOST_REFERENCES

MB_BYTES = 264  # struct avc_mb
DECODER_BYTES = 2456  # struct avc_decoder
MOTION_BYTES = 64  # that direct prediction needs of a macroblock
LISTS, MOST_INDEX = 2, 32


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


class AvcPicture(ctypes.Structure):
    """struct avc_picture of avc.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("mbs", ctypes.c_uint64),
        *_words("width", "height", "field", "bottom", "mbaff", "cabac", "transform8", "constrained_intra", "inference8", "weighted",
                "weighted_b", "monochrome"),
        ("chroma_offset", ctypes.c_int32 * 2), ("poc", ctypes.c_int32 * 34), ("ids", ctypes.c_uint16 * MOST_REFERENCES),
        ("matrix4", ctypes.c_uint8 * 16 * 6), ("matrix8", ctypes.c_uint8 * 64 * 2),
        ("scale4", ctypes.c_uint32 * 16 * 52 * 6), ("scale8", ctypes.c_uint32 * 64 * 52 * 2),
        ("collocated", ctypes.c_uint64 * MOST_REFERENCES), ("motion", ctypes.c_uint64), *_words("slices", "reserved"),
    ]  # fmt: skip


class AvcReference(ctypes.Structure):
    """struct avc_reference of avc.h."""

    _fields_ = [(name, ctypes.c_int8) for name in ("store", "parity", "long_term", "reserved")]


class AvcWeight(ctypes.Structure):
    """struct avc_weight of avc.h."""

    _fields_ = [(f"{plane}_{what}", ctypes.c_int16) for plane in ("luma", "cb", "cr") for what in ("weight", "offset")]


class AvcSlice(ctypes.Structure):
    """struct avc_slice of avc.h."""

    _fields_ = [
        ("avc", ctypes.c_uint64), ("data", ctypes.c_uint64), ("size", ctypes.c_uint64), ("start", ctypes.c_uint64), *_words("type"),
        ("counts", ctypes.c_uint32 * LISTS), ("weight_shift", ctypes.c_uint32 * 2),
        *_words("spatial_direct", "filter", "cabac_init", "qp"), ("filter_alpha", ctypes.c_int32), ("filter_beta", ctypes.c_int32),
        *_words("first_x", "first_y"), ("list", AvcReference * MOST_INDEX * LISTS),
        ("weight", AvcWeight * MOST_INDEX * LISTS), ("decoder", ctypes.c_uint64), *_words("begun", "reserved"),
    ]  # fmt: skip

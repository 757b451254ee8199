"""The structures of vp9.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import PLANES, SampleFrame, VideoSurface

PROBABILITY_BYTES, COUNT_BYTES, BLOCK_BYTES, MOTION_BYTES = 2048, 13208, 48, 9  # of structures that C alone looks into
OWN_BYTES = 9336  # of struct vp9_picture behind what is handed over
SEGMENTS, REFERENCES = 8, 3


class Vp9Reference(ctypes.Structure):
    """struct vp9_reference_picture of vp9.h."""

    _fields_ = [("surface", VideoSurface), ("frame", SampleFrame), ("scale", ctypes.c_uint32 * 2), ("step", ctypes.c_uint32 * 2),
                ("areas", ctypes.c_uint64), ("state", ctypes.c_uint32), ("is_scaled", ctypes.c_uint32)]  # fmt: skip


class Vp9Segment(ctypes.Structure):
    """struct vp9_segment of vp9.h."""

    _fields_ = [("skip", ctypes.c_uint32), ("has_reference", ctypes.c_uint32), ("reference", ctypes.c_uint32),
                ("levels", ctypes.c_uint8 * 2 * 4), ("scale", ctypes.c_uint32 * 2 * 2)]  # fmt: skip


class Vp9Picture(ctypes.Structure):
    """struct vp9_picture of vp9.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("picture", "data", "size", "blocks", "grid", "motion", "earlier", "segments",
                                               "earlier_segments")),
        ("above_nonzero", ctypes.c_uint64 * PLANES), *((name, ctypes.c_uint64) for name in ("above_partition", "probabilities", "counts")),
        ("references", Vp9Reference * REFERENCES), ("segment", Vp9Segment * SEGMENTS),
        *((name, ctypes.c_uint32) for name in ("width", "height", "header_bytes", "depth", "intra_only", "lossless", "segmentation",
                                               "update_map", "temporal_update", "level", "sharpness", "filter", "high_precision",
                                               "refresh", "adapt", "after_key")),
        ("sign_bias", ctypes.c_uint32 * 4),
        *((name, ctypes.c_uint32) for name in ("tile_rows", "tile_columns", "first_tile", "end_tile", "divided", "next_row")),
        ("filtered", ctypes.c_uint64),
        ("own", ctypes.c_uint8 * OWN_BYTES),
    ]  # fmt: skip


class Vp9Load(ctypes.Structure):
    """struct vp9_load of vp9.h."""

    _fields_ = [("picture", ctypes.c_uint64), ("first", ctypes.c_uint32), ("step", ctypes.c_uint32)]


class Vp9Join(ctypes.Structure):
    """struct vp9_join of vp9.h."""

    _fields_ = [("picture", ctypes.c_uint64), ("part", ctypes.c_uint64)]

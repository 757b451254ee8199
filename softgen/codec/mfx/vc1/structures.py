"""The structures of vc1.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import PLANES, BitStream

MB_BYTES = 256  # struct vc1_mb
MOTION_BYTES = 4  # that direct macroblocks need of a macroblock


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


class Vc1Picture(ctypes.Structure):
    """struct vc1_picture of vc1.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("mbs", ctypes.c_uint64), ("samples", ctypes.c_uint64 * PLANES),
        *((name, ctypes.c_uint64) for name in ("planes", "direct", "motion", "slice_start")),
        ("lut", ctypes.c_uint8 * 256 * 2 * 2), ("mapped", ctypes.c_uint32 * 2), ("edge", ctypes.c_uint32 * 2),
        *_words("type", "advanced", "rounding", "mode", "range", "fast_chroma", "quantiser", "alternative", "half_step", "uniform",
                "implicit", "quantisers", "edges", "overlap", "loop_filter", "b_fraction", "raw_skip", "raw_mixed", "raw_direct",
                "raw_overlap", "raw_ac_prediction", "vector_table", "pattern_table", "luma_set", "chroma_set", "dc_table",
                "frame_transform", "transform", "reserved"),
    ]  # fmt: skip


class Vc1Slice(ctypes.Structure):
    """struct vc1_slice of vc1.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("bits", BitStream), *_words("level_bits", "run_bits", "fine", "escape_reserved"),
        *_words("first", "row", "end", "reserved"),
    ]  # fmt: skip

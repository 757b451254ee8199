"""The structures of hevc.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

LISTS, MOST_INDEX, STORES, COLUMNS, ROWS = 2, 16, 8, 20, 24
MOTION_BYTES = 16  # kept of 16x16 samples
DECODER_BYTES = 41560  # struct hevc_decoder
SCALES = 16 + 64 + 256 + 1024


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


class HevcPicture(ctypes.Structure):
    """struct hevc_picture of hevc.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("room", ctypes.c_uint64),
        *_words("width", "height", "log2_ctb", "log2_cu", "log2_transform", "log2_most_transform", "log2_pcm", "log2_most_pcm",
                "depth_luma", "depth_chroma", "pcm_luma", "pcm_chroma", "depth_intra", "depth_inter", "delta_qp_depth", "log2_merge",
                "strong_smoothing", "bypass", "amp", "transform_skip", "weighted", "weighted_b", "tiling", "wavefront", "sign_hiding",
                "constrained_intra", "pcm_unfiltered", "delta_qp", "pcm", "sao", "across_tiles", "has_scales"),
        ("chroma_offset", ctypes.c_int32 * 2), *_words("columns", "rows"),
        ("column_start", ctypes.c_uint16 * (COLUMNS + 1)), ("row_start", ctypes.c_uint16 * (ROWS + 1)), ("reserved", ctypes.c_uint16 * 2),
        ("matrix", ctypes.c_uint8 * 64 * 6 * 4), ("dc", ctypes.c_uint8 * 6 * 2), ("scale", ctypes.c_uint8 * SCALES * 6),
        ("collocated", ctypes.c_uint64 * STORES), ("motion", ctypes.c_uint64), ("places", ctypes.c_uint64 * 9),
        *_words("across", "down", "cus_across", "blocks_across"),
        ("distance", ctypes.c_int16 * STORES), ("long_term", ctypes.c_uint8 * STORES), *_words("filtered", "uses_sao"),
    ]  # fmt: skip


class HevcReference(ctypes.Structure):
    """struct hevc_reference of hevc.h."""

    _fields_ = [("store", ctypes.c_int8), ("long_term", ctypes.c_int8), ("distance", ctypes.c_int16)]


class HevcWeight(ctypes.Structure):
    """struct hevc_weight of hevc.h."""

    _fields_ = [("weight", ctypes.c_int16 * 3), ("offset", ctypes.c_int16 * 3)]


class HevcSlice(ctypes.Structure):
    """struct hevc_slice of hevc.h."""

    _fields_ = [
        ("hevc", ctypes.c_uint64), ("data", ctypes.c_uint64), ("size", ctypes.c_uint64), ("start", ctypes.c_uint64),
        *_words("type", "dependent", "first_x", "first_y"), ("counts", ctypes.c_uint32 * LISTS), ("weight_shift", ctypes.c_uint32 * 2),
        ("qp", ctypes.c_int32), ("chroma_offset", ctypes.c_int32 * 2), ("beta", ctypes.c_int32), ("tc", ctypes.c_int32),
        *_words("temporal", "collocated", "collocated_from_0", "low_delay", "merge_count", "cabac_init", "mvd_1_zero", "sao_luma",
                "sao_chroma", "across", "unfiltered"),
        ("list", HevcReference * MOST_INDEX * LISTS), ("weight", HevcWeight * MOST_INDEX * LISTS), ("decoder", ctypes.c_uint64),
        *_words("begun", "reserved"),
    ]  # fmt: skip

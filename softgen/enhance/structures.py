"""The structures of enhance.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import GraphicsTable, VideoSurface

CHANNELS, TAPS, PHASES, RANGES = 4, 8, 32, 6
SCALE_BITS = 17  # behind the point of positions
NEVER_HOT = 9  # hot_count


class SurfaceChannel(ctypes.Structure):
    """struct channel of enhance.h."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("present", "row", "offset", "step", "bytes", "half_pitch")]


class EnhanceSurface(ctypes.Structure):
    """struct enhance_surface of enhance.h."""

    _fields_ = [("walk", VideoSurface), ("channels", SurfaceChannel * CHANNELS)]


class DeepPlane(ctypes.Structure):
    """struct sample_plane of enhance.h."""

    _fields_ = [("samples", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32)]


class EnhanceFrame(ctypes.Structure):
    """struct enhance_frame of enhance.h."""

    _fields_ = [("planes", DeepPlane * CHANNELS)]


class Transfer(ctypes.Structure):
    """struct transfer of enhance.h."""

    _fields_ = [("memory", GraphicsTable), ("surface", EnhanceSurface), ("frame", EnhanceFrame), ("line", ctypes.c_uint64),
                *((name, ctypes.c_uint32) for name in ("first_x", "end_x", "fill", "reserved"))]  # fmt: skip


class Resampling(ctypes.Structure):
    """struct resampling of enhance.h."""

    _fields_ = [("source", EnhanceFrame), ("target", EnhanceFrame), ("average", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class ColourMatrix(ctypes.Structure):
    """struct colour_matrix of enhance.h."""

    _fields_ = [("frame", EnhanceFrame), ("coefficients", ctypes.c_int64 * 9), ("offset_in", ctypes.c_int64 * 3),
                ("offset_out", ctypes.c_int64 * 3)]  # fmt: skip


class History(ctypes.Structure):
    """struct history of enhance.h."""

    _fields_ = [("source", VideoSurface), ("target", VideoSurface), ("have_in", ctypes.c_uint32), ("have_out", ctypes.c_uint32)]


class DenoiseChannel(ctypes.Structure):
    """struct denoise_channel of enhance.h."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("enable", "temporal", "moving_threshold", "moving_pixels", "low", "high", "sad", "sum")),
        ("range_threshold", ctypes.c_uint32 * RANGES), ("range_weight", ctypes.c_uint32 * RANGES),
        ("hot_threshold", ctypes.c_uint32), ("hot_count", ctypes.c_uint32),
    ]  # fmt: skip


class Denoising(ctypes.Structure):
    """struct denoising of enhance.h."""

    _fields_ = [
        ("memory", GraphicsTable), ("current", EnhanceFrame), ("previous", EnhanceFrame), ("result", EnhanceFrame), ("history", History),
        ("line_in", ctypes.c_uint64), ("line_out", ctypes.c_uint64), ("channels", DenoiseChannel * 3),
        ("distance_weight", ctypes.c_uint32 * 3 * 3),
        *((name, ctypes.c_uint32) for name in ("history_start", "history_step", "history_max", "fields", "first_frame", "reserved")),
    ]  # fmt: skip


class Deinterlacing(ctypes.Structure):
    """struct deinterlacing of enhance.h."""

    _fields_ = [
        ("memory", GraphicsTable), ("current", EnhanceFrame), ("previous", EnhanceFrame), ("result", EnhanceFrame), ("history", History),
        ("line_in", ctypes.c_uint64), ("line_out", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("kept", "of_previous", "cadence", "first_frame", "shift_up", "shift_down", "divisor",
                                               "complexity_factor", "motion_min", "motion_max", "output_shift", "fade_small",
                                               "fade_large", "reserved")),
    ]  # fmt: skip


class ScaledPlane(ctypes.Structure):
    """struct scaled_plane of enhance.h."""

    _fields_ = [
        ("source", DeepPlane), ("target", DeepPlane), *((name, ctypes.c_int64) for name in ("start_x", "start_y", "step_x", "step_y")),
        ("x", ctypes.c_int8 * TAPS * PHASES), ("y", ctypes.c_int8 * TAPS * PHASES), ("rows", ctypes.c_uint64),
        ("bilinear", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
    ]  # fmt: skip


ALL = EnhanceSurface, EnhanceFrame, Transfer, Resampling, ColourMatrix, Denoising, Deinterlacing, ScaledPlane  # in the order of layout.c

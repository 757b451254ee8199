"""The structures of pak/jpeg/jpeg.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import PLANES

DC_CODES, AC_CODES = 12, 162


class JpegCode(ctypes.Structure):
    """struct jpeg_code of jpeg.h."""

    _fields_ = [("code", ctypes.c_uint16), ("length", ctypes.c_uint16)]


class JpegCodes(ctypes.Structure):
    """struct jpeg_codes of jpeg.h."""

    _fields_ = [("dc", JpegCode * DC_CODES), ("ac", JpegCode * AC_CODES)]


class JpegSource(ctypes.Structure):
    """struct jpeg_source of jpeg.h."""

    _fields_ = [*((name, ctypes.c_uint32) for name in ("across", "down", "width", "height", "dc_table", "ac_table")),
                ("reciprocals", ctypes.c_uint16 * 64)]  # fmt: skip


class JpegEncoder(ctypes.Structure):
    """struct jpeg_encoder of jpeg.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("writer", ctypes.c_uint64), ("component", JpegSource * PLANES), ("codes", JpegCodes * 2),
        *((name, ctypes.c_uint32) for name in ("components", "mcu_count", "next_mcu", "mcus_across", "restart_interval", "next_restart",
                                               "last", "reserved")),
        ("bits", ctypes.c_uint64), ("dc", ctypes.c_int32 * PLANES), ("reserved2", ctypes.c_int32),
    ]  # fmt: skip

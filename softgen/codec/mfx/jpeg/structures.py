"""The structures of jpeg.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import PLANES

TABLE_ROOM = 4096  # entries of a table


class JpegComponent(ctypes.Structure):
    """struct jpeg_component of jpeg.h."""

    _fields_ = [*((name, ctypes.c_uint32) for name in ("across", "down", "blocks_x", "blocks_y", "table", "in_scan")),
                ("matrix", ctypes.c_uint16 * 64)]  # fmt: skip


class JpegScan(ctypes.Structure):
    """struct jpeg_scan of jpeg.h."""

    _fields_ = [
        ("picture", ctypes.c_uint64), ("data", ctypes.c_char_p), ("size", ctypes.c_uint64), ("at", ctypes.c_uint64),
        ("segment", ctypes.c_uint64), ("tables", ctypes.c_uint64 * 2 * 2), ("component", JpegComponent * PLANES),
        *((name, ctypes.c_uint32) for name in ("mcu_count", "next_mcu", "restart_interval", "interleaved", "mcus_across", "reserved")),
    ]  # fmt: skip


class JpegTable(ctypes.Structure):
    """struct jpeg_table of jpeg.h."""

    _fields_ = [("entries", ctypes.c_uint64), ("counts", ctypes.c_uint8 * 16), ("values", ctypes.c_uint8 * 256)]

"""The structures of bits/writer.h, in the form that Python fills."""

from __future__ import annotations

import ctypes
from enum import IntEnum

from softgen.codec.structures import GraphicsTable

WRITER_ROOM = 4096  # bytes that wait for memory


class StreamEscape(IntEnum):
    """enum escape of bits/writer.h."""

    NONE = 0
    JPEG = 1
    NAL = 2


class Writer(ctypes.Structure):
    """struct writer of bits/writer.h."""

    _fields_ = [
        ("memory", GraphicsTable), ("base", ctypes.c_uint64), ("room", ctypes.c_uint64), ("size", ctypes.c_uint64),
        ("stored", ctypes.c_uint64), *((name, ctypes.c_uint32) for name in ("held", "held_bits", "escape", "zeros", "waiting", "reserved")),
        ("bytes", ctypes.c_uint8 * WRITER_ROOM),
    ]  # fmt: skip


class Insertion(ctypes.Structure):
    """struct insertion of bits/writer.h."""

    _fields_ = [("writer", ctypes.c_uint64), ("bytes", ctypes.c_char_p), ("bits", ctypes.c_uint64), ("plain", ctypes.c_uint32),
                ("escape", ctypes.c_uint32)]  # fmt: skip

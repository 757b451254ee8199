"""The structures of vdenc.h, in the form that Python fills."""

from __future__ import annotations

import ctypes

from softgen.codec.structures import VideoSurface


class VdencSearch(ctypes.Structure):
    """struct vdenc of vdenc.h."""

    _fields_ = [
        ("encoder", ctypes.c_uint64), ("intra_partitions", ctypes.c_uint32), ("intra_modes", ctypes.c_uint32 * 3),
        *((name, ctypes.c_uint32) for name in ("chroma_modes", "shapes", "subpel")), ("range", ctypes.c_int32 * 2),
        ("references", ctypes.c_uint32), ("lambda_", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
    ]  # fmt: skip


class VdencScaling(ctypes.Structure):
    """struct vdenc_scaling of vdenc.h."""

    _fields_ = [("picture", ctypes.c_uint64), ("surface", VideoSurface)]

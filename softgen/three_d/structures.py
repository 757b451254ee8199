"""The arrays between the stages of the 3D pipeline, as three_d.h declares them, and the C library of the stages."""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.eu import native
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions.pixel_dispatch import PixelDispatch

TILE = 64  # pixels of a tile's side
EDGES = 4


class Position(ctypes.Structure):
    """Normalised device coordinates and 1/w of a vertex."""

    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float), ("z", ctypes.c_float), ("rhw", ctypes.c_float)]


class VertexArray(ctypes.Structure):
    """The vertices of a chunk: vertex URB entries and positions, by number."""

    _fields_ = [("entries", ctypes.c_uint64), ("stride", ctypes.c_uint64), ("positions", ctypes.c_uint64), ("count", ctypes.c_uint32),
                ("capacity", ctypes.c_uint32)]  # fmt: skip


class PrimitiveObject(ctypes.Structure):
    """A point, line, triangle or rectangle; `flags` are enum object_flags of three_d.h."""

    _fields_ = [("vertex", ctypes.c_uint32 * 3), ("flags", ctypes.c_uint32), ("primitive", ctypes.c_uint32)]


class ObjectArray(ctypes.Structure):
    """Objects in drawing order."""

    _fields_ = [("objects", ctypes.c_uint64), ("count", ctypes.c_uint64), ("capacity", ctypes.c_uint64)]


class Plane(ctypes.Structure):
    """A value that is linear on the screen: c + dx * x + dy * y at the sample of pixel (x, y)."""

    _fields_ = [("c", ctypes.c_double), ("dx", ctypes.c_double), ("dy", ctypes.c_double)]


class SetupRecord(ctypes.Structure):
    """An object as the rasterizer sees it."""

    _fields_ = [
        ("x0", ctypes.c_int32), ("y0", ctypes.c_int32), ("x1", ctypes.c_int32), ("y1", ctypes.c_int32),
        ("edge", ctypes.c_int64 * EDGES), ("edge_dx", ctypes.c_int64 * EDGES), ("edge_dy", ctypes.c_int64 * EDGES),
        ("edges", ctypes.c_uint32), ("coverage", ctypes.c_uint32), ("line", ctypes.c_int32 * 4), ("stipple", ctypes.c_uint32),
        ("back_facing", ctypes.c_uint32), ("layer", ctypes.c_uint32), ("viewport", ctypes.c_uint32), ("primitive", ctypes.c_uint32),
        ("topology", ctypes.c_uint32),
        ("x_start", ctypes.c_float), ("y_start", ctypes.c_float),
        ("z", Plane), ("rhw", Plane), ("linear", Plane * 2), ("perspective", Plane * 2),
        ("attributes", ctypes.c_uint64),
    ]  # fmt: skip


class RecordArray(ctypes.Structure):
    """Setup records in drawing order, and their attributes."""

    _fields_ = [("records", ctypes.c_uint64), ("attributes", ctypes.c_uint64), ("attribute_stride", ctypes.c_uint64),
                ("count", ctypes.c_uint64), ("capacity", ctypes.c_uint64)]  # fmt: skip


class Bins(ctypes.Structure):
    """Record numbers by tile."""

    _fields_ = [("first", ctypes.c_uint64), ("numbers", ctypes.c_uint64), ("tiles_x", ctypes.c_uint32), ("tiles_y", ctypes.c_uint32),
                ("capacity", ctypes.c_uint64)]  # fmt: skip


def layout() -> list[int]:
    """The numbers that three_d_layout gives, as Python has them."""
    return [ctypes.sizeof(kind) for kind in (Position, VertexArray, PrimitiveObject, ObjectArray, SetupRecord, RecordArray, Bins,
                                             PixelDispatch)] + [SetupRecord.attributes.offset, PixelDispatch.depth.offset,
                                                               PixelDispatch.antialias.offset]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """The C functions of the stages."""
    return native.load("softgen.three_d._pipeline", "three_d_layout", layout())


@cache
def _address(function: str) -> int:
    return native.address(getattr(library(), function))


def guarded_call(function: str, argument: ctypes.Structure, space: Space) -> int:
    """Calls a function of the library that touches graphics memory: int64_t f(argument, guard record). Raises GpuFault."""
    record = guard.FaultRecord(ip=guard.NO_IP)
    if guard.library().guard_call(_address(function), ctypes.addressof(argument), record):
        raise guard.fault(record, space)
    return int(record.result)

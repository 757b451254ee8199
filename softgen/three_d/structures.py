"""The C library of the stages of the 3D pipeline, and the arrays between them (three_d.h)."""

from __future__ import annotations

import ctypes
from functools import cache

from softgen import walk_h
from softgen.eu import native
from softgen.library import load
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions import pixel_dispatch_h
from softgen.shared_functions.pixel_backend import blocks_h
from softgen.three_d import three_d_h
from softgen.three_d.clip_setup import geometry_h
from softgen.three_d.draw import draw_actor_h, draw_h
from softgen.three_d.geometry_shader import geometry_shader_h
from softgen.three_d.tessellation import tessellation_h, tessellator_h
from softgen.three_d.three_d_h import TILE, Bins, ObjectArray, Plane, RecordArray, ScreenPosition, SetupRecord, StageLoop, VertexArray
from softgen.three_d.three_d_h import Object as PrimitiveObject
from softgen.three_d.three_d_h import StageChunk as ChunkStruct
from softgen.three_d.vertices import vertex_fetch_h
from softgen.three_d.visibility import recording_h


@cache
def library() -> ctypes.CDLL:
    """The C functions of the stages."""
    headers = (three_d_h, geometry_h, vertex_fetch_h, recording_h, draw_h, draw_actor_h, geometry_shader_h, tessellation_h, tessellator_h,
               pixel_dispatch_h, blocks_h, walk_h)  # fmt: skip
    return load("softgen.three_d._pipeline", *headers)


@cache
def _address(function: str) -> int:
    return native.address(getattr(library(), function))


def guarded_call(function: str, argument: ctypes.Structure, space: Space) -> int:
    """Calls a function of the library that touches graphics memory: int64_t f(argument, guard record). Raises GpuFault."""
    record = guard.FaultRecord(ip=guard.NO_IP)
    if guard.library().guard_call(_address(function), ctypes.addressof(argument), record):
        raise guard.fault(record, space)
    return int(record.result)


__all__ = [
    "TILE",
    "Bins",
    "ChunkStruct",
    "ObjectArray",
    "Plane",
    "PrimitiveObject",
    "RecordArray",
    "ScreenPosition",
    "SetupRecord",
    "StageLoop",
    "VertexArray",
    "guarded_call",
    "library",
]  # fmt: skip

"""Vertices as vertex fetch stores them, from buffers and elements that a test makes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.formats import surface_formats
from softgen.bits.generation import generations
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.vertices.vertex_fetch import Destination, vertex_dwords, vertex_fetch

NOSTORE, SRC, ZERO, ONE, ONE_INT, VERTEX_ID, INSTANCE_ID, PRIMITIVE_ID = range(8)
GENS = tuple(generations())
AT = 0x10000
R32_UINT = 0x0D7
Words = npt.NDArray[np.uint32]


def value(form: str) -> int:
    return next(f.value for f in surface_formats().values() if f.name == form)


def buffer(gen: float, size: int, pitch: int = 16, address: int = AT, **more: Any) -> dict[str, Any]:
    """A vertex buffer of `size` bytes, as the generation says it."""
    bounds: dict[str, Any]
    if gen < 7:
        bounds = {"max_index": max(size // pitch - 1, 0) if pitch else 0}
    elif gen < 8:
        bounds = {"end_address": address + size - 1}
    else:
        bounds = {"buffer_size": size}
    modify = {} if gen < 7 else {"address_modify_enable": 1}
    return {"buffer_pitch": pitch, "buffer_starting_address": address, **bounds, **modify, **more}


def fetched(state: DrawState, draw: DrawCall, vertices: list[int], instances: list[int] | None = None,
            destination: Destination | None = None) -> Words:  # fmt: skip
    """The dwords of these vertices (VertexIDs), as a vertex URB entry has them."""
    destination = destination or Destination.entry(vertex_dwords(state, draw))
    plan = vertex_fetch(state, draw, destination)
    ids, instance_ids = np.array(vertices, np.uint32), np.array(instances or [0] * len(vertices), np.uint32)
    into = np.full((len(vertices), max(destination.dwords, 1)), 0xDEADBEEF, np.uint32)
    plan.run(ids.ctypes.data, instance_ids.ctypes.data, len(vertices), into.ctypes.data, into.strides[0], 0)
    return into


def dwords(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)

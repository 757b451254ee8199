"""Chunk: the arrays of a part of a draw, between the stages of the pipeline."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from softgen.shared_functions.urb.memory import ENTRY, POOL, ROW, UrbMemory
from softgen.three_d.structures import ObjectArray, PrimitiveObject, ScreenPosition, VertexArray
from softgen.three_d.three_d_h import LIST_VERTICES

Bytes = npt.NDArray[np.uint8]

VERTICES = 12288  # that a chunk fetches: those of its objects if they are triangles of a list
MADE_VERTICES = 4096  # room for those that clipping makes
OBJECTS = 4096
ANNEX = 1 << 22  # bytes behind the vertices, for entries of the stage that reads these
LINE = 64


def aligned(size: int) -> Bytes:
    """Zeroed bytes that start at a cache line."""
    raw = np.zeros(size + LINE, np.uint8)
    return raw[-raw.ctypes.data % LINE :][:size]


class Chunk:
    """Vertices and objects of a part of a draw. The URB of its threads is the memory of its vertex entries, whole rows each."""

    def __init__(self, entry_bytes: int, vertices: int = VERTICES + MADE_VERTICES, objects: int = OBJECTS, front: int = 0,
                 annex: int = ANNEX) -> None:  # fmt: skip
        """`front`, `annex`: bytes before and after the vertices."""
        self.urb = UrbMemory(aligned(front + vertices * entry_bytes + annex))
        self.positions = aligned(vertices * ctypes.sizeof(ScreenPosition))
        self.held_objects = aligned(objects * ctypes.sizeof(PrimitiveObject))
        self.vertices = VertexArray(self.urb.address + front, entry_bytes, self.positions.ctypes.data, 0, vertices)
        self.objects = ObjectArray(self.held_objects.ctypes.data, 0, objects)
        self.lists = aligned(4 * LIST_VERTICES * objects)


class OutputChunk(Chunk):
    """A chunk for what threads of a stage put out: an object for each vertex, besides those that pass; entries and pools of a URB."""

    def __init__(self, entry_bytes: int) -> None:
        super().__init__(entry_bytes, objects=VERTICES + MADE_VERTICES + OBJECTS)
        self.urb = UrbMemory(self.urb.bytes, np.zeros(self.urb.size // ROW, ENTRY), np.zeros(1, POOL))
        self._shared: tuple[UrbMemory, UrbMemory] | None = None

    def sharing(self, urb: UrbMemory) -> UrbMemory:
        """The URB for threads that put out entries among those of another chunk."""
        if self._shared is None or self._shared[0] is not urb:
            self._shared = urb, UrbMemory(urb.bytes, self.urb.entries, self.urb.pools)
        return self._shared[1]

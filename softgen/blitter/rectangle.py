"""Rectangles of surfaces as arrays of bytes: linear ones row by row, tiled ones tile by tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from softgen.blitter.blit import BlitSurface
from softgen.memory.space import Space
from softgen.surface.tile_table import tile_offsets
from softgen.surface.tiling import orders

Bytes = npt.NDArray[np.uint8]
Part = tuple[int, int, tuple[slice, slice], npt.NDArray[np.uint32]]  # address, size, place in the rectangle, offsets of its bytes


class SurfaceRectangle:
    """`size` bytes and rows of a surface from its place on."""

    def __init__(self, space: Space, surface: BlitSurface, size: tuple[int, int]) -> None:
        self.space, self.surface, (self.columns, self.rows) = space, surface, size

    def _address(self, offset: int) -> int:
        return self.surface.base + offset & (1 << self.space.bits) - 1

    def _parts(self) -> Iterator[Part]:
        """What is read and written at once: a row, or a tile."""
        at = self.surface
        if at.tiling == "linear":
            every = np.arange(self.columns, dtype=np.uint32)[None, :]
            for row in range(self.rows):
                yield self._address((at.y + row) * at.pitch + at.x), self.columns, (slice(row, row + 1), slice(0, self.columns)), every
            return
        order = orders()[at.tiling]
        (across, down), (wide, high) = tile_offsets(at.tiling), (1 << order.count(letter) for letter in "XY")
        for y in range(at.y // high * high, at.y + self.rows, high):
            top, bottom = max(y, at.y), min(y + high, at.y + self.rows)
            for x in range(at.x // wide * wide, at.x + self.columns, wide):
                left, right = max(x, at.x), min(x + wide, at.x + self.columns)
                offsets = down[top - y : bottom - y, None] + across[None, left - x : right - x]
                tile = (y // high * (at.pitch // wide) + x // wide) << len(order)
                yield self._address(tile), 1 << len(order), (slice(top - at.y, bottom - at.y), slice(left - at.x, right - at.x)), offsets

    def read(self) -> Bytes:
        found = np.zeros((self.rows, self.columns), np.uint8)
        for address, size, place, offsets in self._parts():
            found[place] = np.frombuffer(self.space.read(address, size), np.uint8)[offsets]
        return found

    def write(self, data: Bytes) -> None:
        for address, size, place, offsets in self._parts():
            held = np.frombuffer(self.space.read(address, size), np.uint8).copy()
            held[offsets] = data[place]
            self.space.write(address, held.tobytes())

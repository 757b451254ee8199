"""Surfaces of media blocks for compiled code: a MediaSurface for each binding table entry that such messages name (media_block.c).

In:  surface state. Out: host addresses in Bindings.media. A surface that media blocks refuse has none: the interpreter says why.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache

from softgen.errors import SoftgenError
from softgen.library import AGAIN
from softgen.library import load as load_part
from softgen.shared_functions import block_access
from softgen.shared_functions.bindings import Bindings
from softgen.shared_functions.block_access import SurfaceWalk
from softgen.shared_functions.dataport import media_block_h
from softgen.shared_functions.dataport.media import UNIT, is_plain, row_bytes
from softgen.shared_functions.dataport.media_block_h import MediaSurface
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.surface.image import SurfaceImage


@cache
def _functions() -> tuple[int, int]:
    """Host addresses of the functions that read and write."""
    found = load_part("softgen.shared_functions._blocks", media_block_h)
    read, write = (ctypes.cast(function, ctypes.c_void_p).value for function in (found.media_block_read, found.media_block_write))
    if not read or not write:
        raise SoftgenError(f"softgen.shared_functions._blocks is of another version; {AGAIN}")
    return read, write


class MediaSurfaces:
    """The media surfaces of a binding table, entered into its Bindings."""

    def __init__(self, bindings: Bindings, surfaces: Surfaces) -> None:
        self.bindings, self.surfaces = bindings, surfaces
        self._held: dict[int, MediaSurface] = {}  # what the entries point to

    def fill(self, index: int) -> bool:
        """Enter a surface; whether there is one that media blocks can be of, and it was not there."""
        if index in self._held:
            return False
        image, state = self.surfaces.picture(index, False), self.surfaces.state(index)
        if not is_plain(image):
            return False
        lines = int(state.vertical_line_stride), int(state.vertical_line_stride_offset)
        made = media_surface(self.surfaces, image, lines, int(state.media_boundary_pixel_mode))
        self._held[index] = made
        self.bindings.media[index] = ctypes.addressof(made)
        return True

    def holds(self, index: int) -> bool:
        return index in self._held


def media_surface(surfaces: Surfaces, image: SurfaceImage, lines: tuple[int, int], boundary: int) -> MediaSurface:
    """The numbers of a surface. `lines`: vertical line stride, and its offset."""
    image, made, space = replace(image, lines=(1, 0)), MediaSurface(), surfaces.space
    made.read, made.write = _functions()
    made.null = image.kind == "null"
    made.table, made.address_mask = ctypes.addressof(space.table), (1 << space.bits) - 1
    made.texel, made.boundary = min(image.size, UNIT), boundary
    made.step, made.first = (2, lines[1]) if lines[0] else (1, 0)
    if made.null:
        return made
    block_access.place(made, SurfaceWalk(space, image.base, image.tiling, image.pitch))
    made.run = block_access.run(image.tiling)
    made.row_bytes, made.height = row_bytes(image), image.height
    made.left, made.top = image.at[0] * UNIT, image.at[1]
    return made

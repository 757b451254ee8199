"""Names of a draw and its pixels, for differences between engines."""

from __future__ import annotations

from softgen.surface.image import SurfaceImage
from softgen.surface.texels import texel_at
from softgen.threads.compare.selection import PixelPlace
from softgen.three_d.pixels.render_target import extent, render_target
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import TILE

MOST_TARGETS = 8


class DrawNames:
    """WorkNames of a draw: the `number`-th of its submission, from 1. `first` is its first render target."""

    def __init__(self, number: int, state: DrawState, call: DrawCall, first: SurfaceImage | None) -> None:
        self.number, self.state, self.call, self.first = number, state, call, first

    @property
    def title(self) -> str:
        return f"draw {self.number} ({self.call.vertices} vertices, {self.call.instances} instances)"

    def pixel(self, address: int) -> PixelPlace | None:
        """The pixel of a render target that an address belongs to."""
        across = -(-extent(self.first)[0] // TILE)
        for index in range(MOST_TARGETS):
            image = render_target(self.state, index)
            if image is not None and (found := texel_at(image, address)) is not None:
                x, y = found
                return PixelPlace(f"pixel ({x}, {y}) of render target {index}", y // TILE * across + x // TILE)
        return None

"""The part of a draw that engines are compared on: tiles of its picture, chosen at random, and objects in them.

Large pictures take minutes on the reference engine, sampled tiles of them seconds (`--compare-tiles N`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


class WorkNames(Protocol):
    """Names for a unit of work and its memory, for error messages."""

    @property
    def title(self) -> str: ...

    def pixel(self, address: int) -> PixelPlace | None:
        """The pixel that an address of a bound surface belongs to."""
        ...


@dataclass(frozen=True)
class PixelPlace:
    """A pixel of a bound surface."""

    text: str
    tile: int  # number of its tile in the draw's bins


class TileSelection:
    """The tiles of a draw that are shaded: `count` of those it touches, chosen at random, or `tile` alone; of each the first `objects`.

    The same selection gives the same tiles on every engine.
    """

    def __init__(self, count: int = 1, seed: int = 0, tile: int | None = None, objects: int | None = None) -> None:
        self.count, self.seed, self.tile, self.objects = count, seed, tile, objects
        self.objects_seen = 0  # in the fullest tile that was selected

    def tiles(self, touched: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The selected ones of the tiles that have objects."""
        if self.tile is not None:
            return np.intersect1d(touched, [self.tile])
        if len(touched) <= self.count:
            return touched
        return np.random.default_rng(self.seed).choice(touched, self.count, replace=False)

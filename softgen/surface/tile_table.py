"""Tile tables: what the coordinates of a byte add to its offset within a tile, for compiled code."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from softgen.errors import Unsupported
from softgen.surface import tiling as tilings

Words = npt.NDArray[np.uint32]


@cache
def tile_offsets(name: str) -> tuple[Words, Words]:
    """Of a tiling: what each byte of a row, and each row, adds to the offset within a tile."""
    order = tilings.orders().get(name)
    if order is None:
        raise Unsupported(f"surfaces with tiling {name}: not yet simulated")
    parts = []
    for which in "XY":
        places = [at for at, letter in enumerate(reversed(order)) if letter == which]
        numbers = np.arange(1 << len(places), dtype=np.uint32)
        offsets: Words = np.zeros_like(numbers)
        for bit, at in enumerate(places):
            offsets |= (numbers >> np.uint32(bit) & np.uint32(1)) << np.uint32(at)
        parts.append(offsets)
    return parts[0], parts[1]

"""Places of all texels of the level and slice that a surface state addresses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import MOST_LANES, u32
from softgen.surface.image import SurfaceImage, locate


def texel_axes(image: SurfaceImage) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Byte offsets of the columns from the first one, and of the rows from the base.

    In every tiling each bit of an address comes from one coordinate alone, so that a texel's offset is the sum of its column's and row's.
    """
    width, height = _extent(image)
    across = _offsets(image, 0, width)
    return across - across[0], _offsets(image, 1, height)


def texel_offsets(image: SurfaceImage) -> npt.NDArray[np.int64]:
    """Byte offsets from the base, as an array of rows."""
    across, down = texel_axes(image)
    found: npt.NDArray[np.int64] = np.add.outer(down, across)
    return found


def texel_at(image: SurfaceImage, address: int) -> tuple[int, int] | None:
    """Column and row of the texel that has the byte at an address."""
    if image.kind in ("buffer", "null"):
        return None
    beyond = address - image.base - texel_offsets(image)
    rows, columns = np.nonzero((beyond >= 0) & (beyond < image.size))
    return (int(columns[0]), int(rows[0])) if len(rows) else None


def _extent(image: SurfaceImage) -> tuple[int, int]:
    """Width and height of the level that the surface addresses."""
    _, _, width, height = image.level_box(image.level)
    return width, 1 if image.kind == "1d" else height


def _offsets(image: SurfaceImage, axis: int, count: int) -> npt.NDArray[np.int64]:
    """Byte offsets from the base of the first texels along an axis (0: a row, 1: a column)."""
    m, found = NumpyMachine(), []
    for first in range(0, count, MOST_LANES):
        numbers = np.arange(first, min(first + MOST_LANES, count), dtype=np.uint32)
        places = [m.constant(u32, 0, len(numbers))] * image.coordinates
        if axis < len(places):
            places[axis] = m.value(u32, numbers)
        at, _ = locate(m, image, places, None)
        found.append(np.asarray(at.payload).astype(np.int64))
    return np.concatenate(found)

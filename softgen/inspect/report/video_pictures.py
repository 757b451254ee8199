"""Decoded pictures as RGB: BT.601, of JPEG with the full range; other matrices and ranges are not in the commands.

Chroma samples are repeated over the luma samples that share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.codec.image import VideoImage
from softgen.codec.structures import SurfaceLayout
from softgen.surface.image import SurfaceImage

Bytes = npt.NDArray[np.uint8]
Plane = Callable[[SurfaceImage], Any]  # an image's stored values: red, green, blue, alpha
BAND = 64  # rows at a time
GREY, BLACK = 128, 16
# Red, green and blue of (luma, Cb, Cr) above black and grey.
FULL = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])
NARROW = np.array([[255 / 219, 0, 1.596027], [255 / 219, -0.391762, -0.812968], [255 / 219, 2.017232, 0]])
PACKED = {SurfaceLayout.PACKED_YUYV: (0, 1, 2, 3), SurfaceLayout.PACKED_UYVY: (1, 0, 3, 2)}  # bytes of luma, Cb, luma, Cr


def rgb(image: VideoImage, plane: Plane) -> Bytes:
    """A decoded picture; a grey one without chroma has one channel."""
    luma, chroma = _planes(image, plane)
    if chroma is None:
        return luma
    matrix, black = (FULL, 0) if image.full_range else (NARROW, BLACK)
    down, across = (-(-luma.shape[axis] // chroma.shape[axis]) for axis in range(2))
    found = np.empty((*luma.shape, 3), np.uint8)
    for first in range(0, len(luma), BAND):
        rows, columns = np.arange(first, min(first + BAND, len(luma))), np.arange(luma.shape[1])
        shared = chroma[(rows // down)[:, None], columns // across].astype(np.float32) - GREY
        values = np.concatenate([luma[rows][..., None].astype(np.float32) - black, shared], axis=2) @ matrix.T
        found[rows] = np.rint(np.clip(values, 0, 255))
    return found


def _planes(image: VideoImage, plane: Plane) -> tuple[Bytes, Bytes | None]:
    own, *parts = (np.asarray(plane(part)) for part in image.planes)
    if image.packed is not None:
        first, blue, second, red = PACKED[image.packed]
        return own[..., [first, second]].reshape(len(own), -1), own[..., [blue, red]]
    if not parts:
        return own, None
    return own, parts[0][..., :2] if len(parts) == 1 else np.stack(parts, axis=2)

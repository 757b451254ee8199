"""The scenes of vulkan_samples.c by a plain model: coverage and depth of each sample by edge functions, in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.pictures.compare import Picture

SIDE = 64
CLEAR, DEPTH = (0.2, 0.32, 0.4), 0.85
MASK, SHADER_MASK = 0x5A5B, 0xCCCD
CORNERS = np.array([(-0.91, -0.83, 0.2), (0.87, -0.39, 0.8), (-0.23, 0.93, 0.4),
                    (0.81, -0.95, 0.1), (0.63, 0.77, 0.6), (-0.97, 0.11, 0.7),
                    (-0.71, 0.91, 0.3), (0.13, -0.87, 0.5), (0.95, 0.59, 0.9)]).reshape(3, 3, 3)  # fmt: skip
COLOURS = np.array([(1, 0.2, 0), (0, 1, 0.4), (0.6, 0, 1)])
# the standard places of samples, in sixteenths of a pixel from its upper left corner (Vulkan, "Multisampling")
PLACES = {
    1: [(8, 8)],
    2: [(12, 12), (4, 4)],
    4: [(6, 2), (14, 6), (2, 10), (10, 14)],
    8: [(9, 5), (7, 11), (13, 9), (5, 3), (3, 13), (1, 7), (11, 15), (15, 1)],
    16: [(9, 9), (7, 5), (5, 10), (12, 7), (3, 6), (10, 13), (13, 11), (11, 3), (6, 14), (8, 1), (4, 2), (2, 12), (0, 8), (15, 4), (14, 15),
         (1, 0)],
}  # fmt: skip
Floats = npt.NDArray[np.float64]


def samples(scene: str, count: int) -> tuple[Floats, int]:
    """Colours by row, column and sample, before a resolve, and how many samples have passed the depth test."""
    offsets = np.array(PLACES[count]) / 16
    y, x = np.mgrid[:SIDE, :SIDE]
    x, y = x[..., None] + offsets[:, 0], y[..., None] + offsets[:, 1]
    numbers = np.broadcast_to(np.arange(count), x.shape)
    allowed = np.ones(x.shape, bool)
    if scene == "masked":
        columns = (np.floor(x).astype(int) & 4) != 0
        allowed = (MASK >> numbers & 1 != 0) & (~columns | (SHADER_MASK >> numbers & 1 != 0))
    fraction = (16 - numbers) / 16 if scene in ("shaded", "fetched") else np.ones(x.shape)
    colour, depth, passed = np.broadcast_to(CLEAR, (*x.shape, 3)).copy(), np.full(x.shape, DEPTH), 0
    for corners, flat in zip(CORNERS, COLOURS, strict=True):
        inside, z = triangle(corners, x, y)
        visible = inside & (z < depth) & allowed
        depth = np.where(visible, z, depth)
        colour = np.where(visible[..., None], flat * fraction[..., None], colour)
        passed += int(visible.sum())
    return colour, passed


def triangle(corners: Floats, x: Floats, y: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which places a triangle covers, and its depth there."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = ((round((u + 1) * SIDE / 2 * 256) / 256, round((v + 1) * SIDE / 2 * 256) / 256, w)
                                                for u, v, w in corners)  # fmt: skip
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    first = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area
    second = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area
    third = 1 - first - second
    return (first > 0) & (second > 0) & (third > 0), first * az + second * bz + third * cz


def picture(scene: str, count: int) -> tuple[Picture, int]:
    """What the program writes, and how many samples have passed the depth test."""
    colour, passed = samples(scene, count)
    colour = np.round(colour * 255)
    if scene == "fetched":
        y, x = np.mgrid[:SIDE, :SIDE]
        shown = np.take_along_axis(colour, ((x + 3 * y) % count)[..., None, None], 2)[:, :, 0]
    else:
        shown = np.round(colour.mean(2))
    made: Picture = np.concatenate([shown, np.full((SIDE, SIDE, 1), 255)], 2).astype(np.uint8)
    return made, passed

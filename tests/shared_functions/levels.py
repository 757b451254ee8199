"""Surfaces with mip levels and messages with levels of detail, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.shared_functions.mipmaps import Mipmap
from tests.shared_functions.sending import header
from tests.shared_functions.texture import STATES

GENERATIONS = (4.5, 7, 7.5, 8, 9, 11)
KINDS: dict[str, tuple[str, bool, tuple[int, int, int]]] = {
    "1d": ("1d", False, (29, 1, 1)), "1d array": ("1d", True, (29, 1, 3)), "2d": ("2d", False, (16, 12, 1)),
    "2d array": ("2d", True, (13, 9, 3)), "3d": ("3d", False, (14, 9, 6)),
}  # fmt: skip
NONE, NEAREST, LINEAR = 0, 1, 3  # mip filters


def surface(gen: float, kind: str = "2d", **more: Any) -> Mipmap:
    type, array, shape = KINDS[kind]
    return Mipmap(gen=gen, kind=type, array=array, shape=shape, **more)


def limits(mip: int, **more: float) -> dict[str, float]:
    return {"mip_mode_filter": mip, "max_lod": 13.0, **more}


def send(mipmap: Mipmap, name: str, *parts: Any, lanes: int = 16, mask: int = 0xFFFF, dword: Any = np.float32, **more: Any) -> Any:
    """The answer of a message with all its parameters in the order of Gen7 and later; lanes down, channels across."""
    registers = [np.broadcast_to(np.asarray(part, dword), lanes).copy() for part in parts]
    if mipmap.gen == 4.5:
        top = header(d3=STATES)
        return mipmap.send(name, top, *registers, mask=mask, width=lanes, answer=4 * lanes // 8).view(np.uint32).reshape(-1, lanes).T
    mode = {8: 1, 16: 2}[lanes]
    found = mipmap.send(name, *registers, mask=mask, width=lanes, answer=4 * lanes // 8, simd_mode=mode, **more)
    return found.view(np.uint32).reshape(-1, lanes).T


def values(bits: Any) -> Any:
    return np.ascontiguousarray(bits).view(np.float32).astype(np.float64)


def slices(mipmap: Mipmap, lanes: int = 16) -> Any:
    return np.arange(lanes) % (mipmap.shape[2] if mipmap.array or mipmap.kind == "3d" else 1)


def sample_l(mipmap: Mipmap, places: list[Any], lods: Any) -> Any:
    """With an explicit level, in the order of the generation."""
    if mipmap.gen == 4.5:
        filled = [*places, *[np.zeros(16, np.float32)] * 3][:3]
        return send(mipmap, "sample_l", *filled, lods)
    return send(mipmap, "sample_l", lods, *places)


def subspans(lanes: int, step: float, seed: int) -> list[Any]:
    """Coordinates of 2x2 subspans whose neighbours are up to `step` apart."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(2):
        corner, right, down = (random.uniform(-scale, scale, lanes // 4) for scale in (1, step, step))
        found.append(np.stack([corner, corner + right, corner + down, corner + right + down], 1).reshape(-1).astype(np.float32))
    return found

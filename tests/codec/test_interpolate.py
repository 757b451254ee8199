"""H.264's luma at quarter positions against its definition in whole numbers (8.4.2.2.1), on samples that take sums to their ends."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pytest

from softgen.codec.library import library

Samples = npt.NDArray[np.int64]
TAPS, MARGIN = (1, -5, 20, 20, -5, 1), 3


def six(samples: Samples, axis: int) -> Samples:
    """The sum between each sample and the next; the margin is only good for what is inside of it."""
    return sum((tap * np.roll(samples, 2 - i, axis) for i, tap in enumerate(TAPS)), np.zeros_like(samples))


def clipped(sums: Samples, shift: int) -> Samples:
    return np.clip(sums + (1 << shift - 1) >> shift, 0, 255)


def at_quarter(samples: Samples, fx: int, fy: int) -> Samples:
    across, down = clipped(six(samples, 1), 5), clipped(six(samples, 0), 5)
    middle = clipped(six(six(samples, 1), 0), 10)
    halves = {(0, 0): samples, (2, 0): across, (0, 2): down, (2, 2): middle}
    if fx % 2 == 0 and fy % 2 == 0:
        return halves[fx, fy]
    if fx % 2 and fy % 2:
        pair = np.roll(across, -(fy // 2), 0), np.roll(down, -(fx // 2), 1)
    elif fx % 2:
        pair = halves[2, fy], np.roll(halves[0, fy], -(fx // 2), 1)
    else:
        pair = halves[fx, 2], np.roll(halves[fx, 0], -(fy // 2), 0)
    return np.asarray(pair[0] + pair[1] + 1 >> 1)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_luma_at_quarters_is_the_standards(width: int) -> None:
    random, side = np.random.default_rng(width), 16 + 2 * MARGIN
    for samples in (*(random.integers(0, 2, (side, side)) * 255 for _ in range(6)), random.integers(0, 256, (side, side))):
        source, out = np.zeros((side + 1, 48), np.uint8), np.zeros((16, 16), np.uint8)
        source[:side, :side] = samples
        for fx, fy in np.ndindex(4, 4):
            first = source.ctypes.data + MARGIN * 48 + MARGIN
            library().avc_interpolate(ctypes.c_void_p(out.ctypes.data), ctypes.c_ssize_t(16), ctypes.c_void_p(first),
                                      ctypes.c_ssize_t(48), fx, fy, width, 16)  # fmt: skip
            inside = slice(MARGIN, MARGIN + 16), slice(MARGIN, MARGIN + width)
            assert np.array_equal(out[:, :width], at_quarter(samples.astype(np.int64), fx, fy)[inside]), (fx, fy)

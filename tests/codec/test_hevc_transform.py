"""HEVC's inverse transforms against the sums that define them, and what coefficients that are left out change: nothing."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pytest

from softgen.codec.library import library

Block = npt.NDArray[np.int16]
DEPTH = 8
SHIFT = 20 - DEPTH


def pointer(block: Block) -> ctypes.c_void_p:
    return ctypes.c_void_p(block.ctypes.data)


def cosine(block: Block, columns: int, rows: int) -> Block:
    out, size = np.empty_like(block), len(block)
    library().hevc_transform(pointer(out), pointer(block), size.bit_length() - 1, columns, rows, SHIFT)
    return out


@pytest.mark.parametrize("size", [4, 8, 16, 32])
def test_the_cosine_transform_is_near_its_definition(size: int) -> None:
    """Integer factors of 64 times the orthonormal ones: within 2 of the exact sum."""
    random, k = np.random.default_rng(size), np.arange(size)
    basis = np.cos((2 * k[None, :] + 1) * k[:, None] * np.pi / (2 * size)) * np.where(k == 0, np.sqrt(1 / size), np.sqrt(2 / size))[:, None]
    for _ in range(40):
        rows, columns = (4 * int(random.integers(1, size // 4 + 1)) for _ in range(2))
        block = np.zeros((size, size), np.int16)
        block[:rows, :columns] = random.integers(-400, 400, (rows, columns))
        # both stages scale by 64 sqrt(size) and shift by 7 and 12
        exact = basis.T @ block.astype(np.float64) @ basis * (size * 64 * 64 / 2 ** (7 + SHIFT))
        found = cosine(block, columns, rows)
        assert np.abs(found - exact).max() <= 2 + np.abs(exact).max() / 64
        assert (found == cosine(block, size, size)).all()


def test_the_sine_transform_is_its_matrix() -> None:
    matrix = np.array([[29, 55, 74, 84], [74, 74, 0, -74], [84, -29, -74, 55], [55, -84, 74, -29]])
    random = np.random.default_rng(1)
    for _ in range(50):
        block = random.integers(-3000, 3000, (4, 4)).astype(np.int16)
        between = np.clip((matrix.T @ block.astype(int) + 64) >> 7, -32768, 32767)
        expected = np.clip((between @ matrix + (1 << SHIFT - 1)) >> SHIFT, -32768, 32767)
        out = np.empty_like(block)
        library().hevc_sine_4x4(pointer(out), pointer(block), SHIFT)
        assert (out == expected).all()

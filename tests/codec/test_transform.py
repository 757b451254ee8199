"""The 8x8 inverse DCT against the sum that defines it, within what IEEE 1180 allows."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from softgen.codec.library import library


def transformed(block: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    out = np.ascontiguousarray(block, np.int16).copy()
    library().simple_idct(ctypes.c_void_p(out.ctypes.data))
    return out


def exact(block: npt.NDArray[np.int16]) -> npt.NDArray[np.float64]:
    k = np.arange(8)
    basis = np.cos((2 * k[None, :] + 1) * k[:, None] * np.pi / 16) * np.where(k == 0, np.sqrt(1 / 8), 0.5)[:, None]
    return np.asarray(basis.T @ block.astype(np.float64) @ basis)


def test_the_transform_meets_ieee_1180() -> None:
    random, errors = np.random.default_rng(4), []
    for scale in (5, 256, 300):
        for _ in range(700):
            samples = random.integers(-scale, scale, (8, 8))
            k = np.arange(8)
            basis = np.cos((2 * k[None, :] + 1) * k[:, None] * np.pi / 16) * np.where(k == 0, np.sqrt(1 / 8), 0.5)[:, None]
            coefficients = np.clip(np.rint(basis @ samples @ basis.T), -2048, 2047).astype(np.int16)
            errors.append(transformed(coefficients) - np.rint(exact(coefficients)))
    found = np.array(errors)
    assert np.abs(found).max() <= 1
    assert (found**2).mean() <= 0.02 and np.abs(found.mean()) <= 0.0015


def test_one_coefficient_and_none() -> None:
    block = np.zeros((8, 8), np.int16)
    assert not transformed(block).any()
    block[0, 0] = 80
    assert (transformed(block) == 10).all()
    block[0, 0], block[3, 5] = 0, 500
    assert np.abs(transformed(block) - exact(block)).max() < 1

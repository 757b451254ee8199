"""Inverse transforms of VP9 against the sums that define them, and the lossless one against its forward transform."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pytest

from softgen.codec.library import library

Block = npt.NDArray[np.int64]
DCT, ADST_DOWN, ADST_ACROSS, ADST_BOTH = range(4)


class Transform(ctypes.Structure):
    """struct vp9_transform of transform.h."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("size", "type", "reach", "lossless", "depth")]


def added(coefficients: Block, samples: Block, kind: int = DCT, lossless: bool = False, depth: int = 8) -> Block:
    """Samples to which the C code has added the residual of a block."""
    side = len(samples)
    turned = np.ascontiguousarray(coefficients.T, np.int32)
    at = np.flatnonzero(turned)
    transform = Transform(side.bit_length() - 3, kind, int(np.bitwise_or.reduce(at)) if len(at) else 0, lossless, depth)
    room = np.full((side, side + 5), 7, np.uint16)
    room[:, :side] = samples
    pointers = ctypes.c_void_p(room.ctypes.data), ctypes.c_ssize_t(side + 5), ctypes.c_void_p(turned.ctypes.data)
    library().vp9_add(*pointers, ctypes.byref(transform))
    assert not turned.any() and (room[:, side:] == 7).all()
    return room[:, :side].astype(np.int64)


def basis(side: int, is_adst: bool) -> npt.NDArray[np.float64]:
    """Row k: the samples of coefficient k, of length 1."""
    k, n = np.arange(side)[:, None], np.arange(side)[None, :]
    if is_adst and side == 4:
        return np.sin((2 * k + 1) * (n + 1) * np.pi / 9) * (2 / 3)
    if is_adst:
        return np.sin((2 * k + 1) * (2 * n + 1) * np.pi / (4 * side)) * np.sqrt(2 / side)
    return np.cos((2 * n + 1) * k * np.pi / (2 * side)) * np.where(k == 0, np.sqrt(1 / side), np.sqrt(2 / side))


def exact(coefficients: Block, kind: int) -> npt.NDArray[np.float64]:
    side = len(coefficients)
    down, across = basis(side, bool(kind & ADST_DOWN)), basis(side, bool(kind & ADST_ACROSS))
    return down.T @ coefficients @ across / {4: 8, 8: 8, 16: 8, 32: 4}[side]


@pytest.mark.parametrize("depth", [8, 10])
@pytest.mark.parametrize(("side", "kind"), [(side, kind) for side in (4, 8, 16) for kind in range(4)] + [(32, DCT)])
def test_transforms_are_the_sums_that_define_them(side: int, kind: int, depth: int) -> None:
    random, most = np.random.default_rng(side + kind), (1 << depth) - 1
    for reach in (1, 2, side // 2, side):
        coefficients = np.zeros((side, side), np.int64)
        coefficients[:reach, : max(reach // 2, 1)] = random.integers(-300 << depth - 8, 300 << depth - 8, (reach, max(reach // 2, 1)))
        samples = random.integers(0, most + 1, (side, side))
        expected = np.clip(samples + exact(coefficients, kind), 0, most)
        assert np.abs(added(coefficients, samples, kind, depth=depth) - expected).max() <= 1


def test_the_lossless_transform_undoes_walsh_hadamard() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        before, after = random.integers(0, 256, (4, 4)), random.integers(0, 256, (4, 4))
        assert (added(forward(after - before), before, lossless=True) == after).all()


def forward(residual: Block) -> Block:
    """The forward transform that the lossless one undoes: its steps in reverse, columns first."""
    return np.apply_along_axis(steps, 1, np.apply_along_axis(steps, 0, residual)) * 4


def steps(line: Block) -> Block:
    a, b, c, d = (int(value) for value in line)
    a, d = a + b, d - c
    half = (a - d) >> 1
    b, c = half - b, half - c
    return np.array([a - c, c, d + b, b])

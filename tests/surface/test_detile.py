"""Rectangles of tiled surfaces as rows: each byte where the tiling has it, and nothing beyond the surface."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import SoftgenError
from softgen.surface.detile import TiledRows, contiguous, detile
from tests.inspect.report.test_pictures import place

TILE_ROWS = {"linear": 1, "x_major": 8, "y_major": 32}


@pytest.mark.parametrize("tiling", list(TILE_ROWS))
@pytest.mark.parametrize("x, y, bytes, count", [(0, 0, 1024, 64), (500, 7, 37, 2), (13, 31, 130, 33), (1023, 63, 1, 1)])
def test_each_byte_comes_from_its_place(tiling: str, x: int, y: int, bytes: int, count: int) -> None:
    surface = np.random.default_rng(7).integers(0, 256, 1024 * 64, np.uint8)
    rows = np.zeros(bytes * count, np.uint8)
    detile(surface, TiledRows(tiling, 1024, x, y, bytes, count), rows)
    expected = [[surface[place(tiling, 1024, x + across, y + down)] for across in range(bytes)] for down in range(count)]
    assert (rows.reshape(count, bytes) == expected).all()


def test_contiguous_bytes_of_tilings() -> None:
    assert (contiguous("x_major"), contiguous("y_major")) == (512, 16)


@pytest.mark.parametrize("wanted", [
    TiledRows("linear", 1024, 0, 0, 1024, 65), TiledRows("y_major", 1024, 0, 64, 16, 1), TiledRows("x_major", 1024, 1020, 0, 8, 1),
    TiledRows("linear", 1024, -1, 0, 8, 1), TiledRows("y_major", 1000, 0, 0, 8, 1), TiledRows("linear", 1024, 0, 0, 1024, 3)])  # fmt: skip
def test_rectangles_beyond_the_surface_are_refused(wanted: TiledRows) -> None:
    with pytest.raises(SoftgenError, match="bytes"):
        detile(np.zeros(1024 * 64, np.uint8), wanted, np.zeros(2048, np.uint8))

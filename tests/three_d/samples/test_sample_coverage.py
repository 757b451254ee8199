"""Coverage of several samples: sample_coverage.c against its twin here, which looks at every sample of every pixel."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.three_d.pixels.pixel_shader import library
from softgen.three_d.pixels.rasterizer import RasterPlan
from softgen.three_d.structures import TILE, SetupRecord
from softgen.three_d.three_d_h import PixelBlock
from tests.three_d.pixels.test_rasterizer import clockwise
from tests.three_d.shaded import triangle

TILE_BLOCKS, MOST = 256, 16
Masks = npt.NDArray[np.uint32]


def plan_of(places: Any, mask: int = 0xFFFF, **more: Any) -> RasterPlan:
    plan = RasterPlan(samples=len(places), stored=len(places), sample_mask=mask, **more)
    for number, place in enumerate(places):
        plan.sample[number][:] = [int(part) for part in place]
    return plan


def found(plan: RasterPlan, record: SetupRecord, x: int = 0, y: int = 0) -> Masks:
    """The samples of each pixel of a tile as rasterizer.c finds them: bit s of element [row, column]."""
    blocks, masks = (PixelBlock * TILE_BLOCKS)(), np.zeros((TILE_BLOCKS, MOST), np.uint16)
    count = library().rasterize_samples(ctypes.byref(plan), ctypes.byref(record), x, y, blocks, ctypes.c_void_p(masks.ctypes.data))
    pixels = np.zeros((TILE, TILE), np.uint32)
    seen = set()
    for block, of in zip(blocks[:count], masks, strict=False):
        seen.add((block.x, block.y))
        assert block.mask == np.bitwise_or.reduce(of[: plan.stored]) != 0
        for bit in range(16):
            column = block.x - x + 2 * (bit >> 2 & 1) + (bit & 1)
            row = block.y - y + 2 * (bit >> 3) + (bit >> 1 & 1)
            pixels[row, column] = sum(int(of[s] >> bit & 1) << s for s in range(plan.stored))
    assert len(seen) == count, "no block comes twice"
    return pixels


def expected(plan: RasterPlan, record: SetupRecord, x: int = 0, y: int = 0) -> Masks:
    """The twin: edge functions at each sample, in whole numbers."""
    columns, rows = np.meshgrid(np.arange(x, x + TILE, dtype=np.int64), np.arange(y, y + TILE, dtype=np.int64))
    boxed = (columns >= record.x0) & (columns < record.x1) & (rows >= record.y0) & (rows < record.y1)
    pixels = np.zeros((TILE, TILE), np.uint32)
    for sample in range(plan.samples):
        inside = boxed.copy()
        for n in range(record.edges):
            dx, dy = record.edge_dx[n], record.edge_dy[n]
            moved = record.edge[n] + dx * plan.sample[sample][0] // 256 + dy * plan.sample[sample][1] // 256
            inside &= moved + dx * columns + dy * rows >= 0
        pixels |= (inside & bool(plan.sample_mask >> sample & 1)).astype(np.uint32) << np.uint32(sample)
    return pixels


def places(count: int, seed: int = 0) -> Any:
    """Places in sixteenths of a pixel from its centre, as 1/256."""
    return 16 * (np.random.default_rng(seed).integers(0, 16, (count, 2)) - 8)


@pytest.mark.behaviour("BDW-WM-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("size", [3, 20, 100, 3000, 16000])
def test_random_triangles(count: int, size: int) -> None:
    """Small ones, ones that fill the tile, and huge ones; samples that the mask leaves out are not covered."""
    rng, some, all_of_it = np.random.default_rng(size + count), 0, (1 << count) - 1
    for number in range(40):
        record = triangle(clockwise((rng.uniform(0, TILE, 2) + rng.uniform(-size, size, (3, 2))).round(2).tolist()))
        record.x0, record.y0 = record.x0 - 1, record.y0 - 1
        record.x1, record.y1 = record.x1 + 1, record.y1 + 1
        plan = plan_of(places(count, number), 0xFFFF if number % 3 else int(rng.integers(1, 1 << count)))
        wanted = expected(plan, record)
        np.testing.assert_array_equal(found(plan, record), wanted)
        some += int(((wanted != 0) & (wanted != all_of_it)).sum())
    assert some


def test_other_tiles() -> None:
    """Blocks have positions on the screen; a triangle's parts add up."""
    plan, record = plan_of(places(4)), triangle([(10.5, 3.25), (180.75, 60.5), (90.0, 190.0)])
    for y in (0, 64, 128, 192):
        for x in (0, 64, 128, 192):
            np.testing.assert_array_equal(found(plan, record, x, y), expected(plan, record, x, y))


@pytest.mark.behaviour("BDW-WM-02", shows="action")
def test_a_box_and_a_mask_limit_whole_pixels() -> None:
    record = triangle([(-500, -500), (900, -500), (0, 900)])
    record.x0, record.y0, record.x1, record.y1 = 5, 7, 23, 34
    for mask in (0b1111, 0b0110, 0b1000):
        pixels = found(plan_of(places(4), mask), record)
        assert (pixels[7:34, 5:23] == mask).all() and pixels.astype(bool).sum() == (34 - 7) * (23 - 5)


@pytest.mark.behaviour("BDW-WM-04", shows="action")
def test_samples_at_the_pixels_place_share_its_coverage() -> None:
    """Modes that end with PIXEL: all samples that count have the coverage of the pixel."""
    record = triangle([(3.25, 2.5), (40.0, 8.0), (13.75, 52.0)])
    plan = RasterPlan(stored=4, sample_mask=0b1011)
    one = expected(plan_of([(0, 0)], 1), record)
    np.testing.assert_array_equal(found(plan, record), one * 0b1011)
    assert found(RasterPlan(stored=4, sample_mask=0), record).sum() == 0


@pytest.mark.behaviour("BDW-WM-08", shows="action")
def test_stipple_masks_whole_pixels() -> None:
    rows = np.random.default_rng(3).integers(0, 1 << 32, 32, np.uint64).tolist()
    plan = plan_of(places(4), stippled=1 << 4)
    plan.stipple[:] = rows
    record = triangle([(3.25, 2.5), (60.0, 8.0), (13.75, 62.0)])
    shown = np.array([[rows[y % 32] >> 31 - x % 32 & 1 for x in range(TILE)] for y in range(TILE)], np.uint32)
    wanted = expected(plan, record) * shown
    np.testing.assert_array_equal(found(plan, record), wanted)
    assert (wanted != 0).sum() > 100

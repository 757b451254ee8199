"""Coverage: rasterizer.c against its twin here, which looks at every pixel."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.three_d.pixels import rasterizer
from softgen.three_d.pixels.pixel_shader import library
from softgen.three_d.pixels.rasterizer import RasterPlan, check_topology, draws_nothing, raster_plan
from softgen.three_d.structures import TILE, SetupRecord
from softgen.three_d.three_d_h import PixelBlock
from tests.three_d.shaded import Stream, triangle

Pixels = set[tuple[int, int]]
TILE_BLOCKS = 256


def blocks(record: SetupRecord, x: int = 0, y: int = 0, plan: RasterPlan | None = None) -> list[PixelBlock]:
    """What rasterizer.c finds in a tile."""
    found = (PixelBlock * TILE_BLOCKS)()
    return list(found[: library().rasterize_tile(ctypes.byref(plan or RasterPlan()), ctypes.byref(record), x, y, found)])


def pixels(found: list[PixelBlock]) -> Pixels:
    """The pixels of blocks: subspans in reading order, and the pixels of each (G45-WM-01, G45-WM-39)."""
    lit: Pixels = set()
    for block in found:
        assert 0 < block.mask < 1 << 16 and not block.x % 4 and not block.y % 4
        for bit in range(16):
            subspan, pixel = divmod(bit, 4)
            if block.mask >> bit & 1:
                lit.add((block.x + 2 * (subspan % 2) + pixel % 2, block.y + 2 * (subspan // 2) + pixel // 2))
    assert len(lit) == sum(block.mask.bit_count() for block in found), "no block comes twice"
    return lit


def expected(record: SetupRecord, x: int = 0, y: int = 0) -> Pixels:
    """Pixels of the tile in the bounding box whose edge functions are all 0 or more."""
    inside = range(record.edges)
    return {
        (column, row)
        for row in range(max(y, record.y0), min(y + TILE, record.y1))
        for column in range(max(x, record.x0), min(x + TILE, record.x1))
        if all(record.edge[n] + record.edge_dx[n] * column + record.edge_dy[n] * row >= 0 for n in inside)
    }


def clockwise(points: Any) -> list[tuple[float, float]]:
    (x0, y0), (x1, y1), (x2, y2) = points
    turned = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) < 0
    return [(x0, y0), (x2, y2), (x1, y1)] if turned else list(points)


@pytest.mark.behaviour("G45-WM-03", shows="action")
@pytest.mark.parametrize("size", [3, 20, 100, 3000, 16000])
def test_random_triangles(size: int) -> None:
    """Coverage by sample points, left and top edges inclusive (G45-WM-03): small ones, ones that fill the tile, and huge ones."""
    rng, seen = np.random.default_rng(size), 0
    for _ in range(60):
        record = triangle(clockwise((rng.uniform(0, TILE, 2) + rng.uniform(-size, size, (3, 2))).round(2).tolist()))
        lit = pixels(blocks(record))
        assert lit == expected(record)
        seen += len(lit)
    assert seen


def test_tiles_share_a_triangle_out() -> None:
    """Each pixel is in one tile, and blocks have positions on the screen."""
    record = triangle([(10.5, 3.25), (180.75, 60.5), (90.0, 190.0)])
    parts = [pixels(blocks(record, x, y)) for y in (0, 64, 128) for x in (0, 64, 128)]
    assert [len(part) for part in parts] == [len(expected(record, x, y)) for y in (0, 64, 128) for x in (0, 64, 128)]
    assert len(set().union(*parts)) == sum(map(len, parts)) > 10_000


@pytest.mark.behaviour("G45-WM-03", shows="action")
def test_neighbours_leave_no_gap_and_share_no_pixel() -> None:
    """Two triangles with a common edge through pixel centres (G45-WM-03)."""
    corners = [(0.5, 0.5), (40.5, 0.5), (40.5, 40.5), (0.5, 40.5)]
    upper = pixels(blocks(triangle([corners[0], corners[1], corners[2]])))
    lower = pixels(blocks(triangle([corners[0], corners[2], corners[3]])))
    assert not upper & lower and upper | lower == {(x, y) for x in range(40) for y in range(40)}


def test_a_rectangle_of_four_edges() -> None:
    record = triangle([(2, 3), (50, 3), (50, 61), (2, 61)])
    assert pixels(blocks(record)) == {(x, y) for x in range(2, 50) for y in range(3, 61)}


@pytest.mark.behaviour("G45-WM-02", shows="action")
@pytest.mark.parametrize("box", [(0, 0, 64, 64), (5, 7, 6, 8), (13, 16, 35, 33), (63, 0, 64, 64), (20, 20, 20, 30)])
def test_the_bounding_box_clips(box: tuple[int, int, int, int]) -> None:
    """Scissor and drawing rectangle are in the record's box (G45-WM-02)."""
    record = triangle([(-500, -500), (900, -500), (0, 900)])
    record.x0, record.y0, record.x1, record.y1 = box
    assert pixels(blocks(record)) == {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}


def test_a_record_of_another_tile_has_no_blocks() -> None:
    assert not blocks(triangle([(2, 3), (50, 3), (2, 61)]), 64, 0)


# -- state ---------------------------------------------------------------------------------------------------------------


def windowed(**values: int) -> Stream:
    stream = Stream()
    stream.latch("3DSTATE_WM", **values)
    return stream


@pytest.mark.behaviour("G45-WM-11", "BDW-WM-08", shows="action")
@pytest.mark.parametrize("latched", [None, (0, 0), (5, 9), (31, 31)])
def test_polygon_stipple(latched: tuple[int, int] | None) -> None:
    """A 32x32 pattern with offsets, bit 31 leftmost (BDW-WM-08, G45-WM-11); not for rectangles. Offsets that no command has set are 0."""
    offset = latched or (0, 0)
    rows = np.random.default_rng(3).integers(0, 1 << 32, 32, np.uint64).tolist()
    stream = windowed(polygon_stipple_enable=1)
    stream.latch("3DSTATE_POLY_STIPPLE_PATTERN", row=[{"pattern": row} for row in rows])
    if latched is not None:
        stream.latch("3DSTATE_POLY_STIPPLE_OFFSET", polygon_stipple_x_offset=offset[0], polygon_stipple_y_offset=offset[1])
    plan = raster_plan(stream.state(), stream.latched["3DSTATE_WM"])
    record = triangle([(64, 64), (128, 64), (128, 128), (64, 128)])
    shown = {(x, y) for x in range(64, 128) for y in range(64, 128)
             if rows[(y + offset[1]) % 32] >> 31 - (x + offset[0]) % 32 & 1}  # fmt: skip
    assert pixels(blocks(record, 64, 64, plan)) == shown
    record.topology = 15  # RECTLIST
    assert len(pixels(blocks(record, 64, 64, plan))) == TILE * TILE


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize(("topology", "stippled"), [(1, False), (2, False), (3, False), (4, True), (5, True), (6, True), (14, True),
                                                    (15, False)])  # fmt: skip
def test_only_polygons_need_a_stipple_pattern(topology: int, stippled: bool) -> None:
    """Where polygon stipple is enabled."""
    for enabled in (0, 1):
        stream = windowed(polygon_stipple_enable=enabled)
        raster_plan(stream.state(), stream.latched["3DSTATE_WM"])
        refused = pytest.raises(DecodeError, match="no 3DSTATE_POLY_STIPPLE_PATTERN")
        with refused if enabled and stippled else nullcontext():
            check_topology(stream.state(), topology)


def test_stippled_topologies_are_those_of_the_manual() -> None:
    assert rasterizer.stippled_topologies(4.5) == 1 << 4 | 1 << 5 | 1 << 6 | 1 << 13 | 1 << 14


def test_state_that_is_not_built_is_refused_by_name() -> None:
    stream = Stream("hsw")
    stream.latch("3DSTATE_WM")
    stream.latch("3DSTATE_RAST_MULTISAMPLE", number_of_rasterization_multisamples=1)
    with pytest.raises(Unsupported, match="3DSTATE_RAST_MULTISAMPLE: number_of_rasterization_multisamples = 1"):
        raster_plan(stream.state(), stream.latched["3DSTATE_WM"])


def test_one_forced_sample_is_what_there_is_and_more_need_places() -> None:
    stream = windowed()
    plain = bytes(raster_plan(stream.state(), stream.latched["3DSTATE_WM"]))
    stream.latch("3DSTATE_RASTER", forced_sample_count=1)
    assert bytes(raster_plan(stream.state(), stream.latched["3DSTATE_WM"])) == plain
    stream.latch("3DSTATE_RASTER", forced_sample_count=4)
    with pytest.raises(DecodeError, match="3DSTATE_RASTER: forced_sample_count 8, but no 3DSTATE_SAMPLE_PATTERN"):
        raster_plan(stream.state(), stream.latched["3DSTATE_WM"])


@pytest.mark.behaviour("BDW-WM-05", shows="action")
@pytest.mark.parametrize(("code", "count"), [(2, 2), (3, 4), (4, 8), (5, 16)])
@pytest.mark.parametrize("corner", [0, 1])
def test_forced_samples_have_places_and_a_mask(code: int, count: int, corner: int) -> None:
    """In 1/256 from the pixel's location, its centre or its corner; bits of the mask beyond the samples mean nothing, without it all
    count. No tests of depth and stencil are built."""
    groups = {2: ("samples_2x",), 4: ("samples_4x",), 8: ("samples_8x", "samples_8x_from_4"), 16: ("samples_16x",)}[count]
    places = [((5 * n + 3) % 16, (11 * n + 1) % 16) for n in range(count)]
    stream, each = windowed(), count // len(groups)
    stream.latch("3DSTATE_RASTER", forced_sample_count=code)
    stream.latch("3DSTATE_MULTISAMPLE", pixel_location=corner)
    stream.latch("3DSTATE_SAMPLE_PATTERN", **{
        group: [{"x_offset": x / 16, "y_offset": y / 16} for x, y in places[each * n : each * (n + 1)]] for n, group in enumerate(groups)})
    every, from_center = (1 << count) - 1, 0 if corner else 128
    for mask, counted in ((None, every), (0xFFFF, every), (0xFFFE, every - 1), (1 << count - 1, 1 << count - 1), (0, 0)):
        if mask is not None:
            stream.latch("3DSTATE_SAMPLE_MASK", sample_mask=mask)
        plan = raster_plan(stream.state(), stream.latched["3DSTATE_WM"])
        assert (plan.samples, plan.sample_mask) == (count, counted)
        assert draws_nothing(stream.state()) == (not counted)
        assert [tuple(place) for place in plan.sample[:count]] == [(16 * x - from_center, 16 * y - from_center) for x, y in places]
    for field in ("depth_test_enable", "depth_buffer_write_enable", "stencil_test_enable"):
        stream.latch("3DSTATE_WM_DEPTH_STENCIL", **{field: 1})
        with pytest.raises(Unsupported, match=f"forced_sample_count {count}, and 3DSTATE_WM_DEPTH_STENCIL has {field} 1"):
            raster_plan(stream.state(), stream.latched["3DSTATE_WM"])


@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
@pytest.mark.parametrize(("code", "width"), [(0, 0.5), (1, 1.0), (2, 2.0), (3, 4.0)])
def test_regions_slopes_and_biases_of_antialiased_lines(gpu: str, code: int, width: float) -> None:
    """Widths of the regions are in the state of the windower, those at sides for both sides together; slopes and biases are U0.8, and 0
    where no command has set them."""
    stream, later = Stream(gpu), gpu not in ("ivb", "hsw")
    stream.latch("3DSTATE_WM", line_antialiasing_region_width=code, line_end_cap_antialiasing_region_width=3 - code)
    names = [f"aa_{part}{kind}" for part in ("", "cap_", *(["point_"] if later else [])) for kind in ("slope", "bias")]
    fields = [name.replace("aa_cap", "aa_coverage_endcap").replace("aa_point", "aa_point_coverage") for name in names]
    fields = [name if "coverage" in name else name.replace("aa_", "aa_coverage_") for name in fields]
    values = [n / 256 for n in (255, 1, 87, 141, 128, 64)][: len(names)]

    def planned(smooth: int, distance: int = 0) -> RasterPlan:
        lines = {"antialiasing_enable": smooth}
        stream.latch("3DSTATE_SF", line_width=1.0, aa_line_distance_mode=distance, **({} if later else lines))
        if later:
            stream.latch("3DSTATE_RASTER", **lines)
        return raster_plan(stream.state(), stream.latched["3DSTATE_WM"])

    assert bytes(planned(0)) == bytes(RasterPlan())
    plan = planned(1)
    assert (plan.antialiased, plan.aa_manhattan, plan.aa_region, plan.aa_cap_region) == (1, 1, width / 2, (4.0, 2.0, 1.0, 0.5)[code])
    assert [getattr(plan, name) for name in names] == [0.0] * len(names) and not planned(1, 1).aa_manhattan
    stream.latch("3DSTATE_AA_LINE_PARAMETERS", **dict(zip(fields, values, strict=True)))
    plan = planned(1)
    assert [getattr(plan, name) for name in names] == values


@pytest.mark.parametrize(("enabled", "latched", "wanted"), [(1, (0xF0F1, 5), (0xF0F1, 5)), (1, (0x8001, 0), (0x8001, 1)), (1, None, (0, 0)),
                                                            (0, (0xF0F1, 5), (0, 0))])  # fmt: skip
def test_the_pattern_of_stippled_lines(enabled: int, latched: tuple[int, int] | None, wanted: tuple[int, int]) -> None:
    """A repeat count of 0 is taken for 1."""
    stream = windowed(line_stipple_enable=enabled)
    if latched is not None:
        stream.latch("3DSTATE_LINE_STIPPLE", line_stipple_pattern=latched[0], line_stipple_repeat_count=latched[1])
    plan = raster_plan(stream.state(), stream.latched["3DSTATE_WM"])
    assert (plan.line_pattern, plan.line_repeat) == wanted


@pytest.mark.behaviour("BDW-WM-02", shows="action")
def test_the_sample_mask_excludes_the_only_sample() -> None:
    """BDW-WM-02: the mask is part of coverage, higher bits mean nothing with one sample."""
    stream = windowed()
    assert not draws_nothing(stream.state())
    for mask, nothing in ((1, False), (0xFFFE, True)):
        stream.latch("3DSTATE_SAMPLE_MASK", sample_mask=mask)
        assert draws_nothing(stream.state()) is nothing

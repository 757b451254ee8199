"""What state says about samples: their number, places, mask, and the mode of rasterization."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.errors import DecodeError
from softgen.three_d.clip_setup import setup
from softgen.three_d.samples.sample_plan import SamplePlan, sample_plan
from softgen.three_d.three_d_h import Coverage
from tests.three_d.geometry_state import geometry_state
from tests.three_d.shaded import Stream

GROUPS = {2: ("samples_2x",), 4: ("samples_4x",), 8: ("samples_8x", "samples_8x_from_4"), 16: ("samples_16x",)}
CODES = {2: 1, 4: 2, 8: 3, 16: 4}
SET = [((5 * n + 3) % 16, (11 * n + 1) % 16) for n in range(16)]


def pattern(stream: Stream, count: int) -> None:
    """The count, and that many samples of SET where the generation has them."""
    samples = [{"x_offset": x / 16, "y_offset": y / 16} for x, y in SET[:count]]
    if stream.generation.number < 8:
        stream.latch("3DSTATE_MULTISAMPLE", number_of_multisamples=CODES[count], sample=samples)
        return
    stream.latch("3DSTATE_MULTISAMPLE", number_of_multisamples=CODES[count])
    size = count // len(GROUPS[count])
    stream.latch("3DSTATE_SAMPLE_PATTERN", **{name: samples[size * n : size * (n + 1)] for n, name in enumerate(GROUPS[count])})


def moded(gpu: str, count: int = 4, **fields: Any) -> SamplePlan:
    """The plan of a draw in a mode: fields of 3DSTATE_RASTER, or of 3DSTATE_SF before it."""
    stream = Stream(gpu)
    pattern(stream, count)
    stream.latch("3DSTATE_SF" if stream.generation.number < 8 else "3DSTATE_RASTER", **fields)
    return sample_plan(stream.state())


def on_pattern(gpu: str) -> dict[str, int]:
    return {"multisample_rasterization_mode": 3} if gpu in ("ivb", "hsw") else {"dx_multisample_rasterization_enable": 1}


@pytest.mark.behaviour("BDW-WM-01", shows="action")
@pytest.mark.parametrize(("gpu", "count"), [("ivb", 4), ("ivb", 8), ("hsw", 4), ("hsw", 8), ("bdw", 2), ("bdw", 4), ("bdw", 8), ("kbl", 2),
                                            ("kbl", 4), ("kbl", 8), ("kbl", 16), ("icl", 16)])  # fmt: skip
def test_counts_and_places(gpu: str, count: int) -> None:
    """Places are in sixteenths from a pixel's corner, and here in 1/256 from its centre."""
    plan = moded(gpu, count, **on_pattern(gpu))
    assert (plan.stored, plan.tested, plan.mask) == (count, count, (1 << count) - 1)
    assert list(plan.places) == [(16 * x - 128, 16 * y - 128) for x, y in SET[:count]]


@pytest.mark.behaviour("BDW-WM-01", shows="action")
def test_places_count_from_the_pixels_location() -> None:
    """Its corner, unless pixels are moved by half (BDW 6860-6870)."""
    stream = Stream("bdw")
    pattern(stream, 4)
    stream.latch("3DSTATE_RASTER", dx_multisample_rasterization_enable=1)
    for moved in (0, 1):
        stream.latch("3DSTATE_MULTISAMPLE", number_of_multisamples=2, pixel_location=1, pixel_position_offset_enable=moved)
        assert sample_plan(stream.state()).places[0] == (16 * SET[0][0] - 128 * moved, 16 * SET[0][1] - 128 * moved)


@pytest.mark.behaviour("BDW-WM-02", shows="action")
def test_bits_of_the_mask_beyond_the_samples_mean_nothing() -> None:
    stream = Stream("kbl")
    pattern(stream, 4)
    for mask, counted in ((0xFFFF, 15), (0xFFF5, 5), (0xFFF0, 0)):
        stream.latch("3DSTATE_SAMPLE_MASK", sample_mask=mask)
        assert sample_plan(stream.state()).mask == counted


OFF_PIXEL, OFF_PATTERN, ON_PIXEL, ON_PATTERN = (0, False), (4, False), (0, True), (4, True)
MODES = (OFF_PIXEL, OFF_PATTERN, ON_PIXEL, ON_PATTERN)


@pytest.mark.behaviour("BDW-WM-04", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
def test_a_mode_says_where_samples_are_and_whether_lines_are_rectangles(gpu: str) -> None:
    """A field of its own before Gen8; forced since."""
    for code, wanted in enumerate(MODES):
        if gpu in ("ivb", "hsw"):
            plan = moded(gpu, multisample_rasterization_mode=code)
        else:
            plan = moded(gpu, force_multisampling=1, dx_multisample_rasterization_mode=code, api_mode=code % 3,
                         dx_multisample_rasterization_enable=~code & 1)  # fmt: skip
        assert (plan.tested, plan.rectangles) == wanted


@pytest.mark.behaviour("BDW-WM-04", shows="action")
@pytest.mark.parametrize(("api", "enable", "wanted"), [(0, 0, OFF_PIXEL), (0, 1, ON_PATTERN), (1, 0, OFF_PIXEL), (1, 1, ON_PATTERN),
                                                       (2, 0, OFF_PATTERN), (2, 1, ON_PATTERN)])  # fmt: skip
def test_otherwise_it_follows_from_api_and_enable(api: int, enable: int, wanted: tuple[int, bool]) -> None:
    plan = moded("kbl", api_mode=api, dx_multisample_rasterization_enable=enable)
    assert (plan.stored, plan.tested, plan.rectangles) == (4, *wanted)


def test_conservative_rasterization_covers_all_samples_of_a_pixel() -> None:
    plan = moded("kbl", dx_multisample_rasterization_enable=1, conservative_rasterization_enable=1)
    assert (plan.stored, plan.places) == (4, ())


def test_places_that_nothing_has_set() -> None:
    stream = Stream("kbl")
    stream.latch("3DSTATE_MULTISAMPLE", number_of_multisamples=2)
    stream.latch("3DSTATE_RASTER", dx_multisample_rasterization_enable=1)
    with pytest.raises(DecodeError, match="3DSTATE_MULTISAMPLE: 4 samples, but no 3DSTATE_SAMPLE_PATTERN has set so many"):
        sample_plan(stream.state())


@pytest.mark.behaviour("BDW-WM-04", shows="action")
def test_lines_that_are_rectangles_have_no_stipple_nor_antialiasing_nor_width_0() -> None:
    forced = {"number_of_multisamples": 2, "force_multisampling": 1, "line_stipple_enable": 1, "antialiasing_enable": 1}
    for mode, coverage in ((2, Coverage.EDGES), (0, Coverage.SMOOTH_LINE)):
        state = geometry_state(8, dx_multisample_rasterization_mode=mode, line_width=2.5, **forced)
        plan = setup.plan(state, (64, 64))
        assert (plan.line_coverage, plan.line_stipple, plan.line_width) == (coverage, mode == 0, 2.5)
    state = geometry_state(8, dx_multisample_rasterization_mode=2, line_width=0.0, **forced)
    assert setup.plan(state, (64, 64)).line_width == 1.0

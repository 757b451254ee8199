"""Samples of a draw: how many a pixel has, where they are, and which of them count.

Reads   3DSTATE_MULTISAMPLE 3DSTATE_SAMPLE_PATTERN 3DSTATE_SAMPLE_MASK 3DSTATE_RASTER 3DSTATE_SF 3DSTATE_WM
Writes  a SamplePlan
"""

from __future__ import annotations

from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.three_d.state.state import DrawState

PIXEL, SIXTEENTHS = 256, 16  # of positions in a pixel, and of those in state
MOST_SAMPLES = 16
GROUPS = {2: ("samples_2x",), 4: ("samples_4x",), 8: ("samples_8x", "samples_8x_from_4"), 16: ("samples_16x",)}
OFF_PIXEL, OFF_PATTERN, ON_PIXEL, ON_PATTERN = "off_pixel", "off_pattern", "on_pixel", "on_pattern"
Place = tuple[int, int]


class SamplePlan(NamedTuple):
    """The samples of a draw's pixels."""

    stored: int = 1  # that targets have
    places: tuple[Place, ...] = ()  # that objects are tested at, in 1/256 pixel from the pixel's; none: only there
    mask: int = 1  # those that count
    rectangles: bool = False  # lines are rectangles: without stipple, antialiasing and lines of width 0

    @property
    def tested(self) -> int:
        """Samples that objects are tested at; 0: only the pixel's place."""
        return len(self.places)


def sample_plan(state: DrawState) -> SamplePlan:
    """The samples of a draw."""
    stored, forced = stored_samples(state), forced_samples(state)
    count, given = max(stored, forced), state.get("3DSTATE_SAMPLE_MASK")
    mask = (given.sample_mask if given is not None else -1) & (1 << count) - 1  # BDW 8797-8823
    if forced > 1 and stored == 1:
        return SamplePlan(1, sample_places(state, forced, f"3DSTATE_RASTER: forced_sample_count {forced}"), mask)
    if stored == 1:
        return SamplePlan(mask=mask)
    mode = rasterization_mode(state, stored)  # of pixels that are touched, conservative rasterization covers all samples
    if mode.endswith("pixel") or _said(state.get("3DSTATE_RASTER"), "conservative_rasterization_enable"):
        return SamplePlan(stored, (), mask, mode == ON_PIXEL)
    said = f"3DSTATE_MULTISAMPLE: {stored} samples"
    return SamplePlan(stored, sample_places(state, stored, said), mask, mode == ON_PATTERN)


def stored_samples(state: DrawState) -> int:
    """Samples that a draw's targets have."""
    return 1 << int(getattr(state.get("3DSTATE_MULTISAMPLE"), "number_of_multisamples", 0))


def forced_samples(state: DrawState) -> int:
    """Samples of a pixel that objects are tested at, whatever render targets have; 1 where nothing says so (BDW 8520-8547)."""
    return 1 << max(int(getattr(state.get("3DSTATE_RASTER"), "forced_sample_count", 0)) - 1, 0)


def rasterization_mode(state: DrawState, count: int) -> str:
    """Where samples are, all at the pixel's place or each at its own, and whether lines are rectangles (GRAPHICS_GEOMETRY 7.1)."""
    raster = state.get("3DSTATE_RASTER")
    if raster is None:
        setup = state.get("3DSTATE_SF")
        return OFF_PIXEL if setup is None else _word("3DSTATE_SF", state.gen, setup, "multisample_rasterization_mode")
    if raster.force_multisampling:  # BDW 8583-8649
        return _word("3DSTATE_RASTER", state.gen, raster, "dx_multisample_rasterization_mode")
    api, enabled = _word("3DSTATE_RASTER", state.gen, raster, "api_mode"), bool(raster.dx_multisample_rasterization_enable)
    if api == "dx10.1+":
        pattern = count > 1
        return {(True, True): ON_PATTERN, (True, False): ON_PIXEL, (False, True): OFF_PATTERN, (False, False): OFF_PIXEL}[enabled, pattern]
    if not enabled:
        return OFF_PIXEL
    return ON_PATTERN if count > 1 else ON_PIXEL if api == "dx10.0" else OFF_PIXEL


def _said(record: Record | None, field: str) -> bool:
    """Whether a field that not every generation has is set."""
    return bool(record is not None and field in record._fields and getattr(record, field))


def _word(name: str, gen: float, record: Record, field: str) -> str:
    return value_name(catalogue.layout(name, gen), record, field)


def sample_places(state: DrawState, count: int, said: str) -> tuple[Place, ...]:
    """Where samples are, in 1/256 pixel from where the pixel is: in 3DSTATE_SAMPLE_PATTERN, or before that with their number."""
    multisample, pattern = state.get("3DSTATE_MULTISAMPLE"), state.get("3DSTATE_SAMPLE_PATTERN")
    if multisample is not None and "sample" in multisample._fields:
        samples = list(multisample.sample)[:count]
    else:
        groups = GROUPS.get(count, ())
        if pattern is None or not groups or any(group not in pattern._fields for group in groups):
            raise DecodeError(f"{said}, but no 3DSTATE_SAMPLE_PATTERN has set so many")
        samples = [sample for group in groups for sample in getattr(pattern, group)]
    corner = _said(multisample, "pixel_location") and not (count > 1 and _said(multisample, "pixel_position_offset_enable"))
    at = 0 if corner else PIXEL // 2  # pixels are moved by half a pixel where they are their corners (BDW 6860-6870)
    return tuple((int(sample.x_offset) * PIXEL // SIXTEENTHS - at, int(sample.y_offset) * PIXEL // SIXTEENTHS - at) for sample in samples)

"""VC-1 state: how samples of references are mapped, and what is refused in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from softgen.bits.record import Record
from softgen.codec.mfx.vc1.state import _check, _mapping
from softgen.codec.mfx.vc1.structures import Vc1Picture
from softgen.errors import DecodeError, Unsupported

FORWARD, BACKWARD, LUMA, CHROMA = 0, 1, 0, 1


def mapped(reduction: int = 0, expand: int = 0, **pipe: int) -> Vc1Picture:
    names = [f"{name}_{way}" for way in ("fwd", "bwd") for name in ("lumscale1_single", "lumshift1_single")]
    names += [f"vin_intensitycomp_{kind}_{way}en" for kind in ("single", "double") for way in ("fwd", "bwd")]
    vc1, state = Vc1Picture(), SimpleNamespace(range_reduction_enable=reduction, range_reduction_scale=expand)
    _mapping(vc1, cast(Record, state), cast(Record, SimpleNamespace(**{**dict.fromkeys(names, 0), **pipe})))
    return vc1


def test_range_reduction_halves_or_doubles_the_distance_from_grey() -> None:
    halved, doubled = mapped(reduction=1), mapped(reduction=1, expand=1)
    for direction in (FORWARD, BACKWARD):
        assert halved.mapped[direction] and doubled.mapped[direction]
        for kind in (LUMA, CHROMA):
            assert [halved.lut[direction][kind][value] for value in (0, 127, 128, 255)] == [64, 127, 128, 191]
            assert [doubled.lut[direction][kind][value] for value in (0, 64, 128, 150, 255)] == [0, 0, 128, 172, 255]


def test_intensity_compensation_of_one_direction() -> None:
    """LUMSCALE 40 is 72 / 64, LUMSHIFT 60 is -4; chroma keeps its middle."""
    vc1 = mapped(vin_intensitycomp_single_bwden=1, lumscale1_single_bwd=40, lumshift1_single_bwd=60)
    assert not vc1.mapped[FORWARD] and vc1.mapped[BACKWARD]
    assert [vc1.lut[BACKWARD][LUMA][value] for value in (0, 64, 255)] == [0, 68, 255]
    assert [vc1.lut[BACKWARD][CHROMA][value] for value in (0, 128, 64)] == [0, 128, 56]


def test_intensity_compensation_that_inverts() -> None:
    """LUMSCALE 0: 255 less twice the shift, less the sample."""
    vc1 = mapped(vin_intensitycomp_single_fwden=1, lumshift1_single_fwd=20)
    assert [vc1.lut[FORWARD][LUMA][value] for value in (0, 15, 215)] == [215, 200, 0]


def test_compensation_of_fields_is_refused() -> None:
    with pytest.raises(Unsupported, match="fields"):
        mapped(vin_intensitycomp_double_fwden=1)


GOOD = {"frame_coding_mode": 0, "sync_marker": 0, "pq_value": 5, "picture_type": 1, "mv_table": 3, "coded_block_pattern_table": 3,
        "picture_level_transform_luma_ac_coding_set_index": 2, "picture_level_transform_chroma_ac_coding_set_index": 2}  # fmt: skip
BAD: list[tuple[dict[str, int], type[Exception], str]] = [
    ({"frame_coding_mode": 1}, Unsupported, "interlaced"), ({"sync_marker": 1}, Unsupported, "sync markers"),
    ({"pq_value": 0}, DecodeError, "reserved"), ({"picture_type": 4}, DecodeError, "reserved"),
    ({"mv_table": 4}, DecodeError, "mv_table 4"),
    ({"picture_level_transform_luma_ac_coding_set_index": 3}, DecodeError, "coding sets"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_what_progressive_pictures_do_not_have_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    _check(cast(Record, SimpleNamespace(**GOOD)))
    with pytest.raises(error, match=message):
        _check(cast(Record, SimpleNamespace(**{**GOOD, **change})))

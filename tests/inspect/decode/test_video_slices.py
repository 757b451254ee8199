"""Slices and pictures that `softgen decode` names in video batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from softgen.inspect.cli.main import main
from tests.codec.record import DATA

SIZES = {"h264-mbaff": (96, 64), "hevc-wavefront": (104, 72), "jpeg-420": (80, 48), "mpeg2-fields": (96, 64), "vc1-main": (48, 48),
         "vp8-segments": (96, 64), "vp9-tiles": (520, 72)}  # fmt: skip
KINDS = {
    "h264-mbaff": ["H.264 i MBAFF frame"] * 2 + ["H.264 p MBAFF frame"] * 2,
    "hevc-wavefront": ["HEVC i frame"], "jpeg-420": ["JPEG frame"] * 2, "mpeg2-fields": ["MPEG-2 i top field"] * 2,
    "vc1-main": ["VC-1 i progressive", "VC-1 p progressive"], "vp8-segments": ["VP8 key frame", "VP8 inter frame"],
    "vp9-tiles": ["VP9 key frame", "VP9 inter frame"],
}  # fmt: skip


def decoded(name: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["decode", str(DATA / name), "--json"]) == 0
    return [found for line in capsys.readouterr().out.splitlines() if "slice" in (found := json.loads(line))]


@pytest.mark.parametrize("name", KINDS)
def test_slices_have_standard_type_and_size(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = decoded(name, capsys)
    kinds = [" ".join(part for part in (one["standard"], one["type"], one["structure"]) if part) for one in found]
    assert kinds[: len(KINDS[name])] == KINDS[name]
    assert {(one["width"], one["height"]) for one in found} == {SIZES[name]}
    assert all(one["bytes"] > 0 and "problems" not in one for one in found)


def test_slices_count_from_one_in_each_picture(capsys: pytest.CaptureFixture[str]) -> None:
    found = decoded("hevc-wavefront", capsys)
    assert [one["slice"] for one in found] == [1, 1, *range(1, 9)] and {one["picture"] for one in found} == {1}
    assert [one["address"] for one in found[2:]] == sorted({one["address"] for one in found[2:]})


def test_text_has_a_line_for_each_slice_and_their_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(DATA / "vp9-tiles")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    -> 0x190012 slice 1 of picture 1: VP9 key frame, 520x72, 4,893 bytes" in lines
    assert any("3 slices of 3 pictures" in line for line in lines)

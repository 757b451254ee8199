"""`softgen check --worlds unspecified` of draws: what threads have of vertices and pixels that they lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from softgen.bits.generation import device
from tests.conftest import ROOT
from tests.inspect.check.test_check import check
from tests.inspect.view.own_capture import write_capture_of
from tests.three_d.own_draw import BATCH, OwnDraw, move, pixel_shader, rectangle
from tests.three_d.tessellation.patches import Patch, Patches, domain4x2, domain8
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

BARYCENTRICS: dict[str, Any] = {"3DSTATE_WM": {"barycentric_interpolation_mode": 1, "statistics_enable": 1}}
FLAT = ("g4.3<0,1,0>", "g4.7<0,1,0>", "g5.3<0,1,0>")


def pixels(gpu: str, lane: int) -> OwnDraw:
    """One subspan of pixels, whose red is the barycentric of a channel: there are channels 0 to 3."""
    return OwnDraw(gpu, rectangle(2, 4, 4, 6, attribute=(0.25, 0.5, 0.75, 1)), BARYCENTRICS, pixel_shader([f"g2.{lane}<0,1,0>", *FLAT]))


def vertices(gpu: str, lane: int) -> OwnDraw:
    """Three vertices, whose red is that of a lane: there are lanes 0 to 2."""
    shader = PASS_VERTICES.replace("g10<8,8,1>", f"g10.{lane}<0,1,0>")
    assert shader != PASS_VERTICES and move("g123", f"g10.{lane}<0,1,0>") in shader
    return OwnDraw(gpu, rectangle(2, 3, 8, 11, attribute=(0.25, 0.5, 0.75, 1)), {"3DSTATE_VS": VERTEX_SHADER}, vs=shader)


def points(gpu: str, lane: int) -> OwnDraw:
    """A patch of three points; the first coordinate of all is that of a lane, of the last thread's if these have two points."""
    simd8 = gpu in ("bdw", "kbl", "icl")
    shader = domain8(device(gpu).generation.number) if simd8 else domain4x2(device(gpu).generation.number)
    place = f"g1.{lane if simd8 else 4 * (lane > 2)}<0,1,0>"
    made = shader.replace("g1<8,8,1>", place)
    assert made != shader
    return Patches(gpu, [Patch((1, 1, 1), (1,))], "tri", evaluation=made).streaming().draw()


def capture(path: Path, draw: OwnDraw) -> str:
    return str(write_capture_of(path, draw.gpu, draw.memory(), BATCH))


@pytest.mark.parametrize(("gpu", "made", "there", "beyond"), [
    ("bdw", pixels, 1, 6), ("kbl", pixels, 3, 4), ("icl", pixels, 0, 7), ("bdw", vertices, 2, 5), ("icl", vertices, 0, 3),
    ("ivb", points, 0, 5), ("hsw", points, 1, 3), ("kbl", points, 2, 5)])  # fmt: skip
def test_a_shader_that_reads_a_lane_which_is_off(gpu: str, made: Any, there: int, beyond: int, tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    code, report = check(capsys, capture(tmp_path / "planted", made(gpu, beyond)), "--worlds", "unspecified", "--runs", "3")
    (finding,) = [finding for finding in report["findings"] if finding["class"] == "unspecified"]
    assert code == 1 and finding["level"] == "error" and finding["witness"][0] == "plain"
    assert ("pixel" in str(finding["details"])) == (made is not points)  # those go to a buffer
    code, report = check(capsys, capture(tmp_path / "repaired", made(gpu, there)), "--worlds", "unspecified", "--runs", "3")
    assert (code, report["result"], report["findings"], len(report["worlds"])) == (0, "fine", [], 4)


@pytest.mark.parametrize("name", ["kbl-vk-tri", "g45-gles-tri"])
def test_shaders_of_drivers_read_no_such_lanes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = check(capsys, str(ROOT / "tests/data" / name), "--worlds", "unspecified", "--runs", "2")
    assert [finding for finding in report["findings"] if finding["class"] == "unspecified"] == []

"""Captures of real drivers: those that need no more than is simulated replay to their end, and of the others a list says what they lack."""

import json
from pathlib import Path

import pytest

from softgen.inspect.cli.main import main
from tests.conftest import SHARED, in_ci, needs_shared
from tests.pictures.captures import REPLAYS, lacks, listed, names

QUICK = [name for name in listed() if name.endswith(("-gles-tri", "-vk-tri"))]


@needs_shared("traces")
def test_every_capture_is_listed() -> None:
    assert sorted(listed()) == names()


def test_every_triangle_replays() -> None:
    assert len(QUICK) == 13 and {listed()[name] for name in QUICK} == {REPLAYS}


@needs_shared("traces")
@pytest.mark.parametrize("name", in_ci(QUICK, *QUICK[::4]))
def test_a_triangle(name: str) -> None:
    assert lacks(name) == REPLAYS


@pytest.mark.witness
@needs_shared("traces")
@pytest.mark.parametrize("name", [name for name in listed() if name not in QUICK])
def test_a_capture_lacks_what_the_list_says(name: str) -> None:
    assert lacks(name) == listed()[name], "write the list again: python -m tests.pictures.captures"


@needs_shared("traces")
@pytest.mark.parametrize("name", [name for name in QUICK if name.split("-")[0] in ("bdw", "skl", "kbl", "icl")])
def test_no_message_of_a_triangle_falls_back_to_the_reference(name: str, tmp_path: Path) -> None:
    """The programs' draws, clears and copies, with textures; kernels of t1 have what they name before they run."""
    report = tmp_path / "report.json"
    assert main(["replay", str(SHARED / "traces" / name), "--engine", "t1", "--report", str(report)]) == 0
    assert json.loads(report.read_text("utf-8"))["fallbacks"] == {}

"""The tour of `make demo` explains what `softgen decode --json` prints."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from softgen.inspect.cli.output import Paint
from tests.conftest import ROOT

RECORDS = [
    {"batch": 0x1000, "address": 0x1000, "name": "PIPELINE_SELECT", "dwords": [0x69040000], "fields": {}},
    {"batch": 0x1000, "address": 0x1004, "name": "3DSTATE_VS", "dwords": [0x78100007], "fields": {}},
    {"kernel": 0x40, "by": 0x1004, "stage": "vertex"},
    {"state": "SURFACE_STATE", "address": 0x2000, "by": 0x1004, "dwords": [1], "fields": {}},
    {"batch": 0x1000, "address": 0x1008, "name": "3DPRIMITIVE", "dwords": [0x7b000005, 3],
     "fields": {"vertex_count": 3, "start": 0x12345678, "topology": {"value": 4, "name": "trilist"}}},
    {"batch": 0x1000, "address": 0x1020, "name": "MI_BATCH_BUFFER_END", "dwords": [0x05000000], "fields": {}},
    {"batch": 0x1000, "address": 0x1024, "name": None, "dwords": [0xffffffff], "fields": {}},
]


@pytest.fixture(scope="module")
def tour() -> Any:
    spec = importlib.util.spec_from_file_location("tour", ROOT / "examples" / "tour.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tour_tells_what_is_there(tour: Any) -> None:
    text = "\n".join(tour.tour(ROOT / "tests" / "data" / "x", RECORDS, Paint(False)))
    assert "recorded in tests/data/x." in text
    assert "5 commands in 1 batch, 1 of them unknown" in text and "  1 ×  PIPELINE_SELECT      choose 3D or compute\n" in text
    assert "3DPRIMITIVE at 0x1008 starts the work" in text and "7b000005 00000003" in text
    assert "vertex_count  3" in text and "start         0x12345678" in text and "topology      trilist" in text
    assert "1 ×  SURFACE_STATE" in text and "1 × vertex" in text
    assert "--images" in text


def test_a_capture_that_draws_nothing(tour: Any) -> None:
    assert "only sets state" in "\n".join(tour.tour(Path("/x"), RECORDS[:2], Paint(False)))


def test_a_long_list_is_cut(tour: Any) -> None:
    many = [{"batch": 0, "address": number, "name": f"COMMAND_{number:02}"} for number in range(tour.LIST + 2)]
    lines = list(tour.overview(many, Paint(False)))
    assert len(lines) == tour.LIST + 2 and lines[-1] == "  … and 2 other commands"


def test_a_decode_that_fails_midway_fails_the_tour(tour: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "decode", lambda path: (RECORDS, 1))
    assert tour.main(["x"]) == 1
    captured = capsys.readouterr()
    assert "5 commands" in captured.out and "not all of it" in captured.err


def test_the_longest_meaning_counts(tour: Any) -> None:
    assert tour.meaning("3DSTATE_VS") == "the vertex shader"
    assert tour.meaning("3DSTATE_MULTISAMPLE") == "state of the 3D pipeline"
    assert tour.meaning("UNHEARD_OF") == ""


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "data").glob("*-*")), ids=lambda path: path.name)
def test_the_bundled_captures(path: Path) -> None:
    """As `make demo` runs it: everything named, and something that starts work."""
    found = subprocess.run([sys.executable, "examples/tour.py", str(path)], cwd=ROOT, text=True, capture_output=True, check=False,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert found.returncode == 0, found.stderr
    assert ", 0 of them unknown" in found.stdout and "starts the work" in found.stdout and "\x1b" not in found.stdout
    assert f"softgen decode tests/data/{path.name}" in found.stdout


def test_as_make_demo_runs_it() -> None:
    found = subprocess.run([sys.executable, "examples/tour.py"], cwd=ROOT, text=True, capture_output=True, check=False,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert found.returncode == 0, found.stderr
    assert "g45-gles-tri" in found.stdout and "start 1 dispatch of 4 threads, which execute 60 instructions" in found.stdout


def test_no_capture_is_said_plainly(tour: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "captures", list)
    assert tour.main([]) == 1
    assert "no capture under tests/data" in capsys.readouterr().err
    assert tour.captures() == []

"""`softgen replay`: what people and scripts see of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softgen.inspect.cli import main as cli
from tests.conftest import ROOT, SHARED, needs_shared
from tests.gpgpu.job import aub, dwords, vector_add

CAPTURE = str(ROOT / "tests" / "data" / "kbl-vk-compute")
KEYS = ["batches", "commands", "draws", "dispatches", "threads", "instructions", "expectations", "faults", "unsupported", "images"]
GOOD = dwords(*range(1000, 1064))


@needs_shared("aub")
@pytest.mark.parametrize("name", ["bdw", "skl", "icllp"])
def test_the_runtimes_files_run_and_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(SHARED / "aub" / f"vadd_selfcheck_{name}.aub")]) == 0
    shown = capsys.readouterr().out
    assert "1 dispatch, 32 threads" in shown and "expectations: 1 met, 0 not met" in shown


def test_json_is_one_object_with_the_promised_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(aub(tmp_path / f"{name}.aub", vector_add(name), GOOD)) for name in ("skl", "icl")]
    assert cli.main(["replay", *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == KEYS
    assert found["expectations"] == {"passed": 2, "failed": 0}
    assert (found["dispatches"], found["threads"], found["instructions"]) == (2, 8, 64)
    assert found["faults"] == found["unsupported"] == found["images"] == []


def test_a_capture_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", CAPTURE, "--deterministic", "--engine", "reference"]) == 0
    shown = capsys.readouterr().out
    assert "3 submissions, 3 batches" in shown and "1 dispatch, 4 threads, 60 instructions" in shown and "expectations" not in shown


def test_an_expectation_that_is_not_met_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "bad.aub", vector_add("skl"), dwords(5)))
    assert cli.main(["replay", file]) == 1
    assert "0 met, 1 not met" in (shown := capsys.readouterr().out) and "expected 0x05, found 0xe8" in shown
    assert cli.main(["replay", file, "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["expectations"] == {"passed": 0, "failed": 1} and "expected 0x05" in captured.err


def test_faults_and_what_is_missing_are_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = vector_add("skl")
    job.after = [job.pack("MI_MATH")]
    missing = str(aub(tmp_path / "math.aub", job, GOOD))
    job.after = [job.pack("MI_STORE_DATA_IMM", address=0xDEAD000)]
    fault = str(aub(tmp_path / "fault.aub", job, GOOD))
    assert cli.main(["replay", missing, fault]) == 1
    shown = capsys.readouterr().out
    assert "unsupported submission 0 on render: MI_MATH at 0x" in shown and "fault submission 0 on render: write at 0xdead000" in shown
    assert cli.main(["replay", missing, fault, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["faults"][0]["file"] == fault and found["unsupported"][0]["submission"] == "submission 0 on render"


def test_the_time_limit_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD))
    assert cli.main(["replay", file, "--time-limit", "0.000001"]) == 1
    assert "time is up" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["x.aub", "--time-limit", "0"], ["x.aub", "--time-limit", "nan"], ["x.aub", "--engine", "t9"],
                                       ["x.aub", "--gpu", "voodoo"], [""]])  # fmt: skip
def test_misuse_is_exit_code_2(arguments: list[str]) -> None:
    assert cli.main(["replay", *arguments]) == 2


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("hello\n")
    assert cli.main(["replay", str(tmp_path / "text")]) == 1
    assert capsys.readouterr().err.count("\n") == 1

"""`softgen replay`: what people and scripts see of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from softgen.command import Counters
from softgen.inspect.cli import main as cli
from softgen.inspect.cli import replay as replay_verb
from softgen.inspect.cli.output import Paint
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace import replay as replaying
from softgen.trace.replay import Report, Trouble
from tests.conftest import ROOT, SHARED, needs_shared
from tests.gpgpu.job import aub, dwords, vector_add
from tests.pictures.compare import compare
from tests.threads.test_reference import ENDLESS

CAPTURE = str(ROOT / "tests" / "data" / "kbl-vk-compute")
KEYS = ["batches", "commands", "draws", "dispatches", "threads", "instructions", "video", "expectations", "faults", "unsupported", "images"]
GOOD = dwords(*range(1000, 1064))


@needs_shared("aub")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("name", ["bdw", "skl", "icllp"])
def test_the_runtimes_files_run_and_pass(name: str, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(SHARED / "aub" / f"vadd_selfcheck_{name}.aub"), "--engine", engine]) == 0
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


@pytest.mark.parametrize("given, readings", [(["--deterministic"], [1, 2, 3]), ([], None)])
def test_a_deterministic_clock_counts_its_readings(given: list[str], readings: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timestamps in memory are then the same with every replay; otherwise they are those of the host's clock."""
    clocks: list[Any] = []
    real = replaying.replay

    def replay(trace: Any, clock: Any, *more: Any, **options: Any) -> Any:
        clocks.append(clock)
        return real(trace, None, *more, **options)

    monkeypatch.setattr(replaying, "replay", replay)
    assert cli.main(["replay", CAPTURE, "--engine", "reference", *given]) == 0
    assert [clock and [clock() for _ in range(3)] for clock in clocks] == [readings]


def test_what_happens_is_told_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "a.aub", vector_add("skl"), GOOD))
    assert cli.main(["replay", file, "--trace", "dispatches"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"dispatches: kernel 0x[0-9a-f]+, \d+ groups of \d+ threads, SIMD\d+, 0 bytes of local memory", line)
    assert cli.main(["replay", file, "--trace", "commands,dispatches"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert line in told and any(re.fullmatch(r"commands: render 0x[0-9a-f]+ GPGPU_WALKER", line) for line in told)


def test_an_expectation_that_is_not_met_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "bad.aub", vector_add("skl"), dwords(5)))
    assert cli.main(["replay", file]) == 1
    assert "0 met, 1 not met" in (shown := capsys.readouterr().out) and "expected 0x05, found 0xe8" in shown
    assert cli.main(["replay", file, "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["expectations"] == {"passed": 0, "failed": 1} and "expected 0x05" in captured.err


def test_faults_and_what_is_missing_are_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = vector_add("skl")
    job.after = [job.pack("MI_LOAD_SCAN_LINES_INCL")]
    missing = str(aub(tmp_path / "math.aub", job, GOOD))
    job.after = [job.pack("MI_STORE_DATA_IMM", address=0xDEAD000)]
    fault = str(aub(tmp_path / "fault.aub", job, GOOD))
    assert cli.main(["replay", missing, fault]) == 1
    shown = capsys.readouterr().out
    assert "unsupported submission 0 on render: MI_LOAD_SCAN_LINES_INCL at 0x" in shown
    assert "fault submission 0 on render: write at 0xdead000" in shown
    assert cli.main(["replay", missing, fault, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["faults"][0]["file"] == fault and found["unsupported"][0]["submission"] == "submission 0 on render"


@pytest.mark.parametrize("engine", ["reference", "t0", "t1", "auto"])
def test_what_software_should_not_do_is_remarked(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Here it reads behind the end of a buffer, which the hardware answers with zeros."""
    job = vector_add("skl")
    job.buffers = [job.buffers[0][:200], bytes(256)]
    file, kept = str(aub(tmp_path / "out.aub", job, GOOD[:200])), tmp_path / "report.json"
    assert cli.main(["replay", file, "--engine", engine, "--threads", "1", "--report", str(kept)]) == 0
    said = "out of bounds: untyped_surface_read at offset 0xc8 of surface 0, which has 0xc8 bytes (lane 2)"
    shown = capsys.readouterr().out
    assert re.search(rf"remark GPGPU_WALKER at 0x.*kernel 0x\w+\+0x40: send .*: {re.escape(said)}\n", shown)
    (remark,) = json.loads(kept.read_text())["remarks"]
    assert remark.endswith(said)
    assert cli.main(["replay", file, "--engine", engine, "--json"]) == 0
    assert "out of bounds: untyped_surface_read at offset" in capsys.readouterr().err


def test_the_fast_engine_is_the_usual_one(tmp_path: Path) -> None:
    file, kept = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD)), tmp_path / "report.json"
    assert cli.main(["replay", file, "--report", str(kept)]) == 0
    assert [load["name"] for load in json.loads(kept.read_text())["engines"]] == ["auto"]


def test_the_time_limit_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD))
    assert cli.main(["replay", file, "--time-limit", "0.000001"]) == 1
    assert "time is up" in capsys.readouterr().out


def test_two_engines_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD))
    assert cli.main(["replay", file, "--compare", "reference,t1", "--threads", "1"]) == 0
    assert "1 met, 0 not met" in capsys.readouterr().out


def test_the_first_difference_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault planted in the second engine: it adds one less."""
    from softgen.eu import semantics

    def planted(name: str, threads: int | None = None) -> EngineDispatcher:
        return EngineDispatcher("reference", threads) if name == "reference" else PlantedDispatcher()

    class PlantedDispatcher(EngineDispatcher):
        def run(self, *args: Any) -> Iterator[Any]:
            with monkeypatch.context() as patch:
                right = semantics.OPS["add"]
                patch.setitem(semantics.OPS, "add", replace(right, function=lambda c, a, b: right.function(c, a, b) - 1))
                yield from super().run(*args)

    monkeypatch.setattr("softgen.threads.dispatcher.EngineDispatcher", planted)
    file = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD))
    assert cli.main(["replay", file, file, "--compare", "reference,t1"]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"differ: kernel 0x\w+, group \(0, 0, 0\): at 0x\w+ reference has 0x\w+, .* has 0x\w+; stored by .*send", shown)


@pytest.mark.parametrize("options", [["--engine", "t1"], ["--engine", "t1", "--threads", "1"], ["--engine", "t0", "--deterministic"]])
def test_a_report_says_what_ran_and_how_exactly(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, kept = str(aub(tmp_path / "add.aub", vector_add("skl"), GOOD)), tmp_path / "report.json"
    assert cli.main(["replay", file, "--report", str(kept), *options]) == 0
    found = json.loads(kept.read_text())
    assert found["exact"] and found["approximate"] == {} and found["faults"] == found["unsupported"] == []
    (kernel,) = found["kernels"]
    assert (kernel["engine"], kernel["dispatches"], kernel["threads"], kernel["instructions"]) == (options[1], 1, 4, 32)
    assert found["engines"][0]["notes"] == [] and (len(options) == 2 or found["engines"][0]["threads"] == 1)
    capsys.readouterr()
    assert cli.main(["replay", file, "--report", "-", *options]) == 0
    assert "exact: no function" in (shown := capsys.readouterr().out) and "dispatches  threads  instructions" in shown


def test_a_report_names_functions_that_are_approximate(tmp_path: Path) -> None:
    job = vector_add("skl")
    job.kernel = job.kernel.replace("     add (16|M0) r12", "     math.cos (16|M0) r30.0<1>:f r20.0<8;8,1>:f\n     add (16|M0) r12")
    assert cli.main(["replay", str(aub(tmp_path / "cos.aub", job, GOOD)), "--report", str(tmp_path / "r.json"), "--engine", "t1"]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert not found["exact"] and found["approximate"] == {"cos": "0.51 ULP up to 2^20"}


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_a_report_counts_what_was_left_to_the_reference(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message whose descriptor comes out of nowhere: compiled code cannot know what it asks for."""
    job = vector_add("skl")
    unknown = "(W) mov (1|M0) r3.0<1>:ud 0x04205E00:ud\n(W) mov (1|M0) a0.0<1>:ud r3.0<0;1,0>:ud"
    job = replace(job, kernel=unknown + job.kernel.replace("0xC 0x04205E00", "0xC a0.0"))
    assert cli.main(["replay", str(aub(tmp_path / "add.aub", job, GOOD)), "--report", str(tmp_path / "r.json"), "--engine", engine]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["fallbacks"]["send"] == 4
    capsys.readouterr()
    assert cli.main(["replay", str(tmp_path / "add.aub"), "--report", "-", "--engine", engine]) == 0
    shown = capsys.readouterr().out
    assert "left to the reference: " in shown and "send 4 times" in shown


@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_an_endless_kernel_is_named_when_time_is_up(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = vector_add("skl")
    job.kernel = ENDLESS
    assert cli.main(["replay", str(aub(tmp_path / "endless.aub", job, GOOD)), "--time-limit", "1", "--engine", engine]) == 1
    assert re.search(r"time is up: thread 0 of group \(\d, 0, 0\), kernel 0x\w+\+0x\w+: .*(add|jmpi)", capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [[], ["x.aub", "--time-limit", "0"], ["x.aub", "--threads", "0"], ["x.aub", "--compare", "t1"],
                                       ["x.aub", "--compare", "t1,t7"], ["x.aub", "--time-limit", "nan"], ["x.aub", "--engine", "t9"],
                                       ["x.aub", "--gpu", "voodoo"], ["x.aub", "--trace", "secrets"], [""],
                                       ["x.aub", "--compare-tiles", "2"],
                                       ["x.aub", "--compare", "t0,t1", "--compare-tiles", "0"]])  # fmt: skip
def test_misuse_is_exit_code_2(arguments: list[str]) -> None:
    assert cli.main(["replay", *arguments]) == 2


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("hello\n")
    assert cli.main(["replay", str(tmp_path / "text")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("options, expected", [
    (("--report", "/no/such/folder/report.json"), "no such folder: /no/such/folder"),
    (("--report", ""), "--report needs the name of a file, or - for a table"),
    (("--report", "/"), "--report /: is a folder; a report is a file"),
    (("--kernels", "/no/such/file"), "--kernels /no/such/file: no such file or folder"),
    (("--kernels", ""), "--kernels : no such file or folder"),
])
def test_a_report_that_cannot_be_made_is_refused_before_the_replay(options: tuple[str, ...], expected: str,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(ROOT / "tests" / "data" / "kbl-vk-compute"), *options]) == 2
    out, err = capsys.readouterr()
    assert expected in err and not out


TRIANGLE = ROOT / "tests" / "data" / "g45-gles-tri"


def test_images_of_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A triangle of red, green and blue corners on a blue background; stored bottom row first."""
    assert cli.main(["replay", str(TRIANGLE), "--images", str(tmp_path / "out")]) == 0
    shown = re.findall(r"picture (.*\.png)", capsys.readouterr().out)
    assert shown and Path(shown[0]).name == "submission-1-draw-2-target-0.png"
    assert sorted(shown) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    for path in shown:
        with Image.open(path) as picture:
            assert picture.size == (64, 64) and picture.getpixel((0, 0)) == (51, 102, 153, 255)
            colours = picture.getcolors(4096)
            assert colours is not None and len(colours) > 1000
    assert cli.main(["replay", str(TRIANGLE), "--images", str(tmp_path / "out")]) == 2  # it has files in it


def test_images_of_several_captures_are_named_after_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(TRIANGLE), CAPTURE, "--json", "--images", str(tmp_path / "out")]) == 0
    images = [Path(path).name for path in json.loads(capsys.readouterr().out)["images"]]
    assert images and all(name.startswith("g45-gles-tri-submission-") for name in images)


@needs_shared("traces")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "kbl", "icl"])
def test_the_triangle_is_the_same_on_every_gpu(gpu: str, tmp_path: Path) -> None:
    """The captured program is the same, and every frame of it."""
    last = []
    for capture in (TRIANGLE, SHARED / "traces" / f"{gpu}-gles-tri"):
        folder = tmp_path / capture.name
        assert cli.main(["replay", str(capture), "--images", str(folder)]) == 0
        pictures = [np.asarray(Image.open(path)) for path in folder.iterdir()]
        last.append(next(each for each in pictures if each.shape == (64, 64, 4) and len(np.unique(each.reshape(-1, 4), axis=0)) > 1000))
    assert compare(last[1], last[0]).agrees


@pytest.mark.parametrize("remarks, shown, more", [(0, 0, []), (20, 20, []), (23, 20, ["  and 3 more; --report has them all"])])
def test_lines_of_a_replay(remarks: int, shown: int, more: list[str]) -> None:
    counters = Counters(batches=2, commands=30, dispatches=1, threads=4, instructions=1376)
    report = Report(counters, submissions=1, passed=3, failed=["at 0x0"], faults=[Trouble("f", "submission 0", "write at 0x0")],
                    unsupported=[Trouble("f", "", "a register")], remarks=[f"odd {number}" for number in range(remarks)])  # fmt: skip
    head = ["f: kbl", "  1 submission, 2 batches, 30 commands", "  0 draws, 1 dispatch, 4 threads, 1,376 instructions in 1.2 s"]
    assert replay_verb.lines("f", "kbl", report, ["a.png"], 1.24, Paint(False)) == [
        *head, "  expectations: 3 met, 1 not met", "  picture a.png", "  not met at 0x0", "  fault submission 0: write at 0x0",
        "  unsupported a register", *(f"  remark odd {number}" for number in range(shown)), *more]  # fmt: skip
    assert replay_verb.lines("f", "kbl", Report(counters, submissions=1), [], 1.24, Paint(False)) == head
    assert "  expectations: 0 met, 1 not met" in replay_verb.lines("f", "kbl", Report(failed=["x"]), [], 0, Paint(False))

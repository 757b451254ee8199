"""`softgen run --report`: kernels have names, and the report is a table or JSON."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device, devices
from softgen.driver.run.launcher import Outcome
from softgen.driver.run.service import CANNOT_GO_ON
from softgen.errors import UsageError
from softgen.inspect.cli.main import main
from softgen.inspect.cli.run import CACHE_VARIABLE, Dispatchers, compiled_programs, hint, kernels, mode_size, orphaned, serve, size, wanted
from softgen.inspect.loading import warm
from tests.conftest import ROOT
from tests.driver.running import PROGRAMS, needs_driver, needs_shim, softgen_run

PYTHON = "/usr/bin/python3"
SAXPY = ROOT / "examples" / "opencl_saxpy.py"


def options(engine: str, report: str | None = None) -> argparse.Namespace:
    """Options of a run, as the command line leaves them."""
    return argparse.Namespace(engine=engine, report=report, json=False, kernels=[], trace=None, threads=1, deterministic=False,
                              compare=None, compare_tiles=None, time_limit=None, memory_limit=None, display=(640, 480),
                              kept_frames=None, page=None, show=False)  # fmt: skip


def needs_opencl() -> None:
    if shutil.which(PYTHON) is None or subprocess.run([PYTHON, "-c", "import pyopencl"], capture_output=True, check=False).returncode:
        pytest.skip("pyopencl is absent")
    needs_driver("kbl", "OpenCL")


@pytest.mark.parametrize("why, said", [
    ("", []), ("is linked statically", [f"softgen: {sys.executable} is linked statically: it will not find the GPU"])])
def test_a_program_that_cannot_find_the_gpu_is_named(why: str, said: list[str], monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """And is run nevertheless; here a GPU is asked for that does not exist."""
    monkeypatch.setattr("softgen.driver.run.environment.unreachable", lambda program: why)
    assert main(["run", "--gpu", "nothing", "--", sys.executable]) == 2
    *first, last = capsys.readouterr().err.splitlines()
    assert first == said and "'nothing'" in last


@pytest.mark.parametrize("text, bytes", [(None, None), ("512M", 512 << 20), ("1.5g", 3 << 29), ("2GiB", 2 << 30), ("67108864", 64 << 20),
                                         ("0.001T", int(0.001 * 2**40))])  # fmt: skip
def test_sizes_of_memory(text: str | None, bytes: int | None) -> None:
    assert size(text) == bytes


def test_sizes_that_are_none() -> None:
    for text in ("", "G", "-1G", "1K", "4X", "1e9", "9" * 400, "٩G"):
        with pytest.raises(UsageError, match=f"a memory limit is a size of at least .*, not {text!r}"):
            size(text)
    assert mode_size("1024x768") == (1024, 768) and mode_size("16x4096") == (16, 4096)
    assert mode_size("8192x16") == (8192, 16) and mode_size("16x8192") == (16, 8192)
    for text in ("1024", "15x16", "16x15", "1024x768x2", "99999x16", "8193x16", "16x8193"):
        with pytest.raises(UsageError, match=f"a display's mode is WIDTHxHEIGHT, 16 to 8192 pixels each, .* not {text!r}"):
            mode_size(text)


def test_a_report_is_wanted_by_either_option() -> None:
    options = ((None, False), ("-", False), (None, True), ("file", True))
    found = [wanted(argparse.Namespace(report=report, json=json, record=None, show=False)) for report, json in options]
    assert found == [False, True, True, True] and wanted(argparse.Namespace(report=None, json=False, record=None, show=True))


@pytest.mark.parametrize("report", [None, "-"])
def test_dispatchers_are_kept_for_a_report_alone(report: str | None) -> None:
    """A run may have thousands of contexts, one after another."""
    dispatchers = Dispatchers(options("reference", report))
    made = [dispatchers.new() for _ in range(3)]
    assert dispatchers.made == (made if report else [])


def test_a_report_that_cannot_be_written_is_misuse_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "no" / "report.json"
    assert main(["run", "--report", str(file), "--", "/bin/sh", "-c", f"touch {tmp_path}/ran"]) == 2
    assert str(file) in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_trace_topic_that_does_not_exist_is_misuse_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--trace", "ioctls,nothing", "--", "/bin/sh", "-c", f"touch {tmp_path}/ran"]) == 2
    assert "no trace topic is called nothing; topics are ioctls " in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("fine, inexact, exact", [(True, [], True), (False, [], False), (True, ["math inv"], False), (False, ["x"], False)])
def test_a_run_is_exact_where_all_its_commands_and_kernels_are(fine: bool, inexact: list[str], exact: bool,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("softgen.inspect.report.report.approximations", lambda programs: inexact)
    found = kernels(fine, [], [])
    assert (found["exact"], found["approximate"], found["notes"], found["kernels"]) == (exact, inexact, [], [])


class CutShort:
    """A recorder whose program was ended."""

    def close(self) -> str:
        return "the recording was cut short"


def test_a_launcher_that_has_ended_cuts_a_recording_short(capsys: pytest.CaptureFixture[str]) -> None:
    ended = "softgen: the launcher has ended: the simulator and the program end too\n"
    orphaned(None, None)
    assert capsys.readouterr().err == ended
    orphaned(CutShort(), None)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ended + "softgen: the recording was cut short\n"


def test_programs_that_were_compiled_go_with_a_launcher_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "first.bin").write_bytes(b"code")
    (tmp_path / "other").write_bytes(b"")
    orphaned(None, str(tmp_path / "programs"))
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    orphaned(None, str(tmp_path / "programs"))  # somebody else removed it


@pytest.mark.parametrize("report, json", [("-", False), (None, True)])
def test_a_report_has_compiled_programs_written_to_a_folder_for_the_time_being(report: str | None, json: bool,
                                                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    with compiled_programs(argparse.Namespace(report=report, json=json, record=None, show=False)) as (folder, removed):
        assert folder is not None and removed and os.environ[CACHE_VARIABLE] == folder
        Path(folder, "first.bin").write_bytes(b"code")
    assert not Path(folder).exists() and CACHE_VARIABLE not in os.environ


@pytest.mark.parametrize("report", ["-", None])
def test_a_folder_for_compiled_programs_that_the_user_chose_stays(report: str | None, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with compiled_programs(argparse.Namespace(report=report, json=False, record=None, show=False)) as found:
        assert found == (str(tmp_path), False)
    assert tmp_path.is_dir() and os.environ[CACHE_VARIABLE] == str(tmp_path)
    monkeypatch.delenv(CACHE_VARIABLE)
    if report is None:
        with compiled_programs(argparse.Namespace(report=None, json=False, record=None, show=False)) as found:
            assert found == (None, False) and CACHE_VARIABLE not in os.environ


def test_a_report_names_the_kernels_that_were_compiled(tmp_path: Path) -> None:
    needs_opencl()
    report = tmp_path / "report.json"
    run = softgen_run("--report", str(report), "--", PYTHON, str(SAXPY), PYOPENCL_NO_CACHE="1")
    assert run.process.returncode == 0, run.err
    (row,) = json.loads(report.read_text("utf-8"))["kernels"]
    assert row["kernel"] == "saxpy" and row["named"] and row["dispatches"] == 1 and row["threads"] == 8


def test_a_report_as_a_table_on_standard_error() -> None:
    needs_opencl()
    run = softgen_run("--report", "-", "--", PYTHON, str(SAXPY), PYOPENCL_NO_CACHE="1")
    assert run.process.returncode == 0 and "all right" in run.out and "report" not in run.out
    assert "8 threads" in run.err and any(line.split()[:1] == ["saxpy"] for line in run.err.splitlines())


@needs_shim
@pytest.mark.parametrize("reports", [True, False])
def test_a_program_is_served_and_a_report_says_what_it_did(reports: bool, tmp_path: Path) -> None:
    """Two batches, each of a store and an end, without a driver."""
    report = tmp_path / "report.json"
    run = softgen_run(*(["--report", str(report)] if reports else []), "--", sys.executable, str(PROGRAMS / "doors.py"), "plainly")
    assert run.process.returncode == 0 and run.out == "plainly ok\n", run.err
    assert report.exists() == reports
    if reports:
        found = json.loads(report.read_text("utf-8"))
        assert (found["opened"], found["submissions"], found["batches"], found["commands"], found["kernels"]) == (2, 2, 2, 4, [])


def test_a_simulator_that_cannot_go_on_says_why() -> None:
    """Where one of its modules cannot be imported, say."""
    broken = "import sys; sys.modules['softgen.driver.objects.node'] = None; from softgen.inspect.cli.main import main; sys.exit(main())"
    program = [sys.executable, "-c", "import os; os.open('/dev/dri/renderD128', os.O_RDWR)"]
    run = subprocess.run([sys.executable, "-c", broken, "run", "--", *program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "the simulator cannot go on: ModuleNotFoundError: import of softgen.driver.objects.node" in run.stderr


SEGV, TERM = signal.SIGSEGV, signal.SIGTERM


@pytest.mark.parametrize("outcome, asked", [
    (Outcome(0), None), (Outcome(1), None), (Outcome(0, loads=["OpenCL"]), None), (Outcome(1, loads=["OpenCL"]), {"OpenCL"}),
    (Outcome(0, seeks=["Vulkan"]), {"Vulkan"}), (Outcome(1, loads=["OpenCL"], seeks=["Vulkan"]), {"OpenCL", "Vulkan"}),
    (Outcome(1, loads=["OpenCL"], trouble="time is up"), None), (Outcome(1, loads=["OpenCL"], failed=["a draw"]), None),
    (Outcome(139, signal=SEGV), "any"), (Outcome(139, {"opened": 0}, signal=SEGV), "any"), (Outcome(139, {"opened": 1}, signal=SEGV), None),
    (Outcome(143, signal=TERM), None), (Outcome(139, {"opened": 1}, signal=SEGV, seeks=["OpenGL"]), {"OpenGL"}),
])  # fmt: skip
def test_missing_drivers_are_named_to_programs_that_wanted_one(outcome: Outcome, asked: Any, monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """To those that looked around for one, those that failed with an API's library loaded, and those that crashed before they opened the
    GPU: which API they had loaded is not known then."""
    monkeypatch.setattr("softgen.driver.run.environment.missing", lambda gpu, apis: [f"{gpu.name}: {sorted(apis) if apis else 'any'}"])
    hint(device("kbl"), outcome)
    assert capsys.readouterr().err == ("" if asked is None else f"softgen: kbl: {'any' if asked == 'any' else sorted(asked)}\n")


@pytest.mark.parametrize("found, recorder, report, served", [
    (True, None, None, True), (False, None, None, False), (False, None, "-", True),
    (False, SimpleNamespace(complete=None), None, True)])  # fmt: skip
def test_a_simulator_begins_when_its_modules_are_imported(found: bool, recorder: Any, report: str | None, served: bool,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Two threads that import the same modules may find them half made. A program that looked for no GPU needs no simulator, except for
    a report or a recording."""
    seen, service = list[str](), SimpleNamespace(loaded=threading.Event(), wait_for_program=lambda: found)
    service.loaded.set()

    def load(gpu: object, engine: str, answering: threading.Event, given: object) -> None:
        time.sleep(0.05)
        if given is service and not service.loaded.is_set():
            seen.append(f"imported for {engine}")
        answering.set()

    def simulator(*given: object) -> Any:
        seen.append("simulator")
        executor = SimpleNamespace(as_json=dict, report=SimpleNamespace(fine=True))
        return SimpleNamespace(run=lambda: {"opened": 1}, executor=lambda: executor)

    monkeypatch.setattr("softgen.inspect.cli.run.load", load)
    monkeypatch.setattr("softgen.driver.run.simulator.Simulator", simulator)
    monkeypatch.setattr("softgen.bits.catalogue.save", lambda: seen.append("saved"))
    given: Any = service
    told = serve(options("t1", report), device("kbl"), recorder, None, None, given)
    assert told.get("opened") == (1 if served else None) and ("kernels" in told) is (report is not None)
    assert not served or seen == ["imported for t1", "simulator", "saved"]


@pytest.mark.parametrize("engine, loaded, noted", [("auto", True, [9.0]), ("auto", False, []), ("reference", True, [])])
def test_what_kernels_had_is_noted_when_the_program_has_ended(engine: str, loaded: bool, noted: list[float],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Not while another thread still imports that module."""
    seen = list[float]()

    def load(gpu: object, engine: str, answering: threading.Event, service: Any) -> None:
        answering.set()
        if loaded:
            service.loaded.set()

    monkeypatch.setattr("softgen.inspect.cli.run.load", load)
    monkeypatch.setattr("softgen.driver.run.simulator.Simulator", lambda *given: SimpleNamespace(run=dict, compile_ahead=lambda: None))
    monkeypatch.setattr("softgen.bits.catalogue.save", lambda: None)
    monkeypatch.setattr("softgen.eu.threaded.library.Library.keep_recent", lambda self: seen.append(self.gen))
    service: Any = SimpleNamespace(loaded=threading.Event(), wait_for_program=lambda: True)
    serve(options(engine), device("kbl"), None, None, None, service)
    assert seen == noted


@pytest.mark.parametrize("gpu", sorted(devices()))
@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_what_is_loaded_while_a_program_starts(gpu: str, engine: str) -> None:
    """An error in there would be found by the code that needs the module, and everything after it would be loaded late."""
    warm(device(gpu), engine)


@pytest.mark.parametrize(("engine", "processors", "compiles"), [("auto", 2, True), ("auto", 1, False), ("t1", 2, False),
                                                                ("reference", 2, False)])  # fmt: skip
def test_handlers_are_compiled_ahead_where_a_processor_is_free(engine: str, processors: int, compiles: bool,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    ahead = threading.Event()
    service: Any = SimpleNamespace(loaded=threading.Event(), wait_for_program=lambda: True)
    simulator = SimpleNamespace(run=lambda: {"ahead": ahead.wait(5 if compiles else 0.05)}, compile_ahead=ahead.set)
    monkeypatch.setattr("softgen.inspect.cli.run.load", lambda gpu, engine, answering, service: answering.set())
    monkeypatch.setattr("softgen.driver.run.simulator.Simulator", lambda *given: simulator)
    monkeypatch.setattr("softgen.bits.catalogue.save", lambda: None)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(processors)))
    assert serve(options(engine), device("kbl"), None, None, None, service)["ahead"] == compiles


def test_a_start_imports_no_translator() -> None:
    """Nor what formats instructions, or what drives engines through registers: the first result needs none of them."""
    code = ("import sys; from softgen.bits.generation import device; from softgen.inspect.loading import warm; "
            "warm(device('kbl'), 'auto')\n"
            "late = ('softgen.eu.text', 'softgen.eu.translate.kernel', 'softgen.device.engines', 'softgen.trace', 'PIL')\n"
            "print([m for m in sys.modules if m.startswith(late)])")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_contexts_that_compute_import_nothing_that_draws() -> None:
    code = ("import sys, softgen.driver.queue.execute, softgen.gpgpu.commands\n"
            "print([m for m in sys.modules if 'three_d' in m and m.rpartition('.')[2] in ('draw', 'draw_record', 'clears')])")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("images, said", [
    (None, ["out: no pictures, because nothing was drawn"]), ([], ["out: no pictures, because nothing was drawn"]),
    (["1.png"], ["1 picture in out"]), (["1.png", "2.png", "3.png"], ["3 pictures in out"])])  # fmt: skip
def test_how_many_pictures_there_are(images: list[str] | None, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    outcome = Outcome(3, {} if images is None else {"images": images})
    monkeypatch.setattr("softgen.driver.run.launcher.launch", lambda *given: outcome)
    monkeypatch.setattr("softgen.driver.run.environment.unreachable", lambda program: "")
    for options, lines in ((("--images", "out"), said), ((), [])):
        assert main(["run", *options, "--", sys.executable]) == 3
        assert capsys.readouterr().err.splitlines() == [f"softgen: {line}" for line in lines]


@pytest.mark.parametrize("outcome, said", [
    (Outcome(0), []), (Outcome(139, signal=SEGV), [f"{sys.executable} was ended by SIGSEGV"]), (Outcome(143, signal=TERM), []),
    (Outcome(137, signal=signal.SIGKILL), [f"{sys.executable} was ended by SIGKILL"]),
    (Outcome(1, trouble="time is up"), ["time is up"]),
    (Outcome(137, signal=signal.SIGKILL, trouble="no report"), ["no report", f"{sys.executable} was ended by SIGKILL"]),
    (Outcome(1, failed=["a draw", f"{CANNOT_GO_ON}: no memory"]), [f"{CANNOT_GO_ON}: no memory"]),
])  # fmt: skip
def test_how_a_program_ended_is_told_where_nobody_asked_for_it(outcome: Outcome, said: list[str], monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """Crashes, and what the launcher ended it for; failures of its work were told when they came."""
    monkeypatch.setattr("softgen.driver.run.launcher.launch", lambda *given: outcome)
    monkeypatch.setattr("softgen.driver.run.environment.unreachable", lambda program: "")
    monkeypatch.setattr("softgen.inspect.cli.run.hint", lambda gpu, outcome: None)
    assert main(["run", "--", sys.executable]) == outcome.code
    assert capsys.readouterr().err.splitlines() == [f"softgen: {line}" for line in said]


def test_images_where_nothing_is_drawn(tmp_path: Path) -> None:
    run = softgen_run("--images", str(tmp_path / "out"), "--", "/bin/true")
    assert run.process.returncode == 0 and "no pictures, because nothing was drawn" in run.err
    (tmp_path / "out" / "mine").write_text("kept")
    run = softgen_run("--images", str(tmp_path / "out"), "--", "/bin/true")
    assert run.process.returncode == 2 and "has files in it already" in run.err

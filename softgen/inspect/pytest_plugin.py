"""pytest plugin: tests that run programs on a software GPU.

    @pytest.mark.softgen(gpu=["kbl", "icl"], api="OpenGL")
    def test_draws(softgen_run):
        assert softgen_run()(["./triangle", "--frames", "2"]).ok

    def test_on_one(softgen_run):
        ran = softgen_run("kbl", "--engine", "reference")(["./compute"])
        assert ran.returncode == 0 and ran.report["dispatches"] == 3

A marked test runs once for each GPU, and is skipped where the driver for `api` is not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

USUAL = "kbl"
TIME_LIMIT = 600.0  # seconds


@dataclass(frozen=True)
class FinishedRun:
    """A program that has ended: its exit code and output, and the report of `softgen run`."""

    returncode: int
    stdout: str
    stderr: str
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """What failed on the GPU, and what softgen does not simulate."""
        return [*self.report.get("faults", ()), *self.report.get("unsupported", ())]

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.faults


Runner = Callable[..., FinishedRun]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "softgen(gpu=NAME or [NAME, …], api=NAME): softgen_run() finds this GPU, each of several in turn; "
                                       "skipped where no driver for this API is installed")  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that is marked with several GPUs runs on each."""
    mark = metafunc.definition.get_closest_marker("softgen")
    gpus = mark.kwargs.get("gpu", USUAL) if mark else USUAL
    if mark and "softgen_run" in metafunc.fixturenames and not isinstance(gpus, str):
        metafunc.parametrize("softgen_gpu", list(gpus))


@pytest.fixture
def softgen_gpu(request: pytest.FixtureRequest) -> str:
    """The GPU that a test is marked with."""
    mark = request.node.get_closest_marker("softgen")
    return str(mark.kwargs.get("gpu", USUAL)) if mark else USUAL


@pytest.fixture
def softgen_run(request: pytest.FixtureRequest, softgen_gpu: str, tmp_path: Path) -> Callable[..., Runner]:
    """`softgen_run(GPU, OPTION…)` gives a function that runs a command on that GPU; without a GPU, on the one the test is marked with."""
    mark = request.node.get_closest_marker("softgen")
    api = mark.kwargs.get("api") if mark else None

    def on(gpu: str | None = None, *options: str) -> Runner:
        if api and (lacking := missing_driver(gpu or softgen_gpu, api)):
            pytest.skip(lacking)

        def run(command: Sequence[str | os.PathLike[str]], *, time_limit: float = TIME_LIMIT, **given: Any) -> FinishedRun:
            return run_program(gpu or softgen_gpu, options, command, tmp_path / "softgen-report.json", time_limit, given)

        return run

    return on


def missing_driver(gpu: str, api: str) -> str:
    """Why programs of an API find no driver for a GPU here; "" where they find one."""
    from softgen.bits.generation import device
    from softgen.driver.run.environment import missing

    return "; ".join(missing(device(gpu), {api}))


def run_program(gpu: str, options: Sequence[str], command: Sequence[str | os.PathLike[str]], report: Path, time_limit: float,
                given: dict[str, Any]) -> FinishedRun:  # fmt: skip
    """Run a command; `given` is for subprocess.run, such as cwd, env and input."""
    report.unlink(missing_ok=True)
    told = ["--gpu", gpu, "--report", str(report), "--time-limit", f"{time_limit:g}", *options]
    words = [os.fspath(word) for word in command]
    whole = [sys.executable, "-m", "softgen", "run", *told, "--", *words]
    ran = subprocess.run(whole, capture_output=True, text=True, check=False, **given)
    found = json.loads(report.read_text("utf-8")) if report.exists() else {}
    return FinishedRun(ran.returncode, ran.stdout, ran.stderr, found)

"""`softgen.farm`: results as they come, in a program or a notebook, here or by an executor."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import softgen
from softgen.errors import UsageError
from softgen.inspect.farm.progress import FarmProgress, NotebookProgress, duration, farm_progress
from tests.conftest import ROOT
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import lines, write_list

CAPTURE = ROOT / "tests" / "data" / "kbl-vk-compute"


def test_captures_on_gpus() -> None:
    found = sorted(softgen.farm([CAPTURE], gpu=["kbl", "skl"]), key=lambda result: result.gpu)
    assert [(one.capture, one.gpu, one.ok, one.result, one.findings) for one in found] == [
        (str(CAPTURE), gpu, True, "pass", ()) for gpu in ("kbl", "skl")]  # fmt: skip
    assert all(one.seconds > 0 and len(one.hash) == 40 for one in found)


@needs_shim
def test_commands_with_a_folder_of_results(tmp_path: Path) -> None:
    tests = ["true", "sh -c 'exit 3'"]
    first = {one.name: (one.result, one.ok, one.message) for one in softgen.farm(tests=tests, out=tmp_path / "out")}
    assert first == {"true": ("pass", True, ""), "sh -c 'exit 3'": ("fail", False, "exit code 3")}
    began = (tmp_path / "out" / "results.jsonl").stat().st_mtime_ns
    listed = write_list(tmp_path / "list", tests)
    again = {one.name: one.result for one in softgen.farm(tests=listed, out=tmp_path / "out")}
    assert again == {"true": "pass", "sh -c 'exit 3'": "fail"} and (tmp_path / "out" / "results.jsonl").stat().st_mtime_ns == began


@needs_shim
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor(pool: Any) -> None:
    with pool(2) as executor:
        assert {one.result for one in softgen.farm(tests=["true", "true 2"], executor=executor)} == {"pass"}


@needs_shim
def test_leaving_early_ends_what_runs(tmp_path: Path) -> None:
    began = time.monotonic()
    for one in softgen.farm(tests=["true", "sleep 1234.375", "sleep 1234.625"], out=tmp_path, workers=2):
        assert one.name == "true"
        break
    assert time.monotonic() - began < 60 and [line["name"] for line in lines(tmp_path)] == ["true"]
    list(softgen.farm(tests=["true"], out=tmp_path))  # nothing is locked


@pytest.mark.parametrize("given, told", [
    ({}, "a farm needs captures to replay, or tests to run"), ({"captures": "x", "tests": ["true"]}, "one of both"),
    ({"tests": ["echo 'x"]}, "test 1: cannot be split as a shell does"), ({"captures": "no such"}, "no such: no such file or folder"),
    ({"tests": ["true"], "gpu": "voodoo"}, "no GPU is called 'voodoo'"), ({"tests": ["true"], "time_limit": 0}, "above zero, not 0"),
    ({"tests": ["true"], "check": ["order"]}, "check is for captures"), ({"tests": ["true"], "shard": "2/1"}, "shard 2 of 1"),
])  # fmt: skip
def test_mistakes_are_told_at_once(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        softgen.farm(**given)


def test_an_executor_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"an executor is a concurrent\.futures\.Executor or a Dask client, not int"):
        list(softgen.farm(tests=["true"], executor=3))


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """The output of a notebook's cell."""
    shown: list[dict[str, str]] = []

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.append(data))

    module: Any = ModuleType("IPython")
    module.get_ipython = lambda: SimpleNamespace(kernel=object())
    module.display = SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return shown


def test_progress_in_a_notebook(cell: list[dict[str, str]]) -> None:
    assert len(list(softgen.farm(CAPTURE, gpu=["kbl", "skl"]))) == 2
    assert cell[0]["text/plain"].startswith("0 of 2 units") and cell[-1]["text/plain"].startswith("2 of 2 units")
    assert '<progress max="2" value="2">' in cell[-1]["text/html"]
    count = len(cell)
    assert len(list(softgen.farm(CAPTURE, progress=False))) == 1 and len(cell) == count


def test_a_terminal_of_ipython_is_no_notebook(cell: list[dict[str, str]]) -> None:
    assert isinstance(farm_progress(3, None), NotebookProgress)
    sys.modules["IPython"].get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    assert type(farm_progress(3, None)) is FarmProgress


def test_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("softgen.inspect.farm.progress.time.monotonic", lambda: now[0])
    progress = FarmProgress(1000, quiet=True)
    now[0] = 110.0
    for number in range(40):
        progress.step(number >= 3)
    assert progress.text() == "40 of 1,000 units, 3 not passed, 4.0 a second, 4:00 left"
    assert [duration(seconds) for seconds in (5, 65.6, 3600, 36061)] == ["0:05", "1:06", "1:00:00", "10:01:01"]

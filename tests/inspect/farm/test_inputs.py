"""Workers on other machines: captures are sent to them, and results of another softgen or other drivers are not taken."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

from softgen.errors import SoftgenError
from softgen.inspect.farm import identity, inputs
from softgen.inspect.farm.engine import FarmEngine
from softgen.inspect.farm.executors import Backend
from softgen.inspect.farm.inputs import MissingInput, local_path, pack
from softgen.inspect.farm.plans import UnitSettings
from softgen.inspect.farm.replays import ReplayPlan
from softgen.inspect.farm.suites import UnfitWorker, run_job
from softgen.inspect.farm.unit import Job, JobOutcome
from tests.conftest import ROOT
from tests.inspect.farm.farming import job

CAPTURE = ROOT / "tests" / "data" / "kbl-vk-compute"


class Elsewhere(Executor):
    """A machine that does not see the farm's captures: they are gone when a job arrives."""

    def __init__(self, hide: Path) -> None:
        self.hide, self._max_workers, self.payloads = hide, 1, list[int]()

    def submit(self, function: object, given: Job) -> Future[JobOutcome]:  # type: ignore[override]
        self.payloads.append(len(given.payload))
        future: Future[JobOutcome] = Future()
        away = self.hide.with_name("away")
        self.hide.rename(away)
        try:
            future.set_result(run_job(given))
        except Exception as error:
            future.set_exception(error)
        finally:
            away.rename(self.hide)
        return future


def plan(capture: Path) -> ReplayPlan:
    return ReplayPlan([str(capture)], ["kbl"], [], UnitSettings(folder="/", environment={}))


def test_a_capture_is_sent_once_to_a_machine_that_lacks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    capture = Path(shutil.copytree(CAPTURE, tmp_path / "capture"))
    machine, wanted = Elsewhere(capture), plan(capture)
    for _ in range(2):
        [(_, outcome)] = FarmEngine(Backend(machine), wanted.jobs(wanted.units(), 1)).outcomes()
        [result] = outcome.results
        assert (result.name, result.result, result.message) == (str(capture), "pass", "")
    first, second, third = machine.payloads
    assert first == third == 0 and second > 1000
    [kept] = inputs.folder().iterdir()
    assert kept.name == identity.tree_sum(str(capture)) == identity.tree_sum(str(kept))


def test_messages_name_the_capture_as_the_farm_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    capture = Path(shutil.copytree(CAPTURE, tmp_path / "capture"))
    next((capture / "bo").iterdir()).write_bytes(b"no zstd")
    wanted = plan(capture)
    messages = []
    for backend in (Backend(Elsewhere(capture)), Backend(Here())):
        [(_, outcome)] = FarmEngine(backend, wanted.jobs(wanted.units(), 1)).outcomes()
        messages.append(outcome.results[0].message)
    assert messages[0] == messages[1] and str(capture) in messages[0]


class Here(Executor):
    def submit(self, function: object, given: Job) -> Future[JobOutcome]:  # type: ignore[override]
        future: Future[JobOutcome] = Future()
        future.set_result(run_job(given))
        return future


def test_another_capture_at_the_same_path_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    capture = Path(shutil.copytree(CAPTURE, tmp_path / "capture"))
    [given] = plan(capture).jobs(plan(capture).units(), 1)
    assert local_path(given, str(capture)) == str(capture)
    (capture / "more").write_text("changed")
    with pytest.raises(MissingInput):
        local_path(given, str(capture))


def test_what_is_too_large_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGEST", 1000)
    with pytest.raises(SoftgenError, match="more than 0 MiB, and workers do not see it: put it on storage that they share"):
        pack(job("x", inputs=((str(CAPTURE), "sum"),)))


def test_captures_that_were_not_used_for_long_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in enumerate(("new", "old", "oldest")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    monkeypatch.setattr(inputs, "KEPT", 250)
    inputs.shrink(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_a_machine_with_another_softgen_or_other_drivers_does_not_run_units(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnfitWorker, match=r"has another softgen \(0.1.0\+.*\) or other drivers for kbl than the farm"):
        run_job(job("true", host="of another machine"))
    with pytest.raises(UnfitWorker, match="has no folder /no/such/folder"):
        run_job(job("true", folder="/no/such/folder"))
    [given] = plan(CAPTURE).jobs(plan(CAPTURE).units(), 1)
    assert given.host == identity.host_sum("kbl", {}) != identity.host_sum("icl", {}) != ""

"""Jobs handed to executors: each has one outcome, a few are under way at once, only lost workers are tried again."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from softgen.errors import SoftgenError
from softgen.inspect.farm import executors, suites
from softgen.inspect.farm.engine import RETRIES, FarmEngine
from softgen.inspect.farm.executors import Backend, LocalBackend
from softgen.inspect.farm.unit import Job, JobOutcome
from tests.inspect.farm.farming import job, passing


class Scripted(Executor):
    """Runs each job at once, as the test says."""

    def __init__(self, does: Callable[[Job], JobOutcome], workers: int = 2) -> None:
        self.does, self._max_workers, self.ran = does, workers, list[str]()

    def submit(self, function: object, given: Job) -> Future[JobOutcome]:  # type: ignore[override]
        self.ran.append(given.units[0].name)
        future: Future[JobOutcome] = Future()
        try:
            future.set_result(self.does(given))
        except BaseException as error:
            future.set_exception(error)
        return future


def names(engine: FarmEngine) -> list[str]:
    return [result.name for _, outcome in engine.outcomes() for result in outcome.results]


def test_each_job_has_one_outcome() -> None:
    executor = Scripted(passing)
    assert sorted(names(FarmEngine(Backend(executor), iter([job(f"{n}") for n in range(50)])))) == sorted(f"{n}" for n in range(50))
    assert len(executor.ran) == 50 and names(FarmEngine(Backend(executor), iter(()))) == []


def test_few_jobs_are_under_way_at_once() -> None:
    taken = itertools.count()
    jobs = (job(f"{next(taken)}") for _ in range(1000))
    engine = FarmEngine(Backend(Scripted(passing, workers=3)), jobs)
    assert max(len(engine.running) for _ in engine.outcomes()) == 6 and next(taken) == 1000
    assert Backend(ThreadPoolExecutor(7)).workers == 7
    plain = Backend(Scripted(passing))
    del plain.executor._max_workers  # type: ignore[attr-defined]
    assert plain.workers == executors.UNKNOWN


class KilledWorker(Exception):
    """As Dask's is called."""


@pytest.mark.parametrize("error", [KilledWorker("task"), BrokenExecutor("gone"), OSError(11, "no more processes"), MemoryError()])
def test_a_lost_worker_costs_nothing_but_time(error: Exception) -> None:
    fails = {"b": RETRIES}

    def does(given: Job) -> JobOutcome:
        if (left := fails.get(given.units[0].name, 0)) > 0:
            fails[given.units[0].name] = left - 1
            raise error
        return passing(given)

    executor = Scripted(does)
    engine = FarmEngine(Backend(executor), iter([job("a"), job("b"), job("c")]))
    assert sorted(names(engine)) == ["a", "b", "c"] and executor.ran.count("b") == 1 + RETRIES and not engine.lost


def test_a_job_that_loses_every_worker_is_given_up() -> None:
    def does(given: Job) -> JobOutcome:
        if given.units[0].name == "b":
            raise KilledWorker("task b")
        return passing(given)

    executor = Scripted(does)
    engine = FarmEngine(Backend(executor), iter([job("a"), job("b"), job("c")]))
    assert sorted(names(engine)) == ["a", "c"] and executor.ran.count("b") == 1 + RETRIES
    assert [(lost.units[0].name, why) for lost, why in engine.lost] == [("b", "task b")]


def test_a_mistake_of_a_worker_is_not_tried_again() -> None:
    def does(given: Job) -> JobOutcome:
        raise KeyError("no suite")

    executor = Scripted(does)
    with pytest.raises(SoftgenError, match="a worker cannot run units: KeyError: 'no suite'"):
        names(FarmEngine(Backend(executor, "there"), iter([job("a"), job("b")])))
    assert len(set(executor.ran)) == len(executor.ran)


def test_an_executor_that_is_closed() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(SoftgenError, match="ThreadPoolExecutor: takes no more units: cannot schedule new futures"):
        names(FarmEngine(Backend(pool), iter([job("a")])))


def test_processes_of_a_pool_run_units() -> None:
    with ProcessPoolExecutor(2) as pool:
        [(_, outcome)] = FarmEngine(Backend(pool), iter([job("true", options=("--no-such-option",))])).outcomes()
    assert [(one.name, one.result) for one in outcome.results] == [("true", "fail")] and "--no-such-option" in outcome.logs["kbl-true"]


def test_stopping_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of three jobs is done when the farm is stopped, the second ends because of that, the third never begins."""
    begun = threading.Event()

    def run_one(given: Job, stop: Callable[[], bool]) -> JobOutcome:
        if given.units[0].name == "first":
            return passing(given)
        begun.set()
        until = time.monotonic() + 20
        while not stop() and time.monotonic() < until:
            time.sleep(0.01)
        return JobOutcome(stopped=True)

    monkeypatch.setitem(suites.SUITES, "run", run_one)
    backend = LocalBackend(1)
    engine = FarmEngine(backend, iter([job("first"), job("second"), job("third")]))
    outcomes = engine.outcomes()
    assert next(outcomes)[0].units[0].name == "first" and begun.wait(20)
    left = list(engine.stop())
    assert [(given.units[0].name, outcome.stopped) for given, outcome in left] == [("second", True)]
    backend.close()

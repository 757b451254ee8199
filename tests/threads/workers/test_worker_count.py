"""How many host threads a dispatch gets: what is tried, what it tells, and what disturbs."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.workers import groups as groups_module
from softgen.threads.workers import worker, worker_count
from tests.gpgpu.job import Job
from tests.threads.workers.test_pool import COUNT, MANY, MANY_THREADS, SLOW, job


def choices(runs: int, work: float, one: float, several: float, first: float = 0.0, contends: bool = True) -> list[int]:
    """The dispatches that one worker runs, of so many, which take so long each; the first may have been disturbed."""
    found, chosen = worker_count.WorkerCountTuner(lambda: contends), list[int]()
    for run in range(1, runs + 1):
        alone = found.alone(work)
        found.ran(alone, first if first and run == 1 else one if alone else several)
        chosen += [run] * alone
    return chosen


def test_the_faster_number_of_workers_is_found_by_trying() -> None:
    """One worker is tried after two dispatches, which took the 18 ms that it could take. Then several are, whenever 1, 2 … 128 times their
    9 ms have passed, to see whether it still holds."""
    tried = sorted({*range(1, 2001)} - {*choices(2000, work=0.018, one=0.004, several=0.009)})
    assert tried == [1, 2, 7, 13, 23, 42, 79, 152, 297, 586, 875, 1164, 1453, 1742]


def test_one_worker_is_tried_rarely_where_several_are_faster() -> None:
    """Two workers, 5 and 10 ms; sixteen, 1 and 16 ms."""
    assert choices(64, work=0.010, one=0.010, several=0.005) == [3, 8, 17, 34]
    assert choices(200, work=0.016, one=0.016, several=0.001) == [17, 50, 115]
    assert not choices(1000, work=0.1001, one=1.0, several=0.01)  # too long to try
    assert choices(1000, work=0.0999, one=0.0999, several=0.01)


def test_one_worker_is_not_tried_before_long_without_atomics() -> None:
    assert choices(400, work=0.010, one=0.010, several=0.005, contends=False) == [65, 194]
    tried = sorted({*range(65, 301)} - {*choices(300, work=0.018, one=0.004, several=0.009, contends=False)})
    assert tried == [138, 283]  # it is faster all the same


def test_one_disturbed_dispatch_does_not_decide_the_number_of_workers() -> None:
    """Several workers took 100 ms where 5 are usual, and one took 9: several are tried again after the 10 that one could take."""
    assert choices(40, work=0.010, one=0.009, several=0.005, first=0.1) == [2, 3, 4, 8, 13, 22, 38]


def test_two_disturbed_dispatches_decide_the_number_of_workers() -> None:
    """What several take rises by a fifth with each of them, whatever they took: from 10 ms past the 13 that one takes. A quick one counts
    at once."""
    found = worker_count.WorkerCountTuner(bool)
    found.ran(False, 0.010)
    found.ran(True, 0.013)
    chosen = []
    for several in (0.1, 0.1, 0.010, 0.012, 0.1):
        found.ran(False, several)
        chosen.append(found.better_alone)
    assert chosen == [False, True, False, False, True]


def test_a_long_dispatch_tries_one_worker_for_a_moment() -> None:
    """Four workers take 10 ms for each group, one takes 20 ms, or 5 ms: groups and seconds of the dispatch so far."""
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 1000, alone=False)
    assert stages.end(4, 10, 0.1)  # one worker is tried
    assert not stages.end(1, 11, 0.12)  # and was slower
    assert not stages.end(4, 20, 0.21)
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 1000, alone=False)
    assert stages.end(4, 10, 0.1) and stages.end(1, 12, 0.11) and stages.end(1, 20, 0.15)
    assert stages.tuner.times == {False: pytest.approx(10.0), True: pytest.approx(5.0)} and stages.count == 3
    assert stages.tuner.alone(10.0)  # the next dispatch begins so


def test_stages_that_tell_nothing() -> None:
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 1000, alone=False)
    assert not stages.end(4, 3, 0.1) and not stages.tuner.times  # not all workers have done a group
    assert stages.end(4, 4, 0.2)
    assert not stages.end(1, 4, 0.3) and True not in stages.tuner.times  # a group takes longer than the trial
    assert not stages.end(4, 8, 0.4)  # which is not made again
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 10, alone=False)
    assert not stages.end(4, 9, 0.09)  # too little is left
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 1000, alone=True)
    assert stages.end(1, 0, 0.1)  # one worker was chosen before the dispatch
    assert not stages.end(1, 1, 0.2)  # several are not known yet
    stages = worker_count.Stages(worker_count.WorkerCountTuner(bool), 1000, alone=False)
    stages.begin(100, 5.0)
    stages.end(4, 110, 5.1)
    assert stages.tuner.times == {False: pytest.approx(10.0)}


@pytest.mark.parametrize("better", [False, True])
def test_workers_come_and_go_in_a_dispatch(better: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, then one, then the better of both, whatever the times were; each group runs once."""
    times, counts = {True: 1.0 if better else 3.0, False: 2.0}, list[int]()
    monkeypatch.setattr(worker_count.WorkerCountTuner, "ran", lambda self, alone, seconds: self.times.__setitem__(alone, times[alone]))
    for module in (groups_module, worker):
        monkeypatch.setattr(module, "SLICE", 200_000)
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", 0.0)
    monkeypatch.setattr(groups_module, "STAGE", 0.0002)
    monkeypatch.setattr(worker_count, "WORTH", 0)
    run_parts = scheduler.run_parts
    monkeypatch.setattr(scheduler, "run_parts", lambda given: (counts.append(len(given)), run_parts(given))[1])
    made, dispatcher = job(SLOW.replace("500:d", "5000:d")), EngineDispatcher("t1", 2)
    ran = made.run(groups=dispatcher)
    assert ran.buffer(1)[: 16 * MANY] == (1000,) * 16 * MANY
    assert ran.gpu.counters.instructions == MANY * (8 + 1 + 3 * 5000)
    changes = [count for count, before in zip(counts, [0, *counts], strict=False) if count != before]
    assert changes[-2:] == [2, 1] if better else changes[-3:] == [2, 1, 2]


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_atomics_of_one_worker_and_of_several_count_the_same(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lanes of all groups add 1 to one dword: with locks where several host threads do, without where one does."""
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", 0.0)
    for threads in (1, 2, 4):
        alone: list[int] = []
        run_parts = scheduler.run_parts

        def noted(given: Any, run: Any = run_parts, into: list[int] = alone) -> None:
            into.append(len(given))
            run(given)

        monkeypatch.setattr(scheduler, "run_parts", noted)
        made = Job(COUNT, [bytes(64)], simd=8, ends=(MANY, 1, 1), front=MANY_THREADS)
        assert made.run(groups=EngineDispatcher(engine, threads)).buffer(0)[0] == MANY * 8, (threads, alone)
        monkeypatch.setattr(scheduler, "run_parts", run_parts)
        assert max(alone) == threads

"""Group runs between two calls of compiled code: how many workers there are, what each is answered, when code is chosen anew."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.engine_protocol import CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.threads.dispatch import Finished, never
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import ReturnReason
from softgen.threads.programs import load
from softgen.threads.workers import groups
from softgen.threads.workers.groups import GroupRun
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import SLICE, WorkerState
from tests.gpgpu.engines import Leaving
from tests.threads.workers.test_pool import job, recorded

GROUPS = 12
LONG = 1.0  # seconds of work for all workers


class Counting(Leaving):
    """An engine that may have better code later, and is told what was run."""

    def __init__(self, settled: bool = True) -> None:
        self.is_settled, self.told = settled, list[int]()

    def settled(self, chosen: CompiledFunction) -> bool:
        return self.is_settled

    def ran(self, program: KernelProgram, instructions: int) -> None:
        self.told.append(instructions)


def group_run(threads: int = 3, seconds: float | None = LONG, settled: bool = True) -> Any:
    """A run, with workers for so many seconds of work; None: with none yet."""
    context, dispatch = recorded(job(count=GROUPS))
    run = GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Counting(settled)), lambda number: WorkerState(), threads)
    if seconds is not None:
        run._staff(seconds)
    return run


def take(run: Any, *taken: tuple[int, int, int]) -> None:
    """Of each worker: whether it is inside of a group, that group, and the end of its chunk."""
    for worker, (inside, first, last) in zip(run.workers, taken, strict=True):
        worker.dispatch.inside, worker.dispatch.first, worker.dispatch.last = inside, first, last
    run.share.next = max(last for _, _, last in taken)


# -- workers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds, workers", [(0.0, 1), (0.00019, 1), (0.0003, 2), (0.0005, 3), (0.00061, 3), (100.0, 3)])
def test_a_fifth_of_a_millisecond_is_worth_another_worker(seconds: float, workers: int) -> None:
    """Up to as many as there may be; those that are there stay."""
    assert group_run(seconds=None)._wanted(seconds) == workers
    run = group_run(seconds=0.0003)
    run._staff(seconds)
    assert len(run.workers) == max(workers, 2)
    assert group_run(threads=1, seconds=None)._wanted(seconds) == 1


@pytest.mark.parametrize("worth, seconds, workers", [(0.0, 0.0, 1), (0.0, 1e-12, 3), (-1.0, 0.0, 3), (2.0, 3.0, 2), (2.0, 1.9, 1)])
def test_what_is_worth_another_worker(worth: float, seconds: float, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", worth)
    assert group_run(seconds=None)._wanted(seconds) == workers


def test_workers_know_how_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is alone needs no locks; while there may be more, they ask for help when the rest is worth it."""
    run, seen = group_run(seconds=None), list[Any]()
    for seconds in (0.0, 0.0003, LONG):
        run._staff(seconds)
        assert [part.worker for part in run.parts] == [worker.address for worker in run.workers]
        assert {worker.dispatch.share for worker in run.workers} == {ctypes.addressof(run.share)}
        seen.append(([worker.context.alone for worker in run.workers], run.share.workers, run.share.worthwhile))
    assert seen == [([1], 1, 200_000), ([0, 0], 2, 200_000), ([0, 0, 0], 3, 0)]
    parts = run.parts
    run._staff(LONG)
    assert run.parts is parts and len(run.workers) == len(run.employed) == 3
    two = group_run(seconds=0.0003)
    two.limit = 2
    two._staff(0.0003)
    assert two.share.worthwhile == 0 and two.share.workers == 2
    for worth, nanoseconds in ((1.0, 10**9), (0.0, 1)):
        monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", worth)
        assert group_run(seconds=0.0).share.worthwhile == nanoseconds


def test_a_run_has_as_many_workers_as_there_are_groups_at_most() -> None:
    context, dispatch = recorded(job(count=2))
    run = GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), lambda number: WorkerState(), 5)
    assert (run.most, run.limit, run.most_pieces, run.share.end, run.share.pieces) == (2, 2, 1, 2, 1)
    assert (run.pace, run.spent, run.used, run.surface_count, run.states) == (0, 0, 0, -1, b"")
    assert not (run.reconsidering or run.overdue or run.stages.alone or run.parts or run.workers or run.failed)


@pytest.mark.parametrize("pace, limit, pieces, workers", [
    (0.0, 40, 4, 40), (0.0, 60, 4, 48), (0.5, 40, 1, 12), (2.0, 40, 1, 12), (2.5, 40, 4, 40), (2.5, 2, 4, 2), (2.5, 1, 1, 1),
    (0.0, 1, 1, 1),
])  # fmt: skip
def test_groups_are_divided_that_take_longer_than_a_worker_is_worth(pace: float, limit: int, pieces: int, workers: int,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Or of which nothing is known; and there is no more than a worker for each piece."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 2.0)
    run = group_run(seconds=None)
    run.most_pieces, run.pace, run.limit = 4, pace, limit
    run._divide()
    assert (run.share.pieces, run.share.end, run.limit) == (pieces, GROUPS * pieces, workers)


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failed, taken, left", [
    (None, [(0, 12, 12), (0, 12, 12)], False), (None, [(0, 11, 12), (0, 12, 12)], True), (None, [(0, 12, 12), (1, 12, 12)], True),
    (None, [(0, 4, 4), (0, 11, 11)], True), (5, [(0, 12, 12), (0, 11, 12)], False), (5, [(1, 4, 6), (0, 12, 12)], True),
    (5, [(0, 12, 12), (0, 4, 6)], True), (5, [(1, 5, 6), (0, 4, 4)], False), (5, [(0, 3, 3), (0, 4, 4)], False),
])  # fmt: skip
def test_what_is_left_after_a_failure_are_groups_before_it(failed: int | None, taken: list[tuple[int, int, int]], left: bool) -> None:
    run = group_run(threads=2)
    take(run, *taken)
    run.failed = None if failed is None else (failed, SoftgenError("one"))
    assert run._unfinished() is left


def test_groups_that_are_done_are_those_taken_without_those_left() -> None:
    run = group_run()
    take(run, (1, 2, 4), (0, 6, 6), (1, 8, 9))
    assert run._groups_done() == 9 - 2 - 0 - 1


def test_pieces_of_a_group_that_failed_are_given_up() -> None:
    run = group_run()
    run.share.pieces = 4
    take(run, (1, 5, 6), (1, 8, 9), (1, 7, 8))  # of groups 1, 2 and 1
    run._give_up(1)
    assert [(worker.dispatch.first, worker.dispatch.inside) for worker in run.workers] == [(6, 0), (8, 1), (8, 0)]


def test_of_two_failures_in_a_group_the_first_is_told() -> None:
    run = group_run(threads=2)
    errors = [GpuFault(1, "read"), GpuFault(2, "read")]
    take(run, (1, 3, 4), (1, 3, 4))
    for worker, error in zip(run.workers, errors, strict=True):
        worker.answer = lambda why, error=error: (_ for _ in ()).throw(error)
        run._answer_one(worker, ReturnReason.ESCAPED)
    assert run.failed == (3, errors[0])


def returned(run: Any, *why: int | None, done: int = 1) -> list[tuple[int, int | None]]:
    """Workers returned for these reasons, None: by a signal. What they are answered is noted, by their numbers."""
    answered = list[tuple[int, int | None]]()
    for number, (worker, part, reason) in enumerate(zip(run.workers, run.parts, why, strict=True)):
        part.done, part.signal = done, int(reason is None)
        worker.call.record.result = ReturnReason.ESCAPED if reason is None else reason
        worker.answer = lambda reason, number=number: answered.append((number, reason))
    return answered


def noted(run: Any, *names: str) -> list[str]:
    """Methods of a run that are only noted."""
    found = list[str]()
    for name in names:
        setattr(run, name, lambda *values, name=name: found.append(name))
    return found


STEPS = ("_late", "_choose", "_staff", "_dismiss")


@pytest.mark.parametrize("why, done, answered", [
    ([ReturnReason.ESCAPED, ReturnReason.DONE, None], 1, [(0, ReturnReason.ESCAPED), (2, None)]),
    ([ReturnReason.OTHER_MODE, ReturnReason.HELP, ReturnReason.DEADLINE], 1, [(0, ReturnReason.OTHER_MODE)]),
    ([ReturnReason.ESCAPED, ReturnReason.ESCAPED, None], 0, []), ([ReturnReason.DONE] * 3, 1, []),
])  # fmt: skip
def test_workers_that_returned_are_answered(why: list[int | None], done: int, answered: list[tuple[int, int | None]]) -> None:
    run = group_run()
    found, _ = returned(run, *why, done=done), noted(run, *STEPS)
    assert run._answer() and found == answered


@pytest.mark.parametrize("why, state, steps", [
    ([ReturnReason.ESCAPED] * 2, {}, []), ([ReturnReason.DEADLINE, ReturnReason.ESCAPED], {}, ["_late"]),
    ([ReturnReason.ESCAPED, ReturnReason.DEADLINE], {}, ["_late"]), ([ReturnReason.ESCAPED] * 2, {"overdue": True}, ["_late"]),
    ([ReturnReason.ESCAPED] * 2, {"reconsidering": True}, ["_choose"]), ([ReturnReason.DEADLINE] * 2, {"reconsidering": True}, ["_late"]),
    ([ReturnReason.HELP, ReturnReason.DONE], {}, ["_staff"]), ([ReturnReason.DONE, ReturnReason.HELP], {}, ["_staff"]),
    ([ReturnReason.HELP, ReturnReason.DEADLINE], {"limit": 1}, ["_late", "_staff", "_dismiss"]),
    ([ReturnReason.DONE] * 2, {"limit": 1}, ["_dismiss"]), ([ReturnReason.DONE] * 2, {"limit": 2}, []),
])  # fmt: skip
def test_what_follows_from_the_answers(why: list[int | None], state: dict[str, Any], steps: list[str]) -> None:
    run = group_run(threads=2)
    for name, value in state.items():
        setattr(run, name, value)
    returned(run, *why)
    run.share.halted, found = 1, noted(run, *STEPS)
    assert run._answer() and found == steps and run.share.halted == 0
    take(run, (0, GROUPS, GROUPS), (0, GROUPS, GROUPS))
    returned(run, *why)
    assert run._answer() is False


@pytest.mark.parametrize("worth", [0.0, 0.0002, 1e9])
def test_help_is_all_workers_whatever_they_are_worth(worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also at a deadline: what is left has taken that long."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", worth)
    for why in (ReturnReason.HELP, ReturnReason.DEADLINE):
        run = group_run(seconds=0.0)
        returned(run, why)
        assert run._answer() and len(run.workers) == 3


def test_help_begins_a_stage() -> None:
    """With all workers, of which the new ones have nothing yet; without new ones the stage goes on."""
    run, began = group_run(seconds=0.0), list[tuple[int, float]]()
    take(run, (1, 4, 7))
    run.spent, run.stages = 2.5, SimpleNamespace(begin=lambda done, spent: began.append((done, spent)))
    returned(run, ReturnReason.ESCAPED)
    assert run._answer() and len(run.workers) == 1 and not began
    returned(run, ReturnReason.HELP)
    assert run._answer() and len(run.workers) == 3 and began == [(4, 2.5)]


# -- deadlines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken, thread", [([(0, 2, 2), (1, 3, 4)], 1), ([(1, 2, 3), (1, 3, 4)], 0), ([(0, 2, 2), (0, 3, 3)], 0)])
def test_a_deadline_polls_for_a_worker_that_has_work(taken: list[tuple[int, int, int]], thread: int,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """And each has a slice more from then on."""
    monkeypatch.setattr(groups, "time", SimpleNamespace(monotonic_ns=lambda: 500))
    run, polled = group_run(threads=2), list[Any]()
    take(run, *taken)
    run._poll = polled.append
    run.overdue = True
    run._late()
    assert polled == [run.workers[thread]] and not run.overdue
    assert [worker.dispatch.deadline for worker in run.workers] == [500 + SLICE] * 2


def test_after_a_failure_a_deadline_gives_up_what_may_wait_for_it() -> None:
    """Pieces of its group, by the number of the piece that failed."""
    run, given_up = group_run(threads=2), list[int]()
    run._give_up = given_up.append
    run._late()
    run.share.pieces, run.failed = 4, (11, SoftgenError("one"))
    run._late()
    assert given_up == [2]


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("reconsidering", [False, True])
def test_a_deadline_asks_for_better_code_until_there_is_none(settled: bool, left: int, reconsidering: bool) -> None:
    """For one slice workers wait for each other; a stage in which code changes tells nothing."""
    run, waits, stages = group_run(settled=settled), list[bool](), list[tuple[Any, ...]]()
    take(run, (1, 2, 4), (0, 6, 6), (1, 8, GROUPS - left))
    run.spent, run.reconsidering, run._choose = 1.5, reconsidering, lambda wait: waits.append(wait)
    begin, end = (lambda *values, name=name: stages.append((name, *values)) for name in ("begin", "end"))
    run.stages = SimpleNamespace(begin=begin, end=end)
    run._late()
    done = GROUPS - left - 2 - 0 - (4 - left)
    assert waits == ([] if settled else [not reconsidering])
    assert stages == ([] if not left else [("end", 3, done, 1.5)] if settled else [("begin", done, 1.5)])
    run.workers[0].chosen = None  # nothing to be better than
    run._late()
    assert waits == ([] if settled else [not reconsidering]) and len(stages) <= 2 * left


@pytest.mark.parametrize("threads, workers, alone, limit, ended", [
    (3, 3, True, 1, 1), (3, 3, False, 3, 1), (2, 2, True, 1, 1), (3, 1, True, 3, 0), (1, 1, True, 1, 0),
])  # fmt: skip
def test_a_stage_with_all_workers_decides_the_number_of_the_next(threads: int, workers: int, alone: bool, limit: int, ended: int) -> None:
    """Others come where there are fewer than there may be."""
    run, ends = group_run(threads, LONG if workers == threads else 0.0), list[int]()
    run.stages = SimpleNamespace(end=lambda *values: (ends.append(values[0]), alone)[1])
    assert len(run.workers) == workers
    run._late()
    assert run.limit == limit and len(ends) == ended and len(run.workers) == threads
    run.most, run.limit, run.share.end = 30, len(run.workers), 12
    run.stages = SimpleNamespace(end=lambda *values: False)
    run._late()
    assert run.limit == 12  # no more than there are groups


# -- one worker goes on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken, goes", [
    ([(0, 3, 3), (0, 4, 4), (0, 5, 5)], True), ([(1, 2, 3), (0, 4, 4), (0, 5, 5)], True),
    ([(0, 3, 3), (1, 4, 4), (0, 5, 5)], False), ([(0, 3, 3), (0, 4, 4), (0, 4, 5)], False),
])  # fmt: skip
def test_one_worker_goes_on_when_the_others_have_done_what_they_took(taken: list[tuple[int, int, int]], goes: bool,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Until then none takes more. It has a stage's time, and counts go on from its own."""
    monkeypatch.setattr(groups, "time", SimpleNamespace(monotonic_ns=lambda: 500))
    monkeypatch.setattr(groups, "STAGE", 100.0)
    run = group_run()
    take(run, *taken)
    run.limit, first = 1, run.workers[0]
    first.dispatch.threads_done, first.dispatch.instructions, first.dispatch.deadline = 3, 24, 0
    run._dismiss()
    assert run.share.halted == int(not goes) and len(run.workers) == (1 if goes else 3)
    if goes:
        assert run.workers == [first] and run.done == (3, 24) and (len(run.parts), first.context.alone, run.share.workers) == (1, 1, 1)
        assert first.dispatch.deadline == 500 + 100_000_000_000


@pytest.mark.parametrize("wait, inside, chosen, waits", [
    (True, (0, 1), [0], True), (True, (1, 1), [], True), (True, (0, 0), [0, 1], False), (False, (0, 1), [0], False),
    (False, (1, 0), [1], False),
])  # fmt: skip
def test_code_is_chosen_between_two_groups(wait: bool, inside: tuple[int, int], chosen: list[int], waits: bool) -> None:
    """Those that are between two wait for the others, which take no more."""
    run, found = group_run(threads=2), list[int]()
    for number, (worker, within) in enumerate(zip(run.workers, inside, strict=True)):
        worker.dispatch.inside, worker.choose = within, lambda number=number: found.append(number)
    run._choose(wait)
    assert found == chosen and run.reconsidering is waits and run.share.halted == int(waits)


def test_without_a_word_workers_wait_for_better_code() -> None:
    run = group_run(threads=2)
    run.workers[1].dispatch.inside = 1
    run._choose()
    assert run.reconsidering


# -- counts, and the end -----------------------------------------------------------------------------------------------


def test_counts_are_those_since_the_last_ones() -> None:
    run = group_run(threads=2)
    engine: Any = run.shared.engine
    for counts, new in (([(2, 30), (1, 12)], (3, 42)), ([(2, 30), (1, 12)], (0, 0)), ([(5, 80), (3, 40)], (5, 78))):
        for worker, (threads, instructions) in zip(run.workers, counts, strict=True):
            worker.dispatch.threads_done, worker.dispatch.instructions = threads, instructions
        run.share.next, run.share.seconds = run.share.end, 77.0  # nothing is left to be counted
        assert run._run_parts(False) == Finished(*new) and 0 <= run.share.seconds < 77
    assert engine.told == [42, 0, 78]


@pytest.mark.parametrize("late", [False, True])
def test_a_poll_between_instructions_of_the_interpreter(late: bool) -> None:
    """The next answer finds that the deadline has passed."""
    run = group_run()
    run.timed_out = lambda: late
    if late:
        with pytest.raises(SoftgenError, match=r"time is up: thread 0 of group \(0, 0, 0\)"):
            run._poll_overdue(run.workers[0])
    else:
        run._poll_overdue(run.workers[0])
    assert run.overdue


@pytest.mark.parametrize("how", ["raised", "reported", "fine"])
def test_blocks_of_a_run_that_failed_are_dirty(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads may have been left in the middle."""
    run = group_run()
    run.pace = LONG

    def ends(parts: Any) -> bool:
        for worker in run.workers:
            worker.state.dirty[:], worker.state.dispatch.fresh = 0, 1
        run.failed = (0, GpuFault(5, "read")) if how == "reported" else None
        if how == "raised":
            raise GpuFault(5, "read")
        return True

    monkeypatch.setattr(scheduler, "run_parts", ends)
    if how == "fine":
        list(run.run(never))
    else:
        with pytest.raises(GpuFault):
            list(run.run(never))
    assert [(worker.state.dirty.tolist(), worker.state.dispatch.fresh) for worker in run.workers] == [
        ([0], 1) if how == "fine" else ([1], 0)] * 3  # fmt: skip


@pytest.mark.parametrize("threads, calls", [(1, 1), (1, 3), (3, 1), (3, 2)])
def test_seconds_of_a_run(threads: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of compiled code takes five: of the calling thread, and for the program and the pace, of all workers."""
    run, done = group_run(threads, None), iter(range(1, 100))
    run.shared.program.spent, run.spent, run.pace, run.share.seconds = 1.0, 99.0, 1000.0, 5.0
    monkeypatch.setattr(scheduler, "run_parts", lambda parts: next(done) == calls)
    monkeypatch.setattr(run.tuner, "alone", lambda seconds: False)
    monkeypatch.setattr(run, "_answer", lambda: True)
    ran = list[tuple[bool, float]]()
    monkeypatch.setattr(run.tuner, "ran", lambda alone, seconds: ran.append((alone, seconds)))
    assert len(list(run.run(never))) == calls
    assert run.spent == 5 * calls and run.shared.program.spent == 1 + 5 * calls * threads and run.pace == 5 * calls * threads / GROUPS
    assert ran == [(threads == 1, 5 * calls)]

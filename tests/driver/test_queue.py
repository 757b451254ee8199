"""Queues: order, fences, turns, failures."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.fence import Fence, Signals
from softgen.driver.queue import Queues, Submission, Turn

SIGNALS = Signals()
NOWHERE: Any = SimpleNamespace(enter=lambda wanted: None, leave=lambda things: None)


class Context:
    """As much of a context as queues look at."""

    def __init__(self, name: str) -> None:
        self.name, self.banned, self.guilty = name, False, 0


def submission(sequence: int, context: Any, engine: str = "rcs0", after: list[Fence] | None = None, vm: Any = NOWHERE) -> Submission:
    return Submission(sequence, 1, "test", context, engine, vm, [], 0, 0, 0, 0, 0, 0, Fence(SIGNALS), after or [])


def wait(*ones: Submission) -> None:
    assert SIGNALS.wait(lambda: all(one.fence.done for one in ones), time.monotonic() + 20)


def nobody(submission: Submission, error: BaseException) -> None:
    raise AssertionError(error)


def test_a_context_keeps_its_order() -> None:
    done: list[int] = []
    queues = Queues(lambda one, turn: done.append(one.sequence), nobody)
    context = Context("a")
    ones = [submission(number, context) for number in range(50)]
    for one in ones:
        queues.submit(one)
    wait(*ones)
    assert done == list(range(50)) and queues.drain(1)


def test_who_waits_for_a_fence_holds_up_only_its_own_context() -> None:
    done: list[str] = []
    queues = Queues(lambda one, turn: done.append(one.context.name), nobody)  # type: ignore[attr-defined]
    gate, parked, free = Fence(SIGNALS), Context("parked"), Context("free")
    first, second, third = submission(1, parked, after=[gate]), submission(2, parked), submission(3, free)
    for one in (first, second, third):
        queues.submit(one)
    wait(third)
    assert done == ["free"] and not queues.drain(0.01)
    gate.signal()
    wait(first, second)
    assert done == ["free", "parked", "parked"]


def test_one_at_a_time_on_an_engine_and_engines_side_by_side() -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    both = threading.Barrier(2)

    def execute(one: Submission, turn: Turn) -> None:
        running[one.engine] = running.get(one.engine, 0) + 1
        most[one.engine] = max(most.get(one.engine, 0), running[one.engine])
        if one.sequence < 2:
            both.wait(10)  # only passes if two engines run at once
        time.sleep(0.005)
        running[one.engine] -= 1

    queues = Queues(execute, nobody)
    ones = [submission(number, Context(str(number)), "rcs0" if number % 2 else "bcs0") for number in range(8)]
    for one in ones:
        queues.submit(one)
    wait(*ones)
    assert most == {"rcs0": 1, "bcs0": 1}


def test_one_that_hangs_lets_others_have_their_turn() -> None:
    over = threading.Event()

    def execute(one: Submission, turn: Turn) -> None:
        while one.sequence == 1 and not over.is_set():
            time.sleep(0.001)
            turn.pause()

    queues = Queues(execute, nobody)
    hanging, fine = submission(1, Context("hangs")), [submission(number, Context("fine")) for number in (2, 3, 4)]
    queues.submit(hanging)
    for one in fine:
        queues.submit(one)
    wait(*fine)
    assert not hanging.fence.done
    over.set()
    wait(hanging)


def test_a_long_one_is_not_kept_waiting_by_those_that_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.queue.SLICE", 0.001)
    done: list[int] = []

    def execute(one: Submission, turn: Turn) -> None:
        for _ in range(5 if one.sequence == 1 else 1):
            time.sleep(0.003)
            turn.pause()
        done.append(one.sequence)

    queues = Queues(execute, nobody)
    streams = Context("even"), Context("odd")
    long, others = submission(1, Context("long")), [submission(number, streams[number % 2]) for number in range(2, 60)]
    for one in (long, *others):
        queues.submit(one)
    wait(long, *others)
    assert done.index(1) < 30


def test_a_failure_is_told_and_what_follows_it_in_its_context_fails_too() -> None:
    told: list[tuple[int, str]] = []

    def execute(one: Submission, turn: Turn) -> None:
        if one.sequence == 1:
            raise ValueError("broken")

    queues = Queues(execute, lambda one, error: told.append((one.sequence, str(error))))
    context: Any = Context("a")
    first, second, other = submission(1, context), submission(2, context), submission(3, Context("b"))
    for one in (first, second, other):
        queues.submit(one)
    wait(first, second, other)
    assert told == [(1, "broken")] and context.banned and context.guilty == 1
    assert first.fence.error and second.fence.error and not other.fence.error


def test_memory_that_cannot_be_mapped_is_a_failure_too() -> None:
    def enter(wanted: object) -> None:
        raise ValueError("no room")

    told: list[str] = []
    queues = Queues(lambda one, turn: None, lambda one, error: told.append(str(error)))
    one = submission(1, Context("a"), vm=SimpleNamespace(enter=enter, leave=nobody))
    queues.submit(one)
    wait(one)
    assert told == ["no room"] and one.fence.error

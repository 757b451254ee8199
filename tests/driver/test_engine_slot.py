"""Engines and who uses them: their order, time slices, and the threads that run the work."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.queue.queue import Caller, EngineArbiter, EngineSlot


class Clock:
    """What the queues take for the time; a test sets it."""

    now, processor = 100.0, 50.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.processor


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("softgen.driver.queue.queue.time", made)
    return made


def numbered(sequence: int) -> Any:
    return SimpleNamespace(sequence=sequence)


class Waiting:
    """A thread that takes the engine when it can, and leaves it at once."""

    def __init__(self, engine: EngineArbiter, round: int, sequence: int, order: list[tuple[int, int]]) -> None:
        def use() -> None:
            engine.take(round, sequence)
            order.append((round, sequence))
            engine.leave()

        before = len(engine.waiting)
        self.thread = threading.Thread(target=use, daemon=True)
        self.thread.start()
        end = time.monotonic() + 5
        while len(engine.waiting) == before:
            assert time.monotonic() < end, "who comes later can wait as well"
            time.sleep(0.001)


# -- who is next


@pytest.mark.parametrize("order", [[(0, 3), (0, 2)], [(1, 1), (0, 2)], [(1, 1), (0, 2), (0, 1)], [(0, 1), (0, 2)]])
def test_who_came_first_in_the_earliest_round_is_next(order: list[tuple[int, int]]) -> None:
    """Whoever began to wait first."""
    engine, found = EngineArbiter(), list[tuple[int, int]]()
    engine.used.acquire()
    threads = [Waiting(engine, *place, found) for place in order]
    assert not found
    engine.leave()
    for waiting in threads:
        waiting.thread.join(10)
    assert found == sorted(order) and not engine.waiting and not engine.used.locked()


def test_a_slot_is_behind_those_that_wait_when_it_pauses(clock: Clock) -> None:
    """Also behind all that came while it had the engine; those that come later are in its new round, and behind it."""
    engine, found = EngineArbiter(), list[tuple[int, int]]()
    with EngineSlot(engine, numbered(1)) as slot:
        waiting = [Waiting(engine, engine.round, number, found) for number in (2, 3)]
        clock.now += 1
        slot.pause()
        assert sorted(found) == [(0, 2), (0, 3)] and slot.round == engine.round == EngineSlot(engine, numbered(4)).round == 1
        assert slot.until == pytest.approx(clock.now + 0.05)
    for one in waiting:
        one.thread.join(10)
    assert not engine.used.locked()


def test_a_slot_of_an_early_round_does_not_set_the_engine_back(clock: Clock) -> None:
    engine = EngineArbiter()
    slot = EngineSlot(engine, numbered(1))
    engine.round = 7
    with slot:
        slot.wait(0.0, threading.Event())
    assert (slot.round, engine.round) == (1, 7)


@pytest.mark.parametrize("after, leaves", [(0.04, False), (0.05, False), (0.06, True)])
@pytest.mark.parametrize("others", [True, False])
def test_a_slot_lasts_a_twentieth_of_a_second_where_others_wait(clock: Clock, others: bool, after: float, leaves: bool) -> None:
    engine, found = EngineArbiter(), list[tuple[int, int]]()
    with EngineSlot(engine, numbered(1)) as slot:
        if others:
            waiting = Waiting(engine, 0, 2, found)
        clock.now += after  # to the last bit, where both are the same
        slot.pause()
        assert bool(found) is bool(slot.round) is (others and leaves)
    if others:
        waiting.thread.join(10)
        assert found == [(0, 2)]


# -- the thread that runs it


@pytest.mark.parametrize("seconds, processor, until", [
    (2.5, 2.25, None), (2.5, 0.5, 4.0), (2.0, 1.0, 3.0), (19.0, 0.5, 19.1), (20.5, 0.5, None), (0.0005, 0.0001, 2.0), (2.5, 2.0, 2.5),
])  # fmt: skip
def test_who_runs_work_for_long_is_replaced(seconds: float, processor: float, until: float | None, clock: Clock) -> None:
    """After two seconds of the processor, which others may have, or ten times as many by the clock. `until`: when it is looked at again."""
    left = list[str]()
    caller = Caller(lambda: left.append("once"), 2.0)
    assert caller.until == 102
    clock.now, clock.processor = 100 + seconds, 50 + processor
    caller.late(clock.now)
    caller.late(clock.now)
    assert left == ([] if until else ["once"])
    if until:
        assert caller.until == pytest.approx(100 + until, abs=1e-9)


@pytest.mark.parametrize("seconds, processor, left", [(2.0, 2.25, 0), (2.5, 1.5, 0), (2.5, 2.25, 1)])
def test_a_slot_looks_at_its_threads_time_when_it_pauses(seconds: float, processor: float, left: int, clock: Clock) -> None:
    engine, replaced = EngineArbiter(), list[str]()
    with EngineSlot(engine, numbered(1), Caller(lambda: replaced.append("once"), 2.0)) as slot:
        clock.now, clock.processor = 100 + seconds, 50 + processor
        slot.pause()
        slot.pause()
    assert len(replaced) == left


def test_a_thread_of_a_queue_has_all_the_time_there_is(clock: Clock) -> None:
    """Nobody needs it for anything else, so nothing is looked at."""
    slot = EngineSlot(EngineArbiter(), numbered(1))
    clock.now = clock.processor = 1e9
    assert clock.now < slot.caller.until
    slot.caller.late(clock.now)
    slot.caller.leave()


def test_who_waits_has_left_its_thread_and_the_engine_meanwhile() -> None:
    engine, found, replaced, woken = EngineArbiter(), list[tuple[int, int]](), list[str](), threading.Event()
    with EngineSlot(engine, numbered(1), Caller(lambda: replaced.append("once"), 60.0)) as slot:
        waiting = Waiting(engine, 0, 2, found)
        waker = threading.Thread(target=lambda: (waiting.thread.join(20), woken.set()))
        waker.start()
        began = time.monotonic()
        slot.wait(60.0, woken)
        assert found == [(0, 2)] and replaced == ["once"] and engine.used.locked() and time.monotonic() - began < 50
    waker.join(10)
    assert not engine.used.locked()


def test_who_waits_looks_again_after_a_while() -> None:
    with EngineSlot(EngineArbiter(), numbered(1)) as slot:
        began = time.monotonic()
        slot.wait(0.05, threading.Event())
        assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize("taken", [True, False])
def test_a_thread_is_replaced_before_it_waits_for_an_engine(taken: bool) -> None:
    engine, replaced = EngineArbiter(), list[bool]()
    if taken:
        engine.used.acquire()

    def hand_over() -> None:
        replaced.append(engine.used.locked())
        engine.leave()

    with EngineSlot(engine, numbered(1), Caller(hand_over, 60.0)):
        assert replaced == ([True] if taken else []) and engine.used.locked()

"""Translations in the background give way to host threads that a program waits for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from softgen.lanes.compile import foreground


class Clock:
    """Time that passes only while somebody sleeps; after `free` sleeps the foreground is left."""

    def __init__(self) -> None:
        self.now, self.sleeps, self.free = 1000.0, 0, 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        if self.sleeps == self.free:
            foreground._threads.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(foreground, "time", made)
    monkeypatch.setattr(foreground._Background, "until", 0.0)
    foreground._threads.clear()
    yield made
    foreground._threads.clear()


def elsewhere(*work: object) -> None:
    """Does things one after another on another host thread."""
    thread = threading.Thread(target=lambda: [each() for each in work if callable(each)])
    thread.start()
    thread.join()


def test_nobody_waits_where_no_program_does(clock: Clock) -> None:
    foreground.yield_to_foreground()
    assert not clock.sleeps


def test_a_translation_waits_for_a_dispatch_but_does_its_share(clock: Clock) -> None:
    elsewhere(foreground.enter)  # its thread never leaves
    began = clock.now
    foreground.yield_to_foreground()
    waited = clock.now - began
    assert waited == pytest.approx(foreground.PATIENCE) and clock.sleeps > 10
    foreground.yield_to_foreground()
    clock.now += foreground.SHARE * 0.9
    foreground.yield_to_foreground()
    assert clock.now - began - waited == pytest.approx(foreground.SHARE * 0.9)
    clock.now += foreground.SHARE * 0.2
    foreground.yield_to_foreground()
    assert clock.now - began > 2 * waited


def test_it_goes_on_as_soon_as_the_dispatch_is_in_compiled_code(clock: Clock) -> None:
    elsewhere(foreground.enter)
    clock.free = 3
    foreground.yield_to_foreground()
    assert clock.sleeps == 3
    elsewhere(foreground.enter)
    foreground.yield_to_foreground()
    assert clock.sleeps > 3  # it has had no share yet


def test_a_thread_that_translates_for_its_own_dispatch_does_not_wait(clock: Clock) -> None:
    elsewhere(foreground.enter)
    foreground.enter()
    foreground.yield_to_foreground()
    assert not clock.sleeps


def test_leaving_twice_or_without_having_entered_is_nothing(clock: Clock) -> None:
    foreground.leave()
    foreground.enter()
    foreground.enter()
    foreground.leave()
    elsewhere(foreground.yield_to_foreground)
    assert not clock.sleeps


def test_threads_that_a_fork_has_not_taken_along_are_not_waited_for(clock: Clock) -> None:
    elsewhere(foreground.enter)
    child = os.fork()
    if not child:
        os._exit(len(foreground._threads))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

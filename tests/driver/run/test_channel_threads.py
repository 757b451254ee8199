"""Threads that answer channels: one for each at the same time, kept for a while."""

import threading
import time
import weakref

import pytest

from softgen.driver.run import channel_threads
from softgen.driver.run.channel_threads import ChannelThreads


def test_functions_run_side_by_side() -> None:
    threads, both, done = ChannelThreads(), threading.Barrier(3), []

    def meet(number: int) -> None:
        both.wait(10)
        done.append(number)

    for number in range(2):
        threads.start(lambda number=number: meet(number))  # type: ignore[misc]
    both.wait(10)
    until = time.monotonic() + 10
    while len(done) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    assert sorted(done) == [0, 1]


def ran_on(threads: ChannelThreads) -> int:
    found, done = [0], threading.Event()

    def note() -> None:
        found[0] = threading.get_ident()
        done.set()

    threads.start(note)
    assert done.wait(10)
    return found[0]


def test_a_thread_that_is_free_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_threads, "LINGER", 60.0)
    threads = ChannelThreads()
    first = ran_on(threads)
    until = time.monotonic() + 10
    while not threads._free and time.monotonic() < until:
        time.sleep(0.001)
    assert ran_on(threads) == first


def test_one_free_thread_is_for_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another function that comes at the same time has a thread of its own: the first may wait for it."""
    monkeypatch.setattr(channel_threads, "LINGER", 60.0)
    threads, second, both = ChannelThreads(), threading.Event(), threading.Event()
    ran_on(threads)
    until = time.monotonic() + 10
    while not threads._free and time.monotonic() < until:
        time.sleep(0.001)
    threads.start(lambda: both.set() if second.wait(10) else None)
    threads.start(second.set)
    assert both.wait(20)
    while threads._free != 2 and time.monotonic() < until:
        time.sleep(0.001)
    assert threads._free == 2


def test_threads_end_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_threads, "LINGER", 0.01)
    threads = ChannelThreads()
    ident, until = ran_on(threads), time.monotonic() + 10
    while ident in [thread.ident for thread in threading.enumerate()] and time.monotonic() < until:
        time.sleep(0.005)
    assert ident not in [thread.ident for thread in threading.enumerate()] and not threads._free
    assert ran_on(threads)  # a new one


def test_a_thread_keeps_nothing_of_what_it_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function has may be a channel, and what a program has submitted on it."""
    monkeypatch.setattr(channel_threads, "LINGER", 60.0)
    threads, done = ChannelThreads(), threading.Event()

    class Held:
        def note(self) -> None:
            done.set()

    held = Held()
    gone = weakref.ref(held)
    threads.start(held.note)
    del held
    assert done.wait(10)
    until = time.monotonic() + 10
    while not threads._free and time.monotonic() < until:
        time.sleep(0.001)
    assert gone() is None

"""Waiting for fences: how long, and for whom."""

from __future__ import annotations

import errno
import itertools
import os
import sys
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.objects import fence as module
from softgen.driver.objects.fence import POLL_INTERVAL, Fence, Pipes, Signals, Syncobj, all_of


class Clock:
    """A clock that only waiting moves on."""

    def __init__(self, signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waits = 100.0, list[float]()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now, monotonic_ns=lambda: int(self.now * 1e9)))
        monkeypatch.setattr(signals.changed, "wait", self.wait)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.mark.parametrize("until, waits", [(100.0, []), (99.0, []), (100.25, [0.25]), (101.25, [0.5, 0.5, 0.25])])
def test_a_deadline(until: float, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    clock = Clock(signals, monkeypatch)
    assert POLL_INTERVAL == 0.5 and not signals.wait(lambda: False, until) and clock.waits == waits and not signals.waiting
    assert signals.wait(lambda: True, 0.0) and clock.waits == waits


def test_without_a_deadline_until_it_is_ready_or_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    clock = Clock(signals, monkeypatch)
    assert signals.wait(lambda: clock.now >= 101.5, None) and clock.waits == [0.5] * 3
    assert not signals.wait(lambda: False, None, lambda: clock.now >= 102.5) and clock.waits == [0.5] * 5


def test_a_fence_has_the_time_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    clock = Clock(signals, monkeypatch)
    done, open_one = Fence(signals, done=True), Fence(signals)
    assert (done.when, open_one.when) == (100 * 10**9, 0)
    clock.now = 105.0
    open_one.signal()
    done.signal(5)
    assert (done.when, open_one.when, done.error, open_one.error) == (100 * 10**9, 105 * 10**9, 0, 0)


def test_only_who_waits_is_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    signals, notified = Signals(), list[int]()
    monkeypatch.setattr(signals.changed, "notify_all", lambda: notified.append(signals.waiting))
    signals.notify()
    Fence(signals).signal()
    assert not notified
    signals.waiting = 2
    signals.notify()
    Fence(signals).signal()
    assert notified == [2, 2]


def test_of_several_fences_the_one_that_is_open_is_waited_for() -> None:
    signals = Signals()
    done, first, second = Fence(signals, done=True), Fence(signals), Fence(signals)
    assert all_of(signals, [done, first]) is first and all_of(signals, [done]).done
    whole = all_of(signals, [done, first, second])
    first.signal(7)
    assert not whole.done
    second.signal(9)
    assert whole.done and whole.error == 7  # the first in the list
    third, fourth = Fence(signals), Fence(signals)
    fine, failed = all_of(signals, [third, fourth]), all_of(signals, [first, third, fourth])
    assert (fine.error, failed.error) == (0, 7), "also before it is done"
    for fence in (third, fourth):
        fence.signal()
    assert fine.done and failed.done and (fine.error, failed.error) == (0, 7)
    assert (all_of(signals, [done, third]).error, all_of(signals, [third, first]).error) == (0, 7)


def test_a_chain_of_fences_may_be_longer_than_the_stack() -> None:
    """Each is done with the one before it, in their order; one that fails leaves what follows later as it was."""
    signals, order = Signals(), list[int]()
    fences = [Fence(signals) for _ in range(2 * sys.getrecursionlimit())]
    for number, (fence, after) in enumerate(itertools.pairwise(fences)):
        fence.then(partial(order.append, number))
        fence.then(after.signal)
    fences[0].signal()
    assert fences[-1].done and order == list(range(len(fences) - 1))
    failing, later = Fence(signals), Fence(signals)
    failing.then(lambda: order.clear() or 1 / 0)  # type: ignore[func-returns-value]
    later.then(partial(order.append, -1))
    with pytest.raises(ZeroDivisionError):
        failing.signal()
    later.signal()
    assert order == [-1]


def test_the_points_of_a_timeline() -> None:
    signals = Signals()
    line, fences = Syncobj(signals), [Fence(signals) for _ in range(3)]
    assert line.fence() is None and line.fence(1) is None and line.value() == line.value(True) == 0
    for point, fence in zip((3, 5, 9), fences, strict=True):
        line.add(point, fence)
    assert line.fence(1) is line.fence(3) is fences[0] and line.fence(4) is line.fence(5) and line.fence() is line.fence(9)
    assert line.fence(10) is None and (line.value(), line.value(True)) == (0, 9)
    fences[1].signal()
    assert line.value() == 0
    fences[0].signal()
    assert line.value() == 5
    alone = Fence(signals)
    line.add(0, alone)
    assert line.points == [(0, alone)] and line.fence() is alone
    line.replace(None)
    assert not line.points


def test_a_binary_sync_object_has_point_0() -> None:
    signals = Signals()
    fence, other = Fence(signals, done=True), Fence(signals, done=True)
    line = Syncobj(signals, fence)
    assert line.points == [(0, fence)] and line.value() == line.value(True) == 0
    line.replace(other)
    assert line.points == [(0, other)] and line.value() == line.value(True) == 0


def test_who_waits_for_a_point_learns_of_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is added, and when the points are replaced: not at the next look, half a second later."""
    signals, notified = Signals(), list[int]()
    line = Syncobj(signals)
    signals.waiting = 1
    monkeypatch.setattr(signals.changed, "notify_all", lambda: notified.append(len(line.points)))
    line.add(3, Fence(signals))
    line.add(5, Fence(signals))
    line.replace(Fence(signals))
    line.replace(None)
    assert notified == [1, 2, 1, 0]


def test_sixty_four_points_are_kept() -> None:
    signals = Signals()
    line = Syncobj(signals)
    for point in range(1, 101):
        line.add(point, Fence(signals, done=True))
    assert [point for point, _ in line.points] == list(range(37, 101))


def test_points_of_two_threads_are_both_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread adds a point while another is at it."""
    signals = Signals()
    line, earlier = Syncobj(signals), Fence(signals)
    line.add(1, earlier)
    other = threading.Thread(target=lambda: line.add(3, Fence(signals)))

    def meanwhile(*arguments: Any) -> Fence:
        monkeypatch.setattr(module, "all_of", all_of)
        other.start()
        other.join(0.2)
        return all_of(*arguments)

    monkeypatch.setattr(module, "all_of", meanwhile)
    line.add(2, Fence(signals))
    other.join(20)
    assert [point for point, _ in line.points] == [1, 2, 3]


def test_a_pipe_that_cannot_be_watched_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has a limit for how many files may be watched (epoll(7), max_user_watches)."""

    def register(descriptor: int, events: int) -> None:
        raise OSError(errno.ENOSPC, "too many watches")

    pipes = Pipes[str]()
    watch, pipes.closed = pipes.closed, SimpleNamespace(register=register, poll=lambda *arguments: [])  # type: ignore[assignment]
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="too many watches"):
        pipes.new("item")
    assert before.issuperset(os.listdir("/proc/self/fd")) and not pipes.items and not pipes.ends
    pipes.closed = watch
    reading, key = pipes.new("item")
    assert pipes.find(key) == "item"
    os.close(reading)
    pipes.sweep()
    assert pipes.find(key) is None and before.issuperset(os.listdir("/proc/self/fd"))


def test_descriptors_of_fences_neither_block_nor_go_to_other_programs() -> None:
    pipes = Pipes[str]()
    reading, key = pipes.new("item")
    for descriptor in (reading, pipes.items[key][1]):
        assert not os.get_blocking(descriptor) and not os.get_inheritable(descriptor)
    os.close(reading)


def test_who_holds_a_pipe_when_all_are_gone_finds_its_end() -> None:
    pipes = Pipes[str]()
    before = set(os.listdir("/proc/self/fd"))
    readers = [pipes.new(name)[0] for name in ("first", "second")]
    del pipes
    assert [os.read(reading, 1) for reading in readers] == [b"", b""]  # no writing end is open
    for reading in readers:
        os.close(reading)
    assert before.issuperset(os.listdir("/proc/self/fd"))

"""The end of a run, by a clock that only waiting moves on: how often processes are looked at, and who is killed when."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.run import launcher, service

SERVER, PROGRAM, ANOTHER = 77, 78, 79


class World:
    """Processes that exist from one time to another, unless they are killed; `done` is who got which signal when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, **times: tuple[float, float]) -> None:
        self.now, self.waits, self.done = 100.0, list[float](), list[tuple[int, int, float]]()
        self.times = {int(name.removeprefix("p")): (100 + begin, 100 + end) for name, (begin, end) in times.items()}
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.wait))
        monkeypatch.setattr(os, "kill", self.kill)
        monkeypatch.setattr(os, "waitpid", lambda pid, options: (0, 0) if pid in self.alive() else (pid, 9))
        self.looks = 0

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def alive(self) -> list[int]:
        self.looks += 1
        assert self.looks < 10_000, "looked at again and again without waiting"
        return [pid for pid, (begin, end) in self.times.items() if begin <= self.now < end]

    def kill(self, pid: int, number: int) -> None:
        self.done.append((pid, number, round(self.now - 100, 3)))
        if number == signal.SIGKILL:
            self.times[pid] = self.times[pid][0], self.now


def test_what_the_program_left_is_told_once_and_killed_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process ends some time after it is told to, another begins meanwhile and does not end. The launcher does not spin."""
    world = World(monkeypatch, launcher, p77=(0, 99), p78=(0, 0.25), p79=(0.2, 99))
    monkeypatch.setattr(launcher, "children", world.alive)
    launcher.end_descendants({SERVER}, 100.0)
    (_, _, first), (_, _, second), (_, _, last) = world.done
    assert [(pid, number) for pid, number, _ in world.done] == [(PROGRAM, 15), (ANOTHER, 15), (ANOTHER, 9)]
    assert first == 0 and 0.2 <= second < 0.3 and launcher.GRACE <= last < launcher.GRACE + 0.1
    assert all(0.001 <= seconds <= 0.1 for seconds in world.waits)


def test_time_to_end_begins_when_the_program_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left has had that time already."""
    world = World(monkeypatch, launcher, p79=(0, 99))
    monkeypatch.setattr(launcher, "children", world.alive)
    launcher.end_descendants(set(), 100 - 2 * launcher.GRACE)
    assert world.done == [(ANOTHER, signal.SIGKILL, 0.0)]


def test_processes_that_begin_while_their_run_is_ended_are_killed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as there is one, but not for ever: one that cannot be killed is left behind."""
    world = World(monkeypatch, service, p78=(0, 99), p79=(0.02, 99))
    monkeypatch.setattr(service, "members", lambda folder: set(world.alive()))
    monkeypatch.setattr(os, "kill", lambda pid, number: world.done.append((pid, number, world.now - 100)))
    service.end_all(Path("run"), [SERVER])
    when = {pid: [at for each, number, at in world.done if each == pid and number == signal.SIGKILL] for pid in (SERVER, PROGRAM, ANOTHER)}
    assert when[SERVER][0] == when[PROGRAM][0] == 0 and 0.02 <= when[ANOTHER][0] < 0.1
    assert service.INSIST <= world.now - 100 < service.INSIST + 0.1 and world.waits


class Signalled:
    """A server that ends after so many looks at it, or when it is killed, while signals come to its launcher."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, looks: int, signals: list[int]) -> None:
        self.killed, self.sent, self.left, self.signals = list[int](), list[bytes](), looks, signals
        self.now = 100.0
        monkeypatch.setattr(launcher, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(launcher, "end_descendants", lambda spared, began: None)
        monkeypatch.setattr(launcher, "wait_for_signal", self.wait)
        monkeypatch.setattr(os, "kill", lambda pid, number: self.killed.append(number))
        monkeypatch.setattr(os, "waitpid", self.waitpid)
        self.run = launcher.ProgramRun([], "", device("kbl"), Path("run"), set())
        self.run.server = SERVER
        self.run.control = SimpleNamespace(send=self.sent.append, recv=lambda size: b"")  # type: ignore[assignment]

    def wait(self, signals: set[int], seconds: float) -> Any:
        assert signals == launcher.BLOCKED
        self.now += seconds
        return SimpleNamespace(si_signo=self.signals.pop(0)) if self.signals else None

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        assert (pid, options) == (SERVER, os.WNOHANG)
        self.left -= 1
        return (pid, 0) if self.left < 0 or self.killed else (0, 0)


@pytest.mark.parametrize("number, killed", [
    (signal.SIGTERM, [9]), (signal.SIGINT, [9]), (signal.SIGHUP, [9]), (signal.SIGCHLD, []),
])  # fmt: skip
def test_a_signal_while_the_server_writes_its_report_ends_it_and_the_end_of_a_process_does_not(number: int, killed: list[int],
                                                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    world = Signalled(monkeypatch, 5, [number])
    world.run._finish(stopped=False)
    assert world.killed == killed and world.sent == [b"end"]


@pytest.mark.parametrize("stopped, looks, killed", [(True, 20, []), (True, 10_000, [9]), (False, 10_000, [])])
def test_a_server_whose_work_does_not_matter_has_three_seconds_to_end(stopped: bool, looks: int, killed: list[int],
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """And all the time it needs where the program has ended by itself."""
    world = Signalled(monkeypatch, looks, [])
    world.run._finish(stopped)
    assert world.killed == killed and world.sent == [b"stop" if stopped else b"end"]
    if killed:
        assert 103 < world.now < 103.2


def test_a_program_that_was_killed_is_told_where_the_server_has_no_time_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Signalled(monkeypatch, 10_000, [])
    world.run.child = SimpleNamespace(poll=lambda: -9, returncode=-9)  # type: ignore[assignment]
    outcome = world.run.watch(keep_going=False, limit=None)
    assert (outcome.code, outcome.signal, outcome.report) == (137, 9, {}) and "before it could report" in outcome.trouble


def test_a_program_that_the_launcher_ends_was_ended_by_no_other_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Signalled(monkeypatch, 30, [])
    monkeypatch.setattr(launcher, "children", lambda: [SERVER, PROGRAM])
    child = SimpleNamespace(pid=PROGRAM, returncode=None)
    child.poll, child.terminate = lambda: child.returncode, lambda: setattr(child, "returncode", -15)
    world.run.child = child  # type: ignore[assignment]
    outcome = world.run.watch(keep_going=False, limit=1.0)
    assert (outcome.code, outcome.signal, outcome.trouble) == (1, 0, "time is up after 1 s; the program is ended")

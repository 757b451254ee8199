"""The launcher's watch over a program and its server, without either: what ends them, and what becomes of the run."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.run import launcher
from softgen.driver.run.launcher import ProgramRun, died, end_descendants

SERVER, CHILD = 4711, 4712
RUNNING = None
WAITED_FOR = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD}


class Child:
    """A program that ends with this code when it has been looked at so often, or when it is terminated or killed."""

    pid = CHILD

    def __init__(self, world: World, code: int, looks: int, stubborn: bool = False) -> None:
        self.world, self.code, self.looks, self.stubborn = world, code, looks, stubborn
        self.returncode: int | None = RUNNING

    def poll(self) -> int | None:
        self.looks -= 1
        if self.looks < 0 and self.returncode is RUNNING:
            self.returncode = self.code
        return self.returncode

    def send_signal(self, number: int) -> None:
        self.world.did.append(f"passed {number}")

    def terminate(self) -> None:
        self.world.did.append(f"terminate at {self.world.now:g}")
        if not self.stubborn:
            self.returncode = -signal.SIGTERM

    def kill(self) -> None:
        self.world.did.append(f"kill at {self.world.now:g}")
        self.returncode = -signal.SIGKILL

    def wait(self) -> None:
        self.world.did.append("wait for the program")


class World:
    """A run whose processes are made up, on a clock that only waiting moves on; what was done to them."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.did, self.signals, self.children = 100.0, list[str](), list[Any](), list[int]()
        self.server_ends: tuple[float, int] | None = None  # when, and its status
        self.run = ProgramRun(["program"], "/program", device("kbl"), tmp_path / "run", set())
        self.run.folder.mkdir()
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self.theirs.setblocking(False)
        self.run.control, self.run.server = ours, SERVER
        monkeypatch.setattr(launcher, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(launcher, "wait_for_signal", self.wait_for_signal)
        monkeypatch.setattr(launcher, "children", lambda: [SERVER, CHILD, *self.children])
        monkeypatch.setattr(os, "waitpid", self.waitpid)
        monkeypatch.setattr(os, "kill", self.kill)

    def sleep(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 6)

    def wait_for_signal(self, which: set[signal.Signals], seconds: float) -> Any:
        assert which == WAITED_FOR
        if self.signals and (info := self.signals.pop(0)) is not None:
            return info
        self.sleep(seconds)
        return None

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        if pid != SERVER:
            self.did.append(f"reap {pid}")
            if pid not in self.children:
                raise ChildProcessError
            assert options == os.WNOHANG
            return 0, 0
        if not options:
            self.did.append("wait for the server")
        if self.server_ends is not None and self.now >= self.server_ends[0] or not options:
            return SERVER, self.server_ends[1] if self.server_ends else 0
        return 0, 0

    def kill(self, pid: int, number: int) -> None:
        self.did.append(f"{signal.Signals(number).name} to {pid} at {self.now:g}")
        if pid == SERVER:
            self.server_ends = self.now, number
        elif number == signal.SIGKILL:
            self.children.remove(pid)

    def says(self, **what: Any) -> None:
        self.theirs.sendall(json.dumps(what).encode() + b"\n")

    def told(self) -> bytes:
        try:
            return self.theirs.recv(100)
        except BlockingIOError:
            return b""

    def watch(self, code: int, looks: int = 3, keep_going: bool = False, limit: float | None = None, stubborn: bool = False) -> Any:
        self.run.child = Child(self, code, looks, stubborn)  # type: ignore[assignment]
        return self.run.watch(keep_going, limit)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    monkeypatch.setattr(launcher, "end_descendants", lambda spared, began: made.did.append(f"all but {spared} end from {began:g} on"))
    yield made
    made.theirs.close()
    assert made.run.control is not None
    made.run.control.close()


# -- the outcome


@pytest.mark.parametrize("code, failed, keep_going, expected, ended_by, told", [
    (0, False, False, 0, 0, b"end"), (7, False, False, 7, 0, b"end"),
    (-9, False, False, 137, 9, b"stop"), (-1, False, False, 129, 1, b"stop"),
    (0, True, True, 0, 0, b"end"), (7, True, True, 7, 0, b"end"), (-15, True, True, 143, 15, b"stop"),
])  # fmt: skip
def test_the_code_of_a_run_is_the_programs_as_a_shell_has_it(
    world: World, code: int, failed: bool, keep_going: bool, expected: int, ended_by: int, told: bytes
) -> None:
    world.server_ends = 101.0, 0
    if failed:
        world.says(failed="a fault")
    world.says(report={"submissions": 3})
    found = world.watch(code, keep_going=keep_going)
    assert (found.code, found.signal, found.trouble) == (expected, ended_by, "") and world.told() == told
    assert found.report == {"submissions": 3} and found.failed == ["a fault"] * failed and found.loads == found.seeks == []
    assert world.did == [f"all but {{{SERVER}}} end from 100.15 on"], "the program ended by itself"


def test_a_failure_ends_the_program(world: World) -> None:
    world.server_ends = 101.0, 0
    world.says(failed="a fault")
    world.says(failed="another")
    found = world.watch(0, looks=1000)
    assert (found.code, found.signal, found.failed) == (1, 0, ["a fault", "another"]) and world.told() == b"stop"
    assert found.trouble == "the program is ended, because its work could not be done (--keep-going lets it go on)"
    assert world.did == ["terminate at 100.05", f"all but {{{SERVER}}} end from 100.05 on"] and found.report == {}


def test_a_failure_that_is_told_when_the_program_has_ended(world: World) -> None:
    """Its code counts no more."""
    world.server_ends = 100.3, 0
    world.run._finish = lambda stopped: (world.says(failed="a fault", report={"submissions": 1}), world.run._listen())  # type: ignore[method-assign, assignment]
    found = world.watch(5)
    assert (found.code, found.failed, found.report, found.trouble) == (1, ["a fault"], {"submissions": 1}, "")


@pytest.mark.parametrize("limit, code", [(0.3, 1), (0.2, 1), (0.5, 0), (None, 0)])
def test_a_time_limit(world: World, limit: float | None, code: int) -> None:
    """The program would end after 0.4 seconds."""
    world.server_ends = 101.0, 0
    world.says(report={})
    found = world.watch(0, looks=8, limit=limit)
    assert found.code == code and found.trouble == (f"time is up after {limit} s; the program is ended" if code else "")
    assert world.did[:-1] == ([f"terminate at {100 + limit:g}"] if code and limit else [])


def test_a_program_that_does_not_end_is_killed(world: World) -> None:
    world.server_ends = 105.0, 0
    found = world.watch(0, looks=1000, limit=1.0, stubborn=True)
    assert found.code == 1 and world.did[:2] == ["terminate at 101", "kill at 101.75"]


@pytest.mark.parametrize("status, how", [(9, " (killed by signal 9)"), (3 << 8, " (exit code 3)"), (0, "")])
def test_a_program_ends_with_its_server(world: World, status: int, how: str) -> None:
    world.server_ends = 100.0, status
    found = world.watch(0, looks=1000)
    assert (found.code, found.trouble) == (1, f"the simulator has ended{how}; so does the program")
    assert world.did[0] == "terminate at 100.05"


def test_a_server_that_says_nothing_at_its_end_is_trouble(world: World) -> None:
    world.server_ends = 100.5, 11
    found = world.watch(0)
    assert (found.code, found.report, found.trouble) == (0, {}, "the simulator ended before it could report (killed by signal 11)")


def test_what_the_shim_remarks_is_in_the_outcome(world: World) -> None:
    for name in ("seeks-OpenCL", "loads-Vulkan", "loads-OpenGL", "loads", "other-seeks-x"):
        (world.run.folder / name).touch()
    world.server_ends = 100.5, 0
    found = world.watch(0)
    assert (found.loads, found.seeks) == (["OpenGL", "Vulkan"], ["OpenCL"])


@pytest.mark.parametrize("status, told", [(None, ""), (0, ""), (1 << 8, " (exit code 1)"), (6, " (killed by signal 6)")])
def test_how_a_server_died(status: int | None, told: str) -> None:
    assert died(status) == told


# -- signals and messages


@pytest.mark.parametrize("number, code, did", [
    (signal.SIGTERM, 0, ["passed 15"]), (signal.SIGINT, -6, ["passed 2"]), (signal.SIGINT, 0x80, []),
    (signal.SIGCHLD, 1, ["reap 5001", "reap 5002"]), (None, 0, ["reap 5001", "reap 5002"]),
])  # fmt: skip
def test_signals_that_the_program_has_not_got_are_passed_on(world: World, number: int | None, code: int, did: list[str]) -> None:
    """What a terminal sends all its processes get; at the end of a child, and now and then, orphans are looked for."""
    world.run.child, world.children = Child(world, 0, 10), [5001, 5002]  # type: ignore[assignment]
    world.signals = [None if number is None else SimpleNamespace(si_signo=number, si_code=code)]
    world.run._wait(0.05)
    assert world.did == did


def test_an_orphan_that_is_gone_keeps_nobody_from_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run.child, world.children = Child(world, 0, 10), [5002]  # type: ignore[assignment]
    monkeypatch.setattr(launcher, "children", lambda: [5001, SERVER, CHILD, 5002])
    world.run._reap()
    assert world.did == ["reap 5001", "reap 5002"]


def test_messages_of_the_server_may_come_in_parts(world: World) -> None:
    world.theirs.sendall(b'{"failed": "first"}\n{"fai')
    world.run._listen()
    assert world.run.failed == ["first"] and world.run.report is None
    world.theirs.sendall(b'led": "second"}\n{"report": {"a": 1}, "failed": "third"}\n{"other": 1}\n')
    world.run._listen()
    assert world.run.failed == ["first", "second", "third"] and world.run.report == {"a": 1} and world.run.said == b""
    world.theirs.sendall(b'{"failed": "' + b"x" * 100_000 + b'"}\n')
    world.theirs.shutdown(socket.SHUT_WR)
    world.run._listen()
    assert world.run.failed[3] == "x" * 100_000


# -- the end


@pytest.mark.parametrize("stopped, killed", [(True, [f"SIGKILL to {SERVER} at 103.05"]), (False, [])])
def test_how_long_a_server_may_work_on(world: World, stopped: bool, killed: list[str]) -> None:
    """Three seconds where its work does not matter any more, otherwise as long as it takes."""
    world.server_ends = 150.0, 0
    world.run.told_to_end = 99.5
    world.run._finish(stopped)
    assert world.did == [f"all but {{{SERVER}}} end from 99.5 on", *killed] and world.told() == (b"stop" if stopped else b"end")


def test_a_server_does_not_survive_a_second_signal(world: World) -> None:
    world.server_ends = 150.0, 0
    world.signals = [None, SimpleNamespace(si_signo=signal.SIGCHLD), None, SimpleNamespace(si_signo=signal.SIGINT)]
    world.says(report={"last": 1})
    world.run._finish(False)
    assert world.did[1:] == [f"SIGKILL to {SERVER} at 100.1"] and world.run.report == {"last": 1}


def test_what_a_server_says_last_is_heard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> bool:
        world.says(report={"last": 1})
        return True

    monkeypatch.setattr(world.run, "_server_gone", gone)
    world.run._finish(False)
    assert world.run.report == {"last": 1}


def test_a_long_report_is_read_while_the_server_sends_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    left = json.dumps({"report": {"text": "x" * 2_000_000}}).encode() + b"\n"

    def gone() -> bool:
        nonlocal left
        try:
            left = left[world.theirs.send(left) :]
        except BlockingIOError:
            pass  # nobody has read what was sent before
        assert world.now < 120, "it ends only when all is read"
        return not left

    monkeypatch.setattr(world.run, "_server_gone", gone)
    world.run._finish(False)
    assert world.run.report == {"text": "x" * 2_000_000}


def test_a_server_that_is_gone_is_told_nothing(world: World) -> None:
    world.theirs.close()
    world.server_ends = 100.0, 0
    world.run._finish(False)
    assert world.run.server_status == 0


@pytest.mark.parametrize("child, server", [(True, True), (True, False), (False, True), (False, False)])
def test_nothing_is_left_of_a_run(world: World, child: bool, server: bool) -> None:
    world.run.child = Child(world, 0, 1000 if child else 0)  # type: ignore[assignment]
    world.server_ends = None if server else (0.0, 0)
    (world.run.folder / "file").touch()
    world.run.clean()
    expected = ["kill at 100", "wait for the program"] * child + [f"SIGKILL to {SERVER} at 100", "wait for the server"] * server
    assert world.did == expected and not world.run.folder.exists() and world.run.control is not None and world.run.control.fileno() == -1


def test_a_run_that_did_not_begin_is_cleaned_up(tmp_path: Path) -> None:
    run = ProgramRun(["program"], "/program", device("kbl"), tmp_path / "run", set())
    run.folder.mkdir()
    for _ in range(2):  # also where the server has removed the folder
        run.clean()
        assert not run.folder.exists()


def test_the_children_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this kernel does not say which children a process has")
    ready, go_on = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go_on)
        os.read(ready, 1)
        os._exit(0)
    found = launcher.children()
    os.close(go_on)
    os.close(ready)
    os.waitpid(pid, 0)
    assert pid in found and pid not in launcher.children()
    monkeypatch.setattr(os, "getpid", lambda: 0)  # a kernel without that file
    assert launcher.children() == []


def test_what_a_program_leaves_running_is_told_to_end_and_then_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; 0.7 seconds after the program was, all that is left."""
    world = World(tmp_path, monkeypatch)
    monkeypatch.setattr(launcher, "children", lambda: [SERVER, *world.children])
    world.children = [5001, 5002]
    end_descendants({SERVER}, 100.0)
    sent = [line for line in world.did if line.startswith("SIG")]
    assert sent == [f"SIGTERM to {pid} at 100" for pid in (5001, 5002)] + [f"SIGKILL to {pid} at 100.71" for pid in (5001, 5002)]
    assert world.did.count("reap 5001") == 72

"""The simulator of a run: what its options set, whom it tells what, and how it ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.kms import display
from softgen.driver.run import simulator as module
from softgen.driver.run.service import Service
from softgen.driver.run.simulator import Observers, Simulator, SimulatorOptions
from softgen.threads.dispatcher import EngineDispatcher


class Run:
    """A launcher's end of a service, and what the simulator said."""

    def __init__(self, folder: Path) -> None:
        self.launcher, control = socket.socketpair()
        self.service = Service(control, folder, {})
        self.log, self.order = list[str](), list[str]()

    def simulator(self, gpu: str = "kbl", options: SimulatorOptions | None = None, **seen: Any) -> Simulator:
        observers = Observers(self.log.append, lambda submission, message: f"{message} is in a folder", **seen)
        return Simulator(device(gpu), self.service, options or SimulatorOptions(), observers, lambda: EngineDispatcher("reference", 1))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    with made.launcher, made.service.control:
        yield made


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_deterministic_clock_counts_its_readings_from_one(deterministic: bool, run: Run) -> None:
    clock = run.simulator(options=SimulatorOptions(deterministic=deterministic)).executor().device.clock
    assert ([clock() for _ in range(3)] == [1, 2, 3]) is deterministic


def test_options_and_observers_reach_the_display_and_the_budget(run: Run) -> None:
    shown = list[tuple[object, int]]()
    options = SimulatorOptions((1024, 600), memory_limit=80 << 20)
    shared = run.simulator(options=options, presented=lambda crtc, frame: shown.append((crtc, frame))).shared
    assert shared.display.mode == display.mode(1024, 600) and shared.budget.limit == 80 << 20
    crtc: Any = object()
    shared.display.presented(crtc, 7)
    assert shown == [(crtc, 7)]


def test_the_executor_is_made_with_the_first_submission(run: Run) -> None:
    drawn: Any = object()
    recorder: Any = SimpleNamespace(before=None, after=None)
    simulator = run.simulator(recorders=(recorder,), drawn=drawn)
    assert not simulator.begun.is_set()
    executor = simulator.executor()
    assert simulator.begun.is_set() and simulator.executor() is executor
    assert executor.recorders == [recorder] and executor.drawn is drawn


def test_a_failure_is_logged_and_sent_to_the_launcher_and_its_submission_kept(run: Run) -> None:
    executor, submission = run.simulator().executor(), SimpleNamespace()
    executor.log("a draw failed")
    assert run.log == ["a draw failed"] and run.launcher.recv(100) == b'{"failed": "a draw failed"}\n'
    assert executor.save(submission, "it") == "it is in a folder"  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [b"end", b"stop"])
def test_a_run_ends_with_the_launchers_command_and_says_what_it_counted(command: bytes, run: Run) -> None:
    """What recorders write ends while no submission runs; work that comes later is dropped."""
    simulator = run.simulator(close=lambda: run.order.append(f"closed {executor.running.locked()} {executor.ending}"))
    executor = simulator.executor()
    run.launcher.send(command)
    counted = {"opened": 0, "unknown_ioctls": {}, "refused_ioctls": {}, "frames": {"presented": 0, "per_second": 0.0}}
    assert simulator.run() == counted
    assert run.order == ["closed True False"] and executor.ending and not executor.running.locked()


def test_a_run_that_submits_nothing_ends_without_loading_what_executes(run: Run) -> None:
    simulator = run.simulator()
    run.launcher.send(b"end")
    simulator.run()
    assert simulator.made is None


@pytest.mark.parametrize("recorders, seconds", [((SimpleNamespace(),), 600.0), ((), 5.0)])
def test_recorded_work_may_long_outlive_its_program(recorders: Any, seconds: float, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that ends without waiting for its last pictures."""
    simulator, waited = run.simulator(recorders=recorders), list[float]()
    monkeypatch.setattr(simulator.queues, "drain", waited.append)
    run.launcher.send(b"end")
    simulator.run()
    assert waited == [seconds] == [simulator.server.drain]


def test_a_run_without_recorders_does_not_wait_for_the_submission_that_runs(run: Run) -> None:
    simulator = run.simulator()
    run.launcher.send(b"stop")
    with simulator.executor().running:
        simulator.run()
    assert simulator.executor().ending


def test_a_simulator_whose_launcher_is_gone_lets_a_submission_be_recorded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the lock under which a submission runs and is recorded, and keeps it: nothing starts after that."""
    monkeypatch.setattr(module, "RECORDER_TIMEOUT", 60.0)  # however busy the host is
    simulator = run.simulator()
    (leave,) = run.service.orphaned
    leave()  # nothing was executed yet
    executor = simulator.executor()
    executor.running.acquire()
    threading.Timer(0.05, lambda: (run.order.append("recorded"), executor.running.release())).start()
    leave()
    assert run.order == ["recorded"] and executor.running.locked() and executor.ending


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, bool]]:
    """What was compiled ahead: the package, the generation, and whether it was to stop at once."""
    found = list[tuple[str, float, bool]]()

    def compile_ahead(package: str) -> Callable[[float, Callable[[], bool]], None]:
        return lambda gen, stopped: found.append((package, gen, stopped()))

    for package in ("eu.threaded", "shared_functions"):
        monkeypatch.setattr(f"softgen.{package}.ahead.compile_ahead", compile_ahead(package))
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    return found


@pytest.mark.parametrize("gpu, begun, expected", [
    ("kbl", False, [("eu.threaded", 9.0, False), ("shared_functions", 9.0, False)]), ("kbl", True, []), ("hsw", False, []),
])  # fmt: skip
def test_handlers_and_texel_functions_are_compiled_ahead_until_there_is_work(gpu: str, begun: bool, expected: object, run: Run,
                                                                             compiled: list[tuple[str, float, bool]]) -> None:  # fmt: skip
    """There are no OpenCL kernels for hsw."""
    simulator = run.simulator(gpu)
    if begun:
        simulator.executor()
    simulator.compile_ahead()
    assert compiled == expected


def test_compiling_ahead_waits_for_modules(run: Run, compiled: list[tuple[str, float, bool]]) -> None:
    simulator = run.simulator()
    run.service.loaded.clear()
    thread = threading.Thread(target=simulator.compile_ahead)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and not compiled
    run.service.loaded.set()
    thread.join()
    assert len(compiled) == 2


def test_compiling_ahead_that_fails_is_no_failure_of_the_run(run: Run, compiled: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may have taken all descriptors."""
    monkeypatch.setattr("softgen.eu.threaded.ahead.compile_ahead", lambda gen, stopped: open("/", "rb"))
    run.simulator().compile_ahead()
    assert not run.log

"""Programs that wait for an answer awake: for as long as the server says, where the last answer came as soon."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.ioctl import ioctls
from softgen.driver.objects.node import GpuState, Node
from softgen.driver.queue.queue import Queues
from softgen.driver.run.environment import environment
from softgen.driver.run.protocol import MESSAGE, Call, greet
from softgen.driver.run.server import Server
from softgen.driver.run.service import Service
from softgen.driver.shim.shim_h import WELCOME
from softgen.inspect.cli import engine
from tests.driver.program import NUMBERS, served
from tests.driver.running import PROGRAMS, needs_shim

QUICK, SLOW = "4096", "8192"  # bytes of buffers; the second are made late
SHORT, LONG = 0.3, 600.0  # seconds of patience
ATTEMPTS = 7  # each with twice the patience: on a busy machine a thread that spins is rarely on a processor, and all answers are late
SPUN, SWITCHES = 2, 3  # ticks of the processor's clock, or times it was taken from a thread that could go on: less, before it sleeps


class Watch:
    """Waits until a program's thread sleeps, or is seen to spin, however little it has of a processor; then the answer may come."""

    def __init__(self, pid: int) -> None:
        self.folder = Path(f"/proc/{pid}")
        _, *self.began = self.now()

    def now(self) -> tuple[bool, int, int]:
        """Whether it sleeps; ticks it has had; switches to others that it did not ask for."""
        state, *fields = (self.folder / "stat").read_text("ascii").rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in (self.folder / "status").read_text("utf-8").splitlines())
        return state == "S", int(fields[10]) + int(fields[11]), int(status["nonvoluntary_ctxt_switches"])

    def spins(self, until_asleep: bool) -> bool:
        spins, limit = False, time.monotonic() + LONG / 4
        while time.monotonic() < limit:
            asleep, ticks, switches = self.now()
            spins |= ticks - self.began[0] > SPUN or switches - self.began[1] > SWITCHES
            if asleep or spins and not until_asleep:
                break
            time.sleep(0.001)
        return spins


def make_late(monkeypatch: pytest.MonkeyPatch, name: str, late: Callable[[Any], bool], watched: Callable[[int], None]) -> None:
    """`watched` is called with the process before a late answer."""
    number = NUMBERS[name]
    answered = ioctls.ANSWERED[number]

    def handler(node: Node, call: Call, argument: Any) -> None:
        if late(argument):
            watched(call.channel.pid)
        answered.handler(node, call, argument)

    monkeypatch.setitem(ioctls.ANSWERED, number, answered._replace(handler=handler))


@needs_shim
@pytest.mark.parametrize(("patience", "orders", "spins"), [
    (LONG, (QUICK, SLOW), [True]),
    (LONG, (QUICK, "wait"), [False]),  # a signal may end it
    (SHORT, (QUICK, SLOW, SLOW, QUICK, SLOW), [True, False, True]),  # a late answer makes it sleep, until one is in time
    (0.0, (QUICK, SLOW), [False]),
])  # fmt: skip
def test_a_program_waits_awake_as_long_as_the_server_says(patience: float, orders: tuple[str, ...], spins: list[bool],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Where patience ends, the answer comes when the program sleeps."""
    found = list[bool]()

    def watched(pid: int) -> None:
        found.append(Watch(pid).spins(until_asleep=patience < LONG))

    make_late(monkeypatch, "DRM_IOCTL_I915_GEM_CREATE", lambda argument: argument.size == int(SLOW), watched)
    make_late(monkeypatch, "DRM_IOCTL_I915_GEM_WAIT", lambda argument: True, watched)
    with served("kbl") as gpu:
        command, env = [sys.executable, str(PROGRAMS / "awake.py"), *orders], environment(device("kbl"), gpu.folder, os.environ)
        for attempt in range(ATTEMPTS):
            gpu.server.patience = patience * 2**attempt
            found.clear()
            subprocess.run(command, env=env, check=True, timeout=LONG)
            if found == spins:
                break
    assert found == spins


@pytest.mark.parametrize(("options", "spare"), [((), False), (("--threads", "2"), True), (("--threads", "4"), False),
                                                (("--threads", "5"), False), (("--deterministic",), True)])  # fmt: skip
def test_awake_where_a_processor_is_left(options: tuple[str, ...], spare: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors: one for each host thread, and one for the program."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    parser = argparse.ArgumentParser()
    engine.add_engine_options(parser)
    assert engine.spare_processor(parser.parse_args(options)) == spare


@pytest.mark.parametrize(("spare", "patience"), [(True, 0.003), (False, 0.0)])
def test_what_a_server_allows(spare: bool, patience: float, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        shared = GpuState(device("kbl"), Queues(lambda *work: None, lambda *work: None))
        server = Server(shared, Service(theirs, tmp_path, {}), spare_processor=spare)
        server.service.reserve.close()
    assert server.patience == patience


@pytest.mark.parametrize("seconds", [0, 1, 40])
def test_the_first_message_has_it_in_nanoseconds(seconds: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        greet(ours, patience=float(seconds))
        assert MESSAGE.unpack(theirs.recv(MESSAGE.size)) == (WELCOME, 0, 0, seconds * 10**9, 0, bytes(8))

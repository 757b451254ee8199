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
from softgen.driver import ioctls
from softgen.driver.environment import environment
from softgen.driver.node import Node, Shared
from softgen.driver.protocol import MESSAGE, WELCOME, Call, greet
from softgen.driver.queue import Queues
from softgen.driver.server import Server
from softgen.driver.service import Service
from softgen.inspect.cli import engine
from tests.driver.program import NUMBERS, served
from tests.driver.running import PROGRAMS, needs_shim

QUICK, SLOW = "4096", "8192"  # bytes of buffers; the second are made late
LATE, BUSY = 0.6, 0.02  # seconds that it takes; a thread that spins has the processor for more than this, one that sleeps for less
ATTEMPTS = 5  # on a busy machine an answer may be late by itself, and a thread that spins may not have the processor


def make_late(monkeypatch: pytest.MonkeyPatch, name: str, late: Callable[[Any], bool]) -> None:
    number = NUMBERS[name]
    answered = ioctls.ANSWERED[number]

    def handler(node: Node, call: Call, argument: Any) -> None:
        time.sleep(LATE * late(argument))
        answered.handler(node, call, argument)

    monkeypatch.setitem(ioctls.ANSWERED, number, answered._replace(handler=handler))


@needs_shim
@pytest.mark.parametrize(("patience", "orders", "spins"), [
    (30.0, (QUICK, SLOW), (False, True)),
    (30.0, (QUICK, "wait"), (False, False)),  # a signal may end it
    (LATE / 2, (QUICK, SLOW, SLOW, QUICK, SLOW), (False, True, False, False, True)),  # a late answer makes it sleep, until one is in time
    (0.0, (QUICK, SLOW), (False, False)),
])  # fmt: skip
def test_a_program_waits_awake_as_long_as_the_server_says(patience: float, orders: tuple[str, ...], spins: tuple[bool, ...],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    make_late(monkeypatch, "DRM_IOCTL_I915_GEM_CREATE", lambda argument: argument.size == int(SLOW))
    make_late(monkeypatch, "DRM_IOCTL_I915_GEM_WAIT", lambda argument: True)
    with served("kbl") as gpu:
        gpu.server.patience = patience
        command, env = [sys.executable, str(PROGRAMS / "awake.py"), *orders], environment(device("kbl"), gpu.folder, os.environ)
        for _ in range(ATTEMPTS):
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
            if (found := tuple(float(line) > BUSY for line in done.stdout.split())) == spins:
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
        shared = Shared(device("kbl"), Queues(lambda *work: None, lambda *work: None))
        server = Server(shared, Service(theirs, tmp_path, {}), spare_processor=spare)
        server.service.reserve.close()
    assert server.patience == patience


@pytest.mark.parametrize("seconds", [0, 1, 40])
def test_the_first_message_has_it_in_nanoseconds(seconds: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        greet(ours, patience=float(seconds))
        assert MESSAGE.unpack(theirs.recv(MESSAGE.size)) == (WELCOME, 0, 0, seconds * 10**9, 0, bytes(8))

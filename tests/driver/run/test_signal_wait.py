"""Waiting for signals: one that comes, none in time, and a process that was stopped meanwhile, alone and as a launcher."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from softgen.driver.run.signal_wait import SignalInfo, SignalSet, TimeSpec, wait_for_signal
from tests.driver.running import PATIENCE, Softgen, needs_shim

SIGNALS = {signal.SIGUSR1, signal.SIGRTMAX}  # one in the first half of the set, and the last
STOPPED = """
import os, signal
from softgen.driver.run.signal_wait import wait_for_signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", flush=True)
got = [wait_for_signal([signal.SIGUSR1], 0.05) for _ in range(60)]
print([info.si_signo for info in got if info])
"""


@pytest.fixture
def blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_structures_have_the_sizes_of_the_c_librarys() -> None:
    """sigset_t and siginfo_t of Linux have 128 bytes; a smaller one would be written beyond its end."""
    assert ctypes.sizeof(SignalSet) == ctypes.sizeof(SignalInfo) == 128 and ctypes.sizeof(TimeSpec) == 2 * ctypes.sizeof(ctypes.c_long)


@pytest.mark.parametrize("number", sorted(SIGNALS))
def test_a_signal_that_is_waited_for_comes_at_once(number: int, blocked: None) -> None:
    signal.raise_signal(number)  # in this thread: others do not block it
    began = time.monotonic()
    info = wait_for_signal(SIGNALS, PATIENCE)
    assert info is not None and info.si_signo == number and info.si_code <= 0  # from a process, not from the kernel
    assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize("seconds", [0.0, 0.02, 1.01])
def test_none_comes_in_time(seconds: float, blocked: None) -> None:
    began = time.monotonic()
    assert wait_for_signal(SIGNALS, seconds) is None
    assert seconds <= time.monotonic() - began + 1e-3


def test_another_signal_is_left_alone(blocked: None) -> None:
    signal.raise_signal(signal.SIGUSR1)
    assert wait_for_signal([signal.SIGRTMAX], 0.02) is None
    assert signal.sigpending() & SIGNALS == {signal.SIGUSR1}
    assert wait_for_signal([signal.SIGUSR1], PATIENCE) is not None


def test_a_wait_goes_on_after_a_signal_that_is_handled(blocked: None) -> None:
    """For the time that is left; what it waits for may still come."""
    seen = list[int]()
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        began = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert wait_for_signal(SIGNALS, 0.3) is None and time.monotonic() - began >= 0.299 and seen == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stop_and_continue(pid: int, times: int = 3) -> None:
    """Stop a process for longer than it waits for signals, as Ctrl-Z and `fg` do."""
    for _ in range(times):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.1)


def test_a_process_that_was_stopped_sees_no_signal_that_nobody_sent() -> None:
    waiting = subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None and waiting.stdout.readline() == "ready\n"
    stop_and_continue(waiting.pid)
    os.kill(waiting.pid, signal.SIGUSR1)
    assert waiting.communicate(timeout=PATIENCE)[0] == f"[{int(signal.SIGUSR1)}]\n"


@needs_shim
def test_a_launcher_that_was_stopped_goes_on() -> None:
    run = Softgen("--", "sh", "-c", "echo ready; read line; echo got $line; exit 3")
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    stop_and_continue(run.process.pid)
    assert run.process.poll() is None
    out, err = run.process.communicate("more\n", timeout=PATIENCE)
    assert (out, err, run.process.returncode) == ("got more\n", "", 3)

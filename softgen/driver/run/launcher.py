"""The launcher: starts the server and the program, passes signals and the exit code on, and leaves nothing behind.

When one of the three ends, so do the others: the launcher waits for both as their parent, the server has a socket to the
launcher (service.py), and the program is ended by the kernel when the launcher is gone.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.driver.run import environment, run_folder, service, sysfs_tree
from softgen.driver.run.signal_wait import wait_for_signal
from softgen.errors import SoftgenError

if TYPE_CHECKING:
    from softgen.bits.generation import Device

TICK = 0.05  # seconds between two polls of the server's messages
STOP = 3.0  # seconds the server has to end when its work does not matter any more
GRACE = 0.7  # seconds a program and all it started have to end after SIGTERM
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PASSED_ON = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
BLOCKED = PASSED_ON | {signal.SIGCHLD}
FROM_KERNEL = 0x80  # si_code of what a terminal sends: the program has got it too

_libc = ctypes.CDLL(None)
Serve = Callable[[service.Service], dict[str, Any]]


@dataclass
class Outcome:
    """Result of a run: the program's exit code as a shell has it, and the server's report."""

    code: int
    report: dict[str, Any] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # what the server could not do
    trouble: str = ""  # what ended the run, if not the program itself, or why there is no report
    signal: int = 0  # that ended the program, if not the launcher's
    loads: list[str] = field(default_factory=list)  # APIs whose libraries its processes had loaded when they ended
    seeks: list[str] = field(default_factory=list)  # APIs for which they looked around for a driver: none was named to them


def launch(command: list[str], device: Device, serve: Serve, orphaned: Callable[[], None] = lambda: None, keep_going: bool = False,
           limit: float | None = None, inputs: bool = False) -> Outcome:  # fmt: skip
    """Run a program on the GPU. `serve` is called in a process of its own; there, `orphaned` is called if the launcher dies. `inputs`: the
    program finds the run's input devices."""
    program = shutil.which(command[0])
    if program is None:
        raise SoftgenError(f"no program {command[0]!r} can be run: not found, or not executable")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    run_folder.remove_dead()
    folder, lock = run_folder.create()
    run = ProgramRun(command, program, device, folder, before)
    run.inputs = inputs
    try:
        run.start(serve, orphaned)
        return run.watch(keep_going, limit)
    finally:
        run.clean()
        os.close(lock)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ProgramRun:
    """A program and its server."""

    def __init__(self, command: list[str], program: str, device: Device, folder: Path, mask: set[int | signal.Signals]) -> None:
        self.command, self.program, self.device, self.folder, self.mask = command, program, device, folder, mask
        self.control: socket.socket | None = None
        self.server = 0
        self.server_status: int | None = None
        self.child: subprocess.Popen[bytes] | None = None
        self.said = b""
        self.failed: list[str] = []
        self.report: dict[str, Any] | None = None
        self.told_to_end: float | None = None
        self.inputs = False

    def start(self, serve: Serve, orphaned: Callable[[], None]) -> None:
        environment.shim()  # or nothing is started at all
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._start_server(serve, orphaned)
        try:
            sysfs_tree.build(self.folder / "tree", self.device, self.inputs)  # while the server loads
        except OSError as error:
            raise SoftgenError(f"{self.folder}: the files that programs are shown cannot be written: {error.strerror}") from None
        env = environment.environment(self.device, self.folder, os.environ)
        self._listen()
        if self.failed or self._server_gone():
            raise SoftgenError(f"the simulator did not start{died(self.server_status)}{''.join(f': {why}' for why in self.failed)}")
        self._start_program(env)

    def _start_server(self, serve: Serve, orphaned: Callable[[], None]) -> None:
        """Fork the server, with sockets that listen already: a program that connects before it has loaded waits."""
        ours, theirs = socket.socketpair()
        listening = service.listen(self.folder)
        self.server = os.fork()
        if not self.server:
            ours.close()
            service.run(serve, service.Service(theirs, self.folder, listening), orphaned)
        for end in (theirs, *listening.values()):
            end.close()
        ours.setblocking(False)
        self.control = ours

    def _start_program(self, env: dict[str, str]) -> None:
        launcher = os.getpid()

        def before_program() -> None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != launcher:
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

        try:
            self.child = subprocess.Popen(self.command, executable=self.program, env=env, preexec_fn=before_program, close_fds=False)
        except OSError as error:
            told = environment.advice(self.program) if error.errno == errno.ENOEXEC else ""
            raise SoftgenError(f"{self.command[0]}: cannot be started: {error.strerror}{told}") from None

    def watch(self, keep_going: bool, limit: float | None) -> Outcome:
        assert self.child is not None
        end, trouble = None if limit is None else time.monotonic() + limit, ""
        while self.child.poll() is None:
            self._wait(TICK)
            self._listen()
            if self._server_gone():
                trouble = trouble or f"the simulator has ended{died(self.server_status)}; so does the program"
            elif self.failed and not keep_going:
                trouble = trouble or "the program is ended, because its work could not be done (--keep-going lets it go on)"
            elif end is not None and time.monotonic() >= end:
                trouble = trouble or f"time is up after {limit:g} s; the program is ended"
            if trouble:
                self._end_program()
        code = self.child.returncode
        ended_by = 0 if trouble else max(-code, 0)
        self._finish(bool(trouble) or code < 0)
        code = 1 if trouble or self.failed and not keep_going else 128 - code if code < 0 else code
        if self.report is None and not trouble:
            trouble = f"the simulator ended before it could report{died(self.server_status)}"
        return Outcome(code, self.report or {}, self.failed, trouble, ended_by, self._remarks("loads"), self._remarks("seeks"))

    def _remarks(self, kind: str) -> list[str]:
        """Remarks of the shim: empty files in the run's folder."""
        return sorted(path.name.removeprefix(f"{kind}-") for path in self.folder.glob(f"{kind}-*"))

    def _wait(self, seconds: float) -> None:
        """Sleep until a child ends or a signal arrives; forward signals that only the launcher received."""
        assert self.child is not None
        info = wait_for_signal(BLOCKED, seconds)
        if info is None or info.si_signo == signal.SIGCHLD:
            self._reap()
        elif info.si_code != FROM_KERNEL:
            self.child.send_signal(info.si_signo)

    def _reap(self) -> None:
        """Reap orphaned processes of the program, which become children of the launcher."""
        assert self.child is not None
        for pid in children():
            if pid not in (self.server, self.child.pid):
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def _listen(self) -> None:
        assert self.control is not None
        try:
            while data := self.control.recv(65536):
                self.said += data
        except OSError:
            pass
        *lines, self.said = self.said.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "failed" in message:
                self.failed.append(message["failed"])
            if "report" in message:
                self.report = message["report"]

    def _server_gone(self) -> bool:
        if self.server_status is None:
            pid, status = os.waitpid(self.server, os.WNOHANG)
            if pid:
                self.server_status = status
        return self.server_status is not None

    def _end_program(self) -> None:
        assert self.child is not None
        if self.told_to_end is None:
            self.told_to_end = time.monotonic()
            self.child.terminate()
        elif time.monotonic() > self.told_to_end + GRACE:
            self.child.kill()

    def _finish(self, stopped: bool) -> None:
        """End the program's remaining processes and wait for the server's report."""
        assert self.control is not None
        end_descendants({self.server}, self.told_to_end or time.monotonic())
        try:
            self.control.send(b"stop" if stopped else b"end")
        except OSError:
            pass
        until = time.monotonic() + STOP if stopped else None
        while not self._server_gone():
            info = wait_for_signal(BLOCKED, TICK)
            if info and info.si_signo in PASSED_ON or until is not None and time.monotonic() > until:
                os.kill(self.server, signal.SIGKILL)  # out of time, or a second signal
            self._listen()
        self._listen()

    def clean(self) -> None:
        """End what still runs and remove the folder of the run."""
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        if self.control is not None:
            self.control.close()
        if self.server and not self._server_gone():
            os.kill(self.server, signal.SIGKILL)
            os.waitpid(self.server, 0)
        shutil.rmtree(self.folder, ignore_errors=True)


def children() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()]
    except OSError:
        return []  # a kernel without that file: no orphans are found


def end_descendants(spared: set[int], began: float) -> None:
    """Terminate processes that the program left running, and kill them GRACE seconds after `began`."""
    until, signalled = began + GRACE, set[int]()
    while left := [pid for pid in children() if pid not in spared]:
        late = time.monotonic() > until
        for pid in left:
            try:
                if late or pid not in signalled:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                    signalled.add(pid)
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass
        time.sleep(0.01)


def died(status: int | None) -> str:
    if status is not None and os.WIFSIGNALED(status):
        return f" (killed by signal {os.WTERMSIG(status)})"
    return f" (exit code {os.waitstatus_to_exitcode(status)})" if status else ""

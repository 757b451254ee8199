"""Subprocesses with limits: of time, of silence, of memory. One that is over a limit is ended, with all it has started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

POLL = 0.25  # seconds between two looks at memory and at whether the farm goes on
GRACE = 2.0  # seconds that a process has to end after SIGTERM
DRAIN = 2.0  # seconds in which processes that outlive the main one may close its output
HEAD, TAIL = 16 << 10, 48 << 10  # bytes of each stream that are kept: the first and the last
LONGEST = 1 << 16  # bytes of a line


class ProcessLimits(NamedTuple):
    """Seconds until a process is ended, counted anew with each line of its output where `silence`; bytes of memory of all its processes."""

    seconds: float
    memory: int
    silence: bool = False


@dataclass
class EndedProcess:
    """How a process ended. `limit` is "time" or "memory" if that ended it, "stopped" if the farm did, else ""."""

    code: int  # as a shell has it: 128 and the signal's number if one ended it
    seconds: float
    limit: str
    out: str
    err: str

    @property
    def signal(self) -> str:
        """The name of the signal that ended it, or the program that `softgen run` started; "" if none did."""
        number = self.code - 128
        return signal.Signals(number).name if number in signal.valid_signals() else ""


class CappedText:
    """A stream's first and last bytes."""

    def __init__(self) -> None:
        self.head, self.tail, self.dropped = b"", bytearray(), 0

    def add(self, data: bytes) -> None:
        room = HEAD - len(self.head)
        if room > 0:
            self.head, data = self.head + data[:room], data[room:]
        self.tail += data
        if (extra := len(self.tail) - TAIL) > 0:
            self.dropped += extra
            del self.tail[:extra]

    def text(self) -> str:
        cut = f"\n[{self.dropped:,} bytes left out]\n".encode() if self.dropped else b""
        return (self.head + cut + bytes(self.tail)).decode("utf-8", "replace")


class LineSplitter:
    """Hands on whole lines of a stream."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self.on_line, self.rest = on_line, b""

    def add(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.on_line(line.decode("utf-8", "replace"))
        if len(self.rest) > LONGEST:
            self.rest = self.rest[-LONGEST:]

    def end(self) -> None:
        if self.rest:
            self.on_line(self.rest.decode("utf-8", "replace"))


def run_limited(command: list[str], limits: ProcessLimits, environment: Mapping[str, str], folder: str,
                on_line: Callable[[str], None] | None = None, stop: Callable[[], bool] = lambda: False) -> EndedProcess:  # fmt: skip
    """Run a command to its end or to a limit. `on_line` is called with each line of standard output; `stop` says whether the farm ends."""
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    with process:
        try:
            return LimitedProcess(process, limits, on_line, stop).watch()
        except BaseException:
            process.kill()  # or leaving the block would wait for it
            raise


class LimitedProcess:
    """A process that runs, its output so far, and its deadline."""

    def __init__(self, process: subprocess.Popen[bytes], limits: ProcessLimits, on_line: Callable[[str], None] | None,
                 stop: Callable[[], bool]) -> None:  # fmt: skip
        self.process, self.limits, self.stop = process, limits, stop
        self.out, self.err = CappedText(), CappedText()
        self.lines = LineSplitter(on_line or (lambda line: None))
        self.began = self.heard = time.monotonic()

    def watch(self) -> EndedProcess:
        with self._events() as events:
            limit = self._until_exit(events)
            if limit:
                self._end(events)
            self._drain(events)
        self.process.wait()
        self.lines.end()
        code = self.process.returncode
        return EndedProcess(128 - code if code < 0 else code, time.monotonic() - self.began, limit, self.out.text(), self.err.text())

    @contextmanager
    def _events(self) -> Iterator[selectors.BaseSelector]:
        """The process's end and its output, to wait for."""
        assert self.process.stdout and self.process.stderr
        ended = os.pidfd_open(self.process.pid)
        try:
            with selectors.DefaultSelector() as events:
                events.register(ended, selectors.EVENT_READ)
                for stream in (self.process.stdout, self.process.stderr):
                    os.set_blocking(stream.fileno(), False)
                    events.register(stream, selectors.EVENT_READ, self.out if stream is self.process.stdout else self.err)
                yield events
        finally:
            os.close(ended)

    def _until_exit(self, events: selectors.BaseSelector) -> str:
        """Wait for the end of the process; the limit that it is over, if any."""
        look = self.began + POLL
        while True:
            now = time.monotonic()
            end = (self.heard if self.limits.silence else self.began) + self.limits.seconds
            if now >= end:
                return "time"
            if now >= look:
                look = now + POLL
                if self.stop():
                    return "stopped"
                if tree_memory(self.process.pid) > self.limits.memory:
                    return "memory"
            if self._read(events, min(end, look) - now):
                return ""

    def _read(self, events: selectors.BaseSelector, seconds: float) -> bool:
        """Read what comes within so many seconds; whether the process has ended."""
        ended = False
        for key, _ in events.select(max(seconds, 0)):
            if key.data is None:
                ended = True
                events.unregister(key.fileobj)
                continue
            data = os.read(key.fd, 1 << 16)
            key.data.add(data)
            if not data:
                events.unregister(key.fileobj)
            elif key.data is self.out:
                self.heard = time.monotonic()
                self.lines.add(data)
        return ended

    def _end(self, events: selectors.BaseSelector) -> None:
        """End the process: `softgen run` passes SIGTERM on to its program and cleans up. What is left of its session is killed."""
        self.process.terminate()
        until = time.monotonic() + GRACE
        while (left := until - time.monotonic()) > 0 and not self._read(events, left):
            pass
        self._kill_session()

    def _drain(self, events: selectors.BaseSelector) -> None:
        """Read what is left. Processes that the main one left behind may hold its output open: they are ended after a while."""
        until = time.monotonic() + DRAIN
        while events.get_map() and (left := until - time.monotonic()) > 0:
            self._read(events, left)
        if events.get_map():
            self._kill_session()

    def _kill_session(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def tree_memory(pid: int) -> int:
    """Bytes of memory of a process and all it has started: their own pages, and the largest shared part once, since a simulator and its
    program share the same buffers."""
    own, shared, todo = 0, 0, [pid]
    while todo:
        current = todo.pop()
        try:
            status = Path(f"/proc/{current}/status").read_text("ascii", "replace")
            tasks = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue  # it has ended
        own += _kibibytes(status, "RssAnon:")
        shared = max(shared, _kibibytes(status, "RssShmem:"))
        for task in tasks:
            with suppress(OSError):
                todo += map(int, Path(f"/proc/{current}/task/{task}/children").read_text("ascii").split())
    return (own + shared) << 10


def _kibibytes(status: str, name: str) -> int:
    _, found, rest = status.partition(name)
    return int(rest.split(None, 1)[0]) if found else 0

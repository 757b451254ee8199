"""Queues: submissions run in the order they came, one at a time on each engine.

A submission waits for its fences; meanwhile those of other contexts go on. One that runs for long lets others of its engine have a turn:
it is asked at every command and thread group whether time is up, and there it may pause.
"""

from __future__ import annotations

import errno
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from softgen.driver.fence import Fence

if TYPE_CHECKING:
    from softgen.driver.context import Context, Vm
    from softgen.driver.gem import Object

LINGER = 2.0  # seconds a line's thread waits for more work
SLICE = 0.05  # seconds until another context may have the engine


@dataclass(frozen=True)
class Bound:
    """A buffer in a submission."""

    thing: Object
    address: int
    handle: int
    flags: int
    relocations: int


@dataclass(eq=False)
class Submission:
    """One EXECBUFFER2."""

    sequence: int
    pid: int
    program: str
    context: Context
    engine: str
    vm: Vm
    bound: list[Bound]
    batch: int
    batch_index: int
    batch_start: int
    batch_size: int
    relocations: int
    flags: int
    fence: Fence
    after: list[Fence] = field(default_factory=list)


class Engine:
    """Whose turn it is: the one of the earliest round, and of those the one that came first."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: list[tuple[int, int]] = []  # (round, sequence)
        self.free, self.round = True, 0

    def take(self, turns: int, sequence: int) -> None:
        with self.changed:
            self.waiting.append((turns, sequence))
            while not (self.free and min(self.waiting) == (turns, sequence)):
                self.changed.wait()
            self.waiting.remove((turns, sequence))
            self.free = False

    def leave(self) -> None:
        with self.changed:
            self.free = True
            self.changed.notify_all()


class Turn:
    """A submission's hold on its engine."""

    def __init__(self, engine: Engine, submission: Submission) -> None:
        self.engine, self.submission, self.turns = engine, submission, engine.round
        self.until = 0.0

    def __enter__(self) -> Turn:
        self.engine.take(self.turns, self.submission.sequence)
        self.until = time.monotonic() + SLICE
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.leave()

    def _leave(self) -> None:
        """To the end of the line: behind all that wait now, before all that come later."""
        self.turns += 1
        self.engine.round = max(self.engine.round, self.turns)
        self.engine.leave()

    def pause(self) -> None:
        """Called often while it runs: let somebody else run, if somebody waits and it was long enough."""
        if self.engine.waiting and time.monotonic() > self.until:
            self._leave()
            self.__enter__()

    def wait(self, seconds: float) -> None:
        """It cannot go on now: the engine is free for others meanwhile."""
        self._leave()
        time.sleep(seconds)
        self.__enter__()


Execute = Callable[[Submission, Turn], None]
Failed = Callable[[Submission, BaseException], None]


class Queues:
    """A line of submissions for each context and engine, each with a thread while there is work, and a little longer."""

    def __init__(self, execute: Execute, failed: Failed) -> None:
        self.execute, self.failed = execute, failed
        self.engines: dict[str, Engine] = {}
        self.lines: dict[tuple[Context, str], queue.SimpleQueue[Submission]] = {}
        self.lock = threading.Lock()
        self.pending, self.less = 0, threading.Condition()

    def drain(self, seconds: float) -> bool:
        """Wait until everything is done, so long at most."""
        with self.less:
            return self.less.wait_for(lambda: not self.pending, seconds)

    def submit(self, submission: Submission) -> None:
        key = submission.context, submission.engine
        with self.less:
            self.pending += 1
        with self.lock:
            self.engines.setdefault(submission.engine, Engine())
            started = key in self.lines
            self.lines.setdefault(key, queue.SimpleQueue()).put(submission)
        if not started:
            threading.Thread(target=self._run, args=(key,), name=f"{submission.engine} context", daemon=True).start()

    def _run(self, key: tuple[Context, str]) -> None:
        line = self.lines[key]
        while True:
            try:
                submission = line.get(timeout=LINGER)
            except queue.Empty:
                with self.lock:
                    if line.empty():
                        del self.lines[key]
                        return
                continue
            self._one(submission)
            with self.less:
                self.pending -= 1
                self.less.notify_all()

    def _one(self, submission: Submission) -> None:
        signals, things = submission.fence.signals, [bound.thing for bound in submission.bound]
        signals.wait(lambda: all(fence.done for fence in submission.after), None)
        if submission.context.banned:
            submission.fence.signal(errno.EIO)
            return
        entered = False
        try:
            submission.vm.enter([(bound.thing, bound.address) for bound in submission.bound])  # before its turn: it may have to wait
            entered = True
            with Turn(self.engines[submission.engine], submission) as turn:
                self.execute(submission, turn)
            for thing in things:
                if thing.copied:
                    thing.copied.give_back()
        except BaseException as error:  # whatever went wrong, nobody may be left waiting
            submission.context.banned = True
            submission.context.guilty += 1
            self.failed(submission, error)
            submission.fence.signal(errno.EIO)
        else:
            submission.fence.signal()
        finally:
            if entered:
                submission.vm.leave(things)

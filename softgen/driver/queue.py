"""Queues: submissions run in the order they came, one at a time on each engine.

A submission waits for its fences; meanwhile those of other contexts go on. One that runs for long lets others of its engine have a turn:
it is asked at every command and thread group whether time is up, and there it may pause.

Where nothing has to be waited for and the work before was short, the thread that brings a submission runs it at once: waking another
thread would take longer than the work. If it takes long after all, somebody else goes on with what that thread does otherwise.
"""

from __future__ import annotations

import errno
import queue
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from softgen.driver.fence import Fence

if TYPE_CHECKING:
    from softgen.driver.context import Context, Vm
    from softgen.driver.gem import GemObject

LINGER = 2.0  # seconds a line's thread waits for more work
SLICE = 0.05  # seconds until another context may have the engine
SHORT = 0.001  # seconds of work for which a thread may be kept from what it does otherwise


class Bound(NamedTuple):
    """A buffer in a submission."""

    bo: GemObject
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
            if self.free and not self.waiting:
                self.free = False
                return
            self.waiting.append((turns, sequence))
            while not (self.free and min(self.waiting) == (turns, sequence)):
                self.changed.wait()
            self.waiting.remove((turns, sequence))
            self.free = False

    def leave(self) -> None:
        with self.changed:
            self.free = True
            self.changed.notify_all()


class Caller:
    """Who runs a submission: a thread of its own, or the one that brought it and has something else to do: `let_go` finds another."""

    def __init__(self, let_go: Callable[[], None] | None = None) -> None:
        self.let_go, self.until = let_go, time.monotonic() + SHORT

    def look(self) -> None:
        """Called often."""
        if self.let_go is not None and time.monotonic() > self.until:
            self.leave()

    def leave(self) -> None:
        """Before anything that may take long."""
        if self.let_go is not None:
            let_go, self.let_go = self.let_go, None
            let_go()


class Turn:
    """A submission's hold on its engine."""

    def __init__(self, engine: Engine, submission: Submission, caller: Caller | None = None) -> None:
        self.engine, self.submission, self.turns, self.caller = engine, submission, engine.round, caller or Caller()
        self.until = 0.0

    def __enter__(self) -> Turn:
        if not self.engine.free:
            self.caller.leave()
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
        self.caller.look()
        if self.engine.waiting and time.monotonic() > self.until:
            self._leave()
            self.__enter__()

    def wait(self, seconds: float) -> None:
        """It cannot go on now: the engine is free for others meanwhile."""
        self.caller.leave()
        self._leave()
        time.sleep(seconds)
        self.__enter__()


Execute = Callable[[Submission, Turn], None]
Failed = Callable[[Submission, BaseException], None]
Later = Callable[[Callable[[], None]], None]  # runs a submission; is given what to call if that takes long


class Line:
    """The submissions of a context on an engine, run one after another. All but `turn` is changed under the queues' lock."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Submission] = queue.SimpleQueue()
        self.turn = threading.Lock()  # held while one runs
        self.count = 0  # of those that wait or run
        self.served = False  # by a thread
        self.short = False  # was the last one?


class Queues:
    """A line of submissions for each context and engine, each with a thread while there is work for it, and a little longer."""

    def __init__(self, execute: Execute, failed: Failed) -> None:
        self.execute, self.failed = execute, failed
        self.engines: dict[str, Engine] = {}
        self.lines: weakref.WeakKeyDictionary[Context, dict[str, Line]] = weakref.WeakKeyDictionary()
        self.lock = threading.Lock()
        self.pending, self.less = 0, threading.Condition()

    def drain(self, seconds: float) -> bool:
        """Wait until everything is done, so long at most."""
        with self.less:
            return self.less.wait_for(lambda: not self.pending, seconds)

    def _line(self, submission: Submission) -> Line:
        self.engines.setdefault(submission.engine, Engine())
        return self.lines.setdefault(submission.context, {}).setdefault(submission.engine, Line())

    def _more(self, line: Line) -> None:
        line.count += 1
        with self.less:
            self.pending += 1

    def submit(self, submission: Submission) -> None:
        with self.lock:
            line = self._line(submission)
            self._more(line)
            line.waiting.put(submission)
            started, line.served = line.served, True
        if not started:
            threading.Thread(target=self._run, args=(line,), name=f"{submission.engine} context", daemon=True).start()

    def at_once(self, submission: Submission) -> Later | None:
        """What runs a submission in the thread that calls it, which it must soon; None: it has to be submitted."""
        with self.lock:
            line = self._line(submission)
            if line.count or not line.short or not all(fence.done for fence in submission.after):
                return None
            self._more(line)
            line.turn.acquire()  # it is free: nobody else is in the line
        return lambda let_go: self._one(line, submission, Caller(let_go))

    def _run(self, line: Line) -> None:
        while True:
            try:
                submission = line.waiting.get(timeout=LINGER)
            except queue.Empty:
                with self.lock:
                    if line.waiting.empty():
                        line.served = False
                        return
                continue
            line.turn.acquire()
            self._one(line, submission, Caller())
            del submission  # nobody's context is kept

    def _one(self, line: Line, submission: Submission, caller: Caller) -> None:
        """Whoever calls this has the line's turn, and gives it back."""
        if not all(fence.done for fence in submission.after):
            submission.fence.signals.wait(lambda: all(fence.done for fence in submission.after), None)
        began = time.monotonic()
        try:
            self._carry_out(submission, caller)
        finally:
            line.turn.release()
            with self.lock:
                line.count, line.short = line.count - 1, time.monotonic() - began < SHORT
            with self.less:
                self.pending -= 1
                self.less.notify_all()

    def _carry_out(self, submission: Submission, caller: Caller) -> None:
        if submission.context.banned:
            submission.fence.signal(errno.EIO)
            return
        entered, bos = False, [bound.bo for bound in submission.bound]
        try:
            # Before its turn: it may have to wait.
            submission.vm.enter([(bound.bo, bound.address) for bound in submission.bound], caller.leave)
            entered = True
            with Turn(self.engines[submission.engine], submission, caller) as turn:
                self.execute(submission, turn)
            for bo in bos:
                if bo.copied:
                    bo.copied.give_back()
        except BaseException as error:  # whatever went wrong, nobody may be left waiting
            submission.context.banned = True
            submission.context.guilty += 1
            try:
                self.failed(submission, error)
            finally:
                submission.fence.signal(errno.EIO)
        else:
            submission.fence.signal()
        finally:
            if entered:
                submission.vm.leave(bos)

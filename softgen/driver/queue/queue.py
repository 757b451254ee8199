"""Queues: submissions run in the order of their arrival, one at a time on each engine.

A submission waits for its fences; meanwhile those of other contexts go on. A submission that runs for long gives its engine slot to
others: it polls at every command and thread group, and may pause there.

Where nothing has to be waited for and the work before was short, the thread that submits also executes: waking another thread would
take longer than the work. If the work takes long after all, another thread takes over what that thread does otherwise.
"""

from __future__ import annotations

import errno
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from softgen.driver.errors import Errno
from softgen.driver.objects.fence import Fence
from softgen.errors import Unsupported

LINGER = 2.0  # seconds that a context queue's thread waits for more work
SLICE = 0.05  # seconds until another context may have the engine
SHORT = 0.001  # seconds of processor time for which a thread may be kept from what it does otherwise
PATIENT = 0.02  # the same where the program's thread waits for the work anyway
STRETCH = 10  # times as long by the clock: others may have the processors


class QueuedSubmission(Protocol):
    """The parts of a submission that queues use."""

    @property
    def sequence(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def fence(self) -> Fence: ...
    @property
    def after(self) -> Sequence[Fence]: ...
    @property
    def context(self) -> Any: ...  # banned, guilty, queues
    @property
    def vm(self) -> Any: ...  # enter, leave
    @property
    def bound(self) -> Any: ...  # a BufferList


SubmissionT = TypeVar("SubmissionT", bound=QueuedSubmission)


class EngineArbiter:
    """Who may use an engine: the waiting submission of the earliest round, and of those the one that came first."""

    def __init__(self) -> None:
        self.used = threading.Lock()  # held while a submission uses the engine
        self.changed = threading.Condition()
        self.waiting: list[tuple[int, int]] = []  # (round, sequence)
        self.round = 0

    def take(self, round: int, sequence: int) -> None:
        """Waits for the engine."""
        with self.changed:
            self.waiting.append((round, sequence))  # first: who leaves looks for it last
            while not (min(self.waiting) == (round, sequence) and self.used.acquire(blocking=False)):
                self.changed.wait()
            self.waiting.remove((round, sequence))

    def leave(self) -> None:
        self.used.release()
        if self.waiting:
            self.left()

    def left(self) -> None:
        """Those that wait look again."""
        with self.changed:
            self.changed.notify_all()


class Caller:
    """The host thread that runs a submission. `hand_over` finds another thread for what the one that submitted does otherwise."""

    def __init__(self, hand_over: Callable[[], None] | None = None, limit: float = math.inf,
                 completed: Callable[[], None] | None = None) -> None:  # fmt: skip
        """`limit`: seconds of processor time after which that is done; `completed` tells the program, which waits, that all is done."""
        self.hand_over, self.limit, self.completed = hand_over, limit, completed
        self.began, self.processor = time.monotonic(), time.thread_time()
        self.until = self.began + limit  # when the processor time is looked at

    def late(self, now: float) -> None:
        """`until` has passed: leaves, unless most of the time was spent on something else."""
        self.until = now + self.limit - self.spent()
        if now > self.until:
            self.leave()

    def spent(self) -> float:
        """Seconds of processor time, or more if it took very long nevertheless; of short work those by the clock, which are no fewer."""
        seconds = time.monotonic() - self.began
        return seconds if seconds < SHORT else max(time.thread_time() - self.processor, seconds / STRETCH)

    def leave(self) -> None:
        """Before anything that may take long."""
        if self.hand_over is not None:
            hand_over, self.hand_over = self.hand_over, None
            hand_over()


class EngineSlot(Generic[SubmissionT]):
    """A submission's use of its engine."""

    until: float  # when another may have it

    def __init__(self, engine: EngineArbiter, submission: SubmissionT, caller: Caller | None = None) -> None:
        self.engine, self.submission, self.round, self.caller = engine, submission, engine.round, caller or Caller()

    def __enter__(self) -> EngineSlot[SubmissionT]:
        engine = self.engine
        if engine.waiting or not engine.used.acquire(blocking=False):
            self.caller.leave()
            engine.take(self.round, self.submission.sequence)
        self.until = time.monotonic() + SLICE
        return self

    def __exit__(self, *_: object) -> None:
        engine = self.engine
        engine.used.release()
        if engine.waiting:
            engine.left()

    def _leave(self) -> None:
        """Gives the engine up: to those that wait now, before those that come later."""
        self.round += 1
        self.engine.round = max(self.engine.round, self.round)
        self.engine.leave()

    def pause(self) -> None:
        """Lets another submission run if one waits and this one's time slice is over; polled on the hot path."""
        caller = self.caller
        if caller.hand_over is not None and (now := time.monotonic()) > caller.until:
            caller.late(now)
        if self.engine.waiting and time.monotonic() > self.until:
            self._leave()
            self.__enter__()

    def wait(self, seconds: float, woken: threading.Event) -> None:
        """Leaves the engine to others for a while, or until an event: this submission cannot go on now."""
        self.caller.leave()
        self._leave()
        woken.wait(seconds)
        self.__enter__()


class DeferredRun(Protocol):
    """Runs a submission; calls `hand_over` if that takes long, and may call `completed` before its own last steps."""

    def __call__(self, hand_over: Callable[[], None], completed: Callable[[], None] | None = None) -> None: ...


class ContextQueue(Generic[SubmissionT]):
    """The submissions to an entry of a context's engine map, run one after another. All but `running` is changed under the queues' lock."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[SubmissionT] = queue.SimpleQueue()
        self.running = threading.Lock()  # held while one runs
        self.count = 0  # of those that wait or run
        self.served = False  # by a thread
        self.spent = math.inf  # seconds of the last one


class Queues(Generic[SubmissionT]):
    """A queue for each context and entry of its engine map, each with a thread while there is work for it, and a little longer."""

    def __init__(self, execute: Callable[[SubmissionT, EngineSlot[SubmissionT]], None],
                 failed: Callable[[SubmissionT, BaseException], None]) -> None:  # fmt: skip
        self.execute, self.failed = execute, failed
        self.engines: dict[str, EngineArbiter] = {}
        self.lock = threading.Lock()
        self.pending, self.less = 0, threading.Condition(self.lock)
        self.draining = False

    def drain(self, seconds: float) -> bool:
        """Wait until everything is done, so long at most."""
        with self.less:
            self.draining = True
            return self.less.wait_for(lambda: not self.pending, seconds)

    def _queue(self, submission: SubmissionT) -> ContextQueue[SubmissionT]:
        queues: dict[tuple[str, int], ContextQueue[SubmissionT]] = submission.context.queues
        found = queues.get((submission.engine, submission.slot))
        if found is None:
            found = queues[submission.engine, submission.slot] = ContextQueue()
            self.engines.setdefault(submission.engine, EngineArbiter())
        return found

    def submit(self, submission: SubmissionT) -> None:
        with self.lock:
            context_queue = self._queue(submission)
            context_queue.count += 1
            self.pending += 1
            context_queue.waiting.put(submission)
            started, context_queue.served = context_queue.served, True
        if not started:
            thread = threading.Thread(target=self._run, args=(context_queue,), name=f"{submission.engine} context", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._drop(context_queue, submission)
                raise Errno(errno.ENOMEM, "the server has no thread left for a context") from None

    def _drop(self, context_queue: ContextQueue[SubmissionT], refused: SubmissionT) -> None:
        """No thread will take what waits: the submission that is refused, and those of others that came meanwhile, which are lost."""
        with self.lock:
            context_queue.served, dropped = False, list[SubmissionT]()
            while not context_queue.waiting.empty():
                dropped.append(context_queue.waiting.get_nowait())
            context_queue.count -= len(dropped)
            self.pending -= len(dropped)
        for submission in dropped:
            submission.context.banned |= submission is not refused
            submission.fence.signal(errno.ENOMEM)

    def at_once(self, submission: SubmissionT, awaited: bool = False) -> DeferredRun | None:
        """A function that runs the submission in the calling thread, to be called soon; None: it has to be submitted. `awaited`: the
        program's thread does nothing else meanwhile."""
        limit = PATIENT if awaited else SHORT
        with self.lock:
            context_queue = self._queue(submission)
            if context_queue.count or context_queue.spent > limit or submission.after and not all(fence.done for fence in submission.after):
                return None
            context_queue.count += 1
            self.pending += 1
            context_queue.running.acquire()  # it is free: the queue is empty
        return lambda hand_over, completed=None: self._one(context_queue, submission, Caller(hand_over, limit, completed))

    def _run(self, context_queue: ContextQueue[SubmissionT]) -> None:
        while True:
            try:
                submission = context_queue.waiting.get(timeout=LINGER)
            except queue.Empty:
                with self.lock:
                    if context_queue.waiting.empty():
                        context_queue.served = False
                        return
                continue
            context_queue.running.acquire()
            self._one(context_queue, submission, Caller())
            del submission  # so that its context can be freed

    def _one(self, context_queue: ContextQueue[SubmissionT], submission: SubmissionT, caller: Caller) -> None:
        """Runs one submission; the caller holds `running`, which this releases."""
        if submission.after:
            submission.fence.signals.wait(lambda: all(fence.done for fence in submission.after), None)
        try:
            self._carry_out(submission, caller)
        finally:
            context_queue.running.release()
            with self.lock:
                context_queue.count, context_queue.spent = context_queue.count - 1, caller.spent()
                self.pending -= 1
                if not self.pending and self.draining:
                    self.less.notify_all()

    def _carry_out(self, submission: SubmissionT, caller: Caller) -> None:
        if submission.context.banned:
            submission.fence.signal(errno.EIO)
            return
        vm, bound, entered = submission.vm, submission.bound, False
        try:
            vm.enter(bound, caller.leave)  # before it takes its slot: it may have to wait
            entered = True
            with EngineSlot(self.engines[submission.engine], submission, caller) as slot:
                self.execute(submission, slot)
            for copy in bound.copies:
                copy.give_back()
        except BaseException as error:  # after any error the fence must signal
            # After a fault the kernel bans a context. What is not simulated is no fault of the program: its context stays in use, for
            # Mesa drops the batch that a banned one refuses, and would wait for ever for the queries in it.
            submission.context.banned |= not isinstance(error, Unsupported)
            submission.context.guilty += 1
            try:
                self.failed(submission, error)
            finally:
                submission.fence.signal(errno.EIO)
        else:
            submission.fence.signal()
        finally:
            if entered:
                vm.leave(bound)

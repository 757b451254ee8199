"""Dispatches on compiled engines: groups handed out in chunks to host threads.

The calling thread works too; it alone polls the time limit and Ctrl-C, for which compiled code returns at intervals. With one host thread
groups run in order, and results are reproducible.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from softgen.eu.engine import Engine
from softgen.eu.interpreter import Program
from softgen.threads import places
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut
from softgen.threads.shared import BindingTableEntries, SharedDispatch
from softgen.threads.worker import SLICE, Worker, WorkerState

FIRST_CHUNK = 16  # groups, while the time that one takes is unknown
MIN_PARALLEL_TIME = 0.002  # seconds of work left that justify another host thread
POLL_INTERVAL = 0.02  # seconds between polls of the time limit while other threads finish


class Workers:
    """State of the host threads, and binding entries, kept from one dispatch to the next."""

    def __init__(self, threads: int) -> None:
        self.threads, self.entries = threads, BindingTableEntries()
        self._states: list[WorkerState] = []

    def __getitem__(self, number: int) -> WorkerState:
        while len(self._states) <= number:
            self._states.append(WorkerState())
        return self._states[number]


class Stopped(Exception):
    """Another worker met an error, or time is up."""


class WorkQueue:
    """The groups of a dispatch, handed out in chunks."""

    def __init__(self, total: int) -> None:
        self.total, self.next, self.workers = total, 0, 1
        self.seconds: float | None = None  # of a group, as measured last
        self._lock = threading.Lock()

    def take(self) -> tuple[int, int] | None:
        with self._lock:
            first, left = self.next, self.total - self.next
            if not left:
                return None
            size = FIRST_CHUNK if self.seconds is None else max(int(SLICE * 1e-9 / self.seconds), 1)
            share = left if self.workers == 1 else -(-left // (2 * self.workers))
            self.next = first + min(size, share)
            return first, self.next

    def measured(self, seconds: float, groups: int) -> None:
        self.seconds = max(seconds / groups, 1e-9)

    @property
    def left(self) -> float:
        """Seconds of work left; 0 before the first measurement."""
        return (self.total - self.next) * (self.seconds or 0.0)


class WorkerPool:
    """The workers of one dispatch."""

    def __init__(self, shared: SharedDispatch, workers: Workers, timed_out: TimedOut) -> None:
        self.shared, self.workers, self.timed_out = shared, workers, timed_out
        self.limit = min(workers.threads, shared.dispatch.concurrent_groups)
        self.queue = WorkQueue(shared.dispatch.groups)
        self.stopped = False
        self.late = False  # the time limit has passed
        self.errors: list[tuple[int, BaseException]] = []
        self.done: list[Finished] = []
        self.others: list[threading.Thread] = []

    def run(self) -> Iterator[Finished]:
        first = Worker(self.shared, 0, self.workers[0], self._poll_limit)
        try:
            while not self.stopped and (chunk := self.queue.take()):
                if self.timed_out():
                    raise places.timed_out_before(self.shared.dispatch, chunk[0], self.shared.program)
                self._work(first, *chunk)
                yield from self._finished()
                if not self.others and self.queue.left > MIN_PARALLEL_TIME:
                    self._start_others()
        except Stopped:
            pass
        except GeneratorExit:
            self.stopped = True
            self._wait()
            raise
        except BaseException as error:
            self.errors.append((int(first.dispatch.first), error))
            self.stopped = True
        self._wait()
        yield from self._finished()
        if self.errors:  # that of the earliest group, as on the reference engine
            raise min(self.errors, key=lambda error: error[0])[1]

    def _finished(self) -> Iterator[Finished]:
        while self.done:
            yield self.done.pop()

    def _work(self, worker: Worker, first: int, last: int) -> None:
        began = time.perf_counter()
        self.done.append(worker.run(first, last))
        self.queue.measured(time.perf_counter() - began, last - first)

    def _start_others(self) -> None:
        for number in range(1, self.limit):
            worker = Worker(self.shared, number, self.workers[number], self._poll)
            thread = threading.Thread(target=self._other, args=(worker,), name=f"groups {number}", daemon=True)
            self.others.append(thread)
            self.queue.workers = number + 1
            thread.start()

    def _other(self, worker: Worker) -> None:
        try:
            while not self.stopped and (chunk := self.queue.take()):
                self._work(worker, *chunk)
        except Stopped:
            pass
        except BaseException as error:  # the calling thread raises it
            self.errors.append((int(worker.dispatch.first), error))
            self.stopped = True

    def _poll(self, worker: Worker) -> None:
        if self.late:
            raise places.timed_out(worker.place(worker.busy()))
        if self.stopped:
            raise Stopped

    def _poll_limit(self, worker: Worker) -> None:
        self.late = self.late or self.timed_out()
        self._poll(worker)

    def _wait(self) -> None:
        try:
            for thread in self.others:
                while thread.is_alive():
                    thread.join(POLL_INTERVAL)
                    if not self.stopped and self.timed_out():
                        self.late = True
        finally:  # also after Ctrl-C: no thread may go on writing memory
            self.stopped = True
            for thread in self.others:
                thread.join()


def run(context: DispatchContext, dispatch: ThreadDispatch, program: Program, engine: Engine, workers: Workers,
        timed_out: TimedOut) -> Iterator[Finished]:  # fmt: skip
    """All groups of a dispatch. Raises Unsupported, before anything ran, where compiled code cannot reach the memory."""
    if not dispatch.groups or not dispatch.threads:
        return
    yield from WorkerPool(SharedDispatch(context, dispatch, program, engine, workers.entries), workers, timed_out).run()

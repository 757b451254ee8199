"""C loops that start batches of threads, each on a host thread of its own.

The calling thread is worker 0; the others come from one pool of host threads, which is made once in a process. Only the calling thread
polls the time limit and Ctrl-C, for which compiled code returns at intervals. With one host thread groups run in order, and results are
reproducible.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from softgen.threads import places
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import Finished, NativeLoop, TimedOut
from softgen.threads.groups import GroupCache
from softgen.threads.kept_loop import LoopCache
from softgen.threads.shared import SharedDispatch
from softgen.threads.worker import Worker, WorkerState

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MAX_THREADS = 1024
POLL_INTERVAL = 0.02  # seconds between polls of the time limit while other threads finish


@cache
def host_pool() -> ThreadPoolExecutor:
    """The host threads of this process: as many as dispatches have needed at the same time; idle ones are used again."""
    from concurrent.futures import ThreadPoolExecutor  # imported late: most dispatches need one thread

    os.register_at_fork(after_in_child=host_pool.cache_clear)  # a child has none of its parent's threads
    return ThreadPoolExecutor(MAX_THREADS, "softgen worker")


class WorkerSet:
    """The state of a dispatch's workers and the bindings they use, kept from one dispatch to the next."""

    def __init__(self, threads: int) -> None:
        self.threads, self.bindings = threads, BindingCache()
        self.loops = LoopCache(self.bindings)
        self.groups = GroupCache(threads, self.bindings)
        self._states: list[WorkerState] = []

    def __getitem__(self, number: int) -> WorkerState:
        while len(self._states) <= number:
            self._states.append(WorkerState())
        return self._states[number]


class WorkStopped(Exception):
    """Another worker met an error, or the time limit has passed."""


class ParallelRun:
    """A dispatch on several workers."""

    def __init__(self, shared: SharedDispatch, workers: WorkerSet, timed_out: TimedOut) -> None:
        self.shared, self.workers, self.timed_out = shared, workers, timed_out
        self.stopped = False
        self.late = False  # the time limit has passed
        self.errors: list[tuple[int, BaseException]] = []
        self.done: list[Finished] = []
        self.others: list[Future[None]] = []

    def run(self) -> Iterator[Finished]:
        """All of the work, with counts as it goes on."""
        worker = Worker(self.shared, 0, self.workers[0], self._poll_limit)
        try:
            yield from self._lead(worker)
        except WorkStopped:
            pass
        except GeneratorExit:
            self.stopped = True
            self._wait()
            raise
        except BaseException as error:
            self.errors.append((int(worker.dispatch.first), error))
            self.stopped = True
        self._wait()
        yield from self._finished()
        if self.errors:  # that of the earliest group, as on the reference engine
            raise min(self.errors, key=lambda error: error[0])[1]

    def _lead(self, worker: Worker) -> Iterator[Finished]:
        """The calling thread's part."""
        raise NotImplementedError

    def _follow(self, worker: Worker, number: int) -> None:
        """The part of a thread of the pool."""
        raise NotImplementedError

    def _finished(self) -> Iterator[Finished]:
        while self.done:
            yield self.done.pop()

    def _start(self, numbers: range) -> None:
        """Starts other workers."""
        for number in numbers:
            worker = Worker(self.shared, number, self.workers[number], self._poll)
            self.others.append(host_pool().submit(self._other, worker, number))

    def _other(self, worker: Worker, number: int) -> None:
        try:
            if not self.stopped:
                self._follow(worker, number)
        except WorkStopped:
            pass
        except BaseException as error:  # the calling thread raises it
            self.errors.append((int(worker.dispatch.first), error))
            self.stopped = True

    def _poll(self, worker: Worker) -> None:
        if self.late:
            raise places.timed_out(worker.place(worker.busy()))
        if self.stopped:
            raise WorkStopped

    def _poll_limit(self, worker: Worker) -> None:
        self.late = self.late or self.timed_out()
        self._poll(worker)

    def _wait(self) -> None:
        try:
            for future in self.others:
                while not future.done():
                    if not self._may_start_late() and future.cancel():
                        break
                    _wait_for(future, POLL_INTERVAL)
                    if not self.stopped and self.timed_out():
                        self.late = True
        finally:  # also after Ctrl-C: no thread may go on writing memory
            self.stopped = True
            for future in self.others:
                while not future.cancel() and not future.done():
                    _wait_for(future, POLL_INTERVAL)

    def _may_start_late(self) -> bool:
        """Whether a worker that has not started yet still has work."""
        return False


def _wait_for(future: Future[None], seconds: float) -> None:
    from concurrent.futures import wait

    wait([future], seconds)


class LoopRun(ParallelRun):
    """C loops, one for each worker; what each does is its own affair."""

    def __init__(self, shared: SharedDispatch, workers: WorkerSet, timed_out: TimedOut, loops: Sequence[NativeLoop]) -> None:
        super().__init__(shared, workers, timed_out)
        self.loops = loops

    def _lead(self, worker: Worker) -> Iterator[Finished]:
        self._start(range(1, len(self.loops)))
        self._follow(worker, 0)
        yield from self._finished()

    def _follow(self, worker: Worker, number: int) -> None:
        loop = self.loops[number]
        self.done.append(worker.drive(loop.function, loop.bind(worker.address)))

    def _may_start_late(self) -> bool:
        return not self.stopped

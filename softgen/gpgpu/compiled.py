"""Dispatches on compiled engines: groups handed out in chunks to host threads.

The calling thread works too, and is the one that looks at the time and at Ctrl-C: compiled code comes back every now and then.
With one host thread groups run in order and everything is reproducible.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from softgen.eu.engine import Engine
from softgen.eu.interpreter import KernelProgram
from softgen.gpgpu import group
from softgen.gpgpu.job import Entries, Job, most_at_once
from softgen.gpgpu.walker import Done, Plan, Spent, Surroundings
from softgen.gpgpu.worker import SLICE, Room, Worker

FIRST = 16  # groups of a chunk while nobody knows how long one takes
WORTH = 0.002  # seconds of work that pay for waking another host thread
PATIENCE = 0.02  # seconds between looks at the time while others finish


class Rooms:
    """Rooms of host threads, and one for surfaces, kept from one dispatch to the next."""

    def __init__(self, threads: int) -> None:
        self.threads, self.entries = threads, Entries()
        self._rooms: list[Room] = []

    def __getitem__(self, number: int) -> Room:
        while len(self._rooms) <= number:
            self._rooms.append(Room())
        return self._rooms[number]


class Stopped(Exception):
    """Another worker met an error, or time is up."""


class Chunks:
    """The groups of a dispatch, given away piece by piece."""

    def __init__(self, total: int) -> None:
        self.total, self.next, self.workers = total, 0, 1
        self.seconds: float | None = None  # a group takes, as measured last
        self._lock = threading.Lock()

    def take(self) -> tuple[int, int] | None:
        with self._lock:
            first, left = self.next, self.total - self.next
            if not left:
                return None
            size = FIRST if self.seconds is None else max(int(SLICE * 1e-9 / self.seconds), 1)
            share = left if self.workers == 1 else -(-left // (2 * self.workers))
            self.next = first + min(size, share)
            return first, self.next

    def measured(self, seconds: float, groups: int) -> None:
        self.seconds = max(seconds / groups, 1e-9)

    @property
    def left(self) -> float:
        """Seconds of work, as far as that is known."""
        return (self.total - self.next) * (self.seconds or 0.0)


class Crew:
    """The workers of one dispatch."""

    def __init__(self, job: Job, rooms: Rooms, most: int, spent: Spent) -> None:
        self.job, self.rooms, self.most, self.spent = job, rooms, min(rooms.threads, most), spent
        self.chunks = Chunks(job.plan.count)
        self.stopped = False
        self.late = False
        self.errors: list[tuple[int, BaseException]] = []
        self.done: list[Done] = []
        self.others: list[threading.Thread] = []

    def run(self) -> Iterator[Done]:
        first = Worker(self.job, 0, self.rooms[0], self._look_and_ask)
        try:
            while not self.stopped and (chunk := self.chunks.take()):
                if self.spent():
                    raise group.too_late(self.job.plan.group(chunk[0]), self.job.program)
                self._work(first, *chunk)
                yield from self._finished()
                if not self.others and self.chunks.left > WORTH:
                    self._call_others()
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
        if self.errors:  # the one of the earliest group, as the reference would have it
            raise min(self.errors, key=lambda one: one[0])[1]

    def _finished(self) -> Iterator[Done]:
        while self.done:
            yield self.done.pop()

    def _work(self, worker: Worker, first: int, last: int) -> None:
        began = time.perf_counter()
        self.done.append(worker.run(first, last))
        self.chunks.measured(time.perf_counter() - began, last - first)

    def _call_others(self) -> None:
        for number in range(1, self.most):
            worker = Worker(self.job, number, self.rooms[number], self._look)
            thread = threading.Thread(target=self._other, args=(worker,), name=f"groups {number}", daemon=True)
            self.others.append(thread)
            self.chunks.workers = number + 1
            thread.start()

    def _other(self, worker: Worker) -> None:
        try:
            while not self.stopped and (chunk := self.chunks.take()):
                self._work(worker, *chunk)
        except Stopped:
            pass
        except BaseException as error:  # the calling thread raises it
            self.errors.append((int(worker.dispatch.first), error))
            self.stopped = True

    def _look(self, worker: Worker) -> None:
        if self.late:
            raise group.late(worker.place(worker.busy()))
        if self.stopped:
            raise Stopped

    def _look_and_ask(self, worker: Worker) -> None:
        self.late = self.late or self.spent()
        self._look(worker)

    def _wait(self) -> None:
        try:
            for thread in self.others:
                while thread.is_alive():
                    thread.join(PATIENCE)
                    if not self.stopped and self.spent():
                        self.late = True
        finally:  # Ctrl-C: nobody is left behind that writes memory
            self.stopped = True
            for thread in self.others:
                thread.join()


def run(around: Surroundings, plan: Plan, program: KernelProgram, engine: Engine, rooms: Rooms, spent: Spent) -> Iterator[Done]:
    """Every group of a dispatch. Unsupported, before anything ran, where compiled code cannot reach the memory."""
    if not plan.count or not plan.threads:
        return
    yield from Crew(Job(around, plan, program, engine, rooms.entries), rooms, most_at_once(around, plan), spent).run()

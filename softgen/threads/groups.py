"""Groups of a dispatch on compiled engines, shared among host threads.

The calling thread is worker 0; others run on helpers (helpers.c), without Python. Each takes a chunk of groups after another in C code, and
returns where Python is needed: then all return, the calling thread answers for each of them, and they go on. Only the calling thread polls
the time limit and Ctrl-C, for which compiled code returns at intervals. With one host thread groups run in order, and results are
reproducible.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from softgen.errors import SoftgenError
from softgen.threads import places, scheduler
from softgen.threads.dispatch import Finished, TimedOut
from softgen.threads.scheduler import GroupShare, ReturnReason, WorkerPart
from softgen.threads.shared import SharedDispatch
from softgen.threads.worker import SLICE, Worker

if TYPE_CHECKING:
    from softgen.threads.pool import WorkerSet

MIN_PARALLEL_TIME = 0.0002  # seconds of work that justify another host thread


class GroupRun:
    """One dispatch, from its first group to its last."""

    def __init__(self, shared: SharedDispatch, workers: WorkerSet, timed_out: TimedOut) -> None:
        self.shared, self.states, self.timed_out = shared, workers, timed_out
        dispatch = shared.dispatch
        self.limit = min(workers.threads, dispatch.concurrent_groups, dispatch.groups)
        self.share = GroupShare(end=dispatch.groups)
        self.workers: list[Worker] = []
        self.parts = (WorkerPart * 0)()
        self.failed: tuple[int, SoftgenError] | None = None  # the first group that failed, and why
        self.done = Finished(0, 0)
        self.reconsidering = False  # workers end their groups, to go on with better code if there is some

    def run(self) -> Iterator[Finished]:
        """All of the work, with counts as it goes on."""
        if self.timed_out():
            raise places.timed_out_before(self.shared.dispatch, 0, self.shared.program)
        began, paces = time.perf_counter(), self.states.paces
        self._staff(paces.get(self.shared.program, 0.0) * self.share.end)
        try:
            while self._unfinished():
                scheduler.run_parts(self.parts)
                yield self._finished()
                self._answer()
        except BaseException:  # threads may have been left in the middle
            self._mark_dirty()
            raise
        if self.failed is not None:
            self._mark_dirty()
            raise self.failed[1]
        paces[self.shared.program] = (time.perf_counter() - began) * len(self.workers) / self.share.end

    def _staff(self, seconds: float) -> None:
        """Workers for so many seconds of work; unknown if 0: a worker that is alone asks for help."""
        wanted = self.limit if seconds > self.limit * MIN_PARALLEL_TIME else 1 + int(seconds / max(MIN_PARALLEL_TIME, 1e-9))
        for number in range(len(self.workers), min(wanted, self.limit)):
            self.workers.append(Worker(self.shared, number, self.states[number], self._poll))
        joined = [worker.join(self.share) for worker in self.workers[len(self.parts) :]]
        self.parts = (WorkerPart * len(self.workers))(*self.parts, *joined)
        self.share.workers = len(self.workers)
        self.share.worthwhile = max(int(MIN_PARALLEL_TIME * 1e9), 1) if len(self.workers) < self.limit else 0

    def _unfinished(self) -> bool:
        """Whether groups are left; after a failure only those before it matter, since the first one is reported."""
        if self.failed is None:
            return self.share.next < self.share.end or any(worker.unfinished for worker in self.workers)
        return any(worker.unfinished and worker.dispatch.first < self.failed[0] for worker in self.workers)

    def _answer(self) -> None:
        """Does what workers returned for."""
        self.share.halted, help_wanted, late = 0, False, False
        for worker, part in zip(self.workers, self.parts, strict=True):
            why = None if part.signal else worker.call.record.result
            if not part.done or why == ReturnReason.DONE:
                continue
            help_wanted |= why == ReturnReason.HELP
            late |= why == ReturnReason.DEADLINE
            if why not in (ReturnReason.HELP, ReturnReason.DEADLINE):
                self._answer_one(worker, why)
        if self.reconsidering and not late:
            self._choose()
        if late:
            self._late()
        if help_wanted:
            self._staff(self.limit * MIN_PARALLEL_TIME + 1.0)

    def _answer_one(self, worker: Worker, why: int | None) -> None:
        try:
            worker.answer(why)
        except SoftgenError as error:
            group = int(worker.dispatch.first)
            if self.failed is None or group < self.failed[0]:
                self.failed = group, error
            self.share.next = self.share.end
            worker.dispatch.first, worker.dispatch.inside = worker.dispatch.last, 0

    def _late(self) -> None:
        """The deadline has passed: the time limit is polled, and the engine may have better code by now."""
        for worker in self.workers:
            self._poll(worker)
            worker.dispatch.deadline = time.monotonic_ns() + SLICE
        if self.share.next < self.share.end:
            self._staff(self.limit * MIN_PARALLEL_TIME + 1.0)
        chosen = self.workers[0].chosen
        if chosen is not None and not self.shared.engine.settled(chosen):
            self._choose()
            self.reconsidering = any(worker.dispatch.inside for worker in self.workers)
            self.share.halted = int(self.reconsidering)  # until all are between groups

    def _choose(self) -> None:
        """Chooses the code of the next groups, of workers that are between two."""
        self.reconsidering = False
        for worker in self.workers:
            if not worker.dispatch.inside:
                worker.choose()

    def _poll(self, worker: Worker) -> None:
        if self.timed_out():
            raise places.timed_out(worker.place(worker.busy()))

    def _finished(self) -> Finished:
        """Counts since the last call."""
        threads = sum(int(worker.dispatch.threads_done) for worker in self.workers)
        instructions = sum(int(worker.dispatch.instructions) for worker in self.workers)
        new = Finished(threads - self.done.threads, instructions - self.done.instructions)
        self.done = Finished(threads, instructions)
        self.shared.engine.ran(self.shared.program, new.instructions)
        return new

    def _mark_dirty(self) -> None:
        for worker in self.workers:
            worker.state.mark_dirty()

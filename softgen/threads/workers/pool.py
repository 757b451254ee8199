"""C loops that start batches of threads, each on a host thread of its own.

The calling thread is worker 0; the others run on helpers (helpers.c), without Python. A loop returns where Python is needed: the calling
thread answers for each of them when all have returned, and those that are not done go on. Compiled code returns at intervals, for polls
of the time limit and of Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from softgen.threads import places
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import Finished, NativeLoop, TimedOut
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import ReturnReason, WorkerPart
from softgen.threads.workers.group_cache import GroupCache
from softgen.threads.workers.kept_loop import LoopCache
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import Worker, WorkerState, answer_parts


class WorkerSet:
    """The state of a dispatch's workers and the bindings they use, kept from one dispatch to the next."""

    def __init__(self, threads: int, strips: bool) -> None:
        self.threads, self.bindings = threads, BindingCache()
        self.loops = LoopCache(self.bindings)
        self.groups = GroupCache(threads, self.bindings, strips)
        self._states: list[WorkerState] = []

    def __getitem__(self, number: int) -> WorkerState:
        while len(self._states) <= number:
            self._states.append(WorkerState())
        return self._states[number]


class LoopRun:
    """C loops, one for each worker; what each does is its own affair."""

    def __init__(self, shared: SharedDispatch, workers: WorkerSet, timed_out: TimedOut, loops: Sequence[NativeLoop]) -> None:
        self.timed_out = timed_out
        self.workers = [Worker(shared, number, workers[number], self._poll) for number in range(len(loops))]
        self.loops = loops

    def run(self) -> Iterator[Finished]:
        """All of the work, with counts of each loop that is done."""
        try:
            left = [(worker, worker.loop_part(loop)) for worker, loop in zip(self.workers, self.loops, strict=True)]
            while left:
                parts = (WorkerPart * len(left))(*(part for _, part in left))
                scheduler.run_parts(parts)
                returned = [(worker, part) for (worker, _), part in zip(left, parts, strict=True)]
                left = [(worker, part) for worker, part in returned if part.signal or part.result != ReturnReason.DONE]
                unfinished = {worker for worker, _ in left}
                yield from (worker.finished() for worker, _ in returned if worker not in unfinished)
                answer_parts(left)
        except BaseException:  # threads were left in the middle
            for worker in self.workers:
                worker.state.mark_dirty()
            raise

    def _poll(self, worker: Worker) -> None:
        if self.timed_out():
            raise places.timed_out(worker.place(worker.busy()))

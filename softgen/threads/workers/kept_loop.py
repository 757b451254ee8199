"""A C loop on the calling thread, with its worker kept for the next dispatch by the same record.

In:  a ThreadDispatch that a pipeline keeps from draw to draw, and its loop. Out: memory changed; counts.

What can change between two dispatches by one record is compared before each: the kernel's bytes (ProgramCache), the state that bindings
were resolved from (DispatchBindings.current), base addresses, and the code that the engine has for the kernel (Worker).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from softgen.eu.engine_protocol import CompilerEngine
from softgen.memory.guard import FaultRecord
from softgen.threads import places
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import DispatchContext, ThreadDispatch, TimedOut, never
from softgen.threads.native.scheduler import WorkerPart
from softgen.threads.programs import DispatchProgram
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import Worker, WorkerState, answer_parts

if TYPE_CHECKING:
    from softgen.threads.statistics import KernelStatistics

MOST_KEPT = 8  # records


class KeptLoop:
    """The worker of a dispatch with one loop; it has thread blocks of its own, so that they stay as the last dispatch left them."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine,
                 bindings: BindingCache, state: WorkerState) -> None:  # fmt: skip
        self.dispatch, self.program, self.engine = dispatch, program, engine
        self.shared = SharedDispatch(context, dispatch, program, engine, bindings)
        self.worker = Worker(self.shared, 0, state, self._poll)
        self.workers = [self.worker]  # for loops that share its work
        self.free: list[WorkerState] = []  # for more workers
        self._timed_out: TimedOut = never
        self.statistics: KernelStatistics | None = None  # of the kernel, for a caller that runs the loop

    # -- for a caller that compares all that itself, in C, and calls the loop (threads_begin of threads.h) ------------------------

    def ready(self) -> None:
        """Chooses code; before the first run, and after a run while the engine may have better code."""
        for worker in self.workers:
            worker.choose()

    def workers_for(self, loops: int) -> list[Worker]:
        """Workers for so many loops at the same time; the first is that of the calling thread."""
        while len(self.workers) < loops:
            made = Worker(self.shared, len(self.workers), self.free.pop() if self.free else WorkerState(self.worker.state.fill), self._poll)
            made.join()
            self.workers.append(made)
        return self.workers[:loops]

    @property
    def settled(self) -> bool:
        """Whether the code that was chosen stays the engine's choice."""
        chosen = self.worker.chosen
        return chosen is not None and self.engine.settled(chosen)

    def used_in(self, context: DispatchContext) -> None:
        """Errors and warnings are reported to this context, instructions that were not decoded yet are read from its memory."""
        self.program.used_in(context)
        self.shared.report_to(context)

    def answer(self, context: DispatchContext, why: int | None, timed_out: TimedOut, record: FaultRecord) -> None:
        """Does what a loop returned for (threads.h), or raises; None: an access to memory that is not mapped, which `record` describes."""
        ctypes.memmove(ctypes.addressof(self.worker.call.record), ctypes.addressof(record), ctypes.sizeof(record))
        self.used_in(context)
        self._timed_out = timed_out
        try:
            self.worker.answer(why)
        except BaseException:  # threads were left in the middle
            self.worker.state.mark_dirty()
            raise

    def answer_parts(self, context: DispatchContext, parts: Sequence[WorkerPart], timed_out: TimedOut) -> None:
        """Does what loops of several workers returned for."""
        self.used_in(context)
        self._timed_out = timed_out
        held = {worker.address: worker for worker in self.workers}
        try:
            answer_parts([(held[part.worker], part) for part in parts])
        except BaseException:
            for worker in self.workers:
                worker.state.mark_dirty()
            raise

    def _poll(self, worker: Worker) -> None:
        self.shared.reports.context.told(lambda: worker.place(worker.busy()))
        if self._timed_out():
            raise places.timed_out(worker.place(worker.busy()))


class LoopCache:
    """Kept loops by the identity of their records; those used last come last. One dispatch at a time uses it."""

    def __init__(self, bindings: BindingCache, fill: int = 0) -> None:
        self.bindings, self.fill = bindings, fill
        self._kept: dict[int, KeptLoop] = {}
        self._free: list[WorkerState] = []

    def take(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine) -> KeptLoop:
        """The loop for a record, ready to run; until it comes back nobody else gets it."""
        kept = self._kept.pop(id(dispatch), None)
        if kept is not None and (kept.engine is not engine or not kept.shared.holds(context, program)):
            self._free.append(kept.worker.state)
            kept = None
        kept = kept or self._make(context, dispatch, program, engine)
        kept.free = self._free
        try:
            kept.worker.join()
        except BaseException:
            self._free.append(kept.worker.state)
            raise
        return kept

    def put(self, kept: KeptLoop, fine: bool = True) -> None:
        """A loop that has run comes back; it is dropped where its threads were left in the middle."""
        self._free += [worker.state for worker in kept.workers[1:]]
        del kept.workers[1:]
        if not fine:
            kept.worker.state.mark_dirty()
            self._free.append(kept.worker.state)
            return
        self._kept[id(kept.dispatch)] = kept  # which has the record, so that no other gets its identity
        if len(self._kept) > MOST_KEPT:
            self._free.append(self._kept.pop(next(iter(self._kept))).worker.state)

    def _make(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine) -> KeptLoop:
        state = self._free.pop() if self._free else WorkerState(self.fill)
        try:
            return KeptLoop(context, dispatch, program, engine, self.bindings, state)
        except BaseException:
            self._free.append(state)
            raise


class LoopLease:
    """Loops for one draw, from those that a dispatcher keeps; none of them is in use elsewhere until the lease ends."""

    def __init__(self, cache: LoopCache, make: Callable[[DispatchContext, ThreadDispatch, LoopCache], KeptLoop],
                 give_back: Callable[[], None]) -> None:  # fmt: skip
        self._cache, self._make, self._give_back = cache, make, give_back
        self._taken: list[KeptLoop] = []

    def loop(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        """The loop for a record, ready to run."""
        made = self._make(context, dispatch, self._cache)
        self._taken.append(made)
        return made

    def end(self, fine: bool) -> None:
        """The draw is over; `fine`: none of its threads was left in the middle."""
        for kept in self._taken:
            kept.engine.ran(kept.program, sum(worker.dispatch.instructions for worker in kept.workers))
            self._cache.put(kept, fine)
        self._give_back()

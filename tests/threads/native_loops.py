"""C loops that start batches of threads, run as a draw runs those of its stages (threads.h): each on a host thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import ReturnReason, WorkerPart
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease


class NativeLoop(NamedTuple):
    """A loop of the tests."""

    function: int  # host address: int64_t f(argument, guard record)
    bind: Callable[[int], int]  # address of the worker -> address of the loop's argument


class Lender(Protocol):
    """Whatever lends workers for loops: an EngineDispatcher, or what compares two."""

    def lease(self) -> LoopLease: ...


def run_loops(dispatcher: Lender, context: DispatchContext, record: ThreadDispatch, loops: Sequence[NativeLoop],
              timed_out: TimedOut = never) -> Finished:  # fmt: skip
    """Runs loops of a record that has a LoopPayload, with workers that the dispatcher keeps from one to the next."""
    lease, fine = dispatcher.lease(), False
    try:
        done = run_kept(lease.loop(context, record), context, loops, timed_out)
        fine = True
    finally:
        lease.end(fine)
    return done


def run_kept(kept: KeptLoop, context: DispatchContext, loops: Sequence[NativeLoop], timed_out: TimedOut = never) -> Finished:
    """The same by workers in hand."""
    workers = kept.workers_for(len(loops))
    before = [(worker.dispatch.threads_done, worker.dispatch.instructions) for worker in workers]
    parts = [worker.part() for worker in workers]
    for part, loop in zip(parts, loops, strict=True):
        part.loop, part.argument = loop.function, loop.bind(part.worker)
    while parts:
        running = (WorkerPart * len(parts))(*parts)
        scheduler.run_parts(running)
        parts = [part for part in running if part.signal or part.result != ReturnReason.DONE]
        kept.answer_parts(context, parts, timed_out)
    after = [(worker.dispatch.threads_done, worker.dispatch.instructions) for worker in workers]
    return Finished(*(sum(new[i] - old[i] for new, old in zip(after, before, strict=True)) for i in range(2)))

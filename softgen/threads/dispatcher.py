"""The choice of engine for a dispatch, the programs that were loaded, and statistics by kernel.

    dispatcher = EngineDispatcher("t1", threads=2)
    for finished in dispatcher.run(context, dispatch, timed_out): …

If compiled code cannot reach the memory, or cannot be built, the reference engine runs the dispatch and `notes` says why.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softgen.errors import Unsupported
from softgen.eu.engine import engine
from softgen.eu.engine_protocol import CompilerEngine
from softgen.eu.interpreter import KernelProgram
from softgen.lanes.compile import foreground
from softgen.lanes.compile.compile_policy import compile_in_background
from softgen.memory.space import Space
from softgen.threads import reference
from softgen.threads.dispatch import DispatchContext, Finished, ResultT, ThreadDispatch, TimedOut, never
from softgen.threads.programs import ProgramCache
from softgen.threads.statistics import KernelStatistics, known_code, summary
from softgen.threads.world import PLAIN, World

if TYPE_CHECKING:
    from softgen.threads.compare.selection import TileSelection, WorkNames
    from softgen.threads.workers.groups import GroupRun
    from softgen.threads.workers.kept_loop import KeptLoop, LoopCache, LoopLease
    from softgen.threads.workers.pool import WorkerSet

REFERENCE, PROMOTING = "reference", "auto"
NOTHING = Finished(0, 0)
MOST_RAN = 64  # programs that statistics keep as a whole, with those of ProgramCache
MOST_SUMMARISED = 8 << 20  # bytes of code of others in statistics; of still others there is a total


def host_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


class EngineDispatcher:
    """A Dispatcher that runs all dispatches on one engine. `make` builds the engine of a name."""

    prepares = True
    strips = True  # groups may run in strips: not where engines are compared, with one host thread in the same order

    def __init__(self, name: str = REFERENCE, threads: int | None = None, make: Callable[[str], CompilerEngine] | None = None,
                 world: World = PLAIN) -> None:  # fmt: skip
        """`world`: what is chosen where manuals leave something open."""
        self.world = world
        self.fills = name != REFERENCE and make is None and world is PLAIN
        self.name, self.threads = name, 1 if name == REFERENCE else threads or host_threads()
        self.programs = ProgramCache(self._programs_dropped)
        self.notes: list[str] = []
        self.ran: dict[tuple[KernelProgram, str], KernelStatistics] = {}
        self._summaries: dict[tuple[object, ...], KernelStatistics] = {}  # of those: the ones whose program is a summary
        self._summarise_at = MOST_RAN
        self._others = KernelProgram(0, b"", 0, "other kernels")
        self._make = make or engine
        compile_in_background(name == PROMOTING)
        self._engine: CompilerEngine | None = None
        self._workers: list[WorkerSet] = []  # not in use
        self._lock = threading.Lock()

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        """Runs groups until Python is needed; most dispatches are done by then, of others the rest follows."""
        if self.world.reserved:
            dispatch = self.world.started(context.generation.number, dispatch)
        if self.world.seed:
            parts = self.world.reordered(dispatch)
            return (finished for part in parts for finished in self._run(context, part, timed_out))
        return self._run(context, dispatch, timed_out)

    def _run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut) -> Iterable[Finished]:
        if self.name == REFERENCE:
            return self._on_reference(context, dispatch, timed_out)
        if not (dispatch.groups and dispatch.threads):
            return self._run_nothing(context, dispatch, timed_out)
        workers, began, run, finished = self._borrow(), time.perf_counter(), None, NOTHING
        foreground.enter()
        try:
            run = workers.groups.find(context, dispatch) or self._new_run(workers, context, dispatch)
            finished = run.start(timed_out)
        except EngineUnavailable as why:
            foreground.leave()
            self._workers.append(workers)
            return self._on_reference(context, dispatch, timed_out, why)
        except BaseException:
            self._ended(workers, run, False, finished, began)
            raise
        if not run.all_done:
            return self._rest_of_groups(workers, run, finished, began)
        self._ended(workers, run, True, finished, began)
        return (finished,)

    def _run_nothing(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut) -> Iterator[Finished]:
        """A dispatch without threads: it is counted."""
        try:
            self._built(context)
        except EngineUnavailable as why:
            return self._on_reference(context, dispatch, timed_out, why)
        return self._counted(self.programs.load(context, dispatch), self.name, dispatch.stage, iter(()))

    def _on_reference(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut,
                      why: EngineUnavailable | None = None) -> Iterator[Finished]:  # fmt: skip
        if why is not None:
            self._note(f"{why}; the reference ran it instead")
        program = self.programs.load(context, dispatch)
        return self._counted(program, REFERENCE, dispatch.stage, reference.run(context, dispatch, timed_out, program, self.world.fill))

    def _new_run(self, workers: WorkerSet, context: DispatchContext, dispatch: ThreadDispatch) -> GroupRun:
        engine, program = self._built(context), self.programs.load(context, dispatch)
        run = workers.groups.make(context, dispatch, program, engine)
        run.statistics = self._statistics(program, self.name, dispatch.stage)
        return run

    def _rest_of_groups(self, workers: WorkerSet, run: GroupRun, finished: Finished, began: float) -> Iterator[Finished]:
        (threads, instructions), fine = finished, False
        try:
            yield finished
            for finished in run.resume():
                threads, instructions = threads + finished.threads, instructions + finished.instructions
                yield finished
            fine = True
        finally:
            self._ended(workers, run, fine, Finished(threads, instructions), began)

    def _ended(self, workers: WorkerSet, run: GroupRun | None, fine: bool, done: Finished, began: float) -> None:
        """A dispatch, for which workers were borrowed, has ended."""
        foreground.leave()
        if run is not None:
            workers.groups.done(run, fine)
            assert run.statistics is not None
            run.statistics.add(done.threads, done.instructions, time.perf_counter() - began)
        self._workers.append(workers)

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        from softgen.threads.bindings import BindingCache  # imported late: the reference engine needs none of it
        from softgen.threads.workers.kept_loop import KeptLoop
        from softgen.threads.workers.worker import WorkerState

        program, made = self.programs.load(context, dispatch), self._built(context)
        found = KeptLoop(context, dispatch, program, made, BindingCache(), WorkerState(self.world.fill))
        found.ready()
        found.statistics = self._statistics(program, self.name, dispatch.stage)
        return found

    def lease(self) -> LoopLease:
        from softgen.threads.workers.kept_loop import LoopLease  # imported late: the reference engine needs none of it for groups

        workers = self._borrow()
        return LoopLease(workers.loops, self._leased, lambda: self._workers.append(workers))

    def _leased(self, context: DispatchContext, dispatch: ThreadDispatch, cache: LoopCache) -> KeptLoop:
        program, made = self.programs.load(context, dispatch), self._built(context)
        found = cache.take(context, dispatch, program, made)
        found.statistics = self._statistics(program, self.name, dispatch.stage)
        return found

    def watched(self, context: DispatchContext) -> DispatchContext:
        return context

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        return work()

    @property
    def selection(self) -> TileSelection | None:
        return None

    @property
    def reserved(self) -> int:
        return self.world.reserved

    def _built(self, context: DispatchContext) -> CompilerEngine:
        try:
            if self._engine is None:
                self._engine = self._make(self.name) if self.name != REFERENCE else _interpreted()
            _ = context.space.table
        except Unsupported as why:
            raise EngineUnavailable(str(why)) from why
        return self._engine

    @contextmanager
    def _borrowed(self) -> Iterator[WorkerSet]:
        """A set of workers for one dispatch."""
        workers = self._borrow()
        try:
            yield workers
        finally:
            self._workers.append(workers)

    def _borrow(self) -> WorkerSet:
        """Workers that no other dispatch uses: those of several command streamers may run at the same time."""
        try:
            return self._workers.pop()
        except IndexError:
            from softgen.threads.workers.pool import WorkerSet  # imported late: the reference engine needs none of it

            return WorkerSet(self.threads, self.strips, self.world.fill)

    def _counted(self, program: KernelProgram, engine: str, stage: str, work: Iterator[Finished]) -> Iterator[Finished]:
        threads = instructions = 0
        began = time.perf_counter()
        try:
            for finished in work:
                threads += finished.threads
                instructions += finished.instructions
                yield finished
        except EngineUnavailable:
            raise
        except BaseException:
            self._add(program, engine, stage, threads, instructions, time.perf_counter() - began)
            raise
        self._add(program, engine, stage, threads, instructions, time.perf_counter() - began)

    def _statistics(self, program: KernelProgram, engine: str, stage: str) -> KernelStatistics:
        with self._lock:
            total = self.ran.get((program, engine))
            if total is None:
                if len(self.ran) >= self._summarise_at:
                    self._summarise()
                total = self.ran[program, engine] = KernelStatistics(program, engine)
            total.stages.add(stage)
            return total

    def _summarise(self) -> None:
        """Lets go of programs that are no longer loaded: of their statistics a summary stays, one for all with the same code."""
        held = {id(total) for total in self._summaries.values()}
        for (program, name), total in list(self.ran.items()):
            if id(total) in held or program is self._others or program in self.programs:
                continue
            del self.ran[program, name]
            key = known_code(program), program.gen, program.start, program.title, name
            if (whole := self._summaries.get(key)) is not None:
                total.join(whole)
                continue
            total.program = summary(program)
            self.ran[total.program, name] = self._summaries[key] = total
        self._drop_summaries()
        self._summarise_at = len(self.ran) + MOST_RAN

    def _drop_summaries(self) -> None:
        """A total for the summaries that were made first, where there are too many."""
        left = sum(len(total.program.code) for total in self._summaries.values())
        for key, total in list(self._summaries.items()):
            if left <= MOST_SUMMARISED:
                break
            left -= len(total.program.code)
            program, name = total.program, total.engine
            others = self.ran.get((self._others, name))
            if others is None:
                self._others.gen = program.gen
                others = self.ran[self._others, name] = KernelStatistics(self._others, name)
            del self._summaries[key], self.ran[program, name]
            total.join_others(others)

    def _programs_dropped(self) -> None:
        """Statistics shall not keep them either: the next kernel's find too many."""
        self._summarise_at = 0

    def count_memory(self, charge: Callable[[int], None]) -> None:
        self.programs.charge = charge

    def retire(self) -> None:
        with self._lock:
            self.programs.clear()
            self._engine = None
            self._workers.clear()
            self._summarise()

    def _add(self, program: KernelProgram, engine: str, stage: str, threads: int, instructions: int, seconds: float) -> None:
        self._statistics(program, engine, stage).add(threads, instructions, seconds)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _interpreted() -> CompilerEngine:
    from softgen.threads.interpreted import InterpretedEngine  # imported late, as compiled engines are

    return InterpretedEngine()


class EngineUnavailable(Exception):
    """The engine cannot run this dispatch."""

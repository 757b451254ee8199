"""The choice of engine for a dispatch, the programs that were loaded, and statistics by kernel.

    dispatcher = EngineDispatcher("t1", threads=2)
    for finished in dispatcher.run(context, dispatch, timed_out): …

If compiled code cannot reach the memory, or cannot be built, the reference engine runs the dispatch and `notes` says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from softgen.errors import Unsupported
from softgen.eu.engine import Engine, engine
from softgen.eu.interpreter import Program
from softgen.threads import reference
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never

REFERENCE = "reference"
MAX_PROGRAMS = 256


def host_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class KernelStatistics:
    """Work done by one kernel on one engine."""

    program: Program
    engine: str
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0
    seconds: float = 0.0


class ProgramCache:
    """Kernels by address: the same bytes at the same address are the same Program, so engines compile them once."""

    def __init__(self) -> None:
        self._programs: dict[tuple[float, int, int], Program] = {}

    def load(self, context: DispatchContext, kernel: int) -> Program:
        address, code = reference.code_at(context, kernel)
        key = context.generation.number, kernel, address
        found = self._programs.get(key)
        if found is None or found.code != code:
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            found = self._programs[key] = Program(key[0], code, kernel, f"kernel {address:#x}")
        return found


class EngineDispatcher:
    """A Dispatcher that runs all dispatches on one engine. `make` builds the engine of a name."""

    def __init__(self, name: str = REFERENCE, threads: int | None = None, make: Callable[[str], Engine] | None = None) -> None:
        self.name, self.threads = name, 1 if name == REFERENCE else threads or host_threads()
        self.programs = ProgramCache()
        self.notes: list[str] = []
        self.ran: dict[tuple[Program, str], KernelStatistics] = {}
        self._make = make or engine
        self._engine: Engine | None = None
        self._workers: object = None

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
        program = self.programs.load(context, dispatch.kernel)
        if self.name != REFERENCE:
            try:
                yield from self._counted(program, self.name, self._compiled(context, dispatch, program, timed_out))
                return
            except EngineUnavailable as why:
                self._note(f"{why}; the reference ran it instead")
        yield from self._counted(program, REFERENCE, reference.run(context, dispatch, timed_out, program))

    def invalidate(self) -> None:
        """Nothing is cached from one dispatch to the next that is not compared with memory."""

    def _compiled(self, context: DispatchContext, dispatch: ThreadDispatch, program: Program, timed_out: TimedOut) -> Iterator[Finished]:
        from softgen.threads import pool  # imported late: the reference engine needs none of it

        try:
            if self._engine is None:
                self._engine = self._make(self.name)
            _ = context.space.table
        except Unsupported as why:
            raise EngineUnavailable(str(why)) from why
        if not isinstance(self._workers, pool.Workers):
            self._workers = pool.Workers(self.threads)
        yield from pool.run(context, dispatch, program, self._engine, self._workers, timed_out)

    def _counted(self, program: Program, engine: str, work: Iterator[Finished]) -> Iterator[Finished]:
        counts = KernelStatistics(program, engine)
        began = time.perf_counter()
        try:
            for finished in work:
                counts.threads += finished.threads
                counts.instructions += finished.instructions
                yield finished
        except EngineUnavailable:
            raise
        except BaseException:
            self._add(counts, time.perf_counter() - began)
            raise
        self._add(counts, time.perf_counter() - began)

    def _add(self, counts: KernelStatistics, seconds: float) -> None:
        total = self.ran.setdefault((counts.program, counts.engine), KernelStatistics(counts.program, counts.engine))
        total.dispatches += 1
        total.threads += counts.threads
        total.instructions += counts.instructions
        total.seconds += seconds

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class EngineUnavailable(Exception):
    """The engine cannot run this dispatch."""

"""The device behind `Gpu`: builds it, chooses the engine of its threads and, on request, observes every instruction.

Everything that the Python interface needs of the execution packages is here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from softgen.api.checks import check_time_limit
from softgen.api.run import Run, Trace, TraceRow
from softgen.bits.generation import Device
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError, Unsupported, UsageError
from softgen.eu.engine import NAMES
from softgen.eu.interpreter import Interpreter
from softgen.eu.thread.regions import LANES
from softgen.inspect import registers
from softgen.memory.space import Space
from softgen.threads import places, reference
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import ForwardingDispatcher
from softgen.threads.programs import load
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease
from softgen.trace.work import Work


class BatchMachine:
    """A device that executes batches."""

    def __init__(self, device: Device, engine: str, threads: int | None) -> None:
        self._dispatcher = TracingDispatcher(dispatcher(engine, threads))
        self.host_threads = self._dispatcher.engine.threads
        self._deadline: float | None = None
        self._collected: list[SoftgenError] | None = None
        self._running, self._busy = threading.RLock(), False
        self._gpu = GpuDevice(device, timed_out=self._timed_out, on_error=self._on_error, dispatcher=self._dispatcher)

    def execute(self, space: Space, batch: int, collect: bool, trace: bool, time_limit: float | None) -> Run:
        """Run a batch to its end, after those that other Python threads have begun."""
        with self._running:
            if self._busy:  # in this thread
                raise UsageError("a launch on this Gpu is still running; a signal handler that interrupts it cannot begin another")
            self._busy = True
            try:
                return self._execute(Work("render", space, batch), collect, trace, time_limit)
            finally:
                self._busy = False

    def _execute(self, work: Work, collect: bool, trace: bool, time_limit: float | None) -> Run:
        run = Run()
        counters = self._gpu.counters
        threads, instructions, remarks = counters.threads, counters.instructions, len(self._gpu.remarks)
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._dispatcher.trace = run.trace if trace else None
        self._collected = run.faults if collect else None
        began = time.perf_counter()
        self._gpu.execute(work)
        run.seconds = time.perf_counter() - began
        run.threads, run.instructions = counters.threads - threads, counters.instructions - instructions
        run.remarks = list(self._gpu.remarks)[remarks:]
        return run

    def _timed_out(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _on_error(self, error: SoftgenError) -> bool:
        """Collect a command's error and go on with the next command; False: stop."""
        if self._collected is None:
            return False
        self._collected.append(error)
        return True


def dispatcher(engine: str, threads: int | None) -> EngineDispatcher:
    """The dispatcher of an engine by name."""
    if engine not in NAMES:
        raise UsageError(f"no engine is called {engine!r}; engines are {' '.join(NAMES)}")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise UsageError(f"host threads are 1 or more, not {threads!r}")
    return EngineDispatcher(engine, threads)


def deadline(time_limit: float | None) -> Callable[[], bool]:
    """A predicate: whether a time limit, counted from now, has passed."""
    check_time_limit(time_limit)
    end = None if time_limit is None else time.monotonic() + time_limit
    return lambda: end is not None and time.monotonic() >= end


# -- traces ------------------------------------------------------------------------------------------------------------


class TracingDispatcher(ForwardingDispatcher):
    """Runs dispatches on an engine; while there is a `trace`, on the reference engine, and records every instruction in it."""

    engine: EngineDispatcher

    def __init__(self, engine: EngineDispatcher) -> None:
        super().__init__(engine)
        self.trace: Trace | None = None

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        if self.trace is None:
            return self.engine.run(context, dispatch, timed_out)
        return self._traced(context, dispatch, timed_out, self.trace)

    @property
    def threads(self) -> int:
        return self.engine.threads

    def lease(self) -> LoopLease:
        if self.trace is not None:
            raise Unsupported("threads of draws are not traced instruction by instruction yet")
        return self.engine.lease()

    def watched(self, context: DispatchContext) -> DispatchContext:
        return context

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        return self.engine.prepare(context, dispatch)

    def _traced(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut, trace: Trace) -> Iterator[Finished]:
        program = load(context, dispatch)
        bindings = dispatch_bindings(context, dispatch)
        for number in range(dispatch.groups):
            if timed_out():
                raise places.timed_out_before(dispatch, number, program)
            group = reference.ReferenceGroup(context, dispatch, number, program, bindings)
            x, y, z = dispatch.patch.values(number) if dispatch.patch is not None else (number, 0, 0)
            for thread, interpreter in enumerate(group.runners):
                Observer(interpreter, (x, y, z), thread, trace)
            yield group.run(timed_out)


class Observer:
    """Records the instructions of one thread, with the registers that each changes."""

    def __init__(self, interpreter: Interpreter, group: tuple[int, int, int], number: int, trace: Trace) -> None:
        self.interpreter, self.group, self.number, self.trace = interpreter, group, number, trace
        self.types = registers.Kinds(interpreter.thread)
        self.step = interpreter.step
        self.last = registers.snapshot(interpreter.thread)
        interpreter.step = self.observed  # type: ignore[method-assign]

    def observed(self) -> bool:
        thread, program = self.interpreter.thread, self.interpreter.code
        ip, channels = thread.ip, thread.active
        if not self.step():
            return False
        inst = program.line(ip).instruction
        before, self.last = self.last, registers.snapshot(thread)
        written = inst.dst.type if inst.dst is not None and inst.dst.type in LANES else "ud"
        for name, offsets in registers.changed_bytes(before, self.last).items():
            if name in ("grf", "mrf", "a", "acc"):
                for offset in offsets:
                    self.types.write(name, offset, written)
        changes = tuple(registers.changes(before, self.last, self.types))
        self.trace.append(TraceRow(self.group, self.number, ip - program.start, places.text(inst), channels, changes))
        return True

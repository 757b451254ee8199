"""The device behind `Gpu`: builds it, chooses the engine of its threads and, on request, observes every instruction.

Everything that the Python interface needs of the execution packages is here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from softgen.api.run import Run, Trace, TraceRow
from softgen.bits.generation import Device
from softgen.device.gpu import Gpu as HardwareGpu
from softgen.errors import SoftgenError, UsageError
from softgen.eu.engine import NAMES
from softgen.eu.interpreter import Interpreter
from softgen.eu.regions import LANES
from softgen.gpgpu import group
from softgen.gpgpu.engines import Groups
from softgen.gpgpu.group import Group
from softgen.gpgpu.walker import Done, Plan, Surroundings
from softgen.inspect import registers
from softgen.memory.space import Space
from softgen.shared_functions.dataport import Surfaces
from softgen.trace.work import Work


class Machine:
    """A device that executes batches."""

    def __init__(self, device: Device, engine: str, threads: int | None) -> None:
        if engine not in NAMES:
            raise UsageError(f"no engine is called {engine!r}; engines are {' '.join(NAMES)}")
        if threads is not None and threads < 1:
            raise UsageError(f"host threads are 1 or more, not {threads}")
        self._groups = Groups(engine, threads)
        self.host_threads = self._groups.threads
        self._deadline: float | None = None
        self._trace: Trace | None = None
        self._collected: list[SoftgenError] | None = None
        self._gpu = HardwareGpu(device, spent=self._timed_out, excuse=self._on_error, groups=self._dispatch)

    def execute(self, space: Space, batch: int, collect: bool, trace: bool, time_limit: float | None) -> Run:
        """Run a batch to its end."""
        run = Run()
        counters = self._gpu.counters
        threads, instructions, remarks = counters.threads, counters.instructions, len(self._gpu.remarks)
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._trace = run.trace if trace else None
        self._collected = run.faults if collect else None
        began = time.perf_counter()
        self._gpu.execute(Work("render", space, batch))
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

    def _dispatch(self, around: Surroundings, plan: Plan, spent: Callable[[], bool]) -> Iterator[Done]:
        if self._trace is None:
            return self._groups(around, plan, spent)
        return _traced(around, plan, spent, self._trace)


# -- traces ------------------------------------------------------------------------------------------------------------


def _traced(around: Surroundings, plan: Plan, spent: Callable[[], bool], trace: Trace) -> Iterator[Done]:
    """The groups of a dispatch on the reference engine; each instruction is recorded."""
    program = group.load(around, plan.kernel)
    surfaces = Surfaces(around.generation, around.space, around.bases, plan.binding_table)
    for where in plan.groups():
        if spent():
            raise group.too_late(where, program)
        running = Group(around, plan, where, program, surfaces)
        for number, interpreter in enumerate(running.runners):
            Observer(interpreter, where, number, trace)
        yield running.run(spent)


class Observer:
    """Records the instructions of one thread, with the registers that each changes."""

    def __init__(self, interpreter: Interpreter, where: tuple[int, int, int], number: int, trace: Trace) -> None:
        self.interpreter, self.where, self.number, self.trace = interpreter, where, number, trace
        self.types = registers.Kinds(interpreter.thread)
        self.step = interpreter.step
        self.last = registers.snapshot(interpreter.thread)
        interpreter.step = self.observed  # type: ignore[method-assign]

    def observed(self) -> bool:
        thread, code = self.interpreter.thread, self.interpreter.code
        ip, channels = thread.ip, thread.active
        done = self.step()
        if not done:
            return False
        inst: Any = code.line(ip).instruction
        before, self.last = self.last, registers.snapshot(thread)
        written = inst.dst.type if inst.dst is not None and inst.dst.type in LANES else "ud"
        for name, offsets in registers.changed_bytes(before, self.last).items():
            if name in ("grf", "mrf", "a", "acc"):
                for offset in offsets:
                    self.types.write(name, offset, written)
        changes = tuple(registers.changes(before, self.last, self.types))
        self.trace.append(TraceRow(self.where, self.number, ip - code.start, group.text(inst), channels, changes))
        return True


# -- replay ------------------------------------------------------------------------------------------------------------


def replaying(engine: str, threads: int | None, time_limit: float | None) -> tuple[Groups, Callable[[], bool]]:
    """What runs the thread groups of a replay, and what ends it."""
    if engine not in NAMES:
        raise UsageError(f"no engine is called {engine!r}; engines are {' '.join(NAMES)}")
    deadline = None if time_limit is None else time.monotonic() + time_limit
    return Groups(engine, threads), lambda: deadline is not None and time.monotonic() >= deadline

"""Measuring: a capture is executed once on an engine that counts, then on a compiling one, for seconds of this host.

Compiled code counts every instruction it executes (eu/threaded/counting.py). Instructions that it leaves to the interpreter are counted
there. With `traffic` it leaves all messages, whose addresses are then counted too: exact, and slow.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.threaded.counting import CountingEngine, channels, counting
from softgen.inspect.debug.sources import KernelSources
from softgen.inspect.profile.bound import cycles, pipe_bytes
from softgen.inspect.profile.counts import DrawCounts, InstructionCounts, KernelCounts, Profile
from softgen.inspect.report.kernel_names import KernelNames
from softgen.inspect.report.recorded_programs import compiled_programs
from softgen.inspect.session.control import SessionDispatcher
from softgen.inspect.session.events import Event
from softgen.inspect.session.execution import CaptureExecution
from softgen.inspect.session.session import Session
from softgen.shared_functions.dataport import target
from softgen.threads import places
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import DispatchProgram
from softgen.threads.statistics import own_code

LINE = 64  # bytes of a cache line
RUNS = 2  # for seconds: the first one compiles
Place = tuple[KernelProgram, int]


class Traffic:
    """Memory accesses of messages, by instruction."""

    def __init__(self) -> None:
        self.here: Place | None = None
        self.accesses: Counter[Place] = Counter()
        self.read: Counter[Place] = Counter()
        self.written: Counter[Place] = Counter()
        self.lines: Counter[Place] = Counter()

    def observe(self, access: str, addresses: target.Offsets, width: int, lanes: object = None) -> None:
        if self.here is None:
            return
        self.accesses[self.here] += len(addresses)
        (self.read if access == "read" else self.written)[self.here] += len(addresses) * width
        first, last = addresses // np.uint64(LINE), (addresses + np.uint64(max(width, 1) - 1)) // np.uint64(LINE)
        self.lines[self.here] += len(np.unique(np.concatenate([first, last])))


class ProfilingDispatcher(SessionDispatcher):
    """Runs dispatches on the counting engine, and counts what it leaves to the interpreter."""

    def __init__(self, traffic: bool) -> None:
        super().__init__("reference", 1)
        self.table, self.counter = counting(), CountingEngine(messages=not traffic)
        self.engine = EngineDispatcher("counting", 1, lambda name: self.counter)
        self.engine.strips = False
        self.traffic = Traffic() if traffic else None
        self.interpreted: Counter[Place] = Counter()  # executions, less those that compiled code had begun
        self.lanes: Counter[Place] = Counter()
        self._last: tuple[Place, int, int] | None = None  # an instruction that compiled code has left, its fallbacks before, its lanes

    def watched(self, context: DispatchContext) -> DispatchContext:
        return replace(context, stepper=self._left)

    def _left(self, runner: Interpreter, dispatch: ThreadDispatch, group: int, number: int) -> bool | None:
        """Compiled code has left an instruction, which it may have counted; it executes it after all, or the interpreter does."""
        self.settle()
        thread, program = runner.thread, runner.code
        place, inst = (program, thread.ip), program.line(thread.ip).instruction
        lanes = lanes_of(inst, thread.active)
        if thread.ip in self.table.owners.get(program, {}):
            self.interpreted[place] -= 1
            self.lanes[place] -= lanes
        self._last = place, program.fallbacks[thread.ip], lanes
        if self.traffic is not None:
            self.traffic.here = place
        return None

    def settle(self) -> None:
        """Count the last instruction that compiled code left, if the interpreter has executed it."""
        if self._last is None:
            return
        (program, ip), before, lanes = self._last
        if program.fallbacks[ip] > before:
            self.interpreted[program, ip] += 1
            self.lanes[program, ip] += lanes
        self._last = None
        if self.traffic is not None:
            self.traffic.here = None

    def totals(self) -> dict[Place, tuple[int, int]]:
        """Executions and lanes of every instruction so far."""
        self.settle()
        executed, lanes = self.table.counts()
        found: dict[Place, tuple[int, int]] = {}
        for program in self.counter.programs:
            for ip, numbers in self.table.owners.get(program, {}).items():
                found[program, ip] = int(executed[numbers].sum()), int(lanes[numbers].sum())
        for place, count in self.interpreted.items():
            had = found.get(place, (0, 0))
            found[place] = had[0] + count, had[1] + self.lanes[place]
        return {place: counts for place, counts in found.items() if counts[0]}


def lanes_of(inst: Instruction, active: int) -> int:
    """The channels that an instruction concerns."""
    return inst.exec_size if inst.no_mask else (channels(inst) & active).bit_count()


def measure(path: str | os.PathLike[str], gpu: str | None = None, traffic: bool = False, names: Iterable[str] = (),
            engine: str = "auto", sources: Sequence[str] = (), step: Callable[[], None] = lambda: None) -> Profile:  # fmt: skip
    """The profile of a capture. `names`: OpenCL binaries that give kernels their names; `sources`: of kernels, as
    `softgen debug --source` takes them. Programs that were compiled while the capture was recorded are known."""
    session = Session(path, gpu)
    work = session.work()
    compiled = compiled_programs(path)
    known = KernelSources(session._trace.device.generation.number, sources, compiled)
    found = _Measurement(session, traffic, KernelNames([*names, *compiled]), known)
    found.count(work, step)
    profile = found.finished()
    _time(session, engine, work, profile, step)
    return profile


class _Measurement:
    """A profile in the making."""

    def __init__(self, session: Session, traffic: bool, names: KernelNames, sources: KernelSources) -> None:
        self.session, self.names, self.sources = session, names, sources
        self.profile = Profile(os.fspath(session.path), session.gpu, traffic=traffic)
        self.dispatcher = ProfilingDispatcher(traffic)
        self.stages = {address: stage for event in session.events() for stage, address in event.kernels.items()}
        self.kernels: dict[tuple[str, str], KernelCounts] = {}
        self.rows: dict[tuple[str, int], InstructionCounts] = {}
        self.known: dict[KernelProgram, KernelCounts] = {}
        self.places: dict[KernelProgram, dict[int, str]] = {}  # of sources, by offset

    def count(self, work: list[Event], step: Callable[[], None]) -> None:
        """Execute the capture, stopping at every draw and dispatch."""
        run = CaptureExecution(self.session._open(), dispatcher=self.dispatcher)
        traffic = self.dispatcher.traffic
        if traffic is not None:
            target.observers.append(traffic.observe)
        try:
            before = self.dispatcher.totals()
            for event in work:
                assert event.position.submission is not None and event.position.command is not None
                if not run.run_to(event.position.submission, event.position.command):
                    continue
                threads = run.gpu.counters.threads if run.work is not None else 0
                run.finish_command()
                after = self.dispatcher.totals()
                self._draw(event, before, after, run.gpu.counters.threads - threads)
                before = after
                step()
            run.run_to_end()
            self.dispatcher.settle()
        finally:
            if traffic is not None:
                target.observers.remove(traffic.observe)
        self.profile.threads, self.profile.executed = run.gpu.counters.threads, run.gpu.counters.instructions
        self.profile.problems = [f"submission {number}: {error}" for number, error in run.errors]

    def _draw(self, event: Event, before: dict[Place, tuple[int, int]], after: dict[Place, tuple[int, int]], threads: int) -> None:
        draw, size = DrawCounts(str(event.position), event.name, threads), 0
        for place, (executed, lanes) in after.items():
            had = before.get(place, (0, 0))
            executed, lanes = executed - had[0], lanes - had[1]
            if not executed:
                continue
            program, ip = place
            kernel, inst = self._kernel(program), program.line(ip).instruction
            row = self._row(kernel, program, ip)
            for counts in (draw, kernel, row):
                counts.executed += executed
                counts.lanes += lanes
            if kernel.code not in draw.kernels:
                kernel.draws += 1
            draw.kernels[kernel.code] = draw.kernels.get(kernel.code, 0) + executed
            if ip == program.start:
                kernel.threads += executed
            more = pipe_bytes(inst, lanes)
            size += more
            kernel.at_least_cycles = _sum(kernel.at_least_cycles, cycles(self.session._trace.device, more))
        draw.at_least_cycles = cycles(self.session._trace.device, size)
        self.profile.draws.append(draw)

    def _kernel(self, program: KernelProgram) -> KernelCounts:
        if program not in self.known:
            digest = _digest(program)
            stage = self.stages.get(program.address, "") if isinstance(program, DispatchProgram) else ""
            if (digest, stage) not in self.kernels:
                name = self.names.find(program.code, program.gen) or program.title
                self.kernels[digest, stage] = KernelCounts(name, stage, digest, len(own_code(program)))
            self.known[program] = self.kernels[digest, stage]
        return self.known[program]

    def _row(self, kernel: KernelCounts, program: KernelProgram, ip: int) -> InstructionCounts:
        key = kernel.code + kernel.stage, ip - program.start
        if key not in self.rows:
            if program not in self.places:
                self.places[program] = self.sources.places(program)
            line = self.places[program].get(ip - program.start, "")
            self.rows[key] = InstructionCounts(ip - program.start, places.text(program.line(ip).instruction), line=line)
            kernel.instructions.append(self.rows[key])
        return self.rows[key]

    def finished(self) -> Profile:
        traffic = self.dispatcher.traffic
        for (program, ip), count in traffic.accesses.items() if traffic is not None else ():
            assert traffic is not None
            place, row = (program, ip), self._row(self._kernel(program), program, ip)
            row.accesses = (row.accesses or 0) + count
            row.bytes_read = (row.bytes_read or 0) + traffic.read[place]
            row.bytes_written = (row.bytes_written or 0) + traffic.written[place]
            row.lines_touched = (row.lines_touched or 0) + traffic.lines[place]
        for kernel in self.kernels.values():
            kernel.instructions.sort(key=lambda row: row.offset)
        self.profile.kernels = sorted(self.kernels.values(), key=lambda kernel: -kernel.executed)
        return self.profile


def _digest(program: KernelProgram) -> str:
    """What names a kernel's bytes."""
    return hashlib.sha256(own_code(program)).hexdigest()[:12]


def _sum(had: float | None, more: float | None) -> float | None:
    return had if more is None else (had or 0.0) + more


def _time(session: Session, engine: str, work: list[Event], profile: Profile, step: Callable[[], None]) -> None:
    """Seconds of draws and of kernels on this host: the best of several runs."""
    by_position = {draw.position: draw for draw in profile.draws}
    for _ in range(RUNS):
        dispatcher = SessionDispatcher(engine, None)
        run, whole = CaptureExecution(session._open(), dispatcher=dispatcher), time.perf_counter()
        for event in work:
            assert event.position.submission is not None and event.position.command is not None
            draw = by_position.get(str(event.position))
            if draw is None or not run.run_to(event.position.submission, event.position.command):
                continue
            began = time.perf_counter()
            run.finish_command()
            draw.host_seconds = _least(draw.host_seconds, time.perf_counter() - began)
            step()
        run.run_to_end()
        profile.host_seconds = _least(profile.host_seconds, time.perf_counter() - whole)
        seconds: Counter[str] = Counter()
        for statistics in dispatcher.engine.ran.values():
            seconds[_digest(statistics.program)] += statistics.seconds  # type: ignore[assignment]
        for kernel in profile.kernels:
            kernel.host_seconds = _least(kernel.host_seconds, float(seconds[kernel.code]))


def _least(had: float | None, now: float) -> float:
    return round(now if had is None else min(had, now), 9)

"""Execution: submissions done by the device, and what became of them.

All contexts share one device; each has its own state and registers on each engine, and engines run side by side.
A recorder, where there is one, sees every submission before and after it runs.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from softgen import position
from softgen.bits.generation import Device
from softgen.device.execution import EngineExecution
from softgen.device.gpu import GpuDevice
from softgen.driver.ioctl.user_copy import Copied
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.submission import Submission
from softgen.driver.queue.hints import hint
from softgen.driver.queue.parking import LOOK_AGAIN, Parking
from softgen.driver.queue.queue import EngineSlot
from softgen.errors import SoftgenError, Unsupported
from softgen.eu.interpreter import KernelProgram
from softgen.memory.space import Space
from softgen.position import NOWHERE, Position
from softgen.streamer.interface import SubmissionHooks
from softgen.surface.image import SurfaceImage
from softgen.threads import places
from softgen.threads.dispatch import Place
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.threads.places import ThreadPlace

ENGINES = {"rcs": "render", "bcs": "blitter", "vcs": "video", "vecs": "video_enhance"}  # the kernel's names
MOST_ERRORS = 100  # a submission that fails more often is left where it is
MOST_REPORTED = 20  # failing submissions that are kept and reported one by one
MOST_LISTED = 1000  # of each kind that the report names: a program may fail for as long as it likes
LOOK = 0.02  # seconds of a submission until the memory it touches is counted, and between two counts
LOOK_SHARE = 20  # a count may take no more than this part of the time between two
TELL = 10.0  # seconds after which work that still runs is reported, and again
HANG = 10.0  # seconds a semaphore may be waited for, not counting those in which others have the engine


Named = Callable[[str, Iterable[KernelProgram]], str]


@dataclass(frozen=True)
class BatchWork:
    """A submission as the device takes it: a program's batch in a context's address space."""

    engine: str
    space: Space
    batch: int
    global_space: Space | None = None
    kind: str = "batch"
    head: int = 0
    tail: int = 0
    size: int = 0
    context: int = 0
    privileged: bool = False


class SubmissionRecorder(Protocol):
    """Keeps submissions."""

    def before(self, submission: Submission) -> None: ...
    def after(self, submission: Submission, fine: bool) -> None: ...


@dataclass
class RunReport:
    """The outcome of a run."""

    submissions: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    captures: list[str] = field(default_factory=list)
    cut_short: list[str] = field(default_factory=list)  # what still ran when the run ended, and where it was

    @property
    def fine(self) -> bool:
        return not (self.faults or self.unsupported)


class WatchedMemory:
    """The memory that a submission touches while it runs. Nobody asks before a page is touched: the budget is looked at now and then."""

    def __init__(self, budget: Budget | None) -> None:
        self.budget, self.outgrown, self.look_at, self.taken = budget, False, math.inf, 0

    def begin(self, now: float) -> None:
        """A submission begins; most are over before anybody looks."""
        if self.budget is not None:
            self.taken, self.outgrown, self.look_at = 0, False, now + LOOK

    def look(self, pid: int) -> None:
        """Count what its process has taken; the first time, what it takes in all shows and not yet whether that becomes more."""
        assert self.budget is not None
        began = time.monotonic()
        self.taken, self.outgrown = self.budget.outgrown(pid, self.taken or sys.maxsize)
        now = time.monotonic()
        self.look_at = now + max(LOOK, LOOK_SHARE * (now - began))


class ContextEngine:
    """An entry of a context's engine map: its state on the engine, the slot it has, and what failed in the submission that runs."""

    def __init__(self, executor: Executor, engine: str) -> None:
        name, number = re.fullmatch(r"([a-z]+)(\d*)", engine).groups()  # type: ignore[union-attr]
        self.executor, self.engine, self.instance = executor, ENGINES[name], int(number or 0)
        self.slot: EngineSlot[Submission] | None = None
        self.execution: EngineExecution | None = None
        self.done: EngineExecution | None = None  # the last one, if it came to its end
        self.errors: list[SoftgenError] = []
        self.copies: list[Copied] = []  # memory of the program that is copied
        self.seen = -1  # commands done when it was last given back
        self.memory = WatchedMemory(executor.budget)
        self.began, self.tell_at = 0.0, math.inf
        self.saved = executor.device.new_context(self.engine)
        drawn = None if executor.drawn is None else self.drawn
        self.hooks = SubmissionHooks(self.timed_out, self.on_error, executor.new_dispatcher(), drawn, self.completed,
                                    self.told, lambda: bool(self.copies))  # fmt: skip

    def end(self) -> None:
        """Release what the context kept, which has ended: some of it leads back here, and the garbage collector may not look for long."""
        self.hooks.dispatcher.retire()
        self.done, self.copies = None, []

    def over(self) -> bool:
        """Whether nothing needs the result any more."""
        if self.slot is None:
            return self.executor.ending
        return self.executor.ending or self.memory.outgrown or self.slot.submission.context.cancelled

    def timed_out(self) -> bool:
        """Polled at every command and thread group."""
        slot = self.slot
        if slot is None:
            return self.executor.ending
        now = time.monotonic()
        if slot.engine.waiting or now > slot.caller.until:
            slot.pause()
        if self.copies:
            self._give_copies_back()
        if now > self.memory.look_at:
            self.memory.look(slot.submission.pid)
        if now > self.tell_at + LOOK:  # threads would have said before where they are
            self._tell()
        return self.executor.ending or self.memory.outgrown or slot.submission.context.cancelled  # over(), without a call

    def told(self, place: Place) -> None:
        """Threads are about to look at the time limit."""
        if time.monotonic() > self.tell_at:
            self._tell(place())

    def _tell(self, *places: str) -> None:
        """Report that the submission still runs, and where it is."""
        now, execution, slot = time.monotonic(), self.execution, self.slot
        self.tell_at = now + TELL
        if execution is not None and slot is not None:
            where = ": ".join([describe(slot.submission), *execution.streamer.where(), *places])
            at = Position(slot.submission.sequence, execution.streamer.command_number)
            inner = next((place.position for place in places if isinstance(place, ThreadPlace)), NOWHERE)
            text = f"still running after {now - self.began:.0f} s: {where}; position {inner.within(at)}"
            self.executor.tell(self.executor.named(text, programs_of(slot.submission)))

    def _give_copies_back(self) -> None:
        """The next command may write a tag: the data that it announces comes first."""
        if self.execution is not None and self.execution.counters.commands != self.seen:
            self.seen = self.execution.counters.commands
            for copy in self.copies:
                copy.give_back()

    def on_error(self, error: SoftgenError) -> bool:
        """A command failed. What follows it is still done, up to the tags that programs poll: none may be left polling for ever."""
        if self.over() or len(self.errors) >= MOST_ERRORS:
            return False
        self.errors.append(error)
        return True

    def completed(self) -> None:
        """All commands are done, and what is left is bookkeeping. A program that waits for this submission can go on meanwhile, unless it
        would then change what is still to be copied or recorded."""
        completed = self.slot.caller.completed if self.slot is not None else None
        if completed is not None and not (self.errors or self.copies or self.executor.recorders):
            completed()

    def drawn(self, space: Space, targets: Sequence[SurfaceImage]) -> None:
        """A draw of the submission that runs wrote to these render targets."""
        if self.executor.drawn is not None and self.slot is not None:
            self.executor.drawn(self.slot.submission, space, targets)

    def run(self, submission: Submission, slot: EngineSlot[Submission]) -> None:
        """Executes a submission; raises its first error after all of it was done."""
        self.slot, self.errors, self.copies, self.seen = slot, [], submission.bound.copies, -1
        execution, self.done, space, began = self.done, None, submission.vm.space, time.monotonic()
        self.memory.begin(began)
        self.began, self.tell_at = began, began + TELL
        if execution is not None and execution.streamer.space is space:
            self.executor.device.begin_again(execution, submission.batch)
        else:
            work = BatchWork(self.engine, space, submission.batch)
            execution = self.executor.device.begin(work, self.saved, self.hooks, self.instance)
        self.execution = execution
        try:
            if not execution.run():
                self._pass_semaphores(execution, submission, slot)
        except SoftgenError as ended:
            if not self.memory.outgrown:
                raise
            raise SoftgenError(f"its work takes {self.memory.taken >> 20} MiB, more than the memory limit leaves ({ended})") from None
        finally:
            self.slot = self.execution = None
            self.executor.parking.written(submission.bound.bos)
            self.executor.count(time.monotonic() - began)
        self.done = execution
        if self.errors:
            error, self.errors = self.errors[0], []
            try:
                raise error
            finally:
                del error  # its traceback leads to the submission, whose context must be free to end

    def _pass_semaphores(self, execution: EngineExecution, submission: Submission, slot: EngineSlot[Submission]) -> None:
        """Runs to the end; meanwhile others, or the program, let it pass the semaphores at which it waits."""
        parking = self.executor.parking
        while True:
            parking.written(submission.bound.bos)
            waited, at, wait = 0.0, execution.counters.commands, execution.streamer.waiting
            with parking.parked(None if wait is None or wait.address is None else submission.bound.at(wait.address)) as woken:
                while execution.counters.commands == at:
                    if self.over() or waited > HANG:
                        raise execution.stuck()
                    seconds = parking.interval(waited)
                    slot.wait(seconds, woken)
                    waited += LOOK_AGAIN if woken.is_set() else seconds
                    woken.clear()
                    if execution.run():
                        return


class Executor:
    """Runs submissions on the device, counts, and reports what failed."""

    def __init__(self, gpu: Device, recorders: list[SubmissionRecorder], save: Callable[[Submission, str], str], log: Callable[[str], None],
                 device: GpuDevice | None = None, new_dispatcher: Callable[[], Dispatcher] = EngineDispatcher,
                 drawn: Callable[[Submission, Space, Sequence[SurfaceImage]], None] | None = None,
                 budget: Budget | None = None) -> None:  # fmt: skip
        """`save` keeps a failing submission and answers where; `log` gets a line for each failure; each context and engine has a
        dispatcher of its own; `drawn` is called with the render targets that a draw wrote to; the memory of contexts, and what work
        touches, counts in `budget`."""
        self.gpu, self.recorders, self.save, self.log = gpu, recorders, save, log
        self.device, self.new_dispatcher, self.drawn, self.budget = device or GpuDevice(gpu), new_dispatcher, drawn, budget
        self.report, self.parking = RunReport(), Parking()
        self.lock = threading.Lock()
        self.running = threading.Lock()  # held while a recorder writes
        self.ending = False
        self.under_way = set[int]()  # identities of submissions that have begun, and are neither done nor reported
        self.ended = frozenset[int]()  # of those that had begun when the run ended
        self.tell: Callable[[str], None] = log  # remarks, which are no failures
        self.named: Named = lambda text, programs: text  # a message with names of kernels for their addresses
        self.advised = set[str]()  # hints that were given: each once

    def _new_context_engine(self, submission: Submission) -> ContextEngine:
        made = submission.context.context_engines[submission.engine, submission.slot] = ContextEngine(self, submission.engine)
        if self.budget is not None:
            made.hooks.dispatcher.count_memory(partial(self.budget.note, submission.pid))
        weakref.finalize(submission.context, made.end).atexit = False
        return made

    def execute(self, submission: Submission, slot: EngineSlot[Submission]) -> None:
        """Continues the hardware state of an entry of the context's engine map."""
        engines: dict[tuple[str, int], ContextEngine] = submission.context.context_engines
        context_engine = engines.get((submission.engine, submission.slot)) or self._new_context_engine(submission)
        self.under_way.add(id(submission))
        if self.recorders:
            self._recorded(context_engine, submission, slot)
        else:
            context_engine.run(submission, slot)
        self.under_way.discard(id(submission))

    def _recorded(self, context_engine: ContextEngine, submission: Submission, slot: EngineSlot[Submission]) -> None:
        fine = False
        for recorder in self.recorders:
            with self.running:
                recorder.before(submission)
        try:
            context_engine.run(submission, slot)
            fine = True
        finally:
            for recorder in self.recorders:
                with self.running:
                    recorder.after(submission, fine)

    def count(self, seconds: float) -> None:
        with self.lock:
            self.report.submissions += 1
            self.report.seconds += seconds

    def failed(self, submission: Submission, error: BaseException) -> None:
        """Reports a submission that failed, and keeps it."""
        try:
            self._report_failure(submission, error)
        finally:
            self.under_way.discard(id(submission))

    def _report_failure(self, submission: Submission, error: BaseException) -> None:
        if submission.context.cancelled or self.ending and id(submission) not in self.ended:
            return
        text = str(error) if isinstance(error, SoftgenError) else f"softgen itself failed: {type(error).__name__}: {error}"
        text = self.named(f"{describe(submission)}: {text}; position {position_of(submission, error)}", programs_of(submission))
        if self.ending:
            self._keep_cut_short(submission, text)
            return
        detail = "" if isinstance(error, SoftgenError) else "".join(traceback.format_exception(error))
        failures = self.report.unsupported if isinstance(error, Unsupported) else self.report.faults
        if len(failures) >= MOST_LISTED:
            return
        failures.append(text)
        if len(failures) > MOST_REPORTED:
            if len(failures) == MOST_REPORTED + 1:
                self.log(f"{text}; more failures are only counted (--report)")
            return
        try:
            where = self.save(submission, text + "\n" + detail)
        except Exception as trouble:  # whatever it is, the programs learn of the failure
            where = ""
            self.log(f"the failing submission could not be kept: {trouble}")
        if where:
            self.report.captures.append(where)
            text += f"; kept in {where}"
        if (advice := hint(error, submission.pid)) and advice not in self.advised:
            self.advised.add(advice)
            text += f"; {advice}"
        self.log(text)

    def end(self, seconds: float) -> None:
        """Cut all work short; what has begun says where it was, if it can be stopped in time."""
        self.ended = frozenset(self.under_way)
        self.ending = True
        until = time.monotonic() + seconds
        while not self.ended.isdisjoint(self.under_way) and time.monotonic() < until:
            time.sleep(LOOK)

    def _keep_cut_short(self, submission: Submission, text: str) -> None:
        text = f"the run ended while work was running: {text.replace(places.TIME_IS_UP, '')}"
        try:
            where = self.save(submission, text)
        except Exception as trouble:  # the place alone helps already
            where = f"nowhere: {trouble}"
        self.report.cut_short.append(text)
        self.tell(f"{text}; kept in {where}" if where else text)

    def as_json(self) -> dict[str, Any]:
        return {"gpu": self.gpu.name, **dataclasses.asdict(self.report), **dataclasses.asdict(self.device.counters)}


def programs_of(submission: Submission) -> Iterable[KernelProgram]:
    """The kernels that a submission's context has run on its engine."""
    engines: dict[tuple[str, int], ContextEngine] = submission.context.context_engines
    found = engines.get((submission.engine, submission.slot))
    return getattr(found.hooks.dispatcher, "programs", ()) if found is not None else ()


def position_of(submission: Submission, error: BaseException) -> Position:
    outer = Position(submission.sequence)
    return position.of(error, outer) if isinstance(error, SoftgenError) else outer


def describe(submission: Submission) -> str:
    """Where a submission came from."""
    return f"submission {submission.sequence} of {submission.program} (process {submission.pid}, {submission.engine})"

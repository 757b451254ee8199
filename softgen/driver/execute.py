"""Execution: submissions done by the device, and what became of them.

Each context has, for each engine, a device of its own: what one leaves in registers another does not see, as if they were saved and
restored.
A recorder, where there is one, sees every submission before and after it runs.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from softgen.bits.generation import Device
from softgen.command import Counters
from softgen.device.gpu import Gpu
from softgen.driver.context import Context
from softgen.driver.queue import Submission, Turn
from softgen.driver.userptr import Copied
from softgen.errors import SoftgenError, Unsupported

ENGINES = {"rcs": "render", "bcs": "blitter", "vcs": "video", "vecs": "video_enhance"}  # the kernel's names


MOST_ERRORS = 100  # a submission that fails more often is left where it is
HANG = 10.0  # seconds a semaphore may be waited for
LOOK_AGAIN = 0.001
Make = Callable[[Device, Callable[[], bool], Callable[[SoftgenError], bool]], Gpu]


class Recorder(Protocol):
    """Somebody who keeps submissions."""

    def before(self, submission: Submission) -> None: ...
    def after(self, submission: Submission, fine: bool) -> None: ...


@dataclass
class Report:
    """What a run came to."""

    submissions: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    captures: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return not (self.faults or self.unsupported)


class Lane:
    """A context on one engine: its device, the turn it has, and what failed in the submission that runs."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.turn: Turn | None = None
        self.errors: list[SoftgenError] = []
        self.copies: list[Copied] = []  # memory of the program that is copied
        self.seen = -1  # commands done when it was last given back
        self.gpu = executor.make(executor.device, self.spent, self.excuse)

    def over(self) -> bool:
        """Does nobody want the result any more?"""
        return self.executor.ending or self.turn is not None and self.turn.submission.context.cancelled

    def spent(self) -> bool:
        """Asked at every command and thread group."""
        if self.turn is not None:
            self.turn.pause()
            if self.copies and self.gpu.counters.commands != self.seen:  # the next command may write a tag: what it stands for comes first
                self.seen = self.gpu.counters.commands
                for copy in self.copies:
                    copy.give_back()
        return self.over()

    def excuse(self, error: SoftgenError) -> bool:
        """A command failed. What follows it is still done, up to the tags programs look at: nobody may be left looking for ever."""
        if self.over() or len(self.errors) >= MOST_ERRORS:
            return False
        self.errors.append(error)
        return True

    def run(self, submission: Submission, turn: Turn) -> None:
        self.turn, self.errors = turn, []
        self.copies, self.seen = [bound.bo.copied for bound in submission.bound if bound.bo.copied], -1
        engine = ENGINES[submission.engine.rstrip("0123456789")]
        streamer = self.gpu.streamer(engine, submission.vm.space, None, self.gpu.saved_context(0, engine))
        streamer.start_batch(submission.batch)
        began = time.monotonic()
        try:
            while not streamer.run():  # a semaphore: others may run, one of them will let it pass
                if self.over() or time.monotonic() > began + HANG:
                    raise streamer.stuck()
                turn.wait(LOOK_AGAIN)
        finally:
            self.turn = None
        if self.errors:
            raise self.errors[0]


class Executor:
    """What the queues call: runs a submission on its context's device, counts, and tells what failed."""

    def __init__(self, device: Device, recorders: list[Recorder], save: Callable[[Submission, str], str], tell: Callable[[str], None],
                 make: Make = lambda device, spent, excuse: Gpu(device, spent=spent, excuse=excuse)) -> None:  # fmt: skip
        """`save` keeps a failing submission and says where; `tell` is told of each failure, in words; `make` makes devices."""
        self.device, self.recorders, self.save, self.tell, self.make = device, recorders, save, tell, make
        self.report, self.counters = Report(), Counters()
        self.lanes: weakref.WeakKeyDictionary[Context, dict[str, Lane]] = weakref.WeakKeyDictionary()
        self.lock = threading.Lock()
        self.running = threading.Lock()  # held while a recorder writes
        self.ending = False

    def _lane(self, context: Context, engine: str) -> Lane:
        with self.lock:
            engines = self.lanes.setdefault(context, {})
            if engine not in engines:
                engines[engine] = Lane(self)
            return engines[engine]

    def execute(self, submission: Submission, turn: Turn) -> None:
        lane = self._lane(submission.context, submission.engine)
        began, before = time.monotonic(), dict(vars(lane.gpu.counters))
        try:
            self._recorded(lane, submission, turn)
        finally:
            self._count(lane.gpu, before, time.monotonic() - began)

    def _recorded(self, lane: Lane, submission: Submission, turn: Turn) -> None:
        fine = False
        for recorder in self.recorders:
            with self.running:
                recorder.before(submission)
        try:
            lane.run(submission, turn)
            fine = True
        finally:
            for recorder in self.recorders:
                with self.running:
                    recorder.after(submission, fine)

    def _count(self, gpu: Gpu, before: dict[str, int], seconds: float) -> None:
        with self.lock:
            self.report.submissions += 1
            self.report.seconds += seconds
            now, total = vars(gpu.counters), vars(self.counters)
            for name, then in before.items():
                total[name] += now[name] - then

    def failed(self, submission: Submission, error: BaseException) -> None:
        """Called when a submission could not be done; says so, and keeps it."""
        if self.ending or submission.context.cancelled:
            return
        told = str(error) if isinstance(error, SoftgenError) else f"softgen itself failed: {type(error).__name__}: {error}"
        told = f"{describe(submission)}: {told}"
        detail = "" if isinstance(error, SoftgenError) else "".join(traceback.format_exception(error))
        (self.report.unsupported if isinstance(error, Unsupported) else self.report.faults).append(told)
        try:
            where = self.save(submission, told + "\n" + detail)
        except Exception as trouble:  # whatever it is, the programs learn of the failure
            where = ""
            self.tell(f"the failing submission could not be kept: {trouble}")
        if where:
            self.report.captures.append(where)
            told += f"; kept in {where}"
        self.tell(told)

    def as_json(self) -> dict[str, Any]:
        return {"gpu": self.device.name, **dataclasses.asdict(self.report), **dataclasses.asdict(self.counters)}


def describe(submission: Submission) -> str:
    """Where a submission came from."""
    return f"submission {submission.sequence} of {submission.program} (process {submission.pid}, {submission.engine})"

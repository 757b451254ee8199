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
from softgen.device.gpu import Gpu
from softgen.driver.context import Context
from softgen.driver.queue import Submission, Turn
from softgen.errors import SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.streamer.execute import Counters

ENGINES = {"rcs": "render", "bcs": "blitter", "vcs": "video", "vecs": "video_enhance"}  # the kernel's names


class Recorder(Protocol):
    """Somebody who keeps submissions."""

    def before(self, submission: Submission) -> None: ...
    def after(self, submission: Submission, fine: bool) -> None: ...


@dataclass(frozen=True)
class Work:
    """A batch, as the device wants it."""

    engine: str
    space: Space
    batch: int
    context: int = 0
    kind: str = "batch"
    global_space: Space | None = None
    head: int = 0
    tail: int = 0
    size: int = 0


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


class Executor:
    """What the queues call: runs a submission on its context's device, counts, and tells what failed."""

    def __init__(self, device: Device, recorders: list[Recorder], save: Callable[[Submission, str], str], tell: Callable[[str], None],
                 make: Callable[[Device, Callable[[], bool]], Gpu] = lambda device, spent: Gpu(device, spent=spent)) -> None:  # fmt: skip
        """`save` keeps a failing submission and says where; `tell` is told of each failure, in words; `make` makes devices."""
        self.device, self.recorders, self.save, self.tell, self.make = device, recorders, save, tell, make
        self.report, self.counters = Report(), Counters()
        self.gpus: weakref.WeakKeyDictionary[Context, dict[str, tuple[Gpu, list[Turn]]]] = weakref.WeakKeyDictionary()
        self.lock = threading.Lock()
        self.running = threading.Lock()  # held while a recorder writes
        self.ending = False

    def _gpu(self, context: Context, engine: str) -> tuple[Gpu, list[Turn]]:
        with self.lock:
            engines = self.gpus.setdefault(context, {})
            if engine not in engines:
                turns: list[Turn] = []
                engines[engine] = self.make(self.device, lambda: self._spent(turns)), turns
            return engines[engine]

    def _spent(self, turns: list[Turn]) -> bool:
        for turn in turns:
            turn.pause()
            if turn.submission.context.cancelled:
                return True
        return self.ending

    def execute(self, submission: Submission, turn: Turn) -> None:
        gpu, turns = self._gpu(submission.context, submission.engine)
        began, before = time.monotonic(), dataclasses.astuple(gpu.counters)
        turns[:] = [turn]
        try:
            self._recorded(gpu, submission)
        finally:
            turns.clear()
            self._count(gpu, before, time.monotonic() - began)

    def _recorded(self, gpu: Gpu, submission: Submission) -> None:
        fine = False
        for recorder in self.recorders:
            with self.running:
                recorder.before(submission)
        try:
            gpu.execute(Work(ENGINES[submission.engine.rstrip("0123456789")], submission.vm.space, submission.batch))
            fine = True
        finally:
            for recorder in self.recorders:
                with self.running:
                    recorder.after(submission, fine)

    def _count(self, gpu: Gpu, before: tuple[int, ...], seconds: float) -> None:
        with self.lock:
            self.report.submissions += 1
            self.report.seconds += seconds
            for one, then in zip(dataclasses.fields(Counters), before, strict=True):
                more = getattr(gpu.counters, one.name) - then
                setattr(self.counters, one.name, getattr(self.counters, one.name) + more)

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
        except (SoftgenError, OSError) as trouble:
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

"""The simulator of a run: its display, its queues, the server that answers a program and the executor that does its work.

What shows a run to people (recordings, pictures, traces, messages) is handed in as `Observers`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.kms import display, monitor
from softgen.driver.objects.node import GpuState
from softgen.driver.queue.queue import Queues
from softgen.driver.run.collector import Collector
from softgen.driver.run.server import DRAIN, Server
from softgen.errors import SoftgenError

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.objects.submission import Submission
    from softgen.driver.queue.execute import Executor, Named, SubmissionRecorder
    from softgen.driver.queue.queue import EngineSlot
    from softgen.driver.run.service import Service
    from softgen.memory.space import Space
    from softgen.surface.image import SurfaceImage
    from softgen.threads.dispatcher_protocol import Dispatcher

RECORDER_TIMEOUT = 0.5  # seconds
SETTLE = 2.0  # seconds that a recorded program waits for its work, unless that waits for what the program does next
RECORDED_DRAIN = 600.0  # seconds that recorded work may go on after its program: a video decoder need not wait for its last pictures
STOPPING = 0.5  # seconds in which work that still runs at the end says where it is
PATIENCE = 0.3  # seconds in which short programs have submitted their first work

Room = Callable[[int, int], AbstractContextManager[None]]  # for a process, so many bytes


class SimulatorOptions(NamedTuple):
    """Options of a run."""

    display: tuple[int, int] = (640, 480)  # pixels of its mode
    memory_limit: int | None = None  # bytes for all programs; None: a share of the host's
    deterministic: bool = False  # timestamps count their readings
    spare_processor: bool = False  # one is left while all host threads are busy


@dataclass
class Observers:
    """What is called with the events of a run."""

    log: Callable[[str], None]  # messages
    save: Callable[[Submission, str], str]  # keeps a submission that failed with a message, and returns where
    ioctls: Callable[[str], None] | None = None  # a line for each
    trace: Callable[[str, str], None] | None = None  # a topic and a line
    recorders: Sequence[SubmissionRecorder] = ()
    drawn: Callable[[Submission, Space, Sequence[SurfaceImage]], None] | None = None  # the targets of each draw
    presented: display.Presented | None = None
    use_room: Callable[[Room], None] | None = None  # is given what takes memory for pictures of what a process has drawn
    named: Named | None = None  # a message with names of kernels for their addresses
    close: Callable[[], None] | None = None  # ends what recorders write, before work that still runs is dropped


class Simulator:
    """The parts of a server, built as the options say. Each context and engine has a dispatcher of its own."""

    def __init__(self, gpu: Device, service: Service, options: SimulatorOptions, observers: Observers,
                 new_dispatcher: Callable[[], Dispatcher]) -> None:  # fmt: skip
        self.gpu, self.service, self.observers, self.new_dispatcher = gpu, service, observers, new_dispatcher
        self.clock = itertools.count(1).__next__ if options.deterministic else None
        self.made: Executor | None = None
        self.making = threading.Lock()
        self.begun = threading.Event()  # there was a submission
        self.queues: Queues[Submission] = Queues(self.execute, lambda *work: self.executor().failed(*work))
        self.collector = Collector()
        self.shared = GpuState(gpu, self.queues, observers.log, options.memory_limit)
        self.shared.display.mode = monitor.mode(*options.display)
        if observers.recorders:
            self.shared.settle = SETTLE
        if observers.presented:
            self.shared.display.presented = observers.presented
        if observers.use_room:
            observers.use_room(self.room)
        self.drain = RECORDED_DRAIN if observers.recorders else DRAIN
        self.server = Server(self.shared, service, observers.ioctls, options.spare_processor, self.drain)
        service.orphaned.append(self.leave)

    @contextmanager
    def room(self, pid: int, size: int) -> Iterator[None]:
        """Memory for a picture of what a process has drawn; SoftgenError where there is none."""
        budget = self.shared.budget
        try:
            budget.take(pid, size, "a picture")
        except Errno as refused:
            raise SoftgenError(str(refused)) from None
        try:
            yield
        finally:
            budget.give(pid, size)

    def execute(self, submission: Submission, slot: EngineSlot[Submission]) -> None:
        try:
            self.executor().execute(submission, slot)
        finally:
            self.collector.executed()

    def executor(self) -> Executor:
        """Made with the first submission: ioctls need not wait until all of it is loaded."""
        if self.made is not None:
            return self.made
        with self.making:
            self.begun.set()
            if self.made is None:
                from softgen.device.gpu import GpuDevice
                from softgen.driver.queue.execute import Executor

                seen = self.observers
                hardware = GpuDevice(self.gpu, self.clock, trace=seen.trace)
                self.made = Executor(self.gpu, list(seen.recorders), self.save, self.failed, hardware, self.new_dispatcher, seen.drawn,
                                     self.shared.budget)  # fmt: skip
                self.made.tell = seen.log
                if seen.named is not None:
                    self.made.named = seen.named
            return self.made

    def compile_ahead(self) -> None:
        """Compile what kernels have in common while a program takes its time to submit its first work."""
        self.service.loaded.wait()
        if not self.begun.wait(PATIENCE):
            with suppress(Exception):  # nobody has asked for it: a program may have taken all descriptors, or all memory
                from softgen.eu.threaded import ahead as handlers
                from softgen.shared_functions import ahead as texels

                gen = self.gpu.generation.number
                for part in (handlers, texels) if handlers.has_list(gen) else ():
                    part.compile_ahead(gen, self.begun.is_set)

    def save(self, submission: Submission, message: str) -> str:
        with self.service.reserve.lent():
            return self.observers.save(submission, message)

    def failed(self, text: str) -> None:
        self.observers.log(text)
        self.service.send({"failed": text})

    def leave(self) -> None:
        """Drop the work that still runs, without messages; a recorder finishes the submission it is writing."""
        if self.made:
            self.made.ending = True
            self.made.running.acquire(timeout=RECORDER_TIMEOUT)

    def end(self) -> None:
        """End what executes; where nothing was submitted and nothing is recorded, that was not even loaded."""
        if self.made is None and not self.observers.close:
            return
        executor = self.executor()
        if self.observers.close:  # a recording says that it was cut short
            with executor.running:
                self.observers.close()
        executor.end(STOPPING)

    def run(self) -> dict[str, Any]:
        """Serve until the launcher ends the run; returns what was counted."""
        if self.server.run() == b"end":
            self.queues.drain(self.drain)
        self.end()
        shared = self.shared
        return {"opened": shared.opened, "unknown_ioctls": shared.unknown, "refused_ioctls": shared.refused,
                "frames": shared.display.rate()}  # fmt: skip


__all__ = ["Observers", "Simulator", "SimulatorOptions"]

"""Replay: executes a trace on a GPU of softgen and checks its expectations.

    report = replay(open_trace("vadd.aub"))
    report.passed, report.failed, report.faults, report.unsupported

A submission that faults is left where it faulted; the ones after it run. Captures were taken while nothing executed: before a submission
only those bytes of a buffer change that differ between what it held then and what it held at the submission before, so that what the GPU
wrote survives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from softgen import position
from softgen.command import Counters, Drawn
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.position import Position
from softgen.threads.compare.snapshot import EngineDifference
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.trace.capture import CaptureTrace
from softgen.trace.capture_json import BufferObject, Exec
from softgen.trace.work import Expectation, Work, WorkTrace


@dataclass(frozen=True)
class Trouble:
    """A failure, with file and submission."""

    file: str
    submission: str
    what: str
    position: str = ""  # what --at and other verbs take (position.py)

    def __str__(self) -> str:
        text = f"{self.submission}: {self.what}" if self.submission else self.what
        return f"{text}; position {self.position}" if self.position else text


@dataclass
class Report:
    """Result of one replay, or the sum of several."""

    counters: Counters = field(default_factory=Counters)
    submissions: int = 0
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    faults: list[Trouble] = field(default_factory=list)
    unsupported: list[Trouble] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # violations of the manuals that are no errors

    @property
    def fine(self) -> bool:
        return not (self.failed or self.faults or self.unsupported)

    def add(self, other: Report) -> None:
        self.counters.add(other.counters)
        self.submissions += other.submissions
        self.passed += other.passed
        self.failed += other.failed
        self.faults += other.faults
        self.unsupported += other.unsupported
        self.remarks += other.remarks


def replay(trace: WorkTrace, clock: Callable[[], int] | None = None, timed_out: Callable[[], bool] = lambda: False,
           groups: Dispatcher | None = None, log: Callable[[str, str], None] | None = None, drawn: Drawn | None = None,
           ended: Callable[[Work], None] = lambda work: None, edit: Callable[[Work], None] = lambda work: None) -> Report:  # fmt: skip
    """Execute a trace in order until it ends or `timed_out` says so. `groups` runs the thread groups of dispatches; `log` gets events by
    topic; `drawn` is called with render targets, `ended` with each submission that has ended, `edit` with each before it begins."""
    gpu = GpuDevice(trace.device, clock, timed_out, dispatcher=groups, trace=log, drawn=drawn)
    report = Report(gpu.counters)
    for event in events(trace):
        if isinstance(event, Work):
            report.submissions += 1
            edit(event)
            go_on = _execute(gpu, event, report, trace.name)
            ended(event)
            if not go_on:
                break
        else:
            _check(gpu, event, report, trace.name)
        if timed_out():
            break
    report.remarks += gpu.remarks
    return report


def _execute(gpu: GpuDevice, work: Work, report: Report, file: str) -> bool:
    """Execute a submission; False to stop the replay, when two compared engines differ."""
    try:
        gpu.execute(work)
    except SoftgenError as error:
        kind = report.unsupported if isinstance(error, Unsupported) else report.faults
        where = str(position.of(error, Position(work.sequence)))
        kind.append(Trouble(file, work.label or f"submission {work.sequence}", str(error), where))
        return not isinstance(error, EngineDifference)
    return True


def _check(gpu: GpuDevice, expectation: Expectation, report: Report, file: str) -> None:
    wrong = expectation.check() if expectation.kind == "memory" else _check_register(gpu, expectation)
    if wrong is None:
        what = f"{expectation.where}: register {expectation.address:#x} is not simulated; what it should hold is not checked"
        report.unsupported.append(Trouble(file, "", what))
    elif wrong:
        report.failed.append(wrong)
    else:
        report.passed += 1


def _check_register(gpu: GpuDevice, expectation: Expectation) -> str | None:
    """'' or the difference; None for a register that no command wrote: it is not simulated, or not in the register file."""
    offsets = range(expectation.address & ~3, expectation.address + len(expectation.expected), 4)
    if not any(gpu.register_written(offset) for offset in offsets):
        return None
    found = sum(gpu.read_register(offset) << 32 * number for number, offset in enumerate(offsets)) >> 8 * (expectation.address & 3)
    mask = (1 << 8 * len(expectation.expected)) - 1 if expectation.mask is None else expectation.mask
    expected = int.from_bytes(expectation.expected.read(), "little")
    if (found & mask == expected & mask) == expectation.equal:
        return ""
    return f"{expectation.where}: register {expectation.address:#x} expected {expected & mask:#x}, found {found & mask:#x}"


# -- memory to write to --------------------------------------------------------------------------------------------


def events(trace: WorkTrace) -> Iterator[Work | Expectation]:
    """Events of a trace over writable memory."""
    if not isinstance(trace, CaptureTrace):
        return trace.events()
    replayed = ReplayedCapture(trace.path, trace.gpu)
    replayed.notes = trace.notes
    return replayed.expected_events()


@dataclass(frozen=True)
class Content:
    """A buffer's content, as expected data."""

    buffer: MemfdBuffer

    def __len__(self) -> int:
        return self.buffer.size

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        return bytes(self.buffer.view[start : None if size is None else start + size])


class ReplayedCapture(CaptureTrace):
    """A capture with writable buffers that live as long as the replay."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None) -> None:
        super().__init__(path, gpu)
        self.kept: dict[int, tuple[MemfdBuffer, str]] = {}  # uid -> memory, and the content the capture last gave it
        self.now: Exec | None = None

    def expected_events(self) -> Iterator[Work | Expectation]:
        """Each submission, then what its buffers must hold after it, where that was recorded."""
        for work in self.events():
            yield work
            for bo in self.now.bos if self.now else ():
                if bo.after is not None:
                    where = f"{self.path}: buffer {bo.uid} after submission {work.sequence}"
                    content = Content(self.blobs.get(bo.after, bo.size))
                    yield Expectation("memory", bo.gpu_addr, content, work.space, after=work.sequence, where=where)

    def space(self, exec_: Exec, name: str = "") -> AddressSpace:
        self.now = exec_
        space = AddressSpace(name or f"submission {exec_.seq}", self.device.generation.address_bits)
        for number, bo in enumerate(exec_.bos):
            space.map(bo.gpu_addr, self.buffer(bo, number == exec_.batch.bo))
        return space

    def buffer(self, bo: BufferObject, is_batch: bool) -> MemfdBuffer:
        """The memory of a buffer. A new batch is as captured: drivers reuse buffers that the GPU wrote to, and write all of a batch."""
        known = self.kept.get(bo.uid)
        if known is None or known[0].size != bo.size or is_batch and known[1] != bo.blob:
            buffer = self.blobs.copy(bo.blob, bo.size)
        else:
            buffer, blob = known
            if blob != bo.blob:
                before, now = self.blobs.get(blob, bo.size).array, self.blobs.get(bo.blob, bo.size).array
                changed = before != now
                buffer.array[changed] = now[changed]
        self.kept[bo.uid] = buffer, bo.blob
        return buffer

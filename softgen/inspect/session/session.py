"""Session: a capture that is executed as far as one likes, and read there.

    session = Session("kbl-vk-tri")
    for event in session.events():                     # commands, without executing anything
        print(event.position, event.name)
    session.seek("2:57")                               # everything before command 57 of submission 2 is done
    session.memory(0x10000, 64), session.state()["3DSTATE_VS"]
    session.thread("2:57/ps/g0.t4").step()

To go back, it executes the capture again from its start: the engine that is used for everything but single steps compiles.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from softgen.bits import describe
from softgen.errors import GpuFault, SoftgenError, UsageError
from softgen.inspect.session.control import OfferedThread, ThreadControl
from softgen.inspect.session.edit import CaptureEdits
from softgen.inspect.session.events import DISPATCHES, DRAWS, Event, SubmissionEvents, submissions
from softgen.inspect.session.execution import CaptureExecution, Drawn
from softgen.inspect.session.thread import ThreadCursor
from softgen.memory.space import MappedRegion, Space
from softgen.position import Position, parse
from softgen.surface.image import SurfaceImage
from softgen.trace.file import open_trace
from softgen.trace.work import WorkTrace

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_STATES = 16


@dataclass(frozen=True)
class TargetPicture:
    """A render target as it is in memory."""

    number: int
    address: int
    format: str
    width: int
    height: int
    picture: Image | None  # None: this format cannot be shown
    why: str = ""  # there is no picture


class Session:
    """A capture, and a run of it that stands before some command."""

    _run: CaptureExecution | None = None

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None, engine: str = "auto", threads: int | None = None,
                 edits: Sequence[str] = (), replacements: Sequence[str] = ()) -> None:  # fmt: skip
        """`edits` and `replacements` as `softgen replay --set` and `--replace` take them (edit.py)."""
        self.path, self._gpu, self._engine, self._threads = path, gpu, engine, threads
        self._trace = self._open()
        self._states: OrderedDict[Position, dict[str, dict[str, Any]]] = OrderedDict()  # that draws and dispatches see
        self._ahead: CaptureExecution | None = None  # finds the targets of draws
        self._targets: dict[Position, tuple[SurfaceImage, ...]] = {}
        self._edits = CaptureEdits(self.submissions, self._trace.device, edits, replacements) if edits or replacements else None

    def _open(self) -> WorkTrace:
        return open_trace(self.path, self._gpu)

    @property
    def gpu(self) -> str:
        return self._trace.device.name

    # -- events --------------------------------------------------------------------------------------------------------

    @cached_property
    def submissions(self) -> tuple[SubmissionEvents, ...]:
        return tuple(submissions(self._trace))

    def events(self) -> Iterator[Event]:
        """All commands in order."""
        for submission in self.submissions:
            yield from submission.events

    def work(self) -> list[Event]:
        """Draws and dispatches."""
        return [event for event in self.events() if event.name in DRAWS | DISPATCHES]

    def event(self, position: Position | str) -> Event:
        """The command at a position."""
        where = self.find(position)
        return next(event for event in self.events() if event.position == replace(where, stage="", group=None, thread=None, offset=None,
                                                                                 instructions=None))  # fmt: skip

    def find(self, position: Position | str) -> Position:
        """A position with submission and command; those that are left out are the first."""
        given = parse(position) if isinstance(position, str) else position
        known = {submission.number: len(submission.events) for submission in self.submissions}
        if not known:
            raise UsageError(f"{self.path}: has no submissions")
        number = given.submission if given.submission is not None else next(iter(known))
        if number not in known:
            raise UsageError(f"{given}: there is no submission {number}; there are {', '.join(map(str, known))}")
        command = given.command if given.command is not None else 1
        if not 1 <= command <= max(known[number], 1):
            raise UsageError(f"{given}: submission {number} has commands 1 to {known[number]}")
        return replace(given, submission=number, command=command)

    # -- running -------------------------------------------------------------------------------------------------------

    @property
    def run(self) -> CaptureExecution:
        """The run; where it stands depends on what was asked for last."""
        control = self._run.control if self._run is not None else None
        if self._run is None or control is not None and not control.ended:
            self._begin_again()
        assert self._run is not None
        self._run.end_control()
        return self._run

    def _begin_again(self) -> None:
        if self._run is not None:
            self._run.end_control()
        self._run = self.new_run()

    def new_run(self, drawn: Drawn | None = None) -> CaptureExecution:
        """Another run, from the beginning, beside that of the session."""
        edit = self._edits.apply if self._edits is not None else lambda work: None
        return CaptureExecution(self._open(), self._engine, self._threads, drawn, edit=edit)

    @property
    def position(self) -> Position | None:
        """The command that is executed next; None at the end of the capture."""
        return self.run.position

    @property
    def errors(self) -> list[tuple[int, SoftgenError]]:
        """What went wrong so far, with the number of the submission."""
        return self.run.errors

    def seek(self, position: Position | str) -> Position:
        """Execute everything before a command, and nothing else."""
        target = self.find(position)
        here = self.run.position
        if here is None or self._order(here) > self._order(target):
            self._begin_again()
        assert target.submission is not None and target.command is not None
        if not self.run.run_to(target.submission, target.command):
            why = "".join(f"; submission {number}: {error}" for number, error in self.errors if number == target.submission)
            raise SoftgenError(f"{target}: the run does not come there{why}")
        return target

    def next(self) -> Position | None:
        """Execute the next command; where the run stands then."""
        self.run.finish_command()
        return self.run.position

    def run_to_end(self) -> None:
        self.run.run_to_end()

    def _order(self, position: Position) -> tuple[int, int]:
        """The place of a command in the capture."""
        numbers = [submission.number for submission in self.submissions]
        return numbers.index(position.submission or 0), position.command or 1

    # -- reading -------------------------------------------------------------------------------------------------------

    def memory(self, address: int, size: int) -> bytes:
        """Bytes of the context's address space."""
        return self.run.space.read(address, size)

    def regions(self) -> list[MappedRegion]:
        return list(self.run.space.regions())

    def state(self, position: Position | str | None = None) -> dict[str, dict[str, Any]]:
        """State commands that have been executed in the context, by name, with their fields as `softgen decode --json` has them: as the
        next command sees them, or the command at a position."""
        if position is not None:
            return self._state_at(self.find(position))
        latched, found = self.run.streamer.saved.latched, dict[str, dict[str, Any]]()
        for name in latched:
            try:
                layout, dwords = latched.dwords(name)
            except KeyError:  # a structure that a command pointed to
                continue
            found[name] = describe.to_json(layout, dwords)
        return found

    def changes(self, position: Position | str) -> dict[str, list[str]]:
        """State that differs from what the draw or dispatch before a command saw: names of fields, by command."""
        target = self.find(position)
        before = [event for event in self.work() if self._order(event.position) < self._order(target)]
        old: dict[str, dict[str, Any]] = {}
        if before:
            old = self._state_at(before[-1].position)
        found: dict[str, list[str]] = {}
        for name, fields in self._state_at(target).items():
            differ = [key for key, value in fields.items() if old.get(name, {}).get(key) != value]
            if differ:
                found[name] = differ
        return found

    def _state_at(self, position: Position) -> dict[str, dict[str, Any]]:
        """The state that a draw or dispatch sees; the last ones are kept, so that who goes from one to the next never goes back."""
        if position in self._states:
            self._states.move_to_end(position)
        else:
            self.seek(position)
            self._states[position] = self.state()
            if len(self._states) > MOST_STATES:
                self._states.popitem(last=False)
        return self._states[position]

    def drawn(self, position: Position | str) -> Sequence[SurfaceImage]:
        """The render targets that a draw names, without pictures; the session's run stays where it is: another one goes ahead of it."""
        target = replace(self.find(position), stage="", group=None, thread=None, offset=None, instructions=None)
        if self._ahead is None:
            self._ahead = self.new_run(lambda where, _, images: self._targets.__setitem__(where, tuple(images)))
        here = self._ahead.position
        if here is not None and self._order(here) <= self._order(target):
            assert target.submission is not None and target.command is not None
            if self._ahead.run_to(target.submission, target.command):
                self._ahead.finish_command()
        return self._targets.get(target, ())

    def targets(self, position: Position | str) -> list[TargetPicture]:
        """The render targets of a draw, as it leaves them; the run stands after it."""
        self.seek(position)
        self.run.targets = ()
        space = self.run.space
        self.next()
        return [self._target(space, number, image) for number, image in enumerate(self._drawn_last())]

    def _drawn_last(self) -> Sequence[SurfaceImage]:
        return self.run.targets

    def _target(self, space: Space, number: int, image: SurfaceImage) -> TargetPicture:
        from softgen.inspect.report.pictures import picture

        made, why = None, ""
        try:
            made = picture(space, image)
        except (SoftgenError, GpuFault) as error:
            why = str(error)
        return TargetPicture(number, image.base, str(image.format), image.width, image.height, made, why)

    # -- threads -------------------------------------------------------------------------------------------------------

    def offer(self, position: Position | str, wanted: Callable[[OfferedThread], bool],
              pixel: tuple[int, int] | None = None) -> ThreadControl:  # fmt: skip
        """Begin the command at a position, whose threads are offered; `pixel`: of pixel shaders those of one alone, which is quick."""
        self.seek(position)
        return self.run.offer_threads(wanted, pixel)

    def thread(self, position: Position | str) -> ThreadCursor:
        """An EU thread before its first instruction, or before the one that the position names."""
        target = self.find(position)
        cursor = ThreadCursor(*self._attach(target), self._attach)
        steps = target.instructions or 0
        if steps:
            cursor.run(lambda thread, writes: "there" if thread.runner.thread.executed >= steps else "")
        elif target.offset:
            cursor.run(lambda thread, writes: "there" if thread.position.offset == target.offset else "")
        if cursor.ended and (target.offset or cursor.runner.thread.executed < steps):
            raise UsageError(f"{target}: the thread does not come there; it ends after {cursor.runner.thread.executed} instructions")
        if None not in (target.offset, target.instructions) and cursor.position.offset != target.offset:
            place = f"after {steps} instructions the thread stands at +{cursor.position.offset:#x}"
            raise UsageError(f"{target}: there is no such place: {place}")
        return cursor

    def _attach(self, target: Position) -> tuple[ThreadControl, OfferedThread]:
        """Run to the start of the first thread that a position names."""
        wanted = replace(target, offset=None, instructions=None)
        control = self.offer(target, lambda offered: offered.position in wanted)
        offered = control.next()
        if offered is None:
            seen = ", ".join(f"{count} of {stage}" for stage, count in control.counts.items())
            raise UsageError(f"{wanted}: the command starts no such thread; it starts {seen or 'none'}")
        return control, offered

    def close(self) -> None:
        """End the run in the middle of a command whose threads were offered. A session that nobody has any more closes itself."""
        if self._run is not None:
            self._run.end_control()

    __del__ = close  # the host thread of a held EU thread waits for good and keeps the device

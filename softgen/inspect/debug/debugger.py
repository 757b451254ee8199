"""Debugger: where execution of a capture stands, and what moves it, forwards and back.

    debugger = Debugger(Session("kbl-vk-tri"))
    debugger.add("ps if pixel == (32, 20)")
    stop = debugger.cont()                 # DebuggerStop("breakpoint 1", 2:124/ps/g0.t40+0x0#0)
    debugger.step(), debugger.back(), debugger.line(), debugger.cont_back()

Only threads that some breakpoint may stop are executed on the interpreter. Without any, the debugger stops at the first thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.debug.breakpoints import Breakpoint, Watch, breakpoint_of, watch_of
from softgen.inspect.debug.named_variables import NamedVariable, values
from softgen.inspect.debug.sources import KernelSource, KernelSources
from softgen.inspect.session.control import OfferedThread, ThreadControl
from softgen.inspect.session.events import Event
from softgen.inspect.session.session import Session
from softgen.inspect.session.thread import ThreadCursor, ThreadStep
from softgen.inspect.session.undo import Write
from softgen.position import Position


@dataclass(frozen=True)
class DebuggerStop:
    """Why execution has stopped, and before which instruction."""

    reason: str  # step, breakpoint N, watch N, start, end of thread, end of capture, error
    position: Position | None
    text: str = ""  # of the instruction, or of the error
    numbers: tuple[int, ...] = ()  # of breakpoints and watches that were met
    step: ThreadStep | None = None  # the instruction that was executed, of a single step

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"reason": self.reason, "position": self.position and str(self.position), "text": self.text}
        if self.step is not None:
            found["changes"] = {lanes.name: list(lanes.after) for lanes in self.step.changes}
            found["writes"] = [{"address": write.address, "before": write.before.hex(), "after": write.after.hex()}
                               for write in self.step.writes]  # fmt: skip
        return found


class Debugger:
    """A session with breakpoints. `cursor` is the thread that execution stands in; None: before the first one, or at the end."""

    def __init__(self, session: Session, sources: Sequence[str] = (), optional: Sequence[str] = ()) -> None:
        self.session, self.sources = session, KernelSources(session._trace.device.generation.number, sources, optional)
        self.breakpoints: dict[int, Breakpoint] = {}
        self.watches: dict[int, Watch] = {}
        self.cursor: ThreadCursor | None = None
        self._next_number = 1
        self._work: list[Event] = session.work()
        self._at = 0  # of the draw or dispatch that comes next
        self._control: ThreadControl | None = None
        self._values: dict[int, tuple[int | float, ...]] = {}  # of watched registers

    # -- breakpoints ---------------------------------------------------------------------------------------------------

    def add(self, text: str) -> Breakpoint:
        """A breakpoint as a user types it."""
        made = breakpoint_of(self._next_number, text)
        self._next_number += 1
        self.breakpoints[made.number] = made
        self._offer_others()
        return made

    def watch(self, text: str) -> Watch:
        """A watch of a register or of memory."""
        made = watch_of(self._next_number, text)
        if made.register and self.cursor is not None:
            self._values[made.number] = self.cursor.lanes(made.register)
        self._next_number += 1
        self.watches[made.number] = made
        self._offer_others()
        return made

    def _offer_others(self) -> None:
        """Begin the command again where it offers the threads of one pixel alone, and others may stop now."""
        if self._control is not None and self._control.pixel not in (None, self._only_pixel()) and self.cursor is not None:
            self.go_to(self.cursor.position)

    def delete(self, number: int) -> None:
        if self.breakpoints.pop(number, None) is None and self.watches.pop(number, None) is None:
            raise UsageError(f"there is no breakpoint {number}")
        self._values.pop(number, None)

    # -- forwards ------------------------------------------------------------------------------------------------------

    def cont(self) -> DebuggerStop:
        """Run to the next breakpoint or watch that is met, or to the end."""
        if self.cursor is not None and not self.cursor.ended:
            if stop := self._run_thread(self.cursor):
                return stop
        return self._run_threads()

    def go_to(self, position: Position | str) -> DebuggerStop:
        """Stand in a thread, at an instruction if the position names one; `2:57` is the first thread of a command."""
        target = self.session.find(position)
        cursor = self.session.thread(target)
        cursor.control.wanted = self._wanted  # of the threads that start after this one
        self._enter(cursor)
        return DebuggerStop("start", cursor.position, cursor.text)

    def focus_pixel(self, x: int, y: int) -> DebuggerStop:
        """Stand in the thread of the current draw, or of the next one, that shades a pixel."""
        command = self.cursor.position if self.cursor is not None else None
        events = [event for event in self._work if command is None or self._order(event.position) >= self._order(command)]
        wanted = Breakpoint(0, "", Position(stage="ps"), pixel=(x, y))
        for event in events:
            control = self.session.offer(event.position, wanted.wants, (x, y))
            if (offered := control.next()) is not None:
                self._enter(ThreadCursor(control, offered, self.session._attach))
                assert self.cursor is not None
                return DebuggerStop("start", self.cursor.position, self.cursor.text)
        raise UsageError(f"no thread of these draws shades pixel ({x}, {y})")

    def step(self, count: int = 1) -> DebuggerStop:
        """Execute instructions of the thread; from its end, the next thread of the command."""
        cursor, made = self._standing(), None
        for _ in range(count):
            if cursor.ended:
                break
            made = cursor.step()
            if stop := self._met(cursor, made.writes, breakpoints=False):
                return replace(stop, step=made)
        if cursor.ended and made is None:
            return self._run_threads()
        return DebuggerStop("end of thread" if cursor.ended else "step", cursor.position, cursor.text, step=made)

    def line(self) -> DebuggerStop:
        """Execute until another line of the source begins."""
        cursor = self._standing()
        before = self.where()
        reason = cursor.run(lambda thread, writes: "line" if self.where() != before or self._hit(thread, writes, False) else "")
        return DebuggerStop("step" if reason else "end of thread", cursor.position, cursor.text)

    def line_back(self) -> DebuggerStop:
        """Undo until the beginning of the line before."""
        cursor = self._standing()
        if not cursor.position.instructions:
            return DebuggerStop("start of thread", cursor.position, cursor.text)
        cursor.back()
        before = self.where()
        while cursor.position.instructions:
            cursor.back()
            if self.where() != before:
                cursor.step()
                break
        return DebuggerStop("step", cursor.position, cursor.text)

    def _run_threads(self) -> DebuggerStop:
        """Threads one after another, in this command and those that follow, until one meets a breakpoint."""
        try:
            offered = self._control.next(None) if self._control is not None and not self._control.ended else None
            while True:
                while offered is None:
                    if self._at >= len(self._work):
                        return self._end()
                    event = self._work[self._at]
                    self._at += 1
                    if not self._may_stop(event):
                        continue
                    self._control = self.session.offer(event.position, self._wanted, self._only_pixel())
                    offered = self._control.next()
                cursor = self._adopt(offered)
                if stop := self._met(cursor, ()):
                    return stop
                if not (self.breakpoints or self.watches):
                    return DebuggerStop("start", cursor.position, cursor.text)
                if stop := self._run_thread(cursor):
                    return stop
                offered = cursor.control.next(None)
        except SoftgenError as error:
            self.cursor = self._control = None
            return DebuggerStop("error", None, str(error))

    def _wanted(self, offered: OfferedThread) -> bool:
        """Whether a thread is executed on the interpreter."""
        if not self.breakpoints and not self.watches:
            return True
        if any(watch.address for watch in self.watches.values()):
            return True
        return any(point.wants(offered) for point in self.breakpoints.values())

    def _only_pixel(self) -> tuple[int, int] | None:
        """The pixel that all breakpoints are for, if they are."""
        pixels = {point.pixel for point in self.breakpoints.values()}
        return pixels.pop() if len(pixels) == 1 and not self.watches else None

    def _may_stop(self, event: Event) -> bool:
        if not self.breakpoints or self.watches:
            return True
        commands = [Position(point.position.submission, point.position.command) for point in self.breakpoints.values()]
        return any(event.position in command for command in commands)

    def _adopt(self, offered: OfferedThread) -> ThreadCursor:
        assert self._control is not None
        cursor = ThreadCursor(self._control, offered, self.session._attach)
        self._enter(cursor)
        return cursor

    def _enter(self, cursor: ThreadCursor) -> None:
        self.cursor, self._control = cursor, cursor.control
        order = self._order(cursor.position)
        self._at = sum(1 for event in self._work if self._order(event.position) <= order)
        self._values = {watch.number: cursor.lanes(watch.register) for watch in self.watches.values() if watch.register}

    def _end(self) -> DebuggerStop:
        self.cursor = self._control = None
        self.session.run_to_end()
        errors = "; ".join(f"submission {number}: {error}" for number, error in self.session.errors)
        return DebuggerStop("end of capture", None, errors)

    def _run_thread(self, cursor: ThreadCursor) -> DebuggerStop | None:
        """Run the thread to a breakpoint or to its end."""
        found: list[DebuggerStop] = []

        def check(thread: ThreadCursor, writes: Sequence[Write]) -> str:
            stop = self._met(thread, writes)
            found.extend([stop] if stop else [])
            return "met" if stop else ""

        cursor.run(check)
        return found[0] if found else None

    # -- back ----------------------------------------------------------------------------------------------------------

    def back(self, count: int = 1) -> DebuggerStop:
        """Undo instructions of the thread."""
        cursor = self._standing()
        for _ in range(count):
            if not cursor.position.instructions:
                return DebuggerStop("start of thread", cursor.position, cursor.text)
            cursor.back()
        self._note_values(cursor)
        return DebuggerStop("step", cursor.position, cursor.text)

    def cont_back(self) -> DebuggerStop:
        """Go back to the breakpoint that was met last before this instruction: in this thread, else in one that ran before."""
        cursor = self._standing()
        found: list[DebuggerStop] = []

        def check(thread: ThreadCursor, writes: Sequence[Write]) -> str:
            stop = self._met(thread, writes)
            found.extend([stop] if stop else [])
            return "met" if stop else ""

        here = cursor.position
        if cursor.run_back(check):
            return found[0]
        return self._last_before(here, DebuggerStop("start of thread", cursor.position, cursor.text))

    def _last_before(self, here: Position, otherwise: DebuggerStop) -> DebuggerStop:
        """Run the capture again to the last breakpoint that is met before a thread; where there is none, to that thread."""
        if not self.breakpoints:
            return otherwise
        thread = replace(here, offset=None, instructions=None)
        count = self._count_hits(thread)
        if not count:
            return self.go_to(thread)
        self._restart()
        stop = self.cont()
        for _ in range(count - 1):
            stop = self.cont()
        return stop

    def _count_hits(self, thread: Position) -> int:
        """Breakpoints that are met before a thread starts."""
        self._restart()
        mark = Breakpoint(0, "", thread)
        self.breakpoints[0] = mark
        try:
            count = 0
            while (stop := self.cont()).position is not None and 0 not in stop.numbers:
                count += 1
            return count
        finally:
            del self.breakpoints[0]

    def _restart(self) -> None:
        self.cursor = self._control = None
        self._at = 0

    # -- what was met --------------------------------------------------------------------------------------------------

    def _met(self, cursor: ThreadCursor, writes: Sequence[Write], breakpoints: bool = True) -> DebuggerStop | None:
        """The stop at an instruction, after one that wrote to memory."""
        numbers = self._hit(cursor, writes, breakpoints)
        if not numbers:
            return None
        kinds = [f"{'breakpoint' if number in self.breakpoints else 'watch'} {number}" for number in numbers]
        return DebuggerStop(", ".join(kinds), cursor.position, cursor.text, tuple(numbers))

    def _hit(self, cursor: ThreadCursor, writes: Sequence[Write], breakpoints: bool = True) -> list[int]:
        numbers = []
        for point in self.breakpoints.values() if breakpoints and not cursor.ended else ():
            if point.meets(cursor, self.sources.offsets):
                point.hits += 1
                numbers.append(point.number)
        for watch in self.watches.values():
            if watch.register:
                value = cursor.lanes(watch.register)
                if repr(value) != repr(self._values.get(watch.number, value)):
                    numbers.append(watch.number)
                self._values[watch.number] = value
            elif any(write.address < watch.address + watch.size and watch.address < write.address + len(write.after) for write in writes):
                numbers.append(watch.number)
        return numbers

    def _note_values(self, cursor: ThreadCursor) -> None:
        self._values = {watch.number: cursor.lanes(watch.register) for watch in self.watches.values() if watch.register}

    # -- reading -------------------------------------------------------------------------------------------------------

    def _standing(self) -> ThreadCursor:
        if self.cursor is None:
            raise UsageError("execution stands in no thread; start it with `continue`, or say where with `at POSITION`")
        return self.cursor

    def source(self) -> KernelSource:
        """The source of the kernel that the thread runs."""
        return self.sources.kernel(self._standing().runner.code)

    def where(self) -> tuple[str, int]:
        """File and line of the next instruction."""
        cursor = self._standing()
        return self.sources.kernel(cursor.runner.code).line(cursor.position.offset or 0)

    def values(self, name: str) -> tuple[int | float, ...]:
        """The lanes of a variable of the kernel's source, or of a register."""
        cursor, source = self._standing(), self.source()
        name = name.strip()
        if name in source.variables:
            return self._named(cursor, source.variables[name])
        try:
            return cursor.lanes(name)
        except UsageError as error:
            raise UsageError(f"{error}; {self._known(source)}") from None

    def named_values(self) -> dict[str, tuple[int | float, ...]]:
        """The variables of the kernel's source that have values here."""
        found: dict[str, tuple[int | float, ...]] = {}
        for name, variables in self.source().variables.items():
            with suppress(UsageError):
                found[name] = self._named(self._standing(), variables)
        return found

    def _named(self, cursor: ThreadCursor, variables: Sequence[NamedVariable]) -> tuple[int | float, ...]:
        """Of variables of one name, the innermost that has a value here."""
        offset, registers = cursor.position.offset or 0, np.frombuffer(cursor.runner.thread.grf.tobytes(), np.uint8)
        here = [variable for variable in variables if any(begin <= offset < end for begin, end, _ in variable.places)]
        return values((here or variables)[-1], registers, offset, cursor.offered.dispatch.simd)

    def _known(self, source: KernelSource) -> str:
        if source.variables:
            return f"variables of {source.name} are {', '.join(sorted(source.variables))}"
        return f"{source.name} has no variables by name: no binary of it with debug information (-g) is known (docs/debugging.md)"

    def memory(self, address: int, size: int) -> bytes:
        """Memory as the thread sees it."""
        return self.cursor.space.read(address, size) if self.cursor is not None else self.session.memory(address, size)

    def _order(self, position: Position) -> tuple[int, int]:
        return self.session._order(position)

    def close(self) -> None:
        self.session.close()

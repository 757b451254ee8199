"""The terminal's commands: a line of text in, lines out. Any unambiguous beginning of a command's name will do.

continue | c [back]     to the next breakpoint; `continue back` to the one before
step | s [N]            N instructions forwards; `back [N]` back
next | n                to the next line of the source; `next back` to the one before
break PLACE [if …]      ps, /ps+0x20, 2:57/cs/g0.t4, saxpy.cl:6; if pixel == (X, Y), if r12:f == 1.5
watch r12:f | mem ADDRESS [SIZE]
delete N, info          remove a breakpoint; list them, and the draws and dispatches
at POSITION             stand in a thread: 2:57/ps/g0.t4, or 2:57 for the first of a command
pixel X Y               stand in the thread that shades a pixel
print REGISTER | NAME   all lanes: r12:f, r3.4:uw, f0, acc0:f, or a variable of the source; `set r12:f=1.5` writes
registers               all registers that are not zero
list [N]                lines around the next instruction
memory ADDRESS [SIZE]   bytes, as the thread sees them
state [NAME]            state commands that this draw sees
where, help, quit
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from softgen.errors import GpuFault, SoftgenError, UsageError
from softgen.inspect.cli.output import Paint
from softgen.inspect.debug.debugger import Debugger, DebuggerStop
from softgen.inspect.session.thread import ThreadStep

AROUND = 5  # lines
SHOWN = 32  # lanes


class Quit(Exception):
    """The user leaves."""


class Commands:
    """Executes commands of a terminal."""

    def __init__(self, debugger: Debugger, colour: Paint) -> None:
        self.debugger, self.paint = debugger, colour
        self.names = sorted(name.removeprefix("do_") for name in dir(self) if name.startswith("do_"))

    def run(self, line: str) -> Iterator[str]:
        """The answer to a line."""
        name, _, rest = line.strip().partition(" ")
        if not name:
            return
        found = [known for known in self.names if known.startswith(name)]
        exact = {"c": "continue", "s": "step", "n": "next", "b": "break", "p": "print", "q": "quit", "l": "list"}.get(name, name)
        if exact in self.names:
            found = [exact]
        if len(found) != 1:
            known = ", ".join(found or self.names)
            raise UsageError(f"{name!r} is {'not one command' if found else 'no command'}: {known}")
        yield from getattr(self, f"do_{found[0]}")(rest.strip())

    # -- moving --------------------------------------------------------------------------------------------------------

    def do_continue(self, rest: str) -> Iterator[str]:
        yield from self.stopped(self.debugger.cont_back() if rest == "back" else self.debugger.cont())

    def do_step(self, rest: str) -> Iterator[str]:
        yield from self.stopped(self.debugger.step(self._number(rest, 1)))

    def do_back(self, rest: str) -> Iterator[str]:
        yield from self.stopped(self.debugger.back(self._number(rest, 1)))

    def do_next(self, rest: str) -> Iterator[str]:
        yield from self.stopped(self.debugger.line_back() if rest == "back" else self.debugger.line())

    def do_at(self, rest: str) -> Iterator[str]:
        yield from self.stopped(self.debugger.go_to(rest))

    def do_pixel(self, rest: str) -> Iterator[str]:
        words = rest.replace(",", " ").split()
        if len(words) != 2:
            raise UsageError("which pixel? pixel X Y")
        yield from self.stopped(self.debugger.focus_pixel(self._number(words[0]), self._number(words[1])))

    # -- breakpoints ---------------------------------------------------------------------------------------------------

    def do_break(self, rest: str) -> Iterator[str]:
        made = self.debugger.add(rest)
        yield f"breakpoint {made.number}: {made.text}"

    def do_watch(self, rest: str) -> Iterator[str]:
        made = self.debugger.watch(rest)
        yield f"watch {made.number}: {made.text}"

    def do_delete(self, rest: str) -> Iterator[str]:
        self.debugger.delete(self._number(rest))
        yield from ()

    def do_info(self, rest: str) -> Iterator[str]:
        for point in self.debugger.breakpoints.values():
            yield f"breakpoint {point.number}: {point.text}, met {point.hits} times"
        yield from (f"watch {watch.number}: {watch.text}" for watch in self.debugger.watches.values())
        yield from (f"{event.position}  {event.name}" for event in self.debugger.session.work())

    # -- reading -------------------------------------------------------------------------------------------------------

    def do_where(self, rest: str) -> Iterator[str]:
        cursor = self.debugger.cursor
        if cursor is None:
            yield "in no thread"
            return
        file, line = self.debugger.where()
        text = self.debugger.sources.text_of(file, line)
        yield f"{cursor.position}  {self.debugger.source().name}, {file}:{line}{': ' if text else ''}{text}"
        yield f"channels {cursor.channels:#x} of {cursor.offered.dispatch.simd}"
        if pixels := cursor.pixels():
            yield "pixels " + " ".join("-" if pixel is None else f"({pixel[0]},{pixel[1]})" for pixel in pixels)

    def do_print(self, rest: str) -> Iterator[str]:
        if not rest:
            raise UsageError("print what? a register, r12:f, or a variable of the source")
        values = self.debugger.values(rest)
        yield f"{rest} = {self._lanes(values)}"

    def do_set(self, rest: str) -> Iterator[str]:
        self.debugger._standing().write(rest)
        yield from ()

    def do_registers(self, rest: str) -> Iterator[str]:
        for name, data in self.debugger._standing().snapshot().items():
            if any(data):
                words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
                yield f"{name:6} {' '.join(f'{word:08x}' for word in words) or data.hex()}"

    def do_list(self, rest: str) -> Iterator[str]:
        around = self._number(rest, AROUND)
        cursor, source = self.debugger._standing(), self.debugger.source()
        here = source.listing.get(cursor.position.offset or 0, 0)
        for number, line in enumerate(source.text.splitlines(), 1):
            if abs(number - here) <= around:
                mark = "=>" if number == here and not cursor.ended else "  "
                yield f"{mark} {number:4} {self.paint(line, 'name') if number == here else line}"

    def do_memory(self, rest: str) -> Iterator[str]:
        words = rest.split()
        if not 1 <= len(words) <= 2:
            raise UsageError("memory where? memory ADDRESS [SIZE]")
        address, size = self._number(words[0]), self._number(words[1], 64) if len(words) > 1 else 64
        if not 0 < size <= 1 << 16:
            raise UsageError(f"memory: 1 to {1 << 16} bytes can be shown, not {size}")
        data = self.debugger.memory(address, size)
        for at in range(0, size, 16):
            yield f"{address + at:#014x}  {data[at : at + 16].hex(' ', 4)}"

    def do_state(self, rest: str) -> Iterator[str]:
        run = self.debugger.session._run
        if run is None:
            raise UsageError("nothing runs yet")
        latched = run.streamer.saved.latched
        if not rest:
            yield " ".join(sorted(latched))
            return
        if rest not in latched:
            raise UsageError(f"no command has set {rest}")
        yield from (f"{name:40} {value}" for name, value in latched[rest]._asdict().items())

    def do_help(self, rest: str) -> Iterator[str]:
        assert __doc__ is not None
        yield from __doc__.splitlines()[2:]

    def do_quit(self, rest: str) -> Iterator[str]:
        raise Quit

    # -- text ----------------------------------------------------------------------------------------------------------

    def stopped(self, stop: DebuggerStop) -> Iterator[str]:
        """What is said where execution stops."""
        if stop.step is not None:
            yield from self._step(stop.step)
        if stop.position is None:
            yield f"{self.paint(stop.reason, 'bad' if stop.reason == 'error' else 'heading')}{': ' if stop.text else ''}{stop.text}"
            return
        reason = "" if stop.reason == "step" else f"{self.paint(stop.reason, 'heading')}: "
        file, line = self.debugger.where()
        source = "" if file.endswith(".asm") and self.debugger.source().path == file else f"  {self.paint(f'{file}:{line}', 'note')}"
        yield f"{reason}{self.paint(stop.position, 'address')}  {stop.text}{source}"

    def _step(self, step: ThreadStep) -> Iterator[str]:
        for lanes in step.changes:
            yield f"    {lanes.name} = {self._lanes(lanes.after)}"
        for write in step.writes:
            yield f"    {write.address:#x}: {write.before[:16].hex(' ', 4)} -> {write.after[:16].hex(' ', 4)}"

    def _lanes(self, values: Any) -> str:
        more = f" … {len(values)} in all" if len(values) > SHOWN else ""
        return " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values[:SHOWN]) + more

    def _number(self, text: str, default: int | None = None) -> int:
        if not text and default is not None:
            return default
        try:
            return int(text, 0)
        except ValueError:
            raise UsageError(f"{text!r} is no number") from None


class JsonCommands(Commands):
    """The same, with stops and registers as JSON objects, one a line."""

    def stopped(self, stop: DebuggerStop) -> Iterator[str]:
        yield json.dumps(stop.as_json())

    def do_print(self, rest: str) -> Iterator[str]:
        yield json.dumps({"register": rest, "lanes": [str(value) if value != value else value for value in
                                                      self.debugger.values(rest)]})  # fmt: skip


ERRORS = (SoftgenError, GpuFault)

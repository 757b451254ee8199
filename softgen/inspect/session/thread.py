"""ThreadCursor: one EU thread of a dispatch or draw, stepped forwards and back on the interpreter.

    thread = session.thread("2:57/ps/g0.t54")
    thread.step().changes                  # registers that the instruction changed, by lane
    thread.back()                          # and as it was
    thread.lanes("r12:f")                  # values of all lanes

Steps back restore what an instruction changed. Where that is not kept any more, the capture is executed again up to the instruction before.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softgen.errors import SoftgenError, UsageError
from softgen.eu.interpreter import SENDS, Interpreter
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.types import size
from softgen.eu.thread.regions import LANES, destination_offsets, register_location
from softgen.inspect import registers
from softgen.inspect.session.control import OfferedThread, ThreadControl
from softgen.inspect.session.undo import Undo, Write, WriteLog
from softgen.position import Position
from softgen.shared_functions.dataport.interpreter import DataPort
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.threads import places

MOST_UNDO = 20_000  # steps: each takes a thread's block, about 7 KB
REGISTER = re.compile(r"([a-z]+)(\d*)(?:\.(\d+))?(?::(\w+))?", re.ASCII)


@dataclass(frozen=True)
class ThreadStep:
    """An instruction that was executed."""

    position: Position  # of the instruction
    text: str
    channels: int  # execution mask
    changes: tuple[registers.RegisterLanes, ...]
    writes: tuple[Write, ...]  # to memory
    done: bool = True  # False: the thread waits for a notification


# Why execution stops after an instruction with these writes to memory; '' goes on.
Stop = Callable[["ThreadCursor", Sequence[Write]], str]


# Runs the capture again, to the start of a thread.
Reattach = Callable[[Position], tuple[ThreadControl, OfferedThread]]


class ThreadCursor:
    """An EU thread that is held before an instruction."""

    def __init__(self, control: ThreadControl, offered: OfferedThread, reattach: Reattach) -> None:
        self._reattach = reattach
        self._attach(control, offered)

    def _attach(self, control: ThreadControl, offered: OfferedThread) -> None:
        self.control, self.offered = control, offered
        self.space = offered.context.space
        self.history: deque[Undo] = deque(maxlen=MOST_UNDO)
        self.kinds = registers.Kinds(self.runner.thread)
        self.local = _local(self.runner)

    # -- where it is ---------------------------------------------------------------------------------------------------

    @property
    def runner(self) -> Interpreter:
        return self.offered.runner

    @property
    def position(self) -> Position:
        """The position of the instruction that is executed next."""
        return self.offered.here

    @property
    def ended(self) -> bool:
        return self.runner.thread.ended

    @property
    def gen(self) -> float:
        return self.runner.thread.gen

    @property
    def instruction(self) -> Instruction | None:
        """The instruction that is executed next; None at the thread's end."""
        return None if self.ended else self.runner.code.line(self.runner.thread.ip).instruction

    @property
    def text(self) -> str:
        inst = self.instruction
        return "end of thread" if inst is None else places.text(inst)

    @property
    def channels(self) -> int:
        """The channels that execute the next instruction, before predication."""
        return self.runner.thread.active

    # -- going forward -------------------------------------------------------------------------------------------------

    def step(self) -> ThreadStep:
        """Execute one instruction."""
        here, text, channels, before = self.position, self.text, self.channels, registers.snapshot(self.runner.thread)
        done, undo = self._advance()
        after = registers.snapshot(self.runner.thread)
        changes = tuple(registers.changes(before, after, self.kinds))
        return ThreadStep(here, text, channels, changes, tuple(undo.writes), done)

    def run(self, stop: Stop, limit: int | None = None) -> str:
        """Execute until `stop` gives a reason, asked after each instruction; '' at the end of the thread."""
        left = limit
        while not self.ended and (left is None or left > 0):
            _, undo = self._advance()
            if reason := stop(self, undo.writes):
                return reason
            left = None if left is None else left - 1
        return "" if self.ended else "limit"

    def _advance(self) -> tuple[bool, Undo]:
        """Execute one instruction, with what takes it back; other threads run where it waits."""
        if self.ended:
            raise UsageError(f"{self.position}: the thread has ended")
        undo = Undo.of(self.runner, None)
        inst = self.runner.code.line(self.runner.thread.ip).instruction
        if inst.opcode in SENDS:
            undo.local = self.local.tobytes() if self.local is not None else None
            with WriteLog(self.space) as log:
                undo.writes = log.writes
                done = self.runner.step()
        else:
            done = self.runner.step()
        if done:
            self._note_types(inst)
            self.history.append(undo)
        else:
            self._wait()
        return done, undo

    def _wait(self) -> None:
        """Let other threads of the group run until this one can go on. What they change is not taken back by steps."""
        mine, offered = self.offered, self.control.next(False)
        while offered is not None and offered is not mine:
            offered = self.control.next(None)
        if offered is None:
            raise SoftgenError(f"{mine.here}: waits, and the command has ended without it")
        self.history.clear()

    # -- going back ----------------------------------------------------------------------------------------------------

    def back(self) -> Position:
        """Undo the last instruction; the position before it."""
        if self.history:
            self.history.pop().take_back(self.space, self.local)
            return self.position
        executed = self.runner.thread.executed
        if not executed:
            raise UsageError(f"{self.position}: the thread starts here")
        self.restart(executed - 1)
        return self.position

    def restart(self, instructions: int = 0) -> None:
        """Run the capture again, to an instruction of this thread."""
        self._attach(*self._reattach(replace(self.position, offset=None, instructions=None)))
        while self.runner.thread.executed < instructions and not self.ended:
            self._advance()

    def run_back(self, stop: Stop) -> str:
        """Go back until `stop` gives a reason; '' at the start of the thread. It sees the writes of the instruction that is undone."""
        while self.runner.thread.executed:
            writes = self.history[-1].writes if self.history else []
            self.back()
            if reason := stop(self, writes):
                return reason
        return ""

    # -- reading -------------------------------------------------------------------------------------------------------

    def lanes(self, name: str) -> tuple[int | float, ...]:
        """The values of a register, such as r12:f, r12.4:uw, f0 or acc0:f: from the element on, to the register's end."""
        place, start, stop, kind = self._find(name)
        data = registers.snapshot(self.runner.thread)[place][start:stop]
        found = np.frombuffer(data, registers.DTYPES[kind])
        return tuple(float(str(value)) if LANES[kind].is_float else int(value) for value in found)

    def _find(self, name: str) -> tuple[str, int, int, str]:
        found = REGISTER.fullmatch(name.strip())
        if found is None:
            raise UsageError(f"a register looks like r12:f or f0.0, not {name!r}")
        letters, number, element, kind = found.groups()
        try:
            where = registers.find(letters, number, self.gen, self.runner.thread)
        except SoftgenError as error:
            raise UsageError(str(error)) from None
        kind = kind or ("uw" if where.place in ("a", "f") else "ud")
        if kind not in registers.DTYPES:
            raise UsageError(f"{name}: no type is called {kind!r}; types are {' '.join(registers.DTYPES)}")
        start = where.start + int(element or 0) * size(kind)
        if start + size(kind) > where.start + where.size:
            raise UsageError(f"{name}: {where.name} has {where.size // size(kind)} elements of type {kind}")
        return where.place, start, where.start + where.size, kind

    def write(self, text: str) -> None:
        """Write a register: r12:f=1.5."""
        try:
            setting = registers.setting(text, self.gen, self.runner.thread)
        except SoftgenError as error:
            raise UsageError(str(error)) from None
        registers.apply(setting, self.runner.state)

    def snapshot(self) -> dict[str, bytes]:
        """All registers by name."""
        return self.runner.thread.snapshot()

    def pixels(self) -> tuple[tuple[int, int] | None, ...]:
        """The pixel of each lane of a pixel shader's thread; None: the lane has none."""
        if self.position.stage != "ps":
            return ()
        held = PixelDispatch.from_buffer_copy(self.runner.thread.pixel.tobytes())
        return pixels_of(held, self.offered.dispatch.simd)

    def _note_types(self, inst: Instruction) -> None:
        """Remember the type that an instruction writes registers with; that of a send means nothing."""
        dst = inst.dst
        if dst is None or dst.indirect or dst.type not in LANES or inst.opcode in SENDS:
            return
        name, start = register_location(dst, self.gen)
        if name in ("grf", "mrf", "a", "acc"):
            for offset in destination_offsets(inst):
                if 0 <= start + offset < len(self.kinds.held[name]):
                    self.kinds.write(name, start + offset, dst.type)


def pixels_of(held: Any, channels: int) -> tuple[tuple[int, int] | None, ...]:
    """The pixels of a PixelDispatch; None where a channel's pixel is not covered."""
    found: list[tuple[int, int] | None] = []
    for channel in range(channels):
        corner = held.place[channel // 4]
        x, y = (corner & 0xFFFF) + channel % 2, (corner >> 16) + channel % 4 // 2
        found.append((x, y) if held.lit >> channel & 1 else None)
    return tuple(found)


def _local(runner: Interpreter) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """The shared local memory of a thread's group."""
    for handler in runner.thread.messages.values():
        environment = getattr(handler, "environment", None)
        if isinstance(environment, DataPort) and environment.held.size:
            return environment.held.held
    return None

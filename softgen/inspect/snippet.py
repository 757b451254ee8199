"""A piece of EU assembly, run on one thread without a dispatch: registers are zero unless set, and there is no memory.

    snippet = Snippet(text, gen=9.0)
    snippet.set("r1.0:ud=7")
    ran = snippet.run()                 # ran.changes, ran.end, ran.problem

The thread ends at its last message (EOT to the thread spawner) or simply where the code does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from softgen.errors import SoftgenError, Unsupported
from softgen.eu.encoding import program
from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.isa import labels, opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import execution_type
from softgen.eu.semantics import OPS
from softgen.eu.text import dialect
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.predicate import first_channel
from softgen.eu.thread.regions import LANES, destination_offsets, register_location
from softgen.eu.thread.state import ThreadState
from softgen.inspect import registers
from softgen.inspect.registers import RegisterLanes
from softgen.shared_functions import descriptors, spawner
from softgen.shared_functions.unit import MessageHandler

if TYPE_CHECKING:
    from softgen.inspect.snippet_engine import Runner

CLOCK_INTERVAL = 64  # instructions between two readings of the clock
NARROWEST = 8  # default channels of a thread, at least
FUNCTIONS = 16  # numbers a shared function can have


@dataclass(frozen=True)
class Place:
    """An instruction's place in the source, and its text."""

    where: str  # file, line and column
    text: str


@dataclass(frozen=True)
class Step:
    """An instruction that was executed."""

    offset: int
    place: Place
    channels: int  # that were active
    changes: list[RegisterLanes]


@dataclass
class Ran:
    """The result: either `end` or `problem` is set."""

    instructions: int = 0
    end: str = ""
    problem: str = ""
    changes: list[RegisterLanes] = field(default_factory=list)


class Snippet:
    def __init__(self, text: str, gen: float, syntax: str | None = None, name: str = "text", simd: int | None = None) -> None:
        """`simd` is the number of channels (default: those of the widest instruction)."""
        self.gen, self.syntax = gen, dialect.select_dialect(syntax, gen) if syntax else dialect.detect(text, gen)
        parsed = dialect.parse(text, gen, self.syntax, name)
        dialect.read(text, gen, self.syntax, name)  # complains about what has no bits
        self.places = self._placed(parsed)
        self.end = sum(map(labels.size, parsed.instructions))
        self.simd = simd or max([NARROWEST, *(inst.exec_size for inst in parsed.instructions)])
        self.thread = ThreadState(gen, {**_ending(gen), 0: _null_function}, dispatch_mask=(1 << self.simd) - 1)
        code = program.assemble([*parsed.instructions, _nop(gen)])  # branches may lead behind the last instruction, and look at it
        self.interpreter = Interpreter(self.thread, KernelProgram(gen, code, name=name))
        self.code = code[: self.end]
        for sfid in range(FUNCTIONS):
            self.thread.messages.setdefault(sfid, self._unanswered)
        self.kinds = registers.Kinds(self.thread)

    def _placed(self, parsed: dialect.ParsedProgram) -> dict[int, Place]:
        items, offset = [], 0
        for inst in parsed.instructions:
            items.append((offset, labels.size(inst), inst))
            offset += labels.size(inst)
        rows = dialect.ListingWriter(self.syntax, self.gen, parsed.instructions).rows(items)
        return {row.offset: Place(parsed.place(number), _tidy(row.text)) for number, row in enumerate(rows)}

    def _unanswered(self, _: ThreadState, sent: SentMessage) -> None:
        name = descriptors.shared_functions(self.gen).get(sent.sfid, f"shared function {sent.sfid}")
        raise Unsupported(f"there is no {name} here to answer messages: a snippet has registers, no memory and no other units")

    def set(self, text: str) -> None:
        """Writes a register, as `registers` reads it."""
        setting = registers.setting(text, self.gen, self.thread)
        registers.apply(setting, self.interpreter.state)
        for offset in range(setting.start, setting.start + len(setting.data), types.size(setting.type)):
            self.kinds.write(setting.place, offset, setting.type)

    def run(self, limit: float = math.inf, seconds: float = math.inf, seen: Callable[[Step], None] | None = None,
            tick: Callable[[], None] = lambda: None, engine: str = "reference") -> Ran:  # fmt: skip
        """Run until the thread ends or a limit is reached; `tick` is called for every instruction, `seen` with its changes (slow).
        A compiling engine runs whole stretches of code unless `seen` is given."""
        thread, ran, over = self.thread, Ran(), time.monotonic() + seconds
        runner = self._runner(engine, single=seen is not None)
        whole = engine != "reference" and seen is None
        first = now = registers.snapshot(thread)
        last = ""
        while not thread.ended and thread.ip != self.end and not ran.problem:
            here, channels, spot = thread.ip, thread.active, self.places.get(thread.ip)
            if spot is None:
                ran.problem = f"{last} leads to {here:#x}, where no instruction of the snippet begins"
                break
            last = f"{spot.where}: {spot.text}:"
            if thread.executed >= limit:
                ran.problem = f"{last} stopped after {thread.executed:,} instructions; if it is not endless, --limit allows more"
                break
            if (whole or thread.executed % CLOCK_INTERVAL == 0) and time.monotonic() >= over:
                ran.problem = f"{last} stopped after {seconds:g} s and {thread.executed:,} instructions; --time-limit allows more"
                break
            ran.problem = self._step(runner, last)
            was, now = now, registers.snapshot(thread)
            if whole:
                self._written_somewhere(was, now)
            else:
                self._written(was, now, self.interpreter.code.line(here).instruction, channels)
            tick()
            if seen is not None:
                seen(Step(here, spot, channels, registers.changes(was, now, self.kinds)))
        ran.instructions, ran.changes = thread.executed, registers.changes(first, now, self.kinds)
        ran.end = "" if ran.problem else "end of thread" if thread.ended else "end of code"
        return ran

    def _runner(self, engine: str, single: bool) -> Runner:
        if engine == "reference":
            return self.interpreter
        from softgen.inspect.snippet_engine import Compiled  # the reference does without a compiler

        return Compiled(engine, self.interpreter, self.code, single)

    def _step(self, runner: Runner, last: str) -> str:
        """Run on; the problem, if any, without the place that the interpreter would name."""
        try:
            if not runner.step():
                spot = self.places[self.thread.ip]  # a compiling engine comes from further above
                return f"{spot.where}: {spot.text}: waits for a notification that no other thread can send"
        except SoftgenError as error:
            return f"{last} {error.__cause__ or error}"
        return ""

    def _written_somewhere(self, before: registers.Snapshot, after: registers.Snapshot) -> None:
        """The same for a stretch of code: bytes were written by the last instruction that names them."""
        changed = {name: set(offsets) for name, offsets in registers.changed_bytes(before, after).items()}
        for offset in self.places:
            inst = self.interpreter.code.line(offset).instruction
            if inst.opcode not in OPS or inst.dst is None or inst.dst.indirect or inst.dst.type not in LANES:
                continue
            name, start = register_location(inst.dst, self.gen)
            size, bytes_of = types.size(inst.dst.type), changed.get(name, set()) if name in ("grf", "mrf", "a", "acc") else set()
            for at in (start + offset for offset in destination_offsets(inst)):
                if not bytes_of.isdisjoint(range(at, at + size)):  # 1.0 begins with bytes of zero
                    self.kinds.write(name, at, inst.dst.type)

    def _written(self, before: registers.Snapshot, after: registers.Snapshot, inst: Instruction, channels: int) -> None:
        """Record the types with which bytes were written: those that changed, and those of which `channels` wrote the value they had."""
        kind = inst.dst.type if inst.dst is not None and inst.dst.type in LANES else "ud"
        named = inst.dst is not None and inst.dst.file == "arf" and not inst.dst.indirect
        for name, offsets in registers.changed_bytes(before, after).items():
            aside = name == "acc" and not named  # written in passing
            if name in ("grf", "mrf", "a", "acc"):
                for offset in offsets:
                    self.kinds.write(name, offset, _accumulated(inst, kind) if aside else kind)
        if inst.opcode in OPS and inst.dst is not None and not inst.dst.indirect and (not inst.predicate or inst.opcode == "sel"):
            self._written_again(inst, inst.dst, channels)

    def _written_again(self, inst: Instruction, dst: Operand, channels: int) -> None:
        """Record the type of every element that an instruction without a predicate writes."""
        name, start = register_location(dst, self.gen) if dst.type in LANES else ("", 0)
        if name not in ("grf", "mrf", "a", "acc"):
            return
        first, enables = first_channel(self.interpreter.state, inst), 0xF if dst.write_mask is None else dst.write_mask
        for lane, offset in enumerate(destination_offsets(inst)):
            bit = lane % 2 * 2 if types.size(dst.type) > 4 else lane % 4
            if enables >> bit & 1 and (inst.no_mask or channels >> first + lane & 1):
                self.kinds.write(name, start + offset, dst.type)


def _accumulated(inst: Instruction, kind: str) -> str:
    """The type of an implicitly written accumulator: floats as they are computed, else dwords or words."""
    found = execution_type(operand.type for operand in inst.sources)
    if found in ("f", "hf", "df"):
        return found
    return "d" if types.size(kind) >= types.size("d") else "w"


def _ending(gen: float) -> dict[int, MessageHandler]:
    """Handlers of the messages that end threads."""
    numbers = descriptors.shared_functions(gen).items()
    return {sfid: MessageHandler(gen, spawner.Spawner()) for sfid, name in numbers if name in spawner.UNIT.functions}


def _null_function(_: ThreadState, __: SentMessage) -> None:
    """The null shared function."""


def _nop(gen: float) -> Instruction:
    row = opcodes.opcode("nop", gen)
    assert row is not None
    return Instruction(gen, row.name, row.number, row.form)


def _tidy(text: str) -> str:
    return " ".join(text.split()).removesuffix(";")

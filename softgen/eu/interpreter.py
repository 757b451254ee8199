"""The reference: runs a thread instruction by instruction on NumPy lanes, until it ends, waits, or has gone round too often.

    thread = Thread(9, messages={12: data_port})
    outcome = run(thread, Program(9, code))          # Outcome.ENDED, WAITING or SPENT

Every error names the kernel, the place in it and the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

import numpy as np

from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.eu.encoding import program
from softgen.eu.isa import labels, opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import Rules
from softgen.eu.semantics import OPS, control
from softgen.eu.semantics.control import CHANNEL, SINGLE, STACK, Branch
from softgen.eu.semantics.send import EXTENDED_MATH, extended_math, send
from softgen.eu.semantics.step import step
from softgen.eu.text.mesa import format as mesa_format
from softgen.eu.thread import exceptions
from softgen.eu.thread.lane_state import Offsets
from softgen.eu.thread.predicate import group, predicate
from softgen.eu.thread.regions import place
from softgen.eu.thread.state import ACCUMULATOR_OFF, ALL, CHANNELS, READ_ONLY, REGISTER, Mode, Thread
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u32
from softgen.lanes.value import Memory, Value

ENDLESS = 1 << 24  # backward branches a thread may take unless told otherwise
FAR = 1 << 10  # bytes that a backward branch may go for the price of one
SENDS = frozenset({"send", "sendc", "sends", "sendsc"})
IDLE = frozenset({"nop", "nenop"})
OTHERS = SENDS | IDLE | {"wait", "illegal"}
SHOWN = 8  # low bits of ip that are always zero


class Outcome(Enum):
    """Why a thread left the interpreter."""

    ENDED = "ended"
    WAITING = "waiting"
    SPENT = "spent"  # its backward branches are used up; run it again to go on


@dataclass(frozen=True)
class Line:
    """A decoded instruction of a program."""

    ip: int
    size: int
    instruction: Instruction


class Program:
    """Code of a generation; `start` is its address counted from the instruction base. Decoded as it is reached."""

    def __init__(self, gen: float, code: bytes, start: int = 0, name: str = "") -> None:
        self.gen, self.code, self.start, self.name = gen, code, start, name
        self.lines: dict[int, Line] = {}

    def line(self, ip: int) -> Line:
        found = self.lines.get(ip)
        if found is None:
            offset = ip - self.start
            here = self.code[offset : offset + labels.NATIVE] if offset >= 0 and not offset % labels.COMPACT else b""
            first = next(program.instructions(here, self.gen), None)
            if first is None:
                where = f"gen {self.gen:g}, {self.title}{offset:+#x}"
                raise GpuFault(ip, "instruction fetch", by=where, why="no instruction of the kernel is there")
            found = self.lines[ip] = Line(ip, first[1], first[2])
        return found

    @cached_property
    def title(self) -> str:
        return self.name or f"kernel {self.start:#x}"


def unbuilt(gen: float) -> frozenset[str]:
    """The opcodes of a generation that the interpreter does not simulate."""
    known = set(OPS) | OTHERS | set(STACK if Thread(gen).rules.flow == "stack" else CHANNEL)
    return frozenset(one.name for one in opcodes.of_generation(gen) if one.name not in known)


@lru_cache(1 << 14)
def _constant(m: NumpyMachine, type: LaneType, numbers: tuple[int, ...]) -> Value:
    """Offsets and masks come again and again."""
    return m.constant(type, numbers)


# -- registers as lanes --------------------------------------------------------------------------------------------


class Reference:
    """A thread's bytes as the State that `step` works on."""

    def __init__(self, thread: Thread, machine: NumpyMachine | None = None) -> None:
        self.thread, self.m = thread, machine or NumpyMachine()
        self.memories: dict[str, Memory] = {name: self.m.memory(held, name) for name, held in self._places()}
        if thread.rules.math == "message":
            thread.messages.setdefault(EXTENDED_MATH, extended_math(self.m))

    def _places(self) -> list[tuple[str, object]]:
        return [("grf", self.thread.grf), ("mrf", self.thread.mrf), *self.thread.arf.items()]

    @property
    def gen(self) -> float:
        return self.thread.gen

    @property
    def rules(self) -> Rules:
        return self.thread.rules

    @property
    def mode(self) -> Mode:
        return self.thread.mode

    @property
    def accumulates(self) -> bool:
        return not self.thread.control & ACCUMULATOR_OFF

    def _offsets(self, offsets: Offsets) -> Value:
        return offsets if isinstance(offsets, Value) else _constant(self.m, u32, offsets)

    def _inside(self, name: str, type: LaneType, offsets: Value) -> Value | None:
        """Which lanes an architecture register has. General registers must have them all: there the machine complains."""
        if name in ("grf", "mrf"):
            return None
        last = len(self.thread.arf[name]) - type.bytes
        return offsets <= last if last >= 0 else self.m.constant(bool_, 0, offsets.lanes)

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        self._refresh(place)
        where = self._offsets(offsets)
        return self.m.load(type, self.memories[place], where, self._inside(place, type, where))

    def _refresh(self, place: str) -> None:
        thread = self.thread
        if place == "ip":
            thread.dwords("ip")[0] = thread.ip & ~(SHOWN - 1)
        elif place == "ce":
            thread.dwords("ce")[0] = thread.active
        elif place == "tm":
            thread.dwords("tm")[:2] = thread.clock() & ALL, thread.clock() >> 32 & ALL

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None:
        if place in READ_ONLY:
            return
        where = self._offsets(offsets)
        inside = self._inside(place, value.type, where)
        self.m.store(value, self.memories[place], where, mask if inside is None else mask & inside)

    def enabled(self, instruction: Instruction) -> Value:
        bits = ALL if instruction.no_mask else self.thread.active >> group(self, instruction)
        return _constant(self.m, bool_, tuple(bits >> channel & 1 for channel in range(instruction.exec_size)))

    def flags(self, first: int, count: int) -> Value:
        bits, size = self.thread.flags, len(self.thread.arf["f"]) * 8
        return self.m.constant(bool_, [bits >> (first + channel) % size & 1 for channel in range(count)])

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        held = self.thread.arf["f"]
        for channel in range(value.lanes):
            bit = (first + channel) % (len(held) * 8)
            if mask.payload[channel]:
                held[bit // 8] = int(held[bit // 8]) & ~(1 << bit % 8) | int(value.payload[channel]) << bit % 8


# -- running -------------------------------------------------------------------------------------------------------


class Interpreter:
    """A thread and its program."""

    def __init__(self, thread: Thread, code: Program, machine: NumpyMachine | None = None, watch: bool = False,
                 text: Callable[[Instruction], str] | None = None) -> None:  # fmt: skip
        self.thread, self.code, self.watch = thread, code, watch
        self.state = Reference(thread, machine)
        self.text = text or _text

    def run(self, limit: int = ENDLESS) -> Outcome:
        """Goes on until something stops it; `limit` is the number of backward branches, of which long ones count for more: time is bounded
        whatever the loops."""
        thread = self.thread
        while not thread.ended:
            here = thread.ip
            if not self.step():
                return Outcome.WAITING
            if thread.ip <= here and not thread.ended:
                limit -= 1 + (here - thread.ip) // FAR
                if limit <= 0:
                    return Outcome.SPENT
        return Outcome.ENDED

    def step(self) -> bool:
        """One instruction; False where it is a wait and nobody has notified the thread."""
        before = self.thread.snapshot() if self.watch else None
        line = self.code.line(self.thread.ip)
        try:
            done = self._execute(line)
        except (GpuFault, Unsupported, DecodeError) as error:
            raise self._placed(error, line) from error
        self.thread.executed += done
        self.thread.changed = self.thread.compare(before) if before is not None else ()
        return done

    def _placed(self, error: SoftgenError, line: Line) -> SoftgenError:
        where = f"gen {self.thread.gen:g}, {self.code.title}+{line.ip - self.code.start:#x}: {self.text(line.instruction)}"
        if isinstance(error, GpuFault):
            return GpuFault(error.address, error.access, error.space, error.by or where, error.why)
        return type(error)(f"{where}: {error}")

    def _execute(self, line: Line) -> bool:
        one, thread = line.instruction, self.thread
        behind = line.ip + line.size
        if one.breakpoint and (routine := exceptions.breaks(thread, line.ip)) is not None:
            self._move(routine)
        elif one.opcode in OPS:
            self._move(self._compute(one, behind))
        elif one.opcode in SENDS:
            first = group(self.state, one)
            send(thread, one, _bits(self.state.enabled(one) & predicate(self.state, one)), first)
            self._move(behind)
        elif one.opcode == "wait":
            if not self._notified(one):
                return False
            self._move(behind)
        elif one.opcode in IDLE:
            self._move(behind)
        else:
            self._branch(line, behind)
        return True

    def _compute(self, one: Instruction, behind: int) -> int:
        """Where the thread goes on: behind the instruction, unless it wrote ip, or something into cr0 that leads elsewhere."""
        name = place(one.dst, one.gen)[0] if one.dst is not None and one.dst.file == "arf" else ""
        before = self.thread.dwords("cr").copy() if name == "cr" else None
        step(self.state, one)
        if before is not None:
            led = exceptions.written(self.thread, before, behind)
            return behind if led is None else led
        return self._written_ip(one, behind) if name == "ip" else behind

    def _move(self, to: int) -> None:
        """All channels that were here go on together."""
        thread = self.thread
        if thread.rules.flow == "channel":
            here = thread.ip
            thread.channel_ip = [to if ip == here or thread.single_flow else ip for ip in thread.channel_ip]
        thread.ip = to

    def _written_ip(self, one: Instruction, behind: int) -> int:
        """A write to ip jumps, without its low bits (IVB 2643-2650)."""
        if not _bits(self.state.enabled(one) & predicate(self.state, one)):
            return behind
        return int(self.thread.dwords("ip")[0]) & ~(SHOWN - 1)

    def _notified(self, one: Instruction) -> bool:
        """Takes one notification, or waits for it (IVB 2557-2560)."""
        operand = one.dst if one.dst is not None and one.dst.file == "arf" and one.dst.number else one.sources[0]
        name, start = place(operand, one.gen)
        counts = self.thread.dwords("n")
        if name != "n" or start // 4 >= len(counts):
            raise DecodeError("wait is for a notification register")
        if not counts[start // 4]:
            self.thread.waiting = start // 4
            return False
        counts[start // 4] -= 1
        self.thread.waiting = None
        return True

    # -- branches --------------------------------------------------------------------------------------------------

    def _branch(self, line: Line, behind: int) -> None:
        one, thread = line.instruction, self.thread
        table = STACK if thread.rules.flow == "stack" else SINGLE if thread.single_flow else CHANNEL
        meaning = table.get(one.opcode)
        if meaning is None:
            self._move(self._refuse(one, line.ip))
            return
        active, holds = self._channels(one)
        taken = holds if one.opcode == "jmpi" else active & holds
        branch = Branch(thread, one, line.ip, behind, active, taken, holds, lambda: self._dwords(one), lambda a, b: self._store(one, a, b),
                        lambda address: address + self.code.line(address).size)  # fmt: skip
        to = meaning(branch)
        if thread.single_flow and thread.rules.flow == "channel":
            thread.channel_ip = [to] * CHANNELS
        thread.ip = to

    def _refuse(self, one: Instruction, ip: int) -> int:
        """The system routine, where the exception is enabled; else nothing sensible can follow."""
        if not one.opcode or one.opcode == "illegal":
            routine = exceptions.happens(self.thread, exceptions.ILLEGAL, ip)
            if routine is not None:
                return routine
            raise DecodeError(f"opcode {one.opcode_number} is no instruction of gen {one.gen:g}")
        raise Unsupported(f"{one.opcode} is not yet simulated")

    def _channels(self, one: Instruction) -> tuple[int, int]:
        """Which of the thread's channels execute a branch, and for which its predicate holds."""
        first = group(self.state, one)
        inside = (1 << one.exec_size) - 1 << first
        return self.thread.active, _bits(predicate(self.state, one)) << first & inside

    def _dwords(self, one: Instruction) -> tuple[int, int]:
        """The register of a branch that has one: its last source that is no immediate and not ip or null."""
        for operand in reversed(one.sources):
            if operand.file == "grf" and not operand.indirect:
                start = operand.number * REGISTER + operand.sub
                return self.thread.dword_at("grf", start), self.thread.dword_at("grf", min(start + 4, len(self.thread.grf) - 1))
            if operand.file == "imm":
                return operand.immediate, 0
        raise Unsupported(f"{one.opcode} by such a register is not yet simulated")

    def _store(self, one: Instruction, first: int, second: int) -> None:
        dst = one.dst
        if isinstance(dst, Operand) and dst.file == "grf":
            start = (dst.number * REGISTER + dst.sub) // 4
            held = self.thread.dwords("grf")
            if start + 2 > len(held):
                raise GpuFault(start * 4, "write", "grf", why=f"outside its {held.nbytes:#x} bytes")
            held[start : start + 2] = first, second


def _bits(mask: Value) -> int:
    return sum(1 << channel for channel, holds in enumerate(np.asarray(mask.payload)) if holds)


def _text(one: Instruction) -> str:
    """As Mesa writes it: that dialect has words for every generation. What cannot be written is named."""
    try:
        return " ".join(mesa_format.text(one).split()).removesuffix(";")
    except (SoftgenError, KeyError, ValueError):
        return one.opcode or f"opcode {one.opcode_number}"


def run(thread: Thread, code: Program, limit: int = ENDLESS) -> Outcome:
    return Interpreter(thread, code).run(limit)


__all__ = ["Interpreter", "Line", "Outcome", "Program", "Reference", "control", "run", "unbuilt"]

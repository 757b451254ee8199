"""The interpreter, the reference engine: executes a thread instruction by instruction on NumPy lanes.

    thread = ThreadState(9, messages={12: data_port})
    outcome = run(thread, KernelProgram(9, code))          # RunOutcome.ENDED, WAITING or OUT_OF_BUDGET

Every error names the kernel, the offset in it and the instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

import numpy as np

from softgen.bits.units import DWORD_MASK, GRF_BYTES
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.eu.encoding import program
from softgen.eu.isa import labels, opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.padding import ILLEGAL, skips_illegal
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.semantics import OPS, control
from softgen.eu.semantics.branch_machine import BranchSemantics, InterpretedBranch
from softgen.eu.semantics.control import PER_CHANNEL, SINGLE_FLOW
from softgen.eu.semantics.mask_stack import MASK_STACK, InterpretedStack, MaskStackFault
from softgen.eu.semantics.send import halves, implied_move, send, sending_channels
from softgen.eu.semantics.step import step
from softgen.eu.thread import exceptions
from softgen.eu.thread.block import CHANNELS
from softgen.eu.thread.lane_state import Offsets
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.regions import notification, register_location
from softgen.eu.thread.state import ACCUMULATOR_DISABLE, ALL_CHANNELS, READ_ONLY, FloatMode, ThreadState
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u32
from softgen.lanes.value import Memory, Value
from softgen.shared_functions import descriptors
from softgen.shared_functions.extended_math.unit import extended_math
from softgen.shared_functions.unit import MessageHandler

DEFAULT_BRANCH_BUDGET = 1 << 24  # default number of backward branches that a thread may take
LONG_BRANCH = 1 << 10  # bytes: a longer backward branch costs one more of the budget for each
SENDS = frozenset({"send", "sendc", "sends", "sendsc"})
CONDITIONAL_SENDS = frozenset({"sendc", "sendsc"})  # they wait for the threads that this one depends on (IVB 2692)
NOPS = frozenset({"nop", "nenop"})
OTHERS = SENDS | NOPS | {"wait", "illegal"}
TIME_EVENT = 2  # the dword of tm0 with TmEvent
IP_ALIGNMENT = 8  # the low bits of ip are zero


class RunOutcome(Enum):
    """Why the interpreter stopped executing a thread."""

    ENDED = "ended"
    WAITING = "waiting"
    OUT_OF_BUDGET = "out of budget"  # its backward branches are used up; run it again to continue


@dataclass(frozen=True)
class DecodedInstruction:
    """An instruction of a program, with its address and size."""

    ip: int
    size: int
    instruction: Instruction


class KernelProgram:
    """The code of a kernel, decoded when it is reached; `start` is its address, counted from the instruction base."""

    def __init__(self, gen: float, code: bytes, start: int = 0, name: str = "") -> None:
        self.gen, self.code, self.start, self.name = gen, code, start, name
        self.lines: dict[int, DecodedInstruction] = {}
        self.fallbacks: Counter[int] = Counter()  # by ip: instructions that compiled code left to the interpreter
        self.executed = 0  # instructions that threads have executed, while an engine counts them
        self.spent = 0.0  # seconds of compiled code, of all host threads, in dispatches of groups
        self.reach = 0  # bytes from the start on that what is known of the program depends on: decoded lines, translations

    def line(self, ip: int) -> DecodedInstruction:
        found = self.lines.get(ip)
        if found is None:
            offset = ip - self.start
            here = self.code[offset : offset + labels.NATIVE] if offset >= 0 and not offset % labels.COMPACT else b""
            first = next(program.instructions(here, self.gen), None)
            if first is None:
                where = f"gen {self.gen:g}, {self.title}{offset:+#x}"
                raise GpuFault(ip, "instruction fetch", by=where, why="it is outside of the kernel's code")
            found = self.lines[ip] = DecodedInstruction(ip, first[1], first[2])
        return found

    def beginning(self, size: int) -> bytes:
        """The first bytes of the code; fewer where it is shorter."""
        return self.code[:size]

    @cached_property
    def title(self) -> str:
        return self.name or f"kernel {self.start:#x}"


def unsupported_opcodes(gen: float) -> frozenset[str]:
    """The opcodes of a generation that the interpreter does not implement."""
    known = set(OPS) | OTHERS | set(MASK_STACK if ThreadState(gen).rules.flow == "stack" else PER_CHANNEL)
    return frozenset(row.name for row in opcodes.of_generation(gen) if row.name not in known)


@lru_cache(1 << 14)
def _constant(m: NumpyMachine, type: LaneType, numbers: tuple[int, ...]) -> Value:
    """A constant from a cache: offsets and masks repeat."""
    return m.constant(type, numbers)


# -- registers as lanes --------------------------------------------------------------------------------------------


class InterpreterState:
    """The LaneState of a ThreadState: its registers as NumPy lanes."""

    def __init__(self, thread: ThreadState, machine: NumpyMachine | None = None) -> None:
        self.thread, self.m = thread, machine or NumpyMachine()
        self.memories: dict[str, Memory] = {name: self.m.memory(data, name) for name, data in self._places()}
        if thread.rules.math == "message":
            sfid = next(number for number, name in descriptors.shared_functions(thread.gen).items() if name == "math")
            thread.messages.setdefault(sfid, MessageHandler(thread.gen, extended_math()))

    def _places(self) -> list[tuple[str, object]]:
        return [("grf", self.thread.grf), ("mrf", self.thread.mrf), *self.thread.arf.items()]

    @property
    def gen(self) -> float:
        return self.thread.gen

    @property
    def rules(self) -> ExecutionRules:
        return self.thread.rules

    @property
    def mode(self) -> FloatMode:
        return self.thread.mode

    @property
    def accumulates(self) -> bool:
        return not self.thread.cr0 & ACCUMULATOR_DISABLE

    def _offsets(self, offsets: Offsets) -> Value:
        return offsets if isinstance(offsets, Value) else _constant(self.m, u32, offsets)

    def _inside(self, name: str, type: LaneType, offsets: Value) -> Value | None:
        """The lanes inside an architecture register; None for register files, whose bounds the machine checks."""
        if name in ("grf", "mrf"):
            return None
        last = len(self.thread.arf[name]) - type.bytes
        return offsets <= last if last >= 0 else self.m.constant(bool_, 0, offsets.lanes)

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        self._refresh(place)
        where = self._offsets(offsets)
        found = self.m.load(type, self.memories[place], where, self._inside(place, type, where))
        if place == "tm":
            self.thread.dwords("tm")[TIME_EVENT] = 0  # reading any part of the register clears it (IVB 2853-2869)
        return found

    def _refresh(self, place: str) -> None:
        thread = self.thread
        if place == "ip":
            thread.dwords("ip")[0] = thread.ip & ~(IP_ALIGNMENT - 1)
        elif place == "ce":
            thread.dwords("ce")[0] = thread.active
        elif place == "tm":
            thread.dwords("tm")[:2] = thread.clock() & ALL_CHANNELS, thread.clock() >> 32 & ALL_CHANNELS

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None:
        if place in READ_ONLY:
            return
        where = self._offsets(offsets)
        if place == "tdr":
            self.thread.clear_dependencies(np.asarray(where.payload)[np.asarray(mask.payload, bool)], value.type.bytes)
            return
        inside = self._inside(place, value.type, where)
        self.m.store(value, self.memories[place], where, mask if inside is None else mask & inside)

    def enabled(self, instruction: Instruction) -> Value:
        bits = ALL_CHANNELS if instruction.no_mask else self.thread.active >> first_channel(self, instruction)
        return _constant(self.m, bool_, tuple(bits >> channel & 1 for channel in range(instruction.exec_size)))

    def flags(self, first: int, count: int) -> Value:
        bits, size = self.thread.flags, len(self.thread.arf["f"]) * 8
        return self.m.constant(bool_, [bits >> (first + channel) % size & 1 for channel in range(count)])

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        flags = self.thread.arf["f"]
        for channel in range(value.lanes):
            bit = (first + channel) % (len(flags) * 8)
            if mask.payload[channel]:
                flags[bit // 8] = int(flags[bit // 8]) & ~(1 << bit % 8) | int(value.payload[channel]) << bit % 8


# -- running -------------------------------------------------------------------------------------------------------


class Interpreter:
    """Executes a thread's program."""

    def __init__(self, thread: ThreadState, code: KernelProgram, machine: NumpyMachine | None = None, watch: bool = False,
                 text: Callable[[Instruction], str] | None = None) -> None:  # fmt: skip
        self.thread, self.code, self.watch = thread, code, watch
        self.state = InterpreterState(thread, machine)
        self.text = text or _text

    def run(self, limit: int = DEFAULT_BRANCH_BUDGET) -> RunOutcome:
        """Execute until the thread ends, waits, or has used `limit` backward branches; long ones cost more, which bounds the time."""
        thread = self.thread
        while not thread.ended:
            here = thread.ip
            if not self.step():
                return RunOutcome.WAITING
            if thread.ip <= here and not thread.ended:
                limit -= 1 + (here - thread.ip) // LONG_BRANCH
                if limit <= 0:
                    return RunOutcome.OUT_OF_BUDGET
        return RunOutcome.ENDED

    def step(self) -> bool:
        """Execute one instruction; False where the thread waits, for a notification or for the threads that a sendc depends on."""
        before = self.thread.snapshot() if self.watch else None
        line = self.code.line(self.thread.ip)
        try:
            done = self._execute(line)
        except (GpuFault, Unsupported, DecodeError) as error:
            raise self._placed(error, line) from error
        self.thread.executed += done
        self.thread.changed = self.thread.compare(before) if before is not None else ()
        return done

    def _placed(self, error: SoftgenError, line: DecodedInstruction) -> SoftgenError:
        where = f"gen {self.thread.gen:g}, {self.code.title}+{line.ip - self.code.start:#x}: {self.text(line.instruction)}"
        if isinstance(error, GpuFault):
            return GpuFault(error.address, error.access, error.space, error.by or where, error.why)
        return type(error)(f"{where}: {error}")

    def _execute(self, line: DecodedInstruction) -> bool:
        inst, thread = line.instruction, self.thread
        next_ip = line.ip + line.size
        if inst.breakpoint and (routine := exceptions.check_breakpoint(thread, line.ip)) is not None:
            self._move(routine)
        elif inst.opcode in OPS:
            self._move(self._compute(inst, next_ip))
        elif inst.opcode in SENDS:
            if inst.opcode in CONDITIONAL_SENDS and thread.depends:
                return False
            for half in halves(inst):
                if thread.rules.message_registers:
                    implied_move(self.state, half)
                mask = _bits(sending_channels(self.state, half))
                send(thread, half, mask, first_channel(self.state, half))
            self._move(next_ip)
        elif inst.opcode == "wait":
            if not self._notified(inst):
                return False
            self._move(next_ip)
        elif inst.opcode in NOPS:
            self._move(next_ip)
        else:
            self._branch(line, next_ip)
        return True

    def _compute(self, inst: Instruction, next_ip: int) -> int:
        """Execute an ALU instruction. Returns the next ip, which a write to ip, or to cr0 in exceptions, changes."""
        name = register_location(inst.dst, inst.gen)[0] if inst.dst is not None and inst.dst.file == "arf" else ""
        before = self.thread.dwords("cr").copy() if name == "cr" else None
        step(self.state, inst)
        if before is not None:
            led = exceptions.after_cr0_write(self.thread, before, next_ip)
            return next_ip if led is None else led
        return self._written_ip(inst, next_ip) if name == "ip" else next_ip

    def _move(self, to: int) -> None:
        """Set the thread's ip, and that of all channels that are at it."""
        thread = self.thread
        if thread.rules.flow == "channel":
            here = thread.ip
            thread.channel_ip = [to if ip == here or thread.single_program_flow else ip for ip in thread.channel_ip]
        thread.ip = to

    def _written_ip(self, inst: Instruction, next_ip: int) -> int:
        """The next ip after a write to ip: a jump, with the low bits ignored (IVB 2643-2650)."""
        if not _bits(self.state.enabled(inst) & predicate(self.state, inst)):
            return next_ip
        return int(self.thread.dwords("ip")[0]) & ~(IP_ALIGNMENT - 1)

    def _notified(self, inst: Instruction) -> bool:
        """Consume a notification of a wait; False where none is pending (IVB 2557-2560)."""
        number, counts = notification(inst), self.thread.dwords("n")
        if not counts[number]:
            self.thread.waiting = number
            return False
        counts[number] -= 1
        self.thread.waiting = None
        return True

    # -- branches --------------------------------------------------------------------------------------------------

    def _branch(self, line: DecodedInstruction, next_ip: int) -> None:
        inst, thread = line.instruction, self.thread
        stack = thread.rules.flow == "stack"
        table = MASK_STACK if stack else SINGLE_FLOW if thread.single_program_flow else PER_CHANNEL
        meaning = table.get(inst.opcode)
        if meaning is None:
            self._move(self._unimplemented(inst, line))
            return
        active, predicated = self._channels(inst)
        if stack:
            thread.ip = self._stack_branch(line, next_ip, meaning, active, predicated)
            return
        taken = predicated if inst.opcode == "jmpi" else active & predicated
        branch = InterpretedBranch(thread, inst, line.ip, next_ip, active, taken, predicated, lambda: self._dwords(inst),
                                   lambda a, b: self._store(inst, a, b),
                                   lambda address: address + self.code.line(address).size)  # fmt: skip
        to = meaning(branch)
        if thread.single_program_flow and thread.rules.flow == "channel":
            thread.channel_ip = [to] * CHANNELS
        thread.ip = to

    def _stack_branch(self, line: DecodedInstruction, next_ip: int, meaning: BranchSemantics, active: int, predicated: int) -> int:
        """Execute a branch on the masks in the thread's block; its next ip."""
        inst, thread = line.instruction, self.thread
        thread.save_masks()
        by_register = inst.jip is None and inst.opcode == "jmpi"
        target = labels.target(inst, line.ip, self._dwords(inst)[0] if by_register else inst.jip or 0)
        target = target & DWORD_MASK if by_register else target
        try:
            to: int = meaning(InterpretedStack(self.state.m, thread, inst, active, predicated, next_ip, target))
        except MaskStackFault as fault:
            routine = exceptions.record_exception(thread, exceptions.STACK_OVERFLOW, next_ip)  # IVB 2454-2462, 2496-2503
            if routine is None:
                raise fault.error from None
            return routine
        thread.load_masks()
        return to

    def _unimplemented(self, inst: Instruction, line: DecodedInstruction) -> int:
        """Where to go on after an illegal opcode: the system routine, or behind padding (isa/padding.py); else raise."""
        if inst.opcode in ILLEGAL:
            routine = exceptions.record_exception(self.thread, exceptions.ILLEGAL, line.ip)
            if routine is not None or not inst.opcode_number and skips_illegal(self.code, line):
                return line.ip + line.size if routine is None else routine
            raise DecodeError(f"opcode {inst.opcode_number} is not an instruction of gen {inst.gen:g}")
        raise Unsupported(f"{inst.opcode} is not yet simulated")

    def _channels(self, inst: Instruction) -> tuple[int, int]:
        """The channels that execute a branch, and those for which its predicate holds."""
        first = first_channel(self.state, inst)
        inside = (1 << inst.exec_size) - 1 << first
        return self.thread.active, _bits(predicate(self.state, inst)) << first & inside

    def _dwords(self, inst: Instruction) -> tuple[int, int]:
        """Two dwords of a branch's register operand: the last source in a general register."""
        for operand in reversed(inst.sources):
            if operand.file == "grf" and not operand.indirect:
                start = operand.number * GRF_BYTES + operand.sub
                return self.thread.dword_at("grf", start), self.thread.dword_at("grf", min(start + 4, len(self.thread.grf) - 1))
            if operand.file == "imm":
                return operand.immediate, 0
        raise Unsupported(f"{inst.opcode} with an offset in such a register is not yet simulated")

    def _store(self, inst: Instruction, first: int, second: int) -> None:
        dst = inst.dst
        if isinstance(dst, Operand) and dst.file == "grf":
            start = (dst.number * GRF_BYTES + dst.sub) // 4
            grf = self.thread.dwords("grf")
            if start + 2 > len(grf):
                raise GpuFault(start * 4, "write", "grf", why=f"outside its {grf.nbytes:#x} bytes")
            grf[start : start + 2] = first, second


def _bits(mask: Value) -> int:
    return sum(1 << channel for channel, holds in enumerate(np.asarray(mask.payload)) if holds)


def _text(inst: Instruction) -> str:
    """The instruction in Mesa's dialect, which covers every generation; the opcode alone where formatting fails."""
    from softgen.eu.text.mesa import format as mesa_format  # for messages only

    try:
        return " ".join(mesa_format.text(inst).split()).removesuffix(";")
    except (SoftgenError, KeyError, ValueError):
        return inst.opcode or f"opcode {inst.opcode_number}"


def run(thread: ThreadState, code: KernelProgram, limit: int = DEFAULT_BRANCH_BUDGET) -> RunOutcome:
    """Execute a thread until it ends, waits or is out of budget."""
    return Interpreter(thread, code).run(limit)


__all__ = ["DecodedInstruction", "Interpreter", "InterpreterState", "KernelProgram", "RunOutcome", "control", "run", "unsupported_opcodes"]

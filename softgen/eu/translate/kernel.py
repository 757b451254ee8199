"""A whole kernel as one function of IR: `i64 kernel(ptr block, ptr context)`, which runs a thread until it ends, waits, has gone round
its loops often enough, or comes to an instruction that only the reference knows (block.py, Status).

    made = translate(program, Key(control=0, width=16, full=True))
    made.ir                     # LLVM IR; softgen.eu.engine compiles it

Instructions become text through `step`; which bytes of registers belong together, what must be kept where a thread is left, and
what it finds when it is taken up again is settled afterwards, when all is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from softgen.errors import DecodeError, Unsupported
from softgen.eu.block import PLACES, Context, Control, Status, offset
from softgen.eu.instruction import Instruction
from softgen.eu.interpreter import FAR, SENDS, Line, Program
from softgen.eu.predicate import group, predicate
from softgen.eu.regions import place
from softgen.eu.semantics import OPS
from softgen.eu.step import step
from softgen.eu.thread import SINGLE_FLOW, VECTOR_MASK
from softgen.eu.translate import graph, mode, send
from softgen.eu.translate.flow import Branching, Choice
from softgen.eu.translate.graph import Block, Graph
from softgen.eu.translate.life import Leave, Segment, live
from softgen.eu.translate.registers import Access, Part
from softgen.eu.translate.state import Translated
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.types import bool_, i64, u32
from softgen.lanes.value import Value

NAME = "kernel"
NOTIFICATIONS = 3  # dwords of n


class Key(NamedTuple):
    """What a translation depends on beside the code."""

    control: int  # cr0.0
    width: int  # channels of a thread: 8, 16 or 32
    full: bool  # every thread has all of them
    observe: bool = False  # registers can be looked at when the thread has ended
    loops: bool = False  # a thread may be taken up again at its loops
    messages: bool = True  # are carried out here, over the memory that the context names
    anywhere: bool = False  # channels may wait where this code does not reach when a thread comes to its start


@dataclass
class Translation:
    ir: str
    entries: tuple[int, ...]
    clean: bool  # the block is as it was when a thread ends without having been left before
    indices: frozenset[int] = frozenset()  # binding table entries its messages name
    size: int = 0  # bytes of code from the start on
    escapes: list[str] = field(default_factory=list)


def translate(program: Program, key: Key) -> Translation:
    return Kernel(program, key).translate()


class Kernel:
    def __init__(self, program: Program, key: Key) -> None:
        self.program, self.key, self.m = program, key, LlvmMachine()
        self.single = bool(key.control & SINGLE_FLOW)
        self.state = Translated(self.m, program.gen, key.control, key.width, self._escape_if)
        self.graph: Graph = graph.build(program, self.state.rules, self.single, key.width)
        self.controls = mode.controls(self.graph, key.control)
        nobody = self.state.none(key.width)
        self.dispatched = self.m.variable(nobody)  # the channels of the thread
        self.active = self.m.variable(nobody)
        self.waiting = {at: self.m.variable(nobody) for at in sorted(self.graph.targets)}
        self.executed, self.budget = (self.m.variable(self.m.constant(i64, 0, 1)) for _ in range(2))
        self.segments: dict[int, Segment] = {}
        self.segment = Segment(program.start)
        self.block = Block(program.start)
        self.line = program.line(program.start)
        self.resumed = {program.start}  # where blocks must be entries
        self.behind = 0  # instructions since they were last counted
        self.leaves: list[Leave] = []
        self.escapes: list[str] = []
        self.m.lines.clear()  # variables have no beginning: entries give them their values

    # -- text of instructions ------------------------------------------------------------------------------------------

    def translate(self) -> Translation:
        for block in self.graph.blocks.values():
            self._block(block)
        body, self.m.lines = self.m.lines, []
        registers = self.state.registers
        registers.partition()
        parts = list(registers.all())
        live(self.segments, registers, parts, self.key.observe)
        for part in self._dormant(parts):
            part.variable = ""
        self._enter(parts)
        for one in body:
            if isinstance(one, Access):
                registers.expand(one)
            else:
                self.m.lines.append(one)
        for leave in self.leaves:
            self._leave(leave, parts)
        self.m.define(f"i64 @{NAME}(ptr noalias %block, ptr noalias %context) alignstack(64)")  # registers that do not fit stand there
        in_block = self.state.scattered or any(part.written and not part.variable for part in parts)
        size = max(block.end for block in self.graph.blocks.values()) - self.program.start
        entries = tuple(ip for ip, one in self.segments.items() if one.entry)
        return Translation(self.m.module.text(), entries, not in_block, frozenset(self.state.indices), size, self.escapes)

    def _dormant(self, parts: list[Part]) -> list[Part]:
        """What outlives a wait and is not used in a loop of its own need not go to and fro: it stays in the block."""
        waits = {ip for ip, one in self.segments.items() if self.program.line(ip).instruction.opcode == "wait"}
        if not waits:
            return []
        kept = 0
        for ip in waits:
            kept |= self.segments[ip].live
        for block in self.graph.blocks.values():
            here = block.lines[-1].ip
            for to in block.leads:
                if to <= here and not any(to <= ip <= here for ip in waits):
                    kept &= ~self._used(to, here, parts)
        return [part for number, part in enumerate(parts) if kept >> number & 1]

    def _used(self, first: int, last: int, parts: list[Part]) -> int:
        """The parts that instructions of a stretch of code name."""
        number = {part: 1 << index for index, part in enumerate(parts)}
        found = 0
        for access in self.state.registers.accesses:
            if first <= access.ip <= last:
                for part in self.state.registers.covering(access):
                    found |= number[part]
        return found

    def _block(self, block: Block) -> None:
        self.block = block
        self.state.control = self.controls[block.start]
        start, first = block.start, block.lines[0].instruction
        self._begin(start, entry=start in self.resumed or first.opcode == "wait" or self._is_loop(start))
        self._arrive(block)
        for line in block.lines:
            self.line, self.state.ip = line, line.ip
            if graph.branches(line.instruction):
                self._branch(line)
                return
            if not self._straight(line):
                return
        self._jump(block.end)

    def _is_loop(self, ip: int) -> bool:
        return self.key.loops and any(ip in block.leads and ip <= block.lines[-1].ip for block in self.graph.blocks.values())

    def _begin(self, ip: int, entry: bool) -> None:
        self.segment = self.segments[ip] = Segment(ip, entry)
        self.state.items = self.segment.items
        self.m.start(f"at{ip:x}")

    def _arrive(self, block: Block) -> None:
        """Channels that waited here come along."""
        if block.start in self.waiting:
            waiting = self.waiting[block.start]
            self.active.value = self.active.value | waiting.value
            waiting.value = self.state.none(self.key.width)
        self._take_active()

    def _take_active(self) -> None:
        """All channels are here where nobody can be elsewhere."""
        if self.single or not (self.block.pending or self.key.anywhere):
            self.active.value = self.state.every(self.key.width) if self.key.full else self.dispatched.value
            self.state.active = self.state.every(self.key.width) if self.key.full else self.active.value
        else:
            self.state.active = self.active.value

    def _straight(self, line: Line) -> bool:
        """Writes an instruction that is no branch; False if its block ends with it."""
        one = line.instruction
        held: tuple[list[Any], ...] = self.m.lines, self.state.registers.accesses, self.leaves, self.segment.items
        mark, behind = [len(one_list) for one_list in held], self.behind
        try:
            self._meaning(line)
        except (Unsupported, DecodeError) as error:
            for one_list, length in zip(held, mark, strict=True):
                del one_list[length:]
            self.behind = behind
            self.escapes.append(f"{line.ip:#x} {one.opcode}: {error}")
            self._exit(Status.ESCAPE, line.ip)
            return self._resume(line.ip + line.size)
        self.behind += 1
        if one.eot:
            self._exit(Status.ENDED, line.ip + line.size)
        return not one.eot

    def _resume(self, ip: int) -> bool:
        """The reference brings the thread here; True if the block goes on."""
        if self.line.instruction.eot or ip == self.block.end:
            self.resumed.add(ip)
            return False
        self._begin(ip, entry=True)
        self._take_active()
        return True

    def _meaning(self, line: Line) -> None:
        one = line.instruction
        if one.breakpoint:
            raise Unsupported("a breakpoint has no translation")
        if one.opcode == "wait":
            self._wait(line)
        elif one.opcode in SENDS:
            send.send(self.state, one, self.key.messages)
        elif mode.writes(one):
            self.state.control = mode.written(one, self.state.control)
        elif one.opcode in OPS:
            step(self.state, one)

    def _wait(self, line: Line) -> None:
        """Takes a notification, or leaves (IVB 2557-2560)."""
        number = notification(line.instruction)
        at = self._place("n", 4 * number)
        count = self.m.emit(f"load volatile i32, ptr {at}")  # whoever is last at a barrier notifies all
        self._exit(Status.WAITING, line.ip, self.m.emit(f"icmp eq i32 {count}, 0"), wait=number + 1)
        self.m.line(f"store volatile i32 {self.m.emit(f'sub i32 {count}, 1')}, ptr {at}")

    # -- branches ------------------------------------------------------------------------------------------------------

    def _branch(self, line: Line) -> None:
        one, state = line.instruction, self.state
        flow = Branching(self.m, self.program, line, state.rules, state.active, self._taken(one), self.waiting)
        leads = graph.meaning(one, state.rules, self.single)(flow)
        self.behind += 1
        self._count()
        self._go(flow, leads)

    def _taken(self, one: Instruction) -> Value:
        """The channels whose predicate holds, of those that are active; a jmpi asks nobody else (interpreter.py)."""
        state, width = self.state, self.key.width
        first, lanes = group(state, one), one.exec_size
        inside = max(min(lanes, width - first), 0)
        if not inside:
            return state.none(width)
        holds = self.m.slice(predicate(state, one), 0, inside)
        before, behind = ([state.none(lanes)] if lanes else [] for lanes in (first, width - first - inside))
        whole = self.m.concat(*before, holds, *behind)
        if one.opcode == "jmpi":
            return whole
        if not one.predicate and inside == width:
            return state.active
        return state.active & whole

    def _go(self, flow: Branching, to: Choice | int, follow: bool = False, none_left: bool = False) -> None:
        if isinstance(to, Choice):
            here, there = self.m.labels("here", "there")
            condition = self.m.emit(f"extractelement <1 x i1> {to.condition.payload}, i64 0")
            self.m.line(f"br i1 {condition}, label %{here}, label %{there}")
            self.m.start(here)
            self._go(flow, to.one, to.follow, none_left)
            self.m.start(there)
            self._go(flow, to.other, to.follow, none_left or to.none_left)
            return
        if to == flow.next or follow or self.single:
            self.active.value = flow.left
        else:
            if not none_left:
                flow.wait(flow.next, flow.left)
            self.active.value = self.state.none(self.key.width)
        self._jump(to)

    def _jump(self, to: int) -> None:
        self._count()
        here = self.line.ip
        if to <= here:
            left = self.budget.value - (1 + (here - to) // FAR)
            self.budget.value = left
            spent = self.m.emit(f"extractelement <1 x i1> {(left <= 0).payload}, i64 0")
            self._exit(Status.SPENT, to, spent)
        if to in self.graph.outside:
            self._exit(Status.ESCAPE, to)
            return
        self.segment.leads.add(to)
        self.m.line(f"br label %at{to:x}")

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        if self.behind:
            self.executed.value = self.executed.value + self.behind
            self.behind = 0

    def _exit(self, status: Status, ip: int, condition: str = "", wait: int = 0) -> None:
        """Leaves for good, or where a condition holds."""
        self._count()
        pending = (self.block.pending | self.block.sent) & self.graph.targets
        leave = Leave(f"leave{len(self.leaves)}", status, ip, self.state.control, pending, wait, bool(condition))
        self.leaves.append(leave)
        self.segment.items.append(leave)
        if not condition:
            self.m.line(f"br label %{leave.label}")
            return
        (stay,) = self.m.labels("stay")
        self.m.line(f"br i1 {condition}, label %{leave.label}, label %{stay}, !prof !0")
        self.m.start(stay)

    def _escape_if(self, condition: Value) -> None:
        self._exit(Status.ESCAPE, self.line.ip, self.m.emit(f"extractelement <1 x i1> {condition.payload}, i64 0"))

    def _place(self, name: str, more: int = 0) -> str:
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[name] + more}")

    def _field(self, name: str) -> str:
        return self._place("control", offset(Control, name))

    def _context(self, name: str) -> str:
        return self.m.emit(f"getelementptr i8, ptr %context, i64 {offset(Context, name)}")

    def _leave(self, leave: Leave, parts: list[Part]) -> None:
        m, registers = self.m, self.state.registers
        m.start(leave.label)
        for number, part in enumerate(parts):
            if part.variable and part.written and leave.live >> number & 1:
                registers.save(part)
        whole = leave.status is not Status.ENDED or self.key.observe
        if whole:
            self._keep_flags()
            self._keep_channels(leave)
            m.line(f"store i32 {leave.control}, ptr {self._place('cr')}")
        for name, value in (("ip", leave.ip), ("status", int(leave.status)), ("waiting", leave.wait)):
            m.line(f"store i32 {value}, ptr {self._field(name)}")
        m.line(f"store <1 x i64> {self.executed.value.payload}, ptr {self._field('executed')}")
        m.line(f"store <1 x i64> {self.budget.value.payload}, ptr {self._context('budget')}")
        m.line(f"ret i64 {int(leave.status)}")

    def _keep_flags(self) -> None:
        for number, flag in enumerate(self.state.flag):
            at = self._place("f", 2 * number)
            self.m.line(f"store <16 x i1> {flag.value.payload}, ptr {at}")

    def _keep_channels(self, leave: Leave) -> None:
        m, width = self.m, self.key.width
        active = m.bits_from_mask(self.active.value) if width <= 32 else None
        assert active is not None
        m.line(f"store <1 x i32> {active.payload}, ptr {self._field('active')}")
        if not leave.pending:
            return
        at = self._field("channel_ip")
        where = Value(m, u32, width, m.emit(f"load <{width} x i32>, ptr {at}, align 4"))
        for ip in sorted(leave.pending):
            where = m.select(self.waiting[ip].value, m.like(where, ip), where)
        m.line(f"store <{width} x i32> {where.payload}, ptr {at}, align 4")

    # -- entering ------------------------------------------------------------------------------------------------------

    def _enter(self, parts: list[Part]) -> None:
        """Goes where the thread is. What is no entry is the reference's, one instruction at a time."""
        m = self.m
        entries = [one for one in self.segments.values() if one.entry]
        ip = m.emit(f"load i32, ptr {self._field('ip')}")
        self.executed.value = Value(m, i64, 1, m.emit(f"load <1 x i64>, ptr {self._field('executed')}"))
        self.budget.value = Value(m, i64, 1, m.emit(f"load <1 x i64>, ptr {self._context('budget')}"))
        self._enter_channels()
        cases = " ".join(f"i32 {one.ip}, label %enter{one.ip:x}" for one in entries)
        m.line(f"switch i32 {ip}, label %unknown [ {cases} ]")
        for one in entries:
            m.start(f"enter{one.ip:x}")
            for number, part in enumerate(parts):
                if part.variable and one.live >> number & 1:
                    self.state.registers.load(part)
            m.line(f"br label %at{one.ip:x}")
        m.start("unknown")
        m.line(f"ret i64 {int(Status.ESCAPE)}")

    def _enter_channels(self) -> None:
        m, width = self.m, self.key.width
        mask = self._place("sr", 4 * (3 if self.key.control & VECTOR_MASK else 2))
        dispatched = m.mask_from_bits(Value(m, u32, 1, m.emit(f"load <1 x i32>, ptr {mask}")), width)
        active = m.mask_from_bits(Value(m, u32, 1, m.emit(f"load <1 x i32>, ptr {self._field('active')}")), width)
        self.dispatched.value, self.active.value = dispatched, active
        if self.waiting:
            where = Value(m, u32, width, m.emit(f"load <{width} x i32>, ptr {self._field('channel_ip')}, align 4"))
            away = dispatched & ~active
            for ip, variable in self.waiting.items():
                variable.value = away & (where == ip)
        for number, flag in enumerate(self.state.flag):
            at = self._place("f", 2 * number)
            flag.value = Value(m, bool_, 16, m.emit(f"load <16 x i1>, ptr {at}"))


def notification(one: Instruction) -> int:
    """The register that a wait is for."""
    operand = one.dst if one.dst is not None and one.dst.file == "arf" and one.dst.number else one.sources[0]
    name, start = place(operand, one.gen)
    if name != "n" or start // 4 >= NOTIFICATIONS:
        raise DecodeError("wait is for a notification register")
    return start // 4

"""A whole kernel as one function of IR: `i64 kernel(ptr block, ptr context)`, which runs a thread until it ends, waits, has gone round
its loops often enough, or comes to an instruction that only the reference knows (block.py, Status).

    made = translate(program, Key(control=0, width=16, full=True))
    made.ir                     # LLVM IR; softgen.eu.engine compiles it

Instructions become text through `step`; which bytes of registers belong together, what must be kept where a thread is left, and
what it finds when it is taken up again is settled afterwards, when all is known.
"""

from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass, field
from typing import Any

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import LONG_BRANCH, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics import OPS
from softgen.eu.semantics.step import step
from softgen.eu.thread.block import BLOCK_OFFSETS, REGISTER_SPACE, Context, ThreadStatus
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.regions import register_location
from softgen.eu.thread.state import SINGLE_PROGRAM_FLOW
from softgen.eu.translate import control_flow, cr0_propagation, inactive_lanes, send
from softgen.eu.translate.affine import Arrivals, Even
from softgen.eu.translate.control_flow import Block, Graph
from softgen.eu.translate.entry_exit import Doors, Key
from softgen.eu.translate.flow import Branching, Choice
from softgen.eu.translate.liveness import Leave, Segment, live
from softgen.eu.translate.registers import Access, Part
from softgen.eu.translate.state import Translated
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.value import Value

NAME = "kernel"
NOTIFICATIONS = 3  # dwords of n


@dataclass
class Translation:
    ir: str
    entries: tuple[int, ...]
    clean: bool  # the block is as it was when a thread ends without having been left before
    indices: frozenset[int] = frozenset()  # binding table entries its messages name
    size: int = 0  # bytes of code from the start on
    needs: tuple[tuple[int, int], ...] | None = None  # beside the payload (Function.needs)
    escapes: list[str] = field(default_factory=list)


def translate(program: KernelProgram, key: Key) -> Translation:
    return Kernel(program, key).translate()


class Kernel(Doors):
    def __init__(self, program: KernelProgram, key: Key) -> None:
        m = LlvmMachine()
        super().__init__(m, key, Translated(m, program.gen, key.control, key.width, self._escape_if))
        self.program, self.single = program, bool(key.control & SINGLE_PROGRAM_FLOW)
        self.state.count = self._count
        self.graph: Graph = control_flow.build(program, self.state.rules, self.single, key.width)
        self.controls = cr0_propagation.controls(self.graph, key.control)
        self.waiting = {at: m.variable(self.state.none(key.width)) for at in sorted(self.graph.targets)}
        self.segment = Segment(program.start)
        self.block = Block(program.start)
        self.line = program.line(program.start)
        self.resumed = {program.start}  # where blocks must be entries
        self.behind = 0  # instructions since they were last counted
        self.leaves: list[Leave] = []
        self.escapes: list[str] = []
        self.arrivals = Arrivals(self.graph, self.state.rules, key.payload)
        self.m.lines.clear()  # variables have no beginning: entries give them their values

    # -- text of instructions ------------------------------------------------------------------------------------------

    def translate(self) -> Translation:
        for ip, block in self.graph.blocks.items():
            self.state.even = Even(self.m, self.arrivals.at(ip))
            self._block(block)
            self.arrivals.known[ip] = self.state.even.settled()
        body, self.m.lines = self.m.lines, []
        registers = self.state.registers
        registers.partition()
        parts = list(registers.all())
        if not (self.key.observe or self.key.anywhere or self.escapes or self.state.scattered or self.single):
            inactive_lanes.spread(self.graph, self.segments, registers)
        live(self.segments, registers, parts, len(self.state.flag), self.key.observe)
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
        around = f"ptr noalias align 8 dereferenceable({sizeof(Context)}) %context"
        self.m.define(f"i64 @{NAME}(ptr noalias %first, {around}) alignstack(64)")  # registers that do not fit stand there
        in_block = self.state.scattered or any(part.written and not part.variable for part in parts)
        size = max(block.end for block in self.graph.blocks.values()) - self.program.start
        entries = tuple(ip for ip, one in self.segments.items() if one.entry)
        indices = frozenset(self.state.indices)
        return Translation(self.m.module.text(), entries, not in_block, indices, size, self._needs(parts), self.escapes)

    def _needs(self, parts: list[Part]) -> tuple[tuple[int, int], ...] | None:
        """What may be read before it is written. What the reference reads on its own is not known."""
        if self.escapes or self.state.scattered:
            return None
        live = self.segments[self.program.start].live
        read = [part for number, part in enumerate(parts) if live >> number & 1]
        return (
            *((BLOCK_OFFSETS[part.place] + part.start, part.end - part.start) for part in read),
            (BLOCK_OFFSETS["f"], REGISTER_SPACE["f"]),
        )

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
            self.line, self.state.ip, self.state.instruction = line, line.ip, line.instruction
            if control_flow.branches(line.instruction):
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
        self.state.entered()
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

    def _straight(self, line: DecodedInstruction) -> bool:
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
            self.state.even = Even(self.m)
            self._exit(ThreadStatus.ESCAPE, line.ip)
            return self._resume(line.ip + line.size)
        self.behind += 1
        if one.eot:
            self._exit(ThreadStatus.ENDED, line.ip + line.size)
        return not one.eot

    def _resume(self, ip: int) -> bool:
        """The reference brings the thread here; True if the block goes on."""
        if self.line.instruction.eot or ip == self.block.end:
            self.resumed.add(ip)
            return False
        self._begin(ip, entry=True)
        self._take_active()
        return True

    def _meaning(self, line: DecodedInstruction) -> None:
        one = line.instruction
        if one.breakpoint:
            raise Unsupported("a breakpoint has no translation")
        if one.opcode == "wait":
            self._wait(line)
        elif one.opcode in SENDS:
            send.send(self.state, one, self.key.messages)
        elif cr0_propagation.writes(one):
            self.state.control = cr0_propagation.written(one, self.state.control)
        elif one.opcode in OPS:
            step(self.state, one)

    def _wait(self, line: DecodedInstruction) -> None:
        """Takes a notification, or leaves (IVB 2557-2560)."""
        number = notification(line.instruction)
        at = self._place("n", 4 * number)
        count = self.m.emit(f"load volatile i32, ptr {at}")  # whoever is last at a barrier notifies all
        self._exit(ThreadStatus.WAITING, line.ip, self.m.emit(f"icmp eq i32 {count}, 0"), wait=number + 1)
        self.m.line(f"store volatile i32 {self.m.emit(f'sub i32 {count}, 1')}, ptr {at}")

    # -- branches ------------------------------------------------------------------------------------------------------

    def _branch(self, line: DecodedInstruction) -> None:
        one, state = line.instruction, self.state
        flow = Branching(self.m, self.program, line, state.rules, state.active, self._taken(one), self.waiting)
        leads = control_flow.meaning(one, state.rules, self.single)(flow)
        self.behind += 1
        self._count()
        self._go(flow, leads)

    def _taken(self, one: Instruction) -> Value:
        """The channels whose predicate holds, of those that are active; a jmpi asks nobody else (interpreter.py)."""
        state, width = self.state, self.key.width
        first, lanes = first_channel(state, one), one.exec_size
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
            left = self.budget.value - (1 + (here - to) // LONG_BRANCH)
            self.budget.value = left
            spent = self.m.emit(f"extractelement <1 x i1> {(left <= 0).payload}, i64 0")
            self._exit(ThreadStatus.OUT_OF_BUDGET, to, spent)
        if to in self.graph.outside:
            self._exit(ThreadStatus.ESCAPE, to)
            return
        self.segment.leads.add(to)
        self.m.line(f"br label %at{to:x}")

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        if self.behind:
            self.executed.value = self.executed.value + self.behind
            self.behind = 0

    def _exit(self, status: ThreadStatus, ip: int, condition: str = "", wait: int = 0) -> None:
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
        self._exit(ThreadStatus.ESCAPE, self.line.ip, self.m.emit(f"extractelement <1 x i1> {condition.payload}, i64 0"))


def notification(one: Instruction) -> int:
    """The register that a wait is for."""
    operand = one.dst if one.dst is not None and one.dst.file == "arf" and one.dst.number else one.sources[0]
    name, start = register_location(operand, one.gen)
    if name != "n" or start // 4 >= NOTIFICATIONS:
        raise DecodeError("wait needs a notification register")
    return start // 4

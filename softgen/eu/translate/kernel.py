"""A whole kernel as one function: `i64 kernel(ptr block, ptr context)`, which runs a thread until it ends, waits, is out of budget, or
takes a side exit to the interpreter (block.py, ThreadStatus).

    made = translate(program, Key(control=0, width=16, full=True))
    made.ir                     # LLVM IR; softgen.eu.engine compiles it

Instructions become code through `step`. The register partition, spills at exits and reloads at entries are written afterwards, when all
accesses are known.
"""

from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass, field
from typing import Any

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import LONG_BRANCH, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics import OPS
from softgen.eu.semantics.mask_stack import UNCHANGING
from softgen.eu.semantics.step import step
from softgen.eu.thread.block import BLOCK_OFFSETS, REGISTER_SPACE, Context, ThreadStatus
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.regions import notification
from softgen.eu.thread.state import SINGLE_PROGRAM_FLOW
from softgen.eu.translate import broadcasts, control_flow, cr0_propagation, halves, inactive_lanes, send
from softgen.eu.translate.affine import AffineBlockEntries, AffineRegisters
from softgen.eu.translate.control_flow import BasicBlock, ControlFlowGraph, Probe
from softgen.eu.translate.entry_exit import EntryExit
from softgen.eu.translate.flow import Branching, Choice
from softgen.eu.translate.key import NAME, Key
from softgen.eu.translate.liveness import Exit, Segment, compute_liveness
from softgen.eu.translate.registers import RegisterAccess, RegisterPart
from softgen.eu.translate.stack_flow import TranslatedStack
from softgen.eu.translate.state import TranslationState
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_scalar import Parameter, Scalar
from softgen.lanes.types import i64, u32
from softgen.lanes.value import Value


@dataclass
class KernelTranslation:
    ir: str
    entries: tuple[int, ...]
    clean: bool  # the block is unchanged when a thread ends in its first call
    indices: frozenset[int] = frozenset()  # binding table entries its messages name
    size: int = 0  # bytes of code from the start on
    needs: tuple[tuple[int, int], ...] | None = None  # live-in bytes of the block (CompiledFunction.needs)
    escapes: list[str] = field(default_factory=list)
    in_order: bool = False  # threads that end leave no trace in their blocks (CompiledFunction.in_order)


def translate(program: KernelProgram, key: Key) -> KernelTranslation:
    return KernelTranslator(program, key).translate()


class KernelTranslator(EntryExit):
    def __init__(self, program: KernelProgram, key: Key) -> None:
        m = LlvmMachine()
        super().__init__(m, key, TranslationState(m, program.gen, key.control, key.width, self._escape_if))
        self.stack = self.state.rules.flow == "stack"
        self.program, self.single = program, not self.stack and bool(key.control & SINGLE_PROGRAM_FLOW)
        self.state.count = self._count
        self.graph: ControlFlowGraph = control_flow.build(program, self.state.rules, self.single, key.width)
        self.diverges = self.stack and self.graph.changes_masks
        self.links = self.graph.links
        self.controls = cr0_propagation.controls(self.graph, key.control)
        self.waiting = {at: m.variable(self.state.none(key.width)) for at in sorted(self.graph.targets)}
        self.segment = Segment(program.start)
        self.block = BasicBlock(program.start)
        self.line = program.line(program.start)
        self.resumed = {program.start}  # resume points at the start of blocks
        self.uncounted = 0  # instructions since they were last counted
        self.exits: list[Exit] = []
        self.escapes: list[str] = []
        self.affine_entries = AffineBlockEntries(self.graph, key.payload)
        self.m.detach()  # variables have no initial value: entries assign them

    # -- instructions ------------------------------------------------------------------------------------------

    def translate(self) -> KernelTranslation:
        for ip, block in self.graph.blocks.items():
            self.state.affine = AffineRegisters(self.m, self.affine_entries.at(ip))
            self._block(block)
            self.affine_entries.known[ip] = self.state.affine.facts()
        body = self.m.detach()
        registers = self.state.registers
        registers.partition()
        parts = list(registers.all())
        unknown = self.key.anywhere or self.escapes or self.state.scattered or self.links  # which channels read what
        if not (self.key.observe or unknown or self.single or self.diverges):
            inactive_lanes.drop_write_masks(self.graph, self.segments, registers)
        compute_liveness(self.segments, registers, parts, len(self.state.flag), self.key.observe)
        for part in self._dormant(parts):
            part.variable = ""
        in_block = self.state.scattered or any(part.written and not part.variable for part in parts)
        clean = not in_block and not self.diverges
        entries = tuple(ip for ip, segment in self.segments.items() if segment.entry)
        self.in_order = clean and len(entries) == 1 and not self.key.observe
        self._write_entries(parts)
        for line in broadcasts.hoisted(body, registers.in_block):
            if isinstance(line, RegisterAccess):
                registers.expand(line)
            else:
                self.m.attach(line)
        for exit in self.exits:
            self._write_exit(exit, parts)
        context = Parameter("context", noalias=True, align=8, dereferenceable=sizeof(Context))
        self.m.frame(NAME, i64, [Parameter("first", noalias=True), context], align_stack=64)  # for spilled vector registers
        size = max(block.end for block in self.graph.blocks.values()) - self.program.start
        indices = frozenset(self.state.indices)
        return KernelTranslation(self.m.module.text(), entries, clean, indices, size, self._needs(parts), self.escapes, self.in_order)

    def _needs(self, parts: list[RegisterPart]) -> tuple[tuple[int, int], ...] | None:
        """The live-in bytes of the kernel; unknown (None) where the interpreter may read registers on its own."""
        if self.escapes or self.state.scattered or self.links:
            return None
        live = self.segments[self.program.start].live_in
        read = [part for number, part in enumerate(parts) if live >> number & 1]
        flags = BLOCK_OFFSETS["f"], REGISTER_SPACE["f"]
        return (*((BLOCK_OFFSETS[part.place] + part.start, part.end - part.start) for part in read), flags)

    def _dormant(self, parts: list[RegisterPart]) -> list[RegisterPart]:
        """Parts that are live across a wait and unused in loops without one: kept in the block instead of spilled and reloaded."""
        waits = {ip for ip, segment in self.segments.items() if self.program.line(ip).instruction.opcode == "wait"}
        if not waits:
            return []
        kept = 0
        for ip in waits:
            kept |= self.segments[ip].live_in
        for block in self.graph.blocks.values():
            here = block.lines[-1].ip
            for to in block.successors:
                if to <= here and not any(to <= ip <= here for ip in waits):
                    kept &= ~self._used(to, here, parts)
        return [part for number, part in enumerate(parts) if kept >> number & 1]

    def _used(self, first: int, last: int, parts: list[RegisterPart]) -> int:
        """The parts that the instructions of an address range access."""
        number = {part: 1 << index for index, part in enumerate(parts)}
        found = 0
        for access in self.state.registers.accesses:
            if first <= access.ip <= last:
                for part in self.state.registers.covering(access):
                    found |= number[part]
        return found

    def _block(self, block: BasicBlock) -> None:
        self.block = block
        self.state.control = self.controls[block.start]
        start, first = block.start, block.lines[0].instruction
        self._begin(start, entry=start in self.resumed or first.opcode == "wait" or _is_indexed(first) or self._is_loop(start))
        self._arrive(block)
        for line, other in halves.joined(block.lines):
            if _is_indexed(line.instruction) and line.ip != start:
                self._jump(line.ip)
                self._begin(line.ip, entry=True)
                self._take_active()
            self.line, self.state.ip, self.state.instruction = line, line.ip, line.instruction
            if control_flow.branches(line.instruction):
                self._branch(line)
                return
            if other is not None:
                halves.step(self.state, line, other)
                self.uncounted += 2
            elif not self._straight(line):
                return
        self._jump(block.end)

    def _is_loop(self, ip: int) -> bool:
        return self.key.loops and any(ip in block.successors and ip <= block.lines[-1].ip for block in self.graph.blocks.values())

    def _begin(self, ip: int, entry: bool) -> None:
        self.segment = self.segments[ip] = Segment(ip, entry)
        self.state.items = self.segment.items
        self.state.entered()
        self.m.start(f"at{ip:x}")

    def _arrive(self, block: BasicBlock) -> None:
        """Channels that waited at this block become active."""
        if block.start in self.waiting:
            waiting = self.waiting[block.start]
            self.active.value = self.active.value | waiting.value
            waiting.value = self.state.none(self.key.width)
        self._take_active()

    def _take_active(self) -> None:
        """All dispatched channels are active where none can be waiting."""
        if self.single or not (self.block.pending or self.key.anywhere or self.diverges):
            self.active.value = self.state.every(self.key.width) if self.key.full else self.dispatched.value
            self.state.active = self.state.every(self.key.width) if self.key.full else self.active.value
        else:
            self.state.active = self.active.value

    def _straight(self, line: DecodedInstruction) -> bool:
        """Translate an instruction that is no branch; False if its block ends with it."""
        inst = line.instruction
        lists: tuple[list[Any], ...] = self.state.registers.accesses, self.exits, self.segment.items
        mark, lengths, uncounted = self.m.mark(), [len(list_) for list_ in lists], self.uncounted
        try:
            self._meaning(line)
        except (Unsupported, DecodeError) as error:
            self.m.rewind(mark)
            for list_, length in zip(lists, lengths, strict=True):
                del list_[length:]
            self.uncounted = uncounted
            self.escapes.append(f"{line.ip:#x} {inst.opcode}: {error}")
            self.state.affine = AffineRegisters(self.m)
            self._exit(ThreadStatus.ESCAPE, line.ip)
            return self._resume(line.ip + line.size)
        self.uncounted += 1
        if inst.eot:
            self._exit(ThreadStatus.ENDED, line.ip + line.size)
        return not inst.eot

    def _resume(self, ip: int) -> bool:
        """A resume point after an instruction of the interpreter; True if the block goes on."""
        if self.line.instruction.eot or ip == self.block.end:
            self.resumed.add(ip)
            return False
        self._begin(ip, entry=True)
        self._take_active()
        return True

    def _meaning(self, line: DecodedInstruction) -> None:
        inst = line.instruction
        if inst.breakpoint:
            raise Unsupported("a breakpoint has no translation")
        if inst.opcode == "wait":
            self._wait(line)
        elif inst.opcode in SENDS:
            send.send(self.state, inst, self.key.messages)
        elif cr0_propagation.writes(inst):
            self.state.control = cr0_propagation.written(inst, self.state.control)
        elif inst.opcode in OPS:
            self.state.check_destination(inst)
            step(self.state, inst)

    def _wait(self, line: DecodedInstruction) -> None:
        """Take a notification, or exit (IVB 2557-2560)."""
        number = notification(line.instruction)
        at = self._place("n", 4 * number)
        count = at.load(u32, volatile=True)  # the last thread at a barrier notifies all
        self._exit(ThreadStatus.WAITING, line.ip, count == 0, wait=number + 1)
        at.store(count - 1, volatile=True)

    # -- branches ------------------------------------------------------------------------------------------------------

    def _branch(self, line: DecodedInstruction) -> None:
        inst, state = line.instruction, self.state
        if self.stack:
            self._stack_branch(line)
            return
        flow = Branching(state, self.graph, line, self._taken(inst), self.waiting, self._stray_if)
        successors = control_flow.meaning(inst, state.rules, self.single)(flow)
        flow.left = self.m.across_blocks(flow.left)
        self.uncounted += 1
        self._count()
        self._go(flow, successors)

    def _stack_branch(self, line: DecodedInstruction) -> None:
        """A branch on the masks in the control block."""
        inst, state, width = line.instruction, self.state, self.key.width
        static = Probe(self.program, line, state.rules, width)
        dispatched = state.every(width) if self.key.full else self.dispatched.value
        masks = dispatched, state.active, self._predicated(inst)
        targets = static.next, static.next if inst.opcode in control_flow.FALL_THROUGH else static.jip
        flow = TranslatedStack(self.m, inst, self._place("control"), masks, targets, self._escape_if)
        to = control_flow.meaning(inst, state.rules, False)(flow)
        if inst.opcode not in UNCHANGING:
            self.active.value = self.m.mask_from_bits(flow.now_active(), width)
        self.uncounted += 1
        self._count()
        if not isinstance(to, Choice):
            self._jump(to)
        elif len(set(self.block.successors)) == 1:  # unconditional
            self._jump(self.block.successors[0])
        else:
            here, there = self.m.labels("here", "there")
            self.m.branch(self.m.scalar(to.condition), here, there)
            for label, target in ((here, to.then), (there, to.other)):
                assert isinstance(target, int)
                self.m.start(label)
                self._jump(target)

    def _taken(self, inst: Instruction) -> Value:
        """The channels whose predicate holds, of those that are active; a jmpi looks at its own predicate alone (interpreter.py)."""
        whole = self._predicated(inst)
        if inst.opcode == "jmpi":
            return whole
        if not inst.predicate and inst.exec_size >= self.key.width:
            return self.state.active
        return self.state.active & whole

    def _predicated(self, inst: Instruction) -> Value:
        """The channels of an instruction whose predicate holds."""
        state, width = self.state, self.key.width
        first, lanes = first_channel(state, inst), inst.exec_size
        inside = max(min(lanes, width - first), 0)
        if not inside:
            return state.none(width)
        holds = self.m.slice(predicate(state, inst), 0, inside)
        before, after = ([state.none(lanes)] if lanes else [] for lanes in (first, width - first - inside))
        return self.m.concat(*before, holds, *after)

    def _go(self, flow: Branching, to: Choice | int, follow: bool = False, none_left: bool = False) -> None:
        if isinstance(to, Choice):
            here, there = self.m.labels("here", "there")
            self.m.branch(self.m.scalar(to.condition), here, there)
            self.m.start(here)
            self._go(flow, to.then, to.follow, none_left)
            self.m.start(there)
            self._go(flow, to.other, to.follow, none_left or to.none_left)
            return
        if to == flow.next or follow or self.single:
            self.active.value = flow.left
        else:
            if not (none_left or flow.all_left):
                flow.wait(flow.next, flow.left)
            self.active.value = self.state.none(self.key.width)
        self._jump(to)

    def _jump(self, to: int) -> None:
        self._count()
        here = self.line.ip
        if to <= here:
            left = self.budget.value - (1 + (here - to) // LONG_BRANCH)
            self.budget.value = left
            self._exit(ThreadStatus.OUT_OF_BUDGET, to, self.m.scalar(left <= 0))
        if to in self.graph.outside:
            self._exit(ThreadStatus.ESCAPE, to)
            return
        self.segment.successors.add(to)
        self.m.jump(f"at{to:x}")

    # -- exits -------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        if self.uncounted:
            self.executed.value = self.executed.value + self.uncounted
            self.uncounted = 0

    def _exit(self, status: ThreadStatus, ip: int, condition: Scalar | None = None, wait: int = 0, stray: bool = False) -> None:
        """An exit, or a side exit where a condition holds."""
        self._count()
        pending = (self.block.pending | self.block.sent) & self.graph.targets
        exit = Exit(f"exit{len(self.exits)}", status, ip, self.state.control, pending, wait, condition is not None, stray)
        self.exits.append(exit)
        self.segment.items.append(exit)
        if condition is None:
            self.m.jump(exit.label)
            return
        (stay,) = self.m.labels("stay")
        self.m.branch(condition, exit.label, stay, likely=False)
        self.m.start(stay)

    def _escape_if(self, condition: Value) -> None:
        self._exit(ThreadStatus.ESCAPE, self.line.ip, self.m.scalar(condition))

    def _stray_if(self, condition: Value) -> None:
        """The side exit of a return that leads to no address after a call: the thread is the interpreter's until it ends."""
        self._exit(ThreadStatus.ESCAPE, self.line.ip, self.m.scalar(condition), stray=True)


def _is_indexed(inst: Instruction) -> bool:
    """Whether a message names its surface in a register. Such a send is a resume point: after a side exit that only resolved the surface,
    the thread goes on there."""
    return isinstance(inst.descriptor, Operand) or isinstance(inst.extended, Operand)

"""Basic blocks as code: their instructions, the branches at their ends, and side exits to the interpreter.

Instructions become code through `step`. A block is one segment, or several where threads resume inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import LONG_BRANCH, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa.control_register import mask
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.padding import ILLEGAL
from softgen.eu.semantics import OPS
from softgen.eu.semantics.mask_stack import UNCHANGING
from softgen.eu.semantics.step import step
from softgen.eu.thread.block import ThreadStatus
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.regions import ip_jump, notification
from softgen.eu.thread.state import SINGLE_PROGRAM_FLOW
from softgen.eu.translate import control_flow, cr0_propagation, send, simd32_pairing
from softgen.eu.translate.affine import AffineRegisters
from softgen.eu.translate.control_flow import BasicBlock, ControlFlowGraph, FlowProbe
from softgen.eu.translate.entry_exit import EntryExit
from softgen.eu.translate.flow import Branching, Choice
from softgen.eu.translate.key import Key
from softgen.eu.translate.liveness import Exit, Segment
from softgen.eu.translate.stack_flow import TranslatedStack
from softgen.eu.translate.state import TranslationState
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import LlvmScalar
from softgen.lanes.types import bool_, u32
from softgen.lanes.value import Value


class BlockTranslator(EntryExit):
    """Writes the basic blocks of a kernel. `segment`, `block` and `line` are those being written."""

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
        self.m.ir.detach()  # variables have no initial value: entries assign them

    # -- instructions --------------------------------------------------------------------------------------------------

    def _at(self, line: DecodedInstruction) -> None:
        self.line, self.state.ip, self.state.instruction = line, line.ip, line.instruction

    def _write_instruction(self, line: DecodedInstruction, other: DecodedInstruction | None) -> None:
        """Write an instruction that is no branch, with its other half."""
        self._at(line)
        if other is None:
            self._meaning(line)
        else:
            simd32_pairing.step(self.state, line, other)
        self.uncounted += 1 if other is None else 2

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

    def _straight(self, line: DecodedInstruction, other: DecodedInstruction | None) -> bool:
        """Write an instruction that is no branch, or leave it to the interpreter; False if its block ends with it."""
        inst, undo = line.instruction, self._checkpoint()
        try:
            self._write_instruction(line, other)
        except (Unsupported, DecodeError) as error:
            undo()
            self.escapes.append(f"{line.ip:#x} {inst.opcode}: {error}")
            self.state.affine = AffineRegisters(self.m)
            self._exit(ThreadStatus.ESCAPE, line.ip)
            return self._resume(line.ip + line.size)
        if inst.eot:
            self._exit(ThreadStatus.ENDED, line.ip + line.size)
        return not inst.eot

    def _checkpoint(self) -> Callable[[], None]:
        """A function that undoes what is written from now on."""
        lists: tuple[list[Any], ...] = self.state.registers.accesses, self.exits, self.segment.items
        mark, lengths, uncounted = self.m.ir.mark(), [len(list_) for list_ in lists], self.uncounted

        def undo() -> None:
            self.m.ir.rewind(mark)
            self.state.flushed.clear()
            for list_, length in zip(lists, lengths, strict=True):
                del list_[length:]
            self.uncounted = uncounted

        return undo

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
        elif inst.opcode in ILLEGAL:
            self._illegal(line)
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

    def _illegal(self, line: DecodedInstruction) -> None:
        """Set the status bit of an illegal opcode whose exception is off (isa/padding.py); the interpreter takes the exception."""
        at = self._place("cr", 4)
        exceptions = at.load(u32, volatile=True)
        self._exit(ThreadStatus.ESCAPE, line.ip, (exceptions & mask("illegal_opcode_enable")) != 0)
        at.store(exceptions | mask("illegal_opcode_status"), volatile=True)

    # -- branches ------------------------------------------------------------------------------------------------------

    def _branch(self, line: DecodedInstruction) -> None:
        inst, state = line.instruction, self.state
        if line.ip in self.graph.computed:
            self._computed_jump(line)
            return
        if self.stack:
            self._stack_branch(line)
            return
        flow = Branching(state, self.graph, line, self._taken(inst), self.waiting, self._stray_if)
        successors = control_flow.meaning(inst, state.rules, self.single)(flow)
        flow.left = self.m.masks.across_blocks(flow.left)
        self.uncounted += 1
        self._count()
        self._go(flow, successors)

    def _stack_branch(self, line: DecodedInstruction) -> None:
        """A branch on the masks in the control block."""
        inst, state, width = line.instruction, self.state, self.key.width
        static = FlowProbe(self.program, line, state.rules, width)
        dispatched = state.every(width) if self.key.full else self.dispatched.value
        masks = dispatched, state.active, self._predicated(inst)
        targets = static.next, static.next if inst.opcode in control_flow.FALL_THROUGH else static.jip
        flow = TranslatedStack(self.m, inst, self._place("control"), masks, targets, self._escape_if)
        to = control_flow.meaning(inst, state.rules, self.single)(flow)
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

    def _computed_jump(self, line: DecodedInstruction) -> None:
        """A jump to one of the addresses that movs have saved; where it leads elsewhere, the interpreter executes it."""
        jump, m = ip_jump(line.instruction), self.m
        assert jump is not None
        target = self.state.read("grf", u32, (jump.source,)) + m.constant(u32, jump.addend & 0xFFFFFFFF, 1)
        known = m.constant(bool_, 0, 1)
        for to in self.block.successors:
            known = known | (target == to)
        if jump.masked:
            known = known & m.slice(self.state.active, 0, 1)
        self.escapes.append(f"{line.ip:#x} {line.instruction.opcode}: it may lead anywhere")
        self._count()
        here, elsewhere = m.labels("here", "elsewhere")
        m.branch(m.scalar(known), here, elsewhere)
        m.start(elsewhere)
        self._exit(ThreadStatus.ESCAPE, line.ip)
        m.start(here)
        self.uncounted += 1
        self._count()
        *others, last = self.block.successors
        for to in others:
            there, rest = m.labels("there", "rest")
            m.branch(m.scalar(target == to), there, rest)
            m.start(there)
            self._jump(to)
            m.start(rest)
        self._jump(last)

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
        else:
            self._go_to_segment(to)

    def _go_to_segment(self, ip: int) -> None:
        self.segment.successors.add(ip)
        self.m.jump(f"at{ip:x}")

    # -- exits -------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        if self.uncounted:
            self.executed.value = self.executed.value + self.uncounted
            self.uncounted = 0

    def _exit(self, status: ThreadStatus, ip: int, condition: LlvmScalar | None = None, wait: int = 0, stray: bool = False) -> None:
        """An exit, or a side exit where a condition holds."""
        self._count()
        pending = (self.block.pending | self.block.sent) & self.graph.targets
        exit = Exit(f"exit{len(self.exits)}", status, ip, self.state.control, pending, wait, condition is not None, stray)
        self.exits.append(exit)
        label = self._way_out(exit)
        self.segment.items.append(exit)
        if condition is None:
            self.m.jump(label)
            return
        (stay,) = self.m.labels("stay")
        self.m.branch(condition, label, stay, likely=False)
        self.m.start(stay)

    def _way_out(self, exit: Exit) -> str:
        """The label that leads to an exit."""
        return exit.label

    def _escape_if(self, condition: Value) -> None:
        self._exit(ThreadStatus.ESCAPE, self.line.ip, self.m.scalar(condition))

    def _stray_if(self, condition: Value) -> None:
        """The side exit of a return that leads to no address after a call: the thread is the interpreter's until it ends."""
        self._exit(ThreadStatus.ESCAPE, self.line.ip, self.m.scalar(condition), stray=True)


def is_indexed(inst: Instruction) -> bool:
    """Whether a message names its surface in a register. Such a send is a resume point: after a side exit that only resolved the surface,
    the thread goes on there."""
    return isinstance(inst.descriptor, Operand) or isinstance(inst.extended, Operand)

"""The control-flow graph of a kernel: basic blocks, their successors, and the addresses at which channels may be waiting.

A channel that a branch takes elsewhere waits at its target until the thread arrives there. A translation needs the set of addresses with
such channels (`pending`): where it is empty, every channel of the thread is active again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.errors import GpuFault, SoftgenError
from softgen.eu.interpreter import NOPS, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.padding import ILLEGAL, skips_illegal
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.semantics import OPS
from softgen.eu.semantics.branch_machine import BranchSemantics, LinkingBranch
from softgen.eu.semantics.control import LINKING, PER_CHANNEL, SINGLE_FLOW
from softgen.eu.semantics.descriptor_bits import AddressImmediates
from softgen.eu.semantics.mask_stack import ADD_IP, MASK_STACK, UNCHANGING, branch_of
from softgen.eu.translate.computed_jumps import ComputedJumps

FALL_THROUGH = frozenset({"endif", "do"})  # branches without a target
LONGEST = 1 << 16  # instructions of a kernel that is translated whole


class Untranslatable(SoftgenError):
    """A kernel that cannot be one function; another engine runs it."""


# -- where a branch may lead ---------------------------------------------------------------------------------------


class StaticFlow(LinkingBranch):
    """A branch whose targets are known before the kernel runs; a return's are all addresses after a call."""

    def __init__(self, program: KernelProgram, line: DecodedInstruction) -> None:
        self.program, self.line, self.instruction = program, line, line.instruction
        self.next = line.ip + line.size

    def _target(self, count: int | None) -> int:
        if count is None:
            raise Untranslatable(f"{self.instruction.opcode} at {self.line.ip:#x} takes its target from a register")
        return labels.target(self.instruction, self.line.ip, count)

    def instruction_after(self, address: int) -> int:
        try:
            return address + self.program.line(address).size
        except GpuFault:
            raise Untranslatable(f"{self.instruction.opcode} at {self.line.ip:#x} leads past {address:#x}, where nothing is") from None


class ReturnAddress:
    """The target of a return, for probing: any address after a call."""


class UnknownMask:
    """A mask of unknown channels, for probing."""

    def __and__(self, other: Any) -> UnknownMask:
        return UnknownMask()

    __rand__ = __and__

    def __invert__(self) -> UnknownMask:
        return UnknownMask()


class FlowProbe(StaticFlow):
    """Evaluates a branch for its successors and for the addresses it sends channels to."""

    def __init__(self, program: KernelProgram, line: DecodedInstruction, rules: ExecutionRules, width: int,
                 returns: Collection[int] = ()) -> None:  # fmt: skip
        super().__init__(program, line)
        self.rules, self.width, self.returns = rules, width, returns
        self.active, self.taken = UnknownMask(), UnknownMask()
        self.sent: set[int] = set()
        self.splits: list[tuple[UnknownMask, set[int]]] = []  # which channels were sent where
        self.unsent: dict[int, set[int]] = {}  # by successor: addresses of `sent` that no channel was sent to if it is taken
        self.successors: set[int] = set()  # of the thread
        self.deserted: set[int] = set()  # successors taken only if no channel is at the next instruction

    def set_ip(self, channels: Any, to: int) -> None:
        """Only a join does, to the next instruction; those it does not send stay at it."""
        if self.instruction.predicate or self.instruction.exec_size < self.width:
            self.sent.add(self.line.ip)

    def split(self, leave: Any, to: Any) -> None:
        if isinstance(leave, UnknownMask):
            self.sent |= self._targets(to)
            self.splits.append((leave, self._targets(to)))

    def _targets(self, to: Any) -> set[int]:
        return set(self.returns) if isinstance(to, ReturnAddress) else set() if to is None else {to}

    def link(self) -> None:
        link_location(self.instruction.dst, self.line)

    def linked(self) -> tuple[ReturnAddress, UnknownMask]:
        link_location(link_operand(self.instruction), self.line)
        return ReturnAddress(), UnknownMask()

    def any(self, channels: UnknownMask) -> UnknownMask:
        return channels

    def includes_first(self, channels: Any) -> None:
        return None

    def any_at(self, at: int) -> None:
        return None

    def choose(self, condition: UnknownMask | None, then: Any, other: Any) -> None:
        """Where the thread does not go on, what is left of its channels waits. A while that no channel takes has sent none back."""
        successors = self._targets(then) | self._targets(other)
        for to in self._targets(other) - self._targets(then) - self.successors if condition is not None else ():
            ours, others = (set[int]().union(*(targets for leave, targets in self.splits if (leave is condition) is same))
                            for same in (True, False))  # fmt: skip
            self.unsent[to] = ours - others - {self.next}
        all_leave = self.instruction.opcode in LINKING and not self.instruction.predicate and self.instruction.exec_size >= self.width
        if successors - {self.next} and not all_leave:
            self.sent.add(self.next)
        self.successors |= successors
        self.deserted -= successors

    def continue_or(self, otherwise: Any) -> None:
        stays = self.instruction.opcode != "ret" or self.instruction.predicate  # a return of all channels goes elsewhere, or astray
        targets = self._targets(otherwise)
        self.deserted |= targets - self.successors - {self.next}
        self.successors |= targets | ({self.next} if stays else set())

    def jump(self, condition: Any, then: int, other: int) -> None:
        self.successors |= {then, other}
        self.deserted -= {then, other}


def stack_successors(probe: FlowProbe) -> None:
    """The successors of a branch with a mask stack: the next instruction and its target, as far as it has them."""
    inst = probe.instruction
    certain = not inst.predicate and (inst.opcode == "jmpi" or inst.opcode == ADD_IP and inst.no_mask)
    probe.successors |= set() if certain else {probe.next}
    probe.successors |= set() if inst.opcode in FALL_THROUGH else {probe.jip}


def link_operand(inst: Instruction) -> Operand | None:
    """The operand of a return: the last source in a general register, or an immediate (interpreter.py)."""
    found = (operand for operand in reversed(inst.sources) if operand.file == "imm" or operand.file == "grf" and not operand.indirect)
    return next(found, None)


def link_location(operand: Operand | None, line: DecodedInstruction) -> int:
    """The byte of the register file at which a call's two dwords are."""
    if operand is None or operand.file != "grf" or operand.indirect:
        raise Untranslatable(f"{line.instruction.opcode} at {line.ip:#x} has no general register for its return address")
    start = operand.number * GRF_BYTES + operand.sub
    if start % 4 or start + 8 > GRF_BYTES * GRF_COUNT:
        raise Untranslatable(f"{line.instruction.opcode} at {line.ip:#x} has its return address at byte {start:#x} of the register file")
    return start


def meaning(inst: Instruction, rules: ExecutionRules, single: bool) -> BranchSemantics:
    table = MASK_STACK if rules.flow == "stack" else SINGLE_FLOW if single else PER_CHANNEL
    found = table.get(inst.opcode)
    if found is None:
        raise Untranslatable(f"{inst.opcode or 'an unknown opcode'} has no translation")
    return found


# -- basic blocks --------------------------------------------------------------------------------------------------------


@dataclass
class BasicBlock:
    """Straight-line instructions; the last may be a branch."""

    start: int
    lines: list[DecodedInstruction] = field(default_factory=list)
    successors: tuple[int, ...] = ()
    deserted: frozenset[int] = frozenset()  # successors that are taken only if no channel is at the end of the block
    sent: frozenset[int] = frozenset()  # where its branch may send channels
    unsent: dict[int, set[int]] = field(default_factory=dict)  # by successor: of those, where it sends none if the successor is taken
    pending: frozenset[int] = frozenset()  # where channels may wait after those that waited at this block have joined

    @property
    def end(self) -> int:
        return self.lines[-1].ip + self.lines[-1].size


@dataclass
class ControlFlowGraph:
    program: KernelProgram
    blocks: dict[int, BasicBlock]  # by address, ascending
    targets: frozenset[int]  # addresses at which channels may wait
    outside: frozenset[int]  # branch targets without an instruction
    returns: frozenset[int] = frozenset()  # addresses after calls, if anything returns
    computed: frozenset[int] = frozenset()  # addresses of computed jumps

    def is_branch(self, line: DecodedInstruction) -> bool:
        return branches(line.instruction) or line.ip in self.computed

    @property
    def links(self) -> bool:
        """Whether there are calls or returns."""
        return any(block.lines[-1].instruction.opcode in LINKING for block in self.blocks.values())

    @cached_property
    def loops(self) -> tuple[tuple[int, int], ...]:
        """Address ranges of loops: where a branch leads back to, and the branch."""
        ends = ((to, block.lines[-1].ip) for block in self.blocks.values() for to in block.successors)
        return tuple((to, branch) for to, branch in ends if to <= branch)

    @property
    def changes_masks(self) -> bool:
        """Whether a branch pushes or pops masks, on generations with a mask stack."""
        lines = (line for block in self.blocks.values() for line in block.lines[-1:])
        return any(line.instruction.opcode in MASK_STACK and line.instruction.opcode not in UNCHANGING for line in lines)


def branches(inst: Instruction) -> bool:
    """Whether an instruction may lead elsewhere. Padding does not, and of other illegal opcodes there is no graph."""
    return inst.opcode not in OPS and inst.opcode not in SENDS and inst.opcode not in NOPS | ILLEGAL and inst.opcode != "wait"


def build(program: KernelProgram, rules: ExecutionRules, single: bool, width: int) -> ControlFlowGraph:
    """Everything reachable from the start. A basic block begins at a branch target and where a thread may wait."""
    probes: dict[int, FlowProbe] = {}
    outside: set[int] = set()
    computed = ComputedJumps()
    lines = dict(_reached(program, lambda line: FlowProbe(program, line, rules, width), single, probes, outside, computed))
    returns = _follow_returns(probes, single)
    for ip, line in computed.lines.items():
        probes[ip] = FlowProbe(program, line, rules, width)
        probes[ip].successors |= computed.targets(line)
    starts = {program.start, *(ip for ip, line in lines.items() if line.instruction.opcode == "wait")}
    if not lines:
        raise Untranslatable(f"there is no instruction at {program.start:#x}")
    for probe in probes.values():
        starts |= probe.successors | probe.sent | {probe.next}
    blocks: dict[int, BasicBlock] = {}
    current, built = None, AddressImmediates()
    for ip in sorted(lines):
        if ip in starts or current is None or current.end != ip:
            current = blocks[ip] = BasicBlock(ip)
        current.lines.append(replace(lines[ip], instruction=built.after(lines[ip].instruction)))
    for block in blocks.values():
        last = block.lines[-1]
        if last.ip in probes:
            probe = probes[last.ip]
            block.successors, block.sent, block.deserted = tuple(sorted(probe.successors)), frozenset(probe.sent), frozenset(probe.deserted)
            block.unsent = probe.unsent
        elif not last.instruction.eot:
            block.successors = (block.end,)
    _pend(program, blocks)
    targets = frozenset().union(*(block.sent for block in blocks.values()))
    return ControlFlowGraph(program, dict(sorted(blocks.items())), targets, frozenset(outside), returns, frozenset(computed.lines))


def _follow_returns(probes: dict[int, FlowProbe], single: bool) -> frozenset[int]:
    """Probe returns again, now that all calls are known; the addresses they may lead to."""
    found = frozenset(probe.next for probe in probes.values() if probe.instruction.opcode in ("call", "calla"))
    leaving = [probe for probe in probes.values() if probe.instruction.opcode == "ret"]
    for probe in leaving:
        if not found:
            raise Untranslatable(f"ret at {probe.line.ip:#x} has no call to return from")
        probe.returns = found
        meaning(probe.instruction, probe.rules, single)(probe)
    return found if leaving else frozenset()


def _reached(program: KernelProgram, probing: Callable[[DecodedInstruction], FlowProbe], single: bool, probes: dict[int, FlowProbe],
             outside: set[int], computed: ComputedJumps) -> Iterator[tuple[int, DecodedInstruction]]:  # fmt: skip
    todo, seen = [program.start], set[int]()
    while todo or (todo := computed.unreached(seen)):
        ip = todo.pop()
        if ip in seen:
            continue
        seen.add(ip)
        if len(seen) > LONGEST:
            raise Untranslatable(f"the kernel has more than {LONGEST} instructions")
        try:
            line = program.line(ip)
            line = replace(line, instruction=branch_of(line.instruction))
        except GpuFault:
            outside.add(ip)  # a thread that goes there is reported by the interpreter
            continue
        inst = line.instruction
        if inst.opcode in ILLEGAL and (inst.opcode_number or not skips_illegal(program, line)):
            raise Untranslatable(f"opcode {inst.opcode_number} at {ip:#x} is no instruction")
        yield ip, line
        if branches(inst):
            probe = probes[ip] = probing(line)
            semantics = meaning(inst, probe.rules, single)
            if probe.rules.flow == "stack":
                stack_successors(probe)
            elif (to := semantics(probe)) is not None:
                probe.successors.add(to)
            todo += [*probe.successors, *probe.sent]
        elif not computed.note(line) and not inst.eot:
            todo.append(ip + line.size)


def _pend(program: KernelProgram, blocks: dict[int, BasicBlock]) -> None:
    """Forward data flow to the fixed point: where channels may wait when a block has begun."""
    known: dict[int, frozenset[int]] = {program.start: frozenset()}
    todo = [program.start]
    while todo:
        block = blocks[todo.pop()]
        block.pending = known[block.start] - {block.start}
        for to in set(block.successors) & set(blocks):
            sent = block.sent - block.unsent.get(to, set())
            out = (block.pending | sent) - ({block.end} if to in block.deserted else set())
            if to not in known or not out <= known[to]:
                known[to] = known.get(to, frozenset()) | out
                todo.append(to)

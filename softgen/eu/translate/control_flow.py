"""A kernel as blocks of instructions: where they begin, where they lead, and at which addresses channels may be waiting.

A channel that a branch sends away waits at its target until the thread comes by. What a translation needs to know is where that may be so:
at a place that nobody waits behind, every channel of the thread is active again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.interpreter import NOPS, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.semantics import OPS
from softgen.eu.semantics.branch_machine import BranchSemantics, OffsetBranch
from softgen.eu.semantics.control import INTERPRETED_ONLY, PER_CHANNEL, SINGLE_FLOW

LONGEST = 1 << 16  # instructions of a kernel that is translated whole


class Untranslatable(SoftgenError):
    """A kernel that cannot be one function; another engine runs it."""


# -- where a branch may lead ---------------------------------------------------------------------------------------


class Static(OffsetBranch):
    """What all flows have whose targets are known before the kernel runs."""

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
            raise Untranslatable(f"{self.instruction.opcode} at {self.line.ip:#x} leads behind {address:#x}, where nothing is") from None


class Some:
    """A mask that may have any channels."""

    def __and__(self, other: Any) -> Some:
        return self

    __rand__ = __and__

    def __invert__(self) -> Some:
        return self


class Probe(Static):
    """Finds out where channels are sent and where the thread may go."""

    def __init__(self, program: KernelProgram, line: DecodedInstruction, rules: ExecutionRules, width: int) -> None:
        super().__init__(program, line)
        self.rules, self.width = rules, width
        self.active = self.taken = Some()
        self.sent: set[int] = set()
        self.leads: set[int] = set()  # where the thread may go on
        self.deserted: set[int] = set()  # those it goes to only if nobody is at the next instruction

    def set_ip(self, channels: Any, to: int) -> None:
        """Only a join does, to the next instruction; those it does not send stay at it."""
        if self.instruction.predicate or self.instruction.exec_size < self.width:
            self.sent.add(self.line.ip)

    def split(self, leave: Any, to: int) -> None:
        if isinstance(leave, Some):
            self.sent.add(to)

    def any(self, channels: Any) -> None:
        return None

    def includes_first(self, channels: Any) -> None:
        return None

    def any_at(self, at: int) -> None:
        return None

    def choose(self, condition: Any, one: Any, other: Any) -> None:
        """Where the thread does not go on, what is left of its channels waits."""
        leads = {to for to in (one, other) if to is not None}
        if leads - {self.next}:
            self.sent.add(self.next)
        self.leads |= leads
        self.deserted -= leads

    def continue_or(self, otherwise: Any) -> None:
        if otherwise not in self.leads | {None, self.next}:
            self.deserted.add(otherwise)
        self.leads |= {self.next, otherwise} - {None}

    def jump(self, condition: Any, one: int, other: int) -> None:
        self.leads |= {one, other}
        self.deserted -= {one, other}


def meaning(one: Instruction, rules: ExecutionRules, single: bool) -> BranchSemantics:
    found = (SINGLE_FLOW if single else PER_CHANNEL).get(one.opcode)
    if found is None or one.opcode in INTERPRETED_ONLY or rules.flow != "channel":
        raise Untranslatable(f"{one.opcode or 'an unknown opcode'} has no translation")
    return found


# -- blocks --------------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """Instructions that run one after another; the last may be a branch."""

    start: int
    lines: list[DecodedInstruction] = field(default_factory=list)
    leads: tuple[int, ...] = ()
    deserted: frozenset[int] = frozenset()  # leads that are taken only if nobody is behind the block
    sent: frozenset[int] = frozenset()  # where its branch may send channels
    pending: frozenset[int] = frozenset()  # where channels may wait once those that waited for this block have come along

    @property
    def end(self) -> int:
        return self.lines[-1].ip + self.lines[-1].size


@dataclass
class Graph:
    program: KernelProgram
    blocks: dict[int, Block]  # by address, ascending
    targets: frozenset[int]  # where channels may come to wait
    outside: frozenset[int]  # addresses without an instruction that something leads to


def branches(one: Instruction) -> bool:
    return one.opcode not in OPS and one.opcode not in SENDS and one.opcode not in NOPS and one.opcode != "wait"


def build(program: KernelProgram, rules: ExecutionRules, single: bool, width: int) -> Graph:
    """All that can be reached from the start. A block begins where a branch leads, and where a thread may wait."""
    probes: dict[int, Probe] = {}
    outside: set[int] = set()
    lines = dict(_reached(program, lambda line: Probe(program, line, rules, width), single, probes, outside))
    starts = {program.start, *(ip for ip, line in lines.items() if line.instruction.opcode == "wait")}
    if not lines:
        raise Untranslatable(f"there is no instruction at {program.start:#x}")
    for probe in probes.values():
        starts |= probe.leads | probe.sent | {probe.next}
    blocks: dict[int, Block] = {}
    current = None
    for ip in sorted(lines):
        if ip in starts or current is None or current.end != ip:
            current = blocks[ip] = Block(ip)
        current.lines.append(lines[ip])
    for block in blocks.values():
        last = block.lines[-1]
        if last.ip in probes:
            probe = probes[last.ip]
            block.leads, block.sent, block.deserted = tuple(sorted(probe.leads)), frozenset(probe.sent), frozenset(probe.deserted)
        elif not last.instruction.eot:
            block.leads = (block.end,)
    _pend(program, blocks)
    targets = frozenset().union(*(block.sent for block in blocks.values()))
    return Graph(program, dict(sorted(blocks.items())), targets, frozenset(outside))


def _reached(program: KernelProgram, probing: Callable[[DecodedInstruction], Probe], single: bool, probes: dict[int, Probe],
             outside: set[int]) -> Iterator[tuple[int, DecodedInstruction]]:  # fmt: skip
    todo, seen = [program.start], set()
    while todo:
        ip = todo.pop()
        if ip in seen:
            continue
        seen.add(ip)
        if len(seen) > LONGEST:
            raise Untranslatable(f"the kernel has more than {LONGEST} instructions")
        try:
            line = program.line(ip)
        except GpuFault:
            outside.add(ip)  # whoever comes there is told by the reference
            continue
        yield ip, line
        one = line.instruction
        if branches(one):
            probe = probes[ip] = probing(line)
            to = meaning(one, probe.rules, single)(probe)
            probe.leads |= set() if to is None else {to}
            todo += [*probe.leads, *probe.sent]
        elif not one.eot:
            todo.append(ip + line.size)


def _pend(program: KernelProgram, blocks: dict[int, Block]) -> None:
    """Forward until nothing changes: who may wait where, when a block has begun."""
    known: dict[int, frozenset[int]] = {program.start: frozenset()}
    todo = [program.start]
    while todo:
        block = blocks[todo.pop()]
        block.pending = known[block.start] - {block.start}
        for to in set(block.leads) & set(blocks):
            out = (block.pending | block.sent) - ({block.end} if to in block.deserted else set())
            if to not in known or not out <= known[to]:
                known[to] = known.get(to, frozenset()) | out
                todo.append(to)

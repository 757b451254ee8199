"""Software pipelining of loops, in two stages: an iteration's second stage runs beside the first stage of the next.

A long chain of dependent operations in each iteration keeps the host's scheduler full of instructions that wait for their operands. In two
stages half of them have theirs. The loop

    start: first; second; jmpi start

becomes, where registers that the first stage writes and the second reads are saved for the next iteration:

    start:  first                           tail:   jmpi steady, otherwise second
    enter:  save                            drain:  second, on the way from tail and steady to an exit
    steady: first; second of the iteration before; save; go to tail

Start and enter are the prologue, drain is the epilogue of exits. Nobody sees a difference: at every exit the iterations before are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import DecodedInstruction, KernelProgram
from softgen.eu.semantics import OPS
from softgen.eu.translate import cr0_propagation, simd32_pairing
from softgen.eu.translate.affine import AffineBlockEntries, AffineRegisters
from softgen.eu.translate.blocks import BlockTranslator
from softgen.eu.translate.control_flow import BasicBlock
from softgen.eu.translate.key import Key
from softgen.eu.translate.liveness import Exit, Use
from softgen.eu.translate.registers import SAVED, RegisterAccess, overlap
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import LaneType, u32
from softgen.lanes.value import Variable

ROOM = 256  # bytes for a saved operand: 32 channels of 8
MOST = 64  # instructions of a second stage, which is written three times


def stages(block: BasicBlock) -> int:
    """The number of instructions in the first stage of a loop of one basic block; 0 where it is left as it is. The second stage begins
    with the first function that has a fast path, which is the longest chain."""
    lines = block.lines
    if lines[-1].instruction.opcode != "jmpi" or set(block.successors) != {block.start, block.end} or block.pending:
        return 0
    if any(cr0_propagation.writes(line.instruction) for line in lines):
        return 0
    first = next((number for number, line in enumerate(lines) if simd32_pairing.has_fast_path(line.instruction)), 0)
    second = lines[first:-1]
    return first if len(second) <= MOST and all(line.instruction.opcode in OPS for line in second) else 0


def has_room(module: LlvmModule) -> bool:
    """Whether a host's vector registers have room for what is saved: 32 of 16 lanes each."""
    return module.has("avx512f")


@dataclass
class PipelinedLoop:
    """A loop that is written in two stages: its instructions, the registers that are saved between them, and its exits."""

    start: int
    first: Sequence[DecodedInstruction]
    second: Sequence[DecodedInstruction]
    earlier: Sequence[Use | Exit]  # what the first stage does
    which: Variable  # the exit that drains
    saved: dict[tuple[LaneType, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)  # registers -> their places
    drained: list[Use | Exit] = field(default_factory=list)  # what the second stage does on its way to an exit
    exits: list[Exit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.enter, self.tail, self.steady = (self.start + more for more in (1, 2, 3))  # segments, where no instruction is
        self.drain, self.left = f"drain{self.start:x}", f"left{self.start:x}"  # labels: of the second stage, and of the way on from there

    def renamed(self, place: str, type: LaneType, offsets: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Where the second stage reads a register: what the first stage writes was saved, if it is a general register."""
        read = RegisterAccess(place, type, offsets)
        if place != "grf" or not any(_is_write(item) and overlap(read, item) for item in self.earlier if isinstance(item, RegisterAccess)):
            return place, offsets
        if (type, offsets) not in self.saved:
            start = ROOM * len(self.saved)
            self.saved[type, offsets] = tuple(start + lane * type.bytes for lane in range(len(offsets)))
        return SAVED, self.saved[type, offsets]

    def is_independent(self) -> bool:
        """Whether the second stage touches general registers only, and writes none that the first stage touches or that are saved."""
        touched = [item for item in self.earlier if isinstance(item, RegisterAccess)]
        touched += [RegisterAccess("grf", type, offsets) for type, offsets in self.saved]
        for item in self.drained:
            if not isinstance(item, RegisterAccess) or item.place not in ("grf", SAVED):
                return False
            if _is_write(item) and any(overlap(item, other) for other in touched):
                return False
        return True


def _is_write(access: RegisterAccess) -> bool:
    return not access.result


class LoopTranslator(BlockTranslator):
    """Writes loops in two stages where it can."""

    def __init__(self, program: KernelProgram, key: Key) -> None:
        super().__init__(program, key)
        self.affine_entries = AffineBlockEntries(self.graph, key.payload)
        self.loop: PipelinedLoop | None = None  # the one whose tail and steady state are being written

    def _first_stage(self, block: BasicBlock) -> int:
        """The number of instructions in the first stage of a loop; 0 of any other block. All its channels must be active."""
        may = self.key.full and not (self.key.anywhere or self.stack or self.single) and has_room(self.m.ir.module)
        return stages(block) if may else 0

    def _pipeline(self, first: int) -> bool:
        """Write a loop, of which the first stage of the first iteration is written; False where its stages depend on each other."""
        m, lines, state = self.m, self.block.lines, self.state
        if self.segment.ip != self.block.start or "grf" in state.registers.in_block:
            return False
        undo, ranges, exits = self._checkpoint(), dict(state.affine.ranges), len(self.exits)
        which = m.variable(m.constant(u32, 0, 1))
        loop = PipelinedLoop(self.block.start, lines[:first], lines[first:-1], tuple(self.segment.items), which)
        self._count()
        m.jump(f"at{loop.enter:x}")
        m.start(loop.drain)
        state.items = loop.drained
        try:
            self._second_stage(loop)
            possible = loop.is_independent() and len(self.exits) == exits
        except (Unsupported, DecodeError):
            possible = False
        state.items, state.renamed = self.segment.items, None
        if not possible:
            undo()
            state.entered()  # names of masks are gone with the text
            state.affine.ranges = ranges
            return False
        self._count()
        m.jump(loop.left)
        self.segment.successors.add(loop.enter)
        self._write(loop)
        return True

    def _second_stage(self, loop: PipelinedLoop) -> None:
        self.state.entered()
        self.state.renamed = loop.renamed
        self._stage(loop.second)
        self.state.renamed = None

    def _stage(self, lines: Sequence[DecodedInstruction]) -> None:
        for line, other in simd32_pairing.joined(lines):
            self._write_instruction(line, other)

    def _write(self, loop: PipelinedLoop) -> None:
        """The loop behind the first stage of its first iteration, and the way to its exits."""
        state = self.state
        self._begin(loop.enter, entry=False)
        self._at(self.block.lines[-1])
        state.save(state.saving(loop.saved))
        self._go_to_segment(loop.tail)
        self.loop = loop
        self._begin(loop.tail, entry=False)
        self._branch(self.line)
        self._begin(loop.steady, entry=False)
        state.affine = AffineRegisters(self.m, self.affine_entries.at(loop.start))
        self._stage(loop.first)
        new = state.saving(loop.saved)  # here: scalars are broadcast by their loads, in the same basic block
        self._second_stage(loop)
        state.save(new)
        self._count()
        self.loop = None
        self._go_to_segment(loop.tail)
        self.m.start(loop.left)
        labels = {number: exit.label for number, exit in enumerate(loop.exits)}
        self.m.code.switch(self.m.scalar(loop.which.value), labels[0], labels)

    def _jump(self, to: int) -> None:
        loop = self.loop
        if loop is not None and to != loop.start:
            self._second_stage(loop)
            self.loop = None
        super()._jump(to)
        self.loop = loop

    def _go_to_segment(self, ip: int) -> None:
        super()._go_to_segment(self.loop.steady if self.loop is not None and ip == self.loop.start else ip)

    def _way_out(self, exit: Exit) -> str:
        if self.loop is None:
            return super()._way_out(exit)
        self.loop.which.value = self.m.constant(u32, len(self.loop.exits), 1)
        self.loop.exits.append(exit)
        self.segment.items += self.loop.drained
        return self.loop.drain

"""A whole kernel as one function: `i64 kernel(ptr block, ptr context)`, which runs a thread until it ends, waits, is out of budget, or
takes a side exit to the interpreter (block.py, ThreadStatus).

    made = translate(program, Key(control=0, width=16, full=True))
    made.ir                     # LLVM IR; softgen.eu.engine compiles it

Basic blocks are written first. The register partition, spills at exits and reloads at entries are written afterwards, when all accesses are
known.
"""

from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass, field

from softgen.eu.interpreter import KernelProgram
from softgen.eu.thread.block import BLOCK_OFFSETS, REGISTER_SPACE, Context
from softgen.eu.translate import broadcasts, inactive_lanes, simd32_pairing
from softgen.eu.translate.affine import AffineRegisters
from softgen.eu.translate.blocks import is_indexed
from softgen.eu.translate.control_flow import BasicBlock
from softgen.eu.translate.key import NAME, Key
from softgen.eu.translate.liveness import compute_liveness
from softgen.eu.translate.pipelining import LoopTranslator
from softgen.eu.translate.registers import SAVED, RegisterAccess, RegisterPart
from softgen.lanes.compile import foreground
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.types import i64


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


class KernelTranslator(LoopTranslator):
    """Writes a whole kernel."""

    def translate(self) -> KernelTranslation:
        for ip, block in self.graph.blocks.items():
            self.state.affine = AffineRegisters(self.m, self.affine_entries.at(ip))
            self._block(block)
            self.affine_entries.known[ip] = self.state.affine.facts()
        body = self.m.ir.detach()
        registers = self.state.registers
        registers.partition()
        parts = [part for part in registers.all() if part.place != SAVED]
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
                foreground.yield_to_foreground()
                registers.expand(line)
            else:
                self.m.ir.attach(line)
        for exit in self.exits:
            foreground.yield_to_foreground()
            self._write_exit(exit, parts)
        context = Parameter("context", noalias=True, align=8, dereferenceable=sizeof(Context))
        self.m.code.frame(NAME, i64, [Parameter("first", noalias=True), context], align_stack=64)  # for spilled vector registers
        size = max(block.end for block in self.graph.blocks.values()) - self.program.start
        indices = frozenset(self.state.indices)
        return KernelTranslation(self.m.ir.module.text(), entries, clean, indices, size, self._needs(parts), self.escapes, self.in_order)

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
        waits = {ip for ip, block in self.graph.blocks.items() if block.lines[0].instruction.opcode == "wait"}
        if not waits:
            return []
        kept = 0
        for ip in waits:
            kept |= self.segments[ip].live_in
        for first, last in self.graph.loops:
            if not any(first <= ip <= last for ip in waits):
                kept &= ~self._used(first, last, parts)
        return [part for number, part in enumerate(parts) if kept >> number & 1]

    def _used(self, first: int, last: int, parts: list[RegisterPart]) -> int:
        """The parts that the instructions of an address range access."""
        number = {part: 1 << index for index, part in enumerate(parts)}
        found = 0
        for access in self.state.registers.accesses:
            if first <= access.ip <= last:
                for part in self.state.registers.covering(access):
                    found |= number.get(part, 0)
        return found

    def _block(self, block: BasicBlock) -> None:
        self.block = block
        self.m.addressing.in_loop = any(first <= block.start <= last for first, last in self.graph.loops)
        self.state.control = self.controls[block.start]
        start, first = block.start, block.lines[0].instruction
        self._begin(start, entry=start in self.resumed or first.opcode == "wait" or is_indexed(first) or self._is_loop(start))
        self._arrive(block)
        stage = self._first_stage(block)
        for line, other in simd32_pairing.joined(block.lines):
            foreground.yield_to_foreground()
            if is_indexed(line.instruction) and line.ip != start:
                self._jump(line.ip)
                self._begin(line.ip, entry=True)
                self._take_active()
            if stage and line is block.lines[stage] and self._pipeline(stage):
                return
            if self.graph.is_branch(line):
                self._at(line)
                self._branch(line)
                return
            if not self._straight(line, other):
                return
        self._jump(block.end)

    def _is_loop(self, ip: int) -> bool:
        return self.key.loops and any(first == ip for first, _ in self.graph.loops)

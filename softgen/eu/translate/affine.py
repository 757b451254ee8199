"""Affine-value tracking for GRF contents during translation: contiguous elements with values base + i·stride.

Facts come from the payload (AffineRange) and from the instructions since. They hold however a thread reached an instruction, on whichever
engine. At the start of a basic block they are the intersection over its predecessors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.engine_protocol import AffineRange
from softgen.eu.interpreter import SENDS
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics.descriptor_bits import known_bits
from softgen.eu.semantics.send import halves, message_lengths
from softgen.eu.thread.regions import LANES
from softgen.eu.translate.control_flow import ControlFlowGraph
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.affine import EVERY, AffineValue
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

GRF_FILE = GRF_BYTES * GRF_COUNT
ByteSpan = tuple[int, int]


class AffineRegisters:
    """Affine ranges at the instruction being translated. Those written since the last resume point also have their AffineValue."""

    def __init__(self, m: LlvmMachine, ranges: Iterable[AffineRange] = ()) -> None:
        self.m = m
        self.ranges: dict[AffineRange, AffineValue | None] = dict.fromkeys(ranges)

    def resume_point(self) -> None:
        """A resume point: no SSA value of before is available here."""
        self.ranges = {span: None for span, value in self.ranges.items() if value is None or not value.conditions and value.mask == EVERY}

    def facts(self) -> frozenset[AffineRange]:
        self.resume_point()
        return frozenset(self.ranges)

    def invalidate(self, spans: Iterable[ByteSpan]) -> None:
        for low, high in spans:
            self.ranges = {span: value for span, value in self.ranges.items() if span.end <= low or high <= span.start}

    def wrote(self, value: Value, offsets: tuple[int, ...], mask: str) -> None:
        """Record a write of `value` under a mask."""
        size = value.type.bytes
        self.invalidate([(min(offsets), max(offsets) + size)])
        known = affine.known(self.m.ir, value.payload) if value.type.is_integer else None
        if known is None or len(offsets) < 2 or any(b - a != size for a, b in pairwise(offsets)):
            return
        if mask != EVERY:
            if known.mask not in (EVERY, mask):
                return
            known = replace(known, mask=mask)
        self.ranges[AffineRange(offsets[0], size, len(offsets), known.stride, known.highest)] = known

    def read(self, type: LaneType, offsets: tuple[int, ...], result: str) -> None:
        """Record what is known of a value that was read."""
        m, lanes = self.m, len(offsets)
        gaps = {b - a for a, b in pairwise(offsets)}
        if not type.is_integer or len(gaps) > 1:
            return
        if gaps <= {0}:
            affine.declare(m.ir, type, lanes, result, 0)
            return
        gap, apart = divmod(gaps.pop(), type.bytes)
        for span, value in self.ranges.items():
            inside = span.start <= min(offsets) and max(offsets) < span.end
            first, between = divmod(offsets[0] - span.start, type.bytes)
            if inside and span.size == type.bytes and not (between or apart):
                self._found(type, lanes, result, span, value, first, gap)
                return

    def _found(self, type: LaneType, lanes: int, result: str, span: AffineRange, value: AffineValue | None, first: int, gap: int) -> None:
        if value is None:
            affine.declare(self.m.ir, type, lanes, result, span.stride * gap, span.highest)
        elif value.mask == EVERY or (first, gap) == (0, 1):
            self.m.ir.affine[result] = affine.shifted(self.m.ir, type, value, first, gap)


# -- at block entries ----------------------------------------------------------------------------------------------


class AffineBlockEntries:
    """Affine ranges that hold at the start of basic blocks, queried in the order of translation."""

    def __init__(self, graph: ControlFlowGraph, start: Iterable[AffineRange]) -> None:
        self.graph = graph
        self.predecessors: dict[int, list[int]] = {ip: [] for ip in graph.blocks}
        for ip, block in graph.blocks.items():
            for to in set(block.successors) & set(graph.blocks):
                self.predecessors[to].append(ip)
        self.known: dict[int, frozenset[AffineRange]] = {}  # at the end of each block translated so far
        self.start = frozenset(start)

    def at(self, ip: int) -> frozenset[AffineRange]:
        """The intersection over all predecessors; of a loop header, without what the loop body writes."""
        done = [self.known[predecessor] for predecessor in self.predecessors[ip] if predecessor in self.known]
        if ip == self.graph.program.start:
            done.append(self.start)
        if not done:
            return frozenset()
        common = frozenset.intersection(*done)
        back = [predecessor for predecessor in self.predecessors[ip] if predecessor not in self.known]
        if not common or not back:
            return common
        body = self._loop_body(ip, back)
        if self.graph.program.start in body - {ip}:  # the body may be entered without passing the header
            common &= self.start
        lost = [found for block in body for line in self.graph.blocks[block].lines for found in written(line.instruction)]
        return frozenset(span for span in common if not any(low < span.end and span.start < high for low, high in lost))

    def _loop_body(self, ip: int, back: list[int]) -> set[int]:
        """The loop body: this header, and the blocks from which a back edge is reached without passing it."""
        todo, seen = [block for block in back if block != ip], {ip, *back}
        while todo:
            for predecessor in self.predecessors[todo.pop()]:
                if predecessor not in seen:
                    seen.add(predecessor)
                    todo.append(predecessor)
        return seen


def written(inst: Instruction) -> list[ByteSpan]:
    """GRF bytes that an instruction may write (conservative)."""
    dst = inst.dst
    if dst is None or dst.file != "grf":
        return []
    bits = known_bits(inst.descriptor)
    if dst.indirect or bits is None and isinstance(inst.descriptor, Operand):
        return [(0, GRF_FILE)]
    first = dst.number * GRF_BYTES
    if inst.opcode in SENDS:
        count = message_lengths(bits or 0, inst.gen).response + len(halves(inst)) - 1
        return [(first, first + dst.sub + count * GRF_BYTES)]
    type = LANES.get(dst.type)
    if type is None:
        return [(0, GRF_FILE)]
    size = inst.exec_size * max(dst.horizontal, 1) * type.bytes * (2 if type.bytes > 4 else 1)  # doubles may be pairs of instructions
    more = GRF_BYTES if inst.opcode == "math" else 0  # the remainder follows the quotient
    return [(first, first + max(dst.sub + size, GRF_BYTES) + more)]

"""What is known of general registers while a kernel is written: elements side by side that lie evenly, each a step further than the last.

That follows from the payload, where threads say so, and from the instructions since: it holds however a thread came to a place, whichever
engine brought it there. At the beginning of a block it is what all ways to it have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from softgen.bits.units import GRF_BYTES
from softgen.eu.engine import Row
from softgen.eu.interpreter import SENDS
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.semantics.send import message_lengths
from softgen.eu.thread.regions import LANES
from softgen.eu.translate.control_flow import Graph
from softgen.lanes import affine
from softgen.lanes.affine import EVERY, Ramp
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

GRF = 4096
Range = tuple[int, int]


class Even:
    """Rows at the instruction that is being written. Those that were written since the last entry have their Ramps, too."""

    def __init__(self, m: LlvmMachine, rows: Iterable[Row] = ()) -> None:
        self.m = m
        self.rows: dict[Row, Ramp | None] = dict.fromkeys(rows)

    def settle(self) -> None:
        """A thread may be taken up here: nothing that was written before can be named."""
        self.rows = {row: None for row, held in self.rows.items() if held is None or not held.conditions and held.mask == EVERY}

    def settled(self) -> frozenset[Row]:
        self.settle()
        return frozenset(self.rows)

    def forget(self, ranges: Iterable[Range]) -> None:
        for low, high in ranges:
            self.rows = {row: held for row, held in self.rows.items() if row.end <= low or high <= row.start}

    def wrote(self, value: Value, offsets: tuple[int, ...], mask: str) -> None:
        """`value` is what lanes were given; those that the mask has off keep what they had."""
        size = value.type.bytes
        self.forget([(min(offsets), max(offsets) + size)])
        held = affine.known(self.m, value.payload) if value.type.is_integer else None
        if held is None or len(offsets) < 2 or any(b - a != size for a, b in pairwise(offsets)):
            return
        if mask != EVERY:
            if held.mask not in (EVERY, mask):
                return
            held = replace(held, mask=mask)
        self.rows[Row(offsets[0], size, len(offsets), held.step, held.highest)] = held

    def read(self, type: LaneType, offsets: tuple[int, ...], result: str) -> None:
        """Says of what was read what is known of it."""
        m, lanes = self.m, len(offsets)
        gaps = {b - a for a, b in pairwise(offsets)}
        if not type.is_integer or len(gaps) > 1:
            return
        if gaps <= {0}:
            affine.leaf(m, type, lanes, result, 0)
            return
        gap = gaps.pop()
        for row, held in self.rows.items():
            if row.size == type.bytes and row.start <= min(offsets) and max(offsets) < row.end and not (offsets[0] - row.start) % row.size:
                if gap % row.size == 0:
                    self._found(type, lanes, result, row, held, (offsets[0] - row.start) // row.size, gap // row.size)
                return

    def _found(self, type: LaneType, lanes: int, result: str, row: Row, held: Ramp | None, first: int, gap: int) -> None:
        if held is None:
            affine.leaf(self.m, type, lanes, result, row.step * gap, row.highest)
        elif held.mask == EVERY or (first, gap) == (0, 1):
            self.m.ramps[result] = affine.moved_on(self.m, type, held, first, gap)


# -- where blocks begin ----------------------------------------------------------------------------------------------


class Arrivals:
    """Rows that hold at the beginning of blocks, which are asked for in the order they are written."""

    def __init__(self, graph: Graph, rules: ExecutionRules, start: Iterable[Row]) -> None:
        self.graph, self.rules = graph, rules
        self.before: dict[int, list[int]] = {ip: [] for ip in graph.blocks}
        for ip, block in graph.blocks.items():
            for to in set(block.leads) & set(graph.blocks):
                self.before[to].append(ip)
        self.known: dict[int, frozenset[Row]] = {}  # at the end of each block that was written
        self.start = frozenset(start)

    def at(self, ip: int) -> frozenset[Row]:
        """What all blocks that lead here have in common, without what is written on the way back here."""
        done = [self.known[one] for one in self.before[ip] if one in self.known]
        if ip == self.graph.program.start:
            done.append(self.start)
        if not done:
            return frozenset()
        common = frozenset.intersection(*done)
        back = [one for one in self.before[ip] if one not in self.known]
        if not common or not back:
            return common
        way = self._way(ip, back)
        if self.graph.program.start in way - {ip}:  # one may come that way without having been here at all
            common &= self.start
        lost = [found for one in way for line in self.graph.blocks[one].lines for found in written(line.instruction, self.rules)]
        return frozenset(row for row in common if not any(low < row.end and row.start < high for low, high in lost))

    def _way(self, ip: int, back: list[int]) -> set[int]:
        """This block, and those from which one comes back here without having been here."""
        todo, seen = [one for one in back if one != ip], {ip, *back}
        while todo:
            for one in self.before[todo.pop()]:
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return seen


def written(one: Instruction, rules: ExecutionRules) -> list[Range]:
    """Bytes of general registers that an instruction may write, or a few more."""
    dst = one.dst
    if dst is None or dst.file != "grf":
        return []
    if dst.indirect or one.opcode in SENDS and isinstance(one.descriptor, Operand):
        return [(0, GRF)]
    first = dst.number * GRF_BYTES
    if one.opcode in SENDS:
        assert isinstance(one.descriptor, int | None)
        return [(first, first + dst.sub + message_lengths(one.descriptor or 0, one.gen).response * GRF_BYTES)]
    type = LANES.get(dst.type)
    if type is None:
        return [(0, GRF)]
    size = one.exec_size * max(dst.horizontal, 1) * type.bytes * (2 if type.bytes > 4 else 1)  # doubles may be pairs of instructions
    more = GRF_BYTES if one.opcode == "math" else 0  # a remainder goes behind its quotient
    return [(first, first + max(dst.sub + size, GRF_BYTES) + more)]

"""Doubles as pairs of channels: the generation that counts a double as two channels of four bytes (IVB 452-458).

Such an instruction is rewritten to later generations' form: execution size, widths and strides are halved, and the state exposes every
other channel; both masks of a pair are equal, as the manual requires. A horizontal stride of 1, which cannot be halved, also means
contiguous doubles (public: Mesa writes <8,8,1> and, for a scalar, <0,2,1>). Operands of other types have their elements at the pair's
first channel.

Align16 halves the execution size alone: channels are those of vertices' components, so four doubles are of the four channels from the
instruction's first one on (public: Mesa's vec4 compiler, which has the same instruction with twice the size here). So are those of an
instruction with nibble control, in align1 too: pairs from the fifth channel on would go past the eight that a thread has (public: Mesa,
which executes the upper four doubles of eight channels so).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.thread.lane_state import LaneState, Offsets
from softgen.eu.thread.predicate import NORMAL
from softgen.eu.thread.state import FloatMode
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

DOUBLE = "df"


def uses_doubles(inst: Instruction) -> bool:
    return any(operand is not None and operand.type == DOUBLE for operand in (inst.dst, *inst.sources))


def has_pairs(inst: Instruction) -> bool:
    """Whether each double of an instruction has two channels of the masks."""
    return not (inst.align16 or inst.nibble)


@lru_cache(1 << 12)
def with_halved_channels(inst: Instruction) -> Instruction:
    """The instruction with one channel for each pair."""
    if inst.dst is not None and inst.dst.indirect:
        raise Unsupported(f"gen {inst.gen:g} doubles with an indirect destination are not yet simulated")
    if inst.exec_size < 2:
        raise DecodeError(f"gen {inst.gen:g} doubles take two channels each; the instruction has one")
    if inst.align16:
        return _in_align16(inst)
    if inst.predicate > NORMAL:
        raise Unsupported(f"gen {inst.gen:g} doubles with predicates over several channels are not yet simulated")
    target = inst.dst and replace(inst.dst, horizontal=_step(inst.dst))
    return replace(inst, exec_size=inst.exec_size // 2, dst=target, sources=tuple(map(_region, inst.sources)))


def _in_align16(inst: Instruction) -> Instruction:
    for operand in (inst.dst, *inst.sources):
        if operand is not None and operand.type != DOUBLE and not (operand.file == "arf" and not operand.number):
            raise Unsupported(f"gen {inst.gen:g} doubles in align16 beside operands of type {operand.type} are not yet simulated")
    return replace(inst, exec_size=inst.exec_size // 2)


def _step(operand: Operand) -> int:
    """The horizontal stride in elements; 1 is 1 double as well."""
    return (operand.horizontal + 1) // 2 if operand.type == DOUBLE else operand.horizontal * 2


def _region(operand: Operand) -> Operand:
    if operand.indirect:
        raise Unsupported("doubles by an address register are not yet simulated")
    if operand.type == DOUBLE:
        return replace(operand, vertical=operand.vertical // 2, width=max(operand.width // 2, 1), horizontal=_step(operand))
    if operand.width > 1:
        return replace(operand, width=operand.width // 2, horizontal=operand.horizontal * 2)
    return replace(operand, vertical=operand.vertical * 2)


class PairedLaneState:
    """A LaneState that exposes every pair of channels as one."""

    def __init__(self, state: LaneState, inst: Instruction) -> None:
        self.state, self.whole = state, inst
        self.m: Machine = state.m
        self.gen = state.gen
        self.rules: ExecutionRules = state.rules

    @property
    def mode(self) -> FloatMode:
        return self.state.mode

    @property
    def accumulates(self) -> bool:
        return self.state.accumulates

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        return self.state.read(place, type, offsets)

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None:
        self.state.write(place, value, offsets, mask)

    def enabled(self, instruction: Instruction) -> Value:
        return self._first(self.state.enabled(self.whole))

    def flags(self, first: int, count: int) -> Value:
        return self._first(self.state.flags(first, 2 * count))

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        both = [lane // 2 for lane in range(2 * value.lanes)]
        self.state.write_flags(first, self.m.shuffle(value, both), self.m.shuffle(mask, both))

    def _first(self, channels: Value) -> Value:
        return self.m.shuffle(channels, range(0, channels.lanes, 2))

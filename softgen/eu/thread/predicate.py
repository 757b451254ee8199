"""Predication: which flag bits an instruction looks at, and what they say of its channels (KBL 7500-7533)."""

from __future__ import annotations

from softgen.errors import DecodeError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.lane_state import State
from softgen.lanes.types import bool_
from softgen.lanes.value import Value

NONE, NORMAL, ANY_VERTICAL, ALL_VERTICAL = range(4)
COMPONENTS = {2: 0, 3: 1, 4: 2, 5: 3}  # align16: one channel of four for all
HORIZONTAL = {4: (2, "any"), 5: (2, "all"), 6: (4, "any"), 7: (4, "all"), 8: (8, "any"), 9: (8, "all"), 10: (16, "any"), 11: (16, "all"),
              12: (32, "any"), 13: (32, "all")}  # fmt: skip
FLAG = 16  # bits of a flag sub-register
SECOND_HALF = 1  # compression control of the generations that have one


def group(state: State, one: Instruction) -> int:
    """The first of the 32 channels that an instruction is about."""
    if state.rules.second_half == "compression":
        return 8 if one.quarter == SECOND_HALF else 0
    return one.quarter * 8 + one.nibble * 4


def predicate(state: State, one: Instruction) -> Value:
    """Truth per channel. Inversion comes last."""
    m, lanes = state.m, one.exec_size
    if one.predicate == NONE:
        return m.constant(bool_, 1, lanes)
    first = one.flag * 2 * FLAG + one.flag_sub * FLAG + group(state, one)
    holds = _replicated(state, one, first) if one.align16 else _plain(state, one, first)
    return ~holds if one.predicate_invert else holds


def _plain(state: State, one: Instruction, first: int) -> Value:
    lanes, control = one.exec_size, one.predicate
    if control == NORMAL:
        return state.flags(first, lanes)
    if control in (ANY_VERTICAL, ALL_VERTICAL):
        here, there = state.flags(first, lanes), state.flags(first + state.rules.vertical_flags * FLAG, lanes)
        return here | there if control == ANY_VERTICAL else here & there
    if control not in HORIZONTAL:
        raise DecodeError(f"there is no predicate control {control}")
    return _grouped(state, first, lanes, *HORIZONTAL[control])


def _grouped(state: State, first: int, lanes: int, size: int, how: str) -> Value:
    """Any or all of aligned groups of channels, which may reach beyond the instruction's own."""
    start = first // size * size
    bits = state.flags(start, -(-(first - start + lanes) // size) * size)
    total = None
    for member in range(size):
        one = state.m.shuffle(bits, [(first - start + lane) // size * size + member for lane in range(lanes)])
        total = one if total is None else total | one if how == "any" else total & one
    assert total is not None
    return total


def _replicated(state: State, one: Instruction, first: int) -> Value:
    lanes, control = one.exec_size, one.predicate
    if control == NORMAL:
        return state.flags(first, lanes)
    if control in COMPONENTS:
        bits = state.flags(first, -(-lanes // 4) * 4)
        return state.m.shuffle(bits, [lane // 4 * 4 + COMPONENTS[control] for lane in range(lanes)])
    if control not in (6, 7):
        raise DecodeError(f"there is no predicate control {control} with align16")
    return _grouped(state, first, lanes, *HORIZONTAL[control])

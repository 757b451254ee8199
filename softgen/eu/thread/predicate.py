"""Predication: the flag bits that an instruction reads, and its predicate per channel (KBL 7500-7533)."""

from __future__ import annotations

from softgen.errors import DecodeError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.lane_state import LaneState
from softgen.lanes.types import bool_
from softgen.lanes.value import Value

NONE, NORMAL, ANY_VERTICAL, ALL_VERTICAL = range(4)
REPLICATED = {2: 0, 3: 1, 4: 2, 5: 3}  # align16 predicate control -> the channel of each four that is replicated
HORIZONTAL = {4: (2, "any"), 5: (2, "all"), 6: (4, "any"), 7: (4, "all"), 8: (8, "any"), 9: (8, "all"), 10: (16, "any"), 11: (16, "all"),
              12: (32, "any"), 13: (32, "all")}  # fmt: skip
FLAG = 16  # bits of a flag sub-register
SECOND_HALF = 1  # compression control of the generations that have one


def first_channel(state: LaneState, inst: Instruction) -> int:
    """The first of the thread's 32 channels that an instruction executes for: quarter and nibble control, or compression control."""
    if state.rules.second_half == "compression":
        return 8 if inst.quarter == SECOND_HALF else 0
    return inst.quarter * 8 + inst.nibble * 4


def predicate(state: LaneState, inst: Instruction) -> Value:
    """The predicate of each channel; inversion is applied last."""
    m, lanes = state.m, inst.exec_size
    if inst.predicate == NONE:
        return m.constant(bool_, 1, lanes)
    first = inst.flag * 2 * FLAG + inst.flag_sub * FLAG + first_channel(state, inst)
    holds = _replicated(state, inst, first) if inst.align16 else _plain(state, inst, first)
    return ~holds if inst.predicate_invert else holds


def _plain(state: LaneState, inst: Instruction, first: int) -> Value:
    lanes, control = inst.exec_size, inst.predicate
    if control == NORMAL:
        return state.flags(first, lanes)
    if control in (ANY_VERTICAL, ALL_VERTICAL):
        here, there = state.flags(first, lanes), state.flags(first + state.rules.vertical_flags * FLAG, lanes)
        return here | there if control == ANY_VERTICAL else here & there
    if control not in HORIZONTAL:
        raise DecodeError(f"predicate control {control} is reserved")
    return _grouped(state, first, lanes, *HORIZONTAL[control])


def _grouped(state: LaneState, first: int, lanes: int, size: int, how: str) -> Value:
    """Any or all flags of aligned groups of channels; a group may extend beyond the instruction's own channels."""
    start = first // size * size
    bits = state.flags(start, -(-(first - start + lanes) // size) * size)
    total = None
    for member in range(size):
        bit = state.m.shuffle(bits, [(first - start + lane) // size * size + member for lane in range(lanes)])
        total = bit if total is None else total | bit if how == "any" else total & bit
    assert total is not None
    return total


def _replicated(state: LaneState, inst: Instruction, first: int) -> Value:
    lanes, control = inst.exec_size, inst.predicate
    if control == NORMAL:
        return state.flags(first, lanes)
    if control in REPLICATED:
        bits = state.flags(first, -(-lanes // 4) * 4)
        return state.m.shuffle(bits, [lane // 4 * 4 + REPLICATED[control] for lane in range(lanes)])
    if control not in (6, 7):
        raise DecodeError(f"predicate control {control} is reserved in align16")
    return _grouped(state, first, lanes, *HORIZONTAL[control])

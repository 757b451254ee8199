"""cr0 constant propagation: the value of cr0.0 at the start of each basic block.

Kernels change their float mode with immediates, so cr0.0 is one constant at each address; a kernel where it is not is untranslatable.
"""

from __future__ import annotations

from softgen.eu.isa.control_register import mask
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.regions import lane_type, register_location
from softgen.eu.thread.state import ACCUMULATOR_DISABLE, ALL_CHANNELS, ALT_FLOAT_MODE, DENORMALS, ROUNDING_MODE
from softgen.eu.translate.control_flow import ControlFlowGraph, Untranslatable

COMBINE = {"and": lambda old, new: old & new, "or": lambda old, new: old | new, "xor": lambda old, new: old ^ new,
           "mov": lambda old, new: new}  # fmt: skip


def writes(one: Instruction) -> bool:
    return one.dst is not None and one.dst.file == "arf" and not one.dst.indirect and register_location(one.dst, one.gen)[0] == "cr"


def written(one: Instruction, before: int) -> int:
    """cr0.0 after an instruction that writes it."""
    strange = Untranslatable(f"{one.opcode} writes cr0 in a way that is not known beforehand")
    plain = one.exec_size == 1 and one.no_mask and not (one.predicate or one.condition or one.saturate or one.breakpoint)
    if not plain or one.opcode not in COMBINE or not _whole(one, one.dst) or one.sources[-1].file != "imm":
        raise strange
    if len(one.sources) > 1 and (not _whole(one, one.sources[0]) or one.sources[0].negate or one.sources[0].absolute):
        raise strange
    type = lane_type(one.sources[-1])
    given = one.sources[-1].immediate & (1 << type.bits) - 1
    if type.is_signed and given >> type.bits - 1:
        given -= 1 << type.bits
    after: int = COMBINE[one.opcode](before, given & ALL_CHANNELS)
    if (after ^ before) & ~_floats(one.gen):
        raise strange
    return after


def _whole(one: Instruction, operand: Operand | None) -> bool:
    """Whether an operand is cr0.0, all 32 bits of it."""
    if operand is None or operand.file != "arf" or operand.indirect:
        return False
    return register_location(operand, one.gen) == ("cr", 0) and operand.type in ("ud", "d")


def _floats(gen: float) -> int:
    """The float-mode bits of cr0.0."""
    found = ALT_FLOAT_MODE | ROUNDING_MODE | ACCUMULATOR_DISABLE
    for name in DENORMALS.values():
        found |= mask(name, gen)
    return found


def controls(graph: ControlFlowGraph, control: int) -> dict[int, int]:
    """cr0.0 at the start of each basic block."""
    known = {graph.program.start: control}
    todo = [graph.program.start]
    while todo:
        block = graph.blocks[todo.pop()]
        now = known[block.start]
        for line in block.lines:
            if writes(line.instruction):
                now = written(line.instruction, now)
        for to in set(block.successors) & set(graph.blocks):
            if to not in known:
                known[to] = now
                todo.append(to)
            elif known[to] != now:
                raise Untranslatable(f"cr0 is one thing or another at {to:#x}")
    return known

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


def writes(inst: Instruction) -> bool:
    return inst.dst is not None and inst.dst.file == "arf" and not inst.dst.indirect and register_location(inst.dst, inst.gen)[0] == "cr"


def written(inst: Instruction, before: int) -> int:
    """cr0.0 after an instruction that writes it."""
    strange = Untranslatable(f"{inst.opcode} writes cr0 in a way that is not known beforehand")
    plain = inst.exec_size == 1 and inst.no_mask and not (inst.predicate or inst.condition or inst.saturate or inst.breakpoint)
    if not plain or inst.opcode not in COMBINE or not _whole(inst, inst.dst) or inst.sources[-1].file != "imm":
        raise strange
    if len(inst.sources) > 1 and (not _whole(inst, inst.sources[0]) or inst.sources[0].negate or inst.sources[0].absolute):
        raise strange
    type = lane_type(inst.sources[-1])
    given = inst.sources[-1].immediate & (1 << type.bits) - 1
    if type.is_signed and given >> type.bits - 1:
        given -= 1 << type.bits
    after: int = COMBINE[inst.opcode](before, given & ALL_CHANNELS)
    if (after ^ before) & ~_floats(inst.gen):
        raise strange
    return after


def _whole(inst: Instruction, operand: Operand | None) -> bool:
    """Whether an operand is cr0.0, all 32 bits of it."""
    if operand is None or operand.file != "arf" or operand.indirect:
        return False
    return register_location(operand, inst.gen) == ("cr", 0) and operand.type in ("ud", "d")


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

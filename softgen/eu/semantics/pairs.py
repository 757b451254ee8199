"""Doubles that count as two elements of four bytes: regions and execution sizes of the generation that has them (IVB 452-458).

Such an instruction is rewritten to later generations' form: execution size, widths and strides are halved. A horizontal stride of 1, which
cannot be halved, also means contiguous doubles (public: Mesa writes <8,8,1> and, for a scalar, <0,2,1>). Operands of other types have
their elements at the first of a double's two.

Masks, predicates and flags have one channel for each double, as nibble control implies: it selects four of eight channels "for SIMD4
instructions with a DF source or destination" (BDW 7561), which such an instruction of execution size 8 is. Mesa executes eight doubles as
two instructions, of the first and the second nibble, and depends on it wherever channels are off.

Align16 halves the execution size alone (public: Mesa's vec4 compiler, which has the same instruction with twice the size here).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa.instruction import Instruction, Operand

DOUBLE = "df"


def uses_doubles(inst: Instruction) -> bool:
    return any(operand is not None and operand.type == DOUBLE for operand in (inst.dst, *inst.sources))


@lru_cache(1 << 12)
def with_halved_channels(inst: Instruction) -> Instruction:
    """The instruction with the execution size and regions of true doubles."""
    if inst.dst is not None and inst.dst.indirect:
        raise Unsupported(f"gen {inst.gen:g} doubles with an indirect destination are not yet simulated")
    if inst.exec_size < 2:
        raise DecodeError(f"gen {inst.gen:g} doubles take two channels each; the instruction has one")
    if inst.align16:
        return _in_align16(inst)
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

"""Joins the two halves of a SIMD32 instruction, which follow each other as (16|M0) and (16|M16), into one computation of 32 lanes.

For functions with a fast path: both halves have one test and one branch, and stand in one basic block, where LLVM's scheduler interleaves
them. Each half alone is a long chain of dependent operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.interpreter import DecodedInstruction
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics import OPS
from softgen.eu.semantics.step import AluStep
from softgen.eu.thread.regions import destination_offsets, register_location, source_offsets
from softgen.eu.translate.broadcasts import RareBranch
from softgen.eu.translate.state import TranslationState
from softgen.lanes.types import f32
from softgen.shared_functions.extended_math.functions import FAST_PATHS, HALF


def joined(lines: Sequence[DecodedInstruction]) -> Iterator[tuple[DecodedInstruction, DecodedInstruction | None]]:
    """The instructions of a basic block, each with its other half where that is the next one."""
    rest = iter(zip(lines, [*lines[1:], None], strict=True))
    for line, following in rest:
        other = following if following is not None and are_halves(line.instruction, following.instruction) else None
        if other is not None:
            next(rest)
        yield line, other


def are_halves(first: Instruction, second: Instruction) -> bool:
    """Whether both compute the same function with a fast path, and the second does not read what the first writes. One that has to be left
    to the interpreter, since its registers do not exist, is left alone."""
    if first.function != second.function or not (has_fast_path(first) and has_fast_path(second)):
        return False
    if max(*_written(first), *_read(first), *_written(second), *_read(second)) + f32.bytes > GRF_BYTES * GRF_COUNT:
        return False
    return all(abs(to - by) >= f32.bytes for to in _written(first) for by in _read(second))


def _written(inst: Instruction) -> list[int]:
    """Byte offsets of the destination's channels in the register file."""
    assert inst.dst is not None
    return [register_location(inst.dst, inst.gen)[1] + offset for offset in destination_offsets(inst)]


def _read(inst: Instruction) -> list[int]:
    """Byte offsets of the source's channels in the register file."""
    return [register_location(inst.sources[0], inst.gen)[1] + offset for offset in source_offsets(inst, 0)]


def has_fast_path(inst: Instruction) -> bool:
    """Whether it is a function of floats in registers with a fast path, and does nothing else."""
    if inst.opcode != "math" or inst.exec_size != HALF or inst.predicate or inst.condition or inst.acc_write or inst.breakpoint:
        return False
    function = opcodes.math_function(inst.function, inst.gen)
    return function is not None and function.name in FAST_PATHS and _is_float(inst.dst) and _is_float(inst.sources[0])


def _is_float(operand: Operand | None) -> bool:
    return operand is not None and operand.file == "grf" and operand.type == "f" and not operand.indirect


def step(state: TranslationState, *halves: DecodedInstruction) -> None:
    """Execute both halves: read both sources, then write both destinations."""
    m, steps, sources = state.m, [], []
    for half in halves:
        state.ip, state.instruction = half.ip, half.instruction
        steps.append(AluStep(state, half.instruction, OPS["math"]))
        sources.append(steps[-1].source(0))
    if m.ir.module.loads_broadcast:
        m.ir.defer(RareBranch(state.items, len(state.items)))
    result = steps[0].meaning.function(steps[0], m.concat(*sources))
    for half, each, first in zip(halves, steps, (0, HALF), strict=True):
        state.ip, state.instruction = half.ip, half.instruction
        each.finish(m.slice(result, first, HALF))

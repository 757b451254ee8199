"""What functions of opcodes are registered with, and the type that an ALU instruction is computed in."""

from __future__ import annotations

import inspect

import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Operand
from softgen.eu.semantics import OPS
from softgen.eu.semantics.step import compute_type
from softgen.lanes.types import LaneType, i32, i64
from tests.eu.semantics.build import L, arf, dst, instr, reg

ACC = 0x20


@pytest.mark.parametrize("opcode", OPS)
def test_a_function_takes_the_sources_of_its_instruction_or_reads_them_itself(opcode: str) -> None:
    taken = list(inspect.signature(OPS[opcode].function).parameters.values())[1:]
    least = sum(value.default is inspect.Parameter.empty for value in taken)
    rows = [row for gen in GENERATIONS if (row := opcodes.opcode(opcode, gen)) is not None]
    assert rows and all(least <= (0 if OPS[opcode].own else row.sources) <= len(taken) for row in rows)


@pytest.mark.parametrize("name, expected", [
    ("modular", {"mov", "add", "mul", "mad", "shl", "and", "or", "xor", "not"}), ("ordered", {"cmp", "cmpn", "sel", "csel"}),
    ("raw", {"sel", "csel", "f32to16"}), ("selects", {"sel", "csel"}),
])  # fmt: skip
def test_opcodes_that_are_executed_in_a_way_of_their_own(name: str, expected: set[str]) -> None:
    """Low bits that depend on low bits alone; sources that are only compared; denormals that stay; predicates that select a source."""
    assert {opcode for opcode, semantics in OPS.items() if getattr(semantics, name)} == expected


@pytest.mark.parametrize("opcode", ["add", "mul", "and", "or", "xor", "shl"])
def test_what_needs_the_low_bits_alone_is_computed_in_them(opcode: str) -> None:
    """Which is quicker. Saturation, conditions, accumulators and quadwords see more of the result."""
    def computed(target: Operand, a: Operand = reg(2), **controls: object) -> LaneType:  # noqa: B008
        return compute_type(instr(9, opcode, target, a, reg(4), **controls), OPS[opcode])[1]

    assert [computed(dst(20, kind)) for kind in ("d", "ud", "w", "b")] == [i32] * 4
    assert [computed(dst(20), **controls) for controls in ({"saturate": True}, {"condition": L}, {"acc_write": True})] == [i64] * 3
    assert [computed(arf(ACC, "d")), computed(dst(20), arf(ACC, "d")), computed(dst(20, "q"))] == [i64] * 3


@pytest.mark.parametrize("opcode", ["avg", "shr", "asr"])
def test_what_needs_high_bits_is_computed_with_them(opcode: str) -> None:
    assert compute_type(instr(9, opcode, dst(20), reg(2), reg(4)), OPS[opcode])[1] is i64

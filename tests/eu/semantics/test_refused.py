"""Instructions that are refused, each with its reason, whichever engine executes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics import OPS, step
from tests.eu.semantics.build import O, arf, dst, engine, imm, instr, reg, run, thread  # noqa: F401

GEN = 9


def refused(inst: Instruction, error: type[SoftgenError], why: str) -> None:
    made = thread(inst.gen)
    before = made.grf.copy()
    with pytest.raises(error, match=why):
        run(made, inst)
    assert (made.grf == before).all()


@pytest.mark.parametrize("function", ["intdiv", "intmod", "intdivmod"])
def test_integer_divisions_of_floats(function: str) -> None:
    (number,) = (number for number in range(16) if (row := opcodes.math_function(number, GEN)) and row.name == function)
    refused(instr(GEN, "math", dst(20, "f"), reg(4, "f"), reg(5, "f"), function=number), Unsupported, f"math {function} of floats")


def test_floats_of_the_accumulators_precision_are_in_acc0() -> None:
    refused(instr(11, "mov", dst(20, "f"), reg(4, "nf")), Unsupported, "operands of type nf are not yet simulated")
    refused(instr(11, "mov", dst(20, "f"), arf(0x21, "nf")), Unsupported, "type nf elsewhere than in acc0")


def test_an_instruction_has_a_destination_that_is_a_register() -> None:
    whole = instr(GEN, "add", dst(20), reg(4), reg(5))
    refused(replace(whole, dst=None), DecodeError, "add has no destination")
    refused(replace(whole, dst=imm(0)), DecodeError, "the destination is an immediate")


@pytest.mark.parametrize(("gen", "opcode", "align16"), [(8, "mad", True), (11, "mad", False)])
def test_three_sources_without_a_destination_have_no_encoding(gen: float, opcode: str, align16: bool) -> None:
    inst = instr(gen, opcode, dst(20, "f"), *[reg(4, "f")] * 3, align16=align16)
    with pytest.raises(DecodeError, match=f"{opcode} needs a destination"):
        encode(replace(inst, dst=None))


def test_an_opcode_without_a_meaning_is_not_simulated() -> None:
    made = thread(GEN)
    assert "invented" not in OPS
    with pytest.raises(Unsupported, match="invented is not yet simulated"):
        step.step(made, replace(instr(GEN, "add", dst(20), reg(4), reg(5)), opcode="invented"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "overflows"), [("f", []), ("d", [0, 3]), ("w", [0, 1, 3])])
def test_integers_overflow_in_a_destination_of_integers(kind: str, overflows: list[int]) -> None:
    """Every sum of them has a float."""
    given = np.array([0x7FFFFFFF, 0x8000, -5, -0x80000000, 0, 0, 0, 0], np.int32)
    made = thread(GEN, r4=given)
    stride = 2 if kind == "w" else 1
    run(made, instr(GEN, "add", dst(20, kind, stride), reg(4), reg(4), condition=O))
    assert [lane for lane in range(8) if made.dwords("f")[0] >> lane & 1] == overflows

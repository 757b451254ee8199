"""The accumulator on Gen4.5: arithmetic updates it without being told to, which interpolation and setup kernels rely on."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.rules import writes_accumulator
from tests.eu.semantics.build import NULL, arf, dst, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

GEN = 4.5
FLOAT_NULL = Operand("arf", "f", 0, horizontal=1)
ACCUMULATOR_DISABLE = 1 << 1


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_which_instructions_update_it() -> None:
    for opcode, wanted in (("add", True), ("mul", True), ("frc", True), ("line", True), ("mov", False), ("and", False), ("cmp", False)):
        sources = [reg(4, "f"), reg(5, "f")][: 1 if opcode in ("mov", "frc") else 2]
        assert writes_accumulator(instr(GEN, opcode, dst(6, "f"), *sources)) is wanted, opcode
    assert not writes_accumulator(instr(GEN, "add", Operand("arf", "uw", 0x10, horizontal=1), arf(0x10, "uw"), imm(2, "uw"))), "an address"
    assert not writes_accumulator(instr(7, "mul", dst(6, "f"), reg(4, "f"), reg(5, "f"))), "later, AccWrEn says so"
    assert writes_accumulator(instr(7, "mul", dst(6, "f"), reg(4, "f"), reg(5, "f"), acc_write=True))


@pytest.mark.parametrize("mask", [0xFF, 0x3C])
def test_a_product_without_a_destination_is_added_to(mask: int) -> None:
    """a x b + c x d, as setup kernels of Mesa compute determinants; a raw move in between leaves the accumulator alone."""
    made = thread(GEN, mask, r4=floats(*range(8)), r5=floats(*[10] * 8), r6=floats(*[100] * 8), r7=floats(*range(8)))
    run(made, instr(GEN, "mul", FLOAT_NULL, reg(4, "f"), reg(5, "f")), instr(GEN, "mov", dst(9, "f"), reg(5, "f")),
        instr(GEN, "mac", dst(8, "f"), reg(6, "f"), reg(7, "f", negate=True)))  # fmt: skip
    wanted = [10 * n - 100 * n if mask >> n & 1 else 0 for n in range(8)]
    assert made.register(8).view(np.float32).tolist() == wanted


def test_both_halves_have_their_own() -> None:
    """Two halves of 16 channels, interleaved as interpolation does it: line and mac of the first, then of the second."""
    plane = floats(2, 3, 0, 5, 2, 3, 0, 5)
    made = thread(GEN, 0xFFFF, r4=plane, r6=floats(*range(8)), r7=floats(*range(8, 16)), r8=floats(*[1] * 16))
    half = {"quarter": 1}
    run(made, instr(GEN, "line", FLOAT_NULL, scalar(4, "f"), reg(6, "f")),
        instr(GEN, "line", FLOAT_NULL, scalar(4, "f"), reg(7, "f"), **half),
        instr(GEN, "mac", dst(10, "f"), scalar(4, "f", sub=4), reg(8, "f")),
        instr(GEN, "mac", dst(11, "f"), scalar(4, "f", sub=4), reg(9, "f"), **half))  # fmt: skip
    found = [*made.register(10).view(np.float32), *made.register(11).view(np.float32)]
    assert found == [2 * n + 5 + 3 for n in range(16)]


def test_control_can_disable_it() -> None:
    made = thread(GEN, 0xFF, r4=floats(*[2] * 8), r5=floats(*[3] * 8))
    made.dwords("cr")[0] |= ACCUMULATOR_DISABLE
    run(made, instr(GEN, "mul", FLOAT_NULL, reg(4, "f"), reg(5, "f")), instr(GEN, "mac", dst(8, "f"), reg(4, "f"), reg(4, "f")))
    assert made.register(8).view(np.float32).tolist() == [4] * 8


def test_integer_products_are_added_to() -> None:
    made = thread(GEN, 0xFF, r4=np.full(8, 30000, np.int16), r5=np.full(8, 300, np.int16))
    words = reg(4, "w"), reg(5, "w")
    run(made, instr(GEN, "mul", Operand("arf", "d", 0, horizontal=1), *words), instr(GEN, "mac", dst(8, "d"), *words))
    assert made.register(8).view(np.int32).tolist() == [2 * 30000 * 300] * 8


def test_integers_of_the_second_quarter_use_the_first_accumulator() -> None:
    """Dwords have only one (IVB 1966-1973)."""
    made = thread(9, 0xFF00, r4=np.full(8, 300, np.int16), r5=np.arange(8, dtype=np.int16))
    run(made, instr(9, "mul", dst(8, "d"), reg(4, "w"), reg(5, "w"), quarter=1, acc_write=True),
        instr(9, "mov", dst(10, "d"), arf(0x20, "d"), quarter=1))  # fmt: skip
    assert made.register(10).view(np.int32).tolist() == [300 * n for n in range(8)]

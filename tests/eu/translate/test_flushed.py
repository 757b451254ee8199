"""Flushes of floats that are flushed already: which are left out, and that registers are the same without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.flushed import FlushedRegisters
from softgen.eu.translate.kernel import translate
from softgen.eu.translate.key import Key
from tests.eu.semantics.build import L, Listing, arf, branch, dst, end, imm, instr, reg, scalar, thread

GEN = 9
EXPONENT = str(0x7F800000)  # what a test for denormals looks at
PRESERVES = 1 << 7  # of cr0.0: denormals of 32 bits
FEW = 40  # random programs
FIRST, LAST = 4, 16  # registers that they compute with


def mul(to: int, a: Any, b: Any, **more: Any) -> Instruction:
    sources = (reg(source, "f") if isinstance(source, int) else source for source in (a, b))
    return instr(GEN, "mul", dst(to, "f"), *sources, **more)


def mov(to: int, source: Any, kind: str = "d", **more: Any) -> Instruction:
    return instr(GEN, "mov", dst(to, kind), source if not isinstance(source, int) else reg(source, kind), **more)


def flushes(*items: Instruction | str, full: bool = True, control: int = 0) -> int:
    return translate(Listing(GEN, *items, end(GEN)), Key(control, 8, full, messages=False)).ir.count(EXPONENT)


BOTH, RESULT = 3, 1  # flushes of a product: of two sources and the result; of the result alone


@pytest.mark.parametrize(("between", "count"), [
    ([], RESULT),                                                                  # the product is flushed
    ([mov(20, 6)], BOTH),                                                           # raw bits take its place
    ([mov(20, imm(1), size=1, no_mask=True)], BOTH),                                # in one lane
    ([mov(19, 6)], RESULT),                                                        # of another register
    ([mov(21, 20), mov(20, 21)], BOTH),                                             # integers are not looked at
    ([mov(21, 20, "f"), mov(20, 6), mov(20, 21, "f")], RESULT),                    # a raw move of floats brings the fact along
    ([instr(GEN, "mov", dst(20, "w", 2), reg(6, "w", "16;8,2"))], BOTH),            # halves of dwords
    ([instr(GEN, "mov", dst(20, "f"), reg(20, "f", negate=True))], RESULT),    # a move with a modifier flushes its result
    (["on"], BOTH),                                                                 # after a branch nothing is known
])  # fmt: skip
def test_which_sources_are_flushed(between: list[Instruction | str], count: int) -> None:
    """r20 = r4 r5, something, then r22 = r20 r20: how many flushes more there are than of what is between."""
    jump = [branch(GEN, "jmpi", "on")] if "on" in between else []
    before = flushes(mul(20, 4, 5), *jump, *between)
    assert flushes(mul(20, 4, 5)) == BOTH
    assert flushes(mul(20, 4, 5), *jump, *between, mul(22, 20, 20)) - before == count


def test_negated_and_absolute_values_are_flushed_too() -> None:
    inst = mul(22, reg(20, "f", negate=True), reg(20, "f", absolute=True))
    assert flushes(mul(20, 4, 5), inst) == BOTH + RESULT


def test_masked_writes_hold_for_their_own_channels() -> None:
    """Under a mask, the same lanes need no flush; a scalar of all, or lanes of other channels, do."""
    same, turned = mul(22, 20, 20), mul(22, reg(20, "f", "4;4,1", sub=4), 4)
    assert flushes(mul(20, 4, 5), same, full=False) == BOTH + RESULT
    for other in (mul(22, scalar(20, "f", 4), 20), turned, mul(22, 20, 20, no_mask=True)):
        assert flushes(mul(20, 4, 5), other, full=False) > BOTH + RESULT


def test_kept_denormals_are_no_fact() -> None:
    assert flushes(mul(20, 4, 5), mul(22, 20, 20), control=PRESERVES) == 0


# -- the same registers ------------------------------------------------------------------------------------------------


def operand(rng: np.random.Generator) -> Any:
    number, shape = int(rng.integers(FIRST, LAST)), rng.integers(0, 8)
    more = {"negate": bool(rng.integers(0, 4) == 0), "absolute": bool(rng.integers(0, 6) == 0)}
    if shape == 0:
        return reg(number, "f", "0;1,0", sub=int(rng.integers(0, 8)) * 4, **more)
    return reg(number, "f", "8;8,1", sub=4 * int(rng.integers(0, 8)) if shape == 1 else 0, **more)


def statement(rng: np.random.Generator) -> list[Instruction]:
    to, kind = int(rng.integers(FIRST, LAST)), rng.integers(0, 12)
    more: dict[str, Any] = {"no_mask": bool(rng.integers(0, 5) == 0), "predicate": int(rng.integers(0, 4) == 0)}
    if kind < 6:
        opcode = ("mul", "add", "mul")[kind % 3]
        return [instr(GEN, opcode, dst(to, "f"), operand(rng), operand(rng), saturate=bool(rng.integers(0, 6) == 0), **more)]
    if kind < 8:
        return [instr(GEN, "mov", dst(to, "f"), reg(int(rng.integers(FIRST, LAST)), "f"), **more)]
    if kind < 10:
        return [mov(to, int(rng.integers(FIRST, LAST)), **more)]
    if kind == 10:
        return [instr(GEN, "sel", dst(to, "f"), operand(rng), operand(rng), no_mask=more["no_mask"], predicate=1)]
    return [instr(GEN, "cmp", arf(0, "f"), operand(rng), operand(rng), condition=L, no_mask=more["no_mask"])]


def given(rng: np.random.Generator) -> dict[str, Any]:
    """Denormals, the smallest numbers, zeros of both signs and ones: products and sums of them are all of these."""
    some = np.array([1e-39, -1e-40, 1.2e-38, -2e-38, 0.0, -0.0, 1.0, -0.5, 2.0, 3e-39], np.float32)
    return {f"r{number}": rng.choice(some, 8) for number in range(FIRST, LAST)}


@pytest.mark.parametrize("seed", range(FEW))
def test_registers_are_those_of_the_interpreter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items: list[Instruction | str] = [item for _ in range(24) for item in statement(rng)]
    half = len(items) // 2
    compared = instr(GEN, "cmp", arf(0, "f"), reg(4, "f"), reg(5, "f"), condition=L)
    items = [*items[:half], compared, branch(GEN, "if", "end", "end", predicate=1), *items[half:], "end", branch(GEN, "endif", "on"), "on",
             *(item for _ in range(6) for item in statement(rng))]  # fmt: skip
    code, registers, mask = Listing(GEN, *items, end(GEN)), given(rng), (0xFF, 0x5B)[seed % 2]
    made, expected = (thread(GEN, mask, **registers) for _ in range(2))
    assert engine.run("t1", made, code, 999, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    Interpreter(expected, code).run()
    assert made.grf.tobytes() == expected.grf.tobytes()


def test_facts_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """With facts there are fewer flushes, without them more; registers are the same."""
    rng = np.random.default_rng(99)
    items = [item for _ in range(30) for item in statement(rng)]
    code, registers, found, counts = Listing(GEN, *items, end(GEN)), given(rng), [], []
    for enabled in (True, False):
        monkeypatch.setattr(FlushedRegisters, "enabled", enabled)
        made = thread(GEN, 0xFF, **registers)
        assert engine.run("t1", made, code, 999, Translator(observe=True, messages=False)) is RunOutcome.ENDED
        found.append(made.grf.tobytes())
        counts.append(flushes(*items))
    assert found[0] == found[1] and counts[0] < counts[1]

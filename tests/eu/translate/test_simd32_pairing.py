"""Two halves of a SIMD32 instruction as one computation: which instructions are halves, and that nobody sees a difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.eu import engine
from softgen.eu.interpreter import DecodedInstruction, Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.translate import simd32_pairing
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.kernel import Key, translate
from tests.eu.semantics.build import Listing, arf, dst, end, imm, instr, reg, thread

GEN = 9
EVERYBODY = 0xFFFFFFFF
SQRT, RSQ = 4, 5
FIRST = np.array([1, 2, 3, 4, 0.1, 1e30, 7, 1e-30, 0.25, 0.3, 11, 12, 13, 14, 15, 16], np.float32)
SPECIAL = np.array([0, -0.0, -1, np.inf, -np.inf, np.nan, 1e-40, 2.0**-149, 2, 3, 5, 6, 7, 8, 9, 10], np.float32)


def rsq(to: int, of: int, quarter: int = 0, **controls: Any) -> Instruction:
    return instr(GEN, "math", dst(to, "f"), reg(of, "f"), size=16, quarter=quarter, **{"function": RSQ} | controls)


def lines(*items: Instruction) -> list[DecodedInstruction]:
    return list(Listing(GEN, *items).lines.values())


def pairs(*items: Instruction) -> list[tuple[int, int | None]]:
    """The places of instructions that are joined."""
    numbers = {line.ip: number for number, line in enumerate(lines(*items))}
    return [(numbers[line.ip], other and numbers[other.ip]) for line, other in simd32_pairing.joined(lines(*items))]


@pytest.mark.parametrize("values", [(FIRST, FIRST[::-1]), (SPECIAL, FIRST), (FIRST, SPECIAL), (SPECIAL, SPECIAL)])
@pytest.mark.parametrize("mask", [EVERYBODY, 0x0F0F0FF0])
def test_both_halves_are_what_they_are_alone(values: tuple[np.ndarray, np.ndarray], mask: int) -> None:
    code = Listing(GEN, rsq(20, 10), rsq(22, 12, quarter=2), end(GEN))
    assert [other is not None for _, other in simd32_pairing.joined(list(code.lines.values()))] == [True, False]
    made, expected = (thread(GEN, mask, r10=values[0], r12=values[1]) for _ in range(2))
    assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    Interpreter(expected, code).run()
    assert made.grf[20 * 32 : 24 * 32].tobytes() == expected.grf[20 * 32 : 24 * 32].tobytes()
    assert made.executed == expected.executed == 3


def test_both_halves_have_one_test() -> None:
    one_by_one = [rsq(20, 10), instr(GEN, "mov", dst(30), imm(1)), rsq(22, 12, quarter=2)]
    joined = [rsq(20, 10), rsq(22, 12, quarter=2)]
    rare = [translate(Listing(GEN, *items, end(GEN)), Key(0, 32, True, messages=False)).ir.count("then") for items in (one_by_one, joined)]
    assert rare[1] < rare[0]


@pytest.mark.parametrize("source, independent", [(20, False), (21, False), (19, False), (18, True), (22, True)])
def test_who_reads_what_the_first_writes_is_no_half(source: int, independent: bool) -> None:
    """Of two registers each: r20 and r21 are written."""
    first, second = rsq(20, 10), rsq(24, source, quarter=2)
    assert simd32_pairing.are_halves(first, second) is independent
    made, expected = (thread(GEN, EVERYBODY, r10=FIRST, r18=FIRST, r19=FIRST, r21=FIRST) for _ in range(2))
    code = Listing(GEN, first, second, end(GEN))
    engine.run("t1", made, code, 9, Translator(observe=True, messages=False))
    Interpreter(expected, code).run()
    assert made.grf[24 * 32 : 26 * 32].tobytes() == expected.grf[24 * 32 : 26 * 32].tobytes()


def test_a_source_of_one_element_is_read_there_alone() -> None:
    near = replace(rsq(24, 0), sources=(reg(21, "f", "0;1,0", sub=28),))
    assert not simd32_pairing.are_halves(rsq(20, 10), near)
    assert simd32_pairing.are_halves(replace(rsq(20, 10), dst=dst(20, "f", sub=0)), replace(near, sources=(reg(22, "f", "0;1,0"),)))
    assert simd32_pairing.are_halves(rsq(20, 10), replace(near, sources=(reg(19, "f", "0;1,0", sub=28),)))


@pytest.mark.parametrize("changes", [
    {"opcode": "mov"}, {"exec_size": 8}, {"predicate": 1}, {"condition": 1}, {"acc_write": True}, {"breakpoint": True}, {"function": SQRT},
    {"function": 0}, {"dst": dst(22, "hf")}, {"dst": arf(0, "f")}, {"dst": None}, {"dst": replace(dst(22, "f"), indirect=True)},
    {"sources": (reg(12, "hf"),)}, {"sources": (imm(0, "f"),)}, {"sources": (replace(reg(12, "f"), indirect=True),)},
])
def test_who_does_anything_else_is_no_half(changes: dict[str, Any]) -> None:
    whole, changed = rsq(24, 14), replace(rsq(22, 12, quarter=2), **changes)
    assert simd32_pairing.are_halves(whole, rsq(22, 12, quarter=2))
    assert not simd32_pairing.are_halves(whole, changed) and not simd32_pairing.are_halves(changed, whole)
    assert not simd32_pairing.are_halves(changed, changed)


@pytest.mark.parametrize("outside", [rsq(127, 12, quarter=2), rsq(22, 127, quarter=2)], ids=["destination", "source"])
@pytest.mark.parametrize("order", [1, -1])
def test_registers_that_do_not_exist_stop_only_who_uses_them(outside: Instruction, order: int) -> None:
    """They are left to the interpreter, which reports them; the rest of the kernel is translated."""
    pair = [rsq(20, 10), outside][::order]
    assert not simd32_pairing.are_halves(*pair) and simd32_pairing.are_halves(rsq(20, 10), rsq(126, 124, quarter=2))
    code = Listing(GEN, *pair, end(GEN))
    ended = []
    for name in ("t0", "t1"):
        with pytest.raises(GpuFault) as caught:
            engine.run(name, thread(GEN, EVERYBODY, r10=FIRST, r12=FIRST), code, 9)
        ended.append(str(caught.value))
    assert ended[0] == ended[1] and "in grf" in ended[0]


def test_no_instruction_is_in_two_pairs() -> None:
    mov = instr(GEN, "mov", dst(30), imm(1))
    assert pairs(rsq(20, 10)) == [(0, None)]
    assert pairs(rsq(20, 10), rsq(22, 12)) == [(0, 1)]
    assert pairs(rsq(20, 10), rsq(22, 12), rsq(24, 14)) == [(0, 1), (2, None)]
    assert pairs(mov, rsq(20, 10), rsq(22, 12), rsq(24, 14), rsq(26, 16), mov) == [(0, None), (1, 2), (3, 4), (5, None)]
    assert pairs(rsq(20, 10), mov, rsq(22, 12)) == [(0, None), (1, None), (2, None)]


def test_both_sources_keep_their_modifiers() -> None:
    first, second = (reg(10, "f", absolute=True),), (reg(12, "f", negate=True),)
    code = Listing(GEN, replace(rsq(20, 0), sources=first), replace(rsq(22, 0, quarter=2), sources=second, saturate=True), end(GEN))
    made, expected = (thread(GEN, EVERYBODY, r10=-FIRST, r12=-FIRST) for _ in range(2))
    engine.run("t1", made, code, 9, Translator(observe=True, messages=False))
    Interpreter(expected, code).run()
    assert made.grf[20 * 32 : 24 * 32].tobytes() == expected.grf[20 * 32 : 24 * 32].tobytes()
    assert made.grf[22 * 32 : 22 * 32 + 4].view(np.float32)[0] == 1.0

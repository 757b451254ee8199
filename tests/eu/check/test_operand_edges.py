"""Where restrictions on types, modifiers, accumulators, flags and controls begin: instructions on both sides of each limit."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.eu.check import restrictions as check
from softgen.eu.isa.instruction import Instruction, Operand
from tests.eu.semantics.build import NULL, arf, branch, dst, imm, instr, reg, scalar

A0, ACC0, ACC1, F0, SR0, CR0, N0, FC0 = 0x10, 0x20, 0x21, 0x30, 0x70, 0x80, 0x90, 0xD0
INV, POW, INTDIV = 1, 10, 12
ONE = "0;1,0"
UNIT = arf(0, "f")
MESSAGE = Operand("mrf", "f", 2, vertical=8, width=8, horizontal=1)


def mov(target: Operand, source: Operand, size: int = 8, gen: float = 9, **more: Any) -> Instruction:
    return instr(gen, "mov", target, source, size=size, **more)


def two(opcode: str, first: Operand, second: Operand, target: Operand | None = None, gen: float = 9, **more: Any) -> Instruction:
    return instr(gen, opcode, dst(4, first.type) if target is None else target, first, second, **more)


def three(opcode: str, *sources: Operand, gen: float = 11, **more: Any) -> Instruction:
    return instr(gen, opcode, dst(4, sources[0].type), *sources, **more)


def math(function: int, first: Operand, second: Operand = UNIT, target: Operand | None = None, **more: Any) -> Instruction:
    return two("math", first, second, target, function=function, **more)


def cmp(target: Operand = NULL, opcode: str = "cmp", gen: float = 9, condition: int = 1, **more: Any) -> Instruction:
    return two(opcode, reg(2), reg(6), target, gen, condition=condition, **more)


def acc(kind: str = "f", number: int = ACC0, **more: Any) -> Operand:
    return arf(number, kind, **more)


D, F, Q, HF = reg(2, "d"), reg(2, "f"), reg(2, "q", "4;4,1"), reg(2, "hf")
UD, W, B = reg(2, "ud"), reg(2, "w"), reg(2, "b")

TYPES: list[tuple[str, list[Instruction], list[Instruction]]] = [
    ("legal_types", [two("and", F, F), two("and", D, F), two("and", F, D), two("and", D, D, dst(4, "f")), two("add", D, F, dst(4, "d")),
                     two("add", F, D, dst(4, "d")), two("add", F, imm(0, "vf"), dst(4, "d")), two("mul", Q, Q), two("mul", D, Q),
                     two("add", D, reg(2, "df"), dst(4, "df"), gen=8), two("and", D, F, NULL), three("mad", F, F, reg(2, "df"), gen=9),
                     mov(dst(4, "hf"), reg(2, "q", "4;4,1"))],
     [two("and", D, UD), two("and", W, D), two("and", Q, D), two("and", D, Q, dst(4, "q")), two("add", F, D), two("add", D, D, dst(4, "f")),
      two("add", F, imm(0, "vf"), gen=7), two("add", D, imm(0, "v")), two("add", UD, imm(0, "uv")), two("mul", D, D, dst(4, "q")),
      two("mul", D, W), two("and", D, arf(0, "f")), two("and", D, D, NULL), two("and", D, D, arf(0, "f")), mov(dst(4, "q"), D),
      two("and", F, F, dst(4, "f", special=1)), branch(9, "if", 16, 16), instr(9, "and", None, F, F)]),
    ("half_pitch", [mov(dst(4, "hf"), reg(2, kind)) for kind in ("w", "uw", "d", "ud")] +
     [mov(dst(4, "hf", 4), D, size=4), mov(dst(4, "hf", 2, 2), D), mov(dst(4, "hf", 2, 10), D, size=2), two("add", HF, imm(1, "d"))],
     [mov(dst(4, "hf", 2), D), mov(dst(4, "hf", 2, 4), D), mov(dst(4, "hf", 2, 12), D, size=2), mov(dst(4, "hf"), HF), mov(dst(4, "hf"), F),
      mov(dst(4, "hf"), D, size=1), mov(dst(4, "hf"), D, align16=True), mov(dst(4, "w"), D), mov(dst(4, "hf"), arf(0, "d")),
      three("mad", HF, HF, W)]),
    ("reserved_bits", [mov(dst(4), D, residue=1)], [mov(dst(4), D), mov(dst(4), reg(2, ""), residue=1),
                                                   instr(9, "send", dst(4), D, descriptor=0x02106E02, sfid=12, residue=1)]),
    ("last_immediate", [two("add", imm(1), D), two("add", imm(1), imm(1), dst(4))], [two("add", D, imm(1)), mov(dst(4), imm(1)),
                                                                                three("mad", imm(1, "hf"), HF, HF)]),
    ("no_quadwords", [mov(dst(4, "q"), D, gen=11), mov(dst(4), Q, gen=11), two("add", D, Q, dst(4), 11), mov(dst(4, "df"), F, gen=11)],
     [mov(dst(4), D, gen=11), instr(11, "mov", None, D)]),
    ("type_exists", [mov(dst(4, ""), D), mov(dst(4), reg(2, "")), two("add", D, reg(2, ""))],
     [mov(dst(4), D), branch(9, "call", 64, target=dst(4, "")), instr(9, "sends", dst(4, ""), reg(2, ""), reg(3, ""),
      descriptor=0, sfid=12)]),
    ("modifiers_taken", [instr(9, "bfrev", dst(4, "ud"), reg(2, "ud", negate=True)), instr(9, "bfrev", dst(4, "ud"),
     reg(2, "ud", absolute=True)),
                         two("addc", UD, reg(6, "ud", negate=True), acc_write=True)],
     [instr(9, "bfrev", dst(4, "ud"), UD), mov(dst(4), reg(2, "d", negate=True)), two("addc", UD, UD, acc_write=True)]),
    ("logic_absolute", [two(name, D, reg(2, "d", absolute=True)) for name in ("and", "or", "xor")] +
     [instr(8, "not", dst(4), reg(2, "d", absolute=True))],
     [two("and", D, reg(2, "d", negate=True)), two("add", D, reg(2, "d", absolute=True)), two("or", D, reg(2, "d", absolute=True), gen=7)]),
    ("select_one", [two("sel", F, F), two("sel", F, F, predicate=1, condition=4)],
     [two("sel", F, F, predicate=1), two("sel", F, F, condition=4), two("add", F, F)]),
    ("select_width", [two("sel", W, W, gen=7, predicate=1, size=32)],
     [two("sel", W, W, gen=7, predicate=1, size=16), two("sel", W, W, gen=8, predicate=1, size=32), two("add", W, W, gen=7, size=32)]),
    ("compare_condition", [cmp(condition=0), cmp(opcode="cmpn", condition=0)], [cmp(), cmp(opcode="cmpn", condition=5), two("add", D, D)]),
    ("compare_n_condition", [cmp(opcode="cmpn", gen=8, condition=code) for code in (1, 2, 3, 6, 8, 9)],
     [*(cmp(opcode="cmpn", gen=8, condition=code) for code in (0, 4, 5)), cmp(gen=8), cmp(opcode="cmpn", gen=9)]),
    ("multiply_order", [two("mul", W, D, dst(4)), two("mul", B, UD, dst(4)), two("mul", imm(3, "w"), D, dst(4))],
     [two("mul", D, W), two("mul", D, D), two("mul", W, W), two("mul", B, W), two("mul", W, F), two("add", W, D, dst(4))]),
    ("multiply_saturate", [two("mul", D, UD, saturate=True), two("mul", D, D, condition=1), two("mul", UD, imm(3, "ud"), saturate=True)],
     [two("mul", D, D), two("mul", D, W, saturate=True), two("mul", W, W, condition=1), two("mul", F, F, saturate=True),
      two("add", D, D, saturate=True)]),
    ("math_function", [math(0, F), math(8, F)], [math(INV, F), math(15, F), two("add", F, F, function=0)]),
    ("math_direct", [math(INV, reg(0, "f", indirect=True)), math(INV, F, target=dst(4, "f", indirect=True)),
                     math(POW, F, reg(0, "f", indirect=True))], [math(INV, F), mov(dst(4), reg(0, "d", indirect=True))]),
    ("math_destination", [math(INV, F, target=acc()), math(INV, F, target=arf(A0, "f"))],
     [math(INV, F), math(INV, F, target=arf(0, "f")), mov(acc(), F)]),
    ("divide_modifiers", [math(INTDIV, reg(2, "d", negate=True), D), math(INTDIV, D, reg(6, "d", absolute=True)),
     math(13, D, reg(6, negate=True))],
     [math(INTDIV, D, D), math(POW, reg(2, "f", negate=True), F)]),
    ("divide_width", [math(function, D, D, size=16) for function in (11, 12, 13)], [math(INTDIV, D, D), math(POW, F, F, size=16)]),
    ("math_second", [math(INV, F, F), math(INV, F, imm(0, "f"))], [math(INV, F), math(POW, F, F), math(INTDIV, D, D)]),
    ("math_stride", [math(INV, F, target=dst(4, "f", 2)), math(INV, reg(2, "f", "8;4,1")), math(INV, reg(2, "f", "1;1,0")),
                     math(POW, F, reg(6, "f", "16;8,2"))],
     [math(INV, scalar(2, "f"), target=dst(4, "f", 2)), math(INV, F), math(POW, reg(2, "f", "4;4,1"), F),
      math(INV, F, target=arf(0, "f", 0, "0;1,2")),
      math(INV, reg(2, "f", "4;1,0"), align16=True), math(POW, F, imm(0, "f")), math(INV, arf(ACC0, "f", 0, "8;4,1")),
      math(INV, F, arf(0, "f", 0, "16;8,2")), math(INV, reg(2, "f", "16;8,2"), target=dst(4, "f", 2))]),
    ("dot_width", [two(name, F, F, size=size, align16=True) for name in ("dp2", "dp3", "dp4", "dph") for size in (1, 2)],
     [two(name, F, F, size=size, align16=True) for name in ("dp2", "dp4") for size in (4, 8, 16)]),
    ("line_region", [two("line", reg(2, "f", "1;1,0"), F), two("line", reg(2, "f", "0;4,0"), F), two("pln", scalar(2, "f", 8), F)],
     [two("line", scalar(2, "f"), F), two("pln", scalar(2, "f", 16), F), two("line", F, F, align16=True)]),
    ("three_source_width", [three("mad", F, F, F, gen=7, size=16)], [three("mad", F, F, F, gen=7), three("mad", F, F, F, gen=8, size=16)]),
    ("three_source_immediate", [three("mad", imm(1, "hf"), HF, imm(1, "hf")), three("bfe", UD, UD, imm(1, "uw")),
     three("bfi2", imm(1, "uw"), UD, UD),
                                three("csel", HF, HF, imm(1, "hf"), condition=1)],
     [three("mad", imm(1, "hf"), HF, HF), three("mad", HF, HF, imm(1, "hf")), three("mad", F, F, F), three("bfe", UD, UD, UD),
      three("csel", F, F, F, condition=1)]),
    ("call_destination", [branch(9, "call", 64, target=dst(4, "ud", sub=sub)) for sub in (4, 12)] +
     [branch(9, "call", 64, target=dst(4, "uw"))],
     [branch(9, "call", 64, target=dst(4, "ud", sub=sub)) for sub in (0, 8, 16)] +
     [branch(9, "call", 64), branch(9, "call", 64, target=dst(4, "d")), branch(9, "call", 64, target=arf(0, "uw", 4))]),
]  # fmt: skip

ACCUMULATORS: list[tuple[str, list[Instruction], list[Instruction]]] = [
    ("accumulator_bytes", [mov(acc("b"), W), mov(dst(4), acc("ub"))], [mov(acc("w"), W), mov(dst(32, "b", 2), W), mov(dst(4),
     reg(32, "ub"))]),
    ("accumulator_offset", [mov(acc(sub=4), F, gen=7), mov(dst(4, "f"), acc(sub=4), gen=7.5), two("add", F, acc(sub=16), gen=7)],
     [mov(acc(), F, gen=7), mov(acc(sub=4), F, gen=8), mov(dst(32, "f", sub=4), F, gen=7)]),
    ("accumulator_second", [two("add", F, acc()), two("add", acc(), acc()), three("mad", F, F, acc(), gen=9)],
     [two("add", acc(), F), two("add", F, reg(32, "f")), two("add", F, acc(), gen=11), mov(dst(4, "f"), acc())]),
    ("accumulator_same", [two("add", acc(), F, acc(number=ACC1)), two("add", acc(number=ACC1), F, acc())],
     [two("add", acc(), F, acc()), two("add", acc(number=ACC1), F, acc(number=ACC1)), two("add", F, F, acc(number=ACC1)),
      two("add", acc(), F)]),
    ("accumulator_multiply", [two("mul", acc(), F, gen=7), two("mul", F, acc(), gen=4.5)],
     [two("mul", F, F, acc(), gen=7), two("mul", acc(), F, gen=8), two("add", acc(), F, gen=7)]),
    ("accumulator_compare", [cmp(acc("d")), cmp(acc("d"), "cmpn")], [cmp(dst(4)), cmp(), two("add", D, D, acc("d"))]),
    ("accumulator_carry", [two("addc", UD, UD), two("subb", UD, UD), two("addc", UD, UD, acc("ud"), acc_write=True)],
     [two("addc", UD, UD, acc_write=True), two("subb", UD, UD, acc_write=True), two("add", UD, UD)]),
    ("accumulator_none", [instr(9, name, dst(4, "ud"), UD, acc_write=True) for name in ("bfrev", "cbit", "fbh", "fbl")] +
     [instr(9, "cbit", dst(4, "ud"), acc("ud")), instr(9, "fbl", acc("ud"), UD), two("bfi1", UD, UD, acc_write=True),
      three("bfe", UD, UD, UD, gen=9, acc_write=True), three("bfi2", UD, UD, UD, gen=9, acc_write=True)],
     [instr(9, "cbit", dst(4, "ud"), UD), two("bfi1", UD, UD), instr(9, "lzd", dst(4, "ud"), UD, acc_write=True)]),
    ("accumulator_logic", [two("and", acc("d"), acc("d", negate=True)), two("and", acc("d", negate=True), D),
     two("or", acc("d", absolute=True), D), two("xor", acc("d", negate=True),
     D),
                           instr(9, "not", dst(4), acc("d", negate=True))],
     [two("and", acc("d"), D), two("and", D, D), two("and", acc("d"), reg(2, negate=True)), two("add", acc("d", negate=True), D),
      two("and", acc("d", negate=True), D, gen=7)]),
    ("accumulator_width", [two("add", acc("d"), D, gen=7, size=16), two("add", D, D, acc("ud"), 7.5, size=16), two("add", F, acc("d"),
     gen=7, size=16)],
     [two("add", acc("d"), D, gen=7), two("add", acc(), F, gen=7, size=16), two("add", acc("d"), D, gen=8, size=16),
      two("add", reg(32), D, gen=7, size=16), instr(7, "send", acc("d"), D, size=16, descriptor=0x02106E02, sfid=12)]),
    ("accumulator_dot", [two("dp4", acc(), F), two("dph", F, acc()), two("line", scalar(2, "f"), acc()), two("pln", scalar(2, "f"), acc())],
     [two("dp4", F, F, acc()), two("line", scalar(2, "f"), F, acc()), two("add", acc(), F)]),
]  # fmt: skip

CONTROLS: list[tuple[str, list[Instruction], list[Instruction]]] = [
    ("architecture_second", [two("add", UD, arf(SR0, "ud", 0, ONE)), two("or", UD, arf(F0, "ud", 0, ONE))],
     [two("add", arf(SR0, "ud", 0, ONE), UD, dst(4)), two("add", UD, NULL), two("add", UD, arf(ACC0, "ud")),
      two("add", UD, reg(SR0, "ud", ONE)),
      two("add", UD, arf(SR0, "ud", 0, ONE), gen=11), instr(9, "wait", arf(N0), arf(N0), arf(N0)), branch(9, "brc", 16, 16, UD, arf(SR0)),
      three("mad", F, arf(SR0, "f"), F, gen=9)]),
    ("message_source", [mov(dst(4, "f"), MESSAGE, gen=4.5), two("add", F, MESSAGE, gen=4.5), two("add", MESSAGE, F, gen=4.5)],
     [mov(dst(4, "f"), F, gen=4.5), mov(Operand("mrf", "f", 2, horizontal=1), F, gen=4.5),
      instr(4.5, "send", dst(4), MESSAGE, descriptor=0x02106E02, sfid=12)]),
    ("control_switch", [mov(arf(CR0), UD, gen=7, size=1), mov(dst(4, "ud"), arf(CR0), gen=7.5, size=1)],
     [mov(arf(CR0), UD, gen=7, size=1, thread_control=2), mov(dst(CR0 // 2), UD, gen=7), mov(dst(4), arf(SR0), gen=7, size=1)]),
    ("compare_null_switch", [cmp(gen=7), cmp(gen=7, thread_control=1), cmp(opcode="cmpn", gen=7)],
     [cmp(gen=7, thread_control=2), cmp(dst(4), gen=7), cmp(gen=7.5), two("add", D, D, NULL, 7)]),
    ("architecture_span", [mov(dst(4), arf(SR0, "ud", 0, "8;8,1"), size=16), mov(dst(4), arf(SR0, "ud", 4, "8;8,1")),
                           two("add", UD, arf(SR0, "ud", 4))],
     [mov(dst(4), arf(SR0, "ud", 0, "8;8,1")), mov(dst(4), arf(ACC0, "ud", 0, "8;8,1"), size=16), mov(dst(4), arf(FC0, "ud", 0, "8;8,1"),
      size=16),
      mov(dst(4), arf(0, "ud", 4, "8;8,1")), mov(dst(4), reg(2, "ud", sub=4)), mov(dst(4), arf(SR0, "ud", 0, "4;4,1"),
      size=16, align16=True),
      mov(dst(4), arf(SR0, "ud", 4, indirect=True)), mov(dst(4), arf(SR0, "ud", 4, "-1;8,1")), branch(9, "brc", 16, 16, arf(SR0, "ud", 4)),
      mov(dst(4), arf(SR0, "ud"), size=16, gen=4.5)]),
    ("address_range", [mov(arf(A0, "uw"), W, size=16, gen=7), mov(dst(4, "uw"), arf(A0, "uw", 2), gen=7), mov(arf(A0, "ud", 16, "0;1,1"),
     UD, size=8),
                       mov(arf(A0, "uw", 32, "0;1,1"), W, size=1), mov(dst(4, "uw"), arf(A0, "uw", 16, ONE), size=1, gen=7),
                       two("add", W, arf(A0, "uw", 2), gen=7), mov(arf(A0, "uw", 2, "0;1,1"), W, gen=7)],
     [mov(arf(A0, "uw", 0, "0;1,1"), W, gen=7), mov(arf(A0, "uw", 0, "0;1,1"), W, size=16), mov(dst(4, "uw"), arf(A0, "uw", 14, ONE),
      size=1, gen=7),
      mov(dst(16, "uw"), W, size=16, gen=7), mov(arf(A0, "uw", 2), W, gen=7, align16=True), branch(9, "call", 64, target=arf(A0, "ud", 28)),
      mov(arf(A0, "uw", 30, "0;1,1"), W, size=1)]),
    ("predicate_code", [mov(dst(4), D, predicate=code) for code in (14, 15)] + [mov(dst(4), D, predicate=8, align16=True)],
     [*(mov(dst(4), D, predicate=code) for code in (0, 1, 8, 13)), *(mov(dst(4), D, predicate=code, align16=True) for code in (1, 7)),
      three("mad", F, F, F, gen=9, predicate=13)]),
    ("condition_code", [mov(dst(4), D, condition=code) for code in (7, 10, 11, 15)],
     [*(mov(dst(4), D, condition=code) for code in (0, 1, 2, 3, 4, 5, 6, 8, 9)), math(INV, F, condition=7),
      instr(9, "send", dst(4), D, descriptor=0x02106E02, sfid=12, condition=12),
      instr(9, "sends", NULL, D, D, descriptor=0, sfid=12, condition=12)]),
    ("quarter_half", [mov(dst(4), D, size=16, quarter=quarter) for quarter in (1, 3)],
     [mov(dst(4), D, size=16, quarter=quarter) for quarter in (0, 2)] + [mov(dst(4), D, quarter=quarter) for quarter in range(4)]),
    ("quarter_all", [mov(dst(4, "w"), W, size=32, quarter=quarter) for quarter in (1, 2, 3)],
     [mov(dst(4, "w"), W, size=32), mov(dst(4), D, size=16, quarter=2)]),
    ("nibble_width", [mov(dst(4), D, size=size, nibble=1) for size in (8, 16)],
     [mov(dst(4), D, size=size, nibble=1) for size in (1, 2, 4)] + [mov(dst(4), D, size=16)]),
    ("compression_code", [mov(dst(4), D, gen=4.5, quarter=3)], [*(mov(dst(4), D, gen=4.5, quarter=code) for code in range(3)),
     mov(dst(4), D, quarter=3)]),
    ("jump_width", [branch(9, "jmpi", 32, size=size, no_mask=True) for size in (2, 8)], [branch(9, "jmpi", 32, size=1, no_mask=True)]),
    ("jump_mask", [branch(9, "jmpi", 32, size=1)], [branch(9, "jmpi", 32, size=1, no_mask=True), branch(7, "jmpi", 32, size=1)]),
    ("select_condition", [three("csel", F, F, F)], [three("csel", F, F, F, condition=1), three("mad", F, F, F)]),
    ("branch_switch", [branch(8, name, 16, 16, thread_control=2) for name in ("brc", "brd")],
     [branch(8, "brc", 16, 16, thread_control=code) for code in (0, 1)] + [branch(8, "if", 16, 16, thread_control=2)]),
    ("wait_notification", [instr(9, "wait", dst(4), NULL, size=1), instr(9, "wait", arf(SR0), NULL, size=1),
     instr(9, "wait", None, NULL, size=1)],
     [instr(9, "wait", arf(N0), NULL, size=1), mov(dst(4), D)]),
]  # fmt: skip


@pytest.mark.parametrize("name, breaking, keeping", [*TYPES, *ACCUMULATORS, *CONTROLS])
def test_operands_and_controls_on_both_sides_of_a_limit(name: str, breaking: list[Instruction], keeping: list[Instruction]) -> None:
    assert [name in [row.name for row in check.check(inst)] for inst in breaking] == [True] * len(breaking)
    assert [name in [row.name for row in check.check(inst)] for inst in keeping] == [False] * len(keeping)

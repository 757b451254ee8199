"""What instructions may not say: examples written from the manuals, with the legal neighbour of each.

The table of restrictions has examples of its own, which test_restrictions.py tries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pytest import mark

from softgen.eu.check import restrictions as check
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import arf, branch, dst, imm, instr, reg, scalar, thread

SECOND_FILE, SECOND_NUMBER = 42, 101  # bits of an instruction: the file and the number of source 1
A0, ACC0, ACC1, F0, SR0, CR0 = 0x10, 0x20, 0x21, 0x30, 0x70, 0x80


def broken(inst: Instruction) -> list[str]:
    return [restriction.name for restriction in check.check(inst)]



def rows(count: int, first: int) -> Operand:
    """A source of eight words in rows, with an address register for each row, from a0.first on."""
    return Operand("grf", "w", indirect=True, address_sub=first, vertical=VXH, width=8 // count, horizontal=1 if count < 8 else 0)


def vector(number: int, swizzle: int, file: str = "grf") -> Operand:
    return Operand(file, "f", number, vertical=4, swizzle=swizzle)


def switch(gen: float, target: Operand, source: Operand, switches: bool) -> Instruction:
    return instr(gen, "mov", target, source, size=1, thread_control=2 if switches else 0)


WORD = "0;1,0"


@pytest.mark.parametrize("name, wrong, right", [
    # a name of the table, what breaks it, and what differs from that only in being legal
    pytest.param("last_immediate", instr(9, "add", dst(4), imm(1), reg(2)), instr(9, "add", dst(4), reg(2), imm(1)),
                 marks=mark.behaviour("EU-03", shows="action")),  # IVB 48-49
    pytest.param("last_immediate", instr(7, "sel", dst(4), imm(1), reg(2), predicate=1),
                 instr(7, "sel", dst(4), reg(2), imm(1), predicate=1),
                 marks=mark.behaviour("EU-03", shows="action")),
    pytest.param("architecture_second", instr(9, "add", dst(4, "uw"), scalar(2, "uw"), arf(A0, "uw", 0, WORD), size=1),
                 instr(9, "add", dst(4, "uw"), arf(A0, "uw", 0, WORD), scalar(2, "uw"), size=1),
                 marks=mark.behaviour("EU-06", shows="action")),  # IVB 60-61
    pytest.param("architecture_second", instr(7, "or", dst(4, "ud"), scalar(2, "ud"), arf(F0, "ud", 0, WORD), size=1),
                 instr(7, "or", arf(F0, "ud"), arf(F0, "ud", 0, WORD), scalar(2, "ud"), size=1),
                 marks=mark.behaviour("EU-06", shows="action")),
    pytest.param("natural", instr(9, "mov", dst(4, "d", sub=2), scalar(2), size=1), instr(9, "mov", dst(4, "d", sub=4), scalar(2), size=1),
                 marks=mark.behaviour("EU-41", shows="action")),  # IVB 551-555
    pytest.param("natural", instr(9, "mov", dst(4, "w"), scalar(2, "w", 3), size=1),
                 instr(9, "mov", dst(4, "w"), scalar(2, "w", 6), size=1),
                 marks=mark.behaviour("EU-41", shows="action")),
    pytest.param("natural", instr(8, "mov", dst(4, "q"), scalar(2, "q", 4), size=1),
                 instr(8, "mov", dst(4, "q"), scalar(2, "q", 8), size=1),
                 marks=mark.behaviour("EU-41", shows="action")),
    pytest.param("packed_bytes", instr(9, "add", dst(4, "ub"), reg(2, "ub"), reg(3, "ub")), instr(9, "mov", dst(4, "ub"), reg(2, "ub")),
                 marks=mark.behaviour("EU-42", shows="action")),  # IVB 644-645
    pytest.param("packed_bytes", instr(9, "mov", dst(4, "b"), reg(2, "b", negate=True)),
                 instr(9, "mov", dst(4, "b", 2), reg(2, "b", negate=True)),
                 marks=mark.behaviour("EU-42", shows="action")),
    pytest.param("select_width", instr(7, "sel", dst(4, "ub"), reg(2, "ub", "16;16,1"), reg(6, "ub", "16;16,1"), size=32, predicate=1),
                 instr(7, "sel", dst(4, "uw"), reg(2, "uw", "16;16,1"), reg(6, "uw", "16;16,1"), size=16, predicate=1),
                 marks=mark.behaviour("EU-116", shows="action")),  # IVB 464
    pytest.param("accumulator_width", instr(7, "add", dst(4), arf(ACC0, "d"), reg(2), size=16),
                 instr(7, "add", dst(4), arf(ACC0, "d"), reg(2)),
                 marks=mark.behaviour("EU-117", shows="action")),  # IVB 466-467
    pytest.param("accumulator_width", instr(7, "add", arf(ACC0, "ud"), reg(2, "ud"), reg(6, "ud"), size=16),
                 instr(7, "add", arf(ACC0, "ud"), reg(2, "ud"), reg(6, "ud")), marks=mark.behaviour("EU-117", shows="action")),
    pytest.param("per_channel_width", instr(7, "mov", dst(4, "w"), rows(8, 0), size=16), instr(7, "mov", dst(4, "w"), rows(8, 0)),
                 marks=mark.behaviour("EU-130", "EU-152", shows="action")),  # IVB 1579-1582, 1906-1909
    pytest.param("per_channel_width", instr(7.5, "mov", dst(4, "uw"), rows(8, 0), size=16), instr(7.5, "mov", dst(4, "uw"), rows(8, 0)),
                 marks=mark.behaviour("EU-130", "EU-152", shows="action")),
    pytest.param("architecture_span", instr(9, "mov", dst(4, "ud"), arf(SR0, "ud", 16, "8;8,1")),
                 instr(9, "mov", dst(4, "ud"), arf(SR0, "ud", 0, "4;4,1"), size=4),
                 marks=mark.behaviour("EU-137", shows="action")),  # IVB 1706
    pytest.param("vxh_group", instr(9, "mov", dst(4, "w"), rows(2, 3)), instr(9, "mov", dst(4, "w"), rows(2, 2)),
                 marks=mark.behaviour("EU-150", shows="action")),  # IVB 1893-1904
    pytest.param("vxh_group", instr(7, "mov", dst(4, "w"), rows(4, 2)), instr(7, "mov", dst(4, "w"), rows(4, 4)),
                 marks=mark.behaviour("EU-150", shows="action")),
    pytest.param("accumulator_offset", instr(7, "mov", arf(ACC1, "f", 16), scalar(2, "f"), size=1),
                 instr(7, "mov", arf(ACC1, "f"), scalar(2, "f"), size=1), marks=mark.behaviour("EU-155", shows="action")),  # IVB 1951-1959
    pytest.param("accumulator_same", instr(7, "add", arf(ACC0, "f"), arf(ACC1, "f"), reg(2, "f")),
                 instr(7, "add", arf(ACC1, "f"), arf(ACC1, "f"), reg(2, "f")), marks=mark.behaviour("EU-161", shows="action")),  # IVB 1992
    pytest.param("accumulator_second", instr(7, "add", dst(4), reg(2), arf(ACC0, "d")), instr(7, "add", dst(4), arf(ACC0, "d"), reg(2)),
                 marks=mark.behaviour("EU-163", shows="action")),  # IVB 2000
    pytest.param("accumulator_carry", instr(8, "addc", dst(4, "ud"), reg(2, "ud"), reg(6, "ud")),
                 instr(8, "addc", dst(4, "ud"), reg(2, "ud"), reg(6, "ud"), acc_write=True),
                 marks=mark.behaviour("BDW-EU-02", shows="action")),  # BDW 16899
    pytest.param("control_switch", switch(7, dst(4, "ud"), arf(CR0, "ud", 4, WORD), False),
                 switch(7, dst(4, "ud"), arf(CR0, "ud", 4, WORD), True),
                 marks=mark.behaviour("EU-208", shows="action")),  # IVB 2523-2528
    pytest.param("control_switch", switch(7.5, arf(CR0, "ud", 8), scalar(4, "ud"), False),
                 switch(7.5, arf(CR0, "ud", 8), scalar(4, "ud"), True),
                 marks=mark.behaviour("EU-208", shows="action")),
    pytest.param("source_span", instr(9, "mov", dst(4, "d"), reg(2, "d", "16;2,1")), instr(9, "mov", dst(4, "d"), reg(2, "d", "4;2,1")),
                 marks=mark.behaviour("EU-134", shows="action")),  # IVB 1641-1642
    pytest.param("destination_span", instr(9, "mov", dst(4, "d", 4), reg(2, "d")), instr(9, "mov", dst(4, "d", 2), reg(2, "d")),
                 marks=mark.behaviour("EU-134", shows="action")),
    pytest.param("math_direct", instr(8, "math", dst(4, "f"), reg(0, "f", indirect=True), arf(0, "f"), function=4),
                 instr(8, "math", dst(4, "f"), reg(2, "f"), arf(0, "f"), function=4),
                 marks=mark.behaviour("BDW-EU-17", shows="action")),  # BDW 20824
    pytest.param("destination_ratio", instr(9, "add", dst(4, "w", 4), reg(2, "d"), reg(6, "d")),
                 instr(9, "add", dst(4, "w", 2), reg(2, "d"), reg(6, "d"))),
    pytest.param("destination_ratio", instr(9, "add", dst(4, "b", 2), reg(2, "d"), reg(6, "d")),
                 instr(9, "add", dst(4, "b", 4), reg(2, "w"), reg(6, "w"))),
    pytest.param("destination_offset", instr(9, "add", dst(4, "w", 2, 2), reg(2, "d", "4;4,1"), reg(6, "d", "4;4,1"), size=4),
                 instr(9, "add", dst(4, "w", 2, 4), reg(2, "d", "4;4,1"), reg(6, "d", "4;4,1"), size=4)),
    *(pytest.param("destination_offset", instr(9, "add", dst(4, "b", 4, wrong), reg(2, "d"), reg(6, "d")),
                   instr(9, "add", dst(4, "b", 4, right), reg(2, "d"), reg(6, "d"))) for wrong, right in ((2, 0), (3, 1))),
    *(pytest.param("vector_immediate", instr(9, "mov", dst(4, "uw", sub=8), imm(0x76543210, "uv")), right) for right in (
        instr(9, "mov", dst(4, "uw", sub=16), imm(0x76543210, "uv")), instr(9, "mov", dst(4, "uw", sub=8), imm(0x76543210, "uv"), size=1))),
    *(pytest.param("vector_stride", instr(7, "mov", dst(4, wrong), imm(0x76543210, kind)),
                   instr(7, "mov", dst(4, right), imm(0x76543210, kind)),
                   marks=mark.behaviour("EU-53", shows="action"))  # IVB 2912-2914
      for kind, wrong, right in (("v", "d", "w"), ("uv", "ud", "uw"), ("vf", "df", "f"))),
    *(pytest.param("vector_immediate", instr(7, "mov", dst(4, target, sub=8), imm(0x76543210, kind)),
                   instr(7, "mov", dst(4, target, sub=16), imm(0x76543210, kind), size=16 // size),
                   marks=mark.behaviour("EU-53", shows="action"))
      for kind, target, size in (("v", "w", 2), ("uv", "uw", 2), ("vf", "f", 4))),
    pytest.param("accumulator_swizzle", instr(7, "add", dst(4, "f"), vector(ACC0, 0b00011011, "arf"), vector(2, 0b11100100), align16=True),
                 instr(7, "add", dst(4, "f"), vector(ACC0, 0b11100100, "arf"), vector(2, 0b00011011), align16=True),
                 marks=mark.behaviour("EU-164", shows="action")),  # IVB 2002-2003
    pytest.param("accumulator_region", instr(7, "add", dst(4, "d", 2), arf(ACC0, "d", 0, "4;4,1"), reg(2, "d", "8;4,2"), size=4),
                 instr(7, "add", dst(4, "d", 2), arf(ACC0, "d", 0, "8;4,2"), reg(2, "d", "4;4,1"), size=4),
                 marks=mark.behaviour("EU-166", shows="action")),  # IVB 2008-2010
    pytest.param("accumulator_region", instr(7, "mov", dst(4, "f"), arf(ACC0, "f", 0, WORD)), instr(7, "mov", dst(4, "f"), arf(ACC0, "f")),
                 marks=mark.behaviour("EU-166", shows="action")),
    pytest.param("destination_span", instr(7, "mov", dst(4, "d"), reg(2, "d", "0;1,0"), size=32),
                 instr(7, "mov", dst(4, "w"), reg(2, "w", "0;1,0"), size=32), marks=mark.behaviour("EU-19", shows="action")),  # IVB 425
    pytest.param("predicate_code", instr(8, "add", dst(4), reg(2), imm(1), predicate=8, align16=True),
                 instr(8, "add", dst(4), reg(2), imm(1), predicate=8)),
    pytest.param("divide_width", instr(8, "math", dst(4), reg(2), reg(6), function=12, size=16),
                 instr(8, "math", dst(4), reg(2), reg(6), function=12),
                 marks=mark.behaviour("BDW-EU-17", shows="action")),  # BDW 20828
])  # fmt: skip
def test_what_breaks_a_restriction_and_what_does_not(name: str, wrong: Instruction, right: Instruction) -> None:
    assert name in broken(wrong)
    assert broken(right) == []


# Predication, condition modifier, saturation, source modifier, as the Broadwell volume prints them (BDW 16839 to 22509).
TAKES = {
    "add": "YYYY", "addc": "YYNN", "asr": "YYYY", "avg": "YYYY", "bfe": "YNNN", "bfi1": "YNNN", "bfi2": "YNNN", "bfrev": "YNNN",
    "break": "YNNN", "brd": "YNNN", "call": "YNNN", "cbit": "YNNN", "cmp": "YYNY", "cmpn": "YYNY", "cont": "YNNN", "csel": "NYYY",
    "dp2": "YYYY", "dp3": "YYYY", "dp4": "YYYY", "dph": "YYYY", "else": "NNNN", "endif": "NNNN", "fbl": "YNNN", "fbh": "YNNN",
    "frc": "YYNY", "halt": "YNNN", "if": "YNNN", "join": "YNNN", "jmpi": "YNNN", "lzd": "YYYY", "line": "YYYY", "lrp": "YNYY",
    "and": "YYNY", "not": "YNNY", "or": "YNNY", "xor": "YYNY", "subb": "YNYN",
}  # fmt: skip
DISPUTED = {"lrp", "not", "or", "subb"}  # public sources give them a condition, which this volume denies: see spec/eu/opcodes.table
FIELDS: dict[str, dict[str, Any]] = {
    "predicate_taken": {"predicate": 1}, "condition_taken": {"condition": 1}, "saturate_taken": {"saturate": True}, "modifiers_taken": {},
}  # fmt: skip


@pytest.mark.behaviour("BDW-EU-30", shows="action")
@pytest.mark.parametrize("opcode", TAKES)
def test_what_an_instruction_takes(opcode: str) -> None:
    row = opcodes.opcode(opcode, 8)
    assert row is not None
    for (rule, controls), taken in zip(FIELDS.items(), TAKES[opcode], strict=True):
        if rule == "modifiers_taken" and row.form == "branch" or rule == "condition_taken" and opcode in DISPUTED:
            continue  # what a branch has are immediates
        sources = (reg(2, "d", negate=rule == "modifiers_taken"), *(reg(6 + 2 * n, "d") for n in range(row.sources - 1)))
        inst = branch(8, opcode, 16, 16, **controls) if row.form == "branch" else instr(8, opcode, dst(4), *sources, **controls)
        assert (rule in broken(inst)) == (taken == "N"), rule


@pytest.mark.parametrize("opcode", ["line", "pln"])
@pytest.mark.parametrize("source, align16, kept", [
    (scalar(2, "f"), False, True), (scalar(2, "f", 16), False, True), (scalar(2, "f", 4), False, False), (reg(2, "f"), False, False),
    (reg(2, "f"), True, True), (scalar(2, "f", 4), True, True),
])  # fmt: skip
def test_the_first_source_of_line_and_pln_is_four_dwords(opcode: str, source: Operand, align16: bool, kept: bool) -> None:
    """In align1 a scalar at the beginning or in the middle of a register; in align16 any source has four."""
    assert ("line_region" in broken(instr(8, opcode, dst(4, "f"), source, reg(6, "f"), align16=align16))) is not kept


@pytest.mark.parametrize("sources", [(reg(2, "w"), reg(6, "hf")), (reg(6, "hf"), reg(2, "uw")), (reg(2, "d"), reg(6, "ud")),
                                     (reg(2, "w"), imm(1, "w"))])  # fmt: skip
def test_one_integer_is_enough_to_keep_half_floats_a_doubleword_apart(sources: tuple[Operand, Operand]) -> None:
    def apart(target: Operand, *given: Operand, **controls: Any) -> bool:
        return "half_pitch" not in broken(instr(9, "add", target, *given, **controls))

    assert not apart(dst(4, "hf"), *sources) and not apart(dst(4, "hf", 2, 2), *sources)
    assert apart(dst(4, "hf", 2), *sources) and apart(dst(4, "hf", 2, 4), *sources)
    assert apart(dst(4, "hf"), *sources, size=1) and apart(dst(4, "hf"), reg(2, "hf"), reg(6, "hf"))


@pytest.mark.parametrize("opcode", ["line", "pln"])
def test_line_and_pln_have_8_or_16_channels(opcode: str) -> None:
    made = {size: instr(8, opcode, dst(4, "f"), scalar(2, "f"), reg(6, "f"), size=size) for size in (1, 2, 4, 8, 16, 32)}
    assert [size for size, inst in made.items() if "line_width" not in broken(inst)] == [8, 16]


@pytest.mark.parametrize("gen, target, source, name", [
    (7, dst(4, "ud"), arf(CR0, "ud", 4, WORD), "control_switch"), (7.5, arf(CR0, "ud", 8), scalar(4, "ud"), "control_switch"),
    (9, arf(CR0, "ud", 8), scalar(4, "ud"), "control_switch_written"), (9, dst(4, "ud"), arf(CR0, "ud", 4, WORD), ""),
])  # fmt: skip
def test_atomic_is_no_switch(gen: float, target: Operand, source: Operand, name: str) -> None:
    """Thread Control has a bit for either; only writes of cr0 switch since Gen8."""
    made = [instr(gen, "mov", target, source, size=1, thread_control=control) for control in range(4)]
    assert [broken(inst) for inst in made] == [[name] if name else []] * 2 + [[]] * 2


@pytest.mark.behaviour("EU-141", shows="action")
@pytest.mark.parametrize("opcode", ["mov", "not", "lzd", "frc", "bfrev", "cbit", "fbh"])
def test_the_second_source_of_an_instruction_with_one_is_null(opcode: str) -> None:
    """IVB 1736-1737: its file and number are those of the null register; any other is seen."""
    made = instr(7, opcode, dst(4, "f" if opcode == "frc" else "ud"), reg(2, "f" if opcode == "frc" else "ud"))
    word = encode(made)
    assert word >> SECOND_FILE & 3 == 0 and word >> SECOND_NUMBER & 0xFF == 0 and broken(decode(word, 7.0)) == []
    for bits in (1 << SECOND_FILE, 3 << SECOND_NUMBER):  # a general register; another architecture register
        assert "reserved_bits" in broken(decode(word | bits, 7.0))


@pytest.mark.behaviour("EU-235", shows="action")
@pytest.mark.parametrize("opcode, bit", [("mov", 7), ("add", 7), ("mov", 95), ("nop", 70), ("mad", 35)])
def test_reserved_bits_are_written_as_zeros_and_kept_where_they_are_not(opcode: str, bit: int) -> None:
    """IVB 496-510: the assembler writes zeros; what it reads with such bits has the same meaning, is written again as it was, and seen."""
    three = [Operand("grf", "f", number, swizzle=0xE4) for number in (6, 8, 10)]
    made = {"mov": instr(7, "mov", dst(4), reg(2)), "add": instr(7, "add", dst(4), reg(2), reg(6)), "nop": instr(7, "nop", size=1),
            "mad": instr(7, "mad", Operand("grf", "f", 4, write_mask=15), *three)}[opcode]
    word = encode(made)
    read = decode(word | 1 << bit, 7.0)
    assert not word >> bit & 1 and encode(read) == word | 1 << bit and read.residue == 1 << bit
    assert replace(read, residue=0) == decode(word, 7.0) and (opcode == "nop" or "reserved_bits" in broken(read))


@pytest.mark.behaviour("EU-235", shows="action")
def test_reserved_bits_of_registers_are_saved_and_restored() -> None:
    """IVB 508: bits of cr0 and sr0 that mean nothing come back from the memory in which compiled code has a thread, and mean nothing."""
    made = thread(7)
    made.dwords("cr")[:] = 0x7000_0F00, 0x0700_0000, 0x7
    made.dwords("sr")[0] = 0x0070_00F8
    made.save()
    other = ThreadState(7, block=made.block)
    assert other.dwords("cr").tolist() == [0x7000_0F00, 0x0700_0000, 7] and other.dwords("sr")[0] == 0x0070_00F8
    assert (other.mode, other.single_program_flow, other.dispatch_mask) == (thread(7).mode, False, 0xFF)

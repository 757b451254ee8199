"""Any 128 bits decode, and encode to themselves; real code leaves nothing over; manuals agree with what is read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.layout import GENERATIONS
from softgen.eu.encoding.compact import expand
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from tests.conftest import SHARED, needs_shared

ASM = SHARED / "oracles" / "asm"
KERNELS = SHARED / "kernels"
EXPECTED = {4.5: ("elk/tests/gen4.5", 510), 7.0: ("elk/tests/gen7", 1368), 7.5: ("elk/tests/gen7.5", 1654), 8.0: ("elk/tests/gen8", 2850),
            9.0: ("brw/tests/gen9", 2678), 11.0: ("brw/tests/gen11", 9)}  # fmt: skip
GPUS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
WORDS = st.integers(0, (1 << 128) - 1)


def bits(*fields: tuple[int, int]) -> int:
    """A word from (lowest bit, value): positions as the manuals print them."""
    return sum(value << low for low, value in fields)


# -- any bits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
@given(word=WORDS)
def test_any_bits_decode_and_come_back(gen: float, word: int) -> None:
    inst = decode(word, gen)
    assert encode(inst) == word
    assert inst.exec_size in (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize("gen", GENERATIONS)
@given(word=WORDS, number=st.integers(0, 127))
def test_any_bits_of_any_opcode_come_back(gen: float, word: int, number: int) -> None:
    word = word >> 7 << 7 | number
    inst = decode(word, gen)
    assert encode(inst) == word
    assert inst.opcode_number == number
    row = opcodes.numbered(number, gen)
    assert (inst.opcode, inst.form) == ((row.name, row.form) if row else ("", "none"))


def test_an_unused_opcode_is_no_instruction() -> None:
    inst = decode(bits((0, 11), (21, 3)), 9.0)
    assert inst == Instruction(9.0, "", 11, "none", residue=3 << 21)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_compaction_bit_of_a_native_word_is_left_over(gen: float) -> None:
    inst = decode(bits((0, 1), (29, 1)), gen)
    assert (inst.compacted, inst.residue) == (False, 1 << 29)


# -- the manuals --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-EU-01", shows="layout")
def test_header_of_a_two_source_instruction() -> None:
    """KBL 7486-7738: positions of the control bits are those of EU_INSTRUCTION_CONTROLS_A moved up by 8, CONTROLS_B by 28."""
    a = bits((13, 4), (12, 1), (8, 9), (6, 2), (4, 2), (3, 1), (2, 1))
    word = bits((0, 0x40), (8, a), (24, 5), (28, 1), (30, 1), (31, 1), (32, 1), (33, 1), (34, 1))
    inst = decode(word, 9.0)
    assert (inst.opcode, inst.exec_size, inst.predicate_invert, inst.predicate, inst.thread_control) == ("add", 16, True, 9, 2)
    assert (inst.quarter, inst.nibble, inst.no_dd_check, inst.no_dd_clear, inst.align16) == (2, 1, True, False, False)
    assert (inst.condition, inst.acc_write, inst.breakpoint, inst.saturate) == (5, True, True, True)
    assert (inst.flag, inst.flag_sub, inst.no_mask) == (1, 1, True)
    assert inst.residue == 0


@pytest.mark.behaviour("KBL-EU-03", shows="layout")
def test_align1_region_and_register() -> None:
    """KBL 8042-8080: sub-registers are bytes, strides and width are codes."""
    word = bits((0, 0x40), (41, 1), (43, 7), (64, 12), (69, 100), (80, 2), (82, 3), (85, 5), (77, 1), (78, 1),
                (48, 4), (53, 7), (61, 1), (35, 1))  # fmt: skip
    a = decode(word, 9.0).sources[0]
    assert a == Operand("grf", "f", 100, 12, vertical=16, width=8, horizontal=2, negate=True, absolute=True)
    assert decode(word, 9.0).dst == Operand("grf", "ud", 7, 4, horizontal=1)


@pytest.mark.behaviour("KBL-EU-03", shows="layout")
def test_align16_swizzle_and_channels() -> None:
    """KBL 8091-8132, 7957-7999: channel selects in two halves, 16-byte sub-registers."""
    word = bits((0, 0x40), (8, 1), (41, 1), (64, 0b0100), (80, 0b1110), (68, 1), (85, 3), (51 - 3, 0b0101), (52, 1), (61, 1))
    inst = decode(word, 9.0)
    assert inst.sources[0] == Operand("grf", "ud", 0, 16, vertical=4, swizzle=0b11100100)
    assert inst.dst == Operand("arf", "ud", 0, 16, horizontal=1, write_mask=0b0101)


@pytest.mark.behaviour("KBL-EU-04", shows="layout")
def test_indirect_operands() -> None:
    """KBL 7907-7947, 8042-8080: address sub-register 0 to 15 and a signed offset of 10 bits whose sign stands apart."""
    word = bits((0, 1), (63, 1), (57, 13), (48, 0x1FC), (47, 1), (79, 1), (73, 15), (64, 0x1FF), (85, 15), (82, 0))
    inst = decode(word, 9.0)
    assert inst.dst is not None
    assert (inst.dst.indirect, inst.dst.address_sub, inst.dst.offset) == (True, 13, -4)
    assert (inst.sources[0].indirect, inst.sources[0].address_sub, inst.sources[0].offset) == (True, 15, 511)
    assert (inst.sources[0].vertical, inst.sources[0].width) == (VXH, 1)
    assert inst.residue == 0


@pytest.mark.behaviour("KBL-EU-06", shows="layout")
def test_immediates() -> None:
    """KBL 8335-8497: one of 32 bits in the last dword, for either source; 64 bits for one source take both dwords."""
    assert decode(bits((0, 1), (41, 3), (43, 7), (96, 0x3F800000)), 9.0).sources == (Operand("imm", "f", immediate=0x3F800000),)
    assert decode(bits((0, 1), (41, 3), (43, 10), (64, 0x3FF0 << 48)), 9.0).sources == (Operand("imm", "df", immediate=0x3FF0 << 48),)
    two = decode(bits((0, 0x40), (89, 3), (91, 6), (96, 0x12345678)), 9.0)
    assert two.sources[1] == Operand("imm", "v", immediate=0x12345678)


@pytest.mark.behaviour("KBL-EU-08", shows="layout")
def test_three_sources() -> None:
    """KBL 6801-6917, 8142-8162, not the layout of the Broadwell volume."""
    word = bits((0, 0x5B), (8, 1), (21, 3), (32, 1), (34, 1), (35, 1), (38, 1), (39, 1), (43, 0), (46, 4), (49, 0b1010), (53, 2), (56, 9),
                (64, 1), (65, 0xE4), (73, 3), (76, 11), (84, 1), (86, 0x1B), (94, 5), (97, 12), (107, 0), (118, 13))  # fmt: skip
    inst = decode(word, 9.0)
    assert inst.dst == Operand("grf", "hf", 9, 8, write_mask=0b1010)
    assert inst.sources == (Operand("grf", "f", 11, 14, replicate=True, swizzle=0xE4, negate=True),
                           Operand("grf", "f", 12, 20, swizzle=0x1B, absolute=True), Operand("grf", "hf", 13, swizzle=0))  # fmt: skip
    assert (inst.flag_sub, inst.no_mask, inst.residue) == (1, True, 0)


@pytest.mark.behaviour("KBL-EU-15", shows="layout")
def test_send() -> None:
    """KBL 8173-8226, 8009-8032: the extended descriptor in four pieces."""
    common = ((0, 0x31), (24, 12), (41, 1), (69, 5), (91, 0xA), (85, 0xB), (80, 0xC), (64, 0xD), (127, 1))
    inst = decode(bits(*common, (89, 3), (96, 0x02106EFE)), 9.0)
    assert (inst.sfid, inst.descriptor, inst.extended, inst.eot) == (12, 0x02106EFE, 0xABCD0000, True)
    assert inst.sources[0].number == 5
    register = decode(bits(*common, (101, 0x10)), 9.0)
    assert register.descriptor == Operand("arf", "ud", 0x10)
    assert (register.extended, register.eot, register.residue) == (0xABCD0000, True, 0)


@pytest.mark.behaviour("KBL-EU-16", shows="layout")
def test_split_send() -> None:
    """KBL 8237-8324."""
    inst = decode(bits((0, 0x33), (24, 10), (35, 1), (36, 1), (37, 1), (44, 40), (52, 1), (53, 20), (64, 3), (68, 1), (69, 30),
                      (80, 0x1234), (96, 7)), 9.0)  # fmt: skip
    assert inst.dst == Operand("grf", "d", 20, 16)
    assert inst.sources == (Operand("grf", "", 30, 16), Operand("grf", "", 40))
    assert (inst.descriptor, inst.extended, inst.sfid, inst.residue) == (7, 0x12340000 | 3 << 6, 10, 0)
    indirect = decode(bits((0, 0x33), (79, 1), (73, 5), (68, 0x1F), (78, 1), (77, 1), (63, 1), (57, 2), (52, 1), (61, 1), (80, 3)), 9.0)
    assert indirect.sources[0] == Operand("grf", "", indirect=True, address_sub=5, offset=-16)
    assert indirect.dst == Operand("arf", "ud", indirect=True, address_sub=2, offset=16)
    assert (indirect.descriptor, indirect.extended) == (Operand("arf", "ud", 0x10), Operand("arf", "ud", 0x10, 12))


@pytest.mark.behaviour("BDW-EU-29", shows="layout")
@pytest.mark.parametrize("gen", [8.0, 9.0, 11.0])
def test_branch_offsets(gen: float) -> None:
    """BDW 17452-17465, KBL 7076-7097: bytes, JIP above UIP."""
    inst = decode(bits((0, 0x22), (41, 3), (43, 1), (64, 0x140), (96, (1 << 32) - 32)), gen)
    assert (inst.opcode, inst.jip, inst.uip, inst.sources) == ("if", -32, 0x140, (Operand("imm", "d"),))


@pytest.mark.behaviour("KBL-EU-17", shows="layout")
def test_math_functions() -> None:
    """KBL 8940-8965."""
    names = "inv log exp sqrt rsq sin cos - fdiv pow intdivmod intdiv intmod invm rsqrtm".split()
    for number, name in enumerate(names, 1):
        found = opcodes.math_function(number, 9.0)
        assert (found.name if found else "-") == name
        assert decode(bits((0, 0x38), (24, number)), 9.0).function == number


def test_execution_sizes() -> None:
    assert [decode(bits((0, 1), (21, code)), 7.0).exec_size for code in range(6)] == [1, 2, 4, 8, 16, 32]
    assert decode(bits((0, 1), (21, 6)), 7.0).residue == 6 << 21


@pytest.mark.behaviour("EU-25", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_source_modifiers(gen: float) -> None:
    found = [decode(bits((0, 1), (77, code)), gen).sources[0] for code in range(4)]
    assert [(operand.negate, operand.absolute) for operand in found] == [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize(("gen", "word", "said"), [
    (4.5, bits((0, 0x31), (24, 3), (42, 3), (96, 0x00110203), (112, 0), (120, 2)), (3, 2, 0x00110203 & 0xFFFFFF)),
    (7.0, bits((0, 0x31), (24, 2), (42, 3), (96, 0x04110203)), (0, 2, 0x04110203)),
])
def test_where_a_send_keeps_its_function(gen: float, word: int, said: tuple[int, int, int]) -> None:
    inst = decode(word, gen)
    assert (inst.base_mrf, inst.sfid, inst.descriptor) == said


def test_message_registers_only_on_g45() -> None:
    word = bits((0, 1), (32, 2), (53, 0x83))
    assert decode(word, 4.5).dst == Operand("mrf", "ud", 0x83)
    assert decode(word, 7.0).dst == Operand("arf", "ud", 0x83)
    assert decode(word, 7.0).residue == 2 << 32


# -- real code ---------------------------------------------------------------------------------------------------------


def expected(gen: float) -> Iterator[tuple[str, int]]:
    folder, _ = EXPECTED[gen]
    for path in sorted((ASM / folder).glob("*.expected")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip():
                yield f"{path.name}:{number}", int.from_bytes(bytes.fromhex(line), "little")


@needs_shared("oracles/asm")
@pytest.mark.parametrize("gen", EXPECTED)
def test_what_an_assembler_makes_leaves_nothing_over(gen: float) -> None:
    words = list(expected(gen))
    assert len(words) == EXPECTED[gen][1]
    for where, word in words:
        inst = decode(word, gen)
        assert (inst.residue, encode(inst)) == (0, word), where
        assert inst.opcode, where


@needs_shared("oracles/asm")
def test_what_an_assembler_makes_for_gen_11_leaves_nothing_over() -> None:
    lines = [line.split() for line in (ASM / "gen11-from-gen9" / "all.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 794
    for line in lines:
        inst = decode(int.from_bytes(bytes.fromhex(line[0]), "little"), 11.0)
        assert inst.residue == 0, line


@cache
def code(path: Path) -> tuple[int, ...]:
    """The native words of raw code; compact instructions expanded."""
    data, gen, at, found = path.read_bytes(), GPUS[path.parent.name], 0, []
    while at + 8 <= len(data):
        half = int.from_bytes(data[at : at + 8], "little")
        word = expand(half, gen) if half >> 29 & 1 else int.from_bytes(data[at : at + 16], "little")
        assert word is not None, f"{path}+{at:#x}"
        at += 8 if half >> 29 & 1 else 16
        found.append(word)
    return tuple(found)


@needs_shared("kernels")
@pytest.mark.parametrize("gpu", GPUS)
def test_compiled_kernels_leave_nothing_over(gpu: str) -> None:
    paths = [path for path in sorted(KERNELS.glob(f"*/{gpu}/*.dat")) if not path.name.endswith((".const.dat", ".global.dat"))]
    assert len(paths) > 100
    for path in paths[::6]:
        for word in code(path):
            inst = decode(word, GPUS[gpu])
            assert (inst.residue, encode(inst)) == (0, word), path

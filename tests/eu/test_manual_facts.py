"""What the manuals say of registers, types and encodings: assembled as text, and found in the bits; or run, and found in a register."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits import describe
from softgen.bits.catalogue import layout
from softgen.bits.layout import GENERATIONS
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.instruction import Operand
from softgen.eu.text.mesa import parse as mesa_parse
from tests.bits.pages.test_three_d_pixel import unpack
from tests.eu.semantics.build import dst, imm, instr, reg, run, scalar, thread

# -- types -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "low", "high"), [
    pytest.param("ub", 0, 255, marks=pytest.mark.behaviour("EU-34", shows="action")),
    pytest.param("b", -128, 127, marks=pytest.mark.behaviour("EU-35", shows="action")),
    pytest.param("uw", 0, 65535, marks=pytest.mark.behaviour("EU-36", shows="action")),
    pytest.param("w", -32768, 32767, marks=pytest.mark.behaviour("EU-37", shows="action")),
    pytest.param("ud", 0, 2**32 - 1, marks=pytest.mark.behaviour("EU-38", shows="action")),
    pytest.param("d", -(2**31), 2**31 - 1, marks=pytest.mark.behaviour("EU-39", shows="action")),
])  # fmt: skip
def test_ranges_of_integers(kind: str, low: int, high: int) -> None:
    """IVB 569-638: a float beyond them saturates at their ends, and the ends are two's complement."""
    size = types.size(kind)
    made = thread(7.0, 0b11, r2=np.array([-1e20, 1e20], np.float32))
    run(made, instr(7.0, "mov", dst(4, kind, 4 // size), reg(2, "f", "2;2,1"), size=2, saturate=True))
    found = [int.from_bytes(bytes(made.grf[128 + 4 * i : 128 + 4 * i + size]), "little", signed=low < 0) for i in range(2)]
    assert found == [low, high]


@pytest.mark.behaviour("EU-40", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_no_element_is_half_a_byte(gen: float) -> None:
    """IVB 530-533: four bits stand only in vectors, which only immediates are."""
    assert all(types.size(name) >= 1 for name in types.codes("register", gen))
    assert not {"v", "uv", "vf"} & set(types.codes("register", gen)) and "v" in types.codes("immediate", gen)


@pytest.mark.behaviour("EU-55", shows="action")
def test_floats_are_those_of_ieee() -> None:
    """IVB 649-655: the bits of -1.5, in 32 and in 64, and no type that is longer."""
    made = thread(8.0, 0b1, r2=np.array([-1.5], np.float32))
    run(made, instr(8.0, "mov", dst(4, "ud"), scalar(2, "ud"), size=1), instr(8.0, "mov", dst(6, "df"), scalar(2, "f"), size=1))
    assert bytes(made.grf[128:132]) == bytes.fromhex("0000c0bf") and bytes(made.grf[192:200]) == bytes.fromhex("000000000000f8bf")
    assert (types.size("f"), types.size("df"), max(types.size(name) for name in types.codes("register", 7.0))) == (4, 8, 8)


@pytest.mark.behaviour("EU-113", shows="layout")
def test_three_sources_share_a_type() -> None:
    """IVB 432-434."""
    assert types.codes("three_source", 7.0) == {"f": 0, "d": 1, "ud": 2, "df": 3}
    names = [field.name for field in layout("EU_THREE_SOURCE", 7.0).fields if "type" in field.name]
    assert names == ["dst_type", "src_type"]


# -- registers -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-04", shows="layout")
@pytest.mark.parametrize(("kind", "element", "byte"), [("F", 3, 12), ("W", 3, 6), ("UB", 3, 3), ("DF", 2, 16)])
def test_sub_registers_are_elements_in_text_and_bytes_in_bits(kind: str, element: int, byte: int) -> None:
    """IVB 51-55, 1637-1638; and 128 registers of 32 bytes."""
    (made,) = mesa_parse.parse(f"mov(1) g127.{element}<1>{kind} g0.{element}<0,1,0>{kind} {{ align1 1N }};", 7.0)
    word = encode(made)
    assert (word >> 48 & 31, word >> 53 & 255, word >> 64 & 31) == (byte, 127, byte)
    assert len(thread(7.0).grf) == 128 * 32


@pytest.mark.behaviour("EU-131", shows="layout")
def test_register_files() -> None:
    """IVB 1588-1599, 1653: the code of message registers became reserved with Gen7."""
    files = {gen: dict(next(field for field in layout("EU_SOURCE_0", gen).fields if field.name == "file").type.values)
             for gen in (4.5, 7.0)}
    assert files == {4.5: {0: "arf", 1: "grf", 2: "mrf", 3: "imm"}, 7.0: {0: "arf", 1: "grf", 3: "imm"}}


@pytest.mark.behaviour("EU-136", shows="layout")
@pytest.mark.parametrize(("text", "number", "sub"), [
    ("a0.2<0,1,0>UW", 0x10, 4), ("acc1<8,8,1>F", 0x21, 0), ("f1.1<0,1,0>UW", 0x31, 2), ("sr0.1<0,1,0>UD", 0x70, 4),
    ("cr0.2<0,1,0>UD", 0x80, 8), ("n0.1<0,1,0>UD", 0x90, 4),
])  # fmt: skip
def test_architecture_registers_are_a_kind_an_instance_and_a_byte(text: str, number: int, sub: int) -> None:
    """IVB 1653-1692."""
    size = 8 if text.startswith("acc") else 1
    made = mesa_parse.parse(f"mov({size}) g4<1>{text.split('>')[1]} {text} {{ align1 {'1Q' if size == 8 else '1N'} }};", 7.0)[0]
    found = decode(encode(made), 7.0).sources[0]
    assert (found.file, found.number, found.sub, encode(made) >> 69 & 255) == ("arf", number, sub, number)
    known = registers.find(found.number, 7.0)
    assert known is not None and f"{known[0].name}{known[1]}" == text.split("<")[0].split(".")[0]


@pytest.mark.behaviour("KBL-EU-07", shows="layout")
def test_register_numbers_and_their_steps() -> None:
    """KBL 5865-5921, 24607-24673: a byte in most forms, a doubleword in the one with three sources."""
    (two,) = mesa_parse.parse("add(8) g127<1>F g3.5<0,1,0>F g4<8,8,1>F { align1 1Q };", 9.0)
    assert (encode(two) >> 69 & 255, encode(two) >> 64 & 31) == (3, 20)
    word = encode(decode(0x5B | 1 << 8 | 3 << 21 | 11 << 76 | 5 << 73, 9.0))
    first = decode(word, 9.0).sources[0]
    assert (first.number, first.sub, word >> 73 & 7) == (11, 20, 5)


@pytest.mark.behaviour("KBL-EU-05", shows="layout")
@pytest.mark.parametrize(("text", "bits"), [("g2", 0), ("-g2", 0b10), ("(abs)g2", 0b01), ("-(abs)g2", 0b11)])
def test_source_modifiers(text: str, bits: int) -> None:
    """KBL 8042-8132, BDW 22321-22327: for logic the same bit inverts, and an indirect source has it as well."""
    (made,) = mesa_parse.parse(f"mov(8) g4<1>F {text}<8,8,1>F {{ align1 1Q }};", 9.0)
    assert encode(made) >> 77 & 3 == bits
    (made,) = mesa_parse.parse("and(8) g4<1>UD ~g2<8,8,1>UD g3<8,8,1>UD { align1 1Q };", 9.0)
    assert encode(made) >> 77 & 3 == 0b10 and made.sources[0].negate
    (made,) = mesa_parse.parse("mov(8) g4<1>F -g[a0 32]<8,8,1>F { align1 1Q };", 9.0)
    assert (encode(made) >> 77 & 7, made.sources[0].indirect) == (0b110, True)


# -- what a thread reads of itself -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-181", "EU-182", "EU-186", shows="layout")
def test_state_register() -> None:
    """IVB 2137-2212; four doublewords of it can be named."""
    record = unpack("EU_STATE_REGISTER", 7.0, (0, 24, 9), (0, 23, 1), (0, 16, 5), (0, 12, 1), (0, 8, 0xA), (0, 0, 6), (1, 24, 0xC3))
    assert tuple(record) == (9, 1, 5, 1, 0xA, 6, 0xC3)
    assert layout("EU_STATE_REGISTER", 7.0).reserved() == 0x00FFFFFF_F078E0F8
    row = registers.register("sr", 7.0)
    assert row is not None and (row.code, row.size) == (0x70, 16)


@pytest.mark.behaviour("EU-199", "EU-200", "EU-202", shows="layout")
def test_exceptions_stand_in_the_order_of_their_weight() -> None:
    """IVB 2427-2503, 2256-2259: the heaviest first, states in the upper half and what enables them sixteen bits below."""
    page = layout("EU_CONTROL_REGISTER", 7.0)
    bits = {field.name: field.low - 32 for field in page.fields if field.low // 32 == 1}
    kinds = ["breakpoint", "external_halt", "software", "illegal_opcode", "stack_overflow"]
    assert [bits[f"{kind}_status"] for kind in kinds] == [31, 30, 29, 28, 27]
    assert [bits[f"{kind}_enable"] for kind in kinds] == [15, 14, 13, 12, 11]


@pytest.mark.behaviour("EU-213", shows="layout")
def test_notification_registers() -> None:
    """IVB 2551-2555, 2574-2618: two counts of 16 bits, and between them one bit for the host."""
    record = unpack("EU_NOTIFICATION_REGISTER", 7.0, (0, 0, 0xFFFF), (1, 0, 1), (2, 0, 0x1234))
    assert tuple(record) == (0xFFFF, 1, 0x1234)
    assert [str(run) for run in describe.reserved(layout("EU_NOTIFICATION_REGISTER", 7.0), [1 << 16, 2, 0])] == [
        "dword 0 bit 16 = 0x1", "dword 1 bit 1 = 0x1"]  # fmt: skip


@pytest.mark.behaviour("EU-217", shows="layout")
def test_thread_dependency_registers() -> None:
    """IVB 2692-2801: eight words, each a valid bit and a thread."""
    record = unpack("EU_THREAD_DEPENDENCY_REGISTER", 7.0, *((n // 2, 16 * (n % 2), 0x8000 * (n % 2) | 0x40 + n) for n in range(8)))
    assert [(row.valid, row.fixed_function_thread_id) for row in record.dependency] == [(n % 2, 0x40 + n) for n in range(8)]
    assert layout("EU_THREAD_DEPENDENCY_REGISTER", 7.0).reserved() == int("7f00" * 8, 16)


# -- opcodes ---------------------------------------------------------------------------------------------------------------

NUMBERS = {  # of Mesa's table: what the volumes lack
    "mov": 1, "sel": 2, "movi": 3, "shr": 8, "shl": 9, "smov": 10, "while": 39, "ret": 45, "wait": 48, "send": 49, "mul": 65, "rndu": 68,
    "rndd": 69, "rnde": 70, "rndz": 71, "mac": 72, "mach": 73, "sad2": 80, "sada2": 81, "pln": 90, "mad": 91, "madm": 93, "nop": 126,
}  # fmt: skip


@pytest.mark.behaviour("BDW-EU-31", "KBL-EU-19", shows="layout")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [8.0, 9.0])
@pytest.mark.parametrize("name", NUMBERS)
def test_opcodes_that_the_volumes_lack(name: str, gen: float) -> None:
    row = opcodes.numbered(NUMBERS[name], gen)
    assert row is not None and row.name == name


@pytest.mark.behaviour("EU-114", shows="layout")
@pytest.mark.parametrize(("name", "number"), [("bfrev", 23), ("bfe", 24), ("bfi1", 25), ("bfi2", 26), ("brd", 33), ("brc", 35), ("fbh", 75),
                                              ("fbl", 76), ("cbit", 77), ("addc", 78), ("subb", 79)])  # fmt: skip
def test_instructions_that_came_with_ivy_bridge(name: str, number: int) -> None:
    """IVB 436-440."""
    row = opcodes.opcode(name, 7.0)
    assert row is not None and row.number == number and opcodes.opcode(name, 4.5) is None


# -- accumulator -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-EU-11", shows="action")
@pytest.mark.parametrize("asked", [False, True])
def test_the_accumulator_mirrors_a_result_when_asked(asked: bool) -> None:
    """KBL 7680-7684, BDW 16897-16899."""
    made = thread(9.0, r2=np.arange(8, dtype=np.int32))
    acc = Operand("arf", "d", 0x20, vertical=8, width=8, horizontal=1)
    clear = instr(9.0, "mov", Operand("arf", "d", 0x20, horizontal=1), imm(0))
    run(made, clear, instr(9.0, "add", dst(4), reg(2), imm(5), acc_write=asked), instr(9.0, "mov", dst(6), acc))
    assert np.frombuffer(made.grf[192:224], np.int32).tolist() == ([n + 5 for n in range(8)] if asked else [0] * 8)

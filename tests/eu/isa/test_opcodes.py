"""The tables of the instruction set: sound as they are, and refused with page and line when they are not."""

from __future__ import annotations

from collections import Counter

import pytest

from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.eu.encoding.encode import form
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.table import load

SOURCE = "source public test\n"
LEGAL = "legal int 4.5+ d <- d\n"
ADD = "op add 64 4.5+ basic dst,a,b int predicate\n"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_no_two_opcodes_share_a_number(gen: float) -> None:
    shared = [number for number, count in Counter(row.number for row in opcodes.of_generation(gen)).items() if count > 1]
    assert shared == []


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_opcode_has_pages_to_stand_on(gen: float) -> None:
    for row in opcodes.of_generation(gen):
        assert form(row).row == row
        assert row.source
        for dst, src in row.legal:
            known = set(types.codes("register", gen)) | set(types.codes("immediate", gen))
            assert dst <= known and src <= known, row


def test_how_many_instructions_each_generation_has() -> None:
    assert {gen: len(opcodes.of_generation(gen)) for gen in GENERATIONS} == {4.0: 48, 4.5: 50, 7.0: 62, 7.5: 64, 8.0: 66, 9.0: 68, 11.0: 61}


def test_what_left_with_gen_11() -> None:
    gone = {row.name for row in opcodes.of_generation(9.0)} - {row.name for row in opcodes.of_generation(11.0)}
    assert gone == {"sad2", "sada2", "dp4", "dph", "dp3", "dp2", "line", "pln", "lrp"}
    assert {row.name for row in opcodes.of_generation(11.0)} - {row.name for row in opcodes.of_generation(9.0)} == {"ror", "rol"}


def test_looking_up() -> None:
    found = opcodes.opcode("mad", 9.0)
    assert found is not None and found == opcodes.numbered(91, 9.0)
    assert (found.form, found.sources) == ("three_source", 3)
    assert opcodes.opcode("mad", 4.5) is None and opcodes.numbered(50, 4.5) is None
    assert opcodes.math_macros(9.0) == {14, 15} and opcodes.math_macros(7.0) == frozenset()


def test_how_many_sources_a_math_function_has() -> None:
    """Divisions and the power have two, all others one."""
    found = {row.name: row.sources for number in range(16) if (row := opcodes.math_function(number, 9.0)) is not None}
    assert found == {**dict.fromkeys(("inv", "log", "exp", "sqrt", "rsq", "sin", "cos", "rsqrtm"), 1),
                     **dict.fromkeys(("fdiv", "pow", "intdivmod", "intdiv", "intmod", "invm"), 2)}  # fmt: skip


@pytest.mark.parametrize(("text", "complaint"), [
    (SOURCE + LEGAL + ADD + ADD, "t:4: add is already in the table for gen 4.5"),
    (SOURCE + LEGAL + ADD + ADD.replace("add", "sub").replace("4.5+", "9"), "t:4: sub and add share number 64 on gen 9"),
    (LEGAL + ADD, "t:2: an op needs a source"),
    (SOURCE + ADD, "t:2: no 'legal' row is named 'int' on gen 4.5"),
    (SOURCE + LEGAL + ADD.replace("64", "128"), "t:3: an op is a name, a number under 128"),
    (SOURCE + LEGAL + ADD.replace("basic", "vector"), "t:3: a form is one of basic, three_source, .*, branch, not 'vector'"),
    (SOURCE + LEGAL + ADD.replace("dst,a,b", "dst,a,e"), "t:3: shape must be out of dst, a, b, c, jip, uip, pop, offset, not 'e'"),
    (SOURCE + LEGAL + ADD.replace("predicate", "colour"), "t:3: takes must be out of .*, not 'colour'"),
    (SOURCE + LEGAL + ADD.replace("4.5+", "6"), "t:3: no generations in '6'; they are 4, 4.5, 7, 7.5, 8, 9, 11"),
    (SOURCE + "legal int 4.5+ d d\n", "t:2: legal types are a name, generations, destination types, '<-' and source types"),
    (SOURCE + "legal int 4.5+ d <- x\n", "t:2: 'x' is not a type"),
    (SOURCE + "function inv 1 7+ a,b,c\n", "t:2: a function is a name, a number"),
    (SOURCE + "function inv 1 7+ a\nfunction log 1 9 a\n", "t:3: log and inv share number 1 on gen 9"),
    (SOURCE + "add 64\n", "t:2: a line begins with op, function, legal or source, not 'add'"),
    ("source nowhere\n", "t:1: a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name, not 'nowhere'"),
])
def test_a_wrong_opcode_table_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        opcodes.read("t", text)


# -- registers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gen", "code", "name", "index"), [
    (4.5, 0x40, "mask", 0), (7.0, 0x21, "acc", 1), (7.0, 0x31, "f", 1), (9.0, 0x22, "mme", 0), (9.0, 0x29, "mme", 7),
    (9.0, 0xA0, "ip", 0), (7.5, 0x40, "ce", 0), (11.0, 0xC0, "tm", 0), (9.0, 0xD4, "fc", 4),
])
def test_registers(gen: float, code: int, name: str, index: int) -> None:
    found = registers.find(code, gen)
    assert found is not None and (found[0].name, found[1]) == (name, index)
    assert registers.register(name, gen) == found[0]


def test_numbers_that_name_nothing() -> None:
    assert registers.find(0x31, 4.5) is None  # one flag register
    assert registers.find(0x40, 7.0) is None  # IVB 1665-1683 has no such row
    assert registers.find(0xE0, 9.0) is None


@pytest.mark.parametrize(("text", "complaint"), [
    (SOURCE + "register acc 0x20 9 2 32\nregister acc 0x30 9 2 32\n", "t:3: acc is already in the table for gen 9"),
    (SOURCE + "register acc 0x20 9 4 32\nregister mme 0x22 8+ 8 32\n", "t:3: mme and acc share number 0x22 on gen 9"),
    (SOURCE + "register fc 0xfe 9 5 4\n", "t:2: fc runs past 0xff"),
    (SOURCE + "register acc 0x20 9 two 32\n", "t:2: code, count and bytes are numbers"),
    (SOURCE + "register acc 0x20 9\n", "t:2: a line is 'register', name, code, generations, count and bytes"),
    ("register acc 0x20 9 2 32\n", "t:1: a register needs a source"),
])
def test_a_wrong_register_table_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        registers.read("t", text)


# -- types ---------------------------------------------------------------------------------------------------------------


def test_types() -> None:
    assert {name: type_.size for name, type_ in types.table().types.items() if not type_.vector} == {
        "ud": 4, "d": 4, "uw": 2, "w": 2, "ub": 1, "b": 1, "uq": 8, "q": 8, "hf": 2, "f": 4, "df": 8, "nf": 8}  # fmt: skip
    vf = types.type_of("vf")
    assert vf is not None and (vf.float, vf.signed, vf.vector, vf.mesa, vf.iga) == (True, True, True, "VF", "vf")
    assert types.type_of("") is None and types.size("") == 1


@pytest.mark.behaviour("EU-43", "EU-52", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_bytes_are_no_immediates_and_vectors_no_registers(gen: float) -> None:
    assert not {"b", "ub"} & set(types.codes("immediate", gen))
    assert not {"v", "uv", "vf"} & set(types.codes("register", gen))


def test_codes_that_moved() -> None:
    assert [types.codes("register", gen).get("f") for gen in GENERATIONS] == [7, 7, 7, 7, 7, 7, 9]
    assert [types.codes("immediate", gen).get("df") for gen in GENERATIONS] == [None, None, None, None, 10, 10, 10]
    assert types.names("immediate", 11.0)[11] == "vf" and types.names("register", 11.0)[11] == "nf"


@pytest.mark.parametrize(("text", "complaint"), [
    ("type d 4 signed 1\ntype d 4 signed 1\n", "t:2: type d is already described"),
    ("type d four signed 1\n", "t:1: a type is a name, a size, one of unsigned, signed, float and lanes"),
    ("type d 4 signed 1\ncodes register 9 d 1\n", "t:2: codes need a source"),
    (SOURCE + "type d 4 signed 1\ncodes somewhere 9 d 1\n", "t:3: a position is one of register, immediate"),
    (SOURCE + "type d 4 signed 1\ncodes register 9 d 1 d 2\n", "t:3: d or its code 2 is given twice"),
    (SOURCE + "type d 4 signed 1\ncodes register 9 x 1\n", "t:3: codes are pairs of a type's name and a number, not x 1"),
    (SOURCE + "type d 4 signed 1\ncodes register 9 d 1\ncodes register 8+ d 1\n", "t:4: register codes of gen 9 are already given"),
    ("kind d\n", "t:1: a line begins with type, codes or source, not 'kind'"),
])
def test_a_wrong_type_table_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        types.read("t", text)


@pytest.mark.parametrize("name", ["opcodes.table", "registers.table", "types.table", "compaction.csv"])
def test_tables_come_with_the_package(name: str) -> None:
    assert load(name).startswith("#")

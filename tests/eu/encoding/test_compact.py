"""Compact instructions: pairs made by an assembler, the tables as a manual prints them, and exactness whatever the bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.eu.encoding.compact import COLUMNS, compact, expand, read, relax
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Operand
from softgen.eu.text.mesa.parse import parse
from tests.conftest import SHARED, needs_shared

PAIRS = {4.5: 25, 7.0: 241, 7.5: 270, 8.0: 224, 9.0: 231, 11.0: 218}
RELAXED = {4.5: 0, 7.0: 5, 7.5: 3, 8.0: 3, 9.0: 7, 11.0: 7}  # pairs whose compact form has other types than the native one
KERNELS = SHARED / "kernels"
GPUS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
HALVES = st.integers(0, (1 << 64) - 1)


def pairs(gen: float) -> Iterator[tuple[int, int, str]]:
    for line in (SHARED / "oracles/asm/compaction" / f"gen{gen:g}.txt").read_text().splitlines():
        if not line.startswith("#"):
            native, short, *rest = line.split()
            yield int.from_bytes(bytes.fromhex(native), "little"), int.from_bytes(bytes.fromhex(short), "little"), " ".join(rest)


@needs_shared("oracles/asm/compaction")
@pytest.mark.behaviour("EU-01", shows="action")
@pytest.mark.behaviour("KBL-EU-13", "KBL-EU-14", shows="layout")
@pytest.mark.parametrize("gen", PAIRS)
def test_pairs_both_ways(gen: float) -> None:
    """An assembler may change types first so that an instruction becomes compact; then the pair is that of the changed word."""
    found = list(pairs(gen))
    relaxed = 0
    for native, short, text in found:
        if compact(native, gen) is None:
            native, relaxed = relax(native, gen), relaxed + 1
        assert expand(short, gen) == native, text
        assert compact(native, gen) == short, text
    assert (len(found), relaxed) == (PAIRS[gen], RELAXED[gen])


@pytest.mark.parametrize("text, types", [
    ("mov(8) g4<1>D 5D { align1 1Q };", ("ud", "ud")), ("mov.sat(8) g4<1>D 5D { align1 1Q };", ("ud", "ud")),
    ("mov.l.f0.0(8) g4<1>D -5D { align1 1Q };", ("d", "d")),  # an unsigned number is not below zero
    ("mov(8) g4<1>UD 5D { align1 1Q };", ("ud", "d")), ("mov(8) g4<1>D 5UD { align1 1Q };", ("d", "ud")),
    ("not(8) g4<1>D 5D { align1 1Q };", ("d", "d")),
    ("mov(8) g4<1>F 0x0F { align1 1Q };", ("f", "vf")), ("mov(8) g4.4<1>F 0x0F { align1 1Q };", ("f", "vf")),
    ("mov(8) g4<1>F 0x3f800000F { align1 1Q };", ("f", "f")), ("mov(8) g4<2>F 0x0F { align1 1Q };", ("f", "f")),
    ("mov(8) g4.1<1>F 0x0F { align1 1Q };", ("f", "f")), ("mov(8) g[a0.1]<1>F 0x0F { align1 1Q };", ("f", "f")),
    ("mov(8) g4<1>D 0x0F { align1 1Q };", ("d", "f")), ("mov(8) g4<1>D g5<8,8,1>D { align1 1Q };", ("d", "d")),
])  # fmt: skip
def test_a_move_of_an_immediate_may_have_other_types(text: str, types: tuple[str, str]) -> None:
    """All else stays, and so does what the move does."""
    (inst,) = parse(text, 9.0)
    other = decode(relax(encode(inst), 9.0), 9.0)
    assert other.dst is not None and (other.dst.type, other.sources[0].type) == types
    assert inst.dst is not None
    same = replace(other, absent=inst.absent, dst=replace(other.dst, type=inst.dst.type))
    assert replace(same, sources=(replace(same.sources[0], type=inst.sources[0].type),)) == inst


@pytest.mark.parametrize("gen", GENERATIONS)
@given(half=HALVES, number=st.integers(0, 127))
def test_what_expands_is_compact_again(gen: float, half: int, number: int) -> None:
    """The short form may be another, with the same meaning, where an immediate makes a sub-register a don't-care."""
    half = half >> 7 << 7 & ~(1 << 28) | number | 1 << 29
    word = expand(half, gen)
    if word is not None:
        again = compact(word, gen)
        assert again is not None and expand(again, gen) == word
        assert word >> 29 & 1 == 0


@pytest.mark.parametrize("gen", GENERATIONS)
@given(word=st.integers(0, (1 << 128) - 1))
def test_compact_is_exact(gen: float, word: int) -> None:
    short = compact(word, gen)
    assert short is None or expand(short, gen) == word


@needs_shared("oracles/asm")
@pytest.mark.parametrize("gen", PAIRS)
def test_any_bit_more_and_it_is_another_instruction_or_none(gen: float) -> None:
    """Every bit of a native word counts: none may be lost on the way through the short form."""
    for native, short, _ in list(pairs(gen))[::5]:
        if expand(short, gen) == native:
            for bit in range(128):
                other = compact(native ^ 1 << bit, gen)
                assert other is None or other != short and expand(other, gen) == native ^ 1 << bit


def test_gen_4_has_no_compact_instructions() -> None:
    """Mesa's elk_eu_compact.c compacts from Gen4.5 on."""
    word = expand(1 | 1 << 29, 4.5)
    assert word is not None and compact(word, 4.5) is not None
    assert compact(word, 4.0) is None and expand(1 | 1 << 29, 4.0) is None


@pytest.mark.parametrize("gen", PAIRS)
def test_a_half_that_is_not_marked_does_not_expand(gen: float) -> None:
    assert expand(1, gen) is None
    assert expand(1 | 1 << 29, gen) is not None


@pytest.mark.parametrize("gen", [7.0, 7.5, 11.0])
def test_three_sources_are_compact_only_on_8_and_9(gen: float) -> None:
    assert expand(0x5B | 1 << 29, gen) is None


def test_no_immediates_on_g45() -> None:
    assert compact(1 | 3 << 37 | 1 << 61, 4.5) is None


@needs_shared("kernels")
@pytest.mark.parametrize("gpu", GPUS)
def test_compiled_kernels_come_back(gpu: str) -> None:
    count = 0
    for path in sorted(KERNELS.glob(f"*/{gpu}/*.dat")):
        if not path.name.endswith((".const.dat", ".global.dat")):
            for half in halves(path):
                word = expand(half, GPUS[gpu])
                assert word is not None and compact(word, GPUS[gpu]) == half, f"{path} {half:#x}"
                count += 1
    assert count > 9000


def halves(path: Path) -> Iterator[int]:
    data, at = path.read_bytes(), 0
    while at + 8 <= len(data):
        half = int.from_bytes(data[at : at + 8], "little")
        if half >> 29 & 1:
            yield half
        at += 8 if half >> 29 & 1 else 16


# -- the tables as the manual prints them ----------------------------------------------------------------------------------

LINES = {"subregister": (7321, 7368), "datatype": (7369, 7427), "control": (7428, 7470)}


def printed(table: str) -> list[tuple[int, str, str]]:
    """(index, bits, meaning) of a table of the Kaby Lake volume."""
    first, last = LINES[table]
    (manual,) = (SHARED / "manuals").glob("001_*.txt")
    lines = manual.read_text("utf-8", "replace").splitlines()[first - 1 : last]
    return [(int(found[1]), found[2], found[3].strip()) for line in lines if (found := re.match(r" +(\d+) +([01]{12,}) +(.*)", line))]


def expanded(opcode: str, gen: float = 9.0, **indices: int) -> int:
    row = opcodes.opcode(opcode, gen)
    assert row is not None
    word = expand(instruction_page("EU_COMPACT", gen).word({"opcode": row.number, "compacted": 1, **indices}), gen)
    assert word is not None
    return word


@needs_shared("manuals")
@pytest.mark.behaviour("KBL-EU-13", shows="layout")
def test_data_types_mean_what_the_manual_says() -> None:
    entries = printed("datatype")
    assert len(entries) == 32
    files = {"r": "grf", "a": "arf", "i": "imm"}
    for index, _, meaning in entries:
        dst, a, b, stride, mode = (part.strip() for part in meaning.rstrip("| ").split("|"))
        inst = decode(expanded("mov" if a.startswith("i") else "add", datatype=index), 9.0)
        said = [(files[part[0]], part[2:]) for part in (dst, a, b)][: 1 + len(inst.sources)]
        assert inst.dst is not None
        assert [(other.file, other.type) for other in (inst.dst, *inst.sources)] == said, meaning
        assert (f"<{inst.dst.horizontal}>", inst.dst.indirect) == (stride, mode != "dir"), meaning
        assert (inst.absent, b) == ("ud", "a:ud") or len(inst.sources) > 1


@needs_shared("manuals")
@pytest.mark.behaviour("KBL-EU-13", shows="layout")
def test_controls_mean_what_the_manual_says() -> None:
    entries = printed("control")
    assert len(entries) == 32
    for index, _, meaning in entries:
        inst = decode(expanded("add", control=index), 9.0)
        words = {word.strip() for word in re.split(r"[|,]", meaning)}
        assert inst.align16 == ("Align16" in words) and inst.no_mask == ("We" in words), meaning
        assert inst.no_dd_clear == ("NoDDClr" in words) and inst.no_dd_check == ("NoDDChk" in words), meaning
        assert f"({inst.exec_size})" in words and inst.saturate == (".sat" in words), meaning
        assert f"f{inst.flag}.{inst.flag_sub}" in words and bool(inst.predicate) == ("+f.xyzw" in words), meaning
        assert inst.exec_size == 4 or inst.quarter == {"Q2": 1}.get(next((w for w in words if w[0] in "QH"), ""), 0), meaning


@needs_shared("manuals")
@pytest.mark.behaviour("KBL-EU-13", shows="layout")
def test_sub_registers_mean_what_the_manual_says() -> None:
    entries = printed("subregister")
    assert len(entries) == 32
    align1, align16 = 0, 2  # control indices
    for index, _, meaning in entries:
        parts = [part.strip() for part in meaning.rstrip("| ").split("|")]
        inst = decode(expanded("add", subregister=index, control=align16 if "." in meaning else align1), 9.0)
        assert inst.dst is not None
        a, b = inst.sources
        if "." not in meaning:
            assert [str(other.sub) for other in (inst.dst, a, b)] == parts, meaning
        else:
            mask = "".join(letter for bit, letter in enumerate("xyzw") if inst.dst.write_mask and inst.dst.write_mask >> bit & 1)
            assert [f"0.{mask}", f"0.{chosen(a)}", f"0.{chosen(b)}"] == parts, meaning


def chosen(operand: Operand) -> str:
    assert operand.swizzle is not None
    return "".join("xyzw"[operand.swizzle >> 2 * i & 3] for i in range(2))


@pytest.mark.behaviour("KBL-EU-13", shows="layout")
def test_some_rows_of_the_tables_as_printed() -> None:
    """Rows from all over the three tables that the volume has (KBL 7321-7470), which need no manual at hand."""
    controls = [(0, 1, True, 0, 0, 0), (5, 4, False, 0, 0, 0), (13, 8, True, 0, 0, 0), (21, 8, False, 1, 0, 0), (30, 16, False, 0, 0, 1)]
    for index, size, no_mask, predicate, flag, sub in controls:
        inst = decode(expanded("add", control=index), 9.0)
        assert (inst.exec_size, inst.no_mask, inst.predicate, inst.flag, inst.flag_sub) == (size, no_mask, predicate, flag, sub), index
    assert decode(expanded("add", control=5), 9.0).no_dd_clear
    types = [(0, "mov", "grf ud", "arf ud"), (5, "mov", "grf f", "imm vf"), (13, "add", "arf d", "grf d", "imm d"),
             (21, "mov", "grf f", "grf ud"), (30, "add", "arf uw", "grf uw", "grf uw")]  # fmt: skip
    for index, opcode, *operands in types:
        inst = decode(expanded(opcode, datatype=index), 9.0)
        assert [f"{operand.file} {operand.type}" for operand in (inst.dst, *inst.sources) if operand] == operands, index
    for index, places in ((0, [0, 0, 0]), (5, [0, 4, 0]), (21, [0, 12, 4]), (30, [0, 0, 28])):
        inst = decode(expanded("add", subregister=index), 9.0)
        assert [operand.sub for operand in (inst.dst, *inst.sources) if operand] == places, index


@pytest.mark.behaviour("KBL-EU-14", shows="layout")
@pytest.mark.parametrize(("value", "wanted"), [(0, 0), (0xFFF, 0xFFF), (0x1000, 0xFFFFF000), (0x1FFF, 0xFFFFFFFF)])
def test_immediates_of_13_bits(value: int, wanted: int) -> None:
    """KBL 7292-7298: bit 12 is copied upwards."""
    word = expanded("add", datatype=11, source_1=value >> 8, src1_number=value & 255)
    assert decode(word, 9.0).sources[1] == Operand("imm", "ud", immediate=wanted)


# -- readers refuse ----------------------------------------------------------------------------------------------------------

HEAD = COLUMNS + "\n"


@pytest.mark.parametrize(("text", "complaint"), [
    ("a,b\n", "t:1: columns must be table,generations,index,bits,source"),
    (HEAD + "colour,9,0,01,KBL 1\n", "t:2: an entry is a table out of control, datatype"),
    (HEAD + "control,9,0,02,KBL 1\n", "t:2: an entry is a table out of"),
    (HEAD + "control,6,0,01,KBL 1\n", "t:2: no generations in '6'"),
    (HEAD + "control,9,1,01,KBL 1\n", "t:2: control of gen 9 goes on with index 0, not 1"),
    (HEAD + "control,9,0,01,KBL 1\ncontrol,9,1,011,KBL 1\n", "t:3: control is 2 bits wide, not 3"),
    (HEAD + "control,9,0,01,KBL 1\ncontrol,9,1,01,KBL 1\n", "t:3: control has 01 twice on gen 9"),
    (HEAD + "control,9,0,01,KBL 1\n", "t: control must have 32 entries on gen 9, not 1"),
    (HEAD + "control,9,0,01,hearsay\n", "t:2: a source is BDW, KBL"),
])
def test_a_wrong_table_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        read("t", text)

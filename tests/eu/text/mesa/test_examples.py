"""Pairs of bytes and text of our own, `examples/mesa/gen*.txt`, both ways: one instruction at least of each form a generation has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.encoding.program import decode_compact
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.labels import size
from softgen.eu.text.mesa.format import convention_of, normal, program, text
from softgen.eu.text.mesa.names import mesa_words
from softgen.eu.text.mesa.parse import parse

EXAMPLES = Path(__file__).parent / "examples"


def example(gen: float) -> tuple[list[int], str]:
    """Words, and the text that says them."""
    lines = [line.split("  ", 1) for line in (EXAMPLES / f"gen{gen:g}.txt").read_text().splitlines() if not line.startswith("#")]
    return [int.from_bytes(bytes.fromhex(code), "little") for code, _ in lines], "\n".join(said for _, said in lines)


def lines(found: list[Instruction]) -> list[tuple[int, int, Instruction]]:
    """With byte offset and size."""
    placed, offset = [], 0
    for inst in found:
        placed.append((offset, size(inst), inst))
        offset += size(inst)
    return placed


@pytest.mark.parametrize("gen", GENERATIONS)
def test_text_becomes_bytes(gen: float) -> None:
    words, said = example(gen)
    assert [encode(inst) for inst in parse(said, gen)] == words


@pytest.mark.parametrize("gen", GENERATIONS)
def test_bytes_become_text_and_come_back(gen: float) -> None:
    found = parse(example(gen)[1], gen)
    ours = program(lines(found))
    assert parse(ours, gen) == found
    assert ours.count("bits:") == example(gen)[1].count("bits:")


@pytest.mark.parametrize("said", [
    "add(8)          g4<1>F          g5<8,8,1>F      g6<8,8,1>F      { align1 1Q };",
    "mov(8)          g4<1>F          g5<8,8,1>F                      { align1 1Q };",
    "nop                                                             ;",
])  # fmt: skip
def test_operands_and_options_are_in_mesas_columns(said: str) -> None:
    assert text(parse(said, 9)[0]) == said


def test_the_values_of_a_vector_of_small_floats_are_shown() -> None:
    """Three bits of exponent from 2^-3 on, four of fraction; zero has its own code."""
    inst = parse("mov(8) g4<1>F 0xff003801VF { align1 1Q };", 9)[0]
    assert "0xff003801VF /* [0.132812F, 1.5F, 0F, -31F]VF */" in text(inst)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_what_a_text_says_is_normal(gen: float) -> None:
    for inst, said in zip(parse(example(gen)[1], gen), example(gen)[1].splitlines(), strict=True):
        assert "bits" in said or normal(inst) == inst, said


@pytest.mark.parametrize("gen", (8.0, 9.0, 11.0))
def test_the_other_habit(gen: float) -> None:
    """As IGC writes them: no type for the source that is not there, null as the first source of a jump, no mark on a payload."""
    lines = [line.split("  ", 1) for line in (EXAMPLES / "habit-iga.txt").read_text().splitlines() if line.startswith(f"{gen:g} ")]
    words = [int.from_bytes(bytes.fromhex(code.split()[1]), "little") for code, _ in lines]
    said = "// implied operands: iga\n" + "\n".join(text for _, text in lines)
    found = parse(said, gen)
    assert len(found) == 11
    assert [encode(inst) for inst in found] == words
    assert all(normal(inst, "iga") == inst for inst in found)
    assert convention_of(found) == "iga"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_form_has_an_example(gen: float) -> None:
    assert {inst.form for inst in parse(example(gen)[1], gen)} == {row.form for row in opcodes.of_generation(gen)}


@pytest.mark.parametrize(("gen", "said"), [
    (9.0, "mov(8)          g4<1>F          0x3f800000F /* 1F */            { align1 1Q };"),
    (9.0, "mov(8)          g4<1>HF         0x3c00HF /* 1HF */              { align1 1Q };"),
    (9.0, "mov(8)          g4<1>F          0x70605040VF /* [2F, 4F, 8F, 16F]VF */ { align1 1Q };"),
    (9.0, "mov(8)          g4<1>DF         0x3ff8000000000000DF /* 1.5DF */ { align1 1Q };"),
    (9.0, "mov(8)          g4<1>W          -2W                             { align1 1Q };"),
    (9.0, "(-f1.1) sel.ge(8) g4.2<2>D      -(abs)g5.1<8,4,2>D 7D          { align1 WE_all 3Q };"),
    (8.0, "and(4)          g4<1>UD         ~g5<4,4,1>UD    g6<0,1,0>UD     { align1 NoDDClr,NoDDChk 6N };"),
    (7.5, "and(4)          g4<1>UD         -g5<4,4,1>UD    g6<0,1,0>UD     { align1 6N };"),
    (9.0, "cmp.nz.f0.1(32) null<1>D        g[a0.2 -4]<VxH,1,0>D g7<1,1,0>D { align1 atomic };"),
    (9.0, "sel.l.f1.0(8)   g4<1>F          g5<8,8,1>F      g6<8,8,1>F      { align1 1Q };"),
    (4.5, "sel.l.f0.0(8)   g4<1>F          g5<8,8,1>F      g6<8,8,1>F      { align1 };"),
    (9.0, "math.sat fdiv(8) g4<1>F         g5<8,8,1>F      g6<8,8,1>F      { align1 1Q AccWrEnable };"),
    (9.0, "mov(16)         g4<1>UD         g5<8,8,1>UD     { align1 2Q };"),
    (7.0, "mov(8)          g4<1>.xwUD      g5.4<4>.yyzwUD                  { align16 1Q };"),
    (7.0, "mov(8)          g4<1>F          g5<4>.zF                        { align16 1Q };"),
    (11.0, "mad(8)         g4<1>F          g1<8,4,2>F      g2<0,1,0>F      -g3<2,1,2>F { align1 1Q };"),
    (9.0, "mov(8)          fc0.3b<1>UD     g5<8,8,1>UD                     { align1 1Q };"),
    (4.5, "mov(8)          g4<1>UD         ms0<8,8,1>UD                    { align1 sechalf compr };"),
    (4.5, "mov(8)          m130<1>F        g5<8,8,1>F                      { align1 };"),
    (4.5, "send(8)         1 g4<1>F        null<8,8,1>F    0x02110001 sampler MsgDesc: sample mlen 1 rlen 1 { align1 };"),
])  # fmt: skip
def test_what_is_written(gen: float, said: str) -> None:
    (inst,) = parse(said, gen)
    if "MsgDesc" in said:
        said, ours = said.partition("MsgDesc")[0], text(inst).partition("MsgDesc")[0]
        assert ours.split() == said.split()
    else:
        assert text(inst).split() == said.split()


@pytest.mark.parametrize(("short", "long"), [
    ("add g4F g5F g6<4>F;", "add(1) g4<1>F g5<0,1,0>F g6<4,1,0>F { align1 1N };"),
    ("mov(8) r4:UD r5<8;8,1>:UD {1Q};", "mov(8) g4<1>UD g5<8,8,1>UD { align1 1Q };"),
    ("cmp.e.f0(8) null<1>F g5<8,8,1>F g6<8,8,1>F {};", "cmp.z.f0.0(8) null<1>F g5<8,8,1>F g6<8,8,1>F { align1 1Q };"),
    ("(f0.0) mov.breakpoint(8) g4<1>F g[a0 4]<1,0>F;", "(+f0.0) mov(8) g4<1>F g[a0 4]<VxH,1,0>F { align1 1Q breakpoint };"),
    ("math inv.f1(8) g4<1>F g5<8,8,1>F null<8,8,1>F;", "math inv.f1.0(8) g4<1>F g5<8,8,1>F null<8,8,1>F { align1 1Q };"),
    ("math inv.f1.1(8) g4<1>F g5<8,8,1>F null<8,8,1>F;", "math inv.f1.1(8) g4<1>F g5<8,8,1>F null<8,8,1>F { align1 1Q };"),
    ("mov(8) g4<1>F [64, 80, 96, 112]VF;", "mov(8) g4<1>F 0x70605040VF { align1 1Q };"),
    ("mov(8) g4<1>F [0x81, 255, 3, 0]VF;", "mov(8) g4<1>F 0x0003ff81VF { align1 1Q };"),
    ("mov(8) g4<1>UD ce0<0,1,0>UD;", "mov(8) g4<1>UD mask0<0,1,0>UD { align1 1Q };"),
    ("send(8) g4<1>UW g5<8,8,1>UD 0x02420001 2;", "send(8) g4<1>UW g5<8,8,1>UD 0x02420001 sampler MsgDesc: x = 1 { align1 1Q };"),
    ("// a comment\nnop /* and\nanother */;", "nop;"),
    ("mov(8) g4<1>F g5<8,8,1>F{ align1,1Q , NoDDClr};", "mov(8) g4<1>F g5<8,8,1>F { align1 NoDDClr 1Q };"),
])  # fmt: skip
def test_what_else_is_read(short: str, long: str) -> None:
    assert parse(short, 9.0) == parse(long, 9.0)


def test_what_is_no_instruction_is_shown_as_such() -> None:
    inst = decode(0x7F << 64 | 0x1B, 9.0)
    assert inst.opcode == ""
    assert text(inst).split() == "illegal(1) { align1 1N }; /* bits: 0x7f000000000000001b */".split()
    assert parse(text(inst), 9.0) == [inst]
    assert normal(inst).opcode == "illegal"


def test_eight_bytes_that_are_no_compact_instruction_come_back() -> None:
    half = 1 << 29 | 1 << 28 | 1  # compact, mov, and a bit that compact instructions do not have
    inst = decode_compact(half, 9.0)
    assert inst.opcode == "" and inst.compacted
    assert parse(text(inst), 9.0) == [inst]


def test_habits_are_told_apart_and_said() -> None:
    """Mesa writes the type of an immediate twice, IGC does not; a whole program needs no annotation either way."""
    twice, once = decode(0x3F800000_38000000_20803EE8_00600001, 9.0), decode(0x3F800000_00000000_20803EE8_00600001, 9.0)
    assert "bits" not in text(twice) and "bits" in text(once)
    assert "bits" not in text(once, convention="iga") and "bits" in text(twice, convention="iga")
    for item, head in ((twice, "mov(8)"), (once, "// implied operands: iga")):
        ours = program([(0, 16, item)])
        assert ours.startswith(head) and "bits" not in ours
        assert parse(ours, 9.0) == [item]


def test_a_compr4_register_whose_bytes_cannot_be_said() -> None:
    (inst,) = parse("mov(16) m2.1<1>F g8<8,8,1>F { align1 compr4 };", 4.5)
    assert inst.dst is not None and inst.dst.number == 0x82 and inst.dst.sub == 4
    odd = replace(inst, dst=replace(inst.dst, sub=7))
    assert "m2.1<1>F" in text(odd) and "compr4" in text(odd) and text(odd).endswith("/* bits: 0x3000000000000 */")
    assert parse(text(odd), 4.5) == [odd]


@pytest.mark.parametrize("gen", [8.0, 9.0])
@pytest.mark.parametrize("place", range(4))
def test_a_sub_register_beside_an_extended_accumulator_cannot_be_said(gen: float, place: int) -> None:
    """Of the destination, and of each source."""
    (inst,) = parse("madm(4) g4.mme2<1>F g5.mme8<4,4,1>F g6.mme0<4,4,1>F g7.mme1<4,4,1>F { align16 1N };", gen)
    assert "bits" not in text(inst) and inst.dst is not None
    operands = [inst.dst, *inst.sources]
    operands[place] = replace(operands[place], sub=8)
    odd = replace(inst, dst=operands[0], sources=tuple(operands[1:]))
    assert text(odd).startswith(text(inst)) and "bits" in text(odd) and parse(text(odd), gen) == [odd] and normal(odd) == inst


@pytest.mark.parametrize("source", [0, 2])  # the middle one is a register
@pytest.mark.parametrize("modifier", ["negate", "absolute"])
def test_a_modifier_of_an_immediate_cannot_be_said(source: int, modifier: str) -> None:
    """Three sources in align1 have room for one; the text has none, and its annotation says it."""
    operands = ["g1<8,4,2>HF", "g2<8,4,2>HF", "g3<1,1,1>HF"]
    operands[source] = "0x3c00HF"
    (inst,) = parse(f"mad(8) g4<1>HF {' '.join(operands)} {{ align1 1Q }};", 11)
    sources = list(inst.sources)
    sources[source] = replace(sources[source], **{modifier: True})
    odd = replace(inst, sources=tuple(sources))
    assert "bits" not in text(inst) and "bits" in text(odd) and parse(text(odd), 11) == [odd] and normal(odd) == inst


@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_jump_by_a_number_is_what_its_bytes_say(gen: float) -> None:
    """The number is the distance, and the source is left with none."""
    for distance in (32, -16):
        (inst,) = parse(f"jmpi(1) {distance}D {{ align1 }};", gen)
        assert inst.jip == distance and inst == decode(encode(inst), gen)


def test_labels_are_counted_from_the_instruction() -> None:
    """Which is at the beginning unless its offset is given."""
    (inst,) = parse("while(8) JIP: -32 { align1 1Q };", 9)
    for offset, label in ((0, -32), (32, 0), (48, 16)):
        assert "JIP: HERE" in " ".join(text(inst, {label: "HERE"}, offset).split())
    assert "JIP: HERE" in " ".join(text(inst, {-32: "HERE"}).split()) and "-32" in text(inst, {-31: "HERE"})


@pytest.mark.parametrize("gen", GENERATIONS)
def test_words_agree_with_the_other_tables(gen: float) -> None:
    words = mesa_words(gen)
    for number in range(16):
        function = opcodes.math_function(number, gen)
        assert function is None or words.write["function"][number] == function.name
    assert words.write["condition"] == {
        code: name for code, name in instruction_page("EU_CONTROL", gen).values["condition"].items() if name != "-"
    }
    assert {code: name.removesuffix("4h") for code, name in words.write["channel"].items()} == (
        {2: "x", 3: "y", 4: "z", 5: "w", 6: "any", 7: "all"} if "align16" in instruction_page("EU_CONTROL", gen) else {})


@pytest.mark.parametrize(("gen", "names"), [
    (4.5, {"math": 1, "sampler": 2, "gateway": 3, "read": 4, "write": 5, "urb": 6, "thread_spawner": 7}),
    (7.0, {"sampler": 2, "gateway": 3, "dp_sampler": 4, "render": 5, "urb": 6, "const": 9, "data": 10, "pixel interp": 11}),
    (7.5, {"dp data 1": 12, "data": 10, "cre": 13}),
    (8.0, {"dp data 1": 12, "data": 10, "const": 9}),
    (9.0, {"hdc2": 4, "render": 5, "ts/btd": 7, "hdc:ro": 9, "hdc0": 10, "pi": 11, "hdc1": 12, "data": 10}),
    (11.0, {"sampler": 2, "gateway": 3, "urb": 6, "hdc0": 10, "hdc1": 12}),
])  # fmt: skip
def test_shared_functions(gen: float, names: dict[str, int]) -> None:
    base = "1 " if gen == 4.5 else ""
    for name, number in names.items():
        (inst,) = parse(f"send(8) {base}g4<1>UW g5<8,8,1>UD 0x{number if base else 0:02x}000000 {name} MsgDesc: {{ align1 }};", gen)
        assert inst.sfid == number


@pytest.mark.parametrize("number", [250, 255])
def test_architecture_registers_without_a_name_have_a_number(number: int) -> None:
    (inst,) = parse(f"mov(8) ARF{number}<1>F ARF{number}<8,8,1>F {{ align1 1Q }};", 9.0)
    assert inst.dst is not None
    assert [(operand.file, operand.number) for operand in (inst.dst, *inst.sources)] == [("arf", number)] * 2
    assert " ".join(text(inst, {}).split()).startswith(f"mov(8) ARF{number}<1>F ARF{number}<8,8,1>F")


@pytest.mark.parametrize("size, letter, count", [(4, "N", 8), (8, "Q", 4), (16, "H", 2)])
def test_groups_of_channels(size: int, letter: str, count: int) -> None:
    """Nibbles, quarters and halves of 32 channels."""
    for number in range(count):
        (inst,) = parse(f"mov({size}) g4<1>W g5<4,4,1>W {{ align1 {number + 1}{letter} }};", 9.0)
        assert (4 * inst.quarter + 2 * inst.nibble) * 2 == number * size
    with pytest.raises(DecodeError, match=f"expected an option or '}}', not '{count + 1}{letter}'"):
        parse(f"mov({size}) g4<1>W g5<4,4,1>W {{ align1 {count + 1}{letter} }};", 9.0)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_shared_function_is_read_by_its_whole_name(gen: float) -> None:
    for name, number in mesa_words(gen).read["sfid"].items():
        payload = "0 g4<1>UW" if gen < 7 else "g4<1>UW"
        for said in (name, f"{number}"):
            (inst,) = parse(f"send(8) {payload} g5<8,8,1>UD 0x02110001 {said} MsgDesc: x {{ align1 }};", gen)
            assert inst.sfid == number, name


@pytest.mark.parametrize("descriptor", [0x02000010, 0x82000010])
def test_descriptors_of_a_split_send(descriptor: int) -> None:
    """The first may be written with the bit that ends the thread, which is no part of it; all upper bits of the second are kept."""
    said = f"sends(8) nullUD g126UD g2UD {descriptor:#x} 0xfff0004c thread_spawner MsgDesc: x {{ align1 WE_all 1Q EOT }};"
    (inst,) = parse(said, 9.0)
    assert (inst.descriptor, inst.extended, inst.eot) == (0x02000010, 0xFFF00040, True)

"""Whatever bits there are, their text in IGA's dialect says them all: parse(text(instruction)) is the instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgen.errors import DecodeError
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga.format import normal, text
from softgen.eu.text.iga.parse import parse
from tests.eu.strategies import instructions
from tests.oracles.iga import legal

GENERATIONS = (7.5, 8.0, 9.0, 11.0)
FEW = max(2, settings().max_examples // 100)  # examples of an opcode
WORDS = st.integers(0, (1 << 128) - 1)
COMPACTED = 1 << 29
PIECES = ["add (8|M0)", "(W)", "(f0.0)", "r4.0<1>:f", "r5.0<8;8,1>:f", "0x1:ud", "-", "~", "(abs)", "(sat)", "(eq)f0.0", "{", "}", ";",
          "\n", "Align16", "Compacted", "L0", "L0:", ".+8", "send (8|M0)", "sends (1|M0)", "math.inv", "math.invm", "if (8|M0)",
          "mad (8|M0)", "null", "r[a0.0,4]", "a0.0", "0x2:a0.1", "<", ">", ",", ":d", ".xyzw", ".mme0", ".inline_inst", "/*", "*/", "//",
          "bits:", "1e999:f", "nan:f", "\x00", "𝟘", "ß", "9" * 30, "wait", "jmpi", "ret (8|M0)", "call (8|M0)"]  # fmt: skip
TEXTS = st.one_of(st.text(), *(st.lists(st.sampled_from(PIECES)).map(glue.join) for glue in ("", " ")))


def unannotated(said: str) -> str:
    return said.partition("/* bits")[0]


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_opcode_comes_back_from_its_text(gen: float) -> None:
    def check(built: Instruction) -> None:
        inst = decode(encode(built), gen)
        assert parse(text(inst), gen) == [inst]
        usual = normal(inst)
        assert parse(unannotated(text(inst)), gen) == [decode(encode(usual), gen)]

    for row in opcodes.of_generation(gen):
        settings(max_examples=FEW)(given(instructions(row))(check))()


@settings(max_examples=100)
@given(WORDS, st.sampled_from(GENERATIONS), st.booleans())
def test_random_bits_come_back_from_their_text(word: int, gen: float, compacted: bool) -> None:
    inst = replace(decode(word & ~COMPACTED, gen), compacted=compacted)
    if not inst.opcode:
        inst = replace(inst, compacted=False)
    found = parse(text(inst), gen)
    assert found == [inst]
    assert encode(found[0]) == word & ~COMPACTED


@given(st.integers(0, (1 << 64) - 1), st.sampled_from(GENERATIONS))
def test_bits_that_are_no_compact_instruction_come_back(half: int, gen: float) -> None:
    number = half & 0x7F
    inst = Instruction(gen, "", number, "none", compacted=True, residue=half ^ number)
    assert parse(text(inst), gen) == [inst]


@settings(max_examples=100)
@given(TEXTS, st.sampled_from(GENERATIONS))
def test_random_text_is_read_or_refused(said: str, gen: float) -> None:
    try:
        assert all(inst.gen == gen for inst in parse(said, gen))
    except DecodeError as error:
        assert str(error).startswith("text:")


@settings(max_examples=60)
@given(st.data(), st.sampled_from(GENERATIONS))
def test_damaged_lines_are_read_or_refused(data: st.DataObject, gen: float) -> None:
    """Nearly right text reaches further into the parser than random text does."""
    lines = [text(inst) for inst in legal(gen, 1)]
    line = data.draw(st.sampled_from(lines))
    place = data.draw(st.integers(0, len(line)))
    said = line[:place] + data.draw(st.sampled_from([*PIECES, ""])) + line[place + data.draw(st.integers(0, 3)) :]
    try:
        for inst in parse(said, gen):
            assert parse(text(inst), gen) == [inst]
    except DecodeError as error:
        assert str(error).startswith("text:")


@pytest.mark.parametrize("gen", GENERATIONS)
def test_what_iga_has_words_for_needs_no_annotation(gen: float) -> None:
    for inst in legal(gen, 20):
        said = text(inst)
        assert "/*" not in said
        assert [encode(found) for found in parse(said, gen)] == [encode(inst)], said

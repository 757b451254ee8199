"""Whatever bits there are, their text says them all: parse(text(instruction)) is the instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.mesa.format import normal, text
from softgen.eu.text.mesa.names import CONVENTIONS
from softgen.eu.text.mesa.parse import parse
from tests.eu.strategies import instructions

FEW = max(2, settings().max_examples // 100)  # examples of an opcode
WORDS = st.integers(0, (1 << 128) - 1)
COMPACTED = 1 << 29
PIECES = ["add(8)", "(+f0.0)", "g4<1>F", "g5<8,8,1>F", "0x1UD", "-", "(abs)", "{", "}", ";", "align1", "1Q", "LABEL0", ":", "JIP:", "UIP:",
          "send(8)", "sends", "math", "inv", "<", ">", ",", ".", "[", "]", "a0", "null", "/*", "*/", "//", "bits:", "\n", "MsgDesc:",
          "compacted", "if", "\x00", "𝟘", "ß", "9" * 30]  # fmt: skip
TEXTS = st.one_of(st.text(), *(st.lists(st.sampled_from(PIECES)).map(glue.join) for glue in ("", " ")))


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_opcode_comes_back_from_its_text(gen: float) -> None:
    def check(built: Instruction, habit: str) -> None:
        inst = decode(encode(built), gen)
        assert parse(f"// implied operands: {habit}\n{text(inst, convention=habit)}", gen) == [inst]
        usual = normal(inst, habit)
        assert "bits" not in text(decode(encode(usual), gen), convention=habit)

    for row in opcodes.of_generation(gen):
        settings(max_examples=FEW)(given(instructions(row), st.sampled_from(CONVENTIONS))(check))()


@settings(max_examples=60)
@given(WORDS, st.sampled_from(GENERATIONS), st.booleans())
def test_random_bits_come_back_from_their_text(word: int, gen: float, compacted: bool) -> None:
    inst = replace(decode(word & ~COMPACTED, gen), compacted=compacted)
    found = parse(text(inst), gen)
    assert found == [inst]
    assert encode(found[0]) == word & ~COMPACTED


@settings(max_examples=60)
@given(TEXTS, st.sampled_from(GENERATIONS))
def test_random_text_is_read_or_refused(said: str, gen: float) -> None:
    try:
        assert all(inst.gen == gen for inst in parse(said, gen))
    except DecodeError as error:
        assert str(error).startswith("text:")


@given(instructions(), st.data())
def test_damaged_text_is_read_or_refused(built: Instruction, data: st.DataObject) -> None:
    said = text(built)
    at = data.draw(st.integers(0, len(said)))
    piece = data.draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)))
    try:
        parse(said[:at] + piece + said[at + data.draw(st.integers(0, 4)) :], built.gen)
    except DecodeError as error:
        assert str(error).startswith("text:")


@pytest.mark.parametrize("piece", ["/* ", "(", "<", "g4.", "L:\n", "add(8) ", "{ align1 ", "-", "[1,", "/* bits: 0x1 */", "0", "a", " \n"])
def test_long_nonsense_takes_no_longer_than_its_length(piece: str) -> None:
    """What would try every way to cut the text would never come to an end here."""
    with pytest.raises(DecodeError, match=r"^text:\d+:\d+: expected "):
        parse(piece * 20000 + "?", 9.0)

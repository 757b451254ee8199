"""Whatever a row of the opcode table can say comes back from its bits, with nothing left over; what it cannot say is refused."""

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
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from tests.eu.strategies import instructions

FEW = max(2, settings().max_examples // 100)  # examples of an opcode
R1 = Operand("grf", "f", 1, vertical=8, width=8, horizontal=1)
ADD = Instruction(9.0, "add", 64, "basic", 8, dst=Operand("grf", "f", 2, horizontal=1), sources=(R1, R1))


@pytest.mark.behaviour("EU-02", "KBL-EU-18", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_opcode_comes_back_from_its_bits(gen: float) -> None:
    def check(row: Opcode, inst: Instruction) -> None:
        word = encode(inst)
        assert word >> 128 == 0
        found = decode(word, row.gen)
        if row.form == "send" and found.extended is not None:  # the extended descriptor is also read as a region
            found = replace(found, sources=(replace(found.sources[0], vertical=0, width=1, horizontal=0, sub=0, swizzle=None),))
            inst = replace(inst, sources=(replace(inst.sources[0], vertical=0, width=1, horizontal=0, sub=0, swizzle=None),))
        assert found == inst
        assert len(found.sources) == row.sources or row.form == "branch"

    for row in opcodes.of_generation(gen):
        settings(max_examples=FEW)(given(st.just(row), instructions(row))(check))()


@given(instructions(), st.integers(0, (1 << 128) - 1))
def test_residue_is_what_the_fields_do_not_say(inst: Instruction, residue: int) -> None:
    assert encode(replace(inst, residue=residue)) == encode(inst) ^ residue


@given(instructions())
def test_compact_or_not_the_native_word_is_the_same(inst: Instruction) -> None:
    assert encode(replace(inst, compacted=True)) == encode(inst)


@pytest.mark.parametrize(("change", "complaint"), [
    ({"opcode": "rol"}, "gen 9 has no instruction 'rol'"),
    ({"exec_size": 3}, "exec size must be one of 1, 2, 4, 8, 16, 32, not 3"),
    ({"sources": (R1,)}, "add has 2 sources, not 1"),
    ({"sources": (R1, replace(R1, vertical=3))}, "vertical must be one of 0, 1, 2, 4, 8, 16, 32, -1, not 3"),
    ({"sources": (R1, replace(R1, file="mrf"))}, "file must be one of arf, grf, imm, not mrf"),
    ({"sources": (R1, replace(R1, type="nf"))}, "gen 9 has no register of type nf"),
    ({"sources": (R1, Operand("imm", "b"))}, "gen 9 has no immediate of type b"),
    ({"sources": (R1, replace(R1, number=256))}, "EU_SOURCE_1.number must fit 8 bits, not 0x100"),
    ({"sources": (R1, replace(R1, indirect=True, offset=512))}, "EU_SOURCE_1.offset must fit 10 bits with its sign, not 512"),
    ({"align16": True, "dst": replace(R1, sub=8, write_mask=15)}, "sub-register must be a multiple of 16 bytes here, not 8"),
    ({"predicate": 16}, "EU_CONTROL.predicate must fit 4 bits, not 0x10"),
])
@pytest.mark.behaviour("EU-43", shows="layout")
def test_what_cannot_be_said_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint.replace("(", r"\(")):
        encode(replace(ADD, **change))  # type: ignore[arg-type]


def test_sources_of_one_type() -> None:
    mad = Instruction(8.0, "mad", 91, "three_source", 8, align16=True, dst=Operand("grf", "f", 1, write_mask=15),
                      sources=(Operand("grf", "f", 2, swizzle=0xE4),) * 2 + (Operand("grf", "d", 2, swizzle=0xE4),))  # fmt: skip
    with pytest.raises(DecodeError, match="sources of mad must all have type f, not d"):
        encode(mad)


@pytest.mark.parametrize(("descriptor", "extended", "bits"), [
    (None, None, 0), (0, 0, 0), (1, 0, 1 << 96), (0x7FFFFFFF, 0, 0x7FFFFFFF << 96), (0, 0x40, 1 << 64), (0, 0x3C0, 15 << 64),
    (0, 0x10000, 1 << 80), (0, 0xFFFF0000, 0xFFFF << 80)])  # fmt: skip
def test_the_descriptors_of_sends_stand_in_three_places(descriptor: int | None, extended: int | None, bits: int) -> None:
    """The message descriptor at bit 96; of the extended one the length at 64 and the upper half at 80."""
    sends = decode(0x2800141E01800600033, 9.0)
    assert (sends.opcode, sends.descriptor, sends.extended, sends.residue) == ("sends", 0, 0, 0)
    assert encode(replace(sends, descriptor=descriptor, extended=extended)) == 0x2800141E01800600033 | bits

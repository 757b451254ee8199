"""Branch targets: counts in the generation's unit on one side, byte offsets on the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softgen.errors import SpecError
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.mesa.parse import parse

WHILE = Instruction(9.0, "while", 39, "branch", jip=-32)


@pytest.mark.behaviour("EU-12", shows="action")
@pytest.mark.parametrize(("gen", "unit"), [(4.0, 16), (4.5, 16), (7.0, 8), (7.5, 8), (8.0, 1), (9.0, 1), (11.0, 1)])
def test_units(gen: float, unit: int) -> None:
    inst = replace(WHILE, gen=gen)
    assert labels.unit(gen) == unit
    assert labels.target(inst, 0x100, -3) == 0x100 - 3 * unit
    assert labels.count(inst, 0x100, 0x100 + 5 * unit) == 5


def test_a_unit_that_nobody_gave() -> None:
    with pytest.raises(SpecError, match="no unit for gen 6"):
        labels.unit(6.0)


def test_what_a_unit_cannot_say() -> None:
    assert labels.count(replace(WHILE, gen=4.5), 0, 8) is None
    assert labels.count(replace(WHILE, gen=7.0), 16, 8) == -1


def test_jmpi_counts_from_the_next_instruction() -> None:
    jump = Instruction(9.0, "jmpi", 32, "branch", jip=0)
    assert labels.target(jump, 0x40, 0) == 0x50
    assert labels.target(replace(jump, compacted=True), 0x40, 0) == 0x48
    assert labels.count(jump, 0x40, 0x40) == -16


def test_labels_are_numbered_by_place_and_only_where_an_instruction_begins_or_the_program_ends() -> None:
    said = "if(8) JIP: 48 UIP: 8; if(8) JIP: 32 UIP: -16; while(8) JIP: -16;"
    items = [(16 * index, 16, inst) for index, inst in enumerate(parse(said, 9.0))]
    assert list(labels.targets(items)) == [48, 8, 48, 0, 16]
    assert labels.names(items) == {0: "LABEL0", 16: "LABEL1", 48: "LABEL2"}
    assert labels.names(items, "L") == {0: "L0", 16: "L1", 48: "L2"}
    assert labels.names([]) == {}


def test_compact_instructions_are_half_as_long() -> None:
    found = parse("L: nop { compacted }; nop { compacted }; nop; while(8) JIP: L; M: endif(8) JIP: M;", 9.0)
    assert [labels.size(inst) for inst in found] == [8, 8, 16, 16, 16]
    assert found[3].jip == -32
    assert found[4].jip == 0

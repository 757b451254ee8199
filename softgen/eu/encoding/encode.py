"""Encode: an instruction becomes 128 bits. Anything it says that its generation cannot raises DecodeError."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from softgen.errors import DecodeError
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.encoding.forms import BasicForm, BranchForm, SendForm
from softgen.eu.encoding.three_source import SplitSendForm, ThreeSourceAlign1Form, ThreeSourceForm
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.opcodes import Opcode

InstructionForm: TypeAlias = BasicForm | ThreeSourceForm | ThreeSourceAlign1Form | SplitSendForm

FORMS: dict[str, type[InstructionForm]] = {"basic": BasicForm, "branch": BranchForm, "send": SendForm, "sends": SplitSendForm,
                                           "three_source": ThreeSourceForm, "three_source_align1": ThreeSourceAlign1Form}  # fmt: skip


@cache
def form(row: Opcode) -> InstructionForm:
    return FORMS[row.form](row)


@cache
def _named(name: str, gen: float) -> InstructionForm:
    row = opcodes.opcode(name, gen)
    if row is None:
        raise DecodeError(f"gen {gen:g} has no instruction {name!r}")
    return form(row)


def encode(inst: Instruction) -> int:
    """The native word; `compacted` does not matter here."""
    if not inst.opcode:
        return instruction_page("EU_CONTROL", inst.gen).word({"opcode": inst.opcode_number}) ^ inst.residue
    found = _named(inst.opcode, inst.gen)
    if len(inst.sources) < _least(found.row):
        raise DecodeError(f"{inst.opcode} has {found.row.sources} sources, not {len(inst.sources)}")
    return (found.controls.write(inst) | found.write(inst)) ^ inst.residue


def _least(row: Opcode) -> int:
    return 1 if row.form == "branch" else row.sources

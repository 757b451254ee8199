"""Encode: an instruction becomes 128 bits. Anything it says that its generation cannot raises DecodeError."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from softgen.errors import DecodeError
from softgen.eu.encoding.fields import page
from softgen.eu.encoding.forms import Basic, Branch, Send
from softgen.eu.encoding.three_source import Sends, ThreeSource, ThreeSourceAlign1
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.opcodes import Opcode

Form: TypeAlias = Basic | ThreeSource | ThreeSourceAlign1 | Sends

FORMS: dict[str, type[Form]] = {"basic": Basic, "branch": Branch, "send": Send, "sends": Sends, "three_source": ThreeSource,
                                "three_source_align1": ThreeSourceAlign1}  # fmt: skip


@cache
def form(row: Opcode) -> Form:
    return FORMS[row.form](row)


@cache
def _named(name: str, gen: float) -> Form:
    row = opcodes.opcode(name, gen)
    if row is None:
        raise DecodeError(f"gen {gen:g} has no instruction {name!r}")
    return form(row)


def encode(one: Instruction) -> int:
    """The native word; `compacted` does not matter here."""
    if not one.opcode:
        return page("EU_CONTROL", one.gen).word({"opcode": one.opcode_number}) ^ one.residue
    found = _named(one.opcode, one.gen)
    if len(one.sources) < _least(found.row):
        raise DecodeError(f"{one.opcode} has {found.row.sources} sources, not {len(one.sources)}")
    return (found.controls.write(one) | found.write(one)) ^ one.residue


def _least(row: Opcode) -> int:
    return 1 if row.form == "branch" else row.sources

"""What text of IGA's dialect leaves out, and how each opcode's operands are said. Writer and parser share it.

Reads  EU_SEND
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.text.iga.operand import IgaOperandText, OperandTextCache

DESTINATION, SOURCE, MESSAGE = 14, 18, 8  # columns
EOT = 1 << 5  # where an extended descriptor shows the end of the thread
ABSENT = "ud"  # the type of a source that is not there

OmittedFields = dict[str, Any]  # fields of an instruction that its text does not say, as reading the text gives them

NULL = Operand("arf", ABSENT)
MACRO_NULL = replace(NULL, special=0)  # the source that a macro of one source does not have


def copied_operands(implied: tuple[Operand, ...], source: Operand) -> tuple[Operand, tuple[Operand, ...]]:
    """The operands beside the source of an instruction whose destination is its source."""
    dst = replace(implied[0], file=source.file, number=source.number, sub=source.sub)
    return dst, implied[1:]


def branch_register(operand: Operand, expected: Operand, kind: str) -> Operand:
    """An operand that a branch says without its region, as it is implied."""
    return replace(expected, file=operand.file, type=kind, number=operand.number, sub=operand.sub)


def same_register(operand: Operand, other: Operand) -> bool:
    """Whether operands are the same but for their regions."""
    return replace(operand, vertical=other.vertical, width=other.width, horizontal=other.horizontal) == other


def macro_regions(macro_16: set[str], inst: Instruction) -> tuple[Any, OmittedFields]:
    """The regions of a math macro's operands, which its text leaves out: of a source, and of the destination."""
    if inst.opcode in macro_16:
        return lambda source: {"vertical": 2 if types.size(source.type) == 8 else 4, "width": 1, "horizontal": 0}, {"horizontal": 0}
    scalar = inst.exec_size == 1
    region = {"vertical": 0 if scalar else 2, "width": 1 if scalar else 2, "horizontal": 0 if scalar else 1}
    return lambda source: region, {"horizontal": 1}


def descriptor_operand(operand: Operand) -> Operand:
    """A message descriptor in a register: its number and sub-register are said."""
    where: OmittedFields = (
        {"address_sub": operand.address_sub, "offset": operand.offset}
        if operand.indirect
        else {"number": operand.number, "sub": operand.sub & ~3}
    )
    return Operand("grf" if operand.indirect else operand.file, ABSENT, indirect=operand.indirect, **where)


class OpcodeFormat:
    """How one opcode's operands are said, in align1 or align16."""

    def __init__(self, roles: OperandRoles, row: opcodes.Opcode, align16: bool) -> None:
        names = roles.operands.names
        self.row, self.single = row, row.sources == 1
        self.dst = roles.destination(align16)
        self.src = roles.source(align16, row.name in names.sets["bitwise"], self.single, "wide" in row.takes)
        self.send_src = roles.payload(
            row.name in names.sets["region"], row.form == "send" and "extended" not in instruction_page("EU_SEND", row.gen)
        )
        self.bare = row.name in names.sets["bare"]
        self.copied = ("copied", row.name) in names.implied


class OperandRoles:
    """Memories of what operands were said to be, one for each way to say them."""

    def __init__(self, operands: IgaOperandText) -> None:
        self.operands = operands
        self.known: dict[tuple[Any, ...], OperandTextCache] = {}
        self.place = [OperandTextCache(partial(operands.three_align1, place=place), SOURCE if place else DESTINATION) for place in range(4)]
        self.three = [OperandTextCache(partial(operands.three_source, last=last), SOURCE) for last in (False, False, True)]
        self.message = OperandTextCache(lambda operand: operands.payload(operand, "quiet_dst", False, True, 1), MESSAGE)
        self.split = OperandTextCache(partial(operands.bare, kind=ABSENT), MESSAGE)
        self.bare = OperandTextCache(operands.bare, MESSAGE)

    def destination(self, align16: bool) -> OperandTextCache:
        say = self.operands.destination_16 if align16 else self.operands.destination
        return self.known.setdefault(("dst", align16), OperandTextCache(say, DESTINATION))

    def source(self, align16: bool, bitwise: bool, single: bool, wide: bool) -> OperandTextCache:
        say = self.operands.source_16 if align16 else self.operands.source
        role = OperandTextCache(lambda operand: say(operand, bitwise, single and (wide or types.size(operand.type) > 4)), SOURCE)
        return self.known.setdefault(("src", align16, bitwise, single, wide), role)

    def payload(self, region: bool, whole: bool) -> OperandTextCache:
        role = OperandTextCache(lambda operand: self.operands.payload(operand, "quiet_src", region, whole, 0), MESSAGE)
        return self.known.setdefault(("payload", region, whole), role)

"""Decode: 128 bits become an instruction. Any bits do: what nothing says stands in the residue."""

from __future__ import annotations

from functools import cache, lru_cache

from softgen.eu.encoding.controls import NAMES
from softgen.eu.encoding.encode import InstructionForm, form
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, make_instruction

ALIGN16, FUNCTION, SFID = (4 + NAMES.index(name) for name in ("align16", "function", "sfid"))  # where they stand in a head
RECENT = 1 << 15  # instructions remembered whole


class InstructionDecoder:
    """The instructions of one generation by opcode."""

    def __init__(self, gen: float) -> None:
        self.gen, self.bits = gen, instruction_page("EU_CONTROL", gen).mask("opcode")
        self.forms: dict[int, InstructionForm] = {row.number: form(row) for row in opcodes.of_generation(gen)}

    def read(self, word: int) -> Instruction:
        number = word & self.bits
        found = self.forms.get(number)
        if found is None:
            return Instruction(self.gen, "", number, "none", residue=word ^ number)
        head, bits = found.controls.read(word)
        body = found.read(word, head[ALIGN16], head[FUNCTION])
        if body.sfid is not None:
            head = (*head[:SFID], body.sfid, *head[SFID + 1 :])
        return make_instruction(*head, *body[1:9], False, word ^ (bits | body.bits), body.absent)


@cache
def decoder(gen: float) -> InstructionDecoder:
    return InstructionDecoder(gen)


@lru_cache(RECENT)
def decode(word: int, gen: float) -> Instruction:
    """The instruction in a native word, little end first. Never raises."""
    return decoder(gen).read(word)

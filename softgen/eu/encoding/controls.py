"""The controls of an instruction, both ways: everything that is not an operand, a descriptor or a jump.

Reads   EU_CONTROL EU_CONTROL_THREE_SOURCE
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from softgen.eu.encoding.fields import BoundedCache, instruction_page
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.opcodes import THREE_SOURCE_FORMS, Opcode

# The fields of Instruction that stand in the controls, in their order there.
NAMES = tuple(field.name for field in fields(Instruction))[4:25]
DEFAULTS = tuple(field.default for field in fields(Instruction))[4:25]
INSTEAD = {"condition": ("function", "sfid", "base_mrf"), "acc_write": ("branch_control",)}  # fields an opcode may have in place of another

assert NAMES[0] == "exec_size" and NAMES[-1] == "base_mrf"

Head = tuple[tuple[Any, ...], int]  # the first fields of an Instruction, and the bits that say them


class ControlFields:
    """The controls of one opcode on one generation."""

    def __init__(self, row: Opcode) -> None:
        self.row = row
        self.page = instruction_page("EU_CONTROL_THREE_SOURCE" if row.form in THREE_SOURCE_FORMS else "EU_CONTROL", row.gen)
        out = {"compacted", "opcode"}
        for usual, others in INSTEAD.items():
            taken = [name for name in others if name in row.takes and name in self.page]
            out |= {name for name in (usual, *others) if name not in (taken or [usual])}
        if "wide" in row.takes:  # the immediate covers what controls stand in the source dwords
            covered = instruction_page("EU_SOURCE_0", row.gen).mask("immediate_64")
            out |= {name for name in self.page.fields if self.page.mask(name) & covered}
        self.names = tuple(name for name in self.page.fields if name not in out)
        self.bits = self.page.mask("opcode", *self.names)
        self.opcode = self.page.word({"opcode": row.number})
        self.heads: BoundedCache[int, Head] = BoundedCache()
        self.words: BoundedCache[tuple[Any, ...], int] = BoundedCache()

    def read(self, word: int) -> Head:
        bits = word & self.bits
        return self.heads.get(bits) or self.heads.keep(bits, self._read(bits))

    def _read(self, bits: int) -> Head:
        record, found = self.page.record(bits), {}
        for name in self.names:
            code = getattr(record, name)
            found[name] = self.page.meaning(name, code) if name == "exec_size" else bool(code) if name in self.page.flags else code
        values = tuple(found.get(name, default) for name, default in zip(NAMES, DEFAULTS, strict=True))
        return (self.row.gen, self.row.name, self.row.number, self.row.form, *values), self._word(values)

    def write(self, inst: Instruction) -> int:
        values = (inst.exec_size, inst.align16, inst.no_mask, inst.mask_control_ex, inst.no_dd_clear, inst.no_dd_check, inst.quarter,
                  inst.nibble, inst.thread_control, inst.predicate, inst.predicate_invert, inst.condition, inst.saturate, inst.acc_write,
                  inst.branch_control, inst.breakpoint, inst.flag, inst.flag_sub, inst.function, inst.sfid, inst.base_mrf)  # fmt: skip
        return self.words.get(values) or self.words.keep(values, self._word(values))

    def _word(self, values: tuple[Any, ...]) -> int:
        given = dict(zip(NAMES, values, strict=True))
        codes = {name: self.page.code(name, given[name]) if name == "exec_size" else given[name] for name in self.names}
        return self.opcode | self.page.word(codes)


@cache
def control_fields(row: Opcode) -> ControlFields:
    return ControlFields(row)

"""Records of instructions and operands."""

from __future__ import annotations

from dataclasses import fields

import pytest

from softgen.eu.isa.instruction import Instruction, Operand


@pytest.mark.parametrize("record", [Instruction(9.0, "add", 64, "basic"), Operand("grf", "d")], ids=["instruction", "operand"])
def test_what_is_not_named_is_off(record: Instruction | Operand) -> None:
    switches = [field.name for field in fields(record) if field.type == "bool"]
    codes = [field.name for field in fields(record) if field.type == "int" and field.name not in ("opcode_number", "exec_size", "width")]
    assert len(switches) > 3 and len(codes) > 3 and not any(getattr(record, name) for name in (*switches, *codes))

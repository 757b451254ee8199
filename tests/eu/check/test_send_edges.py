"""Where restrictions on sends begin: registers, lengths and descriptors on both sides of each limit."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.eu.check import restrictions as check
from softgen.eu.isa.instruction import Instruction, Operand
from tests.eu.semantics.build import NULL, arf, dst, instr, reg

HDC1, UNKNOWN = 12, 14
READ, READ_16, WRITE_16 = 0x02106E02, 0x04205E02, 0x04025E02  # untyped surface messages of hdc1: 1 register and 1, 2 and 2, 2 and none
DATA_2 = 0x8C  # an extended descriptor: two registers in the second payload
END = 0x02000010
A0 = arf(0x10, "ud", 0, "0;1,0")
ADDRESSED = Operand("grf", "ud", 0, 4, indirect=True)


def send(target: Operand | None, payload: Operand, descriptor: int | Operand, sfid: int = HDC1, **more: Any) -> Instruction:
    return instr(9, "send", target, payload, size=16, descriptor=descriptor, sfid=sfid, extended=more.pop("extended", 0), **more)


def split(first: Operand, second: Operand, descriptor: int | Operand = WRITE_16, extended: int | Operand = DATA_2, sfid: int = HDC1,
          **more: Any) -> Instruction:  # fmt: skip
    return instr(9, "sends", NULL, first, second, size=16, descriptor=descriptor, extended=extended, sfid=sfid, **more)


def last(number: int, **more: Any) -> Instruction:
    return send(NULL, reg(number, "ud"), END, 7, eot=True, **more)


@pytest.mark.parametrize("name, breaking, keeping", [
    ("payload_file", [send(dst(4), NULL, READ), split(NULL, reg(4, "ud"))], [send(dst(4), reg(2), READ), split(reg(2), NULL)]),
    ("payload_whole", [send(dst(4), reg(2, sub=16), READ), split(reg(2), reg(4, sub=4))],
     [send(dst(4), ADDRESSED, READ), split(reg(2), arf(0, "ud", 4))]),
    ("payload_last", [last(0), last(111), last(128), split(reg(120), reg(111), eot=True), split(reg(111), reg(120), eot=True)],
     [last(112), last(127), send(NULL, ADDRESSED, END, 7, eot=True), send(dst(4), reg(111), READ), split(reg(120), reg(111)),
      split(reg(120), reg(111), extended=0, eot=True), split(reg(120), reg(112), eot=True), last(120, extended=DATA_2),
      split(reg(120), reg(2), extended=A0, eot=True)]),
    ("payload_range", [send(dst(4), reg(127), READ_16), split(reg(127), reg(4)), split(reg(2), reg(127)), send(dst(4), reg(128), READ)],
     [send(dst(4), reg(126), READ_16), split(reg(126), reg(4)), split(reg(2), reg(126)), send(dst(4), reg(127), READ),
      split(reg(2), reg(127), extended=A0), split(reg(2), reg(128), sfid=UNKNOWN), send(dst(4), reg(128), A0)]),
    ("response_range", [send(dst(127), reg(2), READ_16), send(dst(128), reg(2), READ)],
     [send(dst(126), reg(2), READ_16), send(dst(127), reg(2), READ), send(None, reg(2), READ_16), send(dst(128), reg(2), A0)]),
    ("response_last", [send(dst(126), reg(125), READ_16), send(dst(126), reg(126), READ_16), send(dst(127), reg(127), READ)],
     [send(dst(125), reg(125), READ_16), send(dst(126), reg(124), READ_16), send(dst(127), reg(126), READ), send(dst(127), reg(127), A0)]),
    ("split_overlap", [split(reg(2), reg(3)), split(reg(2), reg(2)), split(reg(3), reg(2)), split(reg(0), reg(0))],
     [split(reg(2), reg(4)), split(reg(4), reg(2)), split(reg(0), NULL), split(reg(0), ADDRESSED), split(reg(2), reg(2), A0),
      split(reg(2), reg(2), extended=0), split(reg(2), reg(3), extended=A0), split(reg(2), reg(3), sfid=UNKNOWN)]),
    ("last_response", [send(dst(4), reg(127), READ, eot=True)],
     [last(127), send(dst(4), reg(127), READ), send(NULL, reg(127), A0, 7, eot=True)]),
    ("message_empty", [send(dst(4), reg(2), READ & ~0x1E000000)], [send(dst(4), reg(2), READ), send(dst(4), reg(2), A0)]),
    ("message_known", [send(dst(4), reg(2), READ, UNKNOWN), send(dst(4), reg(2), 0x0213EE02)],
     [send(dst(4), reg(2), READ), send(dst(4), reg(2), A0, UNKNOWN)]),
    ("message_fits", [send(dst(4), reg(2), READ | 1 << 12)],
     [send(dst(4), reg(2), READ), send(dst(4), reg(2), READ_16), send(dst(4), reg(2), A0), send(dst(4), reg(2), READ, UNKNOWN),
      send(dst(4), reg(2), READ & ~0x1E000000)]),  # of which message_empty tells
    ("descriptor_register", [send(dst(4), reg(2), arf(0x10, "ud", 4, "0;1,0")), send(dst(4), reg(2), arf(0x30, "ud", 0, "0;1,0")),
                             send(dst(4), reg(2), reg(0, "ud", "0;1,0"))],
     [send(dst(4), reg(2), A0), send(dst(4), reg(2), READ)]),
])  # fmt: skip
def test_sends_on_both_sides_of_a_limit(name: str, breaking: list[Instruction], keeping: list[Instruction]) -> None:
    assert [name in [row.name for row in check.check(inst)] for inst in breaking] == [True] * len(breaking)
    assert [name in [row.name for row in check.check(inst)] for inst in keeping] == [False] * len(keeping)

"""Where restrictions on regions and alignment begin: instructions on both sides of each limit."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.eu.check import restrictions as check
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from tests.eu.semantics.build import NULL, arf, dst, imm, instr, reg, scalar

ACC0, A0 = 0x20, 0x10


def mov(target: Operand, source: Operand, size: int = 8, gen: float = 9, **more: Any) -> Instruction:
    return instr(gen, "mov", target, source, size=size, **more)


def add(target: Operand, first: Operand, second: Operand, size: int = 8, gen: float = 9, **more: Any) -> Instruction:
    return instr(gen, "add", target, first, second, size=size, **more)


def by_address(kind: str, region: str) -> Operand:
    return reg(0, kind, region, indirect=True)


def rows(width: int, first: int, indirect: bool = True) -> Operand:
    """A source with an address register for each row of some elements, from a0.first on."""
    return Operand("grf", "w", 2, indirect=indirect, address_sub=first, vertical=VXH, width=width, horizontal=int(width > 1))


def sixteen(first: Operand, second: Operand, gen: float = 9, **more: Any) -> Instruction:
    return add(dst(4, "f"), first, second, gen=gen, align16=True, **more)


BROKEN_AND_KEPT: list[tuple[str, list[Instruction], list[Instruction]]] = [
    ("destination_stride", [mov(dst(4, stride=0), reg(2))], [mov(NULL, reg(2)), mov(dst(4, stride=0), reg(2), align16=True)]),
    ("width_fits", [mov(dst(4), reg(2), size=4), add(dst(4), reg(2, "d", "4;4,1"), reg(6), size=4)],
     [mov(dst(4), reg(2, "d", "4;4,1"), size=4), mov(dst(4), reg(2), size=4, align16=True), mov(dst(4), arf(0, "d"), size=4)]),
    ("scalar_width", [mov(dst(4), reg(2, "d", "0;2,0"))], [mov(dst(4), reg(2, "d", "0;2,1")), mov(dst(4), reg(2, "d", "2;2,0"))]),
    ("single", [mov(dst(4), reg(2, "d", region), size=1) for region in ("1;1,0", "0;1,1", "4;1,0")],
     [mov(dst(4), scalar(2), size=1), mov(dst(4), reg(2, "d", "1;1,0"), size=2)]),
    ("row_in_register", [mov(dst(4, "ub"), reg(2, "ub", "2;2,1", 31), size=2), mov(dst(4), reg(2, "d", "16;16,1"), size=16),
                         mov(dst(4), reg(2, "d", "2;2,1", 28), size=2), mov(dst(4), reg(2, "d", "2;2,1", 4))],
     [mov(dst(4, "ub"), reg(2, "ub", "2;2,1", 30), size=2), mov(dst(4), by_address("d", "16;16,1"), size=16),
      mov(dst(4), arf(ACC0, "d", 0, "16;16,1"), size=16), mov(dst(4), reg(2, "d", "2;2,1", 24), size=2)]),
    ("source_span", [mov(dst(4, "df"), reg(2, "df", "4;4,1", 8), size=16, gen=7), mov(dst(4), reg(2, "d", "16;4,1", 16)), mov(dst(4),
         reg(2, "d", "32;4,1"))],
     [mov(dst(4), reg(2, "d", "8;4,1", 16)), mov(dst(4), by_address("d", "32;4,1")), mov(dst(4), arf(ACC0, "d", 0, "32;4,1")),
      mov(dst(4, "df"), reg(2, "df", "4;4,1", 0), size=8, gen=7), mov(dst(4, "df"), reg(2, "df", "4;4,1"), gen=8)]),
    ("destination_span", [mov(dst(4, "d", 2, 8), reg(2)), mov(dst(4, "d", 4, 4), reg(2, "d", "8;8,1"), size=16),
                          mov(dst(4, "df", 2), reg(2, "df", "4;4,1"), gen=8)],
     [mov(dst(4, "d", 2, 4), reg(2)), mov(dst(4, "d", 4), scalar(2), size=4), mov(dst(4, "df", 2), reg(2, "df", "4;4,1"), gen=7),
      mov(dst(4, "d", 4, indirect=True), reg(2)), mov(dst(4, "d", 4), reg(2), align16=True)]),
    ("even_split", [mov(dst(4, "d", 1, 4), reg(2), gen=8), mov(dst(4, "d", 1, 28), scalar(2), size=4, gen=8),
                    mov(dst(4, "d", 1, 4), reg(2), size=8, gen=4.5)],
     [mov(dst(4, "d", 2), reg(2), gen=8), mov(dst(4, "d", 4, 4), scalar(2), size=4, gen=8), mov(dst(4, "d", 1, 28), scalar(2),
      size=2, gen=8),
      mov(dst(4, "d", 1, 28), scalar(2), size=1, gen=8), mov(arf(ACC0, "d", 4), reg(2), gen=8),
      mov(dst(4, "d", 1, 4, indirect=True), reg(2), gen=8), mov(dst(4, "d", 1, 4), reg(2), gen=8, align16=True)]),
    ("destination_ratio", [mov(dst(4, "w"), reg(2)), mov(dst(4, "w"), reg(2), size=2), mov(dst(4, "w"), reg(2, "f")),
                           mov(dst(4, "b", 2), reg(2)), mov(dst(4, "hf"), reg(2)), mov(dst(4, "w"), imm(0, "vf")),
                           mov(dst(4, "d"), reg(2, "df", "4;4,1"), gen=8), add(dst(4, "w"), reg(2, "w"), reg(6)),
                           mov(dst(4, "w", 4), reg(2), size=4)],
     [mov(dst(4, "w", 2), reg(2)), mov(dst(4, "w"), reg(2), size=1), mov(dst(4, "b", 4), reg(2)), mov(dst(4, "b", 4), reg(2, "b")),
      mov(dst(4, "b", 2), reg(2, "b")), mov(dst(4, "ub", 2), reg(2, "uw")), mov(dst(4, "w"), imm(0, "v")), mov(dst(4, "uw"), imm(0, "uv")),
      mov(dst(4, "hf"), reg(2, "f")), mov(dst(4, "f", 2), reg(2, "hf")), add(dst(4, "w"), reg(2, "hf"), reg(6, "f")),
      mov(dst(4, "d", 4), reg(2, "w"), size=4), mov(dst(4, "d"), reg(2, "df", "4;4,1"), gen=7), mov(dst(4, "w"), NULL),
      mov(dst(4, "b", 2), NULL), mov(NULL, reg(2, "df", "4;4,1"), gen=8), mov(dst(4, "b"), reg(2, "w")), mov(dst(4, ""), reg(2, "df"),
      gen=8),
      mov(dst(4, "w", indirect=True), reg(2)), mov(dst(4, "w"), reg(2), align16=True), mov(dst(4, "ub", 2), reg(2, ""))]),
    ("destination_offset", [mov(dst(4, "w", 2, 2), reg(2)), mov(dst(4, "b", 4, 2), reg(2), size=4), mov(dst(4, "b", 4, 3), reg(2), size=4),
                            mov(dst(4, "hf", 2, 2), reg(2)), mov(dst(4, "d", 2, 4), reg(2, "df", "4;4,1"), size=2, gen=8)],
     [mov(dst(4, "w", 2, 4), reg(2)), mov(dst(4, "b", 4, 1), reg(2), size=4), mov(dst(4, "w", 2, 2), reg(2), size=1),
      mov(dst(4, "hf", 2, 2), reg(2, "f")), mov(arf(A0, "uw", 2, "0;1,2"), reg(2, "ud"), size=2), mov(dst(4, "d", 1, 2), reg(2)),
      mov(dst(4, "b", 2, 3), reg(2, "b")), mov(dst(4, "w", 1, 2), reg(2, "w")), mov(dst(4, "d", 2, 4), reg(2, "df", "4;4,1"),
      size=2, gen=7)]),
    ("packed_bytes", [mov(dst(4, "ub"), reg(2, "ub"), saturate=True), mov(dst(4, "ub"), reg(2, "ub"), condition=1),
                      mov(dst(4, "b"), reg(2, "ub", absolute=True)), mov(dst(4, "b"), reg(2, "ub", negate=True)),
                      mov(dst(4, "ub"), reg(2, "w")), instr(9, "not", dst(4, "ub"), reg(2, "ub")), mov(dst(4, "ub"), reg(2, "w"), size=2)],
     [mov(dst(4, "ub"), reg(2, "b")), mov(dst(4, "b"), reg(2, "ub")), mov(dst(4, "ub", 2), reg(2, "w")), mov(dst(4, "ub"), reg(2, "w"),
      size=1),
      instr(9, "movi", dst(4, "ub"), by_address("ub", "1;1,0")), mov(dst(4, "w"), reg(2, "b"))]),
    ("two_registers", [mov(dst(4), reg(2, "ub", "1;1,0"), size=16, gen=7), mov(dst(4), reg(2, "ub", "16;16,1"), size=16, gen=7),
         add(dst(4), reg(2), reg(6, "b", "16;16,1"), size=16, gen=7),
                       mov(dst(4), reg(2, "w", "1;2,0"), size=16, gen=7), mov(dst(4, "d", 2), reg(2, "w"), gen=7),
                       mov(dst(4, "w", 4), reg(2, "w"), gen=7),
                       mov(Operand("mrf", "d", 4, horizontal=1), reg(2, "ub", "16;16,1"), size=16, gen=4.5)],
     [mov(dst(4), reg(2), size=16, gen=7), mov(dst(4), scalar(2, "ub"), size=16, gen=7), mov(dst(4), reg(2, "w"), size=16, gen=7),
      mov(dst(4), imm(1), size=16, gen=7), mov(dst(4), by_address("ub", "16;16,1"), size=16, gen=7), mov(dst(4, "w"), reg(2, "ub"), gen=7),
      mov(dst(4), arf(ACC0, "w", 0, "16;16,1"), size=16, gen=7), mov(arf(ACC0, "d"), reg(2, "ub", "16;16,1"), size=16, gen=7),
      mov(dst(4, "d", 1, 30), reg(2, "ub"), size=1, gen=7), mov(dst(4), reg(2, "ub", "16;16,1"), size=16, gen=8)]),
    ("vector_immediate", [mov(dst(4, kind, sub=8), imm(0, source)) for kind, source in (("w", "v"), ("uw", "uv"), ("f", "vf"))],
     [mov(dst(4, "w", sub=8), imm(0, "w")), mov(dst(4, "w", sub=16), imm(0, "v")), mov(dst(4, "w", sub=8), imm(0, "v"), align16=True),
      mov(dst(4, "w", sub=8), reg(2, "w"))]),
    ("natural", [mov(dst(4, "d", 1, 2), scalar(2), size=1), mov(dst(4), scalar(2, "d", 2), size=1), mov(dst(4, "q"), scalar(2, "q", 4),
         size=1),
                 instr(9, "mad", dst(4, "f", sub=2), reg(2, "f"), reg(6, "f"), reg(8, "f"))],
     [mov(dst(4, "b", 1, 3), scalar(2, "b", 1), size=1), mov(dst(4), reg(2, sub=2, indirect=True), size=1), instr(9, "mov", None, reg(2)),
      mov(dst(4), arf(0, "d", 2)), mov(dst(4, "d", 1, 2, indirect=True), reg(2)),
      instr(9, "send", dst(4, "ud"), reg(2, "ud", sub=2), descriptor=0x02106E02, sfid=12)]),
    ("register_range", [mov(dst(4), scalar(128), size=1), mov(dst(128), scalar(2), size=1), mov(dst(127, "d", 1, 4), reg(2)),
                        mov(dst(4), reg(127, "d", "8;4,1")), add(dst(4), reg(2), reg(127, "d", "4;4,1", 4))],
     [mov(dst(127), reg(127)), mov(dst(127, "d", 1, 28), scalar(127, "d", 28), size=1), mov(dst(4), reg(127, "f", "4;1,0"), align16=True),
      mov(dst(4), reg(127, "d", "8;4,1", indirect=True)), mov(arf(0x80), scalar(2), size=1, thread_control=2),
      mov(dst(127, "d", 2, indirect=True), reg(2))]),
    ("align16_destination", [mov(dst(4, "f", 2), reg(2, "f"), align16=True), mov(dst(4, "f", 0), reg(2, "f"), align16=True)],
     [mov(dst(4, "f"), reg(2, "f"), align16=True), mov(dst(4, "f", 2), reg(2, "f")), mov(dst(4, "f", 2, special=3), reg(2, "f"),
      align16=True),
      instr(9, "mov", None, reg(2, "f", "4;4,1"), align16=True)]),
    ("align16_stride", [sixteen(reg(2, "f", "4;4,1"), reg(6, "f", f"{stride};4,1"), gen) for stride in (1, 2, 8) for gen in (4.5, 7)],
     [*(sixteen(reg(2, "f", "4;4,1"), reg(6, "f", f"{stride};4,1"), gen) for stride in (0, 4) for gen in (4.5, 7)),
      sixteen(reg(2, "f", "4;4,1"), arf(0, "f"), 7), sixteen(reg(2, "f", "4;4,1"), imm(0, "f"), 7), add(dst(4, "f"), reg(2, "f"),
      reg(6, "f"), gen=7),
      sixteen(reg(2, "f", "2;4,1"), reg(6, "f", "4;4,1"), 7.5)]),
    ("align16_stride_two", [sixteen(reg(6, "f", f"{stride};4,1"), reg(2, "f", "4;4,1"), gen) for stride in (1, 8) for gen in (7.5, 9)],
     [*(sixteen(reg(2, "f", f"{stride};4,1"), reg(6, "f", "4;4,1"), gen) for stride in (0, 2, 4) for gen in (7.5, 9)),
      sixteen(reg(2, "f", "4;4,1"), arf(0, "f"))]),
    ("vxh_indirect", [mov(dst(4, "w"), rows(1, 0, False)), add(dst(4, "w"), reg(2, "w"), rows(1, 0, False)),
                      add(dst(4, "w"), rows(1, 0, False), reg(2, "w"))], [mov(dst(4, "w"), rows(1, 0)), mov(dst(4, "w"), reg(2, "w"))]),
    ("per_channel_width", [mov(dst(4, "w"), rows(1, 0), size=16, gen=7), add(dst(4, "w"), rows(1, 0), reg(2, "w"), size=16, gen=7)],
     [mov(dst(4, "w"), rows(1, 0), gen=7), mov(dst(4, "w"), rows(2, 0), size=16, gen=7), mov(dst(4, "w"), rows(1, 0, False),
      size=16, gen=7),
      mov(dst(4, "w"), reg(0, "w", "1;1,0", indirect=True), size=16, gen=7), mov(dst(4, "w"), rows(1, 0), size=16, gen=8)]),
    ("vxh_group", [mov(dst(4, "w"), rows(4, 1)), mov(dst(4, "w"), rows(2, 2)), mov(dst(4, "w"), rows(1, 4)),
                   add(dst(4, "w"), reg(2, "w"), rows(4, 1))],
     [mov(dst(4, "w"), rows(4, 2)), mov(dst(4, "w"), rows(8, 3)), mov(dst(4, "w"), rows(8, 3), size=4), mov(dst(4, "w"), rows(4, 1, False)),
      mov(dst(4, "w"), reg(0, "w", "4;4,1", indirect=True, address_sub=1))]),
]  # fmt: skip


@pytest.mark.parametrize("name, breaking, keeping", BROKEN_AND_KEPT)
def test_regions_on_both_sides_of_a_limit(name: str, breaking: list[Instruction], keeping: list[Instruction]) -> None:
    assert [name in [row.name for row in check.check(inst)] for inst in breaking] == [True] * len(breaking)
    assert [name in [row.name for row in check.check(inst)] for inst in keeping] == [False] * len(keeping)

"""Comparisons of floats: the six tables of the manual (IVB 949-1025), every pair of classes, on every engine.

The table of "greater than" is printed with two rows moved by one column: +Fin > +inf and +inf > +inf are false, as the other tables say.
"""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from tests.conftest import every
from tests.eu.semantics.build import GE, LE, NZ, G, L, Z, arf, dst, engine, instr, reg, run, thread  # noqa: F401

CLASSES = ("-inf", "-fin", "-den", "-0", "+0", "+den", "+fin", "+inf", "nan")
# Rows are source 0, columns source 1. v: as the values are; d: so, where denormals are kept, else as for zeros of their sign.
TABLES = {
    G: "FFFFFFFFF TvFFFFFFF TTdddFFFF TTdFFFFFF TTdFFFFFF TTddddFFF TTTTTTvFF TTTTTTTFF FFFFFFFFF",
    L: "FTTTTTTTF FvTTTTTTF FFddddTTF FFFFFdTTF FFFFFdTTF FFFFFdTTF FFFFFFvTF FFFFFFFFF FFFFFFFFF",
    Z: "TFFFFFFFF FvFFFFFFF FFddddFFF FFdTTdFFF FFdTTdFFF FFddddFFF FFFFFFvFF FFFFFFFTF FFFFFFFFF",
    NZ: "FTTTTTTTT TvTTTTTTT TTddddTTT TTdFFdTTT TTdFFdTTT TTddddTTT TTTTTTvTT TTTTTTTFT TTTTTTTTT",
    LE: "TTTTTTTTF FvTTTTTTF FFddddTTF FFdTTdTTF FFdTTdTTF FFddddTTF FFFFFFvTF FFFFFFFTF FFFFFFFFF",
    GE: "TFFFFFFFF TvFFFFFFF TTddddFFF TTdTTdFFF TTdTTdFFF TTddddFFF TTTTTTvFF TTTTTTTTF FFFFFFFFF",
}
COMPARE = {G: operator.gt, L: operator.lt, Z: operator.eq, NZ: operator.ne, LE: operator.le, GE: operator.ge}
SMALL = {"f": (1e-40, 3e-39), "df": (5e-324, 1e-310)}  # denormals
KEEP_DOUBLES = 1 << 6


def members(name: str, kind: str) -> tuple[float, ...]:
    small, larger = SMALL[kind]
    sign = -1.0 if name[0] == "-" else 1.0
    found = {"inf": (np.inf,), "fin": (1.5, 2.75), "den": (small, larger), "0": (0.0,), "nan": (np.nan,)}[name.lstrip("+-")]
    return tuple(sign * value for value in found)


def expected(condition: int, row: int, column: int, a: float, b: float, keeps: bool) -> bool:
    entry = TABLES[condition].split()[row][column]
    if entry == "d" and not keeps:
        a, b = (0.0 if "den" in CLASSES[number] else value for number, value in ((row, a), (column, b)))
    return entry == "T" if entry in "TF" else bool(COMPARE[condition](a, b))


def compared(kind: str, control: int, condition: int, pairs: list[tuple[float, float]], opcode: str = "cmp") -> list[bool]:
    """The flag of each pair, of eight channels an instruction; a double counts as two elements and has one flag."""
    dtype, count = {"f": (np.float32, 8), "df": (np.float64, 4)}[kind]
    padded = np.array(pairs + [(0.0, 0.0)] * (-len(pairs) % count), dtype)
    registers = len(padded) // count
    made = thread(7, 0xFF, **{"r2": padded[:, 0].copy(), f"r{2 + registers}": padded[:, 1].copy()})
    made.dwords("cr")[0] = control
    items = []
    for number in range(registers):
        sources = reg(2 + number, kind), reg(2 + registers + number, kind)
        items += [instr(7, opcode, arf(0, kind), *sources, condition=condition),
                  instr(7, "mov", dst(110, "uw", sub=2 * number), arf(0x30, "uw", 0, "0;1,0"), size=1, no_mask=True)]  # fmt: skip
    run(made, *items)
    flags = made.grf[110 * 32 : 110 * 32 + 2 * registers].view(np.uint16)
    return [bool(int(flags[n // count]) >> n % count & 1) for n in range(len(pairs))]


@pytest.mark.behaviour("EU-83", "EU-84", "EU-85", shows="action")
@pytest.mark.parametrize("condition, kind, control", every(3, itertools.product(TABLES, ("f", "df"), (0, KEEP_DOUBLES))))
def test_every_class_against_every_class(condition: int, kind: str, control: int) -> None:
    """Denormals of F are zeros of their sign whatever cr0 says; those of DF as cr0 says (IVB 943-947)."""
    cases = [(row, column, a, b) for row, column in itertools.product(range(9), repeat=2)
             for a in members(CLASSES[row], kind) for b in members(CLASSES[column], kind)]  # fmt: skip
    keeps = kind == "df" and control == KEEP_DOUBLES
    half = len(cases) // 2
    found = [flag for part in (cases[:half], cases[half:]) for flag in compared(kind, control, condition, [case[2:] for case in part])]
    wrong = [(CLASSES[row], CLASSES[column], a, b) for (row, column, a, b), flag in zip(cases, found, strict=True)
             if flag != expected(condition, row, column, a, b, keeps)]  # fmt: skip
    assert not wrong and len(cases) == 169


@pytest.mark.behaviour("EU-83", shows="action")
@pytest.mark.parametrize("condition", [L, GE])
def test_compares_that_look_at_nan_have_the_same_tables_for_numbers(condition: int) -> None:
    cases = [(row, column, a, b) for row, column in itertools.product(range(8), repeat=2)
             for a in members(CLASSES[row], "f") for b in members(CLASSES[column], "f")]  # fmt: skip
    found = compared("f", 0, condition, [case[2:] for case in cases], "cmpn")
    assert found == [expected(condition, *case, False) for case in cases]

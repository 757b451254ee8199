"""Reserved bits that are set, and required ones that are not, are reported run by run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from softgen.bits import describe
from softgen.bits.page import read

PAGE = """source BDW
structure S
  gen 8  3..4 dwords
    0  15:8  a
    1  63:40 b
    2  3     must  mbo
       1:0   never mbz
    3  31:4  c
"""
S = read("p", PAGE)["S", 8.0]
FREE = ~(0xFF << 8 | (1 << 64 + 32) - (1 << 72) | 1 << 67 | ((1 << 28) - 1) << 100) & (1 << 128) - 1


def one_by_one(dwords: list[int]) -> list[tuple[int, int, int]]:
    """The same, bit by bit."""
    number = sum(dword << 32 * i for i, dword in enumerate(dwords))
    end = 32 * min(len(dwords), 4)
    wrong = [bool(number >> bit & 1) if FREE >> bit & 1 else bit == 67 and not number >> bit & 1 for bit in range(end)]
    runs: list[tuple[int, int, int]] = []
    for bit in (bit for bit in range(end) if wrong[bit]):
        _high, low, value = runs.pop() if runs and runs[-1][0] == bit - 1 and bit % 32 else (bit, bit, 0)
        runs.append((bit, low, value | (number >> bit & 1) << bit - low))
    return runs


@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=3, max_size=6))
def test_runs_are_those_found_bit_by_bit(dwords: list[int]) -> None:
    assert [tuple(run) for run in describe.reserved(S, dwords)] == one_by_one(dwords)


def test_of_dwords_past_the_longest_form_nothing_is_said() -> None:
    assert describe.reserved(S, [0, 0, 8, 0] + [0xFFFFFFFF] * 60000) == []


def test_of_dwords_that_are_missing_nothing_is_said() -> None:
    """Bit 3 of dword 2 must be one."""
    assert describe.reserved(S, [0xFF00, 0]) == [] and describe.reserved(S, []) == []
    assert describe.reserved(S, [0xFF00, 0, 0]) == [(67, 67, 0)]


def test_how_a_run_reads() -> None:
    assert [str(run) for run in describe.reserved(S, [0xE0000001, 0, 0, 0])] == [
        "dword 0 bit 0 = 0x1", "dword 0 bits 31:29 = 0x7", "dword 2 bit 3 = 0x0"]  # fmt: skip

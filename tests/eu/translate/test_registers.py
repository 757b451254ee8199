"""Registers of a kernel: what is used together is one part; reads and writes of any region find their bytes in it."""

from __future__ import annotations

import pytest

from softgen.eu.thread.block import ThreadStatus
from softgen.eu.translate.liveness import Exit, Segment, compute_liveness
from softgen.eu.translate.registers import TRUE, RegisterAccess, RegisterPartition
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import f32, u8, u16, u32, u64


def reads(*spans: tuple[int, int]) -> RegisterPartition:
    made = RegisterPartition(LlvmMachine())
    made.accesses = [RegisterAccess("grf", u32, tuple(range(start, end, 4)), "%x") for start, end in spans]
    made.partition()
    return made


@pytest.mark.parametrize("spans, parts", [
    ([(0, 32), (32, 64)], [(0, 32), (32, 64)]),                 # side by side is not together
    ([(0, 96), (32, 64)], [(0, 96)]),
    ([(0, 32), (16, 48), (8, 56)], [(0, 32), (32, 56)]),        # no access uses all of it
    ([(0, 64), (32, 96)], [(0, 32), (32, 64), (64, 96)]),
    ([(0, 32), (16, 64)], [(0, 64)]),                           # a power of 2
    ([(0, 64), (32, 96), (64, 128)], [(0, 128)]),
    ([(0, 160), (32, 64)], [(at, at + 32) for at in range(0, 160, 32)]),
    ([(4, 8), (12, 16)], [(4, 8), (12, 16)]),
])  # fmt: skip
def test_bytes_used_together_are_one_part(spans: list[tuple[int, int]], parts: list[tuple[int, int]]) -> None:
    assert [(part.start, part.end) for part in reads(*spans).all()] == parts


def test_registers_in_ever_other_company_are_parts_by_themselves() -> None:
    made = reads(*((start, start + 64) for start in range(0, 192, 32)))
    assert [(part.start, part.end) for part in made.all()] == [(at, at + 32) for at in range(0, 224, 32)]
    assert [part.start for part in made.covering(made.accesses[1])] == [32, 64]


def test_what_an_address_reaches_stays_in_the_block() -> None:
    made = RegisterPartition(LlvmMachine())
    made.accesses, made.in_block = [RegisterAccess("grf", f32, (0, 4), "%x")], {"grf"}
    made.partition()
    assert not next(iter(made.all())).variable


def test_parts_know_whether_they_are_written() -> None:
    """Those that are only read need not be stored when the function is left."""
    made = RegisterPartition(LlvmMachine())
    made.accesses = [RegisterAccess("grf", u32, (0, 4), "%x"), RegisterAccess("grf", u32, (32, 36), value="%v", mask="%m"),
                     RegisterAccess("grf", u32, (64,), "%y"), RegisterAccess("grf", u32, (64, 68), value="%v")]  # fmt: skip
    made.partition()
    assert {part.start: part.written for part in made.all()} == {0: False, 32: True, 64: True}


def test_elements_across_others_are_taken_as_bytes() -> None:
    made = RegisterPartition(LlvmMachine())
    across, plain = RegisterAccess("grf", u32, (2, 6), "%x"), RegisterAccess("grf", u16, (4, 8), "%y")
    made.accesses = [across, plain, RegisterAccess("grf", u64, (0, 8), "%z"), RegisterAccess("grf", u8, (15,), "%w")]
    made.partition()
    parts = made.covering(across)
    assert made._elements(across, parts) == (u8, 16, [2, 3, 4, 5, 6, 7, 8, 9])
    assert made._elements(plain, parts) == (u16, 8, [2, 4])


@pytest.mark.parametrize("narrow, wide, parts", [
    ((4, 8), (8,), [(0, 16)]), ((16, 20), (8, 16), [(8, 24)]), ((12, 16), (8,), [(8, 24)]), ((4,), (8,), [(4, 8), (8, 16)]),
    ((28, 32), (32,), [(24, 40)]),
])  # fmt: skip
def test_a_part_with_elements_of_eight_bytes_begins_and_ends_at_one(
    narrow: tuple[int, ...], wide: tuple[int, ...], parts: list[tuple[int, int]]
) -> None:
    """Whichever of the accesses that share its bytes has them."""
    made = RegisterPartition(LlvmMachine())
    made.accesses = [RegisterAccess("grf", u32, narrow, "%x"), RegisterAccess("grf", u64, wide, "%y")]
    made.partition()
    assert [(part.start, part.end) for part in made.all()] == parts


def test_what_may_still_be_read() -> None:
    """A part written whole is not needed before; one written under a mask is."""
    made = RegisterPartition(LlvmMachine())
    whole, masked = RegisterAccess("grf", u32, (0, 4), value="%v"), RegisterAccess("grf", u32, (32, 36), value="%v", mask="%m")
    use = [RegisterAccess("grf", u32, (0, 4), "%a"), RegisterAccess("grf", u32, (32, 36), "%b")]
    made.accesses = [whole, masked, *use]
    made.partition()
    parts = list(made.all())
    leave = Exit("out", ThreadStatus.OUT_OF_BUDGET, 16, 0, frozenset())
    first, second = Segment(0, True, [whole, masked, leave], {16}), Segment(16, True, list(use))
    compute_liveness({0: first, 16: second}, made, parts, 0, observe=False)
    assert (first.live_in, second.live_in, leave.live) == (0b10, 0b11, 0b11)
    gone = Exit("end", ThreadStatus.ENDED, 32, 0, frozenset())
    second.items.append(gone)
    compute_liveness({0: first, 16: second}, made, parts, 0, observe=True)
    assert gone.live == 0b11 and whole.mask == TRUE

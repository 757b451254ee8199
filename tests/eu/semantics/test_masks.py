"""Which channels an instruction writes: dispatch, predicates of all kinds, quarters, flags, accumulators."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.rules import rules
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import NZ, arf, branch, dst, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

COUNT = np.arange(32, dtype=np.int32)


def written(made: ThreadState, number: int = 20, count: int = 16) -> int:
    """A bit for each dword that is no longer 0."""
    held = made.grf[number * 32 :].view(np.int32)[:count]
    return sum(1 << index for index, value in enumerate(held) if value)


def mark(gen: float, size: int = 16, **controls: object) -> object:
    return instr(gen, "mov", dst(20), imm(1), size=size, **controls)


@pytest.mark.behaviour("EU-08", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_channels_that_were_not_dispatched_do_nothing(gen: float) -> None:
    made = thread(gen, 0x00A5)
    run(made, mark(gen))
    assert written(made) == 0xA5


@pytest.mark.parametrize("gen", GENERATIONS)
def test_no_mask_writes_them_all_the_same(gen: float) -> None:
    made = thread(gen, 0x00A5)
    run(made, mark(gen, no_mask=True))
    assert written(made) == 0xFFFF


@pytest.mark.behaviour("KBL-EU-09", shows="action")
@pytest.mark.parametrize("no_mask", [False, True])
def test_no_mask_does_not_ask_where_a_channel_is(no_mask: bool) -> None:
    """Inside an `if` that half of the channels have jumped over (KBL 6899-6909)."""
    made = thread(9, r4=COUNT)
    run(made, instr(9, "cmp", arf(0, "d"), reg(4), imm(4), condition=5), branch(9, "if", "end", "end", predicate=1),
        mark(9, 8, no_mask=no_mask), "end", branch(9, "endif", "after"), "after")
    assert written(made, count=8) == (0xFF if no_mask else 0x0F)


@pytest.mark.behaviour("KBL-EU-09", shows="action")
def test_predication_applies_under_no_mask() -> None:
    made = thread(9, 0x0001)
    made.dwords("f")[0] = 0xF00F
    run(made, mark(9, no_mask=True, predicate=1))
    assert written(made) == 0xF00F


@pytest.mark.behaviour("EU-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("control", "flag", "want"), [
    (1, 0x8421, 0x8421), (4, 0x8421, 0xCC33), (5, 0xC3A0, 0xC300), (6, 0x8020, 0xF0F0), (7, 0xF7E0, 0xF000), (8, 0x0100, 0xFF00),
    (9, 0xFFFE, 0xFF00), (10, 0x0001, 0xFFFF), (10, 0, 0), (11, 0xFFFF, 0xFFFF), (11, 0xFFFE, 0), (12, 0x10000, 0xFFFF), (13,
    0x0000FFFF, 0),
    (13, 0xFFFFFFFF, 0xFFFF)])
@pytest.mark.parametrize("gen", [7, 9])
def test_predicate_controls(gen: float, control: int, flag: int, want: int) -> None:
    for invert in (False, True):
        made = thread(gen, 0xFFFF)
        made.dwords("f")[0] = flag
        run(made, mark(gen, predicate=control, predicate_invert=invert))
        assert written(made) == (want ^ 0xFFFF if invert else want)      # inversion comes last (KBL 7500-7510)


def test_groups_of_a_predicate_reach_beyond_the_instruction() -> None:
    """Sixteen channels from the first of them, whichever quarter asks."""
    for flag, want in ((0x0001, 0xFF), (0x10000, 0)):
        made = thread(9, 0xFF00)
        made.dwords("f")[0] = flag
        run(made, mark(9, 8, quarter=1, predicate=10))
        assert written(made, count=8) == want


@pytest.mark.parametrize(("control", "flag", "want"), [(12, 0x10, 0xFFFF), (12, 0, 0), (13, 0xFFFFFFFF, 0xFFFF), (13, 0xFFFFFFFE, 0)])
def test_groups_beyond_the_flags_begin_with_the_first_again(control: int, flag: int, want: int) -> None:
    """Sixteen channels from flag 24 on, in groups of 32, of a register with 32 flags."""
    made = thread(4.5, 0xFFFF)
    made.dwords("f")[0] = flag
    run(made, mark(4.5, predicate=control, flag_sub=1, quarter=1, no_mask=True))
    assert written(made) == want


def test_vertical_predicates() -> None:
    for gen, other in ((4.5, 16), (7, 32), (9, 32)):
        for control, want in ((2, 0x00EE), (3, 0x0088)):
            made = thread(gen, 0xFFFF)
            flags = 0x00AA | 0x00CC << other
            made.arf["f"][:] = memoryview(flags.to_bytes(8, "little")[: len(made.arf["f"])])
            run(made, mark(gen, predicate=control))
            assert written(made) == want


@pytest.mark.parametrize(("control", "want"), [(1, 0x5A), (2, 0xF0), (3, 0x0F), (4, 0xF0), (5, 0x0F), (6,
    0xFF), (7, 0)])
def test_align16_predicates(control: int, want: int) -> None:
    made = thread(8)
    made.dwords("f")[0] = 0x5A
    target = Operand("grf", "d", 20, horizontal=1, write_mask=15)
    run(made, instr(8, "mov", target, imm(1), predicate=control, align16=True))
    assert written(made) == want


@pytest.mark.behaviour("EU-32", "EU-175", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("flag, sub", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("gen", [7, 9])
def test_a_condition_goes_to_the_flag_that_the_predicate_comes_from(gen: float, flag: int, sub: int) -> None:
    """Channels 1, 2 and 4 to 6 run; of them 4 to 6 are above 3 (IVB 2072-2074)."""
    made = thread(gen, 0xFFFF, r4=COUNT)
    flags = made.arf["f"].view(np.uint16)
    flags[:] = 0xAAAA
    flags[flag * 2 + sub] = 0b0111_0110
    run(made, instr(gen, "cmp", arf(0, "d"), reg(4), imm(3), condition=3, predicate=1, flag=flag, flag_sub=sub))
    assert flags[flag * 2 + sub] == 0b0111_0000 and sorted(flags)[1:] == [0xAAAA] * 3


def test_flag_registers_and_their_halves() -> None:
    for flag, sub in ((0, 0), (0, 1), (1, 0), (1, 1)):
        made = thread(9, 0xFFFF)
        made.arf["f"].view(np.uint16)[flag * 2 + sub] = 0x1248
        run(made, mark(9, predicate=1, flag=flag, flag_sub=sub))
        assert written(made) == 0x1248


@pytest.mark.behaviour("KBL-EU-02", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
@pytest.mark.parametrize("size, quarter, nibble", [(4, 0, 0), (4, 0, 1), (4, 3, 1), (8, 0, 0), (8, 2, 0), (16, 0, 0), (16, 2, 0),
                                                   (32, 0, 0)])
def test_a_group_has_its_masks_and_flags_and_its_size(gen: float, size: int, quarter: int, nibble: int) -> None:
    """Dispatched channels and flags differ in every group; inverted or not, none but `size` of them count (KBL 7493-7571)."""
    mask, flags, first = 0xF7E96BD5, 0x9A3CC5A6, 8 * quarter + 4 * nibble
    for invert in (False, True):
        made = thread(gen, mask, r4=np.ones(64, np.int16))
        made.dwords("f")[0] = flags
        run(made, instr(gen, "mov", dst(20, "w"), reg(4, "w"), size=size, quarter=quarter, nibble=nibble, predicate=1,
                      predicate_invert=invert))
        held = made.grf[640:704].view(np.int16)
        wanted = mask & (~flags if invert else flags)
        assert list(held) == [wanted >> first + lane & 1 if lane < size else 0 for lane in range(32)]


@pytest.mark.behaviour("EU-119", "EU-174", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_quarters_choose_channels_and_flags(gen: float) -> None:
    made = thread(gen, 0x0F00)
    made.dwords("f")[0] = 0x0500
    run(made, mark(gen, 8, quarter=1, predicate=1))
    assert written(made, count=8) == 0x05
    made = thread(gen, 0xF000)
    run(made, mark(gen, 4, quarter=1, nibble=1))
    assert written(made, count=8) == 0x0F
    made = thread(gen, 0xFFFF0000)
    run(made, mark(gen, 16, quarter=2))
    assert written(made) == 0xFFFF


def test_compression_control_of_the_oldest() -> None:
    made = thread(4.5, 0x0F00)
    run(made, mark(4.5, 8, quarter=1))
    assert written(made, count=8) == 0x0F
    made = thread(4.5, 0x0F0F)
    run(made, mark(4.5, 16, quarter=2))
    assert written(made) == 0x0F0F


def test_a_condition_writes_the_flag_of_its_quarter() -> None:
    made = thread(9, 0xFFFFFFFF, r4=COUNT)
    run(made, instr(9, "mov", dst(20), reg(4), condition=NZ, quarter=2, flag=1))
    assert made.flags == 0xFE << 32 + 16


@pytest.mark.behaviour("EU-177", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_flags_of_channels_that_do_not_run_stay(gen: float) -> None:
    made = thread(gen, 0x0F, r4=COUNT)
    made.dwords("f")[0] = 0xAAAA
    run(made, instr(gen, "cmp", arf(0, "d"), reg(4), imm(2), condition=1))
    assert made.flags == 0xAAA4


@pytest.mark.behaviour("EU-33", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_null_still_updates_flags_and_accumulator(gen: float) -> None:
    made = thread(gen, r4=COUNT)
    made.dwords("f")[0] = 0xFF0F
    run(made, instr(gen, "add", arf(0, "d"), reg(4), imm(-3 & 0xFFFFFFFF), condition=3, acc_write=True))
    assert made.flags == 0xFFF0          # above 0 are channels 4 to 7
    assert list(made.dwords("acc")[:8].view(np.int32)) == list(range(-3, 5)) and not made.grf[640:].any()


@pytest.mark.behaviour("EU-129", "EU-20", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_sixteen_channels_are_two_eights(gen: float) -> None:
    whole, halves = thread(gen, 0x5AF0, r4=COUNT), thread(gen, 0x5AF0, r4=COUNT)
    run(whole, instr(gen, "add", dst(20), reg(4), imm(7), size=16))
    run(halves, instr(gen, "add", dst(20), reg(4), imm(7)), instr(gen, "add", dst(21), reg(5), imm(7), quarter=1))
    assert (whole.grf == halves.grf).all()


# -- accumulators --------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-160", "EU-158", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_which_accumulator(gen: float) -> None:
    values = np.arange(16, dtype=np.float32) + 1
    for size, quarter, want in ((16, 0, range(16)), (8, 0, range(8)), (8, 1, range(8, 16))):
        made = thread(gen, 0xFFFF, r4=values)
        run(made, instr(gen, "mov", dst(20, "f"), reg(4, "f"), size=size, quarter=quarter, acc_write=True))
        assert [index for index, value in enumerate(made.dwords("acc")[:16]) if value] == list(want)


@pytest.mark.behaviour("EU-165", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_dwords_have_one_accumulator(gen: float) -> None:
    made = thread(gen, 0xFFFF, r4=COUNT + 1)
    run(made, instr(gen, "add", dst(20), reg(4), imm(0), quarter=1, acc_write=True))
    assert list(made.dwords("acc")[:8]) == list(range(1, 9))


@pytest.mark.behaviour("EU-156", "EU-194", "EU-172", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_cr0_turns_the_passing_update_off(gen: float) -> None:
    made = thread(gen, r4=COUNT + 1)
    made.dwords("cr")[0] = 1 << 1
    run(made, instr(gen, "add", dst(20), reg(4), imm(0), acc_write=True), instr(gen, "mov", dst(21), arf(0x20, "d")),
        instr(gen, "mov", arf(0x20, "d"), reg(4)), instr(gen, "mov", dst(22), arf(0x20, "d")))
    assert written(made, 21, 8) == 0 and written(made, 22, 8) == 0xFF


@pytest.mark.behaviour("EU-168", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize(("a", "b"), [(0x12345678, 0x7FEDCBA9), (-0x12345678, 0x7FEDCBA9), (-1, -1), (0x7FFFFFFF, -0x80000000)])
def test_a_64_bit_product_in_two_steps(gen: float, a: int, b: int) -> None:
    """mul by the lower half (before gen 8 it takes no more; on gen 4 that of the first source), mach by the upper: high dword in the
    destination, low in the accumulator."""
    made = thread(gen, 1, r4=np.array([a, b], np.int64).astype(np.int32))
    first = rules(gen).multiply == "low_first"
    halved = (scalar(4, "uw"), scalar(4, "d", 4)) if first else (scalar(4), scalar(4, "uw", 4))
    run(made, instr(gen, "mul", arf(0x20, "d"), *halved, size=1),
        instr(gen, "mach", dst(20), scalar(4), scalar(4, "d", 4), size=1, acc_write=True), instr(gen, "mov", dst(21), arf(0x20, "d"),
            size=1))
    high, rest = int(made.grf[640:644].view(np.int32)[0]), int(made.grf[672:676].view(np.uint32)[0])
    assert high << 32 | rest == a * b


@pytest.mark.behaviour("EU-169", shows="action")
@pytest.mark.parametrize("times, stored", [(0, 0x7FFF), (1, 0x7FFF), (2, 0x7FFF)])
def test_a_product_of_words_is_kept_with_its_sign(times: int, stored: int) -> None:
    """(-0x8000)² once, twice and three times: 0xC0000000 is still above 0, as bit 32 is the sign (IVB 2018-2021)."""
    made = thread(7, r4=np.full(16, -0x8000, np.int16), r5=np.full(16, -0x8000, np.int16))
    run(made, instr(7, "mul", arf(0x20, "w"), reg(4, "w"), reg(5, "w")),
        *[instr(7, "mac", arf(0x20, "w"), reg(4, "w"), reg(5, "w"))] * times,
        instr(7, "mov", dst(20, "w"), arf(0x20, "w"), saturate=True, condition=3))
    assert list(made.grf[640:656].view(np.int16)) == [stored] * 8 and made.flags == 0xFF


def test_words_have_33_bits_and_more() -> None:
    made = thread(7, r4=np.full(16, -0x8000, np.int16))
    run(made, instr(7, "mul", arf(0x20, "w"), reg(4, "w"), reg(4, "w")), instr(7, "mac", dst(20, "w"), reg(4, "w"), imm(0x8001, "w")))
    assert made.arf["acc_w"].view(np.int64)[0] == 0x40000000
    assert int(made.grf[640:642].view(np.int16)[0]) == (0x40000000 + 0x8000 * 0x7FFF & 0xFFFF ^ 0x8000) - 0x8000


def test_an_accumulator_is_bytes_too() -> None:
    """Written as floats, read as integers and as words."""
    made = thread(9, r4=np.full(8, -1.5, np.float32))
    run(made, instr(9, "mov", arf(0x20, "f"), reg(4, "f")), instr(9, "mov", dst(20, "d"), arf(0x20, "d")),
        instr(9, "mov", dst(21, "w"), arf(0x20, "w", 0, "16;16,1"), size=16, no_mask=True))
    assert made.grf[640:644].view(np.uint32)[0] == 0xBFC00000
    assert list(made.grf[672:676].view(np.uint16)) == [0, 0xBFC0]


def test_a_comparison_may_go_to_an_accumulator_and_come_back() -> None:
    made = thread(11, 0xFFFF, r2=np.array([5], np.uint16))
    made.dwords("f")[0] = 0x00FF
    run(made, instr(11, "sel", arf(0x20, "uw"), scalar(2, "uw"), imm(0, "uw"), size=16, predicate=1),
        instr(11, "mov", dst(20, "uw"), arf(0x20, "uw", 0, "16;16,1"), size=16))
    assert list(made.grf[640:672].view(np.uint16)) == [5] * 8 + [0] * 8


def test_an_accumulator_holds_what_was_computed_whatever_is_written() -> None:
    """A sum of dwords is one there, even if words are kept of it."""
    made = thread(9, r4=np.arange(8, dtype=np.int32) + 0x12340000)
    run(made, instr(9, "add", dst(20, "w", 2), reg(4), imm(1), acc_write=True), instr(9, "mov", dst(21), arf(0x20, "d")))
    assert list(made.register(21).view(np.int32)) == [0x12340001 + lane for lane in range(8)]


@pytest.mark.parametrize("no_mask", [False, True])
def test_flags_that_are_written_as_a_register_are_those_of_the_next_predicate(no_mask: bool) -> None:
    """A word, a byte of it, and a dword with both."""
    made = thread(9, 0xFFFF)
    run(made, instr(9, "mov", arf(0x30, "uw"), imm(0x5A5A, "uw"), size=1, no_mask=no_mask),
        instr(9, "mov", dst(20), imm(7), size=16, predicate=1),
        instr(9, "mov", arf(0x30, "ub", sub=1), imm(0x0F, "uw"), size=1, no_mask=no_mask),
        instr(9, "mov", dst(22), imm(7), size=16, predicate=1),
        instr(9, "mov", arf(0x31, "ud"), imm(0x8001_0003, "ud"), size=1, no_mask=no_mask),
        instr(9, "mov", dst(24), imm(7), size=16, predicate=1, flag=1, flag_sub=1))  # fmt: skip
    assert made.flags == 0x8001_0003_0000_0F5A
    assert [written(made, number) for number in (20, 22, 24)] == [0x5A5A, 0x0F5A, 0x8001]


@pytest.mark.parametrize("written, channel, flag", [(True, 1, 1), (False, 0, 1), (False, 1, 0)])
def test_a_flag_register_is_written_where_the_channel_is_on_and_predicated(written: bool, channel: int, flag: int) -> None:
    """As any other destination."""
    made = thread(9, 0xFE | channel)
    made.dwords("f")[:] = flag, 0x1234
    run(made, instr(9, "mov", arf(0x31, "ud"), imm(0xABCD5678, "ud"), size=1, predicate=1))
    assert list(made.dwords("f")) == [flag, 0xABCD5678 if written else 0x1234]


@pytest.mark.parametrize("flags", [0xFF, 0x0F, 0x55, 0xA6, 0])
def test_words_of_an_accumulator_are_halves_of_its_dwords(flags: int) -> None:
    """Two channels write to each; those that are off leave theirs as it was."""
    made = thread(9, r4=np.arange(0x100, 0x108, dtype=np.int16))
    made.dwords("f")[0] = flags
    run(made, instr(9, "mov", arf(0x20, "d"), imm(-1)), instr(9, "mov", arf(0x20, "w"), reg(4, "w"), predicate=1),
        instr(9, "mov", dst(20), arf(0x20, "d")))
    words = [0x100 + channel if flags >> channel & 1 else 0xFFFF for channel in range(8)]
    assert list(made.register(20)) == [low | high << 16 for low, high in zip(words[::2], words[1::2], strict=True)] + [0xFFFFFFFF] * 4

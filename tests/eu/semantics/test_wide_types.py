"""Types wider than four bytes where generations are particular about them: doubles as pairs of channels, native floats, quadword sums."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError, SoftgenError
from softgen.eu.isa.instruction import Operand
from softgen.eu.semantics import OPS
from softgen.eu.semantics.step import compute_type
from softgen.lanes.types import LaneType, i32, i64, u32
from tests.eu.semantics.build import L, arf, dst, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

DOUBLES = np.array([1.5, -2.25, 1e300, 5e-324])
ACC = 0x20


def doubles(made: object, number: int) -> list[float]:
    return made.register(number).view(np.float64).tolist()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.behaviour("EU-112", shows="action")
def test_a_double_counts_as_two_elements() -> None:
    """An execution size of eight is four doubles, of the first four channels: one that is off leaves its double alone."""
    made = thread(7, mask=0b11011011, r4=DOUBLES, r6=np.array([0.5, 0.25, 1.0, 1.0]), r8=np.full(4, 9.0))
    made.dwords("cr")[0] |= 1 << 6  # denormals of doubles are kept
    run(made, instr(7, "add", dst(8, "df"), reg(4, "df"), reg(6, "df")))
    assert doubles(made, 8) == [2.0, -2.0, 9.0, 1.0]


@pytest.mark.behaviour("EU-112", shows="action")
@pytest.mark.parametrize("region, expected", [("8;8,1", [0, 1, 2, 3]), ("8;8,2", [0, 1, 2, 3]), ("0;2,1", [1] * 4), ("4;2,1", [0, 2]),
                                              ("8;4,4", [0, 2, 4, 6]), ("4;1,0", [0, 2]), ("4;4,2", [0, 1, 2, 3])])  # fmt: skip
def test_regions_of_doubles_count_four_bytes(region: str, expected: list[int]) -> None:
    """Packed as Mesa writes it and as the manual does; one for all; every other one, in four ways."""
    made = thread(7, r4=np.arange(4.0), r5=np.arange(4.0, 8.0))
    run(made, instr(7, "mov", dst(8, "df"), reg(4, "df", region, sub=8 if region == "0;2,1" else 0), size=2 * len(expected)))
    assert doubles(made, 8)[: len(expected)] == expected


@pytest.mark.parametrize("stride, expected", [(1, [0, 1, 9, 9]), (2, [0, 1, 9, 9]), (4, [0, 9, 1, 9])])
def test_strides_of_double_destinations_count_four_bytes(stride: int, expected: list[float]) -> None:
    made = thread(7, r4=np.arange(4.0), r8=np.full(4, 9.0))
    run(made, instr(7, "mov", dst(8, "df", stride), reg(4, "df"), size=4))
    assert doubles(made, 8) == expected


def test_an_immediate_is_for_every_pair() -> None:
    made = thread(7, r4=np.arange(4.0))
    run(made, instr(7, "add", dst(8, "df"), reg(4, "df"), imm(0x3FC00000, "f")))
    assert doubles(made, 8) == [1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize("nibble", [0, 1])
def test_comparing_doubles_sets_a_flag_for_each(nibble: int) -> None:
    made = thread(7, r4=np.arange(4.0), r5=np.array([0.0, 2.0, 1.0, 2.0]))
    made.arf["f"][0] = 0xFF
    run(made, instr(7, "cmp", arf(0, "df"), reg(4, "df", "4;4,1"), reg(5, "df", "4;4,1"), condition=3, nibble=nibble))
    assert made.flags & 0xFF == (0b1100 << 4 | 0b1111 if nibble else 0b11111100)


def test_a_float_in_such_an_instruction_stands_at_the_first_channel_of_its_pair() -> None:
    made = thread(7, r4=np.arange(8, dtype=np.float32))
    run(made, instr(7, "mov", dst(8, "df"), reg(4, "f")))
    assert doubles(made, 8) == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("region, expected", [("8;8,1", [0, 2, 4, 6]), ("4;4,1", [0, 2, 4, 6]), ("4;2,1", [0, 4, 8, 12]),
                                              ("8;4,2", [0, 4, 8, 12]), ("2;2,1", [0, 2, 4, 6]), ("2;4,1", [0, 2, 2, 4]),
                                              ("2;1,0", [0, 4, 8, 12]), ("1;1,0", [0, 2, 4, 6]), ("0;1,0", [0] * 4)])  # fmt: skip
def test_regions_of_floats_beside_doubles_count_channels(region: str, expected: list[int]) -> None:
    """Of the eight elements of a region, every other one is converted."""
    made = thread(7, r4=np.arange(16, dtype=np.float32))
    run(made, instr(7, "mov", dst(8, "df"), reg(4, "f", region)))
    assert doubles(made, 8) == expected


@pytest.mark.parametrize("flags", [0b11001001, 0b11110110, 0])
def test_a_predicate_has_a_channel_for_each_double(flags: int) -> None:
    made = thread(7, r4=np.arange(4.0), r8=np.full(4, 9.0))
    made.arf["f"][0] = flags
    run(made, instr(7, "mov", dst(8, "df"), reg(4, "df"), predicate=1))
    assert doubles(made, 8) == [number if flags >> number & 1 else 9.0 for number in range(4)]


@pytest.mark.parametrize("stride", [1, 2])
def test_a_float_made_of_a_double_stands_at_the_first_channel_of_its_pair(stride: int) -> None:
    """The destination's stride counts channels."""
    made = thread(7, r4=np.arange(1.0, 5.0), r8=np.full(16, 9.0, np.float32))
    run(made, instr(7, "mov", dst(8, "f", stride), reg(4, "df")))
    found = np.concatenate([made.register(8), made.register(9)]).view(np.float32)
    expected = np.full(16, 9.0, np.float32)
    expected[: 8 * stride : 2 * stride] = 1, 2, 3, 4
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("mask, expected", [(0xFF, [1, 2, 3, 4]), (0b10110000, [1, 2, 9, 4]), (0b01001111, [9, 9, 3, 9])])
def test_doubles_of_the_second_nibble_have_a_channel_each(mask: int, expected: list[float]) -> None:
    """As compilers convert the upper half of eight channels (public: Mesa). The results are in every other dword."""
    made = thread(7, mask=mask, r4=np.arange(1.0, 5.0), r8=np.full(8, 9.0, np.float32))
    run(made, instr(7, "mov", dst(8, "f"), reg(4, "df", "4;4,1"), nibble=1))
    assert made.register(8).view(np.float32).tolist() == [value for held in expected for value in (held, 9)]


def test_one_channel_is_too_few_for_a_double() -> None:
    with pytest.raises(DecodeError, match="two channels each"):
        run(thread(7), instr(7, "mov", dst(8, "df"), scalar(4, "df"), size=1))


def test_native_floats_keep_what_a_float_would_lose() -> None:
    """acc0 = 1 + 2^-30; r8 = acc0 - 1: the small part is still there. As compilers interpolate on this generation (public: Mesa)."""
    made = thread(11, r2=np.full(8, 1.0, np.float32), r3=np.full(8, 2.0**-15, np.float32), r4=np.full(8, -1.0, np.float32))
    first = instr(11, "mad", arf(ACC, "nf"), reg(2, "f"), reg(3, "f"), reg(3, "f"), align16=False)
    second = instr(11, "mad", dst(8, "f"), arf(ACC, "nf"), reg(4, "f"), reg(2, "f"), align16=False)
    run(made, first, second)
    assert made.register(8).view(np.float32).tolist() == [2.0**-30] * 8


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind, a, b, expected", [
    ("q", 2**63 - 1, 1, 2**63 - 1), ("q", -(2**63), -1, -(2**63)), ("q", -5, 3, -2), ("q", 0, 0, 0),
    ("uq", 2**64 - 1, 2, 2**64 - 1), ("uq", 7, 8, 15),
])  # fmt: skip
@pytest.mark.parametrize("gen", [8, 9])
def test_sums_of_quadwords_end_at_their_limits(gen: float, kind: str, a: int, b: int, expected: int) -> None:
    dtype = np.uint64 if kind == "uq" else np.int64
    made = thread(gen, r4=np.full(4, a, dtype), r5=np.full(4, b, dtype))
    run(made, instr(gen, "add", dst(8, kind), reg(4, kind, "4;4,1"), reg(5, kind, "4;4,1"), size=4, saturate=True))
    assert made.register(8).view(dtype).tolist() == [expected] * 4


IDENTITY, XYXY, ZWZW, ZWXY = 0b11100100, 0b01000100, 0b11101110, 0b01001110


@pytest.mark.covering(1)
@pytest.mark.parametrize("swizzle, expected", [(IDENTITY, [1, 2, 3, 4]), (XYXY, [1, 1, 3, 3]), (ZWZW, [2, 2, 4, 4]), (ZWXY, [2, 1, 4, 3])])
@pytest.mark.parametrize("gen", [8, 9])
def test_swizzles_of_doubles_select_pairs_of_dwords(gen: float, swizzle: int, expected: list[float]) -> None:
    """As compilers replicate a double in mad: replicate control is for 32 and 16 bits alone."""
    made = thread(gen, r4=np.arange(1.0, 5.0), r5=np.full(4, 2.0), r6=np.full(4, 0.5))
    source = [Operand("grf", "df", number, swizzle=IDENTITY) for number in (6, 5)]
    run(made, instr(gen, "mad", Operand("grf", "df", 8, write_mask=15), *source, Operand("grf", "df", 4, swizzle=swizzle), size=4))
    assert doubles(made, 8) == [0.5 + 2 * value for value in expected]


@pytest.mark.parametrize("enables, expected", [
    (0b0011, [1, 9, 3, 9]), (0b1100, [9, 2, 9, 4]), (0b1111, [1, 2, 3, 4]),  # of 32-bit channels
    (0b0001, [1, 9, 9, 9]), (0b0010, [9, 2, 9, 9]), (0b0100, [9, 9, 3, 9]), (0b0111, [1, 2, 3, 9]), (0b1010, [9, 2, 9, 4])])  # fmt: skip
def test_channel_enables_of_doubles(enables: int, expected: list[float]) -> None:
    """As Mesa's vec4 compiler writes them: a bit for each double, but for xy and zw."""
    made = thread(9, r4=np.arange(1.0, 5.0), r5=np.ones(4), r8=np.full(4, 9.0))
    sources = [Operand("grf", "df", number, swizzle=IDENTITY) for number in (6, 4, 5)]
    run(made, instr(9, "mad", Operand("grf", "df", 8, write_mask=enables), *sources, size=4))
    assert doubles(made, 8) == expected


@pytest.mark.parametrize("sub, swizzle, vertical, first, second", [
    (0, XYXY, 0, [1, 1, 1, 1], [5, 5, 5, 5]), (16, ZWZW, 0, [4, 4, 4, 4], [8, 8, 8, 8]), (16, IDENTITY, 0, [3, 4, 3, 4], [7, 8, 7, 8]),
    (0, IDENTITY, 2, [1, 2, 3, 4], [5, 6, 7, 8]), (0, ZWXY, 2, [2, 1, 4, 3], [6, 5, 8, 7])])  # fmt: skip
def test_sources_of_doubles_in_two_registers(sub: int, swizzle: int, vertical: int, first: list[float], second: list[float]) -> None:
    """With a vertical stride of 0, channels of the second register come from the next one: what compilers for Haswell rely on."""
    made = thread(7.5, r4=np.arange(1.0, 5.0), r5=np.arange(5.0, 9.0))
    source = Operand("grf", "df", 4, sub, vertical=vertical, swizzle=swizzle)
    run(made, instr(7.5, "mov", Operand("grf", "df", 8, horizontal=1, write_mask=15), source, size=8, align16=True))
    assert (doubles(made, 8), doubles(made, 9)) == (first, second)


@pytest.mark.parametrize("vertical, swizzle, expected", [(4, IDENTITY, [1, 2, 3, 4]), (4, ZWXY, [2, 1, 4, 3]), (0, XYXY, [1, 1, 1, 1])])
@pytest.mark.parametrize("nibble, mask", [(0, 0b11110101), (1, 0b01011111)])
def test_doubles_of_vertices_take_the_channels_of_their_components(vertical: int, swizzle: int, expected: list[float], nibble: int,
                                                                   mask: int) -> None:  # fmt: skip
    """On the generation whose doubles take two channels: an execution size of 8 is four components of one vertex."""
    made = thread(7, mask=mask, r4=np.arange(1.0, 5.0), r8=np.full(4, 9.0))
    source, target = Operand("grf", "df", 4, vertical=vertical, swizzle=swizzle), Operand("grf", "df", 8, horizontal=1, write_mask=0b0111)
    run(made, instr(7, "mov", target, source, align16=True, nibble=nibble))
    assert doubles(made, 8) == [expected[0], 9, expected[2], 9]
    with pytest.raises(SoftgenError, match="beside operands of type f"):
        run(thread(7), instr(7, "mov", target, Operand("grf", "f", 4, vertical=4, swizzle=IDENTITY), align16=True))


@pytest.mark.parametrize("swizzle", [0, 0b11100101])
def test_swizzles_of_halves_of_doubles_are_not_simulated(swizzle: int) -> None:
    sources = [Operand("grf", "df", number, swizzle=swizzle) for number in (6, 4, 5)]
    with pytest.raises(SoftgenError, match="halves of"):
        run(thread(9), instr(9, "mad", Operand("grf", "df", 8, write_mask=15), *sources, size=4))


def test_comparisons_are_computed_in_as_few_bits_as_their_sources_have() -> None:
    """Which is quicker. Signed beside unsigned ones, and accumulators, have more."""
    def computed(*sources: Operand) -> LaneType:
        return compute_type(instr(9, "cmp", dst(20), *sources, condition=L), OPS["cmp"])[1]

    assert [computed(reg(2, kind), reg(4, kind)) for kind in ("d", "w", "ud")] == [i32, i32, u32]
    assert computed(reg(2, "d"), reg(4, "ud")) is i64 and computed(arf(0x20, "d"), reg(4, "d")) is i64

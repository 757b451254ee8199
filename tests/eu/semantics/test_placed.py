"""Instructions and operands whose meaning is in where their registers stand: regions, indirect addresses, immediates, line and pln."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.errors import GpuFault
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.mesa.parse import parse
from softgen.eu.thread.regions import small_float
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import NZ, arf, dst, imm, instr, reg, run, scalar, thread

WORDS = np.arange(64, dtype=np.int16)
FLOATS = np.arange(32, dtype=np.float32)


def words(made: ThreadState, number: int, count: int = 16) -> list[int]:
    return [int(value) for value in made.grf[number * 32 :].view(np.int16)[:count]]


def dwords(made: ThreadState, number: int, count: int = 8) -> list[int]:
    return [int(value) for value in made.grf[number * 32 :].view(np.int32)[:count]]


def floats(made: ThreadState, number: int, count: int = 8) -> list[float]:
    return [float(value) for value in made.grf[number * 32 :].view(np.float32)[:count]]


# -- align1 --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-224", "EU-225", "EU-226", "EU-229", "EU-230", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_rows_and_columns(gen: float) -> None:
    made = thread(gen, 0xFFFF, r4=WORDS)
    run(made, instr(gen, "mov", dst(20, "w"), reg(4, "w", "16;8,2", 2), size=16))
    assert words(made, 20) == [1 + c // 8 * 16 + c % 8 * 2 for c in range(16)]


@pytest.mark.behaviour("EU-228", "EU-231", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_rows_may_interleave(gen: float) -> None:
    made = thread(gen, 0xFFFF, r5=WORDS)
    run(made, instr(gen, "mov", dst(20, "w"), reg(5, "w", "1;8,2"), size=16))
    assert words(made, 20)[:9] == [0, 2, 4, 6, 8, 10, 12, 14, 1]


@pytest.mark.behaviour("EU-128", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_a_scalar_goes_to_all_channels(gen: float) -> None:
    made = thread(gen, r4=WORDS)
    run(made, instr(gen, "mov", dst(20, "w"), scalar(4, "w", 6)))
    assert words(made, 20, 8) == [3] * 8


@pytest.mark.behaviour("EU-07", "EU-233", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_a_destination_has_a_stride_and_ends_with_the_channels(gen: float) -> None:
    made = thread(gen, 0xFFFF, r4=WORDS, r20=np.full(16, -1, np.int16))
    run(made, instr(gen, "mov", dst(20, "w", 2), reg(4, "w", "4;4,1"), size=4))
    assert words(made, 20) == [0, -1, 1, -1, 2, -1, 3, *[-1] * 9]


def test_a_source_is_read_whole_before_anything_is_written() -> None:
    """The second register of the source is the first of the destination."""
    made = thread(9, 0xFFFF, r4=np.arange(16, dtype=np.int32))
    run(made, instr(9, "add", dst(5), reg(4), imm(100), size=16))
    assert dwords(made, 5, 16) == [100 + c for c in range(16)]


def test_a_region_past_the_registers_is_a_fault_that_names_the_place() -> None:
    made = thread(9)
    with pytest.raises(GpuFault, match=r"gen 9, kernel 0x0\+0x0: mov"):
        run(made, instr(9, "mov", dst(20, "d"), reg(127, "d", "16;8,2")))


# -- three sources -------------------------------------------------------------------------------------------------


def test_regions_of_three_sources() -> None:
    """Gen 11: rows of `vertical` elements, as wide as the inner stride makes them; the third source has one stride alone."""
    made = thread(11, r4=FLOATS, r6=FLOATS, r8=FLOATS)
    sources = (Operand("grf", "f", 4, vertical=4, horizontal=2), Operand("grf", "f", 6), Operand("grf", "f", 8, horizontal=2))
    run(made, instr(11, "mad", dst(20, "f"), *sources))
    assert floats(made, 20) == [c // 2 * 4 + c % 2 * 2 for c in range(8)]
    run(reset(made), instr(11, "mad", dst(20, "f"), Operand("grf", "f", 4), Operand("grf", "f", 6, 4), sources[2]))
    assert floats(made, 20) == [2 * c for c in range(8)]


def reset(made: ThreadState) -> ThreadState:
    made.ip, made.ended, made.channel_ip = 0, False, [0] * 32
    return made


@pytest.mark.parametrize("align16", [True, False])
def test_swizzles_and_replication_of_three_sources(align16: bool) -> None:
    """The form has them, whatever the access mode says."""
    made = thread(8, r4=FLOATS, r6=np.ones(8, np.float32), r8=np.zeros(8, np.float32), r20=np.full(8, -1, np.float32))
    source = Operand("grf", "f", 4, swizzle=0b00011011)
    target = Operand("grf", "f", 20, write_mask=0b0111)
    others = Operand("grf", "f", 6, replicate=True), Operand("grf", "f", 8, swizzle=0)
    run(made, instr(8, "mad", target, source, *others, align16=align16))
    assert floats(made, 20) == [3, 2, 1, -1, 7, 6, 5, -1]


# -- align16 -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-16", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7, 7.5, 8, 9])
def test_swizzles_turn_each_four(gen: float) -> None:
    made = thread(gen, r4=FLOATS)
    source = Operand("grf", "f", 4, vertical=4, swizzle=0b00011011)
    run(made, instr(gen, "mov", Operand("grf", "f", 20, horizontal=1, write_mask=15), source, align16=True))
    assert floats(made, 20) == [3, 2, 1, 0, 7, 6, 5, 4]


@pytest.mark.behaviour("EU-122", "EU-11", shows="action")
def test_simd4_add_with_a_write_mask() -> None:
    made = thread(7, r2=FLOATS, r3=np.full(8, -1, np.float32))
    a, b = Operand("grf", "f", 2, vertical=4, swizzle=0b00111001), Operand("grf", "f", 2, 16, vertical=4, swizzle=0b01001110)
    target = Operand("grf", "f", 3, horizontal=1, write_mask=0b0111)
    run(made, instr(7, "add", target, a, b, size=4, align16=True, no_mask=True))
    assert floats(made, 3) == [1 + 6, 2 + 7, 3 + 4, -1, -1, -1, -1, -1]


@pytest.mark.behaviour("EU-123", "EU-125", shows="action")
def test_simd4x2_with_one_and_two_vertices() -> None:
    for mask, changed in ((0x0F, 4), (0xFF, 8)):
        made = thread(7, mask, r4=FLOATS, r6=FLOATS * 10, r20=np.full(8, -1, np.float32))
        shared = Operand("grf", "f", 6, vertical=0, swizzle=0b11100100)
        own = Operand("grf", "f", 4, vertical=4, swizzle=0b11100100)
        run(made, instr(7, "add", Operand("grf", "f", 20, horizontal=1, write_mask=0b0111), own, shared, align16=True))
        want = [-1 if c % 4 == 3 or c >= changed else c + 10 * (c % 4) for c in range(8)]
        assert floats(made, 20) == want


# -- indirect ------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-148", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_one_address_for_a_region(gen: float) -> None:
    made = thread(gen, r4=WORDS)
    made.arf["a"].view(np.uint16)[3] = 4 * 32
    run(made, instr(gen, "mov", dst(20, "w"), reg(0, "w", "8;8,1", indirect=True, address_sub=3, offset=6)))
    assert words(made, 20, 8) == [3 + c for c in range(8)]
    reset(made)
    made.arf["a"].view(np.uint16)[1] = 30 * 32 + 10
    run(made, instr(gen, "mov", dst(0, "w", 1, indirect=True, address_sub=1, offset=-10), reg(4, "w")))
    assert words(made, 30, 8) == list(range(8))


@pytest.mark.behaviour("EU-151", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_an_address_for_each_row(gen: float) -> None:
    made = thread(gen, r4=WORDS)
    made.arf["a"].view(np.uint16)[:8] = [4 * 32 + 2 * k for k in (9, 1, 30, 4, 4, 0, 2, 12)]
    source = Operand("grf", "w", indirect=True, address_sub=0, offset=4, vertical=VXH, width=1)
    run(made, instr(gen, "mov", dst(20, "w"), source))
    assert words(made, 20, 8) == [11, 3, 32, 6, 6, 2, 4, 14]
    rows = Operand("grf", "w", indirect=True, address_sub=2, offset=0, vertical=VXH, width=4, horizontal=1)
    run(reset(made), instr(gen, "mov", dst(20, "w"), rows))
    assert words(made, 20, 8) == [30, 31, 32, 33, 4, 5, 6, 7]


def test_movi_takes_bytes_of_one_register() -> None:
    made = thread(7, r4=WORDS)
    made.arf["a"].view(np.uint16)[:4] = [4 * 32 + 6, 2, 30, 5 * 32 + 8]     # the register numbers of the later ones do not count
    run(made, instr(7, "movi", dst(20, "w"), Operand("grf", "w", indirect=True, vertical=VXH), size=4))
    assert words(made, 20, 4) == [3, 1, 15, 4]


def test_movi_counts_its_offset_in_bytes() -> None:
    made = thread(7, r4=np.arange(32, dtype=np.uint8))
    made.arf["a"].view(np.uint16)[:4] = [4 * 32 + 6, 2, 9, 0]
    run(made, instr(7, "movi", dst(20, "ub"), Operand("grf", "ub", indirect=True, vertical=VXH, offset=3), size=4))
    assert made.register(20).view(np.uint8)[:4].tolist() == [9, 5, 12, 3]


def test_smov_writes_the_channels_it_names() -> None:
    made = thread(9, 0xFFFF, r4=WORDS, r20=np.full(16, -1, np.int32))
    made.arf["a"].view(np.uint16)[5] = 20 * 32
    run(made, instr(9, "smov", dst(0, "d", 1, indirect=True, address_sub=5), scalar(4, "w", 14), imm(0b100100, "uw"), size=16))
    assert [index for index, value in enumerate(dwords(made, 20, 16)) if value != -1] == [2, 5]
    assert dwords(made, 20, 3)[2] == 7


def test_smov_of_floats_takes_its_mask_as_bits() -> None:
    made = thread(9, 0xFFFF, r4=np.arange(8, dtype=np.float32), r20=np.full(16, -1, np.float32))
    made.arf["a"].view(np.uint16)[5] = 20 * 32
    run(made, instr(9, "smov", dst(0, "f", 1, indirect=True, address_sub=5), scalar(4, "f", 12), imm(0b1000000000000001, "uw"), size=16))
    assert np.concatenate([made.register(20), made.register(21)]).view(np.float32).tolist() == [3.0, *[-1.0] * 14, 3.0]


# -- immediates ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-45", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_packed_signed_immediate(gen: float) -> None:
    made = thread(gen)
    run(made, instr(gen, "mov", dst(20, "w"), imm(0xFEDC3210, "v")))
    assert words(made, 20, 8) == [0, 1, 2, 3, -4, -3, -2, -1]


@pytest.mark.behaviour("EU-46", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_packed_unsigned_immediate(gen: float) -> None:
    made = thread(gen, 0xFFFF)
    run(made, instr(gen, "mov", dst(20, "uw"), imm(0xFEDC3210, "uv"), size=16))
    assert words(made, 20) == [0, 1, 2, 3, 12, 13, 14, 15] * 2


def test_a_dword_destination_takes_every_second_element() -> None:
    made = thread(9, r4=WORDS)
    run(made, instr(9, "add", dst(20, "ud"), scalar(4, "uw", 2), imm(0x0C080400, "uv"), size=4))
    assert dwords(made, 20, 4) == [1, 5, 9, 13]


@pytest.mark.behaviour("EU-47", "EU-48", "EU-49", "EU-50", "EU-51", shows="action")
def test_small_floats() -> None:
    for byte in range(256):
        want = 0.0 if not byte & 0x7F else 2.0 ** ((byte >> 4 & 7) - 3) * (1 + (byte & 15) / 16)
        got = np.array(small_float(byte), np.uint32).view(np.float32)
        assert abs(got) == want and bool(np.signbit(got)) == bool(byte & 0x80)
    assert np.array(small_float(1), np.uint32).view(np.float32) == 0.1328125


@pytest.mark.behaviour("EU-54", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_packed_float_immediate(gen: float) -> None:
    made = thread(gen)
    run(made, instr(gen, "mov", dst(20, "f"), imm(0x00B04830, "vf")))
    assert floats(made, 20) == [1, 3, -1, 0] * 2


@pytest.mark.behaviour("EU-44", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_word_immediate_is_its_low_half(gen: float) -> None:
    made = thread(gen, r4=np.arange(8, dtype=np.int32))
    run(made, instr(gen, "add", dst(20), reg(4), imm(0x1234FFFF, "w")))
    assert dwords(made, 20) == [c - 1 for c in range(8)]
    (parsed,) = parse("add(8) g4<1>D g2<8,8,1>D -4660W { align1 1Q };", 9.0)       # who writes one puts it into both halves
    assert parsed.sources[1].immediate == 0xEDCCEDCC


def test_dim_takes_a_double() -> None:
    made = thread(7.5)
    bits = int(np.array(0.1).view(np.uint64))
    run(made, instr(7.5, "dim", dst(20, "df"), imm(bits, "f"), size=2))
    assert [float(value) for value in made.grf[640:].view(np.float64)[:2]] == [0.1, 0.1]


# -- line and pln --------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-EU-15", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7, 8, 9])
def test_line(gen: float) -> None:
    made = thread(gen, r4=np.array([2, 9, 9, 5, 3, 9, 9, 7], np.float32), r6=FLOATS)
    run(made, instr(gen, "line", dst(20, "f"), scalar(4, "f"), reg(6, "f")))
    assert floats(made, 20) == [2 * u + 5 for u in range(8)]
    run(reset(made), instr(gen, "line", dst(20, "f"), scalar(4, "f", 16), reg(6, "f")))
    assert floats(made, 20) == [3 * u + 7 for u in range(8)]


@pytest.mark.parametrize("gen", [4.5, 7, 8, 9])
def test_pln(gen: float) -> None:
    """u and v of eight channels stand side by side, then those of the next eight (public: Mesa elk_fs_generator.cpp)."""
    made = thread(gen, 0xFFFF, r4=np.array([9, 9, 9, 9, 2, 3, 9, 7], np.float32), r6=FLOATS)
    run(made, instr(gen, "pln", dst(20, "f"), scalar(4, "f", 16), reg(6, "f"), size=16))
    assert floats(made, 20, 16) == [2 * (c + c // 8 * 8) + 3 * (c + 8 + c // 8 * 8) + 7 for c in range(16)]


@pytest.mark.parametrize("sub", [0, 4, 8, 16, 20])
def test_the_other_scalars_of_line_and_pln_are_of_the_four_that_the_first_belongs_to(sub: int) -> None:
    """Only the first of four is legal for it; any other is taken as it is."""
    plane, u = np.array([2, 3, 4, 5, 11, 12, 13, 14], np.float32), np.arange(32)
    made = thread(9, r4=plane, r6=FLOATS)
    p, (_, q, _, r) = plane[sub // 4], plane[sub // 16 * 4 :][:4]
    run(made, instr(9, "line", dst(20, "f"), scalar(4, "f", sub), reg(6, "f")))
    assert floats(made, 20) == [p * u[c] + r for c in range(8)]
    run(reset(made), instr(9, "pln", dst(20, "f"), scalar(4, "f", sub), reg(6, "f")))
    assert floats(made, 20) == [p * u[c] + q * u[c + 8] + r for c in range(8)]


@pytest.mark.parametrize("opcode, planes", [("line", 0), ("pln", 1)])
@pytest.mark.parametrize("negate, absolute", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("which", [0, 1])
def test_modifiers_of_line_and_pln_hold_for_all_that_a_source_gives(opcode: str, planes: int, negate: bool, absolute: bool,
                                                                    which: int) -> None:  # fmt: skip
    def given(number: int, value: int) -> int:
        value = abs(value) if absolute and which == number else value
        return -value if negate and which == number else value

    made = thread(9, r4=np.array([-2, 3, 9, -7], np.float32), r6=FLOATS - 5)
    sources = [scalar(4, "f"), reg(6, "f")]
    sources[which] = replace(sources[which], negate=negate, absolute=absolute)
    run(made, instr(9, opcode, dst(20, "f"), *sources))
    p, q, r = given(0, -2), given(0, 3) * planes, given(0, -7)
    assert floats(made, 20) == [p * given(1, c - 5) + q * given(1, c + 3) + r for c in range(8)]


# -- architecture registers ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-140", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_null_takes_nothing(gen: float) -> None:
    made = thread(gen, r4=WORDS)
    before = made.grf.copy()
    run(made, instr(gen, "mov", arf(0, "w"), reg(4, "w")))
    assert (made.grf == before).all()


@pytest.mark.behaviour("EU-139", "EU-222", "EU-212", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_read_only_registers_stay(gen: float) -> None:
    made = thread(gen, r4=np.full(8, -1, np.int32))
    run(made, instr(gen, "mov", arf(0x90, "ud"), reg(4, "ud", "0;1,0"), size=1),
        instr(gen, "mov", arf(0xC0, "ud"), scalar(4, "ud"), size=1))  # fmt: skip
    assert made.dwords("n")[0] == 0 and made.dwords("tm")[0] == 0


@pytest.mark.behaviour("EU-173", "EU-180", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_flags_are_words_of_a_register(gen: float) -> None:
    made = thread(gen)
    run(made, instr(gen, "mov", arf(0x30, "uw", 2), imm(0x1234, "uw"), size=1),
        instr(gen, "mov", arf(0x31, "ud"), imm(0x89ABCDEF, "ud"), size=1),
        instr(gen, "mov", dst(20, "ud"), arf(0x30, "ud", 0, "0;1,0"), size=1),
        instr(gen, "mov", dst(21, "uw"), arf(0x30, "uw", 2, "0;1,0"), size=1))
    assert made.flags == 0x89ABCDEF_12340000
    assert dwords(made, 20, 1) == [0x12340000] and words(made, 21, 1) == [0x1234]


@pytest.mark.behaviour("EU-176", shows="action")
@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("gen", [7, 9])
def test_a_quarter_does_not_move_a_flag_that_is_an_operand(gen: float, quarter: int) -> None:
    """Read and written whole, while the condition of the same instruction goes to the flags of its quarter (IVB 2076-2078)."""
    made = thread(gen, 0xFFFFFFFF)
    made.dwords("f")[0] = 0x76543210
    run(made, instr(gen, "mov", dst(20, "ud"), arf(0x30, "ud", 0, "0;1,0"), size=1, quarter=quarter, condition=NZ, flag=1),
        instr(gen, "mov", arf(0x30, "uw"), imm(0xABCD, "uw"), size=1, quarter=quarter))
    assert dwords(made, 20, 1) == [0x76543210]
    assert made.flags == 1 << 32 + 8 * quarter | 0x7654ABCD


@pytest.mark.behaviour("EU-183", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_the_vector_mask_follows_the_dispatch_mask(gen: float) -> None:
    made = thread(gen, 0x421)
    run(made, instr(gen, "mov", dst(20, "ud"), arf(0x70, "ud", 8, "4;4,1"), size=2, no_mask=True))
    assert dwords(made, 20, 2) == [0x421, 0xFFF]


@pytest.mark.behaviour("EU-192", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_cr0_chooses_the_vector_mask(gen: float) -> None:
    made = thread(gen, 0x21, r4=np.arange(8, dtype=np.int32))
    made.dwords("cr")[0] = 1 << 3
    run(made, instr(gen, "add", dst(20), reg(4), imm(1)))
    assert dwords(made, 20) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.behaviour("EU-153", "EU-144", shows="action")
def test_address_registers_are_words() -> None:
    made = thread(7, r4=WORDS)
    run(made, instr(7, "mov", arf(0x10, "uw"), reg(4, "uw"), size=8), instr(7, "mov", dst(20, "uw"), arf(0x10, "uw")),
        instr(7, "mov", dst(20, "uw", sub=16), arf(0x10, "uw", 8, "0;1,0")))
    assert words(made, 20) == [*range(8), *[4] * 8]
    run(reset(made), instr(7, "mov", arf(0x10, "uw"), reg(4, "uw", "4;4,1", 16), size=4),
        instr(7, "mov", arf(0x10, "uw", 8), scalar(4, "uw", 8), size=4))
    assert list(made.arf["a"].view(np.uint16)[:8]) == [8, 9, 10, 11, 4, 4, 4, 4]


def test_what_a_register_lacks_reads_zero() -> None:
    made = thread(9)
    made.dwords("cr")[:] = 0, 0, 7
    run(made, instr(9, "mov", dst(20, "ud"), arf(0x80, "ud", 8, "8;8,1"), size=4))
    assert dwords(made, 20, 4) == [7, 0, 0, 0]


@pytest.mark.parametrize("sub", [16, 18, 30])
def test_what_is_written_past_a_register_is_lost_and_the_rest_is_not(sub: int) -> None:
    """Down to the last element that fits."""
    made = thread(9, 0xFFFF, r4=np.arange(1, 17, dtype=np.uint16))
    run(made, instr(9, "mov", arf(0x10, "uw", sub), reg(4, "uw", "16;16,1"), size=16))
    inside = (32 - sub) // 2
    assert list(made.arf["a"].view(np.uint16)) == [0] * (16 - inside) + list(range(1, 1 + inside))


@pytest.mark.parametrize("kind, last", [("d", 4092), ("w", 4094), ("b", 4095)])
@pytest.mark.parametrize("reads", [True, False])
def test_an_address_reaches_the_last_element_of_the_registers_and_no_further(kind: str, last: int, reads: bool) -> None:
    item = instr(9, "mov", dst(20), scalar(0, kind, indirect=True), size=1)
    if not reads:
        item = instr(9, "mov", dst(0, kind, indirect=True), scalar(4, kind), size=1)
    for address in (last, last + 1, 4096, 0xFFFF):
        made = thread(9, 1, r4=np.full(32, 5, np.uint8), r127=np.full(32, 7, np.uint8))
        made.arf["a"].view(np.uint16)[0] = address
        if address > last:
            with pytest.raises(GpuFault):
                run(made, item)
        else:
            run(made, item)
            size = 4096 - last
            assert bytes(made.grf[640 : 640 + size] if reads else made.grf[last:]) == bytes([7 if reads else 5] * size)

"""What cr0 says about floats: denormals, rounding, ALT; and what no mode touches."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa.instruction import Operand
from tests.eu.semantics.build import arf, dst, imm, instr, reg, run, thread

TINY = np.full(8, 1e-40, np.float32)
KEEP = {"f": 1 << 7, "hf": 1 << 10, "df": 1 << 6}


def bits(gen: float, control: int, kind: str, values: np.ndarray, opcode: str = "add", **more: object) -> int:
    """value + 0, or another operation with zero."""
    made = thread(gen, 0xF, r4=values)
    made.dwords("cr")[0] = control
    sources = (reg(4, kind, "4;4,1"),) if opcode in ("mov", "rndd") else (reg(4, kind, "4;4,1"), reg(30, kind, "4;4,1"))
    run(made, instr(gen, opcode, dst(20, kind), *sources, size=4, **more))
    size = values.dtype.itemsize
    return int.from_bytes(made.grf[640 : 640 + size].tobytes(), "little")


@pytest.mark.behaviour("EU-59", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7, 7.5])
def test_older_generations_always_flush_floats(gen: float) -> None:
    assert bits(gen, 0, "f", TINY) == bits(gen, KEEP["f"], "f", TINY) == 0
    assert bits(gen, 0, "f", -TINY, "mul") == 0x80000000


@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize(("kind", "value"), [("f", TINY), ("hf", np.full(8, 1e-6, np.float16))])
def test_cr0_keeps_them(gen: float, kind: str, value: np.ndarray) -> None:
    others = sum(KEEP.values()) & ~KEEP[kind]
    assert bits(gen, others, kind, value) == 0
    assert bits(gen, KEEP[kind], kind, value) == int(value[:1].view(f"u{value.dtype.itemsize}")[0])


@pytest.mark.behaviour("EU-60", "EU-190", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9])
def test_denormal_doubles(gen: float) -> None:
    value = np.full(4, 1e-310)
    assert bits(gen, 0, "df", -value) == 0
    assert bits(gen, 0, "df", -value, "mul") == 1 << 63
    assert bits(gen, KEEP["df"], "df", value) == int(value.view(np.uint64)[0])


@pytest.mark.behaviour("EU-62", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_raw_moves_touch_nothing(gen: float) -> None:
    for pattern in (0x00000001, 0x80000001, 0x7F812345, 0xFFC54321, 0x7F800000):
        values = np.full(8, pattern, np.uint32)
        assert bits(gen, 1, "f", values.view(np.float32), "mov") == pattern


@pytest.mark.behaviour("EU-61", "EU-63", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_conversions_flush_nothing(gen: float) -> None:
    made = thread(gen, r4=np.full(16, 0x0001, np.uint16), r6=TINY)
    run(made, instr(gen, "mov", dst(20, "f"), reg(4, "hf")), instr(gen, "mov", dst(22, "df"), reg(6, "f")))
    assert made.register(20).view(np.float32)[0] == np.float32(2.0**-24)
    assert made.grf[704:712].view(np.float64)[0] == float(TINY[0])


@pytest.mark.behaviour("EU-77", "EU-191", "EU-76", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_rounding_of_every_operation(gen: float) -> None:
    """1 + 2^-25 and its negative, in the four modes."""
    modes = ((0, 0x3F800000, 0xBF800000), (1, 0x3F800001, 0xBF800000), (2, 0x3F800000, 0xBF800001), (3, 0x3F800000, 0xBF800000))
    for control, low, high in modes:
        made = thread(gen, 3, r4=np.array([1, -1], np.float32), r5=np.array([2.0**-25, -(2.0**-25)], np.float32))
        made.dwords("cr")[0] = control << 4
        run(made, instr(gen, "add", dst(20, "f"), reg(4, "f"), reg(5, "f"), size=2))
        assert list(made.register(20)[:2]) == [low, high]
    for control, want in ((0, 16777216), (1, 16777218), (2, 16777216), (3, 16777216)):
        made = thread(gen, 1, r4=np.array([16777217], np.int32))
        made.dwords("cr")[0] = control << 4
        run(made, instr(gen, "mov", dst(20, "f"), reg(4), size=1))
        assert made.register(20).view(np.float32)[0] == want


@pytest.mark.behaviour("EU-89", "EU-90", "EU-91", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_alt_mode_knows_neither_infinity_nor_nan(gen: float) -> None:
    values = np.array([np.inf, -np.inf, np.nan, 1e-40], np.float32)
    made = thread(gen, 0xF, r4=values, r5=np.ones(4, np.float32))
    made.dwords("cr")[0] = 1
    run(made, instr(gen, "mul", dst(20, "f"), reg(4, "f"), reg(5, "f"), size=4), instr(gen, "mul", dst(21, "f"), reg(20, "f"), reg(20,
        "f"), size=4))
    assert list(made.register(20)[:4]) == [0x7F7FFFFF, 0xFF7FFFFF, 0, 0]
    assert list(made.register(21)[:2]) == [0x7F7FFFFF, 0x7F7FFFFF]


@pytest.mark.behaviour("EU-56", "EU-92", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_alt_mode_is_for_floats_alone(gen: float) -> None:
    """A double takes two channels of Ivy Bridge, where every other float of a region is converted."""
    size, step = (4, 2) if gen == 7 else (2, 1)
    made = thread(gen, 0xF, r4=np.array([np.inf, np.nan]), r6=np.repeat(np.array([np.inf, np.nan], np.float32), step))
    made.dwords("cr")[0] = 1
    run(made, instr(gen, "add", dst(20, "df"), reg(4, "df", "4;4,1"), reg(30, "df", "4;4,1"), size=size),
        instr(gen, "mov", dst(22, "df"), reg(6, "f", f"{size};{size},1"), size=size))  # fmt: skip
    for register in (20, 22):
        held = made.grf[register * 32 : register * 32 + 16].view(np.float64)
        assert np.isinf(held[0]) and np.isnan(held[1])


@pytest.mark.behaviour("EU-57", "EU-195", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_the_mode_is_the_threads_own(gen: float) -> None:
    for control, want in ((0, 0x7F800000), (1, 0x7F7FFFFF)):
        made = thread(gen, 1, r4=np.full(8, 3e38, np.float32))
        mode = arf(0x80, "ud"), arf(0x80, "ud", 0, "0;1,0"), imm(control, "ud")
        run(made, instr(gen, "or", *mode, size=1, no_mask=True, thread_control=2),
            instr(gen, "add", dst(20, "f"), reg(4, "f"), reg(4, "f"), size=1))
        assert made.register(20)[0] == want


@pytest.mark.behaviour("EU-79", "EU-71", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_one_and_zero_are_neutral_and_nan_stays_nan(gen: float) -> None:
    values = np.array([1.5, -0.0, np.inf, np.nan, 3e-38, -7, 0, 1e30], np.float32)
    made = thread(gen, r4=values, r5=np.ones(8, np.float32))
    run(made, instr(gen, "mul", dst(20, "f"), reg(4, "f"), reg(5, "f")),
        instr(gen, "add", dst(21, "f"), reg(4, "f"), reg(6, "f", negate=True)))  # fmt: skip
    for register in (20, 21):
        assert np.array_equal(made.register(register).view(np.float32), values, equal_nan=True)
    assert list(np.signbit(made.register(21).view(np.float32)[[1, 6]])) == [True, False]       # -0 - 0, and 0 - 0
    made = thread(gen, r4=values)
    run(made, instr(gen, "add", dst(20, "f"), reg(4, "f"), reg(6, "f")))
    assert made.register(20)[1] == 0                                                           # -0 + 0


@pytest.mark.behaviour("KBL-EU-10", "EU-29", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_saturation_of_floats(gen: float) -> None:
    values = np.array([2, -3, np.nan, np.inf, -np.inf, 0.5, 1, -0.0], np.float32)
    made = thread(gen, r4=values)
    run(made, instr(gen, "mov", dst(20, "f"), reg(4, "f"), saturate=True))
    assert list(made.register(20).view(np.float32)) == [1, 0, 0, 1, 0, 0.5, 1, 0]


@pytest.mark.behaviour("EU-30", "KBL-EU-10", shows="action")
@pytest.mark.parametrize(("kind", "low", "high"), [("ub", 0, 255), ("b", -128, 127), ("uw", 0, 65535), ("w", -32768, 32767),
                                                   ("ud", 0, 2**32 - 1), ("d", -(2**31), 2**31 - 1)])
@pytest.mark.parametrize("gen", [7, 9])
def test_saturation_of_integers(gen: float, kind: str, low: int, high: int) -> None:
    made = thread(gen, 3, r4=np.array([-(2**31), 2**31 - 1], np.int32), r5=np.array([-(2**31), 2**31 - 1], np.int32))
    dtype = {"ub": np.uint8, "b": np.int8, "uw": np.uint16, "w": np.int16, "ud": np.uint32, "d": np.int32}[kind]
    stride = 4 // np.dtype(dtype).itemsize
    if kind == "ud":        # twice the largest dword is above it only once more
        made.register(5)[:] = [0x80000000, 0xFFFFFFFF, *[0] * 6]
        run(made, instr(gen, "add", dst(20, kind), reg(4, "d"), reg(5, "ud", negate=False), size=2, saturate=True))
        assert list(made.grf[640:648].view(dtype)) == [0, high]
        return
    run(made, instr(gen, "add", dst(20, kind, stride), reg(4), reg(5), size=2, saturate=True))
    assert [int(value) for value in made.grf[640:648].view(dtype)[::stride]] == [low, high]


def test_mixed_three_source_floats() -> None:
    """Half floats beside floats: sources 1 and 2 (KBL 6876-6889)."""
    made = thread(9, r4=np.ones(8, np.float32), r5=np.full(16, 2, np.float16), r6=np.full(16, 3, np.float16))
    sources = [Operand("grf", kind, number, swizzle=0b11100100) for kind, number in (("f", 4), ("hf", 5), ("hf", 6))]
    run(made, instr(9, "mad", Operand("grf", "f", 20, write_mask=15), *sources))
    assert list(made.register(20).view(np.float32)) == [7] * 8

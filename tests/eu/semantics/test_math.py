"""How exact extended math is, over the whole range of floats, against decimals of fifty digits; and integer division."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext
from typing import Any

import numpy as np
import pytest

from softgen.lanes.compile.routine import Routine
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import f16, f32, f64, u32
from softgen.lanes.value import Memory, Value
from softgen.shared_functions.extended_math.float_sine import REACH
from softgen.shared_functions.extended_math.functions import enclose_rsq, evaluate, exp2, log2, round_rsq
from tests.eu.semantics.build import dst, instr, reg, run, thread
from tests.lanes.both import compile_

M = NumpyMachine()
SAMPLES = 768
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651")
getcontext().prec = 50
LN2 = Decimal(2).ln()


def sample(seed: int, count: int = SAMPLES) -> np.ndarray:
    """Floats of all exponents, positive, no denormals."""
    random = np.random.default_rng(seed)
    return random.integers(0x00800000, 0x7F800000, count, dtype=np.uint32).view(np.float32)


def between(seed: int, low: float, high: float, count: int = SAMPLES) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)


def computed(name: str, *sources: np.ndarray) -> np.ndarray:
    found = []
    for start in range(0, len(sources[0]), 256):
        lanes = [M.value(f32, source[start : start + 256]) for source in sources]
        found.append(np.asarray(evaluate(M, name, False, *lanes).payload, np.float32))
    return np.concatenate(found)


def exact(value: np.float32) -> Decimal:
    return Decimal(float(value))


def last_place(value: Decimal) -> Decimal:
    """Of the float a value lies among; denormals have that of the smallest."""
    largest = np.float32(min(max(abs(float(value)), 1.17549435e-38), 3.4e38))
    return Decimal(float(np.spacing(largest)))


def worst(name: str, inputs: np.ndarray, truth: Callable[[Decimal], Decimal]) -> float:
    """The largest error, in units of the last place."""
    got, most = computed(name, inputs), 0.0
    for x, y in zip(inputs, got, strict=True):
        want = truth(exact(x))
        if abs(want) > Decimal("3.4028235e38"):
            assert np.isinf(y) or abs(exact(y) - want) <= last_place(want)
            continue
        most = max(most, float(abs(exact(y) - want) / last_place(want)))
    return most


def sine(x: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 90
        x = x % (2 * PI)
        term = total = x
        k = 1
        while abs(term) > Decimal(10) ** -60:
            term *= -x * x / ((2 * k) * (2 * k + 1))
            total += term
            k += 1
        return total


@pytest.mark.parametrize(("name", "truth", "bound"), [("inv", lambda x: 1 / x, 0.5), ("sqrt", lambda x: x.sqrt(), 0.5),
                                                       ("rsq", lambda x: 1 / x.sqrt(), 0.5)])
def test_inverse_and_roots(name: str, truth: Callable[[Decimal], Decimal], bound: float) -> None:
    assert worst(name, sample(1), truth) <= bound + 1e-9


def test_roots_of_the_smallest_floats() -> None:
    """Where what is left of a square is no longer a float."""
    tiny = np.random.default_rng(5).integers(1, 0x01000000, 600, np.uint32).view(np.float32)
    assert worst("rsq", tiny, lambda x: 1 / x.sqrt()) <= 0.5 + 1e-9


ONE, FOUR, CHUNK = 0x3F800000, 0x40800000, 1 << 16  # bits of floats; floats of a call
HARD = np.array([0x3F800001, 0x3F800002, 0x3FFFFFFF, 0x40000000, 0x407FFFFF], np.uint32)  # at the ends of binades


def correctly_rounded(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether y is 1 / sqrt(x) rounded to nearest, of bits of floats from 1 up to 4, in integers: with x = X / 2^(23-e) and y = Y / 2^24
    that is (2Y - 1)² X < 2^(73-e) < (2Y + 1)² X. The squares are multiplied in two parts."""
    significand, exponent = (x & 0x7FFFFF | 0x800000).astype(np.uint64), (x >= 0x40000000).astype(np.uint64)
    result = y.view(np.float32).astype(np.float64) * 2.0**24
    good = (result >= 2.0**23) & (result <= 2.0**24)
    twice = 2 * np.where(good, result, 0).astype(np.int64)

    def below(middle: np.ndarray) -> np.ndarray:
        square = (middle * middle).astype(np.uint64)
        product = significand * (square >> np.uint64(25)) + (significand * (square & np.uint64((1 << 25) - 1)) >> np.uint64(25))
        return product < np.uint64(1) << np.uint64(48) - exponent

    return good & below(twice - 1) & ~below(twice + 1)


def test_the_check_of_reciprocal_roots_finds_wrong_ones() -> None:
    x = between(21, 1, 4, 1000).view(np.uint32)
    right = (1 / np.sqrt(x.view(np.float32).astype(np.float64))).astype(np.float32).view(np.uint32)  # doubles are near enough for these
    assert correctly_rounded(x, right).all()
    assert not correctly_rounded(x, right + 1).any() and not correctly_rounded(x, right - 1).any()


def neighbours(x: np.ndarray, root: np.ndarray) -> None:
    """The last step rounds correctly, whichever neighbour of the result it starts from."""
    for at, step in itertools.product(range(0, len(x), 256), (-1, 0, 1)):
        part = slice(at, at + 256)
        start = (root[part].astype(np.int64) + step).astype(np.uint32)
        found = round_rsq(M, M.value(f32, x[part].view(np.float32)), M.value(f32, start.view(np.float32))).payload
        assert np.array_equal(np.asarray(found, np.float32).view(np.uint32), root[part])


APART = np.array([-1, -0.5, -0.01, 0, 0.01, 0.5, 1], np.float32) * np.float32(2.0**-14)  # relative errors of approximations


def certain(m: Machine, x: Value, y: Value) -> Value:
    """1 / sqrt(x) where the interval from an approximation y shows it, else 0."""
    low, high = enclose_rsq(m, x, y)
    return m.select(low == high, low, m.like(x, 0.0))


def approximations(root: np.ndarray, apart: np.float32) -> np.ndarray:
    return (root.view(np.float32) * (1 + apart.astype(np.float64))).astype(np.float32).view(np.uint32)


@pytest.mark.parametrize("apart", APART)
def test_intervals_of_reciprocal_roots_from_any_approximation(apart: np.float32) -> None:
    """What an interval shows is correctly rounded, and it shows nearly all roots."""
    unknown = 0
    for seed in range(8):
        x = np.concatenate([HARD, between(23 + seed, 1, 4, 256 - len(HARD)).view(np.uint32)])
        root = computed("rsq", x.view(np.float32)).view(np.uint32)
        assert correctly_rounded(x, root).all()
        start = approximations(root, apart)
        found = certain(M, M.value(f32, x.view(np.float32)), M.value(f32, start.view(np.float32))).payload
        shown = np.asarray(found, np.float32).view(np.uint32)
        assert np.array_equal(shown[shown != 0], root[shown != 0])
        unknown += np.count_nonzero(shown == 0)
    assert unknown <= 8


@pytest.mark.parametrize("x", [0.0, -0.0, float("inf"), float("-inf"), float("nan"), -1.0])
def test_intervals_show_no_root_of_what_has_none(x: float) -> None:
    """Estimates of hosts are infinity of zeros, zero of infinity and NaN of negative numbers."""
    estimate = {0.0: float("inf"), float("inf"): 0.0}.get(x, float("nan"))
    for y in (estimate, -estimate):
        assert certain(M, M.value(f32, np.array([x], np.float32)), M.value(f32, np.array([y], np.float32))).payload[0] == 0


@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
def test_reciprocal_roots_are_correctly_rounded_with_and_without_estimates(lanes: int) -> None:
    """Compiled code of 8 lanes or more starts from the host's estimate where there is one; the reference and the others do not."""
    x = np.concatenate([HARD, between(22, 1, 4, 1024 - len(HARD)).view(np.uint32)])
    here = computed("rsq", x.view(np.float32)).view(np.uint32)
    assert correctly_rounded(x, here).all()
    neighbours(x, here)
    routine = compile_(lambda m, value: evaluate(m, "rsq", False, value), Signature((Lanes(f32, lanes),), (Lanes(f32, lanes),)))
    there = [routine(x[at : at + lanes].view(np.float32))[0] for at in range(0, len(x), lanes)]
    assert np.array_equal(np.concatenate(there).view(np.uint32), here)


@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_reciprocal_roots_of_all_exponents_on_both_machines(lanes: int) -> None:
    """Of normal numbers and of denormals, in vectors of their own: one that is special takes all with it."""
    random = np.random.default_rng(24)
    routine = compile_(lambda m, value: evaluate(m, "rsq", False, value), Signature((Lanes(f32, lanes),), (Lanes(f32, lanes),)))
    for first, end in ((0x00800000, 0x7F800000), (1, 0x00800000), (0x7F7FFF00, 0x7F800000), (0, 1 << 32)):
        x = random.integers(first, end, 512, np.uint32).view(np.float32)
        there = np.concatenate([routine(x[at : at + lanes])[0] for at in range(0, len(x), lanes)])
        assert np.array_equal(there, computed("rsq", x), equal_nan=True)


def in_place(function: Callable[..., Any], width: int) -> Routine:
    """A routine that replaces floats in memory: of two rows, the second by a function of both."""

    def program(m: Machine, memory: Memory) -> None:
        at = m.variable(m.constant(u32, 0, 1))
        for _ in m.While(lambda: m.any(at.value < 8 * CHUNK)):
            x, y = (m.load_block(f32, width, memory, at.value + offset) for offset in (0, 4 * width))
            m.store_block(function(m, x, y), memory, at.value + 4 * width)
            at.value = at.value + 8 * width

    return compile_(program, Signature((Bytes("floats"),), ()))


SINE_BOUND = 1.85  # units of the last place, in reach of float_sine.py
TRUTHS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {  # in doubles, between two limits of the result or argument
    "exp": (np.exp2, -126.0, 127.99), "log": (np.log2, 2.0**-126, 3.4e38), "sin": (np.sin, -(2.0**20), 2.0**20),
    "cos": (np.cos, -(2.0**20), 2.0**20)}  # fmt: skip


def check_floats(routine: Routine, name: str, bits: np.ndarray) -> int:
    """Compiled results against doubles, which are near enough, within the bound of each function. How many of the floats were looked at."""
    truth, low, high = TRUTHS[name]
    rows = np.zeros((CHUNK // 16, 2, 16), np.uint32)
    rows[:, 0] = bits.reshape(-1, 16)
    routine(rows.view(np.uint8).reshape(-1))
    with np.errstate(invalid="ignore"):  # NaNs among them
        x, got = (rows[:, row].reshape(-1).view(np.float32).astype(np.float64) for row in (0, 1))
    inside = (x >= low) & (x <= high) & (np.abs(x) >= 2.0**-126)
    want = truth(x[inside])
    place = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(want), 2.0**-149))), -126) - 23)
    in_floats = (np.abs(x[inside]) <= REACH) & (name in ("sin", "cos"))
    assert (np.abs(got[inside] - want) <= np.where(in_floats, SINE_BOUND, 0.51) * place).all()
    assert name not in ("sin", "cos") or (np.abs(got[np.isfinite(x)]) <= 1).all()
    return int(inside.sum())


@pytest.mark.parametrize("name", TRUTHS)
def test_functions_of_some_floats_of_all_exponents(name: str) -> None:
    routine = in_place(lambda m, x, _: evaluate(m, name, False, x), 16)
    near = np.round(between(31, -(2.0**16), 2.0**16, CHUNK) / (math.pi / 2)) * (math.pi / 2)  # roots, and the most exact 1
    for bits in (np.random.default_rng(30).integers(0, 1 << 32, CHUNK, np.uint32), near.astype(np.float32).view(np.uint32)):
        assert check_floats(routine, name, bits) > 100


@pytest.mark.witness
@pytest.mark.parametrize("name", TRUTHS)
def test_functions_of_all_floats(name: str) -> None:
    routine = in_place(lambda m, x, _: evaluate(m, name, False, x), 16)
    for first in range(0, 1 << 32, CHUNK):
        check_floats(routine, name, np.arange(first, first + CHUNK, dtype=np.uint64).astype(np.uint32))


@pytest.mark.witness
@pytest.mark.parametrize("width", [2, 16])
def test_reciprocal_roots_of_all_significands(width: int) -> None:
    """All floats from 1 up to 4: without the host's estimate (2 lanes) and by it, the last step from all neighbours of the result, and
    the interval from approximations as far away as they may be."""
    whole, last = in_place(lambda m, x, _: evaluate(m, "rsq", False, x), width), in_place(round_rsq, width)
    shows = in_place(certain, width)
    rows = np.zeros((CHUNK // width, 2, width), np.uint32)
    for first in range(ONE, FOUR, CHUNK):
        rows[:, 0] = np.arange(first, first + CHUNK, dtype=np.uint32).reshape(-1, width)
        whole(rows.view(np.uint8).reshape(-1))
        x, right = rows[:, 0].copy(), rows[:, 1].copy()
        assert correctly_rounded(x, right).all()
        for step in (-1, 0, 1):
            rows[:, 1] = (right.astype(np.int64) + step).astype(np.uint32)
            last(rows.view(np.uint8).reshape(-1))
            assert np.array_equal(rows[:, 1], right), f"from neighbour {step} at {first:#x}"
        for apart in APART:
            rows[:, 1] = approximations(right, apart)
            shows(rows.view(np.uint8).reshape(-1))
            assert np.array_equal(rows[:, 1][rows[:, 1] != 0], right[rows[:, 1] != 0]), f"from {apart} at {first:#x}"


@pytest.mark.parametrize(("x", "want"), [
    (0.0, float("inf")), (-0.0, float("-inf")), (float("inf"), 0.0), (float("-inf"), float("nan")), (float("nan"), float("nan")),
    (-1.0, float("nan")), (-(2.0**-149), float("nan")), (2.0**-148, 2.0**74), (2.0**-128, 2.0**64), (2.0**-126, 2.0**63), (4.0, 0.5),
    (2.0**126, 2.0**-63)])  # fmt: skip
def test_reciprocal_roots_where_all_lanes_are_alike(x: float, want: float) -> None:
    """One lane in another case would take all with it."""
    found = computed("rsq", np.full(4, x, np.float32))
    assert np.array_equal(found, np.full(4, want, np.float32), equal_nan=True)
    assert np.isnan(want) or (np.signbit(found) == np.signbit(want)).all()


def test_logarithm_of_all_floats() -> None:
    assert worst("log", sample(2), lambda x: x.ln() / LN2) <= 0.51


def test_logarithm_near_one() -> None:
    near = np.concatenate([between(3, 0.98, 1.02, 400), np.float32(1) + np.arange(-50, 50, dtype=np.float32) * np.float32(2**-24)])
    got = computed("log", near)
    assert max(abs(exact(y) - exact(x).ln() / LN2) for x, y in zip(near, got, strict=True)) <= Decimal(2) ** -21
    assert worst("log", near[near != 1], lambda x: x.ln() / LN2) <= 0.51


def test_the_parts_of_powers_are_good_to_many_digits() -> None:
    """What pow multiplies must be much better than a float."""
    inputs = np.concatenate([between(12, 0.5, 2, 128), sample(13, 128)]).astype(np.float64)
    got = np.asarray(log2(M, M.value(f64, inputs)).payload)
    for x, y in zip(inputs, got, strict=True):
        want = Decimal(float(x)).ln() / LN2
        assert abs(Decimal(float(y)) - want) <= max(abs(want), Decimal("0.01")) * Decimal(10) ** -14


def test_powers_of_two() -> None:
    assert worst("exp", between(4, -125, 128), lambda x: (x * LN2).exp()) <= 0.51
    assert worst("exp", between(5, -1, 1), lambda x: (x * LN2).exp()) <= 0.51
    assert worst("exp", between(5, -149, -126, 200), lambda x: (x * LN2).exp()) <= 0.51      # denormal results
    whole = np.arange(-149, 128, dtype=np.float32)
    assert (computed("exp", whole) == np.ldexp(np.float32(1), whole.astype(int))).all()


def test_powers_of_two_reduced_in_floats_are_those_of_doubles() -> None:
    """Of any float: infinities, NaN, denormals and numbers far out of range are among them."""

    def differs(m: Machine, x: Value, _: Value) -> Value:
        a, b = evaluate(m, "exp", False, x), m.convert(exp2(m, m.convert(x, f64)), f32)
        same = (m.bitcast(a, u32) == m.bitcast(b, u32)) | (m.is_nan(a) & m.is_nan(b))
        return m.select(same, m.like(x, 0.0), m.like(x, 1.0))

    routine, rows = in_place(differs, 16), np.zeros((CHUNK // 16, 2, 16), np.uint32)
    special = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0xC3160000, 0xC3150000, 0x43000000], np.uint32)
    for seed in range(4):
        rows[:, 0] = np.random.default_rng(seed).integers(0, 1 << 32, (CHUNK // 16, 16), np.uint32)
        rows[1::2, 0] = between(seed, -160, 140, CHUNK // 2).view(np.uint32).reshape(-1, 16)
        rows[0, 0, : len(special)] = special
        routine(rows.view(np.uint8).reshape(-1))
        assert not rows[:, 1].any()


@pytest.mark.parametrize(("least", "reach", "bound"), [
    (0.0, 6.2831855, SINE_BOUND), (0.0, 1000.0, SINE_BOUND), (0.0, 2**17, SINE_BOUND), (2**17 + 1, 2**20, 0.51)])  # fmt: skip
def test_sine_and_cosine(least: float, reach: float, bound: float) -> None:
    inputs = between(6, least, reach, 400) * np.tile(np.array([1, -1], np.float32), 200)
    for name, shift in (("sin", Decimal(0)), ("cos", PI / 2)):
        got = computed(name, inputs)
        wants = [sine(exact(x) + shift) for x in inputs]
        assert max(abs(exact(y) - want) for y, want in zip(got, wants, strict=True)) <= Decimal(bound) * Decimal(2) ** -24
        assert max(abs(exact(y) - want) / last_place(want) for y, want in zip(got, wants, strict=True)) <= Decimal(bound)


def test_sines_of_a_lane_do_not_depend_on_other_lanes() -> None:
    """What is in reach, and what is not: beside each other, and alone; and zeros keep their signs."""
    inputs = np.array([0.0, -0.0, 1.5, -9999.5, 2.0**17, 131073.0, -3e5, 2.0**44, 2.0**46, np.inf, np.nan, 1e-40, -1e-30, 3.0, 7.0, 0.5],
                      np.float32)
    for name in ("sin", "cos"):
        with np.errstate(invalid="ignore"):
            together = computed(name, inputs)
            alone = np.concatenate([computed(name, inputs[n : n + 1]) for n in range(len(inputs))])
        assert together.view(np.uint32).tolist() == alone.view(np.uint32).tolist()
        assert np.isnan(together).tolist() == [not np.isfinite(x) for x in inputs]
        assert together[8] == (name == "cos")
    zeros = computed("sin", inputs[:2])
    assert zeros.view(np.uint32).tolist() == [0, 0x80000000]


@pytest.mark.witness
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_on_all_machines(name: str) -> None:
    """The interpreter and compiled code have the same bits; NaNs aside."""
    routine, rows = in_place(lambda m, x, _: evaluate(m, name, False, x), 16), np.zeros((CHUNK // 16, 2, 16), np.uint32)
    rows[:, 0] = np.random.default_rng(3).integers(0, 1 << 32, (CHUNK // 16, 16), np.uint32)
    rows[1::2, 0] = between(4, -150000, 150000, CHUNK // 2).view(np.uint32).reshape(-1, 16)
    routine(rows.view(np.uint8).reshape(-1))
    x, got = rows[:, 0].reshape(-1).view(np.float32), rows[:, 1].reshape(-1).view(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        want = computed(name, x)
    assert ((got.view(np.uint32) == want.view(np.uint32)) | np.isnan(got) & np.isnan(want)).all()


def test_sine_of_huge_numbers_stays_between_the_limits() -> None:
    for name in ("sin", "cos"):
        assert (np.abs(computed(name, sample(7))) <= 1).all()


def test_division_is_correctly_rounded() -> None:
    a, b = sample(8, 256), sample(9, 256)
    got = computed("fdiv", a, b)
    for x, y, z in zip(a, b, got, strict=True):
        want = exact(x) / exact(y)
        if Decimal("1.2e-38") < want < Decimal("3.4e38"):
            assert abs(exact(z) - want) <= last_place(want) / 2


def test_power_is_its_parts() -> None:
    a, b = between(10, 0.01, 50, 256), between(11, -8, 8, 256)
    got = computed("pow", a, b)
    for x, y, z in zip(a, b, got, strict=True):
        want = (exact(y) * exact(x).ln()).exp()
        assert abs(exact(z) - want) <= last_place(want) * Decimal("0.51")
    special = computed("pow", np.array([0, 0, -2, np.inf], np.float32), np.array([2, -1, 2, 1], np.float32))
    assert special[0] == 0 and np.isinf(special[1]) and np.isnan(special[2]) and np.isinf(special[3])


def test_half_floats() -> None:
    x = np.array([2, 3, 0.1, 60000], np.float16)
    got = np.asarray(evaluate(M, "inv", False, M.value(f16, x)).payload)
    assert (got == (1 / x.astype(np.float64)).astype(np.float16)).all()


@pytest.mark.behaviour("BDW-EU-17", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_quotient_and_remainder_in_two_registers(gen: float) -> None:
    a, b = np.array([7, -7, 7, -7, 100, 0, 5, -2147483648], np.int32), np.array([2, 2, -2, -2, 7, 3, 9, -1], np.int32)
    made = thread(gen, r4=a, r5=b)
    run(made, instr(gen, "math", dst(20), reg(4), reg(5), function=11))
    assert list(made.register(20).view(np.int32)) == [3, -3, -3, 3, 14, 0, 0, -2147483648]
    assert list(made.register(21).view(np.int32)) == [1, -1, 1, -1, 2, 0, 5, 0]


def test_division_by_zero() -> None:
    made = thread(9, r4=np.array([7, 0, 1, 2, 3, 4, 5, 6], np.uint32))
    run(made, instr(9, "math", dst(20, "ud"), reg(4, "ud"), reg(5, "ud"), function=11))
    assert list(made.register(20)) == [0xFFFFFFFF] * 8 and list(made.register(21)) == [7, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.behaviour("BDW-EU-17", shows="action")
@pytest.mark.parametrize("rounding", range(4))
def test_math_rounds_to_nearest_whatever_cr0_says(rounding: int) -> None:
    made = thread(9, r4=np.full(8, 3, np.float32))
    made.dwords("cr")[0] = rounding << 4
    run(made, instr(9, "math", dst(20, "f"), reg(4, "f"), function=1))
    assert made.register(20)[0] == 0x3EAAAAAB


# Function, sources, and the result of 8 and 2.
@pytest.mark.parametrize(("function", "sources", "result"), [
    (1, 1, 0.125), (2, 1, 3.0), (3, 1, 256.0), (5, 1, 8**-0.5), (9, 2, 4.0), (10, 2, 64.0),
])  # fmt: skip
@pytest.mark.parametrize("gen", [7, 9])
def test_only_sources_that_a_function_has_are_read(gen: float, function: int, sources: int, result: float) -> None:
    """What stands where a second source would be has no part in the execution type, either: here it is an integer, of another size."""
    made = thread(gen, r4=np.full(8, 8, np.float32), r5=np.full(8, 2, np.float32))
    second = reg(5, "f") if sources == 2 else reg(5, "uw", "16;16,1")
    run(made, instr(gen, "math", dst(20, "f"), reg(4, "f"), second, function=function))
    assert made.register(20).view(np.float32).tolist() == [np.float32(result)] * 8

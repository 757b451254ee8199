"""Extended math functions, built from exact operations only: every machine and every host gives the same bits.

Floats are computed in doubles (correctly rounded + − × ÷ √ and fma, and polynomials of them) and rounded once, to nearest even, whatever
cr0 says (BDW 20823). Accuracy, tested over the whole range of floats:
    inv fdiv sqrt rsq   correctly rounded      exp log   within 0.51 ULP (log near 1 too)
    sin cos         of floats up to 2^17 within 1.85 ULP, in floats (float_sine.py); within 0.51 ULP of others where |x| <= 2^20; beyond
                    2^45 no argument reduction: sin 0, cos 1
    pow             exp of y times log x, in doubles: NaN for negative x, and for 0 to the power 0
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, f64, i64, u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.extended_math import float_sine

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
# Minimax polynomials of relative error (Remez exchange), as long as floats need; of log2 that pow multiplies, as long as doubles do.
HALVES = [float.fromhex(text) for text in (  # 2^r, |r| <= 1/2, within 2^-34.5
    "0x1.ffffffffabbdcp-1", "0x1.62e42ff116293p-1", "0x1.ebfbe0a4bdbf2p-3", "0x1.c6b08aaf1adecp-5", "0x1.3b29dc417d1bcp-7",
    "0x1.5d8a70a798570p-10", "0x1.446a1f67c5ef8p-13", "0x1.fe1759732f83ep-17")]  # fmt: skip
ARTANH = [float.fromhex(text) for text in (  # log2 of (1 + s) / (1 - s) by odd powers of s, |s| <= 0.1716, within 2^-52.4
    "0x1.71547652b82ffp+1", "0x1.ec709dc39c9e6p-1", "0x1.2776c516a9371p-1", "0x1.a61756772d625p-2", "0x1.484fac1d54e52p-2",
    "0x1.0bb7be3669ec5p-2", "0x1.f184bf2ef2e9cp-3")]  # fmt: skip
LOGARITHM = [float.fromhex(text) for text in (  # log2(1 + f) / f, from the root of one half to that of two, within 2^-35.8
    "0x1.71547652a1e9ep+0", "-0x1.715476565cdb8p-1", "0x1.ec709ebb9074ep-2", "-0x1.7154709835307p-2", "0x1.277651fdb7831p-2",
    "-0x1.ec72b554af32dp-3", "0x1.a63f43e6aa7f0p-3", "-0x1.714176bbc519bp-3", "0x1.45292332953a0p-3", "-0x1.252efc9549d3fp-3",
    "0x1.28717cace969ap-3", "-0x1.2489d1956dc17p-3", "0x1.3cebfb8a3aaefp-4")]  # fmt: skip
SINE = [float.fromhex(text) for text in (  # sin(r) / r by powers of r², |r| <= pi / 2, within 2^-35.5
    "0x1.ffffffffd1773p-1", "-0x1.5555554173543p-3", "0x1.11110b7429749p-7", "-0x1.a017a8d4b9e3bp-13", "0x1.716b9fbf4cf81p-19",
    "-0x1.9a0da28c99c30p-26")]  # fmt: skip
HALF_TURN = [float(PI)]  # pi as a sum of two doubles
HALF_TURN.append(float(PI - Fraction(HALF_TURN[0])))
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # the square root of one half
FAR = 2.0**45
INFINITY, SMALLEST = 0x7F800000, 0x00800000  # bits of floats: infinity, and the smallest normal number
LARGEST = INFINITY - 1
MARGIN = 2.0**-22  # 8u of one half: see enclose_rsq
GUESS = 0x5F375A86  # minus half the bits of x: a first approximation of 1 / sqrt(x) within 4 %
FRACTION, SIGN = 52, 63
HALF = 16  # lanes of one half of a SIMD32 kernel's instruction
NO_FRACTION = 1.5 * 2.0**23
NO_FRACTION_64 = 1.5 * 2.0**52


def _polynomial(m: Machine, x: Value, coefficients: list[float]) -> Value:
    total = m.like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = m.fma(total, x, m.like(x, coefficient))
    return total


def exp2(m: Machine, x: Value) -> Value:
    """2^x of doubles within the range of floats; infinity or 0 outside. A sum of at least 2^52 is an integer, which is in its low bits."""
    held = m.select(x > 1000.0, 1000.0, m.select(x < -1000.0, m.like(x, -1000.0), x))
    total = held + NO_FRACTION_64
    value = m.bitcast(_polynomial(m, held - (total - NO_FRACTION_64), HALVES), u64)
    return m.select(m.is_nan(x), x, m.bitcast(value + (m.bitcast(total, u64) << FRACTION), f64))


def exp(m: Machine, x: Value) -> Value:
    """2^x of floats: as exp2 of doubles, with the argument reduced in floats, where that is exact. Floats from 2^23 on have no fraction: a
    sum with one is rounded to an integer, which is in its low bits."""
    if x.type is not f32:
        return m.convert(exp2(m, m.convert(x, f64)), x.type)
    held = m.select(x > 200.0, 200.0, m.select(x > -200.0, x, m.like(x, -200.0)))
    total = held + NO_FRACTION
    value = m.bitcast(_polynomial(m, m.convert(held - (total - NO_FRACTION), f64), HALVES), u64)
    scaled = m.bitcast(value + (m.convert(m.bitcast(total, u32), u64) << FRACTION), f64)
    return m.select(m.is_nan(x), x, m.convert(scaled, f32))


def _near_one(m: Machine, x: Value) -> tuple[Value, Value]:
    """Exponent and fraction of normal doubles, the fraction between the roots of one half and of two."""
    bits = m.bitcast(x, u64)
    exponent = m.bitcast(bits - ROOT_HALF_BITS, i64) >> FRACTION
    return m.convert(exponent, f64), m.bitcast(bits - m.bitcast(exponent << FRACTION, u64), f64)


def log2(m: Machine, x: Value) -> Value:
    """log2 of normal doubles, good to the last bits."""
    exponent, rest = _near_one(m, x)
    s = m.div(rest - 1.0, rest + 1.0)
    value = exponent + s * _polynomial(m, s * s, ARTANH)
    value = m.select(x == 0.0, m.like(x, float("-inf")), value)
    value = m.select(x < 0.0, m.like(x, float("nan")), value)
    return m.select(m.is_nan(x) | (x == float("inf")), x, value)


def log(m: Machine, x: Value) -> Value:
    """log2 of floats, good to floats."""
    if x.type is not f32:
        return m.convert(log2(m, m.convert(x, f64)), x.type)
    exponent, rest = _near_one(m, m.convert(x, f64))
    f = rest - 1.0
    value = m.convert(exponent + f * _polynomial(m, f, LOGARITHM), f32)
    no_number = m.select(x == 0.0, m.like(x, float("-inf")), m.select(x > 0.0, x, m.like(x, float("nan"))))
    return m.select(m.bitcast(x, u32) - 1 < INFINITY - 1, value, no_number)


def _sine(m: Machine, near: Value, total: Value, shift: float) -> Value:
    """The sine of what is left of `near` without half turns: as many as `total` has in its low bits, and `shift` of one."""
    count, rest = total - NO_FRACTION_64 + shift if shift else total - NO_FRACTION_64, near
    for piece in HALF_TURN:  # the first difference is exact: a multiple of the last bit of pi, and small
        rest = m.fma(-count, m.like(near, piece), rest)
    return rest * _polynomial(m, rest * rest, SINE)


def _near(m: Machine, x: Value) -> Value:
    """0 for what is too far to be reduced."""
    return m.select(m.absolute(x) > FAR, m.like(x, 0.0), x)


def _signed(m: Machine, x: Value, value: Value, sign: Value) -> Value:
    """A value with the sign of its half turn; the same NaN on every host where `x` is one or an infinity."""
    turned = m.bitcast(m.bitcast(value, u64) ^ sign, f64)
    return m.select(m.absolute(x) < float("inf"), turned, m.like(x, float("nan")))


def sin(m: Machine, x: Value) -> Value:
    """(-1)^k sin(x - k pi). A zero keeps its sign."""
    if x.type is f32:
        return float_sine.sin(m, x, lambda m, x: m.convert(sin(m, m.convert(x, f64)), f32))
    near = _near(m, x)
    total = m.fma(near, m.like(x, float(1 / PI)), m.like(x, NO_FRACTION_64))
    sign = m.bitcast(total, u64) << SIGN
    return _signed(m, x, _sine(m, near, total, 0.0), sign)


def cos(m: Machine, x: Value) -> Value:
    """(-1)^(k + 1) sin(x - (k + 1/2) pi)."""
    if x.type is f32:
        return float_sine.cos(m, x, lambda m, x: m.convert(cos(m, m.convert(x, f64)), f32))
    near = _near(m, x)
    total = m.fma(near, m.like(x, float(1 / PI)), m.like(x, -0.5)) + NO_FRACTION_64
    sign = m.bitcast(total, u64) + 1 << SIGN
    return _signed(m, x, _sine(m, near, total, 0.5), sign)


def inv(m: Machine, x: Value) -> Value:
    return m.div(m.like(x, 1.0), x)


def rsq(m: Machine, x: Value) -> Value:
    """1 / sqrt(x), correctly rounded. The fast path requires that the rounding is certain in all lanes: a zero, a negative number, an
    infinity and a NaN never are. Where it is not, the ends of the interval are the root or its neighbours, unless one of these is there."""
    if x.type is not f32:
        return m.div(m.like(x, 1.0), m.sqrt(x))
    bits, start = m.bitcast(x, u32), m.estimate_rsq(x)
    special = bits - SMALLEST >= INFINITY - SMALLEST
    if start is None:
        found = m.variable(round_rsq(m, x, near_rsq(m, x, _guessed_rsq(m, x, m.like(bits, GUESS) - (bits >> 1)))))
        for _ in m.If(_any_of_both(m, special), rare=True):
            found.value = _any_rsq(m, x, bits)
        return found.value
    low, high = enclose_rsq(m, x, start)
    found = m.variable(low)
    for _ in m.If(_any_of_both(m, low != high), rare=True):
        found.value = round_rsq(m, x, low)
        for _ in m.If(m.any(special), rare=True):
            found.value = _any_rsq(m, x, bits)
    return found.value


def _any_of_both(m: Machine, lanes: Value) -> Value:
    """Whether something holds for any lane. x86 tests two mask registers at once; as one mask of 32 lanes they would be joined first."""
    return m.any(m.slice(lanes, 0, HALF) | m.slice(lanes, HALF, HALF) if lanes.lanes == 2 * HALF else lanes)


def enclose_rsq(m: Machine, x: Value, y: Value) -> tuple[Value, Value]:
    """Both ends of an interval around 1 / sqrt(x), rounded, from any approximation y within 2^-14: where they are equal, both are correct.

    The residual r = x y² - 1 is at most 2^-13, and the result y + y r (3/8 r - 1/2). With u = 2^-24 the relative error of the product is
    at most (2u + u²/r) of the residual, u of y r, u of the second factor and u/6 of the next term of the series: below 7u where r is at
    least u/2, and the ends are 8u away. Where r is less, all three round to y: half of r is less than half a unit of its last place.
    """
    product = x * y
    residual = m.fma(m.fma(x, y, -product), y, m.fma(product, y, m.like(x, -1.0)))
    change, slope = y * residual, m.like(x, 0.375)
    ends = (m.fma(residual, slope, m.like(x, middle)) for middle in (-0.5 - MARGIN, -0.5 + MARGIN))
    low, high = (m.fma(change, end, y) for end in ends)
    return low, high


def _guessed_rsq(m: Machine, x: Value, guess: Value) -> Value:
    """1 / sqrt(x) within 2^-15, from the bits of an approximation within 4 %: the residual is 1 - x y²."""
    y = m.bitcast(guess, f32)
    lacks = m.fma(-(x * y), y, m.like(x, 1.0))
    return m.fma(y * lacks, m.fma(lacks, m.like(x, 0.375), m.like(x, 0.5)), y)


def near_rsq(m: Machine, x: Value, y: Value) -> Value:
    """1 / sqrt(x) or one of its neighbours, from any approximation y within 2^-14.

    Half a unit of the last place is lost by rounding, half a unit by that of x y, a tenth by the square of the residual; and half a unit
    lies between the root and its rounding: less than two.
    """
    return m.fma(y * 0.5, m.fma(-(x * y), y, m.like(x, 1.0)), y)


def round_rsq(m: Machine, x: Value, y: Value) -> Value:
    """1 / sqrt(x) correctly rounded, from that or one of its neighbours; the residual includes the rounding error of x y.

    Proved for all floats and their neighbours (tests/eu/semantics/test_math.py): a power of four only scales.
    """
    product = x * y
    lacks = m.fma(-m.fma(x, y, -product), y, m.fma(-product, y, m.like(x, 1.0)))
    return m.fma(y * lacks, m.fma(lacks, m.like(x, 0.375), m.like(x, 0.5)), y)


def _any_rsq(m: Machine, x: Value, bits: Value) -> Value:
    tiny = bits < SMALLEST  # denormals have no exponent to start from
    scaled = m.bitcast(m.select(tiny, x * 2.0**24, x), u32)
    guess = m.select(tiny, m.like(bits, GUESS + (12 << 23)), m.like(bits, GUESS)) - (scaled >> 1)
    ends = m.bitcast(m.like(bits, INFINITY) - bits, f32)  # 0 -> infinity with its sign, infinity -> 0
    other = m.select(x >= 0.0, ends, m.like(x, float("nan")))
    return m.select(bits - 1 < INFINITY - 1, round_rsq(m, x, near_rsq(m, x, _guessed_rsq(m, x, guess))), other)


def power(m: Machine, x: Value, y: Value) -> Value:
    return exp2(m, y * log2(m, x))


def sqrt(m: Machine, x: Value) -> Value:
    return m.sqrt(x)


def divide(m: Machine, x: Value, y: Value) -> Value:
    return m.div(x, y)


FLOATS: dict[str, Callable[..., Value]] = {"inv": inv, "log": log, "exp": exp, "sqrt": sqrt, "rsq": rsq, "sin": sin, "cos": cos,
                                           "fdiv": divide, "pow": power}  # fmt: skip
FAST_PATHS = frozenset({"rsq"})  # functions that test whether a fast path holds for all lanes
POSITIVE = frozenset({"log", "rsq", "sqrt"})  # functions of the absolute value in ALT mode, each of one source (IVB 1063-1073)
ONCE = frozenset({"inv", "sqrt", "fdiv"})  # correctly rounded in the source type; in doubles they would be rounded twice
SINGLE = ONCE | {"rsq", "exp", "log", "sin", "cos"}  # functions that take floats as they are


def alternate(m: Machine, value: Value) -> Value:
    """A float as ALT mode has it: the largest finite number for an infinity of its sign, zero for NaN (IVB 166-169, 1062-1072)."""
    largest = m.bitcast(m.constant(u32, LARGEST, value.lanes), f32)
    value = m.select(m.is_inf(value), m.copysign(largest, value), value)
    return m.select(m.is_nan(value), m.like(value, 0.0), value)


def evaluate(m: Machine, name: str, alt: bool, *sources: Value) -> Value:
    """Evaluate a float function in the type of its sources."""
    type = sources[0].type
    if alt and name in POSITIVE:
        sources = (m.absolute(sources[0]),)
    if name in (SINGLE if type is f32 else ONCE):
        return FLOATS[name](m, *sources)
    return m.convert(FLOATS[name](m, *(m.convert(src, f64) for src in sources)), type)

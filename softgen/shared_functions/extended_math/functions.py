"""Extended math functions, built from exact operations only: every machine and every host gives the same bits.

Floats are computed in doubles (correctly rounded + − × ÷ √ and fma, and polynomials of them) and rounded once, to nearest even, whatever
cr0 says (BDW 20823). Accuracy, tested over the whole range of floats:
    inv fdiv sqrt rsq   correctly rounded      exp log   within 0.51 ULP (log near 1 too)
    sin cos         within 0.51 ULP where |x| <= 2^20; beyond 2^45 no argument reduction: sin 0, cos 1
    pow             exp of y times log x, in doubles: NaN for negative x, and for 0 to the power 0
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial

from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, f64, i64, u32, u64
from softgen.lanes.value import Value

LN2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068000949339362196969471560586")
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
# Polynomials are as long as floats need: the first term left out is below 2^-36 of the result; of log2, which pow multiplies, 2^-50.
HALVES = [float(LN2**k / factorial(k)) for k in range(10)]  # 2^r
ARTANH = [float(2 / LN2 / (2 * k + 1)) for k in range(9)]  # log2 of (1 + s) / (1 - s) by odd powers of s
SINE = [float(Fraction((-1) ** k, factorial(2 * k + 1))) for k in range(6)]
COSINE = [float(Fraction((-1) ** k, factorial(2 * k))) for k in range(7)]
QUARTER = [float(PI / 2)]  # pi / 2 as a sum of three doubles
QUARTER.append(float(PI / 2 - Fraction(QUARTER[0])))
QUARTER.append(float(PI / 2 - Fraction(QUARTER[0]) - Fraction(QUARTER[1])))
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # the square root of one half
FAR = 2.0**45
INFINITY, SMALLEST = 0x7F800000, 0x00800000  # bits of floats: infinity, and the smallest normal number
MARGIN = 2.0**-22  # 8u of one half: see enclose_rsq
GUESS = 0x5F375A86  # minus half the bits of x: a first approximation of 1 / sqrt(x) within 4 %
FRACTION, BIAS = 52, 1023
NO_FRACTION = 1.5 * 2.0**23


def _polynomial(m: Machine, x: Value, coefficients: list[float]) -> Value:
    total = m.like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = m.fma(total, x, m.like(x, coefficient))
    return total


def exp2(m: Machine, x: Value) -> Value:
    """2^x of doubles within the range of floats; infinity or 0 outside."""
    held = m.select(x > 1000.0, 1000.0, m.select(x < -1000.0, m.like(x, -1000.0), x))
    whole = m.round_even(held)
    scale = m.bitcast(m.convert(whole, i64) + BIAS << FRACTION, f64)
    value = _polynomial(m, held - whole, HALVES) * scale
    return m.select(m.is_nan(x), x, value)


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


def log2(m: Machine, x: Value) -> Value:
    """log2 of normal doubles."""
    bits = m.bitcast(x, u64)
    exponent = m.bitcast(bits - ROOT_HALF_BITS, i64) >> FRACTION  # so that the rest is near 1
    rest = m.bitcast(bits - m.bitcast(exponent << FRACTION, u64), f64)
    s = m.div(rest - 1.0, rest + 1.0)
    value = m.convert(exponent, f64) + s * _polynomial(m, s * s, ARTANH)
    value = m.select(x == 0.0, m.like(x, float("-inf")), value)
    value = m.select(x < 0.0, m.like(x, float("nan")), value)
    return m.select(m.is_nan(x) | (x == float("inf")), x, value)


def _sine(m: Machine, x: Value, quarters: int) -> Value:
    """sin(x + quarters * pi / 2)."""
    far = m.absolute(x) > FAR
    near = m.select(far, m.like(x, 0.0), x)
    count = m.round_even(near * float(2 / PI))
    rest = near
    for piece in QUARTER:
        rest = m.fma(-count, m.like(x, piece), rest)
    square = rest * rest
    sine, cosine = rest * _polynomial(m, square, SINE), _polynomial(m, square, COSINE)
    place = m.convert(count, i64) + quarters & 3
    value = m.select((place & 1) == 1, cosine, sine)
    value = m.select(place > 1, -value, value)
    return m.select(m.is_nan(x) | m.is_inf(x), m.like(x, float("nan")), value)


def sin(m: Machine, x: Value) -> Value:
    value = _sine(m, x, 0)
    return m.select(x == 0.0, x, value)  # a zero keeps its sign


def cos(m: Machine, x: Value) -> Value:
    return _sine(m, x, 1)


def inv(m: Machine, x: Value) -> Value:
    return m.div(m.like(x, 1.0), x)


def rsq(m: Machine, x: Value) -> Value:
    """1 / sqrt(x), correctly rounded. The fast path requires that the rounding is certain in all lanes: a zero, a negative number, an
    infinity and a NaN never are."""
    if x.type is not f32:
        return m.div(m.like(x, 1.0), m.sqrt(x))
    bits, start = m.bitcast(x, u32), m.estimate_rsq(x)
    if start is None:
        low = high = round_rsq(m, x, near_rsq(m, x, _guessed_rsq(m, x, m.like(bits, GUESS) - (bits >> 1))))
        uncertain = bits - SMALLEST >= INFINITY - SMALLEST
    else:
        low, high = enclose_rsq(m, x, start)
        uncertain = low != high
    found = m.variable(low)
    for _ in m.If(m.any(uncertain)):
        found.value = _any_rsq(m, x, bits)
    return found.value


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


FLOATS: dict[str, Callable[..., Value]] = {"inv": inv, "log": log2, "exp": exp, "sqrt": sqrt, "rsq": rsq, "sin": sin, "cos": cos,
                                           "fdiv": divide, "pow": power}  # fmt: skip
POSITIVE = frozenset({"log", "rsq", "sqrt"})  # functions of the absolute value in ALT mode (IVB 1063-1073)
ONCE = frozenset({"inv", "sqrt", "fdiv"})  # correctly rounded in the source type; in doubles they would be rounded twice
SINGLE = ONCE | {"rsq", "exp"}  # functions that take floats as they are


def evaluate(m: Machine, name: str, alt: bool, *sources: Value) -> Value:
    """Evaluate a float function in the type of its sources."""
    type = sources[0].type
    if alt and name in POSITIVE:
        sources = (m.absolute(sources[0]), *sources[1:])
    if name in (SINGLE if type is f32 else ONCE):
        return FLOATS[name](m, *sources)
    return m.convert(FLOATS[name](m, *(m.convert(src, f64) for src in sources)), type)

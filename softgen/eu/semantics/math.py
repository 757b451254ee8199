"""Extended math, from exact operations only: every machine and every host gives the same bits.

Floats are computed in doubles (correctly rounded + − × ÷ √ and fma, and polynomials of them) and rounded once, to nearest even, whatever
cr0 says (BDW 20823). Accuracy, tested over the whole range of floats:
    inv fdiv sqrt   correctly rounded          rsq   within 0.501 ULP        exp log   within 0.51 ULP (log near 1 too)
    sin cos         within 0.51 ULP where |x| <= 2^20; beyond 2^45 there is nothing left to reduce: sin 0, cos 1
    pow             exp of y times log x, in doubles: NaN for negative x, and for 0 to the power 0
Integer division is exact. By zero the quotient is all ones and the remainder the numerator.

The macros of correctly rounded division and square root start with invm and rsqrtm, which may say per channel that the result is already
there (the flag of the macro, "early out"); here it always is, so what follows in the macro has nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import opcodes
from softgen.eu.semantics import Computation, op
from softgen.lanes.machine import Machine
from softgen.lanes.types import bool_, f32, f64, i64, u32, u64
from softgen.lanes.value import Value

LN2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068000949339362196969471560586")
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
HALVES = [float(LN2**k / factorial(k)) for k in range(14)]  # 2^r
ARTANH = [float(2 / LN2 / (2 * k + 1)) for k in range(13)]  # log2 of (1 + s) / (1 - s) by odd powers of s
SINE = [float(Fraction((-1) ** k, factorial(2 * k + 1))) for k in range(10)]
COSINE = [float(Fraction((-1) ** k, factorial(2 * k))) for k in range(10)]
QUARTER = [float(PI / 2)]  # a quarter turn in three pieces, the later ones what the earlier leave
QUARTER.append(float(PI / 2 - Fraction(QUARTER[0])))
QUARTER.append(float(PI / 2 - Fraction(QUARTER[0]) - Fraction(QUARTER[1])))
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # the square root of one half
FAR = 2.0**45
INFINITY, SMALLEST = 0x7F800000, 0x00800000  # bits of singles: of the one, and of the smallest that is no denormal
GUESS = 0x5F375A86  # bits from which half those of x are taken: a reciprocal root within four percent
FRACTION, BIAS = 52, 1023


def _polynomial(m: Machine, x: Value, coefficients: list[float]) -> Value:
    total = m.like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = m.fma(total, x, m.like(x, coefficient))
    return total


def exp2(m: Machine, x: Value) -> Value:
    """2^x of doubles, where it lies within the range of floats; outside it is infinite or 0."""
    held = m.select(x > 1000.0, 1000.0, m.select(x < -1000.0, m.like(x, -1000.0), x))
    whole = m.round_even(held)
    scale = m.bitcast(m.convert(whole, i64) + BIAS << FRACTION, f64)
    value = _polynomial(m, held - whole, HALVES) * scale
    return m.select(m.is_nan(x), x, value)


def log2(m: Machine, x: Value) -> Value:
    """log2 of doubles that are no denormals."""
    bits = m.bitcast(x, u64)
    exponent = m.bitcast(bits - ROOT_HALF_BITS, i64) >> FRACTION  # so that what is left lies around 1
    rest = m.bitcast(bits - m.bitcast(exponent << FRACTION, u64), f64)
    s = m.div(rest - 1.0, rest + 1.0)
    value = m.convert(exponent, f64) + s * _polynomial(m, s * s, ARTANH)
    value = m.select(x == 0.0, m.like(x, float("-inf")), value)
    value = m.select(x < 0.0, m.like(x, float("nan")), value)
    return m.select(m.is_nan(x) | (x == float("inf")), x, value)


def _turn(m: Machine, x: Value, quarters: int) -> Value:
    """The sine of x and some quarter turns."""
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
    value = _turn(m, x, 0)
    return m.select(x == 0.0, x, value)  # a zero keeps its sign


def cos(m: Machine, x: Value) -> Value:
    return _turn(m, x, 1)


def inv(m: Machine, x: Value) -> Value:
    return m.div(m.like(x, 1.0), x)


def rsq(m: Machine, x: Value) -> Value:
    """Singles that are positive, finite and no denormals, all lanes of them, are the common case."""
    if x.type is not f32:
        return m.div(m.like(x, 1.0), m.sqrt(x))
    bits = m.bitcast(x, u32)
    found = m.variable(_better(m, x, m.bitcast(m.like(bits, GUESS) - (bits >> 1), f32)))
    for _ in m.If(m.any(bits - SMALLEST >= INFINITY - SMALLEST)):
        found.value = _any_rsq(m, x, bits)
    return found.value


def _better(m: Machine, x: Value, y: Value) -> Value:
    """A reciprocal root from a guess, which is made better twice: no host divides as fast as it multiplies. Each time y is off by what x y²
    lacks of one; the second time the rounding error of x y counts, too."""
    for last in (False, True):
        product = x * y
        lacks = m.fma(-product, y, m.like(x, 1.0))
        if last:
            lacks = m.fma(-m.fma(x, y, -product), y, lacks)
        y = m.fma(y * lacks, m.fma(lacks, m.like(x, 0.375), m.like(x, 0.5)), y)
    return y


def _any_rsq(m: Machine, x: Value, bits: Value) -> Value:
    tiny = bits < SMALLEST  # denormals have no exponent to guess from
    scaled = m.bitcast(m.select(tiny, x * 2.0**24, x), u32)
    guess = m.select(tiny, m.like(bits, GUESS + (12 << 23)), m.like(bits, GUESS)) - (scaled >> 1)
    ends = m.bitcast(m.like(bits, INFINITY) - bits, f32)  # zeros and infinity, each for the other; a zero keeps its sign
    other = m.select(x >= 0.0, ends, m.like(x, float("nan")))
    return m.select(bits - 1 < INFINITY - 1, _better(m, x, m.bitcast(guess, f32)), other)


def power(m: Machine, x: Value, y: Value) -> Value:
    return exp2(m, y * log2(m, x))


def sqrt(m: Machine, x: Value) -> Value:
    return m.sqrt(x)


def divide(m: Machine, x: Value, y: Value) -> Value:
    return m.div(x, y)


FLOATS: dict[str, Callable[..., Value]] = {"inv": inv, "log": log2, "exp": exp2, "sqrt": sqrt, "rsq": rsq, "sin": sin, "cos": cos,
                                           "fdiv": divide, "pow": power}  # fmt: skip
POSITIVE = frozenset({"log", "rsq", "sqrt"})  # of absolute values in ALT mode (IVB 1063-1073)
ONCE = frozenset({"inv", "sqrt", "fdiv"})  # correctly rounded in the type itself: in doubles they would be rounded twice
SINGLE = ONCE | {"rsq"}  # what singles are computed with as they are


def evaluate(m: Machine, name: str, alt: bool, *sources: Value) -> Value:
    """A float function in the type of its sources."""
    type = sources[0].type
    if alt and name in POSITIVE:
        sources = (m.absolute(sources[0]), *sources[1:])
    if name in (SINGLE if type is f32 else ONCE):
        return FLOATS[name](m, *sources)
    return m.convert(FLOATS[name](m, *(m.convert(src, f64) for src in sources)), type)


@op()
def math(c: Computation, a: Value, b: Value | None = None) -> Value:
    function = opcodes.math_function(c.instruction.function, c.state.gen)
    if function is None:
        raise DecodeError(f"math has no function {c.instruction.function} on gen {c.state.gen:g}")
    sources = (a, b)[: function.sources]
    if function.integer:
        return _integers(c, function.name, a, b)
    if not a.type.is_float:
        raise Unsupported(f"math {function.name} of integers is not yet simulated")
    if function.macro:
        return _macro(c, function.name, a, b)
    return evaluate(c.m, function.name, c.state.mode.alt, *(value for value in sources if value is not None))


def _integers(c: Computation, name: str, a: Value, b: Value | None) -> Value:
    assert b is not None
    if a.type.is_float:
        raise Unsupported(f"math {name} of floats is not yet simulated")
    if name == "intdivmod":
        c.write_next(c.m.remainder_int(a, b))
    return c.m.remainder_int(a, b) if name == "intmod" else c.m.divide_int(a, b)


def _macro(c: Computation, name: str, a: Value, b: Value | None) -> Value:
    rounding = c.state.mode.rounding
    c.set_flags(c.m.constant(bool_, 1, a.lanes))
    if name == "invm" and b is not None:
        return c.m.div(a, b, rounding)
    return c.m.sqrt(a, rounding)

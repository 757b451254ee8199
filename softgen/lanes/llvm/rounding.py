"""Rounding other than to nearest, and 16-bit arithmetic the host lacks, as lane programs over what every host has.

For hosts that round to nearest only. The nearest result r is computed first; then the exact result is compared with r, and r moves to
its neighbour where the rounding asks for it. r is one of the two floats around the exact result, so no other case exists.

Why the comparisons are exact:
- f16 and f32 are compared in f64, where a product of two, r × b and r × r have at most 48 bits and fit. A sum may not fit; Knuth's
  two-sum gives sum and error, and since rounding is monotone the error matters only where the rounded sum equals r.
- f64 sums: fast two-sum on sorted operands is exact without overflow; the sum itself is r.
- f64 products, quotients and roots: fma(x, y, -z) has the sign of x × y - z unless that underflows. Where |z| < 2^-900 the smaller
  factor and z are scaled by 2^1080 first: the lowest bit of a product, 2^-2148 or more, then stays above the lowest denormal.
- f64 fma: all is scaled so that the larger of product and addend is near 1, the product is split in two by fma, and the signs of the
  four parts' sum comes from an expansion (Shewchuk 1997, grow-expansion). A part more than 2^400 smaller than the rest only shows as
  a sign and is brought to 2^-400.
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, f16, f32, f64, i64, u32, u64
from softgen.lanes.value import Value

Sides = tuple[Value, Value]         # where the exact result is above the rounded one, and where below


def wide(m: Machine, a: Value) -> Value:
    return m.convert(a, f64)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum, and exactly what it lacks."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def sides(total: Value, error: Value, rounded: Value) -> Sides:
    """total + error against rounded; total is the rounded sum of the two."""
    same = total == rounded
    return (total > rounded) | (same & (error > 0.0)), (total < rounded) | (same & (error < 0.0))


def finite(m: Machine, a: Value) -> Value:
    return m.absolute(a) < float("inf")


def moved(m: Machine, rounded: Value, sides: Sides, rounding: str) -> Value:
    """One step toward the exact result where the rounding mode requires it. As bits, a step away from zero is +1."""
    above, below = sides
    bits = m.bitcast(rounded, rounded.type.unsigned)
    negative = m.sign_bit(rounded)
    nothing, forth, back = m.like(bits, 0), m.like(bits, 1), m.like(bits, bits.type.highest)
    if rounding == "ru":
        step = m.select(above, m.select(negative, back, forth), nothing)
    elif rounding == "rd":
        step = m.select(below, m.select(negative, forth, back), nothing)
    else:
        step = m.select((negative & above) | (~negative & below), back, nothing)
    return m.bitcast(bits + step, rounded.type)


def signed_zero(m: Machine, result: Value, sides: Sides, unlike: Value, rounding: str) -> Value:
    """Rounding down, a sum of unlike signs that is exactly zero is -0."""
    if rounding != "rd":
        return result
    exact = ~(sides[0] | sides[1])
    return m.select((result == 0.0) & exact & unlike, m.negate(m.like(result, 0.0)), result)


# -- f64 -----------------------------------------------------------------------------------------------------------------


def sum_sides(m: Machine, a: Value, b: Value, rounded: Value) -> Sides:
    swap = m.absolute(a) < m.absolute(b)
    big, small = m.select(swap, b, a), m.select(swap, a, b)
    error = small - (rounded - big)  # infinite, and on the right side, where finite numbers have an infinite sum
    return error > 0.0, error < 0.0


def product_sides(m: Machine, x: Value, y: Value, z: Value) -> Sides:
    """Where x × y is above z, and where below; z is near the product, or what a product that underflowed became."""
    swap = m.absolute(x) < m.absolute(y)
    big, small = m.select(swap, y, x), m.select(swap, x, y)
    scale = m.select(m.absolute(z) < 2.0**-900, m.like(z, 2.0**540), m.like(z, 1.0))
    difference = m.fma(small * scale * scale, big, -(z * scale * scale))
    return difference > 0.0, difference < 0.0


def apart(m: Machine, a: Value) -> tuple[Value, Value]:
    """A significand from 1 to 2, signed, and the exponent; zero stays zero and has the lowest exponent there is."""
    denormal = m.absolute(a) < 2.0**-1022
    bits = m.bitcast(m.select(denormal, a * 2.0**54, a), u64)
    exponent = m.bitcast(bits >> 52 & 0x7FF, i64) - m.select(denormal, m.constant(i64, 1023 + 54, a.lanes), m.constant(i64, 1023, a.lanes))
    significand = m.bitcast(bits & (1 << 63 | (1 << 52) - 1) | 1023 << 52, f64)
    zero = a == 0.0
    return m.select(zero, a, significand), m.select(zero, m.constant(i64, -5000, a.lanes), exponent)


def scaled(m: Machine, significand: Value, exponent: Value) -> Value:
    """Times a power of two from 2^-400 to 2^400; beyond these only the sign matters."""
    exponent = m.select(exponent < -400, m.like(exponent, -400), exponent)
    exponent = m.select(exponent > 400, m.like(exponent, 400), exponent)
    return significand * m.bitcast(m.bitcast(exponent + 1023, u64) << 52, f64)


def fma_sides(m: Machine, a: Value, b: Value, c: Value, rounded: Value) -> Sides:
    (x, x_exponent), (y, y_exponent), (z, z_exponent), (r, r_exponent) = (apart(m, operand) for operand in (a, b, c, rounded))
    product_exponent = x_exponent + y_exponent
    top = m.select(product_exponent > z_exponent, product_exponent, z_exponent)
    x, z, r = scaled(m, x, product_exponent - top), scaled(m, z, z_exponent - top), scaled(m, r, r_exponent - top)
    high = x * y
    parts = [z]
    for term in (high, m.fma(x, y, -high), -r):
        grown = []
        for part in parts:
            term, rest = two_sum(term, part)
            grown.append(rest)
        parts = [*grown, term]
    leading = parts[0]
    for part in parts[1:]:
        leading = m.select(part != 0.0, part, leading)
    inputs = finite(m, a) & finite(m, b) & finite(m, c)
    lost = inputs & m.is_inf(rounded)
    return (m.select(lost, rounded < 0.0, inputs & (leading > 0.0)), m.select(lost, rounded > 0.0, inputs & (leading < 0.0)))


# -- the operations ----------------------------------------------------------------------------------------------------------


def add(m: Machine, rounding: str, a: Value, b: Value) -> Value:
    rounded = a + b
    if a.type is f64:
        found = sum_sides(m, a, b, rounded)
    else:
        found = sides(*two_sum(wide(m, a), wide(m, b)), wide(m, rounded))
    return signed_zero(m, moved(m, rounded, found, rounding), found, m.sign_bit(a) ^ m.sign_bit(b), rounding)


def sub(m: Machine, rounding: str, a: Value, b: Value) -> Value:
    return add(m, rounding, a, -b)


def mul(m: Machine, rounding: str, a: Value, b: Value) -> Value:
    rounded = a * b
    if a.type is f64:
        return moved(m, rounded, product_sides(m, a, b, rounded), rounding)
    product = wide(m, a) * wide(m, b)
    return moved(m, rounded, sides(product, m.like(product, 0.0), wide(m, rounded)), rounding)


def div(m: Machine, rounding: str, a: Value, b: Value) -> Value:
    rounded = m.div(a, b)
    if a.type is f64:
        over, under = product_sides(m, rounded, b, a)
    else:
        product = wide(m, rounded) * wide(m, b)
        over, under = product > wide(m, a), product < wide(m, a)
    negative = m.sign_bit(b)                            # r × b above a means r above a ÷ b, unless b is negative
    return moved(m, rounded, (m.select(negative, over, under), m.select(negative, under, over)), rounding)


def sqrt(m: Machine, rounding: str, a: Value) -> Value:
    rounded = m.sqrt(a)
    if a.type is f64:
        over, under = product_sides(m, rounded, rounded, a)
    else:
        square = wide(m, rounded) * wide(m, rounded)
        over, under = square > wide(m, a), square < wide(m, a)
    return moved(m, rounded, (under, over), rounding)


def fma(m: Machine, rounding: str, a: Value, b: Value, c: Value) -> Value:
    rounded = m.fma(a, b, c)
    if a.type is f64:
        found = fma_sides(m, a, b, c, rounded)
    else:
        found = sides(*two_sum(wide(m, a) * wide(m, b), wide(m, c)), wide(m, rounded))
    unlike = m.sign_bit(a) ^ m.sign_bit(b) ^ m.sign_bit(c)
    return signed_zero(m, moved(m, rounded, found, rounding), found, unlike, rounding)


OPERATIONS: dict[str, Callable[..., Value]] = {"add": add, "sub": sub, "mul": mul, "div": div, "sqrt": sqrt, "fma": fma}


def convert(m: Machine, a: Value, type: LaneType, rounding: str) -> Value:
    """A number to a float."""
    rounded = m.convert(a, type)
    if a.type.is_float and a.type.bits < type.bits:
        return rounded
    if a.type.bits < 64 or a.type.is_float:
        exact = wide(m, a)
        return moved(m, rounded, sides(exact, m.like(exact, 0.0), wide(m, rounded)), rounding)
    high = m.convert(a >> 32, f64) * 2.0**32
    low = m.convert(m.convert(a, u32), f64)
    return moved(m, rounded, sides(*two_sum(high, low), wide(m, rounded)), rounding)


# -- 16 bits to nearest, on hosts without instructions for them ------------------------------------------------------------------


def to_odd(m: Machine, total: Value, error: Value) -> Value:
    """Of the two floats around total + error, the one whose last bit is odd; exact sums stay. Rounding from there to a type two or more
    bits shorter gives what rounding once would have (Boldo and Melquiond 2008)."""
    bits = m.bitcast(total, total.type.signed)
    nearer = (bits ^ m.bitcast(error, error.type.signed)) >> total.type.bits - 1        # -1 where the exact sum is nearer to zero
    return m.bitcast(m.select((error > 0.0) | (error < 0.0), bits + nearer | 1, bits), total.type)


def narrow_to_half(m: Machine, a: Value) -> Value:
    """f64 to f16, by way of f32 rounded to odd: bits that do not fit leave a one in the last that does. Where f32 ends, f16 is infinite
    or zero already."""
    bits, beyond = m.bitcast(a, u64), (1 << f64.fraction - f32.fraction) - 1
    odd = (bits | (bits & beyond) + beyond) & u64.highest - beyond
    return m.convert(m.convert(m.bitcast(odd, f64), f32), f16)


def fma_half(m: Machine, a: Value, b: Value, c: Value) -> Value:
    """In f32: a product has 22 bits, and no sum but zero is below 2**-48, far from f32's own denormals."""
    first, second, third = (m.convert(operand, f32) for operand in (a, b, c))
    total, error = two_sum(first * second, third)
    return m.convert(to_odd(m, total, error), f16)

"""What every operation should give, worked out another way: fractions, and a search among the floats there are.

Floats go in and out as bits. A NaN comes out as the string "nan", whatever its payload.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

from softgen.lanes.types import LaneType

NAN = "nan"
Found = int | str
_CODES = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}


def number(type: LaneType, bits: int) -> float:
    """A float of any width as Python's own."""
    code, raw = _CODES[type.bits]
    return struct.unpack(code, struct.pack(raw, bits))[0]      # type: ignore[no-any-return]


def sign(type: LaneType, bits: int) -> int:
    return bits >> type.bits - 1


def is_nan(type: LaneType, bits: int) -> bool:
    return number(type, bits) != number(type, bits)


def is_inf(type: LaneType, bits: int) -> bool:
    return abs(number(type, bits)) == float("inf")


def infinity(type: LaneType) -> int:
    return {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}[type.bits]


def magnitude(type: LaneType, bits: int) -> Fraction:
    """The value of positive bits; infinity is where the next float would have been."""
    if bits == infinity(type):
        return 2 * magnitude(type, bits - (1 << {16: 10, 32: 23, 64: 52}[type.bits]))
    return Fraction(number(type, bits))


def nearest(type: LaneType, negative: bool, above: Callable[[Fraction], int], mode: str, guess: float) -> int:
    """Bits of the float that `mode` chooses for a magnitude known by comparison: above(x) is the sign of (magnitude - x).

    The guess only says where to begin to look; what is found is checked from both sides.
    """
    low = high = as_bits(type, guess)
    step = 1
    while low and above(magnitude(type, low)) < 0:
        low, step = max(0, low - step), step * 2
    while high < infinity(type) and above(magnitude(type, high)) >= 0:
        high, step = min(infinity(type), high + step), step * 2
    low = min(low, high - 1)                            # past the largest float: between it and infinity
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(magnitude(type, middle)) >= 0 else (low, middle)
    top = sign_bits(type, negative)
    if above(magnitude(type, low)) == 0:
        return top | low
    if mode == "rne":
        side = above((magnitude(type, low) + magnitude(type, high)) / 2)
        return top | (high if side > 0 or side == 0 and low % 2 else low)
    return top | (high if mode == ("rd" if negative else "ru") else low)


def as_bits(type: LaneType, guess: float) -> int:
    code, raw = _CODES[type.bits]
    try:
        return int(struct.unpack(raw, struct.pack(code, guess))[0])
    except OverflowError:
        return infinity(type)


def sign_bits(type: LaneType, negative: bool) -> int:
    return int(negative) << type.bits - 1


def round_fraction(type: LaneType, exact: Fraction, mode: str) -> int:
    def above(x: Fraction) -> int:
        return (abs(exact) > x) - (abs(exact) < x)
    try:
        guess = abs(float(exact))
    except OverflowError:
        guess = float("inf")
    return nearest(type, exact < 0, above, mode, guess)


def zero_sum(type: LaneType, signs: list[int], mode: str) -> int:
    """A sum that is exactly zero: like signs keep theirs, unlike ones give +0, or -0 when rounding down."""
    return sign_bits(type, signs[0] == 1 if signs[0] == signs[1] else mode == "rd")


def add(type: LaneType, mode: str, a: int, b: int) -> Found:
    x, y = number(type, a), number(type, b)
    if is_nan(type, a) or is_nan(type, b) or is_inf(type, a) and is_inf(type, b) and x != y:
        return NAN
    if is_inf(type, a) or is_inf(type, b):
        return a if is_inf(type, a) else b
    exact = Fraction(x) + Fraction(y)
    return round_fraction(type, exact, mode) if exact else zero_sum(type, [sign(type, a), sign(type, b)], mode)


def sub(type: LaneType, mode: str, a: int, b: int) -> Found:
    return add(type, mode, a, b ^ sign_bits(type, True))


def mul(type: LaneType, mode: str, a: int, b: int) -> Found:
    negative = sign(type, a) != sign(type, b)
    x, y = number(type, a), number(type, b)
    if x != x or y != y or x * y != x * y and (x == 0 or y == 0):
        return NAN
    if is_inf(type, a) or is_inf(type, b):
        return sign_bits(type, negative) | infinity(type)
    return round_fraction(type, Fraction(x) * Fraction(y), mode) | sign_bits(type, negative)


def fma(type: LaneType, mode: str, a: int, b: int, c: int) -> Found:
    product = mul(type, "rtz", a, b)                    # only for its sign and for infinity or NaN of the operands
    if product == NAN or is_nan(type, c):
        return NAN
    negative = sign(type, a) != sign(type, b)
    if is_inf(type, a) or is_inf(type, b):
        return NAN if is_inf(type, c) and sign(type, c) != negative else sign_bits(type, negative) | infinity(type)
    if is_inf(type, c):
        return c
    exact = Fraction(number(type, a)) * Fraction(number(type, b)) + Fraction(number(type, c))
    return round_fraction(type, exact, mode) if exact else zero_sum(type, [int(negative), sign(type, c)], mode)


def div(type: LaneType, mode: str, a: int, b: int) -> Found:
    negative = sign(type, a) != sign(type, b)
    x, y = number(type, a), number(type, b)
    if x != x or y != y or x == 0 == y or is_inf(type, a) and is_inf(type, b):
        return NAN
    if y == 0 or is_inf(type, a):
        return sign_bits(type, negative) | infinity(type)
    if is_inf(type, b):
        return sign_bits(type, negative)
    return round_fraction(type, Fraction(x) / Fraction(y), mode) | sign_bits(type, negative)


def sqrt(type: LaneType, mode: str, a: int) -> Found:
    x = number(type, a)
    if x != x or x < 0:
        return NAN
    if x == 0 or is_inf(type, a):
        return a
    exact = Fraction(x)

    def above(root: Fraction) -> int:
        return (exact > root * root) - (exact < root * root)
    return nearest(type, False, above, mode, math.sqrt(x))


def whole(choose: Callable[[Fraction], int]) -> Callable[..., Found]:
    """floor and its like, from a function of a fraction."""
    def operation(type: LaneType, mode: str, a: int) -> Found:
        if is_nan(type, a):
            return NAN
        if is_inf(type, a):
            return a
        return round_fraction(type, Fraction(choose(Fraction(number(type, a)))), "rne") | sign_bits(type, sign(type, a) == 1)
    return operation


FLOAT: dict[str, Callable[..., Found]] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "fma": fma, "sqrt": sqrt,
    "floor": whole(lambda x: x.__floor__()),
    "ceil": whole(lambda x: x.__ceil__()),
    "trunc": whole(lambda x: x.__trunc__()),
    "round_even": whole(round),
    "negate": lambda type, mode, a: a ^ sign_bits(type, True),
    "equal": lambda type, mode, a, b: int(number(type, a) == number(type, b)),
    "not_equal": lambda type, mode, a, b: int(number(type, a) != number(type, b)),
    "less": lambda type, mode, a, b: int(number(type, a) < number(type, b)),
    "less_equal": lambda type, mode, a, b: int(number(type, a) <= number(type, b)),
    "greater": lambda type, mode, a, b: int(number(type, a) > number(type, b)),
    "greater_equal": lambda type, mode, a, b: int(number(type, a) >= number(type, b)),
}


def wrap(type: LaneType, value: int) -> int:
    """Into the type's range, as two's complement does."""
    value %= 1 << type.bits
    return value - (1 << type.bits) if type.is_signed and value >> type.bits - 1 else value


def divide(a: int, b: int) -> tuple[int, int]:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def binary(type: LaneType, a: int) -> str:
    return format(a % (1 << type.bits), f"0{type.bits}b")


INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda type, a, b: a + b,
    "sub": lambda type, a, b: a - b,
    "mul": lambda type, a, b: a * b,
    "negate": lambda type, a: -a,
    "bit_and": lambda type, a, b: a & b,
    "bit_or": lambda type, a, b: a | b,
    "bit_xor": lambda type, a, b: a ^ b,
    "bit_not": lambda type, a: 1 - a if type.is_bool else -a - 1,
    "shift_left": lambda type, a, b: a * 2**b,
    "shift_right": lambda type, a, b: a // 2**b,
    "equal": lambda type, a, b: int(a == b),
    "not_equal": lambda type, a, b: int(a != b),
    "less": lambda type, a, b: int(a < b),
    "less_equal": lambda type, a, b: int(a <= b),
    "greater": lambda type, a, b: int(a > b),
    "greater_equal": lambda type, a, b: int(a >= b),
    "divide_int": lambda type, a, b: divide(a, b)[0] if b else -1,
    "remainder_int": lambda type, a, b: divide(a, b)[1] if b else a,
    "mul_high": lambda type, a, b: a * b // 2**type.bits,
    "leading_zeros": lambda type, a: type.bits - len(binary(type, a).lstrip("0")),
    "trailing_zeros": lambda type, a: type.bits - len(binary(type, a).rstrip("0")),
    "count_ones": lambda type, a: binary(type, a).count("1"),
    "reverse_bits": lambda type, a: int(binary(type, a)[::-1], 2),
}


def convert(source: LaneType, type: LaneType, mode: str, a: int) -> Found:
    if not source.is_float:
        return round_fraction(type, Fraction(a), mode) if type.is_float else wrap(type, a)
    x = number(source, a)
    if not type.is_float:
        if x != x:
            return 0
        return max(type.lowest, min(type.highest, int(x))) if not is_inf(source, a) else type.lowest if x < 0 else type.highest
    if x != x:
        return NAN
    top = sign_bits(type, sign(source, a) == 1)
    return top | infinity(type) if is_inf(source, a) else top | round_fraction(type, Fraction(x), mode)

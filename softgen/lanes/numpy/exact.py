"""Correctly rounded arithmetic on Python integers: slow, plain, for every float type and rounding.

A float is taken apart into sign, significand and exponent, the result is worked out exactly (a remainder leaves a sticky bit), and
rounded once. The NumPy machine uses this where the host has no instruction for it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

from softgen.lanes.types import LaneType


class Number(NamedTuple):
    """(-1)^sign × significand × 2^exponent; `special` is "inf", "nan" or empty."""

    sign: int
    significand: int = 0
    exponent: int = 0
    special: str = ""


NAN = Number(0, special="nan")


def unpack(type: LaneType, bits: int) -> Number:
    sign, magnitude = bits >> type.bits - 1, bits & type.sign_mask - 1
    if magnitude >= type.exponent_mask:
        return NAN if magnitude > type.exponent_mask else Number(sign, special="inf")
    field, fraction = magnitude >> type.fraction, magnitude & (1 << type.fraction) - 1
    if field:
        fraction |= 1 << type.fraction
    return Number(sign, fraction, type.lowest_exponent + max(field - 1, 0))


def pack(type: LaneType, number: Number, rounding: str, sticky: bool = False) -> int:
    """Rounds once. `sticky` says that the true magnitude is a little larger; the significand must then have a bit to spare."""
    sign = number.sign << type.bits - 1
    if number.special:
        return type.quiet_nan if number.special == "nan" else sign | type.exponent_mask
    if not number.significand:
        return sign
    unit = max(number.significand.bit_length() + number.exponent - type.fraction - 1, type.lowest_exponent)
    exponent = min(unit, number.exponent)
    half = 1 << unit - exponent                             # in the doubled units of `rest`
    kept, rest = divmod(number.significand << number.exponent - exponent, half)
    rest = rest * 2 + sticky
    away = {"rne": rest > half or rest == half and bool(kept & 1), "ru": not number.sign, "rd": bool(number.sign), "rtz": False}[rounding]
    kept += rest > 0 and away
    # The hidden bit of a normal number, and a carry out of the significand, both add one to the exponent field.
    bits = (unit - type.lowest_exponent << type.fraction) + kept
    if bits >= type.exponent_mask:
        to_infinity = rounding == "rne" or rounding == ("rd" if number.sign else "ru")
        bits = type.exponent_mask - (not to_infinity)
    return sign | bits


def add(type: LaneType, rounding: str, a: Number, b: Number) -> int:
    if a.special or b.special:
        clash = a.special == b.special == "inf" and a.sign != b.sign
        special = NAN if clash or "nan" in (a.special, b.special) else a if a.special else b
        return pack(type, special, rounding)
    exponent = min(a.exponent, b.exponent)
    total = sum((-1) ** number.sign * (number.significand << number.exponent - exponent) for number in (a, b))
    if total:
        return pack(type, Number(int(total < 0), abs(total), exponent), rounding)
    # IEEE 754-2019 6.3: an exact zero sum of unlike signs is +0, and -0 when rounding down.
    sign = a.sign if a.sign == b.sign else int(rounding == "rd")
    return sign << type.bits - 1


def sub(type: LaneType, rounding: str, a: Number, b: Number) -> int:
    return add(type, rounding, a, b._replace(sign=1 - b.sign))


def product(a: Number, b: Number) -> Number:
    sign = a.sign ^ b.sign
    if a.special or b.special:
        nan = "nan" in (a.special, b.special) or not a.special and not a.significand or not b.special and not b.significand
        return NAN if nan else Number(sign, special="inf")
    return Number(sign, a.significand * b.significand, a.exponent + b.exponent)


def mul(type: LaneType, rounding: str, a: Number, b: Number) -> int:
    return pack(type, product(a, b), rounding)


def fma(type: LaneType, rounding: str, a: Number, b: Number, c: Number) -> int:
    return add(type, rounding, product(a, b), c)


def div(type: LaneType, rounding: str, a: Number, b: Number) -> int:
    sign = a.sign ^ b.sign
    if a.special or b.special:
        nan = "nan" in (a.special, b.special) or a.special == b.special
        return pack(type, NAN if nan else Number(sign, special="inf" if a.special else ""), rounding)
    if not b.significand:
        return pack(type, Number(sign, special="inf" if a.significand else "nan"), rounding)
    extra = max(0, type.fraction + 3 + b.significand.bit_length() - a.significand.bit_length())
    quotient, rest = divmod(a.significand << extra, b.significand)
    return pack(type, Number(sign, quotient, a.exponent - b.exponent - extra), rounding, sticky=rest != 0)


def sqrt(type: LaneType, rounding: str, a: Number) -> int:
    if a.special == "nan" or a.sign and (a.special or a.significand):
        return type.quiet_nan
    if a.special or not a.significand:
        return pack(type, a, rounding)
    shift = 2 * (type.fraction + 3)
    shift += a.exponent % 2
    radicand = a.significand << shift
    root = isqrt(radicand)
    return pack(type, Number(0, root, a.exponent - shift >> 1), rounding, sticky=root * root != radicand)


OPERATIONS: dict[str, Callable[..., int]] = {"add": add, "sub": sub, "mul": mul, "div": div, "fma": fma, "sqrt": sqrt}


def apply(name: str, type: LaneType, rounding: str, *operands: list[int]) -> list[int]:
    """An operation on lists of floats given as bits."""
    function = OPERATIONS[name]
    return [function(type, rounding, *(unpack(type, bits) for bits in lane)) for lane in zip(*operands, strict=True)]


def from_float(source: LaneType, type: LaneType, rounding: str, operands: list[int]) -> list[int]:
    return [pack(type, unpack(source, bits), rounding) for bits in operands]


def from_integer(type: LaneType, rounding: str, operands: list[int]) -> list[int]:
    return [pack(type, Number(int(value < 0), abs(value), 0), rounding) for value in operands]

"""Lane contents worth trying: every special value of a type, and Hypothesis strategies that are fond of them."""

from __future__ import annotations

from hypothesis import strategies as st

from softgen.lanes.types import LaneType


def float_specials(type: LaneType) -> list[int]:
    """Bits: zeros, denormals, around powers of two, halves, extremes, infinities, NaNs of both kinds."""
    unit, top = 1 << type.fraction, type.exponent_mask
    one = top >> 1 & ~(unit - 1)                                              # the bias in the exponent field: 1.0
    half = one - unit
    integers_end = one + type.fraction * unit                                   # the first float without a fraction bit to spare
    positive = [0, 1, 2, 3, unit >> 1, unit - 1, unit, unit + 1, 2 * unit - 1, 2 * unit,
                half - 1, half, half + 1, one - 1, one, one + 1, one + (unit >> 1), one + unit, one + unit + (unit >> 2), one + (unit >> 2),
                integers_end - 1, integers_end, integers_end + 1, integers_end - unit + 1, one + 8 * unit, one + 15 * unit,
                top - unit, top - 1, top - 2, top, top | 1, top | unit >> 1, top | unit - 1]
    return [sign | bits for bits in positive for sign in (0, type.sign_mask)]


def integer_specials(type: LaneType) -> list[int]:
    low, high = type.lowest, type.highest
    middle = 1 << type.bits // 2
    close = [low, low + 1, low + 2, high, high - 1, high // 2, high // 3, 0, 1, 2, 3, 5, 7, 8, 10, 16, 31, middle - 1, middle, middle + 1,
             -1, -2, -3, -8, -middle, 0x55 % (high + 1)]
    return sorted({number for number in close if low <= number <= high})


def specials(type: LaneType) -> list[int]:
    if type.is_float:
        return float_specials(type)
    return [0, 1] if type.is_bool else integer_specials(type)


def lane(type: LaneType) -> st.SearchStrategy[int]:
    """One lane: an integer's value or a float's bits."""
    if type.is_bool:
        return st.integers(0, 1)
    if not type.is_float:
        return st.one_of(st.sampled_from(integer_specials(type)), st.integers(type.lowest, type.highest))
    fields = type.exponent_mask >> type.fraction

    def build(sign: int, exponent: int, bits: int) -> int:
        return sign << type.bits - 1 | exponent << type.fraction | bits

    few = st.lists(st.integers(0, type.fraction - 1), max_size=3).map(lambda places: sum(1 << place for place in set(places)))
    few_bits = st.builds(build, st.integers(0, 1), st.integers(0, fields - 1), few)
    close = st.builds(build, st.integers(0, 1), st.integers(fields // 2 - 2, fields // 2 + 2), st.integers(0, (1 << type.fraction) - 1))
    return st.one_of(st.sampled_from(float_specials(type)), st.integers(0, (1 << type.bits) - 1), few_bits, close)

"""Sine and cosine of floats near zero in float arithmetic: 16 operations where doubles take 53.

Half turns are taken off by fused multiply-adds with pi as a sum of three floats (the first is exact), the rest goes into a polynomial of
four terms. Operations are exactly rounded ones, so that every machine and every host gives the same bits. Up to 2^17 results are within
1.85 units of the last place (tests/eu/semantics/test_math.py looks at all floats) and never beyond 1. What is further away, or no number,
is computed in doubles, each lane for itself: a result does not depend on other lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value

REACH = 2.0**17
# pi as a sum of floats, none negative: a zero keeps its sign
HALF_TURN = [float.fromhex(text) for text in ("0x1.921fb4p+1", "0x1.4442d0p-23", "0x1.846988p-47")]
HALF_TURNS = float.fromhex("0x1.45f306p-2")  # 1 / pi
# (sin(r) / r - 1) / r² by powers of r², |r| <= pi / 2: minimax, of sin within 2^-27.2, coefficients rounded one after another
SINE = [float.fromhex(text) for text in ("-0x1.55554cp-3", "0x1.110edap-7", "-0x1.9f70eap-13", "0x1.5dc84ap-19")]
NO_FRACTION = 1.5 * 2.0**23  # a sum with it is rounded to an integer, which is in its low bits
SIGN = 31


def sin(m: Machine, x: Value, beyond: Callable[[Machine, Value], Value]) -> Value:
    """(-1)^k sin(x - k pi); `beyond` computes what is out of reach. A zero keeps its sign."""
    total = m.fma(x, m.like(x, HALF_TURNS), m.like(x, NO_FRACTION))
    return _or_beyond(m, x, _turned(m, x, total, total - NO_FRACTION, 0), beyond)


def cos(m: Machine, x: Value, beyond: Callable[[Machine, Value], Value]) -> Value:
    """(-1)^(k + 1) sin(x - (k + 1/2) pi)."""
    total = m.fma(x, m.like(x, HALF_TURNS), m.like(x, -0.5)) + NO_FRACTION
    return _or_beyond(m, x, _turned(m, x, total, total - NO_FRACTION + 0.5, 1), beyond)


def _turned(m: Machine, x: Value, total: Value, count: Value, odd: int) -> Value:
    """The sine of `x` less `count` half turns, with the sign of the half turn."""
    rest, turns = x, -count
    for piece in HALF_TURN:
        rest = m.fma(turns, m.like(x, piece), rest)
    square, sum = rest * rest, m.like(x, SINE[-1])
    for coefficient in reversed(SINE[:-1]):
        sum = m.fma(sum, square, m.like(x, coefficient))
    value = m.fma(rest, m.fma(square, sum, m.like(x, 0.0)), rest)  # +0 is added, not -0: a zero keeps its sign
    value = m.select(value < 1.0, value, m.like(x, 1.0))  # rounding may go one place beyond
    value = m.select(value > -1.0, value, m.like(x, -1.0))
    turn = m.bitcast(total, u32)
    return m.bitcast(m.bitcast(value, u32) ^ (turn + odd if odd else turn) << SIGN, x.type)


def _or_beyond(m: Machine, x: Value, near: Value, beyond: Callable[[Machine, Value], Value]) -> Value:
    inside = m.absolute(x) <= REACH
    found = m.variable(near)
    for _ in m.If(m.any(~inside), rare=True):
        found.value = m.select(inside, near, beyond(m, x))
    return found.value

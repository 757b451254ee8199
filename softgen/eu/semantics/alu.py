"""Arithmetic. Integers arrive exact (64 lanes bits for word and dword sources), so that conditions and saturation see the true result;
`step` cuts them to the destination. Products and sums of fused operations are rounded once per multiply-add, first element first."""

from __future__ import annotations

from softgen.errors import DecodeError
from softgen.eu.semantics import Computation, op
from softgen.lanes.types import i64, u32, u64
from softgen.lanes.value import Value

WORD = 16  # bits of a dword's half that integer multipliers work with
HALF = 0xFFFF
FOUR = 4  # channels of a vector


@op(modular=True)
def add(c: Computation, a: Value, b: Value) -> Value:
    return c.add(a, b)


@op(modular=True)
def mul(c: Computation, a: Value, b: Value) -> Value:
    """Dword by dword, older multipliers take 16 bits of one of them (IVB 461-463)."""
    if c.kind == "d" and _dwords(c):
        if c.state.rules.multiply == "low_second":
            b = b & HALF
        elif c.state.rules.multiply == "low_first":
            a = a & HALF
    return c.mul(a, b)


def _dwords(c: Computation) -> bool:
    return all(src.type in ("d", "ud") for src in c.instruction.sources)


@op()
def avg(c: Computation, a: Value, b: Value) -> Value:
    return (a + b + 1) >> 1


@op()
def addc(c: Computation, a: Value, b: Value) -> Value:
    """The carry goes to the accumulator."""
    total, carry = c.m.add_carry(c.m.convert(a, u32), c.m.convert(b, u32))
    c.set_accumulator(c.m.convert(carry, i64))
    return c.m.convert(total, i64)


@op()
def subb(c: Computation, a: Value, b: Value) -> Value:
    """The borrow goes to the accumulator. The difference keeps its sign, so that saturation ends at 0."""
    _, borrow = c.m.sub_borrow(c.m.convert(a, u32), c.m.convert(b, u32))
    c.set_accumulator(c.m.convert(borrow, i64))
    return a - b


# -- multiply-accumulate -------------------------------------------------------------------------------------------


@op()
def mac(c: Computation, a: Value, b: Value) -> Value:
    if a.type.is_float:
        return c.fma(a, b, c.accumulator())
    return a * b + c.accumulator()


@op()
def mach(c: Computation, a: Value, b: Value) -> Value:
    """Adds a times the upper half of b, in its place, to an accumulator that a multiply by the lower half has filled; gives the high
    dword. Where generations say so, without AccWrEn it gives the low one."""
    total = a * (b >> WORD << WORD) + c.accumulator()
    if c.state.rules.short_mach and not c.instruction.acc_write:
        return total
    c.set_accumulator(total)
    if c.instruction.sources[0].type == "ud":  # the product of unsigned numbers fills 64 bits and has no sign
        return c.m.bitcast(c.m.bitcast(total, u64) >> 32, i64)
    return total >> 32


@op(modular=True)
def mad(c: Computation, a: Value, b: Value, d: Value) -> Value:
    """src0 + src1 times src2: fused."""
    return c.fma(b, d, a) if a.type.is_float else b * d + a


@op()
def madm(c: Computation, a: Value, b: Value, d: Value) -> Value:
    """Part of the division and square root macros, whose first instruction has already given the result (see math.py): a plain fused
    multiply-add, without the extended exponent."""
    return c.fma(b, d, a)


@op()
def lrp(c: Computation, a: Value, b: Value, d: Value) -> Value:
    return c.fma(a, b, c.mul(d, c.sub(c.number(1.0), a)))


# -- sums over neighbours ------------------------------------------------------------------------------------------


def _component(c: Computation, value: Value, component: int) -> Value:
    """One component of each group of four, in all of them."""
    if value.lanes < FOUR:
        raise DecodeError(f"{c.instruction.opcode} works on groups of four channels and has {value.lanes}")
    return c.m.shuffle(value, [lane // FOUR * FOUR + component for lane in range(value.lanes)])


def _dot(c: Computation, a: Value, b: Value, components: int) -> Value:
    total = c.mul(_component(c, a, 0), _component(c, b, 0))
    for component in range(1, components):
        total = c.fma(_component(c, a, component), _component(c, b, component), total)
    return total


@op()
def dp2(c: Computation, a: Value, b: Value) -> Value:
    return _dot(c, a, b, 2)


@op()
def dp3(c: Computation, a: Value, b: Value) -> Value:
    return _dot(c, a, b, 3)


@op()
def dp4(c: Computation, a: Value, b: Value) -> Value:
    return _dot(c, a, b, 4)


@op()
def dph(c: Computation, a: Value, b: Value) -> Value:
    return c.add(_dot(c, a, b, 3), _component(c, b, 3))


@op()
def line(c: Computation, a: Value, b: Value) -> Value:
    """p times b plus q; q is the fourth of the four dwords that p stands in (BDW 21976-22041)."""
    return c.fma(a, b, c.register(0, 3, 0))


@op(own=True)
def pln(c: Computation) -> Value:
    """p u + q v + r: u and v of eight channels stand in two registers side by side, p q r at 0, 1 and 3 of four dwords."""
    u, v = c.register(1, 0, 8), c.register(1, 8, 8)
    return c.fma(c.register(0, 1, 0), v, c.fma(c.register(0, 0, 0), u, c.register(0, 3, 0)))


def _differences(c: Computation, a: Value, b: Value) -> Value:
    apart = c.m.absolute(a - b)
    pairs = [min(lane | 1, apart.lanes - 1) for lane in range(apart.lanes)]
    return apart + c.m.shuffle(apart, pairs)


@op()
def sad2(c: Computation, a: Value, b: Value) -> Value:
    """Sums of absolute differences of two neighbours, in the even channels; the odd ones are not written."""
    return _differences(c, a, b)


@op()
def sada2(c: Computation, a: Value, b: Value) -> Value:
    return _differences(c, a, b) + c.accumulator()

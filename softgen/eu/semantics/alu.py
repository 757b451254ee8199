"""Arithmetic opcodes. Integers are computed exactly (in 64-bit lanes for word and dword sources), so that conditions and saturation see the
exact result; `step` truncates it to the destination. Fused operations round once per multiply-add, first element first."""

from __future__ import annotations

from softgen.errors import DecodeError
from softgen.eu.semantics import Computation, op
from softgen.lanes.types import i64, u32, u64
from softgen.lanes.value import Value

WORD_BITS = 16  # bits of the half dword that older integer multipliers take
HALF = 0xFFFF
VECTOR = 4  # channels of a dot product


@op(modular=True)
def add(c: Computation, a: Value, b: Value) -> Value:
    return c.add(a, b)


@op(modular=True)
def mul(c: Computation, a: Value, b: Value) -> Value:
    """Multiply. Dword by dword, older multipliers use the low 16 bits of one source (IVB 461-463)."""
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
    """Add, with the carry to the accumulator."""
    total, carry = c.m.add_carry(c.m.convert(a, u32), c.m.convert(b, u32))
    c.set_accumulator(c.m.convert(carry, i64))
    return c.m.convert(total, i64)


@op()
def subb(c: Computation, a: Value, b: Value) -> Value:
    """Subtract, with the borrow to the accumulator. The difference keeps its sign, so that saturation gives 0."""
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
    """Multiply-accumulate high: add the product with the upper half of the source of which `mul` takes the lower half to the accumulator,
    which holds that product; the result is the high dword, or on generations with the `short_mach` rule, without AccWrEn, the low one."""
    if c.state.rules.multiply == "low_first":
        a, b = b, a
    total = a * (b >> WORD_BITS << WORD_BITS) + c.accumulator()
    if c.state.rules.short_mach and not c.instruction.acc_write:
        return total
    c.set_accumulator(total)
    if c.instruction.sources[0].type == "ud":  # an unsigned product fills all 64 bits
        return c.m.bitcast(c.m.bitcast(total, u64) >> 32, i64)
    return total >> 32


@op(modular=True)
def mad(c: Computation, a: Value, b: Value, d: Value) -> Value:
    """src0 + src1 * src2, fused."""
    return c.fma(b, d, a) if a.type.is_float else b * d + a


@op()
def madm(c: Computation, a: Value, b: Value, d: Value) -> Value:
    """Multiply-add of the division and square root macros, whose first instruction already gave the result (math.py): a plain fused
    multiply-add, without the extended exponent."""
    return c.fma(b, d, a)


@op()
def lrp(c: Computation, a: Value, b: Value, d: Value) -> Value:
    return c.fma(a, b, c.mul(d, c.sub(c.number(1.0), a)))


# -- dot products, planes, sums of absolute differences ------------------------------------------------------------


def _component(c: Computation, value: Value, component: int) -> Value:
    """One component of each group of four channels, replicated to the group."""
    if value.lanes < VECTOR:
        raise DecodeError(f"{c.instruction.opcode} needs groups of four channels; the execution size is {value.lanes}")
    return c.m.shuffle(value, [lane // VECTOR * VECTOR + component for lane in range(value.lanes)])


def _dot(c: Computation, a: Value, b: Value, components: int) -> Value:
    """The sum of products, fused in floats; of integers it is exact."""
    total = c.mul(_component(c, a, 0), _component(c, b, 0))
    for component in range(1, components):
        left, right = _component(c, a, component), _component(c, b, component)
        total = c.fma(left, right, total) if a.type.is_float else c.add(total, c.mul(left, right))
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
    """p * b + q; p and q are dwords 0 and 3 of the same four (BDW 21976-22041)."""
    return c.fma(a, b, c.register(0, 3, 0))


@op(own=True)
def pln(c: Computation) -> Value:
    """p * u + q * v + r: u and v of eight channels are in adjacent registers; p, q, r are dwords 0, 1 and 3 of four."""
    u, v = c.register(1, 0, 8), c.register(1, 8, 8)
    return c.fma(c.register(0, 1, 0), v, c.fma(c.register(0, 0, 0), u, c.register(0, 3, 0)))


def _differences(c: Computation, a: Value, b: Value) -> Value:
    difference = c.m.absolute(a - b)
    pairs = [min(lane | 1, difference.lanes - 1) for lane in range(difference.lanes)]
    return difference + c.m.shuffle(difference, pairs)


@op()
def sad2(c: Computation, a: Value, b: Value) -> Value:
    """Sum of absolute differences of channel pairs, in the even channels; odd channels are not written."""
    return _differences(c, a, b)


@op()
def sada2(c: Computation, a: Value, b: Value) -> Value:
    return _differences(c, a, b) + c.accumulator()

"""Logic, shifts, bit fields, comparison and selection. Integer sources are lanes of 32 or 64 bits, as `step` chose."""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.eu.semantics import Computation, op
from softgen.lanes.types import LaneType, i32, i64, u32, u64
from softgen.lanes.value import Value

BITS = {"w": 16, "d": 32, "q": 64}  # of an execution type
SIGNED = ("b", "w", "d")
NO_BIT = 0xFFFFFFFF  # the result of bit searches without a hit

Z, NZ, G, GE, L, LE, R, OVERFLOW, U = range(1, 10)  # condition modifiers


@op("not", modular=True)
def not_(c: Computation, a: Value) -> Value:
    return ~a


@op("and", modular=True)
def and_(c: Computation, a: Value, b: Value) -> Value:
    return a & b


@op("or", modular=True)
def or_(c: Computation, a: Value, b: Value) -> Value:
    return a | b


@op(modular=True)
def xor(c: Computation, a: Value, b: Value) -> Value:
    return a ^ b


# -- shifts --------------------------------------------------------------------------------------------------------


def _count(c: Computation, b: Value) -> Value:
    """The shift count: 5 bits, 6 where source 0 or the destination is a quadword (BDW 16935-16992)."""
    wide = "q" in c.instruction.sources[0].type or c.target.bits == 64 and not c.target.is_float
    return b & (0x3F if wide else 0x1F)


def _unsigned(c: Computation, a: Value) -> Value:
    """The value zero-extended from the execution type."""
    bits = BITS[c.kind]
    return a if bits == a.type.bits or _from_accumulator(c) else a & (1 << bits) - 1


def _from_accumulator(c: Computation) -> bool:
    return c.instruction.sources[0].file == "arf"


@op(modular=True)
def shl(c: Computation, a: Value, b: Value) -> Value:
    return a << _count(c, b)


@op()
def shr(c: Computation, a: Value, b: Value) -> Value:
    if c.state.rules.signed_shr and c.instruction.sources[0].type in SIGNED:
        return a >> _count(c, b)
    logical = c.m.bitcast(_unsigned(c, a), a.type.unsigned)
    return c.m.bitcast(logical >> _count(c, b), a.type)


@op()
def asr(c: Computation, a: Value, b: Value) -> Value:
    if c.instruction.sources[0].type == "uq":
        return shr(c, a, b)
    return a >> _count(c, b)


def _rotate(c: Computation, a: Value, left: Value, bits: int) -> Value:
    value = c.m.convert(_unsigned(c, a), u64)
    turned = value << left | value >> (-left & bits - 1)
    return c.m.convert(turned & (1 << bits) - 1, i64)


@op()
def rol(c: Computation, a: Value, b: Value) -> Value:
    return _rotate(c, a, b & BITS[c.kind] - 1, BITS[c.kind])


@op()
def ror(c: Computation, a: Value, b: Value) -> Value:
    return _rotate(c, a, -b & BITS[c.kind] - 1, BITS[c.kind])


# -- bit fields and searches ---------------------------------------------------------------------------------------


def _as(c: Computation, type: LaneType, *values: Value) -> list[Value]:
    return [c.m.convert(value, type) for value in values]


@op()
def bfe(c: Computation, width: Value, offset: Value, value: Value) -> Value:
    """Extract a bit field, which ends at bit 31 at the latest; sign-extended for signed sources (BDW 17036-17167)."""
    m, signed = c.m, c.instruction.sources[2].type == "d"
    width, offset = width & 0x1F, offset & 0x1F
    value = m.convert(m.convert(value, i32 if signed else u32), i64)  # sign- or zero-extended above bit 31
    up = m.select(width == 0, m.like(width, 0), 64 - width - offset)
    down = m.select(width == 0, m.like(width, 0), 64 - width)
    field = (value << up) >> down if signed else m.bitcast(m.bitcast(value << up, u64) >> down, i64)
    return m.select(width == 0, m.like(field, 0), field)


@op()
def bfi1(c: Computation, width: Value, offset: Value) -> Value:
    """The mask of a bit field, truncated to 32 bits."""
    return (((1 << (width & 0x1F)) - 1) << (offset & 0x1F)) & NO_BIT


@op()
def bfi2(c: Computation, mask: Value, field: Value, rest: Value) -> Value:
    """Insert the low bits of `field` into `rest` at the mask; an empty mask gives `rest`."""
    mask, field, rest = _as(c, u32, mask, field, rest)
    offset = c.m.trailing_zeros(mask) & 0x1F
    return c.m.convert((field << offset) & mask | rest & ~mask, i64)


@op()
def bfrev(c: Computation, a: Value) -> Value:
    return c.m.convert(c.m.reverse_bits(c.m.convert(a, u32)), i64)


@op()
def cbit(c: Computation, a: Value) -> Value:
    return c.m.convert(c.m.count_ones(c.m.convert(a, u32)), i64)


@op()
def lzd(c: Computation, a: Value) -> Value:
    return c.m.convert(c.m.leading_zeros(c.m.convert(a, u32)), i64)


@op()
def fbh(c: Computation, a: Value) -> Value:
    """Find the first bit from the high end that differs from the sign; all ones where there is none (BDW 20976-21063)."""
    m = c.m
    value = m.convert(a, u32)
    if c.instruction.sources[0].type == "d":
        value = m.select(m.sign_bit(value), ~value, value)
    return m.convert(m.select(value == 0, m.like(value, NO_BIT), m.leading_zeros(value)), i64)


@op()
def fbl(c: Computation, a: Value) -> Value:
    value = c.m.convert(a, u32)
    return c.m.convert(c.m.select(value == 0, c.m.like(value, NO_BIT), c.m.trailing_zeros(value)), i64)


# -- comparison and selection --------------------------------------------------------------------------------------


def compare(condition: int, a: Value, b: Value | float) -> Value | None:
    """The result of an order or equality condition, None for others. NaN is unequal to everything and unordered (IVB 847-849)."""
    if condition == Z:
        return a == b
    if condition == NZ:
        return a != b
    if condition == G:
        return a > b
    if condition == GE:
        return a >= b
    if condition == L:
        return a < b
    return a <= b if condition == LE else None


def _supported(c: Computation, answer: Value | None) -> Value:
    if answer is None:
        raise Unsupported(f"{c.instruction.opcode} with condition {c.instruction.condition} is not yet simulated")
    return answer


@op(ordered=True)
def cmp(c: Computation, a: Value, b: Value) -> Value:
    if c.instruction.condition == U and a.type.is_float:
        return c.m.is_nan(a) | c.m.is_nan(b)
    return _supported(c, compare(c.instruction.condition, a, b))


@op(ordered=True)
def cmpn(c: Computation, a: Value, b: Value) -> Value:
    """Like cmp, but a NaN in the second source makes .nz false and every other condition true (IVB 854-860)."""
    holds = _supported(c, compare(c.instruction.condition, a, b))
    if not b.type.is_float:
        return holds
    nan = c.m.is_nan(b)
    return holds & ~nan if c.instruction.condition == NZ else holds | nan


@op(ordered=True, raw=True, selects=True)
def sel(c: Computation, a: Value, b: Value) -> Value:
    """Select by predicate or by comparison, which prefers a number to NaN, and of two NaNs the second source (IVB 1029-1033)."""
    if not c.instruction.condition:
        return c.m.select(c.predicate(), a, b)
    holds = _supported(c, compare(c.instruction.condition, c.clean(a), c.clean(b)))
    if a.type.is_float and c.instruction.condition in (G, GE, L, LE):
        holds = holds | c.m.is_nan(b) & ~c.m.is_nan(a)
    return c.m.select(holds, a, b)


@op(ordered=True, raw=True, selects=True)
def csel(c: Computation, a: Value, b: Value, d: Value) -> Value:
    """Select by comparing the third source with zero; flags are neither read nor written (BDW 18058-18177)."""
    return c.m.select(_supported(c, compare(c.instruction.condition, c.clean(d), 0)), a, b)

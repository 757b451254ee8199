"""Moves and rounding opcodes. `step` does the conversion of a move."""

from __future__ import annotations

from softgen.errors import DecodeError
from softgen.eu.semantics import Computation, op
from softgen.eu.thread.regions import lane_type
from softgen.lanes.types import f16, f32, f64, i64, u16, u32, u64
from softgen.lanes.value import Value


@op(modular=True)
def mov(c: Computation, a: Value) -> Value:
    return a


@op(own=True)
def dim(c: Computation) -> Value:
    """Move a 64-bit float immediate, whose operand type is f because the encoding has no code for df."""
    if c.target is not f64 or c.instruction.sources[0].file != "imm":
        raise DecodeError("dim needs a 64-bit immediate and a destination of type df")
    return c.m.bitcast(c.m.constant(u64, c.instruction.sources[0].immediate, c.instruction.exec_size), c.target)


@op(own=True)
def movi(c: Computation) -> Value:
    """Indexed move: the first address sub-register selects the register, each channel's own the byte in it."""
    source, m = c.instruction.sources[0], c.m
    rows = tuple((source.address_sub + channel) * u16.bytes for channel in range(c.instruction.exec_size))
    address = m.convert(c.state.read("a", u16, rows), u32) + (source.offset & 0xFFFF) & 0xFFFF
    first = m.broadcast(m.slice(address, 0, 1), address.lanes)
    value = c.state.read("grf", lane_type(source), first & 0xFFFFFFE0 | address & 31)
    return value if value.type.is_float else m.convert(value, i64)


@op(own=True)
def smov(c: Computation) -> Value:
    """Scattered move: a move in the channels whose bit is set in the second source."""
    bits = c.unconverted(1)  # a mask: the execution type may be a float
    mask = c.m.convert(c.m.bitcast(bits, bits.type.unsigned), u32)
    c.restrict((mask >> c.m.lane_index(bits.lanes, u32) & 1) == 1)
    return c.source(0)


# -- rounding to integers, of floats -------------------------------------------------------------------------------


@op()
def frc(c: Computation, a: Value) -> Value:
    """a - floor(a), independent of the rounding mode (BDW 21064-21107)."""
    return a - c.m.floor(a)


@op()
def rndd(c: Computation, a: Value) -> Value:
    return c.m.floor(a)


def _rounded(c: Computation, a: Value, wanted: Value) -> Value:
    """The rounded value, or, where rounding takes two instructions, floor(a) with the condition set in channels that need an increment."""
    if not c.state.rules.round_increment:
        return wanted
    low = c.m.floor(a)
    if c.instruction.condition:
        c.set_flags(wanted > low)
    return low


@op()
def rndu(c: Computation, a: Value) -> Value:
    return _rounded(c, a, c.m.ceil(a))


@op()
def rnde(c: Computation, a: Value) -> Value:
    return _rounded(c, a, c.m.round_even(a))


@op()
def rndz(c: Computation, a: Value) -> Value:
    return _rounded(c, a, c.m.trunc(a))


# -- half floats in words, on generations without operands of type hf --------------------------------------------------


@op(raw=True)
def f32to16(c: Computation, a: Value) -> Value:
    half = c.m.convert(a, f16, c.state.mode.rounding)
    return c.m.convert(c.m.bitcast(half, u16), i64)


@op()
def f16to32(c: Computation, a: Value) -> Value:
    bits = c.m.convert(a, u16)
    return c.m.convert(c.m.bitcast(bits, f16), f32)



"""The math instruction. Its functions are those of the extended math unit (shared_functions/extended_math).

Integer division is exact. By zero the quotient is all ones and the remainder the numerator.

The macros of correctly rounded division and square root start with invm and rsqrtm, which may set the macro's flag ("early out") where the
result is final; here it always is, so the rest of the macro has no effect.
"""

from __future__ import annotations

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import opcodes
from softgen.eu.semantics import Computation, op
from softgen.lanes.types import bool_
from softgen.lanes.value import Value
from softgen.shared_functions.extended_math.functions import evaluate


@op()
def math(c: Computation, a: Value, b: Value | None = None) -> Value:
    function = opcodes.math_function(c.instruction.function, c.state.gen)
    if function is None:
        raise DecodeError(f"math has no function {c.instruction.function} on gen {c.state.gen:g}")
    if function.integer:
        return _integers(c, function.name, a, b)
    if not a.type.is_float:
        raise Unsupported(f"math {function.name} of integers is not yet simulated")
    if function.macro:
        return _macro(c, a, b)
    return evaluate(c.m, function.name, c.state.mode.alt, *(value for value in (a, b) if value is not None))


def _integers(c: Computation, name: str, a: Value, b: Value | None) -> Value:
    assert b is not None
    if a.type.is_float:
        raise Unsupported(f"math {name} of floats is not yet simulated")
    if name == "intdivmod":
        c.write_next(c.m.remainder_int(a, b))
    return c.m.remainder_int(a, b) if name == "intmod" else c.m.divide_int(a, b)


def _macro(c: Computation, a: Value, b: Value | None) -> Value:
    """invm, or rsqrtm, which has one source."""
    rounding = c.state.mode.rounding
    c.set_flags(c.m.constant(bool_, 1, a.lanes))
    return c.m.sqrt(a, rounding) if b is None else c.m.div(a, b, rounding)

"""Extended math as a unit: the shared function that Gen4.5 has in place of a math instruction.

In:  one or two registers of operands. Out: one or two registers of results. A scalar message computes dword 0 only; its result goes to
all channels. Of an integer division the denominator is the first operand.

Reads   MSD_MATH
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.types import f32, i32, i64, u32
from softgen.lanes.value import Value
from softgen.shared_functions.extended_math.functions import FLOATS, alternate, evaluate
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.unit import GroupBindings, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

CHANNELS = 8  # of a vector message
BOTH = "int_div_quotient_and_remainder"
DIVISIONS = {BOTH: ("quotient", "remainder"), "int_div_quotient": ("quotient",), "int_div_remainder": ("remainder",)}
SINCOS = ("sin", "cos")


@answers("math")
def math(x: Message[Any]) -> None:
    name = x.plan.words["function"]
    operands = 2 if name in DIVISIONS or name == "pow" else 1
    if x.sent != operands * GRF_BYTES:
        raise DecodeError(f"extended math {name} takes {operands} registers, not {x.sent // GRF_BYTES}")
    if name in DIVISIONS:
        results = divide(x, DIVISIONS[name])
    elif name == "sincos":
        results = [compute(x, part) for part in SINCOS]
    elif name in FLOATS:
        results = [compute(x, name)]
    else:
        raise Unsupported(f"extended math function {name} is not yet simulated")
    for number, result in enumerate(results):
        lanes = min(x.width, CHANNELS)
        result = x.m.broadcast(result, lanes) if result.lanes == 1 else x.m.slice(result, 0, lanes)
        x.give(result, number * GRF_BYTES, x.lanes(lanes))


def compute(x: Message[Any], name: str) -> Value:
    """A function of floats. Denormals are flushed, whatever cr0 says: the generation has none."""
    m, count = x.m, 1 if x.plan.words["data_type"] == "scalar" else CHANNELS
    sources = [m.flush(x.raw(f32, start, count)) for start in range(0, x.sent, GRF_BYTES)]
    if x.alt:  # as instructions read and write floats then
        sources = [alternate(m, source) for source in sources]
    result = m.flush(evaluate(m, name, x.alt, *sources))
    result = alternate(m, result) if x.alt else result
    if x.plan.fields.saturate:
        result = m.select(result > 0.0, result, m.like(result, 0.0))
        result = m.select(result > 1.0, 1.0, result)
    return m.bitcast(result, u32)


def divide(x: Message[Any], parts: tuple[str, ...]) -> list[Value]:
    m, type = x.m, i32 if x.plan.words["integer_type"] == "signed" else u32
    b, a = (m.convert(x.raw(type, start, CHANNELS), i64) for start in (0, GRF_BYTES))
    return [m.convert(m.divide_int(a, b) if part == "quotient" else m.remainder_int(a, b), u32) for part in parts]


class ExtendedMath:
    """The environment of math messages, on both machines."""

    def begin(self, sender: object) -> None:
        """Nothing to prepare."""


def extended_math(of: GroupBindings | MessageCode | None = None) -> ExtendedMath:
    return ExtendedMath()


UNIT = Unit(name="extended math", functions=("math",), interpreter=extended_math, compiled=extended_math)

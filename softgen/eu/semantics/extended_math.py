"""Extended math as a message, on the generation whose `math` rule is "message".

Reads   MSD_MATH
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError
from softgen.eu.isa import opcodes
from softgen.eu.semantics.math import evaluate
from softgen.eu.thread.message import Bytes, SentMessage
from softgen.eu.thread.state import MessageHandler, ThreadState
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import f32, i32, i64, u32

EXTENDED_MATH = 1  # shared function id
CHANNELS = 8  # of a vector message
INTEGER_NAMES = {
    "int_div_quotient_and_remainder": "intdivmod",
    "int_div_quotient": "intdiv",
    "int_div_remainder": "intmod",
}  # page -> table


@cache
def functions(gen: float) -> dict[int, opcodes.MathFunction]:
    """The math functions of the message by code: names are the page's, the rest is that of the math instruction's functions."""
    known = {function.name: function for function in opcodes.table().functions.values()}
    named = {code: INTEGER_NAMES.get(name, name) for code, name in layout("MSD_MATH", gen).field("function").type.values}
    return {code: known[name] for code, name in named.items() if name in known}


def extended_math(m: NumpyMachine) -> MessageHandler:
    """The handler of messages to the extended math function."""

    def handle(thread: ThreadState, message: SentMessage) -> None:
        fields = layout("MSD_MATH", thread.gen).raw([message.descriptor])
        function = functions(thread.gen).get(fields.function)
        if function is None:
            raise DecodeError(f"extended math has no function {fields.function}")
        operands = [message.payload[start : start + GRF_BYTES] for start in range(0, len(message.payload), GRF_BYTES)]
        if len(operands) != function.sources:
            raise DecodeError(f"extended math {function.name} takes {function.sources} registers, not {len(operands)}")
        if function.integer:
            _divide(m, function.name, bool(fields.integer_type), message, operands)
            return
        channels = 1 if fields.data_type else CHANNELS
        lanes = [m.flush(m.value(f32, operand.view(np.float32)[:channels])) for operand in operands]
        result = m.flush(evaluate(m, function.name, message.alt, *lanes))
        if fields.saturate:
            result = m.select(result > 0.0, result, m.like(result, 0.0))
            result = m.select(result > 1.0, 1.0, result)
        _respond(message, np.asarray(result.payload, np.float32).view(np.uint32), 0)

    return handle


def _divide(m: NumpyMachine, name: str, signed: bool, message: SentMessage, operands: list[Bytes]) -> None:
    """Integer division: the denominator is the first operand; intdivmod writes the remainder to the second response register."""
    dtype, type = (np.int32, i32) if signed else (np.uint32, u32)
    b, a = (m.convert(m.value(type, operand.view(dtype)), i64) for operand in operands[:2])
    quotient, remainder = m.divide_int(a, b), m.remainder_int(a, b)
    first = remainder if name == "intmod" else quotient
    _respond(message, np.asarray(first.payload, np.int64).astype(np.uint32), 0)
    if name == "intdivmod":
        _respond(message, np.asarray(remainder.payload, np.int64).astype(np.uint32), 1)


def _respond(message: SentMessage, values: npt.NDArray[np.uint32], register: int) -> None:
    """Write the enabled channels of one response register; a scalar result goes to all of them."""
    response = message.response[register * GRF_BYTES : (register + 1) * GRF_BYTES].view(np.uint32)
    values = np.broadcast_to(values, response.shape) if len(values) == 1 else values
    for channel in range(len(response)):
        if message.mask >> channel & 1:
            response[channel] = values[channel]

"""Responses of messages in registers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.eu.isa.instruction import Operand
from softgen.eu.semantics.send import RegisterMessage, halves
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u8, u16, u32, u64
from tests.eu.semantics.build import arf, dst, instr, reg, scalar


@pytest.mark.parametrize("enables, type, start, lanes, expected", [
    (0b1111, u32, 0, 4, "1111"), (0b0101, u32, 0, 8, "10101010"), (0b0101, u32, 4, 4, "0101"), (0b1000, u32, 32, 8, "00010001"),
    (0b0001, u64, 0, 4, "1010"), (0b0101, u64, 8, 3, "111"), (0b0010, u16, 0, 8, "00110000"), (0b0110, u8, 3, 10, "0111111110"),
])  # fmt: skip
def test_a_response_in_align16_goes_to_the_components_that_are_enabled(enables: int, type: LaneType, start: int, lanes: int,
                                                                       expected: str) -> None:  # fmt: skip
    """Components are dwords, four by four; `start` is the byte of the response where the value goes. The mask of channels holds as well."""
    m, written = NumpyMachine(), list[tuple[Any, ...]]()
    message: Any = object.__new__(RegisterMessage)
    message.m, message.enables, message.inst = m, enables, SimpleNamespace(dst=dst(20))
    message.state = SimpleNamespace(write=lambda *given: written.append(given))
    value, bits = m.constant(type, 7, lanes), [int(bit) for bit in expected]
    for channels in ([1] * lanes, [1, 0] * (lanes // 2) + [1] * (lanes % 2)):
        message._write(value, start, m.constant(bool_, channels))
        name, stored, offsets, mask = written.pop()
        assert (name, stored, offsets) == ("grf", value, tuple(20 * 32 + start + number * type.bytes for number in range(lanes)))
        assert mask.payload.tolist() == [bool(bit and channel) for bit, channel in zip(bits, channels, strict=True)]
    message.inst.dst = arf(0, "ud")
    message._write(value, start, m.constant(bool_, 1, lanes))
    assert not written, "a null destination discards the response"


@pytest.mark.parametrize("source, moved", [(reg(10, "f"), reg(11, "f")), (scalar(10, "f"), scalar(10, "f")), (arf(0), arf(0)),
                                           (reg(10, "f", indirect=True), reg(10, "f", indirect=True, offset=32))])  # fmt: skip
@pytest.mark.parametrize("gen", [4, 4.5])
def test_a_compressed_message_is_two_of_eight_channels(gen: float, source: Operand, moved: Operand) -> None:
    """The second has the next registers, but a scalar is the same for both; it ends the thread if the two do."""
    sent = instr(gen, "send", dst(20, "f"), source, size=16, quarter=2, base_mrf=3, sfid=1, descriptor=1, eot=True)
    first, second = halves(sent)
    assert (first.exec_size, first.quarter, first.base_mrf, first.eot) == (8, 0, 3, False)
    assert (first.dst, first.sources) == (dst(20, "f"), (source,))
    assert (second.exec_size, second.quarter, second.base_mrf, second.eot) == (8, 1, 4, True)
    assert (second.dst, second.sources) == (dst(21, "f"), (moved,))


@pytest.mark.parametrize("gen, size, quarter", [(4.5, 8, 2), (4.5, 16, 0), (4.5, 8, 1), (9, 16, 2)])
def test_other_messages_are_one(gen: float, size: int, quarter: int) -> None:
    sent = instr(gen, "send", dst(20, "f"), reg(10, "f"), size=size, quarter=quarter, sfid=1, descriptor=1)
    assert halves(sent) == (sent,)

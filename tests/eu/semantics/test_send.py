"""Responses of messages in registers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.eu.semantics.send import RegisterMessage
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u8, u16, u32, u64
from tests.eu.semantics.build import arf, dst


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

"""Payloads and responses of messages in registers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.eu.isa.instruction import Operand
from softgen.eu.semantics.send import RegisterMessage, _indices, build_message, halves, sending_channels
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u8, u16, u32, u64
from softgen.shared_functions import message
from tests.eu.semantics.build import arf, dst, instr, reg, scalar, thread


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


DATA_CACHE, RENDER_CACHE, SAMPLER, URB = 10, 5, 2, 6


@pytest.mark.parametrize("gen, sfid, align16, enables, expected", [
    (7, DATA_CACHE, True, 0b0001, "10001000"), (7, RENDER_CACHE, True, 0b0001, "10001000"), (7.5, 12, True, 0b0011, "11001000"),
    (7.5, DATA_CACHE, True, 0b1100, "00100001"),
    (7, DATA_CACHE, True, 0b1111, "11101001"), (7, DATA_CACHE, False, 0b0001, "11101001"), (7, SAMPLER, True, 0b0001, "11101001"),
    (7, URB, True, 0b0001, "11101001"), (7, DATA_CACHE, True, None, "11101001"),
])  # fmt: skip
def test_messages_to_data_ports_are_sent_for_components_that_are_written(gen: float, sfid: int, align16: bool, enables: int | None,
                                                                         expected: str) -> None:  # fmt: skip
    m = NumpyMachine()
    state: Any = SimpleNamespace(m=m, enabled=lambda inst: m.constant(bool_, [1, 1, 1, 0, 1, 0, 0, 1]))
    sent = instr(gen, "send", Operand("grf", "ud", 20, write_mask=enables), reg(10), sfid=sfid, descriptor=1, align16=align16)
    found = sending_channels(state, sent).payload
    assert "".join(str(int(bit)) for bit in found) == expected


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


@pytest.mark.parametrize("type, start, lanes, expected", [
    (u32, 0, 4, [640, 644, 648, 652]), (u32, 56, 2, [696, 700]), (u32, 56, 4, [696, 700, 1284, 1288]), (u64, 56, 3, [696, 1284, 1292]),
    (u16, 62, 2, [702, 1284]), (u32, 64, 2, [1284, 1288]), (u32, 72, 2, [1292, 1296]),
])  # fmt: skip
def test_the_second_payload_of_a_split_message_follows_the_first(type: LaneType, start: int, lanes: int, expected: list[int]) -> None:
    """Two registers from r20 on, then those from r40.1: `start` counts through both, and lanes may lie in the one and the other."""
    m = NumpyMachine()
    message: Any = object.__new__(RegisterMessage)
    message.m, message.file, message.first, message.whole, message.second = m, "grf", 20 * 32, 64, reg(40, sub=4)
    message.state = SimpleNamespace(read=lambda name, type, offsets: m.constant(type, list(offsets)))
    assert message._read(type, start, lanes).payload.tolist() == expected


@pytest.mark.parametrize("indirect", [False, True])
def test_payload_and_response_of_a_message_are_registers_or_where_a0_says(indirect: bool) -> None:
    """With an offset to it. What the descriptor counts is taken; a message without an extended descriptor has 0 there."""
    made = thread(9, r10=np.arange(64, dtype=np.uint32))
    made.arf["a"].view(np.uint16)[2:4] = 9 * 32, 20 * 32
    source = reg(0, indirect=True, address_sub=2, offset=64) if indirect else reg(11)
    target = dst(0, indirect=True, address_sub=3, offset=-32) if indirect else dst(19)
    sent = build_message(made, instr(9, "send", target, source, sfid=12, descriptor=2 << 25 | 1 << 20 | 7), 0xFF, 0)
    assert (sent.descriptor, sent.extended, sent.sfid) == (2 << 25 | 1 << 20 | 7, 0, 12)
    assert sent.payload.view(np.uint32).tolist() == list(range(8, 24)) and not len(sent.second)
    sent.response[:] = 5
    assert bytes(made.grf[18 * 32 : 21 * 32]) == bytes(32) + b"\5" * 32 + bytes(32)


@pytest.mark.parametrize("descriptor", [0, None])
def test_a_descriptor_of_nothing_is_0(descriptor: int | None) -> None:
    sent = build_message(thread(9), instr(9, "send", arf(0), reg(11), sfid=3, descriptor=descriptor), 0xFF, 0)
    assert (sent.descriptor, sent.extended, len(sent.payload), len(sent.response)) == (0, 0, 0, 0)


SAMPLE, UNTYPED, LOCAL = (2, 0x02422001), (12, 0x04205E01), (12, 0x04205EFE)  # shared function and descriptor


@pytest.mark.parametrize("sent, held, indexed, fine, indices", [
    (SAMPLE, 0x02422001, True, True, (1, 0)), (SAMPLE, 0x02422305, True, True, (5, 3)), (SAMPLE, 0x02422F00, True, True, (0, 15)),
    (SAMPLE, 0x02423001, True, False, None), (SAMPLE, 0x04422001, True, False, None), (SAMPLE, 0x024220FF, True, False, None),
    (UNTYPED, 0x04205EEF, True, True, (0xEF, 0)), (UNTYPED, 0x04205EFE, True, False, None), (UNTYPED, 0x04205F01, True, False, None),
    (LOCAL, 0x04205EFE, True, True, (0xFE, 0)), (LOCAL, 0x04205E01, True, False, (0xFE, 0)),
    (SAMPLE, 0x02422001, False, True, (1, 0)), (SAMPLE, 0x02422002, False, False, (1, 0)), (SAMPLE, 0x02422101, False, False, (1, 0)),
])  # fmt: skip
def test_a_descriptor_in_a_register_may_name_other_entries_and_no_other_message(
    sent: tuple[int, int], held: int, indexed: bool, fine: bool, indices: tuple[int, int] | None
) -> None:
    """It was known as one descriptor. Another surface or sampler is taken from the register, if the unit can; anything else, and what is no
    entry of the binding table, is the interpreter's."""
    m, asked = NumpyMachine(), list[Any]()
    state, code = SimpleNamespace(read=lambda *given: m.constant(u32, [held])), SimpleNamespace(escape=asked.append)
    inst = instr(9, "send", dst(20), reg(10), sfid=sent[0], descriptor=arf(0x10, "ud", immediate=sent[1]))
    assert isinstance(inst.descriptor, Operand)
    plan: Any = message.plan(*sent, 9.0)
    found = _indices(state, inst, inst.descriptor, plan, indexed, code)  # type: ignore[arg-type]
    assert [condition.payload.tolist() for condition in asked] == [[fine]]
    assert indices is None or tuple(index if isinstance(index, int) else int(index.payload[0]) for index in found) == indices

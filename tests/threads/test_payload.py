"""Payloads that threads start with: their parts, fields that depend on slots, counters of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import (
    Counter,
    HeaderPatch,
    LoopPayload,
    Payload,
    PayloadList,
    PayloadWriter,
    SlotField,
    TemplatePayload,
    check_length,
    patched,
)
from tests.gpgpu.job import dwords

HEADER = bytes(range(32))


@pytest.mark.parametrize("own_first, common_offset, own_offset, payloads", [
    (False, 32, 36, [b"cccc0000", b"cccc1111"]), (True, 36, 32, [b"0000cccc", b"1111cccc"]),
])  # fmt: skip
def test_common_and_own_data_of_threads(own_first: bool, common_offset: int, own_offset: int, payloads: list[bytes]) -> None:
    made = TemplatePayload(HEADER, 4, 4, own_first, b"cccc00001111")
    assert (made.common_offset, made.own_offset, made.registers) == (common_offset, own_offset, 2)
    assert [made.of(number) for number in range(2)] == [HEADER + payload for payload in payloads]
    again = made.again(bytes(32), b"dddd22223333")
    assert again.of(1) == bytes(32) + payloads[1].replace(b"c", b"d").replace(b"1", b"3") and again.own_first is own_first


@pytest.mark.parametrize("header, common, own, registers", [(32, 0, 0, 1), (32, 1, 0, 2), (32, 16, 16, 2), (32, 16, 17, 3), (0, 0, 0, 0)])
def test_a_payload_takes_whole_registers(header: int, common: int, own: int, registers: int) -> None:
    assert TemplatePayload(bytes(header), common, own).registers == registers


def test_a_payload_that_only_has_a_header() -> None:
    made = TemplatePayload(HEADER)
    assert made == TemplatePayload(HEADER, 0, 0, False, b"", ()) and made.of(3) == HEADER
    assert "data" not in repr(TemplatePayload(HEADER, data=b"long"))


@pytest.mark.parametrize("slot, value", [(0, 0x400), (1, 0x500), (4, 0x800), (11, 0xF00), (12, 0)])
def test_a_field_of_a_slot(slot: int, value: int) -> None:
    assert SlotField(4, 0xF00, 0x400, 0x100).value(slot) == value


def test_counters_advance_from_the_first() -> None:
    patch = HeaderPatch((Counter(5, 2, 4), Counter(0, 3, 24), Counter(7, 2, 28)))
    assert patch.groups == 12 and HeaderPatch(()).groups == 1
    assert [patch.values(group) for group in (0, 1, 2, 5, 6, 11)] == [(5, 0, 7), (6, 0, 7), (5, 1, 7), (6, 2, 7), (5, 0, 8), (6, 2, 8)]
    alone = patch.only(5)
    assert alone.groups == 1 and alone.values(0) == (6, 2, 7) and [counter.offset for counter in alone.counters] == [4, 24, 28]


def test_slots_and_counters_are_filled_in() -> None:
    """Of a slot's dword only the bits of its mask."""
    slots, patch = (SlotField(4, 0xFF00, 0x1200, 0x100),), HeaderPatch((Counter(8, 4, 0), Counter(2, 2, 12)))
    payload = dwords(0xAAAAAAAA, 0xBBBBBBBB, 0xCCCCCCCC, 0xDDDDDDDD)
    assert patched(payload, slots, 3, patch, 5) == dwords(9, 0xBBBB15BB, 0xCCCCCCCC, 3)
    assert patched(payload, slots, 0, None, 5) == dwords(0xAAAAAAAA, 0xBBBB12BB, 0xCCCCCCCC, 0xDDDDDDDD)
    assert patched(payload, (), 3, patch, 0) == dwords(8, 0xBBBBBBBB, 0xCCCCCCCC, 2) and patched(payload, (), 3, None, 1) is payload


def test_payloads_of_a_list_are_too_long_to_be_shown() -> None:
    assert repr(PayloadList((HEADER, HEADER))) == "PayloadList(slots=())" and PayloadList((HEADER,)) != PayloadList((HEADER, HEADER))


def test_who_keeps_a_writer_alive_is_no_part_of_it() -> None:
    first, second = (PayloadWriter(0x1000, 0x2000, 3, owner=object()) for _ in range(2))
    assert first == second and repr(first) == repr(second) and hash(first) == hash(second)
    assert (first.first, first.count, PayloadWriter(0x1000, 0x2000, 3).owner) == (0, None, None)


@pytest.mark.parametrize("count, group, first, threads", [(10, 0, 3, 4), (10, 1, 7, 4), (10, 2, 11, 2), (None, 2, 11, 4)])
def test_one_group_of_payloads_that_are_written(count: int | None, group: int, first: int, threads: int) -> None:
    """The last one may have fewer threads."""
    made = dispatch(PayloadWriter(0x1000, 0x2000, 3, first=3, count=count), groups=3, threads=4)
    alone = made.only(group)
    assert isinstance(alone.payload, PayloadWriter) and alone == replace(made, groups=1, payload=alone.payload)
    assert (alone.payload.first, alone.payload.count, made.group_size(group), alone.group_size(0)) == (first, threads, threads, threads)


def test_one_group_alone() -> None:
    """Its counters are those that it has among the others; a list of payloads is one group, and not one of several."""
    patch = HeaderPatch((Counter(5, 3, 4),))
    made = dispatch(TemplatePayload(HEADER), groups=3, threads=4, patch=patch)
    assert made.only(2) == replace(made, groups=1, patch=HeaderPatch((Counter(7, 1, 4),)))
    same = dispatch(TemplatePayload(HEADER), groups=3, threads=4)
    assert same.only(2) == replace(same, groups=1)
    listed = dispatch(PayloadList((HEADER,)), groups=1, threads=1)
    assert listed.only(0) == listed
    with pytest.raises(Unsupported, match="a list of payloads is one group"):
        replace(listed, groups=2).only(0)


@pytest.mark.parametrize("payload", [
    TemplatePayload(HEADER, 4096 - 64, 33), PayloadList((HEADER, bytes(4097))), PayloadWriter(0, 0, 129), LoopPayload(129)])  # fmt: skip
def test_no_dispatch_has_payloads_longer_than_a_threads_registers(payload: Payload) -> None:
    """Stages refuse them (check_length) before they make one."""
    assert payload.registers == 129
    with pytest.raises(AssertionError, match="a payload of 129 registers"):
        dispatch(payload, threads=1, groups=1)
    with pytest.raises(DecodeError, match="VS: a payload of 129 registers; threads have 128"):
        check_length(payload.registers, "VS")
    check_length(128, "VS")


def dispatch(payload: Payload, **values: Any) -> ThreadDispatch:
    return ThreadDispatch(kernel=0, control=(0,), simd=8, payload=payload, **values)

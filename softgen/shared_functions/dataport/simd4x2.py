"""SIMD4x2: two slots, each with four dwords of a register and one address at its beginning (KBL 6068-6110, 23333-23400).

A slot takes part for any of its four channels.
"""

from __future__ import annotations

from typing import Any

from softgen.bits.units import GRF_BYTES
from softgen.lanes.types import LaneType, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport.environment import DataPortMessage
from softgen.shared_functions.dataport.reach import has_addresses, region
from softgen.shared_functions.message import Message

SLOTS = 2
FOUR = 4  # channels of a slot
EIGHT = SLOTS * FOUR


def firsts(x: Message[Any], type: LaneType, start: int, skip: int = 0) -> Value:
    """The first value of each slot in a register, or the one `skip` further on."""
    held = x.take(type, start, GRF_BYTES // type.bytes)
    return x.m.shuffle(held, [slot * held.lanes // SLOTS + skip for slot in range(SLOTS)])


def offsets(x: DataPortMessage) -> Value:
    """The addresses of the slots; they fill a register."""
    return firsts(x, u64 if has_addresses(x) else u32, 0)


def slots(x: Message[Any]) -> Value:
    """Which slots take part."""
    m, on = x.m, x.lanes(EIGHT)
    first, *others = (m.shuffle(on, [channel, FOUR + channel]) for channel in range(FOUR))
    for other in others:
        first = first | other
    return first


def spread(x: Message[Any], values: Value) -> Value:
    """A slot's value for each of its channels."""
    return x.m.shuffle(values, [lane // FOUR for lane in range(EIGHT)])


def untyped_read(x: DataPortMessage) -> None:
    memory, at, mask = _places(x)
    x.give(x.m.load(u32, memory, at, mask), 0, mask)


def untyped_write(x: DataPortMessage) -> None:
    data = x.take(u32, GRF_BYTES, EIGHT)
    memory, at, mask = _places(x)
    x.m.store(data, memory, at, mask)


def _places(x: DataPortMessage) -> tuple[Region, Value, Value]:
    m = x.m
    memory, at = region(x, offsets(x))
    meant = m.mask_from_bits(sum((not x.plan.fields.channel_mask >> lane % FOUR & 1) << lane for lane in range(EIGHT)), EIGHT)
    steps = m.constant(u64, [lane % FOUR * u32.bytes for lane in range(EIGHT)])
    return memory, m.convert(spread(x, at), u64) + steps, spread(x, slots(x)) & meant


def give_firsts(x: DataPortMessage, values: Value, mask: Value) -> None:
    """The value of each slot goes to the beginning of its half of a register."""
    for slot in range(SLOTS):
        x.give(x.m.slice(values, slot, 1), slot * GRF_BYTES // SLOTS, x.m.slice(mask, slot, 1))

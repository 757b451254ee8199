"""Payload fields that the scheduler fills in after the payload is written: those of a slot, and what hardware leaves undefined."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from softgen.bits.units import DWORD_MASK
from softgen.threads.native.scheduler import SchedulerState, SlotRule
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.threads.payload import SlotField

ALL_BYTES = 0x01010101


def place_slots(dispatch: SchedulerState, slots: Sequence[SlotField], first: int) -> None:
    """The rules of fields that tell threads apart which run at the same time; `first`: the first slot of the host thread."""
    dispatch.slots = len(slots)
    for number, rule in enumerate(slots):
        dispatch.slot_rules[number] = SlotRule(rule.offset, rule.mask, rule.base + first * rule.step & DWORD_MASK, rule.step & DWORD_MASK)


def leave_undefined(dispatch: SchedulerState, parts: Sequence[UndefinedDwords], value: int) -> object:
    """Have a byte in what hardware leaves undefined of the payloads that a C loop writes (world.py); the memory to keep meanwhile."""
    held = (UndefinedDwords * len(parts))(*parts)
    dispatch.undefined, dispatch.undefined_count, dispatch.undefined_value = ctypes.addressof(held), len(parts), value * ALL_BYTES
    return held

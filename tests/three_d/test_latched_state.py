"""Latched commands of prepared draws: bits of pointers are copied into plans, all others are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.three_d.latched_state import LatchedBytes

START, SLOT = 40, 2
HELD = [0x7826_0000, 0xABCD_1234, 0x0000_0056]


def latched(dwords: int, address_bits: int = 48) -> LatchedBytes:
    """A command of so many dwords at START."""
    place = SimpleNamespace(slot=SLOT, latched=1, length=dwords, present=1, offset=START, size=dwords)
    commands: Any = SimpleNamespace(place=lambda name: place, raw=lambda offset, count: HELD[offset - START : offset - START + count])
    return LatchedBytes(commands, 9, address_bits)


@pytest.mark.parametrize("name, field, pointer, compared", [
    ("3DSTATE_BINDING_TABLE_POINTERS_VS", "pointer_to_binding_table", (1, 0xFFE0), [(1, 0xFFFF001F)]),
    ("3DSTATE_VS", "kernel_start_pointer", (2, 0xFFFF_FFFF_FFC0), [(1, 0x3F)]),
])  # fmt: skip
def test_a_pointer_is_copied_and_the_bits_around_it_are_compared(name: str, field: str, pointer: tuple[int, int],
                                                                 compared: list[tuple[int, int]]) -> None:  # fmt: skip
    dwords, mask = pointer
    made = latched(1 + dwords)
    found = made.pointer(layout(name, 9).field(field), START)
    assert (found.offset, found.dwords, found.mask) == (START + 1, dwords, mask)
    left = made.compared([name])
    assert [(run.offset, run.count) for run in left.dwords] == [(START, 1)] and [command.slot for command in left.commands] == [SLOT]
    assert [(bits.offset, bits.mask, bits.value) for bits in left.bits] == [(START + n, mask, HELD[n] & mask) for n, mask in compared]


@pytest.mark.parametrize(("bits", "mask"), [(32, 0xFFFF_FFC0), (40, 0xFF_FFFF_FFC0), (48, 0xFFFF_FFFF_FFC0)])
def test_pointers_are_as_wide_as_addresses(bits: int, mask: int) -> None:
    made = latched(3, bits)
    found = made.pointer(layout("3DSTATE_VS", 9).field("kernel_start_pointer"), START, 0x1000)
    assert (found.dwords, found.mask, found.base, made.wrap) == (2, mask, 0x1000, (1 << bits) - 1)


def test_without_copies_whole_commands_are_compared() -> None:
    left = latched(3).compared(["3DSTATE_VS"])
    assert [(run.offset, run.count) for run in left.dwords] == [(START, 3)] and not left.bits

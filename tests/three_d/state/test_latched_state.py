"""Latched commands of kept records: bits of pointers are copied into plans, all others are compared."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.three_d.state.latched_state import LatchedBytes, NotKept

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


@pytest.mark.parametrize("copies", [
    {}, {0: 0xFFFFFFFF}, {7: 0xFFFFFFFF}, {0: 0xFF, 1: 0xFFFFFFFF, 2: 0xFFFF0000}, {3: 0xFFFFFFFF, 4: 0xFFFFFFFF}, {6: 1, 7: 0x80000000},
    {1: 0xFFFFFFE0, 3: 0xFFFFFFFF, 5: 0}, dict.fromkeys(range(8), 0xFFFFFFFF), dict.fromkeys(range(8), 0x0FF0), {8: 0xFFFFFFFF},
])  # fmt: skip
def test_every_bit_is_copied_or_compared_once(copies: dict[int, int]) -> None:
    """Whole dwords that follow one another together; of a dword that is copied in part, the other bits. Commands before and after do not
    matter."""
    held = [0x9E3779B9 * (n + 1) & 0xFFFFFFFF for n in range(8)]
    place = SimpleNamespace(slot=SLOT, latched=1, length=8, present=5, offset=START, size=8)
    commands: Any = SimpleNamespace(place=lambda name: place, raw=lambda offset, count: held[offset - START :][:count])
    made = LatchedBytes(commands, 9, 48)
    for dword, mask in copies.items():
        made._copy(START + dword, mask & 0xFFFF0000)
        made._copy(START + dword, mask & 0xFFFF)
    left, compared = made.compared(["3DSTATE_VS"]), [0] * 8
    for run in left.dwords:
        at = run.offset - START
        assert run.count and not any(at + n in copies for n in range(run.count)) and (not at or at - 1 in copies)
        assert list((ctypes.c_uint32 * run.count).from_address(run.data)) == held[at : at + run.count]
        compared[at : at + run.count] = [0xFFFFFFFF] * run.count
    for bits in left.bits:
        at = bits.offset - START
        assert at in copies and bits.mask and not compared[at] and bits.value == held[at] & bits.mask
        compared[at] = bits.mask
    assert compared == [~copies.get(dword, 0) & 0xFFFFFFFF for dword in range(8)]
    assert [(found.slot, found.latched, found.length, found.present) for found in left.commands] == [(SLOT, 1, 8, 5)]


def test_a_command_without_a_slot_is_not_compared() -> None:
    commands: Any = SimpleNamespace(place=lambda name: None)
    assert not any(LatchedBytes(commands, 9, 48).compared(["3DSTATE_VS"]))
    with pytest.raises(NotKept, match="3DSTATE_VS was not latched"):
        LatchedBytes(commands, 9, 48).place("3DSTATE_VS")


def test_numbers_are_copied_as_whole_dwords_and_others_are_ignored() -> None:
    """The size of an index buffer, and dwords 1 and 2 of a command."""
    made = latched(3)
    assert made.number(layout("3DSTATE_INDEX_BUFFER", 9).field("buffer_size"), START - 2) == START + 2
    left = made.compared(["3DSTATE_INDEX_BUFFER"])
    assert [(run.offset, run.count) for run in left.dwords] == [(START, 2)] and not left.bits
    made.ignore(START + 1, 2)
    left = made.compared(["3DSTATE_INDEX_BUFFER"])
    assert [(run.offset, run.count) for run in left.dwords] == [(START, 1)] and not left.bits
    with pytest.raises(NotKept, match="index_format is no whole dword"):
        made.number(layout("3DSTATE_INDEX_BUFFER", 9).field("index_format"), START)

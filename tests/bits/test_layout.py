"""What a layout says of commands without reading their fields."""

from __future__ import annotations

import pytest

from softgen.bits.field import Header
from softgen.bits.layout import guess_length
from softgen.bits.page import read


@pytest.mark.parametrize(("header", "dwords"), [
    (0x05000000, 1), (0x07FFFFFF, 1), (0x08000000, 2), (0x0F0000FE, 256),   # MI: one dword below opcode 10h
    (0x50C00004, 6), (0x54C00106, 8),                                       # blitter: bits 7:0
    (0x7A000004, 6), (0x780A01FF, 257), (0x69040000, 2),                    # render: bits 7:0
    (0x70000304, 0x306), (0x71280FFF, 0x1001),                              # media and video: bits 11:0
    (0x20000004, None), (0x80000004, None), (0xFFFFFFFF, None),             # types 1 and 4 to 7 are no commands
])  # fmt: skip
def test_the_length_of_an_unknown_command_is_guessed_from_its_type(header: int, dwords: int | None) -> None:
    """BDW 48-90; G45 940-951."""
    assert guess_length(header) == dwords


def test_half_an_element_at_the_end_of_a_command_is_reserved() -> None:
    text = "source public x\ncommand C  3.3.0.08  render\n  gen 9  1+ dwords\n    group pair  at 1  size 64  times *\n      63:0  both\n"
    layout = read("p", text)["C", 9.0]
    assert layout.reserved(65) >> 32 == 0 and layout.reserved(66) >> 32 == 0xFFFFFFFF << 64 * 32


@pytest.mark.parametrize("length, bias, claimed, header, dwords", [
    ((7, 0), 2, 0xFFFF00FF, 0x12340FF, 0x101), ((5, 0), 2, 0xFFFF003F, 0x40, 2), ((11, 4), 1, 0xFFFF0FF0, 0x1023F, 0x24),
    ((15, 0), 0, 0xFFFFFFFF, 0x1FFFF, 0xFFFF), ((3, 3), 2, 0xFFFF0008, 0xF, 3), (None, 2, 0xFFFF0000, 0xFF, 7),
])  # fmt: skip
def test_a_header_has_a_key_and_a_length(length: tuple[int, int] | None, bias: int, claimed: int, header: int, dwords: int) -> None:
    """Without a length field a command is always as long."""
    made = Header("", 0xFFFF0000, 0, length, bias)
    assert made.claimed == claimed and made.dwords(header, 7) == dwords

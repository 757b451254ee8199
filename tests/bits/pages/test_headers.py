"""Headers of commands: what names them, how long they are, and where the next one begins (Broadwell volume)."""

from __future__ import annotations

import pytest

from softgen.bits.catalogue import catalogue, find_command, layout
from softgen.bits.layout import Layout
from softgen.bits.page import ENGINES


def commands(gen: float) -> list[Layout]:
    return [catalogue().layout(name, gen) for name in catalogue().names("command", gen)]


@pytest.mark.behaviour("BDW-CS-01", shows="layout")
def test_render_commands_are_named_by_four_numbers() -> None:
    """Type 31:29, subtype 28:27, opcode 26:24, sub-opcode 23:16 (BDW 68-86): every one is found by these alone, whatever stands below."""
    found = [command for command in commands(8) if command.key.startswith("3.") and len(command.key.split(".")) == 4]
    assert len(found) > 100
    for page in found:
        kind, subtype, opcode, sub = (int(part, 16) for part in page.key.split("."))
        header = kind << 29 | subtype << 27 | opcode << 24 | sub << 16
        assert page.header and page.header.value == header, page.name
        extra = page.header.mask & 0xFFFF
        there = find_command(header | page.header.value & extra | 0xFF & ~extra, 8, page.engines[0])
        assert there and there.name == page.name


@pytest.mark.behaviour("BDW-CS-02", shows="layout")
def test_video_commands_have_two_sub_opcodes() -> None:
    """Sub-opcode A 23:21, B 20:16, a length of 12 bits (BDW 24406-24436)."""
    found = [command for command in commands(8) if len(command.key.split(".")) == 5]
    assert len(found) >= 40
    for page in found:
        kind, pipeline, opcode, a, b = (int(part, 16) for part in page.key.split("."))
        assert page.header and page.header.value == kind << 29 | pipeline << 27 | opcode << 24 | a << 21 | b << 16
        assert page.header.length == (11, 0), page.name
    assert layout("MFC_MPEG2_PAK_OBJECT", 8).key == "3.2.3.2.9"


@pytest.mark.behaviour("BDW-CS-03", shows="layout")
def test_length_is_the_field_and_two() -> None:
    """3DSTATE_VF_STATISTICS is one dword in subtype 1, with no length to add to (BDW 12249-12292)."""
    statistics = layout("3DSTATE_VF_STATISTICS", 8)
    assert statistics.key == "3.1.0.0b" and statistics.length(statistics.pack()[0]) == statistics.dwords == 1
    for command in commands(8):
        if command.key.startswith("3.3") and command.header and command.header.length:
            assert command.header.bias == 2 and command.length(command.header.value | 5) == 7, command.name


@pytest.mark.behaviour("BDW-CS-04", shows="layout")
@pytest.mark.parametrize("name, bits", [
    ("3DSTATE_VS", 8), ("3DSTATE_BINDING_TABLE_EDIT_VS", 9), ("3DSTATE_SO_DECL_LIST", 9), ("3DSTATE_DX9_CONSTANTF_VS", 11),
    ("MFC_AVC_PAK_OBJECT", 12), ("MEDIA_CURBE_LOAD", 16),
])  # fmt: skip
def test_lengths_of_8_to_16_bits(name: str, bits: int) -> None:
    """BDW 405-411, 10622-10630, 3919-3926, 24432, 22564."""
    page = layout(name, 8)
    assert page.header and page.header.length == (bits - 1, 0)
    assert page.length(page.header.value | (1 << bits) - 1) == (1 << bits) + 1


def test_no_two_commands_of_an_engine_share_a_header() -> None:
    """Each command's own header finds it on each of its engines, on every generation."""
    for gen in (4, 4.5, 7, 7.5, 8, 9, 11):
        for command in commands(gen):
            for engine in ENGINES:
                there = find_command(command.header.value, gen, engine) if command.header else None
                assert engine not in command.engines or there and there.name == command.name, (command.name, gen, engine)

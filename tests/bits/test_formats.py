"""Surface formats: the table read, and the table itself."""

from __future__ import annotations

import pytest

from softgen.bits.formats import SHAPE, USES, FormatChannel, read, surface_formats
from softgen.errors import SpecError

HEAD = ", ".join((*SHAPE, *USES))
ROW = "192, B8G8R8A8_UNORM, 32, 1x1, b:unorm8 g:unorm8 r:unorm8 a:unorm8, linear, -, 4.5, 4.5, -, 4.5, 4.5, 4.5, -, -, -, -, -, 9"


def test_a_row() -> None:
    record = read(f"# legend\n{HEAD}\n{ROW}\n")[192]
    assert str(record) == "B8G8R8A8_UNORM" and record.bits == 32 and record.block == (1, 1)
    assert record.channels == tuple(FormatChannel(name, "unorm", 8) for name in "bgra")
    assert record.space == "linear" and record.coding == ""
    assert record.supports("render", 4.5) and not record.supports("vertex", 11)
    assert not record.supports("ccs", 8) and record.supports("ccs", 9) and record.supports("ccs", 11)


@pytest.mark.parametrize("block, shape", [("8x4", (8, 4)), ("10x5", (10, 5)), ("0x0", (0, 0))])
def test_a_block_is_so_wide_and_so_high(block: str, shape: tuple[int, int]) -> None:
    assert read(f"{HEAD}\n{ROW.replace('1x1', block)}\n")[192].block == shape


@pytest.mark.parametrize("text, complaint", [
    (f"{HEAD}\n{ROW}\n{ROW}", "formats.csv:3: B8G8R8A8_UNORM, 192, is listed twice"),
    (f"{HEAD}\n{ROW.replace('b:unorm8', 'b:unrom8')}", "formats.csv:2: a channel is a name, a type and a width such as r:unorm8, not 'b:u"),
    (f"{HEAD}\n{ROW.replace('1x1', '1')}", "formats.csv:2: value and bits are numbers and a block is 4x4, not '192', '32', '1'"),
    (f"{HEAD}\n{ROW.replace('4.5', '5')}", "formats.csv:2: sampling must be one of 4, 4.5, 7, 7.5, 8, 9, 11 or -, not '5'"),
    (f"{HEAD}\n1, R", "formats.csv:2: a row has 19 cells, not 2"),
    ("value, name", "formats.csv:1: the columns are"),
])  # fmt: skip
def test_a_bad_table_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert str(caught.value).startswith(complaint)


def test_an_unknown_use_is_refused() -> None:
    with pytest.raises(SpecError, match="not 'rendering'"):
        surface_formats()[0].supports("rendering", 8)


def test_numbers_everybody_knows() -> None:
    """Written from the public enumeration, not from the table."""
    known = {0x000: "R32G32B32A32_FLOAT", 0x0C0: "B8G8R8A8_UNORM", 0x0C7: "R8G8B8A8_UNORM", 0x0D8: "R32_FLOAT", 0x100: "B5G6R5_UNORM",
             0x140: "R8_UNORM", 0x186: "BC1_UNORM", 0x1A5: "PLANAR_420_8", 0x1FF: "RAW", 0x240: "ASTC_LDR_2D_4X4_FLT16"}  # fmt: skip
    assert {value: surface_formats()[value].name for value in known} == known


def test_channels_fill_plain_texels() -> None:
    for surface_format in surface_formats().values():
        if surface_format.channels and not surface_format.coding:
            assert sum(channel.bits for channel in surface_format.channels) == surface_format.bits, surface_format.name


def test_channels_stand_in_the_order_of_the_name() -> None:
    for surface_format in surface_formats().values():
        letters = [c for c in surface_format.name.split("_")[0].lower() if c.isalpha()]
        if surface_format.coding or surface_format.space == "yuv" or surface_format.name in ("RAW",
            "MONO8") or not surface_format.name.startswith(tuple("RGBAXLI")):
            continue
        told = [channel.name for channel in surface_format.channels]
        assert told[: len(letters)] == letters, surface_format.name


def test_no_use_without_the_use_it_needs() -> None:
    for surface_format in surface_formats().values():
        first = dict(surface_format.first)
        for use, needs in (("filtering", "sampling"), ("blend", "render")):
            if use in first:
                assert first.get(needs, 99) <= first[use], f"{surface_format.name}: {use} before {needs}"


def test_values_fit_the_field() -> None:
    """Nine bits, ten where ASTC has one of its own."""
    assert all(surface_format.value < 512 or surface_format.coding == "astc" for surface_format in surface_formats().values())
    assert max(surface_formats()) < 1024

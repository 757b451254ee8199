"""Blitter pages: blits as Linux i915, libdrm and intel-gpu-tools put them together, taken apart. Positions are theirs and KBL's."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import enumeration, find_command, layout
from tests.bits.pages.test_streamer import read

# libdrm intel_decode.c: opcode, fewest and most dwords with 32-bit addresses; Linux i915 gvt cmd_parser.c: dwords that hold addresses.
# Commands that end in data of any length have no upper limit here. The last column: dwords with 64-bit addresses.
BLITS = """
01 XY_SETUP_BLT                            8  4,7    10
03 XY_SETUP_CLIP_BLT                       3  -      3
11 XY_SETUP_MONO_PATTERN_SL_BLT            9  4      10
24 XY_PIXEL_BLT                            2  -      2
25 XY_SCANLINES_BLT                        3  -      3
26 XY_TEXT_BLT                             4  3      5
31 XY_TEXT_IMMEDIATE_BLT                   5+ -      5
40 COLOR_BLT                               5  3      6
43 SRC_COPY_BLT                            6  3,5    8
50 XY_COLOR_BLT                            6  4      7
51 XY_PAT_BLT                              6  4,5    8
52 XY_MONO_PAT_BLT                         9  4      10
53 XY_SRC_COPY_BLT                         8  4,7    10
54 XY_MONO_SRC_COPY_BLT                    8  4,5    10
55 XY_FULL_BLT                             9  4,7,8  12
56 XY_FULL_MONO_SRC_BLT                    9  4,5,8  12
57 XY_FULL_MONO_PATTERN_BLT                12 4,7    14
58 XY_FULL_MONO_PATTERN_MONO_SRC_BLT       12 4,5    14
59 XY_MONO_PAT_FIXED_BLT                   7  4      8
71 XY_MONO_SRC_COPY_IMMEDIATE_BLT          9+ 4      10
72 XY_PAT_BLT_IMMEDIATE                    7+ 4      8
73 XY_SRC_COPY_CHROMA_BLT                  10 4,7    12
74 XY_FULL_IMMEDIATE_PATTERN_BLT           9+ 4,7    11
75 XY_FULL_MONO_SRC_IMMEDIATE_PATTERN_BLT  10+ 4,5   12
76 XY_PAT_CHROMA_BLT                       8  4,5    10
77 XY_PAT_CHROMA_BLT_IMMEDIATE             9+ 4      10
"""


def header(opcode: int, dwords: int, flags: int = 0) -> int:
    return 2 << 29 | opcode << 22 | flags | dwords - 2


@pytest.mark.behaviour("KBL-BLT-09", shows="layout")
@pytest.mark.parametrize("line", BLITS.strip().splitlines())
def test_blits_are_known_where_they_run(line: str) -> None:
    opcode, name, length, addresses, wide = line.split()
    least = int(length.rstrip("+"))
    for gen, engine in ((4, "render"), (4.5, "render"), (7, "blitter"), (7.5, "blitter"), (8, "blitter"), (9, "blitter"), (11, "blitter")):
        dwords = least if gen < 8 else int(wide)
        found = find_command(header(int(opcode, 16), dwords), gen, engine)
        assert found is not None and found.name == name
        assert (found.dwords <= dwords and found.maximum is None) if length.endswith("+") else found.dwords == found.maximum == dwords
        assert find_command(header(int(opcode, 16), dwords), gen, "blitter" if engine == "render" else "render") is None
        held = [f for f in found.fields if f.type.name == "address"]
        if gen < 8:
            assert [f.low // 32 for f in held] == ([] if addresses == "-" else [int(a) for a in addresses.split(",")])
        else:
            assert all(f.high % 32 == 15 and f.high // 32 == f.low // 32 + 1 for f in held), "48 bits in two dwords (KBL 3264-3340)"


def test_fast_copy_is_of_gen9() -> None:
    assert find_command(header(0x42, 10), 8, "blitter") is None
    assert find_command(header(0x42, 10), 9, "render") is None


# i915 BLT_* of dword 1: 32 bits a pixel, source copy, pitch
RASTER_COPY, RASTER_FILL = 3 << 24 | 0xCC << 16, 3 << 24 | 0xF0 << 16


def meaning(record: Any, gen: float, name: str) -> tuple[str, str]:
    depth = dict(layout(name, gen).field("color_depth").type.values)[record.color_depth]
    return depth, enumeration("Raster_Operation", gen)[record.raster_operation]


def test_fill_of_i915() -> None:
    """intel_migrate's clear: XY_COLOR_BLT | BLT_WRITE_RGBA, 7 dwords on Gen8, 6 before."""
    wide = read(9, "blitter", header(0x50, 7, 3 << 20), RASTER_FILL | 4096, 0, 8 << 16 | 1024, 0x10000, 2, 0xFF00FF00)
    assert wide._fields[0] == "32bpp_byte_mask" and wide[0] == 3
    assert meaning(wide, 9, "XY_COLOR_BLT") == ("32 bit", "pattern")
    assert (wide.destination_pitch, wide.destination_y2_coordinate, wide.destination_x2_coordinate) == (4096, 8, 1024)
    assert wide.destination_base_address == 0x2_00010000 and wide.solid_pattern_color == 0xFF00FF00
    narrow = read(7, "blitter", header(0x50, 6, 3 << 20), RASTER_FILL | 4096, 0, 8 << 16 | 1024, 0x10000, 1)
    assert narrow.destination_base_address == 0x10000 and narrow.solid_pattern_color == 1


def test_linear_copy_of_i915() -> None:
    """intel_migrate's copy before Gen8: height in lines, width in bytes, then destination, pitch, source."""
    record = read(7, "blitter", header(0x43, 6, 3 << 20), RASTER_COPY | 4096, 16 << 16 | 4096, 0x10000, 4096, 0x20000)
    assert (record.destination_height, record.destination_width) == (16, 4096)
    assert (record.destination_base_address, record.source_pitch, record.source_address) == (0x10000, 4096, 0x20000)


def test_copy_between_tilings() -> None:
    """XY_SRC_COPY_BLT_SRC_TILED is bit 15, DST_TILED bit 11; coordinates and pitches have a sign."""
    dwords = (RASTER_COPY | 1 << 30 | 0xFF00, 0xFFFE_0003, 20 << 16 | 10, 0x10000, 5 << 16 | 6, 0x200, 0x20000)
    record = read(4.5, "render", header(0x53, 8, 3 << 20 | 1 << 15), *dwords)
    assert record.source_tiling_enable and not record.destination_tiling_enable and record.clipping_enabled
    assert record.destination_pitch == -256 and record.destination_y1_coordinate == -2 and record.destination_x1_coordinate == 3
    assert (record.source_y1_coordinate, record.source_x1_coordinate, record.source_pitch) == (5, 6, 0x200)
    wide = read(8, "blitter", header(0x53, 10, 1 << 11), *dwords[:4], 1, *dwords[4:], 2)
    assert wide.destination_tiling_enable and not wide.source_tiling_enable
    assert (wide.destination_base_address, wide.source_base_address) == (0x1_00010000, 0x2_00020000)


def test_monochrome_text_of_the_kernel() -> None:
    """i915: XY_MONO_SRC_COPY_IMM_BLT; the bits follow the colours."""
    record = read(7, "blitter", header(0x71, 9, 5 << 17), RASTER_COPY | 1 << 29, 0, 1 << 16 | 64, 0x10000, 1, 2, 0xAAAA, 0x5555)
    assert record.monochrome_source_start == 5 and record.monochrome_source_transparency_mode
    assert (record.source_background_color, record.source_foreground_color) == (1, 2)
    assert [data.dword for data in record.immediate_data] == [0xAAAA, 0x5555]


def test_fast_copy_of_intel_gpu_tools() -> None:
    """Tilings at 21:20 and 14:13, alignments beside them, Yf at 31 and 30, depth 3 is 32 bits."""
    flags = 2 << 20 | 3 << 17 | 2 << 15 | 3 << 13 | 5 << 10 | 1 << 8
    record = read(9, "blitter", header(0x42, 10, flags), 1 << 31 | 3 << 24 | 512, 0, 4 << 16 | 8, 0x10000, 1, 2 << 16 | 3, 256, 0x20000, 2)
    names = layout("XY_FAST_COPY_BLT", 9)
    assert dict(names.field("source_tiling_method").type.values)[record.source_tiling_method] == "tile y"
    assert dict(names.field("destination_tiling_method").type.values)[record.destination_tiling_method] == "tile ys"
    assert (record.source_horizontal_alignment, record.source_vertical_alignment) == (3, 2)
    assert (record.destination_horizontal_alignment, record.destination_vertical_alignment) == (5, 1)
    assert record.source_tile_y_type == 1 and record.destination_tile_y_type == 0
    assert dict(names.field("color_depth").type.values)[record.color_depth] == "32 bit"
    assert (record.destination_base_address, record.source_base_address, record.source_pitch) == (0x1_00010000, 0x2_00020000, 256)


def test_the_registers_behind_the_commands() -> None:
    """KBL 2500-3344."""
    assert layout("BR00", 9).unpack([1 << 31 | 0x53 << 22 | 5 << 5]).opcode == 0x53
    assert layout("BR00", 9).unpack([5 << 5]).pattern_vertical_seed == 5
    assert layout("BR13", 9).unpack([RASTER_COPY | 2 << 26 | 0xFFFF]).destination_pitch == -1
    assert layout("BR14", 9).unpack([0x1FFF << 16 | 0x123]).destination_height == 0x1FFF
    assert layout("BR14", 9).reserved() == 0xE000E000

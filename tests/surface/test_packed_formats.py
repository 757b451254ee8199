"""Packed YUV, FXT1 and ASTC of high dynamic range, by the words of their specifications; and which formats can be used at all."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

from softgen.bits.formats import Format, surface_formats
from softgen.errors import Unsupported
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.surface import blocks, texel
from softgen.three_d.vertices.vertex_fetch import KINDS, channels
from tests.lanes.both import agree

BY_NAME = {surface_format.name: surface_format for surface_format in surface_formats().values()}
GENERATIONS = (4.5, 7, 7.5, 8, 9, 11)
# Formats that generations can use, and softgen cannot: no driver does.
REFUSED = {
    "sampling": {name for name, format in BY_NAME.items() if format.bits % 8},
    "render": {name for name in BY_NAME if name.startswith("YCRCB")},
}


def unpacked(name: str, data: bytes, texels: list[tuple[int, int]]) -> np.ndarray:
    """Texels of a block by column and row, as floats; both machines agree."""
    format = BY_NAME[name]

    def program(m: Machine, x: Value, y: Value, *held: Value) -> tuple[Value, ...]:
        return tuple(blocks.unpack(m, format, list(held), x, y))

    lanes = Lanes(u32, len(texels))
    places = [np.array([place[axis] for place in texels], np.uint32) for axis in (0, 1)]
    given = [*places, *(np.full(len(texels), word, np.uint32) for word in np.frombuffer(data, np.uint32))]
    found = agree(program, Signature((lanes,) * len(given), (lanes,) * 4), given)
    return np.stack([np.asarray(channel).view(np.float32) for channel in found], axis=1)


# -- every format -------------------------------------------------------------------------------------------------------------


def usable(format: Format, use: str) -> bool:
    try:
        if use == "sampling":
            blocks.check(format)
        else:
            texel.check(format, reading=use == "typed_read")
    except Unsupported:
        return False
    return True


@pytest.mark.covering(1)
@pytest.mark.parametrize("use", ["sampling", "render", "typed_write", "typed_read"])
@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_format_of_a_generation_can_be_used(gen: float, use: str) -> None:
    """Formats that the generation supports for a use, against those that have a program for it."""
    refused = {format.name for format in surface_formats().values() if format.supports(use, gen) and not usable(format, use)}
    assert refused == {name for name in REFUSED.get(use, ()) if BY_NAME[name].supports(use, gen)}


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_vertex_format_has_a_conversion(gen: float) -> None:
    for format in surface_formats().values():
        if format.supports("vertex", gen):
            assert channels(format) and {source.kind for source in channels(format).values()} <= set(KINDS), format.name


# -- packed YUV ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "order"), [("YCRCB_NORMAL", "Y U Y V"), ("YCRCB_SWAPUVY", "V Y U Y"), ("YCRCB_SWAPUV", "Y V Y U"),
                                             ("YCRCB_SWAPY", "U Y V Y")])  # fmt: skip
def test_two_texels_share_their_colour_differences(name: str, order: str) -> None:
    """Cr is red, Y green and Cb blue (KBL 22447)."""
    luma = iter((10, 20))
    data = bytes({"U": 30, "V": 40}.get(part) or next(luma) for part in order.split())
    found = unpacked(name, data, [(0, 0), (1, 0), (6, 3), (7, 3)] * 2)
    wanted = np.array([[40, 10, 30, 255], [40, 20, 30, 255]] * 4) / 255
    assert np.allclose(found, wanted, atol=1e-7)


# -- FXT1 ---------------------------------------------------------------------------------------------------------------------


def block(*fields: tuple[int, int]) -> bytes:
    """16 bytes with values from a bit on."""
    return sum(value << first for first, value in fields).to_bytes(16, "little")


def color(first: int, red: int, green: int, blue: int) -> tuple[int, int]:
    return first, blue | green << 5 | red << 10


def fxt1(data: bytes, *texels: tuple[int, int]) -> list[list[int]]:
    """Texels as 8-bit numbers."""
    found = unpacked("FXT1", data, [*texels, *[(0, 0)] * (8 - len(texels))])
    return np.rint(found[: len(texels)] * 255).astype(int).tolist()


def expanded(value: int, bits: int = 5) -> int:
    return round(Fraction(value * 255, (1 << bits) - 1))


def between(a: int, b: int, part: int, whole: int) -> int:
    return (a * (whole - part) + b * part + whole // 2) // whole


def test_fxt1_high_has_seven_colours_and_transparent() -> None:
    """Indices of 3 bits; texels 16 to 31 are the right half of the block."""
    indices = sum(number % 8 << 3 * number for number in range(32))
    data = block((0, indices), color(96, 31, 0, 10), color(111, 0, 31, 20))
    wanted = [[between(255, 0, n, 6), between(0, 255, n, 6), between(expanded(10), expanded(20), n, 6), 255] for n in range(7)]
    assert fxt1(data, *((n % 4, n // 4) for n in range(8))) == [*wanted, [0, 0, 0, 0]]
    assert fxt1(data, (4, 0), (5, 0), (7, 3)) == [wanted[0], wanted[1], [0, 0, 0, 0]]


def test_fxt1_chroma_has_four_colours() -> None:
    colors = [(31, 1, 2), (3, 31, 4), (5, 6, 31), (7, 8, 9)]
    data = block((0, 0b11100100), (32, 0b00011011), *(color(64 + 15 * n, *color_bits) for n, color_bits in enumerate(colors)), (125, 2))
    wanted = [[*(expanded(part) for part in color), 255] for color in colors]
    assert fxt1(data, *((n, 0) for n in range(8))) == wanted + wanted[::-1]


@pytest.mark.parametrize("right", [0, 1])
def test_fxt1_mixed_has_two_colours_for_each_half(right: int) -> None:
    first, x = (94, 4) if right else (64, 0)
    ends = color(first, 10, 20, 30), color(first + 15, 1, 2, 3)
    data = block((32 * right, 0b11100100), *ends, (125 + right, 1), (127, 1))
    low, select = 1, 0b11100100 >> 1 & 1
    a, b = [expanded(10), expanded(20 << 1 | low ^ select, 6), expanded(30)], [expanded(1), expanded(2 << 1 | low, 6), expanded(3)]
    wanted = [[*(between(p, q, n, 3) for p, q in zip(a, b, strict=True)), 255] for n in range(4)]
    assert fxt1(data, *((x + n, 0) for n in range(4))) == wanted
    clear = block((32 * right, 0b11100100), *ends, (124, 1), (125 + right, 1), (127, 1))
    a[1] = expanded(20)
    half = [(p + q) // 2 for p, q in zip(a, b, strict=True)]
    assert fxt1(clear, *((x + n, 0) for n in range(4))) == [[*a, 255], [*half, 255], [*b, 255], [0, 0, 0, 0]]


@pytest.mark.parametrize("right", [0, 1])
def test_fxt1_alpha_interpolates_or_has_three_colours(right: int) -> None:
    first, x = (94, 4) if right else (64, 0)
    data = block((32 * right, 0b11100100), color(first, 10, 20, 30), color(79, 1, 2, 3), (119 if right else 109, 25), (114, 6), (124, 1),
                 (125, 3))  # fmt: skip
    ends = [expanded(part) for part in (10, 20, 30, 25)], [expanded(part) for part in (1, 2, 3, 6)]
    assert fxt1(data, *((x + n, 0) for n in range(4))) == [[between(p, q, n, 3) for p, q in zip(*ends, strict=True)] for n in range(4)]
    colors = [(31, 1, 2), (3, 31, 4), (5, 6, 31)]
    plain = block((32 * right, 0b11100100), *(color(64 + 15 * n, *color_bits) for n, color_bits in enumerate(colors)),
                  *((109 + 5 * n, 10 * n + 1) for n in range(3)), (125, 3))  # fmt: skip
    wanted = [[*(expanded(part) for part in color), expanded(10 * n + 1)] for n, color in enumerate(colors)]
    assert fxt1(plain, *((x + n, 0) for n in range(4))) == [*wanted, [0, 0, 0, 0]]


# -- ASTC, high dynamic range -------------------------------------------------------------------------------------------------


def half(bits: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


def bright(value: int) -> float:
    """A 16-bit number of an HDR endpoint: 5 bits of exponent, a mantissa in three straight pieces."""
    low = value & 0x7FF
    steep = 3 * low if low < 512 else 4 * low - 512 if low < 1536 else 5 * low - 2048
    return half(min((value >> 11 << 10) + (steep >> 3), 0x7BFF))


def astc(mode: int, values: list[int], weight: int = 0) -> list[float]:
    """A texel of a 4x4 block with weights of 2 bits, all the same: 0 is the first endpoint, 3 the second."""
    number = 0x42 | mode << 13 | sum(value << 17 + 8 * n for n, value in enumerate(values)) | (2**32 - 1) * (weight == 3) << 96
    return [float(part) for part in unpacked("ASTC_HDR_2D_4X4_FLT16", number.to_bytes(16, "little"), [(0, 0)] * 8)[0]]


@pytest.mark.parametrize(("values", "low", "high"), [([0x40, 0x90], 0x400, 0x900), ([0x90, 0x40], 0x408, 0x8F8)])
def test_hdr_luminance_with_a_large_range(values: list[int], low: int, high: int) -> None:
    assert astc(2, values) == [bright(low << 4)] * 3 + [1.0]
    assert astc(2, values, 3) == [bright(high << 4)] * 3 + [1.0]


@pytest.mark.parametrize(("values", "low", "by"), [([0x2A, 0x73], 0x700 | 0x54, 6), ([0xAA, 0x73], 0x600 | 0xA8, 0x13 << 2),
                                                   ([0xFF, 0xFF], 0xFFC, 3)])  # fmt: skip
def test_hdr_luminance_with_a_small_range(values: list[int], low: int, by: int) -> None:
    """A value and a distance; the sum is at most 0xFFF."""
    assert astc(3, values) == [bright(low << 4)] * 3 + [1.0]
    assert astc(3, values, 3) == [bright(min(low + by, 0xFFF) << 4)] * 3 + [1.0]


def test_hdr_base_and_scale() -> None:
    """Mode 5 of its modes: seven bits of everything, no major component; mode 0: red has 11 bits and the others lie below it."""
    v = [0xC0 | 0x2A, 0x80 | 0x33, 0x80 | 0x44, 0x15]
    red, green, blue, scale = 0x2A << 5, (0x13 | 1 << 5) << 5, (4 | 1 << 6) << 5, 0x15 << 5
    assert astc(7, v, 3) == [bright(part << 4) for part in (red, green, blue)] + [1.0]
    assert astc(7, v) == [bright(max(part - scale, 0) << 4) for part in (red, green, blue)] + [1.0]
    v = [0x3F, 0x40 | 0x05, 0x40 | 0x20 | 0x06, 0x80 | 0x07]  # x0, x2, x3 and x4 lengthen red
    red = (0x3F | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 10) << 1
    assert astc(7, v, 3) == [bright(part << 4) for part in (red, red - (5 << 1), red - (6 << 1))] + [1.0]
    assert astc(7, v) == [bright(part - (7 << 1) << 4) for part in (red, red - (5 << 1), red - (6 << 1))] + [1.0]


def test_hdr_colours_and_their_alpha() -> None:
    """Without a major component the numbers stand as they are; alpha is 1, of low dynamic range, or of high."""
    v = [0x11, 0x22, 0x33, 0x44, 0x80 | 0x15, 0x80 | 0x26]
    first, second = [0x110, 0x330, 0x15 << 5], [0x220, 0x440, 0x26 << 5]
    assert astc(11, v) == [bright(part << 4) for part in first] + [1.0]
    assert astc(11, v, 3) == [bright(part << 4) for part in second] + [1.0]
    assert astc(14, [*v, 0x80, 0xFF])[3] == half(0x3804) and astc(14, [*v, 0x80, 0xFF], 3)[3] == 1.0
    assert astc(15, [*v, 0x80 | 0x12, 0x80 | 0x34])[3] == bright(0x12 << 9)
    assert astc(15, [*v, 0x12, 0x34])[3] == bright(0x120 << 4)
    assert astc(15, [*v, 0x12, 0x34], 3)[3] == bright(0x120 - (12 << 4) << 4)  # 0x34 is -12 in 6 bits


def test_hdr_colours_by_their_largest_channel() -> None:
    """Mode 0, green the largest: 9 bits of it, distances below it, shifted by 3."""
    v = [0x7F, 0x40 | 0x21, 0x12, 0x13, 0x80 | 0x05, 0x06]
    a, c, b0, b1, d0, d1 = 0x7F | 0x100, 0x21, 0x12, 0x13, 5, 6
    assert astc(11, v, 3) == [bright((part << 3) << 4) for part in (a - b0, a, a - b1)] + [1.0]
    assert astc(11, v) == [bright((part << 3) << 4) for part in (a - b0 - c - d0, a - c, a - b1 - c - d1)] + [1.0]


def test_low_dynamic_range_in_an_hdr_format_and_void_extents() -> None:
    """Luminance, direct: fractions of 65536 cut to half floats. A void extent may hold half floats."""
    assert astc(0, [0x80, 0xFF]) == [half(0x3804)] * 3 + [1.0] and astc(0, [0x80, 0xFF], 3) == [1.0] * 4
    plain = bytes([0xFC, 0xFD, *[0xFF] * 6]) + struct.pack("<4H", 0x8000, 1, 0xFFFF, 3)
    assert unpacked("ASTC_HDR_2D_6X6_FLT16", plain, [(0, 0)] * 8)[0].tolist() == [0.5, 2.0**-16, 1.0, 3 * 2.0**-16]
    floats = bytes([0xFC, 0xFF, *[0xFF] * 6]) + struct.pack("<4H", 0x7BFF, 0xC000, 0x3C00, 0x0001)
    assert unpacked("ASTC_HDR_2D_6X6_FLT16", floats, [(0, 0)] * 8)[0].tolist() == [65504.0, -2.0, 1.0, 2.0**-24]
    assert unpacked("ASTC_LDR_2D_6X6_FLT16", floats, [(0, 0)] * 8)[0].tolist() == [1, 0, 1, 1]

"""Compressed blocks against a plain decoder, on both machines; and where blocks of levels are."""

from __future__ import annotations

import io
import struct
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from softgen.bits.catalogue import layout
from softgen.bits.formats import Format, surface_formats
from softgen.errors import Unsupported
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.surface import blocks, coded, texel
from softgen.surface.image import image_from_state
from softgen.surface.levels import level_table
from tests.conftest import every
from tests.lanes.both import agree

BY_NAME = {surface_format.name: surface_format for surface_format in surface_formats().values()}
NAMES = ["BC1_UNORM", "DXT1_RGB", "BC2_UNORM", "BC3_UNORM", "BC4_UNORM", "BC4_SNORM", "BC5_UNORM", "BC5_SNORM"]
LANES = 16  # one for each texel


def color(data: bytes, place: int, always_four: bool) -> tuple[list[Fraction], bool]:
    ends = [int.from_bytes(data[at : at + 2], "little") for at in (0, 2)]
    a, b = ([Fraction(end >> 11, 31), Fraction(end >> 5 & 63, 63), Fraction(end & 31, 31)] for end in ends)
    index = data[4 + place // 4] >> 2 * (place % 4) & 3
    if always_four or ends[0] > ends[1]:
        weight = [Fraction(1), Fraction(0), Fraction(2, 3), Fraction(1, 3)][index]
    elif index == 3:
        return [Fraction(0)] * 3, True
    else:
        weight = [Fraction(1), Fraction(0), Fraction(1, 2)][index]
    return [x * weight + y * (1 - weight) for x, y in zip(a, b, strict=True)], False


def value(data: bytes, place: int, signed: bool) -> Fraction:
    top = 127 if signed else 255
    a, b = (max(end - 256 if signed and end > 127 else end, -127) for end in data[:2])
    index = int.from_bytes(data[2:8], "little") >> 3 * place & 7
    if index < 2:
        return Fraction((a, b)[index], top)
    if a > b:
        return Fraction((8 - index) * a + (index - 1) * b, 7 * top)
    if index >= 6:
        return Fraction(-1 if signed else 0) if index == 6 else Fraction(1)
    return Fraction((6 - index) * a + (index - 1) * b, 5 * top)


def decoded(name: str, data: bytes, place: int) -> list[Fraction]:
    one, signed = Fraction(1), name.endswith("SNORM")
    if name in ("BC1_UNORM", "DXT1_RGB"):
        found, black = color(data, place, False)
        return [*found, Fraction(0) if black and name == "BC1_UNORM" else one]
    if name == "BC2_UNORM":
        return [*color(data[8:], place, True)[0], Fraction(data[place // 2] >> 4 * (place % 2) & 15, 15)]
    if name == "BC3_UNORM":
        return [*color(data[8:], place, True)[0], value(data, place, False)]
    red = value(data, place, signed)
    return [red, value(data[8:], place, signed) if name.startswith("BC5") else Fraction(0), Fraction(0), one]


def unpacked(format: Format, data: bytes) -> np.ndarray:
    """All texels of a block, as floats."""
    words = np.frombuffer(data, np.uint32)

    def program(m: Machine, x: Value, y: Value, *held: Value) -> tuple[Value, ...]:
        return tuple(blocks.unpack(m, format, list(held), x, y))

    places, one = np.arange(LANES, dtype=np.uint32), Lanes(u32, LANES)
    given = [places % 4 + 8, places // 4 + 4, *(np.full(LANES, word, np.uint32) for word in words)]
    found = agree(program, Signature((one,) * len(given), (one,) * 4), given)
    return np.stack([np.asarray(channel).view(np.float32) for channel in found], axis=1)


@pytest.mark.parametrize("name", NAMES)
def test_texels_of_random_blocks(name: str) -> None:
    format, rng = BY_NAME[name], np.random.default_rng(BY_NAME[name].value)
    for number in range(12):
        data = bytearray(rng.integers(0, 256, format.bits // 8, np.uint8).tobytes())
        for start in range(0, len(data), 8):  # both orders of the two ends, in either kind of half block
            ends = sorted((data[start], data[start + 1]), reverse=bool(number & 1))
            data[start], data[start + 1] = ends
        wanted = [[float(np.float32(float(part))) for part in decoded(name, bytes(data), place)] for place in range(LANES)]
        assert np.abs(unpacked(format, bytes(data)) - np.array(wanted)).max() < 2e-7, (number, data.hex())


@pytest.mark.parametrize("name", ["BC3_UNORM", "BC4_UNORM", "BC4_SNORM", "BC5_SNORM"])
def test_two_equal_ends_leave_room_for_the_extremes(name: str) -> None:
    """Six values then, of which two are fixed, as where the first end is the smaller one."""
    format = BY_NAME[name]
    half = bytes([77, 77]) + sum(place % 8 << 3 * place for place in range(LANES)).to_bytes(6, "little")
    data = (half * 2)[: format.bits // 8]
    wanted = [[float(part) for part in decoded(name, data, place)] for place in range(LANES)]
    assert np.abs(unpacked(format, data) - np.array(wanted)).max() < 2e-7


@pytest.mark.parametrize("name, first, lacking", [("BC4_UNORM", 1, [0, 0, 1]), ("BC4_SNORM", 1, [0, 0, 1]), ("BC5_UNORM", 2, [0, 1]),
                                                  ("BC5_SNORM", 2, [0, 1]), ("DXT1_RGB", 3, [1])])  # fmt: skip
def test_channels_that_blocks_lack_are_exactly_zero_and_alpha_one(name: str, first: int, lacking: list[int]) -> None:
    data = np.random.default_rng(3).integers(0, 256, BY_NAME[name].bits // 8, np.uint8).tobytes()
    assert unpacked(BY_NAME[name], data)[:, first:].tolist() == [lacking] * LANES


# -- decoded by C -------------------------------------------------------------------------------------------------------------


def dds(data: bytes) -> np.ndarray:
    """What Pillow finds in a file of one BC7 block: numbers of 8 bits."""
    head = struct.pack("<4s7I44x", b"DDS ", 124, 0x1007, 4, 4, 16, 0, 1) + struct.pack("<2I4s20x", 32, 4, b"DX10")
    head += struct.pack("<4I4x", 0x1000, 0, 0, 0) + struct.pack("<5I", 98, 3, 0, 1, 0)
    with Image.open(io.BytesIO(head + data)) as image:
        return np.asarray(image).reshape(LANES, -1)


@pytest.mark.parametrize("mode", range(8))
def test_bc7_blocks_are_as_pillow_decodes_them(mode: int) -> None:
    """tests/pictures/test_compressed.py compares BC6H and the others with llvmpipe."""
    rng = np.random.default_rng(mode)
    for _ in range(8):
        bits = int.from_bytes(rng.integers(0, 256, 16, np.uint8).tobytes(), "little")
        data = (bits >> mode + 1 << mode + 1 | 1 << mode).to_bytes(16, "little")
        assert np.abs(unpacked(BY_NAME["BC7_UNORM"], data) * 255 - dds(data)).max() < 1e-4, data.hex()


def test_reserved_modes_of_bptc() -> None:
    assert not unpacked(BY_NAME["BC7_UNORM"], bytes(16)).any()
    assert (unpacked(BY_NAME["BC6H_UF16"], bytes([0x13] + [255] * 15)) == [0, 0, 0, 1]).all()


@pytest.mark.parametrize("name", every(4, [name for name in BY_NAME if BY_NAME[name].coding and coded.known(BY_NAME[name])]))
def test_any_block_is_decoded_alike_on_both_machines(name: str) -> None:
    """And inside the range of its channels; `unpacked` compares the machines."""
    rng = np.random.default_rng(4)
    for data in (bytes(16), bytes([255] * 16), *(rng.integers(0, 256, 16, np.uint8).tobytes() for _ in range(6))):
        found = unpacked(BY_NAME[name], data[: BY_NAME[name].bits // 8])
        if name not in ("BC6H_SF16", "BC6H_UF16") and "HDR" not in name:
            assert found.min() >= (-1 if "SIGNED" in name else 0) and found.max() <= 1


def test_a_void_extent_is_one_colour() -> None:
    """Of ASTC: 16 bits a channel; 65535 is 1. One whose extent is empty is the error colour."""
    plain = bytes([0xFC, 0xFD, *[0xFF] * 6]) + struct.pack("<4H", 0x8000, 0, 0xFFFF, 0x4000)
    assert (unpacked(BY_NAME["ASTC_LDR_2D_6X5_FLT16"], plain) == [0.5, 0, 1, 0.25]).all()
    nearly = plain[:8] + struct.pack("<4H", 0xFFFE, 0x8001, 0x7FFF, 1)  # half floats, rounded toward zero
    halves = [2047 / 2048, 0.5, 2047 / 4096, 2.0**-16]
    assert (unpacked(BY_NAME["ASTC_LDR_2D_6X5_FLT16"], nearly) == halves).all()
    curved = unpacked(BY_NAME["ASTC_LDR_2D_6X5_U8SRGB"], nearly)[0]  # the top 8 bits
    assert curved.tolist() == pytest.approx([1, ((128 / 255 + 0.055) / 1.055) ** 2.4, ((127 / 255 + 0.055) / 1.055) ** 2.4, 0], abs=1e-6)
    empty = bytes([0xFC, 0xFD, 0xFF, 0xFF, 0, 0, 0, 0]) + plain[8:]
    assert (unpacked(BY_NAME["ASTC_LDR_2D_6X5_FLT16"], empty) == [1, 0, 1, 1]).all()


def test_blocks_of_any_size_have_their_texels() -> None:
    """Columns and rows of a texture become blocks of 6x5, and places in them."""
    m = NumpyMachine()
    texels = m.constant(u32, range(24))
    assert blocks.block_of(m, texels, 6).payload.tolist() == [number // 6 for number in range(24)]
    assert blocks.block_of(m, texels, 4).payload.tolist() == [number // 4 for number in range(24)]


class NoDivider(NumpyMachine):
    def divide_int(self, a: Value, b: Value) -> Value:
        raise AssertionError("integers are divided, which no host does in vectors")


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_blocks_whose_size_is_a_power_of_two_need_no_division(size: int) -> None:
    m = NoDivider()
    assert blocks.block_of(m, m.constant(u32, range(24)), size).payload.tolist() == [number // size for number in range(24)]


@pytest.mark.parametrize("name", ["ASTC_LDR_2D_6X5_FLT16", "ASTC_LDR_2D_5X4_U8SRGB", "ASTC_LDR_2D_12X10_FLT16", "BC7_UNORM", "BC1_UNORM"])
def test_texels_have_the_same_places_in_every_block(name: str) -> None:
    """A block of any texture is the same wherever it is, and its texels are not all alike."""
    m, format, rng = NumpyMachine(), BY_NAME[name], np.random.default_rng(11)
    wide, high = format.block
    y, x = (m.value(u32, part.reshape(-1).astype(np.uint32)) for part in np.indices((high, wide)))
    colours = 0
    for _ in range(300):  # few blocks of random bits are none that is reserved
        words = [m.constant(u32, int(word), wide * high) for word in rng.integers(0, 1 << 32, format.bits // 32)]
        first, *others = (np.array([channel.payload for channel in blocks.unpack(m, format, words, x + column * wide, y + row * high)])
                          for column, row in ((0, 0), (1, 0), (0, 1), (7, 3)))  # fmt: skip
        assert all((other == first).all() for other in others)
        if (colours := len(np.unique(first, axis=1).T)) >= 4:
            break
    assert colours >= 4


def test_srgb_colours_are_made_linear_and_alpha_is_not() -> None:
    data = bytes([0x51, 0x8C] * 8)  # all channels on the curved part
    plain, curved = unpacked(BY_NAME["BC3_UNORM"], data), unpacked(BY_NAME["BC3_UNORM_SRGB"], data)
    assert (curved[:, 3] == plain[:, 3]).all()
    assert curved[:, :3] == pytest.approx(((plain[:, :3] + 0.055) / 1.055) ** 2.4, rel=1e-5)


def test_blocks_are_sampled_only_and_others_refused() -> None:
    blocks.check(BY_NAME["BC1_UNORM"])
    for name in ("BC7_UNORM", "ETC2_RGB8", "ASTC_LDR_2D_12X12_FLT16"):
        blocks.check(BY_NAME[name])
    with pytest.raises(Unsupported, match="PLANAR_420_8"):
        blocks.check(BY_NAME["PLANAR_420_8"])
    with pytest.raises(Unsupported, match="BC1_UNORM"):
        texel.check(BY_NAME["BC1_UNORM"])


@pytest.mark.parametrize(("gen", "align", "top"), [(7, 1, 5), (8, 1, 5), (9, 4, 8)])
def test_levels_count_blocks(gen: float, align: int, top: int) -> None:
    """20x18 texels are 5x5 blocks: the second level is below them; alignments count texels before Gen9, then blocks."""
    page = layout("RENDER_SURFACE_STATE", gen)
    fields = {"surface_type": 1, "surface_format": BY_NAME["BC1_UNORM"].value, "width": 19, "height": 17, "surface_pitch": 127,
              "mip_count_lod": 2, "surface_vertical_alignment": 1, "surface_horizontal_alignment": int(gen >= 8)}  # fmt: skip
    image = image_from_state(page, page.raw(page.pack(**fields)), "surface 0")
    table = level_table(image)
    assert image.align == (align, align) and image.size == 8
    assert (table.left[1], table.top[1]) == (0, top)
    assert (table.left[2], table.top[2]) == (-(-3 // align) * align, top)

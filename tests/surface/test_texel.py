"""Texels: known values, there and back for every format with plain texels, and both machines agree."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest

from softgen.bits.formats import Format, FormatChannel, surface_formats
from softgen.errors import Unsupported
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.primitives import Operand
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Value
from softgen.surface import texel
from tests.conftest import every
from tests.lanes.both import agree

LANES = 16
FRACTION = {32: 23, 16: 10, 11: 6, 10: 5}  # bits of floats
BY_NAME = {surface_format.name: surface_format for surface_format in surface_formats().values()}


@pytest.mark.parametrize("bits", range(1, 17))
def test_division_by_multiplication_rounds_correctly(bits: int) -> None:
    m, steps = NumpyMachine(), max((1 << bits) - 1, 1)
    every = np.arange(steps + 1, dtype=np.float32)
    for start in range(0, len(every), 256):
        part = every[start : start + 256]
        assert (texel.divided(m, m.value(f32, part), steps).payload == part / np.float32(steps)).all()


class CountsDivisions(NumpyMachine):
    divisions = 0

    def div(self, a: Operand, b: Operand, rounding: str = "rne") -> Value:
        self.divisions += 1
        return super().div(a, b, rounding)


@pytest.mark.parametrize("bits, divisions", [(1, 0), (8, 0), (15, 0), (16, 0), (24, 1)])
def test_only_channels_of_more_than_16_bits_are_divided(bits: int, divisions: int) -> None:
    """A division takes several times as long as a multiplication and its correction."""
    m, most = CountsDivisions(), (1 << bits) - 1
    found = texel.decode_channel(m, FormatChannel("r", "unorm", bits), m.constant(u32, [0, most // 3, most]))
    assert found.payload.view(np.float32).tolist() == [np.float32(n / most) for n in (0, most // 3, most)] and m.divisions == divisions


@pytest.mark.parametrize("name", ["R8G8B8A8_UNORM", "R16G16_SNORM", "B5G6R5_UNORM", "L8_UNORM", "A8_UNORM", "R10G10B10A2_UNORM"])
def test_steps_over_their_number_are_what_a_texel_means(name: str) -> None:
    m, look = NumpyMachine(), BY_NAME[name]
    words = [m.value(u32, np.random.default_rng(4).integers(0, 1 << 32, LANES, np.uint32))]
    counts = texel.step_counts(look)
    found = [texel.divided(m, value, count).payload for value, count in zip(texel.unpack_steps(m, look, words), counts, strict=True)]
    wanted = [value.payload.view(np.float32) for value in texel.unpack(m, look, words)]
    assert np.array_equal(found, wanted)


def test_the_table_has_what_the_formula_gives() -> None:
    m, look = NumpyMachine(), BY_NAME["R8G8B8A8_UNORM_SRGB"]
    words = [m.value(u32, np.arange(256, dtype=np.uint32) * 0x01010101)]
    assert list(texel.linear_table()) == texel.unpack(m, look, words)[1].payload.tolist()


@pytest.mark.parametrize("name, looked_up", [
    ("R8G8B8A8_UNORM_SRGB", "rgb"), ("B8G8R8X8_UNORM_SRGB", "rgb"), ("L8_UNORM_SRGB", "rgb"), ("L8A8_UNORM_SRGB", "rgb"),
    ("B5G6R5_UNORM_SRGB", ""), ("R10G10B10A2_UNORM_SRGB", ""), ("B4G4R4A4_UNORM_SRGB", ""), ("R8G8B8A8_UNORM", ""), ("R16G16_UNORM", ""),
])  # fmt: skip
def test_srgb_channels_of_8_bits_are_looked_up_in_a_table(name: str, looked_up: str) -> None:
    """Those of other widths are computed, and alpha is linear."""
    m, look = NumpyMachine(), BY_NAME[name]
    words = [m.value(u32, np.random.default_rng(5).integers(0, 1 << 32, LANES, np.uint32))]
    real, other = (m.memory(np.array(texel.linear_table(), np.uint32) + by) for by in (0, 1))
    wanted = [value.payload for value in texel.unpack(m, look, words)]
    assert np.array_equal([value.payload for value in texel.unpack(m, look, words, real)], wanted)
    shown = [value.payload for value in texel.unpack(m, look, words, other)]
    assert np.array_equal(shown, [bits + (channel in looked_up) for channel, bits in zip("rgba", wanted, strict=True)])


def plain() -> list[Format]:
    found = []
    for surface_format in surface_formats().values():
        try:
            texel.check(surface_format)
        except Unsupported:
            continue
        found.append(surface_format)
    return found


def bits(number: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def unpacked(name: str, *words: int) -> list[int]:
    m = NumpyMachine()
    found = texel.unpack(m, BY_NAME[name], [m.constant(u32, word, 1) for word in words])
    assert [value.type for value in found] == [u32] * 4
    return [int(value.payload[0]) for value in found]


def packed(name: str, *values: int) -> list[int]:
    m = NumpyMachine()
    return [int(item.payload[0]) for item in texel.pack(m, BY_NAME[name], [m.constant(u32, value, 1) for value in values])]


def test_known_values_out_of_memory() -> None:
    assert unpacked("R8G8B8A8_UNORM", 0xFF800000) == [0, 0, bits(128 / 255), bits(1.0)]
    assert unpacked("B8G8R8A8_UNORM", 0x00FF0000) == [bits(1.0), 0, 0, 0]
    assert unpacked("R8G8_SNORM", 0x7F80) == [bits(-1.0), bits(1.0), 0, bits(1.0)]
    assert unpacked("R16_SINT", 0x8000) == [0xFFFF8000, 0, 0, 1]
    assert unpacked("R16G16_FLOAT", 0xC000_3C00) == [bits(1.0), bits(-2.0), 0, bits(1.0)]
    assert unpacked("R11G11B10_FLOAT", 0x3C0 | 0x3C0 << 11 | 0x1E0 << 22) == [bits(1.0)] * 3 + [bits(1.0)]
    assert unpacked("R10G10B10A2_UINT", 1 | 2 << 10 | 3 << 20 | 3 << 30) == [1, 2, 3, 3]


@pytest.mark.parametrize("exponent", range(32))
def test_channels_share_an_exponent(exponent: int) -> None:
    """(mantissa / 512) * 2^(exponent - 15), exactly (public: OpenGL 4.6, 8.25); mantissas have no leading one."""
    word = 511 | 256 << 9 | 1 << 18 | exponent << 27
    wanted = [mantissa * 2.0 ** (exponent - 24) for mantissa in (511, 256, 1)]
    assert unpacked("R9G9B9E5_SHAREDEXP", word) == [*(bits(value) for value in wanted), bits(1.0)]
    with pytest.raises(Unsupported, match="R9G9B9E5_SHAREDEXP"):
        packed("R9G9B9E5_SHAREDEXP", 0, 0, 0, 0)


def test_srgb_is_made_linear() -> None:
    """Every value of 8 bits, against the definition in 64-bit floats: within one unit in the last place; alpha is linear as it is."""
    for value in range(256):
        c = float(np.float32(value / 255))
        wanted = bits(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        red, green, blue, alpha = unpacked("R8G8B8A8_UNORM_SRGB", value * 0x01010101)
        assert red == green == blue and abs(red - wanted) <= 1, value
        assert alpha == bits(c)


def test_any_srgb_number_is_made_linear_and_rounded_once() -> None:
    """Compressed blocks have numbers between those of 8 bits."""
    m, wanted = NumpyMachine(), np.linspace(0, 1, 20480).astype(np.float32)
    for part in wanted.reshape(-1, 256):
        c = part.astype(np.float64)
        exact = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        found = texel.linear(m, m.value(u32, part.view(np.uint32))).payload.view(np.float32)
        assert (np.abs(found - exact) <= 0.5001 * np.spacing(found)).all()


def test_srgb_is_rounded_where_the_definition_has_it() -> None:
    """Half way between two of the 256 values; numbers a few units in the last place below and above go to either side."""
    half = (np.arange(255) + 0.5) / 255
    border = np.where(half <= 12.92 * 0.0031308, half / 12.92, ((half + 0.055) / 1.055) ** 2.4).astype(np.float32).view(np.uint32)
    for distance, wanted in ((-6, np.arange(255)), (6, np.arange(255) + 1)):
        m = NumpyMachine()
        value = m.value(u32, (border.astype(np.int64) + distance).astype(np.uint32))
        found = texel.pack(m, BY_NAME["R8G8B8A8_UNORM_SRGB"], [value] * 3 + [m.like(value, 0)])[0].payload
        assert (found == wanted * 0x010101).all()


def test_known_values_into_memory() -> None:
    assert packed("R8G8B8A8_UNORM", bits(-1.0), bits(0.5), bits(7.0), bits(float("nan"))) == [0x00FF8000]
    assert packed("R8_UINT", 300, 0, 0, 0) == [255]
    assert packed("R8G8_SINT", 0xFFFFFF00, 200, 0, 0) == [0x7F80]
    assert packed("R16_SNORM", bits(-1.0), 0, 0, 0) == [0x8001]
    assert packed("R32G32_FLOAT", 1, 2, 3, 4) == [1, 2]
    assert packed("R11G11B10_FLOAT", bits(-3.0), bits(1.0), bits(1.0), 0) == [0x3C0 << 11 | 0x1E0 << 22]


@pytest.mark.parametrize("number, red, blue", [
    (1.0, 0x3C0, 0x1E0), (1 - 2**-14, 0x3BF, 0x1DF), (1 - 2**-7, 0x3BF, 0x1DF), (1 - 2**-6, 0x3BE, 0x1DF),
    (1 + 2**-6 - 2**-14, 0x3C0, 0x1E0), (1 + 2**-6, 0x3C1, 0x1E0), (-1.0, 0, 0),
    (0.0, 0, 0), (2.0**-15 + 2.0**-16, 0x030, 0x018), (2.0**-30, 0, 0),
])  # fmt: skip
def test_unsigned_floats_of_11_and_10_bits_are_rounded_toward_zero(number: float, red: int, blue: int) -> None:
    """Negative ones are zero."""
    assert packed("R11G11B10_FLOAT", bits(number), bits(number), bits(number), 0) == [red | red << 11 | blue << 22]


@pytest.mark.parametrize("number, unorm, snorm", [(math.nan, 0, 0), (math.inf, 1, 1), (-math.inf, 0, -1), (1.25, 1, 1), (-1.25, 0, -1)])
@pytest.mark.parametrize("width", [8, 16])
def test_numbers_that_no_normalised_channel_has(number: float, unorm: int, snorm: int, width: int) -> None:
    """NaN becomes 0, others the nearest end."""
    whole = (1 << width) - 1
    assert packed(f"R{width}_UNORM", bits(number), 0, 0, 0) == [unorm * whole]
    assert packed(f"R{width}_SNORM", bits(number), 0, 0, 0) == [snorm * (whole >> 1) & whole]


@pytest.mark.parametrize("format", every(4, plain()), ids=str)
def test_there_and_back(format: Format) -> None:
    """Every texel comes back as it was, but for unused bits and the lowest snorm, which is -1 like the one above it; NaN is left out."""
    count = -(-format.bits // 32)

    def program(m: Machine, *words: Value) -> tuple[Value, ...]:
        return tuple(texel.pack(m, format, texel.unpack(m, format, list(words))))

    rng = np.random.default_rng(format.value)
    words = [rng.integers(0, 1 << min(32, format.bits), LANES, np.uint32) for _ in range(count)]
    for item, at in texel.places(format):
        if item.type in ("float", "ufloat"):
            words[at // 32] &= np.uint32(~(1 << at % 32 + FRACTION[item.bits]) & 0xFFFFFFFF)
    found = agree(program, Signature((Lanes(u32, LANES),) * count, (Lanes(u32, LANES),) * count), list(words))
    for item, at in texel.places(format):
        mask = (1 << item.bits) - 1
        before, after = (words_[at // 32] >> np.uint32(at % 32) & np.uint32(mask) for words_ in (words, found))
        if item.type == "snorm":
            before = np.where(before == 1 << item.bits - 1, before + 1, before)
        assert (after == (0 if item.type == "void" else before)).all(), f"{item.name} of {format}"


@pytest.mark.parametrize(("type", "widest"), [("unorm", 24), ("snorm", 16), ("uint", 32), ("sint", 32), ("float", 32), ("ufloat", 11),
                                              ("raw", 32), ("void", 32), ("exponent", 5), ("uscaled", 0), ("sfixed", 0)])  # fmt: skip
def test_channels_that_are_wider_than_any_that_is_unpacked_are_refused(type: str, widest: int) -> None:
    """Widths that channels of surface formats have; scaled and fixed-point numbers are of vertex elements only."""
    for bits_ in range(1, 65):
        format = replace(BY_NAME["R8_UNORM"], channels=(FormatChannel("r", type, bits_),), bits=64)
        for reading in (False, True):
            if bits_ <= widest:
                texel.check(format, reading)
                continue
            with pytest.raises(Unsupported, match="R8_UNORM"):
                texel.check(format, reading)


@pytest.mark.parametrize(("name", "normalised", "finite"), [
    ("R8G8B8A8_UNORM", True, True), ("R16G16_SNORM", True, True), ("L8_UNORM", True, True), ("R8G8B8X8_UNORM", True, True),
    ("R24_UNORM_X8_TYPELESS", True, True), ("R8G8B8A8_UNORM_SRGB", False, True), ("P8A8_UNORM_PALETTE0", False, True),
    ("YCRCB_NORMAL", False, True), ("BC1_UNORM", False, True), ("BC1_UNORM_SRGB", False, True), ("BC6H_UF16", False, False),
    ("R16_FLOAT", False, False), ("R32_FLOAT_X8X24_TYPELESS", False, False), ("R11G11B10_FLOAT", False, False),
    ("R9G9B9E5_SHAREDEXP", False, False), ("R10G10B10_FLOAT_A2_UNORM", False, False),
])  # fmt: skip
def test_formats_whose_texels_are_whole_numbers_of_steps(name: str, normalised: bool, finite: bool) -> None:
    """Filters count steps of plain linear texels; texels of other formats without floats are finite as well."""
    assert (texel.is_normalised(BY_NAME[name]), texel.is_finite(BY_NAME[name])) == (normalised, finite)


def test_what_is_no_plain_texel_is_refused_by_name() -> None:
    for name in ("BC1_UNORM", "YCRCB_NORMAL", "R64G64_FLOAT"):
        with pytest.raises(Unsupported, match=name):
            unpacked(name, 0, 0, 0, 0)
    m = NumpyMachine()
    for name in ("R32_UNORM", "BC1_UNORM"):  # steps of 32 bits are more than a float counts
        with pytest.raises(Unsupported, match=name):
            texel.unpack_steps(m, BY_NAME[name], [m.constant(u32, 0, 1)])


def test_what_can_only_be_read_is_not_written() -> None:
    for name in ("L8_UNORM", "I16_UNORM"):
        format = next(surface_format for surface_format in surface_formats().values() if surface_format.name == name)
        texel.check(format, reading=True)
        with pytest.raises(Unsupported, match=name):
            texel.check(format)

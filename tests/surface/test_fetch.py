"""Texels fetched from memory: words that are touched, palettes, compressed blocks, what is outside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.bits.formats import surface_formats
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Region
from softgen.surface import fetch, texel
from softgen.surface.image import SurfaceImage
from tests.lanes.test_region import Held
from tests.surface.test_image import plain

BY_NAME = {surface_format.name: surface_format for surface_format in surface_formats().values()}
DATA = np.random.default_rng(3).integers(0, 256, 4096, np.uint8)


def image_of(name: str, **values: object) -> SurfaceImage:
    return replace(plain("2d", (16, 8, 1)), format=BY_NAME[name], **values)  # type: ignore[arg-type]


def held(m: NumpyMachine) -> Region:
    return Region(m, Held(DATA.copy()))


def floats(values: list) -> np.ndarray:  # type: ignore[type-arg]
    return np.stack([np.asarray(value.payload).view(np.float32) for value in values], axis=1)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("name", ["R8_UNORM", "R16_UNORM", "R8G8_UNORM", "R8G8B8A8_UNORM", "R16G16B16A16_UNORM"])
def test_texels_by_their_offsets(name: str, near: bool) -> None:
    """Of any offset in a dword; lanes that are off are zero, but for channels that are missing."""
    m, image = NumpyMachine(), image_of(name, near=near)
    offsets = np.arange(8) * image.size + 64
    at = m.value(u32, offsets.astype(np.uint32)) if near else m.value(u64, offsets.astype(np.uint64))
    found = floats(fetch.load(m, image, held(m), at, m.constant(bool_, [1] * 7 + [0])))
    width = image.format.channels[0].bits // 8
    wanted = np.zeros((8, 4), np.float32)
    for lane, offset in enumerate(offsets[:7]):
        for channel in range(len(image.format.channels)):
            number = int.from_bytes(DATA[offset + width * channel : offset + width * (channel + 1)].tobytes(), "little")
            wanted[lane, channel] = np.float32(number) / np.float32((1 << 8 * width) - 1)
    wanted[:, 3] = wanted[:, 3] if len(image.format.channels) == 4 else 1
    assert (found == wanted).all()


@pytest.mark.parametrize("name", ["R8_UNORM", "R16_UNORM", "R8G8_UNORM", "R8G8B8_UNORM", "R32_UINT"])
def test_narrow_texels_of_near_images_come_with_their_dword(name: str) -> None:
    """Hosts gather dwords: the bits above are those of the dword that the texel is in. Texels of 3 bytes are in no one dword."""
    m, image = NumpyMachine(), image_of(name, near=True)
    offsets = 64 + image.size * np.arange(8, dtype=np.uint32)
    found = fetch.raw(m, image, held(m), m.value(u32, offsets), m.constant(bool_, 1, 8))[0].payload.tolist()
    starts = offsets if image.size == 3 else offsets & ~np.uint32(3)
    dwords = [int.from_bytes(DATA[start : start + 4].tobytes(), "little") for start in starts]
    assert found == [dword >> 8 * int(offset - start) for dword, offset, start in zip(dwords, offsets, starts, strict=True)]


@pytest.mark.parametrize("near", [False, True])
def test_texels_of_dwords_begin_at_any_byte(near: bool) -> None:
    """As in a buffer whose pitch is no multiple of four."""
    m, offsets = NumpyMachine(), np.arange(64, 64 + 7 * 9, 7)
    at = m.value(u32, offsets.astype(np.uint32)) if near else m.value(u64, offsets.astype(np.uint64))
    found = fetch.raw(m, image_of("R32_UINT", near=near), held(m), at, m.constant(bool_, 1, 9))[0].payload.tolist()
    assert found == [int.from_bytes(DATA[at : at + 4].tobytes(), "little") for at in offsets]


@pytest.mark.parametrize("name, needed, words", [
    *(("R16G16B16A16_UNORM", *row) for row in (("rgba", {0, 1}), ("r", {0}), ("rg", {0}), ("b", {1}), ("ab", {1}), ("", set()))),
    ("R32G32B32A32_FLOAT", "ga", {1, 3}), ("R32G32B32X32_FLOAT", "ba", {2}), ("I32_FLOAT", "b", {0}), ("L32_FLOAT", "a", set()),
    ("BC3_UNORM", "r", {0, 1, 2, 3}),  # any word of a block may decide
])  # fmt: skip
def test_words_without_channels_that_are_needed_are_not_touched(name: str, needed: str, words: set[int]) -> None:
    m, at, image = NumpyMachine(), 96, image_of(name)
    found = fetch.raw(m, image, held(m), m.constant(u64, at, 1), m.constant(bool_, 1, 1), frozenset(needed))
    wanted = [int.from_bytes(DATA[at + 4 * word : at + 4 * word + 4].tobytes(), "little") if word in words else 0
              for word in range(image.size // 4)]  # fmt: skip
    assert [int(word.payload[0]) for word in found] == wanted


def test_a_narrow_texel_of_which_nothing_is_needed_is_not_touched() -> None:
    """A byte of 5 in a dword of fives would be."""
    m = NumpyMachine()
    memory, at, on = Region(m, Held(np.full(16, 5, np.uint8))), m.constant(u32, 5, 1), m.constant(bool_, 1, 1)
    for needed, wanted in (("a", 0), ("r", 0x050505), ("ra", 0x050505)):
        found = fetch.raw(m, image_of("R8_UNORM", near=True), memory, at, on, frozenset(needed))
        assert [int(word.payload[0]) for word in found] == [wanted]


@pytest.mark.parametrize("name, index, alpha", [
    ("P8_UNORM_PALETTE0", 0x5A, None), ("P8A8_UNORM_PALETTE0", 0x5A, 0xC3 / 255), ("A8P8_UNORM_PALETTE1", 0xC3, 0x5A / 255),
    ("P4A4_UNORM_PALETTE0", 0xA, 5 / 15),
])  # fmt: skip
@pytest.mark.parametrize("by_address", [False, True])
def test_texels_of_a_palette(name: str, index: int, alpha: float | None, by_address: bool) -> None:
    """An entry has alpha, red, green and blue from the highest byte down; compiled programs have the address of the palette."""
    m, entries = NumpyMachine(), np.random.default_rng(5).integers(0, 1 << 32, 256, np.uint32)
    given = {"linear": m.value(u64, np.array([entries.ctypes.data], np.uint64))} if by_address else {"entries": tuple(entries.tolist())}
    found = floats(fetch.unpack(m, image_of(name, **given), [m.constant(u32, 0xC35A, 1)]))[0]
    entry = int(entries[index])
    parts = [(entry >> shift & 0xFF) / 255 for shift in (16, 8, 0, 24)]
    assert found == pytest.approx([*parts[:3], parts[3] if alpha is None else alpha], abs=1e-7)


def test_a_table_makes_srgb_linear() -> None:
    m, table = NumpyMachine(), np.frombuffer(texel.linear_table(), np.uint32)
    image = image_of("R8G8B8A8_UNORM_SRGB", linear=m.value(u64, np.array([table.ctypes.data], np.uint64)))
    words = [m.constant(u32, 0x80FF4001, 1)]
    found = fetch.unpack(m, image, words)
    assert (floats(found) == floats(fetch.unpack(m, replace(image, linear=None), words))).all()
    assert [value.type for value in found] == [u32] * 4, "channels are bits, wherever they come from"


def test_texels_of_compressed_blocks() -> None:
    """A block of four texels across and down: red at index 0, blue at 1; outside the image there is nothing, and alpha is 1."""
    block = bytes([0x00, 0xF8, 0x1F, 0x00, 0b01_00_01_00, 0b01_01_01_01, 0, 0])
    data = np.frombuffer(bytes(8) + block * 3, np.uint8)
    m, image = NumpyMachine(), image_of("DXT1_RGB", width=16, height=4)
    x, y = m.constant(u32, [4, 5, 4, 5, 16]), m.constant(u32, [0, 0, 1, 1, 0])
    found = floats(fetch.fetch(m, image, Region(m, Held(data)), [x, y], None, m.constant(bool_, 1, 5)))
    red, blue = [1, 0, 0, 1], [0, 0, 1, 1]
    assert found.tolist() == [red, blue, blue, blue, [0, 0, 0, 1]]
    words = [m.constant(u32, int.from_bytes(block[at : at + 4], "little"), 1) for at in (0, 4)]
    assert floats(fetch.unpack(m, image, words)).tolist() == [red]  # without a column and row: the first


# Format, and what is fetched outside the image: the channels that the format has are zero, those that it lacks have their default values.
@pytest.mark.parametrize("name, wanted", [
    ("R8G8B8A8_UNORM", [0, 0, 0, 0]), ("R8_UNORM", [0, 0, 0, 1]), ("A8_UNORM", [0, 0, 0, 0]), ("L8_UNORM", [0, 0, 0, 1]),
    ("I8_UNORM", [0, 0, 0, 0]), ("BC4_UNORM", [0, 0, 0, 1]), ("DXT1_RGB", [0, 0, 0, 1]), ("BC1_UNORM", [0, 0, 0, 0]),
    ("BC3_UNORM", [0, 0, 0, 0]), ("BC7_UNORM", [0, 0, 0, 0]), ("ETC2_RGB8", [0, 0, 0, 1]), ("ASTC_LDR_2D_4X4_FLT16", [0, 0, 0, 0]),
    ("YCRCB_NORMAL", [0, 0, 0, 1]),
])  # fmt: skip
@pytest.mark.parametrize("near", [False, True])
def test_outside_the_image_all_bits_of_a_texel_are_zero(name: str, wanted: list[float], near: bool) -> None:
    m, image = NumpyMachine(), image_of(name, width=8, height=8, near=near)
    x, y = m.constant(u32, [8, 7, 0, 1 << 31, 7]), m.constant(u32, [0, 8, 8, 0, 7])
    memory = Region(m, Held(np.full(4096, 0x5A, np.uint8)))
    found = floats(fetch.fetch(m, image, memory, [x, y], None, m.constant(bool_, 1, 5))).tolist()
    assert found[:4] == [wanted] * 4 and found[4] != wanted


def test_channels_that_are_selected() -> None:
    assert fetch.selected_channels(image_of("R8G8B8A8_UNORM")) == frozenset("rgba")
    assert fetch.selected_channels(image_of("R8G8B8A8_UNORM", select=("zero", "blue", "one", "blue"))) == frozenset("b")

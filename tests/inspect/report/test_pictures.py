"""Pictures of surfaces in memory: every tiling and common format, levels and slices; and the files of submissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from softgen.bits.formats import FormatChannel, surface_formats
from softgen.errors import Unsupported, UsageError
from softgen.inspect.report.pictures import TargetPictures, eight_bits, picture
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.surface import samples
from softgen.surface.image import SurfaceImage
from softgen.surface.tiling import orders

NAMES = {format.name: format for format in surface_formats().values()}
BASE = 0x10000
PITCH = 1024  # bytes of a row: two X tiles, eight Y tiles


def surface(format: str, width: int, height: int, tiling: str = "linear", pitch: int = PITCH, **more: Any) -> SurfaceImage:
    plain = SurfaceImage("2d", NAMES[format], BASE, width, height, 1, False, pitch, tiling, 0, 1, 0, 0, (4, 4), (0, 0))
    return replace(plain, **more)


def memory(data: npt.NDArray[Any], size: int = 1 << 18) -> AddressSpace:
    space, buffer = AddressSpace("test", 48), MemfdBuffer(size, "surface")
    flat = data.reshape(-1).view(np.uint8)
    buffer.array[: len(flat)] = flat
    space.map(BASE, buffer)
    return space


def place(tiling: str, pitch: int, x: int, y: int) -> int:
    """The offset of byte x of row y, worked out from the size and shape of a tile."""
    if tiling == "linear":
        return y * pitch + x
    if tiling == "x_major":  # 512 bytes by 8 rows
        return (y // 8 * (pitch // 512) + x // 512) * 4096 + y % 8 * 512 + x % 512
    if tiling == "y_major":  # columns of 16 bytes by 32 rows
        return (y // 32 * (pitch // 128) + x // 128) * 4096 + x % 128 // 16 * 512 + y % 32 * 16 + x % 16
    if tiling == "w_major":  # 64 by 64 bytes, in blocks of 8 by 8, 4 by 4, 2 by 2; the pitch counts two rows
        inside = x % 64 // 8 * 512 + y % 64 // 8 * 64 + y % 8 // 4 * 32 + x % 8 // 4 * 16 + y % 4 // 2 * 8 + x % 4 // 2 * 4
        return (y // 64 * (pitch // 128) + x // 64) * 4096 + inside + y % 2 * 2 + x % 2
    order, found, at = orders()[tiling], 0, {"X": x, "Y": y}
    for position, which in enumerate(reversed(order)):
        found |= (at[which] & 1) << position
        at[which] >>= 1
    return ((at["Y"] * (pitch >> order.count("X")) + at["X"]) << len(order)) + found


def tiled(tiling: str, texels: npt.NDArray[Any], pitch: int = PITCH) -> npt.NDArray[np.uint8]:
    rows = np.ascontiguousarray(texels).view(np.uint8).reshape(texels.shape[0], -1)
    found = np.zeros(1 << 18, np.uint8)
    for y, row in enumerate(rows):
        for x, byte in enumerate(row):
            found[place(tiling, pitch, x, y)] = byte
    return found


@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major", "tileyf_32", "tileys_32"])
def test_tilings(tiling: str) -> None:
    texels = np.random.default_rng(1).integers(0, 256, (70, 150, 4), np.uint8)
    found = np.asarray(picture(memory(tiled(tiling, texels)), surface("R8G8B8A8_UNORM", 150, 70, tiling)))
    assert np.array_equal(found, texels)


def test_w_tiling_as_of_stencil() -> None:
    texels = np.random.default_rng(2).integers(0, 256, (90, 130), np.uint8)
    found = np.asarray(picture(memory(tiled("w_major", texels)), surface("R8_UINT", 130, 90, "w_major")))
    assert np.array_equal(found, texels)


FORMATS: list[tuple[str, npt.NDArray[Any], Any]] = [
    ("B8G8R8A8_UNORM", np.array([[0x80FF4001]], np.uint32), (0xFF, 0x40, 1, 0x80)),
    ("B8G8R8A8_UNORM_SRGB", np.array([[0x80FF4001]], np.uint32), (0xFF, 0x40, 1, 0x80)),
    ("B8G8R8X8_UNORM", np.array([[0x80FF4001]], np.uint32), (0xFF, 0x40, 1)),
    ("B5G6R5_UNORM", np.array([[0xF81F]], np.uint16), (255, 0, 255)),
    ("B5G6R5_UNORM", np.array([[16 << 11 | 32 << 5 | 8]], np.uint16), (132, 130, 66)),
    ("R10G10B10A2_UNORM", np.array([[1023 | 512 << 10 | 2 << 30]], np.uint32), (255, 128, 0, 170)),
    ("R16G16B16A16_FLOAT", np.array([[0.5, -1.0, 2.0, np.nan]], np.float16), (128, 0, 255, 0)),
    ("R32G32B32A32_FLOAT", np.array([[0.25, 1e9, np.inf, -0.0]], np.float32), (64, 255, 255, 0)),
    ("R11G11B10_FLOAT", np.array([[0x3C0 | 0x380 << 11 | 0x1E0 << 22]], np.uint32), (255, 128, 255)),
    ("R8G8_UNORM", np.array([[0x4080]], np.uint16), (0x80, 0x40, 0)),
    ("R8G8B8A8_SNORM", np.array([[-128, 127, 64, 0]], np.int8), (0, 255, 129, 0)),
    ("R16G16_SINT", np.array([[-5, 300]], np.int16), (0, 255, 0)),
    ("R32_FLOAT", np.array([[0.5]], np.float32), 128),
    ("R24_UNORM_X8_TYPELESS", np.array([[0x12FFFFFF]], np.uint32), 255),
    ("R16_UNORM", np.array([[0x8000]], np.uint16), 128),
    ("A8_UNORM", np.array([[77]], np.uint8), 77),
    ("L8A8_UNORM", np.array([[77, 88]], np.uint8), 77),
    ("I8_UNORM", np.array([[77]], np.uint8), 77),
]  # fmt: skip


@pytest.mark.parametrize("format, texel, expected", FORMATS)
def test_formats(format: str, texel: npt.NDArray[Any], expected: Any) -> None:
    found = picture(memory(texel), surface(format, 1, 1))
    assert found.size == (1, 1) and found.getpixel((0, 0)) == expected


@pytest.mark.parametrize("type, bits, values", [
    ("uint", 8, {0: 0, 1: 1, 254: 254, 255: 255}), ("uint", 16, {255: 255, 256: 255, 65535: 255}), ("raw", 32, {7: 7, 1 << 31: 255}),
    ("sint", 8, {0: 0, 1: 1, 127: 127, 128: 0, 255: 0}), ("sint", 16, {200: 200, 300: 255, 0x8000: 0, 0xFFFF: 0}),
    ("unorm", 8, {0: 0, 1: 1, 255: 255}), ("unorm", 1, {0: 0, 1: 255}), ("unorm", 5, {1: 8, 16: 132, 31: 255}),
    ("unorm", 16, {257: 1, 65535: 255}),
    ("snorm", 8, {0: 0, 1: 2, 64: 129, 127: 255, 128: 0, 129: 0, 255: 0}), ("float", 32, {0x3F000000: 128, 0x3F800000: 255, 0x7FC00000: 0}),
    ("float", 16, {0x3800: 128, 0x3C00: 255, 0xBC00: 0}), ("ufloat", 11, {0x380: 128, 0x3C0: 255}),
    ("ufloat", 10, {0x1C0: 128, 0x1E0: 255}),
])  # fmt: skip
def test_values_of_channels_as_bytes(type: str, bits: int, values: dict[int, int]) -> None:
    found = eight_bits(FormatChannel("r", type, bits), np.array(list(values), np.uint32))
    assert found.dtype == np.uint8 and found.tolist() == list(values.values())


def test_a_level_and_a_slice() -> None:
    """Level 2 is right of level 1, which is below level 0; slice 3 is three times 50 rows further down."""
    image = surface("R8_UNORM", 40, 24, levels=1, level=2, first=3, rows=50, is_array=True, depth=1, pitch=128)
    texels = np.zeros((256, 128), np.uint8)
    texels[3 * 50 + 24 : 3 * 50 + 24 + 6, 20:30] = np.arange(60).reshape(6, 10)
    found = np.asarray(picture(memory(texels), image))
    assert found.shape == (6, 10) and np.array_equal(found, np.arange(60).reshape(6, 10))


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_samples_are_averaged(count: int) -> None:
    """In slices of their own, 50 rows apart, or beside each other; all ones in a control surface are the clear colour."""
    random, m = np.random.default_rng(count), NumpyMachine()
    held = random.integers(0, 256, (count, 20, 40), np.uint8)
    texels = np.zeros((50 * count, 128), np.uint8)
    for sample in range(count):
        texels[50 * sample : 50 * sample + 20, :40] = held[sample]
    image = surface("R8_UNORM", 40, 20, rows=50, pitch=128, samples=count)
    mean = np.rint(held.mean(0)).astype(np.uint8)
    assert np.array_equal(np.asarray(picture(memory(texels), image)), mean)
    beside = np.zeros((128, 256), np.uint8)
    for sample in range(count):
        for y in range(20):
            x, row = samples.interleave(m, count, m.lane_index(40), m.constant(u32, y, 40), m.constant(u32, sample, 40))
            beside[row.payload.astype(int), x.payload.astype(int)] = held[sample, y]
    image = surface("R8_UNORM", 40, 20, pitch=256, samples=count, interleaved=True)
    assert np.array_equal(np.asarray(picture(memory(beside), image)), mean)
    size, whole = {2: 1, 4: 1, 8: 4, 16: 8}[count], np.zeros((1 << 17) + (1 << 15), np.uint8)
    whole[: texels.size] = texels.reshape(-1)
    own = sum(value << 32 * n for n, value in enumerate(samples.identity(count)))
    clear = random.integers(0, 2, (20, 40)).astype(bool)
    for (y, x), ones in np.ndenumerate(clear):
        at = (1 << 17) + place("y_major", 512, x * size, y)
        whole[at : at + size] = np.frombuffer((((1 << 8 * size) - 1) if ones else own).to_bytes(size, "little"), np.uint8)
    control = samples.SampleControl(BASE + (1 << 17), 512, 32, (0x3F800000, 0, 0, 0))
    image = surface("R8_UNORM", 40, 20, rows=50, pitch=128, samples=count, control=control)
    assert np.array_equal(np.asarray(picture(memory(whole), image)), np.where(clear, 255, mean))


def test_memory_that_is_not_mapped_is_black() -> None:
    found = np.asarray(picture(memory(np.full(4096, 9, np.uint8), 4096), surface("R8_UNORM", 1024, 6)))
    assert (found[:4] == 9).all() and not found[4:].any()


@pytest.mark.parametrize("image, complaint", [
    (replace(surface("R8_UNORM", 1, 1), kind="buffer"), "a buffer surface"),
    (replace(surface("R8_UNORM", 1, 1), kind="null"), "a null surface"),
    (surface("DXT1_RGB", 4, 4), "DXT1_RGB"),
])  # fmt: skip
def test_what_no_picture_can_be_made_of(image: SurfaceImage, complaint: str) -> None:
    with pytest.raises(Unsupported, match=complaint):
        picture(memory(np.zeros(16, np.uint8)), image)


def test_files_are_named_after_submission_last_draw_and_target(tmp_path: Path) -> None:
    said: list[str] = []
    pictures, space = TargetPictures(tmp_path / "out", said.append), memory(np.full(64, 5, np.uint8))
    first, second, compressed = surface("R8_UNORM", 2, 2), surface("R8_UNORM", 3, 3), surface("DXT1_RGB", 4, 4)
    pictures.drawn(7, space, [first, second])
    pictures.drawn(8, space, [compressed])
    pictures.drawn(7, space, [first])
    names = [f"submission-7-draw-{draw}-target-{number}.png" for draw, number in ((2, 0), (1, 1))]
    assert pictures.write(7, "submission-7") == [str(tmp_path / "out" / name) for name in names] == pictures.files
    assert Image.open(tmp_path / "out" / names[1]).size == (3, 3) and not said
    assert pictures.write(8, "submission-8") == [] and "DXT1_RGB" in said[0]
    assert pictures.write(7, "submission-7") == []


def test_pictures_of_before_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(b"kept")
    with pytest.raises(UsageError, match="has files in it already"):
        TargetPictures(tmp_path)
    with pytest.raises(UsageError, match="File exists"):
        TargetPictures(tmp_path / "old.png")

"""Frames that a display presents: the right pixels of each tiling and format, and which of many are written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softgen.bits.formats import surface_formats
from softgen.driver.kms import monitor
from softgen.driver.kms.crtc import Blob, Crtc, Framebuffer, Rectangle, ScanoutPlane
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.uapi import kernel_tables
from softgen.errors import SoftgenError
from softgen.inspect.report.frames import FramePictures, frame, frame_bytes
from softgen.memory.store import MemfdBuffer
from tests.driver.objects.test_budget import Growth
from tests.inspect.report.test_pictures import place

KBL = kernel_tables.display("kbl")
PITCH, ROWS, OFFSET = 1024, 96, 8192
SIZE = OFFSET + PITCH * ROWS


def shown(format: str = "XR24", modifier: str = "linear", x: int = 0, y: int = 0,
          size: tuple[int, int] = (200, 90)) -> tuple[Crtc, MemfdBuffer]:  # fmt: skip
    buffer = MemfdBuffer(SIZE, "frame")
    bo = GemObject(1, 1, [Piece(buffer, 0, SIZE)], 1)
    [pixels] = [each for each in KBL.formats.values() if each.name == format]
    [tiling] = [each for each in KBL.modifiers.values() if each.name == modifier]
    framebuffer = Framebuffer(101, None, bo, 200, 90, pixels, tiling, PITCH, OFFSET)
    return Crtc.showing(framebuffer, Blob(1, monitor.mode(*size)), x, y), buffer


@pytest.mark.parametrize("modifier, tiling", [("linear", "linear"), ("x_tiled", "x_major"), ("y_tiled", "y_major")])
def test_tilings(modifier: str, tiling: str) -> None:
    crtc, buffer = shown(modifier=modifier)
    for x, y, colour in ((0, 0, b"\1\2\3\xff"), (199, 0, b"\4\5\6\xff"), (130, 89, b"\7\x08\x09\xff")):
        at = OFFSET + place(tiling, PITCH, 4 * x, y)
        buffer.view[at : at + 4] = colour
    found = frame(crtc)
    assert found is not None and found.size == (200, 90)
    pixels = np.asarray(found)
    assert [tuple(map(int, pixels[y, x])) for x, y in ((0, 0), (199, 0), (130, 89))] == [(3, 2, 1), (6, 5, 4), (9, 8, 7)]
    assert np.count_nonzero(pixels.any(-1)) == 3


@pytest.mark.parametrize("format, texel, expected", [
    ("XR24", b"\x10\x20\x30\x00", (0x30, 0x20, 0x10)), ("XB24", b"\x10\x20\x30\x00", (0x10, 0x20, 0x30)),
    ("RG16", b"\x1f\x00", (0, 0, 255)), ("XR30", (0x3FF << 20).to_bytes(4, "little"), (255, 0, 0)),
])  # fmt: skip
def test_formats(format: str, texel: bytes, expected: tuple[int, int, int]) -> None:
    crtc, buffer = shown(format)
    buffer.view[OFFSET : OFFSET + len(texel)] = texel
    found = frame(crtc)
    assert found is not None and found.convert("RGB").getpixel((0, 0)) == expected


def test_every_format_of_the_display_is_one_of_surfaces() -> None:
    names = {each.name: each.bits for each in surface_formats().values()}
    assert all(names[each.surface] == each.bits for each in KBL.formats.values())


def test_the_crtc_shows_a_part_of_the_framebuffer() -> None:
    crtc, buffer = shown(x=20, y=10, size=(64, 32))
    buffer.view[OFFSET + 10 * PITCH + 80 : OFFSET + 10 * PITCH + 84] = b"\xff\xff\xff\xff"
    found = frame(crtc)
    assert found is not None and found.size == (64, 32) and found.getpixel((0, 0)) == (255, 255, 255)
    assert frame(Crtc()) is None


def test_the_first_ten_and_every_sixtieth_frame_are_written(tmp_path: Path) -> None:
    files: list[str] = ["before"]
    pictures, (crtc, _) = FramePictures(tmp_path, files), shown(size=(16, 16))
    for number in range(1, 130):
        pictures.presented(crtc, number)
    names = [f"frame-{number:04}.png" for number in (*range(1, 11), 60, 120)]
    assert sorted(os.listdir(tmp_path)) == names and files == ["before", *(str(tmp_path / name) for name in names)]


@pytest.mark.parametrize("modifier", ["linear", "x_tiled", "y_tiled"])
def test_a_part_of_a_large_framebuffer_takes_no_more_memory_than_it_has(modifier: str) -> None:
    """8192x8192 pixels once took 3 GiB, whatever was shown of them."""
    size, (x, y), pitch = 1 << 28, (4000, 3333), 8192 * 4
    buffer = MemfdBuffer(size, "frame")
    [pixels] = [each for each in KBL.formats.values() if each.name == "XR24"]
    [tiling] = [each for each in KBL.modifiers.values() if each.name == modifier]
    framebuffer = Framebuffer(101, None, GemObject(1, 1, [Piece(buffer, 0, size)], 1), 8192, 8192, pixels, tiling, pitch, 0)
    for place_x, place_y, colour in ((x, y, 1), (x + 639, y + 479, 2), (x - 1, y, 3), (x, y + 480, 4)):
        buffer.view[place(tiling.tiling, pitch, 4 * place_x, place_y)] = colour
    with Growth() as growth:
        found = frame(Crtc.showing(framebuffer, Blob(1, monitor.mode(640, 480)), x, y))
    assert found is not None and growth.bytes < 80 << 20
    seen = np.asarray(found)
    assert seen.shape == (480, 640, 3) and [seen[0, 0, 2], seen[479, 639, 2], np.count_nonzero(seen)] == [1, 2, 2]


def test_a_frame_needs_room(tmp_path: Path) -> None:
    asked, said = list[tuple[int, int]](), list[str]()

    @contextmanager
    def room(pid: int, size: int) -> Iterator[None]:
        asked.append((pid, size))
        if len(asked) > 1:
            raise SoftgenError("no room")
        yield

    crtc, _ = shown()
    pictures = FramePictures(tmp_path, [], said.append, room)
    for number in (1, 2):
        pictures.presented(crtc, number)
    assert os.listdir(tmp_path) == ["frame-0001.png"] and said == ["frame-0002.png: no room"]
    assert asked == [(1, frame_bytes(crtc))] * 2 and asked[0][1] > 3 * 3 * 200 * 90


def test_a_frame_that_cannot_be_written_is_complained_about(tmp_path: Path) -> None:
    said: list[str] = []
    FramePictures(tmp_path / "gone", [], said.append).presented(shown()[0], 1)
    assert len(said) == 1 and "frame-0001.png: cannot be written" in said[0]


def plane(colour: tuple[int, int, int, int], target: tuple[int, int], size: int = 64, format: str = "AR24") -> ScanoutPlane:
    """A square of one colour (blue, green, red, alpha)."""
    buffer = MemfdBuffer(4 * size * size, "plane")
    buffer.view[:] = bytes(colour) * (size * size)
    [pixels] = [each for each in KBL.formats.values() if each.name == format]
    bo = GemObject(1, 1, [Piece(buffer, 0, 4 * size * size)], 1)
    square = Rectangle(0, 0, size, size)
    framebuffer = Framebuffer(102, None, bo, size, size, pixels, KBL.modifiers[0], 4 * size, 0)
    return ScanoutPlane(framebuffer, True, square.scaled(), Rectangle(*target, size, size))


def test_a_cursor_is_blended_over_the_frame_and_cut_at_its_edges() -> None:
    """Its colours are multiplied by alpha already."""
    crtc, buffer = shown(size=(200, 90))
    buffer.view[OFFSET:] = bytes([100, 150, 200, 0]) * ((SIZE - OFFSET) // 4)
    for target, inside, outside in (((-60, -50), (3, 13), (4, 14)), ((190, 80), (190, 80), (189, 79))):
        found = frame(replace(crtc, cursor=plane((10, 20, 30, 51), target)))
        assert found is not None and found.size == (200, 90)
        assert found.getpixel(inside) == (30 + 160, 20 + 120, 10 + 80) and found.getpixel(outside) == (200, 150, 100)
    out_of_it = frame(replace(crtc, cursor=plane((9, 9, 9, 255), (200, 0))))
    assert out_of_it is not None and (np.asarray(out_of_it) == (200, 150, 100)).all()


def test_an_overlay_without_alpha_covers_and_the_cursor_is_above() -> None:
    crtc, _ = shown()
    found = frame(replace(crtc, overlay=plane((1, 2, 3, 0), (10, 5), format="XR24"), cursor=plane((50, 60, 70, 255), (40, 5))))
    assert found is not None and [found.getpixel(at) for at in ((9, 5), (10, 5), (39, 68), (40, 68))] == [(0, 0, 0), (3, 2, 1), (3, 2, 1),
                                                                                                         (70, 60, 50)]  # fmt: skip


def test_a_crtc_without_a_primary_plane_is_black_below_the_others() -> None:
    crtc, _ = shown()
    found = frame(replace(crtc, primary=ScanoutPlane(), overlay=plane((1, 2, 3, 0), (0, 0), format="XR24")))
    assert found is not None and found.size == (200, 90) and (found.getpixel((63, 63)), found.getpixel((64, 63))) == ((3, 2, 1), (0, 0, 0))


@pytest.mark.parametrize("count", [129, 256, 1024])
def test_frames_go_through_the_gamma_table(count: int) -> None:
    """Red is inverted, green is halved, blue as it is; whatever the number of entries."""
    crtc, buffer = shown()
    buffer.view[OFFSET:] = bytes([30, 100, 200, 0]) * ((SIZE - OFFSET) // 4)
    levels = np.rint(np.linspace(0, 65535, count)).astype(np.uint16)
    table = np.stack([65535 - levels, levels // 2, levels, levels * 0], -1).astype("<u2").tobytes()
    found = frame(replace(crtc, gamma_blob=Blob(2, table)))
    assert found is not None and found.getpixel((5, 5)) == (55, 50, 30)

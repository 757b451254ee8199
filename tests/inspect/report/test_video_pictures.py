"""Decoded pictures as RGB, and the files of --images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from softgen.codec.image import VideoImage
from softgen.codec.structures import SurfaceLayout
from softgen.inspect.cli.main import main
from softgen.inspect.report.pictures import picture, picture_bytes
from tests.codec.record import DATA
from tests.inspect.report.test_pictures import memory, surface

COLOURS = {(81, 90, 240): (254, 0, 0), (145, 54, 34): (0, 255, 1), (41, 240, 110): (0, 0, 255), (235, 128, 128): (255, 255, 255),
           (16, 128, 128): (0, 0, 0), (8, 128, 128): (0, 0, 0)}  # fmt: skip


def image(planes: dict[str, tuple[int, int, int]], **more: Any) -> VideoImage:
    """Formats, each with width, height and first row."""
    made = tuple(surface(format, width, height, at=(0, row)) for format, (width, height, row) in planes.items())
    return VideoImage(**{name: getattr(made[0], name) for name in vars(made[0]) if name != "_hash"}, planes=made, **more)


def shown(data: npt.NDArray[np.uint8], found: VideoImage) -> npt.NDArray[np.uint8]:
    return np.asarray(picture(memory(data), found))


def test_colours_are_those_of_the_standard() -> None:
    """Two by two pixels share chroma; the last column and row have theirs alone."""
    data, colours = np.zeros((16, 1024), np.uint8), list(COLOURS)
    for number, (luma, blue, red) in enumerate(colours):
        x, y = number % 3, number // 3
        data[2 * y : 2 * y + 2, 2 * x : 2 * x + 2], data[8 + y, 2 * x : 2 * x + 2] = luma, (blue, red)
    found = shown(data, image({"R8_UNORM": (5, 3, 0), "R8G8_UNORM": (3, 2, 8)}))
    assert found.shape == (3, 5, 3)
    for y, x in np.ndindex(3, 5):
        assert np.abs(found[y, x].astype(int) - COLOURS[colours[y // 2 * 3 + x // 2]]).max() <= 1, (x, y)


def test_packed_pictures_have_two_pixels_a_texel() -> None:
    texels = {SurfaceLayout.PACKED_YUYV: [81, 90, 16, 240], SurfaceLayout.PACKED_UYVY: [90, 81, 240, 16]}
    for layout, texel in texels.items():
        found = shown(np.array([[*texel, 128, 128, 128, 128]], np.uint8), image({"R8G8B8A8_UNORM": (2, 1, 0)}, packed=layout))
        assert found[0, 0].tolist() == [254, 0, 0] and found[0, 1].tolist() == [179, 0, 0] and len(set(found[0, 2])) == 1


def test_full_range_has_black_at_zero_and_grey_has_one_channel() -> None:
    data = np.zeros((16, 1024), np.uint8)
    data[0, :2], data[8, :2] = (0, 200), (128, 128)
    assert shown(data, image({"R8_UNORM": (2, 1, 0), "R8G8_UNORM": (1, 1, 8)}, full_range=True))[0].tolist() == [[0] * 3, [200] * 3]
    grey = image({"R8_UNORM": (2, 1, 0)})
    assert shown(data, grey).tolist() == [[0, 200]] and picture_bytes(grey) > 3 * 2


@pytest.mark.parametrize(("name", "files", "size"), [("h264-cavlc", 5, (96, 80)), ("jpeg-422", 1, (80, 48)), ("hevc-10", 4, None)])
def test_replay_saves_decoded_pictures(name: str, files: int, size: tuple[int, int] | None, tmp_path: Path) -> None:
    assert main(["replay", str(DATA / name), "--images", str(tmp_path / "out")]) == 0
    found = sorted((tmp_path / "out").iterdir())
    assert found and all(path.name.endswith("-picture-1.png") for path in found) and len(found) == files
    made = Image.open(found[0])
    assert made.mode == "RGB" and size in (None, made.size)
    if size is not None:  # bars of red and green; the coder's quantiser moves them little
        for x, colour in ((4, (255, 0, 0)), (24 if name == "h264-cavlc" else 16, (0, 255, 0))):
            assert np.abs(np.array(made.getpixel((x, 38))) - colour).max() < 40

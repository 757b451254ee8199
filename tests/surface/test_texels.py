"""Places of all texels of an image, and which texel an address belongs to, against one texel at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.surface.image import SurfaceImage, locate
from softgen.surface.texels import texel_at, texel_offsets
from tests.surface.test_image import IMAGES, plain

TILED = {name: plain("2d", (34, 9, 1), tiling=name, pitch=1024) for name in ("x_major", "y_major")}
LEVELS = {"2d levels": 4, "levels from the second on": 2, "one level, the third": 1}
WANTED = {name: IMAGES[name] for name in ("2d", "moved", "2d array from an element on", "1d", "1d moved", "3d", *LEVELS)} | TILED


def one(image: SurfaceImage, x: int, y: int) -> int:
    m = NumpyMachine()
    places = [m.constant(u32, number, 1) for number in (x, *((y,) if image.kind != "1d" else ()), 0)][: image.coordinates]
    return int(locate(m, image, places, m.constant(u32, 0, 1))[0].payload[0])


@pytest.mark.parametrize("name", WANTED)
def test_every_texel_of_the_level_that_is_addressed(name: str) -> None:
    image = replace(WANTED[name], base=0x10000)
    found = texel_offsets(image)
    width, height = max(image.width >> image.level, 1), max(image.height >> image.level, 1)
    assert found.shape == (height, width)
    for y, x in {(y, x) for y in (0, height // 2, height - 1) for x in (0, width // 3, width // 2, width - 1)}:
        assert found[y, x] == one(image, x, y)
        assert [texel_at(image, 0x10000 + int(found[y, x]) + byte) for byte in (0, 3)] == [(x, y)] * 2
    inside = {int(offset) + byte for offset in found.flat for byte in range(4)}
    outside = next(offset for offset in range(1 << 20) if offset not in inside)
    assert texel_at(image, 0x10000 + outside) is None and texel_at(image, 0xFFFF) is None


def test_a_wide_image_takes_several_steps() -> None:
    image = plain("2d", (700, 2, 1), pitch=4096)
    assert (texel_offsets(image) == np.add.outer([0, 4096], 4 * np.arange(700))).all()


@pytest.mark.parametrize("kind", ["buffer", "null"])
def test_buffers_have_no_columns_and_rows(kind: str) -> None:
    assert texel_at(plain(kind, (100, 1, 1), pitch=4), 0) is None

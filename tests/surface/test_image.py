"""Images: where the slices of an array are, by generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import u32
from softgen.surface.image import Image, image, locate

RGBA8 = 0xC7  # R8G8B8A8_UNORM
KINDS = {"1d": 0, "2d": 1, "3d": 2, "cube": 3}


def made(gen: float, kind: str = "2d", **values: Any) -> Image:
    """A surface of 16 x 10 texels and three slices, linear, rows of 64 bytes."""
    page = layout("RENDER_SURFACE_STATE", gen)
    fields = {"surface_type": KINDS[kind], "surface_format": RGBA8, "width": 15, "height": 9, "depth": 2, "surface_pitch": 63} | values
    return image(page, page.unpack(page.pack(**fields)), "surface 0")  # type: ignore[arg-type]


# h0 + h1 + 12j, with heights aligned to j (public Mesa isl.c: "the QPitch equation changed slightly in Ivybridge").
@pytest.mark.parametrize("gen", [7, 7.5])
@pytest.mark.parametrize("alignment, rows", [(0, 10 + 6 + 24), (1, 12 + 8 + 48)])
def test_slices_of_gen7_with_full_spacing(gen: float, alignment: int, rows: int) -> None:
    for kind in ("2d", "cube"):
        assert made(gen, kind, surface_array=1, surface_vertical_alignment=alignment, surface_array_spacing=0).rows == rows


@pytest.mark.parametrize("gen", [7, 7.5])
@pytest.mark.parametrize("alignment, rows", [(0, 10), (1, 12)])
def test_slices_of_gen7_with_level_0_only(gen: float, alignment: int, rows: int) -> None:
    assert made(gen, surface_array=1, surface_vertical_alignment=alignment, surface_array_spacing=1).rows == rows


@pytest.mark.parametrize("gen", [7, 7.5])
def test_slices_of_a_3d_surface_are_one_below_the_other(gen: float) -> None:
    assert made(gen, "3d", surface_vertical_alignment=1, surface_array_spacing=0).rows == 12


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_later_generations_say_it_in_a_field(gen: float) -> None:
    assert made(gen, surface_array=1, surface_vertical_alignment=1, surface_qpitch=5).rows == 20


def test_a_texel_of_the_last_slice() -> None:
    one, m = made(7, surface_array=1, surface_vertical_alignment=0, surface_array_spacing=0), NumpyMachine()
    at = [m.constant(u32, number, 1) for number in (3, 1, 2)]
    where, inside = locate(m, one, at, None)
    assert np.asarray(where.payload).tolist() == [(2 * 40 + 1) * 64 + 3 * 4] and np.asarray(inside.payload).all()

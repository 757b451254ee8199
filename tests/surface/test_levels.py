"""Where levels are: tables worked out by hand from the layouts of isl (public: Mesa isl.c), and how lanes look entries up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.surface.image import SurfaceImage, image_from_state
from softgen.surface.levels import LEVELS, LevelTable, MipTail, align, level_table, lookup
from tests.surface.test_image import plain

BC1 = next(item for item in surface_formats().values() if item.name == "BC1_UNORM")


def filled(first: list[int], step: int = 0) -> tuple[int, ...]:
    """All entries: after the first ones each is `step` more than the one before."""
    return (*first, *(first[-1] + step * (n + 1) for n in range(LEVELS - len(first))))


# Columns and rows of the levels, and the width and height that each takes, aligned.
TABLES: dict[str, tuple[SurfaceImage, LevelTable]] = {
    "below": (plain("2d", (13, 11, 1)), LevelTable(filled([0, 0, 8]), filled([0, 12, 12, 14], 2), filled([16, 8, 4]), filled([12, 6, 2]))),
    "without alignment": (plain("2d", (5, 3, 1), align=(1, 1)),
                          LevelTable(filled([0, 0, 2]), filled([0, 3, 3, 4], 1), filled([5, 2, 1]), filled([3, 1]))),
    "slices of an array do not count": (plain("2d", (5, 3, 9), align=(1, 1), is_array=True),
                                        LevelTable(filled([0, 0, 2]), filled([0, 3, 3, 4], 1), filled([5, 2, 1]), filled([3, 1]))),
    "in a row": (plain("1d", (140, 1, 1), layout="row"),
                 LevelTable(filled([0, 192, 320, 384], 64), (0,) * LEVELS, filled([192, 128, 64]), (2,) * LEVELS)),
    # five planes, then two beside each other, then one
    "3d packed": (plain("3d", (9, 6, 5), layout="packed"),
                  LevelTable((0,) * LEVELS, filled([0, 30, 34, 36], 2), filled([12, 4]), filled([6, 4, 2]))),
    "one plane packed": (plain("3d", (9, 6, 1), layout="packed"),
                         LevelTable((0,) * LEVELS, filled([0, 6, 10, 12], 2), filled([12, 4]), filled([6, 4, 2]))),
    # six faces of every level: six rows of one, three of two, two of four, one
    "cube packed": (plain("cube", (8, 8, 1), layout="packed"),
                    LevelTable((0,) * LEVELS, filled([0, 48, 60, 64, 66], 2), filled([8, 4]), filled([8, 4, 2]))),
    # 20 x 18 texels in blocks of 4 x 4: 5 x 5, 3 x 3, 2 x 1, 1 x 1
    "blocks": (plain("2d", (20, 18, 1), format=BC1, align=(1, 1)),
               LevelTable(filled([0, 0, 3]), filled([0, 5, 5, 6], 1), filled([5, 3, 2, 1]), filled([5, 3, 1]))),
    # levels from 2 on share one tile right of level 1; those without a slot of their own have the last
    "mip tail": (plain("2d", (16, 16, 1), tail=MipTail(2, ((1, 0), (0, 3), (2, 5)))),
                 LevelTable(filled([0, 0, 9, 8, 10]), filled([0, 16, 16, 19, 21]), filled([16, 8, 4]), filled([16, 8, 4, 2]))),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    image, table = TABLES[name]
    assert level_table(image) == table
    assert replace(image).level_box(2) == (table.left[2], table.top[2], image.width >> 2, max(image.height >> 2, 1))


@pytest.mark.parametrize(("number", "step", "wanted"), [(0, 4, 0), (1, 4, 4), (4, 4, 4), (5, 4, 8), (7, 1, 7), (65, 64, 128)])
def test_numbers_are_aligned_upwards(number: int, step: int, wanted: int) -> None:
    assert align(number, step) == wanted


@pytest.mark.parametrize("lanes", [1, 4, 15, 16, 32])
@pytest.mark.parametrize("at_run_time", [False, True])
def test_each_lane_has_the_entry_of_its_level(lanes: int, at_run_time: bool) -> None:
    """Levels count modulo the length of the table; compiled programs load the table."""
    m, entries, index = NumpyMachine(), tuple(100 + 3 * n for n in range(LEVELS)), np.arange(lanes, dtype=np.uint32) * 7 + 3
    table = m.constant(u32, entries) if at_run_time else entries
    found = lookup(m, table, m.value(u32, index))
    assert found.lanes == lanes and found.payload.tolist() == [entries[number % LEVELS] for number in index]


@pytest.mark.parametrize("gen", [4, 4.5, 7, 7.5, 8, 9, 11])
def test_levels_that_a_surface_state_names(gen: float) -> None:
    """Before Gen8 samplers alone have a base level. Fractions are counted in their last bit."""
    page = layout("RENDER_SURFACE_STATE", gen)

    def named(**fields: float) -> SurfaceImage:
        return image_from_state(page, page.raw(page.pack(surface_type=1, surface_format=BC1.value, **fields)), "surface 0")

    image = named(mip_count_lod=4, surface_min_lod=2, minimum_array_element=1)
    assert (image.levels, image.level, image.first, image.base_level, image.palette, image.resource_lod) == (5, 2, 1, 0, 0, 0)
    assert image.samples == 1
    if gen >= 8:
        assert named(base_mip_level=1.5).base_level == 3
    if gen >= 7:
        assert named(resource_min_lod=1.5).resource_lod == 0x180
        assert named(multisample_position_palette_index=5).palette == 5

"""Rectangles that blit.c is called for: empty ones, and which overlap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.blitter.blit import BlitSurface, blit, overlaps_backwards, rows_below
from softgen.blitter.raster import COPY, raster_masks
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (0, 0), (-1, 5), (5, -1), (-4, -4)])
def test_an_empty_rectangle_asks_for_nothing(size: tuple[int, int]) -> None:
    """Neither memory nor the time that is left: there is no streamer here to ask."""
    nobody: Any = None
    blit(nobody, raster_masks(COPY), size, BlitSurface(0, 64, "linear", 0, 0), BlitSurface(0x1000, 64, "linear", 0, 0))


@pytest.mark.parametrize(("rows", "polls"), [(1023, 0), (1024, 0), (1025, 1), (2049, 2)])
def test_the_time_limit_is_polled_after_16_mib(rows: int, polls: int) -> None:
    """Rows of 16 KiB, which are all the same one; the last of them may end late."""
    space, polled = AddressSpace("s", 48), list[int]()
    space.map(0x10000, MemfdBuffer(1 << 14))
    cs: Any = SimpleNamespace(space=space, timed_out=lambda: bool(polled.append(1)), memory_changed=lambda: None)
    blit(cs, raster_masks(COPY), (1 << 14, rows), BlitSurface(0x10000, 0, "linear", 0, 0), BlitSurface(0x10000, 0, "linear", 0, 0))
    assert len(polled) == polls


def linear(base: int, x: int = 0, y: int = 0, pitch: int = 64) -> BlitSurface:
    return BlitSurface(base, pitch, "linear", x, y)


@pytest.mark.parametrize(
    ("to", "source", "backwards"),
    [
        (linear(0x1000), linear(0x1000), False),  # onto itself: every row is read before it is written
        (linear(0x1000, 1), linear(0x1000), True),
        (linear(0x1000), linear(0x1000, 1), False),
        (linear(0x1000, 0, 1), linear(0x1000), True),
        (linear(0x1000), linear(0x1000, 0, 1), False),
        (linear(0x1040), linear(0x1000), True),
        (linear(0x1040), linear(0x1000, 0, 2), False),
        (linear(0x1000 + 4 * 64 + 15), linear(0x1000), True),  # rows of 16 bytes, 4 of them
        (linear(0x1000 + 5 * 64), linear(0x1000), False),
        (linear(0x1000, 1), linear(0x1000, 0, 0, 128), False),  # other pitches: no order is right
        (linear(0x1000, 0, 1, -64), linear(0x1000, 0, 0, -64), True),  # upwards in memory
        (linear(0x1000, 0, 0, -64), linear(0x1000, 0, 1, -64), False),
        (linear(0x1000, 1, 0, -64), linear(0x1000, 0, 0, -64), False),
        (BlitSurface(0x1000, 512, "x_major", 0, 1), linear(0x1000, 0, 0, 512), False),  # other tilings
        (BlitSurface(0x1000, 512, "x_major", 0, 1), BlitSurface(0x1000, 512, "x_major", 0, 0), True),
        (BlitSurface(0x1000, 512, "x_major", 0, 3), BlitSurface(0x1000, 512, "x_major", 0, 0), True),
        (BlitSurface(0x1000, 512, "x_major", 0, 4), BlitSurface(0x1000, 512, "x_major", 0, 0), False),  # four rows below
        (BlitSurface(0x1000, 512, "x_major", 8, 0), BlitSurface(0x1000, 512, "x_major", 0, 0), False),
        (BlitSurface(0x1000, 512, "x_major", 0, 0), BlitSurface(0x1000, 512, "x_major", 0, 1), False),
    ],
)
def test_rows_are_copied_from_the_last_on_where_the_destination_follows(to: BlitSurface, source: BlitSurface, backwards: bool) -> None:
    """Four rows of 16 bytes."""
    assert overlaps_backwards(to, source, (16, 4)) is backwards


@pytest.mark.parametrize(
    ("distance", "x", "y", "rows"),
    [
        (0, 0, 3, 3),
        (0, 600, 3, 3),
        (0x1000, 0, 0, 0),  # the tile beside it
        (0x2000, 0, 0, 8),  # a row of two tiles, of eight rows each
        (0x2000, 0, 5, 13),
        (0x1000, 512, 0, 8),  # the tile beside it, in its second half: the next row of tiles
        (0x1000, 511, 0, 0),
        (-0x2000, 0, 0, -8),
        (-0x1000, 0, 0, -8),  # the last tile of the row above
        (-0x1000, 512, 0, 0),
        (0x800, 0, 9, 0),  # not whole tiles
    ],
)
def test_rows_between_surfaces_that_begin_whole_tiles_apart(distance: int, x: int, y: int, rows: int) -> None:
    """X-major, of two tiles to a row."""
    base = 0x10000
    assert rows_below(BlitSurface(base + distance, 1024, "x_major", x, y), BlitSurface(base, 1024, "x_major", 0, 0)) == rows


def test_a_pitch_of_less_than_a_tile_has_no_rows_of_tiles() -> None:
    assert rows_below(BlitSurface(0x11000, 256, "x_major", 0, 2), BlitSurface(0x10000, 256, "x_major", 0, 0)) == 0

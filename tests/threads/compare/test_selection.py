"""Tiles of a draw that are chosen for a comparison."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.threads.compare.selection import TileSelection

TOUCHED = np.array([3, 5, 8, 13, 21, 34])


@pytest.mark.parametrize("selection, tiles", [
    (TileSelection(6), [3, 5, 8, 13, 21, 34]), (TileSelection(7), [3, 5, 8, 13, 21, 34]), (TileSelection(1, tile=13), [13]),
    (TileSelection(9, tile=4), []), (TileSelection(9, tile=0), []),
])  # fmt: skip
def test_all_tiles_or_one(selection: TileSelection, tiles: list[int]) -> None:
    assert selection.tiles(TOUCHED).tolist() == tiles


@pytest.mark.parametrize("count", [1, 2, 5])
def test_some_tiles_are_chosen_by_the_seed(count: int) -> None:
    chosen = {seed: frozenset(TileSelection(count, seed).tiles(TOUCHED).tolist()) for seed in range(20)}
    assert all(len(tiles) == count and tiles <= set(TOUCHED.tolist()) for tiles in chosen.values()) and len(set(chosen.values())) > 1
    assert chosen == {seed: frozenset(TileSelection(count, seed).tiles(TOUCHED).tolist()) for seed in range(20)}


def test_nothing_was_seen_before_tiles_are_shaded() -> None:
    made = TileSelection()
    assert (made.count, made.tile, made.objects, made.objects_seen) == (1, None, None, 0)

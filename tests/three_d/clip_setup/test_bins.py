"""BIN: record numbers by tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import UsageError
from softgen.three_d.clip_setup import bins
from softgen.three_d.clip_setup.geometry import GeometryMemory
from softgen.three_d.structures import TILE, SetupRecord
from tests.three_d.geometry_state import chunk_of, covered, geometry_state, triangle, vertex
from tests.three_d.walk import pieces_of

EXTENT = (300, 200)
VIEWPORT = {"viewport_matrix_element_m00": 150.0, "viewport_matrix_element_m30": 150.0, "viewport_matrix_element_m11": 100.0,
            "viewport_matrix_element_m31": 100.0, "x_max_viewport": 299.0, "y_max_viewport": 199.0}  # fmt: skip
corner = st.tuples(st.floats(-1.5, 1.5, width=32), st.floats(-1.5, 1.5, width=32))
triangles = st.lists(st.tuples(corner, corner, corner), min_size=1, max_size=6)


def chunk(corners: Any) -> Any:
    vertices = [vertex(*c) for three in corners for c in three]
    return chunk_of(vertices, [triangle(3 * i, 3 * i + 1, 3 * i + 2, primitive=i) for i in range(len(corners))])


def tiles_of(record: SetupRecord) -> set[int]:
    across = -(-EXTENT[0] // TILE)
    return {y // TILE * across + x // TILE for x, y in covered(record)}


@given(corners=triangles)
def test_a_tile_lists_the_records_that_touch_it(corners: Any) -> None:
    """All that cover a pixel of it, in order; of others only those whose box has the tile and whose edges each reach it."""
    found = 0
    for piece in pieces_of(geometry_state(9, VIEWPORT), chunk(corners), EXTENT).pieces:
        found += len(piece.records)
        for number, record in enumerate(piece.records):
            assert tiles_of(record) <= {tile for tile, numbers in piece.bins.items() if number in numbers}
        for numbers in piece.bins.values():
            assert numbers == sorted(set(numbers))
    assert found <= 6 * 19


def test_a_thin_diagonal_is_not_in_all_tiles_of_its_box() -> None:
    (piece,) = pieces_of(geometry_state(9, VIEWPORT), chunk([((-1, -1), (-0.99, -1), (1, 1))]), EXTENT).pieces
    assert piece.tiles == (5, 4)
    assert tiles_of(piece.records[0]) <= set(piece.bins)
    assert len(piece.bins) < 12  # of 20: those that the edges reach, by a pixel at most beyond them


@pytest.mark.behaviour("BDW-WM-01", shows="action")
def test_a_tile_lists_the_records_that_touch_a_sample_of_it_alone() -> None:
    """The hypotenuse x + y = 128.7 passes between the centre of pixel (64, 64), the first of its tile, and a sample at 64.25."""
    corners = [(x / 150 - 1, y / 100 - 1) for x, y in ((10, 10), (118.7, 10), (10, 118.7))]
    (piece,) = pieces_of(geometry_state(9, VIEWPORT), chunk([corners]), EXTENT).pieces
    record = piece.records[0]
    place = [record.edge[n] + 64 * (record.edge_dx[n] + record.edge_dy[n]) for n in range(3)]
    assert min(place) < 0 <= min(p - (record.edge_dx[n] + record.edge_dy[n]) // 4 for n, p in enumerate(place))
    assert set(piece.bins) == {0, 1, 5, 6}


@given(corners=triangles, room=st.integers(1, 30))
def test_bins_that_are_full_are_continued(corners: Any, room: int) -> None:
    """With room for few pairs of tile and record the same records come in several pieces."""
    state, seen = geometry_state(9, VIEWPORT), []
    for memory in (GeometryMemory(), GeometryMemory(numbers=room)):
        total: dict[int, list[int]] = {}
        pieces = 0
        for piece in pieces_of(state, chunk(corners), EXTENT, memory).pieces:
            assert piece.new == (pieces == 0)
            pieces += 1
            for tile, numbers in piece.bins.items():
                total.setdefault(tile, []).extend(numbers)
        seen.append((total, pieces))
    assert seen[0][0] == seen[1][0]


@pytest.mark.parametrize("capacity", [19, 24, 40])
def test_records_that_are_full_are_continued(capacity: int) -> None:
    """An object is set up when there is room for all of its parts."""
    corners = [((-1, -1), (1, -1), (0, 1))] * 50
    primitives = []
    for piece in pieces_of(geometry_state(9, VIEWPORT), chunk(corners), EXTENT, GeometryMemory(records=capacity)).pieces:
        primitives += [record.primitive for record in piece.records]
        assert len(piece.records) <= capacity
    assert primitives == list(range(50))


def test_memory_holds_at_least_the_parts_of_one_object() -> None:
    with pytest.raises(UsageError, match="19 records of one object, not 18"):
        GeometryMemory(records=18)


def test_memory_is_reused() -> None:
    memory, state = GeometryMemory(), geometry_state(9, VIEWPORT)
    addresses = set()
    for extent in (EXTENT, (64, 64), EXTENT):
        addresses |= {piece.addresses for piece in pieces_of(state, chunk([((-1, -1), (1, -1), (0, 1))]), extent, memory).pieces}
    assert len(addresses) == 1



class Fenced:
    """Memory from cache lines on, with bytes around it that nothing may write."""

    FENCE, UNTOUCHED = 4096, 0xA5

    def __init__(self) -> None:
        self.made: list[tuple[Any, int, int]] = []

    def __call__(self, size: int) -> Any:
        whole = np.full(size + 2 * self.FENCE, self.UNTOUCHED, np.uint8)
        start = self.FENCE // 2 + -(whole.ctypes.data + self.FENCE // 2) % 64
        whole[start : start + size] = 0
        self.made.append((whole, start, start + size))
        return whole[start : start + size]

    def intact(self) -> bool:
        return all((whole[:start] == self.UNTOUCHED).all() and (whole[end:] == self.UNTOUCHED).all() for whole, start, end in self.made)


def test_stages_stay_inside_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcodes of all vertices, and the first number of every tile and of the one after the last."""
    monkeypatch.setattr(bins, "aligned", fenced := Fenced())
    corners = chunk([((-1, -1), (1, -1), (0, 1)), ((-1, -1), (4, 0), (0, 1))] * 20)
    found = sum(len(piece.bins) for piece in pieces_of(geometry_state(9, VIEWPORT), corners, EXTENT, GeometryMemory()).pieces)
    assert found and len(fenced.made) >= 4 and fenced.intact()

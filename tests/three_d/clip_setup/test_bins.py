"""BIN: record numbers by tile."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import UsageError
from softgen.three_d.clip_setup import bins
from softgen.three_d.clip_setup.bins import BinMemory
from softgen.three_d.clip_setup.geometry import Geometry, GeometryMemory
from softgen.three_d.structures import TILE, RecordArray, SetupRecord
from tests.three_d.geometry_state import binned, chunk_of, copied, covered, geometry_state, triangle, vertex

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
    geometry, found = Geometry(geometry_state(9, VIEWPORT), GeometryMemory(), EXTENT), 0
    for piece in geometry.pieces(chunk(corners)):
        records, bins = copied(piece.records), binned(piece.bins)
        found += len(records)
        for number, record in enumerate(records):
            assert tiles_of(record) <= {tile for tile, numbers in bins.items() if number in numbers}
        for numbers in bins.values():
            assert numbers == sorted(set(numbers))
    assert found <= 6 * 19


def test_a_thin_diagonal_is_not_in_all_tiles_of_its_box() -> None:
    geometry = Geometry(geometry_state(9, VIEWPORT), GeometryMemory(), EXTENT)
    (piece,) = geometry.pieces(chunk([((-1, -1), (-0.99, -1), (1, 1))]))
    assert piece.bins.tiles_x * piece.bins.tiles_y == 20
    assert tiles_of(copied(piece.records)[0]) <= set(binned(piece.bins))
    assert len(binned(piece.bins)) < 9


@given(corners=triangles, room=st.integers(1, 30))
def test_bins_that_are_full_are_continued(corners: Any, room: int) -> None:
    """With room for few pairs of tile and record the same records come in several pieces."""
    state, seen = geometry_state(9, VIEWPORT), []
    for memory in (GeometryMemory(), GeometryMemory(numbers=room)):
        total: dict[int, list[int]] = {}
        pieces = 0
        for piece in Geometry(state, memory, EXTENT).pieces(chunk(corners)):
            assert piece.new == (pieces == 0)
            pieces += 1
            for tile, numbers in binned(piece.bins).items():
                total.setdefault(tile, []).extend(numbers)
        seen.append((total, pieces))
    assert seen[0][0] == seen[1][0]


@pytest.mark.parametrize("capacity", [19, 24, 40])
def test_records_that_are_full_are_continued(capacity: int) -> None:
    """An object is set up when there is room for all of its parts."""
    corners = [((-1, -1), (1, -1), (0, 1))] * 50
    primitives = []
    memory = GeometryMemory(records=capacity)
    for piece in Geometry(geometry_state(9, VIEWPORT), memory, EXTENT).pieces(chunk(corners)):
        primitives += [record.primitive for record in copied(piece.records)]
        assert piece.records.count <= capacity
    assert primitives == list(range(50))


def test_memory_holds_at_least_the_parts_of_one_object() -> None:
    with pytest.raises(UsageError, match="19 records of one object, not 18"):
        GeometryMemory(records=18)


def test_memory_is_reused() -> None:
    memory, state = GeometryMemory(), geometry_state(9, VIEWPORT)
    addresses = set()
    for extent in (EXTENT, (64, 64), EXTENT):
        for piece in Geometry(state, memory, extent).pieces(chunk([((-1, -1), (1, -1), (0, 1))])):
            addresses.add((piece.records.records, piece.records.attributes, piece.bins.first, piece.bins.numbers))
    assert len(addresses) == 1


def test_no_records_leave_bins_empty() -> None:
    memory = BinMemory()
    memory.resize((128, 64))
    assert memory.fill(RecordArray()) == 0
    assert binned(memory.bins) == {}
    assert ctypes.sizeof(SetupRecord) % 8 == 0


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
    geometry, found = Geometry(geometry_state(9, VIEWPORT), GeometryMemory(), EXTENT), 0
    for piece in geometry.pieces(chunk([((-1, -1), (1, -1), (0, 1)), ((-1, -1), (4, 0), (0, 1))] * 20)):
        found += len(binned(piece.bins))
    assert found and len(fenced.made) >= 4 and fenced.intact()

"""Tilings: known places, every byte of a tile once, and both machines agree."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import Unsupported
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u64
from softgen.lanes.value import Value
from softgen.surface import tiling
from softgen.surface.tile_table import tile_offsets
from tests.conftest import every
from tests.lanes.both import agree

TILINGS = tuple(tiling.orders())
PITCH = 1024


def place(name: str, x: int, y: int, pitch: int = PITCH) -> int:
    m = NumpyMachine()
    return int(tiling.offset(m, name, pitch, m.constant(u64, x, 1), m.constant(u64, y, 1)).payload[0])


@pytest.mark.parametrize(
    ("name", "x", "y", "want"),
    [
        ("linear", 5, 3, 3 * PITCH + 5),
        ("x_major", 511, 0, 511), ("x_major", 0, 1, 512), ("x_major", 512, 0, 4096), ("x_major", 0, 8, 2 * 4096),
        ("y_major", 15, 0, 15), ("y_major", 16, 0, 512), ("y_major", 0, 1, 16), ("y_major", 128, 0, 4096), ("y_major", 0, 32, 8 * 4096),
        ("w_major", 1, 0, 1), ("w_major", 0, 1, 2), ("w_major", 2, 0, 4), ("w_major", 4, 0, 16), ("w_major", 0, 4, 32),
        ("w_major", 0, 8, 64), ("w_major", 8, 0, 512), ("w_major", 64, 0, 4096), ("w_major", 0, 64, 8 * 4096),
        ("tileyf_32", 16, 0, 128), ("tileyf_32", 0, 7, 7 * 16), ("tileyf_32", 0, 8, 256), ("tileyf_32", 32, 0, 512),
        ("tileyf_32", 128, 0, 4096), ("tileyf_8", 16, 0, 512), ("tileyf_128", 16, 0, 64), ("tileys_32", 128, 0, 8192),
        ("tileys_32", 0, 32, 4096), ("tileys_32", 512, 0, 65536),
    ],
)  # fmt: skip
def test_known_places(name: str, x: int, y: int, want: int) -> None:
    assert place(name, x, y) == want


@pytest.mark.parametrize("name", every(3, TILINGS[1:]))
def test_each_byte_of_a_tile_has_a_place_of_its_own(name: str) -> None:
    order = tiling.orders()[name]
    wide, high, deep = (order.count(letter) for letter in "XYZ")
    m, some, found = NumpyMachine(), min(64, 1 << wide), set()
    slices = [int(tiling.slice_part(name, m.constant(u64, z, 1)).payload[0]) for z in range(1 << deep)] if deep else [0]
    assert tiling.slices(name) == deep
    for y in range(1 << high):
        for x in range(0, 1 << wide, some):
            at = m.value(u64, np.arange(x, x + some, dtype=np.uint64))
            offsets = tiling.offset(m, name, PITCH, at, m.constant(u64, y, some)).payload.tolist()
            found.update(offset + more for offset in offsets for more in slices)
    assert found == set(range(1 << len(order)))


@pytest.mark.parametrize("name", TILINGS)
def test_both_machines_agree(name: str) -> None:
    def program(m: Machine, x: Value, y: Value) -> Value:
        return tiling.offset(m, name, PITCH, x, y)

    rng = np.random.default_rng(1)
    signature = Signature((Lanes(u64, 16), Lanes(u64, 16)), (Lanes(u64, 16),))
    agree(program, signature, [rng.integers(0, PITCH, 16, np.uint64), rng.integers(0, 5000, 16, np.uint64)])


@pytest.mark.parametrize("name", TILINGS)
def test_the_table_of_a_tile_has_the_same_places(name: str) -> None:
    """C code adds an entry for the byte in a row to one for the row: as many of each as a tile has."""
    order, (columns, rows) = tiling.orders()[name], tile_offsets(name)
    assert (len(columns), len(rows)) == (1 << order.count("X"), 1 << order.count("Y")) and columns.dtype == rows.dtype == np.uint32
    m, x, y = NumpyMachine(), np.arange(64, dtype=np.uint64) * 5 % len(columns), np.arange(64, dtype=np.uint64) * 7 % len(rows)
    found = tiling.offset(m, name, PITCH, m.value(u64, x), m.value(u64, y)).payload
    assert (columns[x] + rows[y]).tolist() == found.tolist()


def test_an_unknown_tiling_is_refused() -> None:
    for asked in (lambda: place("yf", 0, 0), lambda: tile_offsets("yf")):
        with pytest.raises(Unsupported, match="tiling yf"):
            asked()

"""Tiling as lane programs: the address of a byte of a row. `spec/surface/tilings.toml` has the bit order within a tile.

The pitch is that of the surface state, in bytes; for W tiling (stencil) it counts two rows as one.
"""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import groupby

from softgen.bits.generation import SPEC
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.value import Value

NAMES = {0: "linear", 1: "w_major", 2: "x_major", 3: "y_major"}  # by the tile mode of surface states


@cache
def orders() -> dict[str, str]:
    """Tiling name -> the coordinate bits of an offset within a tile."""
    found: dict[str, str] = tomllib.loads((SPEC / "surface" / "tilings.toml").read_text("utf-8"))
    return found


def offset(m: Machine, tiling: str, pitch: Value | int, x: Value, y: Value) -> Value:
    """The offset of byte `x` of row `y` from the surface's base; all of one type."""
    if tiling != "linear" and tiling not in orders():
        raise Unsupported(f"surfaces with tiling {tiling}: not yet simulated")
    return row(m, tiling, pitch, y) + column(m, tiling, x)


def column(m: Machine, tiling: str, x: Value) -> Value:
    """The part of an offset that depends on the byte in the row."""
    if tiling == "linear":
        return x
    order = orders()[tiling]
    return ((x >> order.count("X")) << len(order)) + _inside(order, "X", x)


def row(m: Machine, tiling: str, pitch: Value | int, y: Value) -> Value:
    """The part of an offset that depends on the row."""
    if tiling == "linear":
        return y * pitch
    order = orders()[tiling]
    across = pitch >> order.count("X") + (tiling == "w_major")  # tiles in a row
    return ((y >> order.count("Y")) * across << len(order)) + _inside(order, "Y", y)


def slices(tiling: str) -> int:
    """The binary logarithm of a tile's slices."""
    return orders()[tiling].count("Z") if tiling != "linear" else 0


def slice_part(tiling: str, z: Value) -> Value:
    """The part of an offset that a slice's place in its tile decides, where tiles have several."""
    return _inside(orders()[tiling], "Z", z)


def _inside(order: str, axis: str, coordinate: Value) -> Value:
    """A coordinate's part of the offset within a tile: each run of its bits moved to its position."""
    taken, found, at = 0, None, 0
    for which, run in groupby(reversed(order)):
        count = len(list(run))
        if which == axis:
            bits = (coordinate >> taken & (1 << count) - 1) << at
            found = bits if found is None else found | bits
            taken += count
        at += count
    assert found is not None
    return found

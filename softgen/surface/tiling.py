"""Tiling as lane programs: the address of a byte of a row. `spec/surface/tilings.toml` has the bit order within a tile.

The pitch is that of the surface state, in bytes; for W tiling (stencil) it counts two rows as one.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from itertools import groupby

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.value import Value


@cache
def orders() -> dict[str, str]:
    """Tiling name -> the coordinate bits of an offset within a tile."""
    found: dict[str, str] = tomllib.loads((resources.files("softgen") / "spec" / "surface" / "tilings.toml").read_text("utf-8"))
    return found


def offset(m: Machine, tiling: str, pitch: Value | int, x: Value, y: Value) -> Value:
    """The offset of byte `x` of row `y` from the surface's base; all u64."""
    if tiling == "linear":
        return y * pitch + x
    order = orders().get(tiling)
    if order is None:
        raise Unsupported(f"surfaces with tiling {tiling}: not yet simulated")
    wide, high = order.count("X"), order.count("Y")
    across = pitch >> wide + (tiling == "w_major")  # tiles in a row
    tile = (y >> high) * across + (x >> wide)
    return (tile << len(order)) + _inside(order, {"X": x, "Y": y})


def _inside(order: str, coordinates: dict[str, Value]) -> Value:
    """The offset within a tile: each run of one coordinate's bits moved to its position."""
    taken, found, at = {"X": 0, "Y": 0}, None, 0
    for which, run in groupby(reversed(order)):
        count = len(list(run))
        bits = (coordinates[which] >> taken[which] & (1 << count) - 1) << at
        found = bits if found is None else found | bits
        taken[which] += count
        at += count
    assert found is not None
    return found

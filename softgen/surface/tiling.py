"""Tilings as lane programs: where in memory a byte of a row stands. `spec/surface/tilings.toml` has the order of the bits in a tile.

The pitch is that of the surface state, in bytes; for W, which is for stencil, it counts two rows in one.
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
    """The bits of an offset in a tile, by the name of the tiling."""
    found: dict[str, str] = tomllib.loads((resources.files("softgen.spec") / "surface" / "tilings.toml").read_text("utf-8"))
    return found


def offset(m: Machine, tiling: str, pitch: Value | int, x: Value, y: Value) -> Value:
    """`x` is a byte of row `y`, all u64; so is the offset from the surface's base."""
    if tiling == "linear":
        return y * pitch + x
    order = orders().get(tiling)
    if order is None:
        raise Unsupported(f"surfaces with tiling {tiling}: not yet simulated")
    wide, high = order.count("X"), order.count("Y")
    across = pitch >> wide + (tiling == "w_major")  # tiles side by side
    tile = (y >> high) * across + (x >> wide)
    return (tile << len(order)) + _inside(order, {"X": x, "Y": y})


def _inside(order: str, coordinates: dict[str, Value]) -> Value:
    """Each run of bits of one coordinate is moved to its place."""
    taken, found, at = {"X": 0, "Y": 0}, None, 0
    for which, run in groupby(reversed(order)):
        count = len(list(run))
        bits = (coordinates[which] >> taken[which] & (1 << count) - 1) << at
        found = bits if found is None else found | bits
        taken[which] += count
        at += count
    assert found is not None
    return found

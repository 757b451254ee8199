"""Tilings as lane programs: where in memory a byte of a row stands (public: Intel PRM, memory views; Mesa isl).

Tiles are 4 KiB. X: 512 bytes by 8 rows, row by row. Y: 128 bytes by 32 rows, in columns of 16 bytes. W: 64 bytes by 64 rows, for
stencil: the bits of both coordinates take turns. The pitch is that of the surface state, in bytes; for W it counts two rows in one.
"""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.value import Value

PAGE = 4096
SHAPES = {"x_major": (9, 3), "y_major": (7, 5), "w_major": (6, 6)}  # bits of the byte in a row, and of the row


def offset(m: Machine, tiling: str, pitch: Value | int, x: Value, y: Value) -> Value:
    """`x` is a byte of row `y`, all u64; so is the offset from the surface's base."""
    if tiling == "linear":
        return y * pitch + x
    if tiling not in SHAPES:
        raise Unsupported(f"surfaces with tiling {tiling}: not yet simulated")
    wide, high = SHAPES[tiling]
    across = pitch >> wide + (tiling == "w_major")  # tiles side by side
    tile = (y >> high) * across + (x >> wide)
    return tile * PAGE + _inside(m, tiling, x & (1 << wide) - 1, y & (1 << high) - 1)


def _inside(m: Machine, tiling: str, x: Value, y: Value) -> Value:
    if tiling == "x_major":
        return y << 9 | x
    if tiling == "y_major":
        return x >> 4 << 9 | y << 4 | x & 15
    found = x >> 3 << 9 | y >> 3 << 6
    for bit in range(3):
        found = found | (x >> bit & 1) << 2 * bit | (y >> bit & 1) << 2 * bit + 1
    return found

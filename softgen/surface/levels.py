"""Mip level placement: where the levels and slices of a surface are, as tables that lane programs look up.

    below    levels below each other, from the third on to the right of the second; slices `rows` apart
    packed   2^L slices of level L beside each other, rows of them below each other (3D before Gen9, cube maps of Gen4.5)
    row      levels beside each other (linear 1D surfaces since Gen9); slices `across` apart

Sources: public Mesa isl.c (isl_calc_phys_slice0_extent_sa_gfx4_2d, _gfx4_3d, _gfx9_1d); Intel PRM, memory data formats.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

from softgen.bits.generation import SPEC
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value

LEVELS = 16  # entries of a table: one for each level that a surface state can name
ROW_ALIGNMENT = 64  # texels, of levels in a row
SMALL_SLOT = 4  # that tails of 4 KiB begin with
Entries = tuple[int, ...] | Value


class LevelSizes(Protocol):
    """Inputs of the placement of levels: a SurfaceImage whose sizes are numbers."""

    @property
    def kind(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def align(self) -> tuple[int, int]: ...
    @property
    def block(self) -> tuple[int, int]: ...
    @property
    def tail(self) -> MipTail | None: ...


class MipTail(NamedTuple):
    """The levels that share the tile of the first of them: which that is, and columns and rows of their texels in the tile."""

    first: int
    slots: tuple[tuple[int, int], ...]


@cache
def mip_tail(first: int, bits: int, large: bool, ascending: bool) -> MipTail:
    """The mip tail of a tiled resource with so many bits a texel; `large`: in tiles of 64 KiB."""
    held = tomllib.loads((SPEC / "surface" / "mip_tails.toml").read_text("utf-8"))
    slots, last = ([_pair(slot) for slot in held[f"{part}_{bits}"].split()] for part in ("slots", "last"))
    every = [*slots, *(last if ascending else reversed(last))]
    return MipTail(first, tuple(every if large else every[SMALL_SLOT:]))


def _pair(text: str) -> tuple[int, int]:
    column, row = text.split(",")
    return int(column), int(row)


class LevelTable(NamedTuple):
    """One entry for each level of the whole surface, in texels and rows, or in blocks and rows of them where texels are compressed; of
    compiled programs, lanes that are loaded at run time."""

    left: Any
    top: Any
    across: Any  # packed: the width and height of a slice
    down: Any


def align(number: int, step: int) -> int:
    return -(-number // step) * step


def level_table(image: LevelSizes) -> LevelTable:
    """The table of an image."""
    return _table(image.kind, image.layout, image.width, image.height, int(image.depth), image.align, image.block, image.tail)


@lru_cache(1024)
def _table(kind: str, layout: str, wide: int, high: int, depth: int, aligned: tuple[int, int], block: tuple[int, int],
           tail: MipTail | None) -> LevelTable:  # fmt: skip
    left, top, across, down = [], [], [], []
    x = y = 0
    slices, step = 6 if kind == "cube" else depth, ROW_ALIGNMENT if layout == "row" else aligned[0]
    for level in range(LEVELS):
        width = align(-(-max(wide >> level, 1) // block[0]), step)
        height = align(-(-max(high >> level, 1) // block[1]), aligned[1])
        tailed = tail is not None and level >= tail.first
        column, row = tail.slots[min(level - tail.first, len(tail.slots) - 1)] if tail and tailed else (0, 0)
        left.append(x + column)
        top.append(y + row)
        across.append(width)
        down.append(height)
        if tailed:
            continue
        if layout == "row":
            x += width
        elif layout == "packed":
            deep = slices if kind == "cube" else max(slices >> level, 1)
            y += height * -(-deep // (1 << level))
        elif level == 1:
            x += width
        else:
            y += height
    return LevelTable(tuple(left), tuple(top), tuple(across), tuple(down))


def lookup(m: Machine, entries: Entries, index: Value) -> Value:
    """Look up an entry for each lane; the index (u32) counts modulo LEVELS."""
    table = entries if isinstance(entries, Value) else m.constant(u32, [entry & u32.highest for entry in entries])
    if index.lanes >= LEVELS:
        return m.permute(table, index)
    padded = m.concat(index, m.constant(u32, 0, LEVELS - index.lanes))  # a permutation of whole registers is one instruction
    return m.slice(m.permute(table, padded), 0, index.lanes)

"""Blits with an 8x8 pattern, a monochrome source or colour transparency: operands as arrays of pixels.

Reads   XY_PAT_BLT XY_PAT_BLT_IMMEDIATE XY_MONO_PAT_BLT XY_FULL_BLT XY_FULL_IMMEDIATE_PATTERN_BLT XY_FULL_MONO_PATTERN_BLT
        XY_MONO_SRC_COPY_BLT XY_MONO_SRC_COPY_IMMEDIATE_BLT XY_FULL_MONO_SRC_BLT XY_FULL_MONO_SRC_IMMEDIATE_PATTERN_BLT
        XY_FULL_MONO_PATTERN_MONO_SRC_BLT XY_SRC_COPY_CHROMA_BLT XY_PAT_CHROMA_BLT XY_PAT_CHROMA_BLT_IMMEDIATE
Writes  memory

No driver here sends them: they are executed over NumPy arrays, a rectangle at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.record import Record
from softgen.blitter import raster
from softgen.blitter.rectangle import SurfaceRectangle
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

Pixels = npt.NDArray[Any]  # unsigned, rows by columns
Lit = npt.NDArray[np.bool_]
SIDE = 8  # pixels of a pattern
ROW_BITS = 16  # of which a row of a monochrome source is a multiple (KBL 2548-2552)
# Bits of the components of a pixel from the lowest on, and which of them is alpha, by color_depth
COMPONENTS = ((8,), (5, 6, 5), (5, 5, 5, 1), (8, 8, 8, 8))
ALPHA = 3
SOURCE_KEYS, DESTINATION_KEYS, WITH_ALPHA = (1, 3), (5, 7), (3, 5)  # of transparency_range_mode (KBL 2592-2622)


def pixel_type(size: int) -> Any:
    return {1: np.uint8, 2: np.uint16, 4: np.uint32}[size]


def combined(code: int, pattern: Pixels, source: Pixels, destination: Pixels) -> Pixels:
    """The raster operation: bit 4 P + 2 S + D of its code, at each bit."""
    found = np.zeros_like(destination)
    for number in range(8):
        if code >> number & 1:
            found |= ((pattern if number & 4 else ~pattern) & (source if number & 2 else ~source)
                      & (destination if number & 1 else ~destination))  # fmt: skip
    return found


# -- patterns ----------------------------------------------------------------------------------------------------------


def pattern(cs: CommandStreamer, cmd: Record, size: int, box: tuple[int, int, int, int]) -> tuple[Pixels, Lit | None]:
    """The pattern of each pixel of a box; and where it is written, if the pattern may be transparent. The seeds are the pattern's pixel at
    X and Y 0 (KBL 2564-2566)."""
    colors, bits = _colors(cs, cmd, size)
    x1, y1, x2, y2 = box
    rows = (np.arange(y1, y2) + getattr(cmd, "pattern_vertical_seed", 0)) % SIDE
    columns = (np.arange(x1, x2) + getattr(cmd, "pattern_horizontal_seed", 0)) % SIDE
    place = np.ix_(rows, columns)
    transparent = bool(getattr(cmd, "monochrome_pattern_transparency_mode", 0))
    return colors[place], bits[place] if transparent and bits is not None else None


def _colors(cs: CommandStreamer, cmd: Record, size: int) -> tuple[Pixels, Lit | None]:
    """The 8x8 pixels of a pattern; and the bits of a monochrome one, the highest of a byte leftmost."""
    kind = pixel_type(size)
    if "pattern_data_0" in cmd._fields:
        bits = np.unpackbits(np.array([cmd.pattern_data_0, cmd.pattern_data_1], "<u4").view(np.uint8)).reshape(SIDE, SIDE).astype(bool)
        if getattr(cmd, "solid_pattern_select", 0):
            bits[:] = False
        fore, back = (np.uint32(color).astype(kind) for color in (cmd.pattern_foreground_color, cmd.pattern_background_color))
        return np.where(bits, fore, back), bits
    held = SIDE * SIDE * size
    if "pattern_base_address" in cmd._fields:
        if cmd.pattern_base_address % held:
            cs.warn(f"pattern at {cmd.pattern_base_address:#x}, which is not aligned to its {held} bytes (KBL 3134-3137)")
        data = cs.space.read(cmd.pattern_base_address & (1 << cs.space.bits) - 1, held)
    elif "immediate_data" in cmd._fields and ("monochrome_source_start" not in cmd._fields or "source_address" in cmd._fields):
        data = _immediate(cmd, 0, held, "pattern")
    else:
        return np.zeros((SIDE, SIDE), kind), None
    return np.frombuffer(data, kind).reshape(SIDE, SIDE), None


def _immediate(cmd: Record, first: int, size: int, what: str) -> bytes:
    data = np.array([part.dword for part in cmd.immediate_data], "<u4").tobytes()
    if len(data) < first + size:
        raise DecodeError(f"{len(data)} bytes of immediate data; the {what} has {first + size} or more")
    return data[first : first + size]


# -- sources -----------------------------------------------------------------------------------------------------------


def monochrome(cs: CommandStreamer, cmd: Record, size: int, columns: int, first: int, rows: int) -> tuple[Pixels, Lit | None]:
    """Rows of a monochrome source from `first` on: each begins at a bit of its first byte, and with a word; and where it is written, if it
    may be transparent (KBL 2548-2552, 2999-3014)."""
    start = cmd.monochrome_source_start
    row = -(-(start + columns) // ROW_BITS) * ROW_BITS // 8
    if "source_address" in cmd._fields:
        data = cs.space.read(cmd.source_address + first * row & (1 << cs.space.bits) - 1, row * rows)
    else:
        data = _immediate(cmd, first * row, row * rows, "source")
    bits = np.unpackbits(np.frombuffer(data, np.uint8).reshape(rows, row), axis=1)[:, start : start + columns].astype(bool)
    fore, back = (np.uint32(color).astype(pixel_type(size)) for color in (cmd.source_foreground_color, cmd.source_background_color))
    return np.where(bits, fore, back), bits if cmd.monochrome_source_transparency_mode else None


# -- transparency ------------------------------------------------------------------------------------------------------


def keyed(cmd: Record, source: Pixels | None, destination: Pixels) -> Lit | None:
    """Where a blit with a range of transparent colours writes: where the source is outside of it, or the destination inside (KBL
    2592-2622). Components are compared one by one."""
    mode = getattr(cmd, "transparency_range_mode", 0)
    if mode not in (*SOURCE_KEYS, *DESTINATION_KEYS):
        return None
    compared = source if mode in SOURCE_KEYS else destination
    if compared is None:
        raise Unsupported(f"transparency_range_mode {mode}, of a source, in a blit that has none: not yet simulated")
    inside, at = np.ones(compared.shape, bool), 0
    for number, bits in enumerate(COMPONENTS[cmd.color_depth]):
        if number != ALPHA or mode in WITH_ALPHA:
            value, low, high = ((pixel >> at & (1 << bits) - 1) for pixel in
                                (compared.astype(np.uint32), cmd.transparency_color_low, cmd.transparency_color_high))  # fmt: skip
            inside &= (value >= low) & (value <= high)
        at += bits
    return ~inside if mode in SOURCE_KEYS else inside


# -- blits -------------------------------------------------------------------------------------------------------------


def combine(cs: CommandStreamer, cmd: Record, written: bytes, where: SurfaceRectangle, patterned: tuple[Pixels, Lit | None],
            source: tuple[Pixels, Lit | None] | None) -> None:  # fmt: skip
    """Write what comes of pattern, source and destination; bits outside `written` keep the destination."""
    kind = pixel_type(len(written))
    held = where.read().view(kind)
    code = int(cmd.raster_operation)
    if source is None and raster.uses_source(code):
        raise Unsupported(f"raster_operation {code:#04x}, which depends on a source: not yet simulated")
    given = source[0] if source is not None else np.zeros_like(held)
    mask = np.frombuffer(written, kind)[0]
    new = combined(code, patterned[0], given, held) & mask | held & ~mask
    for lit in (patterned[1], source[1] if source is not None else None, keyed(cmd, None if source is None else given, held)):
        if lit is not None:
            new = np.where(lit, new, held)
    where.write(np.ascontiguousarray(new).view(np.uint8))
    cs.memory_changed()

"""Blits with an 8x8 pattern, a monochrome source or colour transparency: operands as arrays of pixels.

Reads   XY_PAT_BLT XY_PAT_BLT_IMMEDIATE XY_MONO_PAT_BLT XY_FULL_BLT XY_FULL_IMMEDIATE_PATTERN_BLT XY_FULL_MONO_PATTERN_BLT
        XY_MONO_SRC_COPY_BLT XY_MONO_SRC_COPY_IMMEDIATE_BLT XY_FULL_MONO_SRC_BLT XY_FULL_MONO_SRC_IMMEDIATE_PATTERN_BLT
        XY_FULL_MONO_PATTERN_MONO_SRC_BLT XY_SRC_COPY_CHROMA_BLT XY_PAT_CHROMA_BLT XY_PAT_CHROMA_BLT_IMMEDIATE
        XY_SCANLINES_BLT XY_TEXT_BLT XY_TEXT_IMMEDIATE_BLT, with the control fields of the setup command before them
Writes  memory

No driver here sends them: they are executed over NumPy arrays, a rectangle at once. `control` is the command that has the depth, raster
operation and colours: the setup command, or the blit itself.
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
Operand = tuple[Pixels, Lit | None]  # pixels, and where they are written, if some of them are transparent
SIDE = 8  # pixels of a pattern
ROW_BITS = 16  # of which a row of a monochrome source is a multiple (KBL 2548-2552)
# The same of text, by packing (KBL 2555-2558): rows of bits follow without a gap (public: Intel 815 PRM, the example of a letter), rows of
# bytes begin with one (public: Mesa i965 intel_pixel_bitmap.c)
TEXT_ROW_BITS = (1, 8)
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


def pattern(cs: CommandStreamer, cmd: Record, control: Record, size: int, box: tuple[int, int, int, int]) -> Operand | None:
    """The pattern of each pixel of a box, if there is one. The seeds are the pattern's pixel at X and Y 0 (KBL 2564-2566)."""
    found = _colors(cs, control, size)
    if found is None:
        return None
    colors, bits = found
    x1, y1, x2, y2 = box
    rows = (np.arange(y1, y2) + cmd.pattern_vertical_seed) % SIDE
    columns = (np.arange(x1, x2) + cmd.pattern_horizontal_seed) % SIDE
    place = np.ix_(rows, columns)
    return colors[place], bits[place] if bits is not None and control.monochrome_pattern_transparency_mode else None


def expansion_colors(control: Record, operand: str, size: int) -> tuple[Any, Any]:
    """The colours of bits that are 1 and 0: a setup command has them for a pattern and a source alike (KBL 2805-2832, 3152-3233)."""
    prefix = "" if "foreground_color" in control._fields else f"{operand}_"
    fore, back = (np.uint32(getattr(control, f"{prefix}{ground}_color")) for ground in ("foreground", "background"))
    return fore.astype(pixel_type(size)), back.astype(pixel_type(size))


def _colors(cs: CommandStreamer, cmd: Record, size: int) -> Operand | None:
    """The 8x8 pixels of a pattern; and the bits of a monochrome one, the highest of a byte leftmost."""
    kind = pixel_type(size)
    if "pattern_data_0" in cmd._fields:
        bits = np.unpackbits(np.array([cmd.pattern_data_0, cmd.pattern_data_1], "<u4").view(np.uint8)).reshape(SIDE, SIDE).astype(bool)
        if getattr(cmd, "solid_pattern_select", 0):
            bits[:] = False
        return np.where(bits, *expansion_colors(cmd, "pattern", size)), bits
    held = SIDE * SIDE * size
    if "pattern_base_address" in cmd._fields:
        if cmd.pattern_base_address % held:
            cs.warn(f"pattern at {cmd.pattern_base_address:#x}, which is not aligned to its {held} bytes (KBL 3134-3137)")
        data = cs.space.read(cmd.pattern_base_address & (1 << cs.space.bits) - 1, held)
    elif "immediate_data" in cmd._fields and ("monochrome_source_start" not in cmd._fields or "source_address" in cmd._fields):
        data = _immediate(cmd, 0, held, "pattern")
    else:
        return None
    return np.frombuffer(data, kind).reshape(SIDE, SIDE), None


def _immediate(cmd: Record, first: int, size: int, what: str) -> bytes:
    data = np.array([part.dword for part in cmd.immediate_data], "<u4").tobytes()
    if len(data) < first + size:
        raise DecodeError(f"{len(data)} bytes of immediate data; the {what} has {first + size} or more")
    return data[first : first + size]


# -- sources -----------------------------------------------------------------------------------------------------------


def monochrome(cs: CommandStreamer, cmd: Record, control: Record, size: int, columns: int, first: int, rows: int) -> Operand:
    """Rows of a monochrome source from `first` on: each begins at a bit of its first byte, and with a word; rows of text are packed more
    densely (KBL 2548-2558, 2999-3014)."""
    start = getattr(cmd, "monochrome_source_start", 0)
    unit = TEXT_ROW_BITS[cmd.packing] if "packing" in cmd._fields else ROW_BITS
    row = -(-(start + columns) // unit) * unit
    skipped, skipped_bits = divmod(first * row, 8)
    held = -(-(skipped_bits + rows * row) // 8)
    if "source_address" in cmd._fields:
        data = cs.space.read(cmd.source_address + skipped & (1 << cs.space.bits) - 1, held)
    else:
        data = _immediate(cmd, skipped, held, "source")
    every = np.unpackbits(np.frombuffer(data, np.uint8))[skipped_bits : skipped_bits + rows * row].reshape(rows, row)
    bits = every[:, start : start + columns].astype(bool)
    return np.where(bits, *expansion_colors(control, "source", size)), bits if control.monochrome_source_transparency_mode else None


# -- transparency ------------------------------------------------------------------------------------------------------


def keyed(cmd: Record, source: Pixels | None, destination: Pixels) -> Lit | None:
    """Where a blit with a range of transparent colours writes: where the source is outside of it, or the destination inside (KBL
    2592-2622). Components are compared one by one."""
    mode = getattr(cmd, "transparency_range_mode", 0)
    if mode not in (*SOURCE_KEYS, *DESTINATION_KEYS):
        return None
    compared = source if mode in SOURCE_KEYS else destination
    if compared is None:  # the manual compares source pixels only (KBL 2592-2608), and patterns have a chroma blit of their own
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


def combine(cs: CommandStreamer, control: Record, written: bytes, where: SurfaceRectangle, pattern: Operand | None,
            source: Operand | None) -> None:  # fmt: skip
    """Write what comes of pattern, source and destination; bits outside `written` keep the destination."""
    kind, code = pixel_type(len(written)), int(control.raster_operation)
    for name, operand in (("pattern", pattern), ("source", source)):
        if operand is None:
            raster.without(name, code)
    held = where.read().view(kind)
    mask, nothing = np.frombuffer(written, kind)[0], (np.zeros_like(held), None)
    new = combined(code, (pattern or nothing)[0], (source or nothing)[0], held) & mask | held & ~mask
    for lit in ((pattern or nothing)[1], (source or nothing)[1], keyed(control, source[0] if source else None, held)):
        if lit is not None:
            new = np.where(lit, new, held)
    where.write(np.ascontiguousarray(new).view(np.uint8))
    cs.memory_changed()

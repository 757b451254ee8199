"""Commands of the blitter: on Gen4.5 of the render ring, later of an engine of its own.

Reads   XY_COLOR_BLT XY_SRC_COPY_BLT XY_FAST_COPY_BLT COLOR_BLT SRC_COPY_BLT XY_PIXEL_BLT XY_SCANLINES_BLT
        XY_TEXT_BLT XY_TEXT_IMMEDIATE_BLT XY_SETUP_BLT XY_SETUP_CLIP_BLT XY_SETUP_MONO_PATTERN_SL_BLT BCS_SWCTRL
Writes  memory

A fill's colour is the pattern of its raster operation; copies have no pattern. Blits with an 8x8 pattern, a monochrome source or
transparency are in operands.py. Fixed patterns are not built: XY_MONO_PAT_FIXED_BLT numbers them, and no manual here shows their pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.blitter import raster
from softgen.blitter.blit import AT_ONCE, BlitSurface, blit
from softgen.blitter.raster import raster_masks
from softgen.command import Commands, CommandStreamer, nothing_collected, registers_in
from softgen.errors import DecodeError, SoftgenError
from softgen.surface.tiling import orders

COMMANDS: Commands = {}
handles = registers_in(COMMANDS)

PIXEL_BYTES = (1, 2, 2, 4)  # by color_depth
FAST_PIXEL_BYTES = {0: 1, 1: 2, 3: 4, 4: 8, 5: 16}  # by color_depth of XY_FAST_COPY_BLT
FAST_TILINGS = ("linear", "x_major", "y_major", "tileys")  # by tiling method
RGB, ALPHA = b"\xff\xff\xff\0", b"\0\0\0\xff"
BYTE_MASKS = (bytes(4), RGB, ALPHA, b"\xff" * 4)  # by 32bpp_byte_mask (KBL 2531-2539)


class PixelRectangle(NamedTuple):
    """Columns x1 to x2 - 1 of rows y1 to y2 - 1."""

    x1: int
    y1: int
    x2: int
    y2: int

    def clipped(self, other: PixelRectangle) -> PixelRectangle:
        """The part within another rectangle."""
        return PixelRectangle(max(self.x1, other.x1), max(self.y1, other.y1), min(self.x2, other.x2), min(self.y2, other.y2))


EMPTY = PixelRectangle(0, 0, 0, 0)


@dataclass
class Blitter:
    """What setup commands leave for the commands after them."""

    clip: PixelRectangle = EMPTY
    setup: Record | None = None  # XY_SETUP_BLT or XY_SETUP_MONO_PATTERN_SL_BLT


def new_state() -> Blitter:
    """The blitter's part of a new hardware context."""
    return Blitter()


finish = nothing_collected  # a blit is complete when its command is done


# -- setup -------------------------------------------------------------------------------------------------------------


@handles("XY_SETUP_CLIP_BLT")
def setup_clip(cs: CommandStreamer, cmd: Record) -> None:
    cs.state(Blitter).clip = PixelRectangle(cmd.cliprect_x1_coordinate, cmd.cliprect_y1_coordinate,
                                            cmd.cliprect_x2_coordinate, cmd.cliprect_y2_coordinate)  # fmt: skip


@handles("XY_SETUP_BLT", "XY_SETUP_MONO_PATTERN_SL_BLT")
def setup(cs: CommandStreamer, cmd: Record) -> None:
    setup_clip(cs, cmd)
    cs.state(Blitter).setup = cmd


# -- fills -------------------------------------------------------------------------------------------------------------


@handles("XY_COLOR_BLT")
def xy_color_blt(cs: CommandStreamer, cmd: Record) -> None:
    _fill(cs, cmd, cmd, rectangle(cmd), cmd.solid_pattern_color)


@handles("XY_PIXEL_BLT")
def xy_pixel_blt(cs: CommandStreamer, cmd: Record) -> None:
    """One pixel with the background colour of the setup command (KBL 2805-2812)."""
    x, y, setup = cmd.destination_x1_coordinate, cmd.destination_y1_coordinate, _setup(cs)
    _fill(cs, cmd, setup, PixelRectangle(x, y, x + 1, y + 1), setup.background_color)


@handles("XY_SCANLINES_BLT")
def xy_scanlines_blt(cs: CommandStreamer, cmd: Record) -> None:
    """Rows with the pattern of the setup command: pixels in memory or bits of the command (KBL 2517-2521, 2851-2868); a solid one is its
    background colour (KBL 2682-2695)."""
    setup = _setup(cs)
    is_solid = getattr(setup, "solid_pattern_select", 0) or not raster.uses_pattern(setup.raster_operation)
    if is_solid and not getattr(setup, "monochrome_pattern_transparency_mode", 0):
        _fill(cs, cmd, setup, rectangle(cmd), setup.background_color)
    else:
        _combine(cs, cmd, setup)


def _fill(cs: CommandStreamer, cmd: Record, control: Record, area: PixelRectangle, color: int) -> None:
    """Fill a rectangle with a colour; `control` has the destination, depth and raster operation."""
    size = PIXEL_BYTES[control.color_depth]
    masks = raster_masks(_code(control, "source"), _pixel(color, size), written(control))
    if control.clipping_enabled:
        area = area.clipped(cs.state(Blitter).clip)
    where = destination(cs, control, area, size, cmd.destination_tiling_enable)
    blit(cs, masks, ((area.x2 - area.x1) * size, area.y2 - area.y1), where)


def _setup(cs: CommandStreamer) -> Record:
    found = cs.state(Blitter).setup
    if found is None:
        raise DecodeError("no XY_SETUP_BLT or XY_SETUP_MONO_PATTERN_SL_BLT came before")
    return found


@handles("COLOR_BLT")
def color_blt(cs: CommandStreamer, cmd: Record) -> None:
    masks = raster_masks(_code(cmd, "source"), _pixel(cmd.solid_pattern_color, PIXEL_BYTES[cmd.color_depth]), written(cmd))
    where = BlitSurface(cmd.destination_base_address, cmd.destination_pitch, "linear", 0, 0)
    blit(cs, masks, (cmd.destination_width, cmd.destination_height), where)


# -- copies ------------------------------------------------------------------------------------------------------------


@handles("XY_SRC_COPY_BLT")
def xy_src_copy_blt(cs: CommandStreamer, cmd: Record) -> None:
    size, whole = PIXEL_BYTES[cmd.color_depth], rectangle(cmd)
    masks = raster_masks(_code(cmd, "pattern"), written=written(cmd))
    area = whole.clipped(cs.state(Blitter).clip) if cmd.clipping_enabled else whole
    where = destination(cs, cmd, area, size, cmd.destination_tiling_enable)
    source = surface(cs, cmd.source_base_address, cmd.source_pitch, _tiling(cs, cmd.source_tiling_enable, "source_y_major"),
                     (cmd.source_x1_coordinate + area.x1 - whole.x1) * size, cmd.source_y1_coordinate + area.y1 - whole.y1)  # fmt: skip
    blit(cs, masks, ((area.x2 - area.x1) * size, area.y2 - area.y1), where, source)


@handles("SRC_COPY_BLT")
def src_copy_blt(cs: CommandStreamer, cmd: Record) -> None:
    masks = raster_masks(_code(cmd, "pattern"), written=written(cmd))
    where = BlitSurface(cmd.destination_base_address, cmd.destination_pitch, "linear", 0, 0)
    source = BlitSurface(cmd.source_address, cmd.source_pitch, "linear", 0, 0)
    blit(cs, masks, (cmd.destination_width, cmd.destination_height), where, source)


@handles("XY_FAST_COPY_BLT")
def xy_fast_copy_blt(cs: CommandStreamer, cmd: Record) -> None:
    size, area = FAST_PIXEL_BYTES.get(cmd.color_depth), rectangle(cmd)
    if size is None:
        raise DecodeError(f"color_depth {cmd.color_depth} is reserved")
    where = surface(cs, cmd.destination_base_address, cmd.destination_pitch,
                    _fast_tiling(cmd.destination_tiling_method, cmd.destination_tile_y_type, size), area.x1 * size, area.y1)  # fmt: skip
    source = surface(cs, cmd.source_base_address, cmd.source_pitch,
                     _fast_tiling(cmd.source_tiling_method, cmd.source_tile_y_type, size),
                     cmd.source_x1_coordinate * size, cmd.source_y1_coordinate)  # fmt: skip
    blit(cs, raster_masks(raster.COPY), ((area.x2 - area.x1) * size, area.y2 - area.y1), where, source)


# -- patterns, monochrome sources and transparency ----------------------------------------------------------------------


@handles("XY_PAT_BLT", "XY_PAT_BLT_IMMEDIATE", "XY_MONO_PAT_BLT", "XY_FULL_BLT", "XY_FULL_IMMEDIATE_PATTERN_BLT",
         "XY_FULL_MONO_PATTERN_BLT", "XY_MONO_SRC_COPY_BLT", "XY_MONO_SRC_COPY_IMMEDIATE_BLT", "XY_FULL_MONO_SRC_BLT",
         "XY_FULL_MONO_SRC_IMMEDIATE_PATTERN_BLT", "XY_FULL_MONO_PATTERN_MONO_SRC_BLT", "XY_SRC_COPY_CHROMA_BLT", "XY_PAT_CHROMA_BLT",
         "XY_PAT_CHROMA_BLT_IMMEDIATE")  # fmt: skip
def patterned_blt(cs: CommandStreamer, cmd: Record) -> None:
    _combine(cs, cmd, cmd)


@handles("XY_TEXT_BLT", "XY_TEXT_IMMEDIATE_BLT")
def xy_text_blt(cs: CommandStreamer, cmd: Record) -> None:
    """A monochrome source in the colours of the setup command (KBL 2805-2832). The raster operation and byte mask are that command's,
    too: drivers set no mask in the text command, and a logic operation before it (public: Mesa i965 intel_blit.c; the 815 ignored that)."""
    _combine(cs, cmd, _setup(cs))


def _combine(cs: CommandStreamer, cmd: Record, control: Record) -> None:
    """A blit whose operands are made as arrays (operands.py), some rows at a time; `control` has the destination, depth and raster
    operation."""
    whole = rectangle(cmd)
    area = whole.clipped(cs.state(Blitter).clip) if control.clipping_enabled else whole
    if area.x2 <= area.x1:
        return
    step = max(AT_ONCE // ((whole.x2 - whole.x1) * PIXEL_BYTES[control.color_depth]), 1)  # clipping leaves a monochrome source whole
    for top in range(area.y1, area.y2, step):
        if cs.timed_out():
            raise SoftgenError(f"time is up: {area.y2 - top} of {area.y2 - area.y1} rows left")
        _combine_rows(cs, cmd, control, whole, area._replace(y1=top, y2=min(top + step, area.y2)))


def _combine_rows(cs: CommandStreamer, cmd: Record, control: Record, whole: PixelRectangle, area: PixelRectangle) -> None:
    from softgen.blitter import operands
    from softgen.blitter.rectangle import SurfaceRectangle

    size, columns, rows = PIXEL_BYTES[control.color_depth], area.x2 - area.x1, area.y2 - area.y1
    left, top = area.x1 - whole.x1, area.y1 - whole.y1
    source = None
    is_text = "packing" in cmd._fields
    if is_text or "monochrome_source_start" in cmd._fields:
        pixels, lit = operands.monochrome(cs, cmd, control, size, whole.x2 - whole.x1, top, rows)
        source = pixels[:, left : left + columns], lit[:, left : left + columns] if lit is not None else None
    elif "source_base_address" in cmd._fields:
        place = surface(cs, cmd.source_base_address, cmd.source_pitch, _tiling(cs, cmd.source_tiling_enable, "source_y_major"),
                        (cmd.source_x1_coordinate + left) * size, cmd.source_y1_coordinate + top)  # fmt: skip
        source = SurfaceRectangle(cs.space, place, (columns * size, rows)).read().view(operands.pixel_type(size)), None
    where = SurfaceRectangle(cs.space, destination(cs, control, area, size, cmd.destination_tiling_enable), (columns * size, rows))
    pattern = None if is_text else operands.pattern(cs, cmd, control, size, area)  # a setup command's is for scan lines (KBL 2853-2857)
    operands.combine(cs, control, written(control), where, pattern, source)


# -- fields ------------------------------------------------------------------------------------------------------------


def rectangle(cmd: Record) -> PixelRectangle:
    """The destination rectangle of a command."""
    return PixelRectangle(cmd.destination_x1_coordinate, cmd.destination_y1_coordinate,
                          cmd.destination_x2_coordinate, cmd.destination_y2_coordinate)  # fmt: skip


def written(cmd: Record) -> bytes:
    """Bits of a pixel that are written: byte masks are for 32 bits only (KBL 2531-2539)."""
    size = PIXEL_BYTES[cmd.color_depth]
    return BYTE_MASKS[getattr(cmd, "32bpp_byte_mask")] if size == len(RGB) else b"\xff" * size


def destination(cs: CommandStreamer, control: Record, area: PixelRectangle, size: int, is_tiled: bool) -> BlitSurface:
    """Where a rectangle of pixels of `size` bytes is."""
    return surface(cs, control.destination_base_address, control.destination_pitch, _tiling(cs, is_tiled, "destination_y_major"),
                   area.x1 * size, area.y1)  # fmt: skip


def surface(cs: CommandStreamer, base: int, pitch: int, tiling: str, x: int, y: int) -> BlitSurface:
    """A surface as an XY command describes it: tiled pitches count dwords (KBL 2760-2770). Warns of places where no tile begins."""
    if tiling == "linear":
        return BlitSurface(base, pitch, tiling, x, y)
    tile, width = 1 << len(orders()[tiling]), 1 << orders()[tiling].count("X")
    if base % tile:
        cs.warn(f"{tiling} surface at {base:#x}, which is not aligned to {tile} bytes")
    if 4 * pitch % width:
        cs.warn(f"pitch of {4 * pitch} bytes is not a multiple of {width}, the width of a {tiling} tile")
    return BlitSurface(base, 4 * pitch, tiling, x, y)


def _code(cmd: Record, missing: str) -> int:
    """The raster operation, which must not depend on the operand that the command lacks."""
    return raster.without(missing, int(cmd.raster_operation))


def _pixel(color: int, size: int) -> bytes:
    return (color & (1 << 8 * size) - 1).to_bytes(size, "little")


def _tiling(cs: CommandStreamer, is_tiled: bool, y_major: str) -> str:
    """The tiling of a surface of an XY command: BCS_SWCTRL, where there is one, says which (public: Linux i915 selftests)."""
    if not is_tiled:
        return "linear"
    layout = catalogue().get("BCS_SWCTRL", cs.generation.number)
    if layout is not None and getattr(layout.raw([cs.get("BCS_SWCTRL")]), y_major):
        return "y_major"
    return "x_major"


def _fast_tiling(method: int, is_yf: bool, size: int) -> str:
    name = FAST_TILINGS[method]
    if name == "tileys":
        return f"tileys_{8 * size}"
    return f"tileyf_{8 * size}" if name == "y_major" and is_yf else name

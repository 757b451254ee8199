"""Media blocks: rectangles of a two-dimensional surface, whatever the channels; transposed reads; what a surface is.

Rows of a block take a power of two of bytes in registers, four at least. Reading beyond an edge gives the nearest pixel, writing beyond
one nothing (BDW 24171-24291, KBL 13586-13741, 14385-14507). Whatever the format, the width of the surface and where it begins count in
dwords (KBL 19398-19400, 19691-19694). On the interpreter C code moves the bytes (block_access.c);
compiled code calls media_block.c, which does all of it.

Reads   MH_MBM MH_T
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.types import u8, u32
from softgen.shared_functions import block_access, descriptors
from softgen.shared_functions.block_access import Bytes, Places, SurfaceWalk
from softgen.shared_functions.dataport.environment import DataPortMessage, StateMessage
from softgen.shared_functions.dataport.media_block_h import EVERY_OTHER_LINE, LARGEST_BLOCK, ODD_LINES, OVERRIDES_LINES
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.shared_functions.message import MessagePlan, answers
from softgen.shared_functions.texture.operations import picture
from softgen.surface.image import SurfaceImage

if TYPE_CHECKING:
    from softgen.lanes.numpy.machine import NumpyMachine

READS = ("media_block_read", "render_cache_media_block_read", "sampler_cache_media_block_read")
WRITES = ("media_block_write", "render_cache_media_block_write")
Flags = npt.NDArray[np.bool_]

NARROWEST = 4  # bytes of a row in registers
UNIT = 4  # bytes that a surface's width counts
PIXEL_MASK, BYTE_MASK = 1, 2  # modes of a write
MASKED_PIXELS = 32, 4  # bytes and rows that a pixel mask covers, whatever the header's size (KBL 17789-17792)
KINDS = ("1d", "2d", "3d", "cube", "buffer", "strbuf", "", "null")  # surface types by number
MODES = {0: "normal", 2: "progressive_frame", 3: "interlaced_frame"}  # which row is nearest


@dataclass(frozen=True)
class MediaBlock:
    """A rectangle of bytes, and which lines of the surface it counts."""

    x: int
    y: int
    width: int  # bytes
    height: int
    step: int  # 2 where only every other line counts
    first: int


def number(x: StateMessage, page: str, name: str) -> int:
    return int(x.header(page, name).payload[0])


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def lines(x: StateMessage, state: tuple[int, int]) -> tuple[int, int]:
    """Every line, or every other one from the first or second on; the descriptor may say other than the surface (KBL 30421-30444)."""
    fields = x.plan.fields
    stride, first = state
    if getattr(fields, "vertical_line_stride_override", 0):
        stride, first = fields.vertical_line_stride, fields.vertical_line_stride_offset
    return (2, first) if stride else (1, 0)


def block(x: StateMessage, size: tuple[int, int] | None = None) -> tuple[MediaBlock, SurfaceImage]:
    """The rectangle that a header describes, of another size where one is given, and its surface."""
    image = replace(picture(x), lines=(1, 0))
    if not is_plain(image):
        raise Unsupported(f"{x.plan.name} of a {image.kind} surface: not yet simulated")
    step, first = lines(x, x.environment.lines(int(x.plan.fields.binding_table_index)))
    left, top = (signed(number(x, "MH_MBM", name)) for name in ("x_offset", "y_offset"))
    width, height = size or (number(x, "MH_MBM", "block_width") + 1, number(x, "MH_MBM", "block_height") + 1)
    if pitch(width) * height > LARGEST_BLOCK:
        raise DecodeError(f"{x.plan.name}: {width} bytes by {height} rows is more than {LARGEST_BLOCK} bytes")
    return MediaBlock(left, top, width, height, step, first), image


def is_plain(image: SurfaceImage) -> bool:
    """Whether media blocks can be of a surface."""
    return image.kind in ("2d", "null") and not (image.is_array and image.depth > 1)


def lines_told(x: DataPortMessage) -> int:
    """What a descriptor says of lines, for media_block.c."""
    fields = x.plan.fields
    if not getattr(fields, "vertical_line_stride_override", 0):
        return 0
    every_other, odd = int(fields.vertical_line_stride), int(fields.vertical_line_stride_offset)
    return OVERRIDES_LINES | EVERY_OTHER_LINE * every_other | ODD_LINES * odd


def pitch(width: int) -> int:
    """Bytes of a row in registers."""
    return max(NARROWEST, 1 << (width - 1).bit_length())


def walk(x: StateMessage, image: SurfaceImage) -> SurfaceWalk:
    """Where the surface's rows are."""
    return SurfaceWalk(x.environment.space, image.base, image.tiling, image.pitch)


def _report(x: StateMessage, kind: str, place: SurfaceWalk, at: tuple[Places, Places], data: Bytes | None = None,
            mask: Flags | None = None) -> None:  # fmt: skip
    """Tell those who watch accesses: a byte is a lane."""
    if (watch := x.environment.watch) is None:
        return
    found, none = block_access.addresses(place, *at), np.zeros(0, np.intp)
    lanes = np.arange(found.size) if mask is None else np.flatnonzero(mask)
    written = None if data is None else data.ravel()[lanes, None]
    watch(MemoryAccess(x.environment.sender, kind, False, found[lanes], lanes, none, none.astype(np.uint64), None, 1, written))


def columns(image: SurfaceImage, what: MediaBlock) -> tuple[Places, Flags]:
    """The bytes of a line: where they are, with the edges repeated, and which are not beyond an edge."""
    size, wide = min(image.size, UNIT), row_bytes(image)
    at = what.x + np.arange(what.width, dtype=np.int64)
    inside: Flags = (at >= 0) & (at < wide)
    rest = at % size  # which byte of a pixel
    near: Places = np.where(at < 0, rest, np.where(at >= wide, rest + (wide - size), at)) + image.at[0] * UNIT
    return near, inside


def rows(image: SurfaceImage, what: MediaBlock, mode: str = "normal") -> tuple[Places, Flags]:
    """Lines of the surface for those of a block, and which are not beyond an edge."""
    count = (image.height - what.first + what.step - 1) // what.step
    near = [nearest(what, line, count, image.height, mode) + image.at[1] for line in range(what.height)]
    inside = [0 <= what.y + line < count for line in range(what.height)]
    return np.array(near, np.int64), np.array(inside, np.bool_)


def row_bytes(image: SurfaceImage) -> int:
    """Bytes of the surface's rows: drivers give some surfaces a width in pixels, which would be past the pitch (public: intel-vaapi-driver,
    i965_media_mpeg2.c)."""
    return min(image.width * UNIT, image.pitch) if image.pitch else image.width * UNIT


def nearest(what: MediaBlock, line: int, rows: int, height: int, mode: str) -> int:
    """The line of the surface for a line of the block; beyond the edge as the surface says (KBL 19156-19176)."""
    y = what.y + line
    if 0 <= y < rows or mode == "normal" or what.step == 2 and mode == "interlaced_frame":
        return min(max(y, 0), rows - 1) * what.step + what.first
    if mode == "progressive_frame":
        return min(max(y * what.step + what.first, 0), height - 1)
    last = (height - 1) - ((height - 1) % 2 != y % 2)  # the nearest of the same parity
    return y % 2 if y < 0 else max(last, 0)


def is_media_block(name: str) -> bool:
    """Whether a message reads or writes media blocks."""
    return name in READS or name in WRITES


def _in_table(plan: MessagePlan) -> bool:
    """Whether a message names its surface by an entry of the binding table: then it can be compiled."""
    return plan.header and plan.indices[0] not in catalogue.enumeration(descriptors.SURFACES, plan.gen)


@answers(*READS, compiled=_in_table)
def media_read(x: DataPortMessage) -> None:
    x.environment.media_block(x, False)


@answers(*WRITES, compiled=_in_table)
def media_write(x: DataPortMessage) -> None:
    x.environment.media_block(x, True)


def read_block(x: StateMessage) -> None:
    """A read on the interpreter."""
    what, image = block(x)
    pieces = number(x, "MH_MBM", "register_pitch_control") + 1
    step, start = pitch(what.width) * pieces, number(x, "MH_MBM", "sub_register_offset")
    x.expect(start + step * (what.height - 1) + what.width)
    found = np.zeros((what.height, what.width), np.uint8)
    if image.kind != "null" and _any(x):
        mode = MODES.get(x.environment.boundary(int(x.plan.fields.binding_table_index)), "normal")
        at = columns(image, what)[0], rows(image, what, mode)[0]
        _report(x, "read", walk(x, image), at)
        found = block_access.read(walk(x, image), *at)
    _give_rows(x, found, start, step)


def _any(x: StateMessage) -> bool:
    """Whether a channel sends."""
    return bool(np.any(x.mask.payload))


def _give_rows(x: StateMessage, found: Bytes, start: int, step: int) -> None:
    """Rows of an answer: at once where they are as long as registers have them."""
    m, (height, width) = cast("NumpyMachine", x.m), found.shape
    if step == width and found.size <= LARGEST_BLOCK:
        x.give(m.value(u8, found.ravel()), start, x.any(found.size))
        return
    for line in range(height):
        x.give(m.value(u8, found[line].copy()), start + line * step, x.any(width))


def write_block(x: StateMessage) -> None:
    """A write on the interpreter."""
    mode = number(x, "MH_MBM", "message_mode")
    what, image = block(x, MASKED_PIXELS if mode == PIXEL_MASK else None)
    if mode not in (0, PIXEL_MASK, BYTE_MASK):
        raise DecodeError(f"{x.plan.name}: message_mode {mode} is reserved")
    if mode and what.width > GRF_BYTES:
        raise DecodeError(f"{x.plan.name}: blocks with masks have 32 bytes a row at most, not {what.width}")
    held = pitch(what.width)
    data = np.asarray(x.take(u8, 0, held * (what.height - 1) + what.width).payload, np.uint8)
    data = np.pad(data, (0, held - what.width)).reshape(what.height, held)[:, : what.width]
    if image.kind == "null" or not _any(x):
        return
    (xs, on_x), (ys, on_y) = columns(image, what), rows(image, what)
    mask = on_y[:, None] & on_x & masked(x, mode, what)
    _report(x, "write", walk(x, image), (xs, ys), data, mask)
    block_access.write(walk(x, image), xs, ys, data, mask.astype(np.uint8))


def masked(x: StateMessage, mode: int, what: MediaBlock) -> Flags:
    """The bytes of a block that the header's mask leaves: a bit for each byte of a line, or for each dword of 4 rows by 8, in squares of
    squares (KBL 3377-3385, 17754-17762)."""
    bits, at, line = number(x, "MH_MBM", "mask"), np.arange(what.width), np.arange(what.height)[:, None]
    if not mode:
        return np.ones((what.height, what.width), np.bool_)
    if mode == BYTE_MASK:
        return np.broadcast_to(bits >> at & 1 == 1, (what.height, what.width))
    places = (at // 4 >> 2) * 16 + (line >> 1) * 8 + (at // 4 >> 1 & 1) * 4 + (line & 1) * 2 + (at // 4 & 1)
    found: Flags = bits >> places & 1 == 1
    return found


@answers("transpose_read", compiled=False)
def transpose_read(x: StateMessage) -> None:
    """Dwords of a block, columns first (BDW 24256-24291)."""
    image, m = picture(x), x.m
    width, height = (1 << number(x, "MH_T", name) for name in ("block_width", "block_height"))
    left, top = (signed(number(x, "MH_T", name)) for name in ("x_offset", "y_offset"))
    step, first = lines(x, x.environment.lines(int(x.plan.fields.binding_table_index)))
    what = MediaBlock(left, top, 4 * width, height, step, first)
    x.expect(4 * width * height)
    if _any(x):
        at = columns(image, what)[0], rows(image, what)[0]
        _report(x, "read", walk(x, image), at)
        found = block_access.read(walk(x, image), *at).view(np.uint32)
        x.give(m.constant(u32, found.T.ravel().tolist()), 0, x.any(width * height))


@answers("read_surface_info", compiled=False)
def read_surface_info(x: StateMessage) -> None:
    """Two registers: the instruction base, and what the surface is (KBL 18771-18884)."""
    image, base = picture(x), x.environment.instructions()
    level = int(x.take(u32, 0, 4).payload[3]) & 0xF
    flat, nothing = image.kind in ("1d", "buffer"), image.kind == "null"
    height = 0 if nothing or flat and not image.is_array else image.depth if flat else image.height >> level
    depth = image.depth >> level if image.kind == "3d" else image.depth if image.is_array and not flat else 0
    told = [0 if nothing else image.width >> level, height, depth, image.levels - 1, KINDS.index(image.kind), image.format.value, 0, 0]
    x.give(x.m.constant(u32, [*[0] * 6, base & 0xFFFFFFFF, base >> 32, *told]), 0, x.m.mask_from_bits(0xFFFF, 16))



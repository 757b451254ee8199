"""Media blocks: rectangles of a two-dimensional surface, whatever the channels; transposed reads; what a surface is.

Rows of a block take a power of two of bytes in registers, four at least. Reading beyond an edge gives the nearest pixel, writing beyond
one nothing (BDW 24171-24291, KBL 13586-13741, 14385-14507). Whatever the format, the width of the surface and where it begins count in
dwords (KBL 19398-19400, 19691-19694). Sizes are in the header and surface state is looked up by Python: these messages are not compiled.

Reads   MH_MBM MH_T
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.types import bool_, i64, u8, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport.environment import StateMessage
from softgen.shared_functions.message import answers
from softgen.shared_functions.texture.operations import picture
from softgen.surface import tiling
from softgen.surface.image import SurfaceImage

NARROWEST = 4  # bytes of a row in registers
UNIT = 4  # bytes that a surface's width counts
LARGEST = 256  # bytes of a block
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
    if image.kind not in ("2d", "null") or image.is_array and image.depth > 1:
        raise Unsupported(f"{x.plan.name} of a {image.kind} surface: not yet simulated")
    step, first = lines(x, x.environment.lines(int(x.plan.fields.binding_table_index)))
    left, top = (signed(number(x, "MH_MBM", name)) for name in ("x_offset", "y_offset"))
    width, height = size or (number(x, "MH_MBM", "block_width") + 1, number(x, "MH_MBM", "block_height") + 1)
    if pitch(width) * height > LARGEST:
        raise DecodeError(f"{x.plan.name}: {width} bytes by {height} rows is more than {LARGEST} bytes")
    return MediaBlock(left, top, width, height, step, first), image


def pitch(width: int) -> int:
    """Bytes of a row in registers."""
    return max(NARROWEST, 1 << (width - 1).bit_length())


def row(x: StateMessage, image: SurfaceImage, what: MediaBlock, line: int, mode: str = "normal") -> tuple[Value, Value]:
    """The bytes of a line: where they are, with the edges repeated, and which are not beyond an edge."""
    m, size, height, wide = x.m, min(image.size, UNIT), image.height, image.width * UNIT
    rows = (height - what.first + what.step - 1) // what.step
    y = nearest(what, line, rows, height, mode)
    at = m.constant(i64, what.x, what.width) + m.lane_index(what.width, i64)
    inside = (at >= 0) & (at < wide)
    rest = m.remainder_int(m.remainder_int(at, size) + size, size)  # which byte of a pixel
    near = m.select(at < 0, rest, m.select(at >= wide, rest + (wide - size), at))
    down = m.constant(u64, y + image.at[1], what.width)
    offsets = tiling.offset(m, image.tiling, image.pitch, m.bitcast(near, u64) + image.at[0] * UNIT, down)
    on = m.constant(bool_, int(0 <= what.y + line < rows), what.width)
    return offsets, inside & on


def nearest(what: MediaBlock, line: int, rows: int, height: int, mode: str) -> int:
    """The line of the surface for a line of the block; beyond the edge as the surface says (KBL 19156-19176)."""
    y = what.y + line
    if 0 <= y < rows or mode == "normal" or what.step == 2 and mode == "interlaced_frame":
        return min(max(y, 0), rows - 1) * what.step + what.first
    if mode == "progressive_frame":
        return min(max(y * what.step + what.first, 0), height - 1)
    last = (height - 1) - ((height - 1) % 2 != y % 2)  # the nearest of the same parity
    return y % 2 if y < 0 else max(last, 0)


@answers("media_block_read", "sampler_cache_media_block_read", compiled=False)
def media_read(x: StateMessage) -> None:
    what, image = block(x)
    m, pieces = x.m, number(x, "MH_MBM", "register_pitch_control") + 1
    step, start = pitch(what.width) * pieces, number(x, "MH_MBM", "sub_register_offset")
    x.expect(start + step * (what.height - 1) + what.width)
    memory: Region = x.environment.absolute(image.base)
    mode = MODES.get(x.environment.boundary(int(x.plan.fields.binding_table_index)), "normal")
    found = []
    for line in range(what.height):
        if image.kind == "null":
            found.append(m.constant(u8, 0, what.width))
            continue
        at, _ = row(x, image, what, line, mode)
        found.append(m.load(u8, memory, at, x.any(what.width)))
    for line, value in enumerate(found):
        x.give(value, start + line * step, x.any(what.width))


@answers("media_block_write", compiled=False)
def media_write(x: StateMessage) -> None:
    mode = number(x, "MH_MBM", "message_mode")
    what, image = block(x, MASKED_PIXELS if mode == PIXEL_MASK else None)
    if mode not in (0, PIXEL_MASK, BYTE_MASK):
        raise DecodeError(f"{x.plan.name}: message_mode {mode} is reserved")
    if mode and what.width > GRF_BYTES:
        raise DecodeError(f"{x.plan.name}: blocks with masks have 32 bytes a row at most, not {what.width}")
    memory: Region = x.environment.absolute(image.base)
    data = [x.take(u8, line * pitch(what.width), what.width) for line in range(what.height)]
    for line, value in enumerate(data):  # a null surface has no width
        at, inside = row(x, image, what, line)
        x.m.store(value, memory, at, inside & x.any(what.width) & masked(x, mode, line, what.width))


def masked(x: StateMessage, mode: int, line: int, width: int) -> Value:
    """The bytes of a line that the header's mask leaves: a bit for each byte, or for each dword of 4 rows by 8, in squares of squares
    (KBL 3377-3385, 17754-17762)."""
    bits = number(x, "MH_MBM", "mask")
    if not mode:
        return x.m.constant(bool_, 1, width)
    if mode == BYTE_MASK:
        return x.m.mask_from_bits(bits, width)
    places = [(at // 4 >> 2) * 16 + (line >> 1) * 8 + (at // 4 >> 1 & 1) * 4 + (line & 1) * 2 + (at // 4 & 1) for at in range(width)]
    return x.m.constant(bool_, [bits >> place & 1 for place in places])


@answers("transpose_read", compiled=False)
def transpose_read(x: StateMessage) -> None:
    """Dwords of a block, columns first (BDW 24256-24291)."""
    image, m = picture(x), x.m
    width, height = (1 << number(x, "MH_T", name) for name in ("block_width", "block_height"))
    left, top = (signed(number(x, "MH_T", name)) for name in ("x_offset", "y_offset"))
    step, first = lines(x, x.environment.lines(int(x.plan.fields.binding_table_index)))
    what = MediaBlock(left, top, 4 * width, height, step, first)
    memory: Region = x.environment.absolute(image.base)
    x.expect(4 * width * height)
    rows = [m.regroup(m.load(u8, memory, row(x, image, what, line)[0], x.any(4 * width)), u32) for line in range(height)]
    whole = m.concat(*rows)
    turned = m.shuffle(whole, [line * width + column for column in range(width) for line in range(height)])
    x.give(turned, 0, x.any(width * height))


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



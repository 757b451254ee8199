"""Texel fetch: texels in memory by coordinates, as channels. Outside the image all bits of a texel are zero; channels that the format lacks
have their default values."""

from __future__ import annotations

from functools import cache

from softgen.bits.formats import Format, FormatChannel
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, u8, u16, u32, u64
from softgen.lanes.value import Region, Value
from softgen.surface import blocks, texel
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage, locate

EVERY = frozenset(texel.ORDER)
PALETTE_CHANNEL = FormatChannel("p", "unorm", 8)  # of a palette's entry: alpha, red, green and blue from the highest byte down


def words(image: SurfaceImage) -> list[tuple[int, LaneType]]:
    """The words of a texel: byte offset and type."""
    if image.size <= u32.bytes:
        return [(0, next(type for type in (u8, u16, u32) if type.bytes >= image.size))]
    return [(at, u32) for at in range(0, image.size, u32.bytes)]


def raw(m: Machine, image: SurfaceImage, memory: Region, at: Value, mask: Value, needed: frozenset[str] = EVERY) -> list[Value]:
    """Load the words of the texels at byte offsets; the bits above a narrow texel are not zero. Narrow texels of a `near` image come
    with the dword that they are in: hosts gather dwords. Words without channels that are `needed` are not touched, on any machine."""
    used = _used(image.format, needed)
    if image.near and image.size < u32.bytes and u32.bytes % image.size == 0:
        if not used:
            return [m.constant(u32, 0, at.lanes)]
        held = m.load(u32, memory, at - (at & 3), mask)
        return [held >> (m.convert(at & 3, u32) << 3)]
    return [m.convert(m.load(type, memory.moved(byte), at, mask), u32) if byte // u32.bytes in used else m.constant(u32, 0, at.lanes)
            for byte, type in words(image)]  # fmt: skip


@cache
def _used(format: Format, needed: frozenset[str]) -> frozenset[int]:
    """The words of a texel that some channels come from; no channel that is unpacked is in two."""
    if format.coding:
        return frozenset(range(format.bits // texel.DWORD_BITS))
    found: set[int] = set()
    for channel, at in texel.places(format):
        if channel.type != "void" and needed & set(texel.COPIES.get(channel.name, channel.name)):
            found.add(at // texel.DWORD_BITS)
    return frozenset(found)


def load(m: Machine, image: SurfaceImage, memory: Region, at: Value, mask: Value, needed: frozenset[str] = EVERY) -> list[Value]:
    """Load red, green, blue and alpha of the texels at byte offsets."""
    return unpack(m, image, raw(m, image, memory, at, mask, needed))


def unpack(m: Machine, image: SurfaceImage, held: list[Value], x: Value | None = None, y: Value | None = None) -> list[Value]:
    """Unpack red, green, blue and alpha; compiled programs have tables for some formats. `x` and `y`: the texel, in compressed images."""
    if blocks.compressed(image.format):
        zero = m.like(held[0], 0)
        return blocks.unpack(m, image.format, held, zero if x is None else x, zero if y is None else y)
    if texel.is_paletted(image.format):
        return _looked_up(m, image, held[0])
    table = None if image.linear is None else m.memory_at(image.linear, u32.bytes << texel.TABLE_BITS)
    return texel.unpack(m, image.format, held, table)


def _looked_up(m: Machine, image: SurfaceImage, held: Value) -> list[Value]:
    """The palette's entry for each texel; a format may have an alpha of its own (KBL 16215-16239)."""
    raw = {channel.name: held >> at & (1 << channel.bits) - 1 for channel, at in texel.places(image.format)}
    if image.linear is None:
        entry = m.permute(m.constant(u32, image.entries), raw["p"])
    else:
        entry = m.load(u32, m.memory_at(image.linear, u32.bytes << texel.TABLE_BITS), raw["p"] * u32.bytes)
    found = [texel.decode_channel(m, PALETTE_CHANNEL, entry >> shift & 0xFF) for shift in (16, 8, 0, 24)]
    own = next((channel for channel in image.format.channels if channel.name == "a"), None)
    return found if own is None else [*found[:3], texel.decode_channel(m, own, raw["a"])]


def fetch(m: Machine, image: SurfaceImage, memory: Region, places: list[Value], lod: Value | None, mask: Value) -> list[Value]:
    """Load the texels at integer coordinates of a level, as far as the surface's channel selects use them."""
    at, inside = locate(m, image, places, lod, u32 if image.near else u64)
    held = raw(m, image, memory, at, mask & inside, selected_channels(image))
    if not blocks.compressed(image.format):
        return unpack(m, image, held)
    found = unpack(m, image, held, *places[:2])
    outside = texel.missing(image.format) | {channel.name: 0 for channel in image.format.channels}
    return [m.select(inside, value, m.like(value, outside[name])) for value, name in zip(found, texel.ORDER, strict=True)]


def selected_channels(image: SurfaceImage) -> frozenset[str]:
    """The channels that a surface's channel selects use."""
    return frozenset(texel.ORDER[CHANNEL_NAMES.index(name)] for name in image.select if name in CHANNEL_NAMES)

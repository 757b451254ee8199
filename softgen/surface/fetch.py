"""Texels out of memory: by coordinates, as channels. Outside the image all bits of a texel are zero; channels that its format lacks are
what they always are."""

from __future__ import annotations

from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, u8, u16, u32
from softgen.lanes.value import Region, Value
from softgen.surface import texel
from softgen.surface.image import Image, locate


def words(one: Image) -> list[tuple[int, LaneType]]:
    """The pieces of a texel: byte and type."""
    if one.size <= u32.bytes:
        return [(0, next(type for type in (u8, u16, u32) if type.bytes >= one.size))]
    return [(at, u32) for at in range(0, one.size, u32.bytes)]


def load(m: Machine, one: Image, memory: Region, at: Value, mask: Value) -> list[Value]:
    """Red, green, blue and alpha of the texels at byte offsets."""
    raw = [m.convert(m.load(type, memory.moved(byte), at, mask), u32) for byte, type in words(one)]
    return texel.unpack(m, one.format, raw)


def fetch(m: Machine, one: Image, memory: Region, places: list[Value], lod: Value | None, mask: Value) -> list[Value]:
    at, inside = locate(m, one, places, lod)
    return load(m, one, memory, at, mask & inside)

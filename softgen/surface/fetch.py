"""Texels out of memory: by coordinates, as channels. Outside the image all bits of a texel are zero; channels that its format lacks are
what they always are."""

from __future__ import annotations

from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, u8, u16, u32
from softgen.lanes.value import Region, Value
from softgen.surface import texel
from softgen.surface.image import SurfaceImage, locate


def words(image: SurfaceImage) -> list[tuple[int, LaneType]]:
    """The pieces of a texel: byte and type."""
    if image.size <= u32.bytes:
        return [(0, next(type for type in (u8, u16, u32) if type.bytes >= image.size))]
    return [(at, u32) for at in range(0, image.size, u32.bytes)]


def load(m: Machine, image: SurfaceImage, memory: Region, at: Value, mask: Value) -> list[Value]:
    """Red, green, blue and alpha of the texels at byte offsets."""
    raw = [m.convert(m.load(type, memory.moved(byte), at, mask), u32) for byte, type in words(image)]
    return texel.unpack(m, image.format, raw)


def fetch(m: Machine, image: SurfaceImage, memory: Region, places: list[Value], lod: Value | None, mask: Value) -> list[Value]:
    at, inside = locate(m, image, places, lod)
    return load(m, image, memory, at, mask & inside)

"""Chroma keying: which texels match the range of a key (BDW 1672-1730, KBL 22424-22476).

Keys have 8 bits a channel. Narrower channels of texels are widened by repeating their highest bits; channels of SNORM formats, and all
channels of formats that have one, are compared as sign and magnitude. YUV texels between two with chrominance have the average of both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from softgen.bits.formats import Format, FormatChannel
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Value
from softgen.shared_functions.sampler.request import Tap
from softgen.shared_functions.texture_tables import ChromaKey
from softgen.surface import blocks, texel
from softgen.surface.image import SurfaceImage, broadcast_number

SHIFTS = {"r": 16, "g": 8, "b": 0, "a": 24}  # of a channel in a key
BLACK = (0.0, 0.0, 0.0, 0.0)
YUV_BLACK = (0x80 / 0xFF, 0x10 / 0xFF, 0x80 / 0xFF, 0.0)
BITS = 8


class ChromaKeying:
    """Chroma keying of an image's texels. `observed`: killed pixels are asked for, in `killed`."""

    def __init__(self, m: Machine, key: ChromaKey, kills: bool, image: SurfaceImage, mask: Value, observed: bool) -> None:
        self.m, self.key, self.kills, self.image = m, key, kills, image
        self.sampled = mask  # lanes that texels are for
        self.killed = m.variable(m.constant(u32, 0, mask.lanes)) if kills and observed else None

    @contextmanager
    def narrowed(self, lanes: Value) -> Iterator[None]:
        """Texels are for some of the lanes only."""
        before, self.sampled = self.sampled, self.sampled & lanes
        yield
        self.sampled = before

    def keyed(self, texels: list[Value], words: list[Value], taps: list[Tap], mask: Value,
              decoded: Callable[[Value], list[Value]]) -> list[Value]:  # fmt: skip
        """Texels after keying: those that match are black, or kill their pixels if they weigh something. `decoded`: the texel of another
        column."""
        m, format = self.m, self.image.format
        if self.kills and self.killed is None:
            return texels
        if blocks.compressed(format):
            channels = decoded_channels(m, texels)
            if format.space == "yuv":
                channels |= self._chrominance(channels, taps[0].at, decoded)
        else:
            channels = plain_channels(m, format, words)
        matching = matches(m, self.key, channels, is_signed(format)) & mask
        if self.killed is None:
            return [m.select(matching, m.like(value, bits), value) for value, bits in zip(texels, black(format), strict=True)]
        for tap in taps:
            matching = matching if tap.weight is None else matching & (tap.weight > 0.0)
        self.killed.value = m.select(matching & self.sampled, m.like(self.killed.value, 1), self.killed.value)
        return texels

    def _chrominance(self, own: dict[str, Value], at: Value, decoded: Callable[[Value], list[Value]]) -> dict[str, Value]:
        """Cr and Cb of packed YUV: the second texel of two has the average of its neighbours' (BDW 1711-1714)."""
        m = self.m
        last = m.bitcast(broadcast_number(m, self.image.width, u32, at.lanes), i32) - 1
        beside, odd = decoded_channels(m, decoded(m.min(at + 1, last))), (at & 1) == 1
        return {name: m.select(odd, (own[name] + beside[name]) >> 1, own[name]) for name in "rb"}


def black(format: Format) -> list[int]:
    """The bits of red, green, blue and alpha of what replaces a texel that matches (KBL 22448-22453)."""
    return list(struct.unpack("4I", struct.pack("4f", *(YUV_BLACK if format.space == "yuv" else BLACK))))


def matches(m: Machine, key: ChromaKey, channels: dict[str, Value], signed: bool) -> Value:
    """The lanes whose channels, of 8 bits, are all in the range of a key."""
    found: Value | None = None
    for name, shift in SHIFTS.items():
        low, high = (_number(bound >> shift & 0xFF, signed) for bound in key)
        value = m.bitcast(channels[name], i32)
        inside = (value >= low) & (value <= high)
        found = inside if found is None else found & inside
    assert found is not None
    return found


def _number(byte: int, signed: bool) -> int:
    return -(byte & 0x7F) if signed and byte & 0x80 else byte & 0x7F if signed else byte


def is_signed(format: Format) -> bool:
    """Whether keys of a format are sign and magnitude."""
    return any(channel.type == "snorm" for channel in format.channels)


def plain_channels(m: Machine, format: Format, words: list[Value]) -> dict[str, Value]:
    """The channels of plain texels as keys have them; those that a format lacks are 0."""
    found, signed = {name: m.like(words[0], 0) for name in SHIFTS}, is_signed(format)
    for channel, at in texel.places(format):
        if channel.type == "void":
            continue
        raw = words[at // texel.DWORD_BITS] >> at % texel.DWORD_BITS & (1 << channel.bits) - 1
        found.update(dict.fromkeys(texel.COPIES.get(channel.name, channel.name), _widened(m, channel, raw, signed)))
    return found


def _widened(m: Machine, channel: FormatChannel, raw: Value, signed: bool) -> Value:
    if channel.type != "snorm":
        return _repeated(raw, channel.bits, BITS - signed)
    bits = channel.bits - 1
    value = m.bitcast(raw << texel.DWORD_BITS - channel.bits, i32) >> texel.DWORD_BITS - channel.bits
    size = _repeated(m.bitcast(m.min(m.absolute(value), (1 << bits) - 1), u32), bits, BITS - 1)
    return m.select(value < 0, m.bitcast(-m.bitcast(size, i32), u32), size)


def _repeated(raw: Value, bits: int, wanted: int) -> Value:
    """A channel with another number of bits, its highest ones repeated."""
    if bits >= wanted:
        return raw >> bits - wanted if bits > wanted else raw
    found, have = raw << wanted - bits, bits
    while have < wanted:
        found, have = found | (raw << wanted - bits) >> have, have + bits
    return found


def decoded_channels(m: Machine, values: list[Value]) -> dict[str, Value]:
    """The channels of texels that were decoded to floats."""
    return {name: m.convert(m.bitcast(value, f32) * 255.0 + 0.5, u32) for name, value in zip(texel.ORDER, values, strict=True)}

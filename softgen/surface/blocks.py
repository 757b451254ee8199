"""Compressed blocks: S3TC (BC1 to BC3) and RGTC (BC4, BC5), of 4x4 texels, and packed YUV, of 2x1; coded.py has the others.

A colour is a fraction of two colours of the block, in sixths; a value of a block of values one of two, in 35ths. Numerators are exact, and
divided once (public: Khronos data format specification 1.3, S3TC and RGTC).
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.formats import Format
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32, u64
from softgen.lanes.value import Value
from softgen.surface import coded, texel

COLOR_PARTS, VALUE_PARTS = 6, 35
WIDTHS = ((11, 5), (5, 6), (0, 5))  # of red, green and blue: lowest bit, bits

Decoder = Callable[[Machine, Format, list[Value], Value], list[Value]]


def compressed(format: Format) -> bool:
    """Whether texels are decoded here."""
    return _coding(format) in DECODERS or bool(format.coding) and coded.known(format)


def _coding(format: Format) -> str:
    """The name of a decoder: how a block is compressed, or that it is packed YUV."""
    return "yuv" if format.space == "yuv" and format.block == (2, 1) else format.coding


def block_of(m: Machine, texels: Value, size: int) -> Value:
    """The number of the block that a column or row of texels is in."""
    return texels >> size.bit_length() - 1 if size & size - 1 == 0 else m.divide_int(texels, m.like(texels, size))


def check(format: Format) -> None:
    """Raise Unsupported for formats that cannot be sampled."""
    if format.bits % 8:
        raise Unsupported(f"texels of format {format}, several in a byte: not yet simulated")
    if not texel.is_paletted(format) and not compressed(format):
        texel.check(format, reading=True)


def unpack(m: Machine, format: Format, words: list[Value], x: Value, y: Value) -> list[Value]:
    """Red, green, blue and alpha of the texel at a column and row of its block, as bits."""
    if (coding := _coding(format)) in DECODERS:
        found = DECODERS[coding](m, format, words, (y & 3) << 2 | (x & 3))
    else:
        wide, high = format.block
        found = coded.decode(m, format, words, x - block_of(m, x, wide) * wide, y - block_of(m, y, high) * high)
    if format.space == "srgb":
        found[:3] = [texel.linear(m, value) for value in found[:3]]
    return found


def _float(m: Machine, value: Value) -> Value:
    return m.convert(m.bitcast(value, i32), f32)


def _divided(m: Machine, value: Value, by: int) -> Value:
    return m.bitcast(texel.divided(m, value, by), u32)


def _colors(m: Machine, ends: Value, indices: Value, place: Value, four: Value | None) -> tuple[list[Value], Value | None]:
    """Red, green and blue, and where the texel is transparent; `four`: where blocks have four colours, everywhere if None."""
    index, black = indices >> (place << 1) & 3, None
    weight = m.select(index == 0, m.like(index, 6), m.select(index == 1, 0, m.select(index == 2, m.like(index, 4), 2)))
    if four is not None:
        weight, black = m.select(~four & (index == 2), 3, weight), ~four & (index == 3)
    parts = _float(m, weight)
    found = []
    for low, bits in WIDTHS:
        a, b = (_float(m, ends >> at & (1 << bits) - 1) for at in (low, low + 16))
        number = m.fma(a, parts, b * (float(COLOR_PARTS) - parts))
        number = number if black is None else m.select(black, 0.0, number)
        found.append(_divided(m, number, COLOR_PARTS * ((1 << bits) - 1)))
    return found, black


def _dxt1(m: Machine, format: Format, words: list[Value], place: Value) -> list[Value]:
    ends, one = words[0], m.like(words[0], texel.ONE)
    colors, black = _colors(m, ends, words[1], place, (ends & 0xFFFF) > (ends >> 16))
    transparent = any(channel.name == "a" for channel in format.channels)
    return [*colors, m.select(black, 0, one) if transparent and black is not None else one]


def _dxt3(m: Machine, format: Format, words: list[Value], place: Value) -> list[Value]:
    half = m.select(place >= 8, words[1], words[0])
    alpha = _divided(m, _float(m, half >> ((place & 7) << 2) & 15), 15)
    return [*_colors(m, words[2], words[3], place, None)[0], alpha]


def _values(m: Machine, low: Value, high: Value, place: Value, signed: bool) -> Value:
    """A block of values: two of them, and for each texel 3 bits that name one of eight."""
    held = m.convert(low, u64) | m.convert(high, u64) << 32
    index = m.convert(held >> m.convert(place * 3 + 16, u64), u32) & 7
    most, least = (127, -127) if signed else (255, 0)
    ends = [m.bitcast(low >> at & 0xFF, i32) for at in (0, 8)]
    if signed:
        ends = [m.max((end << 24) >> 24, least) for end in ends]
    eight = ends[0] > ends[1]
    step = m.bitcast(index, i32) - 1  # from the first value towards the second
    steps = m.select(eight, m.like(step, 7), 5)
    mixed = (ends[0] * (steps - step) + ends[1] * step) * m.select(eight, m.like(step, 5), 7)
    fixed = m.select(index == 6, m.like(step, VALUE_PARTS * least), VALUE_PARTS * most)
    found = m.select(~eight & (index >= 6), fixed, mixed)
    for number, end in enumerate(ends):
        found = m.select(index == number, end * VALUE_PARTS, found)
    return _divided(m, m.convert(found, f32), VALUE_PARTS * most)


def _dxt5(m: Machine, format: Format, words: list[Value], place: Value) -> list[Value]:
    return [*_colors(m, words[2], words[3], place, None)[0], _values(m, words[0], words[1], place, False)]


def _rgtc(m: Machine, format: Format, words: list[Value], place: Value) -> list[Value]:
    signed, zero = format.channels[0].type == "snorm", m.like(words[0], 0)
    found = [_values(m, words[at], words[at + 1], place, signed) for at in range(0, len(words), 2)]
    return [*found, *[zero] * (3 - len(found)), m.like(words[0], texel.ONE)]


def _yuv(m: Machine, format: Format, words: list[Value], place: Value) -> list[Value]:
    """Two texels with a Y each, and one Cr and one Cb for both: Cr as red, Y as green, Cb as blue (KBL 22447)."""
    found = {name: [at for channel, at in texel.places(format) if channel.name == name] for name in "yuv"}
    even = place & 1 == 0
    y = m.select(even, words[0] >> found["y"][0], words[0] >> found["y"][1])
    raw = [words[0] >> found["v"][0], y, words[0] >> found["u"][0]]
    return [*(_divided(m, _float(m, value & 0xFF), 0xFF) for value in raw), m.like(words[0], texel.ONE)]


DECODERS: dict[str, Decoder] = {"dxt1": _dxt1, "dxt3": _dxt3, "dxt5": _dxt5, "rgtc1": _rgtc, "rgtc2": _rgtc, "yuv": _yuv}

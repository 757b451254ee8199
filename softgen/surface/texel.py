"""Texels: channels in and out of their bits, as lane programs over 32-bit words (formats: bits/formats.py).

A channel is 32 bits of a lane: the bits of a float for unorm, snorm and float formats, an integer for the others.
"""

from __future__ import annotations

from softgen.bits.formats import Format, FormatChannel
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f16, f32, f64, i32, u16, u32
from softgen.lanes.value import Value

WORD = 32
ORDER = "rgba"
ONE = 0x3F800000
COPIES = {"l": "rgb", "i": "rgba"}  # luminance and intensity stand for several channels
WIDEST = {"unorm": 24, "snorm": 16, "uint": 32, "sint": 32, "float": 32, "ufloat": 11, "raw": 32, "void": 32}  # bits, by type
SMALL = {11: 4, 10: 5}  # unsigned floats by their bits: how far they stand below a half


ROOT = (0.35, 0.65, 5)  # of x^0.4: a line near it, and how often Newton's step makes it better


def check(format: Format, reading: bool = False) -> None:
    """Refuses what is no plain texel. Some can only be read."""
    names, spaces = ("rgbaxli", ("yuv",)) if reading else ("rgbax", ("srgb", "yuv"))
    plain = all(channel.bits <= WIDEST.get(channel.type, 0) and channel.name in names for channel in format.channels)
    if format.coding or format.space in spaces or format.block != (1, 1) or not format.bits or not plain:
        raise Unsupported(f"texels of format {format}: not yet simulated")


def places(format: Format) -> list[tuple[FormatChannel, int]]:
    """Channels with their lowest bits."""
    found, at = [], 0
    for channel in format.channels:
        found.append((channel, at))
        at += channel.bits
    return found


def is_whole(format: Format) -> bool:
    return any(channel.type in ("uint", "sint") for channel in format.channels)


# -- out of memory -------------------------------------------------------------------------------------------------


def unpack(m: Machine, format: Format, words: list[Value]) -> list[Value]:
    """Red, green, blue and alpha of texels; what a format lacks is zero, alpha one."""
    check(format, reading=True)
    found = {name: m.like(words[0], bits) for name, bits in missing(format).items()}
    for channel, at in places(format):
        if channel.type != "void":
            raw = words[at // WORD] >> at % WORD if at % WORD else words[at // WORD]
            value = _decoded(m, channel, raw if channel.bits == WORD else raw & (1 << channel.bits) - 1)
            if format.space == "srgb" and channel.name != "a":
                value = _linear(m, value)
            found.update(dict.fromkeys(COPIES.get(channel.name, channel.name), value))
    return [found[name] for name in ORDER]


def missing(format: Format) -> dict[str, int]:
    """What channels are that a format does not have: zero, alpha one (KBL 20968-20972)."""
    return {"r": 0, "g": 0, "b": 0, "a": 1 if is_whole(format) else ONE}


def _linear(m: Machine, value: Value) -> Value:
    """A channel of sRGB made linear: c / 12.92, and ((c + 0.055) / 1.055) ^ 2.4 above 0.04045; within one unit in the last place."""
    c = m.convert(m.bitcast(value, f32), f64)
    x = m.div(c + 0.055, 1.055)
    start, slope, steps = ROOT
    root, square = x * slope + start, x * x
    for _ in range(steps):
        fourth = root * root * (root * root)
        root = root - m.div(fourth * root - square, fourth * 5.0)
    found = m.select(c > 0.04045, square * root, m.div(c, 12.92))
    return m.bitcast(m.convert(found, f32), u32)


def _decoded(m: Machine, channel: FormatChannel, raw: Value) -> Value:
    if channel.type in ("uint", "raw") or channel.bits == WORD and channel.type in ("sint", "float"):
        return raw
    signed = m.bitcast(m.bitcast(raw << WORD - channel.bits, i32) >> WORD - channel.bits, u32) if channel.bits < WORD else raw
    if channel.type == "sint":
        return signed
    if channel.type == "unorm":
        return m.bitcast(m.div(m.convert(raw, f32), float((1 << channel.bits) - 1)), u32)
    if channel.type == "snorm":
        ratio = m.div(m.convert(m.bitcast(signed, i32), f32), float((1 << channel.bits - 1) - 1))
        return m.bitcast(m.select(ratio < -1.0, -1.0, ratio), u32)
    half = raw << SMALL[channel.bits] if channel.bits in SMALL else raw
    return m.bitcast(m.convert(m.bitcast(m.convert(half, u16), f16), f32), u32)


# -- into memory ---------------------------------------------------------------------------------------------------


def pack(m: Machine, format: Format, values: list[Value]) -> list[Value]:
    """The words of texels from red, green, blue and alpha; integers that do not fit end at the limits, floats are rounded."""
    check(format)
    words = [m.like(values[0], 0)] * -(-format.bits // WORD)
    for channel, at in places(format):
        if channel.type != "void":
            bits = _encoded(m, channel, values[ORDER.index(channel.name)])
            words[at // WORD] = words[at // WORD] | (bits << at % WORD if at % WORD else bits)
    return words


def _encoded(m: Machine, channel: FormatChannel, value: Value) -> Value:
    if channel.bits == WORD and channel.type in ("uint", "sint", "float", "raw"):
        return value
    most, all_ones = (1 << channel.bits - 1) - 1, (1 << channel.bits) - 1
    if channel.type == "uint":
        return m.select(value > all_ones, all_ones, value)
    if channel.type == "sint":
        return _clamped(m, m.bitcast(value, i32), -most - 1, most, all_ones)
    number = m.bitcast(value, f32)
    if channel.type in ("unorm", "snorm"):
        low = 0.0 if channel.type == "unorm" else -1.0
        number = m.select(m.is_nan(number), 0.0, number)
        number = m.select(number < low, low, m.select(number > 1.0, 1.0, number))
        scaled = m.round_even(number * float(all_ones if channel.type == "unorm" else most))
        return m.bitcast(m.convert(scaled, i32), u32) & all_ones
    if channel.bits in SMALL:  # no sign: what is below zero is zero; rounded toward zero
        small = m.convert(m.select(number < 0.0, 0.0, number), f16, "rtz")
        return m.convert(m.bitcast(small, u16), u32) >> SMALL[channel.bits] & all_ones
    return m.convert(m.bitcast(m.convert(number, f16), u16), u32)


def _clamped(m: Machine, value: Value, low: int, high: int, mask: int) -> Value:
    return m.bitcast(m.select(value < low, low, m.select(value > high, high, value)), u32) & mask

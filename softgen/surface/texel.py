"""Texel packing and unpacking as lane programs over 32-bit words (formats: bits/formats.py).

A channel is a 32-bit lane: the bits of a float for unorm, snorm and float formats, an integer for the others.
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits.formats import Format, FormatChannel
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f16, f32, f64, i32, u16, u32
from softgen.lanes.value import Memory, Value

DWORD_BITS = 32
ORDER = "rgba"
ONE = 0x3F800000
# Luminance and intensity are replicated to several channels, a palette has all of them; of YUV, Cr is red, Y green and Cb blue.
COPIES = {"l": "rgb", "i": "rgba", "v": "r", "y": "g", "u": "b", "p": "rgba"}
# The widest channels supported, in bits, by type
WIDEST = {"unorm": 24, "snorm": 16, "uint": 32, "sint": 32, "float": 32, "ufloat": 11, "raw": 32, "void": 32, "exponent": 5}
SMALL = {11: 4, 10: 5}  # width of an unsigned float -> the shift to the mantissa position of a half float
SHARED_BIAS = 15 + 9  # of an exponent that channels share, with the bits of their mantissas, which have no leading one
FLOAT_BIAS, MANTISSA = 127, 23  # of 32-bit floats


STEPS = {"unorm": 0, "snorm": 1}  # channel types that count steps: bits that are a sign
EXACT_BITS = 16
TABLE_BITS = 8
ROOT = (0.35, 0.65, 5)  # of x^0.4: a linear first approximation, and the number of Newton steps
CUBE_ROOT = (0.45, 0.6, 3)  # of x^(1/3) from 0.05 to 1: likewise
GAMMA_START = 0.0031308  # where the curved part of sRGB begins
ROUNDER, ROUNDER_REACH = 1.5 * (1 << 23), 1 << 22  # a float whose last bit is 1; integers that it has room for


def check(format: Format, reading: bool = False) -> None:
    """Raise Unsupported for formats that are not simulated; luminance, intensity and a shared exponent can only be read."""
    names = "rgbaxlie" if reading else "rgbax"
    plain = all(channel.bits <= WIDEST.get(channel.type, 0) and channel.name in names for channel in format.channels)
    if format.coding or format.space == "yuv" or format.block != (1, 1) or not format.bits or not plain:
        raise Unsupported(f"texels of format {format}: not yet simulated")


def places(format: Format) -> list[tuple[FormatChannel, int]]:
    """Channels with the positions of their lowest bits."""
    found, at = [], 0
    for channel in format.channels:
        found.append((channel, at))
        at += channel.bits
    return found


def is_integer(format: Format) -> bool:
    return any(channel.type in ("uint", "sint") for channel in format.channels)


# -- unpacking -----------------------------------------------------------------------------------------------------


def unpack(m: Machine, format: Format, words: list[Value], table: Memory | None = None) -> list[Value]:
    """Unpack red, green, blue and alpha; channels that the format lacks are 0, alpha 1. `table`: a LinearTable, where there is one."""
    check(format, reading=True)
    found = {name: m.like(words[0], bits) for name, bits in missing(format).items()}
    shared = _shared_scale(m, format, words)
    for channel, at in places(format):
        if channel.type not in ("void", "exponent"):
            raw = words[at // DWORD_BITS] >> at % DWORD_BITS if at % DWORD_BITS else words[at // DWORD_BITS]
            raw = raw if channel.bits == DWORD_BITS else raw & (1 << channel.bits) - 1
            curved = format.space == "srgb" and channel.name != "a"
            if curved and table is not None and channel.bits == TABLE_BITS:
                value = m.load(u32, table, raw * u32.bytes)
            elif shared is not None:
                value = m.bitcast(m.convert(m.bitcast(raw, i32), f32) * shared, u32)
            else:
                value = linear(m, decode_channel(m, channel, raw)) if curved else decode_channel(m, channel, raw)
            found.update(dict.fromkeys(COPIES.get(channel.name, channel.name), value))
    return [found[name] for name in ORDER]


def _shared_scale(m: Machine, format: Format, words: list[Value]) -> Value | None:
    """What the mantissas of a format with a shared exponent count, as f32; None for other formats."""
    for channel, at in places(format):
        if channel.type == "exponent":
            exponent = words[at // DWORD_BITS] >> at % DWORD_BITS & (1 << channel.bits) - 1
            return m.bitcast(exponent + (FLOAT_BIAS - SHARED_BIAS) << MANTISSA, f32)
    return None


def missing(format: Format) -> dict[str, int]:
    """Values of the channels that a format lacks: 0, alpha 1 (KBL 20968-20972)."""
    return {"r": 0, "g": 0, "b": 0, "a": 1 if is_integer(format) else ONE}


@cache
def linear_table() -> ctypes.Array[ctypes.c_uint32]:
    """The bits of linear values for all 8-bit values of an sRGB channel, for compiled programs."""
    from softgen.lanes.numpy.machine import NumpyMachine

    m, channel, numbers = NumpyMachine(), FormatChannel("r", "unorm", TABLE_BITS), range(1 << TABLE_BITS)
    return (ctypes.c_uint32 * len(numbers))(*linear(m, decode_channel(m, channel, m.constant(u32, numbers))).payload.tolist())


def linear(m: Machine, value: Value) -> Value:
    """Convert an sRGB channel to linear: c / 12.92, and ((c + 0.055) / 1.055) ^ 2.4 above 0.04045; within 1 ULP."""
    c = m.convert(m.bitcast(value, f32), f64)
    x = m.div(c + 0.055, 1.055)
    start, slope, steps = ROOT
    root, square = x * slope + start, x * x
    for _ in range(steps):
        fourth = root * root * (root * root)
        root = root - m.div(fourth * root - square, fourth * 5.0)
    found = m.select(c > 0.04045, square * root, m.div(c, 12.92))
    return m.bitcast(m.convert(found, f32), u32)


def is_paletted(format: Format) -> bool:
    """Whether texels are indices into a palette."""
    return any(channel.name == "p" for channel in format.channels)


def is_normalised(format: Format) -> bool:
    """Whether all channels are whole numbers of steps, linear from 0 or -1 to 1."""
    linear = not format.coding and format.space in ("linear", "") and not is_paletted(format)
    return linear and all(channel.type in STEPS or channel.type == "void" for channel in format.channels)


def is_finite(format: Format) -> bool:
    """Whether no texel is infinite or no number."""
    return all(channel.type in STEPS or channel.type == "void" for channel in format.channels)


def steps(channel: FormatChannel) -> int:
    """The number of steps from 0 to 1."""
    return (1 << channel.bits - STEPS[channel.type]) - 1


def step_counts(format: Format) -> list[int]:
    """The steps from 0 to 1 of red, green, blue and alpha; 1 for channels that a normalised format lacks."""
    found = dict.fromkeys(ORDER, 1)
    for channel in format.channels:
        if channel.type != "void":
            found.update(dict.fromkeys(COPIES.get(channel.name, channel.name), steps(channel)))
    return [found[name] for name in ORDER]


def unpack_steps(m: Machine, format: Format, words: list[Value]) -> list[Value]:
    """Unpack a normalised format: red, green, blue and alpha as floats that count steps."""
    check(format, reading=True)
    found = {name: m.constant(f32, 1.0 if bits else 0.0, words[0].lanes) for name, bits in missing(format).items()}
    for channel, at in places(format):
        if channel.type != "void":
            raw = words[at // DWORD_BITS] >> at % DWORD_BITS if at % DWORD_BITS else words[at // DWORD_BITS]
            raw = raw if at % DWORD_BITS + channel.bits == DWORD_BITS else raw & (1 << channel.bits) - 1
            signed = m.bitcast(m.bitcast(raw << DWORD_BITS - channel.bits, i32) >> DWORD_BITS - channel.bits, u32)
            found.update(dict.fromkeys(COPIES.get(channel.name, channel.name), _steps(m, channel, raw, signed)))
    return [found[name] for name in ORDER]


def _steps(m: Machine, channel: FormatChannel, raw: Value, signed: Value) -> Value:
    if channel.type == "unorm":
        return m.convert(m.bitcast(raw, i32), f32)
    return m.max(m.convert(m.bitcast(signed, i32), f32), float(-steps(channel)))


def divided(m: Machine, value: Value, by: int) -> Value:
    """Divide by a whole number: by multiplication and one correction, which rounds correctly for whole numbers of up to 16 bits."""
    if by == 1:
        return value
    if by >> EXACT_BITS:
        return m.div(value, float(by))
    ratio = m.constant(f32, 1.0 / by, value.lanes)
    first = value * ratio
    return m.fma(m.fma(first, m.like(first, float(-by)), value), ratio, first)


def decode_channel(m: Machine, channel: FormatChannel, raw: Value) -> Value:
    """A channel's number as bits: of a float, or of an integer."""
    if channel.type in ("uint", "raw") or channel.bits == DWORD_BITS and channel.type in ("sint", "float"):
        return raw
    above = DWORD_BITS - channel.bits
    signed = m.bitcast(m.bitcast(raw << above, i32) >> above, u32) if above else raw
    if channel.type == "sint":
        return signed
    if channel.type in STEPS:
        return m.bitcast(divided(m, _steps(m, channel, raw, signed), steps(channel)), u32)
    half = raw << SMALL[channel.bits] if channel.bits in SMALL else raw
    return m.bitcast(m.convert(m.bitcast(m.convert(half, u16), f16), f32), u32)


# -- packing -------------------------------------------------------------------------------------------------------


def pack(m: Machine, format: Format, values: list[Value]) -> list[Value]:
    """Pack red, green, blue and alpha into the words of texels; integers are clamped, floats rounded."""
    check(format)
    words = [m.like(values[0], 0)] * -(-format.bits // DWORD_BITS)
    for channel, at in places(format):
        if channel.type != "void":
            value = values[ORDER.index(channel.name)]
            bits = _encoded(m, channel, _gamma(m, value) if format.space == "srgb" and channel.name != "a" else value)
            words[at // DWORD_BITS] = words[at // DWORD_BITS] | (bits << at % DWORD_BITS if at % DWORD_BITS else bits)
    return words


def _encoded(m: Machine, channel: FormatChannel, value: Value) -> Value:
    if channel.bits == DWORD_BITS and channel.type in ("uint", "sint", "float", "raw"):
        return value
    most, all_ones = (1 << channel.bits - 1) - 1, (1 << channel.bits) - 1
    if channel.type == "uint":
        return m.select(value > all_ones, all_ones, value)
    if channel.type == "sint":
        return _clamped(m, m.bitcast(value, i32), -most - 1, most, all_ones)
    number = m.bitcast(value, f32)
    if channel.type in ("unorm", "snorm"):
        return _normalised(m, number, channel.type == "snorm", all_ones if channel.type == "unorm" else most) & all_ones
    if channel.bits in SMALL:  # unsigned: negative values become 0; rounded toward zero
        small = m.convert(m.select(number < 0.0, 0.0, number), f16, "rtz")
        return m.convert(m.bitcast(small, u16), u32) >> SMALL[channel.bits] & all_ones
    return m.convert(m.bitcast(m.convert(number, f16), u16), u32)


def _normalised(m: Machine, number: Value, signed: bool, scale: int) -> Value:
    """A number from 0 or -1 to 1 as a multiple of 1 / scale, rounded to nearest even; NaN is 0. Adding ROUNDER leaves small integers in the
    low bits of a float."""
    if signed:
        number = m.select(m.is_nan(number), 0.0, number)
    number = m.min(m.max(number, m.like(number, -1.0 if signed else 0.0)), m.like(number, 1.0))
    scaled = number * float(scale)
    if scale < ROUNDER_REACH:
        return m.bitcast(scaled + ROUNDER, u32)
    return m.bitcast(m.convert(m.round_even(scaled), i32), u32)


def _gamma(m: Machine, value: Value) -> Value:
    """Convert a linear channel to sRGB: 12.92 c, and 1.055 c^(1/2.4) - 0.055 from 0.0031308 on.

    c^(5/12) is the product of the fourth root and the cube root of the square root; a Newton step of g^12 = c^5 makes it exact to 1e-12.
    """
    number = m.bitcast(value, f32)
    c = m.min(m.max(number, m.like(number, 0.0)), m.like(number, 1.0))
    half = m.sqrt(m.max(c, m.like(c, GAMMA_START)))
    start, slope, steps = CUBE_ROOT
    root = half * slope + start
    for _ in range(steps):
        square = root * root
        root = root - m.div(square * root - half, square * 3.0)
    near, fine = m.convert(m.sqrt(half) * root, f64), m.convert(m.max(c, m.like(c, GAMMA_START)), f64)
    second = near * near
    fourth, power = second * second, fine * fine
    eleventh = fourth * fourth * second * near
    found = near - m.div(eleventh * near - power * power * fine, eleventh * 12.0)
    curved = m.convert(found * 1.055 - 0.055, f32)
    return m.bitcast(m.select(c < GAMMA_START, c * 12.92, curved), u32)


def _clamped(m: Machine, value: Value, low: int, high: int, mask: int) -> Value:
    return m.bitcast(m.select(value < low, low, m.select(value > high, high, value)), u32) & mask

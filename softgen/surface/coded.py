"""Compressed blocks that C code decodes: BPTC, ETC, EAC, FXT1 and ASTC (coded.h, astc.c). Lane programs call it on every machine; it
returns the numbers that the channels of the format hold."""

from __future__ import annotations

import ctypes
from functools import cache, partial

from softgen.bits.formats import Format
from softgen.lanes.host_function import HostFunction
from softgen.lanes.machine import Machine
from softgen.lanes.types import f16, f32, i32, u16, u32
from softgen.lanes.value import Value
from softgen.library import load
from softgen.surface import astc_h, texel
from softgen.surface.astc_h import CHANNELS, HDR, LDR, SRGB

MODULE = "softgen.surface._coded"
# Decoder by format
NAMES = {
    "BC7_UNORM": "bc7", "BC7_UNORM_SRGB": "bc7", "BC6H_SF16": "bc6h_signed", "BC6H_UF16": "bc6h_unsigned",
    "ETC1_RGB8": "etc1", "ETC2_RGB8": "etc2", "ETC2_SRGB8": "etc2", "ETC2_RGB8_PTA": "etc2_punchthrough",
    "ETC2_SRGB8_PTA": "etc2_punchthrough", "ETC2_EAC_RGBA8": "etc2_alpha", "ETC2_EAC_SRGB8_A8": "etc2_alpha", "EAC_R11": "eac",
    "FXT1": "fxt1", "EAC_RG11": "eac_two", "EAC_SIGNED_R11": "eac_signed", "EAC_SIGNED_RG11": "eac_signed_two",
}  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    return load(MODULE, astc_h)


def _find(name: str) -> int:
    address = ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    assert address
    return address


FUNCTIONS = {name: HostFunction(f"surface_{name}", partial(_find, f"surface_{name}")) for name in sorted(set(NAMES.values()))}


ASTC = HostFunction("surface_astc", partial(_find, "surface_astc"))
HIGH_RANGE = "ASTC_HDR"  # begins the names of formats
WHOLE = 0xFFFF  # 1.0


def known(format: Format) -> bool:
    """Whether texels of a format are decoded here."""
    return format.name in NAMES or format.coding == "astc"


def _astc(m: Machine, format: Format, words: list[Value], x: Value, y: Value) -> list[Value]:
    """Of sRGB formats the top 8 bits count; others are half floats, rounded toward zero (KHR_texture_compression_astc_hdr)."""
    profile = SRGB if format.space == "srgb" else HDR if format.name.startswith(HIGH_RANGE) else LDR
    numbers = [m.like(x, number) for number in (*format.block, profile)]
    held = m.host(ASTC, [*words, x, y, *numbers], CHANNELS)
    if profile == HDR:
        return [m.bitcast(m.convert(m.bitcast(m.convert(value, u16), f16), f32), u32) for value in held]
    if profile == SRGB:
        return [texel.decode_channel(m, channel, value >> 8) for channel, value in zip(format.channels, held, strict=True)]
    halves = [m.convert(m.convert(m.bitcast(value, i32), f32) * (1 / (WHOLE + 1)), f16, "rtz") for value in held]
    return [m.select(value == WHOLE, texel.ONE, m.bitcast(m.convert(half, f32), u32)) for value, half in zip(held, halves, strict=True)]


def decode(m: Machine, format: Format, words: list[Value], x: Value, y: Value) -> list[Value]:
    """Red, green, blue and alpha of texels, by their places in the block, as bits; not yet linear where the format is sRGB."""
    if format.name not in NAMES:
        return _astc(m, format, words, x, y)
    held = m.host(FUNCTIONS[NAMES[format.name]], [*words, x, y], CHANNELS)
    found = {name: m.like(words[0], bits) for name, bits in texel.missing(format).items()}
    for channel in format.channels:
        found[channel.name] = texel.decode_channel(m, channel, held[texel.ORDER.index(channel.name)])
    return [found[name] for name in texel.ORDER]

"""Shadow comparison: texels compared with the reference of a message (sample_c)."""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.formats import Format
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, f64
from softgen.lanes.value import Value
from softgen.surface import texel

COMPARISONS: dict[str, Callable[[Value, Value], Value]] = {
    "less": lambda a, b: a < b, "equal": lambda a, b: a == b, "lequal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "notequal": lambda a, b: a != b, "gequal": lambda a, b: a >= b,
}  # fmt: skip
FIXED = ("always", "never")  # comparisons that do not look at texels
EXACT_BITS = 24  # of whole numbers that floats hold


def in_steps(format: Format, name: str) -> bool:
    """Whether numbers of steps are compared in place of quotients, which saves a division a texel: different numbers of up to 24 bits have
    different quotients, in the same order. Other channels must be constants, as they are filtered."""
    channels = [channel for channel in format.channels if channel.type != "void"]
    one = len(channels) == 1 and channels[0].name == "r" and channels[0].type == "unorm" and channels[0].bits <= EXACT_BITS
    return one and name not in FIXED and format.space != "srgb" and not format.coding


def quantized(m: Machine, format: Format, reference: Value, steps: bool = False) -> Value:
    """A reference as texels of a normalised format have it: between 0 and 1, the nearest step, of two the lower one (public: piglit's
    depth-tex-compare passes on real hardware; it compares 0.5 with 0x7fffff, which Mesa stores for 0.5). `steps`: their number."""
    channel = format.channels[0]
    if channel.type != "unorm":
        return reference
    count = (1 << channel.bits) - 1
    wide = m.convert(m.select(reference > 0.0, m.min(reference, m.like(reference, 1.0)), m.like(reference, 0.0)), f64)
    number = m.convert(m.ceil(wide * float(count) - 0.5), f32)
    return number if steps else texel.divided(m, number, count)


def compared(m: Machine, name: str, values: list[Value], reference: Value) -> list[Value]:
    """Red is 0 where the comparison holds, else 1 (KBL 22478-22492; public: Mesa iris_state.c, translate_shadow_func)."""
    if name in FIXED:
        return [m.like(values[0], float(name == "never")), *values[1:]]
    return [m.select(COMPARISONS[name](values[0], reference), 0.0, m.like(values[0], 1.0)), *values[1:]]

"""Coordinates to texel numbers.

A coordinate is first brought near the picture and scaled to texels; then it is a number with 8 bits of fraction, rounded or cut as the
sampler state says (KBL 22602-22652; public: Mesa anv, subTexelPrecisionBits); last, texels outside the picture are mapped into it.
Where the manuals are silent, repeated and mirrored coordinates are reduced as OpenCL C has it (public: OpenCL 3.0, 8.2).
"""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Value

FRACTION = 8
UNIT, HALF = 1 << FRACTION, 1 << FRACTION - 1
FAR = 64.0  # texels outside a picture that are as good as any further away: more than offsets reach
# Added to a whole number from -2^15 to 2^23 - 2^15, this gives a float whose bits are ORIGIN_BITS plus the number: every texel near a picture
# of 2^14 texels. A conversion costs four times as much, for numbers that do not fit.
ORIGIN, ORIGIN_BITS = float(2**23 + 2**15), 0x4B008000
MODES = ("wrap", "mirror", "clamp", "clamp_border", "mirror_once", "half_border", "mirror_101")


def check(mode: str) -> None:
    if mode not in MODES:
        raise Unsupported(f"coordinates with address mode {mode}: not yet simulated")


def scaled(m: Machine, mode: str, normalised: bool, u: Value, size: Value, offset: bool = False) -> Value:
    """A coordinate in texels; `size` is i32. What is no number is zero. `offset`: a texel offset is added to it, which counts before the
    image is mirrored (public: OpenGL, texture lookup functions)."""
    check(mode)
    width = m.convert(size, f32)
    if normalised:
        if mode == "wrap":
            u = u - m.floor(u)
        elif mode == "mirror":
            u = u - m.round_even(u * 0.5) * 2.0
        if mode in ("mirror", "mirror_once") and not offset:
            u = m.absolute(u)
        u = u * width
    u = m.select(m.is_nan(u), 0.0, u)
    if mode == "half_border":
        return _between(m, u, m.like(u, 0.0), width)
    return _between(m, u, m.like(u, -FAR), width + FAR) if mode in ("clamp", "clamp_border", "mirror_once") else u


def brings_near(mode: str, normalised: bool, offset: bool = False) -> bool:
    """Whether `scaled` leaves no coordinate further than FAR texels from the picture."""
    if mode in ("wrap", "mirror"):
        return normalised and not (mode == "mirror" and offset)
    return mode != "mirror_101"


def _between(m: Machine, u: Value, low: Value, high: Value) -> Value:
    u = m.select(u < low, low, u)
    return m.select(u > high, high, u)


def fixed(m: Machine, u: Value, rounds: bool, near: bool) -> Value:
    """Texels with 8 bits of fraction, i32. `near`: the coordinate was brought near."""
    far = u * float(UNIT)
    whole = m.floor(far + 0.5 if rounds else far)
    return m.bitcast(whole + ORIGIN, i32) - ORIGIN_BITS if near else m.convert(whole, i32)


def texel(m: Machine, mode: str, at: Value, size: Value, smooth: bool, near: bool, first: bool = False) -> tuple[Value, Value | None]:
    """The texel inside the image that a texel number maps to, and where it is the border instead.

    `smooth`: neighbours count too; `near`: it is at most one texel outside, if its coordinate was brought near at all: left of the image
    where it is the `first` of two, otherwise right of it."""
    last = size - 1
    if near and mode == "wrap":  # of texel numbers one of which is inside, it is the smaller one as unsigned
        return m.bitcast(m.min(m.bitcast(at, u32), m.bitcast(at + size if first else at - size, u32)), i32), None
    if near and mode == "mirror":  # beyond an edge, the edge repeats
        mode = "clamp"
    if mode == "wrap":
        return _modulo(m, at, size), None
    if mode == "mirror":
        turn = _modulo(m, at, size + size)
        return m.select(turn < size, turn, size + last - turn), None
    if mode == "mirror_101":
        period = m.select(last > 0, last + last, 1)
        turn = _modulo(m, at, period)
        return m.select(turn < size, turn, period - turn), None
    if mode == "mirror_once":
        at = m.select(at < 0, ~at, at)
    inside = m.select(at < 0, 0, m.select(at > last, last, at))
    # Mesa has nearest texels of GL_CLAMP in this mode too, and there the edge is meant (public: Mesa brw_sampler_state.c).
    if mode == "clamp_border" or mode == "half_border" and smooth:
        return inside, (at < 0) | (at > last)
    return inside, None


def _modulo(m: Machine, a: Value, b: Value) -> Value:
    rest = m.remainder_int(a, b)
    return m.select(rest < 0, rest + b, rest)

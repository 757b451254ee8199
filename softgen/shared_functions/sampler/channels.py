"""Channels of the sampler's answers: what channel selects make of a texel."""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.surface import texel
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage


def selected(m: Machine, image: SurfaceImage, values: list[Value]) -> list[Value]:
    """What a surface's channel selects make of red, green, blue and alpha (KBL 20098-20151)."""
    if image.select == CHANNEL_NAMES:
        return values
    fixed = {"zero": 0, "one": 1 if texel.is_integer(image.format) else texel.ONE}
    found = []
    for name in image.select:
        if name not in fixed and name not in CHANNEL_NAMES:
            raise Unsupported(f"a surface with channel select {name}: not yet simulated")
        found.append(values[CHANNEL_NAMES.index(name)] if name in CHANNEL_NAMES else m.like(values[0], fixed[name]))
    return found


def nothing(m: Machine, lanes: int) -> list[Value]:
    return [m.constant(u32, 0, lanes)] * 4

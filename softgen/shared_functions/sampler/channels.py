"""Surfaces that can be sampled, and channels of the sampler's answers: what channel selects make of a texel."""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.surface import blocks, texel
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage

AXES = {"1d": 1, "2d": 2, "3d": 3, "cube": 2}


def check_sampled(image: SurfaceImage) -> None:
    """Raise Unsupported for surfaces that are not sampled."""
    if image.kind not in AXES:
        raise Unsupported(f"sampling a {image.kind} surface: not yet simulated")
    if image.quilt != (1, 1):
        raise Unsupported(f"sampling a quilted texture, {image.quilt[0]} by {image.quilt[1]} slices (KBL 20300-20342): not yet simulated")
    blocks.check(image.format)


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

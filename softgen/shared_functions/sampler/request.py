"""What a sampler message asks for: coordinates, level of detail and reference; and the texels that its filter weighs."""

from __future__ import annotations

from dataclasses import dataclass

from softgen.lanes.value import Value


@dataclass(frozen=True)
class SampleRequest:
    """What a message asks for, as f32: coordinates, and where the level of detail comes from if not from them. Offsets are i32."""

    places: list[Value]  # u v r ai
    lod: Value | None = None
    bias: Value | None = None
    gradients: list[tuple[Value, Value]] | None = None  # d/dx and d/dy of u, v and r
    reference: Value | None = None
    offsets: list[Value] | None = None
    lowest: Value | None = None  # level of detail


@dataclass(frozen=True)
class SamplePosition:
    """Coordinates along the axes of an image, and the slice."""

    places: list[Value]
    slice: Value  # u32


@dataclass(frozen=True)
class Tap:
    """A texel along one axis. Without a weight it is the only one."""

    at: Value
    weight: Value | None
    border: Value | None


@dataclass(frozen=True)
class EdgeTexels:
    """The four texels around a place on a cube map: left and right of the upper row, then of the lower one."""

    texels: list[list[Value]]
    corners: list[Value]  # where the cube lacks the texel, and there is some other one
    right: Value  # the weight of the right texels
    down: Value

"""Level of detail: from coordinates of subspans, gradients or messages to the mip levels that are sampled.

The four lanes 4k to 4k+3 are a subspan: upper left, upper right, lower left, lower right. Their coordinates count whether the lanes are on
or not. The scale is the longer of the two gradients in texels (public: Vulkan, "Scale Factor Operation"), its logarithm a polynomial whose
error is below 1/256; levels of detail from coordinates are rounded to 1/256.

Order: bias, pre-clamp, the choice of filter, clamp (KBL 22257-22271, 22368-22423; public: Intel PRM, "LOD computation pseudocode").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Value
from softgen.shared_functions.sampler.state import Sampling
from softgen.surface.image import SurfaceImage, broadcast_number

LOD_UNIT = 256.0
SUBSPAN = 4
MARGINS = {"full": 0.0, "high": 0.125, "medium": 0.25, "low": 0.375}  # by trilinear filter quality (KBL 22653-22675)
EXPONENT, FRACTION, ONE = 127, 23, 0x3F800000
# log2(1 + x) = x + x (1 - x) (c0 + c1 x + …): exact where x is 0 or 1, else within 0.00002
LOG2 = (0.44191693, -0.2671786, 0.14842509, -0.04514816)


@dataclass(frozen=True)
class Levels:
    """The levels of a sample, counted from level 0 of the whole surface (u32); None: there is one only.

    `part` is what the level after it weighs; None where only one level counts."""

    near: Value | None
    part: Value | None = None


def logarithm(m: Machine, value: Value) -> Value:
    """log2 of positive floats."""
    bits = m.bitcast(value, u32)
    exponent = m.convert(m.bitcast(bits >> FRACTION, i32) - EXPONENT, f32)
    x = m.bitcast(bits & (1 << FRACTION) - 1 | ONE, f32) - 1.0
    series = m.like(x, LOG2[-1])
    for coefficient in reversed(LOG2[:-1]):
        series = m.fma(series, x, m.like(x, coefficient))
    return exponent + m.fma(x * (1.0 - x), series, x)


def from_gradients(m: Machine, gradients: list[tuple[Value, Value]], sizes: list[Value]) -> Value:
    """The level of detail of d/dx and d/dy for each axis; `sizes` are those of the first level, f32."""
    across, down = lengths(m, gradients, sizes)
    return rounded(m, logarithm(m, m.max(across, down)) * 0.5)


def rounded(m: Machine, lod: Value) -> Value:
    """To a 256th."""
    return m.floor(lod * LOD_UNIT + 0.5) * (1 / LOD_UNIT)


def lengths(m: Machine, gradients: list[tuple[Value, Value]], sizes: list[Value]) -> tuple[Value, Value]:
    """The squares of how long d/dx and d/dy are, in texels."""
    squares: list[Value] = []
    for side in (0, 1):
        total = None
        for gradient, size in zip(gradients, sizes, strict=True):
            length = gradient[side] * size
            total = length * length if total is None else m.fma(length, length, total)
        assert total is not None
        squares.append(total)
    return squares[0], squares[1]


def corners(m: Machine, places: Sequence[Value]) -> list[list[Value]]:
    """Coordinates of the upper left, upper right and lower left pixel of each lane's subspan."""
    lanes = range(places[0].lanes)
    return [[m.shuffle(place, [lane // SUBSPAN * SUBSPAN + corner for lane in lanes]) for place in places] for corner in (0, 1, 2)]


def differences(m: Machine, places: list[Value]) -> list[tuple[Value, Value]]:
    """d/dx and d/dy of coordinates, the same for all lanes of a subspan."""
    return [(right - origin, below - origin) for origin, right, below in zip(*corners(m, places), strict=True)]


class LevelChoice:
    """Chooses levels and filters for an image and a sampler state."""

    def __init__(self, m: Machine, image: SurfaceImage, how: Sampling, lanes: int) -> None:
        self.m, self.image, self.how, self.lanes = m, image, how, lanes
        held = how.run_time or how.numbers(image.format)
        lods = tuple(broadcast_number(m, number, f32, lanes) for number in held.lods)
        self._numbers = held._replace(lods=lods, bias=broadcast_number(m, held.bias, f32, lanes))

    @property
    def needed(self) -> bool:
        """Whether the level of detail decides anything."""
        return not self.how.same or self.image.mipmapped and self.how.mip != "none"

    def biased(self, lod: Value, bias: Value | None) -> Value:
        """With the sampler's bias and the message's; what is no number is zero."""
        m = self.m
        lod = lod if bias is None else lod + bias
        lod = lod + self._numbers.bias if self.how.bias else lod
        return m.select(m.is_nan(lod), 0.0, lod)

    def _between(self, lod: Value) -> Value:
        """If the lowest level is above the highest, the lowest counts (KBL 22400-22402)."""
        low, high = self._numbers.lods
        m = self.m
        lod = m.select(lod > high, high, lod)
        return m.select(lod < low, low, lod)

    def magnified(self, lod: Value) -> Value:
        """Decided before the level is clamped, unless the state says otherwise (KBL 22259-22267, 19272-19282)."""
        base = (self.image.base_level or self.how.base_level) / 2
        return (self._between(lod) if self.how.preclamp else lod) <= base

    def last(self) -> Value:
        """The number of the last level, counted from the first that messages address."""
        return self.m.convert(broadcast_number(self.m, self.image.levels, u32, self.lanes) - 1, f32)

    def lowest(self) -> Value:
        """The lowest level of detail: the sampler's, or the resource's; Surface Min LOD is 0."""
        low: Value = self._numbers.lods[0]
        return low

    def clamped(self, lod: Value) -> Value:
        """Between the limits of the sampler, of the resource, and the levels that there are."""
        m, last = self.m, self.last()
        lod = self._between(lod)
        if self.image.resource_lod:
            low = self.image.resource_lod / LOD_UNIT - m.convert(broadcast_number(m, self.image.level, u32, self.lanes), f32)
            lod = m.max(lod, low)
        return m.max(m.min(lod, last), 0.0)

    def lowest_level(self) -> Levels:
        """The level without mip mapping: that of the lowest LOD (KBL 22290)."""
        if not self.image.mipmapped:
            return Levels(None)
        return self._absolute(self.m.floor(self.clamped(self.lowest())))

    def levels(self, lod: Value | None) -> Levels:
        """The levels of lanes that are minified, or magnified with a mip filter."""
        m, how = self.m, self.how
        if not self.image.mipmapped:
            return Levels(None)
        if how.mip == "none" or lod is None:
            return self.lowest_level()
        level = self.clamped(lod)
        if not how.mag_mips and self._differs:
            level = m.select(self.magnified(lod), m.floor(self.clamped(self.lowest())), level)
        if how.mip == "nearest":
            return self._absolute(m.floor(level + 0.5))
        near = m.floor(level)
        part = m.floor((level - near) * LOD_UNIT) * (1 / LOD_UNIT)
        if margin := MARGINS[how.quality]:  # a level that contributes less is left out
            near = m.select(part > 1.0 - margin, near + 1.0, near)
            part = m.select((part < margin) | (part > 1.0 - margin), 0.0, part)
        return self._absolute(near, part)

    @property
    def _differs(self) -> bool:
        """Whether magnified lanes would have another level without a mip filter (KBL 22527-22536)."""
        return bool(self.how.lods[0] % int(LOD_UNIT) or self.how.base_level or self.image.base_level or self.image.resource_lod)

    def _absolute(self, level: Value, part: Value | None = None) -> Levels:
        m = self.m
        return Levels(m.convert(level, u32) + broadcast_number(m, self.image.level, u32, self.lanes), part)

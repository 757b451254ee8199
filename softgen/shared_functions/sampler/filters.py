"""Filtering: the texels of a sample and their weights.

Linear weights have 8 bits; a sum of texels is made of fused multiply-adds in 32-bit floats, in the order of the texels. A texel that
weighs nothing does not count, even if it is no number. Integers are not filtered: the state must say nearest for them (KBL 22336-22340).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.sampler import address
from softgen.shared_functions.sampler.state import Sampling
from softgen.surface import texel
from softgen.surface.fetch import fetch
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage, broadcast_number

AXES = {"1d": 1, "2d": 2, "3d": 3}
LOD_UNIT = 256.0


@dataclass(frozen=True)
class Tap:
    """A texel along one axis. Without a weight it is the only one."""

    at: Value
    weight: Value | None
    border: Value | None


class ImageSampler:
    """Samples an image for some lanes. `lod` is the level that the message asks for, None where it is unknown; offsets are texels."""

    def __init__(self, m: Machine, image: SurfaceImage, how: Sampling, memory: Region, mask: Value) -> None:
        if image.kind not in AXES:
            raise Unsupported(f"sampling a {image.kind} surface: not yet simulated")
        texel.check(image.format, reading=True)
        self.m, self.image, self.how, self.memory, self.mask = m, image, how, memory, mask
        self.lanes, self.axes = mask.lanes, AXES[image.kind]
        self.whole = texel.is_integer(image.format)

    def sample(self, coordinates: list[Value], lod: Value | None, offsets: list[Value] | None = None) -> list[Value]:
        """Red, green, blue and alpha as bits."""
        m, how = self.m, self.how
        zero = m.constant(f32, 0.0, self.lanes)
        places = [*coordinates, *[zero] * 4][: self.axes + self.image.is_array]
        if lod is not None:
            lod = m.select(m.is_nan(lod), 0.0, lod)
        levels = self._levels(lod)
        if how.same:
            return self._levelled(places, offsets, levels, how.mag, how.mag_rounds)
        larger = self._magnified(lod)
        found = [self._levelled(places, offsets, levels, *way) for way in ((how.mag, how.mag_rounds), (how.min, how.min_rounds))]
        return [m.select(larger, a, b) for a, b in zip(*found, strict=True)]

    # -- levels -----------------------------------------------------------------------------------------------------------

    def _known(self, lod: Value | None) -> Value:
        if lod is None:
            raise Unsupported("a message whose level of detail follows from neighbouring lanes: not yet simulated")
        return lod

    def _clamped(self, lod: Value) -> Value:
        """If the lowest level is above the highest, the lowest counts (KBL 22400-22402)."""
        low, high = (level / LOD_UNIT for level in self.how.lods)
        m = self.m
        lod = m.select(lod > high, high, lod)
        return m.select(lod < low, low, lod)

    def _magnified(self, lod: Value | None) -> Value:
        """Decided before the level is clamped, unless the state says otherwise (KBL 22259-22267, 19272-19282)."""
        known = self._known(lod)
        base = (self.image.base_level or self.how.base_level) / 2
        return (self._clamped(known) if self.how.preclamp else known) <= base

    def _levels(self, lod: Value | None) -> list[tuple[Value | None, Value | None]]:
        """Levels (u32), each with what it weighs. None: the only one there is."""
        m, one, how = self.m, self.image, self.how
        if one.levels == 1:
            return [(None if not one.level else m.constant(u32, 0, self.lanes), None)]
        last = float(one.levels - 1)
        if how.mip == "none":
            return [(m.constant(u32, min(how.lods[0] >> 8, one.levels - 1), self.lanes), None)]
        level = self._clamped(self._known(lod))
        level = m.select(level > last, last, level)
        if how.mip == "nearest":
            return [(m.convert(m.floor(level + 0.5), u32), None)]
        near = m.floor(level)
        part = m.floor((level - near) * LOD_UNIT) * (1 / LOD_UNIT)
        far = m.select(near < last, near + 1.0, near)
        return [(m.convert(near, u32), 1.0 - part), (m.convert(far, u32), part)]

    def _levelled(self, places: list[Value], offsets: list[Value] | None, levels: list[tuple[Value | None, Value | None]], way: str,
                  rounds: tuple[bool, ...]) -> list[Value]:  # fmt: skip
        found = [(self._filtered(places, offsets, level, way, rounds), weight) for level, weight in levels]
        first, weight = found[0]
        if weight is None or self.whole:
            return first
        total: list[Value | None] = [None] * 4
        for values, weight in found:
            assert weight is not None
            total = [self._add(so_far, value, weight) for so_far, value in zip(total, values, strict=True)]
        return [self.m.bitcast(one, u32) for one in total if one is not None]

    # -- one level --------------------------------------------------------------------------------------------------------

    def _filtered(self, places: list[Value], offsets: list[Value] | None, level: Value | None, way: str,
                  rounds: tuple[bool, ...]) -> list[Value]:  # fmt: skip
        smooth = way == "linear" and not self.whole
        axes = [list(self._taps(axis, places[axis], None if offsets is None else offsets[axis], level, smooth, rounds[axis]))
                for axis in range(self.axes)]  # fmt: skip
        layer = [self._layer(places[self.axes])] if self.image.is_array else []
        total: list[Value | None] = [None] * 4
        for taps in product(*reversed(axes)):  # u fastest
            values = self._texel(taps[::-1], layer, level)
            if not smooth:
                return values
            weight = self._weight(taps)
            total = [self._add(so_far, value, weight) for so_far, value in zip(total, values, strict=True)]
        return [self.m.bitcast(one, u32) for one in total if one is not None]

    def _taps(self, axis: int, u: Value, offset: Value | None, level: Value | None, smooth: bool, rounds: bool) -> Iterator[Tap]:
        m, mode = self.m, self.how.modes[axis]
        size, near = self._extent(axis, level), self.how.normalised and offset is None
        far = address.fixed(m, address.scaled(m, mode, self.how.normalised, u, size), rounds)
        if smooth:
            far = far - address.HALF
        first = far >> address.FRACTION
        first = first if offset is None else first + offset
        if not smooth:
            at, border = address.texel(m, mode, first, size, False, near)
            yield Tap(at, None, border)
            return
        part = m.convert(far & address.UNIT - 1, f32) * (1 / address.UNIT)
        for at, weight in ((first, 1.0 - part), (first + 1, part)):
            at, border = address.texel(m, mode, at, size, True, near)
            yield Tap(at, weight, border)

    def _extent(self, axis: int, level: Value | None) -> Value:
        """Texels along an axis."""
        m, full = self.m, broadcast_number(self.m, (self.image.width, self.image.height, self.image.depth)[axis], i32, self.lanes)
        if level is None:
            return full
        less = full >> (m.bitcast(level, i32) + self.image.level)
        return m.select(less > 1, less, 1)

    def _layer(self, r: Value) -> Value:
        """The nearest slice there is (public: OpenCL 3.0, 8.3.1)."""
        m = self.m
        r = m.round_even(m.select(m.is_nan(r), 0.0, r))
        last = m.convert(broadcast_number(m, self.image.depth, i32, self.lanes) - 1, f32)
        r = m.select(r < 0.0, 0.0, m.select(r > last, last, r))
        return m.convert(r, u32)

    def _weight(self, taps: tuple[Tap, ...]) -> Value:
        """Products of 8-bit weights are exact."""
        found = taps[0].weight
        assert found is not None
        for tap in taps[1:]:
            assert tap.weight is not None
            found = found * tap.weight
        return found

    def _texel(self, taps: tuple[Tap, ...], layer: list[Value], level: Value | None) -> list[Value]:
        m = self.m
        places = [m.bitcast(tap.at, u32) for tap in taps]
        mask, border = self.mask, None
        for tap in taps:
            if tap.border is not None:
                border = tap.border if border is None else border | tap.border
        if border is not None:
            mask = mask & ~border
        found = fetch(m, self.image, self.memory, places + layer, level, mask)
        if border is None:
            return found
        return [m.select(border, bits, value) for bits, value in zip(self.how.outside(self.image.format), found, strict=True)]

    def _add(self, so_far: Value | None, bits: Value, weight: Value) -> Value:
        m, value = self.m, self.m.bitcast(bits, f32)
        value = m.select(weight > 0.0, value, 0.0)
        return value * weight if so_far is None else m.fma(value, weight, so_far)


def selected(m: Machine, image: SurfaceImage, values: list[Value]) -> list[Value]:
    """What a surface's channel selects make of red, green, blue and alpha (KBL 20098-20151)."""
    if image.select == CHANNEL_NAMES:
        return values
    whole = texel.is_integer(image.format)
    fixed = {"zero": 0, "one": 1 if whole else texel.ONE}
    found = []
    for name in image.select:
        if name not in fixed and name not in CHANNEL_NAMES:
            raise Unsupported(f"a surface with channel select {name}: not yet simulated")
        found.append(values[CHANNEL_NAMES.index(name)] if name in CHANNEL_NAMES else m.like(values[0], fixed[name]))
    return found


def nothing(m: Machine, lanes: int) -> list[Value]:
    return [m.constant(u32, 0, lanes)] * 4

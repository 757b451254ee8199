"""Filtering: the texels of a sample and their weights.

Linear weights have 8 bits. Texels of normalised formats are filtered as whole numbers of steps in 32-bit floats, which is exact for 8 bits
a channel, and divided at the end; other sums are made of fused multiply-adds in the order of the texels, where a texel that weighs nothing
does not count, even if it is no number. Integers are not filtered: the state must say nearest for them (KBL 22336-22340).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import product

from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.sampler import address, anisotropy, comparison, cube, lod
from softgen.shared_functions.sampler.anisotropy import Footprint
from softgen.shared_functions.sampler.channels import AXES, check_sampled
from softgen.shared_functions.sampler.chroma_key import ChromaKeying
from softgen.shared_functions.sampler.lod import LevelChoice, Levels
from softgen.shared_functions.sampler.reduction import NAMES, Reduction
from softgen.shared_functions.sampler.request import EdgeTexels, SamplePosition, SampleRequest, Tap
from softgen.shared_functions.sampler.state import BORDERS, Sampling, check_filters
from softgen.surface import fetch, texel
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage, broadcast_number, column_offset, extent, row_offset

ANISOTROPIC = "anisotropic"
GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))  # the texels of gather4 in the order of its answer, as steps along u and v


class ImageSampler:
    """Samples an image for some lanes."""

    def __init__(self, m: Machine, image: SurfaceImage, how: Sampling, memory: Region, mask: Value, kills: bool = False) -> None:
        """`kills`: the message asks for the pixels that a chroma key kills."""
        check_sampled(image)
        if how.skips_srgb and image.format.space == "srgb":
            image = replace(image, format=replace(image.format, space="linear"))
        self.m, self.image, self.memory, self.mask = m, image, memory, mask
        self.lanes, self.axes = mask.lanes, AXES[image.kind]
        self.whole = texel.is_integer(image.format)
        self.seamless = image.kind == "cube" and (how.seamless or how.modes[:2] == ("cube", "cube"))
        self.modes = ("clamp",) * 3 if self.seamless else how.modes
        self.how = how
        self.reduction = Reduction(m, how.reduction) if how.reduction in NAMES else None
        self.choice = LevelChoice(m, image, how, self.lanes)
        self.offset, self.needed = u32 if image.near else u64, fetch.selected_channels(image)
        self.reference: Value | None = None
        bordered = image.partial or bool(set(self.modes[: self.axes]) & set(BORDERS))
        self.counts_steps = texel.is_normalised(image.format) and not bordered and how.key is None
        self.keying = None if how.key is None else ChromaKeying(m, how.key, how.key_kills, image, mask, kills)
        self._parts: dict[tuple[object, ...], tuple[object, Value]] = {}

    # -- messages -----------------------------------------------------------------------------------------------------------

    def sample(self, request: SampleRequest) -> list[Value]:
        """Red, green, blue and alpha as bits."""
        m, how = self.m, self.how
        check_filters(how, self.image.mipmapped)
        self._compare(request.reference)
        position, spread = self._position(request), self._footprint(request)
        detail = self.level_of_detail(request, spread) if self.choice.needed else None
        levels = self.choice.levels(detail)
        if how.same or detail is None:
            return self._finished(self._spread(position, request.offsets, levels, how.mag, how.mag_rounds, spread))
        larger = self.choice.magnified(detail)
        ways = ((larger, levels if how.mag_mips else self.choice.lowest_level(), how.mag, how.mag_rounds),
                (~larger, levels, how.min, how.min_rounds))  # fmt: skip
        found = [m.variable(m.constant(u32 if self.whole else f32, 0, self.lanes)) for _ in CHANNEL_NAMES]
        for lanes, of, way, rounds in ways:
            for _ in m.If(m.any(lanes & self.mask)):
                with self._narrowed(lanes):
                    values = self._spread(position, request.offsets, of, way, rounds, spread)
                for place, value in zip(found, values, strict=True):
                    place.value = m.select(lanes, value, place.value)
        return self._finished([place.value for place in found])

    def gather(self, request: SampleRequest) -> list[list[Value]]:
        """The four texels around a place, each as red, green, blue and alpha in bits: level and weights do not count."""
        self.counts_steps = False
        self._compare(request.reference)
        position, level = self._position(request), self.choice.lowest_level().near
        if self.seamless:
            near = self._edge_texels(position, level, self.how.mag_rounds)
            four = near.texels if self.whole else self._with_corners(near)
            return [[self.m.bitcast(value, u32) for value in four[u + 2 * v]] for u, v in GATHERED]
        axes = [self._taps(axis, place, request.offsets, level, True, self.how.mag_rounds[axis])
                for axis, place in enumerate(position.places)]  # fmt: skip
        along, down = axes[0], axes[1] if self.axes > 1 else axes[0][:1] * 2
        found = []
        for u, v in GATHERED:
            values = self._texel([along[u], down[v]][: self.axes], position.slice, level)
            found.append([self.m.bitcast(value, u32) for value in values])
        return found

    def level_of_detail(self, request: SampleRequest, spread: Footprint | None = None) -> Value:
        """With bias and the message's lowest level, before clamps."""
        found = self._level_of_detail(request, spread)
        return found if request.lowest is None else self.m.max(found, request.lowest)

    def _level_of_detail(self, request: SampleRequest, spread: Footprint | None) -> Value:
        m = self.m
        if request.lod is not None:
            return self.choice.biased(request.lod, None)
        if spread is not None:
            return self.choice.biased(spread.lod, request.bias)
        gradients = self._gradients(request)
        if gradients is None:
            return self.choice.biased(m.constant(f32, 0.0, self.lanes), request.bias)
        return self.choice.biased(lod.from_gradients(m, gradients, self._sizes()), request.bias)

    def _sizes(self) -> list[Value]:
        """Texels along the axes of the first level, f32."""
        m, image = self.m, self.image
        first = broadcast_number(m, image.level, u32, self.lanes) if image.mipmapped else None
        return [m.convert(m.bitcast(extent(m, image, axis, first, self.lanes), i32), f32) for axis in range(self.axes)]

    def _footprint(self, request: SampleRequest) -> Footprint | None:
        """Where several samples are taken for a pixel; None where they are not."""
        if ANISOTROPIC not in (self.how.mag, self.how.min) or request.lod is not None or self.image.kind not in ("1d", "2d"):
            return None
        gradients = self._gradients(request)
        return None if gradients is None else anisotropy.footprint(self.m, gradients, self._sizes(), self.how.anisotropy)

    def _gradients(self, request: SampleRequest) -> list[tuple[Value, Value]] | None:
        """Of coordinates between 0 and 1; None where lanes are no subspans, or coordinates count texels: level 0."""
        m, places = self.m, request.places
        if self.image.kind != "cube":
            if request.gradients is not None:
                return request.gradients[: self.axes]
            whole = self.lanes >= lod.SUBSPAN and self.how.normalised
            return lod.differences(m, places[: self.axes]) if whole else None
        face = cube.face_of(m, places[:3])
        if request.gradients is not None:
            sides = [cube.project_gradient(m, face, places[:3], [pair[side] for pair in request.gradients]) for side in (0, 1)]
            return list(zip(*sides, strict=True))
        if self.lanes < lod.SUBSPAN:
            return None
        # On the face of each lane: of a subspan at an edge of the cube, helper lanes may look at another one.
        origin, right, below = (cube.project(m, face, corner) for corner in lod.corners(m, places[:3]))
        return [(x - a, y - a) for a, x, y in zip(origin, right, below, strict=True)]

    def _compare(self, reference: Value | None) -> None:
        """Set the reference of a comparison; the state may ask for one that the message does not, or the other way (KBL 22560-22570)."""
        if self.how.reduction == "comparison" and reference is None:
            reference = self.m.constant(f32, 0.0, self.lanes)
        elif self.how.reduction not in ("", "comparison"):
            reference = None
        self.counts_steps = self.counts_steps and (reference is None or comparison.in_steps(self.image.format, self.how.shadow))
        self.reference = None if reference is None else comparison.quantized(self.m, self.image.format, reference, self.counts_steps)
        if reference is not None and self.how.shadow in comparison.FIXED:
            self.needed = self.needed - {"r"}

    def _narrowed(self, lanes: Value) -> AbstractContextManager[None]:
        """A block of code whose texels are for some lanes only, as far as chroma keying must know."""
        return nullcontext() if self.keying is None else self.keying.narrowed(lanes)

    # -- places -------------------------------------------------------------------------------------------------------------

    def _position(self, request: SampleRequest) -> SamplePosition:
        m, places = self.m, request.places
        if self.image.kind != "cube":
            slice_ = self._slice(places[self.axes]) if self.image.is_array else m.constant(u32, 0, self.lanes)
            return SamplePosition(places[: self.axes], slice_)
        face = cube.face_of(m, places[:3])
        first = self._slice(places[3]) * 6 + face if self.image.is_array else face
        return SamplePosition(cube.project(m, face, places[:3]), first)

    def _slice(self, r: Value) -> Value:
        """The nearest slice there is (public: OpenCL 3.0, 8.3.1)."""
        m = self.m
        r = m.round_even(m.select(m.is_nan(r), 0.0, r))
        last = m.convert(m.bitcast(broadcast_number(m, self.image.depth, u32, self.lanes), i32) - 1, f32)
        return m.convert(m.select(r < 0.0, 0.0, m.select(r > last, last, r)), u32)

    def _size(self, axis: int, level: Value | None) -> Value:
        return self.m.bitcast(extent(self.m, self.image, axis, level, self.lanes), i32)

    def _split(self, axis: int, u: Value, level: Value | None, smooth: bool, rounds: bool, offset: bool = False) -> tuple[Value, Value]:
        """The first texel along an axis (i32), and what the next one weighs."""
        m, mode, normalised, size = self.m, self.modes[axis], self.how.normalised, self._size(axis, level)
        place = address.scaled(m, mode, normalised, u, size, offset)
        far = address.fixed(m, place, rounds, address.brings_near(mode, normalised, offset))
        far = far - address.HALF if smooth else far
        return far >> address.FRACTION, m.convert(far & address.UNIT - 1, f32) * (1 / address.UNIT)

    def _taps(self, axis: int, u: Value, offsets: list[Value] | None, level: Value | None, smooth: bool, rounds: bool) -> list[Tap]:
        m, mode, near = self.m, self.modes[axis], self.how.normalised and offsets is None
        first, part = self._split(axis, u, level, smooth, rounds, offsets is not None)
        first = first if offsets is None else first + offsets[axis]
        size = self._size(axis, level)
        if not smooth:
            at, border = address.texel(m, mode, first, size, False, near)
            return [Tap(at, None, border)]
        found = []
        for place, weight in ((first, 1.0 - part), (first + 1, part)):
            at, border = address.texel(m, mode, place, size, True, near, place is first)
            found.append(Tap(at, weight, border))
        return found

    # -- filters ------------------------------------------------------------------------------------------------------------

    def _spread(self, position: SamplePosition, offsets: list[Value] | None, levels: Levels, way: str, rounds: tuple[bool, ...],
                spread: Footprint | None) -> list[Value]:  # fmt: skip
        """One sample, or the mean of several along a footprint."""
        if spread is None or way != ANISOTROPIC or self.whole:
            return self._levelled(position, offsets, levels, way, rounds)

        def sample(places: list[Value]) -> list[Value]:
            return self._levelled(SamplePosition(places, position.slice), offsets, levels, way, rounds)

        return anisotropy.mean(self.m, spread, position.places, self.mask, sample, self.reduction)

    def _levelled(self, position: SamplePosition, offsets: list[Value] | None, levels: Levels, way: str,
                  rounds: tuple[bool, ...]) -> list[Value]:  # fmt: skip
        """The levels of a sample mixed; the second is left out where no lane needs it."""
        m, part = self.m, levels.part
        first = self._filtered(position, offsets, levels.near, way, rounds)
        if part is None or self.whole:
            return first
        assert levels.near is not None
        last = broadcast_number(m, self.image.levels, u32, self.lanes) + broadcast_number(m, self.image.level, u32, self.lanes) - 1
        mixed, after = [m.variable(value) for value in first], m.min(levels.near + 1, last)
        for _ in m.If(m.any((part > 0.0) & self.mask)):
            with self._narrowed(part > 0.0):
                second = self._filtered(position, offsets, after, way, rounds)
            for place, before, value in zip(mixed, first, second, strict=True):
                both = self.reduction.of(before, value) if self.reduction else m.fma(value, part, before * (1.0 - part))
                place.value = m.select(part > 0.0, both, before)
        return [place.value for place in mixed]

    def _filtered(self, position: SamplePosition, offsets: list[Value] | None, level: Value | None, way: str,
                  rounds: tuple[bool, ...]) -> list[Value]:  # fmt: skip
        self._parts.clear()  # values of one block of code
        smooth = way != "nearest" and not self.whole
        if smooth and self.seamless:
            return self._across(position, level, rounds)
        axes = [self._taps(axis, position.places[axis], offsets, level, smooth, rounds[axis]) for axis in range(self.axes)]
        if not smooth:
            return self._texel([taps[0] for taps in axes], position.slice, level)
        if self.reduction is not None:
            return self._reduced(self.reduction, axes, position.slice, level)
        if texel.is_finite(self.image.format):
            return self._mixed(axes, [], position.slice, level)
        total: list[Value | None] = [None] * 4
        for chosen in product(*reversed(axes)):  # u fastest
            weight = self._weight(chosen)
            values = self._texel(list(chosen[::-1]), position.slice, level)
            total = [self._add(so_far, value, weight) for so_far, value in zip(total, values, strict=True)]
        return [value for value in total if value is not None]

    def _reduced(self, reduction: Reduction, axes: list[list[Tap]], slice_: Value, level: Value | None) -> list[Value]:
        """The least or greatest texels; the first always weighs something."""
        found: list[Value] = []
        for chosen in product(*reversed(axes)):
            values = self._texel(list(chosen[::-1]), slice_, level)
            found = reduction.where(self._weight(chosen) > 0.0, found, values) if found else values
        return found

    def _mixed(self, axes: list[list[Tap]], chosen: list[Tap], slice_: Value, level: Value | None) -> list[Value]:
        """Axis by axis, u innermost."""
        if not axes:
            return self._texel(chosen, slice_, level)
        sides = [self._mixed(axes[:-1], [tap, *chosen], slice_, level) for tap in axes[-1]]
        before, part = axes[-1][0].weight, axes[-1][1].weight
        assert before is not None and part is not None
        return [self.m.fma(b, part, a * before) for a, b in zip(*sides, strict=True)]

    def _across(self, position: SamplePosition, level: Value | None, rounds: tuple[bool, ...]) -> list[Value]:
        """Linear on a cube map, across its edges."""
        m, near = self.m, self._edge_texels(position, level, rounds)
        right, down = near.right, near.down
        if self.reduction is not None:
            return self._reduced_across(self.reduction, near)
        texels = self._with_corners(near)
        rows = [[m.fma(b, right, a * (1.0 - right)) for a, b in zip(texels[side], texels[side + 1], strict=True)] for side in (0, 2)]
        return [m.fma(b, down, a * (1.0 - down)) for a, b in zip(*rows, strict=True)]

    def _edge_texels(self, position: SamplePosition, level: Value | None, rounds: tuple[bool, ...]) -> EdgeTexels:
        """The four texels around a place on a cube map, across its edges."""
        m, size = self.m, self._size(0, level)
        (i, right), (j, down) = (self._split(axis, position.places[axis], level, True, rounds[axis]) for axis in (0, 1))
        face, base = self._face(position.slice)
        texels, corners = [], []
        for place in ((i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)):
            on, x, y, corner = cube.across_edges(m, face, *place, size)
            if not self.image.averages_corners:
                edge = [m.max(m.min(coordinate, size - 1), 0) for coordinate in place]
                on, x, y = m.select(corner, face, on), m.select(corner, edge[0], x), m.select(corner, edge[1], y)
            texels.append(self._texel([Tap(x, None, None), Tap(y, None, None)], base + on, level))
            corners.append(corner)
        return EdgeTexels(texels, corners, right, down)

    def _with_corners(self, near: EdgeTexels) -> list[list[Value]]:
        """At a corner there are three texels: the fourth is their average."""
        m = self.m
        if not self.image.averages_corners:
            return near.texels
        texels = [[m.select(corner, 0.0, value) for value in values] for corner, values in zip(near.corners, near.texels, strict=True)]
        sums = [sum(values[1:], values[0]) for values in zip(*texels, strict=True)]
        return [[m.select(corner, total * (1 / 3), value) for total, value in zip(sums, values, strict=True)]
                for corner, values in zip(near.corners, texels, strict=True)]  # fmt: skip

    def _reduced_across(self, reduction: Reduction, near: EdgeTexels) -> list[Value]:
        """The least or greatest of the texels of a cube map's faces; what is no texel, at a corner, does not count."""
        right, down = near.right > 0.0, near.down > 0.0  # below 1: texels on the other side always weigh something
        found = [self.m.like(near.right, reduction.first)] * 4
        for values, corner, weighs in zip(near.texels, near.corners, (None, right, down, right & down), strict=True):
            found = reduction.where(~corner if weighs is None else weighs & ~corner, found, values)
        return found

    def _face(self, slice_: Value) -> tuple[Value, Value]:
        """The face of a slice of a cube map, and its first face."""
        face = self.m.remainder_int(slice_, self.m.like(slice_, 6)) if self.image.is_array else slice_
        return face, slice_ - face if self.image.is_array else self.m.constant(u32, 0, self.lanes)

    def _missing_face(self, slice_: Value) -> Value:
        """Where the face of a cube map is disabled."""
        enabled = self.m.constant(u32, self.image.faces, self.lanes) >> self._face(slice_)[0]
        return (enabled & 1) == 0

    @staticmethod
    def _weight(taps: tuple[Tap, ...]) -> Value:
        """Products of 8-bit weights are exact."""
        found = taps[0].weight
        assert found is not None
        for tap in taps[1:]:
            assert tap.weight is not None
            found = found * tap.weight
        return found

    def _add(self, so_far: Value | None, value: Value, weight: Value) -> Value:
        m = self.m
        value = m.select(weight > 0.0, value, 0.0)
        return value * weight if so_far is None else m.fma(value, weight, so_far)

    # -- texels -------------------------------------------------------------------------------------------------------------

    def _texel(self, taps: list[Tap], slice_: Value, level: Value | None) -> list[Value]:
        """The channels of a texel as numbers to filter: steps, floats, or integers as they are."""
        m = self.m
        mask, border = self.mask, None
        for tap in taps:
            if tap.border is not None:
                border = tap.border if border is None else border | tap.border
        if self.image.partial:
            missing = self._missing_face(slice_)
            border = missing if border is None else border | missing
        if border is not None:
            mask = mask & ~border
        words = fetch.raw(m, self.image, self.memory, self._offset([tap.at for tap in taps], slice_, level), mask, self.needed)
        if self.counts_steps:
            values = texel.unpack_steps(m, self.image.format, words)
            return values if self.reference is None else comparison.compared(m, self.how.shadow, values, self.reference)
        found = fetch.unpack(m, self.image, words, *(m.bitcast(tap.at, u32) for tap in taps[:2]))
        if self.keying is not None:
            found = self.keying.keyed(found, words, taps, mask, lambda x: self._decoded(x, taps, slice_, level, mask))
        if border is not None:
            held = self.how.run_time or self.how.numbers(self.image.format)
            outside = [broadcast_number(m, bits, u32, self.lanes) for bits in held.outside]
            found = [m.select(border, bits, value) for bits, value in zip(outside, found, strict=True)]
        if self.whole:
            return found
        values = [m.bitcast(value, f32) for value in found]
        return values if self.reference is None else comparison.compared(m, self.how.shadow, values, self.reference)

    def _decoded(self, x: Value, taps: list[Tap], slice_: Value, level: Value | None, mask: Value) -> list[Value]:
        """The texel of another column."""
        m, rest = self.m, [tap.at for tap in taps[1:]]
        words = fetch.raw(m, self.image, self.memory, self._offset([x, *rest], slice_, level), mask, self.needed)
        return fetch.unpack(m, self.image, words, *(m.bitcast(at, u32) for at in (x, *rest[:1])))

    def _offset(self, at: list[Value], slice_: Value, level: Value | None) -> Value:
        """The byte offset of a texel. Neighbours share columns and rows."""
        m, image = self.m, self.image
        zero = m.constant(u32, 0, self.lanes)
        u, v, r = [*at, *[zero] * 3][:3] if image.kind == "3d" else (at[0], at[1] if len(at) > 1 else None, slice_)
        down = self._part("row", row_offset, v, r, level)
        return down + self._part("column", column_offset, u, r, level)

    def _part(self, name: str, make: Callable[..., Value], at: Value | None, r: Value, level: Value | None) -> Value:
        key = name, id(at), id(r), id(level)
        if key not in self._parts:
            m = self.m
            place = m.constant(u32, 0, self.lanes) if at is None else m.bitcast(at, u32)
            self._parts[key] = (at, r, level), make(m, self.image, place, m.bitcast(r, u32), level, self.offset)
        return self._parts[key][1]

    def _finished(self, values: list[Value]) -> list[Value]:
        """As bits of the answer."""
        m = self.m
        if self.counts_steps:
            counts = [1] * 4 if self.reference is not None else texel.step_counts(self.image.format)
            values = [texel.divided(m, value, count) for value, count in zip(values, counts, strict=True)]
        return [m.bitcast(value, u32) for value in values]

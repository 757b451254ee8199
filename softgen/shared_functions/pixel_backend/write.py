"""The lane program of a render target write: tests, blending, conversion and store (G45 7731-7756 has the order).

Lanes are channels of a thread from one on; a pixel is written where the message's lane is on and the pixel is lit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softgen.bits.formats import Format
from softgen.errors import DecodeError
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import LaneType, f32, u8, u16, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.pixel_backend import blend, depth, surface
from softgen.shared_functions.pixel_backend.records import COLOR_AT, DEPTH, LATE_AT, PLACEMENT, TARGET
from softgen.shared_functions.pixel_backend.state import DepthState, TargetState
from softgen.shared_functions.pixel_backend.surface import PixelAddresses, Pixels, PixelSample, TargetSurface
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.surface import texel

PIXEL = RecordLayout.of(PixelDispatch)
PLACE_AT, Z_AT, ANTIALIAS_AT = PIXEL.offset("place"), PIXEL.offset("depth"), PIXEL.offset("antialias")
DITHERED = 8  # channels of fewer bits are dithered
Told = Callable[[str, Value, int | Value | None], None]  # name of a test, the lanes that pass it, and of which sample
COVERED = 0.5  # the least alpha that covers the only sample: none is at 0, all are at 1 (KBL 2121-2131)


def nobody(test: str, passed: Value, sample: int | Value | None) -> None:
    """Who asks for no test."""


def _logical(format: Format) -> bool:
    """Whether a format has logic operations: as APIs have it, all but floats and sRGB; the manual promises UNORM (G45 8041)."""
    return format.space != "srgb" and all(channel.type in ("unorm", "snorm", "uint", "sint", "void") for channel in format.channels)


@dataclass(frozen=True)
class TargetForm:
    """What a write is specialised for: surface, blend state, late tests, and what the message has."""

    surface: TargetSurface
    state: TargetState
    late: DepthState | None
    lanes: int
    dual: bool = False
    alpha: bool = False  # source 0 alpha for the alpha test
    depth: bool = False
    stencil: bool = False
    omask: bool = False

    @property
    def samples(self) -> int:
        return self.state.samples

    def check(self) -> None:
        """Raise Unsupported for what is not simulated."""
        blend.check(self.state, self.surface, self.dual)
        if self.surface.format is not None:
            texel.check(self.surface.format)
            if self.surface.samples != self.samples:
                raise DecodeError(f"a render target of {self.surface.samples} samples in a draw of {self.samples}")
        if self.late is not None:
            depth.check(self.late)


@dataclass
class Sources:
    """The payload of a write, as lanes of u32."""

    color: list[Value]
    second: list[Value] | None = None
    alpha: Value | None = None
    depth: Value | None = None
    stencil: Value | None = None
    omask: Value | None = None  # samples that may be written, a bit each


class TargetWrite:
    """A write, on any machine. `record` has the numbers of the target, `pixel` is the PixelDispatch of the thread; `memory` gives graphics
    memory from an address (one lane of u64) on; `first` is the channel of lane 0, `last` whether the message is for the last target."""

    def __init__(self, m: Machine, form: TargetForm, record: Memory, pixel: Memory, memory: Callable[[Value], Region], first: Value,
                 last: Value) -> None:  # fmt: skip
        self.m, self.form, self.lanes, self.memory, self.first, self.last = m, form, form.lanes, memory, first, last
        self.numbers, self.place = RecordView(m, TARGET, record, 0), RecordView(m, PLACEMENT, record, COLOR_AT)
        self.late, self.pixel = RecordView(m, DEPTH, record, LATE_AT), RecordView(m, PIXEL, pixel, 0)
        self.told: Told = nobody

    def write(self, sources: Sources, mask: Value) -> None:
        m = self.m
        mask = self._passes("shader", mask & m.mask_from_bits(self.pixel.load("lit") >> self.first, self.lanes))
        pixels = surface.subspans(m, m.load_block(u32, self.lanes // 4, self.pixel.memory, self.first + PLACE_AT))
        if self.form.state.antialiased and not self._is_integer:
            self._antialias(sources)
        if sources.omask is not None:
            mask = mask & self._passes("output mask", (sources.omask & 1) != 0)
        if self._alpha_covers(sources):
            mask = mask & self._passes("alpha to coverage", self._source_alpha(sources) >= COVERED)
        mask = self._alpha_test(sources, mask)
        if self.form.late is not None:
            mask = self._late_tests(sources, pixels, mask)
        if self.form.surface.format is not None:
            self._write_color(self.form.surface.format, sources, pixels, mask)

    @property
    def _is_integer(self) -> bool:
        return self.form.surface.format is not None and texel.is_integer(self.form.surface.format)

    def _alpha_covers(self, sources: Sources) -> bool:
        """Whether alpha decides about coverage. Not with an output mask, which shaders then make of alpha as well: writes to other targets
        lack the alpha of source 0 (public: Mesa brw_fs_visitor.cpp, emit_fb_writes)."""
        return self.form.state.alpha_to_coverage and not self._is_integer and sources.omask is None

    def _antialias(self, sources: Sources) -> None:
        """Attenuate alpha by the coverage of smooth lines and points, before alpha is looked at (G45 5529-5547)."""
        m = self.m
        coverage = m.load_block(f32, self.lanes, self.pixel.memory, self.first * f32.bytes + ANTIALIAS_AT)
        for color in (sources.color, sources.second):
            if color is not None:
                color[blend.ALPHA] = m.bitcast(m.bitcast(color[blend.ALPHA], f32) * coverage, u32)
        if sources.alpha is not None:
            sources.alpha = m.bitcast(m.bitcast(sources.alpha, f32) * coverage, u32)

    def _source_alpha(self, sources: Sources) -> Value:
        """The alpha of source 0, which writes to other targets carry along."""
        return self.m.bitcast(sources.color[blend.ALPHA] if sources.alpha is None else sources.alpha, f32)

    # -- tests -----------------------------------------------------------------------------------------------------

    def _passes(self, test: str, passed: Value, sample: int | Value | None = None) -> Value:
        self.told(test, passed, sample)
        return passed

    def _tell_late(self, test: depth.DepthTest, sample: Value | None = None) -> None:
        for name, passed in (("stencil test", test.stencil_passed), ("depth test", test.depth_passed)):
            if passed is not None:
                self.told(name, passed, sample)

    def _alpha_test(self, sources: Sources, mask: Value) -> Value:
        """Fails pixels of this target only (KBL 2164-2178)."""
        m, state = self.m, self.form.state
        if state.alpha_test == "always":
            return mask
        given = self._source_alpha(sources)
        reference = m.broadcast(self.numbers.load("alpha_reference"), self.lanes)
        if state.alpha_test_unorm8:  # both as numbers from 0 to 255
            given, reference = (m.round_even(m.min(m.max(value, m.like(value, 0.0)), m.like(value, 1.0)) * 255.0)
                                for value in (given, reference))  # fmt: skip
        return mask & self._passes("alpha test", depth.compare(m, state.alpha_test, given, reference))

    def _late_tests(self, sources: Sources, pixels: Pixels, mask: Value) -> Value:
        """Depth and stencil tests. Buffers are updated by the write to the last target, for pixels that passed the alpha test of any (KBL
        2164-2178)."""
        m, form, pixel = self.m, self.form, self.pixel
        assert form.late is not None
        if sources.depth is None:
            z = m.load_block(f32, self.lanes, pixel.memory, self.first * f32.bytes + Z_AT)
        else:
            z = m.bitcast(sources.depth, f32)
        group = m.constant(u32, (1 << self.lanes) - 1, 1) << self.first
        seen = pixel.load("tested") & group | m.bits_from_mask(mask) << self.first
        others = pixel.load("tested") & ~group
        pixel.store("tested", m.select(self.last, others, others | seen))
        tested = m.mask_from_bits(seen >> self.first, self.lanes)
        update = tested & m.broadcast(self.last, self.lanes)
        test = depth.DepthTest(m, form.late, self.late, self.memory)
        layer, back_facing, viewport = (pixel.load(name) for name in ("layer", "back_facing", "viewport"))
        passed = test.run(pixels, layer, z, back_facing, viewport, tested, update, sources.stencil)
        self._tell_late(test)
        before = pixel.load("passed")
        pixel.store("passed", m.select(self.last, before & ~group | m.bits_from_mask(passed) << self.first, before))
        return mask & passed

    # -- colours ---------------------------------------------------------------------------------------------------

    def _write_color(self, format: Format, sources: Sources, pixels: Pixels, mask: Value, sample: PixelSample | None = None,
                     ready: list[Value] | None = None) -> None:  # fmt: skip
        """`ready`: the words of pixels, where they do not depend on what the target holds."""
        m = self.m
        masks = written_bits(format, self.form.surface, self.form.state)
        if not any(masks):
            return
        mask = mask & self._passes("edge of the target", surface.inside(m, self.place, pixels), sample.number if sample else None)
        target = self.form.surface
        places = PixelAddresses(m, self.place, target.tiling, format.bits // 8, pixels, self.pixel.load("layer"), target.rotation, sample)
        memory, read = self.memory(self.place.load("base")), blend.needs_destination(self.form.state)
        old = [m.convert(places.load(type, memory.moved(byte), mask), u32) if read or kept else m.constant(u32, 0, self.lanes)
               for (byte, type), kept in zip(words(format), kept_bits(format, masks), strict=True)]  # fmt: skip
        new = self._colors(format, sources, pixels, old) if ready is None else ready
        for (byte, type), word, was, bits in zip(words(format), new, old, masks, strict=True):
            if bits:
                whole = bits == (1 << type.bits) - 1
                value = word if whole else (was & ((1 << type.bits) - 1 ^ bits)) | (word & bits)
                places.store(m.convert(value, type), memory.moved(byte), mask)

    def _colors(self, format: Format, sources: Sources, pixels: Pixels, old: list[Value]) -> list[Value]:
        """The words of pixels."""
        m, state = self.m, self.form.state
        color = self._ordered(sources.color)
        if texel.is_integer(format):
            words = texel.pack(m, format, color)
        else:
            words = texel.pack(m, format, self._dithered(format, pixels, self._blended(format, color, sources, old)))
        if state.logic_op is not None and _logical(format):
            words = [blend.logic(m, state.logic_op, word, was) for word, was in zip(words, old, strict=True)]
        return [word | ones if ones else word for word, ones in zip(words, unused_bits(format), strict=True)]

    def _ordered(self, color: list[Value]) -> list[Value]:
        """The shader's channels as the surface's."""
        if self.form.state.alpha_to_one:
            color = [*color[: blend.ALPHA], self.m.like(color[0], texel.ONE)]
        zero = self.m.like(color[0], 0)
        return [zero if name == "-" else color[blend.RGBA.index(name)] for name in self.form.surface.order]

    def _blended(self, format: Format, color: list[Value], sources: Sources, old: list[Value]) -> list[Value]:
        m, state = self.m, self.form.state
        values, second = blend.floats(m, color), None if sources.second is None else blend.floats(m, self._ordered(sources.second))
        clamps, packed_alike = bool(state.pre_clamp), self._packing_clamps(format)
        if clamps and not (state.color is None and packed_alike):
            values = blend.clamped(m, values, state.clamp_range, format)
        if state.color is None:
            return blend.bits(m, values)
        constant = [m.broadcast(self.numbers.load("constant", element=place), self.lanes) for place in range(4)]
        destination = blend.floats(m, texel.unpack(m, format, old))
        if clamps and second is not None:
            second = blend.clamped(m, second, state.clamp_range, format)
        if state.pre_clamp == "all":
            constant, destination = (blend.clamped(m, each, state.clamp_range, format) for each in (constant, destination))
        found = blend.Blender(m, values, second, destination, constant).blend(state)
        return blend.bits(m, blend.clamped(m, found, state.clamp_range, format) if state.post_clamp and not packed_alike else found)

    def _packing_clamps(self, format: Format) -> bool:
        """Whether values are clamped to 0 and 1, and NaN to 0, when they are packed: no clamp just before changes the pixels."""
        return all(channel.type in ("unorm", "void") for channel in format.channels) and not self._dithers(format)

    def _dithers(self, format: Format) -> dict[str, int]:
        return dithered_bits(format, self.form.state)

    def _dithered(self, format: Format, pixels: Pixels, color: list[Value]) -> list[Value]:
        """A 4x4 matrix of thresholds is added below the lowest bit of narrow channels. The hardware's matrix is not published; this one is
        Bayer's, in sixteenths less a half, as what follows rounds to nearest."""
        m, state, narrow = self.m, self.form.state, self._dithers(format)
        if state.dither is None or not narrow:
            return color
        x, y = pixels.x + state.dither[0], pixels.y + state.dither[1]
        both = x ^ y
        order = (both & 1) << 3 | (y & 1) << 2 | (both & 2) | (y >> 1 & 1)
        added = (m.convert(order, f32) - 7.5) * (1 / 16)
        found = []
        for name, value in zip(blend.RGBA, color, strict=True):
            step = 1.0 / ((1 << narrow[name]) - 1) if name in narrow else 0.0
            found.append(m.bitcast(m.bitcast(value, f32) + added * step, u32) if step else value)
        return found


def written_bits(format: Format, surface: TargetSurface, state: TargetState) -> list[int]:
    """The bits of each word that are written. Bits without a channel are."""
    found, order = [0] * len(words(format)), dict(zip(blend.RGBA, surface.order, strict=True))
    for channel, at in texel.places(format):
        if channel.type == "void" or channel.name not in state.write_disable and order[channel.name] != "-":
            found[at // 32] |= (1 << channel.bits) - 1 << at % 32
    real = [bits & ~unused for bits, unused in zip(found, unused_bits(format), strict=True)]
    return found if any(real) else real


def dithered_bits(format: Format, state: TargetState) -> dict[str, int]:
    """The bits of channels that are dithered."""
    if state.dither is None:
        return {}
    return {channel.name: channel.bits for channel in format.channels if channel.bits < DITHERED and channel.type == "unorm"}


def words(format: Format) -> list[tuple[int, LaneType]]:
    """The words of a pixel: byte offset and type."""
    if format.bits < u32.bits:
        return [(0, {u8.bits: u8, u16.bits: u16}[format.bits])]
    return [(at, u32) for at in range(0, format.bits // 8, u32.bytes)]


def kept_bits(format: Format, masks: list[int]) -> list[bool]:
    """Whether a part of each word must stay as it is."""
    return [bool(bits) and bits != (1 << type.bits) - 1 for (_, type), bits in zip(words(format), masks, strict=True)]


def unused_bits(format: Format) -> list[int]:
    """The bits of each word that belong to no channel: they are written as ones, as alpha reads there."""
    found = [0] * len(words(format))
    for channel, at in texel.places(format):
        if channel.type == "void":
            found[at // 32] |= (1 << channel.bits) - 1 << at % 32
    return found

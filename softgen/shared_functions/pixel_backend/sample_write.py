"""Render target writes to pixels with several samples: tests, blending and stores for each sample that is lit.

The colour of a channel goes to all samples of its pixel that are; masks say which (PixelDispatch.sample_lit). Threads that run for each
sample are no different here: a channel is lit in the mask of its own sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from softgen.bits.formats import Format
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.pixel_backend import blend, depth, surface
from softgen.shared_functions.pixel_backend.sample_control import ControlSurface
from softgen.shared_functions.pixel_backend.surface import Pixels, PixelSample
from softgen.shared_functions.pixel_backend.write import PLACE_AT, Z_AT, Sources, TargetForm, TargetWrite, words, written_bits

ALPHAS = 16  # steps of alpha that patterns of samples tell apart


def target_write(m: Machine, form: TargetForm, record: Memory, pixel: Memory, memory: Callable[[Value], Region], first: Value,
                 last: Value) -> TargetWrite:  # fmt: skip
    """The write of a form; parameters are those of TargetWrite."""
    return (SampleWrite if form.samples > 1 else TargetWrite)(m, form, record, pixel, memory, first, last)


def covered_by_alpha(m: Machine, alpha: Value) -> Value:
    """The samples that alpha to coverage leaves, a bit each: none at 0, all at 1, and more as alpha grows (KBL 2121-2161). The hardware's
    patterns are not published; these are those that drivers compute in shaders (public: Mesa brw_nir_lower_alpha_to_coverage.c)."""
    clamped = m.min(m.max(alpha, m.like(alpha, 0.0)), m.like(alpha, 1.0))
    step = m.bitcast(m.convert(clamped * float(ALPHAS), i32), u32)
    quarter = m.like(step, 0xFEA80) >> (step & 0xFFFFFFFC) & 0xF
    return quarter * 0x1111 | (step & 2) * 0x0808 | (step & 1) * 0x0100


class SampleWrite(TargetWrite):
    """A write to pixels with several samples, on any machine."""

    def write(self, sources: Sources, mask: Value) -> None:
        m, target = self.m, self.form.surface
        mask = self._passes("shader", mask & m.mask_from_bits(self.pixel.load("lit") >> self.first, self.lanes))
        pixels = surface.subspans(m, m.load_block(u32, self.lanes // 4, self.pixel.memory, self.first + PLACE_AT))
        allowed, mask = self._allowed(sources), self._alpha_test(sources, mask)
        stores = target.format is not None and any(written_bits(target.format, target, self.form.state))
        ready = None
        if stores and target.format is not None:
            if target.control:
                self._expand(target.format, pixels, mask)
            if not blend.needs_destination(self.form.state):
                nothing = [m.constant(u32, 0, self.lanes) for _ in words(target.format)]
                ready = self._colors(target.format, sources, pixels, nothing)
        for number in self._each():
            covered = m.mask_from_bits(self.pixel.load("sample_lit", element=number) >> self.first, self.lanes)
            lit = mask & self._passes("coverage", covered, number)
            if allowed is not None:
                name = "output mask" if allowed is sources.omask else "alpha to coverage"
                lit = lit & self._passes(name, (allowed >> m.broadcast(number, self.lanes) & 1) != 0, number)
            if self.form.late is not None:
                lit = self._late_sample(sources, pixels, lit, number)
            for _ in m.If(m.any(lit)) if stores else ():
                assert target.format is not None
                self._write_color(target.format, sources, pixels, lit, PixelSample(number, self.form.samples, target.interleaved), ready)

    def _each(self) -> Iterator[Value]:
        """The numbers of samples, one lane each, of a loop."""
        m, number = self.m, self.m.variable(self.m.constant(u32, 0, 1))
        for _ in m.While(lambda: number.value < self.form.samples):
            yield number.value
            number.value = number.value + 1

    def _allowed(self, sources: Sources) -> Value | None:
        """The samples that the thread and its alpha leave, a bit each; None: all."""
        return covered_by_alpha(self.m, self._source_alpha(sources)) if self._alpha_covers(sources) else sources.omask

    def _late_sample(self, sources: Sources, pixels: Pixels, lit: Value, number: Value) -> Value:
        """Depth and stencil tests of a sample, as _late_tests has them of pixels."""
        m, form, pixel = self.m, self.form, self.pixel
        assert form.late is not None
        if sources.depth is None:
            z = m.load_block(f32, self.lanes, pixel.memory, self.first * f32.bytes + Z_AT)
            z = z + m.broadcast(pixel.load("sample_depth", element=number), self.lanes)
        else:
            z = m.bitcast(sources.depth, f32)
        group = m.constant(u32, (1 << self.lanes) - 1, 1) << self.first
        before = pixel.load("sample_tested", element=number)
        seen = before & group | m.bits_from_mask(lit) << self.first
        pixel.store("sample_tested", m.select(self.last, before & ~group, before & ~group | seen), element=number)
        tested = m.mask_from_bits(seen >> self.first, self.lanes)
        update = tested & m.broadcast(self.last, self.lanes)
        layer, back_facing, viewport = (pixel.load(name) for name in ("layer", "back_facing", "viewport"))
        test = depth.DepthTest(m, form.late, self.late, self.memory)
        passed = test.run(pixels, layer, z, back_facing, viewport, tested, update, sources.stencil, number)
        self._tell_late(test, number)
        held = pixel.load("sample_passed", element=number)
        pixel.store("sample_passed", m.select(self.last, held & ~group | m.bits_from_mask(passed) << self.first, held), element=number)
        return lit & passed

    # -- control surfaces ------------------------------------------------------------------------------------------

    def _expand(self, format: Format, pixels: Pixels, mask: Value) -> None:
        """Give all samples of pixels slices of their own, with the values that the control surface says they have."""
        m = self.m
        control = ControlSurface(m, self.form.surface, self.place.memory, self.memory, pixels, self.pixel.load("layer"))
        mask = mask & surface.inside(m, self.place, pixels)
        held = control.values(mask)
        stale = mask & ~control.is_identity(held)
        for _ in m.If(m.any(stale), rare=True):
            self._spread(format, control, held, stale)
            control.store_identity(stale)

    def _spread(self, format: Format, control: ControlSurface, held: list[Value], mask: Value) -> None:
        """Store in the slice of each sample what a control value says of it; all are loaded before the first is stored."""
        m, count, memory = self.m, self.form.samples, self.memory(self.place.load("base"))
        found = []
        for sample in range(count):
            found += control.sample(format, held, sample, mask)
        for sample in range(count):
            places = control.slice(format, sample)
            for place, (byte, type) in enumerate(words(format)):
                places.store(m.convert(found[sample * len(words(format)) + place], type), memory.moved(byte), mask)

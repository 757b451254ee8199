"""The control surface of a render target: which slices have the samples of its pixels, and their words."""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.formats import Format
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordView
from softgen.lanes.types import bool_, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.pixel_backend.records import COLOR_AT, CONTROL_AT, PLACEMENT, TARGET
from softgen.shared_functions.pixel_backend.surface import PixelAddresses, Pixels, PixelSample, TargetSurface
from softgen.shared_functions.pixel_backend.write import words
from softgen.surface import samples


class ControlSurface:
    """The control surface of some pixels, on any machine; `record` is the target's. A target may have none: then each sample has its own
    slice."""

    def __init__(self, m: Machine, target: TargetSurface, record: Memory, memory: Callable[[Value], Region], pixels: Pixels,
                 layer: Value) -> None:  # fmt: skip
        self.m, self.target, self.graphics, self.pixels, self.layer = m, target, memory, pixels, layer
        self.numbers, self.place = RecordView(m, TARGET, record, 0), RecordView(m, PLACEMENT, record, COLOR_AT)
        if target.control:
            view, self.format = RecordView(m, PLACEMENT, record, CONTROL_AT), samples.control_format(target.samples)
            self.places = PixelAddresses(m, view, "y_major", self.format.bits // 8, pixels, layer)
            self.memory = memory(view.load("base"))

    def values(self, mask: Value) -> list[Value]:
        """What it says of pixels, as dwords."""
        m = self.m
        return [m.convert(self.places.load(type, self.memory.moved(byte), mask), u32) for byte, type in words(self.format)]

    def is_identity(self, held: list[Value]) -> Value:
        """Where each sample has its own slice."""
        own = self.m.constant(bool_, 1, self.pixels.lanes)
        for value, wanted in zip(held, samples.identity(self.target.samples), strict=True):
            own = own & (value == wanted)
        return own

    def store_identity(self, mask: Value) -> None:
        for (byte, type), wanted in zip(words(self.format), samples.identity(self.target.samples), strict=True):
            self.places.store(self.m.constant(type, wanted, self.pixels.lanes), self.memory.moved(byte), mask)

    def slice(self, format: Format, number: int | Value) -> PixelAddresses:
        """The pixels of a slice; with a lane for each pixel, slices of their own."""
        return PixelAddresses(self.m, self.place, self.target.tiling, format.bits // 8, self.pixels, self.layer,
                              sample=PixelSample(number, self.target.samples, self.target.interleaved))  # fmt: skip

    def sample(self, format: Format, held: list[Value], number: int | Value, mask: Value) -> list[Value]:
        """The words of a sample of pixels (a number, or one lane), by what was read of the control surface."""
        m, memory, lanes = self.m, self.graphics(self.place.load("base")), self.pixels.lanes
        if not self.target.control:
            return [m.convert(self.slice(format, number).load(type, memory.moved(byte), mask), u32) for byte, type in words(format)]
        each = m.constant(u32, number, lanes) if isinstance(number, int) else m.broadcast(number, lanes)
        clear, where = samples.is_clear(m, self.target.samples, held), samples.slice_of(m, self.target.samples, held, each)
        filled, found = samples.clear_words(m, format, self._clear()), []
        for (byte, type), word in zip(words(format), filled, strict=True):
            value = self.slice(format, where).load(type, memory.moved(byte), mask & ~clear)
            found.append(m.select(clear, m.broadcast(word, lanes), m.convert(value, u32)))
        return found

    def _clear(self) -> list[Value]:
        """The channels of the clear colour, a lane each."""
        m = self.m
        if not self.target.clear_in_memory:
            return [self.numbers.load("clear", element=channel) for channel in range(4)]
        held = m.load(u32, self.graphics(self.numbers.load("clear_at")), m.lane_index(4) * u32.bytes, m.constant(bool_, 1, 4))
        return [m.slice(held, channel, 1) for channel in range(4)]

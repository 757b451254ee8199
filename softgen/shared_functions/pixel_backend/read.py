"""Render target read messages: the pixels of a target as they are (framebuffer fetch).

Headers are those of writes, and the render target index in them means nothing (KBL 20615): a read has no blend state. Pixels outside the
target read as zero bits; lanes that do not send, or that the header leaves off, keep their registers.

Reads   MH_RT
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softgen.bits.formats import Format
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordView
from softgen.lanes.types import u32
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.pixel_backend import blend, surface
from softgen.shared_functions.pixel_backend.messages import FORMS, GROUP, PixelEnvironment, PixelRead, message_mask, subspan_places
from softgen.shared_functions.pixel_backend.records import COLOR_AT, PLACEMENT
from softgen.shared_functions.pixel_backend.sample_control import ControlSurface
from softgen.shared_functions.pixel_backend.surface import PixelAddresses, Pixels, TargetSurface
from softgen.shared_functions.pixel_backend.write import PIXEL, PLACE_AT, words
from softgen.surface import texel

NAME = "render_target_read"


@dataclass(frozen=True)
class ReadForm:
    """What a read is specialised for."""

    surface: TargetSurface
    lanes: int

    def check(self) -> None:
        """Raise Unsupported for formats that are not simulated."""
        if self.surface.format is not None:
            texel.check(self.surface.format, reading=True)


class TargetRead:
    """A read, on any machine; parameters are those of TargetWrite."""

    def __init__(self, m: Machine, form: ReadForm, record: Memory, pixel: Memory, memory: Callable[[Value], Region], first: Value) -> None:
        self.m, self.form, self.lanes, self.memory, self.first = m, form, form.lanes, memory, first
        self.place, self.pixel = RecordView(m, PLACEMENT, record, COLOR_AT), RecordView(m, PIXEL, pixel, 0)

    def read(self, mask: Value) -> list[Value]:
        """Red, green, blue and alpha of the thread's pixels, as lanes of u32."""
        m, format = self.m, self.form.surface.format
        if format is None:
            return [m.constant(u32, 0, self.lanes)] * 4
        pixels = surface.subspans(m, m.load_block(u32, self.lanes // 4, self.pixel.memory, self.first + PLACE_AT))
        mask = mask & surface.inside(m, self.place, pixels)
        held = self._words(format, pixels, mask) if self.form.surface.samples == 1 else self._samples(format, pixels, mask)
        found = dict(zip(self.form.surface.order, texel.unpack(m, format, held), strict=True))
        return [found.get(name, m.like(held[0], 0)) for name in blend.RGBA]


    def _words(self, format: Format, pixels: Pixels, mask: Value) -> list[Value]:
        m, target = self.m, self.form.surface
        places = PixelAddresses(m, self.place, target.tiling, format.bits // 8, pixels, self.pixel.load("layer"), target.rotation)
        memory = self.memory(self.place.load("base"))
        return [m.convert(places.load(type, memory.moved(byte), mask), u32) for byte, type in words(format)]

    def _samples(self, format: Format, pixels: Pixels, mask: Value) -> list[Value]:
        """Words of samples: of the one that a channel is of, or of a pixel's first that is lit."""
        m, number = self.m, self.m.variable(self.m.constant(u32, 0, 1))
        control = ControlSurface(m, self.form.surface, self.place.memory, self.memory, pixels, self.pixel.load("layer"))
        said = control.values(mask) if self.form.surface.control else []
        left, found = m.variable(mask), [m.variable(m.constant(u32, 0, self.lanes)) for _ in words(format)]
        for _ in m.While(lambda: number.value < self.form.surface.samples):
            lit = left.value & m.mask_from_bits(self.pixel.load("sample_lit", element=number.value) >> self.first, self.lanes)
            for _ in m.If(m.any(lit)):
                for word, value in zip(found, control.sample(format, said, number.value, lit), strict=True):
                    word.value = m.select(lit, value, word.value)
            left.value = left.value & ~lit
            number.value = number.value + 1
        return [word.value for word in found]


@answers(NAME, compiled=True)
def render_target_read(x: Message[PixelEnvironment]) -> None:
    if not hasattr(x.environment, "parts"):
        raise Unsupported(f"{NAME} of a thread that has no render targets: its dispatch has no pixel backend")
    form = FORMS[x.plan.words["message_subtype"]]
    x.expect(4 * form.lanes * u32.bytes)
    mask, first = message_mask(x, form), GROUP if x.plan.words.get("slot_group") == "high_16" else 0
    found = x.environment.read(x.m, PixelRead(form.lanes, int(x.plan.fields.binding_table_index), mask, first,
                                                  subspan_places(x, form)))  # fmt: skip
    for channel, value in enumerate(found):
        x.give(value, channel * form.lanes * u32.bytes, mask)

"""Typed surface messages: texels by their coordinates, converted as the surface's format says.

Eight lanes; coordinates U, V, R and the level are registers of their own, as many as the message has room for (KBL 23744-23774).

Surface state is looked up by Python: these messages are not compiled.
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.errors import Unsupported
from softgen.lanes.types import u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.atomic import operation, perform, returned
from softgen.shared_functions.dataport.reach import bindless_offset, pixel_lanes
from softgen.shared_functions.dataport.scattered import channels
from softgen.shared_functions.exchange import REGISTER, Exchange, answers
from softgen.surface import fetch, texel
from softgen.surface.image import Image, locate

EIGHT = 8
FIRST = {"low_8": 0, "high_8": 8}  # of the instruction's channels
LEVEL = 3  # the coordinate that is no coordinate


def picture(x: Exchange) -> Image:
    index = int(x.plan.fields.binding_table_index)
    special = catalogue.enumeration(message.SURFACES, x.plan.gen).get(index)
    if special == "bindless":
        found: Image = x.environment.picture(bindless_offset(x), True)
        return found
    if special is not None:
        raise Unsupported(f"{x.plan.name} to {special}: no surface with a format")
    found = x.environment.picture(index, False)
    return found


class Typed:
    """A typed message: where its texels are, and who takes part."""

    def __init__(self, x: Exchange, behind: int) -> None:
        """`behind`: registers of data that follow the coordinates."""
        self.x, self.one = x, picture(x)
        texel.check(self.one.format)
        self.group = x.plan.words.get("slot_group", "simd4x2" if x.plan.name.endswith("simd4x2") else "low_8")
        self.slots = self.group == "simd4x2"
        held = (x.sent - (REGISTER if x.plan.header else 0)) // REGISTER - behind
        self.behind = (1 if self.slots else held) * REGISTER  # where data begins
        self.mask = simd4x2.slots(x) if self.slots else pixel_lanes(x, EIGHT, FIRST[self.group])
        count = range(4 if self.slots else held)
        places = [simd4x2.firsts(x, u32, 0, n) if self.slots else x.take(u32, n * REGISTER, EIGHT) for n in count]
        self.at, inside = locate(x.m, self.one, places[:LEVEL], places[LEVEL] if len(places) > LEVEL else None)
        self.inside = self.mask & inside
        self.memory: Region = x.environment.absolute(self.one.base)

    def load(self) -> list[Value]:
        return fetch.load(self.x.m, self.one, self.memory, self.at, self.inside)

    def store(self, values: list[Value]) -> None:
        m = self.x.m
        for (at, type), word in zip(fetch.words(self.one), texel.pack(m, self.one.format, values), strict=True):
            m.store(m.convert(word, type), self.memory.moved(at), self.at, self.inside)


@answers("typed_surface_read", compiled=False)
def typed_read(x: Exchange) -> None:
    """Out of bounds, all channels are zero."""
    one, m = Typed(x, 0), x.m
    found = [m.select(one.inside, value, 0) for value in one.load()]
    if one.slots:
        for slot in range(simd4x2.SLOTS):
            for channel in channels(x):
                x.give(m.slice(found[channel], slot, 1), slot * 16 + channel * 4, m.slice(one.mask, slot, 1))
        return
    for number, channel in enumerate(channels(x)):
        x.give(found[channel], number * REGISTER, one.mask)


@answers("typed_surface_write", compiled=False)
def typed_write(x: Exchange) -> None:
    """A channel that the message leaves out is written as zero."""
    meant = channels(x)
    one, m = Typed(x, len(meant)), x.m
    values = [m.constant(u32, 0, one.mask.lanes)] * 4
    for number, channel in enumerate(meant):
        values[channel] = simd4x2.firsts(x, u32, one.behind, channel) if one.slots else x.take(u32, one.behind + number * REGISTER, EIGHT)
    one.store(values)


@answers("typed_atomic", "typed_atomic_simd4x2", compiled=False)
def typed_atomic(x: Exchange) -> None:
    name, what = operation(x)
    slots = x.plan.name.endswith("simd4x2")
    one = Typed(x, min(what.operands, 1) if slots else what.operands)
    if one.one.size != u32.bytes:
        raise Unsupported(f"{x.plan.name} on texels of format {one.one.format}: not yet simulated")
    start, count = one.behind, range(what.operands)
    operands = [simd4x2.firsts(x, u32, start, number) if slots else x.take(u32, start + number * REGISTER, EIGHT) for number in count]
    old = returned(name, perform(x.m, what, u32, one.memory, one.at, operands, one.inside))
    if x.plan.fields.return_data and slots:
        simd4x2.give_firsts(x, old, one.mask)
    elif x.plan.fields.return_data:
        x.give(old, 0, one.mask)


@answers("atomic_counter", "atomic_counter_simd4x2", compiled=False)
def atomic_counter(x: Exchange) -> None:
    """A surface's own counter; the lanes count one after the other (BDW 18747-19062)."""
    name, what = operation(x)
    slots, m = x.plan.name.endswith("simd4x2"), x.m
    mask = simd4x2.slots(x) if slots else x.lanes(EIGHT)
    at = m.constant(u32, 0, mask.lanes)
    operands = [simd4x2.firsts(x, u32, 0, number) if slots else x.take(u32, number * REGISTER, EIGHT) for number in range(what.operands)]
    memory = x.environment.counter(int(x.plan.fields.binding_table_index))
    old = returned(name, perform(m, what, u32, memory, at, operands, mask))
    if x.plan.fields.return_data and slots:
        simd4x2.give_firsts(x, old, mask)
    elif x.plan.fields.return_data:
        x.give(old, 0, mask)



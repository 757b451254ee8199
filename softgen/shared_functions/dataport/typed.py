"""Typed surface messages: texels by their coordinates, converted as the surface's format says.

Eight lanes; coordinates U, V, R and the level are registers of their own, as many as the message has room for (KBL 23744-23774).

Reads, writes and atomics are operations on texels (texture/operations.py). For counters, surface state is looked up by Python: they are not
compiled.
"""

from __future__ import annotations

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.bindings import ATOMICS
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.atomic import INTEGERS, operation, perform, returned
from softgen.shared_functions.dataport.environment import DataPortMessage, StateMessage
from softgen.shared_functions.dataport.reach import pixel_lanes
from softgen.shared_functions.dataport.scattered import channels
from softgen.shared_functions.message import MessagePlan, answers
from softgen.shared_functions.texture.operations import ASKERS, TexelOperation, TexelRequest
from softgen.shared_functions.texture.operations import operation as operation_on_texels
from softgen.surface import fetch, texel
from softgen.surface.image import SurfaceImage, locate

EIGHT = 8
FIRST = {"low_8": 0, "high_8": 8}  # of the instruction's channels
LEVEL = 3  # the coordinate that is no coordinate
FOUR = 4  # coordinates, and channels
ATOMIC = "atomic_"  # begins the names of operations


def _lanes(plan: MessagePlan) -> int:
    slots = "simd4x2" in plan.attributes or plan.words.get("slot_group", "low_8") not in FIRST
    return simd4x2.SLOTS if slots else EIGHT


ASKERS["typed_surface_read"] = lambda plan, _: TexelRequest("read", _lanes(plan))
ASKERS["typed_surface_write"] = lambda plan, _: TexelRequest("write", _lanes(plan))
ASKERS["typed_atomic"] = ASKERS["typed_atomic_simd4x2"] = lambda plan, _: TexelRequest(f"{ATOMIC}{plan.words['operation']}", _lanes(plan))


def _asked(x: DataPortMessage, data: int) -> tuple[bool, list[Value], Value, int]:
    """Whether a message has two slots, its coordinates and level, who takes part, and where data begins; `data`: registers of data."""
    group = x.plan.words.get("slot_group", "low_8")
    if _lanes(x.plan) == simd4x2.SLOTS:
        return True, [simd4x2.firsts(x, u32, 0, place) for place in range(FOUR)], simd4x2.slots(x), GRF_BYTES
    held = (x.sent - (GRF_BYTES if x.plan.header else 0)) // GRF_BYTES - data
    places = [x.take(u32, place * GRF_BYTES, EIGHT) for place in range(max(held, 1))]
    missing = [x.m.constant(u32, 0, EIGHT)] * FOUR
    return False, [*places, *missing][:FOUR], pixel_lanes(x, EIGHT, FIRST[group]), held * GRF_BYTES


@answers("typed_surface_read")
def typed_read(x: DataPortMessage) -> None:
    m, (slots, places, mask, _) = x.m, _asked(x, 0)
    x.expect(GRF_BYTES if slots else len(channels(x)) * GRF_BYTES)
    found = x.environment.textured(x, "read", 0, places, mask, FOUR)
    if slots:
        for slot in range(simd4x2.SLOTS):
            for channel in channels(x):
                x.give(m.slice(found[channel], slot, 1), slot * 16 + channel * 4, m.slice(mask, slot, 1))
        return
    for number, channel in enumerate(channels(x)):
        x.give(found[channel], number * GRF_BYTES, mask)


@operation_on_texels("read", FOUR)
def read(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """Out of bounds, all channels are zero."""
    texel.check(image.format)
    at, inside = locate(m, image, given[:LEVEL], given[LEVEL])
    return [m.select(inside, value, 0) for value in fetch.load(m, image, memory, at, mask & inside)]


@answers("typed_surface_write")
def typed_write(x: DataPortMessage) -> None:
    """A channel that the message leaves out is written as zero."""
    meant = channels(x)
    slots, places, mask, start = _asked(x, len(meant))
    values = [x.m.constant(u32, 0, mask.lanes)] * FOUR
    for number, channel in enumerate(meant):
        values[channel] = simd4x2.firsts(x, u32, start, channel) if slots else x.take(u32, start + number * GRF_BYTES, EIGHT)
    x.environment.textured(x, "write", 0, places + values, mask, 0)


@operation_on_texels("write", 2 * FOUR)
def write(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    texel.check(image.format)
    at, inside = locate(m, image, given[:LEVEL], given[LEVEL])
    for (byte, type), word in zip(fetch.words(image), texel.pack(m, image.format, given[FOUR:]), strict=True):
        m.store(m.convert(word, type), memory.moved(byte), at, mask & inside)
    return []


def _is_integer_atomic(plan: MessagePlan) -> bool:
    return plan.words["operation"] in ATOMICS


@answers("typed_atomic", "typed_atomic_simd4x2", compiled=_is_integer_atomic)
def typed_atomic(x: DataPortMessage) -> None:
    name, what = operation(x)
    data = min(what.operands, 1) if "simd4x2" in x.plan.attributes else what.operands
    slots, places, mask, start = _asked(x, data)
    count = range(what.operands)
    operands = [simd4x2.firsts(x, u32, start, number) if slots else x.take(u32, start + number * GRF_BYTES, EIGHT) for number in count]
    x.expect(GRF_BYTES if x.plan.fields.return_data else 0)
    (old,) = x.environment.textured(x, f"{ATOMIC}{name}", 0, places + operands, mask, 1)
    if x.plan.fields.return_data and slots:
        simd4x2.give_firsts(x, old, mask)
    elif x.plan.fields.return_data:
        x.give(old, 0, mask)


def _atomic(name: str) -> TexelOperation:
    def atomic(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
        """Out of bounds nothing is changed, and the old value is zero."""
        texel.check(image.format)
        if image.size != u32.bytes:
            raise Unsupported(f"typed atomics on texels of format {image.format}: not yet simulated")
        at, inside = locate(m, image, given[:LEVEL], given[LEVEL])
        old = perform(m, INTEGERS[name], u32, memory, m.convert(at, u64), given[FOUR:], mask & inside)
        return [returned(name, old)]

    return atomic


for _name in ATOMICS:
    operation_on_texels(f"{ATOMIC}{_name}", FOUR + INTEGERS[_name].operands)(_atomic(_name))


@answers("atomic_counter", "atomic_counter_simd4x2", compiled=False)
def atomic_counter(x: StateMessage) -> None:
    """A surface's own counter; the lanes count one after the other (BDW 18747-19062)."""
    name, what = operation(x)
    slots, m = "simd4x2" in x.plan.attributes, x.m
    mask = simd4x2.slots(x) if slots else x.lanes(EIGHT)
    at = m.constant(u32, 0, mask.lanes)
    operands = [simd4x2.firsts(x, u32, 0, number) if slots else x.take(u32, number * GRF_BYTES, EIGHT) for number in range(what.operands)]
    memory = x.environment.counter(int(x.plan.fields.binding_table_index))
    x.expect(GRF_BYTES if x.plan.fields.return_data else 0)
    old = returned(name, perform(m, what, u32, memory, at, operands, mask))
    if x.plan.fields.return_data and slots:
        simd4x2.give_firsts(x, old, mask)
    elif x.plan.fields.return_data:
        x.give(old, 0, mask)


# -- Gen4.5: streamed vertex buffers -----------------------------------------------------------------------------------

ELEMENT = 5  # dword of the header with the number of the element (public: Mesa brw_ff_gs_emit.c)

ASKERS["streamed_vertex_buffer_write"] = lambda plan, _: TexelRequest("write", simd4x2.SLOTS)


@answers("streamed_vertex_buffer_write")
def streamed_write(x: DataPortMessage) -> None:
    """Write one to four dwords of the header, as the format says, to an element of a buffer; past its end nothing is written (G45 3482)."""
    m, off = x.m, x.m.constant(u32, 0, 1)
    if x.plan.fields.message_control:
        raise Unsupported(f"{x.plan.name} with message_control {x.plan.fields.message_control}, which counts: not yet simulated")
    dwords = x.raw(u32, 0, EIGHT)
    pairs = [m.concat(m.slice(dwords, dword, 1), off) for dword in (*range(FOUR), ELEMENT)]
    places = [pairs[FOUR], *[m.constant(u32, 0, simd4x2.SLOTS)] * LEVEL]
    mask = m.concat(m.any(x.mask), m.constant(bool_, 0, 1))
    x.environment.textured(x, "write", 0, places + pairs[:FOUR], mask, 0)

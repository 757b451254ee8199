"""Sampler messages: what payloads hold, and how answers are laid out.

Parameters follow one another, a register for each eight lanes; what the message has no room for is zero. A 1D array has its
slice where v would be, a 2D array where r would be (public: Mesa brw_lower_logical_sends.cpp; observed: Intel's OpenCL compiler).

What depends on states is an operation on texels (texture.py). Compiled code leaves the less common messages to the reference.

Reads   MH_SAMPLER
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from softgen.bits.generation import generation
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, f16, f32, i32, u16, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.message import REGISTER, MessagePlan, answers
from softgen.shared_functions.sampler.environment import SamplerMessage, StateMessage
from softgen.shared_functions.sampler.filters import AXES, ImageSampler, nothing, selected
from softgen.shared_functions.sampler.state import Sampling
from softgen.shared_functions.texture.operations import ASKERS, TexelRequest, operation, picture
from softgen.surface import texel
from softgen.surface.fetch import fetch
from softgen.surface.image import SurfaceImage, broadcast_number

HEADER = "MH_SAMPLER"
LANES = {"simd8": 8, "simd16": 16}
SLOTS_MODES = ("simd4x2", "simd8d_or_simd4x2")
MASKS = ("red_channel_mask", "green_channel_mask", "blue_channel_mask", "alpha_channel_mask")
OFFSETS = ("u_offset", "v_offset", "r_offset")
SLOT_PARAMETERS = ("u", "v", "r", "lod")  # of SIMD4x2
SAMPLE = {"sample": ("u", "v", "r", "ai"), "sample_lz": ("u", "v", "r", "ai"), "sample_l": ("lod", "u", "v", "r", "ai"),
          "sample_b": ("bias", "u", "v", "r", "ai")}  # fmt: skip


@dataclass(frozen=True)
class SampleShape:
    """How wide a message is."""

    lanes: int
    slots: bool  # two slots, each with all its parameters contiguous
    mask: Value


def _plain(plan: MessagePlan) -> bool:
    """Whether a message can be compiled: its shape is known, and so is its level of detail."""
    return plan.name in ASKERS and plan.words.get("simd_mode") in LANES and plan.words.get("return_format") != "16_bit"


def shape(x: SamplerMessage) -> SampleShape:
    mode = x.plan.words.get("simd_mode", "")
    if mode in LANES:
        return SampleShape(LANES[mode], False, x.lanes(LANES[mode]))
    if mode == "simd4x2" or mode in SLOTS_MODES and x.plan.header and _bit(x, "simd_mode_extension"):
        return SampleShape(simd4x2.SLOTS, True, simd4x2.slots(x))
    raise Unsupported(f"{x.plan.name} {mode or 'without a SIMD mode'}: not yet simulated")


def _bit(x: SamplerMessage, name: str) -> bool:
    return bool(x.m.any(x.header(HEADER, name) == 1))


def parameters(x: SamplerMessage, its: SampleShape, order: tuple[str, ...], type: LaneType) -> dict[str, Value]:
    """The parameters by name."""
    m = x.m
    found = dict.fromkeys(order, m.constant(type, 0, its.lanes))
    if its.slots:
        return found | {name: simd4x2.firsts(x, type, 0, place) for place, name in enumerate(SLOT_PARAMETERS)}
    size = its.lanes * type.bytes
    held = max(x.sent - (REGISTER if x.plan.header else 0), 0) // size
    return found | {name: x.take(type, place * size, its.lanes) for place, name in enumerate(order[:held])}


def offsets(x: SamplerMessage, lanes: int) -> list[Value]:
    """Texels that the header adds to coordinates: four bits with a sign. In compiled code there may be none."""
    m = x.m
    held = [x.header(HEADER, name) for name in OFFSETS] if x.plan.header else []
    moved = x.environment.moved([m.bitcast(one << 28, i32) >> 28 for one in held])
    return [m.bitcast(m.broadcast(one, lanes), u32) for one in moved]


# -- the answer -----------------------------------------------------------------------------------------------------------


def respond(x: SamplerMessage, its: SampleShape, values: list[Value]) -> None:
    """Channels that the header masks are left out and the others move up; without a header, those there is no room for are left out
    (KBL 13880-13887)."""
    m = x.m
    masked = [x.header(HEADER, name) == 1 for name in MASKS] if x.plan.header else []
    if its.slots:
        _give_slots(x, its, values, masked)
        return
    if masked:
        values = _compacted(x, values, [m.broadcast(one, its.lanes) for one in masked])
    if x.plan.words.get("return_format") == "16_bit":
        values = _narrowed(x, values)
    step = max(its.lanes * values[0].type.bytes, REGISTER)  # a channel begins with a register
    for number, value in enumerate(values[: x.answered // step]):
        x.give(value, number * step, its.mask)


def _compacted(x: SamplerMessage, values: list[Value], masked: list[Value]) -> list[Value]:
    m = x.m
    found = list(values)
    for number in reversed(range(len(values))):  # from the last: what follows a masked channel moves up
        for place in range(number, len(values) - 1):
            found[place] = m.select(masked[number], found[place + 1], found[place])
    return found


def _narrowed(x: SamplerMessage, values: list[Value]) -> list[Value]:
    """As 16 bits; whether that are floats or integers is the surface's affair."""
    m = x.m
    if texel.is_integer(picture(cast(StateMessage, x)).format):  # such messages are not compiled
        return [m.convert(value, u16) for value in values]
    return [m.bitcast(m.convert(m.bitcast(value, f32), f16), u16) for value in values]


def _give_slots(x: SamplerMessage, its: SampleShape, values: list[Value], masked: list[Value]) -> None:
    m = x.m
    for slot in range(its.lanes):
        for number, value in enumerate(values):
            on = m.slice(its.mask, slot, 1)
            on = on & ~masked[number] if masked else on
            x.give(m.slice(value, slot, 1), slot * REGISTER // its.lanes + number * u32.bytes, on)


# -- the messages -----------------------------------------------------------------------------------------------------------


@answers(*SAMPLE, compiled=_plain)
def sample(x: SamplerMessage) -> None:
    its = shape(x)
    given = parameters(x, its, SAMPLE[x.plan.name], f32)
    moved = offsets(x, its.lanes)
    if x.plan.header:  # a table of samplers of its own (public: Mesa brw_lower_logical_sends.cpp)
        x.environment.table(x.header(HEADER, "sampler_state_pointer"))
    places = [given[name] for name in ("u", "v", "r", "ai")] + ([given["lod"]] if "lod" in given else [])
    if x.plan.name == "sample_lz":
        places.append(x.m.constant(f32, 0.0, its.lanes))
    places = [x.m.bitcast(place, u32) for place in places]
    found = x.environment.textured(x, "sample", int(x.plan.fields.sampler_index), places + moved, its.mask, 4)
    respond(x, its, found)


@operation("sample")
def sampled(m: Machine, image: SurfaceImage, how: Sampling, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """Given are u, v, r and slice, the level if it is known, and offsets if there are any."""
    if how.disabled or image.kind == "null":  # all zeros (KBL 22222-22227, 18924-18926)
        return nothing(m, mask.lanes)
    places, rest = [m.bitcast(value, f32) for value in given[:4]], given[4:]
    lod = m.bitcast(rest[0], f32) if len(rest) % 3 else None
    moved = [m.bitcast(value, i32) for value in rest[-3:]] if len(rest) >= 3 else None
    return selected(m, image, ImageSampler(m, image, how, memory, mask).sample(places, lod, moved))


@answers("ld", "ld_lz", compiled=_plain)
def ld(x: SamplerMessage) -> None:
    its = shape(x)
    order = generation(x.plan.gen).ld_parameters if x.plan.name == "ld" else ("u", "v", "r")
    given = {"lod": x.m.constant(u32, 0, its.lanes)} | parameters(x, its, order, u32)
    places = [given[name] for name in ("u", "v", "r", "lod")] + offsets(x, its.lanes)
    respond(x, its, x.environment.textured(x, "load", 0, places, its.mask, 4))


@operation("load")
def loaded(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """Texels by their numbers. Outside the surface and its levels, texels are zero. Offsets are added after the hardware's check of bounds
    (public: Mesa brw_fs_visitor.cpp); what they lead to must be inside too."""
    if image.kind == "null":
        return nothing(m, mask.lanes)
    places, lod, moved = given[:3], given[3], given[4:]
    for axis, by in enumerate(moved[: AXES.get(image.kind, 0)]):
        places[axis] = places[axis] + by
    found = fetch(m, image, memory, places, None if image.kind == "buffer" else lod, mask)
    return selected(m, image, found)


def _asked(what: str) -> Callable[[MessagePlan], TexelRequest]:
    return lambda plan: TexelRequest(what, LANES[plan.words["simd_mode"]], int(plan.fields.sampler_index) if what == "sample" else 0)


ASKERS.update({"sample_l": _asked("sample"), "sample_lz": _asked("sample"), "ld": _asked("load"), "ld_lz": _asked("load")})


@answers("resinfo", compiled=False)
def resinfo(x: StateMessage) -> None:
    """How large a level is, and how many there are; what is no level has no size (public: Intel PRM, sampling engine)."""
    m, its, one = x.m, shape(x), picture(x)
    lod = parameters(x, its, ("u",), u32)["u"]
    sizes = {"1d": [one.width], "2d": [one.width, one.height], "cube": [one.width, one.height], "3d": [one.width, one.height, one.depth],
             "buffer": [one.width], "null": []}[one.kind]  # fmt: skip
    there = lod < one.levels
    deep = m.select(there, lod, 0) + one.level
    whole = [broadcast_number(m, size, u32, its.lanes) for size in sizes]
    found = [_less(x, size, deep, there) if one.kind != "buffer" else size for size in whole]
    if one.is_array:
        found.append(m.select(there, broadcast_number(m, one.depth, u32, its.lanes), 0))
    found = (found + nothing(m, its.lanes))[:3]
    respond(x, its, [*found, m.constant(u32, 0 if one.kind in ("buffer", "null") else one.levels, its.lanes)])


def _less(x: SamplerMessage, size: Value, level: Value, there: Value) -> Value:
    m = x.m
    less = size >> level
    return m.select(there, m.select(less > 1, less, 1), 0)


@answers("sampleinfo", compiled=False)
def sampleinfo(x: StateMessage) -> None:
    """Samples of a texel, and the palette of their positions, returned as it is in the state (KBL 19663-19669)."""
    m, its, one = x.m, shape(x), picture(x)
    there = one.kind != "null"
    found = [m.constant(u32, number if there else 0, its.lanes) for number in (one.samples, one.palette)]
    respond(x, its, [*found, *nothing(m, its.lanes)][:4])

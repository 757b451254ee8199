"""Sampler messages: what payloads hold, and how answers are laid out.

Parameters follow one another, a register for each eight lanes; what the message has no room for is zero. A 1D array has its
slice where v would be, a 2D array where r would be (public: Mesa brw_lower_logical_sends.cpp; observed: Intel's OpenCL compiler).

What depends on states is an operation on texels (operations.py). Compiled code leaves the less common messages to the interpreter.

Reads   MH_SAMPLER
"""

from __future__ import annotations

from typing import cast

from softgen.bits.generation import generation
from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.types import LaneType, bool_, f16, f32, i16, i32, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions.bindings import LOAD_CONTROL, LOAD_SAMPLE
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.message import MessagePlan, answers
from softgen.shared_functions.sampler import operations, payloads
from softgen.shared_functions.sampler.channels import nothing
from softgen.shared_functions.sampler.environment import SamplerMessage, StateMessage
from softgen.shared_functions.sampler.payloads import COORDINATES, GRADIENTS, Payload
from softgen.shared_functions.texture.operations import ASKERS, TexelRequest, picture
from softgen.surface import texel

HEADER = "MH_SAMPLER"
SLOTS_MODES = ("simd8d_or_simd4x2",)  # the header tells which
MASKS = ("red_channel_mask", "green_channel_mask", "blue_channel_mask", "alpha_channel_mask")
OFFSETS = ("u_offset", "v_offset", "r_offset")
# The operation that a message asks for; at level 0 if the message says so.
SAMPLES = {name: name for name in ("sample", "sample_b", "sample_l", "sample_d", "sample_c", "sample_b_c", "sample_l_c", "sample_d_c",
                                   "gather4", "gather4_c", "lod")}  # fmt: skip
SAMPLES |= {"sample_lz": "sample_l", "sample_c_lz": "sample_l_c", "gather4_po": "gather4", "gather4_po_c": "gather4_c"}


def _payload(plan: MessagePlan, sent: int = 0) -> Payload | None:
    """The parameters of a message; `sent`: its bytes, where they matter."""
    found, able = payloads.payload(plan, generation(plan.gen).ld_parameters), generation(plan.gen).lowest_lod_parameter
    if found is None or found.slots or plan.name not in payloads.CLAMPED or not able:
        return found
    room = sent - (GRF_BYTES if plan.header else 0)
    return found._replace(order=(*found.order, payloads.LOWEST)) if room > len(found.order) * found.size else found


def _operation(name: str, its: Payload) -> str:
    """The operation that a message asks for, without offsets."""
    what = SAMPLES[name]
    if payloads.LOWEST not in its.order:
        return what
    return what.removesuffix("_c") + operations.LOWEST + "_c" * what.endswith("_c")


def _plain(plan: MessagePlan) -> bool:
    """Whether a message can be compiled: its width is known, and its answer does not depend on the surface."""
    if plan.name not in ASKERS or plan.words.get("return_format") == "16_bit":
        return False
    try:
        return _payload(plan) is not None
    except Unsupported:
        return False


def shape(x: SamplerMessage) -> Payload:
    found = _payload(x.plan, x.sent)
    if found is not None:
        return found
    mode = x.plan.words["simd_mode"]
    if mode in SLOTS_MODES and x.plan.header and bool(x.m.any(x.header(HEADER, "simd_mode_extension") == 1)):
        return payloads.slots(x.plan)
    raise Unsupported(f"{x.plan.name} {mode}: not yet simulated")


def lanes_on(x: SamplerMessage, its: Payload) -> Value:
    return simd4x2.slots(x) if its.slots else x.lanes(its.lanes)


def parameters(x: SamplerMessage, its: Payload, type: LaneType) -> dict[str, Value]:
    """The parameters by name; those that the message has no room for are zero."""
    room = max(x.sent - (GRF_BYTES if x.plan.header else 0), 0)
    found = dict.fromkeys(its.order, x.m.constant(type, 0, its.lanes))
    if its.slots:
        held = room // GRF_BYTES * simd4x2.FOUR
        return found | {name: simd4x2.firsts(x, type, place // simd4x2.FOUR * GRF_BYTES, place % simd4x2.FOUR)
                        for place, name in enumerate(its.order[:held]) if name}  # fmt: skip
    take = _halves if its.half else _whole
    return found | {name: take(x, its, type, name, place) for place, name in enumerate(its.order[: room // its.size])}


def _whole(x: SamplerMessage, its: Payload, type: LaneType, name: str, place: int) -> Value:
    return x.take(type, place * its.size, its.lanes)


def _halves(x: SamplerMessage, its: Payload, type: LaneType, name: str, place: int) -> Value:
    """A parameter of 16 bits as 32: a float, or an integer with a sign."""
    m, held = x.m, x.take(u16, place * its.size, its.lanes)
    if type is f32 and not name.startswith("offset"):
        return m.convert(m.bitcast(held, f16), f32)
    return m.bitcast(m.convert(m.bitcast(held, i16), i32), type)


def offsets(x: SamplerMessage, lanes: int) -> list[Value]:
    """Texels that the header adds to coordinates: four bits with a sign. Where every message has a header, compiled code has none of them
    (`SamplerEnvironment.moved`)."""
    m = x.m
    held = [x.header(HEADER, name) for name in OFFSETS] if x.plan.header else []
    moved = [m.bitcast(offset << 28, i32) >> 28 for offset in held]
    if payloads.by_length(x.plan):
        moved = x.environment.moved(moved)
    return [m.bitcast(m.broadcast(offset, lanes), u32) for offset in moved]


# -- the answer -----------------------------------------------------------------------------------------------------------


def respond(x: SamplerMessage, its: Payload, values: list[Value]) -> None:
    """Channels that the header masks are left out and the others move up; without a header, those there is no room for are left out
    (KBL 13880-13887)."""
    m = x.m
    masked = [x.header(HEADER, name) == 1 for name in MASKS] if x.plan.header else []
    if its.slots:
        _give_slots(x, its, values, masked)
        return
    if masked:
        values = _compacted(x, values, [m.broadcast(bit, its.lanes) for bit in masked])
    if x.plan.words.get("return_format") == "16_bit":
        values = _narrowed(x, values)
    step = max(its.lanes * values[0].type.bytes, GRF_BYTES)  # a channel begins with a register
    for number, value in enumerate(values[: x.answered // step]):
        x.give(value, number * step, lanes_on(x, its))


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
    if texel.is_integer(picture(cast(StateMessage, x), samples=True).format):  # such messages are not compiled
        return [m.convert(value, u16) for value in values]
    return [m.bitcast(m.convert(m.bitcast(value, f32), f16), u16) for value in values]


def _give_slots(x: SamplerMessage, its: Payload, values: list[Value], masked: list[Value]) -> None:
    m, mask = x.m, lanes_on(x, its)
    for slot in range(its.lanes):
        for number, value in enumerate(values):
            on = m.slice(mask, slot, 1)
            on = on & ~masked[number] if masked else on
            x.give(m.slice(value, slot, 1), slot * GRF_BYTES // its.lanes + number * u32.bytes, on)


# -- the messages -----------------------------------------------------------------------------------------------------------


def _asked(plan: MessagePlan, sent: int) -> TexelRequest:
    its = _payload(plan, sent)
    assert its is not None
    moved = plan.name in PER_LANE or plan.header and not payloads.by_length(plan)
    if plan.name in SAMPLES:
        return TexelRequest(_operation(plan.name, its) + operations.OFFSET * moved, its.lanes, plan.indices[1])
    if plan.name == "resinfo":
        return TexelRequest("resinfo", its.lanes)
    if plan.name in SAMPLED:
        return TexelRequest(LOAD_CONTROL if plan.name == "ld_mcs" else LOAD_SAMPLE, its.lanes)
    return TexelRequest("load" + operations.OFFSET * moved, its.lanes)


PER_LANE = ("gather4_po", "gather4_po_c")  # messages with offsets of their own for each lane
# Messages about samples, and the parameters of their operations.
SAMPLED = {"ld_mcs": ("u", "v", "r"), **dict.fromkeys(("ld2dms", "ld2dms_w", "ld2dss"), ("u", "v", "r", "si", "mcs0", "mcs1"))}
ASKERS.update(dict.fromkeys((*SAMPLES, *SAMPLED, "ld", "ld_lz", "resinfo"), _asked))


@answers(*SAMPLES, compiled=_plain)
def sample(x: SamplerMessage) -> None:
    m, its = x.m, shape(x)
    given = parameters(x, its, f32)
    zero = m.constant(f32, 0.0, its.lanes)
    moved = [given[name] for name in ("offset_u", "offset_v")] + [zero] if x.plan.name in PER_LANE else offsets(x, its.lanes)
    # A header has a table of samplers of its own (public: Mesa brw_lower_logical_sends.cpp).
    sampler = x.environment.sampler(x.sampler_index, x.header(HEADER, "sampler_state_pointer") if x.plan.header else None)
    what = _operation(x.plan.name, its)
    names = [*COORDINATES, *(GRADIENTS if "_d" in what else ()), *(("bias",) if "_b" in what else ()), *(("lod",) if "_l" in what else ()),
             *((payloads.LOWEST,) if operations.LOWEST in what else ()), *(("ref",) if what.endswith("_c") else ())]  # fmt: skip
    places = [m.bitcast(given.get(name, zero), u32) for name in names]
    if what.startswith("gather4"):
        channel = x.header(HEADER, "gather4_source_channel") if x.plan.header else m.constant(u32, 0, 1)
        places.append(m.broadcast(channel, its.lanes))
    name = what + operations.OFFSET * bool(moved)
    places += [m.bitcast(value, u32) for value in moved]
    respond(x, its, x.environment.textured(x, name, sampler, places, lanes_on(x, its), 4))


@answers(operations.KILLING, compiled=False)
def sample_killpix(x: SamplerMessage) -> None:
    """A sample, then a register with the pixels that chroma keys have not killed; other bits are ones (public: Intel PRM, sampling engine,
    writeback message with pixel mask)."""
    m, its = x.m, shape(x)
    given = parameters(x, its, f32)
    places = [m.bitcast(given[name], u32) for name in COORDINATES]
    sampler = x.environment.sampler(x.sampler_index, x.header(HEADER, "sampler_state_pointer") if x.plan.header else None)
    *values, killed = x.environment.textured(x, operations.KILLING, sampler, places, lanes_on(x, its), 5)
    room = x.answered - GRF_BYTES
    step = its.lanes * u32.bytes
    respond(x, its, values[: room // step])
    bits = m.bits_from_mask(killed != 0)
    x.give(~bits & 0xFFFF, room // step * step, m.constant(bool_, 1, 1))


@answers("ld", "ld_lz", compiled=_plain)
def ld(x: SamplerMessage) -> None:
    its = shape(x)
    given = {"lod": x.m.constant(u32, 0, its.lanes)} | parameters(x, its, u32)
    moved = offsets(x, its.lanes)
    places = [given[name] for name in ("u", "v", "r", "lod")] + moved
    respond(x, its, x.environment.textured(x, "load" + operations.OFFSET * bool(moved), 0, places, lanes_on(x, its), 4))


@answers("ld_mcs", "ld2dms", "ld2dms_w", "ld2dss", compiled=_plain)
def ld_sample(x: SamplerMessage) -> None:
    """A sample of a texel, or what the control surface says about the texel."""
    its = shape(x)
    given = dict.fromkeys(("u", "v", "r", "si", "mcs0", "mcs1"), x.m.constant(u32, 0, its.lanes)) | parameters(x, its, u32)
    places = [given[name] for name in SAMPLED[x.plan.name]]
    for axis, by in enumerate(offsets(x, its.lanes)[:2]):
        places[axis] = places[axis] + by
    what = LOAD_CONTROL if x.plan.name == "ld_mcs" else LOAD_SAMPLE
    respond(x, its, x.environment.textured(x, what, 0, places, lanes_on(x, its), 4))


@answers("resinfo", compiled=_plain)
def resinfo(x: SamplerMessage) -> None:
    its = shape(x)
    respond(x, its, x.environment.textured(x, "resinfo", 0, [parameters(x, its, u32)["lod"]], lanes_on(x, its), 4))


@answers("sampleinfo", compiled=False)
def sampleinfo(x: StateMessage) -> None:
    """Samples of a texel, and the palette of their positions, returned as it is in the state (KBL 19663-19669)."""
    m, its, image = x.m, shape(x), picture(x, samples=True)
    there = image.kind != "null"
    found = [m.constant(u32, number if there else 0, its.lanes) for number in (image.samples, image.palette)]
    respond(x, its, [*found, *nothing(m, its.lanes)][:4])


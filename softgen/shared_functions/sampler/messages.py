"""Sampler messages: what payloads hold, and how answers are laid out.

Parameters stand one behind the other, a register for each eight lanes; what the message has no room for is zero. A 1D array has its
slice where v would be, a 2D array where r would be (public: Mesa brw_lower_logical_sends.cpp; observed: Intel's OpenCL compiler).

Surface and sampler states are looked up by Python: these messages are not compiled.

Reads   MH_SAMPLER
"""

from __future__ import annotations

from dataclasses import dataclass

from softgen.bits.generation import generation
from softgen.errors import Unsupported
from softgen.lanes.types import LaneType, f16, f32, i32, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.typed import picture
from softgen.shared_functions.exchange import REGISTER, Exchange, answers
from softgen.shared_functions.sampler.filters import Reader, nothing, selected
from softgen.shared_functions.sampler.state import Sampling
from softgen.surface import texel
from softgen.surface.fetch import fetch
from softgen.surface.image import Image, spread

HEADER = "MH_SAMPLER"
LANES = {"simd8": 8, "simd16": 16}
SLOTS_MODES = ("simd4x2", "simd8d_or_simd4x2")
MASKS = ("red_channel_mask", "green_channel_mask", "blue_channel_mask", "alpha_channel_mask")
OFFSETS = ("u_offset", "v_offset", "r_offset")
SLOT_PARAMETERS = ("u", "v", "r", "lod")  # of SIMD4x2
SAMPLE = {"sample": ("u", "v", "r", "ai"), "sample_lz": ("u", "v", "r", "ai"), "sample_l": ("lod", "u", "v", "r", "ai"),
          "sample_b": ("bias", "u", "v", "r", "ai")}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How wide a message is."""

    lanes: int
    slots: bool  # two slots, each with all its parameters side by side
    mask: Value


def shape(x: Exchange) -> Shape:
    mode = x.plan.words.get("simd_mode", "")
    if mode in LANES:
        return Shape(LANES[mode], False, x.lanes(LANES[mode]))
    if mode == "simd4x2" or mode in SLOTS_MODES and x.plan.header and _bit(x, "simd_mode_extension"):
        return Shape(simd4x2.SLOTS, True, simd4x2.slots(x))
    raise Unsupported(f"{x.plan.name} {mode or 'without a SIMD mode'}: not yet simulated")


def _bit(x: Exchange, name: str) -> bool:
    return bool(x.m.any(x.header(HEADER, name) == 1))


def parameters(x: Exchange, its: Shape, order: tuple[str, ...], type: LaneType) -> dict[str, Value]:
    """The parameters by name."""
    m = x.m
    found = dict.fromkeys(order, m.constant(type, 0, its.lanes))
    if its.slots:
        return found | {name: simd4x2.firsts(x, type, 0, place) for place, name in enumerate(SLOT_PARAMETERS)}
    size = its.lanes * type.bytes
    held = (x.sent - (REGISTER if x.plan.header else 0)) // size
    return found | {name: x.take(type, place * size, its.lanes) for place, name in enumerate(order[:held])}


def offsets(x: Exchange, lanes: int) -> list[Value] | None:
    """Texels that the header adds to coordinates: four bits with a sign."""
    if not x.plan.header:
        return None
    m = x.m
    return [m.broadcast(m.bitcast(x.header(HEADER, name) << 28, i32) >> 28, lanes) for name in OFFSETS]


# -- the answer -----------------------------------------------------------------------------------------------------------


def respond(x: Exchange, its: Shape, values: list[Value], narrow: LaneType | None = None) -> None:
    """Channels that the header masks are left out and the others move up; without a header, those there is no room for are left out
    (KBL 13880-13887). `narrow`: the type that 16-bit answers have."""
    m = x.m
    masked = [x.header(HEADER, name) == 1 for name in MASKS] if x.plan.header else []
    if its.slots:
        _give_slots(x, its, values, masked)
        return
    if masked:
        values = _compacted(x, values, [m.broadcast(one, its.lanes) for one in masked])
    if narrow is not None:
        values = [_narrowed(x, value, narrow) for value in values]
    step = max(its.lanes * values[0].type.bytes, REGISTER)  # a channel begins with a register
    for number, value in enumerate(values[: x.answered // step]):
        x.give(value, number * step, its.mask)


def _compacted(x: Exchange, values: list[Value], masked: list[Value]) -> list[Value]:
    m = x.m
    found = list(values)
    for number in reversed(range(len(values))):  # from behind: whatever follows a masked channel moves up
        for place in range(number, len(values) - 1):
            found[place] = m.select(masked[number], found[place + 1], found[place])
    return found


def _narrowed(x: Exchange, value: Value, type: LaneType) -> Value:
    m = x.m
    if type is f16:
        return m.bitcast(m.convert(m.bitcast(value, f32), f16), u16)
    return m.convert(value, u16)


def _give_slots(x: Exchange, its: Shape, values: list[Value], masked: list[Value]) -> None:
    m = x.m
    for slot in range(its.lanes):
        for number, value in enumerate(values):
            on = m.slice(its.mask, slot, 1)
            on = on & ~masked[number] if masked else on
            x.give(m.slice(value, slot, 1), slot * REGISTER // its.lanes + number * u32.bytes, on)


def _narrow(x: Exchange, one: Image) -> LaneType | None:
    if x.plan.words.get("return_format") != "16_bit":
        return None
    return u16 if texel.is_whole(one.format) else f16


# -- the messages -----------------------------------------------------------------------------------------------------------


def sampling(x: Exchange) -> Sampling:
    """The sampler state; a header has a pointer to the table of its own (public: Mesa brw_lower_logical_sends.cpp)."""
    table = x.header(HEADER, "sampler_state_pointer") if x.plan.header else None
    found: Sampling = x.environment.sampling(int(x.plan.fields.sampler_index), table)
    return found


@answers(*SAMPLE, compiled=False)
def sample(x: Exchange) -> None:
    m, its, one, how = x.m, shape(x), picture(x), sampling(x)
    given = parameters(x, its, SAMPLE[x.plan.name], f32)
    moved, narrow = offsets(x, its.lanes), _narrow(x, one)
    if how.disabled or one.kind == "null":  # all zeros (KBL 22222-22227, 18924-18926)
        respond(x, its, nothing(m, its.lanes), narrow)
        return
    lod = {"sample_l": given.get("lod"), "sample_lz": m.constant(f32, 0.0, its.lanes)}.get(x.plan.name)
    reader = Reader(m, one, how, x.environment.absolute(one.base), its.mask)
    places = [given[name] for name in ("u", "v", "r", "ai") if name in given]
    respond(x, its, selected(m, one, reader.sample(places, lod, moved)), narrow)


@answers("ld", "ld_lz", compiled=False)
def ld(x: Exchange) -> None:
    """Texels by their numbers. Outside the surface and its levels, all channels are zero. A header's offsets are added behind the check
    of bounds (public: Mesa brw_fs_visitor.cpp), so what they lead to must be checked again."""
    m, its, one = x.m, shape(x), picture(x)
    order = generation(x.plan.gen).ld_parameters if x.plan.name == "ld" else ("u", "v", "r")
    given = parameters(x, its, order, u32)
    moved, narrow = offsets(x, its.lanes), _narrow(x, one)
    if one.kind == "null":
        respond(x, its, nothing(m, its.lanes), narrow)
        return
    places = [given[name] for name in ("u", "v", "r")]
    if moved is not None and one.kind not in ("buffer", "null"):
        axes = {"1d": 1, "2d": 2, "3d": 3}.get(one.kind, 0)
        places = [place + m.bitcast(moved[axis], u32) if axis < axes else place for axis, place in enumerate(places)]
    lod = given["lod"] if x.plan.name == "ld" and one.kind != "buffer" else None
    found = fetch(m, one, x.environment.absolute(one.base), places, lod, its.mask)
    respond(x, its, selected(m, one, found), narrow)


@answers("resinfo", compiled=False)
def resinfo(x: Exchange) -> None:
    """How large a level is, and how many there are; what is no level has no size (public: Intel PRM, sampling engine)."""
    m, its, one = x.m, shape(x), picture(x)
    lod = parameters(x, its, ("u",), u32)["u"]
    sizes = {"1d": [one.width], "2d": [one.width, one.height], "cube": [one.width, one.height], "3d": [one.width, one.height, one.depth],
             "buffer": [one.width], "null": []}[one.kind]  # fmt: skip
    there = lod < one.levels
    deep = m.select(there, lod, 0) + one.level
    found = [_less(x, spread(m, size, u32, its.lanes), deep, there) if one.kind != "buffer" else spread(m, size, u32, its.lanes)
             for size in sizes]  # fmt: skip
    if one.is_array:
        found.append(m.select(there, spread(m, one.depth, u32, its.lanes), 0))
    found = (found + nothing(m, its.lanes))[:3]
    respond(x, its, [*found, m.constant(u32, 0 if one.kind in ("buffer", "null") else one.levels, its.lanes)])


def _less(x: Exchange, size: Value, level: Value, there: Value) -> Value:
    m = x.m
    less = size >> level
    return m.select(there, m.select(less > 1, less, 1), 0)


@answers("sampleinfo", compiled=False)
def sampleinfo(x: Exchange) -> None:
    """Samples of a texel, and the palette of their positions, which is only told (KBL 19663-19669)."""
    m, its, one = x.m, shape(x), picture(x)
    there = one.kind != "null"
    found = [m.constant(u32, number if there else 0, its.lanes) for number in (one.samples, one.palette)]
    respond(x, its, [*found, *nothing(m, its.lanes)][:4])

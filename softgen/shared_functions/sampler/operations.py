"""The sampler's operations on texels: lane programs over an image and a sampler state, for the interpreter and for functions that compiled
kernels call (texture/operations.py).

Parameters are u, v, r and the array index; then gradients, bias, level of detail, the lowest level of detail, reference and gather4's
channel, as far as the operation has them; last texel offsets.
"""

from __future__ import annotations

from dataclasses import replace

from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, i32, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.bindings import BLOCK_SAMPLE, LOAD_CONTROL, LOAD_SAMPLE, SAMPLING
from softgen.shared_functions.sampler.channels import AXES, nothing, selected
from softgen.shared_functions.sampler.filters import ImageSampler
from softgen.shared_functions.sampler.payloads import COORDINATES, GRADIENTS
from softgen.shared_functions.sampler.request import SampleRequest
from softgen.shared_functions.sampler.state import Sampling
from softgen.shared_functions.texture.operations import TexelOperation, operation
from softgen.surface.fetch import fetch
from softgen.surface.image import SurfaceImage, broadcast_number
from softgen.surface.sample_fetch import fetch_sample

OFFSET = "_offset"  # ends the names of operations with texel offsets
KILLING = "sample_killpix"  # which only the interpreter executes
LOWEST = "_mlod"  # in the names of operations with a lowest level of detail
MOVED = 3  # offsets
_EXTRA = {"_d": len(GRADIENTS), "_b": 1, "_l": 1, LOWEST: 1}


class _Parameters:
    """Takes an operation's parameters in order."""

    def __init__(self, m: Machine, what: str, given: list[Value]) -> None:
        self.m, self.rest = m, list(given)
        what, moved = what.removesuffix(OFFSET), what.endswith(OFFSET)
        places = self.floats(len(COORDINATES))
        gradients = self.floats(len(GRADIENTS)) if "_d" in what else None
        bias = self.floats(1)[0] if "_b" in what else None
        lod = self.floats(1)[0] if "_l" in what else None
        lowest = self.floats(1)[0] if LOWEST in what else None
        reference = self.floats(1)[0] if what.endswith("_c") else None
        self.channel = self.rest.pop(0) if what.startswith("gather4") else None
        offsets = [m.bitcast(value, i32) for value in self.rest] if moved else None
        pairs = list(zip(gradients[::2], gradients[1::2], strict=True)) if gradients else None
        self.request = SampleRequest(places, lod, bias, pairs, reference, offsets, lowest)

    def floats(self, count: int) -> list[Value]:
        found, self.rest = self.rest[:count], self.rest[count:]
        return [self.m.bitcast(value, f32) for value in found]


def _count(what: str) -> int:
    plain = what.removesuffix(OFFSET)
    extra = sum(count for part, count in _EXTRA.items() if part in plain) + plain.endswith("_c") + plain.startswith("gather4")
    return len(COORDINATES) + extra + MOVED * what.endswith(OFFSET)


def _sampled(what: str) -> TexelOperation:
    def sampled(m: Machine, image: SurfaceImage, how: Sampling, memory: Region, given: list[Value], mask: Value) -> list[Value]:
        if how.disabled or image.kind == "null":  # all zeros (KBL 22222-22227, 18924-18926)
            return nothing(m, mask.lanes)
        if what.startswith("gather4"):
            image = gathered(image)
        parameters, sampler = _Parameters(m, what, given), ImageSampler(m, image, how, memory, mask)
        if what.startswith("gather4"):
            assert parameters.channel is not None
            return [_chosen(m, image, values, parameters.channel) for values in sampler.gather(parameters.request)]
        if what.startswith("lod"):
            return _details(m, sampler, parameters.request)
        return selected(m, image, sampler.sample(parameters.request))

    return sampled


def _chosen(m: Machine, image: SurfaceImage, values: list[Value], channel: Value) -> Value:
    """The channel of a texel that gather4 asks for, through its channel select (KBL 20110-20113)."""
    found, *others = selected(m, image, values)
    for number, value in enumerate(others, 1):
        found = m.select(channel == number, value, found)
    return found


def gathered(image: SurfaceImage) -> SurfaceImage:
    """A surface as gather4 selects its channels: it has green of two dwords where others have blue, in the format that drivers give them
    for it (public: Mesa crocus_state.c, gather_view)."""
    if image.format.name != "R32G32_FLOAT_LD":
        return image
    return replace(image, select=tuple("green" if name == "blue" else name for name in image.select))


def _details(m: Machine, sampler: ImageSampler, request: SampleRequest) -> list[Value]:
    """The level of detail of the levels that a sample would use, and before clamps (public: OpenGL textureQueryLod)."""
    before = sampler.level_of_detail(request)
    after = sampler.choice.clamped(before)
    if sampler.how.mip == "none":
        after = m.like(after, 0.0)
    elif sampler.how.mip == "nearest":
        after = m.floor(after + 0.5)
    return [*(m.bitcast(value, u32) for value in (after, before)), *nothing(m, after.lanes)[:2]]


@operation(KILLING, len(COORDINATES))
def killing(m: Machine, image: SurfaceImage, how: Sampling, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """A sample, and 1 where a chroma key kills the pixel."""
    if how.disabled or image.kind == "null":
        return [*nothing(m, mask.lanes), m.constant(u32, 0, mask.lanes)]
    sampler = ImageSampler(m, image, how, memory, mask, kills=True)
    found = selected(m, image, sampler.sample(_Parameters(m, "sample", given).request))
    killed = None if sampler.keying is None else sampler.keying.killed
    return [*found, m.constant(u32, 0, mask.lanes) if killed is None else killed.value]


for _name in SAMPLING:
    _like = "sample_l" if _name == BLOCK_SAMPLE else _name
    operation(_name, _count(_like))(_sampled(_like))


@operation("load", 4)
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


operation("load" + OFFSET, 4 + MOVED)(loaded)


@operation(LOAD_SAMPLE, 6)
def loaded_sample(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """Samples by numbers: u, v, r, the sample, and what the control surface says about the texel (two dwords)."""
    if image.kind == "null":
        return nothing(m, mask.lanes)
    return selected(m, image, fetch_sample(m, image, memory, given[:3], given[3], given[4:], mask))


@operation(LOAD_CONTROL, 3)
def loaded_control(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """What a control surface says about texels: a dword, or two with 16 samples; `image` is that surface, or null where there is none."""
    if image.kind == "null":
        return nothing(m, mask.lanes)
    found = fetch(m, image, memory, given, None, mask)
    return [*found[: len(image.format.channels)], *nothing(m, mask.lanes)][:4]


@operation("resinfo", 1)
def resinfo(m: Machine, image: SurfaceImage, how: object, memory: Region, given: list[Value], mask: Value) -> list[Value]:
    """How large a level is, and how many there are; what is no level has no size (public: Intel PRM, sampling engine)."""
    lanes, lod = mask.lanes, given[0]
    if image.kind == "null":
        return nothing(m, lanes)
    whole = [broadcast_number(m, size, u32, lanes) for size in (image.width, image.height, image.depth)[: AXES.get(image.kind, 1)]]
    if image.kind == "buffer":
        return [whole[0], *nothing(m, lanes)[:3]]
    levels = broadcast_number(m, image.levels, u32, lanes)
    there = lod < levels
    deep = m.select(there, lod, 0) + broadcast_number(m, image.level, u32, lanes) & u32.bits - 1
    found = [m.select(there, m.max(size >> deep, 1), 0) for size in whole]
    if image.is_array:
        found.append(m.select(there, broadcast_number(m, image.depth, u32, lanes), 0))
    return [*(found + nothing(m, lanes))[:3], levels]

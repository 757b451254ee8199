"""Operations on texels: lane programs specialised for a surface's kind and format.

The interpreter runs such a program directly. Compiled kernels call it as a function that was compiled for the surface (functions.py), so
that they do not depend on what is bound. Parameters and results are vectors of 32-bit lanes.

    @operation("load", 4)
    def load(m, image, how, memory, given, mask): …       # given: u, v, r, lod

Reads   DP_EXTDESC_BTI252
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import bool_, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import LOAD_CONTROL, SAMPLE_OPERATIONS, SAMPLING
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import Message, MessagePlan, compiled, plan
from softgen.surface.image import SurfaceImage
from softgen.surface.sample_fetch import control_image

BINDLESS_UNIT = 6  # surface states begin at multiples of 64 bytes
TexelOperation = Callable[[Machine, SurfaceImage, Any, Region, list[Value], Value], list[Value]]
OPERATIONS: dict[str, TexelOperation] = {}
PARAMETERS: dict[str, int] = {}  # how many vectors an operation is given


class SamplerNumbers(NamedTuple):
    """What code reads of a sampler state when it runs: numbers, or lanes of a compiled program. Levels of detail are not in 256ths;
    `outside`: the bits of texels outside the image."""

    lods: Any
    bias: Any
    outside: Any


class TexelRequest(NamedTuple):
    """The operation that a message asks for."""

    what: str
    lanes: int
    sampler: int = 0

    @property
    def samples(self) -> bool:
        return self.what in SAMPLING


# By the name of a message that can be compiled; given how many bytes are sent.
ASKERS: dict[str, Callable[[MessagePlan, int], TexelRequest]] = {}


def requested(descriptor: Descriptor, sent: int | None = None) -> TexelRequest | None:
    """The texel operation of a descriptor's message, if it can be compiled. `sent`: bytes of payload, where it has two parts."""
    sfid = next(number for number, name in descriptors.shared_functions(descriptor.layout.gen).items() if name == descriptor.function)
    return textured(sfid, descriptor.descriptor, descriptor.layout.gen, sent)


def textured(sfid: int, descriptor: int, gen: float, sent: int | None = None) -> TexelRequest | None:
    """The texel operation of a message that can be compiled; None for others."""
    if not compiled(sfid, descriptor, gen):
        return None
    found = plan(sfid, descriptor, gen)
    asker = ASKERS.get(found.name)
    return asker(found, GRF_BYTES * int(found.fields.message_length) if sent is None else sent) if asker else None


def operation(name: str, given: int) -> Callable[[TexelOperation], TexelOperation]:
    """Register the program of an operation that has so many parameters."""

    def keep(program: TexelOperation) -> TexelOperation:
        OPERATIONS[name], PARAMETERS[name] = program, given
        return program

    return keep


class ImageEnvironment(Protocol):
    """The part of an interpreter environment that finds images."""

    def picture(self, index: int, bindless: bool, samples: bool = False) -> SurfaceImage:
        """The image of a binding table index, or of an offset from the bindless surface base; `samples`: it may have several."""
        ...

    def absolute(self, base: int) -> Region:
        """Graphics memory from an address on."""
        ...


class TexelEnvironment(Protocol):
    """The part of an environment that operates on texels, on both machines."""

    def textured(self, x: Message[Any], what: str, sampler: Any, given: list[Value], mask: Value, count: int) -> list[Value]:
        """The results of an operation on the texels of the message's surface: `count` of them. `sampler`: 0, or what the environment of
        the sampler returned for the message."""
        ...


def is_bindless(x: Message[Any]) -> bool:
    """Whether a message names its surface by the offset of its state."""
    return catalogue.enumeration(descriptors.SURFACES, x.plan.gen).get(x.plan.indices[0]) == "bindless"


def bindless_offset(x: Message[Any]) -> int | Value:
    """The offset of a surface's state from the bindless base (KBL 5701-5718)."""
    layout = catalogue.layout("DP_EXTDESC_BTI252", x.plan.gen)
    if isinstance(x.extended, Value):
        low = layout.field("bindless_surface_offset").pieces[0][1]
        return (x.extended >> low) << BINDLESS_UNIT
    return int(layout.raw([x.extended]).surface_offset)


def picture(x: Message[ImageEnvironment], samples: bool = False) -> SurfaceImage:
    """The surface that a message names; `samples`: it may have several."""
    index = int(x.plan.fields.binding_table_index)
    special = catalogue.enumeration(descriptors.SURFACES, x.plan.gen).get(index)
    if special == "bindless":
        offset = bindless_offset(x)
        assert isinstance(offset, int)  # lanes are compiled code's
        return x.environment.picture(offset, True, samples)
    if special is not None:
        raise Unsupported(f"{x.plan.name} to {special}: no surface with a format")
    return x.environment.picture(index, False, samples)


def execute(x: Message[ImageEnvironment], what: str, how: Any, given: list[Value], mask: Value) -> list[Value]:
    """Run an operation on the interpreter."""
    image = operated(what, picture(x, what in SAMPLE_OPERATIONS))
    if image.control is not None and image.control.clear_at:
        image = with_clear(x.m, image, x.environment.absolute(image.control.clear_at))
    return OPERATIONS[what](x.m, image, how, x.environment.absolute(image.base), given, mask)


def operated(what: str, image: SurfaceImage) -> SurfaceImage:
    """What an operation is on: an image, or its control surface; one that has none is as a null surface."""
    if what != LOAD_CONTROL:
        return image
    return control_image(image) or replace(image, kind="null", samples=1)


def with_clear(m: Machine, image: SurfaceImage, memory: Region) -> SurfaceImage:
    """An image with its clear colour, out of memory."""
    assert image.control is not None
    held = m.load(u32, memory, m.lane_index(4) * u32.bytes, m.constant(bool_, 1, 4))
    clear = tuple(m.slice(held, channel, 1) for channel in range(4))
    return replace(image, control=image.control._replace(clear=clear))

"""What messages do with texels, as lane programs that know a surface's kind and format.

For the interpreter such a program runs at once. Compiled kernels call it as a function that was made for the surface (eu/textured.py), so
that they need not know what will be bound. Parameters and answers are lanes of 32 bits.

    @operation("load")
    def load(m, one, how, memory, given, mask): …       # given: u, v, r, lod

Reads   DP_EXTDESC_BTI252
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from softgen.bits import catalogue
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message
from softgen.shared_functions.exchange import Exchange, Plan, compiled, plan
from softgen.surface.image import SurfaceImage

Operation = Callable[[Machine, SurfaceImage, Any, Region, list[Value], Value], list[Value]]
OPERATIONS: dict[str, Operation] = {}


class Asked(NamedTuple):
    """What a message wants done."""

    what: str
    lanes: int
    sampler: int = 0

    @property
    def samples(self) -> bool:
        return self.what == "sample"


ASKERS: dict[str, Callable[[Plan], Asked]] = {}  # by the name of a message that can be compiled


def textured(sfid: int, descriptor: int, gen: float) -> Asked | None:
    """What a message that is part of compiled code wants done to texels; None for others."""
    if not compiled(sfid, descriptor, gen):
        return None
    found = plan(sfid, descriptor, gen)
    asker = ASKERS.get(found.name)
    return asker(found) if asker else None


def operation(name: str) -> Callable[[Operation], Operation]:
    def keep(program: Operation) -> Operation:
        OPERATIONS[name] = program
        return program

    return keep


def bindless_offset(x: Exchange) -> int:
    """Where a surface's state stands, counted from the bindless base (KBL 5701-5718)."""
    return int(catalogue.layout("DP_EXTDESC_BTI252", x.plan.gen).raw([x.extended]).surface_offset)


def picture(x: Exchange) -> SurfaceImage:
    """The surface that a message names."""
    index = int(x.plan.fields.binding_table_index)
    special = catalogue.enumeration(message.SURFACES, x.plan.gen).get(index)
    if special == "bindless":
        found: SurfaceImage = x.environment.picture(bindless_offset(x), True)
        return found
    if special is not None:
        raise Unsupported(f"{x.plan.name} to {special}: no surface with a format")
    found = x.environment.picture(index, False)
    return found


def at_once(x: Exchange, what: str, how: Any, given: list[Value], mask: Value) -> list[Value]:
    """For the interpreter."""
    one = picture(x)
    return OPERATIONS[what](x.m, one, how, x.environment.absolute(one.base), given, mask)

"""The registry of units. Importing it loads the lane programs of all messages."""

from __future__ import annotations

from functools import cache

from softgen.errors import SoftgenError
from softgen.shared_functions import gateway, pixel_interpolator, spawner
from softgen.shared_functions.dataport import unit as dataport
from softgen.shared_functions.extended_math import unit as extended_math
from softgen.shared_functions.pixel_backend import unit as pixel_backend
from softgen.shared_functions.sampler import unit as sampler
from softgen.shared_functions.unit import Unit
from softgen.shared_functions.urb import unit as urb

UNITS: tuple[Unit, ...] = (dataport.UNIT, sampler.UNIT, gateway.UNIT, spawner.UNIT, urb.UNIT, extended_math.UNIT, pixel_backend.UNIT,
                           pixel_interpolator.UNIT)  # fmt: skip


@cache
def named(name: str) -> Unit:
    """A unit by its name."""
    found = next((unit for unit in UNITS if unit.name == name), None)
    if found is None:
        raise SoftgenError(f"there is no unit {name!r}; units are {', '.join(unit.name for unit in UNITS)}")
    return found


@cache
def answering(function: str, message: str = "") -> Unit | None:
    """The unit that answers a shared function's messages, or one of them."""
    unit_of_message = next((unit for unit in UNITS if message in unit.messages), None)
    return unit_of_message or next((unit for unit in UNITS if function in unit.functions), None)

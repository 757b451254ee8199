"""The types of functions that lane programs call by address, and the programs at the addresses (function.py makes them)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softgen.errors import SoftgenError
from softgen.lanes.types import Lanes
from softgen.lanes.value import Value

LaneProgram = Callable[..., Any]


@dataclass(frozen=True)
class FunctionType:
    """Parameters and results, in order."""

    parameters: tuple[Lanes, ...]
    results: tuple[Lanes, ...] = ()

    def check(self, what: str, expected: tuple[Lanes, ...], values: tuple[Value, ...]) -> None:
        found = tuple(Lanes(value.type, value.lanes) for value in values)
        if found != expected:
            raise TypeError(f"the {what} of a call must be {expected}, not {found}")


@dataclass(frozen=True)
class CallTarget:
    """The lane program at an address, and its type."""

    program: LaneProgram
    type: FunctionType
    name: str


PROGRAMS: dict[int, CallTarget] = {}        # by address, for the NumPy machine


def as_tuple(result: Any) -> tuple[Value, ...]:
    return result if isinstance(result, tuple) else () if result is None else (result,)


def program_at(address: int, type: FunctionType) -> LaneProgram:
    """The lane program at an address."""
    found = PROGRAMS.get(address)
    if found is None:
        raise SoftgenError(f"a call to {address:#x}, where no function is")
    if found.type != type:
        raise SoftgenError(f"a call to {found.name} with another type: {type} instead of {found.type}")
    return found.program

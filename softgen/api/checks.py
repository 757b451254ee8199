"""Checks of arguments to the Python interface: mistakes in a call raise UsageError."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from softgen.api.memory import Buffer, Heap, Image, Sampler, is_integer
from softgen.errors import UsageError

MOST = 0xFFFFFFFF  # sizes and counts have 32 bits
FOREVER = 1e30  # seconds

OnFault = Literal["raise", "collect"]


def check_on_fault(on_fault: OnFault) -> OnFault:
    if on_fault not in ("raise", "collect"):
        raise UsageError(f"on_fault is 'raise' or 'collect', not {on_fault!r}")
    return on_fault


def check_numbers(**numbers: int) -> None:
    for name, number in numbers.items():
        if not is_integer(number) or not 0 <= number <= MOST:
            raise UsageError(f"{name} is a number of at most 32 bits, not {number!r}")


def check_time_limit(seconds: float | None) -> None:
    number = isinstance(seconds, int | float | np.integer | np.floating) and not isinstance(seconds, bool)
    if seconds is not None and (not number or not seconds < FOREVER and seconds != math.inf):
        raise UsageError(f"a time limit is a number of seconds, not {seconds!r}")


def check_owner(heap: Heap, value: object, label: str) -> None:
    """Refuse memory of another Gpu, and memory that was freed: its address means something else here."""
    if isinstance(value, Buffer | Image):
        if not value.belongs_to(heap):
            raise UsageError(f"{label} belongs to another Gpu")
        heap.check_open()
        if not heap.maps(value.allocation):
            raise UsageError(f"{label} was freed")


def check_tables(heap: Heap, surfaces: Sequence[Buffer | Image | None], samplers: Sequence[Sampler]) -> None:
    """Refuse entries of a wrong type in the binding table or the sampler table."""
    for name, entries, kinds in (("surfaces", surfaces, (Buffer, Image, type(None))), ("samplers", samplers, (Sampler,))):
        if not isinstance(entries, Sequence):
            raise UsageError(f"{name} is a list, not {type(entries).__name__}")
        expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        for index, entry in enumerate(entries):
            if not isinstance(entry, kinds):
                raise UsageError(f"{name}[{index}] must be {expected}, not {type(entry).__name__}")
            check_owner(heap, entry, f"{name}[{index}]")


def triple(value: int | Sequence[int], fill: int, name: str) -> tuple[tuple[int, int, int], int]:
    """Three dimensions, and how many were given."""
    several = isinstance(value, Sequence | np.ndarray) and getattr(value, "shape", None) != ()  # NumPy has arrays without an axis
    numbers: list[Any] = list(value) if several else [getattr(value, "item", lambda: value)()]  # type: ignore[arg-type]
    if not 1 <= len(numbers) <= 3 or not all(is_integer(number) and 0 <= number <= MOST for number in numbers):
        raise UsageError(f"{name} has one to three dimensions of 32 bits, not {value!r}")
    x, y, z = [int(number) for number in [*numbers, fill, fill, fill][:3]]
    return (x, y, z), len(numbers)

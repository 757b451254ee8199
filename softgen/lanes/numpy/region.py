"""Regions of graphics memory on the NumPy machine: loads, stores and atomics through a holder of the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from softgen.errors import GpuFault
from softgen.lanes.value import Region

Array = np.ndarray[Any, Any]


class Holder(Protocol):
    """What a region is made of here. Offsets are 64 bits wide; data is a row of bytes for each lane."""

    name: str

    def load(self, offsets: Array, width: int, mask: Array) -> Array: ...

    def store(self, offsets: Array, data: Array, mask: Array) -> None: ...

    def inside(self, offsets: Array, width: int) -> Array: ...

    def places(self, offsets: Array, mask: Array, access: str) -> Iterable[tuple[int, int]]:
        """Lane and address of the lanes in a mask, checked as far as an address can be wrong by itself."""
        ...


def _far(base: Region, offsets: Array) -> Array:
    return offsets.astype(np.uint64) + np.uint64(base.delta)


def _every(mask: Array | None, lanes: int) -> Array:
    return np.ones(lanes, np.bool_) if mask is None else mask


def inside(base: Region, offsets: Array, size: int) -> Array:
    found: Array = base.payload.inside(_far(base, offsets), size)
    return found


def load(dtype: np.dtype[Any], base: Region, offsets: Array, mask: Array | None) -> Array:
    rows = base.payload.load(_far(base, offsets), dtype.itemsize, _every(mask, len(offsets)))
    return np.ascontiguousarray(rows).reshape(-1).view(dtype)


def store(values: Array, base: Region, offsets: Array, mask: Array | None) -> None:
    rows = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    base.payload.store(_far(base, offsets), rows, _every(mask, len(offsets)))


def update(dtype: np.dtype[Any], base: Region, offsets: Array, mask: Array | None,
           function: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """`function(lane, what was there)` is what the lane puts there."""
    at, holder, size = _far(base, offsets), base.payload, dtype.itemsize
    old, new = np.zeros((2, len(at)), dtype)
    active = _every(mask, len(at)) & holder.inside(at, size)
    for lane, place in holder.places(at, active, "atomic"):
        if place % size:
            raise GpuFault(place, "atomic", holder.name, why=f"not a multiple of {size} (lane {lane})")
    for lane in np.flatnonzero(active):
        only = np.arange(len(at)) == lane
        try:
            old[lane] = np.ascontiguousarray(holder.load(at, size, only)).reshape(-1).view(dtype)[lane]
            new[lane] = function(int(lane), old[lane:lane + 1])[0]
            holder.store(at, new.view(np.uint8).reshape(len(at), size), only)
        except GpuFault as fault:
            raise GpuFault(fault.address, "atomic", fault.space, fault.by, fault.why) from None
    return old, new

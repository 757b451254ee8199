"""Loads, stores and atomics of the NumPy machine. The lowest active lane out of bounds is a GpuFault, before anything is written."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from softgen.errors import GpuFault
from softgen.lanes.value import Memory

Array = np.ndarray[Any, Any]

UPDATE: dict[str, Callable[..., Any]] = {
    "exchange": lambda old, operand: operand,
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "compare_exchange": lambda old, expected, new: new if old == expected else old,
}


def active_lanes(base: Memory, access: str, offsets: Array, size: int, mask: Array | None) -> list[tuple[int, int]]:
    """(lane, offset) of the lanes that take part, all of them inside the memory."""
    lanes = [(lane, offset) for lane, offset in enumerate(offsets.tolist()) if mask is None or mask[lane]]
    last = len(base.payload) - size
    for _, offset in lanes:
        if offset > last:
            raise GpuFault(offset, access, base.name, why=f"outside its {len(base.payload):#x} bytes")
    return lanes


def block(dtype: np.dtype[Any], base: Memory, offset: int, lanes: int) -> Array | None:
    """Contiguous lanes as a view of the memory, or None where not all are inside it."""
    end = offset + lanes * dtype.itemsize
    return base.payload[offset:end].view(dtype) if end <= len(base.payload) else None


def load(dtype: np.dtype[Any], base: Memory, offsets: Array, mask: Array | None) -> Array:
    found = np.zeros(len(offsets), dtype)
    raw = found.view(np.uint8).reshape(len(offsets), dtype.itemsize)
    for lane, offset in active_lanes(base, "read", offsets, dtype.itemsize, mask):
        raw[lane] = base.payload[offset:offset + dtype.itemsize]
    return found


def store(values: Array, base: Memory, offsets: Array, mask: Array | None) -> None:
    size = values.dtype.itemsize
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), size)
    for lane, offset in active_lanes(base, "write", offsets, size, mask):
        base.payload[offset:offset + size] = raw[lane]


def atomic(op: str, dtype: np.dtype[Any], base: Memory, offsets: Array, operands: list[Array], mask: Array | None) -> Array:
    size = dtype.itemsize
    lanes = active_lanes(base, "atomic", offsets, size, mask)
    for _, offset in lanes:
        if offset % size:
            raise GpuFault(offset, "atomic", base.name, why=f"not a multiple of {size}")
    old = np.zeros(len(offsets), dtype)
    columns = [operand.tolist() for operand in operands]
    for lane, offset in lanes:
        place = base.payload[offset:offset + size]
        old[lane] = np.frombuffer(place.tobytes(), dtype)[0]
        new = UPDATE[op](int(old[lane]), *(column[lane] for column in columns))
        place[:] = np.frombuffer((new % (1 << 8 * size)).to_bytes(size, "little"), np.uint8)
    return old

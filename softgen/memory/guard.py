"""Guarded calls of compiled code: call() returns the function's result, or raises GpuFault for an access to an unmapped page.

The function has the C signature `int64_t f(void *argument, struct fault_record *record)`. Before each access it may store its
instruction pointer in the record's first word, which the fault then reports. It must not call back into Python.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from softgen.errors import GpuFault, SoftgenError
from softgen.library import load
from softgen.memory import arena, guard_h
from softgen.memory.address_space import AddressSpace
from softgen.memory.guard_h import FETCH, FROM_CODE, READ, UNKNOWN, WRITE, FaultRecord
from softgen.memory.space import Space

ACCESS = {READ: "read", WRITE: "write", FETCH: "instruction fetch", UNKNOWN: "access"}
NO_IP = 2**64 - 1
_loading = threading.Lock()


@cache
def _load() -> ctypes.CDLL:
    native = load("softgen.memory._guard", guard_h)
    native.guard_call.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(FaultRecord))
    native.guard_zone.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
    arena.watch_zones(lambda start, end: native.guard_zone(start, end))
    return native


def library() -> ctypes.CDLL:
    """The C library, which also exports guard_leave for compiled code."""
    with _loading:
        return _load()


@cache
def quick_call() -> Any:
    """guard_call, called without letting go of the interpreter lock, for functions so short that this would only give it away."""
    function = ctypes.cast(library().guard_call, ctypes.c_void_p).value or 0
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(function)


def call(function: int, argument: int, space: Space | None = None, by: Callable[[int], str] = "ip {:#x}".format) -> int:
    """Call compiled code at an address. `by` formats an instruction pointer; `space` is reported where the arena has no owner."""
    record = FaultRecord(ip=NO_IP)
    if not library().guard_call(function, argument, record):
        return int(record.result)
    raise fault(record, space, by)


def _canonical(address: int) -> bool:
    """Whether bits 63:48 of an address equal bit 47."""
    return address >> 47 in (0, (1 << 17) - 1)


def fault(record: FaultRecord, space: Space | None, by: Callable[[int], str] = "ip {:#x}".format) -> SoftgenError:
    """The error that a fault record describes."""
    access = ACCESS[record.access]
    instruction = by(record.ip) if record.ip != NO_IP else ""
    if record.origin == FROM_CODE:
        why = "not a canonical address" if not _canonical(record.address) else space.outside(record.address) if space else "not mapped"
        return GpuFault(record.address, access, space.name if space else "", instruction, why)
    place = arena.locate(record.address)
    if place is None:
        return SoftgenError(f"guard: {access} at host address {record.address:#x}, which is in no arena")
    if isinstance(place.space, AddressSpace):
        return GpuFault(place.address, access, place.space.name, instruction, place.space.why(place.address, access))
    name = space.name if space else ""
    return GpuFault(place.address, access, name, instruction, "low half of an address in a 4 GiB part where nothing is mapped")


__all__ = ["ACCESS", "FROM_CODE", "NO_IP", "FaultRecord", "call", "fault", "library", "quick_call"]

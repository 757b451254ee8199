"""Guarded calls of compiled code: call() returns the function's result, or raises GpuFault for an access to an unmapped page.

The function has the C signature `int64_t f(void *argument, struct record *record)`. Before each access it may store its
instruction pointer in the record's first word, which the fault then reports. It must not call back into Python.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from collections.abc import Callable
from functools import cache

from softgen.errors import GpuFault, SoftgenError
from softgen.memory import arena
from softgen.memory.address_space import AddressSpace
from softgen.memory.space import Space

ACCESS = ("read", "write", "instruction fetch", "access")
NO_IP = 2**64 - 1
FROM_CODE = 1


class FaultRecord(ctypes.Structure):
    """The fault that ended a guarded call: `struct record` of guard.c."""

    _fields_ = [
        ("ip", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("access", ctypes.c_uint32),
        ("origin", ctypes.c_uint32),
        ("result", ctypes.c_int64),
    ]


_loading = threading.Lock()


@cache
def _load() -> ctypes.CDLL:
    found = importlib.util.find_spec("softgen.memory._guard")
    if found is None or found.origin is None:
        raise SoftgenError(
            "softgen.memory._guard is not built; run `make` or `python setup.py build_ext --inplace` at the repository's root"
        )
    try:
        native = ctypes.CDLL(found.origin)
        native.guard_call.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(FaultRecord))
        native.guard_zone.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
    except (OSError, AttributeError) as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; build it again with `python setup.py build_ext --inplace`") from None
    arena.watch_zones(lambda start, end: native.guard_zone(start, end))
    return native


def library() -> ctypes.CDLL:
    """The C library, which also exports guard_leave for compiled code."""
    with _loading:
        return _load()


def call(function: int, argument: int, space: AddressSpace | None = None, by: Callable[[int], str] = "ip {:#x}".format) -> int:
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

"""Running compiled code: call() returns what the function returned, or raises GpuFault where it touched nothing.

The function has the C signature `int64_t f(void *argument, struct record *record)`. Before each access it may store its
instruction pointer in the record's first word; the fault then says who it was. It must not call Python and be left from there.
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

ACCESS = ("read", "write", "instruction fetch", "access")
_NOBODY = 2**64 - 1
_FROM_CODE = 1


class Record(ctypes.Structure):
    """struct record of guard.c."""

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
        native.guard_call.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Record))
        native.guard_zone.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
    except (OSError, AttributeError) as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; build it again with `python setup.py build_ext --inplace`") from None
    arena.watch_zones(lambda start, end: native.guard_zone(start, end))
    return native


def library() -> ctypes.CDLL:
    """The C part; also where compiled code finds guard_leave."""
    with _loading:
        return _load()


def call(function: int, argument: int, space: AddressSpace | None = None, by: Callable[[int], str] = "ip {:#x}".format) -> int:
    """Run compiled code at an address. `by` words an instruction pointer; `space` is named if the arena cannot say whose it is."""
    record = Record(ip=_NOBODY)
    if not library().guard_call(function, argument, record):
        return int(record.result)
    access = ACCESS[record.access]
    who = by(record.ip) if record.ip != _NOBODY else ""
    place = arena.Place(space, record.address) if record.origin == _FROM_CODE else arena.locate(record.address)
    if place is None:
        raise SoftgenError(f"guard: {access} at host address {record.address:#x}, which is in no arena")
    if isinstance(place.space, AddressSpace):
        raise GpuFault(place.address, access, place.space.name, who, place.space.why(place.address, access))
    name = space.name if space else ""
    raise GpuFault(place.address, access, name, who, "low half of an address in a 4 GiB part where nothing is mapped")

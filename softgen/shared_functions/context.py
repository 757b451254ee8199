"""The context of compiled code: the fields that native code knows, and those that units add.

A context is what the threads that one host thread runs have in common; compiled code gets a pointer to it. Its head is fixed
(eu/native.h has the same structure); the fields of units that are not in the head follow it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, u64

CHANNELS = 32


class ContextHead(ctypes.Structure):
    """The fixed head. All pointers are host addresses."""

    _fields_ = [
        ("table", ctypes.c_uint64),  # host bases of the address space's 4 GiB parts
        ("surfaces", ctypes.c_uint64),  # Bindings (bindings.py)
        ("local", ctypes.c_uint64),  # shared local memory of the group
        ("local_size", ctypes.c_uint64),
        ("record", ctypes.c_uint64),  # the guard's record: its first word is the ip of the message being executed
        ("budget", ctypes.c_int64),  # backward branches left in this turn
        ("program", ctypes.c_uint64),  # the engine's data of the kernel, if it is not the function itself
        ("blocks", ctypes.c_uint64),  # the group's threads, SIZE bytes each
        ("threads", ctypes.c_uint64),
        ("arrived", ctypes.c_uint64),  # threads at the barrier
        ("notified", ctypes.c_uint64),  # barriers that threads passed since the group started
        ("general", ctypes.c_uint64),  # general state base address
        ("turns", ctypes.c_uint64),  # threads that a function which runs several still has to run, this one counted; 0 is 1
        ("mask", ctypes.c_uint64),  # note of the access in progress (lanes/llvm/region.py): flags and lanes,
        ("base", ctypes.c_uint64),  # address that the offsets count from
        ("offsets", ctypes.c_uint64 * CHANNELS),
        ("alone", ctypes.c_uint64),  # no other host thread runs threads of the dispatch: atomics need not lock (lanes/llvm/access.py)
        ("executed", ctypes.c_uint64),  # instructions of threads that ended in order, whose blocks say nothing of it
    ]


HEAD = RecordLayout.of(ContextHead)


class Scope(Enum):
    """How long a context field keeps its value."""

    DISPATCH = "dispatch"  # the same on all host threads, set when a dispatch begins
    WORKER = "worker"  # one for each host thread
    GROUP = "group"  # one for each host thread, reset when a thread group begins


@dataclass(frozen=True)
class ContextField:
    """A field that a unit's compiled code reads."""

    name: str
    scope: Scope
    type: LaneType = u64


_CTYPES = {(8, False): ctypes.c_uint8, (16, False): ctypes.c_uint16, (32, False): ctypes.c_uint32, (64, False): ctypes.c_uint64,
           (32, True): ctypes.c_int32, (64, True): ctypes.c_int64}  # fmt: skip


def compose(fields: Iterable[ContextField]) -> type[ContextHead]:
    """The context with the fields of units after the head; a field that the head has, or that two units share, is there once."""
    extra: dict[str, ContextField] = {}
    for field in fields:
        if extra.setdefault(field.name, field) != field:
            raise TypeError(f"two units have a context field {field.name}, with other scopes or types")
    tail = [(name, _CTYPES[field.type.bits, field.type.is_signed]) for name, field in extra.items() if name not in HEAD.fields]
    return type("Context", (ContextHead,), {"_fields_": tail, "__doc__": compose.__doc__})

"""The context of compiled code: the fields that native code knows, and those that units add.

A context is what the threads that one host thread runs have in common; compiled code gets a pointer to it. Its head is fixed (context.h);
the fields of units that are not in the head follow it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, u64
from softgen.shared_functions.context_h import CHANNELS, ContextHead

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


__all__ = ["CHANNELS", "HEAD", "ContextField", "ContextHead", "Scope", "compose"]

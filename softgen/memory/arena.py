"""Arenas: reservations of 4 GiB of host address space, each for one 4 GiB part of a graphics address space.

A host process has 47 address bits and cannot map 48 contiguously. Arenas are cut from a few large zones, so that the
guard's signal handler compares a fault address with zones only. Zones are never released: they cost no memory.
Each arena has a tail, which maps the beginning of the next part, for contiguous accesses of compiled code across a 4 GiB
boundary. Where a surface crosses the boundary, the tail grows until it contains the rest of the surface.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple

from softgen.errors import SoftgenError
from softgen.memory import host
from softgen.memory.space import Space

ARENA_SIZE = 1 << 32
MIN_TAIL = 1 << 16  # bytes of the next part that a tail maps at least; larger than any single access
ARENA_STRIDE = 2 * ARENA_SIZE  # a tail never needs more than the next part
_PER_ZONE = 128
_MOST_ZONES = 64  # the size of guard.c's array
MOST_ARENAS = _PER_ZONE * _MOST_ZONES

_zones: list[tuple[int, int]] = []
_free: list[int] = []
_owners: dict[int, tuple[weakref.ref[Space], int]] = {}  # host base -> the owning space and the number of its part
_growing = threading.Lock()
_on_zone: list[Callable[[int, int], None]] = []


class Arena:
    """One reservation. Its pages are mapped or PROT_NONE."""

    __slots__ = ("base", "tail")

    def __init__(self, owner: Space, part: int) -> None:
        self.base, self.tail = _take(), MIN_TAIL
        _owners[self.base] = weakref.ref(owner), part

    def release(self) -> None:
        """Unmap all of it and return it to the free list. Takes no lock: finalisers call this at any time."""
        _owners.pop(self.base, None)
        host.unmap_to_reservation(self.base, ARENA_STRIDE)
        _free.append(self.base)


class ArenaAddress(NamedTuple):
    """The graphics address that a host address in an arena stands for."""

    space: Space | None
    address: int  # in that space; only the low 32 bits where the space is unknown


def locate(host_address: int) -> ArenaAddress | None:
    """The graphics address of a host address; None outside all arenas."""
    for start, end in _zones:
        if start <= host_address < end:
            offset = (host_address - start) % ARENA_STRIDE
            owner, part = _owners.get(host_address - offset, (None, 0))
            space = owner() if owner else None
            return ArenaAddress(space, offset + part * ARENA_SIZE if space else offset % ARENA_SIZE)
    return None


def void() -> int:
    """Base of the arena without mappings, to which tables point for unmapped parts."""
    if not _void:
        with _void_lock:
            if not _void:
                _void.append(_take())
    return _void[0]


_void: list[int] = []
_void_lock = threading.Lock()


def watch_zones(on_zone: Callable[[int, int], None]) -> None:
    """Call on_zone(start, end) for every existing zone, and for every new one when it is created."""
    with _growing:
        _on_zone.append(on_zone)
        for start, end in _zones:
            on_zone(start, end)


def _take() -> int:
    while True:
        try:
            return _free.pop()
        except IndexError:
            _grow()


def _grow() -> None:
    with _growing:
        if _free:
            return
        if len(_zones) == _MOST_ZONES:
            raise SoftgenError(f"host memory: more than {MOST_ARENAS} parts of 4 GiB are in use by address spaces")
        size = ARENA_STRIDE * _PER_ZONE
        start = host.reserve(size + (1 << 21))
        start = -(-start >> 21) << 21
        _zones.append((start, start + size))
        for on_zone in _on_zone:
            on_zone(start, start + size)
        _free.extend(range(start + size - ARENA_STRIDE, start - 1, -ARENA_STRIDE))

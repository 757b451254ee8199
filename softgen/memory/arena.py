"""Arenas: 4 GiB of host address space each, that mirror one 4 GiB part of an address space.

A host process has 47 bits of addresses and cannot mirror 48 in one piece. Arenas are cut from a few large zones, so the
guard's signal handler has only zones to compare with, and they are never given back: a zone costs no memory.
Each arena has a tail: a contiguous access of compiled code that starts below a 4 GiB boundary and ends above it finds
there what the next part begins with. Where a surface lies across the boundary, the tail grows until it shows the rest of it.
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
MIN_TAIL = 1 << 16  # shows the beginning of the next part at least so far; larger than any one access
ARENA_STRIDE = 2 * ARENA_SIZE  # a tail never needs more than the next part
_PER_ZONE = 128
_MOST_ZONES = 64  # guard.c has room for as many

_zones: list[tuple[int, int]] = []
_free: list[int] = []
_owners: dict[int, tuple[weakref.ref[Space], int]] = {}  # host base -> whose, and which part of it
_growing = threading.Lock()
_on_zone: list[Callable[[int, int], None]] = []


class Arena:
    """One reserved part. Pages in it are host pages or PROT_NONE."""

    __slots__ = ("base", "tail")

    def __init__(self, owner: Space, part: int) -> None:
        self.base, self.tail = _take(), MIN_TAIL
        _owners[self.base] = weakref.ref(owner), part

    def release(self) -> None:
        """Forget every mapping in it. Takes no lock: a finaliser may call this at any moment."""
        _owners.pop(self.base, None)
        host.unmap_to_reservation(self.base, ARENA_STRIDE)
        _free.append(self.base)


class ArenaAddress(NamedTuple):
    space: Space | None
    address: int  # in that space; without a space only the low 32 bits are known


def locate(host_address: int) -> ArenaAddress | None:
    """Which graphics address a host address stands for; None outside all arenas."""
    for start, end in _zones:
        if start <= host_address < end:
            offset = (host_address - start) % ARENA_STRIDE
            owner, part = _owners.get(host_address - offset, (None, 0))
            space = owner() if owner else None
            return ArenaAddress(space, offset + part * ARENA_SIZE if space else offset % ARENA_SIZE)
    return None


def void() -> int:
    """Base of an arena nothing is ever mapped in: the table's answer for parts where there is nothing."""
    if not _void:
        with _void_lock:
            if not _void:
                _void.append(_take())
    return _void[0]


_void: list[int] = []
_void_lock = threading.Lock()


def watch_zones(tell: Callable[[int, int], None]) -> None:
    """Call tell(start, end) for every zone there is and will be."""
    with _growing:
        _on_zone.append(tell)
        for start, end in _zones:
            tell(start, end)


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
            raise SoftgenError(f"host memory: more than {_MOST_ZONES * _PER_ZONE} parts of 4 GiB are in use by address spaces")
        size = ARENA_STRIDE * _PER_ZONE
        start = host.reserve(size + (1 << 21))
        start = -(-start >> 21) << 21
        _zones.append((start, start + size))
        for tell in _on_zone:
            tell(start, start + size)
        _free.extend(range(start + size - ARENA_STRIDE, start - 1, -ARENA_STRIDE))

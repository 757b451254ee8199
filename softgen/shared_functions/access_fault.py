"""Faults of compiled messages, explained from the note that an access left in the context (lanes/llvm/access.py)."""

from __future__ import annotations

from softgen.bits.units import PAGE_SIZE
from softgen.errors import GpuFault
from softgen.lanes.llvm.access import ATOMIC, BLOCK, CONTIGUOUS, SIZE_SHIFT, TABLE, UNIFORM, WIDE
from softgen.lanes.llvm.addressing import CANONICAL_BITS
from softgen.memory import arena
from softgen.memory.space import Space
from softgen.shared_functions.context import ContextHead

WRITES = ("write", "atomic")


def places(context: ContextHead) -> dict[int, int]:
    """The address of each lane of the access in progress: host addresses for surfaces, else graphics addresses as the program has them.
    Sums are not reduced to the bits of an address."""
    word, width = int(context.mask), 8 if int(context.mask) & WIDE else 4
    lanes = [lane for lane in range(32) if word >> lane & 1]
    if word & (CONTIGUOUS | UNIFORM):
        step = word >> SIZE_SHIFT if word & CONTIGUOUS else 0
        return {lane: int(context.base) + step * lane for lane in lanes}
    held = bytes(memoryview(context.offsets).cast("B"))
    return {lane: int(context.base) + int.from_bytes(held[lane * width : (lane + 1) * width], "little") for lane in lanes}


def explain(context: ContextHead, address: int, place: int | None, access: str, space: Space | None, by: str) -> GpuFault:
    """The fault of a message. `address` is what the guard's record has, `place` the graphics address there; None where the code
    itself refused an offset or address. Hosts gather in any order: the lowest wrong lane is named. Memory that was mapped for certain
    has no note: if it is gone nevertheless, the note is that of an earlier access, and does not say which instruction this was."""
    word, name = int(context.mask), space.name if space else ""
    size, kind = word >> SIZE_SHIFT, "atomic" if word & ATOMIC else access
    if place is None:
        return _left(context, address, kind, name, by)
    lanes = {0: int(context.base)} if word & BLOCK else places(context)
    if not word & TABLE:
        lanes = {lane: start + place - address for lane, start in lanes.items()}  # a surface is in one piece
    lanes = {lane: start & (1 << CANONICAL_BITS) - 1 for lane, start in lanes.items()}
    if not any(_on_page_of(start, size, place) for start in lanes.values()):
        return _missing(place, 1, None, place, access, space, "")
    if word & BLOCK:
        return _missing(lanes[0], size, None, place, kind, space, by)
    for lane, start in lanes.items():
        if space is not None and _accessible(space, start, size, kind) < size:
            return _missing(start, size, lane, place, kind, space, by)
    touched = (lane for lane, start in lanes.items() if start <= place < start + size)
    return _missing(place, size, next(touched, None), place, kind, space, by)


def _on_page_of(start: int, size: int, place: int) -> bool:
    """Whether any of these bytes is on the page of a place. Only the low 32 bits are known of one in a part where nothing is mapped."""
    further = (place // PAGE_SIZE - start // PAGE_SIZE) % (arena.ARENA_SIZE // PAGE_SIZE)
    return further <= (start % PAGE_SIZE + size - 1) // PAGE_SIZE


def _accessible(space: Space, start: int, size: int, access: str) -> int:
    """The number of contiguous bytes at an address that an access can reach: a write faults where memory is mapped read-only."""
    return space.mapped(start, size) if access in WRITES else space.extent(start, size)


def _missing(start: int, size: int, lane: int | None, place: int, access: str, space: Space | None, by: str) -> GpuFault:
    """Something from `start` on is not mapped; `place` is what the host noticed."""
    there = _accessible(space, start, size, access) if space is not None else size
    first = start + there if there < size else place
    where = "" if lane is None else f" (lane {lane})"
    return GpuFault(first, access, space.name if space else "", by, (space.outside(first) if space else "not mapped") + where)


def _left(context: ContextHead, address: int, access: str, name: str, by: str) -> GpuFault:
    word, size = int(context.mask), int(context.mask) >> SIZE_SHIFT
    base = 0 if word & TABLE else int(context.base)
    lanes = {} if word & BLOCK else places(context)
    whole = (1 << (CANONICAL_BITS if word & TABLE and not address >> CANONICAL_BITS else 64)) - 1
    lane = next((lane for lane, start in lanes.items() if start & whole == address + base & whole), None)
    where = "" if lane is None else f" (lane {lane})"
    if not word & ATOMIC or word & TABLE and not address % size:
        return GpuFault(address, access, name, by, f"not a canonical address{where}")
    found = arena.locate(address + base)
    address, name = (address, name) if word & TABLE else (found.address, name) if found else (address, "local memory")
    return GpuFault(address, access, name, by, f"not a multiple of {size}{where}")

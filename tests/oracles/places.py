"""Places of bits: every position a layout names, and whether positions cover one another."""

from __future__ import annotations

from collections.abc import Iterable

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import BitField, Group


def positions(fields: Iterable[BitField], groups: Iterable[Group], gen: float, bits: int, base: int = 0) -> set[tuple[int, int]]:
    """Each piece of each field, each whole of neighbouring pieces, what stands in repeated groups and in embedded structures."""
    found: set[tuple[int, int]] = set()
    for field in fields:
        found |= {(base + high, base + low) for high, low in field.pieces}
        if field.mask == (1 << field.high + 1) - (1 << field.low):
            found.add((base + field.high, base + field.low))
        inner = catalogue().get(field.type.target, gen) if field.type.name == "struct" else None
        if inner is not None:
            found |= positions(inner.fields, inner.groups, gen, field.width, base + field.low)
    for group in groups:
        for i in range(group.times(bits)):
            found |= positions(group.fields, group.groups, gen, group.size, base + group.start + i * group.size)
    return found


def tiled(place: tuple[int, int], pieces: set[tuple[int, int]]) -> bool:
    """Whether whole pieces cover a place, each bit once."""
    high, low = place
    starts: dict[int, list[int]] = {}
    for h, at in pieces:
        if low <= at and h <= high:
            starts.setdefault(at, []).append(h)
    reached, queue = {low}, [low]
    while queue:
        for h in starts.get(queue.pop(), ()):
            if h + 1 not in reached:
                reached.add(h + 1)
                queue.append(h + 1)
    return high + 1 in reached

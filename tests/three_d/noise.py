"""Noise: random bits in the fields of a command or block of memory, but for those that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.field import BitField

DWORD = 32  # bits
Noise = Mapping[str, tuple[str, ...]]  # commands and blocks, with the fields that keep their values


def noisy(name: str, gen: float, words: list[int], noise: Noise, seed: int) -> list[int]:
    """The dwords of a command or block with its noise, if it has any; the same again with the same seed."""
    if name not in noise or not words:
        return words
    page, bits, kept = layout(name, gen), DWORD * len(words), noise[name]
    held = _bits(page.fields, kept) | ((1 << DWORD) - 1 if page.header is not None else 0)
    for group in page.groups:
        own = _bits(group.fields, kept)
        for n in range(group.times(bits)):
            held |= own << group.start + n * group.size
    mask = (1 << bits) - 1 & ~(held | page.reserved(len(words)))
    random = int.from_bytes(np.random.default_rng([seed, *name.encode()]).bytes(4 * len(words)), "little")
    number = int.from_bytes(np.array(words, "<u4").tobytes(), "little") & ~mask | random & mask
    return [number >> DWORD * n & 0xFFFFFFFF for n in range(len(words))]


def _bits(fields: Sequence[BitField], names: tuple[str, ...]) -> int:
    """The bits of fields of these names; some fields share bits."""
    found = 0
    for high, low in (piece for field in fields if field.name in names for piece in field.pieces):
        found |= (1 << high + 1) - (1 << low)
    return found

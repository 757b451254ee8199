"""Raster operations as masks: all 256 codes at all bits."""

from __future__ import annotations

import random

from softgen.blitter.blit_h import GROUP
from softgen.blitter.raster import ONES, raster_masks, repeated, uses_pattern, uses_source


def test_every_code_at_every_combination() -> None:
    rng = random.Random(1)
    for code in range(256):
        pixel = rng.randbytes(rng.choice((1, 2, 4)))
        written = rng.randbytes(len(pixel))
        masks, pattern, mask = raster_masks(code, pixel, written), repeated(pixel), repeated(written)
        assert all(0 <= part <= ONES for part in masks), "of GROUP bytes"
        s, d = rng.getrandbits(8 * GROUP), rng.getrandbits(8 * GROUP)
        found = masks.constant ^ masks.source & s ^ masks.destination & d ^ masks.both & s & d
        for bit in range(8 * GROUP):
            index = 4 * (pattern >> bit & 1) + 2 * (s >> bit & 1) + (d >> bit & 1)
            assert found >> bit & 1 == (code >> index & 1 if mask >> bit & 1 else d >> bit & 1), hex(code)


def test_which_operands_a_code_depends_on() -> None:
    """By comparing its truth table with the operand flipped."""
    for code in range(256):
        table = [code >> index & 1 for index in range(8)]
        assert uses_pattern(code) == any(table[i] != table[i ^ 4] for i in range(8))
        assert uses_source(code) == any(table[i] != table[i ^ 2] for i in range(8))


def test_copies_and_fills_read_only_what_they_need() -> None:
    copy, fill, kept = raster_masks(0xCC), raster_masks(0xF0, b"\x12\x34"), raster_masks(0xAA)
    assert (copy.source, copy.reads_source, copy.reads_destination) == (ONES, True, False)
    assert (fill.constant, fill.reads_source, fill.reads_destination) == (int.from_bytes(b"\x12\x34" * 8, "little"), False, False)
    assert (kept.constant, kept.destination, kept.reads_source) == (0, ONES, False)
    assert raster_masks(0xCC, written=b"\xff\xff\xff\0").reads_destination

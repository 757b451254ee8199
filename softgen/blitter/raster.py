"""Raster operations: one of the 256 functions of a pattern, source and destination bit, as masks over the bits of pixels.

A code's bit 4 P + 2 S + D is the result (public: Microsoft's ternary raster operations, which Intel's manuals number alike). With the
pattern known, what is left is a function of S and D at each bit, as the sum modulo 2 of a constant, S, D and S D.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from softgen.blitter.blit_h import GROUP
from softgen.errors import Unsupported

ONES = (1 << 8 * GROUP) - 1
COPY = 0xCC  # the source


class RasterMasks(NamedTuple):
    """result = constant ^ source & S ^ destination & D ^ both & S & D, at each bit of GROUP bytes."""

    constant: int
    source: int
    destination: int
    both: int

    @property
    def reads_source(self) -> bool:
        return bool(self.source or self.both)

    @property
    def reads_destination(self) -> bool:
        return bool(self.destination or self.both)


def uses_pattern(code: int) -> bool:
    """Whether the result depends on the pattern."""
    return bool((code >> 4 ^ code) & 0x0F)


def uses_source(code: int) -> bool:
    """Whether the result depends on the source."""
    return bool((code >> 2 ^ code) & 0x33)


def without(missing: str, code: int) -> int:
    """The raster operation of a command without a pattern or a source. Raises Unsupported if it depends on that: the manual selects any of
    256 for any command (KBL 2757-2759) and does not say what the engine takes for an operand that the opcode lacks."""
    if (uses_pattern if missing == "pattern" else uses_source)(code):
        raise Unsupported(f"raster_operation {code:#04x}, which depends on a {missing}: not yet simulated")
    return code


@lru_cache(256)
def raster_masks(code: int, pixel: bytes = b"\0", written: bytes = b"\xff") -> RasterMasks:
    """A raster operation with a solid pattern of one colour, `pixel`; bits outside `written` keep the destination."""
    pattern, mask = repeated(pixel), repeated(written)

    def result(source: int, destination: int) -> int:
        low = 2 * source + destination
        chosen = (pattern if code >> 4 + low & 1 else 0) | (~pattern & ONES if code >> low & 1 else 0)
        return chosen & mask | (~mask & ONES if destination else 0)

    neither, d, s, both = result(0, 0), result(0, 1), result(1, 0), result(1, 1)
    return RasterMasks(neither, neither ^ s, neither ^ d, neither ^ s ^ d ^ both)


def repeated(pixel: bytes) -> int:
    """A pixel as often as it fits into GROUP bytes."""
    return int.from_bytes(pixel * (GROUP // len(pixel)), "little")

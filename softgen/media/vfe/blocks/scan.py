"""IS mode: a macroblock's coefficients at their places (G45 8776-8786, 9705-9837).

Reads   MEDIA_OBJECT MEDIA_OBJECT_IS_INLINE_DATA MEDIA_OBJECT_IS_COEFFICIENT
Writes  payloads: inline data as it is, then the coded blocks back to back
"""

from __future__ import annotations

from collections.abc import Sequence

from softgen.bits import catalogue
from softgen.errors import DecodeError
from softgen.media.vfe.blocks.structures import BLOCK_BYTES, ScanMacroblock, decode
from softgen.media.vfe.payload import registers


def payload(gen: float, inline: bytes, dwords: Sequence[int], coefficients: bytes) -> bytes:
    """Of the inline data only the coded block pattern is looked at; there may be more of it than the page has."""
    layout = catalogue.layout("MEDIA_OBJECT_IS_INLINE_DATA", gen)
    if len(dwords) < layout.dwords:
        raise DecodeError(f"{len(dwords)} dwords of inline data in IS mode, there must be {layout.dwords} (G45 9655)")
    made = ScanMacroblock(pattern=layout.raw(list(dwords[: layout.dwords])).coded_block_pattern)
    found = decode("scan_blocks", made, coefficients)
    return registers(inline) + found.tobytes()[: made.written * BLOCK_BYTES]

"""VC1-IT mode: residuals of a macroblock, with the vertical edges of intra blocks smoothed (G45 9042-9066, 10840-11093, 11833-11850).

Reads   MEDIA_OBJECT_EX MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA
Writes  payloads: nine dwords in two registers, then 24 registers of residuals

The right edge of a macroblock is finished with the next one, so its thread waits for that, or for a flush.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.media.vfe.blocks.structures import Vc1Macroblock, decode

INLINE = "MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA"
LEFT_EDGES = 0xF0  # of overlap_edge_mask_luma: bits 7:4 for Y3 to Y0


class Transformed(NamedTuple):
    """A macroblock whose right edge is not finished yet."""

    place: tuple[int, int]
    inline: bytes
    residual: npt.NDArray[np.int16]
    overlaps: bool

    @property
    def payload(self) -> bytes:
        return self.inline + self.residual.tobytes()


def transformed(cs: CommandStreamer, inline: bytes, dwords: Sequence[int], data: bytes, before: Transformed | None) -> Transformed:
    """A macroblock; the right edge of the one before is finished with it."""
    layout = catalogue.layout(INLINE, cs.generation.number)
    if len(dwords) < layout.dwords:
        raise DecodeError(f"{len(dwords)} dwords of inline data in VC1-IT mode, there must be {layout.dwords} (G45 10842)")
    held = layout.raw(list(dwords[: layout.dwords]))
    edges = (held.overlap_edge_mask_luma & LEFT_EDGES) >> 4 | (held.overlap_edge_mask_chroma >> 1 & 1) << 4
    made = Vc1Macroblock(pattern=held.coded_block_pattern, overlap=held.overlap_transform, edges=edges)
    made.subblocks[:6] = [getattr(held, f"subblock_coding_{name}") for name in ("y0", "y1", "y2", "y3", "cb", "cr")]
    place = int(held.horizontal_origin), int(held.vertical_origin)
    _check(cs, held, edges, place, before)
    left = before if before is not None and before.overlaps and place == (before.place[0] + 1, before.place[1]) else None
    residual = decode("vc1_blocks", made, data, None if left is None else left.residual)
    return Transformed(place, inline, residual, bool(held.overlap_transform))


def _check(cs: CommandStreamer, held: Record, edges: int, place: tuple[int, int], before: Transformed | None) -> None:
    if held.intra_macroblock and held.coded_block_pattern != 0x3F:
        cs.warn(f"an intra macroblock must have coded_block_pattern 0x3f, not {held.coded_block_pattern:#x} (G45 10920)")
    if not held.overlap_transform or before is None:
        return
    if place not in ((before.place[0] + 1, before.place[1]), (0, before.place[1] + 1)):
        cs.warn(f"macroblock {place} after {before.place}: with overlap smoothing they come in raster order (G45 9062)")

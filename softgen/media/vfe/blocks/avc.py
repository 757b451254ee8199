"""AVC-IT and AVC-MC modes: motion vectors, weights and residuals of a macroblock at their registers (G45 9931-10838, 11483-11830).

Reads   MEDIA_OBJECT_EX MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA MEDIA_AVC_MACROBLOCK VFE_STATE_EX
Writes  payloads: inline data, vectors, weights at offset p, 24 registers of residuals at offset q

Patterns have their first block in the highest bit, as the manual says of those of 8x8 blocks. Gaps, which the manual leaves undefined, are
zeros, and so are blocks of AVC-MC mode that the pattern leaves out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError
from softgen.media.vfe.blocks.structures import BLOCK_BYTES, BLOCKS, AvcMacroblock, decode
from softgen.media.vfe.payload import registers

INLINE, MOVED = "MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA", "MEDIA_AVC_MACROBLOCK"
SIZES = {0: (0, 0), 2: (4, 4), 4: (8, 16), 5: (16, 16), 6: (32, 16)}  # mv_size -> dwords of vectors and of weights (table 10-32)
NO_VECTORS, NO_WEIGHTS, BOTH = 0, 1, 3  # indirect_sub_field_present
PCM, PCM_BYTES = 25, 384
FORCED = 0x7E0000  # bits 22:17 of dword 0, which VFE delivers as zeros


class SubFields(NamedTuple):
    """The three parts of the indirect data."""

    vectors: bytes
    weights: bytes
    residual: bytes


def transformed(gen: float, extension: Record | None, dwords: Sequence[int], data: bytes) -> bytes:
    """AVC-IT mode."""
    macroblock = _inline(gen, INLINE, dwords)
    parts = sub_fields(_control(extension), macroblock, data)
    intra = bool(macroblock.intra_macroblock)
    if intra and macroblock.macroblock_type == PCM:
        residual = parts.residual[:PCM_BYTES].ljust(PCM_BYTES, b"\0")
    else:
        residual = decode("avc_blocks", _macroblock(macroblock), parts.residual).tobytes()
    delivered = [dwords[0] & ~FORCED, dwords[1], _patterns(macroblock), *dwords[3:6], 0, 0]
    return _placed(extension, macroblock, delivered, parts, residual)


def moved(gen: float, extension: Record | None, dwords: Sequence[int], data: bytes) -> bytes:
    """AVC-MC mode: residuals are in the pixel domain."""
    macroblock = _inline(gen, MOVED, dwords)
    parts, residual, at = sub_fields(_control(extension), macroblock, data), b"", 0
    for number in range(BLOCKS):
        present = macroblock.coded_block_pattern >> (BLOCKS - 1 - number) & 1
        block = parts.residual[at : at + BLOCK_BYTES] if present else b""
        residual += block.ljust(BLOCK_BYTES, b"\0")
        at += len(block)
    return _placed(extension, macroblock, [dwords[0] & ~FORCED, *dwords[1:8]], parts, residual)


def _inline(gen: float, name: str, dwords: Sequence[int]) -> Record:
    layout = catalogue.layout(name, gen)
    if len(dwords) < 8:
        raise DecodeError(f"{len(dwords)} dwords of inline data, there must be 8 (G45 9933)")
    found = layout.raw(list(dwords[: layout.dwords]))
    if found.mv_size not in SIZES:
        raise DecodeError(f"{name}: mv_size {found.mv_size} is reserved")
    return found


def _control(extension: Record | None) -> Record:
    if extension is None:
        raise DecodeError("AVC modes need VFE_STATE_EX, but extended_vfe_state_enable of MEDIA_STATE_POINTERS is 0")
    if extension.indirect_sub_field_present == 2:
        raise DecodeError("VFE_STATE_EX: indirect_sub_field_present 2 is reserved")
    return extension


def sub_fields(extension: Record, macroblock: Record, data: bytes) -> SubFields:
    """Vectors, then weights, each if its field is present; residuals from the next register on, or from a fixed offset."""
    present = extension.indirect_sub_field_present
    vectors, weights = (4 * dwords for dwords in SIZES[macroblock.mv_size])
    vectors, weights = vectors * (present != NO_VECTORS), weights * (present == BOTH)
    start = -(-(vectors + weights) // GRF_BYTES) * GRF_BYTES
    if extension.residual_data_fixed_source_offset:
        start = 4 * int(extension.residual_data_source_offset)
    return SubFields(data[:vectors], data[vectors : vectors + weights], data[start:])


def _macroblock(held: Record) -> AvcMacroblock:
    return AvcMacroblock(
        pattern_y=held.coded_block_pattern_y, pattern_cb=held.coded_block_pattern_cb, pattern_cr=held.coded_block_pattern_cr,
        dc_y=held.dc_block_coded_y, dc_cb=held.dc_block_coded_cb, dc_cr=held.dc_block_coded_cr, transform_8x8=held.transform_8x8,
        qp_y=held.qp_prime_y, qp_cb=held.qp_prime_cb, qp_cr=held.qp_prime_cr,
        scale_y=held.level_scale_y, scale_cb=held.level_scale_cb, scale_cr=held.level_scale_cr)  # fmt: skip


def _patterns(held: Record) -> int:
    """Dword 2 as threads get it: a pattern of 8x8 blocks, which counts DC coefficients too, and those of chroma."""
    luma = [bool(held.coded_block_pattern_y >> (12 - 4 * number) & 15 or held.dc_block_coded_y) for number in range(4)]
    chroma = [bool(held.coded_block_pattern_cb or held.dc_block_coded_cb), bool(held.coded_block_pattern_cr or held.dc_block_coded_cr)]
    pattern = sum(coded << (BLOCKS - 1 - number) for number, coded in enumerate([*luma, *chroma]))
    return int(pattern << 8 | held.coded_block_pattern_cr << 4 | held.coded_block_pattern_cb)


def _placed(extension: Record | None, macroblock: Record, inline: Sequence[int], parts: SubFields, residual: bytes) -> bytes:
    """The registers behind the inline data. Offsets do not apply to macroblocks without vectors (G45 9521-9530)."""
    assert extension is not None
    head = struct.pack("<8I", *(value & 0xFFFFFFFF for value in inline))
    if macroblock.intra_macroblock or not macroblock.mv_size:
        return head + residual
    weights = int(extension.inter_weight_offset_grf_destination_offset) * GRF_BYTES
    start = int(extension.inter_residual_data_grf_destination_offset) * GRF_BYTES
    body = bytearray(max(start + len(residual), weights + len(parts.weights), len(parts.vectors)))
    for at, found in ((0, registers(parts.vectors)), (weights, registers(parts.weights)), (start, residual)):
        body[at : at + len(found)] = found
    return head + bytes(body)

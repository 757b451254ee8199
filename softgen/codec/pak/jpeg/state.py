"""JPEG scans to encode, from the latched records to encode.c.

In:  MFX_JPEG_PIC_STATE, MFX_FQM_STATE, MFC_JPEG_HUFF_TABLE_STATE, MFC_JPEG_SCAN_OBJECT. Out: scans in the coded stream.

Drivers send the header after the scan, in one MFX_PAK_INSERT_OBJECT with end_of_slice: scans with head_present wait for it.
"""

from __future__ import annotations

import ctypes
from typing import Protocol

from softgen.bits.record import Record
from softgen.codec.library import library, run_rows
from softgen.codec.pak.jpeg.structures import AC_CODES, DC_CODES, JpegEncoder
from softgen.codec.pak.source import open_source
from softgen.codec.pak.stream import CodedStream
from softgen.codec.picture import MOST_SIDE, FramePool
from softgen.codec.structures import PLANES, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

NV12, UYVY, YUY2, Y8 = 1, 2, 3, 4  # input_surface_format_yuv
LAYOUTS = {NV12: SurfaceLayout.INTERLEAVED_CHROMA, UYVY: SurfaceLayout.PACKED_UYVY, YUY2: SurfaceLayout.PACKED_YUYV,
           Y8: SurfaceLayout.LUMA_ONLY}  # fmt: skip
# Blocks of each component in an MCU, across and down, by output_mcu_structure.
STRUCTURES = {0: ((1, 1),), 1: ((2, 2), (1, 1), (1, 1)), 2: ((2, 1), (1, 1), (1, 1))}
INPUTS = {0: (NV12, UYVY, YUY2, Y8), 1: (NV12,), 2: (UYVY, YUY2)}  # input_surface_format_yuv by output_mcu_structure


class EncodeState(Protocol):
    """What commands leave for a scan (engine.py)."""

    surfaces: dict[int, Record]
    forward_matrices: dict[int, list[int]]
    encode_tables: dict[int, Record]
    frames: FramePool


def scan(cs: CommandStreamer, engine: EncodeState, stream: CodedStream, cmd: Record) -> None:
    """Encode a scan, or keep it until its header is there."""
    if cmd.head_present:
        stream.pending.append(cmd)
    else:
        _encode(cs, engine, stream, cmd)


def header_inserted(cs: CommandStreamer, engine: EncodeState, stream: CodedStream) -> None:
    """Encode the scans that waited for their header."""
    waiting, stream.pending = stream.pending, []
    for cmd in waiting:
        assert isinstance(cmd, Record)
        _encode(cs, engine, stream, cmd)


def _encode(cs: CommandStreamer, engine: EncodeState, stream: CodedStream, cmd: Record) -> None:
    state = cs.latched["MFX_JPEG_PIC_STATE"]
    structure, format = state.output_mcu_structure, state.input_surface_format_yuv
    if structure not in STRUCTURES or format not in LAYOUTS:
        raise Unsupported(f"output_mcu_structure {structure} of input_surface_format_yuv {format}: not yet simulated")
    if format not in INPUTS[structure]:
        raise DecodeError(f"input_surface_format_yuv {format} has not the chroma of output_mcu_structure {structure}")
    if state.rounding_quant:
        raise Unsupported(f"rounding_quant {state.rounding_quant}: not yet simulated")
    engine.frames.release()
    sampling = STRUCTURES[structure]
    sizes = _sizes(state, sampling, format)
    record, keep = open_source(cs, engine.surfaces, engine.frames, LAYOUTS[format], sizes)
    encoder = JpegEncoder(ctypes.addressof(record), ctypes.addressof(stream.writer), components=len(sampling),
                          restart_interval=cmd.restart_interval, last=cmd.last_scan)  # fmt: skip
    mcus = _mcus(state, sampling)
    encoder.mcus_across, encoder.mcu_count = mcus[0], min(cmd.mcu_count, mcus[0] * mcus[1])
    _tables(engine, encoder)
    for index, blocks in enumerate(sampling):
        _component(engine, encoder, index, blocks, sizes[index], cmd)
    run_rows(cs, library().jpeg_encode, encoder)
    stream.bits += encoder.bits
    del keep


def _mcus(state: Record, sampling: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    across, down = sampling[0]
    return -(-(state.frame_width_in_blocks + 1) // across), -(-(state.frame_height_in_blocks + 1) // down)


def _sizes(state: Record, sampling: tuple[tuple[int, int], ...], format: int) -> list[tuple[int, int]]:
    """Samples of each plane: those that the last MCU of a row or column has no part of are left out."""
    sides = []
    for mcus, blocks, rest in zip(_mcus(state, sampling), sampling[0],
                                  (state.pixels_in_horizontal_last_mcu, state.pixels_in_vertical_last_mcu), strict=True):  # fmt: skip
        size = 8 * blocks * (mcus - 1) + min(rest or 8 * blocks, 8 * blocks)
        if size > MOST_SIDE:
            raise DecodeError(f"a side of {size} samples: pictures may have {MOST_SIDE}")
        sides.append(size)
    if format == Y8:
        return [(sides[0], sides[1]), (0, 0), (0, 0)]
    chroma = -(-sides[0] // 2), -(-sides[1] // 2) if format == NV12 else sides[1]
    return [(sides[0], sides[1]), chroma, chroma]


def _tables(engine: EncodeState, encoder: JpegEncoder) -> None:
    """Codes of both tables; a scan whose driver sent one table uses it for all components."""
    first = engine.encode_tables.get(0) or engine.encode_tables.get(1)
    if first is None:
        raise DecodeError("no MFC_JPEG_HUFF_TABLE_STATE came before")
    for codes, number in zip(encoder.codes, range(2), strict=True):
        table = engine.encode_tables.get(number, first)
        for found, items, count in ((codes.dc, table.dc_table, DC_CODES), (codes.ac, table.ac_table, AC_CODES)):
            for slot, item in zip(found, items[:count], strict=True):
                slot.code, slot.length = item.code, min(item.code_length, 16)


def _component(engine: EncodeState, encoder: JpegEncoder, index: int, blocks: tuple[int, int], size: tuple[int, int], cmd: Record) -> None:
    matrix = engine.forward_matrices.get(index)
    if matrix is None:
        raise DecodeError(f"no MFX_FQM_STATE of component {index} came before")
    assert index < PLANES
    component = encoder.component[index]
    component.across, component.down = blocks
    component.width, component.height = size
    component.dc_table, component.ac_table = cmd.huffman_dc_table >> index & 1, cmd.huffman_ac_table >> index & 1
    component.reciprocals[:] = matrix

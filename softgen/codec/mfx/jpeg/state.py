"""JPEG scans, from the latched records to decode.c.

In:  MFX_JPEG_PIC_STATE, MFX_QM_STATE, MFX_JPEG_HUFF_TABLE_STATE, MFD_JPEG_BSD_OBJECT with its data. Out: samples of the open picture.

Table 0 is that of the first component, 1 of all others, whatever the stream's own numbers were: drivers send them so. A picture whose
driver sent one table uses it for all components.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

import numpy as np

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.jpeg.structures import TABLE_ROOM, JpegScan, JpegTable
from softgen.codec.picture import DECODED, REFERENCE_PICTURE, PictureShape, VideoPicture, open_picture
from softgen.codec.structures import PADDING, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.eu import native

GREY = 128
# Blocks of each component in an MCU, across and down, by input_format_yuv.
SAMPLINGS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 1),), ((2, 2), (1, 1), (1, 1)), ((2, 1), (1, 1), (1, 1)), ((1, 1), (1, 1), (1, 1)), ((4, 1), (1, 1), (1, 1)),
    ((1, 2), (1, 1), (1, 1)), ((2, 2), (1, 2), (1, 2)), ((2, 2), (2, 1), (2, 1)),
)  # fmt: skip
OUTPUTS = tuple(map(SurfaceLayout, (0, 1, 3, 2)))  # by output_format_yuv: planar, nv12, uyvy, yuy2
OUTPUT_CHROMA = dict(zip(OUTPUTS[1:], ((1, 1), (1, 0), (1, 0)), strict=True))
REFUSED = ("vertical_up_sampling_enable", "horizontal_down_sampling_enable", "vertical_down_sampling_enable", "rotation")


def decode_scan(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a scan; the first one of a picture opens it."""
    state = cs.latched["MFX_JPEG_PIC_STATE"]
    sampling = _sampling(state)
    picture = engine.picture or _open(cs, engine, state, sampling)
    engine.picture = picture
    cs.collected()
    data = bitstream(cs, cmd.indirect_data_length, cmd.indirect_data_start_address)
    scan, keep = _scan(engine, picture, state, cmd, sampling, data)
    run_rows(cs, library().jpeg_decode, scan)
    del keep


def _sampling(state: Record) -> tuple[tuple[int, int], ...]:
    for name in REFUSED:
        if getattr(state, name, 0):
            raise Unsupported(f"{name} of MFX_JPEG_PIC_STATE: not yet simulated")
    return SAMPLINGS[state.input_format_yuv]


def _open(cs: CommandStreamer, engine: VideoEngine, state: Record, sampling: tuple[tuple[int, int], ...]) -> VideoPicture:
    shape = _shape(state, sampling)
    format = getattr(state, "output_format_yuv", 0)
    if format >= len(OUTPUTS):
        raise DecodeError(f"output_format_yuv {format} is reserved")
    layout = OUTPUTS[format] if shape.chroma is not None else SurfaceLayout.LUMA_ONLY
    if layout in OUTPUT_CHROMA and OUTPUT_CHROMA[layout] != shape.chroma:
        raise Unsupported("conversion between samplings of chroma: not yet simulated")
    picture = open_picture(cs, engine, shape, layout)
    ctypes.memset(picture.record.frame.plane[0].samples, GREY, sum(width * height for width, height in shape.planes()))
    ctypes.memset(picture.record.state, DECODED, shape.width * shape.height)
    return picture


def _shape(state: Record, sampling: tuple[tuple[int, int], ...]) -> PictureShape:
    across, down = sampling[0]
    width, height = -(-(state.frame_width_in_blocks + 1) // across), -(-(state.frame_height_in_blocks + 1) // down)
    if len(sampling) == 1:
        return PictureShape(width, height, None, (8, 8))
    shift = across // sampling[1][0], down // sampling[1][1]
    return PictureShape(width, height, (shift[0].bit_length() - 1, shift[1].bit_length() - 1), (8 * across, 8 * down))


def _scan(engine: VideoEngine, picture: VideoPicture, state: Record, cmd: Record, sampling: tuple[tuple[int, int], ...],
          data: bytes) -> tuple[JpegScan, list[object]]:  # fmt: skip
    tables = _tables(engine)
    segment = ctypes.create_string_buffer(len(data) + len(PADDING))
    record, surface = picture.record, engine.surfaces[REFERENCE_PICTURE]
    scan = JpegScan(ctypes.addressof(record), data, len(data), 0, ctypes.addressof(segment), restart_interval=cmd.restart_interval,
                    interleaved=cmd.interleaved, mcus_across=record.width)  # fmt: skip
    for kind, pair in enumerate(tables):
        for number, table in enumerate(pair):
            scan.tables[kind][number] = table.ctypes.data
    most = sampling[0]
    for index, (across, down) in enumerate(sampling):
        component = scan.component[index]
        component.across, component.down, component.table = across, down, int(index > 0)
        component.in_scan = cmd.scan_components >> index & 1
        component.blocks_x = -(-(surface.width + 1) * across // (8 * most[0]))
        component.blocks_y = -(-(surface.height + 1) * down // (8 * most[1]))
        if index not in engine.matrices:
            raise DecodeError(f"no MFX_QM_STATE of component {index} came before")
        component.matrix[:] = list(engine.matrices[index])
    scan.mcu_count = min(cmd.mcu_count, _units(scan, record.width * record.height))
    return scan, [tables, segment]


def _units(scan: JpegScan, mcus: int) -> int:
    """How many MCUs a scan can have: more would be outside the picture."""
    alone = [component.blocks_x * component.blocks_y for component in scan.component if component.in_scan]
    if not alone:
        raise DecodeError("scan_components names no component of the picture")
    return mcus if scan.interleaved else alone[0]


def _tables(engine: VideoEngine) -> tuple[tuple[Words, Words], tuple[Words, Words]]:
    """DC tables, AC tables: luma and chroma."""
    first = engine.huffman_tables.get(0) or engine.huffman_tables.get(1)
    if first is None:
        raise DecodeError("no MFX_JPEG_HUFF_TABLE_STATE came before")
    records = engine.huffman_tables.get(0, first), engine.huffman_tables.get(1, first)
    dc = tuple(vlc_table(_numbers(item.dc_bits), _numbers(item.dc_huffval)) for item in records)
    ac = tuple(vlc_table(_numbers(item.ac_bits), _numbers(item.ac_huffval) + _numbers(item.ac_huffval2)) for item in records)
    return (dc[0], dc[1]), (ac[0], ac[1])


def _numbers(items: tuple[Record, ...]) -> bytes:
    return bytes(item.value for item in items)


Words = np.ndarray[tuple[int], np.dtype[np.int16]]


@lru_cache(maxsize=64)
def vlc_table(counts: bytes, values: bytes) -> Words:
    """The table of codes that has `counts` of each length from 1 on, of `values` in rising order of their codes."""
    entries: Words = np.zeros(2 * TABLE_ROOM, np.int16)
    table = JpegTable(entries.ctypes.data)
    table.counts[: len(counts)], table.values[: len(values)] = list(counts), list(values)
    if native.GuardedCall(library().jpeg_build)(table) in (None, -1):
        raise SoftgenError("a Huffman table whose codes begin one another has no table")
    return entries

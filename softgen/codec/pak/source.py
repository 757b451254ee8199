"""The source of an encoded picture: a surface whose samples are read into host memory.

In:  MFX_SURFACE_STATE, MFX_PIPE_BUF_ADDR_STATE. Out: `struct picture` (codec.h) with the source as its reference 0.
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.codec.picture import IN_MEMORY, FramePool, refuse_compression, video_surface
from softgen.codec.structures import GraphicsTable, PictureRecord, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError

SOURCE_PICTURE, REFERENCE_PICTURE = 4, 0  # surface_id


def source_surface(surfaces: dict[int, Record]) -> Record:
    """The MFX_SURFACE_STATE of the source. Drivers without VDENC name their only surface a reference."""
    state = surfaces.get(SOURCE_PICTURE) or surfaces.get(REFERENCE_PICTURE)
    if state is None:
        raise DecodeError("no MFX_SURFACE_STATE came before")
    return state


def source_address(cs: CommandStreamer) -> int:
    buffers = cs.latched.get("MFX_PIPE_BUF_ADDR_STATE")
    if buffers is None or not buffers.original_uncompressed_picture_source_address:
        raise DecodeError("MFX_PIPE_BUF_ADDR_STATE names no original_uncompressed_picture_source")
    refuse_compression(cs.generation.number, buffers.original_uncompressed_picture_source_attributes)
    return int(buffers.original_uncompressed_picture_source_address)


def open_source(cs: CommandStreamer, surfaces: dict[int, Record], frames: FramePool, layout: SurfaceLayout,
                sizes: list[tuple[int, int]]) -> tuple[PictureRecord, list[object]]:  # fmt: skip
    """The source as reference 0 of a picture; `sizes`: width and height of each plane. Answers the memory that it points to as well."""
    table, record = cs.space.table, PictureRecord()
    record.memory = GraphicsTable(ctypes.addressof(table), (1 << cs.space.bits) - 1)
    record.source = video_surface(source_surface(surfaces), layout)
    slot = record.references[0]
    slot.address, slot.state = source_address(cs), IN_MEMORY
    slot.frame, samples = frames.take(sizes)
    return record, [table, samples]

"""The open picture: where it goes, its references, and its samples in host memory until it is complete.

In:  MFX_PIPE_MODE_SELECT, MFX_SURFACE_STATE, MFX_PIPE_BUF_ADDR_STATE; a codec's sizes. Out: `struct picture` (codec.h); surfaces.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.codec.library import library, run_rows
from softgen.codec.structures import GraphicsTable, PictureRecord, SampleFrame, SurfaceLayout, VideoSurface
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported
from softgen.surface.tile_table import tile_offsets
from softgen.surface.tiling import orders

Samples = npt.NDArray[np.uint8]
MOST_SIDE = 16384  # samples of a picture's side
IN_MEMORY = 1  # enum reference_state
DECODED = 1  # enum macroblock_state
AREA_HEIGHT = 64  # rows of an area of a reference
MORE_BYTES = 64  # behind the last plane: vectors read beyond a narrow block
REFERENCE_PICTURE = 0  # surface_id


class PictureShape:
    """A picture in macroblocks (JPEG: MCUs): how many, of how many luma samples, and how chroma is sampled. `fields`: it is one of so many
    fields of a frame."""

    def __init__(self, width: int, height: int, chroma: tuple[int, int] | None = (1, 1), block: tuple[int, int] = (16, 16),
                 fields: int = 1) -> None:  # fmt: skip
        """`chroma`: log2 of luma samples for a chroma sample, across and down; None: there is no chroma."""
        self.width, self.height, self.chroma, self.block, self.fields = width, height, chroma, block, fields
        if not 0 < width * block[0] <= MOST_SIDE or not 0 < height * block[1] * fields <= MOST_SIDE:
            raise DecodeError(f"a picture of {width}x{height} macroblocks: its sides may have {MOST_SIDE} samples")

    def planes(self, fields: int = 1) -> list[tuple[int, int]]:
        """Width and height of each plane."""
        luma = self.width * self.block[0], self.height * self.block[1] * fields
        if self.chroma is None:
            return [luma, (0, 0), (0, 0)]
        small = luma[0] >> self.chroma[0], luma[1] >> self.chroma[1]
        return [luma, small, small]


class FramePool:
    """Host memory of frames, used again by the next picture of the same size."""

    def __init__(self) -> None:
        self._kind: tuple[list[tuple[int, int]], int] = [], 0
        self._free, self._taken = list[tuple[SampleFrame, Samples]](), list[tuple[SampleFrame, Samples]]()

    def take(self, sizes: list[tuple[int, int]], sample_bytes: int = 1) -> tuple[SampleFrame, Samples]:
        """A frame whose samples are whatever they were, and its memory."""
        if self._kind != (sizes, sample_bytes):
            self._kind, self._free, self._taken = (sizes, sample_bytes), [], []
        found = self._free.pop() if self._free else _new_frame(sizes, sample_bytes)
        self._taken.append(found)
        return found

    def release(self) -> None:
        """Make all frames free."""
        self._free += self._taken
        self._taken = []


def _new_frame(sizes: list[tuple[int, int]], sample_bytes: int) -> tuple[SampleFrame, Samples]:
    samples = np.empty(sum(width * height for width, height in sizes) * sample_bytes + MORE_BYTES, np.uint8)
    frame, at = SampleFrame(), samples.ctypes.data
    for plane, (width, height) in zip(frame.plane, sizes, strict=True):
        plane.samples, plane.stride, plane.width, plane.height = at, width, width, height
        at += width * height * sample_bytes
    return frame, samples


@dataclass
class VideoPicture:
    """A picture that is being decoded."""

    pipe: ClassVar[str] = "mfx"  # which decodes it
    record: PictureRecord
    keep: list[object]  # memory that the record points to

    def complete(self, cs: CommandStreamer) -> None:
        """Write what is left of it to its surfaces."""
        run_rows(cs, library().codec_store, self.record)

    def report(self, cs: CommandStreamer) -> None:
        """Error bits, and how many macroblocks were concealed, to their registers."""
        cs.set("MFX_ERROR_FLAGS", cs.get("MFX_ERROR_FLAGS") | self.record.errors)
        cs.set("MFX_MB_COUNT", min(cs.get("MFX_MB_COUNT") + self.record.concealed, 0xFFFF))


# -- from commands -----------------------------------------------------------------------------------------------------


class PictureState(Protocol):
    """What commands leave for a picture (engine.py)."""

    mode: Record | None
    surfaces: dict[int, Record]
    frames: FramePool


def open_picture(cs: CommandStreamer, engine: PictureState, shape: PictureShape, layout: SurfaceLayout,
                 bottom: bool = False) -> VideoPicture:  # fmt: skip
    """A picture with the surfaces that the latched state names. `layout` is that of its own surface; `bottom`: it is a bottom field."""
    state, mode, frames = engine.surfaces.get(REFERENCE_PICTURE), engine.mode, engine.frames
    buffers = cs.latched.get("MFX_PIPE_BUF_ADDR_STATE")
    if state is None or mode is None or buffers is None:
        raise DecodeError("no MFX_SURFACE_STATE or no MFX_PIPE_BUF_ADDR_STATE came before")
    frames.release()
    record = PictureRecord()
    table = cs.space.table
    record.memory = GraphicsTable(ctypes.addressof(table), (1 << cs.space.bits) - 1)
    record.source = video_surface(state, layout)
    for number, name in enumerate(("pre_deblocking", "post_deblocking")):
        if getattr(mode, f"{name}_output_enable"):
            refuse_compression(cs.generation.number, getattr(buffers, f"{name}_destination_attributes"))
            record.surfaces[number] = _own(record.source, getattr(buffers, f"{name}_destination_address"), shape, bottom)
    if not any(surface.base for surface in record.surfaces):
        raise DecodeError("MFX_PIPE_MODE_SELECT and MFX_PIPE_BUF_ADDR_STATE name no surface to write to")
    record.frame, samples = frames.take(shape.planes())
    states = np.zeros(shape.width * shape.height, np.uint8)
    record.state, record.width, record.height = states.ctypes.data, shape.width, shape.height
    record.shift_x, record.shift_y = shape.chroma or (0, 0)
    record.block_width, record.block_height = shape.block
    return VideoPicture(record, [table, samples, states])


def add_references(picture: VideoPicture, frames: FramePool, buffers: Record, shape: PictureShape, count: int,
                   sample_bytes: int = 1) -> None:  # fmt: skip
    """The first `count` references: their samples are read when a block refers to them, so their addresses may be anything."""
    planes = shape.planes(shape.fields)
    areas, row_bytes = reference_areas(count, planes[0][1])
    picture.keep.append(areas)
    for number, (slot, item) in enumerate(zip(picture.record.references, buffers.reference_picture[:count], strict=False)):
        if item.address:
            slot.address, slot.state, slot.areas = item.address, IN_MEMORY, areas.ctypes.data + number * row_bytes
            slot.frame, samples = frames.take(planes, sample_bytes)
            picture.keep.append(samples)


def reference_areas(count: int, height: int) -> tuple[npt.NDArray[np.uint64], int]:
    """Which areas of references have been read: none of them. The bytes of each reference follow one another."""
    rows = -(-height // AREA_HEIGHT)
    return np.zeros(count * rows, np.uint64), 8 * rows


def refuse_compression(gen: float, attributes: int) -> None:
    if getattr(catalogue().layout("MEMORYADDRESSATTRIBUTES", gen).raw([attributes]), "memory_compression_enable", 0):
        raise Unsupported("memory compression of a video surface: not yet simulated")


def _own(source: VideoSurface, base: int, shape: PictureShape, bottom: bool) -> VideoSurface:
    surface = VideoSurface.from_buffer_copy(source)
    surface.base, surface.first_row, surface.row_step = base, int(bottom), shape.fields
    return surface


def video_surface(state: Record, layout: SurfaceLayout) -> VideoSurface:
    """How the rows of a surface lie in memory (MFX_SURFACE_STATE), but for its base."""
    if state.half_pitch_for_chroma:
        raise Unsupported("half_pitch_for_chroma: not yet simulated")
    if state.x_offset_for_u_cb or layout == SurfaceLayout.PLANAR and state.x_offset_for_v_cr:
        raise Unsupported("chroma beside the first column of a surface: not yet simulated")
    surface = VideoSurface(pitch=state.surface_pitch + 1, layout=layout, row_step=1, sample_bytes=1)
    surface.chroma_row[0], surface.chroma_row[1] = state.y_offset_for_u_cb, state.y_offset_for_v_cr
    if state.tiled_surface:
        tile_walk(surface, "y_major" if state.tile_walk else "x_major")
    return surface


def y_tiled_surface(pitch: int, chroma_row: int, sample_bytes: int) -> VideoSurface:
    """How the rows of a surface of HCP lie in memory, but for its base: tiled, chroma interleaved."""
    surface = VideoSurface(pitch=pitch, layout=SurfaceLayout.INTERLEAVED_CHROMA, row_step=1, sample_bytes=sample_bytes)
    surface.chroma_row[0] = surface.chroma_row[1] = chroma_row
    tile_walk(surface, "y_major")
    return surface


def tile_walk(surface: VideoSurface, tiling: str) -> None:
    """Make a surface's rows those of a tiling."""
    columns, rows = tile_offsets(tiling)  # which keeps them
    order = orders()[tiling]
    surface.column, surface.row = columns.ctypes.data, rows.ctypes.data
    surface.tile_columns, surface.tile_rows = order.count("X"), order.count("Y")
    surface.run = 1 << len(order) - len(order.rstrip("X"))
    if surface.pitch % (1 << surface.tile_columns):
        raise DecodeError(f"a pitch of {surface.pitch} bytes is not a multiple of a tile's {1 << surface.tile_columns}")

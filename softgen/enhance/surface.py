"""Surfaces of the enhancement engine and frames in host memory.

In:  VEBOX_SURFACE_STATE, SFC_STATE. Out: `struct enhance_surface`, `struct enhance_frame` (enhance.h).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.record import Record
from softgen.codec.picture import tile_walk
from softgen.codec.structures import GraphicsTable, SurfaceLayout, VideoSurface
from softgen.command import CommandStreamer
from softgen.enhance.library import call
from softgen.enhance.structures import EnhanceFrame, EnhanceSurface, Resampling, Transfer
from softgen.errors import DecodeError, Unsupported

Samples = npt.NDArray[np.uint16]
FIRST_PLANE = 0


class PlacedChannel(NamedTuple):
    """Where a channel's samples are: plane, byte of the first, bytes from one to the next."""

    plane: int
    offset: int
    step: int


@dataclass(frozen=True)
class PixelFormat:
    """How the channels of a frame (Y or R, U or G, V or B, alpha) lie in a surface."""

    channels: tuple[PlacedChannel | None, ...]
    shift: tuple[int, int] = (0, 0)  # log2 of luma samples for a chroma sample, across and down
    sample_bytes: int = 1
    rgb: bool = False


def _packed(step: int, *offsets: int | None, shift: tuple[int, int] = (0, 0), sample_bytes: int = 1, rgb: bool = False) -> PixelFormat:
    """All channels in one plane; of 4:2:2 luma is twice as dense."""
    steps = (step >> shift[0], step, step, step)
    size, pairs = sample_bytes, zip(offsets, steps, strict=True)
    return PixelFormat(tuple(None if at is None else PlacedChannel(0, at * size, each * size) for at, each in pairs), shift, size, rgb)


def _planar(shift: tuple[int, int], sample_bytes: int) -> PixelFormat:
    size = sample_bytes
    return PixelFormat((PlacedChannel(0, 0, size), PlacedChannel(1, 0, 2 * size), PlacedChannel(1, size, 2 * size), None), shift, size)


BETWEEN = (1, 0)  # chroma for two columns
FORMATS = {  # VEBOX_Surface_Format; 4:2:0 in three planes is made of its two-plane form
    0: _packed(4, 0, 1, 3, None, shift=BETWEEN), 1: _packed(4, 1, 2, 0, None, shift=BETWEEN), 2: _packed(4, 0, 3, 1, None, shift=BETWEEN),
    3: _packed(4, 1, 0, 2, None, shift=BETWEEN), 4: _planar((1, 1), 1), 5: _packed(4, 2, 1, 0, 3),
    6: _packed(4, 0, 1, 3, None, shift=BETWEEN, sample_bytes=2), 8: _packed(4, 0, 1, 2, 3, rgb=True),
    9: _packed(4, 1, 0, 2, 3, sample_bytes=2), 10: _planar(BETWEEN, 2), 11: PixelFormat((PlacedChannel(0, 0, 1), None, None, None)),
    12: _planar((1, 1), 2), 13: _packed(4, 0, 1, 2, 3, sample_bytes=2, rgb=True),
    15: PixelFormat((PlacedChannel(0, 0, 2), None, None, None), sample_bytes=2), 17: _packed(4, 2, 1, 0, 3, rgb=True),
}  # fmt: skip
FORMAT_NAMES = {7: "r10g10b10a2_unorm", 14: "bayer pattern", 16: "packed_444_10"}


@dataclass(frozen=True)
class SurfacePlace:
    """A surface's size and where its rows are, but for its address."""

    width: int
    height: int
    format: PixelFormat
    layout: EnhanceSurface


class Frame:
    """A frame's samples in host memory, 16 bits each."""

    def __init__(self, width: int, height: int, shift: tuple[int, int], channels: int) -> None:
        """`channels`: 1 luma alone, 3 colours, 4 with alpha."""
        self.width, self.height, self.shift = width, height, shift
        small = width + (1 << shift[0]) - 1 >> shift[0], height + (1 << shift[1]) - 1 >> shift[1]
        sizes = [(width, height), small, small, (width, height)][:channels]
        self.planes: list[Samples] = [np.zeros((rows, columns), np.uint16) for columns, rows in sizes]

    def record(self) -> EnhanceFrame:
        """The structure that C code takes; the frame must outlive it."""
        found = EnhanceFrame()
        for place, samples in zip(found.planes, self.planes, strict=False):
            place.samples, (place.height, place.width) = samples.ctypes.data, samples.shape
        return found

    def like(self, shift: tuple[int, int] | None = None, channels: int = 0) -> Frame:
        """An empty frame of the same size."""
        return Frame(self.width, self.height, self.shift if shift is None else shift, channels or len(self.planes))


def surface_place(state: Record, what: str) -> SurfacePlace:
    """Of VEBOX_SURFACE_STATE."""
    found = FORMATS.get(state.surface_format)
    if found is None:
        name = FORMAT_NAMES.get(state.surface_format, str(state.surface_format))
        raise Unsupported(f"surface_format {name} of the {what} surface: not yet simulated")
    if getattr(state, "x_offset_for_frame", 0) or getattr(state, "y_offset_for_frame", 0):
        raise Unsupported("a frame that does not begin where its surface does: not yet simulated")
    rows = state.y_offset_for_u, state.y_offset_for_v
    columns = state.x_offset_for_u, state.x_offset_for_v
    walk = VideoSurface(pitch=state.surface_pitch + 1, layout=SurfaceLayout.PLANAR, row_step=1, sample_bytes=1)
    if state.tiled_surface:
        tile_walk(walk, "y_major" if state.tile_walk else "x_major")
    separate = found == FORMATS[4] and not state.interleave_chroma
    layout = laid_out(walk, found, rows, columns, separate, bool(state.half_pitch_for_chroma))
    return SurfacePlace(state.width + 1, state.height + 1, found, layout)


def laid_out(walk: VideoSurface, pixels: PixelFormat, rows: tuple[int, int], columns: tuple[int, int], separate: bool = False,
             half_pitch: bool = False) -> EnhanceSurface:  # fmt: skip
    """A surface whose chroma begins at these rows and columns. `separate`: U and V have planes of their own."""
    surface = EnhanceSurface(walk=walk)
    for number, (channel, place) in enumerate(zip(surface.channels, pixels.channels, strict=True)):
        if place is None:
            continue
        channel.present, channel.bytes, channel.offset, channel.step = 1, pixels.sample_bytes, place.offset, place.step
        if place.plane != FIRST_PLANE:
            of_v = separate and number == 2
            channel.row, channel.half_pitch = rows[of_v], half_pitch
            channel.offset += columns[of_v]
            if separate:
                channel.offset, channel.step = columns[of_v], pixels.sample_bytes
    return surface


# -- transfers ---------------------------------------------------------------------------------------------------------


def graphics(cs: CommandStreamer) -> GraphicsTable:
    """The address space, for C code."""
    return GraphicsTable(ctypes.addressof(cs.space.table), (1 << cs.space.bits) - 1)


def load(cs: CommandStreamer, place: SurfacePlace, address: int) -> Frame:
    """The frame that a surface holds."""
    channels = max(number + 1 for number, channel in enumerate(place.format.channels) if channel is not None)
    frame = Frame(place.width, place.height, place.format.shift, channels)
    _transfer(cs, "enhance_load", place, address, frame, (0, place.width), 0)
    return frame


def store(cs: CommandStreamer, place: SurfacePlace, address: int, frame: Frame, columns: tuple[int, int], alpha: int) -> None:
    """Write columns of a frame to a surface of its size and sampling; `alpha` where the frame has none."""
    _transfer(cs, "enhance_store", place, address, frame, (columns[0], min(columns[1], frame.width)), alpha)


def _transfer(cs: CommandStreamer, name: str, place: SurfacePlace, address: int, frame: Frame, columns: tuple[int, int],
              fill: int) -> None:  # fmt: skip
    if not address:
        raise DecodeError(f"{'an input' if name == 'enhance_load' else 'an output'} surface has no address")
    layout = EnhanceSurface.from_buffer_copy(place.layout)
    layout.walk.base = address
    most = max(channel.offset + (frame.width + 1) * channel.step for channel in layout.channels if channel.present)
    line = np.zeros(most + 16, np.uint8)
    record = Transfer(memory=graphics(cs), surface=layout, frame=frame.record(), line=line.ctypes.data, fill=fill)
    record.first_x, record.end_x = columns
    call(cs, name, record)


def resampled(cs: CommandStreamer, frame: Frame, shift: tuple[int, int], average: bool) -> Frame:
    """The frame with chroma of another sampling: samples are repeated, or their mean (else the first of them) is taken."""
    if frame.shift == shift or len(frame.planes) < 3:
        return frame
    found = frame.like(shift)
    call(cs, "enhance_resample", Resampling(source=frame.record(), target=found.record(), average=average))
    return found


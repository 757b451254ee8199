"""The open picture of HCP: its surface and references.

In:  HCP_SURFACE_STATE, HCP_PIPE_BUF_ADDR_STATE; a codec's sizes. Out: `struct picture` (codec.h) with samples of 16 bits.
"""

from __future__ import annotations

import ctypes
from collections import deque
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softgen.bits.record import Record
from softgen.codec.picture import FramePool, PictureShape, Samples, VideoPicture, add_references, refuse_compression, y_tiled_surface
from softgen.codec.structures import GraphicsTable, PictureRecord, VideoSurface
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

DECODED_PICTURE = 0  # surface_id
SAMPLE_BYTES = {0: 1, 4: 1, 13: 2}  # surface_format: none (Skylake has but one, and iHD leaves the field at zero there), planar_420_8, p010
HOST_BYTES = 2  # of a sample
MOST_REFERENCES = 8
MOST_KEPT = 64 << 20  # bytes of work memory
_rooms = deque[Samples](maxlen=4)  # work memory of pictures that are complete


def take_room(size: int) -> Samples:
    """Work memory, all zeros, of a picture: that of an earlier one, whose pages the host has made already."""
    try:
        found = _rooms.pop()
    except IndexError:
        return np.zeros(size, np.uint8)
    if found.size < size:
        return np.zeros(size, np.uint8)
    found[:size] = 0
    return found[:size]


def give_room(room: Samples) -> None:
    """Keep work memory that nothing points to any more for another picture."""
    whole = room if room.base is None else room.base
    if isinstance(whole, np.ndarray) and whole.size <= MOST_KEPT:
        _rooms.append(whole)


@lru_cache(maxsize=64)
def hcp_surface(pitch: int, chroma_row: int, sample_bytes: int) -> VideoSurface:
    """How the rows of a surface lie in memory. To be copied, not changed."""
    return y_tiled_surface(pitch, chroma_row, sample_bytes)


@dataclass
class HcpVideoPicture(VideoPicture):
    """A picture that HCP is decoding."""

    pipe = "hcp"

    def report(self, cs: CommandStreamer) -> None:
        """HCP_CABAC_STATUS has error bits; HCP_DEC_STATUS how many blocks they affect (coding tree blocks, of VP9 8x8 samples), from bit 18
        on."""
        cs.set("HCP_CABAC_STATUS", cs.get("HCP_CABAC_STATUS") | self.record.errors)
        cs.set("HCP_DEC_STATUS", min(self.record.concealed, 0x3FFF) << 18)


def open_picture(cs: CommandStreamer, frames: FramePool, shape: PictureShape, depth: int,
                 references: int = MOST_REFERENCES) -> HcpVideoPicture:  # fmt: skip
    """A picture with the surface and the references that the latched state names."""
    state, buffers = cs.latched.by_index("HCP_SURFACE_STATE").get(DECODED_PICTURE), cs.latched.get("HCP_PIPE_BUF_ADDR_STATE")
    if state is None or buffers is None:
        raise DecodeError("no HCP_SURFACE_STATE or no HCP_PIPE_BUF_ADDR_STATE came before")
    if not buffers.decoded_picture_address:
        raise DecodeError("HCP_PIPE_BUF_ADDR_STATE names no surface to write to")
    refuse_compression(cs.generation.number, buffers.decoded_picture_attributes)
    sample_bytes = _sample_bytes(state, depth)
    frames.release()
    record, table = PictureRecord(), cs.space.table
    record.memory = GraphicsTable(ctypes.addressof(table), (1 << cs.space.bits) - 1)
    record.source = hcp_surface(state.surface_pitch + 1, state.y_offset_for_u_cb, sample_bytes)
    record.surfaces[0] = record.source
    record.surfaces[0].base = buffers.decoded_picture_address
    record.frame, samples = frames.take(shape.planes(), HOST_BYTES)
    record.width, record.height, record.sample_bits = shape.width, shape.height, depth
    record.shift_x, record.shift_y = shape.chroma or (0, 0)
    record.block_width, record.block_height = shape.block
    picture = HcpVideoPicture(record, [table, samples])
    add_references(picture, frames, buffers, shape, references, HOST_BYTES)
    return picture


def _sample_bytes(state: Record, depth: int) -> int:
    found = SAMPLE_BYTES.get(state.surface_format)
    if found is None:
        raise Unsupported(f"surface_format {state.surface_format} of HCP_SURFACE_STATE: not yet simulated")
    if found == 1 and depth > 8:
        raise DecodeError(f"a surface with 8 bits a sample for a picture with {depth}")
    return found

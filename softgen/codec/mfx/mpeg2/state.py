"""MPEG-2 slices, from the latched records to slice.c.

In:  MFX_MPEG2_PIC_STATE, MFX_QM_STATE, MFD_MPEG2_BSD_OBJECT with its data. Out: samples of the open picture.

Drivers send only those matrices that a stream brings; the standard's default holds for the others (13818-2 6.3.11). Macroblocks that no
slice has stay as they are in memory: drivers set slice_concealment_disable. A slice's horizontal position is that of its first
macroblock_address_increment, whatever the object says.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record, split
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.mpeg2.structures import Mpeg2Slice
from softgen.codec.picture import PictureShape, VideoPicture, add_references, open_picture
from softgen.codec.structures import PADDING, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError

DEFAULT_INTRA = bytes((
    8, 16, 19, 22, 26, 27, 29, 34, 16, 16, 22, 24, 27, 29, 34, 37, 19, 22, 26, 27, 29, 34, 34, 38, 22, 22, 26, 27, 29, 34, 37, 40,
    22, 26, 27, 29, 32, 35, 40, 48, 26, 27, 29, 32, 35, 40, 48, 58, 26, 27, 29, 34, 38, 46, 56, 69, 27, 29, 35, 38, 46, 56, 69, 83,
))  # fmt: skip
DEFAULT_OTHER = bytes([16] * 64)
BOTTOM_FIELD, FRAME = 2, 3  # picture_structure
REFERENCES = 4  # forward top, backward top, forward bottom, backward bottom
INLINE_DATA = "MFD_MPEG2_BSD_OBJECT_INLINE_DATA_DESCRIPTION"


@dataclass
class Mpeg2VideoPicture(VideoPicture):
    """An MPEG-2 picture that is being decoded."""

    parameters: Mpeg2Slice  # a slice without data: pictures have many slices, whose Python counts
    inline: Layout  # of an object's inline data


def decode_slice(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a slice; the first one of a picture opens it, the last one completes it."""
    picture = engine.picture if isinstance(engine.picture, Mpeg2VideoPicture) else _open(cs, engine, cs.latched["MFX_MPEG2_PIC_STATE"])
    inline = picture.inline.raw(split(cmd.inline_data, picture.inline.dwords))
    engine.picture = picture
    cs.collected()
    data = bitstream(cs, cmd.indirect_bsd_data_length, cmd.indirect_bsd_data_start_address)
    run_rows(cs, library().mpeg2_decode, _slice(picture, inline, data), writes=False)
    if inline.last_pic_slice:
        engine.close(cs)


def _open(cs: CommandStreamer, engine: VideoEngine, state: Record) -> Mpeg2VideoPicture:
    opened = open_picture_of(cs, engine, state)
    inline = catalogue().layout(INLINE_DATA, cs.generation.number)
    return Mpeg2VideoPicture(opened.record, opened.keep, picture_parameters(engine, opened, state), inline)


def open_picture_of(cs: CommandStreamer, engine: VideoEngine, state: Record) -> VideoPicture:
    """A picture; interlaced frames have an even number of rows of macroblocks, which the frame's height may lack."""
    structure, rows = state.picture_structure, state.frame_height_in_mbs + 2 & ~1
    if not structure or not 0 < state.picture_coding_type <= 3:
        raise DecodeError(f"picture_structure {structure} and picture_coding_type {state.picture_coding_type}: one of them is reserved")
    fields = 1 if structure == FRAME else 2
    shape = PictureShape(state.frame_width_in_mbs + 1, rows // fields, fields=fields)
    picture = open_picture(cs, engine, shape, SurfaceLayout.INTERLEAVED_CHROMA, structure == BOTTOM_FIELD)
    add_references(picture, engine.frames, cs.latched["MFX_PIPE_BUF_ADDR_STATE"], shape, REFERENCES)
    return picture


def _slice(picture: Mpeg2VideoPicture, inline: Record, data: bytes) -> Mpeg2Slice:
    slice = Mpeg2Slice.from_buffer_copy(picture.parameters)
    slice.bits.data, slice.bits.size, slice.bits.at = data + PADDING, len(data), inline.first_mb_bit_offset
    slice.row, slice.quantiser_code = inline.slice_vertical_position, inline.quantizer_scale_code
    return slice


def picture_parameters(engine: VideoEngine, picture: VideoPicture, state: Record) -> Mpeg2Slice:
    """A slice without data: what all slices of the picture have."""
    slice = Mpeg2Slice(ctypes.addressof(picture.record))
    matrices = engine.matrices
    slice.matrix[0][:], slice.matrix[1][:] = matrices.get(0, DEFAULT_INTRA), matrices.get(1, DEFAULT_OTHER)
    for direction in range(2):
        for axis in range(2):
            slice.f_code[direction][axis] = getattr(state, f"f_code_{direction}_{axis}")
    slice.intra_dc_precision, slice.structure = state.intra_dc_precision, state.picture_structure
    slice.top_field_first, slice.frame_pred_frame_dct = state.top_field_first, state.frame_prediction_frame_dct
    slice.concealment_mv, slice.q_scale_type = state.concealment_mv, state.quantizer_scale_type
    slice.intra_vlc, slice.alternate_scan = state.intra_vlc_format, state.scan_order
    slice.type = state.picture_coding_type
    return slice

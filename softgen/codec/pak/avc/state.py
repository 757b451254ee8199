"""H.264 pictures and slices to encode, from the latched records.

In:  MFX_AVC_IMG_STATE, MFX_AVC_SLICE_STATE, MFX_AVC_REF_IDX_STATE, MFX_QM_STATE, MFX_FQM_STATE, surfaces. Out: `struct avc_encoder`
     (avc_pak.h), the picture that is reconstructed, the coded stream.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine
from softgen.codec.mfx.avc.state import AvcVideoPicture, open_avc, slice_to_encode
from softgen.codec.mfx.avc.structures import AvcSlice
from softgen.codec.pak.avc.headers import to_text
from softgen.codec.pak.avc.structures import AvcEncoder
from softgen.codec.pak.source import open_source, source_surface
from softgen.codec.pak.stream import CodedStream, open_stream, payload, with_first_mb
from softgen.codec.structures import PictureRecord, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

PARTS = 48  # of a quantiser's step
SIXTEENTH, THIRD, SIXTH = PARTS // 16, PARTS // 3, PARTS // 6
FLAT = [4096] * 64  # 65536 over 16
REFUSED = ("trellis_quantization_enable", "mbaff_mode", "weighted_prediction_enable", "mb_status_read")


@dataclass
class AvcCodedPicture(AvcVideoPicture):
    """An H.264 picture that is being encoded: what a decoder will make of its stream."""

    source: PictureRecord = field(default_factory=PictureRecord)


def picture_to_encode(cs: CommandStreamer, engine: VideoEngine, image: Record) -> AvcCodedPicture:
    """The open picture, or a new one: its source, references, and surface for the reconstruction."""
    if isinstance(engine.picture, AvcCodedPicture):
        return engine.picture
    for name in REFUSED:
        if getattr(image, name, 0):
            raise Unsupported(f"{name} of an H.264 picture to encode: not yet simulated")
    if image.chroma_format_idc != 1:
        raise Unsupported("monochrome pictures of H.264 to encode: not yet simulated")
    opened = open_avc(cs, engine, image)
    fields = 2 if image.field_picture else 1
    surface, shape = source_surface(engine.surfaces), (16 * opened.avc.width, 16 * opened.avc.height * fields)
    half = shape[0] // 2, shape[1] // 2
    source, keep = open_source(cs, engine.surfaces, engine.frames, SurfaceLayout.INTERLEAVED_CHROMA, [shape, half, half])
    width, height = min(surface.width + 1, shape[0]), min(surface.height + 1, shape[1])
    for number, plane in enumerate(source.references[0].frame.plane):
        plane.width, plane.height = (width, height) if not number else (-(-width // 2), -(-height // 2))
    picture = AvcCodedPicture(**{**vars(opened), "keep": opened.keep + keep}, source=source)
    engine.picture = picture
    cs.collected()
    return picture


def stream_of(cs: CommandStreamer, engine: VideoEngine, state: Record) -> CodedStream:
    """The picture's stream: its first slice says where it begins."""
    if engine.stream is None:
        engine.stream = open_stream(cs, state.indirect_pak_bse_data_start_address)
    cs.collected()
    return engine.stream


def insert(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Write a MFX_PAK_INSERT_OBJECT: headers of the stream, or of the slice that comes next."""
    state, image = cs.latched.get("MFX_AVC_SLICE_STATE"), cs.latched.get("MFX_AVC_IMG_STATE")
    if state is None or image is None or engine.mode is None:
        raise DecodeError("no MFX_AVC_SLICE_STATE or no MFX_AVC_IMG_STATE came before")
    stream = stream_of(cs, engine, state)
    engine.parameters.read(payload(cmd)[0])
    if not (getattr(engine.mode, "vdenc_mode", 0) and getattr(cmd, "slice_header_indicator", 0)):
        stream.insert(cs, cmd)
        return
    stream.slice_header = cmd
    stream.insert(cs, cmd, state.slice_vertical_position * (image.frame_width + 1) + state.slice_horizontal_position)


@dataclass
class AvcSliceToEncode:
    """A slice, and the encoder that writes it."""

    slice: AvcSlice
    encoder: AvcEncoder

    def finish(self, stream: CodedStream) -> None:
        """Count what was written."""
        stream.bits += self.encoder.bits
        stream.qp_sum += self.encoder.qp_sum
        stream.slices += 1


def repeat_header(cs: CommandStreamer, engine: VideoEngine, stream: CodedStream, first_mb: int) -> None:
    """Write the header of the first slice again, for a slice that begins at `first_mb`."""
    if stream.slice_header is None:
        raise DecodeError("several slices of a picture, and no MFX_PAK_INSERT_OBJECT with the header of a slice")
    data, bits = payload(stream.slice_header)
    bits = len(engine.parameters.header(to_text(data, bits)))
    stream.write(cs, stream.slice_header, *with_first_mb(data, bits, first_mb))


def begin_slice(cs: CommandStreamer, engine: VideoEngine, picture: AvcCodedPicture, image: Record, state: Record) -> AvcSliceToEncode:
    """A slice at the stream's end."""
    slice = slice_to_encode(cs, picture, image, state)
    if slice.first_x >= picture.avc.width or slice.first_y >= picture.avc.height:
        raise DecodeError(f"a slice begins at macroblock {slice.first_x}, {slice.first_y}, outside the picture")
    stream = stream_of(cs, engine, state)
    encoder = AvcEncoder(ctypes.addressof(slice), slice.decoder, ctypes.addressof(stream.writer), ctypes.addressof(picture.source))
    encoder.round_intra = SIXTEENTH * (state.round_intra + 1) if state.round_intra_enable else THIRD
    encoder.round_inter = SIXTEENTH * (state.round_inter + 1) if state.round_inter_enable else SIXTH
    encoder.end_x, encoder.end_y = state.next_slice_horizontal_position, state.next_slice_vertical_position
    for kind in range(4):
        encoder.reciprocals[kind][:] = engine.forward_matrices.get(kind, FLAT)
    stream.slice_start = stream.writer.size
    return AvcSliceToEncode(slice, encoder)

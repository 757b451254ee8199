"""MFC_MPEG2_PAK_OBJECT: macroblocks of MPEG-2 pictures that commands have decided.

In:  MFX_MPEG2_PIC_STATE, MFC_MPEG2_SLICEGROUP_STATE, MFX_QM_STATE, MFX_FQM_STATE, MFC_MPEG2_PAK_OBJECT. Out: slices with their headers,
     the reconstruction.

Macroblocks follow each other without gaps from the slice group's start on (BDW 24495), so objects are kept until the group's last one,
then encoded at once. The manual leaves the bits of objects open: they are those of a public driver (gen8_mfc.c of intel-vaapi-driver),
types those of H.264: 1 forward, 2 backward, 3 both, 26 intra. Rounding is read as eighths of a step; 0 is half a step in intra blocks.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.mpeg2.state import DEFAULT_INTRA, DEFAULT_OTHER, open_picture_of, picture_parameters
from softgen.codec.pak.mpeg2.structures import Mpeg2Encoder
from softgen.codec.pak.source import open_source, source_surface
from softgen.codec.pak.stream import CodedStream, open_stream
from softgen.codec.picture import VideoPicture
from softgen.codec.structures import PictureRecord, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

FRAME = 3  # picture_structure
QUALIFIERS, LAST_OF_GROUP = 3, 1 << 26  # of the inline data's dword
HALF = 4  # eighths
WHAT = ("", "a type that its picture does not have, or no slice before it", "a field DCT or field prediction that is not simulated",
        "a vector beyond f_code", "no quantiser", "no reference", "a slice that goes on in the next row")  # fmt: skip


@dataclass
class Mpeg2CodedPicture(VideoPicture):
    """An MPEG-2 picture that is being encoded: what a decoder will make of its stream."""

    source: PictureRecord = field(default_factory=PictureRecord)


def stream_of(cs: CommandStreamer, engine: VideoEngine) -> CodedStream:
    """The picture's stream: its first slice group says where it begins."""
    state = cs.latched.get("MFC_MPEG2_SLICEGROUP_STATE")
    if engine.stream is None:
        engine.stream = open_stream(cs, state.indirect_pak_bse_data_start_address if state is not None else 0)
    cs.collected()
    return engine.stream


def pak_object(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Keep a macroblock; the last one of a slice group encodes them."""
    dwords = [item.value for item in cmd.inline_data]
    engine.objects.append(b"".join(dword.to_bytes(4, "little") for dword in dwords))
    cs.collected()
    if dwords[QUALIFIERS] & LAST_OF_GROUP:
        objects, engine.objects = engine.objects, []
        _encode(cs, engine, objects)


def _picture(cs: CommandStreamer, engine: VideoEngine, state: Record) -> Mpeg2CodedPicture:
    if isinstance(engine.picture, Mpeg2CodedPicture):
        return engine.picture
    if state.picture_structure != FRAME or state.concealment_mv:
        raise Unsupported("fields or concealment vectors of MPEG-2 pictures to encode: not yet simulated")
    opened = open_picture_of(cs, engine, state)
    shape = 16 * opened.record.width, 16 * opened.record.height
    half = shape[0] // 2, shape[1] // 2
    source, keep = open_source(cs, engine.surfaces, engine.frames, SurfaceLayout.INTERLEAVED_CHROMA, [shape, half, half])
    surface = source_surface(engine.surfaces)
    width, height = min(surface.width + 1, shape[0]), min(surface.height + 1, shape[1])
    for number, plane in enumerate(source.references[0].frame.plane):
        plane.width, plane.height = (width, height) if not number else (-(-width // 2), -(-height // 2))
    picture = Mpeg2CodedPicture(opened.record, opened.keep + keep, source)
    engine.picture = picture
    return picture


def _encode(cs: CommandStreamer, engine: VideoEngine, objects: list[bytes]) -> None:
    state, group = cs.latched.get("MFX_MPEG2_PIC_STATE"), cs.latched.get("MFC_MPEG2_SLICEGROUP_STATE")
    if state is None or group is None:
        raise DecodeError("no MFX_MPEG2_PIC_STATE or no MFC_MPEG2_SLICEGROUP_STATE came before")
    picture, stream = _picture(cs, engine, state), stream_of(cs, engine)
    width, height = picture.record.width, state.frame_height_in_mbs + 1  # the record has an even number of rows
    first = group.first_mb_y_count * width + group.first_mb_x_count
    if group.first_mb_x_count >= width or first + len(objects) > width * height:
        raise DecodeError(f"{len(objects)} macroblocks from {first} on: the picture has {width * height}")
    slice = picture_parameters(engine, picture, state)
    packed = b"".join(objects)
    kept = ctypes.create_string_buffer(packed, len(packed))
    run = Mpeg2Encoder(*map(ctypes.addressof, (slice, stream.writer, picture.source, kept)), count=len(objects))
    run.x, run.y = group.first_mb_x_count, group.first_mb_y_count
    run.no_first_header, run.intra_slice_flag, run.intra_slice = group.first_slice_header_disable, group.intra_slice_flag, group.intra_slice
    run.rounding[0][:] = HALF, state.round_intra_ac or HALF
    run.rounding[1][:] = state.round_inter_dc, state.round_inter_ac
    for kind, default in enumerate((DEFAULT_INTRA, DEFAULT_OTHER)):
        matrix = engine.matrices.get(kind, default)
        run.reciprocals[kind][:] = engine.forward_matrices.get(kind) or [65536 // max(value, 2) for value in matrix]
    stream.slice_start = stream.writer.size
    run_rows(cs, library().mpeg2_pak, run)
    if run.error:
        raise DecodeError(f"macroblock {first + run.next} has {WHAT[run.error]}")
    stream.bits += run.bits
    stream.slices += 1
    if first + len(objects) == width * height:
        engine.close(cs)

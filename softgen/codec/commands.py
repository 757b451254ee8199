"""Commands of the video engine: state that belongs to one picture, objects, and what completes a picture.

Reads   MFX_PIPE_MODE_SELECT MFX_SURFACE_STATE MFX_QM_STATE MFX_JPEG_HUFF_TABLE_STATE MFD_JPEG_BSD_OBJECT MFD_MPEG2_BSD_OBJECT
        MFD_AVC_BSD_OBJECT MFD_VC1_BSD_OBJECT MFD_VP8_BSD_OBJECT HCP_PIPE_MODE_SELECT HCP_BSD_OBJECT MFX_WAIT VD_PIPELINE_FLUSH
        MFX_FQM_STATE MFC_JPEG_HUFF_TABLE_STATE MFC_JPEG_SCAN_OBJECT MFX_PAK_INSERT_OBJECT VDENC_WALKER_STATE
        MFC_AVC_PAK_OBJECT MFC_MPEG2_PAK_OBJECT
Writes  surfaces, MFX_ERROR_FLAGS, MFX_MB_COUNT, HCP_CABAC_STATUS, HCP_DEC_STATUS, streams, MFC_BITSTREAM_BYTECOUNT_FRAME

All other state is latched by the streamer. What is kept here is what a picture may omit: drivers send only those quantiser matrices and
tables that a picture has of its own, and defaults hold for the others, so MFX_PIPE_MODE_SELECT forgets those of the picture before.
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.codec import huc
from softgen.codec.engine import VideoEngine
from softgen.codec.hcp.hevc import state as hevc
from softgen.codec.hcp.vp9 import state as vp9
from softgen.codec.mfx.avc import state as avc
from softgen.codec.mfx.jpeg import state as jpeg
from softgen.codec.mfx.mpeg2 import state as mpeg2
from softgen.codec.mfx.mpeg2.slice_actor import slice_actor
from softgen.codec.mfx.vc1 import state as vc1
from softgen.codec.mfx.vp8 import state as vp8
from softgen.codec.pak.avc import objects as avc_objects
from softgen.codec.pak.avc import state as avc_pak
from softgen.codec.pak.avc.state import AvcCodedPicture
from softgen.codec.pak.jpeg import state as jpeg_pak
from softgen.codec.pak.mpeg2 import state as mpeg2_pak
from softgen.codec.pak.mpeg2.state import Mpeg2CodedPicture
from softgen.codec.pak.stream import CodedStream, open_stream
from softgen.codec.vdenc import state as vdenc
from softgen.command import ActorRow, Actors, Commands, CommandStreamer, registers_in
from softgen.errors import Unsupported

COMMANDS: Commands = {**huc.COMMANDS}
handles = registers_in(COMMANDS)


def new_state() -> VideoEngine:
    """The video engine's part of a new hardware context."""
    return VideoEngine()


def finish(cs: CommandStreamer) -> None:
    """Completes the open picture: what was decoded is written to its surface."""
    engine = cs.state(VideoEngine)
    if isinstance(engine.picture, AvcCodedPicture | Mpeg2CodedPicture):  # slices to come may be in the next commands
        return
    if engine.picture is not None:
        engine.close(cs)
    if engine.stream is not None:
        engine.close_stream(cs)


@handles("MFX_WAIT", "VD_PIPELINE_FLUSH")
def wait(cs: CommandStreamer, cmd: Record) -> None:
    finish(cs)


@handles("MFX_PIPE_MODE_SELECT")
def mfx_pipe_mode_select(cs: CommandStreamer, cmd: Record) -> None:
    engine = cs.state(VideoEngine)
    if isinstance(engine.picture, AvcCodedPicture | Mpeg2CodedPicture):  # whose last slice never came
        engine.close(cs)
    finish(cs)
    engine.mode = cmd
    engine.matrices.clear()
    engine.huffman_tables.clear()
    engine.forward_matrices.clear()
    engine.encode_tables.clear()
    engine.objects.clear()
    for name in ("MFX_ERROR_FLAGS", "MFX_MB_COUNT", "MFX_FRAME_CRC"):
        cs.set(name, 0)


@handles("MFX_SURFACE_STATE")
def mfx_surface_state(cs: CommandStreamer, cmd: Record) -> None:
    cs.state(VideoEngine).surfaces[getattr(cmd, "surface_id", 0)] = cmd


@handles("MFX_QM_STATE")
def mfx_qm_state(cs: CommandStreamer, cmd: Record) -> None:
    """The kinds of matrices of all standards share the bits that `avc` names."""
    cs.state(VideoEngine).matrices[cmd.avc] = bytes([item[0] for item in cmd.quantizer_matrix])


@handles("MFX_JPEG_HUFF_TABLE_STATE")
def mfx_jpeg_huff_table_state(cs: CommandStreamer, cmd: Record) -> None:
    cs.state(VideoEngine).huffman_tables[cmd.huffman_table_id] = cmd


@handles("MFX_FQM_STATE")
def mfx_fqm_state(cs: CommandStreamer, cmd: Record) -> None:
    """Kinds of all standards share the bits that `avc` names."""
    cs.state(VideoEngine).forward_matrices[cmd.avc] = [item.value for item in cmd.forward_quantizer_matrix]


@handles("MFC_JPEG_HUFF_TABLE_STATE")
def mfc_jpeg_huff_table_state(cs: CommandStreamer, cmd: Record) -> None:
    cs.state(VideoEngine).encode_tables[cmd.huffman_table_id] = cmd


@handles("MFC_JPEG_SCAN_OBJECT")
def mfc_jpeg_scan_object(cs: CommandStreamer, cmd: Record) -> None:
    engine = _encoding(cs, "jpeg")
    jpeg_pak.scan(cs, engine, _stream(cs, engine), cmd)


@handles("MFX_PAK_INSERT_OBJECT")
def mfx_pak_insert_object(cs: CommandStreamer, cmd: Record) -> None:
    engine = cs.state(VideoEngine)
    if engine.selected_to_encode() == "avc":
        avc_pak.insert(cs, engine, cmd)
        return
    stream = mpeg2_pak.stream_of(cs, engine) if engine.selected_to_encode() == "mpeg2" else _stream(cs, engine)
    stream.insert(cs, cmd)
    if engine.selected_to_encode() == "jpeg" and cmd.end_of_slice:
        jpeg_pak.header_inserted(cs, engine, stream)


@handles("MFC_AVC_PAK_OBJECT")
def mfc_avc_pak_object(cs: CommandStreamer, cmd: Record) -> None:
    avc_objects.pak_object(cs, _encoding(cs, "avc"), cmd)


@handles("MFC_MPEG2_PAK_OBJECT")
def mfc_mpeg2_pak_object(cs: CommandStreamer, cmd: Record) -> None:
    mpeg2_pak.pak_object(cs, _encoding(cs, "mpeg2"), cmd)


@handles("VDENC_WALKER_STATE")
def vdenc_walker_state(cs: CommandStreamer, cmd: Record) -> None:
    vdenc.walk_slice(cs, _encoding(cs, "avc"), cmd)


@handles("MFD_JPEG_BSD_OBJECT")
def mfd_jpeg_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    jpeg.decode_scan(cs, _decoding(cs, "jpeg"), cmd)


@handles("MFD_MPEG2_BSD_OBJECT")
def mfd_mpeg2_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    mpeg2.decode_slice(cs, _decoding(cs, "mpeg2"), cmd)


ACTORS: Actors = {"MFD_MPEG2_BSD_OBJECT": ActorRow(mfd_mpeg2_bsd_object, slice_actor)}


@handles("MFD_AVC_BSD_OBJECT")
def mfd_avc_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    avc.decode_slice(cs, _decoding(cs, "avc"), cmd)


@handles("MFD_VC1_BSD_OBJECT")
def mfd_vc1_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    vc1.decode_slice(cs, _decoding(cs, "vc1"), cmd)


@handles("MFD_VP8_BSD_OBJECT")
def mfd_vp8_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    vp8.decode_picture(cs, _decoding(cs, "vp8"), cmd)


@handles("HCP_PIPE_MODE_SELECT")
def hcp_pipe_mode_select(cs: CommandStreamer, cmd: Record) -> None:
    finish(cs)
    cs.state(VideoEngine).hcp_mode = cmd
    for name in ("HCP_CABAC_STATUS", "HCP_DEC_STATUS"):
        cs.set(name, 0)


@handles("HCP_BSD_OBJECT")
def hcp_bsd_object(cs: CommandStreamer, cmd: Record) -> None:
    engine = cs.state(VideoEngine)
    standard = engine.selected_of_hcp()
    if standard == "hevc":
        hevc.decode_slice(cs, engine, cmd)
    elif standard == "vp9":
        vp9.decode_picture(cs, engine, cmd)
    else:
        raise Unsupported(f"codec_standard_select {standard}: not yet simulated")


def _stream(cs: CommandStreamer, engine: VideoEngine) -> CodedStream:
    """The stream of the picture that is being encoded; its first object opens it."""
    if engine.stream is None:
        engine.stream = open_stream(cs)
    cs.collected()
    return engine.stream


def _encoding(cs: CommandStreamer, standard: str) -> VideoEngine:
    """The engine, where MFX_PIPE_MODE_SELECT asks for encoding to a standard."""
    engine = cs.state(VideoEngine)
    found = engine.selected_to_encode()
    if found != standard:
        raise Unsupported(f"an object of {standard} while MFX_PIPE_MODE_SELECT has selected {found}")
    return engine


def _decoding(cs: CommandStreamer, standard: str) -> VideoEngine:
    """The engine, where MFX_PIPE_MODE_SELECT asks for decoding of a standard from a bitstream."""
    engine = cs.state(VideoEngine)
    found = engine.selected(cs.generation)
    if found != standard:
        raise Unsupported(f"an object of {standard} while MFX_PIPE_MODE_SELECT has selected {found}")
    return engine

"""VDENC, from the latched records to walker.c: constant QP, I and P slices of H.264.

In:  VDENC_PIPE_MODE_SELECT, VDENC_IMG_STATE, MFX_AVC_IMG_STATE, MFX_AVC_SLICE_STATE, VDENC_WALKER_STATE. Out: slice data, the
     reconstruction, the scaled reference.

Rate control is HuC's, whose firmware is refused. Intel's search is not public: any choice of macroblocks that keeps to the masks, ranges
and QP of the state is legal, and ours may change.
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine
from softgen.codec.library import library, run_rows
from softgen.codec.pak.avc.state import AvcCodedPicture, AvcSliceToEncode, begin_slice, picture_to_encode, repeat_header, stream_of
from softgen.codec.picture import refuse_compression, video_surface
from softgen.codec.structures import SurfaceLayout
from softgen.codec.vdenc.structures import VdencScaling, VdencSearch
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

AVC = 2  # standard_select
SCALED_PICTURE = 5  # surface_id
REFUSED = ("roi_enable", "mb_level_qp_enable", "intra_refresh_enable_rolling_i_enable", "target_and_max_mb_size_enable",
           "bilinear_filter_enable")  # fmt: skip
B_SLICE = 1


def walk_slice(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decide and encode the macroblocks of a slice; the last one completes the picture."""
    mode, image, state = (cs.latched.get(name) for name in ("VDENC_PIPE_MODE_SELECT", "MFX_AVC_IMG_STATE", "MFX_AVC_SLICE_STATE"))
    if mode is None or image is None or state is None:
        raise DecodeError("no VDENC_PIPE_MODE_SELECT, no MFX_AVC_IMG_STATE or no MFX_AVC_SLICE_STATE came before")
    if mode.standard_select != AVC:
        raise Unsupported(f"VDENC with standard_select {mode.standard_select}: not yet simulated")
    if state.slice_type == B_SLICE:
        raise Unsupported("B slices by VDENC: not yet simulated")
    if image.field_picture:
        raise Unsupported("field pictures by VDENC: not yet simulated")
    picture = picture_to_encode(cs, engine, image)
    last = state.next_slice_vertical_position >= picture.avc.height
    if last or cmd.next_slice_mb_start_y_position:
        _encode(cs, engine, begin_slice(cs, engine, picture, image, state))
    else:
        _slices_of_rows(cs, engine, picture, state)
        last = True
    if last:
        _scale(cs, engine, picture)
        engine.close(cs)
        engine.close_stream(cs)


def _slices_of_rows(cs: CommandStreamer, engine: VideoEngine, picture: AvcCodedPicture, state: Record) -> None:
    """Encode slices of as many rows as VDENC_IMG_STATE says. Skylake's walker takes the whole picture, and one state and header for all."""
    image, rows = cs.latched["MFX_AVC_IMG_STATE"], _image(cs).slice_mb_height + 1
    stream, height = stream_of(cs, engine, state), picture.avc.height
    for first in range(state.slice_vertical_position, height, rows):
        if first != state.slice_vertical_position:
            repeat_header(cs, engine, stream, first * picture.avc.width)
        begun = begin_slice(cs, engine, picture, image, state)
        begun.slice.first_y, begun.encoder.end_y = first, min(first + rows, height)
        _encode(cs, engine, begun)


def _encode(cs: CommandStreamer, engine: VideoEngine, begun: AvcSliceToEncode) -> None:
    """Decide and write a slice's macroblocks."""
    run_rows(cs, library().vdenc_walk, _search(cs, begun.slice.qp, begun.slice.counts[0], ctypes.addressof(begun.encoder)))
    assert engine.stream is not None
    begun.finish(engine.stream)


def _image(cs: CommandStreamer) -> Record:
    image = cs.latched.get("VDENC_IMG_STATE")
    if image is None:
        raise DecodeError("no VDENC_IMG_STATE came before")
    return image


def _search(cs: CommandStreamer, qp: int, references: int, encoder: int) -> VdencSearch:
    image = _image(cs)
    for name in REFUSED:
        if getattr(image, name, 0):
            raise Unsupported(f"{name} of VDENC_IMG_STATE: not yet simulated")
    search = VdencSearch(encoder, image.luma_intra_partition_mask, chroma_modes=image.avc_intra_chroma_mode_mask,
                         shapes=image.sub_mb_sub_partition_mask, subpel=image.sub_pel_mode, references=references)  # fmt: skip
    search.intra_modes[:] = image.avc_intra_16x16_mode_mask, image.avc_intra_8x8_mode_mask, image.avc_intra_4x4_mode_mask
    search.range[:] = image.max_horizontal_mv_range, image.max_vertical_mv_range
    search.lambda_ = max(1, round(2 ** ((qp - 12) / 6)))
    return search


def _scale(cs: CommandStreamer, engine: VideoEngine, picture: AvcCodedPicture) -> None:
    """Write the scaled reference, where the state names one."""
    buffers, state = cs.latched["MFX_PIPE_BUF_ADDR_STATE"], engine.surfaces.get(SCALED_PICTURE)
    address = getattr(buffers, "scaled_reference_surface_address", 0)
    if not address or state is None:
        return
    refuse_compression(cs.generation.number, buffers.scaled_reference_surface_attributes)
    scaling = VdencScaling(ctypes.addressof(picture.record), video_surface(state, SurfaceLayout.LUMA_ONLY))
    scaling.surface.base = address
    run_rows(cs, library().vdenc_scale, scaling)

"""VP8 pictures, from the latched records to picture.c.

In:  MFX_VP8_PIC_STATE, MFD_VP8_BSD_OBJECT with its data, coefficient probabilities, segment ids. Out: samples of the open picture,
     segment ids.

The object has the whole picture: it begins amid the boolean decoder's first partition, where the driver has read the frame header to.
Segment ids stand in the driver's buffer in a layout of our own, a byte for each macroblock.
"""

from __future__ import annotations

import ctypes

import numpy as np

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.vp8.structures import ABOVE_BYTES, MB_BYTES, PARTITIONS, SEGMENTS, Vp8Picture
from softgen.codec.picture import PictureShape, add_references, open_picture
from softgen.codec.structures import PADDING, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError

REFERENCES = 3  # last, golden, altref
PROBABILITY_BYTES = 4 * 8 * 3 * 11  # of coefficients


def decode_picture(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a picture and write it to its surface."""
    state = cs.latched["MFX_VP8_PIC_STATE"]
    shape = PictureShape(state.frame_width + 1, state.frame_height + 1)
    picture = open_picture(cs, engine, shape, SurfaceLayout.INTERLEAVED_CHROMA)
    add_references(picture, engine.frames, cs.latched["MFX_PIPE_BUF_ADDR_STATE"], shape, 0 if _is_key(state) else REFERENCES)
    engine.picture = picture
    vp8 = Vp8Picture(ctypes.addressof(picture.record))
    mbs = np.zeros((shape.width + 1) * (shape.height + 1) * MB_BYTES, np.uint8)
    above = np.zeros(shape.width * ABOVE_BYTES, np.uint8)
    segments = np.zeros(shape.width * shape.height, np.uint8)
    vp8.mbs, vp8.above, vp8.segments = mbs.ctypes.data, above.ctypes.data, segments.ctypes.data
    _flags(vp8, state)
    _probabilities(cs, vp8, state)
    _quantisers(vp8, state)
    keep = _partitions(cs, vp8, cmd)
    if state.segment_enable and state.segmentation_id_stream_in_enable:
        data = cs.space.read_mapped(state.segmentation_id_stream_address, len(segments))
        segments[: len(data)] = np.frombuffer(data, np.uint8)
    run_rows(cs, library().vp8_decode, vp8)
    del keep
    if state.segment_enable and state.segmentation_id_stream_out_enable:
        cs.space.write(state.segmentation_id_stream_address, segments.tobytes())
    engine.close(cs)


def _is_key(state: Record) -> bool:
    return bool(state.key_frame)


def _flags(vp8: Vp8Picture, state: Record) -> None:
    vp8.key_frame, vp8.segmentation, vp8.read_segments = state.key_frame, state.segment_enable, state.update_mb_segment_map
    vp8.skip_enabled, vp8.deltas = state.mb_nocoeff_skip, state.mode_reference_loop_filter_delta_enable
    vp8.sharpness, vp8.simple_filter = state.deblock_sharpness_level, state.dblk_filter_type
    vp8.bilinear, vp8.full_pixel = state.mc_filter_select, state.chroma_full_pixel_mc_filter_mode
    vp8.sign_bias[2], vp8.sign_bias[3] = state.golden_ref_picture_mv_sign_bias, state.alternate_ref_pic_mv_sign_bias
    for i in range(4):
        vp8.reference_delta[i] = getattr(state, f"reference_loop_filter_delta_{i}")
        vp8.mode_delta[i] = getattr(state, f"mode_loop_filter_delta_{i}")


def _probabilities(cs: CommandStreamer, vp8: Vp8Picture, state: Record) -> None:
    data = cs.space.read(state.coefficient_probability_stream_in_address, PROBABILITY_BYTES)
    ctypes.memmove(vp8.coefficients, data, PROBABILITY_BYTES)
    vp8.segment_tree[:] = [getattr(state, f"mb_segment_id_tree_probability_{i}") for i in range(3)]
    vp8.skip, vp8.intra = state.mb_no_coeff_skip_false_probability, state.intra_mb_probability
    vp8.last, vp8.golden = (state.inter_prediction_from_last_reference_probability,
                            state.inter_prediction_from_golden_reference_probability)  # fmt: skip
    vp8.y_modes[:] = [getattr(state, f"y_mode_probability_{i}") for i in range(4)]
    vp8.uv_modes[:] = [getattr(state, f"uv_mode_probability_{i}") for i in range(3)]
    for axis in range(2):
        vp8.vectors[axis][:] = [getattr(state, f"mv_update_probability_{axis}_{i}") for i in range(19)]


def _quantisers(vp8: Vp8Picture, state: Record) -> None:
    """Of segment 0 where there are no segments."""
    for segment in range(SEGMENTS):
        for kind, name in enumerate(("y1", "uv", "y2")):
            vp8.quantisers[segment][kind][:] = [getattr(state, f"quantizer_value_{segment}_{name}{part}") for part in ("dc", "ac")]
        vp8.levels[segment] = getattr(state, f"dblk_filter_level_for_segment{segment}")


def _partitions(cs: CommandStreamer, vp8: Vp8Picture, cmd: Record) -> list[object]:
    """The data of each partition; answers what keeps it in memory."""
    count = 1 << cmd.coded_num_of_coeff_token_partitions
    vp8.partitions = count
    vp8.value, vp8.range, vp8.used = (cmd.partition0_cpbac_entropy_value, cmd.partition0_cpbac_entropy_range,
                                      cmd.partition0_cpbac_entropy_count)  # fmt: skip
    if vp8.used > 8 or vp8.range < 128:
        raise DecodeError(f"a boolean decoder with range {vp8.range} and count {vp8.used}: one of them is out of range")
    keep = list[object]()
    for number in range(1 + count if count < PARTITIONS else PARTITIONS):
        part = cmd.indirect_partition[number]
        data = bitstream(cs, part.data_length, part.data_start_offset)
        payload = ctypes.create_string_buffer(data + PADDING)
        vp8.data[number], vp8.size[number] = ctypes.addressof(payload), len(data)
        keep.append(payload)
    return keep

"""VP9 pictures, from the latched records to picture.c.

In:  HCP_VP9_PIC_STATE, HCP_VP9_SEGMENT_STATE, HCP_SURFACE_STATE, HCP_BSD_OBJECT with its data; probabilities, segment ids and motion of
     the previous picture in the driver's buffers. Out: samples of the open picture; probabilities, segment ids, motion.

The object begins with the compressed header: the driver has read the other one. Probabilities are read and written back where the driver
keeps them, in its layout; segment ids and motion are kept in layouts of our own, 1 and 9 bytes for 8x8 samples.
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.hcp.picture import HOST_BYTES, HcpVideoPicture, hcp_surface, open_picture
from softgen.codec.hcp.vp9.divided import WorkArrays, decode_divided
from softgen.codec.hcp.vp9.structures import (
    BLOCK_BYTES,
    COUNT_BYTES,
    MOTION_BYTES,
    PROBABILITY_BYTES,
    SEGMENTS,
    Vp9Picture,
)
from softgen.codec.library import library, run_rows
from softgen.codec.picture import IN_MEMORY, PictureShape, Samples, reference_areas
from softgen.codec.structures import PADDING, SampleFrame
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

SUPERBLOCK, UNIT = 64, 8  # samples
REFERENCE_SURFACES = (("last", 2), ("golden", 3), ("altref", 4))  # surface_id
SAME_SIZE = 1 << 14  # a scale factor
LEAST_SCALE, MOST_SCALE = SAME_SIZE // 16, SAME_SIZE * 2
ADAPTABLE = 1667  # bytes of probabilities that pictures without references leave to the driver: from here ...
SEGMENT_TREE = 2010  # ... to here


def decode_picture(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a picture and write it to its surface."""
    state, buffers = cs.latched.get("HCP_VP9_PIC_STATE"), cs.latched.get("HCP_PIPE_BUF_ADDR_STATE")
    if state is None or buffers is None:
        raise DecodeError("no HCP_VP9_PIC_STATE or no HCP_PIPE_BUF_ADDR_STATE came before")
    if state.chroma_sampling_format:
        raise Unsupported(f"VP9 with chroma_sampling_format {state.chroma_sampling_format}: not yet simulated")
    if state.bit_depth not in (0, 2):
        raise Unsupported(f"VP9 with {8 + state.bit_depth} bits a sample: not yet simulated")
    payload = bitstream(cs, cmd.indirect_bsd_data_length, cmd.indirect_bsd_data_start_address, "hcp")
    picture, shape = _open(cs, engine, state)
    engine.picture = picture
    columns, rows = picture.record.width, picture.record.height
    vp9, keep = Vp9Picture(ctypes.addressof(picture.record)), WorkArrays(columns * rows)
    vp9.width, vp9.height, vp9.depth = state.frame_width + 1, state.frame_height + 1, 8 + state.bit_depth
    _flags(vp9, state)
    _segments(cs, vp9)
    if not vp9.intra_only:
        _references(cs, engine, vp9, state, buffers, shape)
    _work_memory(vp9, columns, rows, keep)
    segments, motion = _side_buffers(cs, vp9, state, buffers, columns * rows, keep)
    probabilities = keep.new(PROBABILITY_BYTES, cs.space.read(buffers.vp9_probability_buffer_address, PROBABILITY_BYTES))
    vp9.probabilities = probabilities.ctypes.data
    data = ctypes.create_string_buffer(payload + PADDING)
    vp9.data, vp9.size = ctypes.addressof(data), len(payload)
    parts = min(cs.dispatcher.threads, 1 << vp9.tile_columns)
    if parts > 1:
        decode_divided(cs, vp9, parts, keep)
    else:
        vp9.end_tile = 1 << vp9.tile_columns
        run_rows(cs, library().vp9_decode, vp9)
    if buffers.current_mv_temporal_buffer_address:  # iHD names none for pictures without references
        cs.space.write(buffers.current_mv_temporal_buffer_address, motion.tobytes())
    if state.segmentation_enable and state.segment_id_stream_out_enable:
        cs.space.write(buffers.vp9_segment_id_buffer_address, segments.tobytes())
    if vp9.refresh:
        _keep_probabilities(cs, buffers.vp9_probability_buffer_address, probabilities.tobytes(), bool(vp9.intra_only))
    engine.close(cs)
    keep.close()


def _open(cs: CommandStreamer, engine: VideoEngine, state: Record) -> tuple[HcpVideoPicture, PictureShape]:
    """In host memory it has whole superblocks, in its surface a multiple of 8 samples."""
    width, height = state.frame_width + 1, state.frame_height + 1
    shape = PictureShape(-(-width // SUPERBLOCK), -(-height // SUPERBLOCK), block=(SUPERBLOCK, SUPERBLOCK))
    found = open_picture(cs, engine.frames, shape, 8 + state.bit_depth, references=0)
    record = found.record
    record.width, record.height, record.block_width, record.block_height = -(-width // UNIT), -(-height // UNIT), UNIT, UNIT
    _crop(record.frame, UNIT * record.width, UNIT * record.height)
    return found, shape


def _crop(frame: SampleFrame, width: int, height: int) -> None:
    for plane, size in zip(frame.plane, ((width, height), *[(-(-width // 2), -(-height // 2))] * 2), strict=True):
        plane.width, plane.height = size


def _flags(vp9: Vp9Picture, state: Record) -> None:
    is_key = not state.frame_type
    vp9.intra_only, vp9.lossless = is_key or state.intra_only, state.lossless_mode
    vp9.segmentation, vp9.update_map = state.segmentation_enable, state.segmentation_update_map
    vp9.temporal_update, vp9.level, vp9.sharpness = state.segmentation_temporal_update, state.filter_level, state.sharpness_level
    vp9.filter, vp9.high_precision = state.motion_compensation_filter_type, state.allow_hi_precision_mv
    vp9.refresh, vp9.adapt = state.refresh_frame_context_enable, state.adapt_probabilities
    vp9.after_key, vp9.header_bytes = not state.last_frame_type, state.first_partition_size
    vp9.tile_rows, vp9.tile_columns = state.log2_tile_row, state.log2_tile_column
    for i in range(3):
        vp9.sign_bias[1 + i] = state.reference_frame_sign_bias >> i & 1
    if vp9.filter > 4 or vp9.tile_rows > 2 or vp9.tile_columns > 6:
        raise DecodeError(f"HCP_VP9_PIC_STATE: filter type {vp9.filter}, tiles {vp9.tile_columns} and {vp9.tile_rows}: out of range")


def _segments(cs: CommandStreamer, vp9: Vp9Picture) -> None:
    """Without segmentation, of segment 0 alone."""
    for number, state in cs.latched.by_index("HCP_VP9_SEGMENT_STATE").items():
        segment = vp9.segment[number]
        segment.skip, segment.has_reference, segment.reference = (state.segment_skipped, state.segment_reference_enable,
                                                                  state.segment_reference)  # fmt: skip
        for reference in range(4):
            for mode in range(2):
                segment.levels[reference][mode] = getattr(state, f"filter_level_ref{reference}_mode_{mode}")
        segment.scale[0][:] = state.luma_dc_quant_scale, state.luma_ac_quant_scale
        segment.scale[1][:] = state.chroma_dc_quant_scale, state.chroma_ac_quant_scale


def _references(cs: CommandStreamer, engine: VideoEngine, vp9: Vp9Picture, state: Record, buffers: Record, shape: PictureShape) -> None:
    """Their samples are read when a block refers to them, so their addresses may be anything."""
    surfaces, own = cs.latched.by_index("HCP_SURFACE_STATE"), engine.picture
    assert own is not None
    for slot, item, (name, number) in zip(vp9.references, buffers.reference_picture, REFERENCE_SURFACES, strict=False):
        surface = surfaces.get(number)
        if not item.address or surface is None:
            continue
        slot.surface = hcp_surface(surface.surface_pitch + 1, surface.y_offset_for_u_cb, own.record.source.sample_bytes)
        slot.surface.base = item.address
        width, height = getattr(state, f"{name}_frame_width") + 1, getattr(state, f"{name}_frame_height") + 1
        room = max(width, shape.width * SUPERBLOCK), max(height, shape.height * SUPERBLOCK)
        slot.frame, samples = engine.frames.take([room, *[(-(-room[0] // 2), -(-room[1] // 2))] * 2], HOST_BYTES)
        _crop(slot.frame, width, height)
        areas, _ = reference_areas(1, height)
        slot.areas = areas.ctypes.data
        own.keep += [samples, areas]
        scales = [getattr(state, f"{direction}_scale_factor_for_{name}") for direction in ("horizontal", "vertical")]
        slot.scale[:], slot.step[:] = scales, [scale * 16 >> 14 for scale in scales]
        slot.is_scaled = any(scale != SAME_SIZE for scale in scales)
        slot.state = IN_MEMORY if all(LEAST_SCALE <= scale <= MOST_SCALE for scale in scales) else 0


def _work_memory(vp9: Vp9Picture, columns: int, rows: int, keep: WorkArrays) -> None:
    """What only the decoding of this picture needs."""
    aligned = -(-columns // 8) * 8
    for name, size in (("blocks", columns * rows * BLOCK_BYTES), ("grid", columns * rows * 8), ("above_partition", aligned),
                       ("counts", COUNT_BYTES)):  # fmt: skip
        setattr(vp9, name, keep.new(size).ctypes.data)
    vp9.above_nonzero[:] = [keep.new(size).ctypes.data for size in (2 * aligned, aligned, aligned)]


def _side_buffers(cs: CommandStreamer, vp9: Vp9Picture, state: Record, buffers: Record, units: int,
                  keep: WorkArrays) -> tuple[Samples, Samples]:  # fmt: skip
    """Segment ids and motion of the previous picture; answers where the own ones go."""
    segments, motion = keep.new(units), keep.new(units * MOTION_BYTES)
    vp9.segments, vp9.motion = segments.ctypes.data, motion.ctypes.data
    is_read = state.segmentation_enable and state.segment_id_stream_in_enable
    earlier = keep.new(units, cs.space.read_mapped(buffers.vp9_segment_id_buffer_address, units) if is_read else b"")
    earlier %= SEGMENTS
    vp9.earlier_segments = earlier.ctypes.data
    if state.use_prev_in_find_mv_references and not vp9.intra_only:
        data = cs.space.read_mapped(buffers.collocated_mv_temporal_buffer[0].address, units * MOTION_BYTES)
        vp9.earlier = keep.new(units * MOTION_BYTES, data).ctypes.data
    return segments, motion


def _keep_probabilities(cs: CommandStreamer, address: int, data: bytes, intra_only: bool) -> None:
    """Without references, the tables in the middle are those that the driver has put there for such pictures."""
    cs.space.write(address, data[:ADAPTABLE] if intra_only else data[:SEGMENT_TREE])

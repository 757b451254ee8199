"""VC-1 slices, from the latched records to picture.c.

In:  MFD_VC1_LONG_PIC_STATE, MFX_VC1_PRED_PIPE_STATE, MFX_VC1_DIRECTMODE_STATE, MFD_VC1_BSD_OBJECT with its data, bit planes.
Out: samples of the open picture, its motion.

Vectors for direct macroblocks stand in the driver's buffer in a layout of our own, four bytes a macroblock. Pictures that are skipped
come as P pictures whose bit planes skip all macroblocks.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.vc1.structures import MB_BYTES, MOTION_BYTES, Vc1Picture, Vc1Slice
from softgen.codec.picture import REFERENCE_PICTURE, PictureShape, Samples, VideoPicture, add_references, open_picture
from softgen.codec.structures import PADDING, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

Values = npt.NDArray[np.int64]
REFERENCES = 2  # forward, backward
PICTURE_I, PICTURE_P, PICTURE_B, PICTURE_BI = range(4)  # picture_type
OVERLAP_NONE, OVERLAP_ALL, OVERLAP_SELECTED, OVERLAP_INTRA = range(4)  # enum vc1_overlap
CONDOVER = {2: OVERLAP_ALL, 3: OVERLAP_SELECTED}
ALWAYS_SMOOTHED = 9  # quantisers from here on
FINE_ESCAPES = 8  # quantisers below
MOST_SET = 2


@dataclass
class Vc1VideoPicture(VideoPicture):
    """A VC-1 picture that is being decoded."""

    vc1: Vc1Picture = field(default_factory=Vc1Picture)
    motion: Samples | None = None  # what B pictures to come may need of it,
    motion_address: int = 0  # and where it goes

    def complete(self, cs: CommandStreamer) -> None:
        """Conceal what is missing, smooth, filter, write samples and motion."""
        run_rows(cs, library().vc1_close, self.vc1)
        super().complete(cs)
        if self.motion is not None:
            cs.space.write(self.motion_address, self.motion.tobytes())


def decode_slice(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a slice; the first one of a picture opens it, the one that reaches its end completes it."""
    state = cs.latched["MFD_VC1_LONG_PIC_STATE"]
    assert engine.mode is not None
    if not engine.mode.decoder_short_format_mode:
        raise Unsupported("VC-1 slices in the short format: not yet simulated")
    picture = engine.picture if isinstance(engine.picture, Vc1VideoPicture) else _open(cs, engine, state)
    engine.picture = picture
    cs.collected()
    rows = picture.record.height
    first, end = cmd.slice_start_vertical_position, min(cmd.next_slice_vertical_position, rows)
    if not first < end:
        raise DecodeError(f"a slice of rows {first} to {cmd.next_slice_vertical_position} in a picture of {rows} rows of macroblocks")
    data = _unescaped(picture, bitstream(cs, cmd.indirect_bsd_data_length, cmd.indirect_bsd_data_start_address))
    slice = Vc1Slice(ctypes.addressof(picture.vc1), first=first, row=first, end=end)
    slice.bits.data, slice.bits.size, slice.bits.at = data + PADDING, len(data), cmd.first_mb_bit_offset
    slice.fine = picture.vc1.quantiser < FINE_ESCAPES or picture.vc1.quantisers != 0
    run_rows(cs, library().vc1_decode, slice, writes=False)
    if end == rows:
        engine.close(cs)


def _unescaped(picture: Vc1VideoPicture, data: bytes) -> bytes:
    """The data of a slice; of advanced profile without the bytes that keep start codes out of it (annex E)."""
    if not picture.vc1.advanced:
        return data
    payload = ctypes.create_string_buffer(len(data) + len(PADDING))
    size = library().remove_emulation(payload, data, ctypes.c_uint64(len(data)))
    return payload.raw[:size]


# -- pictures ----------------------------------------------------------------------------------------------------------


def _check(state: Record) -> None:
    if state.frame_coding_mode:
        raise Unsupported("interlaced VC-1 pictures: not yet simulated")
    if state.sync_marker:
        raise Unsupported("sync markers of VC-1: not yet simulated")
    if not state.pq_value or state.picture_type > PICTURE_BI:
        raise DecodeError(f"pq_value {state.pq_value} or picture_type {state.picture_type}: one of them is reserved")
    sets = state.picture_level_transform_luma_ac_coding_set_index, state.picture_level_transform_chroma_ac_coding_set_index
    if max(sets) > MOST_SET or state.mv_table > 3 or state.coded_block_pattern_table > 3:
        raise DecodeError(f"coding sets {sets}, mv_table {state.mv_table}, coded_block_pattern_table {state.coded_block_pattern_table}: "
                          "one of them is reserved in progressive pictures")  # fmt: skip


def _open(cs: CommandStreamer, engine: VideoEngine, state: Record) -> Vc1VideoPicture:
    _check(state)
    shape = PictureShape(state.picture_width_in_mbs + 1, state.picture_height_in_mbs + 1)
    opened = open_picture(cs, engine, shape, SurfaceLayout.INTERLEAVED_CHROMA)
    picture = Vc1VideoPicture(opened.record, opened.keep)
    count = (0, 1, REFERENCES, 0)[state.picture_type]
    add_references(picture, engine.frames, cs.latched["MFX_PIPE_BUF_ADDR_STATE"], shape, count)
    vc1 = picture.vc1
    vc1.picture = ctypes.addressof(picture.record)
    _fields(vc1, state)
    surface = engine.surfaces[REFERENCE_PICTURE]
    sides = shape.width * 16, shape.height * 16
    vc1.edge[:] = (min(surface.width + 1, sides[0]), min(surface.height + 1, sides[1])) if vc1.advanced else sides
    _memory(cs, picture, shape, state)
    _mapping(vc1, state, cs.latched.get("MFX_VC1_PRED_PIPE_STATE"))
    _motion(cs, picture, shape, state)
    return picture


def _fields(vc1: Vc1Picture, state: Record) -> None:
    vc1.type, vc1.advanced, vc1.rounding = state.picture_type, state.vc1_profile, state.interpolation_rounder_control
    vc1.mode, vc1.range, vc1.fast_chroma = state.unified_mv_mode, state.extended_mv_range, state.fast_uv_motion_compensation
    vc1.quantiser, vc1.alternative, vc1.half_step = state.pq_value, state.alternative_pq_value, state.half_qp
    vc1.uniform, vc1.implicit = state.pq_uniform, state.implicit_quantizer
    vc1.quantisers, vc1.edges = state.alternative_pq_configuration, state.alternative_pq_edge_mask
    vc1.loop_filter, vc1.b_fraction = state.loop_filter_enable, state.b_scale_factor
    vc1.raw_skip, vc1.raw_mixed, vc1.raw_direct = state.skipmb_raw, state.mvtypemb_raw, state.directmb_raw
    vc1.raw_overlap, vc1.raw_ac_prediction = state.overflags_raw, state.acpred_raw
    vc1.vector_table, vc1.pattern_table, vc1.dc_table = state.mv_table, state.coded_block_pattern_table, state.intra_transform_dc_table
    vc1.luma_set = state.picture_level_transform_luma_ac_coding_set_index
    vc1.chroma_set = state.picture_level_transform_chroma_ac_coding_set_index
    vc1.frame_transform, vc1.transform = state.mb_transform_type, state.picture_level_transform_type
    vc1.overlap = _overlap(state)


def _overlap(state: Record) -> int:
    """Which blocks are smoothed: where the picture's quantiser does not say it, its header does (8.5)."""
    if not state.overlap_smoothing_enable or state.picture_type == PICTURE_B:
        return OVERLAP_NONE
    if state.picture_type == PICTURE_P:
        return OVERLAP_INTRA
    if state.vc1_profile and state.pq_value < ALWAYS_SMOOTHED:
        return CONDOVER.get(state.condover, OVERLAP_NONE)
    return OVERLAP_ALL


def _memory(cs: CommandStreamer, picture: Vc1VideoPicture, shape: PictureShape, state: Record) -> None:
    """Macroblocks, samples before smoothing, bit planes: two macroblocks a byte, the first in the lower half."""
    vc1, count = picture.vc1, shape.width * shape.height
    mbs, starts = np.zeros(count * MB_BYTES, np.uint8), np.zeros(shape.height, np.uint8)
    planes = np.zeros((shape.height, shape.width), np.uint8)
    if state.bitplane_buffer_present:
        pitch = state.bitplane_buffer_pitch + 1
        if 2 * pitch < shape.width:
            raise DecodeError(f"a bitplane_buffer_pitch of {pitch} bytes for {shape.width} macroblocks")
        packed = np.zeros(pitch * shape.height, np.uint8)
        data = cs.space.read_mapped(cs.latched["MFX_BSP_BUF_BASE_ADDR_STATE"].bitplane_read_buffer_address, len(packed))
        packed[: len(data)] = np.frombuffer(data, np.uint8)
        pairs = packed.reshape(shape.height, pitch, 1) >> np.array([0, 4], np.uint8) & 15
        planes[:] = pairs.reshape(shape.height, 2 * pitch)[:, : shape.width]
    vc1.mbs, vc1.slice_start, vc1.planes = mbs.ctypes.data, starts.ctypes.data, planes.ctypes.data
    picture.keep += [mbs, starts, planes]
    if vc1.overlap:
        for number, (width, height) in enumerate(shape.planes()):
            samples = np.zeros(width * height, np.int16)
            vc1.samples[number] = samples.ctypes.data
            picture.keep.append(samples)


# -- references --------------------------------------------------------------------------------------------------------


def _mapping(vc1: Vc1Picture, state: Record, pipe: Record | None) -> None:
    """Samples of references: intensity compensation, and the other range of pictures with a reduced one (8.3.4.11, 8.3.8)."""
    for number, name in enumerate(("fwd", "bwd")):
        luma = chroma = np.arange(256)
        if state.range_reduction_enable:
            luma = chroma = 2 * luma - 128 if state.range_reduction_scale else (luma - 128 >> 1) + 128
        if pipe is not None and getattr(pipe, f"vin_intensitycomp_double_{name}en"):
            raise Unsupported("intensity compensation of fields: not yet simulated")
        compensated = pipe is not None and getattr(pipe, f"vin_intensitycomp_single_{name}en") & 1
        if compensated:
            scale, shift = getattr(pipe, f"lumscale1_single_{name}"), getattr(pipe, f"lumshift1_single_{name}")
            luma, chroma = _compensated(scale, shift, luma.clip(0, 255), chroma.clip(0, 255))
        vc1.mapped[number] = bool(compensated or state.range_reduction_enable)
        for kind, values in enumerate((luma, chroma)):
            vc1.lut[number][kind][:] = values.clip(0, 255).tolist()


def _compensated(scale: int, shift: int, luma: Values, chroma: Values) -> tuple[Values, Values]:
    """Luma and chroma after LUMSCALE and LUMSHIFT (8.3.8)."""
    signed = 64 * (shift - 64 if shift > 31 else shift)
    factor, offset = (scale + 32, signed) if scale else (-64, 255 * 64 - 2 * signed)
    return factor * luma + offset + 32 >> 6, factor * (chroma - 128) + 128 * 64 + 32 >> 6


def _motion(cs: CommandStreamer, picture: Vc1VideoPicture, shape: PictureShape, state: Record) -> None:
    """Motion of the backward reference, and the place of the picture's own."""
    buffers, size = cs.latched.get("MFX_VC1_DIRECTMODE_STATE"), shape.width * shape.height * MOTION_BYTES
    if buffers is None:
        return
    if state.picture_type == PICTURE_P and buffers.direct_mv_write_buffer_address:
        picture.motion, picture.motion_address = np.zeros(size, np.uint8), buffers.direct_mv_write_buffer_address
        picture.vc1.motion = picture.motion.ctypes.data
    if state.picture_type == PICTURE_B and state.dmv_surface_valid and buffers.direct_mv_read_buffer_address:
        found = np.zeros(size, np.uint8)
        data = cs.space.read_mapped(buffers.direct_mv_read_buffer_address, size)
        found[: len(data)] = np.frombuffer(data, np.uint8)
        picture.vc1.direct = found.ctypes.data
        picture.keep.append(found)

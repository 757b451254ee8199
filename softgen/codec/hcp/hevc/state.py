"""HEVC slices, from the latched records to slice.c.

In:  HCP_PIC_STATE, HCP_TILE_STATE, HCP_QM_STATE, HCP_SLICE_STATE, HCP_REF_IDX_STATE, HCP_WEIGHTOFFSET_STATE, HCP_BSD_OBJECT with its data
     (long format), motion of other pictures. Out: samples of the open picture, its motion.

Order counts of pictures are not known: what stands for them is the distance of each reference, and whether all of them come before.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.hcp.hevc.structures import COLUMNS, DECODER_BYTES, LISTS, MOST_INDEX, MOTION_BYTES, ROWS, STORES, HevcPicture, HevcSlice
from softgen.codec.hcp.picture import HcpVideoPicture, give_room, open_picture, take_room
from softgen.codec.library import library, run_rows
from softgen.codec.picture import PictureShape, Samples
from softgen.codec.structures import PADDING
from softgen.command import CommandStreamer, MarkedLatched
from softgen.errors import DecodeError, Unsupported

B_SLICE, P_SLICE, I_SLICE = range(3)
CHROMA_420 = 1
FLAT = 16  # a scale that changes nothing
MATRIX = "HCP_QM_STATE"
LOG2_CTB, LOG2_BLOCK, LOG2_TRANSFORM = 3, 3, 2  # what size fields of HCP_PIC_STATE begin at
MOST_TRANSFORM = 5  # log2
RANGE_EXTENSIONS = ("chroma_qp_offset_list_enable", "log2_sao_offset_scale_chroma", "log2_sao_offset_scale_luma",
                    "transform_skip_rotation_enable", "transform_skip_context_enable", "implicit_rdpcm_enable", "explicit_rdpcm_enable",
                    "intra_smoothing_disable", "persistent_rice_adaptation_enable", "cabac_bypass_alignment_enable",
                    "cross_component_prediction_enable", "high_precision_offsets_enable")  # fmt: skip


@dataclass
class HevcVideoPicture(HcpVideoPicture):
    """An HEVC picture that is being decoded."""

    hevc: HevcPicture = field(default_factory=HevcPicture)
    decoder: npt.NDArray[np.uint64] | None = None  # memory of struct hevc_decoder
    room: Samples | None = None  # what C code uses while it is decoded
    motion: Samples | None = None  # what pictures to come may need of it,
    motion_address: int = 0  # and where it goes
    collocated: dict[int, Samples] = field(default_factory=dict)  # the same of references, by frame store

    def complete(self, cs: CommandStreamer) -> None:
        """Conceal what is missing, run the in-loop filters, write samples and motion."""
        run_rows(cs, library().hevc_close, self.hevc)
        if self.room is not None:
            give_room(self.room)
        super().complete(cs)
        if self.motion_address and self.motion is not None:
            cs.space.write(self.motion_address, self.motion.tobytes())


def decode_slice(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a slice segment; the first one of a picture opens it, the last one completes it."""
    state, slice_state = cs.latched.get("HCP_PIC_STATE"), cs.latched.get("HCP_SLICE_STATE")
    if state is None or slice_state is None:
        raise DecodeError("no HCP_PIC_STATE or no HCP_SLICE_STATE came before")
    picture = engine.picture if isinstance(engine.picture, HevcVideoPicture) else _open(cs, engine, state)
    engine.picture = picture
    cs.collected()
    if cmd.indirect_bsd_data_length:
        data = bitstream(cs, cmd.indirect_bsd_data_length, cmd.indirect_bsd_data_start_address, "hcp")
        _decode(cs, picture, slice_state, data)
    if slice_state.last_slice:
        engine.close(cs)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _refuse(state: Record) -> None:
    """Raises Unsupported for what is not built. Of field_pic nothing depends: H.265 decodes fields as pictures of their own (D.3.3)."""
    chroma = getattr(state, "chroma_subsampling", CHROMA_420)
    if chroma != CHROMA_420:
        raise Unsupported(f"chroma_subsampling {chroma}: not yet simulated")
    for name in RANGE_EXTENSIONS:
        if getattr(state, name, 0):
            raise Unsupported(f"{name}: not yet simulated")
    if state.luma_bit_depth != state.chroma_bit_depth:
        raise Unsupported(f"luma of {8 + state.luma_bit_depth} bits beside chroma of {8 + state.chroma_bit_depth}: not yet simulated")


def _sizes(hevc: HevcPicture, state: Record) -> None:
    hevc.log2_ctb, hevc.log2_cu = LOG2_CTB + state.lcu_size, LOG2_BLOCK + state.min_cu_size
    hevc.log2_transform, hevc.log2_most_transform = LOG2_TRANSFORM + state.min_tu_size, LOG2_TRANSFORM + state.max_tu_size
    hevc.log2_pcm, hevc.log2_most_pcm = LOG2_BLOCK + state.min_pcm_size, LOG2_BLOCK + state.max_pcm_size
    hevc.width = state.frame_width_in_minimum_coding_block_size + 1 << hevc.log2_cu
    hevc.height = state.frame_height_in_minimum_coding_block_size + 1 << hevc.log2_cu
    hevc.depth_luma, hevc.depth_chroma = 8 + state.luma_bit_depth, 8 + state.chroma_bit_depth
    hevc.pcm_luma, hevc.pcm_chroma = state.luma_pcm_sample_bit_depth + 1, state.chroma_pcm_sample_bit_depth + 1
    hevc.delta_qp_depth = state.max_dqp_depth if state.cu_qp_delta_enable else 0
    hevc.log2_merge = 2 + state.log2_parallel_merge_level
    if not (hevc.log2_transform < hevc.log2_cu <= hevc.log2_ctb and 4 <= hevc.log2_ctb <= 6):
        raise DecodeError(f"coding blocks of 2^{hevc.log2_cu} to 2^{hevc.log2_ctb} samples, transform blocks of 2^{hevc.log2_transform}")
    if not hevc.log2_transform <= hevc.log2_most_transform <= min(hevc.log2_ctb, MOST_TRANSFORM):
        raise DecodeError(f"transform blocks of 2^{hevc.log2_transform} to 2^{hevc.log2_most_transform} samples")
    if state.pcm_enable and not (hevc.log2_pcm <= hevc.log2_most_pcm <= min(hevc.log2_ctb, MOST_TRANSFORM)
                                 and 0 < hevc.pcm_luma <= hevc.depth_luma and 0 < hevc.pcm_chroma <= hevc.depth_chroma):  # fmt: skip
        raise DecodeError(f"PCM blocks of 2^{hevc.log2_pcm} to 2^{hevc.log2_most_pcm}, of {hevc.pcm_luma} and {hevc.pcm_chroma} bits")
    if hevc.delta_qp_depth > hevc.log2_ctb - hevc.log2_cu or hevc.log2_merge > hevc.log2_ctb or hevc.depth_luma > 12:
        raise DecodeError(f"max_dqp_depth {state.max_dqp_depth}, log2_parallel_merge_level {state.log2_parallel_merge_level} or "
                          f"luma_bit_depth {state.luma_bit_depth} is too large")  # fmt: skip


def _flags(hevc: HevcPicture, state: Record) -> None:
    hevc.depth_intra, hevc.depth_inter = state.intra_max_transform_hierarchy_depth, state.inter_max_transform_hierarchy_depth
    hevc.strong_smoothing, hevc.bypass = state.strong_intra_smoothing_enable, state.transquant_bypass_enable
    hevc.amp, hevc.transform_skip, hevc.sign_hiding = state.amp_enable, state.transform_skip_enable, state.sign_data_hiding
    hevc.weighted, hevc.weighted_b = state.weighted_predication_enable, state.weighted_bipredication_enable
    hevc.tiling, hevc.wavefront = state.tiling_enable, state.entropy_coding_sync_enable
    hevc.constrained_intra, hevc.delta_qp = state.constrained_intra_prediction, state.cu_qp_delta_enable
    hevc.pcm, hevc.pcm_unfiltered = state.pcm_enable, state.pcm_loop_filter_disable
    hevc.sao, hevc.across_tiles = state.sample_adaptive_offset_enable, state.loop_filter_enable or not state.tiling_enable
    hevc.chroma_offset[:] = state.picture_cb_qp_offset, state.picture_cr_qp_offset


def _open(cs: CommandStreamer, engine: VideoEngine, state: Record) -> HevcVideoPicture:
    _refuse(state)
    hevc = HevcPicture()
    _sizes(hevc, state)
    _flags(hevc, state)
    block = 1 << hevc.log2_cu
    shape = PictureShape(hevc.width // block, hevc.height // block, block=(block, block))
    opened = open_picture(cs, engine.frames, shape, hevc.depth_luma)
    picture = HevcVideoPicture(opened.record, opened.keep, hevc)
    hevc.picture = ctypes.addressof(picture.record)
    picture.room = take_room(library().hevc_room(ctypes.byref(hevc)))
    hevc.room = picture.room.ctypes.data
    _tiles(hevc, cs.latched.get("HCP_TILE_STATE") if state.tiling_enable else None)
    _matrices(hevc, cs)
    picture.decoder = np.zeros(DECODER_BYTES // 8, np.uint64)
    buffers = cs.latched["HCP_PIPE_BUF_ADDR_STATE"]
    picture.motion_address = buffers.current_mv_temporal_buffer_address
    if picture.motion_address:
        picture.motion = np.zeros(_motion_size(hevc), np.uint8)
        hevc.motion = picture.motion.ctypes.data
    run_rows(cs, library().hevc_open, hevc)
    return picture


def _motion_size(hevc: HevcPicture) -> int:
    return MOTION_BYTES * ((int(hevc.width) + 15) // 16) * ((int(hevc.height) + 15) // 16)


def _tiles(hevc: HevcPicture, tiles: Record | None) -> None:
    """Where columns and rows of tiles begin, in coding tree blocks."""
    across, down = -(-hevc.width // (1 << hevc.log2_ctb)), -(-hevc.height // (1 << hevc.log2_ctb))
    hevc.columns = hevc.rows = 1
    columns, rows = [0], [0]
    if tiles is not None:
        hevc.columns, hevc.rows = tiles.number_of_tile_columns + 1, tiles.number_of_tile_rows + 1
        if hevc.columns > COLUMNS or hevc.rows > ROWS:
            raise DecodeError(f"{hevc.columns}x{hevc.rows} tiles: at most {COLUMNS}x{ROWS} may be")
        columns = _positions(tiles.column_position)[: hevc.columns]
        rows = _positions(tiles.row_position)[: hevc.rows]
    for name, starts, end in (("columns", columns, across), ("rows", rows, down)):
        if starts[0] or any(a >= b for a, b in zip(starts, [*starts[1:], end], strict=True)):
            raise DecodeError(f"{name} of tiles begin at {starts}: they must rise from 0 and stay below {end}")
    hevc.column_start[: len(columns) + 1] = [*columns, across]
    hevc.row_start[: len(rows) + 1] = [*rows, down]


def _positions(group: list[Record]) -> list[int]:
    return [item.value for part in group for item in part.ctb_position]


def _matrices(hevc: HevcPicture, cs: CommandStreamer) -> None:
    """Drivers send matrices always: those that scale nothing where the stream has none."""
    latched = cs.latched
    assert isinstance(latched, MarkedLatched)
    place = latched.place(MATRIX)
    raw = latched.raw(place.offset, place.size) if place is not None and place.latched else []
    found = _matrices_of(cs.generation.number, tuple(raw), place.item_size if place is not None else 1)
    ctypes.memmove(hevc.matrix, found.matrix, ctypes.sizeof(hevc.matrix))
    ctypes.memmove(hevc.dc, found.dc, ctypes.sizeof(hevc.dc))
    hevc.has_scales = found.has_scales


class Matrices(NamedTuple):
    """The matrices of struct hevc_picture."""

    matrix: bytes
    dc: bytes
    has_scales: bool


@lru_cache(maxsize=16)
def _matrices_of(gen: float, raw: tuple[int, ...], size: int) -> Matrices:
    """Matrices of latched commands of `size` dwords each. Pictures repeat them, and unpacking takes longer than decoding."""
    matrix, dc, has_scales = np.full((4, 6, 64), FLAT, np.uint8), np.full((2, 6), FLAT, np.uint8), False
    layout = catalogue().layout(MATRIX, gen)
    for start in range(0, len(raw), size):
        if not raw[start]:  # no command with this index came
            continue
        state = layout.raw(list(raw[start : start + size]))
        kind, values = 3 * state.prediction_type + min(state.color_component, 2), [item.value for item in state.quantizer_matrix]
        matrix[state.sizeid, kind] = values
        used = values[:16] if not state.sizeid else values
        if state.sizeid >= 2:
            dc[state.sizeid - 2, kind] = state.dc_coefficient
            used = [*values, state.dc_coefficient]
        has_scales |= any(value != FLAT for value in used)
    return Matrices(matrix.tobytes(), dc.tobytes(), has_scales)


# -- slices ------------------------------------------------------------------------------------------------------------


def _decode(cs: CommandStreamer, picture: HevcVideoPicture, state: Record, data: bytes) -> None:
    if state.slice_type not in (B_SLICE, P_SLICE, I_SLICE):
        raise DecodeError(f"slice_type {state.slice_type} is none")
    hevc = picture.hevc
    payload = ctypes.create_string_buffer(len(data) + len(PADDING))
    slice = HevcSlice(ctypes.addressof(hevc), ctypes.addressof(payload))
    slice.size = library().remove_emulation(payload, data, ctypes.c_uint64(len(data)))
    ctypes.memset(ctypes.addressof(payload) + slice.size, 0, len(PADDING))
    assert picture.decoder is not None
    slice.start, slice.decoder = state.slice_header_length, picture.decoder.ctypes.data
    slice.type, slice.dependent = state.slice_type, state.dependent_slice
    slice.first_x, slice.first_y = state.slice_horizontal_position, state.slice_vertical_position
    slice.qp = -state.slice_qp if state.slice_qp_sign else state.slice_qp
    slice.chroma_offset[:] = state.slice_cb_qp_offset, state.slice_cr_qp_offset
    slice.beta, slice.tc = 2 * state.slice_beta_offset_div2, 2 * state.slice_tc_offset_div2
    slice.temporal, slice.collocated = state.slice_temporal_mvp_enable, state.collocated_mv_temporal_buffer_index
    slice.collocated_from_0, slice.low_delay = state.collocated_from_l0, state.low_delay
    slice.merge_count, slice.cabac_init, slice.mvd_1_zero = state.max_merge_index + 1, state.cabac_init, state.mvd_l1_zero
    slice.sao_luma, slice.sao_chroma = state.slice_sao_luma, state.slice_sao_chroma
    slice.across, slice.unfiltered = state.slice_loop_filter_enable, state.slice_header_disable_deblocking_filter
    _check(hevc, slice)
    _lists(cs, hevc, state, slice)
    if slice.temporal and slice.type != I_SLICE:
        _load_motion(cs, picture, slice.collocated)
    run_rows(cs, library().hevc_decode, slice)


def _check(hevc: HevcPicture, slice: HevcSlice) -> None:
    if slice.first_x >= hevc.across or slice.first_y >= hevc.down:
        raise DecodeError(f"a slice at ({slice.first_x}, {slice.first_y}) of a picture of {hevc.across}x{hevc.down} coding tree blocks")
    if slice.merge_count > 5 or not -6 * (hevc.depth_luma - 8) <= slice.qp <= 51:
        raise DecodeError(f"max_merge_index {slice.merge_count - 1} or a QP of {slice.qp}: out of range")


def _lists(cs: CommandStreamer, hevc: HevcPicture, state: Record, slice: HevcSlice) -> None:
    """Reference lists and weights; entries that do not exist name no frame store."""
    lists, weights = cs.latched.by_index("HCP_REF_IDX_STATE"), cs.latched.by_index("HCP_WEIGHTOFFSET_STATE")
    weighted = hevc.weighted if slice.type == P_SLICE else hevc.weighted_b
    slice.weight_shift[:] = state.log2_weight_denominator_luma, state.log2_weight_denominator_chroma
    for number in range(LISTS):
        for entry in slice.list[number]:
            entry.store = -1
    for number in range((2, 1, 0)[slice.type]):
        if number not in lists:
            raise DecodeError(f"no HCP_REF_IDX_STATE of list {number} came before")
        slice.counts[number] = count = min(lists[number].number_of_reference_indexes_active + 1, MOST_INDEX - 1)
        for entry, item in zip(slice.list[number][:count], lists[number].reference_list_entry, strict=False):
            entry.store, entry.long_term = item.list_entry, item.long_term_reference
            entry.distance = (item.reference_picture_tb_value ^ 0x80) - 0x80
        if weighted and number in weights:
            _weights(weights[number], slice, number)


def _weights(state: Record, slice: HevcSlice, number: int) -> None:
    luma, chroma = slice.weight_shift
    for entry, item, pair in zip(slice.weight[number], state.luma_offsets, state.chroma_offsets, strict=True):
        entry.weight[:] = ((1 << luma) + item.delta_luma_weight_lx, (1 << chroma) + pair.delta_chroma_weight_lx_0,
                           (1 << chroma) + pair.delta_chroma_weight_lx_1)  # fmt: skip
        entry.offset[:] = item.luma_offset_lx, pair.chroma_offset_lx_0, pair.chroma_offset_lx_1


def _load_motion(cs: CommandStreamer, picture: HevcVideoPicture, store: int) -> None:
    """Reads the motion of a reference, whatever part of it is mapped."""
    buffers = cs.latched["HCP_PIPE_BUF_ADDR_STATE"]
    address = buffers.collocated_mv_temporal_buffer[store].address if store < STORES else 0
    if not address or store in picture.collocated:
        return
    size = _motion_size(picture.hevc)
    found = np.zeros(size, np.uint8)
    data = cs.space.read_mapped(address, size)
    found[: len(data)] = np.frombuffer(data, np.uint8)
    picture.collocated[store] = found
    picture.hevc.collocated[store] = found.ctypes.data

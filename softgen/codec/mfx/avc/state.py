"""H.264 slices, from the latched records to slice.c.

In:  MFX_AVC_IMG_STATE, MFX_AVC_SLICE_STATE, MFX_AVC_REF_IDX_STATE, MFX_AVC_WEIGHTOFFSET_STATE, MFX_AVC_DIRECTMODE_STATE,
     MFD_AVC_PICID_STATE, MFX_QM_STATE, MFD_AVC_BSD_OBJECT with its data (long format). Out: samples of the open picture, its motion.

Drivers differ in bit 5 of reference list entries and in slice_start_mb_number, and one leaves weighted_prediction_indicator at zero: none
of them is read. What decides is image_structure, the slice's position, and MFX_AVC_IMG_STATE.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record, split
from softgen.codec.engine import VideoEngine, bitstream
from softgen.codec.library import library, run_rows
from softgen.codec.mfx.avc.structures import DECODER_BYTES, LISTS, MB_BYTES, MOTION_BYTES, AvcPicture, AvcSlice
from softgen.codec.picture import PictureShape, Samples, VideoPicture, add_references, open_picture
from softgen.codec.structures import MOST_REFERENCES, PADDING, SurfaceLayout
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported

INLINE_DATA = "INLINE_DATA_DESCRIPTION_FOR_MFD_AVC_BSD_OBJECT"
P_SLICE, B_SLICE, I_SLICE = range(3)
EXPLICIT = 1  # weighted_biprediction_idc
MONOCHROME, CHROMA_420 = 0, 1  # chroma_format_idc
BOTTOM_FIELD = 3  # image_structure
FLAT = bytes([16] * 64)  # a matrix that scales nothing
WHOLE_FRAME, TOP, BOTTOM = range(3)  # enum parity


@dataclass
class AvcVideoPicture(VideoPicture):
    """An H.264 picture that is being decoded."""

    avc: AvcPicture = field(default_factory=AvcPicture)
    decoder: object = None  # memory of struct avc_decoder
    motion: Samples | None = None  # what pictures to come may need of it,
    motion_address: int = 0  # and where it goes
    collocated: dict[int, Samples] = field(default_factory=dict)  # the same of references, by frame store

    def complete(self, cs: CommandStreamer) -> None:
        """Conceal what is missing, deblock, write samples and motion."""
        run_rows(cs, library().avc_close, self.avc)
        super().complete(cs)
        if self.motion_address and self.motion is not None:
            cs.space.write(self.motion_address, self.motion.tobytes())


def decode_slice(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Decode a slice; the first one of a picture opens it, the last one completes it."""
    assert engine.mode is not None
    image, state = cs.latched["MFX_AVC_IMG_STATE"], cs.latched["MFX_AVC_SLICE_STATE"]
    if not engine.mode.decoder_short_format_mode:
        raise Unsupported("slices in the short format: not yet simulated")
    layout = catalogue().layout(INLINE_DATA, cs.generation.number)
    inline = layout.raw(split(cmd.inline_data, layout.dwords))
    picture = engine.picture if isinstance(engine.picture, AvcVideoPicture) else open_avc(cs, engine, image)
    engine.picture = picture
    cs.collected()
    if cmd.indirect_bsd_data_length:  # without data it tells of macroblocks that are missing, which are concealed in the end
        data = bitstream(cs, cmd.indirect_bsd_data_length, cmd.indirect_bsd_data_start_address)
        _decode(cs, picture, image, state, inline, data)
    if inline.last_slice:
        engine.close(cs)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _shape(image: Record) -> PictureShape:
    if image.chroma_format_idc not in (MONOCHROME, CHROMA_420):
        raise Unsupported(f"chroma_format_idc {image.chroma_format_idc}: not yet simulated")
    if image.number_of_slice_groups:
        raise Unsupported("slice groups: not yet simulated")
    fields = 2 if image.field_picture else 1
    chroma = (1, 1) if image.chroma_format_idc == CHROMA_420 else None
    rows = image.frame_height + 1
    if (image.field_picture or image.mbaff_mode) and rows % 2:
        raise DecodeError(f"an interlaced frame of {rows} rows of macroblocks: their number must be even")
    return PictureShape(image.frame_width + 1, rows // fields, chroma, fields=fields)


def open_avc(cs: CommandStreamer, engine: VideoEngine, image: Record) -> AvcVideoPicture:
    """A picture of the latched state, before its first slice."""
    shape, bottom = _shape(image), image.image_structure == BOTTOM_FIELD
    layout = SurfaceLayout.INTERLEAVED_CHROMA if shape.chroma else SurfaceLayout.LUMA_ONLY
    opened = open_picture(cs, engine, shape, layout, bottom)
    picture = AvcVideoPicture(opened.record, opened.keep)
    add_references(picture, engine.frames, cs.latched["MFX_PIPE_BUF_ADDR_STATE"], shape, MOST_REFERENCES)
    mbs = np.zeros(shape.width * shape.height * MB_BYTES, np.uint8)
    decoder = ctypes.create_string_buffer(DECODER_BYTES)
    avc = picture.avc
    avc.picture, avc.mbs, avc.width, avc.height = ctypes.addressof(picture.record), mbs.ctypes.data, shape.width, shape.height
    avc.field, avc.bottom, avc.mbaff = image.field_picture, bottom, image.mbaff_mode and not image.field_picture
    avc.cabac, avc.transform8 = image.entropy_coding_sync_enable, image.idct_8x8_transform_mode
    avc.constrained_intra, avc.inference8 = image.constrained_intra_prediction, image.direct_8x8_inference
    avc.weighted, avc.weighted_b = image.weighted_prediction_enable, image.weighted_biprediction_idc
    avc.monochrome = shape.chroma is None
    avc.chroma_offset[:] = image.first_chroma_qp_offset, image.second_chroma_qp_offset
    _matrices(avc, engine.matrices)
    _direct(cs, picture, shape, bottom)
    picture.decoder = decoder
    picture.keep += [mbs]
    run_rows(cs, library().avc_open, avc)
    return picture


def _matrices(avc: AvcPicture, matrices: dict[int, bytes]) -> None:
    for kind in range(2):
        small = matrices.get(kind, FLAT)
        for plane in range(3):
            avc.matrix4[3 * kind + plane][:] = list(small[16 * plane : 16 * plane + 16])
        avc.matrix8[kind][:] = list(matrices.get(2 + kind, FLAT))


def _direct(cs: CommandStreamer, picture: AvcVideoPicture, shape: PictureShape, bottom: bool) -> None:
    """Order counts and ids of references, and where the picture's own motion goes: a bottom field's behind that of the top field."""
    avc, ids, state = picture.avc, cs.latched.get("MFD_AVC_PICID_STATE"), cs.latched.get("MFX_AVC_DIRECTMODE_STATE")
    named = ids is not None and not ids.pictureid_remapping_disable
    avc.ids[:] = [item.value for item in ids.picture_id] if ids is not None and named else range(MOST_REFERENCES)
    if state is None:
        return
    avc.poc[:] = [item.value for item in state.poc_list]
    size = shape.width * shape.height * MOTION_BYTES
    address = _motion_addresses(state)[MOST_REFERENCES]
    if address:
        picture.motion = np.zeros(size, np.uint8)
        avc.motion, picture.motion_address = picture.motion.ctypes.data, address + bottom * size


def _motion_addresses(state: Record) -> list[int]:
    """Motion buffers of the frame stores, then that of the picture. Pages with one buffer for each field name both by the first."""
    buffers = state.direct_mv_buffer
    own = state.direct_mv_buffer_write[0].address if "direct_mv_buffer_write" in state._fields else state.direct_mv_buffer_write_address
    return [item.address for item in buffers[:: len(buffers) // MOST_REFERENCES]] + [own]


# -- slices ------------------------------------------------------------------------------------------------------------


def _decode(cs: CommandStreamer, picture: AvcVideoPicture, image: Record, state: Record, inline: Record, data: bytes) -> None:
    payload = ctypes.create_string_buffer(len(data) + len(PADDING))
    slice = AvcSlice(ctypes.addressof(picture.avc), ctypes.addressof(payload))
    if inline.emulation_prevention_byte_present:
        payload.raw, slice.size = data + PADDING, len(data)
    else:
        slice.size = library().remove_emulation(payload, data, ctypes.c_uint64(len(data)))
        ctypes.memset(ctypes.addressof(payload) + slice.size, 0, len(PADDING))
    slice.start = 8 * inline.first_mb_byte_offset_of_slice_data_or_slice_header + inline.first_mb_bit_offset
    _parameters(slice, picture, state)
    _lists(cs, picture, image, slice)
    run_rows(cs, library().avc_decode, slice)


def slice_to_encode(cs: CommandStreamer, picture: AvcVideoPicture, image: Record, state: Record) -> AvcSlice:
    """A slice without data: an encoder writes it."""
    slice = AvcSlice(ctypes.addressof(picture.avc))
    _parameters(slice, picture, state)
    _lists(cs, picture, image, slice)
    return slice


def _parameters(slice: AvcSlice, picture: AvcVideoPicture, state: Record) -> None:
    """What MFX_AVC_SLICE_STATE says of a slice."""
    if state.slice_type not in (P_SLICE, B_SLICE, I_SLICE):
        raise Unsupported(f"slice_type {state.slice_type}: not yet simulated")
    slice.type, slice.decoder = state.slice_type, ctypes.addressof(picture.decoder)  # type: ignore[arg-type]
    slice.counts[:] = (state.number_of_reference_pictures_in_inter_prediction_list_0,
                       state.number_of_reference_pictures_in_inter_prediction_list_1)  # fmt: skip
    slice.weight_shift[:] = state.log2_weight_denominator_luma, state.log2_weight_denominator_chroma
    slice.spatial_direct, slice.filter = state.direct_prediction_type, state.disable_deblocking_filter_indicator
    slice.cabac_init, slice.qp = state.cabac_init_idc, state.slice_quantization_parameter
    slice.filter_alpha, slice.filter_beta = 2 * state.slice_alpha_c0_offset_div2, 2 * state.slice_beta_offset_div2
    slice.first_x, slice.first_y = state.slice_horizontal_position, state.slice_vertical_position
    _check(slice)


def _check(slice: AvcSlice) -> None:
    if slice.cabac_init > 2 or slice.qp > 51 or max(slice.counts) > 32:
        raise DecodeError(f"cabac_init_idc {slice.cabac_init}, QP {slice.qp} or {max(slice.counts)} references: one of them is too large")


def _lists(cs: CommandStreamer, picture: AvcVideoPicture, image: Record, slice: AvcSlice) -> None:
    """Reference lists and weights, and the motion of list 1's first picture."""
    lists = cs.latched.by_index("MFX_AVC_REF_IDX_STATE")
    weights = cs.latched.by_index("MFX_AVC_WEIGHTOFFSET_STATE")
    is_explicit = image.weighted_prediction_enable if slice.type == P_SLICE else image.weighted_biprediction_idc == EXPLICIT
    for number in range((1, LISTS, 0)[slice.type]):
        if number not in lists:
            raise DecodeError(f"no MFX_AVC_REF_IDX_STATE of list {number} came before")
        entries = bytes(item.value for item in lists[number].reference_list_entry)
        ctypes.memmove(slice.list[number], references(entries, bool(image.field_picture)), ctypes.sizeof(slice.list[number]))
        if is_explicit and number in weights:
            packed = b"".join(struct.pack("<6h", *item) for item in _in_order(weights[number]))
            ctypes.memmove(slice.weight[number], packed, ctypes.sizeof(slice.weight[number]))
    if slice.type == B_SLICE:
        _load_motion(cs, picture, slice.list[1][0].store)


def _in_order(weights: Record) -> list[tuple[int, ...]]:
    return [(item.luma_weight, item.luma_offset, item.cb_weight, item.cb_offset, item.cr_weight, item.cr_offset)
            for item in weights.reference]  # fmt: skip


@lru_cache(maxsize=256)
def references(entries: bytes, field: bool) -> bytes:
    """Entries of a reference list as struct avc_reference. Bit 7: unused; 6: long term; 4:1: frame store; 0: bottom field."""
    unused = struct.pack("4b", -1, 0, 0, 0)
    return b"".join(unused if entry & 0x80 else
                    struct.pack("4b", entry >> 1 & 15, (BOTTOM if entry & 1 else TOP) if field else WHOLE_FRAME, entry >> 6 & 1, 0)
                    for entry in entries)  # fmt: skip


def _load_motion(cs: CommandStreamer, picture: AvcVideoPicture, store: int) -> None:
    """Reads the motion of a reference, whatever part of it is mapped."""
    state, avc = cs.latched.get("MFX_AVC_DIRECTMODE_STATE"), picture.avc
    address = _motion_addresses(state)[store] if state is not None and store >= 0 else 0
    if not address or store in picture.collocated:
        return
    size = avc.width * avc.height * (2 if avc.field else 1) * MOTION_BYTES
    found = np.zeros(size, np.uint8)
    data = cs.space.read_mapped(address, size)
    found[: len(data)] = np.frombuffer(data, np.uint8)
    picture.collocated[store] = found
    avc.collocated[store] = found.ctypes.data

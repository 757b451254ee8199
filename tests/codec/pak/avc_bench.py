"""A GPU with memory for H.264 pictures of random macroblocks: batches that encode them, and batches that decode the result."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work
from tests.codec.pak.bit_writer import BitWriter
from tests.codec.pak.random_macroblocks import RandomMacroblocks

BATCH, VECTORS, SOURCE, STREAM, FRAMES, MOTION = 0x100000, 0x200000, 0x300000, 0x400000, 0x500000, 0x800000
ROOM, PITCH = 0x20000, 256
P_SLICE, B_SLICE, I_SLICE = range(3)
PIC_INIT_QP = 26
FRAME, TOP_FIELD, BOTTOM_FIELD = 0, 1, 3  # image_structure
INLINE_DATA = "INLINE_DATA_DESCRIPTION_FOR_MFD_AVC_BSD_OBJECT"
Bytes = npt.NDArray[np.uint8]


@dataclass
class Picture:
    """A picture to encode: `lists` name pictures by their number, which is that of their frame store; fields by twice the number, plus
    one for the bottom field. A field has the number of its frame."""

    type: int
    number: int
    order: int  # POC
    frame_num: int
    lists: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    is_reference: bool = True
    rows: tuple[int, ...] = (0,)  # at which slices begin
    headers: list[BitWriter] = field(default_factory=list)
    structure: int = FRAME  # image_structure

    @property
    def is_field(self) -> bool:
        return self.structure != FRAME

    @property
    def is_bottom(self) -> bool:
        return self.structure == BOTTOM_FIELD


class AvcBench:
    """Pictures of `width` by `height` macroblocks, in linear surfaces; `fields`: they may be fields."""

    def __init__(self, gpu: str, width: int, height: int, cabac: bool, transform8: bool, spatial: bool = True, fields: bool = False,
                 implicit: bool = False) -> None:  # fmt: skip
        self.device, self.width, self.height = device(gpu), width, height
        self.cabac, self.transform8, self.spatial, self.fields, self.implicit = cabac, transform8, spatial, fields, implicit
        self.gpu, self.space = GpuDevice(self.device), AddressSpace("pictures", self.device.generation.address_bits)
        for base, length in ((BATCH, ROOM), (VECTORS, ROOM), (SOURCE, ROOM), (STREAM, ROOM), (FRAMES, 8 * ROOM), (MOTION, 8 * ROOM)):
            self.space.map(base, MemfdBuffer(length))
        self.orders: dict[int, int] = {}  # of fields: twice the frame store, plus one for the bottom field
        self.frame_nums: dict[int, int] = {}

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.device.generation.number).pack(**values)

    def known(self, name: str, **values: Any) -> list[int]:
        found = layout(name, self.device.generation.number)
        names = {*(item.name for item in found.fields), *(item.name for item in found.groups)}
        return self.pack(name, **{key: value for key, value in values.items() if key in names})

    # -- memory -------------------------------------------------------------------------------------------------------

    def put(self, base: int, rows: Bytes, first: int = 0) -> None:
        for number, row in enumerate(rows):
            self.space.write(base + (first + number) * PITCH, row.tobytes())

    def frame(self, base: int) -> bytes:
        """NV12 without its padding."""
        rows = np.frombuffer(self.space.read(base, 24 * self.height * PITCH), np.uint8).reshape(-1, PITCH)
        return rows[:, : 16 * self.width].tobytes()

    # -- state --------------------------------------------------------------------------------------------------------

    def _state(self, picture: Picture, encode: bool) -> list[int]:
        surface = {"height": 16 * self.height - 1, "width": 16 * self.width - 1, "surface_format": 4, "interleave_chroma": 1,
                   "surface_pitch": PITCH - 1, "y_offset_for_u_cb": 16 * self.height, "y_offset_for_v_cr": 16 * self.height}  # fmt: skip
        target = FRAMES + picture.number % 8 * ROOM
        found = self.known("MFX_PIPE_MODE_SELECT", codec_select=encode, standard_select=2, decoder_short_format_mode=1,
                           post_deblocking_output_enable=1)  # fmt: skip
        found += self.pack("MFX_SURFACE_STATE", **surface)
        found += self.known("MFX_PIPE_BUF_ADDR_STATE", post_deblocking_destination_address=target,
                            original_uncompressed_picture_source_address=SOURCE,
                            reference_picture=[{"address": FRAMES + n % 8 * ROOM} for n in range(16)])  # fmt: skip
        found += self.known("MFX_IND_OBJ_BASE_ADDR_STATE", mfx_indirect_bitstream_object_address=STREAM,
                            mfx_indirect_mv_object_address=VECTORS, mfc_indirect_pak_bse_object_address=STREAM,
                            mfc_indirect_pak_bse_object_upper_bound=STREAM + ROOM)  # fmt: skip
        found += self.known("MFX_AVC_IMG_STATE", frame_height=self.height - 1, frame_width=self.width - 1,
                            first_chroma_qp_offset=2, second_chroma_qp_offset=-3, chroma_format_idc=1,
                            frame_mb_only=not self.fields, field_picture=picture.is_field, image_structure=picture.structure,
                            weighted_biprediction_idc=2 * self.implicit,
                            entropy_coding_sync_enable=self.cabac, direct_8x8_inference=1, idct_8x8_transform_mode=self.transform8,
                            non_reference_picture=not picture.is_reference)  # fmt: skip
        self.remember(picture)
        poc = [self.orders.get(n, 0) for n in (*range(32), 2 * picture.number, 2 * picture.number + 1)]
        found += self.known("MFX_AVC_DIRECTMODE_STATE", direct_mv_buffer=[{"address": MOTION + n % 8 * ROOM} for n in range(16)],
                            direct_mv_buffer_write_address=MOTION + picture.number % 8 * ROOM,
                            poc_list=[{"value": value} for value in poc])  # fmt: skip
        found += self.known("MFD_AVC_PICID_STATE", picture_id=[{"value": n} for n in range(16)])
        for number, entries in enumerate(picture.lists):
            if entries:
                packed = [{"value": entry << (not picture.is_field)} for entry in entries] + [{"value": 0x80}] * (32 - len(entries))
                found += self.pack("MFX_AVC_REF_IDX_STATE", reference_picture_list_select=number, reference_list_entry=packed)
        return found

    def remember(self, picture: Picture) -> None:
        """Order and frame_num of a picture, for those that refer to it, and for a field that refers to the other one of its frame."""
        self.frame_nums[picture.number] = picture.frame_num
        for parity in (picture.is_bottom,) if picture.is_field else (0, 1):
            self.orders[2 * picture.number + parity] = picture.order

    def _rows(self, picture: Picture) -> tuple[int, ...]:
        """Rows at which slices begin, and where the last one ends."""
        return (*picture.rows, self.height >> picture.is_field)

    def _slice(self, picture: Picture, index: int, qp: int, filter: int) -> list[int]:
        rows = self._rows(picture)
        return self.known("MFX_AVC_SLICE_STATE", slice_type=picture.type, slice_quantization_parameter=qp,
                          number_of_reference_pictures_in_inter_prediction_list_0=len(picture.lists[0]),
                          number_of_reference_pictures_in_inter_prediction_list_1=len(picture.lists[1]),
                          direct_prediction_type=self.spatial, disable_deblocking_filter_indicator=filter, slice_beta_offset_div2=1,
                          slice_alpha_c0_offset_div2=-1, cabac_init_idc=index % 3, slice_vertical_position=rows[index],
                          next_slice_vertical_position=rows[index + 1], last_slice_group=index + 2 == len(rows))  # fmt: skip

    def header(self, picture: Picture, index: int, qp: int, filter: int) -> BitWriter:
        """A slice's header from its NAL byte on."""
        idr = len(self.orders) == 2 - picture.is_field  # the first picture; another field of its frame is none
        w = BitWriter().u(8, (0x60 if picture.is_reference else 0) | (5 if idr else 1)).ue(picture.rows[index] * self.width)
        w.ue((0, 1, 2)[picture.type]).ue(0).u(4, picture.frame_num)
        if self.fields:
            w.u(1, picture.is_field)
        if picture.is_field:
            w.u(1, picture.is_bottom)
        if idr:
            w.ue(0)
        w.u(8, picture.order)
        if picture.type == B_SLICE:
            w.u(1, self.spatial)
        if picture.type != I_SLICE:
            w.u(1, 1).ue(len(picture.lists[0]) - 1)
        if picture.type == B_SLICE:
            w.ue(len(picture.lists[1]) - 1)
        for entries in picture.lists[: (1, 2, 0)[picture.type]]:
            w.text += self.modification(picture, entries) if self.fields else "0"
        if picture.is_reference:
            w.text += "00" if idr else "0"
        if self.cabac and picture.type != I_SLICE:
            w.ue(index % 3)
        w.se(qp - PIC_INIT_QP).ue(filter)
        if filter != 1:
            w.se(-1).se(1)
        return w

    def modification(self, picture: Picture, entries: tuple[int, ...]) -> str:
        """ref_pic_list_modification that makes a list of these entries, whatever its initial order is (7.3.3.1, 8.2.4.3)."""
        w = BitWriter().u(1, 1)
        field, before = picture.is_field, 2 * picture.frame_num + 1 if picture.is_field else picture.frame_num
        for entry in entries:
            number = self.frame_nums[entry >> field]
            if field:
                number = 2 * number + (entry & 1 == picture.is_bottom)
            change = (number - before) % (32 if field else 16) or (32 if field else 16)
            w.ue(1).ue(change - 1)  # modification_of_pic_nums_idc 1: added
            before = number
        return w.ue(3).text

    def _insert(self, bits: str, escape: bool) -> list[int]:
        data = int(bits.ljust(-(-len(bits) // 32) * 32, "0"), 2).to_bytes(-(-len(bits) // 32) * 4, "big")
        words = [{"value": word} for word in struct.unpack(f"<{len(data) // 4}I", data)]
        return self.pack("MFX_PAK_INSERT_OBJECT", data_bits_in_last_dw=len(bits) % 32 or 32, emulation_byte_bits_insert_enable=escape,
                         skip_emulation_byte_count=4 if escape else 0, insert_data_payload=words)  # fmt: skip

    # -- batches ------------------------------------------------------------------------------------------------------

    def run(self, dwords: list[int]) -> None:
        flush, end = self.pack("MI_FLUSH_DW"), self.pack("MI_BATCH_BUFFER_END")
        dwords = [*dwords, *flush, *end]
        self.space.write(BATCH, struct.pack(f"<{len(dwords)}I", *dwords))
        self.gpu.execute(Work("video", self.space, BATCH, context=1))

    def encode(self, picture: Picture, macroblocks: RandomMacroblocks) -> tuple[bytes, bytes]:
        """Stream and reconstruction of a picture."""
        self.space.write(STREAM, bytes(ROOM))
        vectors = b""
        dwords, rows = self._state(picture, True), self._rows(picture)
        for index, row in enumerate(picture.rows):
            qp, filter = 24 + 3 * index, index % 3
            header = self.header(picture, index, qp, filter)
            picture.headers.append(header)
            dwords += self._slice(picture, index, qp, filter)
            dwords += self._insert(f"{1:032b}" + header.text, True)
            for y in range(row, rows[index + 1]):
                for x in range(self.width):
                    last = x == self.width - 1 and y == rows[index + 1] - 1
                    inline, found = macroblocks.draw(picture.type, x, y, row, tuple(map(len, picture.lists)), last)
                    dwords += self.pack("MFC_AVC_PAK_OBJECT", indirect_pak_mv_data_length=len(found),
                                        indirect_pak_mv_data_start_address_offset=len(vectors),
                                        inline_data=[{"value": value} for value in inline])  # fmt: skip
                    vectors += found
        self.space.write(VECTORS, vectors)
        self.run(dwords)
        data = self.space.read(STREAM, ROOM).rstrip(b"\0")
        return data, self.frame(FRAMES + picture.number % 8 * ROOM)

    def decode(self, picture: Picture, stream: bytes) -> bytes:
        """The picture that the decoder makes of a stream that `encode` has written."""
        self.space.write(STREAM, stream)
        target = FRAMES + picture.number % 8 * ROOM
        for row in range(picture.is_bottom, 24 * self.height, 1 + picture.is_field):
            self.space.write(target + row * PITCH, bytes([77]) * PITCH)
        dwords = self._state(picture, False)
        starts = [at + 4 for at in range(len(stream)) if stream.startswith(b"\0\0\0\1", at)] + [len(stream) + 4]
        for index, (start, after) in enumerate(pairwise(starts)):
            bits = len(picture.headers[index].text)
            bits += -bits % 8 if self.cabac else 0
            inline = self.known(INLINE_DATA, first_mb_byte_offset_of_slice_data_or_slice_header=bits // 8,
                                first_mb_bit_offset=bits % 8, last_slice=after == starts[-1])  # fmt: skip
            dwords += self._slice(picture, index, 24 + 3 * index, index % 3)
            dwords += self.pack("MFD_AVC_BSD_OBJECT", indirect_bsd_data_length=after - 4 - start, indirect_bsd_data_start_address=start,
                                inline_data=int.from_bytes(struct.pack(f"<{len(inline)}I", *inline), "little"))  # fmt: skip
        self.run(dwords)
        return self.frame(target)

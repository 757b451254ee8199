"""MFC_MPEG2_PAK_OBJECT: random legal macroblocks, which our decoder and ffmpeg's decode to the reconstruction, bit for bit."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError
from tests.codec.pak.avc_bench import FRAMES, PITCH, ROOM, SOURCE, STREAM, AvcBench
from tests.codec.pak.test_avc_pak import put_source
from tests.codec.pak.test_vdenc import needs_ffmpeg

WIDTH, HEIGHT = 5, 3
INTRA, P, B = 1, 2, 3
F_CODE = 3
SLICE = re.compile(rb"\x00\x00\x01[\x01-\xaf]")
INLINE = "MFD_MPEG2_BSD_OBJECT_INLINE_DATA_DESCRIPTION"


@dataclass
class Mpeg2Picture:
    type: int
    number: int  # in coding order, which frame it is
    order: int
    forward: int = 0
    backward: int = 0
    state: dict[str, int] = field(default_factory=dict)


def bits(*fields: tuple[int, int]) -> bytes:
    text = "".join(f"{value:0{width}b}" for value, width in fields)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


class Mpeg2Bench(AvcBench):
    """Pictures of random macroblocks: batches that encode and decode them."""

    def __init__(self, gpu: str, seed: int) -> None:
        super().__init__(gpu, WIDTH, HEIGHT, False, False)
        self.random = random.Random(seed)

    def sequence(self) -> bytes:
        header = bits((16 * WIDTH, 12), (16 * HEIGHT, 12), (1, 4), (3, 4), (10000, 18), (1, 1), (100, 10), (0, 3))
        extension = bits((1, 4), (0x48, 8), (0, 1), (1, 2), (0, 2), (0, 2), (0, 12), (1, 1), (0, 8), (0, 1), (0, 2), (0, 5))
        return b"\0\0\1\xb3" + header + b"\0\0\1\xb5" + extension

    def headers(self, p: Mpeg2Picture) -> bytes:
        flags = [(p.state[name], 1) for name in ("frame_prediction_frame_dct", "concealment_mv", "quantizer_scale_type",
                                                 "intra_vlc_format", "scan_order")]  # fmt: skip
        codes = [(p.state[f"f_code_{direction}_{axis}"], 4) for direction in range(2) for axis in range(2)]
        picture = bits((p.order, 10), (p.type, 3), (0xFFFF, 16), *[(7, 4)] * (p.type - 1), (0, 1))
        coding = bits((8, 4), *codes, (p.state["intra_dc_precision"], 2), (3, 2), (0, 1), *flags, (0, 1), (1, 1), (1, 1), (0, 1))
        return b"\0\0\1\0" + picture + b"\0\0\1\xb5" + coding

    def common(self, p: Mpeg2Picture, encode: bool) -> list[int]:
        surface = {"height": 16 * HEIGHT - 1, "width": 16 * WIDTH - 1, "surface_format": 4, "interleave_chroma": 1,
                   "surface_pitch": PITCH - 1, "y_offset_for_u_cb": 16 * HEIGHT, "y_offset_for_v_cr": 16 * HEIGHT}  # fmt: skip
        references = [{"address": FRAMES + (p.backward if n & 1 else p.forward) * ROOM} for n in range(16)]
        found = self.known("MFX_PIPE_MODE_SELECT", codec_select=encode, standard_select=0, pre_deblocking_output_enable=1)
        found += self.pack("MFX_SURFACE_STATE", **surface)
        found += self.known("MFX_PIPE_BUF_ADDR_STATE", pre_deblocking_destination_address=FRAMES + p.number * ROOM,
                            original_uncompressed_picture_source_address=SOURCE, reference_picture=references)  # fmt: skip
        found += self.known("MFX_IND_OBJ_BASE_ADDR_STATE", mfx_indirect_bitstream_object_address=STREAM,
                            mfc_indirect_pak_bse_object_address=STREAM, mfc_indirect_pak_bse_object_upper_bound=STREAM + ROOM)  # fmt: skip
        return found + self.known("MFX_MPEG2_PIC_STATE", picture_structure=3, picture_coding_type=p.type, frame_height_in_mbs=HEIGHT - 1,
                                  frame_width_in_mbs=WIDTH - 1, slice_concealment_disable=1, round_intra_ac=3, round_inter_ac=2,
                                  round_inter_dc=1, **p.state)  # fmt: skip

    def macroblock(self, p: Mpeg2Picture, x: int, y: int, before: list[int]) -> list[int]:
        """Dwords 1, 3 and 5 on of an object: modes, pattern, vectors; sometimes those before, without coefficients."""
        r = self.random
        if p.type == P and r.random() < 0.3:
            return [1 << 8, r.choice((0, 63)) << 6, 0, 0]
        if p.type == B and before and x < WIDTH - 1 and r.random() < 0.4:
            return [*before[:1], 0, *before[2:]]
        if p.type == INTRA or r.random() < 0.2:
            return [1 << 13 | 26 << 8, 63 << 6, 0, 0]

        def component(mb: int, room: int) -> int:
            return r.randrange(max(-63, -32 * mb), min(63, 32 * room) + 1) & 0xFFFF

        # within the picture, also where the next macroblock repeats it
        vectors = [component(y, HEIGHT - 1 - y) << 16 | component(x, max(WIDTH - 2 - x, 0)) for _ in range(2)]
        return [r.choice((1, 2, 3) if p.type == B else (1,)) << 8, r.getrandbits(6) << 6, *vectors]

    def objects(self, p: Mpeg2Picture, amid: bool) -> list[list[int]]:
        """Slices begin with rows, and if so amid them, which ffmpeg does not take; quantisers change."""
        r, found, code, before, last_one = self.random, [], 6, list[int](), list[int]()
        for y in range(HEIGHT):
            starts = {0} | {x for x in range(WIDTH) if amid and r.random() < 0.3}
            for x in range(WIDTH):
                code = r.randrange(1, 32) if r.random() < 0.3 else code
                last_one, before = before, self.macroblock(p, x, y, [] if x in starts or before[2:] == last_one[2:] else before)
                last, group = x + 1 in starts or x == WIDTH - 1, x == WIDTH - 1 and y == HEIGHT - 1
                field = not p.state["frame_prediction_frame_dct"] and r.random() < 0.5
                place = last << 31 | (x in starts) << 30 | group << 26 | code
                found.append([before[0] | field << 15, 0, before[1], place, *before[2:], 0, 0])
        return found

    def encode_picture(self, p: Mpeg2Picture, objects: list[list[int]], **group: int) -> tuple[bytes, bytes]:
        self.space.write(STREAM, bytes(ROOM))
        dwords = self.common(p, True) + self.known("MFC_MPEG2_SLICEGROUP_STATE", **group)
        dwords += self._insert("".join(f"{byte:08b}" for byte in self.headers(p)), False)
        for item in objects:
            dwords += self.pack("MFC_MPEG2_PAK_OBJECT", inline_data=[{"value": value} for value in item])
        self.run(dwords)
        return self.space.read(STREAM, ROOM).rstrip(b"\0"), self.frame(FRAMES + p.number * ROOM)

    def decode_picture(self, p: Mpeg2Picture, stream: bytes) -> bytes:
        self.space.write(STREAM, stream + bytes(64))
        self.space.write(FRAMES + p.number * ROOM, bytes([77]) * (24 * HEIGHT * PITCH))
        dwords, starts = self.common(p, False), [found.start() for found in SLICE.finditer(stream)]
        for start, end in zip(starts, [*starts[1:], len(stream)], strict=True):
            inline = self.known(INLINE, slice_vertical_position=stream[start + 3] - 1, first_mb_bit_offset=6,
                                quantizer_scale_code=stream[start + 4] >> 3, last_pic_slice=end == len(stream))  # fmt: skip
            packed = int.from_bytes(struct.pack(f"<{len(inline)}I", *inline), "little")
            dwords += self.known("MFD_MPEG2_BSD_OBJECT", indirect_bsd_data_length=end - start - 4,
                                 indirect_bsd_data_start_address=start + 4, inline_data=packed)  # fmt: skip
        self.run(dwords)
        return self.frame(FRAMES + p.number * ROOM)


def state(number: int, type: int) -> dict[str, int]:
    forward, backward = F_CODE if type != INTRA else 15, F_CODE if type == B else 15
    return {"frame_prediction_frame_dct": number & 1, "concealment_mv": 0, "quantizer_scale_type": number >> 1 & 1,
            "intra_vlc_format": number & 1, "scan_order": number >> 1 & 1, "intra_dc_precision": number % 3, "f_code_0_0": forward,
            "f_code_0_1": forward, "f_code_1_0": backward, "f_code_1_1": backward}  # fmt: skip


def pictures(seed: int) -> list[Mpeg2Picture]:
    kinds = [(INTRA, 0, 0, 0), (P, 2, 0, 0), (B, 1, 0, 1), (P, 4, 1, 0), (B, 3, 1, 3)]
    return [Mpeg2Picture(type, number, order, forward, backward, state(number + seed, type))
            for number, (type, order, forward, backward) in enumerate(kinds)]  # fmt: skip


@needs_ffmpeg
@pytest.mark.parametrize(("gpu", "seed"), [("kbl", 0), ("ivb", 1)])
def test_decoders_make_the_reconstruction_of_random_macroblocks(gpu: str, seed: int, tmp_path: Path) -> None:
    bench = Mpeg2Bench(gpu, seed)
    stream, expected = bench.sequence(), {}
    for p in pictures(seed):
        put_source(bench, 10 * seed + p.number)
        data, reconstruction = bench.encode_picture(p, bench.objects(p, False))
        assert bench.decode_picture(p, data) == reconstruction
        stream += data
        expected[p.order] = reconstruction
    path = tmp_path / "stream.m2v"
    path.write_bytes(stream + b"\0\0\1\xb7")
    command = ["ffmpeg", "-v", "warning", "-nostdin", "-f", "mpegvideo", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "nv12", "-"]
    done = subprocess.run(command, check=True, capture_output=True)
    size = len(reconstruction)
    frames = [done.stdout[at : at + size] for at in range(0, len(done.stdout), size)]
    assert frames == [expected[order] for order in sorted(expected)]


def test_slices_begin_amid_rows() -> None:
    bench = Mpeg2Bench("hsw", 5)
    for p in pictures(1):
        put_source(bench, p.number)
        objects = bench.objects(p, True)
        data, reconstruction = bench.encode_picture(p, objects)
        assert len(SLICE.findall(data)) == sum(item[3] >> 30 & 1 for item in objects) > HEIGHT
        assert bench.decode_picture(p, data) == reconstruction


def test_reconstruction_is_near_a_finely_quantised_source() -> None:
    bench = Mpeg2Bench("bdw", 3)
    rows = np.add.outer(np.arange(24 * HEIGHT) * 3, np.arange(16 * WIDTH) * 2) % 200 + 20
    bench.put(SOURCE, rows.astype(np.uint8))
    p = pictures(0)[0]
    objects = [[1 << 13 | 26 << 8, 0, 63 << 6, (n % WIDTH == WIDTH - 1) << 31 | (n % WIDTH == 0) << 30 | (n == 14) << 26 | 1, 0, 0, 0, 0]
               for n in range(WIDTH * HEIGHT)]  # fmt: skip
    _, reconstruction = bench.encode_picture(p, objects)
    found = np.frombuffer(reconstruction, np.uint8).reshape(rows.shape)
    assert np.abs(found.astype(int) - rows).max() <= 6


FIRST = 1 << 30 | 1 << 26
ILLEGAL: list[tuple[int, list[int], str]] = [
    (INTRA, [1 << 8, 0, 0, FIRST | 5, 0, 0, 0, 0], "macroblock 0 has a type"),
    (P, [2 << 8, 0, 0, FIRST | 5, 0, 0, 0, 0], "macroblock 0 has a type"),
    (INTRA, [1 << 13 | 26 << 8, 0, 0, FIRST, 0, 0, 0, 0], "macroblock 0 has no quantiser"),
    (P, [1 << 8, 0, 0, FIRST | 5, 64, 0, 0, 0], "macroblock 0 has a vector beyond"),
    (P, [1 << 14 | 1 << 8, 0, 0, FIRST | 5, 0, 0, 0, 0], "macroblock 0 has a field DCT or field prediction"),
]


@pytest.mark.parametrize(("type", "inline", "message"), ILLEGAL)
def test_macroblocks_that_no_stream_has_are_refused(type: int, inline: list[int], message: str) -> None:
    bench = Mpeg2Bench("kbl", 0)
    with pytest.raises(SoftgenError, match=message):
        bench.encode_picture(Mpeg2Picture(type, 1, 0, state=state(1, type)), [inline])


def test_objects_beyond_the_picture_are_refused() -> None:
    bench, group = Mpeg2Bench("kbl", 0), {"first_mb_y_count": HEIGHT - 1, "first_mb_x_count": WIDTH - 1}
    intra: list[Any] = [[1 << 13 | 26 << 8, 0, 0, 1 << 30 | n << 26 | 5, 0, 0, 0, 0] for n in range(2)]
    with pytest.raises(SoftgenError, match="2 macroblocks from 14 on: the picture has 15"):
        bench.encode_picture(pictures(0)[0], intra, **group)

"""Modes of Gen4.5's video front end that get coefficients: IS, AVC-IT, AVC-MC, VC1-IT. Transforms are compared with plain ones of NumPy."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError
from tests.media.vfe.batch import GEN, Fields, Media, dump, media_object, pack, words

Array = npt.NDArray[np.int64]
BLOCK = 4  # registers


def unit(index: int, value: int, last: bool) -> int:
    return (value & 0xFFFF) << 16 | index << 1 | last


def units(coefficients: dict[int, int]) -> list[int]:
    """The coefficients of a block, by place."""
    places = sorted(coefficients)
    return [unit(place, coefficients[place], place == places[-1]) for place in places]


def random_block(chosen: random.Random, size: int, most: int = 300, first: int = 0) -> dict[int, int]:
    return {chosen.randrange(first, size): chosen.randint(-most, most) for _ in range(chosen.randrange(1, 8))}


def matrix(coefficients: dict[int, int], width: int, height: int) -> Array:
    made = np.zeros(width * height, np.int64)
    for place, value in coefficients.items():
        made[place] = value
    return made.reshape(height, width)


def words_of(ran: Any, thread: int, first: int, blocks: int) -> Array:
    found = np.frombuffer(ran.data(thread, first, BLOCK * blocks), np.int16).astype(np.int64)
    return found.reshape(blocks, 8, 8)


# -- IS --------------------------------------------------------------------------------------------------------------------


def scanned(dwords: Sequence[int], data: Sequence[int], **more: Any) -> Any:
    command = media_object(inline=dwords, indirect_data_length=4 * len(data), **more)
    return Media([command], mode="is", indirect=words(data), kernels=[dump(28)]).run()


@pytest.mark.behaviour("G45-IS-01", "G45-IS-02", "G45-IS-03", "G45-IS-04", "G45-IS-05", "G45-IS-06", "G45-IS-07", "G45-IS-08", "G45-IS-10",
                       "G45-IS-11", "G45-IS-13", "G45-VFE-04", shows="action")  # fmt: skip
def test_inverse_scan_places_coefficients_of_coded_blocks() -> None:
    """Blocks Y0, Y2 and Cr; index 8 is the first place of the second row, 63 the last, -32768 stays. Thirteen dwords of which only the
    pattern counts: all others, subblock codes too, are as they were."""
    inline = [0xFFFFFFFF, 0x12345678, 0xFFFFF03F | 0b101001 << 6, *range(3, 13)]
    blocks = [{0: -32768, 8: 5, 63: 32767}, {1: 1}, {17: -7, 62: 9}]
    ran = scanned(inline, [value for block in blocks for value in units(block)])
    assert ran.registers(0, 1, 2) == (*inline, 0, 0, 0)
    assert np.array_equal(words_of(ran, 0, 3, 3), [matrix(block, 8, 8) for block in blocks])
    assert ran.gpu.counters.threads == 1 and not ran.warnings


@pytest.mark.behaviour("G45-IS-09", "G45-IS-12", shows="action")
def test_inverse_scan_takes_descriptors_as_generic_mode_and_remarks_odd_addresses() -> None:
    ran = scanned([0, 0, 1 << 11, *[0] * 7], units({3: 3}), interface_descriptor_offset=9, indirect_data_start_address=0)
    assert ran.header(0).interface_descriptor_pointer == 0x100 + 9 * 16
    told = Media([media_object(inline=[0] * 10, indirect_data_length=6, indirect_data_start_address=2)], mode="is").run().warnings
    assert told == ["6 bytes of indirect data are no multiple of 4", "indirect data at 0x2 should begin at a multiple of 4"]


def test_inverse_scan_refuses_what_is_too_short() -> None:
    with pytest.raises(DecodeError, match="9 dwords of inline data in IS mode, there must be 10"):
        scanned([0] * 9, [])
    with pytest.raises(DecodeError, match="the coefficients end inside a block"):
        scanned([0, 0, 3 << 10, *[0] * 7], units({3: 3}))


# -- AVC-IT ----------------------------------------------------------------------------------------------------------------

FOUR = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])


def butterfly_4(x: Array) -> Array:
    """H.264 8.5.12.2, of the last axis."""
    a, b, c, d = np.moveaxis(x, -1, 0)
    e, f, g, h = a + c, a - c, (b >> 1) - d, b + (d >> 1)
    return np.stack([e + h, f + g, f - g, e - h], -1)


def butterfly_8(x: Array) -> Array:
    """H.264 8.5.13.2, of the last axis."""
    w = np.moveaxis(x, -1, 0)
    e = [w[0] + w[4], -w[3] + w[5] - w[7] - (w[7] >> 1), w[0] - w[4], w[1] + w[7] - w[3] - (w[3] >> 1), (w[2] >> 1) - w[6],
         -w[1] + w[7] + w[5] + (w[5] >> 1), w[2] + (w[6] >> 1), w[3] + w[5] + w[1] + (w[1] >> 1)]  # fmt: skip
    f = [e[0] + e[6], e[1] + (e[7] >> 2), e[2] + e[4], e[3] + (e[5] >> 2), e[2] - e[4], (e[3] >> 2) - e[5], e[0] - e[6], e[7] - (e[1] >> 2)]
    return np.stack([f[0] + f[7], f[2] + f[5], f[4] + f[3], f[6] + f[1], f[6] - f[1], f[4] - f[3], f[2] - f[5], f[0] - f[7]], -1)


def inverse(block: Array) -> Array:
    """Rows, then columns, rounded."""
    turn = butterfly_4 if block.shape[0] == 4 else butterfly_8
    return turn(turn(block).T).T + 32 >> 6


def avc_inline(**fields: Any) -> list[int]:
    return list(layout("MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA", GEN).pack(**fields))


def avc(inline: Sequence[int], data: Sequence[int], mode: str = "avc-it", count: int = 34, curbe: bytes = b"", **control: Any) -> Any:
    command = media_object("MEDIA_OBJECT_EX", inline=inline, indirect_data_length=4 * len(data))
    state = {"indirect_sub_field_present": 0, **control}
    descriptor = {"constant_urb_entry_read_length": len(curbe) // 32} if curbe else {}
    return Media([command], mode=mode, extension=("VFE_STATE_EX", state), indirect=words(data), kernels=[dump(count)], curbe=curbe,
                 descriptor=descriptor).run()  # fmt: skip


@pytest.mark.behaviour("G45-AIT-12", "G45-AIT-13", "G45-AIT-14", "G45-AIT-15", "G45-AIT-11", "G45-AIT-01", "G45-AIT-02", "G45-AIT-03",
                       shows="action")  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_residuals_of_4x4_blocks(seed: int) -> None:
    """Random patterns of all three planes, of an intra macroblock: residuals follow the inline data, whatever offset the state has."""
    chosen = random.Random(seed)
    pattern, cb, cr = chosen.randrange(1 << 16), chosen.randrange(16), chosen.randrange(16)
    data, expected = [], np.zeros((6, 8, 8), np.int64)
    for plane, bits, count in ((0, pattern, 16), (4, cb, 4), (5, cr, 4)):
        for number in range(count):
            if bits >> (count - 1 - number) & 1:
                block = random_block(chosen, 16)
                data += units(block)
                y, x = 4 * (number >> 1 & 1), 4 * (number & 1)
                expected[plane + (number >> 2), y : y + 4, x : x + 4] = inverse(matrix(block, 4, 4))
    inline = avc_inline(intra_macroblock=1, coded_block_pattern_y=pattern, coded_block_pattern_cb=cb, coded_block_pattern_cr=cr)
    ran = avc(inline, data)
    assert np.array_equal(words_of(ran, 0, 2, 6), expected) and not ran.warnings


@pytest.mark.behaviour("G45-AIT-14", "G45-AIT-13", shows="action")
def test_residuals_of_8x8_blocks() -> None:
    chosen = random.Random(8)
    blocks = [random_block(chosen, 64) for _ in range(3)]
    inline = avc_inline(intra_macroblock=1, transform_8x8=1, coded_block_pattern_y=0xF0FF)
    found = words_of(avc(inline, [value for block in blocks for value in units(block)]), 0, 2, 6)
    assert not found[1].any() and not found[4:].any()
    assert np.array_equal(found[[0, 2, 3]], [inverse(matrix(block, 8, 8)) for block in blocks])


@pytest.mark.behaviour("G45-AIT-04", "G45-AIT-14", "G45-AIT-13", shows="action")
@pytest.mark.parametrize("qp", [10, 23, 40])
def test_dc_blocks_are_transformed_and_scaled(qp: int) -> None:
    """Of luma and of both chroma planes, each with a scale and a quantiser of its own; one luma block has other coefficients too."""
    chosen = random.Random(qp)
    luma, cb, cr = (random_block(chosen, size, 60) for size in (16, 4, 4))
    rest = random_block(chosen, 16, 90, 1)
    inline = avc_inline(intra_macroblock=1, macroblock_type=1, dc_block_coded_y=1, dc_block_coded_cb=1, dc_block_coded_cr=1,
                        coded_block_pattern_y=0x0400, qp_prime_y=qp, qp_prime_cb=qp + 3, qp_prime_cr=qp + 7, level_scale_y=160,
                        level_scale_cb=208, level_scale_cr=176)  # fmt: skip
    ran = avc(inline, [*units(luma), *units(rest), *units(cb), *units(cr)])
    hadamard = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
    dc = hadamard @ matrix(luma, 4, 4) @ hadamard * 160
    dc = dc << qp // 6 - 6 if qp >= 36 else (dc + (1 << 5 - qp // 6)) >> 6 - qp // 6
    expected = np.zeros((6, 8, 8), np.int64)
    for number in range(16):
        block = matrix(rest if number == 5 else {}, 4, 4)
        row, column = 2 * (number >> 3) + (number >> 1 & 1), 2 * (number >> 2 & 1) + (number & 1)
        block[0, 0] = dc[row, column]
        y, x = 4 * (number >> 1 & 1), 4 * (number & 1)
        expected[number >> 2, y : y + 4, x : x + 4] = inverse(block)
    for plane, held, at, scale in ((4, cb, qp + 3, 208), (5, cr, qp + 7, 176)):
        two = np.array([[1, 1], [1, -1]])
        chroma = ((two @ matrix(held, 2, 2) @ two * scale) << at // 6) >> 5
        for number in range(4):
            block = np.zeros((4, 4), np.int64)
            block[0, 0] = chroma[number >> 1, number & 1]
            y, x = 4 * (number >> 1), 4 * (number & 1)
            expected[plane, y : y + 4, x : x + 4] = inverse(block)
    assert np.array_equal(words_of(ran, 0, 2, 6), expected.astype(np.int16))


@pytest.mark.behaviour("G45-AIT-17", "G45-AIT-18", "G45-AIT-19", "G45-AIT-28", "G45-AIT-25", "G45-AIT-26", shows="action")
def test_what_threads_get_of_the_inline_data() -> None:
    """A pattern of 8x8 blocks in place of quantisers, no scales, no size of vectors and no flags of DC blocks; behind two registers of
    constants."""
    inline = avc_inline(mbaff_field_flag=3, field_mb_polarity_flag=1, intra_macroblock=1, macroblock_type=9, dc_block_coded_cb=1,
                        coded_block_pattern_y=0x0830, vertical_origin=17, horizontal_origin=200, qp_prime_y=20, qp_prime_cb=21,
                        coded_block_pattern_cr=4, chroma_intra_prediction_mode=2, intra_available_d=1, level_scale_y=7, level_scale_cb=9,
                        luma_intra_prediction_modes=[{"modes": n} for n in (11, 22, 33, 44)])  # fmt: skip
    data = [*units({0: 64}), *units({0: 64}), *units({0: 64}), *units({0: 1}), *units({1: 5})]
    curbe = words(range(700, 716))
    ran = avc(inline, data, curbe=curbe)
    assert ran.registers(0, 1, 2) == tuple(range(700, 716))
    got = ran.registers(0, 3)
    held = layout("MEDIA_AVC_MACROBLOCK", GEN).raw(list(got))
    assert got[0] == inline[0] & ~(0x3F << 17) and got[0] >> 24 & 7 == 7 and got[1] == inline[1] and got[3:6] == tuple(inline[3:6])
    assert held.coded_block_pattern == 0b011011 and (held.coded_block_pattern_cr, held.coded_block_pattern_cb) == (4, 0)
    assert got[2] >> 14 == 0 and got[6:] == (0, 0)


@pytest.mark.behaviour("G45-AIT-05", "G45-AIT-06", "G45-AIT-07", "G45-AIT-08", "G45-AIT-09", "G45-AIT-10", "G45-AIT-11", "G45-AIT-29",
                       shows="action")  # fmt: skip
@pytest.mark.covering(2)
@pytest.mark.parametrize(("size", "vectors", "weights"), [(0, 0, 0), (2, 4, 4), (4, 8, 16), (5, 16, 16), (6, 32, 16)])
@pytest.mark.parametrize("present", [0, 1, 3])
@pytest.mark.parametrize("fixed", [0, 1])
def test_vectors_weights_and_residuals_have_places(size: int, vectors: int, weights: int, present: int, fixed: int) -> None:
    """Weights four registers behind the first vector, residuals seven. In memory residuals follow on the next eight dwords, or at 64."""
    vectors, weights = vectors * (present > 0), weights * (present == 3)
    head = [*range(1000, 1000 + vectors), *range(2000, 2000 + weights)]
    head += [0xDEAD] * ((64 if fixed else -(-len(head) // 8) * 8) - len(head))
    inline = avc_inline(mv_size=size, macroblock_type=22, coded_block_pattern_y=0x8000)
    offsets: Fields = {"inter_weight_offset_grf_destination_offset": 4, "inter_residual_data_grf_destination_offset": 7} if present else {}
    source: Fields = {"residual_data_fixed_source_offset": 1, "residual_data_source_offset": 64} if fixed else {}
    ran = avc(inline, [*head, *units({0: 640})], count=36, indirect_sub_field_present=present, **offsets, **source)
    start = 2 + (7 if present and size else 0)
    assert words_of(ran, 0, start, 6)[0, :4, :4].tolist() == [[10] * 4] * 4 and not words_of(ran, 0, start, 6)[1:].any()
    if size and present:
        assert ran.registers(0, 2, 4)[:vectors] == tuple(range(1000, 1000 + vectors))
        assert not any(ran.registers(0, 2, 2)[vectors:])
    if size and weights:
        assert ran.registers(0, 6, 2)[:weights] == tuple(range(2000, 2000 + weights)) and not any(ran.registers(0, 6, 2)[weights:])


@pytest.mark.behaviour("G45-AIT-24", shows="action")
def test_implicit_weights_are_passed_on_as_they_are() -> None:
    weights = [0xFFFF0040, 0x0080FF80, 5, 6]
    inline = avc_inline(mv_size=2, weighted_biprediction=2)
    ran = avc(inline, [1, 2, 3, 4, *weights], indirect_sub_field_present=3, inter_weight_offset_grf_destination_offset=2,
              inter_residual_data_grf_destination_offset=4)  # fmt: skip
    assert ran.registers(0, 4)[:4] == tuple(weights)


@pytest.mark.behaviour("G45-AIT-16", shows="action")
def test_samples_of_pcm_macroblocks_are_passed_on() -> None:
    samples = random.Random(3).randbytes(384)
    inline = avc_inline(intra_macroblock=1, macroblock_type=25, coded_block_pattern_y=0xFFFF)
    ran = avc(inline, struct.unpack("<96I", samples))
    assert ran.data(0, 2, 12) == samples


@pytest.mark.parametrize(("fields", "control", "text"), [
    ({"mv_size": 3}, {}, "mv_size 3 is reserved"), ({}, {"indirect_sub_field_present": 2}, "indirect_sub_field_present 2 is reserved"),
    ({"coded_block_pattern_y": 1}, {}, r"the coefficients end inside a block \(unit 0 of 0\)")])  # fmt: skip
def test_avc_macroblocks_that_are_wrong(fields: Any, control: Any, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        avc(avc_inline(**fields), [], **control)


def test_an_index_outside_of_its_block_is_an_error() -> None:
    with pytest.raises(DecodeError, match="index is outside of its block"):
        avc(avc_inline(coded_block_pattern_y=1), [unit(16, 1, True)])
    with pytest.raises(DecodeError, match="AVC modes need VFE_STATE_EX"):
        Media([media_object("MEDIA_OBJECT_EX", inline=[0] * 8)], mode="avc-it").run()


# -- AVC-MC ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-AMC-01", "G45-AMC-02", "G45-AMC-03", "G45-AMC-04", "G45-AMC-06", shows="action")
def test_motion_compensation_mode_only_arranges() -> None:
    """Blocks Y0, Y3 and Cr of pixels at dword 32; absent ones are zeros. Dword 2 stays, of dword 0 the size of vectors goes."""
    samples = np.arange(3 * 64, dtype=np.int16) - 90
    inline = list(pack("MEDIA_AVC_MACROBLOCK", mv_size=4, macroblock_type=22, coded_block_pattern=0b100101, coded_block_pattern_cr=3,
                       vertical_origin=3, horizontal_origin=5))  # fmt: skip
    inline[0] |= 1 << 17
    data = [*range(1000, 1008), *[0xDEAD] * 24, *struct.unpack("<96I", samples.tobytes())]
    ran = avc(inline, data, "avc-mc", indirect_sub_field_present=1, residual_data_fixed_source_offset=1, residual_data_source_offset=32,
              inter_residual_data_grf_destination_offset=4, inter_weight_offset_grf_destination_offset=2)  # fmt: skip
    assert ran.registers(0, 1) == (inline[0] & ~(0x3F << 17), *inline[1:]) and ran.registers(0, 2) == tuple(range(1000, 1008))
    found, whole = words_of(ran, 0, 6, 6), samples.reshape(3, 8, 8)
    assert np.array_equal(found[[0, 3, 5]], whole) and not found[[1, 2, 4]].any() and not ran.warnings


@pytest.mark.behaviour("G45-AMC-05", "G45-AMC-02", shows="action")
def test_motion_compensation_mode_remarks_on_lengths_and_on_residuals_without_offset() -> None:
    inline = list(pack("MEDIA_AVC_MACROBLOCK"))
    assert avc(inline, [0] * 12, "avc-mc").warnings == [
        "48 bytes of indirect data are no multiple of 32",
        "VFE_STATE_EX: residual_data_fixed_source_offset must be 1 in AVC-MC mode (G45 9511)"]


# -- VC1-IT ----------------------------------------------------------------------------------------------------------------

EIGHT_VC1 = np.array([[12, 12, 12, 12, 12, 12, 12, 12], [16, 15, 9, 4, -4, -9, -15, -16], [16, 6, -6, -16, -16, -6, 6, 16],
                      [15, -4, -16, -9, 9, 16, 4, -15], [12, -12, -12, 12, 12, -12, -12, 12], [9, -16, 4, 15, -15, -4, 16, -9],
                      [6, -16, 16, -6, -6, 16, -16, 6], [4, -9, 15, -16, 16, -15, 9, -4]])  # fmt: skip
FOUR_VC1 = np.array([[17, 17, 17, 17], [22, 10, -10, -22], [17, -17, -17, 17], [10, -22, 22, -10]])


def vc1_inverse(block: Array) -> Array:
    height, width = block.shape
    across, down = ({8: EIGHT_VC1, 4: FOUR_VC1}[size] for size in (width, height))
    lower = np.array([[int(height == 8 and y >= 4)] for y in range(height)])
    found: Array = down.T @ (block @ across + 4 >> 3) + lower + 64 >> 7
    return found


def vc1_inline(codes: Sequence[int] = (4,) * 6, **fields: Any) -> list[int]:
    names = ("y0", "y1", "y2", "y3", "cb", "cr")
    subblocks = {f"subblock_coding_{name}": code for name, code in zip(names, codes, strict=True)}
    return list(layout("MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA", GEN).pack(**subblocks, **fields))


def vc1(*macroblocks: tuple[Sequence[int], Sequence[int]]) -> Any:
    data = words([value for _, coefficients in macroblocks for value in coefficients])
    commands, at = [], 0
    for inline, coefficients in macroblocks:
        size = 4 * len(coefficients)
        commands.append(media_object("MEDIA_OBJECT_EX", inline=inline, indirect_data_length=size, indirect_data_start_address=at))
        at += size
    return Media(commands, mode="vc1-it", indirect=data, kernels=[dump(28)]).run()


@pytest.mark.behaviour("G45-VIT-01", "G45-VIT-02", "G45-VIT-03", "G45-VIT-04", "G45-VIT-05", "G45-VIT-11", "G45-VIT-12", "G45-VIT-16",
                       shows="action")  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_partitions_of_vc1_blocks(seed: int) -> None:
    """All four partitionings with random parts present; one block is not coded. Nine dwords of inline data are two registers."""
    chosen = random.Random(seed)
    codes = [partition | chosen.randrange(1, 16) << 2 for partition in (0, 1, 2, 3, 1, 3)]
    codes[0] |= 4
    data, expected = [], np.zeros((6, 8, 8), np.int64)
    for number, code in enumerate(codes):
        width, height = {0: (8, 8), 1: (8, 4), 2: (4, 8), 3: (4, 4)}[code & 3]
        for part in range(64 // (width * height)):
            if code >> (2 + part) & 1 and number != 4:
                block = random_block(chosen, width * height, 200)
                data += units(block)
                y, x = (height * part, 0) if width == 8 else (0, width * part) if height == 8 else (4 * (part >> 1), 4 * (part & 1))
                expected[number, y : y + height, x : x + width] = vc1_inverse(matrix(block, width, height))
    inline = vc1_inline(codes, coded_block_pattern=0b111101, motion_forward=1, vertical_origin=9, last_row=1, mv_switch=1)
    ran = vc1((inline, data))
    assert ran.registers(0, 1, 2) == (*inline, *[0] * 7)
    assert np.array_equal(words_of(ran, 0, 3, 6), expected) and not ran.warnings


def smoothed(left: Array, right: Array) -> tuple[Array, Array]:
    """SMPTE 421M 8.5: rounded up and down by turns from row to row."""
    r = np.array([4, 3] * 4)
    a, b, c, d = left[:, 6], left[:, 7], right[:, 0], right[:, 1]
    left, right = left.copy(), right.copy()
    left[:, 6], left[:, 7] = 7 * a + d + r >> 3, -a + 7 * b + c + d + 7 - r >> 3
    right[:, 0], right[:, 1] = a + b + 7 * c - d + r >> 3, a + 7 * d + 7 - r >> 3
    return left, right


@pytest.mark.behaviour("G45-VIT-06", "G45-VIT-07", "G45-VIT-08", "G45-VFE-25", "G45-VIT-17", shows="action")
@pytest.mark.parametrize("flush", [False, True])
def test_overlap_smoothing_finishes_the_macroblock_before(flush: bool) -> None:
    """Two macroblocks beside each other, with all left edges but that of Y3 in the second. Top edges and the last row are the kernel's.
    After a change of state nothing is left of the first."""
    chosen = random.Random(5)
    blocks = [[random_block(chosen, 64, 500) for _ in range(6)] for _ in range(2)]
    plain = np.array([[vc1_inverse(matrix(block, 8, 8)) for block in macroblock] for macroblock in blocks])
    common: Fields = {"coded_block_pattern": 63, "intra_macroblock": 1, "overlap_transform": 1, "vertical_origin": 2, "last_row": 1}
    first = vc1_inline(horizontal_origin=4, overlap_edge_mask_luma=0xAF, overlap_edge_mask_chroma=1, **common)
    second = vc1_inline(horizontal_origin=5, overlap_edge_mask_luma=0x7F, overlap_edge_mask_chroma=3, **common)
    if flush:
        data = words([value for macroblock in blocks for block in macroblock for value in units(block)])
        sizes = [sum(4 * len(units(block)) for block in macroblock) for macroblock in blocks]
        state = [pack("MI_FLUSH"), Media([], extension=None).state_pointers()]
        ran = Media([media_object("MEDIA_OBJECT_EX", inline=first, indirect_data_length=sizes[0]), *state,
                     media_object("MEDIA_OBJECT_EX", inline=second, indirect_data_length=sizes[1], indirect_data_start_address=sizes[0])],
                    mode="vc1-it", indirect=data, kernels=[dump(28)]).run()  # fmt: skip
    else:
        ran = vc1(*((inline, [value for block in macroblock for value in units(block)])
                    for inline, macroblock in zip((first, second), blocks, strict=True)))  # fmt: skip
    one, two = plain[0].copy(), plain[1].copy()
    one[0], one[1] = smoothed(one[0], one[1])  # Y1's left edge
    one[2], one[3] = smoothed(one[2], one[3])
    if not flush:
        for left, right in ((1, 0), (3, 2), (4, 4), (5, 5)):
            one[left], two[right] = smoothed(one[left], two[right])
    two[0], two[1] = smoothed(two[0], two[1])
    assert np.array_equal(words_of(ran, 0, 3, 6), one) and np.array_equal(words_of(ran, 1, 3, 6), two)
    assert ran.gpu.counters.threads == 2 and not ran.warnings


@pytest.mark.behaviour("G45-VIT-09", "G45-VIT-10", shows="action")
def test_vc1_macroblocks_out_of_order_and_intra_blocks_without_coefficients_are_remarked() -> None:
    inlines = [vc1_inline((0,) * 6, overlap_transform=1, horizontal_origin=x, vertical_origin=1) for x in (3, 5)]
    assert vc1(*((inline, []) for inline in inlines)).warnings == [
        "macroblock (5, 1) after (3, 1): with overlap smoothing they come in raster order (G45 9062)"]
    intra = vc1_inline((0,) * 6, intra_macroblock=1, coded_block_pattern=0)
    assert vc1((intra, [])).warnings == ["an intra macroblock must have coded_block_pattern 0x3f, not 0x0 (G45 10920)"]

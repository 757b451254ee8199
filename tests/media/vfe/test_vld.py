"""VLD mode of Gen4.5's video front end: slices of MPEG-2 as macroblock threads."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError
from softgen.media.vfe.state import REMAPPED
from tests.codec.mpeg2_writer import COEFFICIENTS
from tests.media.vfe.batch import DESCRIPTORS, END, EXTENSION, GEN, GENERAL, Media, dump, media_object, words
from tests.media.vfe.slices import BOTTOM, FRAME, INTRA, INTRA_COEFFICIENTS, TOP, B, P, Slice, decoded, slice_object

ZIGZAG = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24]
ALTERNATE = [0, 8, 16, 24, 1, 9, 2, 10, 17, 25]


def record(ran: Any, thread: int) -> Any:
    return layout("MEDIA_VLD_MACROBLOCK", GEN).raw(ran.registers(thread, 1))


def vectors(ran: Any, thread: int) -> list[tuple[int, int]]:
    """[r][s] in the order 00, 01, 10, 11."""
    found = struct.unpack("<8h", ran.data(thread, 1)[16:])
    return list(zip(found[::2], found[1::2], strict=True))


def block(ran: Any, thread: int, number: int) -> tuple[int, ...]:
    return struct.unpack("<64h", ran.data(thread, 2 + 4 * number, 4))


def raster(**values: int) -> tuple[int, ...]:
    made = [0] * 64
    for place, value in values.items():
        made[int(place[1:])] = value
    return tuple(made)


def index(ran: Any, thread: int) -> int:
    """The macroblock's index: here remap tables leave it as it is."""
    return int(ran.header(thread).interface_descriptor_pointer - DESCRIPTORS) // 16


# -- slices ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-01", "G45-VLD-18", "G45-VLD-15", "G45-VLD-16", "G45-VLD-17", "G45-VLD-02", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_each_macroblock_of_a_slice_is_a_thread(engine: str) -> None:
    """From the sixth bit on, of a picture's third row; levels as they are in the stream, row by row; bytes behind count for nothing."""
    made = Slice(INTRA).begin("intra").intra_block(100, (0, 2), (1, -3)).intra_block(-20).intra_block(7, (2, 40)).intra_block(0)
    made.intra_block(5, chroma=True).intra_block(-9, (0, -1), chroma=True)
    made.begin("intra").grey()
    data = made.data(5) + b"\0\0\1\xb3rest"
    state = {"picture_coding_type": INTRA, "picture_structure": FRAME, "frame_prediction_frame_dct": 1, "intra_dc_precision": 2,
             "quantizer_scale_type": 1}  # fmt: skip
    media = Media([slice_object(data, x=3, y=2, quantiser=17, offset=5)], kernels=[dump(26)], mode="vld", extension=("VLD_STATE", state),
                  indirect=data)  # fmt: skip
    ran = media.run(engine)
    assert ran.gpu.counters.threads == 2 and ran.gpu.counters.dispatches == 1 and not ran.warnings
    first, second = record(ran, 0), record(ran, 1)
    assert (first.horizontal_origin, first.vertical_origin, second.horizontal_origin) == (3, 2, 4)
    assert (first.macroblock_intra_type, first.coded_block_pattern) == (1, 63)
    assert (first.picture_coding_type, first.picture_structure) == (INTRA, FRAME)
    assert (first.intra_dc_precision, first.quantizer_scale_type, first.quantizer_scale_code, first.disable_mismatch) == (2, 1, 17, 0)
    assert block(ran, 0, 0) == raster(_0=100, _1=2, _16=-3) and block(ran, 0, 1) == raster(_0=80)
    assert block(ran, 0, 2) == raster(_0=87, _16=40) and block(ran, 0, 4) == raster(_0=5) and block(ran, 0, 5) == raster(_0=-9, _1=-1)
    assert block(ran, 1, 3) == raster(_0=87) and block(ran, 1, 5) == raster(_0=-9)
    assert ran.registers(0, 1)[0] == 2 << 24 | 1 << 16 and ran.registers(0, 1, 1)[4:] == (0, 0, 0, 0)


@pytest.mark.behaviour("G45-VLD-19", shows="action")
def test_a_slice_ends_after_its_number_of_macroblocks() -> None:
    """Skipped ones count."""
    made = Slice(INTRA)
    for _ in range(5):
        made.begin("intra").grey()
    data = made.data()
    assert decoded(made, [slice_object(data, count=3)]).gpu.counters.threads == 3
    made = Slice(P).begin("forward").vector(0, 0).begin("forward", increment=6).vector(0, 0)
    assert decoded(made, [slice_object(made.data(), count=4)]).gpu.counters.threads == 4


@pytest.mark.behaviour("G45-VFE-19", shows="action")
def test_the_debug_counter_steps_for_each_macroblock() -> None:
    """Through two slices, from the number of the first object on."""
    made = Slice(INTRA).begin("intra").grey().begin("intra").grey()
    data = made.data()
    objects = [slice_object(data, object_id=5), slice_object(data, y=1, object_id=9)]
    ran = decoded(made, objects, vfe={"debug_counter_control": 2})
    assert [record(ran, n).vertical_origin for n in range(5, 9)] == [0, 0, 1, 1]
    assert [ran.header(n).thread_count for n in range(5, 9)] == [5, 6, 7, 8]


@pytest.mark.behaviour("G45-VLD-05", shows="action")
def test_macroblocks_change_the_quantiser() -> None:
    made = Slice(INTRA).begin("intra").grey().begin("intra quant").put(23, 5).grey().begin("intra").grey()
    ran = decoded(made, [slice_object(made.data(), quantiser=4)])
    assert [record(ran, n).quantizer_scale_code for n in range(3)] == [4, 23, 23]


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-15", "G45-VLD-03", "G45-VLD-26", shows="action")
@pytest.mark.parametrize(("scan", "order"), [(0, ZIGZAG), (1, ALTERNATE)])
@pytest.mark.parametrize("format", [0, 1])
def test_scans_and_both_tables_of_intra_coefficients(scan: int, order: list[int], format: int) -> None:
    """Ten random coefficients a block, escapes among them, in six blocks."""
    chosen = random.Random(scan + 2 * format)
    made, expected = Slice(INTRA).begin("intra"), []
    for number in range(6):
        pairs = [(0, chosen.choice((1, -1, 2, 7, -15, 40, 300, -2047))) for _ in range(9)]
        made.intra_block(3, *pairs, chroma=number > 3, format=format)
        expected.append([level for _, level in pairs])
    ran = decoded(made, scan_order=scan, intra_vlc_format=format)
    assert [[block(ran, 0, number)[place] for place in order[1:]] for number in range(6)] == expected and not ran.warnings


@pytest.mark.behaviour("G45-VLD-26", "G45-VLD-03", shows="action")
@pytest.mark.parametrize("format", [0, 1])
def test_every_code_of_a_coefficient(format: int) -> None:
    """Each run and level that has a code of its own, as the only coefficient of a block behind the first."""
    codes = INTRA_COEFFICIENTS if format else COEFFICIENTS
    pairs = [divmod(int(name), 64) for name in codes if name.isdigit()]
    scan = _zigzag()
    for start in range(0, len(pairs), 96):
        made, part = Slice(INTRA), pairs[start : start + 96]
        for n in range(0, len(part), 6):
            made.begin("intra")
            for number in range(6):
                one = [part[n + number]] if n + number < len(part) else []
                made.intra_block(0, *one, chroma=number > 3, format=format)
        ran = decoded(made, intra_vlc_format=format)
        for n, (run, level) in enumerate(part):
            assert block(ran, n // 6, n % 6)[scan[1 + run]] == level
        assert not ran.warnings


def _zigzag() -> list[int]:
    order = sorted((x + y, (x if (x + y) % 2 == 0 else y), 8 * y + x) for y in range(8) for x in range(8))
    return [place for _, _, place in order]


# -- prediction ------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-06", "G45-VLD-08", "G45-VLD-12", "G45-VLD-13", "G45-VLD-25", shows="action")
def test_vectors_are_predicted_and_wrap() -> None:
    """f_code 2: 32 half pixels to each side. The last one is 30 + 10."""
    made = Slice(P).begin("forward").vector(20, -7, f_code=2).begin("forward").vector(10, 3, f_code=2)
    made.begin("forward").vector(10, 0, f_code=2)
    ran = decoded(made, f_code_0_0=2, f_code_0_1=2)
    assert [vectors(ran, n)[0] for n in range(3)] == [(20, -7), (30, -4), (40 - 64, -4)]
    held = record(ran, 0)
    assert (held.macroblock_motion_forward, held.macroblock_motion_backward, held.motion_type, held.coded_block_pattern) == (1, 0, 2, 0)
    assert [index(ran, n) for n in range(3)] == [1, 1, 1]


@pytest.mark.behaviour("G45-VLD-09", shows="action")
def test_skipped_macroblocks_of_p_pictures_have_no_motion() -> None:
    """They reset the predictors of vectors and of intra coefficients; an increment of 36 has an escape."""
    made = Slice(P).begin("intra")
    for number in range(6):
        made.intra_block(50, chroma=number > 3)
    made.begin("forward").vector(5, 5).begin("forward", increment=36).vector(1, 2).begin("intra")
    for number in range(6):
        made.intra_block(4, chroma=number > 3)
    ran = decoded(made)
    assert ran.gpu.counters.threads == 39
    assert vectors(ran, 1)[0] == (5, 5) and vectors(ran, 20)[0] == (0, 0) and vectors(ran, 37)[0] == (1, 2)
    assert [record(ran, 20).coded_block_pattern, index(ran, 20), record(ran, 20).macroblock_motion_forward] == [0, 1, 1]
    assert [record(ran, n).horizontal_origin for n in (1, 20, 38)] == [1, 20, 38]
    assert block(ran, 38, 0) == raster(_0=4) and block(ran, 38, 3) == raster(_0=16)


@pytest.mark.behaviour("G45-VLD-09", "G45-VLD-12", shows="action")
def test_skipped_macroblocks_of_b_pictures_repeat_the_last_prediction() -> None:
    made = Slice(B).begin("both").vector(3, 4).vector(-5, 6).begin("backward", increment=3).vector(1, 1).begin("forward", increment=2)
    made.vector(2, 2)
    ran = decoded(made)
    assert [vectors(ran, n)[:2] for n in range(6)] == [[(3, 4), (-5, 6)]] * 3 + [[(0, 0), (-4, 7)]] * 2 + [[(5, 6), (0, 0)]]
    assert [index(ran, n) for n in range(6)] == [6, 6, 6, 4, 4, 1]
    held = [record(ran, n) for n in (1, 4, 5)]
    assert [(one.macroblock_motion_forward, one.macroblock_motion_backward) for one in held] == [(1, 1), (0, 1), (1, 0)]


@pytest.mark.behaviour("G45-VLD-06", "G45-VLD-16", shows="action")
def test_a_macroblock_with_a_pattern_alone_is_predicted_without_motion() -> None:
    """The predictors are reset, and only blocks of the pattern are in the payload: Y1, Y3 and Cr."""
    made = Slice(P).begin("forward").vector(5, 5).begin("pattern").pattern(0b010101).block((0, 1), (2, 3)).block((0, -1)).block((4, 9))
    made.begin("forward").vector(1, 1)
    ran = decoded(made)
    held = record(ran, 1)
    assert (held.macroblock_motion_forward, held.macroblock_intra_type, held.coded_block_pattern, index(ran, 1)) == (1, 0, 0b010101, 1)
    assert vectors(ran, 1) == [(0, 0)] * 4 and vectors(ran, 2)[0] == (1, 1)
    assert block(ran, 1, 0) == raster(_0=1, _16=3) and block(ran, 1, 1) == raster(_0=-1) and block(ran, 1, 2) == raster(_9=9)


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-23", shows="action")
def test_concealment_vectors_are_read_and_not_shown() -> None:
    """They are the predictors of the next macroblock, without them those are reset."""
    for concealment, expected in ((1, (8, 10)), (0, (1, 1))):
        made = Slice(P).begin("forward").vector(2, 3).begin("intra")
        if concealment:
            made.vector(5, 6).put(1, 1)
        made.grey().begin("forward").vector(1, 1)
        ran = decoded(made, concealment_motion_vector=concealment)
        assert vectors(ran, 1) == [(0, 0)] * 4 and record(ran, 1).macroblock_motion_forward == 0 and index(ran, 1) == 0
        assert vectors(ran, 2)[0] == expected and not ran.warnings


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-12", "G45-VLD-08", "G45-VLD-25", "G45-VLD-14", "G45-VLD-13", shows="action")
def test_field_motion_and_field_dct_of_frame_pictures() -> None:
    """Two vectors of field rows each, whose predictors count frame rows; indices from 8 on are in the second table. A type of transform
    counts only where there are blocks."""
    made = Slice(P).begin("forward pattern").put(1, 2).put(1, 1).put(1, 1).vector(4, 6).put(0, 1).vector(1, -2)
    made.pattern(32).block((0, 1)).begin("forward").put(2, 2).vector(1, 1).begin("intra").put(1, 1).grey()
    ran = decoded(made, frame_prediction_frame_dct=0)
    held = record(ran, 0)
    assert vectors(ran, 0) == [(4, 6), (0, 0), (1, -2), (0, 0)] and held.motion_vertical_field_select == 1
    assert (held.dct_type, held.motion_type, index(ran, 0)) == (1, 1, 10)
    assert vectors(ran, 1)[0] == (5, 13) and (record(ran, 1).dct_type, record(ran, 1).motion_type, index(ran, 1)) == (0, 2, 1)
    assert index(ran, 2) == 8 and record(ran, 2).dct_type == 1


@pytest.mark.behaviour("G45-VLD-12", shows="action")
@pytest.mark.parametrize(("structure", "motion", "kind", "expected"), [
    (FRAME, 2, "forward", 1), (FRAME, 1, "forward", 2), (FRAME, 2, "backward", 4), (FRAME, 1, "backward", 5), (FRAME, 2, "both", 6),
    (FRAME, 1, "both", 7), (TOP, 1, "forward", 1), (TOP, 2, "forward", 2), (BOTTOM, 1, "backward", 4), (BOTTOM, 2, "backward", 5),
    (TOP, 1, "both", 6), (BOTTOM, 2, "both", 7)])  # fmt: skip
@pytest.mark.parametrize("coded", [0, 1])
def test_every_index(structure: int, motion: int, kind: str, expected: int, coded: int) -> None:
    made = Slice(B).begin(f"{kind} pattern" if coded else kind).put(motion, 2)
    if coded and structure == FRAME:
        made.put(1, 1)
    several = motion == (1 if structure == FRAME else 2)
    for _ in range(2 if kind == "both" else 1):
        for _ in range(1 + several):
            made.put(0, 0 if structure == FRAME and not several else 1).vector(0, 0)
    if coded:
        made.pattern(4).block((0, 1))
    ran = decoded(made, picture_structure=structure, frame_prediction_frame_dct=0)
    assert index(ran, 0) == expected + 8 * (coded and structure == FRAME) and not ran.warnings


@pytest.mark.behaviour("G45-VLD-07", shows="action")
@pytest.mark.parametrize("first", [0, 1])
def test_dual_prime_of_frames_is_a_prediction_in_both_directions(first: int) -> None:
    """A vector of (3, 5), which counts field rows, with differences of 1 and -1: times 1 or 3, halved away from zero."""
    made = Slice(P).begin("forward").put(3, 2).vector(3, 5, dual=(1, -1))
    ran = decoded(made, frame_prediction_frame_dct=0, top_field_first=first)
    near, far = (2 + 1, 3 - 1), (5 + 1, 8 - 1)  # times 1, times 3
    top, bottom = (near, far) if first else (far, near)
    assert vectors(ran, 0) == [(3, 5), (top[0], top[1] - 1), (3, 5), (bottom[0], bottom[1] + 1)]
    held = record(ran, 0)
    assert (held.motion_vertical_field_select, held.motion_type, index(ran, 0)) == (6, 3, 3)
    assert (held.macroblock_motion_forward, held.macroblock_motion_backward) == (1, 1)


@pytest.mark.behaviour("G45-VLD-07", shows="action")
@pytest.mark.parametrize(("structure", "correction", "selects"), [(TOP, -1, 2), (BOTTOM, 1, 1)])
def test_dual_prime_of_fields(structure: int, correction: int, selects: int) -> None:
    made = Slice(P).begin("forward").put(3, 2).vector(-4, 7, dual=(0, 1))
    ran = decoded(made, picture_structure=structure)
    assert vectors(ran, 0) == [(-4, 7), (-2, 4 + 1 + correction), (0, 0), (0, 0)]
    assert (record(ran, 0).motion_vertical_field_select, index(ran, 0)) == (selects, 3)


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
@pytest.mark.behaviour("G45-VLD-10", "G45-VLD-11", shows="action")
@pytest.mark.parametrize(("type", "structure", "first", "expected"), [
    (P, TOP, 0, 1), (P, TOP, 1, 0), (P, BOTTOM, 1, 1), (P, BOTTOM, 0, 0), (P, FRAME, 0, 0), (B, TOP, 0, 0)])  # fmt: skip
def test_the_second_field(type: int, structure: int, first: int, expected: int) -> None:
    made = Slice(type).begin("forward")
    if structure != FRAME:
        made.put(1, 2).put(0, 1)
    ran = decoded(made.vector(0, 0), picture_structure=structure, top_field_first=first)
    assert record(ran, 0).second_field == expected and not ran.warnings


def test_macroblocks_without_motion_of_field_pictures_use_the_field_of_their_parity() -> None:
    for structure in (TOP, BOTTOM):
        ran = decoded(Slice(P).begin("pattern").put(0, 0).pattern(4).block((0, 1)), picture_structure=structure)
        assert record(ran, 0).motion_vertical_field_select == (structure == BOTTOM) and record(ran, 0).motion_type == 1


# -- state -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VLD-13", "G45-VLD-14", "G45-VLD-24", shows="action")
def test_the_remap_tables_choose_the_kernel() -> None:
    """The command's own offset counts for nothing."""
    made = Slice(P).begin("forward").vector(0, 0).begin("intra").grey()
    data = made.data()
    ran = decoded(made, [slice_object(data, interface_descriptor_offset=5)], interface_descriptor_remap_table_0_7=0x000000C9)
    assert [index(ran, n) for n in range(2)] == [12, 9] and REMAPPED == 16


@pytest.mark.behaviour("G45-VLD-27", shows="layout")
def test_reserved_bits_of_the_state_count_for_nothing() -> None:
    made = Slice(INTRA).begin("intra").grey()
    media = Media([slice_object(made.data())], mode="vld", indirect=made.data(), extension=("VLD_STATE", {
        "picture_coding_type": INTRA, "picture_structure": FRAME}))  # fmt: skip
    plain = media.run().data(0, 1)
    state = layout("VLD_STATE", GEN).pack(picture_coding_type=INTRA, picture_structure=FRAME)
    state[1] |= 0x19FF
    media.patch = {GENERAL + EXTENSION: words(state)}
    assert media.run().data(0, 1) == plain


@pytest.mark.behaviour("G45-VLD-21", "G45-VLD-22", shows="action")
def test_children_synchronisation_and_the_third_counter_mode_are_remarked_and_ignored() -> None:
    made = Slice(INTRA).begin("intra").grey()
    vfe = {"children_present": 1, "debug_counter_control": 3}
    objects = [slice_object(made.data(), thread_synchronization=1, object_id=9)]
    ran = decoded(made, objects, vfe=vfe)
    assert ran.warnings == ["VFE_STATE: children_present must be 0 in VLD mode (G45 9360)",
                            "VFE_STATE: debug_counter_control 3 is reserved in mode vld (G45 9122)",
                            "thread_synchronization must be 0 in VLD mode (G45 9673)"]  # fmt: skip
    assert ran.gpu.counters.threads == 1 and ran.header(0).thread_count == 0


def test_the_mode_needs_its_state_and_its_inline_data() -> None:
    with pytest.raises(DecodeError, match="there is no VLD_STATE"):
        Media([media_object(inline=[0, 0])], mode="vld").run()
    with pytest.raises(DecodeError, match="1 dwords of inline data in VLD mode"):
        Media([media_object(inline=[0])], mode="vld", extension=("VLD_STATE", {})).run()


# -- streams that are wrong ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VLD-20", shows="action")
def test_a_bad_code_ends_the_slice_with_a_remark() -> None:
    made = Slice(INTRA).begin("intra").grey().begin("intra").put(0, 30)
    ran = decoded(made, [slice_object(made.data(), x=7, y=1)])
    assert ran.gpu.counters.threads == 1
    assert ran.warnings == ["the slice at macroblock (7, 1) ends after 1 macroblocks: the end of the data inside a macroblock"] or \
        ran.warnings == ["the slice at macroblock (7, 1) ends after 1 macroblocks: a code that does not exist"]  # fmt: skip
    past = Slice(P).begin("forward").vector(0, 0).begin("forward", increment=90).vector(0, 0)
    ran = decoded(past, [slice_object(past.data(), x=100)])
    assert ran.warnings == ["the slice at macroblock (100, 0) ends after 28 macroblocks: macroblocks past column 127"]


@pytest.mark.behaviour("G45-VLD-20", shows="action")
@pytest.mark.parametrize("seed", range(12))
def test_random_bytes_never_hang_or_fail(seed: int) -> None:
    chosen = random.Random(seed)
    data = chosen.randbytes(400)
    state = {name: chosen.randrange(1 << 4) for name in ("f_code_0_0", "f_code_0_1", "f_code_1_0", "f_code_1_1")}
    state |= {"picture_coding_type": chosen.randrange(4), "picture_structure": chosen.randrange(4), "scan_order": seed & 1,
              "frame_prediction_frame_dct": seed >> 1 & 1, "concealment_motion_vector": seed >> 2 & 1, "intra_vlc_format": seed & 1}
    objects = [slice_object(data, x=chosen.randrange(128), y=chosen.randrange(128), offset=chosen.randrange(8))]
    ran = Media(objects, kernels=[END], mode="vld", extension=("VLD_STATE", state), indirect=data).run()
    assert ran.gpu.counters.threads <= 127

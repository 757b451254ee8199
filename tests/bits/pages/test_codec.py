"""Codec and enhancement pages: what the drivers send is known, and commands put together by the manuals' tables come apart right.

Positions are the manuals' (lines in the comments) or the drivers', never the pages'.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.layout import Layout

TABLE = Path(__file__).with_name("codec.commands")


def sent() -> Iterator[tuple[int, str, str, float, int]]:
    """(upper half of the header, name, engine, generation, dwords) of everything the drivers send."""
    for line in TABLE.read_text().splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        for engine in words[2].split(","):
            for told in words[3:]:
                gen, lengths = told.split(":")
                yield from ((int(words[0], 16), words[1], engine, float(gen), int(count)) for count in lengths.split(","))


def build(layout: Layout, places: str, header: int = 0, dwords: int = 0) -> list[int]:
    """Dwords from '2.16=0x80 …', dword 2, lowest bit 16; no bit may stand where the page has none."""
    held = header
    for place in places.split():
        where, _, value = place.partition("=")
        dword, _, low = where.partition(".")
        held |= int(value, 0) << 32 * int(dword) + int(low)
    count = dwords or layout.dwords
    assert held >> 32 * count == 0
    assert held & layout.reserved(count) == 0, f"{layout.name}: {held & layout.reserved(count):#x} is set and reserved"
    return [held >> 32 * i & 0xFFFFFFFF for i in range(count)]


def read(name: str, gen: float, places: str, header: int = 0, dwords: int = 0) -> Any:
    layout = catalogue.layout(name, gen)
    return layout.unpack(build(layout, places, header, dwords))


def values(group: Any) -> list[int]:
    return [entry.value for entry in group]


# -- keys and lengths ----------------------------------------------------------------------------------------------


def test_what_the_drivers_send_is_known() -> None:
    wrong, seen = [], 0
    for upper, name, engine, gen, dwords in sent():
        header = upper << 16 | dwords - (1 if name == "MFX_WAIT" else 2)
        found = catalogue.find_command(header, gen, engine)
        seen += 1
        if found is None or found.name != name:
            wrong.append(f"{header:#010x} on gen {gen:g} {engine} is {found and found.name}, not {name}")
        elif found.length(header) != dwords or dwords < found.dwords or found.maximum is not None and dwords > found.maximum:
            wrong.append(f"{name} on gen {gen:g} has {dwords} dwords, its page {found.dwords} to {found.maximum}")
    assert not wrong, "\n".join(wrong)
    assert seen > 300


def test_one_key_is_two_commands_on_two_engines() -> None:
    for gen in (8.0, 9.0, 11.0):
        video, enhance = (catalogue.find_command(0x74000007, gen, engine) for engine in ("video", "video_enhance"))
        assert video is not None and enhance is not None
        assert (video.name, enhance.name) == ("MFX_VP8_PIC_STATE", "VEBOX_SURFACE_STATE")


def test_older_generations_lack_the_newer_pipes() -> None:
    assert catalogue.find_command(0x73800004, 8.0, "video") is None  # HCP
    assert catalogue.find_command(0x74020004, 7.0, "video_enhance") is None  # VEBOX
    assert catalogue.find_command(0x7400000A, 7.5, "video") is None  # VP8
    assert catalogue.find_command(0x70800000, 8.0, "video") is None  # VDEnc


# -- AVC -----------------------------------------------------------------------------------------------------------


def test_avc_slice_data() -> None:
    """BDW 25060-25100: length in bytes, then an offset of 29 bits."""
    slice_data = read("MFD_AVC_BSD_OBJECT", 8.0, "1.0=0x12345 2.0=0x1ABCDEF0", 0x71280004)
    assert (slice_data.indirect_bsd_data_length, slice_data.indirect_bsd_data_start_address) == (0x12345, 0x1ABCDEF0)


def test_avc_slice_control() -> None:
    """KBL 11929-12255, read at dword 3 of the command."""
    inline = read(
        "INLINE_DATA_DESCRIPTION_FOR_MFD_AVC_BSD_OBJECT",
        9.0,
        "0.31=1 0.16=0x21 0.8=1 1.16=0x55AA 1.4=1 1.3=1 1.0=5 2.24=0x12 2.16=6 2.12=2 2.0=1",
    )
    assert (inline.concealment_method, inline.concealment_picture_id, inline.mb_header_error_handling) == (1, 0x21, 1)
    assert (inline.first_mb_byte_offset_of_slice_data_or_slice_header, inline.first_mb_bit_offset) == (0x55AA, 5)
    assert (inline.emulation_prevention_byte_present, inline.last_slice) == (1, 1)
    assert (inline.concealment_reference_picture_plus_field_bit, inline.p_slice_inter_concealment_mode) == (0x12, 6)
    assert (inline.b_slice_inter_direct_type_concealment_mode, inline.intra_prediction_error_control) == (2, 1)
    held = catalogue.layout("MFD_AVC_BSD_OBJECT", 9.0).field("inline_data")
    assert (held.low, held.high, held.type.target) == (96, 191, "INLINE_DATA_DESCRIPTION_FOR_MFD_AVC_BSD_OBJECT")


def test_avc_decoded_picture_buffer() -> None:
    """BDW 25149-25245: sixteen of everything, packed."""
    state = read("MFD_AVC_DPB_STATE", 8.0, "1.15=1 1.16=0b101 2.30=3 2.0=2 10.16=0xBEEF 18.16=0x3FF 22.24=0xF 26.24=7", 0x71260019, 27)
    assert values(state.non_existing_frame) == [0] * 15 + [1]
    assert values(state.long_term_frame) == [1, 0, 1] + [0] * 13
    assert values(state.used_for_reference) == [2] + [0] * 14 + [3]
    assert (state.ltst_frame_number_list[15].value, state.view_id[15].value) == (0xBEEF, 0x3FF)
    assert (state.l0_view_order[15].value, state.l1_view_order[15].value) == (0xF, 7)


def test_avc_picture_ids() -> None:
    """BDW 25299-25313."""
    state = read("MFD_AVC_PICID_STATE", 8.0, "1.0=1 2.16=0x1234 9.0=0x5678", 0x71250008)
    assert state.pictureid_remapping_disable == 1
    assert [state.picture_id[i].value for i in (1, 14)] == [0x1234, 0x5678]


def test_avc_direct_mode_moves() -> None:
    """gen7_mfd.c: 32 addresses, two to write, 34 counts. gen8_mfd.c: 16 of two dwords, one to write, each with attributes behind."""
    old = read("MFX_AVC_DIRECTMODE_STATE", 7.0, "1.0=0x1000 32.0=0x2000 33.0=0x3000 34.0=0x4000 35.0=0xFFFFFFFE 68.0=9", 0x71020043)
    assert [old.direct_mv_buffer[i].address for i in (0, 31)] == [0x1000, 0x2000]
    assert [buffer.address for buffer in old.direct_mv_buffer_write] == [0x3000, 0x4000]
    assert (old.poc_list[0].value, old.poc_list[33].value) == (-2, 9)
    new = read("MFX_AVC_DIRECTMODE_STATE", 9.0, "1.0=0x7FFF00001000 31.0=0x2000 33.0=4 34.0=0x3000 36.0=4 37.0=1 70.0=2", 0x71020045)
    assert [new.direct_mv_buffer[i].address for i in (0, 15)] == [0x7FFF00001000, 0x2000]
    assert (new.direct_mv_buffer_attributes, new.direct_mv_buffer_write_address, new.direct_mv_buffer_write_attributes) == (4, 0x3000, 4)
    assert (new.poc_list[0].value, new.poc_list[33].value) == (1, 2)


def test_avc_weights() -> None:
    """gen7_mfd.c: six shorts a reference, weight before offset; luma, Cb, Cr."""
    table = read("MFX_AVC_WEIGHTOFFSET_STATE", 8.0, "1.0=1 2.0=0xFFFF 2.16=3 3.16=0x8000 97.0=64 97.16=5", 0x71050060)
    assert (table.weight_and_offset_select, len(table.reference)) == (1, 32)
    assert (table.reference[0].luma_weight, table.reference[0].luma_offset, table.reference[0].cb_offset) == (-1, 3, -32768)
    assert (table.reference[31].cr_weight, table.reference[31].cr_offset) == (64, 5)


def test_haswell_encoder_bounds_its_output() -> None:
    """gen75_mfc.c writes the end of the coded buffer into dword 24, where genxml has nothing."""
    state = read("MFX_IND_OBJ_BASE_ADDR_STATE", 7.5, "21.0=0x100000 24.0=0x245000", 0x70030018, 26)
    assert (state.mfc_indirect_pak_bse_object_address, state.mfc_indirect_pak_bse_object_upper_bound) == (0x100000, 0x245000)


def test_haswell_jpeg_workaround_sends_the_short_form() -> None:
    """gen75_mfd.c: eleven dwords as on Gen7, the bound two gigabytes up."""
    state = read("MFX_IND_OBJ_BASE_ADDR_STATE", 7.5, "1.0=0x12a000 2.0=0x80000000", 0x70030009, 11)
    assert (state.mfx_indirect_bitstream_object_address, state.short_form_bitstream_upper_bound) == (0x12A000, 0x80000000)


def test_denoise_starts_a_dword_later_on_haswell() -> None:
    """gen75_vpp_vebox.c: the same words, after one that is reserved; Broadwell has a word for hot pixels instead."""
    later = read("VEBOX_DNDI_STATE", 7.5, "1.24=140 7.6=1 9.12=1 9.6=13")
    first = read("VEBOX_DNDI_STATE", 8.0, "0.24=140 6.6=1 8.12=1 8.6=13 9.0=4")
    for state in (later, first):
        assert (state.denoise_stad_threshold, state.progressive_dn, state.chroma_denoise_enable) == (140, 1, 1)
        assert state.chroma_temporal_difference_threshold == 13
    assert first.hot_pixel_threshold == 4


# -- MPEG-2, VP8, JPEG -----------------------------------------------------------------------------------------------


def test_mpeg2_slice_group() -> None:
    """BDW 24566-24910."""
    state = read(
        "MFC_MPEG2_SLICEGROUP_STATE",
        8.0,
        "1.31=1 1.28=2 1.24=9 1.22=1 1.19=1 1.4=5 2.24=3 2.0=7 3.8=1 3.0=31 4.0=0x1FFFFFF0 6.20=6 7.28=15",
        0x73430006,
    )
    assert (state.rate_control_counter_enable, state.rate_control_triggle_mode, state.rate_control_stable_tolerance) == (1, 2, 9)
    assert (state.rate_control_panic_type, state.last_slice_group, state.slice_id) == (1, 1, 5)
    assert (state.next_slice_group_mb_y_count, state.first_mb_x_count) == (3, 7)
    assert (state.slice_group_skip, state.slice_group_qp, state.indirect_pak_bse_data_start_address) == (1, 31, 0x1FFFFFF0)
    assert (state.correct_6, state.clamp_value_7) == (6, 15)


@pytest.mark.behaviour("KBL-MFX-09", shows="layout")
def test_mpeg2_slice() -> None:
    """KBL 13938-14012."""
    inline = read(
        "MFD_MPEG2_BSD_OBJECT_INLINE_DATA_DESCRIPTION", 9.0, "0.24=1 0.16=2 0.8=45 0.7=1 0.6=1 0.5=1 0.3=1 0.0=6 1.24=17 1.8=0x1FF 1.0=3"
    )
    assert (inline.slice_horizontal_position, inline.slice_vertical_position, inline.mb_count) == (1, 2, 45)
    assert (inline.slice_concealment_override, inline.slice_concealment_type, inline.last_pic_slice, inline.last_mb) == (1, 1, 1, 1)
    assert (inline.first_mb_bit_offset, inline.quantizer_scale_code) == (6, 17)
    assert (inline.next_slice_vertical_position, inline.next_slice_horizontal_position) == (0x1FF, 3)


def test_vp8_quantisers_are_values_when_decoding_and_indices_when_encoding() -> None:
    """gen8_mfd.c writes AC << 16 | DC from dword 4 on, on Gen9 too; media-driver's encoder writes four indices into dword 4."""
    for gen in (8.0, 9.0):
        state = read("MFX_VP8_PIC_STATE", gen, "4.16=0x11D 4.0=0x9D 7.16=8 15.16=3", 0x74000024)
        assert (state.quantizer_value_0_y1ac, state.quantizer_value_0_y1dc) == (0x11D, 0x9D)
        assert (state.quantizer_value_1_y1ac, state.quantizer_value_3_y2ac) == (8, 3)
    coded = read("MFX_VP8_PIC_STATE", 9.0, "4.24=4 4.16=3 4.8=2 4.0=1", 0x74000024)
    assert [getattr(coded, f"segment{i}_qindex") for i in range(4)] == [1, 2, 3, 4]


@pytest.mark.behaviour("KBL-MFX-12", shows="layout")
def test_vp8_encoder_statistics() -> None:
    """KBL 30578-30627."""
    record = read("VP8_ENCODER_STREAMOUT_FORMAT", 9.0, "0.24=1 0.16=2 0.8=3 0.2=1 1.16=0x1FFF 1.0=5 2.0=0x1FFFFFF 3.30=1 3.24=9 3.16=1")
    assert (record.mb_y, record.mb_x, record.mb_clock_16, record.mb_rate_control) == (1, 2, 3, 1)
    assert (record.mb_residual_bitcount, record.mb_total_bitcount, record.cbp) == (0x1FFF, 5, 0x1FFFFFF)
    assert (record.last_mb, record.mb_type, record.coeff_clamp_status) == (1, 9, 1)


def test_jpeg_huffman_tables() -> None:
    """gen7_mfd.c copies 12 + 12 + 16 + 162 bytes after the id; gen8_mfc.c packs a length and a code into a dword."""
    table = read("MFX_JPEG_HUFF_TABLE_STATE", 9.0, "1.0=1 2.8=0x11 5.0=0x22 8.24=0x33 12.0=0x44 51.24=0x55 52.8=0x66", 0x77020033)
    assert (table.huffman_table_id, table.dc_bits[1].value, table.dc_huffval[0].value, table.ac_bits[3].value) == (1, 0x11, 0x22, 0x33)
    assert (table.ac_huffval[0].value, table.ac_huffval[159].value, table.ac_huffval2[1].value) == (0x44, 0x55, 0x66)
    coded = read("MFC_JPEG_HUFF_TABLE_STATE", 9.0, "2.0=0x000402 175.0=0xFFFE10", 0x774300AE)
    assert [(item.code_length, item.code) for item in (coded.dc_table[0], coded.ac_table[161])] == [(2, 4), (16, 0xFFFE)]


ERRORS = {  # lowest bit first, - where the manual reserves it
    # KBL 1431-1462
    "AVC_CABAC": """mb_concealment luma_intra_prediction_mode_error chroma_intra_prediction_mode_error slice_end_error residual_error
        reference_index_se_error motion_vector_delta_se_error macroblock_qpdelta_error reference_index_se_out_of_bound_error
        motion_vector_delta_se_out_of_bound_error - temporal_direction_motion_vector_out_of_bound_error - -
        coefficient_level_out_of_bound_error -""",
    # KBL 1477-1521
    "AVC_CAVLC": """mb_concealment luma_intra_prediction_mode_error chroma_intra_prediction_mode_error mbytpe_submbtype_error
        macroblock_coded_block_pattern_error total_coeff_se_error exponential_golomb_error runbefore_totalzero_error
        reference_index_se_out_of_bound_error motion_vector_delta_se_out_of_bound_error -
        temporal_direction_motion_vector_out_of_bound_error total_coefficient_out_of_bound_error runbefore_out_of_bound_error
        coefficient_level_out_of_bound_error total_zero_out_of_bound_error""",
    # KBL 14033-14050
    "MPEG2": """mb_concealment inconsistent_starting_position_error_missing_mbs premature_frame_end_error slice_out_of_bound_error
        inconsistent_starting_position_error_overlapping_mbs missing_eob_error""",
    # KBL 26340-26356
    "VC1": """mb_concealment mquant_error coded_block_pattern_cy_se_error motion_vector_se_error coefficient_error transformtype_se_error
        mbmode_se_error syncmarker_error""",
    # KBL 12931-12942
    "JPEG": "missing_ecs_error extra_ecs_error missing_block_error extra_block_error inconsistent_vld_se_error",
}


@pytest.mark.behaviour("KBL-MFX-10", shows="layout")
@pytest.mark.parametrize("name", ERRORS)
def test_error_words(name: str) -> None:
    layout = catalogue.layout(name, 9.0)
    expected = ERRORS[name].split()
    for bit in range(32):
        error = expected[bit] if bit < len(expected) else "-"
        found = [n for n, value in layout.unpack([1 << bit])._asdict().items() if value]
        assert found == ([] if error == "-" else [error]), f"bit {bit}"
        assert bool(layout.reserved() >> bit & 1) == (error == "-"), f"bit {bit}"


# -- buffers ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-MFX-17", shows="layout")
def test_buffer_attributes() -> None:
    """KBL 13524-13569."""
    record = read("MEMORYADDRESSATTRIBUTES", 9.0, "0.13=2 0.12=1 0.9=1 0.7=3 0.1=5")
    assert (record.tiled_resource_mode, record.row_store_scratch_buffer_cache_select, record.memory_compression_enable) == (2, 1, 1)
    assert (record.arbitration_priority_control, record.mocs) == (3, 5 << 1)


def test_a_buffer_is_one_dword_then_three() -> None:
    """gen7_mfd.c: one relocation a dword from dword 1 on; gen8_mfd.c: low, high, attributes."""
    old = read("MFX_PIPE_BUF_ADDR_STATE", 7.0, "2.0=0xABC000 7.0=0x111000 22.0=0x222000 23.0=0x333000", 0x70020016)
    assert (old.post_deblocking_destination_address, old.mb_status_buffer_address) == (0xABC000, 0x333000)
    assert [old.reference_picture[i].address for i in (0, 15)] == [0x111000, 0x222000]
    new = read("MFX_PIPE_BUF_ADDR_STATE", 9.0, "4.0=0x7F0000ABC000 6.0=4 19.0=0x111000 49.0=0x222000 51.0=4 52.0=0x333000", 0x7002003B, 61)
    assert (new.post_deblocking_destination_address, new.post_deblocking_destination_attributes) == (0x7F0000ABC000, 4)
    assert [new.reference_picture[i].address for i in (0, 15)] == [0x111000, 0x222000]
    assert (new.reference_picture_attributes, new.mb_status_buffer_address) == (4, 0x333000)


# -- HEVC ------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-MFX-13", shows="layout")
def test_hevc_small_tables() -> None:
    """KBL 24521-24543, 11643, 20795, 8880-8894, 8914-8928."""
    flags = read("SPLIT_CODING_UNIT_FLAGS", 9.0, "0.20=1 0.16=0b1010 0.12=4 0.8=3 0.4=2 0.0=1")
    assert (flags.split_level_0, flags.split_level_1, flags.split_level_2_part_3, flags.split_level_2_part_0) == (1, 0b1010, 4, 1)
    assert read("HEVC_ARBITRATION_PRIORITY", 9.0, "0.0=3").priority == 3
    assert catalogue.layout("ROUNDINGPRECISIONTABLE_3_BITS", 9.0).field("rounding_precision").type.values[7] == (7, "+8/16")
    assert values(read("FRAMEDELTAQP", 9.0, "0.0=0xFF 1.24=0x7F").frame_delta_qp) == [-1, 0, 0, 0, 0, 0, 0, 127]
    assert values(read("FRAMEDELTAQPRANGE", 9.0, "0.0=0xFF 1.24=0x80").frame_delta_qp_range) == [255, 0, 0, 0, 0, 0, 0, 128]


@pytest.mark.behaviour("KBL-MFX-14", shows="layout")
def test_pak_insert_payload() -> None:
    """KBL 11545-11556: bits, address, attributes; the command has them at dword 2 when bit 31 of dword 1 says so (media-driver)."""
    command = catalogue.layout("HCP_PAK_INSERT_OBJECT", 9.0)
    words = build(command, "1.31=1 2.0=777 3.0=0x123456780 5.0=4", 0x73A20004, 6)
    record = command.unpack(words)
    assert record.indirect_payload_enable == 1
    payload = catalogue.layout("HCP_PAK_INSERT_OBJECT_INDIRECT_PAYLOAD", 9.0).unpack(words[2:])
    assert (payload.indirect_payload_data_size_in_bits, payload.indirect_payload_address) == (777, 0x123456780)
    assert payload.indirect_payload_attributes == 4


def test_hevc_slice_grew() -> None:
    """HCP_SLICE_STATE: nine dwords decode (gen9_mfd.c), eleven encode; a QP offset of five bits has a sign (media-driver)."""
    state = read("HCP_SLICE_STATE", 9.0, "1.16=3 3.17=0x1F 3.12=0x14 3.6=26 3.0=2 8.6=1", 0x73940007, 9)
    assert (state.slice_vertical_position, state.slice_cr_qp_offset, state.slice_cb_qp_offset) == (3, -1, -12)
    assert (state.slice_qp, state.slice_type, state.indirect_pak_bse_data_start_offset) == (26, 2, 64)


# -- scaler and enhancement ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SFC-01", shows="layout")
def test_scaler_coefficients() -> None:
    """KBL 23041-23180: signed, six bits behind the point."""
    record = read("SFC_8X8_AVS_COEFFICIENTS", 9.0, "0.24=0xC0 0.0=0x40 3.24=1 4.24=0x20 6.16=0xFF 7.8=0x80")
    assert (record.table_0_y_tap_1, record.table_0_x_tap_0, record.table_0_y_tap_7) == (-1.0, 1.0, 1 / 64)
    assert (record.table_1_x_tap_3, record.table_1_y_tap_2, record.table_1_y_tap_5) == (0.5, -1 / 64, -2.0)


def test_scaler_tables_are_32_phases() -> None:
    """media-driver: 128 dwords of luma and 64 of chroma follow the header."""
    luma = catalogue.layout("SFC_AVS_LUMA_COEFF_TABLE_BODY", 9.0)
    chroma = catalogue.layout("SFC_AVS_CHROMA_COEFF_TABLE_BODY", 9.0)
    assert (luma.dwords, luma.reserved(), chroma.dwords, chroma.reserved()) == (128, 0, 64, 0)
    taps = read("LUMA_FILTER_COEFFICIENTS_ARRAY", 9.0, "0.8=0xC0 3.16=0x40").tap
    assert (taps[0].y, taps[7].x) == (-1.0, 1.0)


@pytest.mark.behaviour("KBL-VEBOX-01", shows="layout")
def test_enhancement_container() -> None:
    """KBL 28870-28912."""
    layout = catalogue.layout("VEBOX_IECP_STATE", 9.0)
    assert [(f.low, f.high, f.type.target) for f in layout.fields] == [
        (0, 927, "VEBOX_STD_STE_STATE"),
        (928, 1343, "VEBOX_ACE_LACE_STATE"),
        (1344, 1695, "VEBOX_TCC_STATE"),
        (1696, 1759, "VEBOX_PROCAMP_STATE"),
        (1760, 2143, "VEBOX_CSC_STATE"),
        (2144, 2239, "VEBOX_ALPHA_AOI_STATE"),
        (2240, 2527, "VEBOX_CCM_STATE"),
        (2528, 2911, "VEBOX_FRONT_END_CSC_STATE"),
    ]
    for gen in (7.5, 8.0, 9.0, 11.0):
        for field in catalogue.layout("VEBOX_IECP_STATE", gen).fields:
            assert catalogue.layout(field.type.target, gen).dwords * 32 == field.width, f"{field.name} on gen {gen:g}"


@pytest.mark.behaviour("KBL-VEBOX-14", shows="layout")
def test_enhancement_surface_bits() -> None:
    """KBL 26410-26430; the command has them below each address (media-driver)."""
    bits = read("VEB_DI_IECP_COMMAND_SURFACE_CONTROL_BITS", 9.0, "0.9=1 0.7=1 0.1=3")
    assert (bits.tiled_resource_mode, bits.memory_compression_enable, bits.mocs) == (1, 1, 6)
    command = read("VEB_DI_IECP", 9.0, "1.16=64 1.0=127 2.0=0x12345006 3.30=2 22.0=0xABC000", 0x74030016, 24)
    assert (command.starting_x, command.ending_x) == (64, 127)
    assert (command.current_frame_input_address, command.current_frame_input_surface_control_bits) == (0x12345000, 6)
    assert (command.current_frame_input_arbitration_priority_control, command.skin_score_output_address) == (2, 0xABC000)


def test_colour_conversion_numbers() -> None:
    """KBL 27250-27394: S2.16 on Gen9. gen75_vpp_vebox.c: 13 bits with ten behind the point, two a dword, before."""
    new = read("VEBOX_CSC_STATE", 9.0, "0.31=1 0.0=0x10000 1.0=0x70000 9.16=0x8000 11.0=1")
    assert (new.transform_enable, new.c0, new.c1, new.offset_out_1, new.offset_in_3) == (1, 1.0, -1.0, -32768, 1)
    old = read("VEBOX_CSC_STATE", 7.5, "0.16=0x1C00 0.3=0x400 0.0=1 4.0=0x200")
    assert (old.transform_enable, old.c0, old.c1, old.c8) == (1, 1.0, -1.0, 0.5)


def test_deinterlace_dword_15() -> None:
    """KBL 27752-27758: the manual prints the dword as '15]'."""
    state = read("VEBOX_DNDI_STATE", 9.0, "14.8=100 14.0=5 15.24=9 15.16=24 15.8=3 15.0=175")
    assert (state.sdi_threshold, state.sdi_delta, state.sdi_fallback_mode_1_t1_constant) == (100, 5, 9)
    assert (state.sdi_fallback_mode_1_t2_constant, state.sdi_fallback_mode_2_constant) == (24, 3)
    assert state.fmd_temporal_difference_threshold == 175


def test_gamma_table() -> None:
    """KBL 27896, 28979-28988: 64 points of four 16-bit values."""
    state = read("VEBOX_FORWARD_GAMMA_CORRECTION_STATE", 9.0, "0.0=1 0.16=2 1.0=3 127.16=0xFFFF")
    assert len(state.point) == 64
    assert (state.point[0].pixel_value, state.point[0].red_corrected_value, state.point[0].green_corrected_value) == (1, 2, 3)
    assert state.point[63].blue_corrected_value == 0xFFFF

"""Formats that are decoded only: inline data of codecs, tables of video enhancement and media sampler, hash tables, small formats."""

from __future__ import annotations

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.layout import Layout
from tests.bits.pages.test_three_d_pixel import unpack, words

GEN = 9.0

# -- codec -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-MFX-02", shows="layout")
def test_slice_control_of_avc() -> None:
    """KBL 11920-12261."""
    record = unpack(
        "INLINE_DATA_DESCRIPTION_FOR_MFD_AVC_BSD_OBJECT",
        GEN,
        (0, 31, 1),
        (0, 16, 33),
        (0, 14, 1),
        (0, 12, 1),
        (0, 10, 1),
        (0, 8, 1),
        (0, 4, 1),
        (1, 16, 0xBEEF),
        (1, 4, 1),
        (1, 3, 1),
        (1, 0, 5),
        (2, 31, 1),
        (2, 24, 0x21),
        (2, 23, 1),
        (2, 16, 3),
        (2, 15, 1),
        (2, 12, 2),
    )
    assert (record.emulation_prevention_byte_present, record.last_slice) == (1, 1)
    assert (record.first_mb_byte_offset_of_slice_data_or_slice_header, record.first_mb_bit_offset) == (0xBEEF, 5)
    assert (record.concealment_method, record.concealment_picture_id, record.concealment_reference_picture_plus_field_bit) == (1, 33, 0x21)
    assert (record.i_slice_concealment_mode, record.p_slice_concealment_mode, record.b_slice_concealment_mode) == (1, 1, 1)
    assert (record.p_slice_inter_concealment_mode, record.b_slice_inter_direct_type_concealment_mode) == (3, 2)
    assert record.mb_error_concealment_b_spatial_motion_vectors_override_disable == 1
    errors = (record.bsd_premature_complete_error_handling, record.mpr_error_handling, record.entropy_error_handling,
              record.mb_header_error_handling)
    assert errors == (1, 1, 1, 1)


@pytest.mark.behaviour("BDW-MFX-03", shows="layout")
def test_decoded_picture_buffer() -> None:
    """Flags and frame numbers of sixteen pictures, and the order of views (BDW 25149-25245)."""
    page = layout("MFD_AVC_DPB_STATE", 8)
    data = page.unpack(words(27, (1, 0, 1), (1, 16, 2), (2, 0, 3 << 4), (3, 16, 7), (11, 0, 8), (19, 8, 9), (23, 0, 10)))
    assert [flag.value for flag in data.non_existing_frame][:2] == [1, 0] and [flag.value for flag in data.long_term_frame][:2] == [0, 1]
    assert (data.used_for_reference[2].value, data.ltst_frame_number_list[1].value, data.view_id[0].value) == (3, 7, 8)
    assert (data.l0_view_order[1].value, data.l1_view_order[0].value) == (9, 10)


@pytest.mark.behaviour("BDW-MFX-04", shows="layout")
def test_picture_ids_and_how_to_turn_them_off() -> None:
    """BDW 25295-25323."""
    record = unpack("MFD_AVC_PICID_STATE", 8, (1, 0, 1), (2, 16, 0x1234), (9, 16, 0x5678))
    assert (record.pictureid_remapping_disable, record.picture_id[1].value, record.picture_id[15].value, len(record.picture_id)) == (
        1,
        0x1234,
        0x5678,
        16,
    )


@pytest.mark.behaviour("BDW-MFX-07", shows="layout")
def test_macroblock_of_mpeg2_is_inline() -> None:
    """Eight dwords after the header, motion vectors among them; nothing is fetched (BDW 24473-24525)."""
    page = layout("MFC_MPEG2_PAK_OBJECT", 8)
    assert page.dwords == 9 and not any(field.type.name == "address" for field, _ in page.walk())
    assert [item.value for item in page.unpack([page.pack()[0], *range(8)]).inline_data] == list(range(8))


@pytest.mark.behaviour("KBL-MFX-11", shows="layout")
def test_macroblock_of_vp8() -> None:
    """KBL 12271-12533."""
    record = unpack(
        "INLINE_DATA_DESCRIPTION_VP8_PAK_OBJECT",
        GEN,
        (0, 20, 2),
        (0, 18, 3),
        (0, 13, 1),
        (0, 11, 2),
        (0, 8, 4),
        (0, 4, 3),
        (0, 2, 1),
        (1, 16, 67),
        (1, 0, 119),
        (2, 0, 0x76543210),
        (3, 0, 0xFEDCBA98),
        *((4 + i, low, 10 * i + low) for i in range(8) for low in (0, 16)),
    )
    assert (record.mv_format, record.segment_id, record.intra_mb, record.reference_picture_select) == (2, 3, 1, 2)
    assert (record.mb_type, record.mb_uv_mode, record.skip_mb, record.mb_y, record.mb_x) == (4, 3, 1, 67, 119)
    assert [getattr(record, f"b_mode_for_subblock{i}") for i in range(16)] == list(range(16))
    for i, vector in enumerate([f"{way}_{number}" for way in ("fwd", "bwd") for number in range(4)]):
        assert (getattr(record, f"mv_x_{vector}"), getattr(record, f"mv_y_{vector}")) == (10 * i, 10 * i + 16)


@pytest.mark.behaviour("KBL-MFX-15", shows="layout")
def test_header_blocks_for_firmware() -> None:
    """One dword for each value of a picture's header (KBL 1532-1631, 14062-14309)."""
    avs = unpack("AVS_INLINE_DMEM", GEN, (1, 0, 1920), (2, 0, 1088), (5, 0, 2), (19, 0, 63))
    assert (avs.hw_width, avs.hw_height, avs.hw_picture_coding_type, avs.hw_picture_qp) == (1920, 1088, 2, 63)
    mpeg4 = unpack("MPEG4_2_INLINE_DMEM", GEN, (4, 0, 720), (5, 0, 576), (24, 0, 1), (37, 0, 31), (49, 0, 9))
    assert (mpeg4.hw_width, mpeg4.hw_height, mpeg4.hw_coding_type, mpeg4.hw_quant, mpeg4.hw_263_num_rows_in_gob) == (720, 576, 1, 31, 9)


@pytest.mark.behaviour("KBL-MFX-16", shows="layout")
def test_control_block_of_the_avc_encoder() -> None:
    """KBL 6329-6600."""
    record = unpack(
        "ENCODER_CONTROL_STATE_PARAMETERS0",
        GEN,
        (0, 27, 1),
        (0, 2, 1),
        (5, 16, 30),
        (5, 0, 4),
        (7, 31, 1),
        (7, 4, 5),
        (7, 0, 3),
        (9, 16, 2),
    )
    assert (record.avc_encoder_chroma_sub_sample_type, record.conditional_replenishment_enable, record.gop_size_parameter) == (1, 1, 30)
    assert (record.log2_maximum_frame_number_minus4, record.transform_8x8, record.rounding_inter, record.rounding_intra) == (4, 1, 5, 3)
    assert record.slice_pattern_per_mb_row == 2


@pytest.mark.behaviour("KBL-MISC-05", shows="layout")
def test_numbers_of_colour_conversions() -> None:
    """CSC coefficients are sign, exponent (2^-n, with 4 and 2 as the last) and mantissa (KBL 5495-5519); other fields have a point at a
    place of their own: the least and the greatest value of each."""
    coefficient = layout("CSC_COEFFICIENT_FORMAT", GEN)
    names = {0: "1", 1: "1_2", 2: "1_4", 3: "1_8", 6: "4", 7: "2"}
    assert {int(value): name for value, name in coefficient.field("exponent").type.values} == names
    record = coefficient.unpack([0xFFF8 & ~0x1000 | 7])
    assert (record.sign, record.exponent, record.mantissa) == (1, 6, 0x1FF)
    ends = {("VEBOX_STD_STE_STATE", "s0l"): (11, -4.0, 4 - 1 / 256), ("VEBOX_STD_STE_STATE", "cos"): (8, -1.0, 1 - 1 / 128),
            ("SAMPLER_STATE_8X8_AVS", "r3c_coefficient"): (5, 0.0, 1 - 1 / 32),
            ("FILTER_COEFFICIENT", "filter_coefficient"): (8, -2.0, 2 - 1 / 64),
            ("VEBOX_CAPTURE_PIPE_STATE", "white_balance_red_correction"): (16, 0.0, 16 - 1 / 4096)}  # fmt: skip
    for (name, number), (bits, least, greatest) in ends.items():
        page = layout(name, GEN)
        low = page.field(number).low
        assert page.field(number).width == bits

        def value(raw: int, page: Layout = page, low: int = low, number: str = number) -> float:
            return float(getattr(page.unpack([raw << low >> 32 * n & 0xFFFFFFFF for n in range(page.dwords)]), number))

        sign, last = 1 << bits - 1, (1 << bits) - 1
        assert (value(sign), value(sign - 1)) == (least, greatest) if least else (value(0), value(last)) == (least, greatest)
        assert value(1) == -value(last) > 0 if least else value(1) == greatest / last


# -- video enhancement and media sampler --------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-VEBOX-05", shows="layout")
def test_colour_correction_matrix() -> None:
    """Nine numbers of four bits before the point and twelve behind it (KBL 27074-27177)."""
    record = layout("VEBOX_CCM_STATE", GEN).unpack([0x80000000 | 0x1000, 0x1F000, 0x800, 0, 0, 0, 0, 0, 0xFFFF])
    assert (record.color_correction_matrix_enable, record.c1, record.c0, record.c3, record.c8) == (1, 1.0, -1.0, 0.5, 0xFFFF / 4096)


@pytest.mark.behaviour("KBL-VEBOX-11", shows="layout")
def test_forward_gamma_table() -> None:
    """64 points, each a pixel's value and what red, green and blue become (KBL 27868-27897, 28971-28995)."""
    record = layout("VEBOX_FORWARD_GAMMA_CORRECTION_STATE", GEN).unpack([0] * 126 + [0x0002_0001, 0x0004_0003])
    last = record.point[63]
    assert len(record.point) == 64
    assert (last.pixel_value, last.red_corrected_value, last.green_corrected_value, last.blue_corrected_value) == (1, 2, 3, 4)


@pytest.mark.behaviour("KBL-VEBOX-15", "KBL-MSAMP-05", shows="layout")
def test_taps_of_filters() -> None:
    """Eight taps in two dwords, one bit before the point and six behind it (KBL 8812-8860, 27187-27231, 27849-27858)."""
    data = [0xC0_40_80_01, 0x20_00_00_00]
    expected = [1 / 64, -2.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.5]
    directional = layout("VEBOX_CH_DIR_FILTER_COEFFICIENT", GEN).unpack(data)
    assert [tap.value for tap in directional.filter_coefficient] == expected
    assert [tap.filter_coefficient for tap in layout("FILTER_COEFFICIENTS", GEN).unpack(data).offset] == expected
    assert layout("VEBOX_FILTER_COEFFICIENT", GEN).unpack([0xC0]) == layout("FILTER_COEFFICIENT", GEN).unpack([0xC0]) == (-1.0,)


@pytest.mark.behaviour("KBL-MSAMP-02", shows="layout")
def test_coefficients_of_the_video_scaler() -> None:
    """KBL 21313-21476: eight for x and eight for y, side by side, then the inner four of a second table."""
    record = layout("SAMPLER_STATE_8X8_AVS_COEFFICIENTS", GEN).unpack([0x40_C0_20_E0, 0, 0, 0, 0x40 << 16, 0, 0, 0])
    assert [(tap.x_filter_coefficient, tap.y_filter_coefficient) for tap in record.table_0][:2] == [(-0.5, 0.5), (-1.0, 1.0)]
    assert len(record.table_0) == 8 and record.table_1x_from_2[0].filter_coefficient == 1.0


@pytest.mark.behaviour("KBL-MSAMP-03", shows="layout")
def test_surfaces_of_the_media_sampler() -> None:
    """KBL 13033-13481."""
    record = unpack(
        "MEDIA_SURFACE_STATE",
        GEN,
        (0, 30, 1),
        (1, 18, 1079),
        (1, 4, 1919),
        (1, 2, 2),
        (2, 27, 4),
        (2, 26, 1),
        (2, 22, 1),
        (2, 3, 2047),
        (2, 0, 3),
        (3, 16, 8),
        (3, 0, 1088),
        (4, 16, 9),
        (4, 0, 1632),
        (5, 31, 1),
        (5, 30, 1),
        (6, 0, 0x1234_5678_9000),
    )
    assert (record.rotation, record.height, record.width, record.picture_structure) == (1, 1079, 1919, 2)
    assert (record.surface_format, record.interleave_chroma, record.memory_compression_enable, record.surface_pitch, record.tile_mode) == (
        4,
        1,
        1,
        2047,
        3,
    )
    assert (record.x_offset_for_u_cb, record.y_offset_for_u_cb, record.x_offset_for_v_cr, record.y_offset_for_v_cr) == (8, 1088, 9, 1632)
    assert (record.vertical_line_stride, record.vertical_line_stride_offset, record.surface_base_address) == (1, 1, 0x1234_5678_9000)


@pytest.mark.behaviour("KBL-MSAMP-04", shows="layout")
def test_colour_processing_states_of_the_sampler() -> None:
    """KBL 3691-5141: five states; the numbers have the same formats as those of video enhancement."""
    ace = unpack("COLOR_PROCESSING_STATE_ACE_STATE", GEN, (0, 2, 26), (0, 0, 1), (1, 0, 16), (3, 24, 235), (12, 0, 1 << 10))
    assert (ace.skin_threshold, ace.ace_enable, ace.ymin, ace.ymax, ace.s10) == (26, 1, 16, 235, 1.0)
    csc = unpack("COLOR_PROCESSING_STATE_CSC_STATE", GEN, (0, 3, 0x1C00), (0, 0, 1), (5, 0, 0x3F0), (8, 16, 1), (8, 0, 0xFFFF))
    assert (csc.c0, csc.transform_enable, csc.offset_in_1, csc.alpha_from_state_select, csc.color_pipe_alpha) == (-1.0, 1, -16, 1, 0xFFFF)
    procamp = unpack("COLOR_PROCESSING_STATE_PROCAMP_STATE", GEN, (0, 17, 128), (0, 1, 0xFF0), (0, 0, 1), (1, 16, 256))
    assert (procamp.contrast, procamp.brightness, procamp.procamp_enable, procamp.cos_c_s) == (1.0, -1.0, 1, 1.0)
    skin = unpack("COLOR_PROCESSING_STATE_STD_STE_STATE", GEN, (0, 0, 3), (0, 24, 154), (28, 11, 1 << 8))
    assert (skin.std_enable, skin.ste_enable, skin.v_mid, skin.hues3_dark) == (1, 1, 154, 1.0)
    total = unpack("COLOR_PROCESSING_STATE_TCC_STATE", GEN, (0, 7, 1), (0, 8, 192), (10, 0, 448))
    assert (total.tcc_enable, total.sat_factor1, total.uvmax_color) == (1, 1.5, 448)


# -- small ones -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-MISC-03", shows="layout")
@pytest.mark.parametrize("bits, entries, columns, rows", [(1, 32, 8, 4), (1, 64, 8, 8), (1, 128, 16, 8), (2, 64, 8, 8), (2, 128, 16, 8)])
def test_hash_tables(bits: int, entries: int, columns: int, rows: int) -> None:
    """KBL 16412-17720: rows by columns, the first block lowest."""
    page = layout(f"PIXEL_HASH_TABLE_{bits}BIT_{entries}ENTRY", GEN)
    assert page.dwords * 32 == bits * entries and columns * rows == entries
    x, y = columns - 1, rows - 1
    table = page.unpack(words(page.dwords, (0, bits * (columns * y + x), 1)))
    assert len(table.row) == rows
    last = table.row[y]
    assert last.subslices == 1 << x if bits == 1 else [block.subslice for block in last.block] == [0] * x + [1]


@pytest.mark.behaviour("KBL-MISC-04", shows="layout")
def test_power_and_clock_formats() -> None:
    """KBL 1403-1414, 3575-3606, 17917-17996."""
    assert dict(layout("AUDIO_POWER_STATE_FORMAT", GEN).field("power_state").type.values) == {0: "d0", 3: "d3"}
    assert unpack("CLOCK_GATING_DISABLE_FORMAT", GEN, (0, 0, 1)).clock_gate_disable == 1
    power = unpack("R_PWR_CLK_STATE", GEN, (0, 18, 1), (0, 15, 2), (0, 4, 8), (0, 0, 6))
    assert (power.enable_slice_count_request, power.slice_count_request, power.eumax, power.eumin) == (1, 2, 8, 6)


@pytest.mark.behaviour("KBL-BLT-01", shows="layout")
def test_what_the_opcode_register_mirrors() -> None:
    """KBL 2500-2665: from bit 31 down; bits the two kinds of set-up do not share have their own names."""
    record = unpack(
        "BR00", GEN, (0, 31, 1), (0, 30, 1), (0, 22, 0x53), (0, 20, 3), (0, 15, 1), (0, 12, 5), (0, 11, 1), (0, 8, 4), (0, 5, 6), (0, 3, 1)
    )
    assert (record.blt_engine_busy, record.setup_instruction, record.opcode, getattr(record, "32bpp_byte_mask")) == (1, 1, 0x53, 3)
    assert (record.source_tiling_enable, record.destination_tiling_enable, record.transparency_range_mode) == (1, 1, 4)
    assert (record.pattern_horizontal_seed, record.pattern_vertical_seed, record.color_source, record.monochrome_source) == (5, 6, 1, 0)


@pytest.mark.behaviour("KBL-BLT-06", shows="layout")
def test_size_of_a_plain_blit() -> None:
    """Bytes and lines, 13 bits each (KBL 3090-3108)."""
    assert unpack("BR14", GEN, (0, 16, 8191), (0, 0, 8190)) == (8191, 8190)

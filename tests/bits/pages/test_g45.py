"""Gen4.5: thread payloads, vertex headers and macroblock data put together by the G45 manual's tables, taken apart by the pages."""

from __future__ import annotations

import pytest

from softgen.bits.catalogue import enumeration, layout
from tests.bits.pages.test_three_d_pixel import single, unpack, words

GEN = 4.5
R1, R2 = 8, 16  # the first dword of a register


# -- 3D threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-FF-07", shows="layout")
@pytest.mark.parametrize("unit, registers", [("VS", 1), ("GS", 1), ("CLIP", 1), ("SF", 3), ("PS", 2)])
def test_registers_of_the_fixed_header(unit: str, registers: int) -> None:
    """G45 1495-1504."""
    assert layout(f"{unit}_THREAD_PAYLOAD", GEN).dwords == 8 * registers


@pytest.mark.behaviour("G45-FF-11", shows="layout")
@pytest.mark.parametrize("unit", ["VS", "GS", "CLIP", "SF", "PS"])
def test_r0_has_pointers_and_scratch(unit: str) -> None:
    """R0.4 the binding table, R0.3 samplers (of units that sample) and the size code of scratch, R0.5 where scratch is (G45 1535-1540)."""
    samples = [(3, 5, 0x222)] if unit in ("VS", "GS", "PS") else []
    record = unpack(f"{unit}_THREAD_PAYLOAD", GEN, (4, 5, 0x111), (3, 0, 11), (5, 10, 0x333), *samples)
    assert (record.binding_table_pointer, record.per_thread_scratch_space, record.scratch_space_offset) == (0x111 << 5, 11, 0x333 << 10)
    assert not samples or record.sampler_state_pointer == 0x222 << 5


@pytest.mark.behaviour("G45-VS-07", shows="layout")
def test_vertex_shader_payload() -> None:
    """Table 4-1, G45 2976-3030: two vertices, a handle each."""
    record = unpack(
        "VS_THREAD_PAYLOAD", GEN, (0, 16, 0x101), (0, 0, 0x1AA), (1, 16, 0x102), (1, 0, 0x1BB), (5, 0, 9), (6, 0, 0xABCDEF), (7, 31, 1)
    )
    assert (record.handle_id_0, record.urb_return_handle_0, record.handle_id_1, record.urb_return_handle_1) == (0x101, 0x1AA, 0x102, 0x1BB)
    assert (record.fftid, record.thread_id, record.snapshot) == (9, 0xABCDEF, 1)


@pytest.mark.behaviour("G45-GS-11", shows="layout")
def test_geometry_shader_payload() -> None:
    """Table 5-2, G45 3351-3403."""
    record = unpack("GS_THREAD_PAYLOAD", GEN, (0, 16, 0x7F), (0, 0, 0x1FF), (2, 9, 1), (2, 0, 5), (5, 0, 1))
    assert (record.handle_id, record.urb_return_handle, record.fftid) == (0x7F, 0x1FF, 1)
    assert (record.edge_v2_v0_is_exterior, record.edge_v0_v1_is_exterior) == (1, 0)
    assert enumeration("3D_Prim_Topo_Type", GEN)[record.primitive_topology_type].lower().endswith("tristrip")


def test_clip_payload() -> None:
    """Table 6-1, G45 4659-4735: an outcode for each plane, viewport before guard band before user."""
    record = unpack("CLIP_THREAD_PAYLOAD", GEN, (2, 31, 1), (2, 26, 1), (2, 22, 1), (2, 14, 0x81), (2, 12, 1))
    assert (record.outcode_viewport_xmin, record.outcode_viewport_xmax, record.outcode_viewport_zmax,
            record.outcode_guardband_ymax) == (1, 0, 1, 1)
    assert (record.outcode_user_clip, record.outcode_bad, record.outcode_negative_w) == (0x81, 0, 1)


def test_setup_payload_and_what_it_sends() -> None:
    """G45 5852-6059."""
    record = unpack(
        "SF_THREAD_PAYLOAD",
        GEN,
        (R1, 17, 1),
        (R1 + 1, 0, 2),
        (R1 + 2, 0, single(4.0)),
        (R1 + 3, 0, single(1.0)),
        (R1 + 6, 0, single(-2.0)),
        (R2, 0, single(0.5)),
        (R2 + 5, 0, single(0.25)),
    )
    assert (record.back_facing, record.provoking_vertex, record.determinant, record.x1_minus_x0, record.y2_minus_y0) == (1, 2, 4.0, 1.0,
        -2.0)
    assert (record.z0, record.inverse_w2) == (0.5, 0.25)
    sent = layout("SF_THREAD_OUTPUT", GEN).unpack([single(float(i)) for i in range(24)])
    got = layout("SETUP_COEFFICIENTS", GEN).unpack([0] * 12 + [single(3.0), single(11.0), 0, single(19.0)] + [0] * 16)
    third = got.attribute[3]
    assert (sent.cx[3].value, sent.cy[3].value, sent.co[3].value) == (third.cx, third.cy, third.co) == (3.0, 11.0, 19.0)


def test_pixel_payload() -> None:
    """G45 7260-7599."""
    record = unpack(
        "PS_THREAD_PAYLOAD",
        GEN,
        (0, 16, 0xF0F0),
        (0, 0, 0xF0F0),
        (1, 6, 5),
        (R1, 0, single(8.0)),
        (R1 + 2, 16, 20),
        (R1 + 5, 0, 30),
        (R1 + 6, 31, 1),
        (R1 + 6, 25, 1),
        (R1 + 7, 27, 15),
        (R1 + 7, 16, 2047),
    )
    assert (record.pixel_mask, record.color_calculator_state_pointer, record.start_x) == (0xF0F0, 5 << 6, 8.0)
    assert (record.subspan[0].y, record.subspan[3].x, record.back_facing, record.antialias_alpha_present) == (20, 30, 1, 1)
    assert (record.viewport_index, record.render_target_array_index) == (15, 2047)
    depth = layout("PS_THREAD_DEPTH", GEN).unpack(list(range(16)))
    assert [pixel.depth for pixel in depth.subspan[1].pixel] == [4, 5, 6, 7]
    both = layout("PS_THREAD_ALPHA_STENCIL", GEN).unpack(words(8, (3, 24, 9), (4, 0, 0x80)))
    assert both.stencil_subspan[3].pixel[3].stencil == 9 and both.alpha_subspan[0].pixel[0].antialias_alpha == 0.5


def test_vertex_header() -> None:
    """G45 1091-1131."""
    record = unpack("VERTEX_HEADER", GEN, (1, 0, 2047), (2, 0, 15), (3, 8, 12), (3, 0, 0x81), (7, 0, single(0.5)))
    assert (record.render_target_array_index, record.viewport_index, record.point_width, record.user_clip_codes, record.rhw) == (2047,
        15, 1.5, 0x81, 0.5)


# -- media ---------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VFE-04", shows="layout")
def test_modes_of_the_front_end() -> None:
    """G45 9349-9358."""
    assert dict(layout("VFE_STATE", GEN).field("vfe_mode").type.values) == {
        0: "generic",
        1: "vld",
        2: "is",
        4: "avc-mc",
        7: "avc-it",
        11: "vc1-it",
    }


def test_media_headers() -> None:
    """Root, child, and what a thread sends to spawn another (G45 11159-11212, 11854-11868, 11915-11948)."""
    root = unpack("MEDIA_ROOT_THREAD_HEADER", GEN, (0, 0, 0xBEEF), (2, 4, 0x123), (5, 0, 0xFF), (6, 0, 77))
    assert (root.urb_handle, root.interface_descriptor_pointer, root.fftid, root.thread_count) == (0xBEEF, 0x1230, 0xFF, 77)
    assert unpack("MEDIA_CHILD_THREAD_HEADER", GEN, (7, 0, 77)).parent_thread_count == 77
    spawn = unpack("THREAD_SPAWN_PAYLOAD", GEN, (0, 0, 0xBEEF), (4, 10, 63), (4, 0, 1023))
    assert (spawn.dispatch_urb_handle, spawn.dispatch_urb_length, spawn.urb_handle_offset) == (0xBEEF, 63, 1023)


@pytest.mark.behaviour("G45-VLD-18", shows="layout")
def test_macroblock_of_a_decoded_slice() -> None:
    """R1, G45 11355-11458."""
    record = unpack(
        "MEDIA_VLD_MACROBLOCK",
        GEN,
        (7, 16, 0xFFFE),
        (4, 0, 3),
        (3, 20, 120),
        (3, 4, 127),
        (2, 18, 2),
        (2, 16, 3),
        (2, 6, 0x3F),
        (2, 5, 1),
        (2, 0, 31),
        (0, 28, 6),
        (0, 24, 3),
        (0, 16, 1),
    )
    assert (record.field_1_backward_vertical, record.field_0_forward_horizontal, record.vertical_origin,
            record.horizontal_origin) == (-2, 3, 120, 127)
    assert (record.picture_coding_type, record.picture_structure, record.coded_block_pattern, record.quantizer_scale_type) == (2, 3,
        0x3F, 1)
    assert (record.quantizer_scale_code, record.motion_vertical_field_select, record.motion_type, record.macroblock_intra_type) == (31,
        6, 3, 1)


@pytest.mark.behaviour("G45-IS-03", shows="layout")
def test_coefficients_of_inverse_scan() -> None:
    """G45 9825-9837."""
    assert unpack("MEDIA_OBJECT_IS_COEFFICIENT", GEN, (0, 16, 0xFF80), (0, 1, 63), (0, 0, 1)) == (-128, 63, 1)


@pytest.mark.behaviour("G45-IS-07", shows="layout")
def test_a_block_in_registers() -> None:
    """Two rows of eight words in each of four registers (G45 11473-11479)."""
    record = layout("MEDIA_BLOCK", GEN).unpack([2 * i | 2 * i + 1 << 16 for i in range(32)])
    assert [[word.value for word in row.column] for row in record.row] == [list(range(8 * y, 8 * y + 8)) for y in range(8)]


@pytest.mark.behaviour("G45-AIT-02", "G45-AIT-03", "G45-AIT-04", shows="layout")
def test_inline_data_of_avc() -> None:
    """G45 9939-10050."""
    record = unpack(
        "MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA",
        GEN,
        (0, 24, 7),
        (0, 20, 6),
        (0, 17, 7),
        (0, 13, 7),
        (0, 8, 25),
        (0, 6, 2),
        (0, 5, 1),
        (0, 2, 1),
        (0, 0, 2),
        (1, 16, 0xFFFF),
        (1, 8, 67),
        (1, 0, 119),
        (2, 24, 3),
        (2, 16, 4),
        (2, 8, 5),
        (2, 4, 6),
        (2, 0, 7),
        (6, 16, 8),
        (6, 0, 9),
        (7, 0, 10),
    )
    assert (record.mbaff_field_flag, record.field_mb_polarity_flag, record.mv_size) == (3, 1, 6)
    assert (record.dc_block_coded_y, record.dc_block_coded_cb, record.dc_block_coded_cr) == (1, 1, 1)
    assert (record.transform_8x8, record.field_macroblock, record.intra_macroblock, record.macroblock_type) == (1, 1, 1, 25)
    assert (record.weighted_biprediction, record.weighted_prediction, record.chroma_format, record.mbaff_frame,
            record.field_picture) == (2, 1, 1, 1, 0)
    assert (record.coded_block_pattern_y, record.vertical_origin, record.horizontal_origin) == (0xFFFF, 67, 119)
    assert (record.qp_prime_cr, record.qp_prime_cb, record.qp_prime_y, record.coded_block_pattern_cr,
            record.coded_block_pattern_cb) == (3, 4, 5, 6, 7)
    assert (record.level_scale_cb, record.level_scale_cr, record.level_scale_y) == (8, 9, 10)


@pytest.mark.behaviour("G45-AIT-19", shows="layout")
def test_dwords_3_to_5_mean_intra_or_inter() -> None:
    """G45 10052-10102."""
    record = unpack("MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA", GEN, (3, 0, 0x0706C5), (4, 0, 0x04030201), (5, 0, 0x08070605))
    assert (record.chroma_intra_prediction_mode, record.intra_available_e, record.intra_available_c, record.intra_available_a) == (3, 0,
        1, 1)
    assert [modes.modes for modes in record.luma_intra_prediction_modes] == [0x0201, 0x0403, 0x0605, 0x0807]
    assert (record.log2_weight_denominator_luma, record.sub_macroblock_prediction_mode, record.sub_macroblock_shape) == (7, 6, 0xC5)
    assert [i.index for i in record.binding_table_index_forward] == [1, 2, 3, 4] and [i.index
        for i in record.binding_table_index_backward] == [
        5,
        6,
        7,
        8,
    ]


@pytest.mark.behaviour("G45-AIT-12", shows="layout")
def test_coefficients_of_avc() -> None:
    """G45 10706-10723."""
    assert unpack("MEDIA_AVC_COEFFICIENT", GEN, (0, 16, 0xFFFF), (0, 1, 15), (0, 0, 1)) == (-1, 15, 1)


@pytest.mark.behaviour("G45-AIT-25", shows="layout")
def test_r0_of_avc_is_that_of_other_modes() -> None:
    """G45 11506-11559: the same bits of R0.0, R0.2, R0.4, R0.5, R0.6 and R0.7; sampler and scratch are not used."""
    record = unpack("MEDIA_ROOT_THREAD_HEADER", GEN, (0, 0, 0x1234), (2, 5, 1), (4, 5, 2), (5, 0, 3), (6, 0, 4), (7, 31, 1))
    assert (record.urb_handle, record.interface_descriptor_pointer, record.binding_table_pointer) == (0x1234, 32, 64)
    assert (record.fftid, record.thread_count, record.snapshot) == (3, 4, 1)


@pytest.mark.behaviour("G45-AMC-01", shows="layout")
def test_avc_mc_has_avc_it_s_places_without_quantisers() -> None:
    """G45 10725-10823."""
    it, mc = layout("MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA", GEN), layout("MEDIA_AVC_MACROBLOCK", GEN)
    own = {field.name: field.pieces for field in mc.fields}
    assert own.pop("coded_block_pattern") == ((64 + 13, 64 + 8),) and own.pop("intra_or_inter")
    assert all(it.field(name).pieces == pieces for name, pieces in own.items())
    assert {field.name for field in it.fields if field.high < 96} - set(own) == {
        "dc_block_coded_y",
        "dc_block_coded_cb",
        "dc_block_coded_cr",
        "intra_available_f",
        "qp_prime_cr",
        "qp_prime_cb",
        "qp_prime_y",
    }


def test_inline_data_of_vc1() -> None:
    """G45 10842-10987."""
    record = unpack(
        "MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA",
        GEN,
        (0, 28, 5),
        (0, 24, 2),
        (0, 19, 1),
        (0, 6, 0x2A),
        (1, 16, 0x80),
        (2, 16, 0xFFFF),
        (2, 0, 1),
        (7, 24, 3),
        (8, 8, 4),
    )
    assert (record.mv_field_select, record.motion_type, record.motion_4mv, record.coded_block_pattern, record.overlap_edge_mask_luma) == (
        5,
        2,
        1,
        0x2A,
        0x80,
    )
    assert (record.motion_vector[0].vertical, record.motion_vector[0].horizontal, record.subblock_coding_y3,
            record.subblock_coding_cr) == (-1, 1, 3, 4)


@pytest.mark.behaviour("G45-CS-04", "G45-CS-06", shows="layout")
def test_pointer_commands() -> None:
    """Five units and the colour calculator from the general base; five binding tables from the surface base (G45 958-1047)."""
    record = unpack("3DSTATE_PIPELINED_POINTERS", GEN, *((dword, 5, dword) for dword in range(1, 6)), (6, 6, 6))
    fields = [field for field in layout("3DSTATE_PIPELINED_POINTERS", GEN).fields if field.type.name == "address"]
    assert [getattr(record, field.name) for field in fields] == [32, 64, 96, 128, 160, 6 * 64]
    assert {field.type.base for field in fields} == {"general"}
    tables = [field for field in layout("3DSTATE_BINDING_TABLE_POINTERS", GEN).fields if field.type.name == "address"]
    assert [(field.low // 32, field.low % 32, field.type.base) for field in tables] == [(dword, 5, "surface") for dword in range(1, 6)]

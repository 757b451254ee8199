"""Gen4.5: codes, units and reserved bits of the G45 manual, as the pages state them."""

from __future__ import annotations

import pytest

from softgen.bits import describe
from softgen.bits.catalogue import enumeration, layout
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectKernel, IndirectState
from softgen.streamer.parser import Command
from softgen.trace.file import open_trace
from tests.bits.pages.test_three_d_pixel import single, unpack, words
from tests.conftest import ROOT

GEN = 4.5
UNITS = {"VS_STATE", "GS_STATE", "CLIP_STATE", "SF_STATE", "WM_STATE"}


@pytest.mark.behaviour("G45-FF-03", shows="layout")
def test_kernels_stand_at_the_general_base_plus_their_pointer() -> None:
    """64-byte units from the general base (G45 1469), in the pages and in what a driver sent."""
    for name in UNITS:
        pointer = next(field for field in layout(name, GEN).fields if field.name.startswith("kernel_start_pointer"))
        assert (pointer.low, pointer.type.base, pointer.type.target) == (6, "general", "kernel"), name
    base, pointers, kernels = 0, set[int](), set[int]()
    for _, items in Decoder(open_trace(ROOT / "tests" / "data" / "g45-gles-tri")).work():
        for item in items:
            match item.what:
                case Command(name="STATE_BASE_ADDRESS") as state:
                    assert state.layout
                    base = state.layout.unpack(state.dwords).general_state_base_address
                case IndirectState() as state if state.layout.name in UNITS:
                    record = state.layout.unpack(state.dwords)
                    pointers.add(base + (record.kernel_start_pointer_0 if state.layout.name == "WM_STATE" else record.kernel_start_pointer))
                case IndirectKernel() as state:
                    kernels.add(state.address)
    assert kernels and kernels <= pointers


@pytest.mark.behaviour("G45-SYNC-07", shows="layout")
def test_the_texture_cache_has_a_bit_of_its_own() -> None:
    """G45 1828-1829."""
    assert unpack("PIPE_CONTROL", GEN, (0, 10, 1)).texture_cache_invalidation_enable == 1


@pytest.mark.behaviour("G45-VF-02", shows="layout")
def test_an_indirect_count_is_an_address() -> None:
    """G45 2280, 2313-2314."""
    page = layout("3DPRIMITIVE", GEN)
    for indirect in (0, 1):
        lines = {line.name: line.text for line in describe.lines(page, words(6, (0, 9, indirect), (1, 0, 0x1240), header=0x7B000004))}
        assert ("vertex_count_address" in lines) == bool(indirect)
    assert "0x1240" in lines["vertex_count_address"]


@pytest.mark.behaviour("G45-VF-04", shows="layout")
def test_topologies() -> None:
    """G45 2342-2366."""
    found = enumeration("3D_Prim_Topo_Type", GEN)
    assert set(found) == {*range(0x01, 0x15), 0x16}
    assert (found[1], found[5], found[0xD], found[0xF], found[0x10], found[0x16]) == (
        "pointlist", "tristrip", "tristrip_reverse", "rectlist", "lineloop", "trifan_nostipple")  # fmt: skip


@pytest.mark.behaviour("G45-VF-26", shows="layout")
def test_what_a_component_stores() -> None:
    """G45 2229-2237: nothing, the source, 0, 1.0, 1, and three ids."""
    element = unpack("3DSTATE_VERTEX_ELEMENTS", GEN, (2, 28, 0), (2, 24, 1), (2, 20, 5), (2, 16, 7)).vertex_element[0]
    names = enumeration("3D_Vertex_Component_Control", GEN)
    assert [names[element[i]] for i in (4, 5, 6, 7)] == ["nostore", "store_src", "store_vid", "store_pid"]
    assert list(names.values()) == ["nostore", "store_src", "store_0", "store_1_fp", "store_1_int", "store_vid", "store_iid", "store_pid"]


@pytest.mark.behaviour("G45-VFE-20", shows="layout")
def test_scratch_counts_kilobytes_for_media_and_powers_for_3d() -> None:
    """G45 9335-9338, 2844-2852: 11 is twelve kilobytes in the one, two megabytes in the other."""
    for name, dword, told in (("VFE_STATE", 0, "11 (means 12)"), ("VS_STATE", 2, "11")):
        page = layout(name, GEN)
        lines = {line.name: line.text for line in describe.lines(page, words(page.dwords, (dword, 0, 11)))}
        assert lines["per_thread_scratch_space"] == told


@pytest.mark.behaviour("G45-VLD-04", shows="layout")
def test_what_the_bitstream_decoder_is_told() -> None:
    """G45 9379-9413."""
    record = unpack("VLD_STATE", GEN, (0, 28, 1), (0, 24, 2), (0, 20, 3), (0, 16, 4), (0, 14, 2), (0, 12, 3), (0, 11, 1), (0, 9, 1),
                 (0, 7, 1), (1, 9, 2))  # fmt: skip
    assert (record.f_code_1_1, record.f_code_1_0, record.f_code_0_1, record.f_code_0_0, record.intra_dc_precision) == (1, 2, 3, 4, 2)
    assert (record.top_field_first, record.frame_prediction_frame_dct, record.concealment_motion_vector) == (1, 0, 1)
    assert (record.quantizer_scale_type, record.intra_vlc_format, record.scan_order) == (0, 1, 0)
    page = layout("VLD_STATE", GEN)
    assert (describe.value_name(page, record, "picture_structure"),
            describe.value_name(page, record, "picture_coding_type")) == ("frame", "p")


@pytest.mark.behaviour("G45-VLD-27", shows="layout")
def test_leftovers_of_the_bitstream_decoder_are_reserved() -> None:
    """DW1[12:11] and [8:0], which the table still lists (G45 9408-9415)."""
    told = describe.reserved(layout("VLD_STATE", GEN), [0, 0x1FFF, 0, 0])
    assert [str(line) for line in told] == ["dword 1 bits 8:0 = 0x1ff", "dword 1 bits 12:11 = 0x3"]


@pytest.mark.behaviour("G45-TS-22", shows="layout")
def test_there_is_no_scoreboard_yet() -> None:
    """G45 9463-9502: its dwords are reserved on this generation, and used on later ones."""
    used = [0, 0, 0, 0, 0x800000FF, 0x12345678, 0x12345678, 0]
    assert [bits.low // 32 for bits in describe.reserved(layout("VFE_STATE_EX", GEN), used)][:1] == [4]
    assert describe.reserved(layout("VFE_STATE_EX", 9.0), used) == []


@pytest.mark.behaviour("G45-VIT-12", shows="layout")
def test_inline_data_of_vc1_takes_two_registers() -> None:
    """G45 10985, though 11843 draws one."""
    assert -(-layout("MEDIA_OBJECT_EX_VC1_IT_INLINE_DATA", GEN).dwords // 8) == 2


@pytest.mark.behaviour("G45-AIT-06", shows="layout")
@pytest.mark.parametrize(("code", "vectors"), [(0, "0"), (1, "value 1"), (2, "2"), (3, "value 3"), (4, "8"), (5, "16"), (6, "32"),
                                               (7, "value 7")])  # fmt: skip
def test_how_many_motion_vectors_follow(code: int, vectors: str) -> None:
    """G45 9959-9968: five codes and three that are reserved. How many dwords that makes nobody counts here."""
    page = layout("MEDIA_OBJECT_EX_AVC_IT_INLINE_DATA", GEN)
    assert describe.value_name(page, unpack(page.name, GEN, (0, 20, code)), "mv_size") == vectors


@pytest.mark.behaviour("G45-IS-13", shows="layout")
def test_inline_fields_of_a_macroblock() -> None:
    """G45 9709-9798: field selects, kinds of motion and transform, the picture, where the macroblock stands."""
    record = unpack("MEDIA_OBJECT_IS_INLINE_DATA", GEN, (0, 28, 9), (0, 27, 1), (0, 24, 2), (0, 21, 1), (0, 18, 1), (0, 16, 1),
                    (2, 6, 0x2A),
                 (4, 16, 0xFFFE), (7, 0, 5), (8, 18, 3), (8, 16, 2), (9, 20, 17))  # fmt: skip
    assert (record.motion_vertical_field_select, record.second_field, record.motion_type, record.dct_type) == (9, 1, 2, 1)
    assert (record.macroblock_motion_backward, record.macroblock_motion_forward, record.macroblock_intra_type) == (1, 0, 1)
    assert (record.coded_block_pattern, record.field_0_forward_vertical, record.field_1_backward_horizontal) == (0x2A, -2, 5)
    assert (record.picture_coding_type, record.picture_structure, record.vertical_origin) == (3, 2, 17)


@pytest.mark.behaviour("G45-SF-42", shows="layout")
def test_widths_of_lines_and_of_their_smooth_ends() -> None:
    """U3.1, and four regions (G45 5687-5701)."""
    assert [unpack("SF_STATE", GEN, (6, 24, code)).line_width for code in (0, 1, 15)] == [0.0, 0.5, 7.5]
    page = layout("SF_STATE", GEN)
    states = [unpack("SF_STATE", GEN, (6, 22, code)) for code in range(4)]
    regions = [describe.value_name(page, state, "line_end_cap_antialiasing_region_width") for state in states]
    assert regions == ["0.5 pixels", "1.0 pixels", "2.0 pixels", "4.0 pixels"]


@pytest.mark.behaviour("G45-CC-12", shows="layout")
def test_compare_functions() -> None:
    """G45 8226-8236."""
    page = layout("COLOR_CALC_STATE", GEN)
    names = [describe.value_name(page, unpack(page.name, GEN, (2, 12, code)), "depth_test_function") for code in range(8)]
    assert names == ["always", "never", "less", "equal", "lequal", "greater", "notequal", "gequal"]


@pytest.mark.behaviour("G45-CC-21", shows="layout")
def test_blend_factors() -> None:
    """Nineteen, the inverse of each 10h further on (G45 8340-8360); four fields hold them (G45 8317-8362)."""
    names = {0x01: "one", 0x02: "src_color", 0x03: "src_alpha", 0x04: "dst_alpha", 0x05: "dst_color", 0x06: "src_alpha_saturate",
             0x07: "const_color", 0x08: "const_alpha", 0x09: "src1_color", 0x0A: "src1_alpha", 0x11: "zero", 0x12: "inv_src_color",
             0x13: "inv_src_alpha", 0x14: "inv_dst_alpha", 0x15: "inv_dst_color", 0x17: "inv_const_color", 0x18: "inv_const_alpha",
             0x19: "inv_src1_color", 0x1A: "inv_src1_alpha"}  # fmt: skip
    assert enumeration("3D_Color_Buffer_Blend_Factor", GEN) == names
    page = layout("COLOR_CALC_STATE", GEN)
    for field, dword, bit in (("source_alpha_blend_factor", 5, 7), ("destination_alpha_blend_factor", 5, 2), ("source_blend_factor", 6, 24),
                              ("destination_blend_factor", 6, 19)):  # fmt: skip
        for code, name in names.items():
            assert describe.value_name(page, unpack(page.name, GEN, (dword, bit, code)), field) == name


@pytest.mark.behaviour("G45-CC-28", shows="layout")
def test_the_constant_colour_is_four_floats_of_the_group_that_is_not_pipelined() -> None:
    """G45 7961-7999."""
    record = unpack("3DSTATE_CONSTANT_COLOR", GEN, *((1 + i, 0, single(value)) for i, value in enumerate((0.25, -1.5, 2.0, 1.0))))
    assert tuple(record)[-4:] == (0.25, -1.5, 2.0, 1.0)
    assert layout("3DSTATE_CONSTANT_COLOR", GEN).key.split(".")[2] == "1"

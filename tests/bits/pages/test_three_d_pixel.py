"""Clip to pixel backend: commands and state put together by the manuals' tables, taken apart by the pages."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.bits.catalogue import enumeration, find_command, layout
from softgen.bits.layout import GENERATIONS


def words(count: int, *places: tuple[int, int, int], header: int = 0) -> list[int]:
    """Dwords with values at (dword, lowest bit); a value may run into the next dwords."""
    bits = header
    for dword, low, value in places:
        bits |= value << 32 * dword + low
    return [bits >> 32 * i & 0xFFFFFFFF for i in range(count)]


def single(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def unpack(name: str, gen: float, *places: tuple[int, int, int]) -> Any:
    """The record of a structure or command; no place given may be a reserved bit."""
    page = layout(name, gen)
    dwords = words(page.dwords, *places, header=page.header.value | page.dwords - 2 if page.header else 0)
    stray = sum(value << 32 * i for i, value in enumerate(dwords)) & page.reserved()
    assert not stray, f"{name} gen {gen:g} reserves {stray:#x}"
    return page.unpack(dwords)


# -- headers: the first dword, from the opcode tables of the manuals --------------------------------------------------

HEADERS = {
    "3DSTATE_CLIP": 0x78120002, "3DSTATE_SF": 0x78130002, "3DSTATE_WM": 0x78140000, "3DSTATE_SAMPLE_MASK": 0x78180000,
    "3DSTATE_SBE": 0x781F0002,
    "3DSTATE_PS": 0x7820000A, "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": 0x78210000, "3DSTATE_VIEWPORT_STATE_POINTERS_CC": 0x78230000,
    "3DSTATE_BLEND_STATE_POINTERS": 0x78240000, "3DSTATE_CC_STATE_POINTERS": 0x780E0000, "3DSTATE_SCISSOR_STATE_POINTERS": 0x780F0000,
    "3DSTATE_CLEAR_PARAMS": 0x78040001, "3DSTATE_DEPTH_BUFFER": 0x78050006, "3DSTATE_STENCIL_BUFFER": 0x78060003,
    "3DSTATE_HIER_DEPTH_BUFFER": 0x78070003, "3DSTATE_MULTISAMPLE": 0x780D0000, "3DSTATE_WM_CHROMAKEY": 0x784C0000,
    "3DSTATE_PS_BLEND": 0x784D0000,
    "3DSTATE_WM_DEPTH_STENCIL": 0x784E0001, "3DSTATE_PS_EXTRA": 0x784F0000, "3DSTATE_RASTER": 0x78500003, "3DSTATE_SBE_SWIZ": 0x78510009,
    "3DSTATE_WM_HZ_OP": 0x78520003, "3DSTATE_DRAWING_RECTANGLE": 0x79000002, "3DSTATE_POLY_STIPPLE_OFFSET": 0x79060000,
    "3DSTATE_POLY_STIPPLE_PATTERN": 0x7907001F, "3DSTATE_LINE_STIPPLE": 0x79080001, "3DSTATE_AA_LINE_PARAMETERS": 0x790A0001,
    "3DSTATE_MONOFILTER_SIZE": 0x79110000, "3DSTATE_SAMPLE_PATTERN": 0x791C0007,
}  # fmt: skip


@pytest.mark.parametrize("name, header", HEADERS.items())
def test_broadwell_headers(name: str, header: int) -> None:
    found = find_command(header, 8, "render")
    assert found and found.name == name
    assert found.length(header) == found.dwords == (header & 0xFF) + 2
    assert found.pack()[0] == header


def test_commands_that_moved() -> None:
    """4.5 has the depth buffer among the non-pipelined commands, 7 the multisample command."""
    for header, gen, name in (
        (0x79050004, 4.5, "3DSTATE_DEPTH_BUFFER"),
        (0x790D0002, 7, "3DSTATE_MULTISAMPLE"),
        (0x790E0004, 7.5, "3DSTATE_RAST_MULTISAMPLE"),
    ):
        found = find_command(header, gen, "render")
        assert found and found.name == name and found.dwords == (header & 0xFF) + 2
    assert find_command(0x78050004, 4.5, "render") is None


# -- Broadwell, by the tables of manual 000 ---------------------------------------------------------------------------


def test_clip() -> None:
    """BDW 1903-2254."""
    r = unpack("3DSTATE_CLIP", 8, (1, 10, 1), (1, 0, 0x21), (2, 31, 1), (2, 30, 1), (2, 16, 0xC0), (2, 13, 4), (2, 4, 2), (2, 2, 1),
               (2, 0, 2), (3, 17, 1), (3, 6, 0x7FF), (3, 0, 15))  # fmt: skip
    assert (r.clipper_statistics_enable, r.user_clip_distance_cull_test_enable_bitmask, r.clip_enable) == (1, 0x21, 1)
    assert (r.api_mode, r.user_clip_distance_clip_test_enable_bitmask, r.clip_mode) == (1, 0xC0, 4)
    provoking = (
        r.triangle_strip_list_provoking_vertex_select,
        r.line_strip_list_provoking_vertex_select,
        r.triangle_fan_provoking_vertex_select,
    )
    assert provoking == (2, 1, 2)
    assert (r.minimum_point_width, r.maximum_point_width, r.maximum_vp_index) == (0.125, 255.875, 15)


def test_raster_and_the_z_test_that_became_two() -> None:
    """BDW 8490-8750: one bit enables near and far together; 9 has a far bit of its own."""
    r = unpack("3DSTATE_RASTER", 8, (1, 21, 1), (1, 16, 3), (1, 5, 1), (1, 3, 2), (1, 0, 1), (2, 0, single(4.0)), (4, 0,
               single(-0.5)))  # fmt: skip
    assert (r.front_winding, r.cull_mode, r.front_face_fill_mode, r.back_face_fill_mode) == (1, 3, 1, 2)
    assert (r.global_depth_offset_constant, r.global_depth_offset_clamp) == (4.0, -0.5)
    assert r.viewport_z_near_clip_test_enable == r.viewport_z_far_clip_test_enable == 1
    r = unpack("3DSTATE_RASTER", 9, (1, 26, 1))
    assert (r.viewport_z_near_clip_test_enable, r.viewport_z_far_clip_test_enable) == (0, 1)


def test_setup() -> None:
    """BDW 10315-10445; the line's width moved to the first dword on 9."""
    r = unpack("3DSTATE_SF", 8, (1, 10, 1), (1, 1, 1), (2, 18, 0x80), (2, 16, 3), (3, 31, 1), (3, 29, 2), (3, 27, 1), (3, 25, 1),
               (3, 11, 1), (3, 0, 9))  # fmt: skip
    assert (r.statistics_enable, r.viewport_transform_enable, r.line_width, r.line_end_cap_antialiasing_region_width) == (1, 1, 1.0, 3)
    assert (r.last_pixel_enable, r.point_width_source, r.point_width) == (1, 1, 1.125)
    assert unpack("3DSTATE_SF", 9, (1, 12, 0x100)).line_width == 2.0


def test_setup_attributes() -> None:
    """BDW 9975-10099 and the 16-bit records of KBL 22944-23016, two to a dword."""
    r = unpack("3DSTATE_SBE", 8, (1, 28, 1), (1, 22, 3), (1, 21, 1), (1, 16, 5), (1, 11, 2), (1, 5, 1), (1, 0, 7), (2, 0, 2),
               (3, 0, 4))  # fmt: skip
    assert (r.force_vertex_urb_entry_read_offset, r.number_of_sf_output_attributes, r.attribute_swizzle_enable) == (1, 3, 1)
    assert (r.primitive_id_override_component_x, r.primitive_id_override_component_y, r.primitive_id_override_component_z) == (1, 0, 1)
    assert (r.vertex_urb_entry_read_length, r.vertex_urb_entry_read_offset, r.primitive_id_override_attribute_select) == (2, 1, 7)
    assert (r.point_sprite_texture_coordinate_enable, r.constant_interpolation_enable) == (2, 4)
    r = unpack("3DSTATE_SBE_SWIZ", 8, (1, 16 + 12, 9), (1, 16 + 9, 3), (1, 16 + 6, 1), (1, 16, 30), (8, 16, 31), (10, 28, 0xA))
    second = r.attribute[1]
    assert (second.component_override_w, second.component_override_x, second.component_override_y) == (1, 1, 0)
    assert (second.constant_source, second.swizzle_select, second.source_attribute) == (3, 1, 30)
    assert r.attribute[15].source_attribute == 31 and r.wrap_shortest[15].enables == 0xA
    formats = unpack("3DSTATE_SBE", 9, (4, 0, 3), (5, 30, 1)).attribute_active_component
    assert (formats[0].format, formats[1].format, formats[31].format) == (3, 0, 1)


def test_sample_positions() -> None:
    """BDW 8863-9175: sample 4 to 7 of eight come before 0 to 3."""
    r = unpack("3DSTATE_SAMPLE_PATTERN", 8, (5, 28, 0xF), (5, 0, 1), (6, 4, 3), (7, 20, 8), (8, 20, 8), (8, 16, 8), (8, 12, 12))
    assert r.samples_8x_from_4[3].x_offset == 15 / 16 and r.samples_8x_from_4[0].y_offset == 1 / 16
    assert r.samples_8x[0].x_offset == 3 / 16 and r.samples_4x[2].x_offset == 0.5
    assert r.samples_1x[0] == (0.5, 0.5) and r.samples_2x[1].x_offset == 0.75
    assert unpack("3DSTATE_SAMPLE_PATTERN", 9, (4, 24, 5)).samples_16x[15].y_offset == 5 / 16
    assert unpack("3DSTATE_MULTISAMPLE", 7, (1, 1, 3), (3, 28, 7)).sample[7].x_offset == 7 / 16


def test_windower() -> None:
    """BDW 13342-13628."""
    r = unpack("3DSTATE_WM", 8, (1, 31, 1), (1, 21, 2), (1, 19, 1), (1, 17, 3), (1, 11, 0x21), (1, 8, 1), (1, 6, 2), (1, 2, 1),
               (1, 0, 2))  # fmt: skip
    assert (r.statistics_enable, r.early_depth_stencil_control, r.force_thread_dispatch_enable) == (1, 2, 1)
    assert (r.position_zw_interpolation_mode, r.barycentric_interpolation_mode) == (3, 0x21)
    assert (r.line_end_cap_antialiasing_region_width, r.line_antialiasing_region_width) == (1, 2)
    assert (r.point_rasterization_rule, r.force_kill_pixel_enable) == (1, 2)


def test_pixel_shader() -> None:
    """BDW 7246-7609: pointers are whole addresses, 64-bit on 8."""
    r = unpack("3DSTATE_PS", 8, (1, 0, 0x123_4567_89C0), (3, 30, 1), (3, 27, 2), (3, 18, 5), (3, 14, 3), (4, 0, 0x2_0000_0400 | 6),
               (6, 23, 62), (6, 11, 1), (6, 3, 2), (6, 0, 3), (7, 16, 2), (7, 8, 4), (7, 0, 6), (8, 0, 0x40), (10, 0, 0x80))  # fmt: skip
    assert (r.kernel_start_pointer_0, r.kernel_start_pointer_1, r.kernel_start_pointer_2) == (0x123_4567_89C0, 0x40, 0x80)
    assert (r.vector_mask_enable, r.sampler_count, r.binding_table_entry_count, r.rounding_mode) == (1, 2, 5, 3)
    assert (r.scratch_space_base_pointer, r.per_thread_scratch_space, r.maximum_number_of_threads_per_psd) == (0x2_0000_0400, 6, 62)
    assert (r.push_constant_enable, r.position_xy_offset_select) == (1, 2)
    dispatch = [getattr(r, f"{width}_pixel_dispatch_enable") for width in (8, 16, 32)]
    starts = [getattr(r, f"dispatch_grf_start_register_for_constant_setup_data_{i}") for i in range(3)]
    assert (dispatch, starts) == ([1, 1, 0], [2, 4, 6])


def test_pixel_shader_extras() -> None:
    """BDW 7646-7811; the bits 29 and 28 lost their numbers in the manual's text (BDW 7657, 7671)."""
    r = unpack("3DSTATE_PS_EXTRA", 8, (1, 31, 1), (1, 29, 1), (1, 26, 2), (1, 8, 1), (1, 6, 1), (1, 1, 1))
    assert (r.pixel_shader_valid, r.omask_present_to_render_target, r.pixel_shader_kills_pixel) == (1, 1, 0)
    assert (r.pixel_shader_computed_depth_mode, r.attribute_enable, r.pixel_shader_is_per_sample, r.input_coverage_mask_state) == (
        2,
        1,
        1,
        1,
    )
    assert unpack("3DSTATE_PS_EXTRA", 9, (1, 0, 2)).input_coverage_mask_state == 2


@pytest.mark.behaviour("BDW-Z-01", "BDW-Z-16", shows="layout")
def test_depth_buffer() -> None:
    """BDW 2743-2955."""
    r = unpack("3DSTATE_DEPTH_BUFFER", 8, (1, 29, 1), (1, 28, 1), (1, 22, 1), (1, 18, 3), (1, 0, 4095), (2, 0, 0xFFFE_0012_3000),
               (4, 18, 767), (4, 4, 1023), (4, 0, 2), (5, 21, 5), (5, 10, 1), (5, 0, 0x78), (7, 21, 5), (7, 0, 200))  # fmt: skip
    assert (r.surface_type, r.depth_write_enable, r.stencil_write_enable, r.hierarchical_depth_buffer_enable) == (1, 1, 0, 1)
    assert (r.surface_format, r.surface_pitch, r.surface_base_address) == (3, 4095, 0xFFFE_0012_3000)
    assert (r.height, r.width, r.lod, r.depth, r.minimum_array_element, r.mocs) == (767, 1023, 2, 5, 1, 0x78)
    assert (r.render_target_view_extent, r.surface_qpitch, r.qpitch_rows) == (5, 200, 800)
    r = unpack("3DSTATE_STENCIL_BUFFER", 8, (1, 31, 1), (1, 22, 0x78), (1, 0, 127), (2, 0, 0x1000), (4, 0, 3))
    assert (r.stencil_buffer_enable, r.mocs, r.surface_pitch, r.surface_base_address, r.qpitch_rows) == (1, 0x78, 127, 0x1000, 12)
    r = unpack("3DSTATE_HIER_DEPTH_BUFFER", 8, (1, 25, 0x78), (1, 0, 127), (2, 0, 0x2000), (4, 0, 3))
    assert (r.mocs, r.surface_pitch, r.surface_base_address, r.qpitch_rows) == (0x78, 127, 0x2000, 12)
    kinds = dict(layout("3DSTATE_DEPTH_BUFFER", 8).field("surface_type").type.values)
    assert enumeration("Depth_Format", 8) == {1: "d32_float", 3: "d24_unorm_x8_uint", 5: "d16_unorm"}
    assert kinds == {0: "1d", 1: "2d", 2: "3d", 3: "cube", 7: "null"}


@pytest.mark.behaviour("BDW-Z-06", shows="layout")
def test_stencil_references_changed_their_place() -> None:
    """Until 8 COLOR_CALC_STATE, on 9 the fourth dword of 3DSTATE_WM_DEPTH_STENCIL: neither manual alone says so."""
    place = [(name, gen) for name in ("COLOR_CALC_STATE", "3DSTATE_WM_DEPTH_STENCIL") for gen in GENERATIONS[2:]
             if name == "COLOR_CALC_STATE" or gen > 7.5]  # fmt: skip
    holds = {(name, gen) for name, gen in place if any(f.name == "stencil_reference_value" for f in layout(name, gen).fields)}
    assert holds == {("COLOR_CALC_STATE", 7), ("COLOR_CALC_STATE", 7.5), ("COLOR_CALC_STATE", 8),
                     ("3DSTATE_WM_DEPTH_STENCIL", 9), ("3DSTATE_WM_DEPTH_STENCIL", 11)}  # fmt: skip
    assert (layout("3DSTATE_WM_DEPTH_STENCIL", 8).dwords, layout("3DSTATE_WM_DEPTH_STENCIL", 9).dwords) == (3, 4)
    r = unpack("3DSTATE_WM_DEPTH_STENCIL", 9, (1, 29, 2), (1, 8, 7), (1, 5, 4), (1, 0, 0b01011), (2, 24, 0xFF), (2, 0, 0xF0),
               (3, 8, 0x80), (3, 0, 1))  # fmt: skip
    assert (r.stencil_fail_op, r.stencil_test_function, r.depth_test_function) == (2, 7, 4)
    assert (r.double_sided_stencil_enable, r.stencil_test_enable, r.stencil_buffer_write_enable) == (0, 1, 0)
    assert (r.depth_test_enable, r.depth_buffer_write_enable, r.stencil_test_mask, r.backface_stencil_write_mask) == (1, 1, 0xFF, 0xF0)
    assert (r.stencil_reference_value, r.backface_stencil_reference_value) == (0x80, 1)


def test_hierarchical_depth_operation() -> None:
    """BDW 13705-13954."""
    r = unpack("3DSTATE_WM_HZ_OP", 8, (1, 30, 1), (1, 25, 1), (1, 16, 0x5A), (1, 13, 2), (2, 16, 1), (2, 0, 2), (3, 16, 3), (3, 0, 4),
               (4, 0, 0xFFFF))  # fmt: skip
    assert (r.stencil_buffer_clear_enable, r.depth_buffer_clear_enable, r.full_surface_depth_and_stencil_clear) == (0, 1, 1)
    assert (r.stencil_clear_value, r.number_of_multisamples, r.sample_mask) == (0x5A, 2, 0xFFFF)
    assert (r.clear_rectangle_y_min, r.clear_rectangle_x_min, r.clear_rectangle_y_max, r.clear_rectangle_x_max) == (1, 2, 3, 4)


def test_drawing_rectangle() -> None:
    """BDW 2998-3116: the origin is signed."""
    r = unpack("3DSTATE_DRAWING_RECTANGLE", 8, (0, 14, 1), (1, 16, 1), (1, 0, 2), (2, 16, 767), (2, 0, 1023), (3, 16, 0xFFFF),
               (3, 0, 5))  # fmt: skip
    assert (r.core_mode_select, r.clipped_drawing_rectangle_y_min, r.clipped_drawing_rectangle_x_min) == (1, 1, 2)
    assert (r.clipped_drawing_rectangle_y_max, r.clipped_drawing_rectangle_x_max) == (767, 1023)
    assert (r.drawing_rectangle_origin_y, r.drawing_rectangle_origin_x) == (-1, 5)


def test_line_stipple_counts_in_more_bits_since_7() -> None:
    """BDW 6706-6746: U1.16 at 31:15; G45 6498: thirteen bits behind the point at 31:16."""
    r = unpack("3DSTATE_LINE_STIPPLE", 8, (1, 31, 1), (1, 21, 255), (1, 16, 9), (1, 0, 0xAAAA), (2, 15, 1 << 15), (2, 0, 2))
    assert (r.modify_enable, r.current_repeat_counter, r.current_stipple_index, r.line_stipple_pattern) == (1, 255, 9, 0xAAAA)
    assert (r.line_stipple_inverse_repeat_count, r.line_stipple_repeat_count) == (0.5, 2)
    assert unpack("3DSTATE_LINE_STIPPLE", 4.5, (2, 16, 1 << 12)).line_stipple_inverse_repeat_count == 0.5


# -- Kaby Lake, by the tables of manual 001 ---------------------------------------------------------------------------


def test_blend_state_has_an_entry_per_target() -> None:
    """KBL 2121-2200 and 2219-2404: a dword for all, then 64 bits a target; 544 bits hold eight."""
    page = layout("BLEND_STATE", 9)
    r = page.unpack(
        words(
            17,
            (0, 31, 1),
            (0, 27, 1),
            (0, 24, 5),
            (15, 31, 1),
            (15, 26, 3),
            (15, 21, 0x13),
            (15, 18, 4),
            (15, 0, 9),
            (16, 31, 1),
            (16, 27, 6),
        )
    )
    assert page.maximum == 17 and len(r.render_target) == 8
    assert (r.alpha_to_coverage_enable, r.alpha_test_enable, r.alpha_test_function) == (1, 1, 5)
    last = r.render_target[7]
    assert (last.color_buffer_blend_enable, last.source_blend_factor, last.destination_blend_factor, last.color_blend_function) == (
        1,
        3,
        0x13,
        4,
    )
    assert (last.write_disable_alpha, last.write_disable_red, last.write_disable_blue) == (1, 0, 1)
    assert (last.logic_op_enable, last.logic_op_function) == (1, 6)
    assert len(page.unpack(words(3)).render_target) == 1
    seven = layout("BLEND_STATE", 7).unpack(words(4, (3, 27, 1), (3, 31, 1))).render_target
    assert len(seven) == 2 and (seven[1].write_disable_alpha, seven[1].alpha_to_coverage_enable) == (1, 1)


def test_colour_calculator() -> None:
    """KBL 3627-3679: the reference value has two readings."""
    r = unpack("COLOR_CALC_STATE", 9, (0, 15, 1), (0, 0, 1), (1, 0, single(0.5)), (2, 0, single(1.0)), (5, 0, single(0.25)))
    assert (r.round_disable_function_disable, r.alpha_test_format, r.alpha_reference_value_as_float32) == (1, 1, 0.5)
    assert (r.alpha_reference_value_as_unorm8, r.blend_constant_color_red, r.blend_constant_color_alpha) == (single(0.5), 1.0, 0.25)
    as_float = layout("COLOR_CALC_STATE", 9).field("alpha_reference_value_as_float32")
    assert as_float.when[0].field == "alpha_test_format" and as_float.when[0].values == (1,)


def test_viewports() -> None:
    """KBL 22855-22921, 3487-3496, 22768-22791."""
    r = unpack("SF_CLIP_VIEWPORT", 9, (0, 0, single(2.0)), (5, 0, single(3.0)), (8, 0, single(-8.0)), (15, 0, single(767.0)))
    assert (r.viewport_matrix_element_m00, r.viewport_matrix_element_m32, r.x_min_clip_guardband, r.y_max_viewport) == (
        2.0,
        3.0,
        -8.0,
        767.0,
    )
    assert tuple(unpack("CC_VIEWPORT", 9, (1, 0, single(1.0)))) == (0.0, 1.0)
    assert tuple(unpack("SCISSOR_RECT", 9, (0, 16, 1), (0, 0, 2), (1, 16, 3), (1, 0, 4))) == (1, 2, 3, 4)


# -- G45, by the tables of manual 002 ---------------------------------------------------------------------------------


def test_unit_states_point_at_kernels_and_viewports() -> None:
    """G45 3928-4129, 5562-5778, 8127-8417: offsets from the general state base."""
    for name, pointer in (
        ("CLIP_STATE", "clip_viewport_pointer"),
        ("SF_STATE", "sf_viewport_pointer"),
        ("COLOR_CALC_STATE", "cc_viewport_pointer"),
    ):
        found = layout(name, 4.5).field(pointer)
        assert (found.type.base, found.type.target) == (
            "general",
            {"CLIP": "CLIP_VIEWPORT", "SF_S": "SF_VIEWPORT", "COLO": "CC_VIEWPORT"}[name[:4]],
        )
    r = unpack("CLIP_STATE", 4.5, (0, 6, 0x100), (0, 1, 7), (4, 25, 1), (4, 19, 3), (4, 11, 64), (4, 10, 1), (4, 9, 1), (5, 25, 1),
               (5, 16, 0x3F), (5, 13, 1), (6, 5, 0x20), (10, 0, single(767.0)))  # fmt: skip
    assert (r.kernel_start_pointer, r.grf_register_count, r.maximum_number_of_threads, r.urb_entry_allocation_size) == (0x4000, 7, 1, 3)
    assert (r.number_of_urb_entries, r.clipper_statistics_enable, r.gs_output_object_statistics_enable) == (64, 1, 1)
    assert (r.negative_w_clip_test_enable, r.user_clip_distance_clip_test_enable_bitmask, r.clip_mode) == (1, 0x3F, 1)
    assert (r.clip_viewport_pointer, r.screen_space_viewport_y_max) == (0x400, 767.0)
    r = unpack("SF_STATE", 4.5, (4, 25, 23), (5, 5, 1), (5, 1, 1), (6, 29, 3), (6, 24, 3), (6, 13, 8), (6, 9, 8), (7, 31, 1), (7, 11, 1),
               (7, 0, 8))  # fmt: skip
    assert (r.maximum_number_of_threads, r.sf_viewport_pointer, r.viewport_transform_enable, r.cull_mode) == (23, 32, 1, 3)
    assert (r.line_width, r.destination_origin_horizontal_bias, r.destination_origin_vertical_bias) == (1.5, 0.5, 0.5)
    assert (r.last_pixel_enable, r.point_width_source, r.point_width) == (1, 1, 1.0)


@pytest.mark.behaviour("G45-WM-52", shows="layout")
def test_g45_windower_flags() -> None:
    """G45 6233-6324: dword 5, each bit alone."""
    bits = {24: "transposed_urb_read_enable", 23: "legacy_diamond_line_rasterization", 22: "pixel_shader_kills_pixel",
            21: "pixel_shader_computed_depth", 20: "pixel_shader_uses_source_depth", 19: "thread_dispatch_enable",
            18: "early_depth_test_enable", 13: "polygon_stipple_enable", 12: "global_depth_offset_enable",
            11: "line_stipple_enable", 10: "legacy_global_depth_bias_enable", 4: "contiguous_64_pixel_dispatch_enable",
            3: "contiguous_32_pixel_dispatch_enable", 2: "32_pixel_dispatch_enable", 1: "16_pixel_dispatch_enable",
            0: "8_pixel_dispatch_enable"}  # fmt: skip
    for bit, name in bits.items():
        r = unpack("WM_STATE", 4.5, (5, bit, 1))
        assert [n for n, value in r._asdict().items() if value] == [name]
    r = unpack("WM_STATE", 4.5, (5, 25, 49), (5, 16, 2), (5, 14, 1))
    assert (r.maximum_number_of_threads, r.line_end_cap_antialiasing_region_width, r.line_antialiasing_region_width) == (49, 2, 1)


@pytest.mark.behaviour("G45-WM-48", shows="layout")
def test_g45_depth_buffer() -> None:
    """G45 6893-7113: six dwords with Cantiga's offsets."""
    r = unpack("3DSTATE_DEPTH_BUFFER", 4.5, (1, 29, 1), (1, 27, 1), (1, 26, 1), (1, 18, 2), (1, 0, 2047), (2, 0, 0x0123_4000),
               (3, 19, 479), (3, 6, 639), (3, 2, 1), (3, 1, 1), (4, 21, 3), (4, 10, 1), (4, 1, 3), (5, 16, 0xFFF8), (5, 0, 8))  # fmt: skip
    assert (r.surface_type, r.tiled_surface, r.tile_walk, r.surface_format, r.surface_pitch) == (1, 1, 1, 2, 2047)
    assert (r.surface_base_address, r.height, r.width, r.lod, r.mip_map_layout_mode) == (0x0123_4000, 479, 639, 1, 1)
    assert (r.depth, r.minimum_array_element, r.render_target_view_extent) == (3, 1, 3)
    assert (r.depth_coordinate_offset_y, r.depth_coordinate_offset_x) == (-8, 8)
    minus_one = {f.name for f in layout("3DSTATE_DEPTH_BUFFER", 4.5).fields if f.type.name == "minus1"}
    assert minus_one == {"surface_pitch", "height", "width", "depth", "render_target_view_extent"}


def test_g45_colour_calculator() -> None:
    """G45 8127-8418."""
    r = unpack("COLOR_CALC_STATE", 4.5, (0, 31, 1), (0, 28, 7), (1, 24, 0x80), (1, 0, 0x7F), (2, 15, 1), (2, 12, 4), (2, 11, 1),
               (3, 12, 1), (3, 8, 5), (4, 5, 2), (5, 16, 12), (5, 12, 3), (5, 7, 1), (5, 2, 0x11), (6, 29, 4), (6, 24, 3), (6, 19, 0x13),
               (7, 0, 0xFF))  # fmt: skip
    assert (r.stencil_test_enable, r.stencil_test_function, r.stencil_reference_value, r.backface_stencil_reference_value) == (
        1,
        7,
        0x80,
        0x7F,
    )
    assert (r.depth_test_enable, r.depth_test_function, r.depth_buffer_write_enable) == (1, 4, 1)
    assert (r.color_buffer_blend_enable, r.alpha_test_function, r.cc_viewport_pointer, r.logic_op_function) == (1, 5, 64, 12)
    assert (r.alpha_blend_function, r.source_alpha_blend_factor, r.destination_alpha_blend_factor) == (3, 1, 0x11)
    assert (r.color_blend_function, r.source_blend_factor, r.destination_blend_factor, r.alpha_reference_value_as_unorm8) == (
        4,
        3,
        0x13,
        0xFF,
    )

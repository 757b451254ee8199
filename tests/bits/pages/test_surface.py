"""Surfaces and samplers: structures put together by the manuals' tables, taken apart by the pages."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.layout import GENERATIONS
from tests.bits.pages.test_three_d_pixel import single, unpack, words

BUFFER, STRBUF = 4, 5


def applies(name: str, gen: float, field: str, record: Any) -> bool:
    """Whether a field's `when` holds for a record."""
    return all((getattr(record, c.field) in c.values) != c.negated for c in layout(name, gen).field(field).when)


# -- RENDER_SURFACE_STATE ---------------------------------------------------------------------------------------------


def test_texture_on_kaby_lake() -> None:
    """KBL 18906-20154."""
    r = unpack("RENDER_SURFACE_STATE", 9, (0, 29, 1), (0, 28, 1), (0, 18, 0xC7), (0, 16, 1), (0, 14, 3), (0, 12, 3), (1, 24, 4),
               (1, 0, 64), (2, 16, 255), (2, 0, 511), (3, 21, 5), (3, 0, 2047), (4, 18, 2), (4, 7, 3), (4, 3, 2), (5, 25, 3), (5, 21, 1),
               (5, 4, 1), (5, 0, 9), (7, 25, 4), (7, 22, 5), (7, 19, 6), (7, 16, 7), (7, 0, 0x180), (8, 0, 0xFFFF_0000_1000))  # fmt: skip
    assert (r.surface_type, r.surface_array, r.surface_format, r.tile_mode, r.mocs) == (1, 1, 0xC7, 3, 4)
    assert (r.surface_vertical_alignment, r.surface_horizontal_alignment, r.qpitch_rows) == (1, 3, 256)
    assert (r.height, r.width, r.depth, r.surface_pitch) == (255, 511, 5, 2047)
    assert (r.minimum_array_element, r.render_target_view_extent, r.number_of_multisamples) == (2, 3, 2)
    assert (r.x_offset_texels, r.y_offset_rows, r.surface_min_lod, r.mip_count_lod) == (12, 4, 1, 9)
    assert (r.shader_channel_select_red, r.shader_channel_select_alpha, r.resource_min_lod) == (4, 7, 1.5)
    assert r.surface_base_address == 0xFFFF_0000_1000


@pytest.mark.parametrize("gen, places, entries", [
    (4.5, ((0, 29, BUFFER), (2, 6, 0x7F), (2, 19, 0x1FFF), (3, 21, 0x7F)), 1 << 27),        # 7 + 13 + 7 bits
    (7, ((0, 29, BUFFER), (2, 0, 0x7F), (2, 16, 0x3FFF), (3, 21, 0x3F)), 1 << 27),          # 7 + 14 + 6 bits
    (9, ((0, 29, BUFFER), (2, 0, 0x7F), (2, 16, 0x3FFF), (3, 21, 0x7FF)), 1 << 32),         # 7 + 14 + 11 bits (KBL 19368, 19428, 19463)
    (9, ((0, 29, BUFFER), (2, 0, 3)), 4),
])  # fmt: skip
def test_buffers_spread_their_entries(gen: float, places: tuple[tuple[int, int, int], ...], entries: int) -> None:
    assert unpack("RENDER_SURFACE_STATE", gen, *places).number_of_entries == entries


@pytest.mark.parametrize("gen, places, mode", [
    (4.5, (), 0), (4.5, ((3, 1, 1),), 2), (4.5, ((3, 1, 1), (3, 0, 1)), 3), (4.5, ((3, 0, 1),), 0),
    (7, ((0, 14, 1), (0, 13, 1)), 3), (7.5, ((0, 14, 1),), 2), (8, ((0, 12, 1),), 1), (11, ((0, 12, 3),), 3),
])  # fmt: skip
def test_one_tile_mode_for_all(gen: float, places: tuple[tuple[int, int, int], ...], mode: int) -> None:
    """0 linear, 1 W, 2 X, 3 Y (KBL 19062); two bits apart until 7.5."""
    assert unpack("RENDER_SURFACE_STATE", gen, *places).tile_mode == mode


def test_clear_colours_grew_on_9() -> None:
    """Four bits until 8; four dwords on 9 (KBL 20347-20423), and behind an address on 11."""
    assert unpack("RENDER_SURFACE_STATE", 8, (7, 29, 5)).green_clear_color == 0
    assert unpack("RENDER_SURFACE_STATE", 8, (7, 29, 5)).red_clear_color == 1
    r = unpack("RENDER_SURFACE_STATE", 9, (12, 0, single(0.5)), (15, 0, 0xFFFFFFFF), (6, 0, 3))
    assert (r.red_clear_color, r.alpha_clear_color, r.hierarchical_depth_clear_value) == (single(0.5), 0xFFFFFFFF, 0.5)
    assert applies("RENDER_SURFACE_STATE", 9, "hierarchical_depth_clear_value", r)
    r = unpack("RENDER_SURFACE_STATE", 11, (10, 10, 1), (12, 0, 0x1_2345_67C0))
    assert r.clear_value_address == 0x1_2345_67C0 and applies("RENDER_SURFACE_STATE", 11, "clear_value_address", r)


def test_planar_surfaces_read_their_bits_otherwise() -> None:
    """KBL 19909-19984, 20238-20289: plane offsets and auxiliary surface share bits."""
    r = unpack("RENDER_SURFACE_STATE", 9, (0, 18, 421), (6, 16, 8), (6, 0, 1080), (11, 16, 4), (11, 0, 1620))
    assert (r.x_offset_for_u_or_uv_plane, r.y_offset_for_u_or_uv_plane, r.x_offset_for_v_plane, r.y_offset_for_v_plane) == (
        8,
        1080,
        4,
        1620,
    )
    assert applies("RENDER_SURFACE_STATE", 9, "y_offset_for_v_plane", r) and not applies(
        "RENDER_SURFACE_STATE", 9, "auxiliary_surface_mode", r
    )
    r = unpack("RENDER_SURFACE_STATE", 9, (0, 18, 0xC0), (6, 0, 5), (6, 3, 1), (10, 12, 0x10))
    assert (r.auxiliary_surface_mode, r.auxiliary_surface_pitch, r.auxiliary_surface_base_address) == (5, 1, 0x10000)
    assert applies("RENDER_SURFACE_STATE", 9, "auxiliary_surface_base_address", r)
    assert not applies("RENDER_SURFACE_STATE", 9, "x_offset_for_u_or_uv_plane", r)


def test_structured_buffers_have_no_array_fields() -> None:
    """KBL 19555-19663."""
    r = unpack("RENDER_SURFACE_STATE", 7, (0, 29, STRBUF), (4, 0, 0x12345))
    assert r.minimum_array_element_of_strbuf == 0x12345 and applies("RENDER_SURFACE_STATE", 7, "minimum_array_element_of_strbuf", r)
    assert not applies("RENDER_SURFACE_STATE", 7, "number_of_multisamples", r)


def test_astc_formats_take_a_tenth_bit() -> None:
    """KBL 18952-18959: ASTC_Enable stands above the nine bits."""
    assert unpack("RENDER_SURFACE_STATE", 9, (0, 27, 1), (0, 18, 0x40)).surface_format == 0x240
    assert layout("RENDER_SURFACE_STATE", 8).field("surface_format").width == 9


@pytest.mark.parametrize("gen", GENERATIONS)
def test_one_face(gen: float) -> None:
    """What every reader asks for has one name on all generations."""
    r = unpack("RENDER_SURFACE_STATE", gen)
    for name in ("surface_type", "surface_format", "surface_base_address", "width", "height", "depth", "surface_pitch", "tile_mode",
                 "number_of_entries", "minimum_array_element", "render_target_view_extent", "mip_count_lod", "surface_min_lod",
                 "x_offset_texels", "y_offset_rows"):  # fmt: skip
        assert hasattr(r, name), name
    s = unpack("SAMPLER_STATE", gen)
    for name in ("min_mode_filter", "mag_mode_filter", "mip_mode_filter", "texture_lod_bias", "min_lod", "max_lod", "shadow_function",
                 "maximum_anisotropy",
                 "border_color_pointer", "tcx_address_control_mode", "tcy_address_control_mode", "tcz_address_control_mode"):  # fmt: skip
        assert hasattr(s, name), name


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_binding_tables_point_at_surfaces() -> None:
    """KBL 1739: aligned to 64 bytes; 32 before 8."""
    assert unpack("BINDING_TABLE_STATE", 9, (0, 6, 3)).surface_state_pointer == 0xC0
    assert unpack("BINDING_TABLE_STATE", 4.5, (0, 5, 3)).surface_state_pointer == 0x60


def test_memory_object_control() -> None:
    """An index on 9 (KBL 13499), caches named directly before."""
    assert unpack("MEMORY_OBJECT_CONTROL_STATE", 9, (0, 1, 2)).index_to_mocs_tables == 2
    assert unpack("MEMORY_OBJECT_CONTROL_STATE", 8, (0, 5, 3)).memory_type == 3


def test_media_surface() -> None:
    """KBL 13043-13478."""
    r = unpack("MEDIA_SURFACE_STATE", 9, (0, 30, 1), (1, 18, 1079), (1, 4, 1919), (1, 2, 1), (1, 0, 2), (2, 27, 4), (2, 26, 1),
               (2, 3, 1919), (2, 0, 3), (3, 0, 1088), (5, 0, 0x22), (6, 0, 0x1234_5678_9000))  # fmt: skip
    assert (r.rotation, r.height, r.width, r.picture_structure, r.cr_v_cb_u_pixel_offset_v_direction) == (1, 1079, 1919, 1, 0.5)
    assert (r.surface_format, r.interleave_chroma, r.surface_pitch, r.tile_mode) == (4, 1, 1919, 3)
    assert (r.y_offset_for_u_cb, r.mocs, r.surface_base_address) == (1088, 0x22, 0x1234_5678_9000)


def test_media_surface_of_a_captured_encoder() -> None:
    """What a driver stores on Ivy Bridge: NV12, 128 by 128, Y tiled, chroma 128 rows down."""
    page = layout("MEDIA_SURFACE_STATE", 7)
    stored = [0x00253000, 0x01FC07F2, 0x480003FB, 0x00000080, 0, 0, 0, 0]
    assert not sum(value << 32 * i for i, value in enumerate(stored)) & page.reserved()
    r = page.unpack(stored)
    assert (r.surface_base_address, r.height + 1, r.width + 1, r.surface_pitch + 1) == (0x253000, 128, 128, 128)
    assert (r.surface_format, r.interleave_chroma, r.tile_mode, r.y_offset_for_u_cb) == (4, 1, 3, 128)


def test_sampler_on_kaby_lake() -> None:
    """KBL 22222-22744."""
    r = unpack("SAMPLER_STATE", 9, (0, 29, 1), (0, 27, 2), (0, 20, 3), (0, 17, 1), (0, 14, 2), (0, 1, 0x1F00), (1, 20, 0x80),
               (1, 8, 0xE00), (1, 1, 4), (2, 6, 0x21), (3, 22, 2), (3, 19, 7), (3, 13, 0x3F), (3, 10, 1), (3, 9, 1), (3, 6, 4), (3, 3, 2),
               (3, 0, 1))  # fmt: skip
    assert (r.texture_border_color_mode, r.lod_preclamp_mode, r.mip_mode_filter, r.mag_mode_filter, r.min_mode_filter) == (1, 2, 3, 1, 2)
    assert (r.texture_lod_bias, r.min_lod, r.max_lod, r.shadow_function) == (-1.0, 0.5, 14.0, 4)
    assert (r.border_color_pointer, r.reduction_type, r.maximum_anisotropy, r.reduction_type_enable) == (0x840, 2, 7, 1)
    rounding = [getattr(r, f"{axis}_address_{way}_filter_rounding_enable") for axis in "uvr" for way in ("mag", "min")]
    assert rounding == [1] * 6 and r.non_normalized_coordinate_enable == 1
    assert (r.tcx_address_control_mode, r.tcy_address_control_mode, r.tcz_address_control_mode) == (4, 2, 1)


def test_levels_of_detail_are_coarser_on_g45() -> None:
    """Six bits behind the point, eight since 7."""
    r = unpack("SAMPLER_STATE", 4.5, (0, 3, 0x7C0), (1, 22, 0x20), (1, 12, 0x340), (2, 5, 1), (3, 19, 7))
    assert (r.texture_lod_bias, r.min_lod, r.max_lod, r.border_color_pointer, r.maximum_anisotropy) == (-1.0, 0.5, 13.0, 32, 7)
    assert layout("SAMPLER_STATE", 4.5).field("border_color_pointer").type.base == "general"


def test_border_colours() -> None:
    """KBL 20985-21033: bytes for DX9, floats otherwise; integers stand apart on 7.5."""
    r = unpack("SAMPLER_BORDER_COLOR_STATE", 9, (0, 24, 0x44), (0, 16, 0x33), (0, 8, 0x22), (0, 0, 0x11), (3, 0, single(1.0)))
    assert (r.border_color_red_as_u8, r.border_color_green_as_u8, r.border_color_blue_as_u8, r.border_color_alpha_as_u8) == (
        0x11,
        0x22,
        0x33,
        0x44,
    )
    assert r.border_color_alpha_as_float == 1.0
    r = unpack("SAMPLER_BORDER_COLOR_STATE", 7.5, (0, 0, single(0.5)), (16, 0, 0x0002_0001), (18, 0, 0x0004_0003))
    assert r.border_color_red_as_float == 0.5
    assert [getattr(r, f"border_color_{c}_as_u16") for c in ("red", "green", "blue", "alpha")] == [1, 2, 3, 4]


def test_scaling_tables() -> None:
    """KBL 21324-21474, 22015-22198: tap by tap, Y above X; chroma keeps taps 2 to 5; 32 tables around the two state dwords."""
    page = layout("SAMPLER_STATE_8X8_AVS", 9)
    r = page.unpack(
        words(
            280, (16, 0, 0x40), (16, 24, 0xC0), (19, 16, 0x01), (20, 16, 0x20), (23, 8, 0x10), (152, 24, 255), (153, 0, 3), (272, 0, 0x40)
        )
    )
    assert page.dwords == 280 and len(r.filter_coefficient) == 17 and len(r.filter_coefficient_from_17) == 15
    first = r.filter_coefficient[0]
    assert (first.table_0[0].x_filter_coefficient, first.table_0[1].y_filter_coefficient, first.table_0[7].x_filter_coefficient) == (
        1.0,
        -1.0,
        1 / 64,
    )
    assert (first.table_1x_from_2[0].filter_coefficient, first.table_1y_from_2[3].filter_coefficient) == (0.5, 0.25)
    assert r.filter_coefficient_from_17[14].table_0[0].x_filter_coefficient == 1.0
    assert (r.default_sharpness_level, r.adaptive_filter_for_all_channels, r.rgb_adaptive) == (255, 1, 1)

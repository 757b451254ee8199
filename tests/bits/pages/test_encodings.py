"""Broadwell to Ice Lake: codes, number formats, bases and places that the manuals name, as the pages state them."""

from __future__ import annotations

import pytest

from softgen.bits import describe, registers
from softgen.bits.catalogue import catalogue, enumeration, find_command, layout
from softgen.bits.layout import BitField
from tests.bits.pages.test_three_d_pixel import single, unpack, words


def named(page: str, gen: float, field: str, dword: int, low: int, codes: int) -> list[str]:
    """What each code of a field is called."""
    return [describe.value_name(layout(page, gen), unpack(page, gen, (dword, low, code)), field) for code in range(codes)]


def pointers(gen: float, target: str) -> dict[str, BitField]:
    """Fields that are addresses of something: PAGE.field."""
    pages = [page for name in catalogue().names() if (page := catalogue().get(name, gen))]
    fields = [(f"{page.name}.{field.name}", field) for page in pages for field, _ in page.walk()]
    return {name: item for name, item in fields if item.type.name == "address" and item.type.target == target}


# -- what the manuals leave to other sources -------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-CS-18", "KBL-VEBOX-16", shows="layout")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "header", "engine"), [
    ("MI_BATCH_BUFFER_START", 0x18800001, "render"), ("MI_BATCH_BUFFER_END", 0x05000000, "render"),
    ("MI_LOAD_REGISTER_IMM", 0x11000001, "blitter"), ("MI_STORE_DATA_IMM", 0x10000002, "video"), ("MI_FLUSH_DW", 0x13000003, "video"),
    ("PIPE_CONTROL", 0x7A000004, "render"), ("STATE_BASE_ADDRESS", 0x6101000E, "render"), ("PIPELINE_SELECT", 0x69040000, "render"),
    ("MFX_PIPE_MODE_SELECT", 0x70000003, "video"), ("MFX_SURFACE_STATE", 0x70010004, "video"), ("MFX_AVC_IMG_STATE", 0x7100000F, "video"),
    ("MFX_QM_STATE", 0x70070010, "video"), ("MFX_AVC_SLICE_STATE", 0x71030009, "video"),
    ("MFX_IND_OBJ_BASE_ADDR_STATE", 0x70030018, "video"),
    ("VEBOX_STATE", 0x74020000, "video_enhance"), ("VEBOX_SURFACE_STATE", 0x74000007, "video_enhance"),
    ("VEB_DI_IECP", 0x74030000, "video_enhance"),
])  # fmt: skip
@pytest.mark.parametrize("gen", [8.0, 9.0])
def test_commands_that_no_volume_has(name: str, header: int, engine: str, gen: float) -> None:
    found = find_command(header, gen, engine)
    assert found is not None and found.name == name and "public" in found.source


# -- bases -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-MEM-04", "ICL-MEM-05", "ICL-MEM-06", "BDW-MEM-04", shows="layout")
@pytest.mark.parametrize("gen", [8.0, 11.0])
@pytest.mark.parametrize(("base", "targets"), [
    ("dynamic", "SAMPLER_STATE SAMPLER_BORDER_COLOR_STATE CC_VIEWPORT SF_CLIP_VIEWPORT SCISSOR_RECT BLEND_STATE INTERFACE_DESCRIPTOR_DATA"),
    ("surface", "BINDING_TABLE_STATE RENDER_SURFACE_STATE"),
    ("instruction", "kernel"),
])  # fmt: skip
def test_which_base_a_pointer_counts_from(gen: float, base: str, targets: str) -> None:
    """ICL 1604-1628: every pointer to such a thing, on whatever page it stands."""
    for target in targets.split():
        found = pointers(gen, target)
        assert found and {pointer.type.base for pointer in found.values()} == {base}, target
    indirect = [name for name, pointer in pointers(gen, "data").items() if pointer.type.base == "indirect"]
    assert {"MEDIA_OBJECT.indirect_data_start_address", "GPGPU_WALKER.indirect_data_start_address"} <= set(indirect)
    sip = next(field for field in layout("STATE_SIP", gen).fields if field.type.name == "address")
    colour = next(field for field in layout("3DSTATE_CC_STATE_POINTERS", gen).fields if field.type.name == "address")
    scratch = next(field for field in layout("3DSTATE_VS", gen).fields if field.name == "scratch_space_base_pointer")
    assert (sip.type.base, colour.type.base, scratch.type.base) == ("instruction", "dynamic", "general")


@pytest.mark.behaviour("ICL-TH-04", shows="layout")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS", "PS"])
def test_kernels_begin_at_64_bytes_from_the_instruction_base(stage: str) -> None:
    """ICL 2917-2921."""
    found = [pointer for name, pointer in pointers(11.0, "kernel").items() if name.startswith(f"3DSTATE_{stage}.")]
    assert found and all((pointer.low % 32, pointer.type.base) == (6, "instruction") for pointer in found)


# -- stages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-12", shows="layout")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS", "PS"])
def test_samplers_are_counted_in_fours(stage: str) -> None:
    """ICL 3025-3029."""
    sampler_count = next(field for field in layout(f"3DSTATE_{stage}", 11.0).fields if field.name == "sampler_count")
    assert sampler_count.width == 3 and enumeration("Sampler_Count", 11.0) == {0: "none", 1: "1-4", 2: "5-8", 3: "9-12", 4: "13-16"}
    assert named(f"3DSTATE_{stage}", 11.0, "sampler_count", 0, sampler_count.low, 5)[4] == "13-16"


@pytest.mark.behaviour("ICL-TH-22", shows="layout")
@pytest.mark.parametrize(("name", "dword", "bit"), [
    ("3DSTATE_VF_STATISTICS", 0, 0), ("3DSTATE_VS", 7, 10), ("3DSTATE_HS", 2, 29), ("3DSTATE_DS", 7, 10), ("3DSTATE_GS", 7, 10),
    ("3DSTATE_STREAMOUT", 1, 25), ("3DSTATE_CLIP", 1, 10), ("3DSTATE_SF", 1, 10), ("3DSTATE_WM", 1, 31),
])  # fmt: skip
def test_every_stage_has_a_bit_for_its_counters(name: str, dword: int, bit: int) -> None:
    """ICL 3230-3246."""
    (statistics_enable,) = (field for field in layout(name, 11.0).fields if field.name.endswith("statistics_enable"))
    assert (statistics_enable.high, statistics_enable.low) == (32 * dword + bit, 32 * dword + bit)


@pytest.mark.behaviour("KBL-CLIP-17", shows="layout")
def test_guard_band_and_viewport_are_dwords_8_to_15() -> None:
    """KBL 22871-22926."""
    record = unpack("SF_CLIP_VIEWPORT", 9.0, *((8 + i, 0, single(float(i))) for i in range(8)))
    assert (record.x_min_clip_guardband, record.x_max_clip_guardband, record.y_min_clip_guardband, record.y_max_clip_guardband) == (0, 1,
        2, 3)
    assert (record.x_min_viewport, record.x_max_viewport, record.y_min_viewport, record.y_max_viewport) == (4, 5, 6, 7)


@pytest.mark.behaviour("KBL-CONST-06", shows="layout")
def test_the_short_constant_form() -> None:
    """KBL 583-602: a pointer of 64 bits and a length of five."""
    record = unpack("3DSTATE_CONSTANT_ALL_DATA", 9.0, (0, 0, 31), (0, 5, 0x7FFFFFF), (1, 0, 0x1234))
    assert (record.length, record.pointer) == (31, 0x1234_FFFFFFE0)


@pytest.mark.behaviour("KBL-DX9-07", shows="layout")
@pytest.mark.parametrize(("letter", "values"), [("B", [1]), ("F", [0.5, -2.0, 1.0, 0.0]), ("I", [-1, 2, -3, 4])])
def test_constants_of_dx9(letter: str, values: list[float]) -> None:
    """KBL 6234-6318: a boolean of one dword, four floats, four signed integers."""
    bits = [single(value) if letter == "F" else int(value) & 0xFFFFFFFF for value in values]
    assert list(layout(f"DX9_CONSTANT{letter}_ENTRY", 9.0).unpack(bits)) == values


# -- surfaces and samplers -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-RT-16", "KBL-SAMP-12", shows="layout")
def test_clear_colours_grew_from_a_bit_to_a_dword() -> None:
    """KBL 20347-20439, 20077-20094."""
    old = unpack("RENDER_SURFACE_STATE", 8.0, (7, 31, 1), (7, 29, 1))
    assert (old.red_clear_color, old.green_clear_color, old.blue_clear_color, old.alpha_clear_color) == (1, 0, 1, 0)
    new = unpack("RENDER_SURFACE_STATE", 9.0, *((12 + i, 0, 0xC0000000 + i) for i in range(4)), (7, 31, 1), (7, 30, 1))
    assert [new.red_clear_color, new.green_clear_color, new.blue_clear_color, new.alpha_clear_color] == [0xC0000000 + i for i in range(4)]
    assert (new.memory_compression_mode, new.memory_compression_enable) == (1, 1)
    assert named("RENDER_SURFACE_STATE", 9.0, "memory_compression_mode", 7, 31, 2) == ["horizontal", "vertical"]


@pytest.mark.behaviour("KBL-SAMP-16", shows="layout")
def test_filters() -> None:
    """KBL 22285-22367, 22579-22601."""
    assert enumeration("Filter_Mode", 9.0) == {0: "nearest", 1: "linear", 2: "anisotropic", 6: "mono"}
    record = unpack("SAMPLER_STATE", 9.0, (0, 17, 2), (0, 14, 6), (0, 20, 3))
    assert (record.mag_mode_filter, record.min_mode_filter, record.mip_mode_filter) == (2, 6, 3)
    assert named("SAMPLER_STATE", 9.0, "mip_mode_filter", 0, 20, 4) == ["none", "nearest", "value 2", "linear"]
    assert named("SAMPLER_STATE", 9.0, "maximum_anisotropy", 3, 19, 8) == [f"{2 * n}:1" for n in range(1, 9)]


@pytest.mark.behaviour("KBL-SAMP-20", shows="layout")
@pytest.mark.parametrize(("bit", "name"), [(18, "u_address_mag"), (17, "u_address_min"), (16, "v_address_mag"), (15, "v_address_min"),
                                           (14, "r_address_mag"), (13, "r_address_min")])  # fmt: skip
def test_rounding_for_each_coordinate_and_filter(bit: int, name: str) -> None:
    """KBL 22602-22652."""
    record = unpack("SAMPLER_STATE", 9.0, (3, bit, 1))
    told = [field for field in record._fields if field.endswith("rounding_enable") and getattr(record, field)]
    assert told == [f"{name}_filter_rounding_enable"]


# -- compute, media, messages ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-GPGPU-08", shows="layout")
def test_interface_descriptor() -> None:
    """KBL 12543-12622."""
    record = unpack("INTERFACE_DESCRIPTOR_DATA", 9.0, (0, 6, 0x3FFFFFF), (1, 0, 0xFFFF), (2, 19, 1), (2, 18, 1), (2, 17, 1), (2, 16, 1),
                 (2, 13, 1), (2, 7, 1))  # fmt: skip
    assert record.kernel_start_pointer == 0xFFFF_FFFFFFC0
    assert (record.denorm_mode, record.single_program_flow, record.thread_priority, record.floating_point_mode) == (1, 1, 1, 1)
    assert (record.illegal_opcode_exception_enable, record.mask_stack_exception_enable, record.software_exception_enable) == (1, 0, 1)


@pytest.mark.behaviour("KBL-MEDIA-19", shows="layout")
def test_thread_spawner_message() -> None:
    """KBL 26104-26155."""
    record = unpack("MSD_THREAD_SPAWNER", 9.0, (0, 4, 1), (0, 1, 1), (0, 0, 1))
    assert (record.resource_select, record.requester_type, record.opcode) == (1, 1, 1)
    assert named("MSD_THREAD_SPAWNER", 9.0, "opcode", 0, 0, 2) == ["dereference_resource", "spawn_thread"]
    assert named("MSD_THREAD_SPAWNER", 9.0, "requester_type", 0, 1, 2) == ["root_thread", "child_thread"]


@pytest.mark.behaviour("KBL-MEDIA-20", shows="layout")
def test_legacy_front_end_extension() -> None:
    """KBL 30454-30560: sixteen nibbles that remap descriptors, eight signed distances."""
    record = unpack("VFE_STATE_EX", 9.0, (2, 0, 0x76543210), (3, 0, 0xFEDCBA98), (4, 31, 1), (4, 0, 0x81), (5, 0, 0xF), (6, 28, 0x8))
    assert (record.interface_descriptor_remap_table_0_7, record.interface_descriptor_remap_table_8_15) == (0x76543210, 0xFEDCBA98)
    assert (record.scoreboard_enable, record.scoreboard_mask, record.scoreboard_0_delta_x, record.scoreboard_7_delta_y) == (1, 0x81, -1, -8)


# -- blitter ---------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-BLT-02", shows="layout")
@pytest.mark.parametrize("name", ["BR01", "BR13"])
def test_raster_operation_and_control(name: str) -> None:
    """KBL 2675-2787, 2976-3080; both registers read alike, though their tables of depths contradict each other."""
    record = unpack(name, 9.0, (0, 31, 1), (0, 29, 1), (0, 24, 3), (0, 16, 0xCC), (0, 0, 0x8000))
    assert (record.solid_pattern_select, record.clipping_enabled) == (1, 0)
    assert (record.monochrome_source_transparency_mode, record.monochrome_pattern_transparency_mode) == (1, 0)
    assert (record.raster_operation, record.destination_pitch) == (0xCC, -0x8000)
    assert named(name, 9.0, "color_depth", 0, 24, 4) == ["8 bit", "565", "1555", "32 bit"]


@pytest.mark.behaviour("KBL-BLT-08", shows="layout")
@pytest.mark.parametrize(("name", "field"), [
    ("BR05", "setup_expansion_background_color_bits"), ("BR06", "setup_expansion_foreground_color_bits"),
    ("BR16", "pattern_expansion_background_color_bits"), ("BR17", "pattern_expansion_foreground_color_bits"),
    ("BR18", "source_expansion_background_color_bits"), ("BR19", "pattern_source_expansion_foreground_color_bits"),
])  # fmt: skip
def test_expansion_colours(name: str, field: str) -> None:
    """KBL 2798-2833, 3152-3233."""
    assert getattr(layout(name, 9.0).unpack([0x89ABCDEF]), field) == 0x89ABCDEF


# -- video enhancement -----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-VEBOX-02", shows="layout")
def test_adaptive_contrast() -> None:
    """KBL 26445-26775: a minimum, ten points and a maximum, a bias of 8 bits for each point, eleven slopes of 11."""
    page = layout("VEBOX_ACE_LACE_STATE", 9.0)
    widths = {field.name: field.width for field in page.fields}
    assert [widths.pop(name) for name in ("ymin", *(f"y{n}" for n in range(1, 11)), "ymax")] == [8] * 12
    assert [widths.pop(f"b{n}") for n in range(1, 11)] == [8] * 10
    assert [widths.pop(f"s{n}") for n in range(11)] == [11] * 11 and not any(name[1:].isdigit() for name in widths)
    record = unpack(page.name, 9.0, (0, 0, 1), (0, 12, 1), (7, 0, 0x600), (3, 24, 0xEB))
    assert (record.ace_enable, record.lace_histogram_enable, record.s0, record.ymax) == (1, 1, 1.5, 0xEB)
    assert ["128" in name for name in named(page.name, 9.0, "lace_histogram_size", 0, 13, 2)] == [True, False]


@pytest.mark.behaviour("KBL-VEBOX-06", shows="layout")
def test_colour_space_conversion() -> None:
    """KBL 27242-27397: nine factors S2.16, an offset in and one out for each channel, and a swap."""
    record = unpack("VEBOX_CSC_STATE", 9.0, (0, 31, 1), (0, 30, 1), (0, 0, 1 << 16), (8, 0, 0x7FFFF), (9, 0, 0xFFF0), (11, 16, 16))
    assert (record.transform_enable, record.yuv_channel_swap, record.c0, record.c8) == (1, 1, 1.0, -1 / 65536)
    assert (record.offset_in_1, record.offset_out_3) == (-16, 16)
    assert [field for field in record._fields if field[0] == "c" and field[1:].isdigit()] == [f"c{n}" for n in range(9)]


@pytest.mark.behaviour("KBL-VEBOX-12", shows="layout")
def test_brightness_contrast_hue_saturation() -> None:
    """KBL 28925-28961: U4.7, S7.4, and hue and saturation together as two S7.8."""
    record = unpack("VEBOX_PROCAMP_STATE", 9.0, (0, 17, 0x80), (0, 1, 0xFFF), (0, 0, 1), (1, 16, 0x100), (1, 0, 0xFF80))
    assert (record.contrast, record.brightness, record.procamp_enable, record.cos_c_s, record.sin_c_s) == (1.0, -1 / 16, 1, 1.0, -0.5)


@pytest.mark.behaviour("KBL-VEBOX-04", shows="layout")
def test_camera_pipe() -> None:
    """KBL 26875-27063: an offset's highest bit stands in another dword than the sixteen below it."""
    colours = ["red", "green_top", "blue", "green_bottom"]
    page = layout("VEBOX_CAPTURE_PIPE_STATE", 9.0)
    offsets = {colour: (page.field(f"black_point_offset_{colour}_msb"), page.field(f"black_point_offset_{colour}")) for colour in colours}
    assert [(msb.low, low.low, msb.width + low.width) for msb, low in offsets.values()] == [
        (64 + 7, 96 + 16, 17), (64 + 6, 96, 17), (64 + 5, 128 + 16, 17), (64 + 4, 128, 17)]  # fmt: skip
    record = unpack(page.name, 9.0, (2, 2, 1), (2, 3, 1), (5, 16, 0x1800), (0, 24, 35), (1, 16, 100))
    assert (record.vignette_correction_format, record.rgb_histogram_enable, record.white_balance_red_correction) == (1, 1, 1.5)
    assert (record.good_pixel_threshold, record.bad_color_threshold_1) == (35, 100)


# -- the position-only engine ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-POSH-16", shows="layout")
@pytest.mark.parametrize("name", ["MI_DISPLAY_FLIP", "MI_LOAD_SCAN_LINES_INCL", "MI_LOAD_SCAN_LINES_EXCL", "MI_WAIT_FOR_EVENT",
                                  "MI_USER_INTERRUPT", "MI_REPORT_PERF_COUNT", "MI_SET_CONTEXT", "MI_ARB_ON_OFF"])  # fmt: skip
def test_what_the_position_only_engine_does_not_take(name: str) -> None:
    """ICL 479-495."""
    header = layout(name, 11.0).pack()[0]
    assert find_command(header, 11.0, "position_only") is None
    found = find_command(header, 11.0, "render")
    assert found is not None and found.name == name


@pytest.mark.behaviour("ICL-POSH-03", shows="layout")
@pytest.mark.parametrize("offset", [0x34, 0x38, 0x3C, 0x30, 0x110, 0x140, 0x168, 0x244, 0x600])
def test_its_registers_are_those_of_the_render_engine_further_up(offset: int) -> None:
    """ICL 1822-1843, 2365-2421: 0x16000 above, in 0x18000 to 0x19fff."""
    low, high = registers.place(0x2000 + offset, 11.0), registers.place(0x18000 + offset, 11.0)
    assert low is not None and high is not None and low.layout.name == high.layout.name
    assert high.offset - low.offset == 0x16000 and registers.bases(11.0)["position_only"] == (0x18000,)


@pytest.mark.behaviour("ICL-POSH-09", shows="layout")
def test_where_its_context_is_named() -> None:
    """ICL 402-403, 1940."""
    found = registers.place(0x21B0, 11.0)
    assert found is not None and found.layout.name == "POSH_LRCA" and found.layout.engines == ("render",)
    assert found.layout.unpack([0xFFFFF000]).logical_context_address == 0xFFFFF000


@pytest.mark.behaviour("ICL-REG-07", shows="layout")
@pytest.mark.parametrize(("offset", "name"), [
    (0x2420, "3DPRIM_END_OFFSET"), (0x2430, "3DPRIM_START_VERTEX"), (0x2434, "3DPRIM_VERTEX_COUNT"), (0x2438, "3DPRIM_INSTANCE_COUNT"),
    (0x243C, "3DPRIM_START_INSTANCE"), (0x2440, "3DPRIM_BASE_VERTEX"), (0x2690, "3DPRIM_XP0"), (0x2694, "3DPRIM_XP1"),
    (0x2698, "3DPRIM_XP2"),
])  # fmt: skip
def test_registers_an_indirect_draw_takes_its_parameters_from(offset: int, name: str) -> None:
    """ICL 1411-1421."""
    found = registers.place(offset, 11.0)
    assert found is not None and found.layout.name == name
    draw = layout("3DPRIMITIVE", 11.0)
    assert unpack(draw.name, 11.0, (0, 10, 1)).indirect_parameter_enable == 1


@pytest.mark.behaviour("ICL-CMD-02", shows="layout")
@pytest.mark.parametrize(("name", "header"), [("STATE_SIP", 0x61020001), ("3DSTATE_URB_CLEAR", 0x791D0000)])
def test_two_more_commands(name: str, header: int) -> None:
    """ICL 1448-1454."""
    found = find_command(header, 11.0, "render")
    assert found is not None and found.name == name
    assert name != "STATE_SIP" or found.field("system_instruction_pointer").type.base == "instruction"


# -- reserved bits ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-CS-06", shows="action")
@pytest.mark.parametrize(("name", "dword", "bit"), [
    ("3DPRIMITIVE", 1, 31), ("3DSTATE_VS", 3, 26), ("3DSTATE_CLIP", 1, 31), ("GPGPU_WALKER", 2, 31),
])  # fmt: skip
def test_reserved_bits_are_told_by_those_who_ask_and_ignored_by_the_rest(name: str, dword: int, bit: int) -> None:
    """BDW 87-106, 1965-1973."""
    page = layout(name, 8.0)
    clean = words(page.dwords, header=page.pack()[0])
    dirty = words(page.dwords, (dword, bit, 1), header=page.pack()[0])
    assert page.unpack(dirty) == page.unpack(clean)
    assert describe.reserved(page, clean) == [] and [bits.low for bits in describe.reserved(page, dirty)] == [32 * dword + bit]

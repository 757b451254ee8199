"""Media front end and GPGPU pages: structures put together by the manuals' tables, taken apart; and one real frame of MPEG-2."""

from __future__ import annotations

from typing import Any

from softgen.bits.catalogue import find_command, layout
from softgen.bits.generation import device
from softgen.streamer.parser import Command, CommandParser
from softgen.trace.file import open_trace
from tests.bits.pages.test_streamer import read
from tests.conftest import SHARED, needs_shared


def unpack(name: str, gen: float, *dwords: int) -> Any:
    found = layout(name, gen)
    bits = sum(d << 32 * i for i, d in enumerate(dwords))
    assert len(dwords) == found.dwords and bits & found.reserved() == 0
    return found.raw(list(dwords))


def media(opcode: int, sub: int, dwords: int) -> int:
    return 3 << 29 | 2 << 27 | opcode << 24 | sub << 16 | dwords - 2


# -- Gen4.5 ------------------------------------------------------------------------------------------------------------


def test_media_commands_are_known() -> None:
    """G45 9623, 9651, 9884, 11119; BDW 22535-24170; one opcode, other names."""
    assert find_command(media(0, 0, 3), 4.5, "render") is layout("MEDIA_STATE_POINTERS", 4.5)
    for gen in (7, 7.5, 8, 9, 11):
        for opcode, sub, name in ((0, 0, "MEDIA_VFE_STATE"), (0, 1, "MEDIA_CURBE_LOAD"), (0, 2, "MEDIA_INTERFACE_DESCRIPTOR_LOAD"),
                                  (0, 4, "MEDIA_STATE_FLUSH"), (1, 0, "MEDIA_OBJECT"), (1, 2, "MEDIA_OBJECT_PRT"),
                                  (1, 3, "MEDIA_OBJECT_WALKER"), (1, 5, "GPGPU_WALKER")):  # fmt: skip
            assert find_command(media(opcode, sub, 4), gen, "render") is layout(name, gen)
    assert find_command(media(1, 1, 6), 4.5, "render") is layout("MEDIA_OBJECT_EX", 4.5)
    assert find_command(media(1, 1, 6), 7, "render") is None
    assert find_command(media(1, 6, 8), 8, "render") is layout("MEDIA_OBJECT_GRPID", 8)


def test_vfe_state() -> None:
    """G45 9323-9373."""
    record = unpack("VFE_STATE", 4.5, 0x12345C00 | 1 << 7 | 11, 34 << 25 | 255 << 16 | 64 << 9 | 7 << 3 | 1 << 2 | 2, 0xABCD0)
    assert (record.scratch_space_base_pointer, record.extended_vfe_state_present, record.per_thread_scratch_space) == (0x12345C00, 1, 11)
    assert (record.maximum_number_of_threads, record.urb_entry_allocation_size, record.number_of_urb_entries) == (34, 255, 64)
    assert (record.vfe_mode, record.children_present, record.debug_counter_control) == (7, 1, 2)
    assert record.interface_descriptor_base_pointer == 0xABCD0


def test_modes_of_the_front_end() -> None:
    """G45 9350-9355."""
    modes = dict(layout("VFE_STATE", 4.5).field("vfe_mode").type.values)
    assert modes == {0b0000: "generic", 0b0001: "vld", 0b0010: "is", 0b0100: "avc-mc", 0b0111: "avc-it", 0b1011: "vc1-it"}


def test_vld_state() -> None:
    """G45 9380-9428."""
    record = unpack("VLD_STATE", 4.5, 0x1234 << 16 | 2 << 14 | 3 << 12 | 1 << 10 | 1 << 8 | 1 << 6, 2 << 9, 0x76543210, 0xFEDCBA98)
    assert (record.f_code_1_1, record.f_code_1_0, record.f_code_0_1, record.f_code_0_0) == (1, 2, 3, 4)
    assert (record.intra_dc_precision, record.picture_structure, record.top_field_first) == (2, 3, 0)
    assert record.frame_prediction_frame_dct and record.quantizer_scale_type and record.scan_order and not record.intra_vlc_format
    assert record.picture_coding_type == 2 and record.interface_descriptor_remap_table_8_15 == 0xFEDCBA98


def test_interface_descriptor_of_g45() -> None:
    """G45 9544-9604."""
    record = unpack("INTERFACE_DESCRIPTOR_DATA", 4.5, 0x4000 | 14, 30 << 26 | 3 << 20 | 1 << 18 | 1 << 13, 0x80 | 2 << 2, 0x1E0 | 31)
    assert (record.kernel_start_pointer, record.grf_register_blocks) == (0x4000, 14)
    assert (record.constant_urb_entry_read_length, record.constant_urb_entry_read_offset) == (30, 3)
    assert record.single_program_flow and record.illegal_opcode_exception_enable and not record.software_exception_enable
    assert (record.sampler_state_pointer, record.sampler_count) == (0x80, 2)
    assert (record.binding_table_pointer, record.binding_table_entry_count) == (0x1E0, 31)
    assert layout("INTERFACE_DESCRIPTOR_DATA", 4.5).field("kernel_start_pointer").type.base == "general"


def test_object_of_g45() -> None:
    """G45 9658-9691, and what VLD mode finds in it (G45 9847-9858)."""
    inline = (40 << 24 | 33 << 16 | 45 << 8 | 6, 3 << 24)
    record = read(4.5, "render", media(1, 0, 6), 0xABCDEF << 8 | 5, 1 << 28 | 1 << 24 | 0x10E00, 0x1234567, *inline)
    assert (record.object_id, record.interface_descriptor_offset, record.retain, record.thread_synchronization) == (0xABCDEF, 5, 1, 1)
    assert (record.indirect_data_length, record.indirect_data_start_address) == (0x10E00, 0x1234567)
    slice_ = unpack("MEDIA_OBJECT_VLD_INLINE_DATA", 4.5, *(data.inline_data for data in record.inline_data))
    assert (slice_.slice_horizontal_position, slice_.slice_vertical_position, slice_.macroblock_count) == (40, 33, 45)
    assert (slice_.first_macroblock_bit_offset, slice_.quantizer_scale_code) == (6, 3)
    assert layout("MEDIA_OBJECT_VLD_INLINE_DATA", 4.5).reserved() == 0xE0FFFFFF << 32 | 0x808080F8


def test_persistent_and_extended_objects_of_g45() -> None:
    """G45 11126-11137, 9888-9918: the descriptor's number stands in dword 2."""
    prt = read(4.5, "render", media(1, 2, 6), 0, 9 << 24 | 1 << 23 | 1 << 20, 0, 1, 2)
    assert (prt.interface_descriptor_offset, prt.prt_fence_needed, prt.thread_synchronization) == (9, 1, 1)
    ex = read(4.5, "render", media(1, 1, 5), 0, 9 << 24 | 1 << 20 | 64, 0x100, 7)
    assert (ex.interface_descriptor_offset, ex.thread_synchronization, ex.indirect_data_length) == (9, 1, 64)
    assert [data.inline_data for data in ex.inline_data] == [7]


def test_macroblock_of_inverse_scan() -> None:
    """G45 9712-9797, 9832-9837."""
    first = 2 << 28 | 1 << 24 | 1 << 21 | 1 << 17
    record = layout("MEDIA_OBJECT_IS_INLINE_DATA", 4.5).raw([first, 0, 0x2A << 6, 0, 0xFFFE0003, 0, 0, 0, 3 << 16, 67 << 20])
    assert (record.motion_vertical_field_select, record.motion_type, record.dct_type, record.macroblock_motion_forward) == (2, 1, 1, 1)
    assert record.coded_block_pattern == 0x2A and record.picture_structure == 3 and record.vertical_origin == 67
    assert (record.field_0_forward_vertical, record.field_0_forward_horizontal) == (-2, 3)
    coefficient = unpack("MEDIA_OBJECT_IS_COEFFICIENT", 4.5, 0xFFF0 << 16 | 19 << 1 | 1)
    assert (coefficient.dct_coefficient_value, coefficient.index, coefficient.end_of_block) == (-16, 19, 1)


@needs_shared("traces")
def test_a_real_slice() -> None:
    """The pages lead from the state pointers to the mode, and a slice a line of macroblocks long starts each line."""
    trace = open_trace(SHARED / "traces" / "g45-i965-dec-m2")
    work = next(trace.work())
    found = [command
        for command in CommandParser(device("g45").generation, work.engine, work.space).batch(work.batch) if isinstance(command, Command)]
    pointers = next(command.record for command in found if command.name == "MEDIA_STATE_POINTERS")
    vfe = layout("VFE_STATE", 4.5).raw([work.space.read32(pointers.vfe_state_pointer + 4 * i) for i in range(3)])
    assert vfe.vfe_mode == 1 and vfe.extended_vfe_state_present == pointers.extended_vfe_state_enable == 1
    vld = layout("VLD_STATE", 4.5).raw([work.space.read32(pointers.extended_state_pointer + 4 * i) for i in range(4)])
    assert vld.picture_coding_type == 1 and {vld.f_code_0_0, vld.f_code_1_1} == {15}, "an intra picture has no motion vectors"
    slices = [layout("MEDIA_OBJECT_VLD_INLINE_DATA", 4.5).raw(command.dwords[4:6]) for command in found if command.name == "MEDIA_OBJECT"]
    assert [item.slice_vertical_position for item in slices] == list(range(len(slices)))
    assert all(0 < item.quantizer_scale_code < 32 for item in slices)


# -- later generations -------------------------------------------------------------------------------------------------


def test_vfe_state_of_gen8() -> None:
    """BDW 23816-24158; the scratch pointer's upper half is dword 2, allocation sizes are dword 5."""
    record = read(8, "render", media(0, 0, 9), 0x5C00 | 3 << 4 | 2, 0x12, 55 << 16 | 32 << 8 | 1 << 7 | 1 << 6, 3, 7 << 16 | 9,
                  1 << 31 | 0xFF, 0xF << 28 | 7, 0x8 << 24)  # fmt: skip
    assert record.scratch_space_base_pointer == 0x12_00005C00 and (record.stack_size, record.per_thread_scratch_space) == (3, 2)
    assert (record.maximum_number_of_threads, record.number_of_urb_entries) == (55, 32)
    assert record.reset_gateway_timer and record.bypass_gateway_control and record.slice_disable == 3
    assert (record.urb_entry_allocation_size, record.curbe_allocation_size) == (7, 9)
    assert record.scoreboard_enable and record.scoreboard_mask == 0xFF
    assert (record.scoreboard_3_delta_y, record.scoreboard_0_delta_x, record.scoreboard_7_delta_x) == (-1, 7, -8)


def test_loads_say_where_data_is() -> None:
    """BDW 22584-22592, 22668-22682."""
    curbe = read(9, "render", media(0, 1, 4), 0, 0x140, 0x1000)
    assert (curbe.curbe_total_data_length, curbe.curbe_data_start_address) == (0x140, 0x1000)
    load = layout("MEDIA_INTERFACE_DESCRIPTOR_LOAD", 9).field("interface_descriptor_data_start_address").type
    assert (load.base, load.target) == ("dynamic", "INTERFACE_DESCRIPTOR_DATA")


def test_object_of_gen8() -> None:
    """BDW 22725-22872."""
    record = read(8, "render", media(1, 0, 8), 63, 1 << 31 | 1 << 24 | 1 << 22 | 1 << 21 | 2 << 19 | 1 << 17 | 4096, 0x8000,
                  300 << 16 | 511, 15 << 16 | 0x81, 1, 2)  # fmt: skip
    assert record.children_present and record.thread_synchronization and record.force_destination and record.use_scoreboard
    assert (record.slice_destination_select, record.subslice_destination_select, record.indirect_data_length) == (2, 1, 4096)
    assert (record.scoreboard_y, record.scoreboard_x, record.scoreboard_color, record.scoreboard_mask) == (300, 511, 15, 0x81)
    assert [data.inline_data for data in record.inline_data] == [1, 2]
    assert layout("MEDIA_OBJECT", 8).field("indirect_data_start_address").type.base == "indirect"


def test_walker_of_gen8() -> None:
    """BDW 21329-21437: dwords 6 and 9 are reserved."""
    dwords = (5, 0x1FFFF, 0x40, 1 << 30 | 3 << 16 | 2 << 8 | 1, 1, 0, 10, 2, 0, 20, 3, 30, 0xFFFF, 0xFF)
    record = read(8, "render", media(1, 5, 15) | 1 << 10 | 1 << 8, *dwords)
    assert record.indirect_parameter_enable and record.predicate_enable and record.simd_size == 1
    assert (record.thread_depth_counter_maximum, record.thread_height_counter_maximum, record.thread_width_counter_maximum) == (3, 2, 1)
    assert (record.thread_group_id_starting_x, record.thread_group_id_x_dimension) == (1, 10)
    assert (record.thread_group_id_starting_y, record.thread_group_id_y_dimension) == (2, 20)
    assert (record.thread_group_id_starting_resume_z, record.thread_group_id_z_dimension) == (3, 30)
    assert (record.right_execution_mask, record.bottom_execution_mask, record.indirect_data_start_address) == (0xFFFF, 0xFF, 0x40)


def test_interface_descriptor_of_gen9() -> None:
    """KBL 12550-12800."""
    record = unpack("INTERFACE_DESCRIPTOR_DATA", 9, 0x40, 0x1, 1 << 19 | 1 << 16, 0x20 | 4 << 2, 0x8020 | 3, 2 << 16 | 1,
                    3 << 22 | 1 << 21 | 7 << 16 | 512, 4)  # fmt: skip
    assert record.kernel_start_pointer == 0x1_00000040 and record.denorm_mode and record.floating_point_mode
    assert (record.sampler_state_pointer, record.sampler_count) == (0x20, 4)
    assert (record.binding_table_pointer, record.binding_table_entry_count) == (0x8020, 3)
    assert (record.constant_urb_entry_read_length, record.constant_urb_entry_read_offset) == (2, 1)
    assert (record.rounding_mode, record.barrier_enable, record.number_of_threads_in_gpgpu_thread_group) == (3, 1, 512)
    assert record.cross_thread_constant_data_read_length == 4
    sizes = {gen: dict(layout("INTERFACE_DESCRIPTOR_DATA", gen).field("shared_local_memory_size").type.values) for gen in (8, 9)}
    assert sizes[9][record.shared_local_memory_size] == "64k" and sizes[8] == {0: "0", 1: "4k", 2: "8k", 4: "16k", 8: "32k", 16: "64k"}


def test_walker_of_media_objects() -> None:
    """BDW 23210-23679: signed steps, ten bits on Gen8, twelve since."""
    dwords = [0] * 16
    dwords[10] = 0x3FF << 16 | 0x200  # dword 11: local outer loop stride
    dwords[5] = 3 << 24 | 2 << 12  # dword 6: colours, mid-loop step
    record = read(8, "render", media(1, 3, 17), *dwords)
    assert (record.local_outer_loop_stride_y, record.local_outer_loop_stride_x) == (-1, -512)
    assert (record.color_count_minus_one, record.local_mid_loop_unit_y) == (3, -2)
    assert read(9, "render", media(1, 3, 17), *dwords).local_outer_loop_stride_y == 0x3FF

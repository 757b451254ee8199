"""Command streamer pages: commands as drivers put them together, taken apart.

Dwords are written from Linux i915 (intel_gpu_commands.h and the functions that emit them), Mesa's and the media drivers' habits and the
manuals, never from the pages.
"""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import enumeration, find_command, layout

ALL = ("render", "blitter", "video", "video_enhance")


def mi(opcode: int, flags: int = 0) -> int:
    return opcode << 23 | flags


def read(gen: float, engine: str, *dwords: int) -> Any:
    """The record of a command; its length must be the number of dwords given and no reserved bit may be set."""
    found = find_command(dwords[0], gen, engine)
    assert found is not None, f"{dwords[0]:#x} is no command of {engine} on gen {gen:g}"
    assert found.length(dwords[0]) == len(dwords)
    bits = sum(d << 32 * i for i, d in enumerate(dwords))
    assert bits & found.reserved(len(dwords)) == 0, f"{found.name}: {bits & found.reserved(len(dwords)):#x} is set and reserved"
    assert found.dwords <= len(dwords) and (found.maximum is None or len(dwords) <= found.maximum)
    return found.raw(list(dwords))


def name(gen: float, engine: str, header: int) -> str | None:
    found = find_command(header, gen, engine)
    return found.name if found else None


# -- which commands there are ----------------------------------------------------------------------------------------

# opcode, name, generations, engines; opcodes from intel_gpu_commands.h
KNOWN = """
00 MI_NOOP                          4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
01 MI_SET_PREDICATE                 7.5,8,9,11        render
02 MI_USER_INTERRUPT                4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
03 MI_WAIT_FOR_EVENT                4,4.5,7,7.5,8,9,11  render
05 MI_ARB_CHECK                     4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
06 MI_RS_CONTROL                    7.5,8,9,11        render
07 MI_REPORT_HEAD                   4,4.5,7,7.5,8,9,11  render
08 MI_ARB_ON_OFF                    4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
09 MI_URB_ATOMIC_ALLOC              7.5,8,9           render
0a MI_BATCH_BUFFER_END              4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
0b MI_SUSPEND_FLUSH                 7,7.5,8,9,11      render
0c MI_PREDICATE                     7,7.5,8,9,11      render
0d MI_TOPOLOGY_FILTER               7,7.5,8,9,11      render
0e MI_SET_APPID                     7,7.5,8,9,11      render,video
0f MI_RS_CONTEXT                    7.5,8,9,11        render
11 MI_OVERLAY_FLIP                  4,4.5             render
12 MI_LOAD_SCAN_LINES_INCL          4,4.5,7,7.5,8,9,11  render
13 MI_LOAD_SCAN_LINES_EXCL          4,4.5,7,7.5,8,9,11  render
14 MI_DISPLAY_FLIP                  4,4.5,7,7.5,8,9,11  render
16 MI_SEMAPHORE_MBOX                7,7.5             render,blitter,video
18 MI_SET_CONTEXT                   4,4.5,7,7.5,8,9,11  render
19 MI_URB_CLEAR                     7,7.5,8           render
1a MI_MATH                          7.5,8,9,11        render
1a MI_MATH                          8,9,11            blitter,video,video_enhance
1b MI_SEMAPHORE_SIGNAL              8,9,11            render,blitter,video,video_enhance
1c MI_SEMAPHORE_WAIT                8,9,11            render,blitter,video,video_enhance
1d MI_FORCE_WAKEUP                  9,11              render,video
20 MI_STORE_DATA_IMM                4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
21 MI_STORE_DATA_INDEX              4,4.5,7,7.5,8,9,11  render,blitter,video
22 MI_LOAD_REGISTER_IMM             4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
23 MI_UPDATE_GTT                    4,4.5,7,7.5,8,9,11  render
24 MI_STORE_REGISTER_MEM            4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
26 MI_FLUSH_DW                      7,7.5,8,9,11      blitter,video
26 MI_FLUSH_DW                      7.5,8,9,11        video_enhance
27 MI_CLFLUSH                       7,7.5,8,9,11      render
28 MI_REPORT_PERF_COUNT             7,7.5,8,9,11      render
29 MI_LOAD_REGISTER_MEM             7,7.5,8,9,11      render,blitter,video,video_enhance
2a MI_LOAD_REGISTER_REG             7.5,8,9,11        render,blitter,video,video_enhance
2b MI_RS_STORE_DATA_IMM             7.5,8,9,11        render
2c MI_LOAD_URB_MEM                  7.5,8,9           render
2d MI_STORE_URB_MEM                 7.5,8,9           render
2e MI_COPY_MEM_MEM                  8,9,11            render,blitter,video,video_enhance
2f MI_ATOMIC                        8,9,11            render,blitter,video,video_enhance
31 MI_BATCH_BUFFER_START            4,4.5,7,7.5,8,9,11  render,blitter,video,video_enhance
36 MI_CONDITIONAL_BATCH_BUFFER_END  7,7.5,8,9,11      render,blitter,video,video_enhance
"""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_memory_interface_commands_are_known(line: str) -> None:
    opcode, wanted, gens, engines = line.split()
    for gen in map(float, gens.split(",")):
        for engine in engines.split(","):
            assert name(gen, engine, mi(int(opcode, 16))) == wanted, f"gen {gen:g}, {engine}"


def test_commands_below_10h_are_one_dword_and_have_no_length() -> None:
    for opcode in range(0x10):
        for gen in (4, 4.5, 7, 7.5, 8, 9, 11):
            found = find_command(mi(opcode, 0x3F), gen, "render")
            assert found is None or found.length(mi(opcode, 0x3F)) == 1, f"{found.name} on gen {gen:g}"


def test_flushes_belong_to_their_engines() -> None:
    assert name(7, "render", mi(0x04)) == "MI_FLUSH" and name(8, "render", mi(0x04)) is None
    assert name(11, "render", mi(0x04)) == "MI_WAIT_FOR_EVENT_2"
    assert all(name(gen, "render", mi(0x26, 2)) is None for gen in (7, 8, 9, 11))
    assert name(9, "video", 0x7A000004) is None, "PIPE_CONTROL is render's"


# -- batches -----------------------------------------------------------------------------------------------------------


def test_batch_start() -> None:
    """i915: gen4_emit_bb_start, gen6_emit_bb_start, hsw_emit_bb_start, gen8_emit_bb_start."""
    old = read(4.5, "render", mi(0x31, 2 << 6 | 1 << 8), 0x2000)
    assert old.memory_space_select == 2 and old.non_secure and old.batch_buffer_start_address == 0x2000
    assert read(7, "render", mi(0x31, 1 << 8), 0x123450).address_space_indicator == 1
    hsw = read(7.5, "render", mi(0x31, 1 << 8 | 1 << 13 | 1 << 22), 0x123450)
    assert hsw.non_privileged and hsw.second_level_batch_buffer and not hsw.predication_enable
    new = read(8, "render", mi(0x31, 1 | 1 << 8), 0x89ABCDE0, 0xFFFF8123)
    assert new.batch_buffer_start_address == 0xFFFF8123_89ABCDE0, "addresses may come with bit 47 repeated"
    assert layout("MI_BATCH_BUFFER_START", 9).field("batch_buffer_start_address").type.target == "batch"


def test_conditional_end_of_the_media_driver() -> None:
    """Compare with a mask: bit 19; the address stands on a quadword."""
    record = read(9, "video", mi(0x36, 1 << 21 | 1 << 19 | 2), 0x55, 0x10008, 0x1)
    assert record.compare_semaphore and record.compare_mask_mode == 1
    assert record.compare_data_dword == 0x55 and record.compare_address == 0x1_00010008


# -- storing and loading -----------------------------------------------------------------------------------------------


def test_store_data_of_one_dword_and_two() -> None:
    """i915: MI_STORE_DWORD_IMM_GEN4, MI_STORE_DWORD_IMM, MI_STORE_QWORD_IMM_GEN8."""
    g4x = read(4.5, "render", mi(0x20, 2 | 1 << 22), 0, 0x1000, 7)
    assert g4x.use_global_gtt and g4x.address == 0x1000 and g4x.immediate_data == 7
    assert read(7.5, "render", mi(0x20, 2), 0, 0x1004, 9).address == 0x1004
    bdw = read(8, "video", mi(0x20, 2), 0x1004, 1, 9)
    assert (bdw.address, bdw.immediate_data, bdw.store_qword) == (0x1_00001004, 9, 0)
    both = read(11, "render", mi(0x20, 3 | 1 << 21), 0x1008, 0, 0x89ABCDEF, 0x01234567)
    assert both.store_qword and both.immediate_data == 0x01234567_89ABCDEF
    many = read(9, "render", mi(0x20, 5), 0x1000, 0, 1, 2, 3, 4)
    assert [entry.dword for entry in many.data] == [1, 2, 3, 4]


def test_store_index() -> None:
    """i915: MI_STORE_DWORD_INDEX into the status page; its offset counts bytes in place, 0x30 dwords on here."""
    record = read(7, "blitter", mi(0x21, 1), 0x30 << 2, 0xCAFE)
    assert record.offset == 0x30 and record.data_dword_0 == 0xCAFE and record.data_dword_1 == 0


@pytest.mark.behaviour("KBL-CS-17", shows="layout")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_load_registers_in_pairs(gen: float) -> None:
    """i915: MI_LOAD_REGISTER_IMM(x), 2x - 1 in the header. KBL 13016: bits 22:0 are the register, its low two zero."""
    record = read(gen, "render", mi(0x22, 2 * 3 - 1), 0x2248, 1, 0x7F_FFFC, 2, 0x20D8, 0x100010)
    assert [(entry.register_offset, entry.data_dword) for entry in record.entry] == [(0x2248, 1), (0x7F_FFFC, 2), (0x20D8, 0x100010)]
    assert layout("MI_LOAD_REGISTER_IMM", gen).reserved(3) >> 32 & 0xFFFFFFFF == 0xFF80_0003


def test_offsets_may_count_from_the_engine_on_gen11() -> None:
    """i915: MI_LRI_LRM_CS_MMIO is bit 19, MI_LRR_SOURCE_CS_MMIO bit 18."""
    assert read(11, "video", mi(0x22, 1 | 1 << 19), 0x178, 1).add_cs_mmio_start_offset
    assert read(11, "video", mi(0x24, 2 | 1 << 19), 0x800, 0x1000, 0).add_cs_mmio_start_offset
    assert read(11, "render", mi(0x29, 2 | 1 << 19), 0x600, 0x1000, 0).add_cs_mmio_start_offset
    both = read(11, "render", mi(0x2A, 1 | 1 << 19 | 1 << 18), 0x600, 0x400)
    assert both.add_cs_mmio_start_offset_source and both.add_cs_mmio_start_offset_destination
    assert (both.source_register_address, both.destination_register_address) == (0x600, 0x400)
    assert "add_cs_mmio_start_offset" not in read(9, "render", mi(0x22, 1), 0x2600, 1)._fields


def test_memory_to_register_and_back() -> None:
    load = read(7.5, "render", mi(0x29, 1), 0x243C, 0x5000)
    assert (load.register_address, load.memory_address) == (0x243C, 0x5000)
    store = read(9, "render", mi(0x24, 2 | 1 << 22 | 1 << 21), 0x23A8, 0x5004, 2)
    assert store.use_global_gtt and store.predicate_enable and store.memory_address == 0x2_00005004
    copy = read(9, "render", mi(0x2E, 3 | 1 << 21), 0x1000, 0, 0x2000, 1)
    assert (copy.destination_memory_address, copy.source_memory_address) == (0x1000, 0x1_00002000)
    assert copy.use_global_gtt_destination and not copy.use_global_gtt_source


def test_atomics_with_and_without_inline_data() -> None:
    """i915: MI_ATOMIC has 3 dwords, MI_ATOMIC_INLINE 11; MI_ATOMIC_MOVE is 4 << 8."""
    short = read(11, "render", mi(0x2F, 1 | 4 << 8), 0x1000, 1)
    assert short.memory_address == 0x1_00001000 and short.operand1_data_dword_0 == 0 and not short.inline_data
    assert enumeration("Atomic_OPCODE", 11)[short.atomic_opcode] == "move"
    long = read(8, "render", mi(0x2F, 9 | 1 << 18 | 1 << 17 | 1 << 19 | 0x27 << 8), 0x1000, 0, *range(1, 9))
    assert long.inline_data and long.cs_stall and long.data_size == 1
    assert (long.operand1_data_dword_0, long.operand2_data_dword_0, long.operand2_data_dword_3) == (1, 2, 8)
    assert enumeration("Atomic_OPCODE", 8)[long.atomic_opcode] == "add8b"


def test_updates_of_the_global_table_are_as_wide_as_its_entries() -> None:
    assert [entry.entry_data for entry in read(7, "render", mi(0x23, 2 | 1 << 22), 0x3000, 5, 6).entry] == [5, 6]
    assert [entry.entry_data for entry in read(9, "render", mi(0x23, 2), 0x3000, 5, 6).entry] == [6 << 32 | 5]


# -- arithmetic and predicates -----------------------------------------------------------------------------------------


def test_math() -> None:
    """i915: MI_MATH(4), then MI_MATH_INSTR(opcode << 20 | operand << 10 | operand)."""
    words = [0x080 << 20 | 0x20 << 10 | 1, 0x480 << 20 | 0x21 << 10 | 15, 0x100 << 20, 0x180 << 20 | 2 << 10 | 0x31]
    for gen in (7.5, 8, 9, 11):
        record = read(gen, "render", mi(0x1A, 4 - 1), *words)
        opcodes, operands = enumeration("MI_Math_Opcode", gen), enumeration("MI_Math_Operand", gen)
        assert [opcodes[inst.alu_opcode] for inst in record.instruction] == ["load", "loadinv", "add", "store"]
        assert [operands[inst.operand_1] for inst in record.instruction] == ["srca", "srcb", "reg0", "reg2"]
        assert [operands[inst.operand_2] for inst in record.instruction] == ["reg1", "reg15", "reg0", "accu"]


def test_predicate() -> None:
    """Mesa: MI_PREDICATE_LOADOP_LOADINV 3 << 6, COMBINEOP_XOR 3 << 3, COMPAREOP_SRCS_EQUAL 2."""
    record = read(9, "render", mi(0x0C, 3 << 6 | 3 << 3 | 2))
    told = layout("MI_PREDICATE", 9)
    for field, word in (("load_operation", "loadinv"), ("combine_operation", "xor"), ("compare_operation", "srcs_equal")):
        assert dict(told.field(field).type.values)[getattr(record, field)] == word


# -- waiting and flushing ------------------------------------------------------------------------------------------------


def test_semaphores() -> None:
    """i915: gen6_ring_sync_to, MI_SEMAPHORE_WAIT of gen8_emit_breadcrumb's partners."""
    old = read(7.5, "blitter", mi(0x16, 1 | 1 << 20 | 1 << 18 | 2 << 16), 41, 0)
    assert old.compare_semaphore and old.compare_register == 1 and old.register_select == 2 and old.semaphore_data_dword == 41
    wait = read(8, "render", mi(0x1C, 2 | 1 << 22 | 1 << 15 | 4 << 12), 1, 0x2000, 3)
    assert wait.memory_type == 1 and wait.wait_mode == 1 and wait.semaphore_address == 0x3_00002000
    assert enumeration("Semaphore_Compare", 8)[wait.compare_operation] == "sad_equal_sdd"
    signal = read(11, "video", mi(0x1B, 13 << 15), 7)
    assert enumeration("Command_Streamer", 11)[signal.target_engine_select] == "vecs2" and signal.target_context_id == 7


def test_flush_dw_has_a_flag_beside_its_length() -> None:
    """iHD sets bit 7 (invalidate video caches); i915 sends data of one dword."""
    ihd = read(9, "video", mi(0x26, 3 | 1 << 7 | 1 << 14), 0x1000 | 1 << 2, 1, 0xAB, 0)
    assert ihd.video_pipeline_cache_invalidate and ihd.post_sync_operation == 1
    assert (ihd.address, ihd.destination_address_type, ihd.immediate_data) == (0x1_00001000, 1, 0xAB)
    i915 = read(7, "blitter", mi(0x26, 1 | 1 << 21 | 1 << 18 | 1 << 14), 0x30 << 2 | 1 << 2, 42)
    assert i915.store_data_index and i915.tlb_invalidate and i915.immediate_data == 42


def test_pipe_control_of_g45() -> None:
    """G45 1794-1862."""
    record = read(4.5, "render", 0x7A000002 | 2 << 14 | 1 << 13, 0x4000 | 1 << 2, 0x11, 0x22)
    assert record.post_sync_operation == 2 and record.depth_stall_enable and not record.render_target_cache_flush_enable
    assert (record.address, record.destination_address_type, record.immediate_data) == (0x4000, 1, 0x22_00000011)
    flags = read(4.5, "render", 0x7A000002 | 1 << 12 | 1 << 11 | 1 << 10 | 1 << 9 | 1 << 8, 0, 0, 0)
    assert flags.render_target_cache_flush_enable and flags.instruction_cache_invalidate_enable
    assert flags.texture_cache_invalidation_enable and flags.indirect_state_pointers_disable and flags.notify_enable


PIPE_CONTROL = {  # i915: bits of the flags dword
    24: "destination_address_type", 23: "lri_post_sync_operation", 21: "store_data_index", 20: "command_streamer_stall_enable",
    19: "global_snapshot_count_reset", 18: "tlb_invalidate", 16: "generic_media_state_clear", 13: "depth_stall_enable",
    12: "render_target_cache_flush_enable", 11: "instruction_cache_invalidate_enable", 10: "texture_cache_invalidation_enable",
    9: "indirect_state_pointers_disable", 8: "notify_enable", 7: "pipe_control_flush_enable", 5: "dc_flush_enable",
    4: "vf_cache_invalidation_enable", 3: "constant_cache_invalidation_enable", 2: "state_cache_invalidation_enable",
    1: "stall_at_pixel_scoreboard", 0: "depth_cache_flush_enable",
}  # fmt: skip
GEN11 = {29: "command_cache_invalidate_enable", 28: "tile_cache_flush_enable", 27: "protected_memory_disable",
         22: "protected_memory_enable", 17: "psd_sync_enable", 6: "protected_memory_application_id"}  # fmt: skip


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_pipe_control_flags(gen: float) -> None:
    """i915 GFX_OP_PIPE_CONTROL(len) with 4 dwords on Gen7 and 6 since; ICL 1111-1216 for what Gen11 adds."""
    for bit, field in (PIPE_CONTROL | (GEN11 if gen == 11 else {})).items():
        if gen < 8:
            record = read(gen, "render", 0x7A000000 | 4 - 2, 1 << bit, 0x1000, 5)
        else:
            record = read(gen, "render", 0x7A000000 | 6 - 2, 1 << bit, 0x1000, 1, 5, 0)
        assert {n for n, v in record._asdict().items() if v} == {field, "address", "immediate_data"}
        assert record.immediate_data == 5 and record.address & 0xFFFFFFFF == 0x1000


# -- state -----------------------------------------------------------------------------------------------------------------


def test_state_base_address_of_gen9() -> None:
    """Mesa: general 1, stateless MOCS 3, surface 4, dynamic 6, indirect 8, instruction 10, sizes 12 to 15, bindless 16."""
    dwords = [0x61010000 | 19 - 2] + [0] * 18
    for at, base in ((1, 0x1000), (4, 0x2000), (6, 0x3000), (8, 0x4000), (10, 0x5000), (16, 0x6000)):
        dwords[at], dwords[at + 1] = base | 5 << 4 | 1, at
    dwords[3] = 6 << 16
    dwords[12:16] = [0xFFFFF001, 0x1001, 0xFFFFF001, 0x2001]
    dwords[18] = 0x3000
    record = read(9, "render", *dwords)
    names = ("general_state", "surface_state", "dynamic_state", "indirect_object", "instruction", "bindless_surface_state")
    assert [getattr(record, f"{n}_base_address") for n in names] == [
        0x1_00001000, 0x4_00002000, 0x6_00003000, 0x8_00004000, 0xA_00005000, 0x10_00006000]  # fmt: skip
    assert all(getattr(record, f"{n}_mocs") == 5 and getattr(record, f"{n}_base_address_modify_enable") for n in names)
    assert record.stateless_data_port_access_mocs == 6 and record.dynamic_state_buffer_size == 1 and record.instruction_buffer_size == 2


def test_pipeline_select_and_system_routine() -> None:
    assert read(4.5, "render", 0x69040001).pipeline_selection == 1
    gen9 = read(9, "render", 0x69040000 | 3 << 8 | 2)
    assert gen9.mask_bits == 3 and gen9.pipeline_selection == 2
    assert read(9, "render", 0x61020001, 0x5000, 0).system_instruction_pointer == 0x5000
    assert layout("STATE_SIP", 4.5).field("system_instruction_pointer").type.base == "general"
    assert layout("STATE_SIP", 9).field("system_instruction_pointer").type.base == "instruction"
    csr = read(11, "render", 0x61040001, 0x7000, 1)
    assert csr.gpgpu_csr_base_address == 0x1_00007000

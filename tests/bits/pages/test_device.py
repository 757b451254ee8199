"""Contexts, status pages, interrupts, addresses: what the Kaby Lake and Ice Lake manuals lay out, taken apart by the pages."""

from __future__ import annotations

import pytest

from softgen.bits import registers
from softgen.bits.catalogue import catalogue, layout
from tests.bits.pages.test_three_d_pixel import unpack, words

GEN = 9.0
INTERRUPTS = "BIT_DEFINITION_FOR_INTERRUPT_CONTROL_REGISTERS_"


# -- contexts on Kaby Lake -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-CTX-01", shows="layout")
def test_context_descriptor() -> None:
    """KBL 5209-5371."""
    record = unpack("CONTEXT_DESCRIPTOR", GEN, (1, 0, 0xCAFE), (0, 12, 0x12345), (0, 8, 1), (0, 6, 2), (0, 3, 3), (0, 0, 7))
    assert (record.context_id, record.context_address, record.privileged, record.fault_handling) == (0xCAFE, 0x12345000, 1, 2)
    assert (record.addressing, record.force_restore, record.force_page_directory_restore, record.valid) == (3, 1, 1, 1)
    values = dict(layout("CONTEXT_DESCRIPTOR", GEN).field("fault_handling").type.values)
    assert values == {0: "hang", 1: "halt", 2: "stream"}


EVENTS = ["idle_to_active", "preempted", "element_switch", "active_to_idle", "context_complete", "wait_on_sync_flip",
          "wait_on_vertical_blank", "wait_on_semaphore", "wait_on_scanline"]  # fmt: skip


@pytest.mark.behaviour("KBL-CTX-05", shows="layout")
def test_context_status_events() -> None:
    """KBL 5381-5484: a bit each from 0 up, then lite restore and the display plane or pipe that was waited for."""
    for bit, event in enumerate(EVENTS):
        record = unpack("CONTEXT_STATUS", GEN, (0, bit, 1), (1, 0, 77))
        assert [name for name in EVENTS if getattr(record, name)] == [event] and record.context_id == 77
    record = unpack("CONTEXT_STATUS", GEN, (0, 16, 8), (0, 15, 1), (0, 12, 5), (0, 11, 1))
    assert (record.display_plane, record.lite_restore, record.display_plane_additional, record.semaphore_wait_mode) == (8, 1, 5, 1)


@pytest.mark.behaviour("KBL-CTX-06", "KBL-CTX-07", shows="layout")
def test_hardware_status_page() -> None:
    """KBL 11498-11528: interrupt status at 0, the ring's head at 4, six status entries from 16 and the last one's number, users from 48."""
    page = [0] * 1024
    page[0], page[4], page[31], page[48], page[1023] = 1, 2, 5, 6, 7
    page[16:28] = range(100, 112)
    record = layout("HARDWARE_STATUS_PAGE_LAYOUT", GEN).unpack(page)
    assert (record.interrupt_status, record.ring_head, record.last_written_status_offset) == (1, 2, 5)
    assert [entry.context_id for entry in record.context_status] == [101, 103, 105, 107, 109, 111]
    assert (len(record.general_purpose), record.general_purpose[0].value, record.general_purpose[-1].value) == (976, 6, 7)


@pytest.mark.behaviour("KBL-CTX-08", shows="layout")
def test_a_context_s_own_page() -> None:
    """KBL 18205-18254."""
    record = unpack("PPHWSP_LAYOUT", GEN, (4, 0, 1), (16, 0, 2), (17, 0, 1), (18, 0, 3), (20, 0, 4), (22, 0, 5), (24, 0, 0x0E000000 << 96))
    assert (record.ring_head, record.cumulative_context_run_time, record.element_switch,
            record.preempt_request_received_timestamp) == (1, 2, 1, 3)
    assert (record.context_restore_complete_timestamp, record.context_save_finished_timestamp) == (4, 5)
    assert record.mi_semaphore_wait >> 96 == 0x0E000000


@pytest.mark.behaviour("KBL-STAT-02", shows="layout")
def test_performance_report() -> None:
    """KBL 16250-16372: 256 bytes."""
    record = layout("PERFORMANCE_COUNTER_REPORT", GEN).unpack(list(range(64)))
    assert (record.report_id, record.timestamp, record.context_id, record.gpu_ticks) == (0, 1, 2, 3)
    assert [counter.low for counter in record.a_counter] == list(range(4, 40)) and len(record.a_counter_high) == 32
    assert len(record.b_counter) == len(record.c_counter) == 8 and (record.b_counter[0][0], record.c_counter[7][0]) == (48, 63)


# -- interrupts and errors -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-INT-02", shows="layout")
def test_render_interrupts() -> None:
    """KBL 1962-2025."""
    bits = {field.name: field.low for field in layout(INTERRUPTS + "RENDER", GEN).fields}
    assert bits == {"user_interrupt": 0, "command_parser_master_error": 3, "pipe_control_notify": 4, "timeout_counter_expired": 6,
                    "page_fault": 7, "context_switch": 8, "tiled_resource_invalid_tile_detection": 9, "l3_counter_save": 10,
                    "wait_on_semaphore": 11}  # fmt: skip


@pytest.mark.behaviour("KBL-INT-03", shows="layout")
@pytest.mark.parametrize("engine, shift", [("BLITTER", 16), ("MEDIA_1", 0), ("MEDIA_2", 16), ("VIDEO_ENHANCEMENT", 0)])
def test_interrupts_of_the_other_engines(engine: str, shift: int) -> None:
    """As render's, without page fault, tiles and L3; a flush notifies instead of a pipe control; two share a register by its halves."""
    render = {field.name.replace("pipe_control", "mi_flush_dw"): field.low for field in layout(INTERRUPTS + "RENDER", GEN).fields}
    theirs = {field.name: field.low - shift for field in layout(INTERRUPTS + engine, GEN).fields}
    own = ("page_fault", "tiled_resource_invalid_tile_detection", "l3_counter_save")
    assert theirs == {name: bit for name, bit in render.items() if name not in own}


@pytest.mark.behaviour("KBL-CS-16", shows="layout")
@pytest.mark.parametrize("engine", ["", "BCS_", "VCS_", "VECS_"])
def test_error_bits_of_each_streamer(engine: str) -> None:
    """KBL 11257, 1664, 26367, 30127."""
    record = unpack(f"{engine}HARDWARE_DETECTED_ERROR_BIT_DEFINITIONS", GEN, (0, 2, 1))
    assert (record.command_privilege_violation, record.instruction_error) == (1, 0)


# -- memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-MEM-01", shows="layout")
@pytest.mark.parametrize("low", [0, 1, 2, 3, 4, 5, 6, 12])
def test_addresses_keep_48_bits(low: int) -> None:
    """KBL 9014-9211: bits 47:n; what stands above is not looked at."""
    address = 0xFFFF_8123_4567_8000
    page = layout(f"GRAPHICSADDRESS63_{low}", GEN)
    assert page.unpack(words(2, (0, 0, address >> low)))[0] == (address & (1 << 48) - 1) >> low


@pytest.mark.behaviour("KBL-MEM-02", shows="layout")
def test_base_addresses() -> None:
    """KBL 1642-1654, 24557-24597: aligned to 4 KiB or 64 bytes; in one piece or in halves."""
    assert unpack("BASEADDRESS4KBYTEALIGNED", GEN, (0, 0, 0x1234_5678_9000)).base_address == 0x1234_5678_9000
    assert unpack("SPLITBASEADDRESS4KBYTEALIGNED", GEN, (0, 0, 0x5678_9000), (1, 0, 0x1234)).address == 0x1234_5678_9000
    assert unpack("SPLITBASEADDRESS64BYTEALIGNED", GEN, (0, 0, 0x5678_9040), (1, 0, 0x1234)).address == 0x1234_5678_9040


@pytest.mark.behaviour("KBL-MEM-03", shows="layout")
def test_memory_object_control() -> None:
    """KBL 13492-13504: an index of six bits on Gen9; Gen8 has the controls themselves."""
    assert unpack("MEMORY_OBJECT_CONTROL_STATE", 9, (0, 1, 63)).index_to_mocs_tables == 63
    record = unpack("MEMORY_OBJECT_CONTROL_STATE", 8, (0, 5, 3), (0, 3, 3), (0, 0, 1))
    assert (record.memory_type, record.target_cache, record.age_for_quadlru) == (3, 3, 1)


# -- contexts of Ice Lake --------------------------------------------------------------------------------------------------

UNITS = ["CSEL", "CSFE", "CSBE", "SOL", "VF", "GAMWC", "GAMT", "LNCF", "SVG", "TDL", "WM", "SC", "DM"]


@pytest.mark.behaviour("ICL-CTX-08", shows="layout")
def test_units_of_a_context_are_multiples_of_16_dwords() -> None:
    """ICL 1895-2350; the pixel unit's length depends on a table whose length is not printed."""
    lengths = {unit: layout(f"CONTEXT_{unit}", 11).dwords for unit in UNITS}
    assert lengths["CSEL"] == 80 and all(length % 16 == 0 for length in lengths.values())


def test_a_driver_s_image_begins_as_the_manual_s() -> None:
    """CONTEXT_IMAGE, which drivers' images were checked against, and the manual's list have the same registers at the same dwords."""
    image, listed = layout("CONTEXT_IMAGE", 11), layout("CONTEXT_CSEL", 11)
    pairs = {"context_control": "ctx_sr_ctl", "head": "ring_buffer_head", "tail": "ring_buffer_tail", "start": "ring_buffer_start",
             "last_page": "ring_buffer_ctl", "timestamp": "ctx_timestamp", "power": "r_pwr_clk_state"}  # fmt: skip
    for ours, theirs in pairs.items():
        assert image.field(ours).low // 32 == listed.field(theirs).low // 32 + 1, ours
    for number in range(4):
        upper, lower = (piece[1] // 32 for piece in image.field(f"page_directory_{number}").pieces)
        assert upper == listed.field(f"pdp_{number}_upper").low // 32 + 1 and lower == listed.field(f"pdp_{number}").low // 32 + 1


@pytest.mark.behaviour("ICL-CTX-13", shows="layout")
def test_the_ring_context_has_the_context_id() -> None:
    """ICL 1926: CCID is the last of the first load."""
    assert layout("CONTEXT_CSEL", 11).field("ccid").low == 30 * 32


@pytest.mark.behaviour("ICL-CTX-10", shows="layout")
def test_push_constants_are_saved_twice() -> None:
    """ICL 2224-2227, 2254-2257, 2262, 2285."""
    geometry, pixels = layout("CONTEXT_SVG", 11), layout("CONTEXT_SVL", 11)
    for stage, unit in (("vs", geometry), ("hs", geometry), ("ds", geometry), ("gs", geometry), ("ps", pixels)):
        committed, not_yet = (unit.field(f"3dstate_constant_{stage}_{which}") for which in ("committed", "non_committed"))
        assert committed.width == not_yet.width == 11 * 32 and committed.high < not_yet.low


@pytest.mark.behaviour("ICL-CTX-03", "ICL-CTX-04", shows="layout")
def test_power_context() -> None:
    """ICL 1711-1811: nothing, then a load of 110 registers, posted, which the header 0x110010db says; the ring is enabled last, after head,
    tail and start."""
    page = layout("POWER_CONTEXT_RENDER", 11)
    entries = [{"register_offset": 0x229C}] * 110
    assert layout("MI_LOAD_REGISTER_IMM", 11).pack(force_posted=1, entry=entries)[0] == 0x110010DB
    assert page.reserved() & 0xFFFFFFFF == 0xFFFFFFFF
    loaded = [field for field in page.fields if 64 <= field.low < page.field("load_2").low]
    assert all(field.low % 64 == 0 and field.width % 64 == 0 and field.type.target.startswith("CONTEXT_REGISTER") for field in loaded)
    runs = [(field.low, field.width) for field in loaded] + [(group.start, group.size * (group.count or 1)) for group in page.groups]
    held = [bit // 32 for start, width in runs for bit in range(start, start + width, 64)]
    assert sorted(held) == sorted({*range(2, 2 + 2 * 110, 2)} - {28, 162, 218, 220}), "the manual prints no register there"
    assert (page.field("load_1").low // 32, page.field("load_2").low // 32) == (1, 0xE1)
    assert page.field("csb_interrupt_mask").high < (2 + 2 * 110) * 32 <= page.field("load_2").low
    order = ["ring_buffer_ctl", "ring_buffer_head", "ring_buffer_tail", "ring_buffer_start", "ring_buffer_ctl_original"]
    assert [page.field(name).low // 32 for name in order] == [6, 8, 10, 12, 14]


@pytest.mark.behaviour("ICL-CTX-14", shows="layout")
def test_position_only_context() -> None:
    """ICL 2363-2381: 80 dwords with 14 registers at 0x18000."""
    page = layout("POSH_CONTEXT_EL", 11)
    saved = [field for field in page.fields if field.type.target == "CONTEXT_REGISTER"]
    assert page.dwords == 80 and len(saved) == 14 and registers.bases(11)["position_only"] == (0x18000,)


@pytest.mark.behaviour("ICL-CS-16", shows="layout")
def test_registers_that_save_where_a_batch_was() -> None:
    """ICL 157-181."""
    names = ["BB_PREEMPT_ADDR", "BB_PREEMPT_ADDR_UDW", "RING_BUFFER_HEAD_PREEMPT", "BB_START_ADDR", "BB_START_ADDR_UDW", "BB_ADD_DIFF",
             "BB_OFFSET", "SBB_PREEMPT_ADDR", "SBB_PREEMPT_ADDR_UDW", "BB_PER_CTX_PTR"]  # fmt: skip
    assert all(catalogue().get(name, 11) for name in names)


@pytest.mark.behaviour("ICL-REG-05", shows="layout")
def test_counters() -> None:
    """ICL 1316-1373."""
    names = ["IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "HS_INVOCATION_COUNT", "DS_INVOCATION_COUNT",
             "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT", "CL_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT", "CPS_INVOCATION_COUNT",
             "TIMESTAMP", "WMHWCLRVAL",
             *(f"PS_{kind}_COUNT_SLICE{i}" for kind in ("INVOCATION", "DEPTH") for i in range(8)),
             *(f"SO_WRITE_OFFSET{i}" for i in range(4))]  # fmt: skip
    assert [name for name in names if not catalogue().get(name, 11)] == []
    assert all(layout(name, 11).dwords == 2 for name in names if name.endswith("COUNT") or "SLICE" in name)


@pytest.mark.behaviour("ICL-REG-02", shows="layout")
def test_mode_registers() -> None:
    """ICL 1258-1304."""
    names = ["MI_MODE", "FF_MODE", "GFX_MODE", "GT_MODE", "SAMPLER_MODE", "CACHE_MODE_1", "GAFS_MODE", "FBC_RT_BASE_ADDR",
             "FBC_RT_BASE_ADDR_UPPER", "CACHE_MODE_SS"]  # fmt: skip
    assert [name for name in names if not catalogue().get(name, 11)] == []
    found = registers.find(0x20A0, 11, "render")
    assert found and found.name == "FF_MODE"

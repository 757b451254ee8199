"""Messages: descriptors, headers and payloads put together by the Kaby Lake manual's tables, taken apart by the pages."""

from __future__ import annotations

import re

import pytest

from softgen.bits.catalogue import catalogue, enumeration, layout
from softgen.bits.layout import Layout
from tests.bits.pages.test_three_d_pixel import unpack, words

GEN = 9.0
CHANNELS = ["red", "green", "blue", "alpha"]


def payloads(prefix: str) -> list[Layout]:
    return [layout(name, GEN) for name in catalogue().sections if re.match(prefix, name)]


# -- render targets ------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-RT-01", shows="layout")
def test_render_target_write_descriptor() -> None:
    """KBL 13751-13826."""
    subtypes = enumeration("RENDER_TARGET_SUBTYPE", GEN)
    assert subtypes == {0: "simd16", 1: "simd16_replicated", 2: "simd8_dual_source_low", 3: "simd8_dual_source_high", 4: "simd8",
                        7: "simd16_replicated_tiled"}  # fmt: skip
    record = unpack("MSD_RTW", GEN, (0, 30, 1), (0, 25, 9), (0, 19, 1), (0, 14, 12), (0, 13, 1), (0, 12, 1), (0, 11, 1), (0, 8, 4),
                    (0, 0, 7))
    assert (record.precision, record.message_length, record.header_present, record.message_type) == (1, 9, 1, 12)
    assert (record.per_sample, record.last_render_target, record.slot_group, record.message_subtype, record.binding_table_index) == (1,
        1, 1, 4, 7)


def wanted(letters: str, count: int, dual: bool, replicated: bool, half: bool) -> list[str]:
    """What a payload's name says it has: letters S Z M A, slots, DS and REP."""
    slots = ["15_0"] if half else ["7_0", "15_8"]
    parameters_of = (lambda name: [f"{name}_{part}" for part in slots]) if count == 16 else (lambda name: [name])
    found = parameters_of("source_0_alpha") if "A" in letters else []
    found += ["omask"] if "M" in letters else []
    if replicated:
        found.append("rgba")
    elif dual and not half:
        found += [f"src{source}_{channel}" for source in (0, 1) for channel in CHANNELS]
    else:
        found += [name for channel in CHANNELS for name in parameters_of(channel)]
    depth = ["source_depth_7_0", "source_depth_15_8"] if count == 16 else ["source_depth"]  # never in half precision
    return found + (depth if "Z" in letters else []) + (["stencil"] if "S" in letters else [])


def told(page: Layout) -> list[str]:
    """Its fields in order; one of twice the width stands for both halves of sixteen slots."""
    names = []
    for field in page.fields:
        both = field.type.target == "MDP_DW_SIMD16"
        names += [f"{field.name}_7_0", f"{field.name}_15_8"] if both else [field.name]
    return names


@pytest.mark.behaviour("KBL-RT-04", shows="layout")
def test_render_target_payloads_follow_one_order() -> None:
    """Source 0 alpha, oMask, colour, depth, stencil, for each of the 68 combinations the manual lays out, without a gap."""
    found = payloads("MDP_RTWH?_")
    assert len(found) == 68
    for page in found:
        m = re.fullmatch(r"MDP_RTW(H?)_([SZMA]*)(8|16)(DS|REP)?", page.name)
        assert m, page.name
        expected = wanted(m[2], int(m[3]), m[4] == "DS", m[4] == "REP", bool(m[1]))
        assert [name.removesuffix("_15_0") for name in told(page)] == [name.removesuffix("_15_0") for name in expected], page.name
        ends = [-1, *(field.high for field in page.fields)]
        assert [field.low for field in page.fields] == [end + 1 for end in ends[:-1]] and ends[-1] == 32 * page.dwords - 1, page.name


@pytest.mark.behaviour("KBL-RT-05", shows="layout")
def test_half_precision_packs_eight_or_sixteen() -> None:
    """KBL 9268, 10268, 10466, 10550: 1.0 and -2.0 in the first two slots; one colour for all as four halves."""
    for name, count in (("MDPR_H_SIMD8", 8), ("MDPR_H_SIMD16", 16)):
        record = unpack(name, GEN, (0, 0, 0x3C00), (0, 16, 0xC000))
        assert len(record.data) == count and [record.data[0].value, record.data[1].value] == [1.0, -2.0]
    dual = unpack("MDPR_DSH_SIMD8", GEN, (0, 0, 0x3C00), (4, 0, 0xC000))
    assert (len(dual.src0_data), dual.src0_data[0].value, dual.src1_data[0].value) == (8, 1.0, -2.0)
    colour = unpack("MDPR_H_RGBA", GEN, (0, 0, 1), (0, 16, 2), (1, 0, 3), (1, 16, 4))
    assert (colour.red, colour.green, colour.blue, colour.alpha) == (1, 2, 3, 4)


@pytest.mark.behaviour("KBL-RT-07", shows="layout")
def test_a_byte_of_stencil_for_each_slot() -> None:
    """KBL 24983-25041."""
    record = layout("MDPR_STENCIL", GEN).unpack(words(8, (0, 0, 0x03020100), (1, 0, 0x07060504)))
    assert [slot.value for slot in record.stencil] == list(range(8))


# -- data port -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-DP-26", shows="layout")
def test_slots_of_scattered_data() -> None:
    """A dword or qword for each slot in order; SIMD4x2 has four channels of slot 0 in the lower half (KBL 5931-6224, 18332-18723)."""
    dwords = layout("MDCR_DW", GEN).unpack(list(range(8)))
    assert [slot.value for slot in dwords.dword] == list(range(8))
    qwords = layout("MDCR_QW", GEN).unpack([1, 2, 3, 4, 5, 6, 7, 8])
    assert [slot.value for slot in qwords.qword] == [1 | 2 << 32, 3 | 4 << 32, 5 | 6 << 32, 7 | 8 << 32]
    assert [(f.name, f.low // 256) for f in layout("MDP_DW_SIMD16", GEN).fields] == [("data_7_0", 0), ("data_15_8", 1)]
    assert [f.low // 256 for f in layout("MDP_QW_SIMD16", GEN).fields] == [0, 1, 2, 3]
    pairs = layout("MDP_DW_SIMD4X2", GEN).unpack(list(range(8)))
    assert (pairs.red_slot0, pairs.alpha_slot0, pairs.red_slot1, pairs.alpha_slot1) == (0, 3, 4, 7)


@pytest.mark.behaviour("KBL-DP-28", shows="layout")
def test_structured_buffers_have_an_index_and_an_offset() -> None:
    """U, then V, by slot group; in SIMD4x2 side by side (KBL 23406-23442, 23833-23850, 24001-24031)."""
    assert [f.name for f in layout("MAP32B_USUV_SIMD8", GEN).fields] == ["u", "v"]
    assert [f.name for f in layout("MAP32B_USUV_SIMD16", GEN).fields] == ["u7_u0", "u15_u8", "v7_v0", "v15_v8"]
    assert layout("MAP32B_USUV_SIMD4X2", GEN).unpack(list(range(8))) == (0, 1, 4, 5)


@pytest.mark.behaviour("KBL-DP-30", shows="layout")
def test_a_byte_of_a_w_tile_for_each_dword() -> None:
    """KBL 26165-26235."""
    assert layout("MDCD_TILEW", GEN).unpack([0x12345678]) == (0x78,)
    assert len(layout("MDP_TILEW_SIMD8", GEN).unpack([0] * 8).red_slot) == 8


@pytest.mark.behaviour("KBL-ATOM-06", shows="layout")
def test_operands_of_atomics() -> None:
    """All of src0, then all of src1; dwords, pairs of dwords for qwords, qwords with 64-bit addresses, Owords (KBL 5985-18683)."""

    def names(name: str) -> list[str]:
        return [f.name for f in layout(name, GEN).fields]

    assert names("MDP_AOP8_DW2") == ["src0", "src1"]
    assert names("MDP_AOP16_DW2") == ["src0_7_0", "src0_15_8", "src1_7_0", "src1_15_8"]
    assert names("MDP_AOP8_QW2") == ["slot_7_0_src0_31_0", "slot_7_0_src0_63_32", "slot_7_0_src1_31_0", "slot_7_0_src1_63_32"]
    assert names("MDP_A64_AOP8_QW2") == ["slot_3_0_src0", "slot_7_4_src0", "slot_3_0_src1", "slot_7_4_src1"]
    assert [name[-4:] for name in names("MDP_A64_AOP8_OW2")] == ["src0"] * 4 + ["src1"] * 4
    assert layout("MDP_AOP4X2_DW2", GEN).unpack(list(range(8))) == (0, 1, 4, 5)


# -- surfaces and sampler ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-BT-04", shows="layout")
def test_binding_tables_of_software_and_hardware() -> None:
    """A dword with bits 31:6 of an offset, or a word with bits 21:6 (KBL 1727-1746, 11661-11677, 25297-25321)."""
    assert unpack("BINDING_TABLE_STATE", GEN, (0, 0, 0x00123440)).surface_state_pointer == 0x123440
    two = layout("HW_GENERATED_BINDING_TABLE_STATE", GEN).unpack([0x2345_1234])
    assert [entry.surface_state_pointer for entry in two.entry] == [0x1234, 0x2345]


@pytest.mark.behaviour("KBL-BT-06", shows="layout")
def test_indices_that_name_no_surface() -> None:
    assert enumeration("SPECIAL_SURFACE", GEN) == {252: "bindless", 253: "stateless_non_coherent", 254: "slm", 255: "stateless"}


@pytest.mark.behaviour("KBL-BT-07", shows="layout")
def test_bindless_surfaces() -> None:
    """Bits 31:12 of the extended descriptor are bits 25:6 of an offset (KBL 5709-5715)."""
    assert unpack("DP_EXTDESC_BTI252", GEN, (0, 12, 0xABCDE), (0, 0, 10)).surface_offset == 0xABCDE << 6


@pytest.mark.behaviour("KBL-SAMP-01", shows="layout")
def test_sampler_descriptor() -> None:
    """KBL 13836-13923."""
    record = unpack("MSD_SAMPLER", GEN, (0, 30, 3), (0, 25, 3), (0, 20, 8), (0, 19, 1), (0, 17, 2), (0, 12, 7), (0, 8, 15), (0, 0, 9))
    assert (record.end_of_thread, record.return_format, record.message_length, record.response_length, record.header_present) == (1, 1,
        3, 8, 1)
    assert (record.simd_mode, record.message_type, record.sampler_index, record.binding_table_index) == (2, 7, 15, 9)

"""Message descriptors: worked examples, the table's rules, properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits import catalogue
from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.dataport import scattered
from softgen.shared_functions.descriptors import Descriptor, encode, identify

ROWS = [(row, gen) for gen in GENERATIONS for row in descriptors.rows(gen)]
DESCRIPTORS = st.integers(0, 0xFFFFFFFF)


def must(sfid: int, descriptor: int, gen: float) -> Descriptor:
    found = identify(sfid, descriptor, gen)
    assert found is not None, descriptors.why(sfid, descriptor, gen)
    return found


# -- worked examples -----------------------------------------------------------------------------------------------

EXAMPLES = [
    # function, descriptor, generation, what it says
    (2, 0x0238A001, 4, "sampler: resinfo uint sampler 0 surface 1, mlen 3, rlen 8"),  # Mesa: brw_sampler_desc
    (4, 0x042190FF, 4, "data_port_read: oword_dual_block_read sampler 1_register stateless, mlen 2, rlen 1"),
    (4, 0x042333FF, 4, "data_port_read: dword_scattered_read data 16_dwords stateless, mlen 2, rlen 3"),
    (1, 0x0121001C, 4.5, "math: math vector full signed int_div_quotient, mlen 2, rlen 1"),
    (2, 0x02382001, 4.5, "sampler: resinfo sampler 0 surface 1, mlen 3, rlen 8"),
    (4, 0x042150FF, 4.5, "data_port_read: oword_dual_block_read render 1_register stateless, mlen 2, rlen 1"),
    (5, 0x85604C00, 4.5, "data_port_write: render_target_write last_render_target simd8 surface 0, mlen 6, rlen 0"),
    (6, 0x8650C460, 4.5, "urb: urb_write complete used interleave global_offset 6, mlen 5, rlen 0"),
    (2, 0x08427001, 7, "sampler: ld simd8 sampler 0 surface 1, mlen 4, rlen 4"),
    (10, 0x0219E000, 7, "data_cache_0: memory_fence commit surface 0, header, mlen 1, rlen 1"),
    (10, 0x020C3005, 7.5, "data_cache_0: scratch_block_read oword 4_registers hword_offset 5, header, mlen 1, rlen 0"),
    (10, 0x020C3005, 8, "data_cache_0: scratch_block_read oword 8_registers hword_offset 5, header, mlen 1, rlen 0"),
    (12, 0x04405CFE, 8, "data_cache_1: untyped_surface_read simd16 rg slm, mlen 2, rlen 4"),
    (12, 0x041401FF, 8, "data_cache_1: a64_dword_scattered_read 1_element stateless, mlen 2, rlen 1"),
    (7, 0x82000010, 9, "thread_spawner: dereference_resource resource_select 1 root_thread, mlen 1, rlen 0"),
    (3, 0x02008004, 9, "gateway: barrier notify 1, mlen 1, rlen 0"),
    (
        11,
        0x02411010,
        9,
        "pixel_interpolator: interpolate_sample_position simd16 perspective low_16 message_data 16 sample_index 1, mlen 1, rlen 4",
    ),
    (5, 0x90031000, 9, "render_cache: render_target_write single last_render_target low_16 simd16 surface 0, mlen 8, rlen 0"),
    (4, 0x0220DE85, 9, "data_port_2: scaled_untyped_surface_read simd16 r sideband_offset_enable scale 5, mlen 1, rlen 2"),
    (10, 0x0219E1FE, 11, "data_cache_0: memory_fence commit l1_flush slm, header, mlen 1, rlen 1"),
    (2, 0x24427001, 11, "sampler: ld 32_bit simd8h sampler 0 surface 1, mlen 2, rlen 4"),
    (12, 0x02120000, 9, "reserved: data_cache_1 has no message with message_type=8 on gen 9; mlen 1, rlen 1"),
    (12, 0x0210A000, 7, "reserved: gen 7 has no shared function 12; mlen 1, rlen 1"),
    (4, 0x02100000, 11, "reserved: no message of data_port_2 is known on gen 11; mlen 1, rlen 1"),
]


@pytest.mark.parametrize(("sfid", "descriptor", "gen", "text"), EXAMPLES)
def test_a_descriptor_is_described(sfid: int, descriptor: int, gen: float, text: str) -> None:
    assert descriptors.describe(sfid, descriptor, gen) == text


def names(sfid: int, gen: float, bits: range, shift: int) -> dict[int, str]:
    """The messages of a function by the value of its type bits, all else zero."""
    found = {number: identify(sfid, number << shift, gen) for number in bits}
    return {number: item.name for number, item in found.items() if item}


@pytest.mark.behaviour("KBL-DP-01", shows="layout")
def test_functions_of_kaby_lake() -> None:
    assert descriptors.shared_functions(9) == {
        0: "null",
        2: "sampler",
        3: "gateway",
        4: "data_port_2",
        5: "render_cache",
        6: "urb",
        7: "thread_spawner",
        8: "vme",
        9: "read_only",
        10: "data_cache_0",
        11: "pixel_interpolator",
        12: "data_cache_1",
        13: "cre",
    }


@pytest.mark.behaviour("KBL-DP-02", shows="layout")
def test_types_of_data_port_0() -> None:
    found = names(10, 9, range(32), 14)
    assert {number for number in found if number < 16} == {0, 1, 2, 3, 4, 7, 8, 10, 11, 12}
    assert [found[number] for number in (0, 1, 4, 7, 12)] == [
        "oword_block_read",
        "oword_unaligned_block_read",
        "byte_scattered_read",
        "memory_fence",
        "byte_scattered_write",
    ]
    assert {number: name for number, name in found.items() if number >= 16} == {
        n: f"scratch_block_{'write' if n & 8 else 'read'}" for n in range(16, 32)
    }


@pytest.mark.behaviour("KBL-DP-03", shows="layout")
def test_types_of_data_port_1() -> None:
    found = names(12, 9, range(32), 14)
    assert set(found) == {*range(8), 9, 10, 11, 12, 13, *range(0x10, 0x16), *range(0x19, 0x1F)}
    assert [found[number] for number in (0, 6, 0x12, 0x1A, 0x1E)] == [
        "transpose_read",
        "typed_atomic",
        "a64_untyped_atomic",
        "a64_byte_scattered_write",
        "a64_untyped_atomic_float_simd4x2",
    ]
    assert "message_type=8" in descriptors.why(12, 8 << 14, 9)


@pytest.mark.behaviour("KBL-DP-04", shows="layout")
def test_types_of_data_port_2() -> None:
    found = names(4, 9, range(16), 15)
    assert set(found) == {1, 2, 3, 4, 9, 10, 11, 12} and all(name.startswith("scaled_") for name in found.values())
    low = identify(4, 1 << 15 | 1 << 14, 9)
    assert low and descriptors.problems(low)[0] == "reserved: dword 0 bit 14 = 0x1"


@pytest.mark.behaviour("KBL-DP-05", shows="layout")
def test_types_of_the_read_only_port() -> None:
    assert list(names(9, 9, range(16), 14).values()) == [
        "constant_oword_block_read",
        "constant_oword_unaligned_block_read",
        "constant_oword_dual_block_read",
        "constant_dword_scattered_read",
        "sampler_cache_oword_unaligned_block_read",
        "sampler_cache_media_block_read",
        "read_surface_info",
    ]


@pytest.mark.behaviour("KBL-DP-06", shows="action")
@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("memory_fence", {}, []),
        ("memory_fence", {"header_present": 0}, ["memory_fence needs a header"]),
        ("a64_untyped_surface_read", {"binding_table_index": 255}, []),
        ("a64_untyped_surface_read", {"binding_table_index": 255, "header_present": 1}, ["a64_untyped_surface_read takes no header"]),
        ("untyped_surface_read", {"header_present": 0}, []),
        ("untyped_surface_read", {"header_present": 1}, []),
    ],
)
def test_header_rules(name: str, given: dict[str, int], wrong: list[str]) -> None:
    assert descriptors.problems(must(12 if "surface" in name else 10, encode(name, 9, message_length=1, **given), 9)) == wrong


@pytest.mark.behaviour("KBL-DP-07", shows="action")
@pytest.mark.parametrize(("sent", "returned", "wrong"), [(1, 16, 0), (15, 0, 0), (0, 1, 1), (1, 17, 1), (0, 31, 2)])
def test_lengths(sent: int, returned: int, wrong: int) -> None:
    found = must(2, encode("sample", 9, message_length=sent, response_length=returned), 9)
    assert (found.mlen, found.rlen, len(descriptors.problems(found))) == (sent, returned, wrong)
    assert (descriptors.mlen(found.descriptor, 9), descriptors.rlen(found.descriptor, 9), descriptors.header(found.descriptor, 9)) == (
        sent,
        returned,
        False,
    )


@pytest.mark.behaviour("BDW-DP-10", shows="action")
def test_no_double_word_compare_and_write_in_a64_simd4x2() -> None:
    for name, allowed in (("a64_untyped_atomic", True), ("a64_untyped_atomic_simd4x2", False), ("untyped_atomic_simd4x2", True)):
        found = must(12, encode(name, 8, operation=0, message_length=1, binding_table_index=255), 8)
        assert (descriptors.problems(found) == []) == allowed


@pytest.mark.behaviour("KBL-DP-21", shows="layout")
def test_line_stride_override_stands_in_bits_10_to_8() -> None:
    found = must(12, 4 << 14 | 1 << 19 | 1 << 10 | 1 << 8, 9).values
    assert (found.vertical_line_stride_override, found.vertical_line_stride, found.vertical_line_stride_offset) == (1, 0, 1)


def test_problems_name_reserved_values() -> None:
    assert descriptors.problems(must(12, encode("untyped_surface_write", 9, channel_mask=1, message_length=1), 9)) == [
        "channel_mask must be rgba, rgb, rg, r, not 1"
    ]
    # dword scattered: bit 9 must be one (BDW 19137)
    assert descriptors.problems(must(10, 0x0202C000, 9)) == ["reserved: dword 0 bit 9 = 0x0"]


def test_header_of_gen_4_5_is_known_by_message() -> None:
    assert descriptors.header(0x02382001, 4.5) is None
    assert must(2, 0x02382001, 4.5).header and not must(1, 0x0121001C, 4.5).header


def test_extended_descriptors() -> None:
    sends = descriptors.extended(12, 0xABCDE08C, 9)
    assert sends and (sends.extended_message_length, sends.target_function_id, sends.surface_offset) == (2, 12, 0xABCDE << 6)
    target = descriptors.extended(5, 0x0000A065, 11)
    assert target and (target.render_target_index, target.source0_alpha_present, target.end_of_thread, target.extended_message_length) == (
        2,
        1,
        1,
        1,
    )
    scaled = descriptors.extended(4, 0x12340004, 9)
    assert scaled and scaled.sideband_offset == 0x1234
    assert descriptors.extended(12, 0, 8) is None
    assert all(
        descriptors.extended(number, 0, 11) is not None
        for number, name in descriptors.shared_functions(11).items() if name != "data_port_2"
    )


def test_headers_are_laid_out() -> None:
    scratch = catalogue.layout("MH_A32_HWB", 9).unpack([0, 0, 0, 0xFFFFFFF3, 0, 0x12345FFF, 0, 0])
    assert (scratch.per_thread_scratch_space, scratch.buffer_base_address) == (3, 0x12345C00)
    block = catalogue.layout("MH_MB", 9).unpack([0xFFFFFFF0, 2, 0x000F001F, 0, 0x55, 0, 0, 0])
    assert (block.x_offset, block.y_offset, block.block_height, block.block_width, block.fftid) == (-16, 2, 15, 31, 0x55)
    target = catalogue.layout("MH_RT", 9).pack(render_target_index=3, subspan_1_y=7, pixel_enables=0xFFFF)
    assert len(target) == 16 and (target[2], target[11], target[15]) == (3, 7 << 16, 0xFFFF)


# -- the table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_row_can_be_reached_and_every_page_has_a_row(gen: float) -> None:
    reached = {row.name for _, table in descriptors.resolve(descriptors.rows(gen), gen).values() for row in table.values()}
    assert reached == {row.name for row in descriptors.rows(gen)}
    pages = {name for name in catalogue.names("message", gen) if name.startswith("MSD")}
    assert pages - {row.page for row in descriptors.rows(gen)} == set()


def test_no_message_is_lost() -> None:
    assert {gen: len(descriptors.rows(gen)) for gen in GENERATIONS} == {4: 30, 4.5: 33, 7: 78, 7.5: 85, 8: 105, 9: 128, 11: 116}


def test_every_function_has_messages() -> None:
    silent = [
        (gen, name)
        for gen in GENERATIONS
        for name in descriptors.shared_functions(gen).values()
        if all(r.function != name for r in descriptors.rows(gen))
    ]
    assert silent == [(4.0, "vme"), (4.5, "vme"), (11.0, "data_port_2")]  # named by public sources, which know no message of theirs


REFUSED = [
    ("a sampler 9 optional MSD_SAMPLER", "t:1: a source is a manual with line numbers, or public and a name, not ''"),
    ("source KBL 1\na sampler 9 maybe MSD_SAMPLER", "t:2: a header is required, optional, none, not 'maybe'"),
    ("source KBL 1\na sampler 9 none", "t:2: a row is name, function, generations, header, page and conditions, not 'a sampler 9 none'"),
    ("source KBL 1\na sampler 10 none MSD_SAMPLER", "t:2: '10' names no generations"),
    (
        "source KBL 1\na sampler 9 none MSD_SAMPLER message_type>3",
        "t:2: a condition is field=value, field=a,b, field=a..b or field!=value, not 'message_type>3'",
    ),
    ("source KBL 1\na smapler 9 none MSD_SAMPLER", "t:2: gen 9 has no shared function 'smapler'"),
    ("source KBL 1\na sampler 9 none MSD_SAMPLER message_type=32", "t:2: message_type has 5 bits; 32 does not fit"),
    ("source KBL 1\na sampler 9 none MSD_SAMPLER kind=1", "t:2: message/sampler.layout: MSD_SAMPLER has no field 'kind' on gen 9"),
    ("source KBL 1\na sampler 9 none MSD_SAMPLER message_type=1\na urb 9 none MSD_URB opcode=0", "t:3: a is there twice on gen 9"),
    (
        "source KBL 1\na sampler 9 none MSD_SAMPLER message_type=1..3\nb sampler 9 none MSD_SAMPLER simd_mode!=0",
        "t:3: b and a both match 0x21000 on gen 9",
    ),
]


@pytest.mark.parametrize(("text", "complaint"), REFUSED)
def test_what_the_table_refuses(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as wrong:
        descriptors.resolve(descriptors.read(text, "t")[0], 9, "t")
    assert str(wrong.value) == complaint


def test_a_row_may_cite_a_source_of_its_own() -> None:
    """After a semicolon; otherwise it has the last one before it. A comment is none."""
    text = """source KBL 1
a sampler 9 none MSD_SAMPLER message_type=1  # BDW 7
b sampler 9 none MSD_SAMPLER message_type=2 ; BDW 2-3

source public Mesa brw_eu.h
c sampler 9 none MSD_SAMPLER message_type=3
d sampler 9 none MSD_SAMPLER message_type=4;KBL 5"""
    found = [(row.name, row.source, row.line) for row in descriptors.read(text, "t")[0]]
    assert found == [("a", "KBL 1", 2), ("b", "BDW 2-3", 3), ("c", "public Mesa brw_eu.h", 6), ("d", "KBL 5", 7)]


# -- properties ----------------------------------------------------------------------------------------------------


@given(st.sampled_from(GENERATIONS), st.integers(0, 15), DESCRIPTORS)
def test_any_descriptor_can_be_read(gen: float, sfid: int, descriptor: int) -> None:
    found = identify(sfid, descriptor, gen)
    assert (found is None) == bool(descriptors.why(sfid, descriptor, gen)) and descriptors.describe(sfid, descriptor, gen)
    if found:
        descriptors.problems(found)
        fields = {field.name: getattr(found.values, field.name) for field in found.layout.fields}
        assert encode(found.name, gen, **fields) == descriptor & ~found.layout.reserved()


@given(st.sampled_from(ROWS), DESCRIPTORS)
def test_what_is_encoded_is_identified(case: tuple[descriptors.MessageRow, float], bits: int) -> None:
    row, gen = case
    page = catalogue.layout(row.page, gen)
    decided = {condition.field for condition in row.conditions}
    values = page.raw([bits])
    given = {field.name: getattr(values, field.name) for field in page.fields if field.name not in decided and not field.alternate}
    number = next(n for n, name in descriptors.shared_functions(gen).items() if name == row.function)
    found = must(number, encode(row.name, gen, **given), gen)
    assert found.name == row.name and all(getattr(found.values, name) == value for name, value in given.items())


def test_encode_takes_names_and_refuses_others() -> None:
    assert encode("untyped_surface_read", 9, simd_mode="simd16", channel_mask="r", message_length=2, response_length=2) == 0x04205E00
    with pytest.raises(ValueError, match="simd_mode must be simd4x2, simd16, simd8, not 'simd32'"):
        encode("untyped_surface_read", 9, simd_mode="simd32")
    with pytest.raises(ValueError, match="sample does not have simd_mode 3"):
        encode("sample", 9, simd_mode=3)
    with pytest.raises(SpecError, match=r"gen 4\.5 has no message 'untyped_surface_read'"):
        encode("untyped_surface_read", 4.5)
    with pytest.raises(SpecError, match="has no field 'colour'"):
        encode("sample", 9, colour=1)


# -- messages of the interpreter -------------------------------------------------------------------------------------


def test_lanes_of_a_message_are_channels_of_its_instruction() -> None:
    """Channels from `first` on; those that the instruction does not have are off."""
    assert scattered  # whose programs answer
    m, found = NumpyMachine(), message.plan(12, encode("untyped_surface_read", 9, message_length=1, channel_mask="r"), 9)
    mask = m.mask_from_bits(0b1011_0110, 8)
    nothing = np.zeros(0, np.uint8)
    made = message.ByteMessage(m, found, nothing, nothing, mask, None)
    cases = {(8, 0): 0b1011_0110, (4, 0): 0b0110, (4, 4): 0b1011, (16, 0): 0b1011_0110, (8, 4): 0b1011, (8, 7): 1, (8, 8): 0, (8, 16): 0}
    for (count, first), bits in cases.items():
        lanes = made.lanes(count, first)
        assert lanes.lanes == count and lanes.payload.tolist() == [bool(bits >> lane & 1) for lane in range(count)]
    assert made.any(3).payload.tolist() == [True] * 3 and not made.alt and not made.ends

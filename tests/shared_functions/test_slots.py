"""Messages beside the common ones: two slots, dual blocks, float atomics, pairs, scaled addresses, bindless surfaces, scratch bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.shared_functions import descriptors, message
from softgen.shared_functions.unit import MessageHandler
from tests.shared_functions.sending import BASE, DATA, SLM, STATELESS, TABLE, Bench, Sender, Sent, header

u32, u64, f32 = np.uint32, np.uint64, np.float32
BOUND, FAR = {"binding_table_index": 0}, {"binding_table_index": STATELESS}


def spots(first: int, second: int, type: Any = u32) -> np.ndarray[Any, Any]:
    """A register with an address for each slot."""
    made = np.zeros(32 // np.dtype(type).itemsize, type)
    made[0], made[len(made) // 2] = first, second
    return made


@pytest.mark.behaviour("BDW-DP-08", shows="action")
@pytest.mark.parametrize(("name", "gen", "where", "type"),
                         [("untyped_surface_read", 9, 0, u32), ("a64_untyped_surface_read", 8, DATA, u64)])  # fmt: skip
def test_two_slots_read_four_dwords_each(name: str, gen: float, where: int, type: Any) -> None:
    bench = Bench(gen=gen)
    fields = {"simd_mode": "simd4x2", "channel_mask": "rga", "binding_table_index": STATELESS if where else 0}
    found = bench.send(name, spots(where + 16, where + 64, type), answer=1, width=8, mask=0b0010_1111, **fields).view(u32)
    held = bench.data.array.view(u32)
    assert found.tolist() == [held[4], held[5], 0xEEEEEEEE, held[7], held[16], held[17], 0xEEEEEEEE, held[19]]


@pytest.mark.behaviour("KBL-DP-14", shows="action")
def test_two_slots_do_not_look_at_the_pixel_mask() -> None:
    """KBL 17848-17865."""
    bench = Bench()
    found = bench.send("untyped_surface_read", header(d7=0), spots(16, 64), answer=1, width=8, mask=0xFF, simd_mode="simd4x2",
                       channel_mask="rgba", header_present=1, **BOUND).view(u32)  # fmt: skip
    held = bench.data.array.view(u32)
    assert found.tolist() == [*held[4:8], *held[16:20]]


def test_two_slots_write_four_dwords_each() -> None:
    bench = Bench()
    before = bench.data.array.view(u32).copy()
    bench.send("untyped_surface_write", spots(0, 32), np.arange(100, 108, dtype=u32), simd_mode="simd4x2", channel_mask="rg", width=8,
               mask=0xF0, **BOUND)  # fmt: skip
    held = bench.data.array.view(u32)
    assert held[8:10].tolist() == [104, 105] and (held[:8] == before[:8]).all() and (held[10:] == before[10:]).all()


@pytest.mark.behaviour("BDW-DP-16", shows="action")
def test_atomics_of_two_slots() -> None:
    bench = Bench()
    data = np.array([5, 77, 0, 0, 7, 99, 0, 0], u32)
    bench.data.array.view(u32)[[0, 1]] = 5, 8
    found = bench.send("untyped_atomic_simd4x2", spots(0, 4), data, answer=1, operation="cmpwr", return_data=1, width=8, **BOUND).view(u32)
    assert bench.data.array.view(u32)[:2].tolist() == [77, 8] and found[[0, 4]].tolist() == [5, 8] and found[1] == 0xEEEEEEEE


@pytest.mark.behaviour("BDW-DP-09", shows="action")
def test_atomics_of_two_slots_on_qwords() -> None:
    """The new value is a register after the one that memory is compared with."""
    bench = Bench(gen=8)
    held = bench.data.array.view(u64)
    held[:2] = 5 << 32, 8
    found = bench.send("a64_untyped_atomic_simd4x2", spots(DATA, DATA + 8, u64), spots(5 << 32, 7, u64), spots(77 << 32, 99, u64), answer=1,
                       operation="cmpwr", data_width="qword", return_data=1, width=8, **FAR).view(u64)  # fmt: skip
    assert held[:2].tolist() == [77 << 32, 8] and found[[0, 2]].tolist() == [5 << 32, 8]


NAN, SIGNALLING = 0x7FC00001, 0x7F800001


@pytest.mark.behaviour("KBL-ATOM-04", shows="action")
@pytest.mark.parametrize(
    ("operation", "old", "given", "new"),
    [
        ("fmax", 0x3F800000, 0x40000000, 0x40000000), ("fmax", 0x40000000, 0x3F800000, 0x40000000),
        ("fmin", 0x3F800000, 0x40000000, 0x3F800000), ("fmin", 0xBF800000, 0x3F800000, 0xBF800000),
        ("fmax", NAN, 0x3F800000, 0x3F800000), ("fmax", 0x3F800000, NAN, 0x3F800000), ("fmin", 0x3F800000, SIGNALLING, SIGNALLING),
        ("fmax", 0x80000000, 0, 0x80000000), ("fmin", 0, 0x80000000, 0),
    ],
)  # fmt: skip
def test_float_atomics(operation: str, old: int, given: int, new: int) -> None:
    bench = Bench()
    bench.data.array.view(u32)[0] = old
    at = np.zeros(8, u32)
    found = bench.send("untyped_atomic_float", at, np.full(8, given, u32), answer=1, mask=1, operation=operation, simd_mode="simd8",
                       return_data=1, **BOUND).view(u32)  # fmt: skip
    assert found[0] == old and bench.data.array.view(u32)[0] == new


@pytest.mark.behaviour("KBL-ATOM-05", shows="action")
def test_a_float_compare_sees_equal_zeros_and_unequal_nans() -> None:
    bench = Bench()
    bench.data.array.view(u32)[:2] = 0x80000000, NAN
    at, a, b = np.array([0, 4] * 4, u32), np.array([0, NAN] * 4, u32), np.full(8, 9, u32)
    bench.send("untyped_atomic_float", at, a, b, mask=3, operation="fcmpwr", simd_mode="simd8", **BOUND)
    assert bench.data.array.view(u32)[:2].tolist() == [9, NAN]


@pytest.mark.behaviour("KBL-ATOM-03", shows="action")
def test_pairs_of_dwords_are_compared_and_written_together() -> None:
    bench = Bench()
    bench.data.array.view(u64)[:2] = 0x1_00000002, 0x3_00000004
    at = np.array([0, 8] * 4, u32)
    low, high, new_low, new_high = (np.full(8, number, u32) for number in (2, 1, 7, 9))
    found = bench.send("untyped_atomic", at, low, high, new_low, new_high, answer=2, mask=3, operation="cmpwr_2w", simd_mode="simd8",
                       return_data=1, **BOUND).view(u32)  # fmt: skip
    assert bench.data.array.view(u64)[:2].tolist() == [0x9_00000007, 0x3_00000004]
    assert found[[0, 1, 8, 9]].tolist() == [2, 4, 1, 3]


@pytest.mark.parametrize("gen", [7, 8, 9])
def test_dual_blocks_have_two_addresses(gen: float) -> None:
    bench = Bench(gen=gen)
    found = bench.send("oword_dual_block_read", header(d2=1), spots(0, 5), answer=1, width=8, data_blocks="1_register", **BOUND).view(u32)
    held = bench.data.array.view(u32)
    assert found.tolist() == [*held[4:8], *held[24:28]]
    bench.send("oword_dual_block_write", header(), spots(2, 9), np.arange(32, dtype=u32), width=8, mask=0x7F, data_blocks="4_registers",
               **BOUND)  # fmt: skip
    assert held[8:12].tolist() == [0, 1, 2, 3] and held[12:16].tolist() == [8, 9, 10, 11] and held[36:39].tolist() == [4, 5, 6]


@pytest.mark.behaviour("BDW-DP-06", shows="action")
def test_dual_blocks_of_addresses() -> None:
    bench = Bench(gen=8)
    both = header(d0=DATA, d2=DATA + 64)
    found = bench.send("a64_oword_dual_block_read", both, answer=1, width=8, data_blocks="1_register", **FAR).view(u32)
    assert found.tolist() == [*bench.data.array.view(u32)[:4], *bench.data.array.view(u32)[16:20]]
    data, held = np.arange(100, 132, dtype=u32), bench.data.array.view(u32)
    bench.send("a64_oword_dual_block_write", both, data, width=8, data_blocks="4_registers", **FAR)
    assert held[:16].tolist() == data.reshape(4, 2, 4)[:, 0].reshape(-1).tolist()
    assert held[16:32].tolist() == data.reshape(4, 2, 4)[:, 1].reshape(-1).tolist()
    again = bench.send("a64_oword_dual_block_read", both, answer=4, width=8, data_blocks="4_registers", **FAR)
    assert again.view(u32).tolist() == data.tolist()


def test_blocks_of_the_oldest_generation_count_bytes() -> None:
    bench = Bench(gen=4.5)
    found = bench.send("oword_block_read", header(d2=32), answer=1, data_blocks="2_owords", **BOUND).view(u32)
    assert found.tolist() == bench.data.array.view(u32)[8:16].tolist() and bench.compiled == 1


@pytest.mark.behaviour("KBL-DP-11", shows="action")
def test_scaled_offsets_are_multiplied_by_the_pitch() -> None:
    bench = Bench(general=DATA)
    at = np.arange(8, dtype=u32)
    found = bench.send("scaled_untyped_surface_read", header(d0=11, d5=64, d7=0xFF), at, answer=1, width=8, mask=0xFF, simd_mode="simd8",
                       channel_mask="r", header_present=1).view(u32)  # fmt: skip
    assert found.tolist() == bench.data.array.view(u32)[16:40:3].tolist()
    bench.slm.held[:] = np.arange(1024) % 256
    local = bench.send("scaled_byte_scattered_read", at, answer=1, width=8, mask=0xFF, simd_mode="simd8", data_size="byte", scale=4,
                       sideband_offset_enable=1).view(u32)  # fmt: skip
    assert local.tolist() == [5 * lane for lane in range(8)]
    plain = bench.send("scaled_untyped_surface_read", 4 * at + 32, answer=1, width=8, mask=0xFF, simd_mode="simd8",
                       channel_mask="r").view(u32)  # fmt: skip
    assert plain.tolist() == bench.data.array.view(u32)[8:16].tolist(), "without a header and a sideband offset: from the general base on"


@pytest.mark.behaviour("KBL-DP-12", shows="action")
def test_a_sideband_offset_counts_for_all_lanes() -> None:
    """Added to a header's base. Without a header: local memory of A32 messages, nowhere of A64 ones (KBL 1101-1103, 5643-5646)."""
    bench = Bench(general=DATA)
    bench.slm.held[:] = np.arange(1024) % 251
    at, aside = np.arange(8, dtype=u32), {"width": 8, "mask": 0xFF, "answer": 1, "extended": 0x60 << 16 | 4, "sideband_offset_enable": 1}
    words = bench.data.array.view(u32)
    found = bench.send("scaled_untyped_surface_read", header(d0=3, d5=64, d7=0xFF), at, simd_mode="simd8", channel_mask="r",
                       header_present=1, **aside).view(u32)  # fmt: skip
    assert found.tolist() == words[(64 + 0x60) // 4 :][:8].tolist()
    local = bench.send("scaled_byte_scattered_read", at, simd_mode="simd8", data_size="byte", scale=4, **aside).view(u32)
    assert local.tolist() == bench.slm.held[0x60 : 0x60 + 40 : 5].tolist()
    wide = np.full(8, DATA, u64)
    assert not bench.send("scaled_a64_dword_scattered_read", wide, simd_mode="simd8", data_elements=0, **aside).any()
    plain = {**aside, "sideband_offset_enable": 0}
    found = bench.send("scaled_a64_dword_scattered_read", wide, simd_mode="simd8", data_elements=0, **plain).view(u32)
    assert found.tolist() == [words[0]] * 8


@pytest.mark.parametrize(("aside", "pitch"), [(0, 4), (0x60, 4), (0x60, 12), (0, 12)])
def test_scaled_offsets_from_an_address_of_64_bits(aside: int, pitch: int) -> None:
    """A header's base, 32-bit offsets times its pitch, and the sideband's offset (KBL 1064, 1086-1135, 25255-25261)."""
    bench, at = Bench(), np.array([0, 5, 1, 2, 9, 3, 3, 8], u32)
    bench.space.map(0x7000_0000_0000, bench.data)
    found = bench.send("scaled_a64_dword_scattered_read", header(d0=pitch - 1, d4=64, d5=0x7000), at, answer=1, width=8, mask=0xFF,
                       simd_mode="simd8", data_elements=0, header_present=1, extended=aside << 16 | 4,
                       sideband_offset_enable=int(aside > 0)).view(u32)  # fmt: skip
    assert found.tolist() == bench.data.array.view(u32)[(64 + aside + pitch * at) // 4].tolist()


def test_a_bindless_surface_is_found_by_the_extended_descriptor() -> None:
    bench = Bench()
    bench.port.surfaces.bases = {"bindless": 0x10000, "surface": 0}
    at = np.arange(8, dtype=u32) * 4
    fields = {"simd_mode": "simd8", "channel_mask": "r", "binding_table_index": 252}
    found = bench.send("untyped_surface_read", at, answer=1, width=8, **fields).view(u32)
    assert found.tolist() == bench.data.array.view(u32)[:8].tolist() and not bench.compiled


@pytest.mark.behaviour("KBL-BT-05", shows="action")
def test_indices_from_240_on_are_special_where_a_message_has_such() -> None:
    """Local memory, stateless and bindless accesses do not look at the table; a table of 240 entries before them does count."""
    bench = Bench(general=DATA)
    at, fields = np.arange(8, dtype=u32) * 4, {"answer": 1, "width": 8, "simd_mode": "simd8", "channel_mask": "r"}
    bench.slm.held[:] = np.arange(1024) % 251
    dwords = bench.state.array.view(u32)
    dwords[TABLE // 4 : TABLE // 4 + 240] = dwords[TABLE // 4]
    words = bench.data.array.view(u32)[:8].tolist()
    for index in (0, 239):
        assert bench.send("untyped_surface_read", at, binding_table_index=index, **fields).view(u32).tolist() == words
    assert bench.send("untyped_surface_read", at, binding_table_index=255, **fields).view(u32).tolist() == words  # stateless, from DATA on
    assert bench.send("untyped_surface_read", at, binding_table_index=SLM, **fields).tolist() == bench.slm.held[:32].tolist()


@pytest.mark.behaviour("KBL-BT-07", shows="action")
@pytest.mark.parametrize("offset", [0, 0x40, 0xFF40])
def test_a_bindless_surface_stands_at_the_offset_of_the_extended_descriptor(offset: int) -> None:
    """Bits 31:12 are bits 25:6 of the offset from the bindless base (KBL 5709-5715)."""
    bench = Bench()
    bench.port.surfaces.bases = {"bindless": BASE - offset, "surface": 0}
    descriptor = descriptors.encode("untyped_surface_read", 9, message_length=1, response_length=1, simd_mode="simd8", channel_mask="r",
                                binding_table_index=252)  # fmt: skip
    at, none = (4 * np.arange(8)).astype(u32).view(np.uint8), np.zeros(0, np.uint8)
    sent = Sent(12, descriptor, at, none, np.zeros(32, np.uint8), 0xFF, Sender(8))
    sent.extended = offset >> 6 << 12 | 12
    MessageHandler(bench.gen, bench.port)(None, sent)
    assert sent.response.view(u32).tolist() == bench.data.array.view(u32)[:8].tolist()


@pytest.mark.behaviour("KBL-DP-09", shows="action")
def test_beyond_the_threads_scratch_space_reads_are_zero_and_writes_are_dropped() -> None:
    bench = Bench(general=DATA)
    before = bench.data.array.copy()
    fields = {"data_blocks": "2_registers", "hword_offset": 31}
    found = bench.send("scratch_block_read", header(), answer=2, **fields)
    assert found[:32].tolist() == before[992:1024].tolist() and not found[32:].any()
    bench.send("scratch_block_write", header(), np.full(64, 255, np.uint8), channel_mode="oword", **fields)
    assert np.flatnonzero(bench.data.array != before).tolist() == list(range(992, 1024))
    assert (bench.send("scratch_block_read", header(d3=1), answer=2, **fields) == bench.data.array[992:1056]).all()


def test_local_memory_and_faults_are_compared_too() -> None:
    bench = Bench()
    bench.send("untyped_surface_write", np.arange(8, dtype=u32) * 4, np.arange(8, dtype=u32), simd_mode="simd8", channel_mask="r",
               binding_table_index=SLM)  # fmt: skip
    assert bench.compiled == 1 and bench.slm.held.view(u32)[:8].tolist() == list(range(8))
    assert {"atomic_counter", "transpose_read"} <= message.ONLY_REFERENCE

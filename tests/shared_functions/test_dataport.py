"""The data port: every kind of message it answers, its bounds, and that what it does not answer says so by name."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.dataport import unit as dataport
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.unit import TABLES_END
from tests.shared_functions.sending import BASE, BOUND, DATA, FAR, SLM, STATELESS, TABLE, Bench, header, lanes

u32, u64 = np.uint32, np.uint64


# -- untyped surfaces ----------------------------------------------------------------------------------------------


def test_an_untyped_read_gives_each_lane_its_dword() -> None:
    bench = Bench()
    found = bench.send("untyped_surface_read", lanes(16, 8), answer=2, simd_mode="simd16", channel_mask="r", **BOUND).view(u32)
    assert found.tolist() == bench.data.array.view(u32)[:32:2].tolist()


@pytest.mark.behaviour("KBL-DP-16", shows="action")
def test_a_set_bit_of_the_channel_mask_leaves_a_dword_out() -> None:
    bench = Bench()
    found = bench.send("untyped_surface_read", lanes(8, 16), answer=2, simd_mode="simd8", channel_mask="ga", **BOUND).view(u32)
    held = bench.data.array.view(u32)
    assert found[:8].tolist() == held[1:32:4].tolist() and found[8:].tolist() == held[3:32:4].tolist()


def test_lanes_that_are_off_keep_what_the_register_held() -> None:
    found = Bench().send("untyped_surface_read", lanes(8, 4), mask=0b101, answer=1, simd_mode="simd8", channel_mask="r",
                         **BOUND).view(u32)  # fmt: skip
    assert found[1] == found[3] == 0xEEEEEEEE != found[0]


def test_out_of_bounds_reads_are_zero_and_writes_are_dropped_dword_by_dword() -> None:
    bench = Bench(size=20)
    before = bench.data.array.copy()
    at = lanes(8, 8)
    found = bench.send("untyped_surface_read", at, answer=2, simd_mode="simd8", channel_mask="rg", **BOUND).view(u32)
    assert found[:8].tolist() == [*before.view(u32)[[0, 2, 4]].tolist(), 0, 0, 0, 0, 0]
    assert found[8:].tolist() == [*before.view(u32)[[1, 3]].tolist(), 0, 0, 0, 0, 0, 0]
    bench.send("untyped_surface_write", at, lanes(8, 1, 100), lanes(8, 1, 200), simd_mode="simd8", channel_mask="rg", **BOUND)
    assert bench.data.array.view(u32)[:5].tolist() == [100, 200, 101, 201, 102]
    assert bench.data.array[20:].tolist() == before[20:].tolist()


def test_the_first_access_outside_a_buffer_is_reported_in_each_dispatch() -> None:
    """Where the lane that is outside was meant to be; nothing else is."""
    bench, told = Bench(size=24), list[tuple[int, str]]()
    bench.port.surfaces.tell = lambda sender, index, what: told.append((index, what))
    for dispatch in (1, 2):
        for at, mask in ((lanes(8, 4), 0x3F), (lanes(8, 4), 0xFF), (lanes(8, 8), 0xFF)):
            bench.send("untyped_surface_read", at, mask=mask, answer=1, simd_mode="simd8", channel_mask="r", **BOUND)
        assert told == [(0, "out of bounds: untyped_surface_read at offset 0x18 of surface 0, which has 0x18 bytes (lane 6)")] * dispatch
        bench.port.surfaces.forget()


def test_surface_state_is_read_once_in_each_dispatch() -> None:
    bench = Bench(size=32)
    surfaces = bench.port.surfaces
    assert (surfaces.bound(0).size, surfaces.state(0).width) == (32, 31)
    bench.state.array[:64] = Bench(size=16).state.array[:64]
    assert (surfaces.bound(0).size, surfaces.state(0).width) == (32, 31)
    surfaces.forget()
    assert (surfaces.bound(0).size, surfaces.state(0).width) == (16, 15)


def test_a_split_send_carries_the_data_in_its_second_half() -> None:
    bench = Bench()
    bench.send("untyped_surface_write", lanes(16, 4), split=lanes(16, 3), simd_mode="simd16", channel_mask="r", **BOUND)
    assert bench.data.array.view(u32)[:17].tolist()[:16] == list(range(0, 48, 3))


def test_lanes_at_one_address_leave_the_highest_lanes_value() -> None:
    bench = Bench()
    bench.send("untyped_surface_write", lanes(8, 0), lanes(8, 1), mask=0b0111_0000, simd_mode="simd8", channel_mask="r", **BOUND)
    assert bench.data.array.view(u32)[0] == 6


@pytest.mark.behaviour("KBL-DP-14", shows="action")
def test_the_pixel_mask_of_a_header_takes_lanes_away() -> None:
    bench = Bench()
    bench.send("untyped_surface_write", header(d7=0b10), lanes(8, 4), lanes(8, 0, 7), mask=0b11, simd_mode="simd8", channel_mask="r",
               header_present=1, **BOUND)  # fmt: skip
    assert bench.data.array.view(u32)[1] == 7 and bench.data.array.view(u32)[0] != 7


@pytest.mark.behaviour("KBL-MEM-06", shows="action")
def test_a_null_surface_reads_zero_and_keeps_nothing() -> None:
    bench = Bench(surface={"surface_type": 7})
    before = bench.data.array.copy()
    fields = {"simd_mode": "simd8", "channel_mask": "r", "binding_table_index": 0}
    assert not bench.send("untyped_surface_read", lanes(8, 4), answer=1, **fields).any()
    bench.send("untyped_surface_write", lanes(8, 4), lanes(8, 1), **fields)
    assert (bench.data.array == before).all()


def test_entries_past_the_end_of_the_pool_of_tables_are_zero() -> None:
    """The last that is whole in the pool counts (BDW 1413-1414)."""
    bench = Bench()
    bench.put(bench.state, TABLE, [64, 128, 192])
    for end, found in ((None, [64, 128, 192]), (12, [64, 128, 192]), (11, [64, 128, 0]), (8, [64, 128, 0]), (4, [64, 0, 0]), (0, [0] * 3)):
        bases = {"surface": BASE} | ({} if end is None else {TABLES_END: BASE + TABLE + end})
        surfaces = Surfaces(generation(9), bench.space, bases, TABLE)
        assert [surfaces.address(index) - BASE for index in range(3)] == found


def test_surfaces_that_are_no_raw_buffers_are_refused_by_name() -> None:
    bench = Bench(surface={"surface_type": 1, "surface_format": 0xC7})
    with pytest.raises(Unsupported, match=r"surface 0 .* is a 2d surface of format"):
        bench.send("untyped_surface_read", lanes(8, 4), answer=1, simd_mode="simd8", channel_mask="r", **BOUND)


# -- stateless, 64 bits, local -------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-DP-08", shows="action")
def test_stateless_offsets_count_from_the_general_base_and_the_header() -> None:
    bench = Bench(general=DATA - 0x400)
    held = bench.data.array.view(u32)
    fields = {"answer": 1, "simd_mode": "simd8", "channel_mask": "r", "binding_table_index": STATELESS}
    assert bench.send("untyped_surface_read", lanes(8, 4, 0x400), **fields).view(u32).tolist() == held[:8].tolist()
    found = bench.send("untyped_surface_read", header(d5=0x400, d7=0xFFFF), lanes(8, 4, 8), header_present=1, **fields).view(u32)
    assert found.tolist() == held[2:10].tolist()


@pytest.mark.behaviour("BDW-DP-02", shows="action")
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_a64_dwords_of_a_lane_are_sets_of_registers(count: int) -> None:
    bench = Bench(gen=8)
    at = (DATA + 32 * np.arange(8)).astype(u64)
    found = bench.send("a64_dword_scattered_read", at, answer=count, data_elements={1: 0, 2: 1, 4: 2, 8: 3}[count], **FAR)
    expected = bench.data.array.view(u32)[:64].reshape(8, 8)[:, :count].T
    assert found.view(u32).reshape(count, 8).tolist() == expected.tolist()
    data = np.arange(8 * count, dtype=u32)
    bench.send("a64_dword_scattered_write", at, data, data_elements={1: 0, 2: 1, 4: 2, 8: 3}[count], **FAR)
    assert bench.data.array.view(u32)[:64].reshape(8, 8)[:, :count].T.reshape(-1).tolist() == data.tolist()


@pytest.mark.behaviour("BDW-DP-01", shows="action")
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a64_bytes_stand_in_the_low_end_of_a_dword(size: int) -> None:
    bench = Bench(gen=8)
    at = (DATA + 1 + 8 * np.arange(8)).astype(u64)
    code, slot = {1: 0, 2: 1, 4: 2, 8: 3}[size], u64 if size == 8 else u32
    found = bench.send("a64_byte_scattered_read", at, answer=2 if size == 8 else 1, data_elements=code, **FAR).view(slot)
    assert found.tolist() == [int.from_bytes(bench.data.view[1 + 8 * n : 1 + 8 * n + size], "little") for n in range(8)]
    bench.send("a64_byte_scattered_write", at, np.full(8, 0xA1B2C3D4, slot), mask=1, data_elements=code, **FAR)
    assert bytes(bench.data.view[1 : 1 + size]) == bytes.fromhex("d4c3b2a100000000")[:size] and bench.data.view[1 + size] == 1 + size


@pytest.mark.behaviour("BDW-DP-03", shows="action")
def test_a64_qwords() -> None:
    bench = Bench(gen=8)
    at = (DATA + 16 * np.arange(8)).astype(u64)
    data = (np.arange(8, dtype=u64) << u64(40)) + u64(5)
    bench.send("a64_qword_scattered_write", at, data, data_elements=0, **FAR)
    assert bench.data.array.view(u64)[:16:2].tolist() == data.tolist()
    assert bench.send("a64_qword_scattered_read", at, answer=2, data_elements=0, **FAR).view(u64).tolist() == data.tolist()


@pytest.mark.behaviour("BDW-DP-08", shows="action")
def test_a64_untyped_surface_messages() -> None:
    bench = Bench()
    at = (DATA + 8 * np.arange(16)).astype(u64)
    bench.send("a64_untyped_surface_write", at, lanes(16, 1), lanes(16, 1, 50), simd_mode="simd16", channel_mask="rg", **FAR)
    found = bench.send("a64_untyped_surface_read", at, answer=4, simd_mode="simd16", channel_mask="rg", **FAR)
    assert found.view(u32).tolist() == [*range(16), *range(50, 66)]


@pytest.mark.behaviour("KBL-DP-10", shows="action")
def test_an_address_that_is_not_canonical_faults_and_names_the_lane() -> None:
    at = np.array([DATA, DATA + 4, 0x0000_8000_0000_0000] + [DATA] * 5, u64)
    with pytest.raises(GpuFault, match=r"read at 0x800000000000 .*not a canonical address \(lane 2\)"):
        Bench(gen=8).send("a64_dword_scattered_read", at, answer=1, data_elements=0, **FAR)


@pytest.mark.behaviour("KBL-DP-10", shows="action")
def test_canonical_high_addresses_are_the_upper_half_of_the_space() -> None:
    bench = Bench(gen=8)
    high = 0xFFFF_8000_0000_0000
    bench.space.map(high & (1 << 48) - 1, bench.data)
    found = bench.send("a64_dword_scattered_read", (high + 4 * np.arange(8, dtype=u64)).astype(u64), answer=1, data_elements=0,
                       **FAR)  # fmt: skip
    assert found.view(u32).tolist() == bench.data.array.view(u32)[:8].tolist()


@pytest.mark.parametrize("name", ["read", "write"])
def test_an_access_to_nothing_faults_and_names_the_lane(name: str) -> None:
    at = np.array([DATA, DATA + 4, 0x900000, DATA] + [DATA] * 4, u64)
    parts = [at] if name == "read" else [at, lanes(8, 1)]
    with pytest.raises(GpuFault, match=rf"{name} at 0x900000 in bench.* \(lane 2\)"):
        Bench(gen=8).send(f"a64_dword_scattered_{name}", *parts, answer=int(name == "read"), data_elements=0, **FAR)


def test_a_lane_that_is_off_faults_nowhere() -> None:
    at = np.array([DATA] * 7 + [0x900000], u64)
    bench = Bench(gen=8)
    found = bench.send("a64_dword_scattered_read", at, mask=0x7F, answer=1, data_elements=0, **FAR).view(u32)
    assert (found[:7] == bench.data.array.view(u32)[0]).all()


def test_local_memory_is_addressed_without_the_tags_above_64_kib() -> None:
    bench = Bench(local=1024)
    fields = {"simd_mode": "simd8", "channel_mask": "r", "binding_table_index": SLM}
    bench.send("untyped_surface_write", lanes(8, 4, 0x1000_0000), lanes(8, 1, 9), **fields)
    assert bench.slm.held.view(u32)[:9].tolist() == [*range(9, 17), 0]
    assert bench.send("untyped_surface_read", lanes(8, 4), answer=1, **fields).view(u32).tolist() == list(range(9, 17))
    bench.send("untyped_surface_write", lanes(8, 4, 1020), lanes(8, 1, 3), **fields)  # only the first is inside
    assert bench.slm.held.view(u32)[-1] == 3


# -- scattered on data cache 0 -------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-DP-11", shows="action")
@pytest.mark.parametrize("index", [0, SLM, STATELESS])
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("size", ["byte", "word", "dword"])
def test_byte_scattered(size: str, width: int, index: int) -> None:
    bench = Bench(general=DATA)
    held = bench.slm.held if index == SLM else bench.data.array
    held[:] = np.arange(len(held)) % 251
    count = {"byte": 1, "word": 2, "dword": 4}[size]
    at, mode = lanes(width, 5, 3), f"simd{width}"
    found = bench.send("byte_scattered_read", at, answer=width // 8, data_size=size, simd_mode=mode, binding_table_index=index).view(u32)
    assert found.tolist() == [int.from_bytes(held[a : a + count].tobytes(), "little") for a in at]
    bench.send("byte_scattered_write", at, np.full(width, 0x44332211, u32), data_size=size, simd_mode=mode, binding_table_index=index)
    assert held[3 : 3 + count].tobytes() == bytes.fromhex("11223344")[:count] and held[3 + count] == 3 + count


@pytest.mark.parametrize("name, fields", [("byte_scattered_read", {"data_size": "byte"}), ("dword_scattered_read", {})])
@pytest.mark.parametrize("width", [1, 4])
def test_lanes_beyond_the_channels_of_a_read_hold_anything(name: str, fields: dict[str, str], width: int) -> None:
    bench = Bench()
    bench.data.array[:] = np.arange(len(bench.data.array)) % 251
    at = np.array([9, 2, 40, 7, 0xFFFFFFFF, 1 << 31, 5, 0xFFFFFFF0], u32)
    found = bench.send(name, at, answer=1, simd_mode="simd8", width=width, mask=(1 << width) - 1, **fields, **BOUND).view(u32)
    data = bench.data.array if fields else bench.data.array.view(u32)
    assert found.tolist() == [*(int(data[a]) for a in at[:width]), *[0xEEEEEEEE] * (8 - width)] and bench.compiled


@pytest.mark.behaviour("BDW-DP-13", shows="action")
def test_dword_scattered_counts_dwords() -> None:
    bench = Bench()
    found = bench.send("dword_scattered_read", lanes(8, 3), answer=1, simd_mode="simd8", **BOUND).view(u32)
    assert found.tolist() == bench.data.array.view(u32)[:24:3].tolist()
    bench.send("dword_scattered_write", lanes(8, 3), lanes(8, 1), simd_mode="simd8", **BOUND)
    assert bench.data.array.view(u32)[:24:3].tolist() == list(range(8))


# -- fences --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-DP-23", shows="action")
def test_a_fence_answers_who_asks_for_it() -> None:
    assert not Bench().send("memory_fence", header(), answer=1, commit=1).any()
    assert (Bench().send("memory_fence", header(), answer=1, commit=0).view(u32) == 0xEEEEEEEE).all(), "nobody asked"


# -- atomics -------------------------------------------------------------------------------------------------------

ATOMICS = [
    # operation, old, operands -> new, returned
    ("and", 0b1100, [0b1010], 0b1000, 0b1100),
    ("or", 0b1100, [0b1010], 0b1110, 0b1100),
    ("xor", 0b1100, [0b1010], 0b0110, 0b1100),
    ("mov", 5, [9], 9, 5),
    ("inc", 0xFFFFFFFF, [], 0, 0xFFFFFFFF),
    ("dec", 0, [], 0xFFFFFFFF, 0),
    ("predec", 7, [], 6, 6),
    ("add", 0xFFFFFFFF, [3], 2, 0xFFFFFFFF),
    ("sub", 2, [3], 0xFFFFFFFF, 2),
    ("revsub", 2, [3], 1, 2),
    ("imax", 0xFFFFFFFF, [1], 1, 0xFFFFFFFF),
    ("imin", 0xFFFFFFFF, [1], 0xFFFFFFFF, 0xFFFFFFFF),
    ("umax", 0xFFFFFFFF, [1], 0xFFFFFFFF, 0xFFFFFFFF),
    ("umin", 0xFFFFFFFF, [1], 1, 0xFFFFFFFF),
    ("cmpwr", 5, [5, 8], 8, 5),
    ("cmpwr", 5, [6, 8], 5, 5),
]


@pytest.mark.behaviour("KBL-ATOM-01", "KBL-ATOM-02", "KBL-ATOM-03", shows="action")
@pytest.mark.parametrize("operation, old, operands, new, returned", ATOMICS)
def test_atomics(operation: str, old: int, operands: list[int], new: int, returned: int) -> None:
    bench = Bench()
    bench.put(bench.data, 0, [old])
    parts = [np.full(8, operand, u32) for operand in operands]
    found = bench.send("untyped_atomic", lanes(8, 4), *parts, mask=1, answer=1, operation=operation, simd_mode="simd8", return_data=1,
                       **BOUND).view(u32)  # fmt: skip
    assert (bench.data.array.view(u32)[0], found[0], found[1]) == (new, returned, 0xEEEEEEEE)


@pytest.mark.behaviour("KBL-ATOM-07", shows="action")
@pytest.mark.parametrize("returns", [0, 1])
def test_an_atomic_returns_data_if_it_is_asked_to(returns: int) -> None:
    bench = Bench()
    bench.put(bench.data, 0, [5])
    found = bench.send("untyped_atomic", lanes(8, 4), np.full(8, 3, u32), mask=1, answer=1, operation="add", simd_mode="simd8",
                       return_data=returns, **BOUND).view(u32)  # fmt: skip
    assert bench.data.array.view(u32)[0] == 8 and found[0] == (5 if returns else 0xEEEEEEEE)


@pytest.mark.behaviour("KBL-ATOM-08", shows="action")
def test_lanes_of_an_atomic_at_one_address_see_each_other() -> None:
    bench = Bench()
    bench.put(bench.data, 0, [0])
    found = bench.send("untyped_atomic", lanes(16, 0), np.ones(16, u32), answer=2, operation="add", simd_mode="simd16", return_data=1,
                       **BOUND).view(u32)  # fmt: skip
    assert found.tolist() == list(range(16)) and bench.data.array.view(u32)[0] == 16


@pytest.mark.behaviour("BDW-DP-09", shows="action")
@pytest.mark.parametrize("width", ["dword", "qword"])
@pytest.mark.parametrize("operation, operands, new", [("inc", (), 8), ("add", (5,), 12), ("cmpwr", (7, 90), 90), ("cmpwr", (6, 90), 7)])
@pytest.mark.parametrize("returns", [0, 1])
def test_a64_atomics_of_one_two_and_three_operands(width: str, operation: str, operands: tuple[int, ...], new: int, returns: int) -> None:
    """At every second place, for lanes that are on; the old value comes back if it is asked for (BDW 14150-15072, 15870-16700)."""
    type = u32 if width == "dword" else u64
    bench, registers = Bench(gen=8), np.dtype(type).itemsize // 4
    held = bench.data.array.view(type)
    held[:16] = 7
    at = (DATA + 2 * np.dtype(type).itemsize * np.arange(8)).astype(u64)
    found = bench.send("a64_untyped_atomic", at, *(np.full(8, operand, type) for operand in operands), mask=0b11101111,
                       answer=returns * registers,
                       operation=operation, data_width=width, return_data=returns, **FAR).view(type)  # fmt: skip
    assert held[:16].tolist() == [7 if place % 2 or place == 8 else new for place in range(16)]
    assert not returns or [int(found[lane]) for lane in range(8) if lane != 4] == [7] * 7


@pytest.mark.behaviour("BDW-DP-09", shows="action")
def test_a64_atomics_on_qwords() -> None:
    bench = Bench(gen=8)
    at = (DATA + 8 * np.arange(8)).astype(u64)
    before = bench.data.array.view(u64)[:8].copy()
    found = bench.send("a64_untyped_atomic", at, np.full(8, 1 << 40, u64), answer=2, operation="add", data_width="qword", return_data=1,
                       **FAR).view(u64)  # fmt: skip
    assert (found == before).all() and (bench.data.array.view(u64)[:8] == before + u64(1 << 40)).all()


@pytest.mark.parametrize("mask", [0xFF, 0b01010101, 0b10101010, 0b00000010])
def test_a64_atomics_in_several_parts_of_the_address_space(mask: int) -> None:
    """Odd lanes are in another part of 4 GiB than even ones: compiled code looks hosts' addresses up part by part."""
    bench = Bench(gen=8)
    bench.space.map(0x7000_0000_0000, bench.data)
    held = bench.data.array.view(u32)
    held[:8] = 7
    at = np.where(np.arange(8) % 2, 0x7000_0000_0000, DATA).astype(u64) + (4 * np.arange(8)).astype(u64)
    bench.send("a64_untyped_atomic", at, np.full(8, 5, u32), mask=mask, operation="add", data_width="dword", **FAR)
    assert held[:8].tolist() == [12 if mask >> lane & 1 else 7 for lane in range(8)]


# -- what is not built ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_message_of_a_data_port_is_answered_or_refused_by_name(gen: float) -> None:
    functions = descriptors.shared_functions(gen)
    answered = 0
    for row in descriptors.rows(gen):
        if row.function not in dataport.UNIT.functions:
            continue
        sfid = next(number for number, name in functions.items() if name == row.function)
        descriptor = descriptors.encode(row.name, gen)
        if row.name in message.PROGRAMS:
            assert message.plan(sfid, descriptor, gen).name == row.name
            answered += 1
        else:
            with pytest.raises(Unsupported, match=rf"{row.function}: {row.name}\b.*not yet simulated"):
                message.plan(sfid, descriptor, gen)
        assert descriptors.shared_functions(gen)[sfid] in dataport.UNIT.functions
    assert answered or row.function not in dataport.UNIT.functions


def test_answers_are_messages_of_the_table() -> None:
    known = {row.name for gen in GENERATIONS for row in descriptors.rows(gen)}
    assert set(message.PROGRAMS) <= known


def test_a_payload_that_is_too_short_is_an_error_of_the_program() -> None:
    with pytest.raises(DecodeError, match="untyped_surface_write has 1 registers of payload, too few; 2 are needed"):
        Bench().send("untyped_surface_write", lanes(8, 4), simd_mode="simd8", channel_mask="r", **BOUND)
    with pytest.raises(DecodeError, match="1 registers for its answer, too few; 2 are needed"):
        Bench().send("untyped_surface_read", lanes(16, 4), answer=1, simd_mode="simd16", channel_mask="r", **BOUND)


def test_a_descriptor_that_names_no_message_says_why() -> None:
    with pytest.raises(DecodeError, match="names no message: data_cache_1 has no message with message_type=31"):
        message.plan(12, 31 << 14 | 1 << 25, 9)


def test_a_surface_table_that_is_not_there_faults() -> None:
    bench = Bench()
    bench.port.surfaces.bases = {}
    with pytest.raises(GpuFault, match="binding table entry 0 should be there"):
        bench.send("untyped_surface_read", lanes(8, 4), answer=1, simd_mode="simd8", channel_mask="r", **BOUND)

"""Blocks of memory in the data port: owords and registers, at offsets and addresses of 64 bits, and in scratch space."""

from __future__ import annotations

import numpy as np
import pytest

from tests.shared_functions.sending import BOUND, DATA, FAR, STATELESS, Bench, header, lanes

u32 = np.uint32


@pytest.mark.behaviour("KBL-DP-25", shows="action")
@pytest.mark.parametrize(("index", "base"), [(BOUND["binding_table_index"], 0), (STATELESS, 1024)])
def test_oword_blocks_count_owords_and_unaligned_ones_bytes(index: int, base: int) -> None:
    """Of a surface, or of stateless memory from the buffer base address in the header on (KBL 24782-24823)."""
    bench, where = Bench(general=DATA), {"binding_table_index": index}
    held = bench.data.array[base:]
    found = bench.send("oword_block_read", header(d2=2, d5=base), answer=2, data_blocks="4_owords", **where)
    assert (found == held[32:96]).all()
    found = bench.send("oword_unaligned_block_read", header(d2=20, d5=base), answer=1, data_blocks="2_owords", **where)
    assert (found == held[20:52]).all()
    bench.send("oword_block_write", header(d2=1, d5=base), lanes(16, 1), data_blocks="4_owords", **where)
    assert held[16:80].view(u32).tolist() == list(range(16))


def test_a_single_oword_goes_to_the_half_of_the_register_that_was_asked_for() -> None:
    bench = Bench()
    low = bench.send("oword_block_read", header(d2=1), answer=1, data_blocks="1_oword_low", **BOUND)
    high = bench.send("oword_block_read", header(d2=1), answer=1, data_blocks="1_oword_high", **BOUND)
    oword = bench.data.array[16:32].tolist()
    assert low.tolist() == oword + [0xEE] * 16 and high.tolist() == [0xEE] * 16 + oword


@pytest.mark.behaviour("KBL-DP-13", shows="action")
def test_a_block_past_the_end_reads_zero_from_there() -> None:
    found = Bench(size=48).send("oword_block_read", header(d2=2), answer=1, data_blocks="2_owords", **BOUND)
    assert found[:16].tolist() == list(range(32, 48)) and not found[16:].any()


@pytest.mark.parametrize("pitch, entries", [(1, 64), (16, 4)])
@pytest.mark.parametrize("name", ["oword_block_read", "constant_oword_block_read"])
def test_blocks_of_a_buffer_with_elements_are_bytes_of_it(name: str, pitch: int, entries: int) -> None:
    """Uniform buffers of Mesa's anv are R32G32B32A32_FLOAT; beyond their elements there is nothing."""
    bench = Bench(size=entries, surface={"surface_format": 0, "surface_pitch": pitch - 1})
    found = bench.send(name, header(d2=2), answer=2, data_blocks="4_owords", **BOUND)
    assert found[:32].tolist() == bench.data.array[32:64].tolist() and not found[32:].any()


@pytest.mark.parametrize("name", ["oword_unaligned_block_read", "constant_oword_unaligned_block_read"])
def test_a_block_that_ends_behind_the_surface_has_the_dwords_inside(name: str) -> None:
    """As compilers read the last dwords of a buffer: in[2] to in[4] of int in[5], with one block."""
    bench = Bench(size=20)
    found = bench.send(name, header(d2=8), answer=1, data_blocks="1_oword_low", **BOUND)
    assert found[:16].view(u32).tolist() == [*bench.data.array.view(u32)[2:5].tolist(), 0]


def test_a_block_written_over_the_end_of_a_surface_keeps_to_the_dwords_inside() -> None:
    bench = Bench(size=40)
    bench.send("oword_block_write", header(d2=2), lanes(8, 1, 1), data_blocks="1_oword_low", **BOUND)
    assert bench.data.array.view(u32)[8:10].tolist() == [1, 2] and bench.data.array[40:48].tolist() == list(range(40, 48))


@pytest.mark.behaviour("BDW-DP-12", shows="action")
def test_constant_blocks() -> None:
    for gen in (8, 9):
        found = Bench(gen=gen).send("constant_oword_block_read", header(d2=1), answer=1, data_blocks="2_owords", **BOUND)
        assert found.tolist() == list(range(16, 48))
        found = Bench(gen=gen).send("constant_oword_unaligned_block_read", header(d2=20), answer=1, data_blocks="2_owords", **BOUND)
        assert found.tolist() == list(range(20, 52))


@pytest.mark.behaviour("BDW-DP-05", "BDW-DP-07", shows="action")
@pytest.mark.parametrize("size, half, count", [("1_oword_low", 0, 1), ("1_oword_high", 16, 1), ("2_owords", 0, 2), ("4_owords", 0, 4),
                                               ("8_owords", 0, 8)])  # fmt: skip
def test_a64_oword_blocks(size: str, half: int, count: int) -> None:
    bench, bytes_ = Bench(gen=8), 16 * count
    answer, held = -(-bytes_ // 32), bench.data.array
    for name, at in (("a64_oword_block_read", 64), ("a64_oword_unaligned_block_read", 68)):
        found = bench.send(name, header(d0=DATA + at), answer=answer, data_blocks=size, **FAR)
        assert (found[half : half + bytes_] == held[at : at + bytes_]).all()
    data = lanes(8 * answer, 1, 500)
    bench.send("a64_oword_block_write", header(d0=DATA + 64), data, data_blocks=size, **FAR)
    assert (held[64 : 64 + bytes_] == data.view(np.uint8)[half : half + bytes_]).all() and held[64 + bytes_] == (64 + bytes_) % 251


def test_a64_blocks_have_addresses_of_64_bits() -> None:
    bench = Bench(gen=8)
    bench.space.map(0x7000_0000_0000, bench.data)
    found = bench.send("a64_oword_block_read", header(d0=0x40, d1=0x7000), answer=1, data_blocks="2_owords", **FAR)
    assert (found == bench.data.array[64:96]).all()


@pytest.mark.behaviour("BDW-DP-04", "KBL-DP-24", shows="action")
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_blocks_of_registers_and_scratch_blocks(count: int) -> None:
    """Scratch blocks count registers from the thread's space; the low bits of that dword are the thread's number."""
    bench, blocks = Bench(general=DATA - 0x400), f"{count}_register{'s' if count > 1 else ''}"
    data = lanes(8 * count, 2, 7)
    bench.send("a64_hword_block_write", header(d0=DATA), data, data_blocks=blocks, **FAR)
    found = bench.send("a64_hword_block_read", header(d0=DATA), answer=count, data_blocks=blocks, **FAR)
    assert found.view(u32).tolist() == data.tolist() == bench.data.array.view(u32)[: 8 * count].tolist()
    bench.send("scratch_block_write", header(d5=0x400 | 7), data + u32(1), data_blocks=blocks, hword_offset=3)
    assert bench.data.array.view(u32)[24 : 24 + 8 * count].tolist() == (data + u32(1)).tolist()
    found = bench.send("scratch_block_read", header(d5=0x400 | 7), answer=count, data_blocks=blocks, hword_offset=3)
    assert found.view(u32).tolist() == (data + u32(1)).tolist()


@pytest.mark.behaviour("KBL-DP-17", shows="action")
@pytest.mark.parametrize("mode, written", [("dword", [1]), ("oword", [0, 1, 2, 3])])
def test_register_writes_look_at_channels_by_dword_or_oword(mode: str, written: list[int]) -> None:
    bench = Bench(general=DATA)
    before = bench.data.array.view(u32).copy()
    bench.send("scratch_block_write", header(), lanes(8, 1, 1000), mask=0b10, width=8, data_blocks="1_register", channel_mode=mode)
    changed = np.flatnonzero(bench.data.array.view(u32) != before)
    assert changed.tolist() == written


@pytest.mark.parametrize("mask, by_dword, by_oword", [
    (0b10, [1, 9], [0, 1, 2, 3, 8, 9, 10, 11]), (0x90, [4, 7, 12, 15], [4, 5, 6, 7, 12, 13, 14, 15]), (0, [], []),
    (0x08, [3, 11], [0, 1, 2, 3, 8, 9, 10, 11]), (0x40, [6, 14], [4, 5, 6, 7, 12, 13, 14, 15]),
    (0xFF, list(range(16)), list(range(16)))])  # fmt: skip
def test_register_writes_at_addresses_look_at_channels_as_the_header_says(mask: int, by_dword: list[int], by_oword: list[int]) -> None:
    """Bit 31 of its dword 5: by dword (KBL 11846-11862). Each register has the same eight channels."""
    for mode, written in ((1, by_dword), (0, by_oword)):
        bench = Bench()
        expected, data = bench.data.array.view(u32).copy(), lanes(16, 1, 1000)
        expected[written] = data[written]
        bench.send("a64_hword_block_write", header(d0=DATA, d5=mode << 31), data, mask=mask, width=8, data_blocks="2_registers", **FAR)
        assert (bench.data.array.view(u32) == expected).all(), mode

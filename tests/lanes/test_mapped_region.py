"""Regions whose first bytes cannot be missing: accesses to those leave no note, others say which instruction makes them, and leave one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import mapped_region
from softgen.lanes.types import LaneType, f32, u8, u16, u32, u64
from softgen.lanes.value import Region, Value

LANES, SIZE, MAPPED, IP, UNSEEN = 8, 256, 128, 0x340, 0xAB
NO_RESERVE = 0x4000  # of Linux: memory that nobody touches takes none
MOVED = 24  # bytes by which a region is moved
Access = Callable[[LlvmMachine, Region, Value], list[Value]]  # from the first byte on; what was loaded


def lanes_of(m: LlvmMachine, first: Value, stride: int) -> Value:
    return m.broadcast(first, LANES) + m.lane_index(LANES) * (stride % (1 << 32))


def load(stride: int, count: int = 1) -> Access:
    return lambda m, memory, first: m.load_adjacent(u32, count, memory, lanes_of(m, first, stride))


def store(stride: int, count: int = 1) -> Access:
    """The lanes' numbers, a thousand higher."""

    def access(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        m.store_adjacent([m.lane_index(LANES) + 1000] * count, memory, lanes_of(m, first, stride))
        return []

    return access


def add(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
    return [m.atomic("add", memory, lanes_of(m, first, 4), [m.constant(u32, 1000, LANES)])]


def load_block(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
    return [m.load_block(u32, LANES, memory, m.convert(first, u64))]


def store_block(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
    m.store_block(m.lane_index(LANES) + 1000, memory, m.convert(first, u64))
    return []


def compiled(access: Access, moved: int, size: int = SIZE) -> Any:
    m = LlvmMachine()
    context = m.pointer("context")
    host, mapped = (context.at(8 * number).load(u64) for number in range(2))
    here = mapped_region(m, host, m.number(u64, size), mapped, context.at(24), context.at(16), m.number(u64, IP), name="words")
    found = access(m, here.moved(moved), Value(m, u32, 1, m.ir.emit("load <1 x i32>, ptr %out")))
    for value in found[:1]:
        m.ir.line(f"store <{LANES} x i32> {value.payload}, ptr %out, align 1")
    m.ir.line("ret void")
    m.ir.define("void @f(ptr %context, ptr %out)")
    return jit.load(m.ir.module.text(), ("f",), Cache(None), imports={"guard_leave": 1})


def ran(access: Access, first: int, moved: int = 0) -> tuple[bool, list[int], list[int]]:
    """Whether an access from a byte of the memory on left a note, what it loaded first, and memory afterwards."""
    memory, context, out = np.arange(SIZE // 4, dtype=np.uint32), np.full(80, UNSEEN, np.uint64), np.zeros(LANES, np.uint32)
    context[:2], out[0] = (memory.ctypes.data, MAPPED), first - moved
    code = compiled(access, moved)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(context.ctypes.data, out.ctypes.data)
    ip, word = context[2:4]
    assert ip == (UNSEEN if word == UNSEEN else IP), "an instruction is named with a note, and only then"
    return bool(word != UNSEEN), out.tolist(), memory.tolist()


@pytest.mark.parametrize("moved", [0, MOVED])
@pytest.mark.parametrize(("access", "reach", "stride"), [
    (load(4), 32, 4), (load(0), 4, 0), (load(12), 88, 12), (load(8, 2), 64, 8), (load(0, 2), 8, 0), (load(12, 2), 92, 12),
    (load_block, 32, 4),
], ids=["contiguous", "uniform", "strided", "chunks", "uniform chunks", "strided chunks", "block"])  # fmt: skip
def test_loads_leave_a_note_where_memory_may_be_missing(access: Access, reach: int, stride: int, moved: int) -> None:
    for first, noted in ((MOVED, False), (MAPPED - reach, False), (MAPPED - reach + 4, True), (SIZE - reach, True)):
        assert ran(access, first, moved)[:2] == (noted, [(first + lane * stride) // 4 for lane in range(LANES)]), f"from byte {first} on"


@pytest.mark.parametrize("moved", [0, MOVED])
@pytest.mark.parametrize(("access", "reach", "stride", "count"), [
    (store(4), 32, 4, 1), (store(12), 88, 12, 1), (store(8, 2), 64, 8, 2), (store_block, 32, 4, 1),
], ids=["contiguous", "strided", "chunks", "block"])  # fmt: skip
def test_stores_leave_a_note_where_memory_may_be_missing(access: Access, reach: int, stride: int, count: int, moved: int) -> None:
    for first, noted in ((MOVED, False), (MAPPED - reach, False), (MAPPED - reach + 4, True), (SIZE - reach, True)):
        expected = list(range(SIZE // 4))
        for lane in range(LANES):
            for number in range(count):
                expected[(first + lane * stride) // 4 + number] = 1000 + lane
        assert ran(access, first, moved)[::2] == (noted, expected), f"from byte {first} on"


def test_atomics_leave_a_note_everywhere() -> None:
    """Their function does."""
    noted, found, memory = ran(add, MOVED)
    assert noted and found == memory_from(MOVED) and memory[MOVED // 4 : MOVED // 4 + LANES] == [value + 1000 for value in found]


GATHERS = LlvmMachine().ir.module.has("avx512f")  # elsewhere divergent lanes are a call, which leaves a note


def divergent(m: LlvmMachine, first: Value) -> Value:
    """Lanes 12 bytes apart, the first of which comes last."""
    return m.broadcast(first, LANES) + (m.lane_index(LANES) + 1 & 7) * 12


@pytest.mark.parametrize("moved", [0, MOVED])
@pytest.mark.parametrize("type", [u32, f32, u16, u8], ids=str)
def test_divergent_lanes_are_gathered_where_no_dword_can_be_missing(type: LaneType, moved: int) -> None:
    def gather(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        found = m.load(type, memory, divergent(m, first))
        return [m.convert(m.bitcast(found, u32) if type is f32 else found, u32)]

    last = MAPPED - 7 * 12 - 4
    for first, noted in ((MOVED, False), (last, False), (last + 1, True), (SIZE - 88, True)):
        held = bytes(np.arange(SIZE // 4, dtype=np.uint32))
        places = [first + (lane + 1) % 8 * 12 for lane in range(LANES)]
        expected = [int.from_bytes(held[place : place + type.bytes], "little") for place in places]
        assert ran(gather, first, moved)[:2] == (noted or not GATHERS, expected), f"from byte {first} on"


@pytest.mark.parametrize("off", [0x2, 0x0])
def test_lanes_that_are_off_may_be_anywhere(off: int) -> None:
    """Lane 1 is at the end of the address space, where offsets are negative for the host."""

    def gather(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        here = m.lane_index(LANES)
        return [m.load(u32, memory, m.select(here == 1, 0xFFFFFFF8, divergent(m, first)), here != (1 if off else 9))]

    noted, found, _ = ran(gather, 16)
    assert noted is (not off or not GATHERS) and found == [7, 0, 13, 16, 19, 22, 25, 4]


@pytest.mark.parametrize("type", [u32, u16], ids=str)
def test_divergent_lanes_are_scattered_where_no_dword_can_be_missing(type: LaneType) -> None:
    """Narrower ones by the function, which leaves a note. Where lanes meet, the highest wins."""

    def scatter(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        m.store(m.convert(m.lane_index(LANES) + 1000, type), memory, divergent(m, first) & 0xFFFFFFF0, m.lane_index(LANES) != 3)
        return []

    last = MAPPED - 80 - 4
    for first, noted in ((16, False), (last & -16, False), (MAPPED - 64, True)):
        expected = np.arange(SIZE // 4, dtype=np.uint32)
        for lane in (lane for lane in range(LANES) if lane != 3):
            place = (first + (lane + 1) % 8 * 12) & -16
            expected.view(f"u{type.bytes}")[place // type.bytes] = 1000 + lane
        assert ran(scatter, first)[::2] == (noted or type is u16 or not GATHERS, expected.tolist()), f"from byte {first} on"


@pytest.mark.parametrize(("last", "noted"), [(0x7FFF_FFFC, False), (0x7FFF_FFFF, False), (0x8000_0000, True), (0x8000_0001, True)])
def test_offsets_that_are_negative_for_the_host_are_not_gathered(last: int, noted: bool) -> None:
    """Of memory that is mapped further: two GiB on both sides of where it begins are there, all zero but for the end."""
    half, first = 1 << 31, last - 7 * 12
    held = np.frombuffer(mmap.mmap(-1, 2 * half + 64, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE), np.uint8)
    held[2 * half - 128 :] = np.arange(1, 193)
    context, out = np.full(80, UNSEEN, np.uint64), np.zeros(LANES, np.uint32)
    context[:2], out[0] = (held.ctypes.data + half, half + 64), first
    code = compiled(lambda m, memory, first: [m.load(u32, memory, divergent(m, first))], 0, half + 64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(context.ctypes.data, out.ctypes.data)
    places = [half + first + (lane + 1) % 8 * 12 for lane in range(LANES)]
    assert out.tolist() == [int.from_bytes(bytes(held[place : place + 4]), "little") for place in places]
    assert bool(context[3] != UNSEEN) is (noted or not GATHERS)


def test_divergent_offsets_of_64_bits_are_left_to_the_function() -> None:
    def gather(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        return [m.load(u32, memory, m.convert(divergent(m, first), u64))]

    assert ran(gather, 16)[:2] == (True, [4 + (lane + 1) % 8 * 3 for lane in range(LANES)])


@pytest.mark.parametrize(("access", "gathers"), [
    (load(4), False), (load(0), False), (load(-12), False), (store(-12), False),
    (lambda m, memory, first: [m.load(u32, memory, divergent(m, first))], GATHERS)])  # fmt: skip
def test_lanes_of_a_known_stride_are_not_tested_for_being_anywhere(access: Access, gathers: bool) -> None:
    """They have ways of their own."""
    m = LlvmMachine()
    access(m, stream(m, None), Value(m, u32, 1, "%first"))
    assert any("call" in line and ("masked.gather" in line or "masked.scatter" in line) for line in map(str, m.ir.lines)) is gathers


def test_fewer_bytes_than_a_dword_are_not_gathered() -> None:
    def gather(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        return [m.convert(m.load(u8, memory, m.broadcast(first, LANES) + (m.lane_index(LANES) * m.lane_index(LANES) & 1)), u32)]

    for left, noted in ((5, False), (4, True), (3, True), (0, True), (-1, True)):
        assert ran(gather, MAPPED - left, MAPPED - left)[0] is (noted or not GATHERS), f"{left} bytes"


def memory_from(first: int) -> list[int]:
    return list(range(first // 4, first // 4 + LANES))


@pytest.mark.parametrize(("stride", "count"), [(0, 1), (8, 2)])
def test_lanes_that_are_off_may_be_read_where_memory_cannot_be_missing(stride: int, count: int) -> None:
    """Of uniform lanes and of chunks none needs to be on: no function is called to see whether any is."""

    def none_on(m: LlvmMachine, memory: Region, first: Value) -> list[Value]:
        return m.load_adjacent(u32, count, memory, lanes_of(m, first, stride), m.broadcast(first > 0xFFFF, LANES))

    assert ran(none_on, 8)[:2] == (False, [0] * LANES)


def test_a_region_that_was_moved_past_what_is_mapped() -> None:
    assert ran(load(4), MAPPED + 4, MAPPED + 4)[:2] == (True, memory_from(MAPPED + 4))


# -- prefetches outside loops ------------------------------------------------------------------------------------------


def stream(m: LlvmMachine, number: int | None) -> Region:
    return mapped_region(m, *(m.pointer("context").at(8 * place).load(u64) for place in range(3)), m.pointer("note"), m.pointer("record"),
                         m.number(u64, IP), number, "words")  # fmt: skip


def prefetched(m: LlvmMachine) -> int:
    return sum("call void @llvm.prefetch" in line for line in map(str, m.ir.lines))


@pytest.mark.parametrize(("number", "access", "loads", "many"), [
    (3, load(4), 1, 1), (0, load(4), 2, 2), (3, load(4), 3, 2), (None, load(4), 1, 0), (3, load(8), 1, 0), (3, load(0), 1, 0),
    (3, store(4), 1, 0)])  # fmt: skip
def test_the_first_contiguous_loads_of_a_stream_are_prefetched(number: int | None, access: Access, loads: int, many: int) -> None:
    """Those of 16 channels and of the 16 others; more loads mostly read what those before have read."""
    m = LlvmMachine()
    for turn in range(loads):
        access(m, stream(m, number), m.constant(u32, 64 * turn, 1))
    assert prefetched(m) == many
    load(4)(m, stream(m, 7), m.constant(u32, 0, 1))
    assert prefetched(m) == many + 1, "each stream counts its own"


def test_lanes_whose_offsets_are_known_when_the_program_runs_are_not_prefetched() -> None:
    m = LlvmMachine()
    m.load(u32, stream(m, 3), Value(m, u32, LANES, "%offsets"))
    assert not prefetched(m)


def test_a_stream_is_prefetched_half_a_page_ahead() -> None:
    m = LlvmMachine()
    load(4)(m, stream(m, 3), m.constant(u32, 0, 1))
    text = [str(line) for line in m.ir.lines]
    (at,) = [number for number, line in enumerate(text) if "call void @llvm.prefetch" in line]
    later = text[at].split("(ptr ")[1].split(",")[0]
    pointer = text[at - 1].split(", ptr ")[1].split(",")[0]
    assert text[at - 1].strip() == f"{later} = getelementptr i8, ptr {pointer}, i64 2048"
    assert f"(ptr {pointer}, " in text[at + 1], "the load's own"

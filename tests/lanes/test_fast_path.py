"""Which accesses of regions take their inline fast path when the program runs: the access function is one here that only says so."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import FlatRegion, TableRegion, region
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import LaneType, bool_, u8, u32, u64
from softgen.lanes.value import Region, Value

LANES, SIZE, CALLED = 8, 256, 60  # bytes of memory; the word of the note that says that there was a call
PARTS, PAGE = 1 << 16, 4096
Offsets = Callable[[LlvmMachine, LaneType], Value]


class Place(NamedTuple):
    """A region, the type of offsets in it, and where it begins in graphics memory."""

    type: LaneType
    table: bool = False
    canonical: bool = False
    base: int = 0
    size: int = SIZE

    def region(self, m: LlvmMachine) -> Region:
        if self.table:
            return region(m, TableRegion("%table", str(self.base), "%note", 48, self.canonical))
        return region(m, FlatRegion(m.ir.emit("ptrtoint ptr %memory to i64"), str(self.size), "%note"))


def at_run_time(m: LlvmMachine, type: LaneType) -> Value:
    return Value(m, type, LANES, m.ir.emit(f"load <{LANES} x i{type.bits}>, ptr %given, align 1"))


def of_stride(stride: int) -> Offsets:
    """From a start that is known when the program runs."""

    def offsets(m: LlvmMachine, type: LaneType) -> Value:
        start = Value(m, type, 1, m.ir.emit(f"load <1 x i{type.bits}>, ptr %given, align 1"))
        return m.broadcast(start, LANES) + m.lane_index(LANES, type) * (stride % (1 << type.bits))

    return offsets


def widened(m: LlvmMachine, type: LaneType) -> Value:
    """Contiguous offsets of 32 bits, which may wrap before they become ones of 64."""
    return m.convert(of_stride(4)(m, u32), u64)


@cache
def compiled(place: Place, offsets: Offsets, count: int) -> Any:
    """A load under a mask, whose function says that it was called and does no more. Of adjacent elements the last is stored."""
    m = LlvmMachine()
    on = Value(m, bool_, LANES, m.ir.emit(f"bitcast i8 {m.ir.emit('load i8, ptr %mask')} to <{LANES} x i1>"))
    found = m.load_adjacent(u32, count, place.region(m), offsets(m, place.type), on)[-1]
    m.ir.line(f"store <{LANES} x i32> {found.payload}, ptr %given, align 1")
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %memory, ptr %table, ptr %note, ptr %given, ptr %mask)")
    for name, text in m.ir.module.internals.items():
        head = text.partition("\n")[0]
        kind = head.removeprefix("define internal ").partition(" @")[0]
        said = f"  %p = getelementptr i64, ptr %a0, i64 {CALLED}\n  store i64 1, ptr %p\n  ret {kind} zeroinitializer\n}}"
        m.ir.module.internals[name] = f"{head}\n{said}"
    return jit.load(m.ir.module.text(), ("f",), Cache(None), imports={"guard_leave": 1})


def run(place: Place, offsets: Offsets, given: list[int], mask: int = 0xFF, count: int = 1) -> tuple[bool, list[int]]:
    """Whether a load is a call, and what is loaded if not. Memory begins as far into a page as its base."""
    pages, table, note = np.zeros(3 * PAGE, np.uint8), np.zeros(PARTS if place.table else 1, np.uint64), np.zeros(64, np.uint64)
    memory = pages[-pages.ctypes.data % PAGE + place.base % PAGE :][:SIZE].view(np.uint32)
    memory[:] = np.arange(SIZE // 4)
    if place.table:
        part, low = divmod(place.base % (1 << 48), 1 << 32)
        table[part] = memory.ctypes.data - low
    words: Any = np.zeros(2 * LANES, np.uint32)
    words.view(f"u{place.type.bytes if offsets is not widened else 4}")[: len(given)] = given
    chosen = np.array([mask], np.uint8)
    pointers = [array.ctypes.data for array in (memory, table, note, words, chosen)]
    address = compiled(place, offsets, count).address("f")
    ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_void_p for _ in pointers))(address)(*pointers)
    return bool(note[CALLED]), words[:LANES].tolist()


FLAT = [Place(u32), Place(u64)]
TABLE = [Place(u32, True, base=0x7000_0000), Place(u64, True, base=0x7000_0000), Place(u32, True, True, 3 << 32),
         Place(u64, True, True, (1 << 64) - (1 << 40)), Place(u64, True, False, 0xABCD_F000_0000_0000)]  # fmt: skip
ROW, SAME = [8 + 4 * lane for lane in range(LANES)], [20] * LANES


@pytest.mark.parametrize("place", [*FLAT, *TABLE], ids=str)
@pytest.mark.parametrize(("offsets", "given", "numbers"), [
    (at_run_time, ROW, range(2, 10)), (of_stride(4), [8], range(2, 10)), (at_run_time, SAME, [5] * 8), (of_stride(0), [20], [5] * 8),
    (of_stride(12), [4], range(1, 25, 3)),
], ids=["contiguous", "known contiguous", "uniform", "known uniform", "known stride"])  # fmt: skip
def test_contiguous_and_uniform_lanes_and_those_of_a_known_stride_need_no_call(
        place: Place, offsets: Offsets, given: list[int], numbers: list[int]) -> None:  # fmt: skip
    for mask in (0xFF, 0b1011_0110):
        assert run(place, offsets, given, mask) == (False, [number if mask >> lane & 1 else 0 for lane, number in enumerate(numbers)])


@pytest.mark.parametrize("place", [*FLAT, *TABLE], ids=str)
@pytest.mark.parametrize("offsets", [at_run_time, of_stride(4)], ids=["contiguous", "known contiguous"])
def test_contiguous_lanes_need_no_call_where_none_is_active(place: Place, offsets: Offsets) -> None:
    assert run(place, offsets, ROW, 0) == (False, [0] * LANES)


@pytest.mark.parametrize("place", [*FLAT, *TABLE], ids=str)
@pytest.mark.parametrize(("offsets", "given"), [(at_run_time, SAME), (of_stride(0), [20]), (of_stride(12), [4])],
                         ids=["uniform", "known uniform", "known stride"])  # fmt: skip
def test_one_access_for_all_needs_an_active_lane(place: Place, offsets: Offsets, given: list[int]) -> None:
    assert run(place, offsets, given, 0)[0]


@pytest.mark.parametrize("place", [*FLAT, *TABLE], ids=str)
@pytest.mark.parametrize("given", [
    [*ROW[:7], 40], [12, *ROW[1:]], [*ROW[:3], 16, *ROW[4:]], [*SAME[:7], 24], [24, *SAME[1:]], ROW[::-1],
], ids=str)  # fmt: skip
def test_lanes_anywhere_are_a_call(place: Place, given: list[int]) -> None:
    assert run(place, at_run_time, given)[0]


@pytest.mark.covering(2)
@pytest.mark.parametrize("type", [u32, u64], ids=str)
@pytest.mark.parametrize(("offsets", "last"), [(at_run_time, 32), (of_stride(4), 32), (of_stride(0), 4), (of_stride(12), 88)],
                         ids=["contiguous", "known contiguous", "known uniform", "known stride"])  # fmt: skip
@pytest.mark.parametrize(("beyond", "called"), [(0, False), (1, True), (4, True)])
def test_memory_may_end_with_the_last_lane(type: LaneType, offsets: Offsets, last: int, beyond: int, called: bool) -> None:
    start = SIZE - last - 3 + beyond
    given = [start + 4 * lane for lane in range(LANES)] if offsets is at_run_time else [start]
    assert run(Place(type, size=SIZE - 3), offsets, given)[0] is called


@pytest.mark.parametrize(("start", "called"), [(0, False), (64, False), (0xFFFFFFF0, True), (0xFFFFFFFC, True)])
@pytest.mark.parametrize(("place", "offsets"), [
    (Place(u64, size=(1 << 32) + 64), widened), (Place(u64, True), widened), (Place(u32, True), of_stride(4)),
], ids=["flat", "table", "offsets of 32 bits"])  # fmt: skip
def test_contiguous_lanes_that_wrapped_are_not_contiguous(place: Place, offsets: Offsets, start: int, called: bool) -> None:
    found, numbers = run(place, offsets, [start])
    assert found is called
    if not called:
        assert numbers == list(range(start // 4, start // 4 + LANES))


@pytest.mark.parametrize("place", [*FLAT, TABLE[0], TABLE[3]], ids=str)
@pytest.mark.parametrize(("stride", "count", "start", "total"), [(16, 4, 16, 128), (12, 2, 4, 92), (8, 2, 64, 64)])
def test_adjacent_elements_of_inactive_lanes_are_read_on_the_page_of_an_active_one(
        place: Place, stride: int, count: int, start: int, total: int) -> None:  # fmt: skip
    """Where all lanes are active, it may be two pages; where none is, none is read."""
    offsets, numbers = of_stride(stride), [(start + stride * lane) // 4 + count - 1 for lane in range(LANES)]
    for beyond in (0, 4, total - 4, total):  # bytes that are on a second page
        here = place._replace(base=place.base + PAGE - start - total + beyond)
        for mask in (0xFF, 0b0010_0000, 0xFE, 0):
            called = mask != 0xFF and (not mask or 0 < beyond < total)
            found = [0 if called or not mask >> lane & 1 else number for lane, number in enumerate(numbers)]
            assert run(here, offsets, [start], mask, count) == (called, found), (beyond, mask)


MASKED = """define internal <16 x i8> @masked(ptr %at, i32 %align, <16 x i1> %on, <16 x i8> %other) {
  ret <16 x i8> splat (i8 -1)
}
"""


@cache
def loaded_bytes() -> Any:
    """A load of 16 contiguous bytes under a mask, on a host that masks no bytes; a masked load gives 0xFF in all lanes here."""
    m = LlvmMachine(LlvmModule(jit.Target("x86_64-unknown-linux-gnu", "", "+avx2")))
    on = Value(m, bool_, 16, m.masks.mask_of_bits(16, m.ir.emit("load i16, ptr %mask")))
    memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %memory to i64"), "16", "%note"))
    m.ir.line(f"store <16 x i8> {m.load(u8, memory, m.lane_index(16), on).payload}, ptr %found, align 1")
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %memory, ptr %note, ptr %mask, ptr %found)")
    text = "\n".join(line for line in m.ir.module.text().splitlines() if not re.match(r"declare .*@llvm.masked.load.v16i8", line))
    return jit.load(MASKED + text.replace("@llvm.masked.load.v16i8.p0", "@masked"), ("f",), Cache(None), imports={"guard_leave": 1})


@pytest.mark.parametrize(("start", "one_page"), [(0, True), (1, True), (PAGE - 16, True), (PAGE - 15, False), (PAGE - 1, False)])
def test_bytes_on_one_page_are_one_load_where_a_lane_is_active(start: int, one_page: bool) -> None:
    """Where the host has no masked loads of bytes: those would be a branch for each lane."""
    pages, note, found = np.zeros(3 * PAGE, np.uint8), np.zeros(64, np.uint64), np.zeros(16, np.uint8)
    memory = pages[-pages.ctypes.data % PAGE + start :][:16]
    memory[:] = range(1, 17)
    for mask in (0xFFFF, 0x8001, 0x0100, 0):
        pointers = [array.ctypes.data for array in (memory, note, np.array([mask], np.uint16), found)]
        ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_void_p for _ in pointers))(loaded_bytes().address("f"))(*pointers)
        assert found.tolist() == [(lane + 1) * (mask >> lane & 1) if one_page and mask else 0xFF for lane in range(16)], f"{mask:#x}"


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("stride", [0, 4, 12])
def test_fast_paths_leave_a_note_unless_memory_cannot_be_missing(stride: int, quiet: bool) -> None:
    m = LlvmMachine()
    m.load(u32, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %memory to i64"), str(SIZE), "%note", quiet)), m.lane_index(LANES) * stride)
    assert any("getelementptr i64, ptr %note" in line for line in map(str, m.ir.lines)) is not quiet


# -- offsets that are known to be inside -------------------------------------------------------------------------------


@cache
def inside(type: LaneType, offsets: Offsets, masked: bool) -> Any:
    """A function of a start, a size and a mask, which says whether eight lanes of four bytes are known to be inside."""
    m = LlvmMachine()
    on = Value(m, bool_, LANES, m.ir.emit(f"bitcast i8 {m.ir.emit('load i8, ptr %mask')} to <{LANES} x i1>"))
    every = m.constant(bool_, 1, LANES)
    m.give(m.affine_inside(offsets(m, type), on if masked else every, m.argument(u64, "size"), 4))
    m.code.frame("f", bool_, [Parameter("given"), Parameter("mask"), Parameter("size", u64)])
    return jit.load(m.ir.module.text(), ("f",), Cache(None))


@pytest.mark.covering(2)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("type", [u32, u64], ids=str)
@pytest.mark.parametrize("offsets, start, size, known", [
    (of_stride(4), 8, 40, True), (of_stride(4), 9, 40, False), (of_stride(4), 8, 39, False), (of_stride(4), 0, 0, False),
    (of_stride(16), 0, 116, True), (of_stride(16), 1, 116, False), (of_stride(1 << 30), 0, 1 << 40, True),
    (of_stride(0), 36, 40, True), (of_stride(0), 37, 40, False),
    (of_stride(4), 0xFFFFFFF0, 1 << 40, True), (of_stride(-4), 400, 1 << 40, False), (at_run_time, 8, 1 << 20, False),
    (widened, 0xFFFFFFE0, 1 << 40, True), (widened, 0xFFFFFFE4, 1 << 40, False), (widened, 8, 40, True), (widened, 9, 40, False),
])  # fmt: skip
def test_ascending_offsets_are_inside_if_the_last_one_is(offsets: Offsets, start: int, size: int, known: bool, type: LaneType,
                                                         masked: bool) -> None:  # fmt: skip
    """Nothing is known of others, which may be inside."""
    given, mask = np.array([start, 0, 0, 0, 0, 0, 0, 0], f"u{type.bytes}"), np.array([0x7F], np.uint8)
    found = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(inside(type, offsets, masked).address("f"))
    assert found(given.ctypes.data, mask.ctypes.data, size) is known


# -- offsets where code seldom runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", [u32, u64], ids=str)
@pytest.mark.parametrize("offsets, step, anew", [(of_stride(4), 4, True), (of_stride(-24), -24, True), (of_stride(0), 0, True),
                                                 (at_run_time, 1, False), (widened, 4, False)])  # fmt: skip
def test_affine_offsets_are_computed_anew(offsets: Offsets, step: int, anew: bool, type: LaneType) -> None:
    """The same numbers, but not out of the vector, which is left to where it is needed. Those that wrap are affine on a condition."""
    m = LlvmMachine()
    given = offsets(m, type)
    found = m.addressing.rematerialised(given, affine.EVERY)
    assert (found.payload != given.payload) is anew
    m.ir.line(f"store <{LANES} x i{given.type.bits}> {found.payload}, ptr %out, align 1")
    m.ir.line("ret void")
    m.code.frame("f", None, [Parameter("given"), Parameter("out")])
    numbers = np.array([*range(100, 100 + LANES)], f"u{type.bytes}")
    out = np.zeros(LANES, f"u{given.type.bytes}")
    code = jit.load(m.ir.module.text(), ("f",), Cache(None))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(numbers.ctypes.data, out.ctypes.data)
    assert list(out) == [(100 + lane * step) % (1 << given.type.bits) for lane in range(LANES)]

"""Regions of graphics memory: bounds drop lanes, grains are whole, updates act lane by lane, and modules share their functions."""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.lanes.compile import jit
from softgen.lanes.llvm.access import SIZE_SHIFT
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import FlatRegion, region
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import LaneType, bool_, u8, u16, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.access_fault import places
from softgen.shared_functions.context import ContextHead

SIZE = 40
MAP_NORESERVE = 0x4000


class Held:
    """Bytes that a region is made of on the NumPy machine."""

    name = "held"

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def inside(self, offsets: np.ndarray, width: int) -> np.ndarray:
        return offsets + np.uint64(width) <= np.uint64(len(self.data))

    def load(self, offsets: np.ndarray, width: int, mask: np.ndarray) -> np.ndarray:
        found = np.zeros((len(offsets), width), np.uint8)
        for lane in np.flatnonzero(mask & self.inside(offsets, width)):
            found[lane] = self.data[int(offsets[lane]) : int(offsets[lane]) + width]
        return found

    def store(self, offsets: np.ndarray, data: np.ndarray, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask & self.inside(offsets, data.shape[1])):
            self.data[int(offsets[lane]) : int(offsets[lane]) + data.shape[1]] = data[lane]

    def places(self, offsets: np.ndarray, mask: np.ndarray, access: str) -> list[tuple[int, int]]:
        return [(int(lane), int(offsets[lane])) for lane in np.flatnonzero(mask)]


def doubled(m: Machine, old: Value, more: Value) -> Value:
    return old * 2 + more


def program(m: Machine, memory: Region) -> None:
    """Reads, writes, blocks with grains, atomics and updates, in and out of bounds."""
    offsets = m.constant(u32, [0, 4, 8, 12, 36, 37, 40, 0xFFFFFFFC])
    found = m.load(u32, memory, offsets)
    m.store(found + 1, memory, offsets, m.constant(bool_, [1, 0, 1, 0, 1, 1, 1, 1]))
    m.store(m.load(u8, memory.moved(3), offsets), memory.moved(20), m.constant(u32, [5, 1, 7, 3, 2, 9, 1, 0]))
    block = m.load_block(u32, 8, memory, m.constant(u64, 16, 1), None, 16)
    m.store_block(block ^ 0xFF, memory, m.constant(u64, 20, 1), m.mask_from_bits(0b0111_0111, 8), 16)
    m.atomic("add", memory, m.constant(u32, [0, 0, 0, 4, 4, 4096, 8, 0]), [m.lane_index(8)], m.mask_from_bits(0b11111011, 8))
    old, new = m.update(u32, memory, m.constant(u32, [12, 12, 12, 12]), [m.lane_index(4)], m.mask_from_bits(0b1011, 4), doubled)
    m.store(old + new, memory, m.constant(u32, [16, 20, 24, 28]), m.inside(memory, m.constant(u32, [37, 36, 0, 40]), 4))


def compiled(data: np.ndarray, program: Callable[[Machine, Region], None] = program, quiet: bool = False,
             target: jit.Target | None = None) -> np.ndarray:  # fmt: skip
    """Run a program on a region of these bytes; its note."""
    m = LlvmMachine(LlvmModule(target))
    host = m.ir.emit("ptrtoint ptr %block to i64")
    program(m, region(m, FlatRegion(host, str(len(data)), "%context", quiet)))
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %block, ptr %context)")
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), target, {"guard_leave": 1})
    note = np.zeros(64, np.uint64)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(data.ctypes.data, note.ctypes.data)
    return note


def test_both_machines_do_the_same_to_a_region() -> None:
    whole = np.arange(64, dtype=np.uint8)
    first, second = whole.copy(), whole.copy()
    m = NumpyMachine()
    program(m, Region(m, Held(first[:SIZE])))
    compiled(second[:SIZE])
    assert first.tolist() == second.tolist() and (first[SIZE:] == whole[SIZE:]).all()
    assert (first[:SIZE] != whole[:SIZE]).sum() > 10


def short_blocks(m: Machine, memory: Region, first: int) -> None:
    """Blocks that programs broadcast elements of, inside, across and behind the end."""
    block = m.load_block(u32, 4, memory, m.constant(u64, first, 1), m.constant(bool_, 1, 4), 4)
    more = m.load_block(u32, 8, memory, m.constant(u64, first, 1), None, 16)
    every = m.concat(*(m.broadcast(m.slice(part, lane, 1), 1) for part in (block, more) for lane in range(part.lanes)))
    m.store_block(m.slice(every, 0, 8) + m.slice(every, 4, 8), memory, m.constant(u64, 0, 1), None, 4)


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("first", [0, 8, 9, 24, 28, 36, 40, 1 << 40])
def test_short_blocks_end_with_their_region(first: int, broadcast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlvmModule, "loads_broadcast", broadcast)
    act, found = partial(short_blocks, first=first), np.arange(SIZE, dtype=np.uint8)
    expected = found.copy()
    on_numpy(expected, act)
    compiled(found, act)
    assert found.tolist() == expected.tolist()


def test_elements_of_short_blocks_are_loaded_where_that_broadcasts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for broadcast in (False, True):
        monkeypatch.setattr(LlvmModule, "loads_broadcast", broadcast)
        m = LlvmMachine()
        short_blocks(m, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context")), 0)
        assert sum("load i32, ptr" in line for line in m.ir.lines) == (12 if broadcast else 0)


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("quiet", [False, True])
def test_a_region_without_room_for_an_element_is_not_touched(size: int, quiet: bool) -> None:
    """Lanes anywhere: its host address is one where nothing may be mapped. The size is known when the program runs."""
    m = LlvmMachine()
    room = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "32", "%context", quiet))
    memory = region(m, FlatRegion("8", m.ir.emit("load i64, ptr %block"), "%context", quiet))
    offsets = m.load_block(u32, 8, room, m.constant(u64, 0, 1))
    m.store(m.load(u32, memory, offsets) + 1, room, m.lane_index(8) * 4)
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %block, ptr %context)")
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), imports={"guard_leave": 1})
    data, note = np.array([size, 0, 8, 12, 36, 1 << 31, 4, 0], np.uint32), np.zeros(64, np.uint64)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(data.ctypes.data, note.ctypes.data)
    assert data.tolist() == [1] * 8


@pytest.mark.parametrize("type", [u32, u64], ids=str)
def test_the_note_of_a_gather_is_written_before_it(type: LaneType) -> None:
    m = LlvmMachine()
    memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context", scattered=True))
    m.load(type, memory, Value(m, u32, 8, "%offsets"))
    kinds = [kind for line in map(str, m.ir.lines) for kind in ("store", "fence", "llvm.masked.gather") if kind in line]
    assert kinds[-3:] == ["store", "fence", "llvm.masked.gather"]


def strided(m: Machine, memory: Region, type: LaneType, start: int, stride: int, mask: int) -> None:
    """Copies lanes of a known stride to where lanes overlap; the last access is the write."""
    on = None if mask == 0xFF else m.mask_from_bits(mask, 8)
    offsets = m.lane_index(8) * stride + start
    m.store(m.load(type, memory, offsets, on) + 1, memory, offsets + 1, on)


@pytest.mark.covering(1)
@pytest.mark.parametrize("type", [u8, u16, u32, u64])
@pytest.mark.parametrize("mask", [0xFF, 0b1011_0110, 0])
def test_lanes_of_a_known_stride_are_those_of_their_offsets(type: LaneType, mask: int) -> None:
    """Also where they overlap, where some are past the end, and where a stride is negative or far."""
    for stride in (1, 2, 3, 12, 16, 27, 5000, -4):
        for start in (0, 1, 35, 199 - 7 * 27, 200, 0xFFFFFFF8):
            act = partial(strided, type=type, start=start, stride=stride % (1 << 32), mask=mask)
            first = np.arange(256, dtype=np.uint8)
            second, m = first.copy(), NumpyMachine()
            act(m, Region(m, Held(first[:200])))
            compiled(second[:200], act)
            assert first.tolist() == second.tolist(), (stride, start)


def adjacent(m: Machine, memory: Region, type: LaneType, count: int, offsets: Callable[[Machine], Value], mask: int) -> None:
    """Copies the elements of each lane, mixed, to where they came from and to 4 bytes further on."""
    at, on = offsets(m), None if mask == 0xFFFF else m.mask_from_bits(mask, 16)
    found = m.load_adjacent(type, count, memory, at, on)
    m.store_adjacent([value + number for number, value in enumerate(reversed(found))], memory, at, on)
    m.store_adjacent(found[1:] or found, memory.moved(4), at + 16, on)


def of_stride(stride: int, start: int) -> Callable[[Machine], Value]:
    return lambda m: m.lane_index(16) * (stride % (1 << 32)) + start


def anywhere(grain: int, more: int) -> Callable[[Machine], Value]:
    """No stride, some lanes at one place; multiples of a grain."""
    return lambda m: m.constant(u32, [((7 * lane * lane + 3 * lane) % 53 // 2 * grain + more) % (1 << 32) for lane in range(16)])


@pytest.mark.covering(1)
@pytest.mark.parametrize("type, count", [(u32, 2), (u32, 3), (u32, 4), (u64, 2), (u64, 4), (u32, 1), (u16, 2)])
@pytest.mark.parametrize("mask", [0xFFFF, 0b1011_0110_0000_0111, 0])
def test_adjacent_elements_are_those_of_single_accesses(type: LaneType, count: int, mask: int) -> None:
    """Contiguous, uniform, of other strides, overlapping, past the end, anywhere, across pages."""
    strides = [of_stride(stride, start) for stride in (8, 16, 20, 0) for start in (5, 900)]
    for offsets in (*strides, of_stride(-16, 700), of_stride(12, 0xFFFFFFF8), anywhere(16, 8), anywhere(4, 1), anywhere(16, 700)):
        act = partial(adjacent, type=type, count=count, offsets=offsets, mask=mask)
        first = np.arange(1 << 10, dtype=np.uint32).view(np.uint8)
        second, m = first.copy(), NumpyMachine()
        act(m, Region(m, Held(first[1:1002])))
        compiled(second[1:1002], act)
        assert first.tolist() == second.tolist()


def scattered(m: Machine, memory: Region, type: LaneType, offsets: Callable[[Machine], Value], mask: int) -> None:
    """Adds one where lanes are, and one more to what lies 8 bytes after them."""
    at, on = offsets(m), None if mask == 0xFFFF else m.mask_from_bits(mask, 16)
    m.store(m.load(type, memory, at, on) + 1, memory, at, on)
    m.store(m.load(type, memory.moved(8), at, on) + 1, memory.moved(8), at, on)


@pytest.mark.covering(2)
@pytest.mark.parametrize("type", [u32, u64, u16])
@pytest.mark.parametrize("mask", [0xFFFF, 0b1011_0110_0000_0111, 0])
@pytest.mark.parametrize("size", [1000, 300, 3, 0])
def test_local_memory_anywhere(type: LaneType, mask: int, size: int) -> None:
    """Memory that cannot be missing is gathered and scattered in place; lanes past the end, of small memory all."""
    for offsets in (anywhere(16, 8), anywhere(4, 1), anywhere(16, 700), anywhere(16, 0xFFFFFF00)):
        act = partial(scattered, type=type, offsets=offsets, mask=mask)
        first = np.arange(1 << 10, dtype=np.uint32).view(np.uint8)
        second, m = first.copy(), NumpyMachine()
        act(m, Region(m, Held(first[1 : 1 + size])))
        compiled(second[1 : 1 + size], act, quiet=True)
        assert first.tolist() == second.tolist()


def test_adjacent_elements_are_one_access() -> None:
    m = LlvmMachine()
    act = partial(adjacent, type=u32, count=4, offsets=of_stride(32, 0), mask=0xFFFF)
    act(m, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context")))
    assert "gather" not in "".join(m.ir.lines) and sum("load <4 x i32>" in line for line in m.ir.lines) == 16


@pytest.mark.parametrize("offsets, tests", [(of_stride(0, 40), 0), (of_stride(4, 8), 0), (of_stride(12, 0), 0),
                                            (lambda m: Value(m, u32, 16, "%offsets"), 2)])  # fmt: skip
def test_the_pattern_of_offsets_is_tested_where_it_is_not_known(offsets: Callable[[Machine], Value], tests: int) -> None:
    """Whether they are contiguous, and whether they are uniform."""
    m = LlvmMachine()
    m.load(u32, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context")), offsets(m))
    assert sum("vector.reduce.or" in line or "icmp eq <16 x i32>" in line for line in m.ir.lines) == tests


@pytest.mark.parametrize("grain, size", [(16, 16), (4, 4)])
def test_lanes_anywhere_are_written_whole_where_they_do_not_overlap(grain: int, size: int) -> None:
    """The note has the bytes of a lane that the last access wrote."""
    def act(m: Machine, memory: Region) -> None:
        m.store_adjacent([m.lane_index(16) + number for number in range(4)], memory, anywhere(grain, 0)(m))

    assert int(compiled(np.zeros(1000, np.uint8), act)[0]) >> SIZE_SHIFT == size


@pytest.mark.parametrize("mask, start", [(0b11, 0), (0, 0), (0, 256)])
def test_inactive_lanes_are_not_read_on_other_pages(mask: int, start: int) -> None:
    """Lanes of a known stride that cross into a page without access, or are there; those are off, by a mask of run time."""
    def act(m: Machine, memory: Region) -> None:
        on = m.mask_from_bits(m.load_block(u32, 1, memory, m.constant(u64, 124, 1)), 16)
        found = m.load_adjacent(u32, 4, memory, of_stride(16, start)(m), on)
        m.store_adjacent([value + 1 for value in reversed(found)], memory, of_stride(16, start)(m), on)

    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    data = np.frombuffer(pages, np.uint8)
    here = data[mmap.PAGESIZE - 128 :]
    words = here[:128].view(np.uint32)
    words[:] = [*range(31), mask]
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(data.ctypes.data + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
    compiled(here, act)
    assert words.tolist() == ([4, 3, 2, 1, 8, 7, 6, 5] if mask else list(range(8))) + [*range(8, 31), mask]
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(data.ctypes.data + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 3)


@pytest.mark.covering(2)
@pytest.mark.parametrize("cpu", ["", *["x86-64-v3"] * (platform.machine() == "x86_64")])  # which has no masked loads of bytes
@pytest.mark.parametrize("type", [u8, u32])
@pytest.mark.parametrize("mask, start", [(0b11, -2), (0xFFFF, 0), (0xFF, 0), (0, 128), (0, 0), (0x5A5A, 4), (0x7FFF, -15), (0xFFFF, -16)])
def test_contiguous_lanes_are_not_touched_on_other_pages(type: LaneType, mask: int, start: int, cpu: str) -> None:
    """They may cross into a page without access, or be there; those are off, by a mask of run time, and stay as they are. A start below
    zero counts elements from the end of the page."""
    start = 128 + start * type.bytes if start < 0 else start

    def act(m: Machine, memory: Region) -> None:
        on = m.mask_from_bits(m.load_block(u32, 1, memory, m.constant(u64, 120, 1)), 16)
        offsets = of_stride(type.bytes, start)(m)
        found = m.load(type, memory, offsets, on)
        m.store(found + 1, memory, offsets, on)
        m.store(found, memory, of_stride(type.bytes, 48 if type is u32 else 16)(m), m.constant(bool_, 1, 16))

    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    data = np.frombuffer(pages, np.uint8)
    data[: mmap.PAGESIZE] = np.arange(mmap.PAGESIZE) % 251
    here = data[mmap.PAGESIZE - 128 :]
    here[120:124].view(np.uint32)[:] = mask
    dtype = np.dtype(f"u{type.bytes}")
    expected = here[:128].copy()
    lanes = expected.view(dtype)
    first, active = start // type.bytes, [lane for lane in range(16) if mask >> lane & 1]
    found = [lanes[first + lane] if lane in active else 0 for lane in range(16)]
    lanes[np.array([first + lane for lane in active], np.intp)] += dtype.type(1)
    at = (48 if type is u32 else 16) // type.bytes
    lanes[at : at + 16] = found
    protect = partial(ctypes.CDLL(None).mprotect, ctypes.c_void_p(data.ctypes.data + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE))
    protect(0)
    compiled(here, act, target=jit.Target(jit.host().triple, cpu, "") if cpu else None)
    protect(3)
    assert here[:128].tolist() == expected.tolist()


@pytest.mark.parametrize("type", [u8, u32])
def test_contiguous_lanes_are_one_access_where_the_host_has_no_masked_one(type: LaneType) -> None:
    m = LlvmMachine()
    memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context"))
    on = Value(m, bool_, 16, "%on")
    m.store(m.load(type, memory, of_stride(type.bytes, 8)(m), on), memory, of_stride(type.bytes, 8)(m), on)
    vector, masks = f"<16 x i{type.bits}>", not m.ir.module.neon and (type is u32 or m.ir.module.has("avx512bw"))
    text = [line for line in m.ir.lines if "ptr %block" in line or "align 1" in line]
    assert any(f"load {vector}" in line for line in text) is any(f"store {vector}" in line for line in text) is not masks


def test_an_access_of_a_known_stride_notes_its_lanes() -> None:
    data = np.zeros(200, np.uint8)
    note = compiled(data, partial(strided, type=u32, start=8, stride=12, mask=0b1011_0110))
    head = ContextHead(mask=int(note[0]), base=int(note[1]))
    ctypes.memmove(ctypes.addressof(head) + ContextHead.offsets.offset, note[2:6].tobytes(), 32)
    expected = {lane: data.ctypes.data + 9 + 12 * lane for lane in (1, 2, 4, 5, 7)}
    assert places(head) == expected and int(note[0]) >> SIZE_SHIFT == 4


def test_bytes_anywhere_are_read_with_the_dwords_around_them() -> None:
    """Words across two dwords are read one by one."""
    for more in (0, 2):
        for type in (u8, u16):
            act = partial(divergent, type=type, more=more)
            first = np.arange(256, dtype=np.uint8)
            second, m = first.copy(), NumpyMachine()
            act(m, Region(m, Held(first[1:41])))
            compiled(second[1:41], act)
            assert first.tolist() == second.tolist()


def divergent(m: Machine, memory: Region, type: LaneType, more: int) -> None:
    offsets = m.constant(u32, [7, 1, 13, 5, 39, 38, 40, 17]) + more
    found = m.load(type, memory, offsets, m.mask_from_bits(0b1111_0111, 8))
    m.store_block(m.convert(found, u32) + 1, memory, m.constant(u64, 8, 1), None, 4)


def test_a_misaligned_atomic_names_its_lane() -> None:
    m = NumpyMachine()
    with pytest.raises(GpuFault, match=r"not a multiple of 4 \(lane 1\)"):
        m.atomic("add", Region(m, Held(np.zeros(64, np.uint8))), m.constant(u32, [4, 6]), [m.lane_index(2)])


def test_an_atomic_is_aligned_by_its_address() -> None:
    """A surface may begin anywhere."""
    def act(m: Machine, memory: Region) -> None:
        m.atomic("add", memory, m.constant(u32, [1, 5, 1, 9]), [m.lane_index(4) + 1])

    words = np.zeros(8, np.uint32)
    compiled(words.view(np.uint8)[3:], act)
    assert words.tolist() == [0, 1 + 3, 2, 4, 0, 0, 0, 0]


def test_functions_of_a_module_share_what_they_call() -> None:
    module = LlvmModule()
    for name in ("f", "g"):
        m = LlvmMachine(module)
        memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "64", "%context"))
        m.store(m.load(u32, memory, m.lane_index(8) * 4), memory.moved(4), m.lane_index(8) * 8)
        m.ir.line("ret i64 0")
        m.ir.define(f"i64 @{name}(ptr %block, ptr %context)")
    assert module.text().count("define internal") == 2 and sorted(module.internals) == ["read_u32x8_flat_u32", "write_u32x8_flat_u32"]
    code = jit.load(module.text(), ("f", "g"), Cache(None))
    assert code.address("f") != code.address("g")


def test_an_update_needs_a_function_with_a_name() -> None:
    m = LlvmMachine()
    memory = region(m, FlatRegion("0", "64", "%context"))
    with pytest.raises(TypeError, match="a name of its own"):
        m.update(u32, memory, m.lane_index(2), [], m.mask_from_bits(3, 2), lambda m, old: old)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("stride", [0, 4, 12])
def test_offsets_of_32_bits_wrap_in_regions_larger_than_that(known: bool, stride: int) -> None:
    """The region goes on where lanes begin again at its start."""
    size, start = (1 << 32) + 4096, 0xFFFFFFF0
    results = []
    for run in (on_numpy, compiled):
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
        data = np.frombuffer(memory, np.uint8)
        data[:4096], data[-4096:] = np.arange(4096) % 251, np.arange(4096) % 241

        def act(m: Machine, region: Region) -> None:
            vector = m.constant(u32, [(start + lane * stride) % (1 << 32) for lane in range(8)])
            offsets = m.lane_index(8) * stride + start if known else vector
            m.store(m.load(u32, region, offsets) + 1, region.moved(4), offsets)

        run(data, act)
        results.append((data[:4096].tobytes(), data[-8192:].tobytes()))
    assert results[0] == results[1]


def on_numpy(data: np.ndarray, program: Callable[[Machine, Region], None]) -> None:
    m = NumpyMachine()
    program(m, Region(m, Held(data)))

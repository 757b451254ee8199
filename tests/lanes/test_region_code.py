"""Code that is written for accesses to regions: what it leaves out where more is known, on targets that are set by hand."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.lanes.llvm.access import ATOMIC, BLOCK, CONTIGUOUS, SIZE_SHIFT, TABLE, UNIFORM, WIDE
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import FlatRegion, flat_region, region, table_region
from softgen.lanes.llvm.text import LlvmModule, LlvmText
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, bool_, u8, u16, u32, u64
from softgen.lanes.value import Region, Value

AVX2, NEON, AVX512 = ("x86_64", "+avx2"), ("aarch64", "+neon"), ("x86_64", "+avx2,+avx512f,+avx512bw,+avx512vl")


def machine(target: tuple[str, str] = AVX2) -> LlvmMachine:
    return LlvmMachine(LlvmModule(jit.Target(f"{target[0]}-unknown-linux-gnu", "", target[1])))


def memory(m: LlvmMachine, quiet: bool = False) -> Region:
    return region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context", quiet))


def finished(m: LlvmMachine, changed: Callable[[str], str] = str) -> Callable[[np.ndarray], np.ndarray]:
    """Compiles what was written, as a function of %block that returns the note in %context."""
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %block, ptr %context)")
    code = jit.load(changed(m.ir.module.text()), ("f",), Cache(None), imports={"guard_leave": 1})

    def run(data: np.ndarray) -> np.ndarray:
        note = np.zeros(64, np.uint64)
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(data.ctypes.data, note.ctypes.data)
        return note

    return run


@pytest.mark.parametrize("quiet", [False, True])
def test_only_memory_that_others_see_is_locked(quiet: bool) -> None:
    m = machine()
    m.atomic("add", memory(m, quiet), Value(m, u32, 8, "%offsets"), [m.lane_index(8)])
    assert ("atomicrmw add" in m.ir.module.text()) is not quiet


@pytest.mark.parametrize("quiet, what, masked, tested", [
    (False, "read", False, False), (False, "read", True, True), (True, "read", True, False), (True, "read", False, False),
    (False, "write", False, False), (False, "write", True, True), (True, "write", True, True),
])  # fmt: skip
def test_the_mask_is_tested_where_not_all_adjacent_elements_may_be_touched(quiet: bool, what: str, masked: bool, tested: bool) -> None:
    """Inactive lanes of memory that cannot be missing may be read."""
    m = machine()
    offsets, on = Value(m, u32, 16, "%offsets"), Value(m, bool_, 16, "%on") if masked else None
    if what == "read":
        m.load_adjacent(u32, 4, memory(m, quiet), offsets, on)
    else:
        m.store_adjacent([m.lane_index(16)] * 4, memory(m, quiet), offsets, on)
    lines = [str(line).strip() for line in m.ir.lines]
    bits = [line.split()[0] for line in lines if "bitcast <16 x i1>" in line and ("%on" in line or "splat" in line)]
    assert any(f"icmp eq i16 {name}, -1" in line for name in bits for line in lines) is tested


@pytest.mark.parametrize("stride, inline", [(8, True), (4096, True), (4097, False), (8192, False), (-8, False)])
def test_lanes_up_to_a_page_apart_need_no_call(stride: int, inline: bool) -> None:
    m = machine()
    offsets = m.lane_index(8) * (stride % (1 << 32))
    m.store(m.load(u32, memory(m), offsets), memory(m), offsets)
    for access in ("gather", "scatter"):
        assert any(f"@llvm.masked.{access}" in line for line in map(str, m.ir.lines)) is inline


@pytest.mark.parametrize("type, masked, inline", [
    (u8, False, True), (u8, True, False), (u16, False, True), (u16, True, False), (u32, False, True), (u32, True, True), (u64, True, True),
], ids=str)  # fmt: skip
def test_lanes_of_a_known_stride_need_no_call_unless_narrow_ones_are_inactive(type: LaneType, masked: bool, inline: bool) -> None:
    """Hosts gather and scatter no bytes and words: those are single accesses, of all lanes."""
    for what in ("read", "write"):
        m = machine()
        on = Value(m, bool_, 8, "%on") if masked else None
        if what == "read":
            m.load(type, memory(m), m.lane_index(8) * 24, on)
        else:
            m.store(m.lane_index(8, type), memory(m), m.lane_index(8) * 24, on)
        assert any(line.startswith("so") for line in map(str, m.ir.lines)) is inline, what


@pytest.mark.parametrize("target, what, calls", [
    (AVX2, "read", True), (AVX2, "write", True), (NEON, "read", False), (NEON, "write", True), (AVX512, "read", False),
    (AVX512, "write", False),
])  # fmt: skip
@pytest.mark.parametrize("type, quiet, offsets, may", [
    (u32, True, u32, True), (u64, True, u32, True), (u32, False, u32, False), (u16, True, u32, False), (u32, True, u64, False),
], ids=str)  # fmt: skip
def test_lanes_anywhere_in_memory_that_cannot_be_missing_need_no_call(
        target: tuple[str, str], what: str, calls: bool, type: LaneType, quiet: bool, offsets: LaneType, may: bool) -> None:  # fmt: skip
    """Where the host gathers and scatters, dwords and qwords at offsets of 32 bits; NEON reads lane by lane."""
    m = machine(target)
    at, on = Value(m, offsets, 8, "%offsets"), Value(m, bool_, 8, "%on")
    if what == "read":
        m.load(type, memory(m, quiet), at, on)
    else:
        m.store(Value(m, type, 8, "%values"), memory(m, quiet), at, on)
    assert any(name.startswith(f"{what}_") for name in m.ir.module.internals) is (calls or not may)


@pytest.mark.parametrize("type", [u32, u64], ids=str)
@pytest.mark.parametrize("mask", [0xFF, 0b1011_0110])
def test_the_note_of_a_gather_names_lanes_size_and_offsets(type: LaneType, mask: int) -> None:
    """Offsets of 64 bits are marked as such."""
    m = LlvmMachine()
    scattered = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "256", "%context", scattered=True))
    numbers = [8 * (lane * 5 % 8) for lane in range(8)]
    offsets = m.constant(type, numbers)
    found = m.load(u32, scattered, offsets, None if mask == 0xFF else m.mask_from_bits(mask, 8))
    m.ir.line(f"store <8 x i32> {found.payload}, ptr {m.ir.emit('getelementptr i8, ptr %block, i64 128')}, align 4")
    data = np.arange(64, dtype=np.uint32)
    note = finished(m)(data)
    assert int(note[0]) == mask | 4 << SIZE_SHIFT | (WIDE if type is u64 else 0) and int(note[1]) == data.ctypes.data
    assert note[2:].view(f"u{type.bytes}")[:8].tolist() == numbers
    assert data[32:40].tolist() == [number // 4 if mask >> lane & 1 else 0 for lane, number in enumerate(numbers)]


@pytest.mark.parametrize("type", [u32, u64], ids=str)
@pytest.mark.parametrize("what, atomic", [("read", 0), ("write", 0), ("atomic", ATOMIC)])
def test_the_note_of_divergent_lanes_names_the_active_ones(what: str, atomic: int, type: LaneType) -> None:
    """With the bytes of a lane, the memory's address and all offsets, which are known when the program runs."""
    m, mask, numbers = LlvmMachine(), 0b1011_0110, [8 * (lane * 5 % 8) + 64 for lane in range(8)]
    offsets, on = m.load_block(type, 8, memory(m, quiet=True), m.constant(u64, 0, 1)), m.mask_from_bits(mask, 8)
    if what == "read":
        m.load(u16, memory(m), offsets, on)
    elif what == "write":
        m.store(m.lane_index(8, u16), memory(m), offsets, on)
    else:
        m.atomic("add", memory(m), offsets, [m.lane_index(8)], on)
    data = np.zeros(512, np.uint64)
    data.view(f"u{type.bytes}")[:8] = numbers
    note = finished(m)(data)
    size = u32.bytes if atomic else u16.bytes
    assert int(note[0]) == mask | size << SIZE_SHIFT | atomic | (WIDE if type is u64 else 0) and int(note[1]) == data.ctypes.data
    assert note[2:].view(f"u{type.bytes}")[:8].tolist() == numbers


def touched_too_early(code: str) -> list[str]:
    """Accesses between a store into the note and the fence that comes before any other access."""
    note, waits, found = set[str](), False, list[str]()
    for line in code.splitlines():
        stored = re.match(r"  store .*, ptr (%\w+)(, align \d+)?$", line)
        if re.search(r"= getelementptr i64, ptr (%context|%a0),", line):
            note.add(line.split()[0])
        elif stored and stored[1] in note:
            waits = True
        elif "fence" in line:
            waits = False
        elif waits and re.search(r" = load |^  store |llvm.masked|atomicrmw|cmpxchg", line) and "ptr %v" not in line:
            found.append(line)
    return found + ["no fence"] * waits


@pytest.mark.covering(2)
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("stride", [0, 4, 24, None])
@pytest.mark.parametrize("act", [
    lambda m, here, at: m.load(u32, here, at), lambda m, here, at: m.store(m.lane_index(8), here, at),
    lambda m, here, at: m.atomic("add", here, at, [m.lane_index(8)]), lambda m, here, at: m.load_adjacent(u32, 3, here, at),
    lambda m, here, at: m.store_adjacent([m.lane_index(8)] * 3, here, at),
    lambda m, here, at: m.load_block(u32, 16, here, m.constant(u64, 0, 1)),
    lambda m, here, at: m.store_block(m.lane_index(16), here, m.constant(u64, 0, 1)),
], ids=["load", "store", "atomic", "load adjacent", "store adjacent", "load block", "store block"])  # fmt: skip
def test_notes_are_in_memory_before_it_is_touched(act: Callable[..., object], stride: int | None, table: bool) -> None:
    """A fence keeps compilers from another order: in fast paths of known strides or not, and in access functions."""
    m = machine()
    here = table_region(m, m.pointer("block"), m.number(u64, 0), m.pointer("context"), 48) if table else memory(m)
    act(m, here, Value(m, u32, 8, "%offsets") if stride is None else m.lane_index(8) * stride)
    for code in ("\n".join(map(str, m.ir.lines)), *m.ir.module.internals.values()):
        assert touched_too_early(code) == []


def copied(m: Machine, memory: Region, type: LaneType) -> None:
    """Contiguous lanes under a mask that is known when the program runs: the first 16 dwords."""
    lanes = m.lane_index(16)
    on = m.load(u32, memory, lanes * 4) != 0
    m.store(m.load(type, memory.moved(64), lanes * type.bytes, on) + 1, memory.moved(192), lanes * type.bytes, on)


@pytest.mark.parametrize("target", [None, AVX2], ids=str)
@pytest.mark.parametrize("type", [u8, u16, u32, u64], ids=str)
def test_contiguous_lanes_under_a_mask_are_all_stored_or_some_or_none(type: LaneType, target: tuple[str, str] | None) -> None:
    """On this host, and as on one that has no masked loads and stores of bytes and words."""
    m, kind = LlvmMachine() if target is None else machine(target), f"u{type.bytes}"
    copied(m, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "320", "%context")), type)
    run = finished(m)
    for mask in (0xFFFF, 0, 1, 0x8000, 0x7FFF, 0xFFFE, 0b1011_0110_0000_0111):
        data = np.zeros(320, np.uint8)
        data[:64].view(np.uint32)[:] = [mask >> lane & 1 for lane in range(16)]
        data[64 : 64 + 16 * type.bytes].view(kind)[:] = range(5, 21)
        data[192:] = 0xEE
        expected = data.copy()
        for lane in range(16):
            if mask >> lane & 1:
                expected[192:].view(kind)[lane] = lane + 6
        run(data)
        assert data.tolist() == expected.tolist(), f"{mask:#x}"


# -- masks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target, lanes, bitcast", [(AVX2, 8, True), (AVX2, 16, True), (NEON, 4, True), (NEON, 8, False), (NEON, 16, False),
                                                    (NEON, 32, False)])  # fmt: skip
def test_neon_has_no_registers_of_bits_for_masks(target: tuple[str, str], lanes: int, bitcast: bool) -> None:
    """Byte i of a mask is a copy of the byte of the integer that has bit i, and that bit is tested."""
    m = machine(target)
    m.masks.mask_of_bits(lanes, "%bits")
    text = "\n".join(map(str, m.ir.lines))
    assert (f"to <{lanes} x i1>" in text) is bitcast
    if not bitcast:
        assert ", ".join(f"i32 {lane // 8}" for lane in range(lanes)) in text
        assert ", ".join(f"i8 {1 << lane % 8}" for lane in range(lanes)) in text


@pytest.mark.parametrize("target, lanes, maximum", [(AVX2, 16, False), (NEON, 8, False), (NEON, 16, True), (NEON, 32, True)])
def test_neon_finds_an_active_lane_by_the_maximum_of_bytes(target: tuple[str, str], lanes: int, maximum: bool) -> None:
    """UMAXV is a plain function here."""
    m = machine(target)
    bits = m.ir.emit(f"load i{lanes}, ptr %block")
    some = m.masks.any_lane(lanes, m.masks.mask_of_bits(lanes, bits))
    m.ir.line(f"store i64 {m.ir.emit(f'zext i1 {some} to i64')}, ptr %context")
    assert ("neon.umaxv.i32.v16i8" in m.ir.module.text() + "".join(map(str, m.ir.lines))) is maximum
    run = finished(m, lambda text: re.sub(r"declare i32 @llvm.aarch64.neon.umaxv.*", UMAXV, text).replace("llvm.aarch64.neon.", ""))
    for mask in (0, (1 << lanes) - 1, *(1 << lane for lane in range(lanes))):
        assert int(run(np.array([mask], np.uint64))[0]) == (mask != 0), f"{mask:#x}"


UMAXV = """
declare i8 @llvm.vector.reduce.umax.v16i8(<16 x i8>)
define i32 @umaxv.i32.v16i8(<16 x i8> %bytes) {
  %most = call i8 @llvm.vector.reduce.umax.v16i8(<16 x i8> %bytes)
  %found = zext i8 %most to i32
  ret i32 %found
}
"""


@pytest.mark.parametrize("target, payload, lanes, bytes", [
    (AVX2, "%on", 16, False), (NEON, "%on", 16, True), (NEON, "%on", 32, True), (NEON, "%on", 8, False),
    (NEON, "splat (i1 1)", 16, False), (NEON, "splat (i1 0)", 32, False),
])  # fmt: skip
def test_masks_cross_blocks_as_bytes_where_the_host_keeps_them_so(target: tuple[str, str], payload: str, lanes: int, bytes: bool) -> None:
    m = machine(target)
    mask = Value(m, bool_, lanes, payload)
    found = m.masks.across_blocks(mask)
    assert found.lanes == lanes and found.type is bool_ and (found is mask) is not bytes
    assert any("icmp slt" in line for line in map(str, m.ir.lines)) is bytes


@pytest.mark.parametrize("quiet, atomic, noted", [(True, False, False), (True, True, True), (False, False, True), (False, True, True)])
def test_offsets_are_kept_in_the_note_where_one_is_due(quiet: bool, atomic: bool, noted: bool) -> None:
    """Of divergent lanes. Loads from memory that cannot be missing have none."""
    m = machine()
    if atomic:
        m.atomic("add", memory(m, quiet), Value(m, u32, 8, "%offsets"), [m.lane_index(8)])
    else:
        m.load(u32, memory(m, quiet), Value(m, u32, 8, "%offsets"), Value(m, bool_, 8, "%on"))
    (function,) = (text for name, text in m.ir.module.internals.items() if ("add" if atomic else "read") in name)
    assert ("getelementptr i64, ptr %a0, i64 2" in function) is noted


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("step, how", [(4, CONTIGUOUS), (0, UNIFORM)])
def test_contiguous_and_uniform_lanes_are_noted_unless_memory_cannot_be_missing(step: int, how: int, quiet: bool) -> None:
    """Found so when the program runs, beside an inactive lane that is elsewhere. Local memory leaves the note as it is."""
    m = LlvmMachine()
    given = memory(m, quiet=True)
    offsets, mask = m.load_block(u32, 8, given, m.constant(u64, 0, 1)), m.mask_from_bits(m.load_block(u32, 1, given, 32), 8)
    m.ir.line("store i64 7, ptr %context")
    found = m.load(u32, memory(m, quiet), offsets, mask)
    m.ir.line(f"store <8 x i32> {found.payload}, ptr {m.ir.emit('getelementptr i8, ptr %block, i64 64')}, align 4")
    data = np.arange(1024, dtype=np.uint32)
    data[:9] = [128, *(256 + step * lane for lane in range(1, 8)), 0xF6]
    note = finished(m)(data)
    assert data[16:24].tolist() == [0, 64 + step // 4, 64 + step // 2, 0, *(64 + step * lane // 4 for lane in range(4, 8))]
    assert note[:2].tolist() == ([7, 0] if quiet else [0xF6 | how | 4 << SIZE_SHIFT, data.ctypes.data + 256])


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("type, size, inside", [(u32, 4, [0]), (u32, 3, []), (u64, 4, [0]), (u64, 5, [0, 1])], ids=str)
def test_memory_of_one_element_has_that_element(type: LaneType, size: int, inside: list[int], quiet: bool) -> None:
    """Offsets that are known when the program runs: 0 and 1 and others behind."""
    m = LlvmMachine()
    offsets = m.load_block(type, 8, memory(m, quiet=True), m.constant(u64, 64, 1))
    small = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), str(size), "%context", quiet))
    found = m.load(u32, small, offsets)
    m.ir.line(f"store <8 x i32> {found.payload}, ptr {m.ir.emit('getelementptr i8, ptr %block, i64 256')}, align 4")
    data = np.full(128, 0x01010101, np.uint32)
    data[64 // 4 :].view(f"u{type.bytes}")[:8] = [0, 1, 2, 3, 9, 8, 4, 100]
    finished(m)(data)
    assert data[64:72].tolist() == [0x01010101 if lane in inside else 0 for lane in range(8)]


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("what", ["read", "write"])
def test_a_block_is_noted_by_its_size_and_host_address_unless_memory_cannot_be_missing(what: str, quiet: bool) -> None:
    m = LlvmMachine()
    m.ir.line("store i64 7, ptr %context")
    if what == "read":
        m.load_block(u32, 16, memory(m, quiet), m.constant(u64, 24, 1))
    else:
        m.store_block(m.lane_index(16), memory(m, quiet), m.constant(u64, 24, 1))
    data = np.zeros(1024, np.uint32)
    assert finished(m)(data)[:2].tolist() == ([7, 0] if quiet else [BLOCK | 64 << SIZE_SHIFT, data.ctypes.data + 24])


@pytest.mark.parametrize("noted", [False, True])
def test_a_region_begins_and_ends_as_scalars_say(noted: bool) -> None:
    """Memory that cannot be missing needs no place for a note."""
    m, data, words = LlvmMachine(), np.zeros(16, np.uint32), np.zeros(2, np.uint64)
    block = m.pointer("block")
    place, note = (block.load(u64), block.at(8).load(u64)), m.pointer("context")
    here = flat_region(m, *place, note, name="words") if noted else flat_region(m, *place, None, quiet=True, name="words")
    m.store_block(m.lane_index(4) + 1, here, m.constant(u64, 8, 1))
    m.store(m.lane_index(8) + 11, here, m.lane_index(8) * 8 + 20)
    words[:] = data.ctypes.data + 4, 36
    assert bool(finished(m)(words)[0]) is noted and here.name == "words"
    assert data.tolist() == [0, 0, 0, 1, 2, 3, 11, 0, 12, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("bits", [32, 48])
def test_a_region_begins_where_a_scalar_says_in_the_space_of_a_table(bits: int) -> None:
    """Its addresses have so many bits: others are left out."""
    m, data, table = LlvmMachine(), np.zeros(8, np.uint32), np.zeros(3, np.uint64)
    block = m.pointer("block")
    here = table_region(m, block, block.at(16).load(u64), m.pointer("context"), bits, name="space")
    m.store_block(m.lane_index(4) + 1, here, m.constant(u64, 8, 1))
    table[int(bits > 32)], table[2] = data.ctypes.data - 0x1000, (1 << 32) + 0x1000
    word, address = finished(m)(table)[:2].tolist()
    assert word == BLOCK | TABLE | 16 << SIZE_SHIFT and address % (1 << 32) == 0x1008 and here.name == "space"
    assert data.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]


@pytest.mark.parametrize("type, limit", [(u32, True), (u64, False)], ids=str)
def test_offsets_of_32_bits_reach_4_gigabytes(type: LaneType, limit: bool) -> None:
    m = machine()
    m.load(u32, memory(m), m.lane_index(8, type) * 4)
    assert any(f"i64 {1 << 32})" in line and "umin" in line for line in map(str, m.ir.lines)) is limit


@pytest.mark.parametrize("target, masked, branches", [(NEON, False, False), (NEON, True, True), (AVX2, False, False), (AVX2, True, False)])
@pytest.mark.parametrize("what", ["loaded", "stored"])
def test_contiguous_lanes_are_one_access_where_all_are_active(what: str, target: tuple[str, str], masked: bool, branches: bool) -> None:
    """Where that is not known, hosts that mask no lanes test it (of a load: whether all are on one page)."""
    m = machine(target)
    on = Value(m, bool_, 16, "%on") if masked else None
    if what == "loaded":
        m.load(u32, memory(m), m.lane_index(16) * 4, on)
    else:
        m.store(m.lane_index(16), memory(m), m.lane_index(16) * 4, on)
    assert any(line.startswith(what) for line in map(str, m.ir.lines)) is branches


@pytest.mark.parametrize("target", [None, NEON, AVX512], ids=str)
def test_divergent_lanes_reach_the_last_offset_of_32_bits(target: tuple[str, str] | None) -> None:
    """In memory that cannot be missing, which goes on after it; written for this host and for others."""
    m, size = LlvmMachine() if target is None else machine(target), (1 << 32) + 4096
    here = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), str(size), "%context", True))
    m.store(m.load(u32, here, m.load_block(u32, 4, here, m.constant(u64, 0, 1))), here, m.lane_index(4) * 4)
    memory = np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000), np.uint8)  # MAP_NORESERVE
    memory[:16] = np.array([0xFFFFFFFF, 0xFFFFFFFE, 64, 0xFFFFFFFC], np.uint32).view(np.uint8)
    memory[64:68], memory[(1 << 32) - 4 : (1 << 32) + 3] = [9, 8, 7, 6], np.arange(1, 8)
    finished(m)(memory)
    assert memory[:16].reshape(4, 4).tolist() == [[4, 5, 6, 7], [3, 4, 5, 6], [9, 8, 7, 6], [1, 2, 3, 4]]


@pytest.mark.parametrize("in_loop, quiet, stride, what, many", [
    (True, False, 4, "read", 1), (False, False, 4, "read", 0), (True, True, 4, "read", 0), (True, False, 64, "read", 0),
    (True, False, 0, "read", 0), (True, False, 4, "write", 0),
])  # fmt: skip
def test_contiguous_loads_in_loops_are_prefetched(in_loop: bool, quiet: bool, stride: int, what: str, many: int) -> None:
    m = machine()
    m.addressing.in_loop, offsets = in_loop, m.lane_index(8) * stride
    if what == "read":
        m.load(u32, memory(m, quiet), offsets)
    else:
        m.store(m.lane_index(8), memory(m, quiet), offsets)
    assert sum("@llvm.prefetch" in line for line in map(str, m.ir.lines)) == many


def test_a_prefetch_is_four_steps_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the load reads four iterations later, where it steps on as it did; seen by a store in place of the prefetch."""
    intrinsic = LlvmText.intrinsic

    def seen(ir: LlvmText, name: str, result: str, operands: list[tuple[str, str]], overloads: tuple[str, ...]) -> str:
        if name != "llvm.prefetch":
            return intrinsic(ir, name, result, operands, overloads)
        ir.line(f"store i64 {ir.emit(f'ptrtoint ptr {operands[0][1]} to i64')}, ptr %seen")
        return ""

    monkeypatch.setattr(LlvmText, "intrinsic", seen)
    m = LlvmMachine()
    m.addressing.in_loop, count = True, m.variable(m.constant(u32, 0, 1))
    m.ir.line("%seen = getelementptr i64, ptr %context, i64 63")
    for _ in m.While(lambda: count.value < 3):
        m.load(u32, memory(m), m.lane_index(8) * 4 + m.broadcast(count.value * 160, 8))
        count.value = count.value + 1
    data = np.zeros(1024, np.uint32)
    assert int(finished(m)(data)[63]) - data.ctypes.data == (2 + 4) * 160

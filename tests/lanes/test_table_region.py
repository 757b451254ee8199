"""Graphics memory that compiled programs reach through a table: the same as the NumPy machine does to the same addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.lanes.compile import jit
from softgen.lanes.llvm.access import BLOCK, SIZE_SHIFT, TABLE
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import LEAVE, FlatRegion, TableRegion, region, table_region
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import LaneType, u8, u16, u32, u64
from softgen.lanes.value import Region, Value
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer

SIZE = 0x2000  # bytes, of which the first half is the end of one part of 4 GiB and the rest the beginning of the next
START = (1 << 32) - SIZE // 2
BASE = 0x7000_0000
Program = Callable[[Machine, Region], None]


class Addresses:
    """The bytes from an address on, for the NumPy machine."""

    name = "addresses"

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def inside(self, offsets: np.ndarray, width: int) -> np.ndarray:
        return np.ones(len(offsets), np.bool_)

    def load(self, offsets: np.ndarray, width: int, mask: np.ndarray) -> np.ndarray:
        found = np.zeros((len(offsets), width), np.uint8)
        for lane, place in self.places(offsets, mask):
            found[lane] = self.data[place - START : place - START + width]
        return found

    def store(self, offsets: np.ndarray, data: np.ndarray, mask: np.ndarray) -> None:
        for lane, place in self.places(offsets, mask):
            self.data[place - START : place - START + data.shape[1]] = data[lane]

    def places(self, offsets: np.ndarray, mask: np.ndarray, access: str = "") -> list[tuple[int, int]]:
        return [(int(lane), BASE + int(offsets[lane])) for lane in np.flatnonzero(mask)]


def compiled(data: np.ndarray, program: Program, canonical: bool) -> np.ndarray:
    """Runs a program on data; the note that it leaves."""
    m = LlvmMachine()
    program(m, table_region(m, m.pointer("table"), m.argument(u64, "base"), m.pointer("note"), bits=48, canonical=canonical))
    m.give()
    m.code.frame("f", None, [Parameter("table"), Parameter("base", u64), Parameter("note")])
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), imports={"guard_leave": 1})
    table, note = np.zeros(4, np.uint64), np.zeros(64, np.uint64)
    table[0] = (data.ctypes.data - START) % (1 << 64)
    table[1] = data.ctypes.data + SIZE // 2
    ctypes.CFUNCTYPE(None, *(ctypes.c_uint64 for _ in range(3)))(code.address("f"))(table.ctypes.data, BASE, note.ctypes.data)
    return note


def offsets(m: Machine, *places: int) -> Value:
    """Offsets of 32 bits to bytes of the data: most are in the upper half of what 32 bits count."""
    return m.constant(u32, [START + place - BASE for place in places])


def anywhere(m: Machine, memory: Region) -> None:
    near, across = offsets(m, 16, 4, 44, 400, 8, 72, 20, 36), offsets(m, 16, 0xFFC, 0x1000, 0x1404, 0xFF8, 72, 0x1FF0, 36)
    beyond = offsets(m, 0x1400, 0x1008, 0x1F00, 0x1010, 0x1080, 0x1404, 0x1FE0, 0x1100)
    astray = offsets(m, 96, 4, 0x1500, 44, 8, 0x1FE0, 20, 36)
    mask = m.mask_from_bits(0b1101_1011, 8)  # the lanes of `astray` that are off are in the other part
    for at in (near, across, beyond, astray):
        for type in (u8, u16, u32, u64):
            m.store(m.load(type, memory, at, mask) + 1, memory.moved(2), at, mask)
            m.store(m.load(type, memory, at) + 1, memory.moved(6), at)


def atomics(m: Machine, memory: Region) -> None:
    """All lanes in one part, in the other, and in both; some at one place."""
    low, high = (16, 4, 44, 16, 8, 72, 16, 36), (0x1000, 0x1F00, 0x1404, 0x1000, 0x1010, 0x1080, 0x1404, 0x1FF0)
    for at in (low, high, (*low[:4], *high[4:])):
        old = m.atomic("add", memory, offsets(m, *at), [m.lane_index(8) + 1], m.mask_from_bits(0b1110_1111, 8))
        m.store(old, memory.moved(0x300 + at[0]), offsets(m, *range(0, 32, 4)))


def adjacent(m: Machine, memory: Region) -> None:
    """Two and four elements of lanes in one part and in both, of known strides and anywhere; two elements are one value."""
    strides = (m.lane_index(8) * stride + (START + first - BASE) for stride in (16, 32, 0x180) for first in (8, 0xF80))
    near, overlapping = offsets(m, 16, 48, 0xC0, 0x80, 0x1100, 0x40, 0x20, 0x90), offsets(m, 16, 52, 0xC4, 0x88, 0x1100, 0x44, 0x28, 0xC8)
    for at in (*strides, near, overlapping):
        for count in (2, 4):
            found = m.load_adjacent(u32, count, memory, at)
            m.store_adjacent([found[-1] + 1, *found[1:-1], found[0]], memory, at)
            m.store_adjacent([found[0]] * count, memory.moved(4), at, m.mask_from_bits(0b0111_1101, 8))
            m.store_adjacent([found[1], found[1], *found[2:]], memory.moved(0x200), at)


def blocks(m: Machine, memory: Region) -> None:
    """Across the end of a part."""
    for first in (0x100, 0xFF4, 0x1800):
        block = m.load_block(u32, 8, memory, m.constant(u64, START + first - BASE, 1))
        m.store_block(block + 1, memory.moved(12), m.constant(u64, START + first - BASE, 1), m.mask_from_bits(0b1011_0110, 8))


def bounds(m: Machine, memory: Region) -> None:
    """A table has none."""
    at = offsets(m, 0, 8, 16, 0x1FF0)
    m.store(m.lane_index(4) + 7, memory, at, m.inside(memory, at, 4))


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("program", [anywhere, atomics, adjacent, blocks, bounds])
def test_both_machines_do_the_same_to_addresses(program: Program, canonical: bool) -> None:
    before = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    first, second, m = before.copy(), before.copy(), NumpyMachine()
    program(m, Region(m, Addresses(first)))
    compiled(second, program, canonical)
    assert np.flatnonzero(first != second).tolist() == []
    assert (first != before).sum() > 3


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("what", ["read", "write"])
@pytest.mark.parametrize("lanes, type", [(8, u32), (16, u8), (32, u64)], ids=str)
def test_the_note_of_a_block_has_its_size_and_graphics_address(lanes: int, type: LaneType, what: str, canonical: bool) -> None:
    """It is marked as one without lanes, and as an address of a table."""
    def act(m: Machine, memory: Region) -> None:
        at = m.constant(u64, START + 12 - BASE, 1)
        if what == "read":
            assert m.load_block(type, lanes, memory, at).lanes == lanes
        else:
            m.store_block(m.lane_index(lanes, type), memory, at)

    note = compiled(np.zeros(SIZE, np.uint8), act, canonical)
    assert note[:2].tolist() == [BLOCK | TABLE | lanes * type.bytes << SIZE_SHIFT, START + 12]


@pytest.mark.parametrize("given, canonical", [({}, False), ({"canonical": False}, False), ({"canonical": True}, True)])
def test_blocks_are_checked_where_addresses_must_be_canonical(given: dict[str, bool], canonical: bool) -> None:
    m = LlvmMachine()
    memory = table_region(m, m.pointer("table"), m.argument(u64, "base"), m.pointer("note"), 48, **given)
    m.load_block(u32, 8, memory, m.constant(u64, 0, 1))
    assert any(f"@{LEAVE}(" in line for line in m.ir.lines) == canonical


def test_lanes_in_one_part_need_one_entry_of_the_table() -> None:
    """Gathers and scatters have indices of 32 bits then; only lanes in several parts gather entries of the table first."""
    m = LlvmMachine()
    memory = table_region(m, m.pointer("table"), m.argument(u64, "base"), m.pointer("note"), bits=48)
    at = offsets(m, 16, 4, 44, 400, 8, 72, 20, 36)
    m.store(m.load(u32, memory, at), memory.moved(4), at)
    m.give()
    m.code.frame("f", None, [Parameter("table"), Parameter("base", u64), Parameter("note")])
    functions = m.ir.module.text().replace("\n}", "define ").split("define ")
    for what, act in (("read", "gather"), ("write", "scatter")):
        (body,) = [text for text in functions if f"@{what}_u32x8_table48_u32(" in text.partition("\n")[0]]
        near, apart = body.split("\npart", 1)[1].split("\nparts", 1)
        assert near.count("sext <8 x i32>") == near.count(f"masked.{act}.v8i32") == 1 and "v8i64" not in near
        assert apart.count("masked.gather.v8i64") == apart.count(f"masked.{act}.v8i32") == 1


def test_adjacent_elements_in_one_part_need_one_entry_of_the_table() -> None:
    m = LlvmMachine()
    memory = table_region(m, m.pointer("table"), m.argument(u64, "base"), m.pointer("note"), bits=48)
    m.load_adjacent(u32, 4, memory, offsets(m, 16, 48, 0xC0, 0x80, 0x1100, 0x40, 0x20, 0x90))
    near, apart = m.ir.module.internals["read_4_u32x8_table48_u32"].split("\npart", 1)[1].split("\nparts", 1)
    assert "masked.gather" not in near and apart.count("masked.gather.v8i64") == 1


def test_atomics_in_one_part_need_one_entry_of_the_table() -> None:
    """It is read before the lanes take turns. Without a table, lanes are counted from one pointer."""
    m = LlvmMachine()
    tabled = table_region(m, m.pointer("table"), m.argument(u64, "base"), m.pointer("note"), bits=48)
    flat = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context"))
    for memory in (tabled, flat):
        m.atomic("add", memory, offsets(m, 16, 4, 44, 400, 8, 72, 20, 36), [m.lane_index(8)])
    near, apart = m.ir.module.internals["add_u32x8_table48_u32"].split("\npart", 1)[1].split("\nparts", 1)
    assert "masked.gather" not in near and apart.count("masked.gather.v8i64") == 1
    turns = apart.split("\nplaces", 1)[1]
    assert turns.count("atomicrmw add") == 1 and "lshr" not in turns
    assert "<8 x ptr>" not in m.ir.module.internals["add_u32x8_flat_u32"]


# -- canonical addresses -------------------------------------------------------------------------------------------

PAGE, HALF = 4096, 1 << 47  # canonical addresses end here and go on with UPPER, which is the next page of a space of 48 bits
UPPER = (1 << 64) - HALF


def guarded(act: Callable[[LlvmMachine, Region], None]) -> np.ndarray:
    """Runs a program with a page on either side of the end of canonical addresses; its bytes."""
    m, space, buffer = LlvmMachine(), AddressSpace("context 1"), MemfdBuffer(2 * PAGE, "both")
    buffer.array[:] = np.arange(2 * PAGE) % 251
    space.map(HALF - PAGE, buffer)
    table, note = m.ir.emit("load ptr, ptr %argument"), m.ir.emit("getelementptr i64, ptr %argument, i64 1")
    act(m, region(m, TableRegion(table, "0", note, 48, canonical=True)))
    m.give()
    m.code.frame("f", None, [Parameter("argument")])
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave is not None
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), imports={LEAVE: leave})
    argument = np.zeros(64, np.uint64)
    argument[0] = ctypes.addressof(space.table)
    guard.call(code.address("f"), argument.ctypes.data, space)
    return buffer.array.copy()


def access(what: str, addresses: list[int], mask: int = 0xFF) -> Callable[[LlvmMachine, Region], None]:
    """An access of eight lanes: of a known stride, or anywhere in the two halves of a space."""

    def act(m: LlvmMachine, memory: Region) -> None:
        step, on = addresses[1] - addresses[0], None if mask == 0xFF else m.mask_from_bits(mask, 8)
        at = m.lane_index(8, u64) * step + addresses[0] if addresses == row(addresses[0], step) else m.constant(u64, addresses)
        if what == "read":
            m.store_block(m.load(u32, memory, at, on), memory, m.constant(u64, UPPER + 0x800, 1))
        elif what == "write":
            m.store(m.lane_index(8) + 0xAAAA, memory, at, on)
        elif what == "atomic":
            m.atomic("add", memory, at, [m.lane_index(8) + 0xAAAA], on)
        elif what == "read block":
            m.store_block(m.load_block(u32, 8, memory, m.constant(u64, addresses[0], 1), on), memory, m.constant(u64, UPPER + 0x800, 1))
        else:
            m.store_block(m.lane_index(8) + 0xAAAA, memory, m.constant(u64, addresses[0], 1), on)

    return act


def row(start: int, step: int = 4) -> list[int]:
    return [start + lane * step for lane in range(8)]


# Addresses, active lanes, and the one at fault.
@pytest.mark.parametrize("what", ["read", "write", "atomic"])
@pytest.mark.parametrize("addresses, mask, bad", [
    (row(HALF - 16), 0xFF, HALF), (row(HALF), 0xFF, HALF), (row(HALF, 0), 0xFF, HALF), (row(HALF - 16, 8), 0xFF, HALF),
    ([*row(UPPER)[:5], UPPER - 4, *row(HALF - 16)[:2]], 0xFF, UPPER - 4), ([*row(UPPER)[:5], UPPER - 4, HALF, UPPER], 0b1101_1111, HALF),
    (row(1 << 63), 0xFF, 1 << 63),
])  # fmt: skip
def test_the_lowest_lane_whose_address_is_not_canonical_is_at_fault(what: str, addresses: list[int], mask: int, bad: int) -> None:
    """An atomic is a write."""
    with pytest.raises(GpuFault) as fault:
        guarded(access(what, addresses, mask))
    kind = "read" if what == "read" else "write"
    assert str(fault.value) == f"{kind} at {bad:#x} in context 1: not a canonical address" and fault.value.address == bad


@pytest.mark.parametrize("what", ["read block", "write block"])
@pytest.mark.parametrize("start", [HALF, UPPER - 4])
def test_a_block_whose_first_address_is_not_canonical_is_at_fault(what: str, start: int) -> None:
    with pytest.raises(GpuFault, match=rf"^{what.split()[0]} at {start:#x} in context 1: not a canonical address$"):
        guarded(access(what, row(start)))


@pytest.mark.parametrize("addresses, mask", [
    (row(HALF - 32), 0xFF), (row(UPPER), 0xFF), (row(HALF - 4, 0), 0xFF), (row(UPPER, 0), 0xFF), (row(HALF - 64, 8), 0xFF),
    (row(UPPER, 8), 0xFF), ([*row(UPPER)[:5], *row(HALF - 12)[:3]], 0xFF), (row(HALF - 16), 0x0F),
    ([*row(UPPER)[:5], UPPER - 4, HALF, UPPER + 40], 0b1001_1111),
])  # fmt: skip
@pytest.mark.parametrize("what", ["read", "write", "atomic"])
def test_canonical_addresses_are_those_of_two_halves(what: str, addresses: list[int], mask: int) -> None:
    """Up to the last byte of the lower one, and from the first of the upper one on; inactive lanes do not count."""
    expected = (np.arange(2 * PAGE) % 251).astype(np.uint8)
    dwords, loaded = expected.view(np.uint32), np.zeros(8, np.uint32)
    for lane in (lane for lane in range(8) if mask >> lane & 1):
        place = (addresses[lane] - (HALF - PAGE)) % (1 << 48) // 4
        loaded[lane] = dwords[place]
        dwords[place] = {"read": dwords[place], "write": lane + 0xAAAA, "atomic": (int(dwords[place]) + lane + 0xAAAA) % (1 << 32)}[what]
    if what == "read":
        dwords[(PAGE + 0x800) // 4 :][:8] = loaded
    assert guarded(access(what, addresses, mask)).tolist() == expected.tolist()

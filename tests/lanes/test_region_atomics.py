"""Atomics of regions: with a lock, without one where no other host thread changes the memory, and in local memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.lanes.compile import jit
from softgen.lanes.llvm.access import ALONE
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import LEAVE, FlatRegion, region
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.operations import ATOMICS
from softgen.lanes.types import LaneType, bool_, i32, u32, u64
from softgen.lanes.value import Region, Value
from softgen.memory import guard
from softgen.shared_functions.context import ContextHead
from tests.lanes.test_region import Held

SIZE, LANES = 0x400, 8


def call(m: LlvmMachine, data: np.ndarray, note: np.ndarray) -> None:
    """Compile what was written, as a function of %block and %context, and call it."""
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %block, ptr %context)")
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), imports={"guard_leave": 1})
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(data.ctypes.data, note.ctypes.data)


def every(m: Machine, memory: Region, type: LaneType) -> None:
    """Each atomic on 64 bytes of its own, some lanes at one place, one inactive, one past the end; what was there is put beside them."""
    places = [0, 3, 1, 3, 1 << 20, 2, 0, 3]
    for number, op in enumerate(ATOMICS):
        here = memory.moved(64 * number)
        first = m.load_block(type, LANES, memory.moved(SIZE - 64), m.constant(u64, 0, 1))
        operands = [first] if op != "compare_exchange" else [m.load(type, here, m.constant(u32, [place * 8 for place in places])), first]
        old = m.atomic(op, here, m.constant(u32, [place * 8 for place in places]), operands, m.mask_from_bits(0b1101_1111, LANES))
        m.store_block(m.slice(old, 0, 32 // type.bytes), here.moved(32), m.constant(u64, 0, 1))


def test_whether_a_host_thread_is_alone_is_the_word_after_the_note() -> None:
    """The note is two words and an offset for each of 32 lanes; atomics of memory that others see read the word."""
    word = (ContextHead.alone.offset - ContextHead.mask.offset) // 8
    assert word == 34 == ALONE and (ContextHead.alone.size, ContextHead.base.offset - ContextHead.mask.offset) == (8, 8)
    for quiet in (False, True):
        m = LlvmMachine()
        memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "4096", "%context", quiet))
        m.atomic("add", memory, Value(m, u32, LANES, "%offsets"), [m.lane_index(LANES)])
        assert (f"getelementptr i64, ptr %a0, i64 {word}\n" in m.ir.module.text()) is not quiet


@pytest.mark.parametrize("type, offsets, mask, bad", [
    (u32, [0, 0x8000_0002, 0xF000_0001, 4], 0b1111, 0x8000_0002), (u32, [0, 0x8000_0002, 0xF000_0001, 4], 0b1101, 0xF000_0001),
    (u32, [0, 4, 6, 3], 0b1111, 6), (u64, [0, 8, 16, 0x7FFF_FFFC], 0b1111, 0x7FFF_FFFC),
])  # fmt: skip
@pytest.mark.parametrize("kind", [u32, u64], ids=str)
def test_the_offset_of_a_misaligned_atomic_is_at_fault(type: LaneType, offsets: list[int], mask: int, bad: int, kind: LaneType) -> None:
    """That of the lowest active lane; no lane has changed anything. Offsets have no sign."""
    m, data, argument = LlvmMachine(), np.zeros(8, np.uint64), np.zeros(64, np.uint64)
    block, note = m.ir.emit("load i64, ptr %argument"), m.ir.emit("getelementptr i64, ptr %argument, i64 1")
    memory = region(m, FlatRegion(block, str(1 << 32), note))
    m.atomic("add", memory, m.constant(kind, offsets), [m.lane_index(4, type) + 1], m.mask_from_bits(mask, 4))
    m.give()
    m.code.frame("f", None, [Parameter("argument")])
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave is not None
    code = jit.load(m.ir.module.text(), ("f",), Cache(None), imports={LEAVE: leave})
    argument[0] = data.ctypes.data
    with pytest.raises(GpuFault) as fault:
        guard.call(code.address("f"), argument.ctypes.data)
    assert fault.value.address == bad and not data.any()


FIRST, COUNT = 50, 51  # words of the note that a test has to itself


def overtaken(m: Machine, old: Value, more: Value) -> Value:
    """old * 2 + more. It counts its calls, and before the first one ends puts a number where the old one was, as another thread might."""
    assert isinstance(m, LlvmMachine)
    first, count = m.pointer("a0").at(8 * FIRST), m.pointer("a0").at(8 * COUNT)
    calls, place = count.load(u32), m.pointer("a1")
    put = first.load(u32)
    place.store(m.choose((calls == 0) & (put != 0), put, m.scalar(old)))
    count.store(calls + 1)
    return old * 2 + more


@pytest.mark.parametrize("alone, put, calls", [(0, 0, 1), (0, 100, 2), (1, 0, 1)])
def test_an_update_is_computed_again_where_another_thread_was_first(alone: int, put: int, calls: int) -> None:
    """Of the number that the other put there, which is what was there before; once if there was none."""
    m, data, note = LlvmMachine(), np.array([5, 0, 0, 0], np.uint32), np.zeros(64, np.uint64)
    memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "16", "%context"))
    old, new = m.update(u32, memory, m.constant(u32, [0]), [m.constant(u32, [3])], m.constant(bool_, 1, 1), overtaken)
    m.store_block(m.concat(old, new), memory, m.constant(u64, 8, 1))
    note[ALONE], note[FIRST] = alone, put
    call(m, data, note)
    was = put or 5
    assert data.tolist() == [was * 2 + 3, 0, was, was * 2 + 3] and int(note[COUNT]) == calls


def test_an_update_has_the_name_of_its_function() -> None:
    """Two without a name would be one."""
    m = LlvmMachine()
    memory = region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), "16", "%context"))
    with pytest.raises(TypeError, match="a function for update must have a name of its own, not <lambda>"):
        m.update(u32, memory, m.constant(u32, [0]), [], m.constant(bool_, 1, 1), lambda m, old: old + 1)
    m.update(u32, memory, m.constant(u32, [0]), [m.constant(u32, [3])], m.constant(bool_, 1, 1), overtaken)
    assert "overtaken_u32x1_flat_u32" in m.ir.module.internals


@pytest.mark.parametrize("type", [i32, u32, u64], ids=str)
@pytest.mark.parametrize("quiet, alone", [(True, 0), (False, 0), (False, 1)])
def test_atomics_are_the_same_with_and_without_a_lock(type: LaneType, quiet: bool, alone: int) -> None:
    first = np.random.default_rng(7).integers(0, 256, SIZE, np.uint8)
    second, before, numpy, m = first.copy(), first.copy(), NumpyMachine(), LlvmMachine()
    every(numpy, Region(numpy, Held(first)), type)
    every(m, region(m, FlatRegion(m.ir.emit("ptrtoint ptr %block to i64"), str(SIZE), "%context", quiet)), type)
    note = np.zeros(64, np.uint64)
    note[ALONE] = alone
    call(m, second, note)
    for number, op in enumerate(ATOMICS):
        part = slice(64 * number, 64 * number + 64)
        assert second[part].tolist() == first[part].tolist() != before[part].tolist(), op

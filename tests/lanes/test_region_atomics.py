"""Atomics of regions: with a lock, without one where no other host thread changes the memory, and in local memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from softgen.lanes import jit
from softgen.lanes.cache import Cache
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_access import ALONE
from softgen.lanes.llvm_region import FlatRegion, region
from softgen.lanes.machine import Machine
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.operations import ATOMICS
from softgen.lanes.types import LaneType, i32, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.context import ContextHead
from tests.lanes.test_region import Held

SIZE, LANES = 0x400, 8


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
        memory = region(m, FlatRegion(m.emit("ptrtoint ptr %block to i64"), "4096", "%context", quiet))
        m.atomic("add", memory, Value(m, u32, LANES, "%offsets"), [m.lane_index(LANES)])
        assert (f"getelementptr i64, ptr %a0, i64 {word}\n" in m.module.text()) is not quiet


@pytest.mark.parametrize("type", [i32, u32, u64], ids=str)
@pytest.mark.parametrize("quiet, alone", [(True, 0), (False, 0), (False, 1)])
def test_atomics_are_the_same_with_and_without_a_lock(type: LaneType, quiet: bool, alone: int) -> None:
    first = np.random.default_rng(7).integers(0, 256, SIZE, np.uint8)
    second, before, numpy, m = first.copy(), first.copy(), NumpyMachine(), LlvmMachine()
    every(numpy, Region(numpy, Held(first)), type)
    every(m, region(m, FlatRegion(m.emit("ptrtoint ptr %block to i64"), str(SIZE), "%context", quiet)), type)
    m.line("ret i64 0")
    m.define("i64 @f(ptr %block, ptr %context)")
    code, note = jit.load(m.module.text(), ("f",), Cache(None), imports={"guard_leave": 1}), np.zeros(64, np.uint64)
    note[ALONE] = alone
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(second.ctypes.data, note.ctypes.data)
    for number, op in enumerate(ATOMICS):
        part = slice(64 * number, 64 * number + 64)
        assert second[part].tolist() == first[part].tolist() != before[part].tolist(), op

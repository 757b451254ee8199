"""Adjacent elements of lanes at pointers: chunks, and a vector for each element."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.lanes.llvm.access import AccessShape
from softgen.lanes.llvm.adjacent import load_chunks, store_chunks
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import LaneType, f32, i32, u32

STRIDE = 20  # bytes from a lane's chunk to the next one's


def shape_of(what: str, type: LaneType, lanes: int, count: int) -> AccessShape:
    return AccessShape(what, type, lanes, False, False, True, 48, False, count)


def run(m: LlvmMachine, block: np.ndarray, other: np.ndarray) -> None:
    m.ir.line("ret i64 0")
    m.ir.define("i64 @f(ptr %block, ptr %other)")
    code = jit.load(m.ir.module.text(), ("f",), Cache(None))
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))(block.ctypes.data, other.ctypes.data)


@pytest.mark.covering(2)
@pytest.mark.parametrize("type", [u32, i32, f32], ids=str)
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_chunks_become_vectors_and_vectors_chunks(count: int, lanes: int, type: LaneType) -> None:
    """A chunk is one load; two dwords are loaded as a qword, whose halves are taken apart by one instruction each."""
    m = LlvmMachine()
    pointers = [m.ir.emit(f"getelementptr i8, ptr %block, i64 {STRIDE * lane}") for lane in range(lanes)]
    before = len(m.ir.lines)
    vectors, vector = load_chunks(m.ir, shape_of("read", type, lanes, count), pointers), m.ir.vector(type, lanes)
    written = [str(line) for line in m.ir.lines[before:]]
    chunk = "i64" if count == 2 else f"<{count} x {m.ir.element(type)}>"
    assert len(vectors) == count and [f"= load {chunk}, ptr" in line for line in written if " load " in line] == [True] * lanes
    assert count > 2 or sum("shufflevector" in line for line in written) == 2
    for number, text in enumerate(vectors):
        m.ir.line(f"store {vector} {text}, ptr {m.ir.emit(f'getelementptr i8, ptr %other, i64 {4 * lanes * number}')}, align 1")
    block, found = np.random.default_rng(count).integers(0, 1 << 32, 5 * lanes, np.uint32), np.zeros((count, lanes), np.uint32)
    run(m, block, found)
    assert (found == block.reshape(lanes, 5)[:, :count].T).all()
    m = LlvmMachine()
    places = [m.ir.emit(f"getelementptr i8, ptr %other, i64 {4 * lanes * number}") for number in range(count)]
    values = [m.ir.emit(f"load {vector}, ptr {place}, align 1") for place in places]
    pointers = [m.ir.emit(f"getelementptr i8, ptr %block, i64 {STRIDE * lane}") for lane in range(lanes)]
    store_chunks(m.ir, shape_of("write", type, lanes, count), values, pointers)
    copied = np.zeros_like(block)
    run(m, copied, found)
    expected = block.reshape(lanes, 5).copy()
    expected[:, count:] = 0
    assert (copied.reshape(lanes, 5) == expected).all()

"""Loads, stores and atomics on both machines, in bounds and out."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.operations import ATOMICS
from softgen.lanes.types import FLOATS, INTEGERS, LaneType, bool_, i32, i64, u8, u32, u64
from softgen.lanes.value import Memory, Value
from tests.conftest import ROOT
from tests.lanes import reference
from tests.lanes.both import agree, compile_, on_numpy

LANES = 8


def copy(type: LaneType) -> tuple[Any, Signature]:
    """Gathers, scatters, reads and writes a block, each under the mask and once without."""
    def program(m: Machine, source: Memory, target: Memory, offsets: Value, mask: Value) -> Value:
        found = m.load(type, source, offsets, mask)
        m.store(found, target, offsets)
        m.store(m.load(type, source, offsets), target, m.convert(offsets, u64) + 200, mask)
        start = m.slice(offsets, 0, 1)
        m.store_block(m.load_block(type, LANES, source, start, mask), target, start + 400)
        m.store_block(m.load_block(type, LANES, source, 3), target, 600, mask)
        return found
    return program, Signature((Bytes("source"), Bytes("target"), Lanes(u32, LANES), Lanes(bool_, LANES)), (Lanes(type, LANES),))


@pytest.mark.parametrize("type", [*INTEGERS, *FLOATS], ids=str)
def test_lanes_and_blocks(type: LaneType) -> None:
    program, signature = copy(type)
    rng = np.random.default_rng(type.bits)
    routine = compile_(program, signature)
    for _ in range(10):
        source = rng.integers(0, 256, 700, np.uint8)
        offsets, mask = rng.integers(0, 100, LANES, np.uint32), rng.integers(0, 2, LANES).astype(np.bool_)
        found, = agree(program, signature, [source, np.zeros(700, np.uint8), offsets, mask], routine, any_nan=False)
        pieces = [source[at:at + type.bytes] if held else np.zeros(type.bytes, np.uint8) for at, held in zip(offsets, mask, strict=True)]
        assert found.tobytes() == np.concatenate(pieces).tobytes()


def test_the_highest_lane_wins() -> None:
    def program(m: Machine, memory: Memory) -> Value:
        m.store(m.lane_index(8), memory, m.constant(u32, 4, 8))
        m.store(m.lane_index(8) + 16, memory, m.lane_index(8))
        return m.load_block(u32, 4, memory, 0)

    found, = agree(program, Signature((Bytes(),), (Lanes(u32, 4),)), [np.zeros(16, np.uint8)])
    assert found.view(np.uint8)[:12].tolist() == [*range(16, 24), 0, 0, 0, 0]


def last_word(m: Machine, memory: Memory, offsets: Value, mask: Value) -> Value:
    return m.load(u32, memory, offsets, mask)


WORDS = Signature((Bytes("words"), Lanes(u64, 4), Lanes(bool_, 4)), (Lanes(u32, 4),))
ALL = np.ones(4, np.bool_)


@pytest.mark.parametrize("offset", [60, 61, 64, 2**31, 2**32 + 3, 2**63, 2**64 - 4, 2**64 - 1])
def test_the_end_of_memory(offset: int) -> None:
    memory = np.arange(64, dtype=np.uint8)
    offsets = np.array([0, 4, offset, 2**64 - 2], np.uint64)
    for mask in (ALL, np.array([1, 1, 1, 0], np.bool_), np.array([1, 1, 0, 0], np.bool_)):
        agree(last_word, WORDS, [memory, offsets, mask])
    routine = compile_(last_word, WORDS)
    if offset == 60:
        assert routine(memory, offsets, np.array([1, 1, 1, 0]))[0][2] == 0x3F3E3D3C
    else:
        with pytest.raises(GpuFault) as fault:
            routine(memory, offsets, ALL)
        assert (fault.value.address, fault.value.access, fault.value.space) == (offset, "read", "words")


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_memory_smaller_than_a_lane(size: int) -> None:
    with pytest.raises(GpuFault):
        on_numpy(last_word, WORDS, [np.zeros(size, np.uint8), np.zeros(4, np.uint64), ALL])
    agree(last_word, WORDS, [np.zeros(size, np.uint8), np.zeros(4, np.uint64), ALL])
    agree(last_word, WORDS, [np.zeros(size, np.uint8), np.zeros(4, np.uint64), ~ALL])


def everything(m: Machine, memory: Memory, other: Memory, a: Value, b: Value, c: Value, d: Value) -> None:
    m.load_block(u32, 4, memory, a)
    m.store(m.constant(u8, 1), other, b)
    m.store_block(m.constant(u8, 1, 4), other, c)
    m.atomic("add", memory, d, [m.constant(u32, 1)])


@pytest.mark.parametrize(("at", "fault"), [
    ((100, 100, 100, 100), (100, "read", "first")),
    ((52, 100, 100, 100), (64, "read", "first")),       # the block's last lane
    ((0, 32, 0, 0), (32, "write", "second")),
    ((0, 0, 30, 0), (32, "write", "second")),
    ((0, 0, 0, 64), (64, "atomic", "first")),
    ((0, 0, 0, 6), (6, "atomic", "first")),
    ((0, 0, 0, 0), None),
])
def test_the_first_fault_in_program_order_is_told(at: tuple[int, ...], fault: Any) -> None:
    signature = Signature((Bytes("first"), Bytes("second"), *[Lanes(u32, 1)] * 4))
    inputs = [np.zeros(64, np.uint8), np.zeros(32, np.uint8), *(np.array([item], np.uint32) for item in at)]
    agree(everything, signature, inputs)
    if fault is None:
        return
    with pytest.raises(GpuFault) as caught:
        compile_(everything, signature)(*inputs)
    assert (caught.value.address, caught.value.access, caught.value.space) == fault
    assert ("multiple" in caught.value.why) == (at[3] == 6)


# What memory holds after each atomic: of what it held before, and the operands.
AFTER: dict[str, Callable[[int, int, int], int]] = {
    "exchange": lambda before, a, b: a,
    "add": lambda before, a, b: before + a,
    "sub": lambda before, a, b: before - a,
    "and": lambda before, a, b: before & a,
    "or": lambda before, a, b: before | a,
    "xor": lambda before, a, b: before ^ a,
    "min": lambda before, a, b: min(before, a),
    "max": lambda before, a, b: max(before, a),
    "compare_exchange": lambda before, a, b: b if before == a else before,
}


def test_there_are_no_other_atomics() -> None:
    assert set(ATOMICS) == set(AFTER)


@pytest.mark.parametrize("op", AFTER)
@pytest.mark.parametrize("type", [i32, u32, i64, u64], ids=str)
def test_atomics(op: str, type: LaneType) -> None:
    """Lanes that meet in one place act in order, lowest first; the old values tell."""
    def program(m: Machine, memory: Memory, offsets: Value, a: Value, b: Value, mask: Value) -> Value:
        return m.atomic(op, memory, offsets, [a, b] if op == "compare_exchange" else [a], mask)

    signature = Signature((Bytes(), Lanes(u32, LANES), Lanes(type, LANES), Lanes(type, LANES), Lanes(bool_, LANES)), (Lanes(type, LANES),))
    rng, routine = np.random.default_rng(7), compile_(program, signature)
    for _ in range(6):
        a, b = (rng.integers(-3, 3, LANES).astype(f"{type.name[0]}{type.bytes}") for _ in range(2))
        memory = rng.integers(-2, 3, 4).astype(a.dtype).view(np.uint8)
        offsets = (rng.integers(0, 4, LANES) * type.bytes).astype(np.uint32)
        mask = rng.integers(0, 4, LANES) > 0
        found, = agree(program, signature, [memory, offsets, a, b, mask], routine)
        assert found.tolist() == one_by_one(op, type, memory.view(a.dtype).tolist(), (offsets // type.bytes).tolist(), a, b, mask)


def one_by_one(op: str, type: LaneType, cells: list[int], places: list[int], a: Any, b: Any, mask: Any) -> list[int]:
    old = []
    for place, x, y, held in zip(places, a.tolist(), b.tolist(), mask, strict=True):
        before = cells[place]
        old.append(before if held else 0)
        if held:
            cells[place] = reference.wrap(type, AFTER[op](before, x, y))
    return old


def test_what_is_not_an_atomic_is_a_loop_around_one() -> None:
    """A float maximum, with lanes that meet."""
    def program(m: Machine, memory: Memory, offsets: Value, operand: Value) -> None:
        pending = m.variable(m.constant(bool_, 1, LANES))
        old = m.variable(m.load(u32, memory, offsets))
        for _ in m.While(lambda: m.any(pending.value)):
            held = m.bitcast(old.value, operand.type)
            new = m.bitcast(m.select(held < operand, operand, held), u32)
            found = m.atomic("compare_exchange", memory, offsets, [old.value, new], pending.value)
            pending.value = pending.value & (found != old.value)
            old.value = m.select(pending.value, found, old.value)

    signature = Signature((Bytes(), Lanes(u32, LANES), Lanes(FLOATS[1], LANES)))
    numbers = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    memory = np.zeros(2, np.float32)
    compile_(program, signature)(memory, np.array([0, 4] * 4, np.uint32), numbers)
    assert memory.tolist() == [5.0, 9.0]
    agree(program, signature, [np.zeros(2, np.float32), np.array([0, 4] * 4, np.uint32), numbers])


def test_memory_that_is_not_checked_is_read_without_a_mask() -> None:
    def program(m: Machine, memory: Memory) -> Value:
        return m.load_block(u32, 8, memory, 0) + m.load_block(u32, 8, memory, 32)

    signature = Signature((Bytes(checked=False),), (Lanes(u32, 8),))
    found, = agree(program, signature, [np.arange(16, dtype=np.uint32)])
    assert found.tolist() == [8 + 2 * n for n in range(8)]
    assert "masked" not in compile_(program, signature).ir


def test_the_numpy_machine_needs_no_llvm() -> None:
    code = """
        import sys
        import numpy as np
        from softgen.lanes.numpy.machine import NumpyMachine
        from softgen.lanes.types import f32
        import softgen.lanes.llvm.machine, softgen.lanes.compile.jit, softgen.lanes.compile.routine
        m = NumpyMachine()
        assert (m.constant(f32, 2.0) * 3.0).payload[0] == 6.0
        assert not any(name.startswith("llvmlite") for name in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=ROOT)

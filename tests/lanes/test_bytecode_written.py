"""What the bytecode machine writes: the shorter ways to operations and constants, control, results, and memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.scalar import ScalarBytecode
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.types import TYPES, LaneType, bool_, f16, f32, f64, i32, u8, u32, u64
from softgen.lanes.value import Memory, Value
from tests.lanes.both import agree
from tests.lanes.bytecode.test_machine import Interpreted, call

CONTEXT = np.zeros(64, np.uint64)


def run(m: BytecodeMachine, result: Value | None = None, *arguments: int) -> int:
    return call(m.program(0, 0, result).address, CONTEXT.ctypes.data, *arguments)


@pytest.mark.parametrize("type", [type for type in TYPES if type not in (f16, bool_)], ids=str)
@pytest.mark.parametrize("act", [
    lambda m, a, b: a + b, lambda m, a, b: a - 3, lambda m, a, b: a < b, lambda m, a, b: a == 5, lambda m, a, b: -a, lambda m, a, b: a != b,
], ids=["+", "- number", "<", "== number", "negate", "!="])  # fmt: skip
def test_an_operation_that_is_known_is_written_as_the_first_of_its_kind(act: Callable[..., Value], type: LaneType,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """The first one takes the way of all machines, later ones a shorter one."""
    monkeypatch.setattr(BytecodeMachine, "_rows", {})
    monkeypatch.setattr(BytecodeMachine, "_data", {})
    written = []
    for turn in range(2):
        m = BytecodeMachine()
        a, b = (m.load_block(type, 6, m.memory_of(number), 0) for number in (1, 2))
        with patch.object(Machine, "_apply", side_effect=AssertionError) if turn else nullcontext():
            found = act(m, a, b)
        written.append((m.code.operations, m.code.sizes, bytes(m.code._pool), found.type, found.lanes, found.payload))
    assert written[0] == written[1]


@pytest.mark.parametrize("type", [f32, f64], ids=str)
def test_an_operation_with_three_operands_is_written_as_before(type: LaneType) -> None:
    """None of them is left out in a later one."""
    for _ in range(3):
        m = BytecodeMachine()
        a, b, c = (m.constant(type, number, 1) for number in (3.0, 5.0, 0.5))
        assert run(m, m.convert(m.fma(a, b, c) * m.constant(type, 2.0, 1), u64)) == 31


def test_a_constant_has_one_lane_where_no_number_is_said() -> None:
    for _ in range(2):
        m = BytecodeMachine()
        one, many, other = m.constant(u32, 7), m.constant(u32, 7, 3), m.bitcast(m.constant(f64, 1.5), u64)
        assert (one.lanes, many.lanes, other.lanes) == (1, 3, 1) and run(m, m.convert(one, u64) + other) == (0x3FF8 << 48) + 7


@pytest.mark.parametrize("type, value, bits", [
    (f32, 1e39, 0x7F800000), (f32, -1e39, 0xFF800000), (f16, 1e6, 0x7C00), (f16, -70000.0, 0xFC00), (f32, 3.4028235e38, 0x7F7FFFFF),
])  # fmt: skip
def test_constants_beyond_the_largest_float_are_infinite(type: LaneType, value: float, bits: int) -> None:
    """Alone, and beside others."""
    for lane, write in ((3, lambda m: m.constant(type, value, 4)), (1, lambda m: m.constant(type, [1.0, value]))):
        m = BytecodeMachine()
        assert run(m, m.shuffle(m.bitcast(write(m), type.unsigned), [lane])) == bits


@pytest.mark.parametrize("type, found", [(u8, 0x7F), (u32, 0x8D7E6F7F), (u64, 0x1234_5678_8D7E_6F7F)], ids=str)
def test_a_result_is_extended_with_zeros(type: LaneType, found: int) -> None:
    """Whatever an earlier program left on the stack; a program without one returns 0."""
    filled = BytecodeMachine()
    filled.variable(filled.constant(u64, u64.highest, 128))
    left, m, nothing = filled.program(0, 0), BytecodeMachine(), BytecodeMachine()
    programs = m.program(0, 0, m.argument(1, type)), nothing.program(0, 0)
    for program, expected in zip(programs, (found, 0), strict=True):
        call(left.address, CONTEXT.ctypes.data)
        assert call(program.address, CONTEXT.ctypes.data, 0x1234_5678_8D7E_6F7F) == expected


def test_addresses_have_48_bits_unless_said_otherwise() -> None:
    assert BytecodeMachine().program(0, 0).record.address_mask == (1 << 48) - 1
    record = BytecodeMachine(bits=31).program(16, 24).record
    assert (record.address_mask, record.table_at, record.note_at) == ((1 << 31) - 1, 16, 24)


def test_memory_that_programs_answer_for_is_not_checked() -> None:
    m, scalar = BytecodeMachine(), ScalarBytecode()
    block = scalar.pointer("block")
    memories = [m.memory_of(1), m.memory_at(m.argument(1), 64), block.memory(), block.at(8).memory("other")]
    assert not any(memory.checked for memory in memories) and [memory.name for memory in memories] == ["memory"] * 3 + ["other"]


def nested(m: Machine, a: Value, b: Value) -> Value:
    """If and Else in each other and in a loop, without and with something in their branches."""
    total, count = m.variable(a), m.variable(m.constant(u32, 0, 1))
    for _ in m.While(lambda: count.value < 6):
        odd = (count.value & 1) != 0
        for _ in m.If(odd):
            for _ in m.If(count.value > 2):
                total.value = total.value + 100
            for _ in m.Else():
                total.value = total.value * 3
        for _ in m.Else():
            for _ in m.If(count.value == 4):
                pass
            for _ in m.Else():
                total.value = total.value - b
            for _ in m.While(lambda: m.any(total.value > 500)):
                total.value = total.value >> 1
        for _ in m.If(~odd):
            total.value = total.value ^ 5
        count.value = count.value + 1
    return total.value


def test_branches_and_loops_in_each_other() -> None:
    shape = Lanes(u32, 8)
    routine: Any = Interpreted(nested, Signature((shape, shape), (shape,)))
    rng = np.random.default_rng(5)
    for _ in range(4):
        agree(nested, Signature((shape, shape), (shape,)), [rng.integers(0, 1000, 8, np.uint32) for _ in range(2)], routine)


def after_something(m: BytecodeMachine) -> None:
    for _ in m.If(m.argument(1) == 0):
        pass
    m.store_block(m.argument(2), m.memory_of(3), 0)


def after_an_else(m: BytecodeMachine) -> None:
    for _ in m.If(m.argument(1) == 0):
        pass
    for _ in m.Else():
        pass


def after_a_loop(m: BytecodeMachine) -> None:
    for _ in m.If(m.argument(1) == 0):
        pass
    for _ in m.While(lambda: m.argument(1) == 0):
        pass


@pytest.mark.parametrize("before", [after_something, after_an_else, after_a_loop, lambda m: None])
def test_an_else_follows_its_if_at_once(before: Callable[[BytecodeMachine], None]) -> None:
    m = BytecodeMachine()
    before(m)
    with pytest.raises(TypeError, match="Else must follow an If"):
        next(iter(m.Else()))


def test_an_else_is_not_one_of_an_if_around_it() -> None:
    m = BytecodeMachine()
    for _ in m.If(m.argument(1) == 0):
        with pytest.raises(TypeError, match="Else must follow an If"):
            next(iter(m.Else()))


def test_lanes_are_appended_and_all_graphics_memory_is_inside() -> None:
    """What is behind a table faults by itself: bytecode knows no bounds of a region."""
    def program(m: Machine, memory: Memory, a: Value, mask: Value) -> Value:
        cursor = m.append(a, memory, m.constant(u32, 4, 1), mask)
        return m.append(a + 1, memory, cursor, ~mask)

    signature = Signature((Bytes(), Lanes(u32, 8), Lanes(bool_, 8)), (Lanes(u32, 1),))
    routine: Any = Interpreted(program, signature)
    rng = np.random.default_rng(6)
    for _ in range(3):
        inputs = [np.zeros(80, np.uint8), rng.integers(0, 1 << 32, 8, np.uint32), rng.integers(0, 2, 8).astype(np.bool_)]
        assert agree(program, signature, inputs, routine)[0].tolist() == [4 + 8 * 4]
    m = BytecodeMachine()
    inside = m.inside(m.graphics_memory(m.argument(1)), m.constant(u32, [0, 5, u32.highest, 64]), 4)
    assert run(m, m.bits_from_mask(inside, u32)) == 0b1111


@pytest.mark.parametrize("moved", [-16, -3, 0, 7])
def test_graphics_memory_may_begin_before_its_base(moved: int) -> None:
    data = np.arange(100, 164, dtype=np.uint8)
    m = BytecodeMachine()
    found = m.load(u8, m.graphics_memory(m.argument(1)).moved(moved), m.argument(2, u32))
    table, context = np.zeros(4, np.uint64), np.zeros(64, np.uint64)
    table[1] = data.ctypes.data
    context[0] = table.ctypes.data
    assert call(m.program(0, 8, found).address, context.ctypes.data, (1 << 32) + 20, 5) == 100 + 25 + moved


def test_shifts_keep_to_the_bits_of_their_type() -> None:
    m = BytecodeMachine()
    program = m.program(0, 0, m.bitcast(m.argument(1, i32) >> m.argument(2, i32), u32))
    assert [call(program.address, CONTEXT.ctypes.data, 0xFFFFFF00, count) for count in (4, 36)] == [0xFFFFFFF0] * 2

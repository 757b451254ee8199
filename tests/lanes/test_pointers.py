"""Calls by address, records, appending and permuting: the same on both machines."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError
from softgen.lanes import function_type
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.function import LaneFunction
from softgen.lanes.function_type import FunctionType
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine
from softgen.lanes.record import RecordField, RecordLayout
from softgen.lanes.types import FLOATS, INTEGERS, LaneType, bool_, f16, f32, f64, i8, i32, u8, u16, u32, u64
from softgen.lanes.value import Memory, Value
from tests.lanes.both import NOTHING_KEPT, agree, compile_, on_numpy, random_lanes

NUMBERS = (*INTEGERS, *FLOATS)


# -- min and max -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_min_and_max(type: LaneType) -> None:
    def program(m: Machine, a: Value, b: Value) -> tuple[Value, Value, Value]:
        return m.min(a, b), m.max(a, b), m.min(a, 3)

    rng = np.random.default_rng(type.bits)
    floats = [0, 1, type.sign_mask, type.quiet_nan, type.exponent_mask, type.sign_mask + 1] if type.is_float else []
    special = floats or [0, 1, type.highest, type.lowest]
    for _ in range(4):
        a, b = (random_lanes(type, 16, rng, special) for _ in range(2))
        least, most, _ = agree(program, Signature((Lanes(type, 16),) * 2, (Lanes(type, 16),) * 3), [a, b], any_nan=False)
        bits = f"u{type.bytes}"
        assert (least.view(bits) == np.where(a < b, a, b).view(bits)).all()
        assert (most.view(bits) == np.where(a > b, a, b).view(bits)).all()


# -- permute -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", [*NUMBERS, bool_], ids=str)
@pytest.mark.parametrize("lanes, count", [(8, 8), (16, 16), (16, 4), (4, 16), (1, 8), (32, 32)])
def test_permute(type: LaneType, lanes: int, count: int) -> None:
    def program(m: Machine, a: Value, indices: Value) -> Value:
        return m.permute(a, indices)

    rng = np.random.default_rng(lanes * count)
    a, indices = random_lanes(type, lanes, rng, [0, 1]), rng.integers(0, 1 << 32, count, np.uint32)
    found, = agree(program, Signature((Lanes(type, lanes), Lanes(u32, count)), (Lanes(type, count),)), [a, indices], any_nan=False)
    assert found.tobytes() == a[indices % lanes].tobytes()


def test_permute_needs_a_power_of_two() -> None:
    m = NumpyMachine()
    with pytest.raises(TypeError, match="power of two"):
        m.permute(m.constant(u32, [1, 2, 3]), m.constant(u32, 0, 3))
    with pytest.raises(TypeError, match="u32 indices"):
        m.permute(m.constant(u32, 1, 4), m.constant(i32, 0, 4))


# -- append ------------------------------------------------------------------------------------------------------------


@pytest.mark.covering(1)
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("type", [u8, u16, u32, u64, f32, f64, f16], ids=str)
@pytest.mark.parametrize("cursor_type", [u32, u64], ids=str)
def test_append(type: LaneType, cursor_type: LaneType, checked: bool) -> None:
    """Active lanes follow one another; what is behind them stays as it is."""
    def program(m: Machine, memory: Memory, cursor: Value, a: Value, mask: Value) -> Value:
        cursor = m.append(a, memory, cursor, mask)
        return m.append(a, memory, cursor, ~mask)

    rng = np.random.default_rng(type.bits)
    shape = Signature((Bytes("list", checked), Lanes(cursor_type, 1), Lanes(type, 16), Lanes(bool_, 16)), (Lanes(cursor_type, 1),))
    for bits in (0, 0xFFFF, 1, 0x8000, 0x5A31):
        mask = np.array([bits >> lane & 1 for lane in range(16)], np.bool_)
        memory, a = np.full(200, 0xEE, np.uint8), random_lanes(type, 16, rng, [0])
        end, = agree(program, shape, [memory, np.array([8], DTYPES[cursor_type]), a, mask], any_nan=False)
        assert end.tolist() == [8 + 16 * type.bytes]
        given = [memory.copy(), np.array([8], DTYPES[cursor_type]), a, mask]
        on_numpy(program, shape, given)
        assert given[0][8:8 + 16 * type.bytes].tobytes() == np.concatenate([a[mask], a[~mask]]).tobytes()
        assert (given[0][:8] == 0xEE).all() and (given[0][8 + 16 * type.bytes:] == 0xEE).all()


def test_append_past_the_end_is_a_fault() -> None:
    def program(m: Machine, memory: Memory, mask: Value) -> Value:
        return m.append(m.lane_index(8), memory, m.constant(u32, 8, 1), mask)

    shape = Signature((Bytes("list"), Lanes(bool_, 8)), (Lanes(u32, 1),))
    assert agree(program, shape, [np.zeros(20, np.uint8), np.arange(8) < 3])[0].tolist() == [20]
    assert agree(program, shape, [np.zeros(20, np.uint8), np.arange(8) < 4]) == []


@pytest.mark.parametrize("lanes", [1, 5, 16, 32, 64])
def test_rank_and_count(lanes: int) -> None:
    def program(m: Machine, mask: Value) -> tuple[Value, Value]:
        return m.rank(mask), m.count(mask)

    mask = np.random.default_rng(lanes).integers(0, 2, lanes).astype(np.bool_)
    rank, count = agree(program, Signature((Lanes(bool_, lanes),), (Lanes(u32, lanes), Lanes(u32, 1))), [mask])
    assert rank.tolist() == [int(mask[:lane].sum()) for lane in range(lanes)] and count[0] == mask.sum()


# -- records -------------------------------------------------------------------------------------------------------------


class Setup(ctypes.Structure):
    _fields_ = [("entry", ctypes.c_uint16), ("facing", ctypes.c_int8), ("area", ctypes.c_double), ("plane", ctypes.c_float * 4),
                ("code", ctypes.c_uint64)]


def test_layouts() -> None:
    setup = RecordLayout.of(Setup)
    assert list(setup.fields.values()) == [
        RecordField("entry", u16, 0), RecordField("facing", i8, 2), RecordField("area", f64, 8), RecordField("plane", f32, 16, 4),
        RecordField("code", u64, 32)]
    assert setup.size == ctypes.sizeof(Setup) == 40
    packed = RecordLayout.packed(a=u8, b=u32, c=u16)
    assert [field.offset for field in packed.fields.values()] == [0, 4, 8] and packed.size == 12


class Longer(Setup):
    _fields_ = [("more", ctypes.c_uint32)]


def test_layouts_of_structures_that_go_on() -> None:
    """The fields of a base come first."""
    found = RecordLayout.of(Longer)
    assert list(found.fields) == ["entry", "facing", "area", "plane", "code", "more"] and found.offset("more") == 40
    packed = RecordLayout.packed(a=u8)
    with pytest.raises(KeyError, match="has no z"):
        packed.field("z")


@pytest.mark.parametrize("offset_type", [u32, u64], ids=str)
def test_a_record_for_each_lane(offset_type: LaneType) -> None:
    layout = RecordLayout.of(Setup)

    def program(m: Machine, memory: Memory, at: Value, mask: Value) -> tuple[Value, Value]:
        record = m.record(layout, memory, at)
        record.store("area", record.load("area") * 2.0, mask)
        record.store("plane", record.load("plane", element=1) + 1.0, mask, element=3)
        record.store("facing", record.load("facing"))
        which = m.constant(offset_type, [0, 1, 2, 3, 3, 2, 1, 0])
        return record.load("entry", mask), record.load("plane", element=which)

    records = np.zeros(10, np.dtype(Setup))
    records["entry"], records["area"], records["plane"] = np.arange(10) + 500, np.arange(10), np.arange(40).reshape(10, 4)
    numbers, mask = np.array([9, 2, 4, 0, 1, 7, 3, 6]), np.arange(8) % 3 > 0
    shape = Signature((Bytes("records"), Lanes(offset_type, 8), Lanes(bool_, 8)), (Lanes(u16, 8), Lanes(f32, 8)))
    inputs = [records.view(np.uint8), (numbers * 40).astype(DTYPES[offset_type]), mask]
    entry, plane = agree(program, shape, inputs)
    assert entry.tolist() == [int(n) + 500 if on else 0 for n, on in zip(numbers, mask, strict=True)]
    expected = [4 * n + k if k < 3 or not on else 4 * n + 2 for n, k, on in zip(numbers, [0, 1, 2, 3, 3, 2, 1, 0], mask, strict=True)]
    assert plane.tolist() == expected
    given = [records.copy().view(np.uint8), *inputs[1:]]
    on_numpy(program, shape, given)
    after = given[0].view(records.dtype)
    assert all(after["area"][n] == (2 * n if on else n) for n, on in zip(numbers, mask, strict=True))


def test_a_uniform_record() -> None:
    layout = RecordLayout.of(Setup)

    def program(m: Machine, memory: Memory, at: Value) -> tuple[Value, ...]:
        record = m.record(layout, memory, at)
        plane = record.load("plane")
        record.store("plane", m.shuffle(plane, [3, 2, 1, 0]))
        record.store("code", record.load("code") + 1)
        return plane, record.load("entry"), m.record(layout, memory, 40).load("plane", element=2)

    records = np.zeros(2, np.dtype(Setup))
    records["plane"], records["entry"], records["code"] = [[1, 2, 3, 4], [5, 6, 7, 8]], [7, 8], 5
    shape = Signature((Bytes("records"), Lanes(u32, 1)), (Lanes(f32, 4), Lanes(u16, 1), Lanes(f32, 1)))
    plane, entry, other = agree(program, shape, [records.view(np.uint8), np.array([40], np.uint32)])
    assert (plane.tolist(), entry.tolist(), other.tolist()) == ([5, 6, 7, 8], [8], [6])


def test_wrong_records() -> None:
    m = NumpyMachine()
    memory = m.memory(np.zeros(80, np.uint8))
    layout = RecordLayout.of(Setup)
    with pytest.raises(TypeError, match="entry is u16"):
        m.record(layout, memory).store("entry", m.constant(u32, 1, 1))
    with pytest.raises(TypeError, match="4 elements"):
        m.record(layout, memory, m.constant(u32, [0, 40])).load("plane")
    with pytest.raises(ValueError, match="elements 0 to 3"):
        m.record(layout, memory).load("plane", element=4)


# -- calls -----------------------------------------------------------------------------------------------------------------

MIX = FunctionType((Lanes(f32, 16), Lanes(u32, 16), Lanes(f16, 16), Lanes(bool_, 16), Lanes(u64, 1)),
                   (Lanes(f32, 16), Lanes(u32, 16), Lanes(bool_, 16), Lanes(f16, 16), Lanes(u64, 16), Lanes(u8, 16)))


def mix(m: Machine, a: Value, b: Value, c: Value, mask: Value, number: Value) -> tuple[Value, ...]:
    wide, small = m.convert(b, u64) * m.broadcast(number, 16), m.broadcast(m.convert(number, u32), 16)
    return m.select(mask, a * 2.0, a), b + small, mask & (b > 7), c + 1.0, wide, m.convert(b, u8)


def halve(m: Machine, a: Value, b: Value, c: Value, mask: Value, number: Value) -> tuple[Value, ...]:
    return a * 0.5, b >> 1, ~mask, c, m.convert(b, u64), m.constant(u8, 9, 16)


TABLE = RecordLayout.packed(first=u64, second=u64)


def caller(m: Machine, table: Memory, which: Value, *given: Value) -> tuple[Value, ...]:
    """The address comes out of a record."""
    record = m.record(TABLE, table)
    return m.call(MIX, m.select(which == 0, record.load("first"), record.load("second")), *given)


def test_calls_by_address() -> None:
    functions = [LaneFunction(item, MIX, item.__name__, NOTHING_KEPT) for item in (mix, halve)]
    table = np.array([function.address for function in functions], np.uint64)
    rng = np.random.default_rng(5)
    given: list[Any] = [rng.standard_normal(16).astype(np.float32), rng.integers(0, 1 << 32, 16, np.uint32),
                        rng.standard_normal(16).astype(np.float16), rng.integers(0, 2, 16).astype(np.bool_), np.array([1 << 33], np.uint64)]
    shape = Signature((Bytes("table"), Lanes(u32, 1), *MIX.parameters), MIX.results)
    first = agree(caller, shape, [table, np.array([0], np.uint32), *given])
    assert first[0].tolist() == np.where(given[3], given[0] * 2, given[0]).tolist()
    second = agree(caller, shape, [table, np.array([1], np.uint32), *given])
    assert second[2].tolist() == (~given[3]).tolist() and second[5].tolist() == [9] * 16


def test_a_function_without_results() -> None:
    """It reaches memory by an address that it is given."""
    kind = FunctionType((Lanes(u64, 1), Lanes(u32, 8)))

    def keep(m: Machine, address: Value, a: Value) -> None:
        m.store_block(a, m.memory_at(address, 64), 32)

    function = LaneFunction(keep, kind, "keep", NOTHING_KEPT)

    def program(m: Machine, code: Value, address: Value, a: Value) -> None:
        assert m.call(kind, code, address, a) == ()

    shape = Signature((Lanes(u64, 1), Lanes(u64, 1), Lanes(u32, 8)))
    for run in (partial(on_numpy, program, shape), lambda given: compile_(program, shape)(*given)):
        held = np.zeros(64, np.uint8)
        code, address = np.array([function.address], np.uint64), np.array([held.ctypes.data], np.uint64)
        run([code, address, np.arange(8, dtype=np.uint32)])
        assert held.view(np.uint32).tolist() == [0] * 8 + list(range(8))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_function_has_as_many_results_as_one_likes(count: int) -> None:
    kind = FunctionType((Lanes(u32, 8),), (Lanes(u32, 8), Lanes(bool_, 8), Lanes(u64, 8))[:count])

    def results(m: Machine, a: Value) -> tuple[Value, ...]:
        return (a + 1, a > 3, m.convert(a, u64) * 5)[:count]

    function = LaneFunction(results, kind, "results", NOTHING_KEPT)

    def program(m: Machine, code: Value, a: Value) -> tuple[Value, ...]:
        return m.call(kind, code, a)

    given = [np.array([function.address], np.uint64), np.arange(8, dtype=np.uint32)]
    found = agree(program, Signature((Lanes(u64, 1), Lanes(u32, 8)), kind.results), given)
    assert [lanes[4] for lanes in found] == [5, True, 20][:count]


def test_wrong_calls() -> None:
    m = NumpyMachine()
    kind = FunctionType((Lanes(u32, 8),), (Lanes(u32, 8),))
    a, zero = m.constant(u32, 1, 8), m.constant(u64, 0, 1)
    with pytest.raises(SoftgenError, match="no function"):
        m.call(kind, zero, a)
    with pytest.raises(TypeError, match="one lane of u64"):
        m.call(kind, m.constant(u32, 0, 1), a)
    with pytest.raises(TypeError, match="arguments of a call"):
        m.call(kind, zero, m.constant(u32, 1, 4))
    function = LaneFunction(lambda m, a: a, kind, "same", NOTHING_KEPT)
    with pytest.raises(SoftgenError, match="another type"):
        m.call(FunctionType((Lanes(i32, 8),)), m.constant(u64, function.address, 1), m.constant(i32, 1, 8))
    with pytest.raises(TypeError, match="results of a call"):
        LaneFunction(lambda m, a: m.slice(a, 0, 4), kind, "short", NOTHING_KEPT).ir()
    assert function.address in function_type.PROGRAMS


def test_programs_that_give_the_numpy_machine_other_results_than_their_type_says(monkeypatch: pytest.MonkeyPatch) -> None:
    m, kind = NumpyMachine(), FunctionType((Lanes(u32, 8),), (Lanes(u32, 8),))
    monkeypatch.setitem(function_type.PROGRAMS, 64, function_type.CallTarget(lambda m, a: m.slice(a, 0, 4), kind, "short"))
    with pytest.raises(TypeError, match="results of a call"):
        m.call(kind, m.constant(u64, 64, 1), m.constant(u32, 1, 8))

"""What programs may say and what is refused; what is made of other operations, against plain Python; control flow on both machines."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError
from softgen.lanes.compile.signature import Bytes, Lanes, Signature, build
from softgen.lanes.llvm import rounding
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine, bits_of, from_bits
from softgen.lanes.operations import OPERATIONS, Operation
from softgen.lanes.primitives import Primitives
from softgen.lanes.types import FLOATS, INTEGERS, ROUNDINGS, LaneType, bool_, f16, f32, f64, i8, i32, u8, u16, u32, u64
from softgen.lanes.value import Region, Value
from tests.lanes.both import agree
from tests.lanes.numbers import specials
from tests.lanes.test_region import Held

M = NumpyMachine()
A, ONE = M.constant(u32, [1, 2, 3, 4]), M.constant(u32, 1)
BYTES, REGION = M.memory(np.zeros(16, np.uint8)), Region(M, Held(np.zeros(16, np.uint8)))


def ints(value: Value) -> list[int]:
    return [int(number) for number in value.payload.tolist()]


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: A + M.constant(i32, 1, 4), "all operands must be u32, not i32"),
    (lambda: A + M.constant(u32, 1), "must have 4 lanes, not 1"),
    (lambda: A + NumpyMachine().constant(u32, 1, 4), "belongs to another machine"),
    (lambda: A + -1, "must be an integer from 0 to 4294967295, not -1"),
    (lambda: A + 1.5, "must be an integer from 0"),
    (lambda: M.div(A, A), "div must be of f16 f32 f64, not u32"),
    (lambda: M.constant(f32, 1.0) & M.constant(f32, 1.0), "bit_and must be of u8"),
    (lambda: M.add(1, 2), "at least one lane value"),
    (lambda: A << M.constant(u16, 1, 4), "a shift count must be 4 x an integer of 32 bits, not 4 x u16"),
    (lambda: A << 32, "must be below 32, not 32"),
    (lambda: M.select(A, A, A), "the condition of select must be bool, not u32"),
    (lambda: M.select(M.constant(bool_, 1), A, A), "must have 4 lanes, not 1"),
    (lambda: M.add(A, A, rounding="up"), "rounding must be one of rne ru rd rtz, not up"),
    (lambda: M.convert(M.constant(bool_, 1), u32), "between numbers, not bool and u32"),
    (lambda: M.bitcast(A, f64), "must be to a type of 32 bits, not f64"),
    (lambda: M.regroup(M.constant(u8, 1, 3), u16), "3 x u8 cannot become u16"),
    (lambda: M.shuffle(A, [4]), "from 0 to 3, not 4"),
    (lambda: M.concat(A, M.constant(i32, 1)), "must be u32, not i32"),
    (lambda: M.slice(A, 2, 3), "inside 4 lanes, not from 2 to 4"),
    (lambda: M.broadcast(A, 8), "of one lane, not 4"),
    (lambda: M.any(A), "the mask of any must be bool"),
    (lambda: M.bits_from_mask(A), "the mask of bits_from_mask must be bool"),
    (lambda: M.count(A), "the mask of count must be bool"),
    (lambda: M.rank(A), "the mask of rank must be bool"),
    (lambda: M.mask_from_bits(M.constant(u8, 1), 9), "as wide, not 1 x u8"),
    (lambda: M.bits_from_mask(M.constant(bool_, 1, 9), u8), "as wide, not u8"),
    (lambda: M.flush(A), "flush must be of a float, not u32"),
    (lambda: M.copysign(A, A), "copysign must be of a float, not u32"),
    (lambda: M.copysign(M.constant(f32, 1.0), M.constant(f64, 1.0)), "copysign: all operands must be f32, not f64"),
    (lambda: M.copysign(M.constant(f32, 1.0, 4), M.constant(f32, 1.0)), "copysign: all operands must have 4 lanes, not 1"),
    (lambda: M.add_carry(M.constant(i32, 1), M.constant(i32, 1)), "unsigned integers, not i32"),
    (lambda: M.saturate_int(M.constant(f32, 1.0), i32), "between integers, not f32"),
    (lambda: M.constant(u32, [1, 2], 3), "must have 3 numbers, not 2"),
    (lambda: M.constant(u8, 0, 257), "from 1 to 256, not 257"),
    (lambda: setattr(M.variable(A), "value", M.constant(f32, 1.0, 4)), "must be given the same, not 4 x f32"),
    (lambda: bool(A == A), "on one lane of bool, not 4 x bool"),
    (lambda: next(iter(M.Else())), "Else must follow an If"),
    (lambda: M.load(u32, BYTES, M.constant(i32, 0)), "must be u32 or u64, not i32"),
    (lambda: M.load(bool_, BYTES, A), "of numbers, not bool"),
    (lambda: M.load(u8, BYTES, A, M.constant(bool_, 1)), "must have 4 lanes, not 1"),
    (lambda: M.load_block(u8, 4, BYTES, A), "one lane of u32 or u64, not 4 x u32"),
    (lambda: M.atomic("nand", BYTES, A, [A]), "must be one of exchange add"),
    (lambda: M.atomic("add", BYTES, A, [A, A]), "must have 1 operands, not 2"),
    (lambda: M.atomic("add", BYTES, M.constant(u32, 0), [M.constant(f32, 0.0)]), "of 32 or 64 bits, not f32"),
    (lambda: M.atomic("add", BYTES, A, [M.constant(u16, 0, 4)]), "of 32 or 64 bits, not u16"),
    (lambda: M.atomic("compare_exchange", BYTES, A, [A]), "must have 2 operands, not 1"),
    (lambda: M.atomic("compare_exchange", BYTES, A, [A, M.constant(i32, 0, 4)]), "compare_exchange: all operands must be u32, not i32"),
    (lambda: M.atomic("add", BYTES, A, [ONE]), "the value of atomic must have 4 lanes, not 1"),
    (lambda: M.load(u8, BYTES, A, A), "the mask of load must be bool, not u32"),
    (lambda: M.store(ONE, BYTES, A), "the value of store must have 4 lanes, not 1"),
    (lambda: M.store(M.constant(bool_, 1, 4), BYTES, A), "store must be of numbers, not bool"),
    (lambda: M.load_block(u8, 0, BYTES, 0), "lanes must be from 1 to 256, not 0"),
    (lambda: M.load_block(u8, 4, BYTES, M.constant(i32, 0)), "the offset of load_block must be one lane of u32 or u64, not 1 x i32"),
    (lambda: M.load_block(u8, 4, BYTES, 0, M.constant(bool_, 1)), "the mask of load_block must have 4 lanes, not 1"),
    (lambda: M.load_block(u8, 4, BYTES, 0, A), "the mask of load_block must be bool, not u32"),
    (lambda: M.store_block(A, BYTES, A), "the offset of store_block must be one lane of u32 or u64, not 4 x u32"),
    (lambda: M.append(A, BYTES, A, A == A), "the offset of append must be one lane of u32 or u64, not 4 x u32"),
    (lambda: M.append(A, BYTES, ONE, A), "the mask of append must be bool, not u32"),
    (lambda: M.memory_at(A, 16), "one lane of u64, not 4 x u32"),
    (lambda: M.inside(REGION, M.constant(i32, 0), 4), "the offsets of inside must be u32 or u64, not i32"),
    (lambda: M.load_adjacent(u32, 2, REGION, M.constant(i32, 0)), "the offsets of load_adjacent must be u32 or u64, not i32"),
    (lambda: M.store_adjacent([A, A], REGION, M.constant(i32, 0, 4)), "the offsets of store_adjacent must be u32 or u64, not i32"),
    (lambda: M.store_adjacent([A, ONE], REGION, A), "the value of store_adjacent must have 4 lanes, not 1"),
    (lambda: M.update(u32, REGION, A, [], A, lambda m, old: old), "the mask of update must be bool, not u32"),
    (lambda: M.update(f32, REGION, A, [], A == A, lambda m, old: old), "update must be on integers of 32 or 64 bits, not f32"),
    (lambda: M.update(u16, REGION, A, [], A == A, lambda m, old: old), "update must be on integers of 32 or 64 bits, not u16"),
    (lambda: M.is_nan(A), "is_nan must be of a float, not u32"),
    (lambda: M.is_inf(A), "is_inf must be of a float, not u32"),
    (lambda: M.is_denormal(A), "is_denormal must be of a float, not u32"),
    (lambda: M.sub_borrow(M.constant(f32, 1.0), M.constant(f32, 1.0)), "sub_borrow must be of unsigned integers, not f32"),
    (lambda: M.saturate_int(A, f32), "between integers, not u32 and f32"),
    (lambda: M.convert(A, f32, "up"), "rounding must be one of rne ru rd rtz, not up"),
    (lambda: M.convert(A, bool_), "between numbers, not u32 and bool"),
    (lambda: M.shuffle(A, [-1]), "from 0 to 3, not -1"),
    (lambda: M.shuffle(A, []), "from 1 to 256, not 0"),
    (lambda: M.slice(A, -1, 2), "inside 4 lanes, not from -1 to 0"),
    (lambda: M.slice(A, 2, 0), "inside 4 lanes, not from 2 to 1"),
    (lambda: M.permute(M.slice(A, 0, 3), A), "not of 3 lanes by u32"),
    (lambda: M.permute(A, M.constant(i32, 0)), "not of 4 lanes by i32"),
    (lambda: M.regroup(A, bool_), "4 x u32 cannot become bool"),
    (lambda: M.regroup(M.constant(u32, 0, 128), u8), "from 1 to 256, not 512"),
    (lambda: M.mask_from_bits(M.constant(u32, 0, 2), 2), "as wide, not 2 x u32"),
    (lambda: M.mask_from_bits(M.constant(f32, 0.0), 2), "as wide, not 1 x f32"),
    (lambda: M.bits_from_mask(M.constant(bool_, 1), f32), "as wide, not f32"),
]


@pytest.mark.parametrize(("wrong", "complaint"), REFUSED, ids=[complaint for _, complaint in REFUSED])
def test_refused(wrong: Callable[[], Any], complaint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        wrong()


def test_both_machines_have_all_there_is_and_nothing_else() -> None:
    public = {name for name in dir(Machine) if not name.startswith("_")}
    assert {name for name in dir(NumpyMachine) if not name.startswith("_")} - public == {"value", "memory"}
    assert not getattr(NumpyMachine, "__abstractmethods__") and not getattr(LlvmMachine, "__abstractmethods__")     # noqa: B009
    assert getattr(Primitives, "__abstractmethods__")                                                               # noqa: B009


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_the_table_says_what_is_rounded(row: Operation) -> None:
    """Operations that may be rounded take a rounding, and no others do."""
    assert ("rounding" in inspect.signature(getattr(Machine, row.name)).parameters) is row.rounded


@pytest.mark.parametrize("type", [u8, u16, u32, u64], ids=str)
def test_carry_and_borrow(type: LaneType) -> None:
    pairs = [(a, b) for a in specials(type) for b in specials(type)][:256]
    a, b = (M.constant(type, [pair[side] for pair in pairs]) for side in (0, 1))
    total, carry = M.add_carry(a, b)
    assert [c << type.bits | t for t, c in zip(ints(total), ints(carry), strict=True)] == [x + y for x, y in pairs]
    difference, borrow = M.sub_borrow(a, b)
    assert [d - (c << type.bits) for d, c in zip(ints(difference), ints(borrow), strict=True)] == [x - y for x, y in pairs]


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_saturate_int(source: LaneType, type: LaneType) -> None:
    lanes = specials(source)
    assert ints(M.saturate_int(M.constant(source, lanes), type)) == [min(max(lane, type.lowest), type.highest) for lane in lanes]


def test_masks_and_bits() -> None:
    rng = random.Random(1)
    for lanes in (1, 2, 7, 8, 16, 31, 32, 64):
        bits = rng.getrandbits(lanes)
        mask = M.mask_from_bits(M.constant(u64, bits), lanes)
        assert ints(mask) == [bits >> lane & 1 for lane in range(lanes)] == ints(M.mask_from_bits(bits, lanes))
        assert ints(M.bits_from_mask(mask, u64)) == [bits]
        assert bool(M.any(mask)) == (bits != 0) and bool(M.all(mask)) == (bits == (1 << lanes) - 1)


def test_lanes_among_themselves() -> None:
    a = M.lane_index(8)
    assert ints(M.shuffle(a, [7, 0, 0])) == [7, 0, 0]
    assert ints(M.slice(a, 2, 3)) == [2, 3, 4]
    assert ints(M.concat(M.slice(a, 0, 1), M.slice(a, 5, 3), M.slice(a, 1, 1))) == [0, 5, 6, 7, 1]
    assert [ints(M.broadcast(M.slice(a, 3, 1), lanes)) for lanes in (1, 2, 4)] == [[3], [3, 3], [3] * 4]
    assert ints(M.regroup(M.constant(u32, [0x03020100, 0x07060504]), u8)) == list(range(8))
    assert ints(M.regroup(M.constant(u8, range(8)), u64)) == [0x0706050403020100]


def test_canonical_leaves_numbers_alone() -> None:
    given = [0x7C01, 0xFE00, 0x7C00, 0x8000, 1]
    assert bits_of(f16, M.canonical(Value(M, f16, 5, from_bits(f16, given))).payload) == [0x7E00, 0x7E00, 0x7C00, 0x8000, 1]


def test_python_numbers_on_either_side() -> None:
    assert ints(10 - A) == [9, 8, 7, 6] and ints(2 * A) == [2, 4, 6, 8] and ints(1 + A) == [2, 3, 4, 5] and ints(1 << A) == [2, 4, 8, 16]
    assert ints(6 & A) == [0, 2, 2, 4] and ints(6 | A) == [7, 6, 7, 6] and ints(6 ^ A) == [7, 4, 5, 2] and ints(64 >> A) == [32, 16, 8, 4]
    assert ints((A > 2) | (A == 1)) == [1, 0, 1, 1] and ints(~(A < 3) & (A != 4)) == [0, 0, 1, 0]
    assert ints(-A) == [2**32 - n for n in range(1, 5)]
    assert (1.5 * M.constant(f32, 2.0)).payload.tolist() == [3.0] and ints((A <= 2) ^ (A >= 2)) == [1, 0, 1, 1]


# -- control flow, on both machines ----------------------------------------------------------------------------------------


def test_signatures_are_keys() -> None:
    """Plans are found by what they were made for."""
    first, other = (Signature((Lanes(u32, 4), Bytes("a")), (Lanes(u32, 4),)) for _ in range(2))
    assert len({first, other}) == 1


def collatz(m: Machine, start: Value) -> tuple[Value, Value]:
    """Turns until 1, per lane; nested decisions inside a loop, and a loop inside a decision."""
    n, turns = m.variable(start), m.variable(m.like(start, 0))
    for _ in m.While(lambda: m.any(n.value > 1)):
        active = n.value > 1
        odd = (n.value & 1) != 0
        for _ in m.If(m.any(active & odd)):
            n.value = m.select(active & odd, n.value * 3 + 1, n.value)
            for _ in m.If(m.all(active)):
                turns.value = turns.value + 0
            for _ in m.Else():
                turns.value = turns.value * 1
        for _ in m.Else():
            n.value = m.select(active, n.value >> 1, n.value)
        turns.value = m.select(active, turns.value + 1, turns.value)
    left = m.variable(turns.value)
    for _ in m.If(m.any(left.value > 100)):
        for _ in m.While(lambda: m.any(left.value > 100)):
            left.value = m.select(left.value > 100, left.value - 7, left.value)
    return turns.value, left.value


def test_loops_and_decisions() -> None:
    signature = Signature((Lanes(u32, 4),), (Lanes(u32, 4), Lanes(u32, 4)))
    for given in ([1, 1, 1, 1], [1, 2, 3, 4], [27, 97, 6, 1]):
        agree(collatz, signature, [np.array(given, np.uint32)])
    alone = Signature((Lanes(u32, 1),), (Lanes(u32, 1), Lanes(u32, 1)))
    assert [int(item[0]) for item in agree(collatz, alone, [np.array([6], np.uint32)])] == [8, 8]     # 6 3 10 5 16 8 4 2 1


def test_only_the_chosen_body_runs() -> None:
    def program(m: Machine, a: Value) -> tuple[Value, ...]:
        x, y = m.variable(a), m.variable(a)
        for _ in m.If(a == 1):
            x.value = a + 10
        for _ in m.Else():
            x.value = a + 20
        for _ in m.If(a == 2):
            y.value = a + 30
        return x.value, y.value

    signature = Signature((Lanes(i8, 1),), (Lanes(i8, 1), Lanes(i8, 1)))
    assert [[int(item[0]) for item in agree(program, signature, [np.array([n], np.int8)])]
            for n in (1, 2, 3)] == [[11, 1], [22, 32], [23, 3]]


def broken_off(m: Machine, a: Value) -> Value:
    for _ in m.If(a == 1):
        break
    return a


def else_too_late(m: Machine, a: Value) -> Value:
    for _ in m.If(a == 1):
        pass
    a = a + 1
    for _ in m.Else():
        pass
    return a


def escaped(m: Machine, a: Value) -> Value:
    for _ in m.If(a == 1):
        a = a + 1
    return a


def test_bodies_that_break_the_rules() -> None:
    signature = Signature((Lanes(u32, 1),), (Lanes(u32, 1),))
    with pytest.raises(TypeError, match="must run to its end"):
        build(broken_off, signature)
    with pytest.raises(TypeError, match="Else must follow an If"):
        build(else_too_late, signature)
    with pytest.raises(SoftgenError, match="does not dominate"):
        agree(escaped, signature, [np.array([1], np.uint32)])
    with pytest.raises(TypeError, match="must return"):
        build(lambda m, a: (a, a), signature)


def mandelbrot(m: Machine, x: Value, y: Value) -> Value:
    a, b, count = m.variable(x), m.variable(y), m.variable(m.constant(u32, 0, x.lanes))
    inside = m.variable(m.constant(bool_, 1, x.lanes))

    def going() -> Value:
        return m.any(inside.value)

    for _ in m.While(going):
        aa, bb = a.value * a.value, b.value * b.value
        inside.value = inside.value & (aa + bb < 4.0) & (count.value < 200)
        count.value = m.select(inside.value, count.value + 1, count.value)
        a.value, b.value = aa - bb + x, m.fma(a.value * 2.0, b.value, y)
    return count.value


def test_a_real_loop_gives_the_same_everywhere() -> None:
    xs, ys = np.meshgrid(np.linspace(-2, 0.5, 4), np.linspace(-1, 1, 4))
    signature = Signature((Lanes(f32, 16), Lanes(f32, 16)), (Lanes(u32, 16),))
    found = agree(mandelbrot, signature, [xs.ravel().astype(np.float32), ys.ravel().astype(np.float32)])
    assert len(set(found[0].tolist())) > 3


# -- rounding.py on the NumPy machine: the lane programs against integers, without LLVM in between ------------------------------


@pytest.mark.covering(2)
@pytest.mark.parametrize("mode", ROUNDINGS[1:])
@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("name", rounding.OPERATIONS)
def test_roundings_made_of_rounding_to_nearest(name: str, type: LaneType, mode: str) -> None:
    rng = random.Random(f"{name} {type} {mode}")
    count = {"sqrt": 1, "fma": 3}.get(name, 2)
    operands = [Value(M, type, 250, from_bits(type, [rng.choice(specials(type)) if rng.random() < 0.6 else rng.getrandbits(type.bits)
                                                     for _ in range(250)])) for _ in range(count)]
    want, found = getattr(M, name)(*operands, rounding=mode), rounding.OPERATIONS[name](M, mode, *operands)
    assert bits_of(type, M.canonical(want).payload) == bits_of(type, M.canonical(found).payload)

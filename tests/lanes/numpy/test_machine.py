"""The NumPy machine against the reference: every row of the table, every type, every rounding."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.lanes.numpy import exact
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine, bits_of, from_bits, to_integer, to_odd
from softgen.lanes.operations import OPERATIONS, Operation
from softgen.lanes.types import BY_NAME, FLOATS, INTEGERS, ROUNDINGS, LaneType, bool_, f16, f32, f64, i32, u16, u32
from softgen.lanes.value import Value
from tests.lanes import reference
from tests.lanes.numbers import lane, specials

M = NumpyMachine()
NUMBERS = (*INTEGERS, *FLOATS)


def value(type: LaneType, lanes: list[int]) -> Value:
    return Value(M, type, len(lanes), from_bits(type, lanes)) if type.is_float else M.value(type, lanes)


def contents(value: Value) -> list[Any]:
    """Lanes as the reference gives them."""
    if not value.type.is_float:
        return [int(number) for number in value.payload.tolist()]
    return [reference.NAN if reference.is_nan(value.type, bits) else bits for bits in bits_of(value.type, value.payload)]


def cases() -> Iterator[tuple[str, str, str]]:
    for row in OPERATIONS.values():
        for type in row.domain:
            for mode in ROUNDINGS if row.rounded and type.is_float else ("rne",):
                yield row.name, type.name, mode


def expected(row: Operation, type: LaneType, mode: str, operands: tuple[int, ...]) -> Any:
    if type.is_float:
        found = reference.FLOAT[row.name](type, mode, *operands)
        keeps = row.name == "negate" and reference.is_nan(type, operands[0])
        return reference.NAN if keeps else found
    found = reference.INTEGER[row.name](type, *operands)
    return int(found) if row.gives_bool or type.is_bool else reference.wrap(type, found)


def check(name: str, type: LaneType, mode: str, rows: list[tuple[int, ...]]) -> None:
    row = OPERATIONS[name]
    if name.startswith("shift"):
        rows = [(a, count % type.bits) for a, count in rows]
    columns = [value(type, list(column)) for column in zip(*rows, strict=True)]
    options = {"rounding": mode} if row.rounded else {}
    found = contents(getattr(M, name)(*columns, **options))
    for operands, got in zip(rows, found, strict=True):
        want = expected(row, type, mode, operands)
        assert got == want, f"{name} {type} {mode} {[hex(operand) for operand in operands]}: {got!r}, expected {want!r}"


@pytest.mark.parametrize(("name", "type_name", "mode"), list(cases()))
def test_special_values(name: str, type_name: str, mode: str) -> None:
    """All special values of one operand, five hundred pairs or triples."""
    type, row = BY_NAME[type_name], OPERATIONS[name]
    found = list(product(specials(type), repeat=row.operands))
    random.Random(f"{name} {type} {mode}").shuffle(found)
    found = found[:500]
    for start in range(0, len(found), 250):
        check(name, type, mode, found[start:start + 250])


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
def test_any_values(name: str, data: st.DataObject) -> None:
    row = OPERATIONS[name]
    type = data.draw(st.sampled_from(row.domain))
    mode = data.draw(st.sampled_from(ROUNDINGS)) if row.rounded else "rne"
    check(name, type, mode, data.draw(st.lists(st.tuples(*[lane(type)] * row.operands), min_size=1, max_size=6)))


def near_sums(type: LaneType, rng: random.Random) -> tuple[int, int, int]:
    """Operands of fma where c nearly cancels the product, or sits a little under half a unit of it."""
    a, b = (rng.getrandbits(type.bits) % type.exponent_mask | rng.getrandbits(1) << type.bits - 1 for _ in range(2))
    product = reference.mul(type, "rne", a, b)
    assert isinstance(product, int)
    c = product ^ type.sign_mask if rng.getrandbits(1) else product - rng.randrange(0, type.fraction + 3) * (1 << type.fraction)
    return a, b, max(0, c + rng.randrange(-2, 3)) % (1 << type.bits)


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_fma_near_cancellation_and_halves(type: LaneType, mode: str) -> None:
    rng = random.Random(f"{type} {mode}")
    check("fma", type, mode, [near_sums(type, rng) for _ in range(200)])


PAIRS = [pytest.param(source, type, id=f"{source}-{type}") for source in NUMBERS for type in NUMBERS if source is not type]


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize(("source", "type"), PAIRS)
def test_conversions(source: LaneType, type: LaneType, mode: str) -> None:
    rng = random.Random(f"{source} {type} {mode}")
    lanes = specials(source) + [rng.getrandbits(source.bits) + source.lowest * (not source.is_float) for _ in range(60)]
    if source.is_float:
        lanes += around_limits(source)
    elif type.is_float and source.bits > type.fraction:
        lanes += [halve for halve in around_halves(type) if source.lowest <= halve <= source.highest]
    found = contents(M.convert(value(source, lanes[:256]), type, mode))
    want = [reference.convert(source, type, mode, lane) for lane in lanes[:256]]
    assert [(hex(lane), got, must) for lane, got, must in zip(lanes, found, want, strict=False) if got != must] == []


def around_limits(source: LaneType) -> list[int]:
    """Bits of floats beside the limits of the integer types and the smaller floats, and beside halves there."""
    powers = [2.0**exponent for exponent in (7, 8, 15, 16, 31, 32, 63, 64, -14, -24, -25, 127)]
    centres = [*powers, 65519.0, 65520.0, 0.5, 2.5, 2047.5, 16777217.0]
    bits = [exact.from_float(f64, source, "rtz", bits_of(f64, M.constant(f64, centre).payload))[0] for centre in centres]
    return [near | sign for bit in bits for near in (max(bit - 1, 0), bit, bit + 1) for sign in (0, source.sign_mask)]


def around_halves(type: LaneType) -> list[int]:
    """Integers beside a point half way between two floats, and beside the largest float."""
    return [sign * (((1 << type.fraction + 1) + odd << shift) + (1 << shift >> 1) + step)
            for shift in (1, 2, 5, 30, 39) for odd in (0, 1) for step in (-1, 0, 1) for sign in (1, -1)] + [65504, 65519, 65520, 65521]


def test_every_f16_there_is() -> None:
    """All 65536 to f32, to f64, and back, and their flush; the square roots of the positive ones."""
    for start in range(0, 1 << 16, 256):
        lanes = list(range(start, start + 256))
        a = value(f16, lanes)
        wide = M.convert(a, f32)
        assert wide.payload[~np.isnan(wide.payload)].tolist() == [x for x in (reference.number(f16, lane) for lane in lanes) if x == x]
        assert contents(M.convert(wide, f16)) == contents(M.convert(M.convert(a, f64), f16)) == contents(a)
        assert bits_of(f16, M.flush(a).payload) == [lane & 0x8000 if not lane & 0x7C00 else lane for lane in lanes]
        if start < 1 << 15:
            assert contents(M.sqrt(a)) == [reference.sqrt(f16, "rne", lane) for lane in lanes]


def test_rounding_twice_would_show() -> None:
    """Sums whose nearest f32 lies half way between two f16, or nearest f64 between two f32: rounding twice gives the other neighbour."""
    twice = M.convert(M.constant(f64, 1.0 + 2.0**-11 + 2.0**-30), f16)
    assert bits_of(f16, twice.payload) == [0x3C01]
    a, b, c = (M.constant(f32, item) for item in (1.0 + 2.0**-12, 1.0 + 2.0**-12, 2.0**-80))
    assert bits_of(f32, M.fma(a, b, c).payload) == [0x3F801001]            # the product alone is a tie that goes to even, 0x3f801000
    assert bits_of(f32, (a * b).payload) == [0x3F801000]


UNIT = 2.0**-52  # between 1 and 2


@pytest.mark.parametrize("a, b, found", [
    (1.0, 2.0**-60, 1.0 + UNIT), (1.0, -(2.0**-60), 1.0 - UNIT / 2), (2.0**-60, 1.0, 1.0 + UNIT), (-1.0, 2.0**-60, UNIT / 2 - 1.0),
    (1.0 + UNIT, 2.0**-60, 1.0 + UNIT), (1.0 + UNIT, -(2.0**-60), 1.0 + UNIT), (1.0 + 2 * UNIT, 2.0**-60, 1.0 + 3 * UNIT),
    (1.0 + 2 * UNIT, -(2.0**-60), 1.0 + UNIT), (1.0 + 3 * UNIT, 2.0**-60, 1.0 + 3 * UNIT), (-1.0, -(2.0**-60), -1.0 - UNIT),
    (1.0, 1.0, 2.0), (1.0, -1.0, 0.0), (1.0, 2 * UNIT, 1.0 + 2 * UNIT), (np.inf, 1.0, np.inf), (1.0, -np.inf, -np.inf),
])  # fmt: skip
def test_sums_that_do_not_fit_are_odd(a: float, b: float, found: float) -> None:
    with np.errstate(invalid="ignore"):
        assert to_odd(np.array([a]), np.array([b])).tolist() == [found]


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_floats_overflow_and_are_invalid_without_a_warning(type: LaneType) -> None:
    largest, zero = Value(M, type, 4, from_bits(type, [type.exponent_mask - 1] * 4)), M.constant(type, 0.0, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infinite = largest * largest
        for found in (infinite - infinite, zero * infinite, M.fma(largest, largest, zero), M.convert(infinite, i32), largest + largest):
            assert found.lanes == 4


def test_payloads_and_signs_survive_moves() -> None:
    nan = value(f32, [0x7F800001, 0xFFC12345, 0x80000000, 1])
    for moved in (M.select(M.constant(bool_, [1, 0, 1, 0]), nan, nan), M.shuffle(nan, [0, 1, 2, 3]), M.convert(nan, f32),
                  M.concat(M.slice(nan, 0, 2), M.slice(nan, 2, 2)), M.bitcast(M.bitcast(nan, u32), f32),
                  M.regroup(M.regroup(nan, u16), f32)):
        assert bits_of(f32, moved.payload) == [0x7F800001, 0xFFC12345, 0x80000000, 1]
    assert bits_of(f32, (-nan).payload) == [0xFF800001, 0x7FC12345, 0, 0x80000001]
    assert bits_of(f32, M.absolute(nan).payload) == [0x7F800001, 0x7FC12345, 0, 1]


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_integers_of_floats_are_cut_and_end_at_their_limits(source: LaneType, target: LaneType) -> None:
    """NaN is 0. NumPy has nothing to warn of: limits that a half float cannot be are compared as they are."""
    given = [0.0, -0.0, 0.75, -0.75, 1.5, -1.5, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0, 32752.0, 65504.0, -65504.0]
    given += [number for number in (2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30) if source is not f16]
    with np.errstate(all="raise"):
        lanes = np.array([*given, np.inf, -np.inf, np.nan], DTYPES[source])
        found = to_integer(target, lanes).tolist()
    limits = [target.highest, target.lowest, 0]
    assert found == [max(target.lowest, min(target.highest, int(number))) for number in given] + limits

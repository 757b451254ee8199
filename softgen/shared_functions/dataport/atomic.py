"""Untyped atomics on dwords and qwords: each lane reads, computes and writes memory before the next does, and gets the old value.

Operands are sets of registers after the addresses; compare-and-write has two, the value compared first (KBL 1229-1394).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, f32, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.environment import DataPortMessage
from softgen.shared_functions.dataport.reach import pixel_lanes, region
from softgen.shared_functions.dataport.scattered import offsets
from softgen.shared_functions.message import answers

LANES = {"simd8": 8, "simd16": 16}


class AtomicOperation(NamedTuple):
    """One of the machine's atomics, on signed or unsigned integers, or a function of what was there and the operands."""

    native: str = ""
    operands: int = 1
    signed: bool = False
    function: Callable[..., Value] | None = None


def reverse_subtract(m: Machine, old: Value, a: Value) -> Value:
    return a - old


INTEGERS = {
    "and": AtomicOperation("and"),
    "or": AtomicOperation("or"),
    "xor": AtomicOperation("xor"),
    "mov": AtomicOperation("exchange"),
    "inc": AtomicOperation("add", 0),
    "dec": AtomicOperation("sub", 0),
    "predec": AtomicOperation("sub", 0),
    "add": AtomicOperation("add"),
    "sub": AtomicOperation("sub"),
    "revsub": AtomicOperation(function=reverse_subtract),
    "imax": AtomicOperation("max", signed=True),
    "imin": AtomicOperation("min", signed=True),
    "umax": AtomicOperation("max"),
    "umin": AtomicOperation("min"),
    "cmpwr": AtomicOperation("compare_exchange", 2),
}


# -- floats ----------------------------------------------------------------------------------------------------------


def _pick(m: Machine, old: Value, a: Value, better: Value) -> Value:
    """A quiet NaN loses against anything, a signalling one wins and stays signalling (KBL 1241-1266)."""
    found = m.select(better, a, old)
    for candidate, other in ((old, a), (a, old)):
        nan, quiet = m.is_nan(m.bitcast(candidate, f32)), candidate & f32.quiet_nan ^ f32.exponent_mask != 0
        found = m.select(nan, m.select(quiet, other, candidate), found)
    return found


def float_max(m: Machine, old: Value, a: Value) -> Value:
    """Zeros are equal whatever their sign: the one that is there stays (KBL 1251, 1265)."""
    return _pick(m, old, a, m.bitcast(a, f32) > m.bitcast(old, f32))


def float_min(m: Machine, old: Value, a: Value) -> Value:
    return _pick(m, old, a, m.bitcast(a, f32) < m.bitcast(old, f32))


def float_compare_write(m: Machine, old: Value, a: Value, b: Value) -> Value:
    """Compared as floats, written as bits (KBL 1290-1296)."""
    return m.select(m.bitcast(a, f32) == m.bitcast(old, f32), b, old)


FLOATS = {
    "fmax": AtomicOperation(function=float_max),
    "fmin": AtomicOperation(function=float_min),
    "fcmpwr": AtomicOperation(operands=2, function=float_compare_write),
}


# -- messages --------------------------------------------------------------------------------------------------------


def operation(x: DataPortMessage) -> tuple[str, AtomicOperation]:
    name = x.plan.words["operation"]
    found = (FLOATS if "float" in x.plan.attributes else INTEGERS).get(name)
    if found is None:
        raise Unsupported(f"{x.plan.name} {name}: not yet simulated")
    return name, found


@answers("untyped_atomic", "a64_untyped_atomic", "untyped_atomic_float", "a64_untyped_atomic_float")
def untyped_atomic(x: DataPortMessage) -> None:
    """Untyped atomic of 8 or 16 lanes; `perform` is where it reaches memory."""
    words = x.plan.words
    lanes, type = LANES[words.get("simd_mode", "simd8")], u64 if words.get("data_width") == "qword" else u32
    if words["operation"] == "cmpwr_2w" and type is u32:
        compare_write_pairs(x, lanes)
        return
    name, atomic_operation = operation(x)
    mask, (at, start) = pixel_lanes(x, lanes), offsets(x, lanes)
    memory, at = region(x, at)
    operands = [x.take(type, start + number * type.bytes * lanes, lanes) for number in range(atomic_operation.operands)]
    x.expect(type.bytes * lanes if x.plan.fields.return_data else 0)
    old = perform(x.m, atomic_operation, type, memory, at, operands, mask)
    if x.plan.fields.return_data:
        x.give(returned(name, old), 0, mask)


@answers("untyped_atomic_simd4x2", "a64_untyped_atomic_simd4x2", "untyped_atomic_float_simd4x2", "a64_untyped_atomic_float_simd4x2")
def slot_atomic(x: DataPortMessage) -> None:
    """Two slots; the second operand of dwords is next to the first, of qwords one register after it (KBL 5985-6060, 18265-18330)."""
    type = u64 if x.plan.words.get("data_width") == "qword" else u32
    name, atomic_operation = operation(x)
    mask = simd4x2.slots(x)
    memory, at = region(x, simd4x2.offsets(x))
    places = [(GRF_BYTES, 0), (GRF_BYTES, 1) if type is u32 else (2 * GRF_BYTES, 0)]
    operands = [simd4x2.firsts(x, type, *place) for place in places[: atomic_operation.operands]]
    x.expect(GRF_BYTES if x.plan.fields.return_data else 0)
    old = perform(x.m, atomic_operation, type, memory, at, operands, mask)
    if x.plan.fields.return_data:
        simd4x2.give_firsts(x, returned(name, old), mask)


def compare_write_pairs(x: DataPortMessage, lanes: int) -> None:
    """Pairs of dwords, compared and written together; the low halves of all lanes precede the high ones (KBL 18441-18466)."""
    m, size = x.m, u32.bytes * lanes
    mask, (at, start) = pixel_lanes(x, lanes), offsets(x, lanes)
    memory, at = region(x, at)
    parts = [m.convert(x.take(u32, start + number * size, lanes), u64) for number in range(4)]
    operands = [parts[number] | parts[number + 1] << 32 for number in (0, 2)]
    x.expect(2 * size if x.plan.fields.return_data else 0)
    old = perform(m, INTEGERS["cmpwr"], u64, memory, at, operands, mask)
    if x.plan.fields.return_data:
        x.give(m.convert(old, u32), 0, mask)
        x.give(m.convert(old >> 32, u32), size, mask)


def returned(name: str, old: Value) -> Value:
    """One operation returns what it left there, the others what they found (KBL 1393-1394)."""
    return old - 1 if name == "predec" else old


def perform(m: Machine, atomic: AtomicOperation, type: LaneType, memory: Region, at: Value, operands: list[Value], mask: Value) -> Value:
    """Perform an atomic on memory and return the old value. Out of bounds the old value is zero, and nothing is changed."""
    if atomic.function is not None:
        return m.update(type, memory, at, operands, mask, atomic.function)[0]
    operands = operands or [m.constant(type, 1, at.lanes)]
    given = [m.bitcast(value, type.signed) for value in operands] if atomic.signed else operands
    return m.bitcast(m.atomic(atomic.native, memory, at, given, mask), type)

"""Affine tracking against the lanes' values: random chains of operations, run on random numbers.

Wherever the machine keeps an AffineValue for a value, its base, its conditions and its low bits are computed next to the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.affine import DEEPEST, EVERY, AffineValue
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import LaneType, bool_, i16, i32, i64, u16, u32, u64
from softgen.lanes.value import Value
from tests.lanes.both import compile_

WIDTH = 8
TYPES = (u16, i16, u32, i32, u64, i64)
SCALARS = (u16, i32, u64)
SPECIAL = (0, 1, 3, 0x7FF8, 0x7FFF, 0x8000, 0xFFF8, 0xFFFF, 0x10000, 0x7FFFFFF0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF, 1 << 32,
           (1 << 63) - 5, 1 << 63, (1 << 64) - 4, (1 << 64) - 1)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 0x40, 0xFF, 0x3FF, 0xFFF0, 0xFFFF, -1, -2, -4, -16, 0xFFFFFFFC, 0x7FFF, 0x8000)
ORDERS = ([0] * 8, [3] * 8, range(4), range(4, 8), range(0, 8, 2), range(1, 8, 2), range(7, -1, -1), [0, 1, 3, 2], [5], [0, 4], [4, 0],
          range(1, 5))  # fmt: skip
# Affine values as payloads have them: type, stride, and the highest that a lane can be, if that is known.
LEAVES = ((u16, 1, 1023), (u16, -1, 1023), (u16, 0, 1023), (u16, 9000, 0xFFFF), (u16, -9000, 0xFFFF), (u16, 1, None), (i16, -3, None),
          (u32, 4, None), (i32, 1, 1023), (u32, 4, (1 << 32) - 1), (u64, 8, None))  # fmt: skip
SIGNATURE = (*(Lanes(type, 1) for type in SCALARS), *(Lanes(type, WIDTH) for type, *_ in LEAVES), *[Lanes(bool_, WIDTH)] * 2)


@dataclass
class Said:
    """One thing that was said of a value: which outputs to compare."""

    type: LaneType
    stride: int
    highest: int | None
    number: int | None
    value: int
    base: int
    conditions: list[int]
    mask: int | None
    words: str


@dataclass
class Told:
    """Writes a chain, and remembers what the machine then said of each value."""

    chain: Sequence[tuple[str, int, int]]
    said: list[Said] = field(default_factory=list)
    shapes: tuple[Lanes, ...] = ()

    def __call__(self, m: LlvmMachine, *inputs: Value) -> tuple[Value, ...]:
        self.said = []
        scalars, rows, masks = inputs[:3], inputs[3:-2], inputs[-2:]
        for (type, step, highest), row in zip(LEAVES, rows, strict=True):
            affine.declare(m.ir, type, WIDTH, row.payload, step, highest)
        pool = [*rows, *(m.broadcast(scalar, WIDTH) for scalar in scalars), m.lane_index(WIDTH), m.lane_index(WIDTH, u16)]
        words = [f"leaf {leave}" for leave in LEAVES] + [f"scalar {scalar}" for scalar in SCALARS] + ["lane_index"] * 2
        outputs: list[Value] = list(masks)
        for name, a, b in self.chain:
            made = _operation(m, pool, masks, name, a, b)
            if made is not None:
                pool.append(made)
                words.append(f"{name} {a % (len(pool) - 1)} {b}")
        for number, value in enumerate(pool):
            held = affine.known(m.ir, value.payload)
            if held is None or held.mask not in (EVERY, masks[0].payload, masks[1].payload) or value.lanes == 1:
                continue
            self._say(m, value, held, outputs, masks, "\n".join(words[: number + 1]))
        self.shapes = tuple(Lanes(output.type, output.lanes) for output in outputs)
        return tuple(outputs)

    def _say(self, m: LlvmMachine, value: Value, held: AffineValue, outputs: list[Value], masks: Sequence[Value], words: str) -> None:
        mask = None if held.mask == EVERY else [mask.payload for mask in masks].index(held.mask)
        if mask is not None and value.lanes != WIDTH:
            raise AssertionError(f"a mask of other lanes\n{words}")
        outputs.append(value)
        place = len(outputs) - 1
        assert held.low is None or not held.low.affine.conditions, f"low bits under conditions\n{words}"
        for type, item, what in [(value.type, held, ""), *([(held.low.type, held.low.affine, " low")] if held.low else [])]:
            outputs.append(_scalar(m, type, item.base()))
            first = len(outputs) - 1
            outputs += [_scalar(m, bool_, text()) for text in item.conditions]
            conditions = [*range(first + 1, len(outputs))]
            self.said.append(Said(type, item.stride, item.highest, item.number, place, first, conditions, mask, words + what))


def _scalar(m: LlvmMachine, type: LaneType, operand: str) -> Value:
    kind = "i1" if type is bool_ else f"i{type.bits}"
    return Value(m, type, 1, m.ir.emit(f"insertelement <1 x {kind}> poison, {kind} {operand}, i64 0"))


def _operation(m: LlvmMachine, pool: list[Value], masks: Sequence[Value], name: str, a: int, b: int) -> Value | None:
    value = pool[a % len(pool)]
    fitting = [candidate for candidate in pool if candidate.lanes == value.lanes]
    match name:
        case "add" | "sub" | "mul" | "bit_and" | "bit_or" | "bit_xor":
            other = m.convert(fitting[b % len(fitting)], value.type)
            return getattr(m, name)(value, other) if b % 2 else getattr(m, name)(other, value)
        case "number +" | "number -" | "number *" | "number &" | "number |":
            whole = (1 << value.type.bits) - 1
            number = m.bitcast(m.constant(value.type.unsigned, NUMBERS[b % len(NUMBERS)] & whole, value.lanes), value.type)
            how = {"+": m.add, "-": m.sub, "*": m.mul, "&": m.bit_and, "|": m.bit_or}[name[-1]]
            return how(value, number) if b % 2 else how(number, value)
        case "shift_left" | "shift_right":
            count = m.constant(value.type, b % min(value.type.bits, 20), value.lanes)
            return getattr(m, name)(value, count)
        case "shift by":
            return m.shift_left(value, m.convert(fitting[b % len(fitting)], value.type) & value.type.bits - 1)
        case "negate":
            return -value
        case "convert":
            return m.convert(value, TYPES[b % len(TYPES)])
        case "bitcast":
            return m.bitcast(value, value.type.unsigned if value.type.is_signed else value.type.signed)
        case "shuffle":
            order = [order for order in ORDERS[b % len(ORDERS)] if order < value.lanes]
            return m.shuffle(value, order)
        case "masked":  # as a write under a mask: lanes that it has off are anything
            held = affine.known(m.ir, value.payload)
            mask = masks[b % 2]
            if held is None or value.lanes != WIDTH or held.mask not in (EVERY, mask.payload):
                return None
            made = m.select(mask, value, m.bitcast(m.constant(value.type.unsigned, 0x55, WIDTH), value.type))
            m.ir.affine[made.payload] = replace(held, mask=mask.payload)
            return made
    raise AssertionError(name)


def numbers(rng: np.random.Generator) -> list[Any]:
    """One set of inputs."""
    inputs: list[Any] = []
    for type in SCALARS:
        held = int(rng.choice(np.array(SPECIAL, np.uint64))) if rng.integers(0, 2) else int(rng.integers(0, 1 << 63)) * 2 + 1
        inputs.append(_array(type, [held]))
    for type, step, highest in LEAVES:
        whole = (1 << type.bits) - 1
        most, reach = whole if highest is None else highest, abs(step) * (WIDTH - 1)
        if highest is None:
            ends = [limit - reach + more for limit in (whole, whole >> 1, 0x3FF) for more in (0, 1)]  # just there, just not
            first = int(rng.choice(np.array([0, 5, whole - 3, whole >> 1, *ends], np.uint64)))
        else:
            first = int(rng.integers(0, most - reach + 1)) + (reach if step < 0 else 0)
        inputs.append(_array(type, [first + step * lane for lane in range(WIDTH)]))
    return [*inputs, *(rng.integers(0, 3, WIDTH) > 0 for _ in range(2))]


def _array(type: LaneType, values: Sequence[int]) -> Any:
    whole = (1 << type.bits) - 1
    return np.array([value & whole for value in values], f"u{type.bytes}").view(f"{'i' if type.is_signed else 'u'}{type.bytes}")


def check(chain: Sequence[tuple[str, int, int]], sets: int = 6) -> list[Said]:
    told = Told(chain)
    routine = compile_(told, _signature(told))
    rng = np.random.default_rng(len(chain))
    for _ in range(sets):
        found = routine(*numbers(rng))
        for said in told.said:
            _compare(said, found)
    return told.said


def _signature(told: Told) -> Signature:
    """The outputs of a chain are known when it has been written once."""
    m = LlvmMachine()
    told(m, *(Value(m, parameter.type, parameter.lanes, m.ir.fresh()) for parameter in SIGNATURE))
    return Signature(SIGNATURE, told.shapes)


def _compare(said: Said, found: Sequence[Any]) -> None:
    whole, lanes = (1 << said.type.bits) - 1, [int(item) for item in found[said.value]]
    if not all(found[condition][0] for condition in said.conditions):
        return
    on = [True] * len(lanes) if said.mask is None else found[said.mask]
    first = int(found[said.base][0]) & whole
    for lane, (value, is_on) in enumerate(zip(lanes, on, strict=False)):
        if is_on:
            what = f"lane {lane} of {lanes}, first {first:#x}, step {said.stride}"
            assert value & whole == first + lane * said.stride & whole, f"{what}\n{said.words}"
            assert said.highest is None or value & whole <= said.highest, f"{lanes}, highest {said.highest}\n{said.words}"
            assert said.number is None or value & whole == said.number, f"{lanes}, number {said.number}\n{said.words}"


NAMES = ("add", "sub", "mul", "number +", "number -", "number *", "number &", "number &", "number |", "bit_and", "bit_or", "bit_xor",
         "shift_left", "shift_left", "shift_right", "shift by", "negate", "convert", "convert", "convert", "bitcast", "shuffle", "shuffle",
         "masked")  # fmt: skip
STEPS = st.tuples(st.sampled_from(NAMES), st.integers(0, 40), st.integers(0, 60))


@seed(11)
@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=12, max_size=36))
def test_lanes_lie_as_the_machine_says(chain: list[tuple[str, int, int]]) -> None:
    check(chain)


def last(*chain: tuple[str, int, int]) -> list[Said]:
    """What is said of the last value of a chain; the first one that it makes is number 16."""
    said = check(chain, sets=20)
    return [value for value in said if value.value == said[-1].value]


@pytest.mark.parametrize("chain, step, highest", [
    ([("convert", 1, 2)], 0xFFFFFFFF, 1023),  # ids that count down
    ([("convert", 1, 2), ("convert", 16, 5)], (1 << 64) - 1, 1023),
    ([("convert", 1, 2), ("number *", 16, 4)], 0xFFFFFFFC, 4092),
    ([("convert", 3, 2)], 9000, 0xFFFF),  # lanes that reach the upper half of a type
    ([("convert", 0, 2), ("shift_left", 16, 2)], 4, 4092),
    ([("convert", 5, 4), ("number +", 16, 3), ("convert", 17, 2)], 1, None),  # to a width between two others
    ([("convert", 5, 2), ("shuffle", 16, 3), ("convert", 17, 0)], 1, None),  # low bits of later lanes
    ([("convert", 5, 2), ("shuffle", 16, 4), ("convert", 17, 0)], 2, None),
    ([("shuffle", 0, 6)], 0xFFFF, 1023),
    ([("shuffle", 3, 9), ("convert", 16, 2)], 36000, 0xFFFF),  # two lanes, far apart, up and down
    ([("shuffle", 3, 10), ("convert", 16, 2)], 29536, 0xFFFF),
    ([("shuffle", 7, 11)], 4, None),  # the same but for the first lane
    ([("number &", 7, 18)], 4, None),
    ([("number &", 7, 11)], 4, None),
])  # fmt: skip
def test_chains_that_are_common_or_were_wrong(chain: list[tuple[str, int, int]], step: int, highest: int | None) -> None:
    assert [(item.stride, item.highest) for item in last(*chain) if not item.words.endswith("low")] == [(step, highest)]


@pytest.mark.parametrize("name, b", [("add", 11), ("sub", 11), ("mul", 11), ("bit_and", 11), ("bit_or", 11), ("bit_xor", 11),
                                     ("shift_left", 3), ("shift_right", 3), ("negate", 0)])  # fmt: skip
@pytest.mark.parametrize("number", [12, 13], ids=["i32", "u64"])
def test_an_operation_of_uniform_operands_is_one_of_scalars(name: str, b: int, number: int) -> None:
    (value,) = last((name, number, b))
    assert (value.stride, value.conditions, value.mask) == (0, [], None)


def test_low_bits_need_none_of_the_conditions_of_wide_ones() -> None:
    """An id that may wrap at 16 bits is widened, added to and truncated again: affine for any value."""
    (wide, low), (cut,) = last(("convert", 5, 2), ("number +", 16, 3)), last(("convert", 5, 2), ("number +", 16, 3), ("convert", 17, 0))
    assert wide.conditions and not low.conditions and not cut.conditions
    assert (wide.stride, low.stride, cut.stride) == (1, 1, 1)


def test_low_bits_with_conditions_of_their_own_are_not_kept() -> None:
    """An id that may wrap at 16 bits is widened. Clearing bits that a lane may reach depends on the last lane."""
    m = LlvmMachine()
    affine.declare(m.ir, u16, 8, "%x", 1)
    wide = m.convert(Value(m, u16, 8, "%x"), u32)
    for value, kept in ((wide, True), (wide + 5, True), (wide * 8 & 0xFFF8, True), (wide & 0x3FF, False), ((wide & 0x3FF) + 5, False)):
        held = affine.known(m.ir, value.payload)
        assert held is not None and held.conditions and (held.low is not None) is kept


def test_numbers_that_are_known_stay_known() -> None:
    m = LlvmMachine()
    listed, same = m.constant(u32, [5] * 8), m.constant(u32, 5, 8)
    widened = ((i16, -2, u64, (1 << 64) - 2), (i16, 5, u64, 5), (i16, 0x7FFF, i32, 0x7FFF), (i16, -0x8000, i32, 0xFFFF_8000),
               (u16, 0xFFFF, i64, 0xFFFF), (i32, -2, u16, 0xFFFE), (u32, 0x1_8005, i16, 0x8005))
    converted = [(m.convert(m.constant(source, number, 8), type), expected) for source, number, type, expected in widened]
    computed = ((same + 0xFFFFFFFE, 3), (same * 3 - 16, 0xFFFFFFFF), (same * 0x40000000, 0x40000000), (same & 6, 4), (same | 6, 7),
                (same ^ 6, 3), (-same, 0xFFFFFFFB), (same << 3, 40), (same << 30, 0x40000000), (same << 33, 10))  # fmt: skip
    negative = m.constant(i16, -2, 8), 0xFFFE
    for value, number in ((listed, 5), (same, 5), negative, *computed, *converted):
        held = affine.known(m.ir, value.payload)
        assert held is not None and (held.stride, held.number, held.base()) == (0, number, str(number))
    assert affine.known(m.ir, m.constant(bool_, 1, 8).payload) is None
    assert affine.known(m.ir, m.constant(u32, [0, 1, 2, 4]).payload) is None


@pytest.mark.parametrize("most, mask, conditions", [(15, 15, False), (15, 31, False), (16, 15, True), (None, 15, True)])
def test_high_bits_that_no_lane_reaches_may_be_cleared(most: int | None, mask: int, conditions: bool) -> None:
    """Where the highest value is not known, or is above the mask, it depends on the last lane."""
    m = LlvmMachine()
    value = Value(m, u32, 8, "%x")
    affine.declare(m.ir, u32, 8, value.payload, 1, highest=most)
    held = affine.known(m.ir, (value & mask).payload)
    assert held is not None and (held.stride, bool(held.conditions)) == (1, conditions)
    assert held.highest == (None if conditions else most)


@pytest.mark.parametrize("stride, mask, first", [(1, 15, 8), (1, 7, 0), (2, 15, 1), (1, 3, None), (2, 7, None), (-1, 15, None)])
def test_high_bits_are_clear_if_the_last_lane_has_none(stride: int, mask: int, first: int | None) -> None:
    """Of eight lanes that count up, as far as the first one is at most a number; None where some lane has high bits in any case."""
    m = LlvmMachine()
    affine.declare(m.ir, u32, 8, "%x", stride % (1 << 32))
    held = affine.known(m.ir, (Value(m, u32, 8, "%x") & mask).payload)
    assert (held is not None) is (first is not None)
    if held is not None:
        (condition,) = held.conditions
        condition()
        assert m.ir.lines[-1].endswith(f", {first}") and "icmp ule i32" in m.ir.lines[-1]


@pytest.mark.parametrize("type, compute, highest", [
    (u32, lambda m, x: x + 5, 15), (u32, lambda m, x: x - 5, None), (u32, lambda m, x: x * 3, 30), (u32, lambda m, x: -x, None),
    (u32, lambda m, x: x << 2, 40), (u32, lambda m, x: x << 34, 40), (u32, lambda m, x: x >> 1, 10), (i32, lambda m, x: x >> 1, None),
    (u32, lambda m, x: x + x, 20), (u32, lambda m, x: x & 8, 8), (u32, lambda m, x: x & 0xFFFFFFF8, 10), (u32, lambda m, x: x | 1, None),
    (u32, lambda m, x: x + 0xFFFFFFF5, 0xFFFFFFFF), (u32, lambda m, x: x + 0xFFFFFFF6, None), (u32, lambda m, x: x << 29, None),
    (u32, lambda m, x: x * 0x1999_9999, 0xFFFF_FFFA), (u32, lambda m, x: x * 0x1999_999A, None),
])  # fmt: skip
def test_the_highest_value_of_results(type: LaneType, compute: Callable[[LlvmMachine, Value], Value], highest: int | None) -> None:
    """Of a uniform operand of at most 10; None where it may wrap, or is not known."""
    m = LlvmMachine()
    affine.declare(m.ir, type, 8, "%x", 0, highest=10)
    held = affine.known(m.ir, compute(m, Value(m, type, 8, "%x")).payload)
    assert held is not None and held.highest == highest


@pytest.mark.covering(2)
@pytest.mark.parametrize("stride", [4, -4])
@pytest.mark.parametrize("source, type", [(i32, i64), (i32, u64), (u32, u64), (i16, i32)])
@pytest.mark.parametrize("above", [-1, 0, None])
def test_lanes_that_may_have_a_sign_bit_are_widened_on_a_condition(
        source: LaneType, type: LaneType, stride: int, above: int | None) -> None:  # fmt: skip
    """Where the highest value is one below the sign bit, the sign bit or not known: of lanes that have none, signed or not, steps down
    stay steps down."""
    m, sign = LlvmMachine(), 1 << source.bits - 1
    affine.declare(m.ir, source, 8, "%x", stride % (1 << source.bits), highest=None if above is None else sign + above)
    held = affine.known(m.ir, m.convert(Value(m, source, 8, "%x"), type).payload)
    assert held is not None and bool(held.conditions) is (above != -1)
    assert above != -1 or held.stride == stride % (1 << type.bits)


def test_text_does_not_grow_without_bounds() -> None:
    """Doubled forty times, with all that was ever said of low bits."""
    doubled = [("convert", 5, 2), *(("add", number, number) for number in range(16, 56)), ("convert", 56, 0), ("convert", 57, 2)]
    told = Told(doubled)
    told(m := LlvmMachine(), *(Value(m, parameter.type, parameter.lanes, m.ir.fresh()) for parameter in SIGNATURE))
    assert len(m.ir.lines) < 40 * 2 * 2**DEEPEST
    check(doubled, sets=1)


@pytest.mark.parametrize("moved", [lambda m, value: m.convert(value, u32), lambda m, value: m.shuffle(value, range(4, 8))])
@pytest.mark.parametrize("operations", [DEEPEST, DEEPEST + 1])
def test_a_base_is_a_few_scalar_operations_or_a_lane_of_the_result(operations: int, moved: Callable[..., Value]) -> None:
    """A truncation is one of them, and so is a step to later lanes."""
    m = LlvmMachine()
    affine.declare(m.ir, u64, 8, "%x", 4)
    value = Value(m, u64, 8, "%x")
    for _ in range(operations - 2):
        value = value + 1
    value = moved(m, value) + 1
    m.ir.affine[value.payload].base()
    extracted = value.payload if operations > DEEPEST else "%x"
    assert [line.partition("> ")[2] for line in m.ir.lines if "extractelement" in line] == [f"{extracted}, i64 0"]


@pytest.mark.parametrize("operations", [DEEPEST, DEEPEST + 1])
def test_low_bits_are_as_many_operations_or_a_lane_of_the_result(operations: int) -> None:
    """Under a mask, which may have that lane off, they are not known."""
    m, long = LlvmMachine(), operations > DEEPEST
    affine.declare(m.ir, u16, 8, "%x", 1)
    m.ir.affine["%y"] = AffineValue(1, lambda: "%first", mask="%m")
    values = [m.convert(Value(m, u16, 8, name), u32) for name in ("%x", "%y")]
    for _ in range(operations - 1):
        values = [value + 1 for value in values]
    plain, masked = (m.ir.affine[value.payload].low for value in values)
    assert plain is not None and (masked is None) is long
    m.ir.lines.clear()
    plain.affine.base()
    assert [line.partition("> ")[2] for line in m.ir.lines if "extractelement" in line] == [f"{values[0].payload if long else '%x'}, i64 0"]


@pytest.mark.parametrize("count", [DEEPEST, DEEPEST + 1])
def test_a_few_conditions_are_kept(count: int) -> None:
    """Each operand of a sum is affine if its last lane is low enough."""
    m = LlvmMachine()
    for number in range(count):
        affine.declare(m.ir, u32, 8, f"%x{number}", 1)
    value, *others = (Value(m, u32, 8, f"%x{number}") & 0x3FF for number in range(count))
    for other in others:
        value = value + other
    held = affine.known(m.ir, value.payload)
    assert held is None if count > DEEPEST else held is not None and (held.stride, len(held.conditions)) == (count, count)


# -- masks -------------------------------------------------------------------------------------------------------------


def test_what_holds_under_a_mask_holds_under_one_with_fewer_lanes() -> None:
    m = LlvmMachine()
    value, mask, other = Value(m, u32, 8, "%x"), Value(m, bool_, 8, "%a"), Value(m, bool_, 8, "%b")
    m.ir.affine["%x"] = AffineValue(4, lambda: "0", mask="%a")
    fewer = mask & other
    both = fewer & Value(m, bool_, 8, "%c")
    for usable in (mask, fewer, both, mask & m.constant(bool_, 1, 8)):
        assert affine.usable(m.ir, value.payload, usable.payload) is not None
    for not_usable in (other, m.constant(bool_, 1, 8), mask | other, ~mask, m.shuffle(mask, range(8))):
        assert affine.usable(m.ir, value.payload, not_usable.payload) is None


def test_operands_under_two_masks_and_parts_of_them_are_not_believed() -> None:
    m = LlvmMachine()
    a, b = Value(m, u32, 8, "%x"), Value(m, u32, 8, "%y")
    m.ir.affine |= {"%x": AffineValue(4, lambda: "0", mask="%a"), "%y": AffineValue(4, lambda: "0", mask="%b")}
    assert affine.known(m.ir, (a + b).payload) is None
    assert affine.known(m.ir, m.slice(a, 0, 4).payload) is None
    held = affine.known(m.ir, (a + 4).payload)
    assert held is not None and held.mask == "%a"


@pytest.mark.parametrize("operations", [2 * DEEPEST, 2 * DEEPEST + 1])
def test_a_base_under_a_mask_is_more_scalar_operations_or_not_known(operations: int) -> None:
    """No lane of the result can be taken: the mask may have it off."""
    m = LlvmMachine()
    m.ir.affine["%x"] = AffineValue(4, lambda: "%first", mask="%m")
    value = Value(m, u32, 8, "%x")
    for _ in range(operations):
        value = value + 1
    held = affine.known(m.ir, value.payload)
    assert (held is not None) is (operations <= 2 * DEEPEST)
    if held is not None:
        m.ir.lines.clear()
        held.base()
        assert len(m.ir.lines) == operations and "add i32 %first, 1" in m.ir.lines[0]


def test_a_number_under_a_mask_stays_there_when_it_is_made_wider() -> None:
    m = LlvmMachine()
    m.ir.affine["%x"] = replace(affine.known(m.ir, "splat (i32 128)") or AffineValue(0, lambda: ""), mask="%m")
    wider = m.convert(Value(m, u32, 8, "%x"), i64)
    found = m.ir.affine[wider.payload]
    assert (found.number, found.mask) == (128, "%m")
    total = m.ir.affine[(wider + 5).payload]
    assert (total.number, total.mask) == (133, "%m")


def test_constants_that_count_down_and_numbers_that_are_negated() -> None:
    m = LlvmMachine()
    assert m.ir.affine[m.constant(u16, [9, 6, 3, 0]).payload].stride == 0xFFFD
    held = affine.known(m.ir, (-m.constant(u32, 5, 4)).payload)
    assert held is not None and held.number == (1 << 32) - 5

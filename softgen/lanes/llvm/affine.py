"""Affine lane values (lane i is base + i·stride), tracked while IR is written. Most addresses are affine.

A machine that writes IR keeps an AffineValue for each integer operand it knows to be one. Memory accesses with such offsets become
contiguous or uniform without a test at run time; `base` is written where it is needed, as scalar operations, so that the vector itself may
never be computed. stride 0 is uniform, a stride of the element's size is contiguous; what has no AffineValue may be divergent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from softgen.lanes.types import LaneType

EVERY = "splat (i1 1)"
DEEPEST = 6  # scalar operations that are written again rather than extracted from a vector
_SCALAR = {"add": "add", "sub": "sub", "mul": "mul", "bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
_MODULAR = frozenset({"add", "sub", "mul", "negate", "bit_and", "bit_or", "bit_xor"})
_SHIFTS = frozenset({"shift_left", "shift_right"})
_SPLAT = re.compile(r"splat \(i(\d+) (-?\d+)\)")

Text = Callable[[], str]  # writes lines and returns an operand


@dataclass(frozen=True)
class AffineValue:
    """An affine vector. Holds for the lanes of `mask`, where all `conditions` (i1) hold."""

    stride: int  # modulo the width
    base: Text  # lane 0 as a scalar, whether the mask has it on or off
    mask: str = EVERY
    conditions: tuple[Text, ...] = ()
    highest: int | None = None  # unsigned upper bound of all lanes
    number: int | None = None  # the constant that all lanes are
    low: LowBits | None = None  # what holds of low bits without the conditions
    depth: int = 0


@dataclass(frozen=True)
class LowBits:
    """Affine low bits of lanes that were widened, computed with, and may be truncated again."""

    type: LaneType
    affine: AffineValue


class IrWriter(Protocol):
    """The part of a machine that affine tracking uses."""

    affine: dict[str, AffineValue]  # by operand
    implied: dict[str, frozenset[str]]  # masks that a mask is a subset of

    def emit(self, text: str) -> str: ...

    def vector(self, type: LaneType, lanes: int) -> str: ...


def known(m: IrWriter, payload: str) -> AffineValue | None:
    if (found := m.affine.get(payload)) is not None:
        return found
    if (splat := _SPLAT.fullmatch(payload)) is not None and splat[1] != "1":
        number = int(splat[2])
        return _constant(number & (1 << int(splat[1])) - 1)
    return None


def usable(m: IrWriter, payload: str, mask: str) -> AffineValue | None:
    """The affine value of an operand whose lanes are used under a mask."""
    found = known(m, payload)
    if found is None or found.mask in (EVERY, mask) or found.mask in m.implied.get(mask, ()):
        return found
    return None


def uniform(m: IrWriter, payload: str) -> Text | None:
    """The scalar of a uniform operand, whatever the mask."""
    found = known(m, payload)
    return found.base if found is not None and not found.stride and found.mask == EVERY and not found.conditions else None


def constant(m: IrWriter, type: LaneType, numbers: Sequence[float], payload: str) -> None:
    """Record a constant list of numbers that is affine."""
    strides = {int(b - a) for a, b in pairwise(numbers)} if type.is_integer else set()
    if len(strides) == 1 and 0 not in strides:  # the same number in all lanes is known by its text
        text = str(int(numbers[0]))
        m.affine[payload] = AffineValue(strides.pop() % (1 << type.bits), lambda: text)


def lane(m: IrWriter, type: LaneType, lanes: int, payload: str, number: int = 0) -> Text:
    """Extract a lane of a vector, when called."""
    return lambda: m.emit(f"extractelement {m.vector(type, lanes)} {payload}, i64 {number}")


def declare(m: IrWriter, type: LaneType, lanes: int, payload: str, stride: int, highest: int | None = None) -> None:
    """Record that all lanes of an operand are affine."""
    m.affine[payload] = AffineValue(stride % (1 << type.bits), lane(m, type, lanes, payload), highest=highest)


def narrowed(m: IrWriter, result: str, *masks: str) -> None:
    """Record that a mask is a subset of others."""
    m.implied[result] = frozenset(masks).union(*(m.implied.get(mask, ()) for mask in masks))


# -- transfer functions ----------------------------------------------------------------------------------------------


def computed(m: IrWriter, name: str, type: LaneType, lanes: int, payloads: Sequence[str], result: str) -> None:
    """Record what an integer operation makes of affine operands, after `result` was written."""
    operands = [known(m, payload) for payload in payloads]
    known_operands = [value for value in operands if value is not None]
    masks = {value.mask for value in known_operands} - {EVERY}
    if len(known_operands) < len(operands) or len(masks) > 1:
        return
    found, low = _of_operation(m, name, type, lanes, known_operands), _low(m, name, type, lanes, known_operands)
    if found is None and low is not None:
        found = AffineValue(0, lambda: "0", conditions=(lambda: "false",))
    if found is not None:
        _keep(m, type, lanes, result, replace(found, low=low), masks.pop() if masks else EVERY, known_operands)


def _low(m: IrWriter, name: str, type: LaneType, lanes: int, operands: list[AffineValue]) -> LowBits | None:
    """Low bits of sums, products and shifts depend on low bits alone."""
    narrow = min((value.low.type for value in operands if value.low), key=lambda type: type.bits, default=None)
    if narrow is None or name not in _MODULAR:
        return None
    cut = [_cut(m, value, type, narrow) for value in operands]
    found = _of_operation(m, name, narrow, lanes, cut)
    return None if found is None or any(value.conditions for value in (found, *cut)) else LowBits(narrow, found)


def _cut(m: IrWriter, affine: AffineValue, type: LaneType, to: LaneType) -> AffineValue:
    """Truncate."""
    whole = (1 << to.bits) - 1
    if affine.low is not None and affine.low.type.bits >= to.bits:
        type, affine = affine.low.type, affine.low.affine
    base = affine.base if type.bits == to.bits else lambda: m.emit(f"trunc i{type.bits} {affine.base()} to i{to.bits}")
    small = affine.highest is not None and affine.highest <= whole
    number = None if affine.number is None else affine.number & whole
    return AffineValue(affine.stride & whole, base, conditions=affine.conditions, highest=affine.highest if small else None, number=number)


def _keep(m: IrWriter, type: LaneType, lanes: int, result: str, value: AffineValue, mask: str, operands: list[AffineValue]) -> None:
    depth = 1 + max(operand.depth for operand in operands)
    conditions = tuple(dict.fromkeys([*(text for operand in operands for text in operand.conditions), *value.conditions]))
    if depth > DEEPEST:
        value = replace(value, low=_shallow(m, type, lanes, result, value.low) if mask == EVERY else None)
    if depth > DEEPEST and mask == EVERY:
        value, depth = replace(value, base=lane(m, type, lanes, result)), 0
    if value.highest is not None and value.highest >> type.bits:
        value = replace(value, highest=None)
    if depth <= 2 * DEEPEST and len(conditions) <= DEEPEST:
        m.affine[result] = replace(value, mask=mask, conditions=conditions, depth=depth)


def _shallow(m: IrWriter, type: LaneType, lanes: int, result: str, low: LowBits | None) -> LowBits | None:
    """LowBits whose base is extracted from the result."""
    if low is None:
        return None
    base, kind = lane(m, type, lanes, result), f"i{low.type.bits}"
    return LowBits(low.type, replace(low.affine, base=lambda: m.emit(f"trunc i{type.bits} {base()} to {kind}")))


def _of_operation(m: IrWriter, name: str, type: LaneType, lanes: int, operands: list[AffineValue]) -> AffineValue | None:
    strides, whole = [value.stride for value in operands], (1 << type.bits) - 1
    base, highest = _scalar(m, name, type, operands), _highest(name, type, operands)
    if base is None:
        return None
    numbers = [value.number for value in operands if value.number is not None]
    if len(numbers) == len(operands) and (number := _number(name, type, numbers)) is not None:
        return _constant(number)
    if not any(strides):
        return AffineValue(0, base, highest=highest)
    match name:
        case "add":
            return AffineValue(sum(strides) & whole, base, highest=highest)
        case "sub" | "negate":
            return AffineValue((strides[0] - strides[1] if name == "sub" else -strides[0]) & whole, base)
        case "mul" if (number := operands[0].number if strides[1] else operands[1].number) is not None:
            return AffineValue(sum(strides) * number & whole, base, highest=highest)
        case "shift_left" if operands[1].number is not None:
            return AffineValue(strides[0] << (operands[1].number & type.bits - 1) & whole, base, highest=highest)
        case "bit_and" if (number := operands[0].number if strides[1] else operands[1].number) is not None:
            return _masked(m, type, lanes, operands[bool(strides[1])], number, base)
    return None


def _constant(number: int) -> AffineValue:
    return AffineValue(0, lambda: str(number), highest=number, number=number)


def _number(name: str, type: LaneType, numbers: list[int]) -> int | None:
    """Constant folding."""
    whole, (a, *rest) = (1 << type.bits) - 1, numbers
    b = rest[0] if rest else 0
    match name:
        case "add" | "sub" | "mul":
            return {"add": a + b, "sub": a - b, "mul": a * b}[name] & whole
        case "bit_and" | "bit_or" | "bit_xor":
            return {"bit_and": a & b, "bit_or": a | b, "bit_xor": a ^ b}[name]
        case "negate":
            return -a & whole
        case "shift_left":
            return a << (b & type.bits - 1) & whole
    return None


def _highest(name: str, type: LaneType, operands: list[AffineValue]) -> int | None:
    """The unsigned upper bound; above the type's highest where it may wrap."""
    most = [value.highest for value in operands]
    if name == "bit_and":
        return min((bound for bound in most if bound is not None), default=None)
    if (a := most[0]) is None or (b := most[-1]) is None:
        return None
    match name:
        case "add":
            return a + b
        case "mul":
            return a * b
        case "shift_left" if operands[1].number is not None:
            return a << (operands[1].number & type.bits - 1)
        case "shift_right" if not type.is_signed:
            return a
    return None


def _masked(m: IrWriter, type: LaneType, lanes: int, affine: AffineValue, number: int, base: Text) -> AffineValue | None:
    """An and that clears low bits which the stride does not touch, or high bits which no lane reaches."""
    off = ~number & (1 << type.bits) - 1
    if not off + 1 & off and not affine.stride & off:
        return AffineValue(affine.stride, base, highest=affine.highest)
    if not number + 1 & number:
        if affine.highest is not None and affine.highest <= number:
            return AffineValue(affine.stride, base, highest=affine.highest)
        return _below(m, type, lanes, affine.stride, number, base, "ule")
    return None


def _below(m: IrWriter, type: LaneType, lanes: int, stride: int, limit: int, base: Text, compare: str) -> AffineValue | None:
    """An ascending value, under the condition that its last lane stays within a limit."""
    last = limit - stride * (lanes - 1)
    if last < 0 or stride >> type.bits - 1:
        return None
    return AffineValue(stride, base, conditions=(lambda: m.emit(f"icmp {compare} i{type.bits} {base()}, {last}"),))


def _scalar(m: IrWriter, name: str, type: LaneType, operands: list[AffineValue]) -> Text | None:
    kind, bases = f"i{type.bits}", [value.base for value in operands]
    if name == "negate":
        return lambda: m.emit(f"sub {kind} 0, {bases[0]()}")
    if name in _SHIFTS:
        how = "shl" if name == "shift_left" else "ashr" if type.is_signed else "lshr"
        return lambda: m.emit(f"{how} {kind} {bases[0]()}, {m.emit(f'and {kind} {bases[1]()}, {type.bits - 1}')}")
    if name in _SCALAR:
        return lambda: m.emit(f"{_SCALAR[name]} {kind} {bases[0]()}, {bases[1]()}")
    return None


def converted(m: IrWriter, source: LaneType, type: LaneType, lanes: int, payload: str, result: str) -> None:
    """Record what a conversion between integer widths makes of an affine operand."""
    affine = known(m, payload)
    if affine is None or result == payload:
        return
    if affine.number is not None:
        number = affine.number - (1 << source.bits) if source.is_signed and affine.number > source.highest else affine.number
        m.affine[result] = replace(_constant(number & (1 << type.bits) - 1), mask=affine.mask, conditions=affine.conditions)
        return
    if source.bits > type.bits:
        low = affine.low if affine.low is not None and affine.low.type.bits < type.bits else None
        m.affine[result] = replace(_cut(m, affine, source, type), mask=affine.mask, depth=affine.depth + 1, low=low)
        return
    down = 1 << source.bits - 1
    small = affine.highest is not None and affine.highest < down  # then lanes are the same, signed or not, and strides have their sign
    stride = affine.stride - 2 * (affine.stride & down) & (1 << type.bits) - 1 if small else affine.stride
    highest = affine.highest if small or not source.is_signed else None
    how = "sext" if source.is_signed else "zext"
    found = AffineValue(stride, lambda: m.emit(f"{how} i{source.bits} {affine.base()} to i{type.bits}"), highest=highest)
    if affine.stride and not small:
        inside = _below(m, source, lanes, affine.stride, source.highest, affine.base, "sle" if source.is_signed else "ule")
        low = LowBits(source, replace(affine, low=None))
        found = replace(found, conditions=inside.conditions if inside else (lambda: "false",), low=low)
    _keep(m, type, lanes, result, found, affine.mask, [affine])


def shuffled(m: IrWriter, type: LaneType, lanes: int, payload: str, indices: Sequence[int], result: str) -> None:
    """Record what a shuffle makes of an operand: uniform, or affine with another stride."""
    start, affine = indices[0], known(m, payload)
    if len(indices) > 1 and len(set(indices)) == 1:
        m.affine[result] = AffineValue(0, lane(m, type, lanes, payload, start))
        return
    if affine is None or affine.mask != EVERY or len(gaps := {b - a for a, b in pairwise(indices)}) > 1:
        return
    m.affine[result] = shifted(m, type, affine, start, gaps.pop() if gaps else 0)


def shifted(m: IrWriter, type: LaneType, affine: AffineValue, lanes: int, gap: int = 1) -> AffineValue:
    """The affine value of lanes `lanes`, `lanes` + `gap`, … of another."""
    if (lanes, gap) == (0, 1):
        return affine
    stride, more = (affine.stride * count % (1 << type.bits) for count in (gap, lanes))
    if not more:
        return replace(affine, stride=stride, low=None)
    base = lambda: m.emit(f"add i{type.bits} {affine.base()}, {more}")  # noqa: E731
    return replace(affine, stride=stride, base=base, low=None, depth=affine.depth + 1)

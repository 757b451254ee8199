"""Lanes that lie evenly, known while a program is written: lane i is first + i · step. Addresses mostly do.

A machine that writes text keeps a Ramp for each integer operand it knows one of. Memory accesses that know one touch a row or one place
without asking how the lanes lie; `first` is written where it is needed, as scalar operations, so that the vector may never be computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from softgen.lanes.types import LaneType

if TYPE_CHECKING:
    from softgen.lanes.llvm_text import LlvmText

EVERY = "splat (i1 1)"
DEEPEST = 6  # scalar operations that are written again rather than taken out of a vector
_SCALAR = {"add": "add", "sub": "sub", "mul": "mul", "bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
_MODULAR = frozenset({"add", "sub", "mul", "negate", "bit_and", "bit_or", "bit_xor"})
_SHIFTS = frozenset({"shift_left", "shift_right"})
_SPLAT = re.compile(r"splat \(i(\d+) (-?\d+)\)")

Text = Callable[[], str]  # writes lines and gives an operand


@dataclass(frozen=True)
class Ramp:
    """True of the lanes that `mask` has, where all `conditions` (i1) hold."""

    step: int  # modulo the width
    first: Text  # lane 0 as a scalar: what it would be, if the mask has it off
    mask: str = EVERY
    conditions: tuple[Text, ...] = ()
    highest: int | None = None  # no lane is more, as an unsigned number
    number: int | None = None  # all lanes are this
    low: Low | None = None  # what holds of low bits without the conditions
    depth: int = 0


@dataclass(frozen=True)
class Low:
    """Lanes that were made wider, computed with, and may be cut again."""

    type: LaneType
    ramp: Ramp


def known(m: LlvmText, payload: str) -> Ramp | None:
    if (found := m.ramps.get(payload)) is not None:
        return found
    if (splat := _SPLAT.fullmatch(payload)) is not None and splat[1] != "1":
        number = int(splat[2])
        return _same(number & (1 << int(splat[1])) - 1)
    return None


def usable(m: LlvmText, payload: str, mask: str) -> Ramp | None:
    """The ramp of lanes that are used under a mask."""
    found = known(m, payload)
    if found is None or found.mask in (EVERY, mask) or found.mask in m.implied.get(mask, ()):
        return found
    return None


def same(m: LlvmText, payload: str) -> Text | None:
    """The number that all lanes are, whatever the mask."""
    found = known(m, payload)
    return found.first if found is not None and not found.step and found.mask == EVERY and not found.conditions else None


def constant(m: LlvmText, type: LaneType, numbers: Sequence[float], payload: str) -> None:
    """A list of numbers that grow evenly."""
    steps = {int(b - a) for a, b in pairwise(numbers)} if type.is_integer else set()
    if len(steps) == 1 and 0 not in steps:  # the same number in all lanes is known by its text
        text = str(int(numbers[0]))
        m.ramps[payload] = Ramp(steps.pop() % (1 << type.bits), lambda: text)


def lane(m: LlvmText, type: LaneType, lanes: int, payload: str, number: int = 0) -> Text:
    """A lane taken out of a vector."""
    return lambda: m.emit(f"extractelement {m.vector(type, lanes)} {payload}, i64 {number}")


def leaf(m: LlvmText, type: LaneType, lanes: int, payload: str, step: int, highest: int | None = None) -> None:
    """Says of all lanes of an operand that they lie evenly."""
    m.ramps[payload] = Ramp(step % (1 << type.bits), lane(m, type, lanes, payload), highest=highest)


def narrowed(m: LlvmText, result: str, *masks: str) -> None:
    """A mask that has lanes only where others have them."""
    m.implied[result] = frozenset(masks).union(*(m.implied.get(one, ()) for one in masks))


# -- what operations make of ramps ---------------------------------------------------------------------------------


def computed(m: LlvmText, name: str, type: LaneType, lanes: int, payloads: Sequence[str], result: str) -> None:
    """After `result` was written as an operation on integers."""
    ramps = [known(m, one) for one in payloads]
    given = [one for one in ramps if one is not None]
    masks = {one.mask for one in given} - {EVERY}
    if len(given) < len(ramps) or len(masks) > 1:
        return
    found, low = _of_operation(m, name, type, lanes, given), _low(m, name, type, lanes, given)
    if found is None and low is not None:
        found = Ramp(0, lambda: "0", conditions=(lambda: "false",))
    if found is not None:
        _keep(m, type, lanes, result, replace(found, low=low), masks.pop() if masks else EVERY, given)


def _low(m: LlvmText, name: str, type: LaneType, lanes: int, given: list[Ramp]) -> Low | None:
    """Low bits of sums, products and shifts depend on low bits alone."""
    narrow = min((one.low.type for one in given if one.low), key=lambda type: type.bits, default=None)
    if narrow is None or name not in _MODULAR:
        return None
    cut = [_cut(m, one, type, narrow) for one in given]
    found = _of_operation(m, name, narrow, lanes, cut)
    return None if found is None or any(one.conditions for one in (found, *cut)) else Low(narrow, found)


def _cut(m: LlvmText, ramp: Ramp, type: LaneType, to: LaneType) -> Ramp:
    """Low bits of what may be wider."""
    whole = (1 << to.bits) - 1
    if ramp.low is not None and ramp.low.type.bits >= to.bits:
        type, ramp = ramp.low.type, ramp.low.ramp
    first = ramp.first if type.bits == to.bits else lambda: m.emit(f"trunc i{type.bits} {ramp.first()} to i{to.bits}")
    small = ramp.highest is not None and ramp.highest <= whole
    number = None if ramp.number is None else ramp.number & whole
    return Ramp(ramp.step & whole, first, conditions=ramp.conditions, highest=ramp.highest if small else None, number=number)


def _keep(m: LlvmText, type: LaneType, lanes: int, result: str, found: Ramp, mask: str, given: list[Ramp]) -> None:
    depth = 1 + max(one.depth for one in given)
    conditions = tuple(dict.fromkeys([*(text for one in given for text in one.conditions), *found.conditions]))
    if depth > DEEPEST:
        found = replace(found, low=_shallow(m, type, lanes, result, found.low) if mask == EVERY else None)
    if depth > DEEPEST and mask == EVERY:
        found, depth = replace(found, first=lane(m, type, lanes, result)), 0
    if found.highest is not None and found.highest >> type.bits:
        found = replace(found, highest=None)
    if depth <= 2 * DEEPEST and len(conditions) <= DEEPEST:
        m.ramps[result] = replace(found, mask=mask, conditions=conditions, depth=depth)


def _shallow(m: LlvmText, type: LaneType, lanes: int, result: str, low: Low | None) -> Low | None:
    """The same of low bits, which are taken out of the result."""
    if low is None:
        return None
    first, kind = lane(m, type, lanes, result), f"i{low.type.bits}"
    return Low(low.type, replace(low.ramp, first=lambda: m.emit(f"trunc i{type.bits} {first()} to {kind}")))


def _of_operation(m: LlvmText, name: str, type: LaneType, lanes: int, given: list[Ramp]) -> Ramp | None:
    steps, whole = [one.step for one in given], (1 << type.bits) - 1
    first, highest = _scalar(m, name, type, given), _highest(name, type, given)
    if first is None:
        return None
    numbers = [one.number for one in given if one.number is not None]
    if len(numbers) == len(given) and (number := _number(name, type, numbers)) is not None:
        return _same(number)
    if not any(steps):
        return Ramp(0, first, highest=highest)
    match name:
        case "add":
            return Ramp(sum(steps) & whole, first, highest=highest)
        case "sub" | "negate":
            return Ramp((steps[0] - steps[1] if name == "sub" else -steps[0]) & whole, first)
        case "mul" if (number := given[0].number if steps[1] else given[1].number) is not None:
            return Ramp(sum(steps) * number & whole, first, highest=highest)
        case "shift_left" if given[1].number is not None:
            return Ramp(steps[0] << (given[1].number & type.bits - 1) & whole, first, highest=highest)
        case "bit_and" if (number := given[0].number if steps[1] else given[1].number) is not None:
            return _masked(m, type, lanes, given[bool(steps[1])], number, first)
    return None


def _same(number: int) -> Ramp:
    return Ramp(0, lambda: str(number), highest=number, number=number)


def _number(name: str, type: LaneType, given: list[int]) -> int | None:
    """Numbers that are known, computed with now."""
    whole, (a, *rest) = (1 << type.bits) - 1, given
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


def _highest(name: str, type: LaneType, given: list[Ramp]) -> int | None:
    """The most that lanes can be; more than the type holds if that is not known."""
    most = [one.highest for one in given]
    if name == "bit_and":
        return min((one for one in most if one is not None), default=None)
    if (a := most[0]) is None or (b := most[-1]) is None:
        return None
    match name:
        case "add":
            return a + b
        case "mul":
            return a * b
        case "shift_left" if given[1].number is not None:
            return a << (given[1].number & type.bits - 1)
        case "shift_right" if not type.is_signed:
            return a
    return None


def _masked(m: LlvmText, type: LaneType, lanes: int, ramp: Ramp, number: int, first: Text) -> Ramp | None:
    """Low bits that are cut off and that steps do not touch, or high bits, where no lane reaches them."""
    off = ~number & (1 << type.bits) - 1
    if not off + 1 & off and not ramp.step & off:
        return Ramp(ramp.step, first, highest=ramp.highest)
    if not number + 1 & number:
        if ramp.highest is not None and ramp.highest <= number:
            return Ramp(ramp.step, first, highest=ramp.highest)
        return _below(m, type, lanes, ramp.step, number, first, "ule")
    return None


def _below(m: LlvmText, type: LaneType, lanes: int, step: int, limit: int, first: Text, compare: str) -> Ramp | None:
    """Lanes that grow, and must not grow beyond a limit."""
    last = limit - step * (lanes - 1)
    if last < 0 or step >> type.bits - 1:
        return None
    return Ramp(step, first, conditions=(lambda: m.emit(f"icmp {compare} i{type.bits} {first()}, {last}"),))


def _scalar(m: LlvmText, name: str, type: LaneType, given: list[Ramp]) -> Text | None:
    kind, firsts = f"i{type.bits}", [one.first for one in given]
    if name == "negate":
        return lambda: m.emit(f"sub {kind} 0, {firsts[0]()}")
    if name in _SHIFTS:
        how = "shl" if name == "shift_left" else "ashr" if type.is_signed else "lshr"
        return lambda: m.emit(f"{how} {kind} {firsts[0]()}, {m.emit(f'and {kind} {firsts[1]()}, {type.bits - 1}')}")
    if name in _SCALAR:
        return lambda: m.emit(f"{_SCALAR[name]} {kind} {firsts[0]()}, {firsts[1]()}")
    return None


def converted(m: LlvmText, source: LaneType, type: LaneType, lanes: int, payload: str, result: str) -> None:
    """From one width of integers to another."""
    ramp = known(m, payload)
    if ramp is None or result == payload:
        return
    if ramp.number is not None:
        number = ramp.number - (1 << source.bits) if source.is_signed and ramp.number > source.highest else ramp.number
        m.ramps[result] = replace(_same(number & (1 << type.bits) - 1), mask=ramp.mask, conditions=ramp.conditions)
        return
    if source.bits > type.bits:
        low = ramp.low if ramp.low is not None and ramp.low.type.bits < type.bits else None
        m.ramps[result] = replace(_cut(m, ramp, source, type), mask=ramp.mask, depth=ramp.depth + 1, low=low)
        return
    down = 1 << source.bits - 1
    small = ramp.highest is not None and ramp.highest < down  # then lanes are the same, signed or not, and steps have their sign
    step = ramp.step - 2 * (ramp.step & down) & (1 << type.bits) - 1 if small else ramp.step
    highest = ramp.highest if small or not source.is_signed else None
    how = "sext" if source.is_signed else "zext"
    found = Ramp(step, lambda: m.emit(f"{how} i{source.bits} {ramp.first()} to i{type.bits}"), highest=highest)
    if ramp.step and not small:
        inside = _below(m, source, lanes, ramp.step, source.highest, ramp.first, "sle" if source.is_signed else "ule")
        found = replace(found, conditions=inside.conditions if inside else (lambda: "false",), low=Low(source, replace(ramp, low=None)))
    _keep(m, type, lanes, result, found, ramp.mask, [ramp])


def shuffled(m: LlvmText, type: LaneType, lanes: int, payload: str, indices: Sequence[int], result: str) -> None:
    """One lane for all, or lanes at equal distances."""
    start, ramp = indices[0], known(m, payload)
    if len(indices) > 1 and len(set(indices)) == 1:
        m.ramps[result] = Ramp(0, lane(m, type, lanes, payload, start))
        return
    if ramp is None or ramp.mask != EVERY or len(gaps := {b - a for a, b in pairwise(indices)}) > 1:
        return
    m.ramps[result] = moved_on(m, type, ramp, start, gaps.pop() if gaps else 0)


def moved_on(m: LlvmText, type: LaneType, ramp: Ramp, lanes: int, gap: int = 1) -> Ramp:
    """The ramp that begins some lanes further on, and takes only each so manieth."""
    if (lanes, gap) == (0, 1):
        return ramp
    step, more = (ramp.step * count % (1 << type.bits) for count in (gap, lanes))
    if not more:
        return replace(ramp, step=step, low=None)
    return replace(ramp, step=step, first=lambda: m.emit(f"add i{type.bits} {ramp.first()}, {more}"), low=None, depth=ramp.depth + 1)

"""The operands of lane programs: typed vectors (Value), variables, memory, regions of graphics memory.

Operators stand for operations of the machine (machine.py). The other side may be a Python number, which then becomes lanes of the same
type; two lane values must have the same type and number of lanes.
"""

from __future__ import annotations

from typing import Any, Protocol

from softgen.lanes.types import LaneType


class Operators(Protocol):
    """The part of a machine that values and variables use; machine.py has all of it."""

    def decide(self, condition: Value) -> bool: ...

    def read_variable(self, variable: Variable) -> Value: ...

    def write_variable(self, variable: Variable, value: Value) -> None: ...

    def add(self, a: Value | float, b: Value | float) -> Value: ...

    def sub(self, a: Value | float, b: Value | float) -> Value: ...

    def mul(self, a: Value | float, b: Value | float) -> Value: ...

    def bit_and(self, a: Value | float, b: Value | float) -> Value: ...

    def bit_or(self, a: Value | float, b: Value | float) -> Value: ...

    def bit_xor(self, a: Value | float, b: Value | float) -> Value: ...

    def bit_not(self, a: Value) -> Value: ...

    def negate(self, a: Value) -> Value: ...

    def shift_left(self, a: Value | float, count: Value | float) -> Value: ...

    def shift_right(self, a: Value | float, count: Value | float) -> Value: ...

    def equal(self, a: Value | float, b: Value | float) -> Value: ...

    def not_equal(self, a: Value | float, b: Value | float) -> Value: ...

    def less(self, a: Value | float, b: Value | float) -> Value: ...

    def less_equal(self, a: Value | float, b: Value | float) -> Value: ...

    def greater(self, a: Value | float, b: Value | float) -> Value: ...

    def greater_equal(self, a: Value | float, b: Value | float) -> Value: ...


class Value:
    """`lanes` lanes of `type`; `payload` is the machine's own business."""

    __slots__ = ("lanes", "machine", "payload", "type")

    def __init__(self, machine: Operators, type: LaneType, lanes: int, payload: Any) -> None:
        self.machine, self.type, self.lanes, self.payload = machine, type, lanes, payload

    def __repr__(self) -> str:
        return f"<{self.lanes} x {self.type}: {self.payload}>"

    def __bool__(self) -> bool:
        return self.machine.decide(self)

    def __add__(self, other: Value | float) -> Value:
        return self.machine.add(self, other)

    def __radd__(self, other: float) -> Value:
        return self.machine.add(other, self)

    def __sub__(self, other: Value | float) -> Value:
        return self.machine.sub(self, other)

    def __rsub__(self, other: float) -> Value:
        return self.machine.sub(other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self.machine.mul(self, other)

    def __rmul__(self, other: float) -> Value:
        return self.machine.mul(other, self)

    def __and__(self, other: Value | int) -> Value:
        return self.machine.bit_and(self, other)

    def __rand__(self, other: int) -> Value:
        return self.machine.bit_and(other, self)

    def __or__(self, other: Value | int) -> Value:
        return self.machine.bit_or(self, other)

    def __ror__(self, other: int) -> Value:
        return self.machine.bit_or(other, self)

    def __xor__(self, other: Value | int) -> Value:
        return self.machine.bit_xor(self, other)

    def __rxor__(self, other: int) -> Value:
        return self.machine.bit_xor(other, self)

    def __lshift__(self, other: Value | int) -> Value:
        return self.machine.shift_left(self, other)

    def __rlshift__(self, other: int) -> Value:
        return self.machine.shift_left(other, self)

    def __rshift__(self, other: Value | int) -> Value:
        return self.machine.shift_right(self, other)

    def __rrshift__(self, other: int) -> Value:
        return self.machine.shift_right(other, self)

    def __invert__(self) -> Value:
        return self.machine.bit_not(self)

    def __neg__(self) -> Value:
        return self.machine.negate(self)

    def __eq__(self, other: Value | float) -> Value:        # type: ignore[override]    # a comparison is a value per lane
        return self.machine.equal(self, other)

    def __ne__(self, other: Value | float) -> Value:        # type: ignore[override]
        return self.machine.not_equal(self, other)

    def __lt__(self, other: Value | float) -> Value:
        return self.machine.less(self, other)

    def __le__(self, other: Value | float) -> Value:
        return self.machine.less_equal(self, other)

    def __gt__(self, other: Value | float) -> Value:
        return self.machine.greater(self, other)

    def __ge__(self, other: Value | float) -> Value:
        return self.machine.greater_equal(self, other)

    __hash__ = object.__hash__


class Variable:
    """A place whose value may change inside If and While: `x.value` reads it, `x.value = …` writes it."""

    __slots__ = ("lanes", "machine", "payload", "type")

    def __init__(self, machine: Operators, type: LaneType, lanes: int, payload: Any) -> None:
        self.machine, self.type, self.lanes, self.payload = machine, type, lanes, payload

    @property
    def value(self) -> Value:
        return self.machine.read_variable(self)

    @value.setter
    def value(self, new: Value) -> None:
        if (new.type, new.lanes) != (self.type, self.lanes):
            raise TypeError(f"a variable of {self.lanes} x {self.type} must be given the same, not {new.lanes} x {new.type}")
        self.machine.write_variable(self, new)


class Memory:
    """Bytes that programs load from and store to, counted from their first. `number` tells the memories of a program apart."""

    __slots__ = ("checked", "machine", "name", "number", "payload")

    def __init__(self, machine: Operators, payload: Any, name: str = "", checked: bool = True, number: int = 0) -> None:
        self.machine, self.payload, self.name, self.checked, self.number = machine, payload, name, checked, number


class Region(Memory):
    """Graphics memory, or a part of it that may have a size: what is outside reads as zero and takes no writes. `delta` counts with every
    offset, in 64 bits. An access to unmapped memory is a fault."""

    __slots__ = ("delta",)

    def __init__(self, machine: Operators, payload: Any, name: str = "", delta: int = 0) -> None:
        super().__init__(machine, payload, name)
        self.delta = delta

    def moved(self, by: int) -> Region:
        """The same region seen from `by` bytes further on."""
        return Region(self.machine, self.payload, self.name, self.delta + by)

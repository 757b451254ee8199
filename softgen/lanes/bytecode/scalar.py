"""Scalars, pointers and basic blocks on the bytecode machine (lanes/code_machine.py), for handlers of the threaded engine.

Control goes forward only. What has no bytecode (regions of surfaces and of local memory) raises Unsupported: such handlers are compiled.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

from softgen.bits.units import QWORD
from softgen.errors import Unsupported
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import ARGUMENTS, NO_OPERAND, BytecodeProgram, Label
from softgen.lanes.code_machine import CodeMachine, HostPointer, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, bool_, u64
from softgen.lanes.value import Memory, Value

PARAMETERS = ("block", "op", "context", "executed")


class BytecodeScalar:
    """One scalar: a value of one lane."""

    __slots__ = ("type", "value")

    def __init__(self, value: Value) -> None:
        self.type, self.value = value.type, value

    def _operand(self, other: Scalar | int) -> Value:
        if not isinstance(other, int):
            return self._machine.bitcast(value_of(other), self.type)  # signs of operands do not matter here
        number = other if self.type.is_signed else other & self.type.highest
        return self._machine.like(self.value, number)

    def __add__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value + self._operand(other))

    def __sub__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value - self._operand(other))

    def __mul__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value * self._operand(other))

    def __and__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value & self._operand(other))

    def __or__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value | self._operand(other))

    def __lshift__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value << self._operand(other))

    def __rshift__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value >> self._operand(other))

    def __invert__(self) -> BytecodeScalar:
        return BytecodeScalar(~self.value)

    def __eq__(self, other: Scalar | int) -> BytecodeScalar:  # type: ignore[override]    # a comparison is a scalar
        return BytecodeScalar(self.value == self._operand(other))

    def __ne__(self, other: Scalar | int) -> BytecodeScalar:  # type: ignore[override]
        return BytecodeScalar(self.value != self._operand(other))

    def __lt__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value < self._operand(other))

    def __le__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value <= self._operand(other))

    def __gt__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value > self._operand(other))

    def __ge__(self, other: Scalar | int) -> BytecodeScalar:
        return BytecodeScalar(self.value >= self._operand(other))

    __hash__ = object.__hash__

    @property
    def _machine(self) -> ScalarBytecode:
        return self.value.machine  # type: ignore[return-value]

    @property
    def text(self) -> NoReturn:
        raise Unsupported("bytecode: an operand of LLVM")

    typed = text

    def min(self, other: int) -> BytecodeScalar:
        return BytecodeScalar(self._machine.min(self.value, self._operand(other)))

    def rotate_left(self, count: Scalar) -> BytecodeScalar:
        bits, last = self.convert(self.type.unsigned), self.type.bits - 1  # zeros come in, whatever the sign
        return (bits << (count & last) | bits >> (BytecodeScalar(-value_of(count)) & last)).convert(self.type)

    def rotate_right(self, count: Scalar) -> BytecodeScalar:
        return self.rotate_left(BytecodeScalar(-value_of(count)))

    def convert(self, type: LaneType) -> BytecodeScalar:
        m = self._machine
        if type is bool_:
            return (self & 1) != 0
        return BytecodeScalar(m.bitcast(self.value, type) if type.bits == self.type.bits else m.convert(self.value, type))

    def as_pointer(self) -> BytecodePointer:
        return BytecodePointer(self.value)

    def lane(self) -> Value:
        return self.value

    def mask(self, lanes: int) -> Value:
        return self._machine.mask_from_bits(self.value, lanes)


class BytecodePointer:
    """A host pointer: a value of one lane, and bytes that count with it."""

    __slots__ = ("offset", "value")

    def __init__(self, value: Value, offset: int = 0) -> None:
        self.value, self.offset = value, offset

    @property
    def machine(self) -> ScalarBytecode:
        return self.value.machine  # type: ignore[return-value]

    @property
    def text(self) -> NoReturn:
        raise Unsupported("bytecode: an operand of LLVM")

    typed = text

    @property
    def address(self) -> Value:
        return self.value + self.offset if self.offset else self.value

    def at(self, offset: int | Scalar) -> BytecodePointer:
        if isinstance(offset, int):
            return BytecodePointer(self.value, self.offset + offset)
        return BytecodePointer(self.value + value_of(offset.convert(u64)), self.offset)

    def field(self, layout: RecordLayout, name: str) -> BytecodePointer:
        return self.at(layout.offset(name))

    def load(self, type: LaneType, align: int = 0, volatile: bool = False, invariant: bool = False) -> BytecodeScalar:
        return BytecodeScalar(self.load_lanes(type, 1))

    def load_pointer(self, align: int = 0, invariant: bool = False, dereferenceable: int = 0) -> BytecodePointer:
        return BytecodePointer(self.load_lanes(u64, 1))

    def load_lanes(self, type: LaneType, lanes: int, align: int = 0, volatile: bool = False) -> Value:
        return self.machine.load_block(type, lanes, self._memory("memory"), self.offset)

    def _memory(self, name: str) -> Memory:
        return Memory(self.machine, self.value.payload, name, checked=False)

    def memory(self, name: str = "memory") -> Memory:
        return Memory(self.machine, self.address.payload, name, checked=False)

    def store(self, value: Scalar | HostPointer | Value, align: int = 0, volatile: bool = False) -> None:
        self.machine.store_block(value if isinstance(value, Value) else value_of(value), self._memory("memory"), self.offset)


def value_of(operand: Scalar | HostPointer) -> Value:
    """The lane of a scalar or pointer of this machine."""
    assert isinstance(operand, BytecodeScalar | BytecodePointer), "an operand belongs to another machine"
    return operand.address if isinstance(operand, BytecodePointer) else operand.value


class ScalarBytecode(BytecodeMachine, CodeMachine):
    """The bytecode machine for one handler: `int64_t h(block, op, context, executed)`."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: dict[str, Label] = {}
        self._fresh = itertools.count()  # for names of labels

    def finished(self) -> BytecodeProgram:
        """Everything written so far as a handler."""
        if unplaced := [name for name, label in self._labels.items() if label.before < 0]:
            raise Unsupported(f"bytecode: a branch to {unplaced[0]}, which is nowhere")
        return self._finished(self._arguments, 0, 0, self.bits, handler=True)  # which has no graphics memory

    # -- operands ------------------------------------------------------------------------------------------------------

    def number(self, type: LaneType, number: int) -> BytecodeScalar:
        return BytecodeScalar(self.constant(type, number, 1))

    def pointer(self, name: str) -> BytecodePointer:
        return BytecodePointer(BytecodeMachine.argument(self, PARAMETERS.index(name)))

    def argument(self, type: LaneType, name: str) -> BytecodeScalar:  # type: ignore[override]
        return BytecodeScalar(BytecodeMachine.argument(self, PARAMETERS.index(name), type))

    def scalar(self, value: Value) -> BytecodeScalar:
        return BytecodeScalar(value)

    def mask_scalar(self, mask: Value, type: LaneType) -> BytecodeScalar:
        return BytecodeScalar(self.bits_from_mask(mask, type))

    def any_scalar(self, mask: Value) -> BytecodeScalar:
        return BytecodeScalar(self.any(mask))

    def choose(self, condition: Scalar, a: Any, b: Any) -> Any:
        if isinstance(a, BytecodePointer):
            return BytecodePointer(self.select(value_of(condition), a.address, b.address))
        return BytecodeScalar(self.select(value_of(condition), a.value, b.value))

    def stack(self, type: LaneType, lanes: int, count: int = 0, align: int = 0) -> BytecodePointer:
        """Room in the frame."""
        return BytecodePointer(self._value(u64, 1, self._emit("address", u64, 1, self.code.keep(type.bytes * lanes * max(count, 1)))))

    def pick(self, a: Value, order: Sequence[int | None], b: Value | None = None) -> Value:
        return self.shuffle(a if b is None else self.concat(a, b), [lane or 0 for lane in order])

    def affine_inside(self, offsets: Value, mask: Value, size: Scalar, width: int) -> NoReturn:
        raise Unsupported("bytecode: bounds of a surface")

    # -- basic blocks --------------------------------------------------------------------------------------------------

    def conditional(self) -> bool:
        return self.open > 0

    def labels(self, *names: str) -> tuple[str, ...]:
        number = next(self._fresh)
        return tuple(f"{name}{number}" for name in names)

    def _named(self, name: str) -> Label:
        if name not in self._labels:
            self._labels[name] = self.code.label()
        return self._labels[name]

    def branch(self, condition: Scalar, then: str, other: str, likely: bool | None = None) -> None:
        self._jump(self._named(other), value_of(condition).payload)
        self._jump(self._named(then))

    def jump(self, label: str) -> None:
        self._jump(self._named(label))

    def start(self, label: str) -> None:
        self._label(self._named(label))

    def give(self, result: Scalar | None = None) -> None:
        assert result is not None, "a handler returns a status"
        self._leave(None, self.convert(value_of(result), u64))

    def tail_call(self, function: HostPointer, result: LaneType, *arguments: Scalar | HostPointer) -> None:
        """Continue with a record, whose first word is the function."""
        _, record, _, executed = arguments
        self._leave(value_of(record), value_of(executed))

    def _leave(self, record: Value | None, number: Value) -> None:
        self.code.add("leave", a=NO_OPERAND if record is None else record.payload, b=number.payload)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_native(self, function: str | HostPointer, *arguments: Scalar | HostPointer) -> None:
        """Calls a function of the host that returns nothing."""
        if isinstance(function, str):
            raise Unsupported(f"bytecode: a call of {function}")
        room = self.code.keep(ARGUMENTS * QWORD)
        for number, argument in enumerate(arguments):
            held = self.convert(value_of(argument), u64)
            self._copy(held.payload, room + number * QWORD, QWORD, how=0)
        self.code.add("call", a=value_of(function).payload, b=room)


__all__ = ["BytecodePointer", "BytecodeScalar", "ScalarBytecode"]

"""BytecodeMachine: writes lane programs as bytecode, which a C interpreter runs at once (bytecode.c).

It is for functions that must not wait for a compiler: writing a program takes a few milliseconds, running it about ten times as long as
compiled code takes. Results are those of the other machines, bit for bit. What it has no operation for (directed roundings, arithmetic on
16-bit floats, atomics) raises Unsupported: such programs are compiled.

    m = BytecodeMachine(bits=48)
    arguments = m.memory_of(3)                          # what the fourth argument points at
    m.store_block(m.load_block(u32, 16, arguments, 0) + 1, arguments, 0)
    program = m.program(note_at=…, table_at=…)          # BytecodeProgram: program.address
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from softgen.bits.units import QWORD
from softgen.errors import Unsupported
from softgen.lanes.bytecode.program import (
    ARGUMENTS,
    JUMPS,
    NO_OPERAND,
    PURE,
    READS_RESULT,
    WIDE_OFFSETS,
    BytecodeAssembly,
    BytecodeProgram,
    Label,
    codes,
)
from softgen.lanes.function_type import FunctionType
from softgen.lanes.host_function import HostFunction
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES
from softgen.lanes.primitives import Operand
from softgen.lanes.types import TYPES, LaneType, bool_, f16, f32, u8, u32, u64
from softgen.lanes.value import Memory, Region, Value, Variable

# Operations that do not depend on whether integers are signed.
_UNSIGNED = frozenset({"negate", "bit_not", "leading_zeros", "trailing_zeros", "count_ones", "reverse_bits", "add", "sub", "mul", "bit_and",
                       "bit_or", "bit_xor", "shift_left"})  # fmt: skip
_CODES = dict(zip(TYPES, "BbHhIiQqefd?", strict=True))  # of the struct module
MOST_NOTED = 32  # lanes whose addresses a note has room for


class _Row(NamedTuple):
    """An operation of operations.py for a type of operands."""

    code: int
    result: LaneType


class BytecodeMachine(Machine):
    """Payloads are slots; those of memory are the slots of their addresses, and of regions the base address."""

    # Of all machines: operations, and the bytes of constants that were checked.
    _rows: dict[tuple[str, LaneType], _Row] = {}
    _data: dict[tuple[LaneType, float, int | None], bytes] = {}

    def __init__(self, bits: int = 48) -> None:
        self.bits, self.code = bits, BytecodeAssembly()
        self._arguments = self.code.keep(ARGUMENTS * QWORD)
        self._skipped: tuple[Label, Label] | None = None
        self.open = 0  # bodies of If and While that did not end yet
        self._constants: dict[tuple[LaneType, float, int | None], Value] = {}

    # -- the program -----------------------------------------------------------------------------------------------------

    def argument(self, number: int, type: LaneType = u64) -> Value:
        """An argument of the function in one lane."""
        return self._value(type, 1, self._arguments + QWORD * number)

    def memory_of(self, number: int, name: str = "memory") -> Memory:
        """What an argument points at."""
        return Memory(self, self._arguments + QWORD * number, name, checked=False)

    def graphics_memory(self, base: Value, name: str = "memory") -> Region:
        """Graphics memory from an address (one lane of u64) on."""
        return Region(self, base.payload, name)

    def program(self, table_at: int, note_at: int, result: Value | None = None) -> BytecodeProgram:
        """The program, whose result is one lane or nothing; the offsets are those of fields of the context."""
        slot = self.code.keep(QWORD)
        self._copy(self.code.constant(bytes(QWORD)), slot, QWORD)
        if result is not None:
            self._copy(result.payload, slot, result.type.bytes)
        return self._finished(slot, table_at, note_at, self.bits)

    def _finished(self, result: int, table_at: int, note_at: int, bits: int, handler: bool = False) -> BytecodeProgram:
        self._constants.clear()  # they refer to the machine: only the garbage collector would find it
        return self.code.finished(result, table_at, note_at, bits, handler)

    def _new(self, type: LaneType, lanes: int) -> int:
        return self.code.place(type.bytes * lanes)

    def _emit(self, name: str, type: LaneType, lanes: int, a: int, b: int = NO_OPERAND, c: int = NO_OPERAND, count: int = 0,
              flags: int = 0) -> int:  # fmt: skip
        """An operation with a result of so many lanes; `count`: over which it runs, if not over those."""
        found = self.code.place(type.bytes * lanes)
        self.code.add(name, count or lanes, found, a, b, c, flags, how=PURE)
        return found

    def _copy(self, source: int, target: int, size: int, how: int = PURE) -> None:
        self.code.add("copy", result=target, a=source, immediate=size, how=how)

    # -- shorter ways to the same: writing a program is mostly this --------------------------------------------------------

    def constant(self, type: LaneType, value: float | Sequence[float], lanes: int | None = None) -> Value:
        if not isinstance(value, int) and not (isinstance(value, float) and value):  # which of the zeros it is counts
            return super().constant(type, value, lanes)
        key = type, value, lanes
        found = self._constants.get(key)
        if found is None:
            data = self._data.get(key)
            if data is None:
                super().constant(type, value, lanes)  # checks it
                data = self._data[key] = _bytes_of(type, [value], lanes or 1)
            found = self._constants[key] = Value(self, type, lanes or 1, self.code.constant(data))
        return found

    def _apply(self, name: str, *operands: Operand, rounding: str = "rne") -> Value:
        a, b = operands[0], operands[-1]
        row = self._rows.get((name, a.type)) if isinstance(a, Value) and len(operands) < 3 and rounding == "rne" else None
        if row is None:
            return super()._apply(name, *operands, rounding=rounding)
        assert isinstance(a, Value)
        lanes = a.lanes
        if not isinstance(b, Value):
            b = self.constant(a.type, b, lanes)
        elif b.type is not a.type or b.lanes != lanes or a.machine is not self or b.machine is not self:
            return super()._apply(name, *operands)
        code = self.code
        slot = code.place(row.result.bytes * lanes)
        code.operations += (row.code, lanes, PURE, slot, a.payload, b.payload if len(operands) == 2 else NO_OPERAND, NO_OPERAND, 0, 0)
        return Value(self, row.result, lanes, slot)

    # -- control -----------------------------------------------------------------------------------------------------------

    def decide(self, condition: Value) -> bool:
        raise TypeError("Python cannot decide on what is known when the program runs: use m.If or m.select")

    def _label(self, label: Label) -> None:
        label.before = self.code.count

    def _jump(self, label: Label, unless: int = NO_OPERAND) -> None:
        self.code.add("jump" if unless == NO_OPERAND else "jump_unless", a=unless, immediate=label.number, how=JUMPS)

    def If(self, condition: Value, rare: bool = False) -> Iterator[None]:
        self._truth(condition)
        other, after = self.code.label(), self.code.label()
        self._jump(other, condition.payload)
        self._skipped = None
        yield from self._body()
        self._jump(after)
        self._label(other)
        self._label(after)
        self._skipped = other, after

    def _body(self) -> Iterator[None]:
        self.open += 1
        yield
        self.open -= 1

    def Else(self) -> Iterator[None]:
        if self._skipped is None or self._skipped[1].before != self.code.count:
            raise TypeError("Else must follow an If")
        (_, after), self._skipped = self._skipped, None
        yield from self._body()
        self._label(after)
        self._skipped = None

    def While(self, condition: Callable[[], Value]) -> Iterator[None]:
        first, done = self.code.label(), self.code.label()
        self._label(first)
        holds = condition()
        self._truth(holds)
        self._jump(done, holds.payload)
        self._skipped = None
        yield from self._body()
        self._jump(first)
        self._label(done)
        self.code.loops += (first.before, done.before)
        self._skipped = None

    def _truth(self, condition: Value) -> None:
        if condition.type is not bool_ or condition.lanes != 1:
            raise TypeError(f"a decision must be on one lane of bool, not {condition.lanes} x {condition.type}: use any or select")

    def _variable(self, initial: Value) -> Any:
        slot = self.code.keep(initial.type.bytes * initial.lanes)
        self._copy(initial.payload, slot, initial.type.bytes * initial.lanes, how=0)
        return slot

    def read_variable(self, variable: Variable) -> Value:
        found = self._new(variable.type, variable.lanes)
        self._copy(variable.payload, found, variable.type.bytes * variable.lanes)
        return self._value(variable.type, variable.lanes, found)

    def write_variable(self, variable: Variable, value: Value) -> None:
        self._copy(value.payload, variable.payload, value.type.bytes * value.lanes, how=0)

    # -- computing -----------------------------------------------------------------------------------------------------------

    def _constant(self, type: LaneType, numbers: list[float], lanes: int) -> Any:
        return self.code.constant(_bytes_of(type, numbers, lanes))

    def _compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        if type is f16:
            raise Unsupported(f"bytecode: {name} of 16-bit floats")
        operands: LaneType | str = type
        if type is bool_:
            operands = "truth" if name == "bit_not" else u8
        elif not type.is_float and name in _UNSIGNED:
            operands = type.unsigned
        result = bool_ if name in _COMPARES else type
        self._rows[name, type] = _Row(codes()[f"{name}_{operands}"], result)
        return self._emit(f"{name}_{operands}", result, lanes, *payloads)

    def _rounded(self, name: str, type: LaneType, lanes: int, rounding: str, payloads: list[Any]) -> Any:
        raise Unsupported(f"bytecode: {name} with rounding {rounding}")

    def _select(self, type: LaneType, lanes: int, condition: Any, a: Any, b: Any) -> Any:
        return self._emit(f"select_{_sized(type)}", type, lanes, a, b, condition)

    def _convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding: str) -> Any:
        if source is f16 and type.is_float or type is f16 and source is f32 and rounding in ("rne", "rtz"):
            if source is f16:
                wide = self._emit("float_from_half", f32, lanes, a)
                return wide if type is f32 else self._emit(f"convert_f32_{type}", type, lanes, wide)
            return self._emit("half_from_float" + ("_rtz" if rounding == "rtz" else ""), type, lanes, a)
        if f16 in (source, type) or rounding != "rne" and type.is_float:
            raise Unsupported(f"bytecode: conversion of {source} to {type} with rounding {rounding}")
        return self._emit(f"convert_{source}_{type}", type, lanes, a)

    def _bitcast(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any:
        return a

    def _regroup(self, source: LaneType, source_lanes: int, type: LaneType, lanes: int, a: Any) -> Any:
        return a

    def _shuffle(self, type: LaneType, lanes: int, a: Any, indices: list[int]) -> Any:
        first, size = indices[0], type.bytes
        if indices == list(range(first, first + len(indices))):
            return a + first * size
        if len(set(indices)) == 1:
            return self._emit(f"broadcast_{_sized(type)}", type, len(indices), a + first * size)
        return self._emit(f"shuffle_{_sized(type)}", type, len(indices), a, self.code.constant(bytes(indices)))

    def _concat(self, type: LaneType, a_lanes: int, b_lanes: int, a: Any, b: Any) -> Any:
        found, size = self._new(type, a_lanes + b_lanes), type.bytes
        self._copy(a, found, a_lanes * size)
        self._copy(b, found + a_lanes * size, b_lanes * size)
        return found

    def _permute(self, type: LaneType, lanes: int, a: Any, count: int, indices: Any) -> Any:
        return self._emit(f"permute_{_sized(type)}", type, count, a, indices)

    def _any(self, lanes: int, mask: Any) -> Any:
        return self._emit("any", bool_, 1, mask, count=lanes)

    def _mask_from_bits(self, type: LaneType, bits: Any, lanes: int) -> Any:
        return self._emit("mask_from_bits", bool_, lanes, bits, flags=type.bytes)

    def _bits_from_mask(self, lanes: int, mask: Any, type: LaneType) -> Any:
        return self._emit("bits_from_mask", type, 1, mask, count=lanes, flags=type.bytes)

    def _call(self, type: FunctionType, address: Value, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        raise Unsupported("bytecode: calls of lane functions")

    def _host(self, function: HostFunction, arguments: list[Any], lanes: int, results: int) -> list[Any]:
        size = lanes * u32.bytes
        given, found = self._new(u32, lanes * len(arguments)), self._new(u32, lanes * results)
        for number, slot in enumerate(arguments):
            self._copy(slot, given + number * size, size)
        self.code.add("call_host", lanes, found, given, immediate=function.address, how=PURE)
        return [found + number * size for number in range(results)]

    # -- memory ----------------------------------------------------------------------------------------------------------------

    def _memory_at(self, address: Value, size: int, name: str) -> Memory:
        return Memory(self, address.payload, name, checked=False)

    def _append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> bool:
        return False

    def _load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None) -> Any:
        return self._touch("gather", "region_load", type, offsets.lanes, base, offsets, mask, None)

    def _store(self, value: Value, base: Memory, offsets: Value, mask: Value | None) -> None:
        self._touch("scatter", "region_store", value.type, value.lanes, base, offsets, mask, value.payload)

    def _load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Any:
        return self._touch("load_block", "region_load_block", type, lanes, base, offset, mask, None)

    def _store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None, grain: int) -> None:
        self._touch("store_block", "region_store_block", value.type, value.lanes, base, offset, mask, value.payload)

    def _touch(self, plain: str, region: str, type: LaneType, lanes: int, base: Memory, offsets: Value,
               mask: Value | None, stored: int | None) -> int:  # fmt: skip
        """A load, or a store of a value."""
        if isinstance(base, Region) and lanes > MOST_NOTED:
            raise Unsupported(f"bytecode: {lanes} lanes of graphics memory at a time")
        name = f"{region if isinstance(base, Region) else plain}_{_sized(type)}"
        slot = self._new(type, lanes) if stored is None else stored
        flags, delta = WIDE_OFFSETS if offsets.type is u64 else 0, getattr(base, "delta", 0) & u64.highest
        self.code.add(name, lanes, slot, base.payload, offsets.payload, NO_OPERAND if mask is None else mask.payload, flags, delta,
                      PURE if stored is None else READS_RESULT)  # fmt: skip
        return slot

    def _atomic(self, op: str, type: LaneType, base: Memory, offsets: Value, operands: list[Any], mask: Value | None) -> Any:
        raise Unsupported(f"bytecode: atomic {op}")

    def _inside_region(self, base: Region, offsets: Value, size: int) -> Any:
        return self.constant(bool_, 1, offsets.lanes).payload

    def _update(self, type: LaneType, base: Region, offsets: Value, operands: list[Value], mask: Value,
                function: Callable[..., Value]) -> tuple[Any, Any]:  # fmt: skip
        raise Unsupported(f"bytecode: update by {function.__name__}")


_COMPARES = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def _bytes_of(type: LaneType, numbers: list[float], lanes: int) -> bytes:
    """One number for all lanes, or one for each."""
    try:
        data = struct.pack(f"<{len(numbers)}{_CODES[type]}", *numbers)
    except OverflowError:  # a float that becomes infinite
        with np.errstate(all="ignore"):
            data = np.array(numbers, np.float64).astype(DTYPES[type]).tobytes()
    return data if len(numbers) == lanes else data * lanes


def _sized(type: LaneType) -> LaneType:
    """The unsigned integer of a lane's size."""
    return u8 if type is bool_ else type.unsigned

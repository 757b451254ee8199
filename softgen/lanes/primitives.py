"""Primitive operations: the abstract methods that each machine implements, and the operand checks before them.

Payloads are the machine's own business; lists of Python numbers, types and counts of lanes are plain Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, cast

from softgen.lanes.function_type import FunctionType
from softgen.lanes.host_function import HostFunction
from softgen.lanes.operations import OPERATIONS
from softgen.lanes.types import MOST_LANES, ROUNDINGS, LaneType, bool_, u32, u64
from softgen.lanes.value import Memory, Operators, Region, Value, Variable

Operand = Value | int | float


class Primitives(ABC):
    """The machine proper, and the checks in front of it."""

    # -- control -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def If(self, condition: Value, rare: bool = False) -> Iterator[None]:
        """`for _ in m.If(condition):` the body runs if the one lane of the condition holds; `rare`: which is not expected."""

    @abstractmethod
    def Else(self) -> Iterator[None]:
        """`for _ in m.Else():` right after an If: the body runs if that one did not."""

    @abstractmethod
    def While(self, condition: Callable[[], Value]) -> Iterator[None]:
        """`for _ in m.While(lambda: …):` the condition is computed before each turn."""

    @abstractmethod
    def decide(self, condition: Value) -> bool:
        """What Python's own `if` gets."""

    @abstractmethod
    def read_variable(self, variable: Variable) -> Value: ...

    @abstractmethod
    def write_variable(self, variable: Variable, value: Value) -> None: ...

    @abstractmethod
    def _variable(self, initial: Value) -> Any: ...

    # -- computing -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _constant(self, type: LaneType, numbers: list[float], lanes: int) -> Any:
        """One number for all lanes, or one for each."""

    @abstractmethod
    def _compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        """A row of operations.py."""

    @abstractmethod
    def _rounded(self, name: str, type: LaneType, lanes: int, rounding: str, payloads: list[Any]) -> Any:
        """A row that may be rounded, on floats, with a rounding other than rne."""

    @abstractmethod
    def _select(self, type: LaneType, lanes: int, condition: Any, a: Any, b: Any) -> Any: ...

    @abstractmethod
    def _convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding: str) -> Any: ...

    @abstractmethod
    def _bitcast(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any: ...

    @abstractmethod
    def _regroup(self, source: LaneType, source_lanes: int, type: LaneType, lanes: int, a: Any) -> Any: ...

    @abstractmethod
    def _shuffle(self, type: LaneType, lanes: int, a: Any, indices: list[int]) -> Any: ...

    @abstractmethod
    def _concat(self, type: LaneType, a_lanes: int, b_lanes: int, a: Any, b: Any) -> Any: ...

    @abstractmethod
    def _any(self, lanes: int, mask: Any) -> Any: ...

    @abstractmethod
    def _mask_from_bits(self, type: LaneType, bits: Any, lanes: int) -> Any: ...

    @abstractmethod
    def _bits_from_mask(self, lanes: int, mask: Any, type: LaneType) -> Any: ...

    @abstractmethod
    def _permute(self, type: LaneType, lanes: int, a: Any, count: int, indices: Any) -> Any:
        """`count` lanes of a; the indices are below its number of lanes."""

    @abstractmethod
    def _call(self, type: FunctionType, address: Value, arguments: tuple[Value, ...]) -> tuple[Value, ...]: ...

    @abstractmethod
    def _host(self, function: HostFunction, arguments: list[Any], lanes: int, results: int) -> list[Any]:
        """What a host function makes of vectors of u32."""

    # -- memory --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _memory_at(self, address: Value, size: int, name: str) -> Memory: ...

    @abstractmethod
    def _append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> bool:
        """Compacts the active lanes into memory; False where the machine has no way of its own for such memory."""

    @abstractmethod
    def _load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None) -> Any: ...

    @abstractmethod
    def _store(self, value: Value, base: Memory, offsets: Value, mask: Value | None) -> None: ...

    @abstractmethod
    def _load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Any: ...

    @abstractmethod
    def _store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None, grain: int) -> None: ...

    @abstractmethod
    def _atomic(self, op: str, type: LaneType, base: Memory, offsets: Value, operands: list[Any], mask: Value | None) -> Any: ...

    @abstractmethod
    def _inside_region(self, base: Region, offsets: Value, size: int) -> Any: ...

    @abstractmethod
    def _update(self, type: LaneType, base: Region, offsets: Value, operands: list[Value], mask: Value,
                function: Callable[..., Value]) -> tuple[Any, Any]: ...

    # -- what Machine makes of them, needed by the checks -----------------------------------------------------------------

    @abstractmethod
    def like(self, value: Value, number: float) -> Value: ...

    @abstractmethod
    def constant(self, type: LaneType, value: Any, lanes: int | None = None) -> Value: ...

    @abstractmethod
    def bitcast(self, a: Value, type: LaneType) -> Value: ...

    @abstractmethod
    def convert(self, a: Value, type: LaneType, rounding: str = "rne") -> Value: ...

    @abstractmethod
    def broadcast(self, a: Value, lanes: int) -> Value: ...

    @abstractmethod
    def count(self, mask: Value) -> Value: ...

    @abstractmethod
    def rank(self, mask: Value) -> Value: ...

    @abstractmethod
    def _value(self, type: LaneType, lanes: int, payload: Any) -> Value: ...

    # -- checks ----------------------------------------------------------------------------------------------------------

    def _apply(self, name: str, *operands: Operand, rounding: str = "rne") -> Value:
        row = OPERATIONS[name]
        values = self._lift(*operands)
        self._agree(name, *values)
        type, lanes = values[0].type, values[0].lanes
        if type not in row.domain:
            raise TypeError(f"{name} must be of {' '.join(map(str, row.domain))}, not {type}")
        payloads = [value.payload for value in values]
        if rounding != "rne":
            self._rounding(rounding)
        if rounding != "rne" and type.is_float:
            return self._value(type, lanes, self._rounded(name, type, lanes, rounding, payloads))
        return self._value(bool_ if row.gives_bool else type, lanes, self._compute(name, type, lanes, payloads))

    def _lift(self, *operands: Operand) -> list[Value]:
        """Python numbers become lanes like those of the first value."""
        if len(operands) == 2:
            a, b = operands
            if isinstance(a, Value):
                return [a, b if isinstance(b, Value) else self.like(a, b)]
        for model in operands:
            if isinstance(model, Value):
                break
        else:
            raise TypeError("an operation must have at least one lane value, not only Python numbers")
        return [operand if isinstance(operand, Value) else self.like(model, operand) for operand in operands]

    def _as_count(self, a: Operand, count: Operand) -> Value:
        if isinstance(a, Value) and not isinstance(count, Value):
            return self.like(a, count)
        a, count = self._lift(a, count)
        if not count.type.is_integer or count.type.bits != a.type.bits or count.lanes != a.lanes:
            raise TypeError(f"a shift count must be {a.lanes} x an integer of {a.type.bits} bits, not {count.lanes} x {count.type}")
        return self.bitcast(count, a.type)

    def _agree(self, name: str, *values: Value) -> None:
        first = values[0]
        for value in values:
            if value.machine is not cast(Operators, self):
                raise TypeError(f"{name}: a value belongs to another machine")
            if value.type is not first.type:
                raise TypeError(f"{name}: all operands must be {first.type}, not {value.type}")
            if value.lanes != first.lanes:
                raise TypeError(f"{name}: all operands must have {first.lanes} lanes, not {value.lanes}")

    def _access(self, name: str, type: LaneType, offsets: Value, mask: Value | None, value: Value | None = None) -> Value | None:
        if offsets.type not in (u32, u64):
            raise TypeError(f"the offsets of {name} must be u32 or u64, not {offsets.type}")
        for what, operand in (("mask", mask), ("value", value)):
            if operand is not None and operand.lanes != offsets.lanes:
                raise TypeError(f"the {what} of {name} must have {offsets.lanes} lanes, not {operand.lanes}")
        self._is_memory_type(name, type, mask)
        return mask

    def _block(self, name: str, type: LaneType, lanes: int, offset: Value | int, mask: Value | None) -> tuple[Value, Value | None]:
        self._count(lanes)
        offset = self.constant(u64, offset) if isinstance(offset, int) else offset
        if offset.type not in (u32, u64) or offset.lanes != 1:
            raise TypeError(f"the offset of {name} must be one lane of u32 or u64, not {offset.lanes} x {offset.type}")
        if mask is not None and mask.lanes != lanes:
            raise TypeError(f"the mask of {name} must have {lanes} lanes, not {mask.lanes}")
        self._is_memory_type(name, type, mask)
        return offset, mask

    def _is_memory_type(self, name: str, type: LaneType, mask: Value | None) -> None:
        if type.is_bool:
            raise TypeError(f"{name} must be of numbers, not bool")
        if mask is not None:
            self._is_mask(name, mask)

    def _is_mask(self, name: str, mask: Value) -> None:
        if mask.type is not bool_:
            raise TypeError(f"the mask of {name} must be bool, not {mask.type}")

    def _is_float(self, name: str, a: Value) -> None:
        if not a.type.is_float:
            raise TypeError(f"{name} must be of a float, not {a.type}")

    def _is_unsigned(self, name: str, a: Value) -> None:
        if not a.type.is_integer or a.type.is_signed:
            raise TypeError(f"{name} must be of unsigned integers, not {a.type}")

    def _magnitude(self, name: str, a: Value) -> Value:
        self._is_float(name, a)
        return self.bitcast(a, a.type.unsigned) & a.type.sign_mask - 1

    def _rounding(self, rounding: str) -> None:
        if rounding not in ROUNDINGS:
            raise ValueError(f"rounding must be one of {' '.join(ROUNDINGS)}, not {rounding}")

    def _count(self, lanes: int) -> None:
        if not 1 <= lanes <= MOST_LANES:
            raise ValueError(f"lanes must be from 1 to {MOST_LANES}, not {lanes}")

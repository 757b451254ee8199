"""LlvmMachine: writes a program as LLVM IR text, which jit.py compiles. Its parts write; it hands them what programs ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from softgen.lanes.code_machine import CodeMachine, HostPointer, Scalar
from softgen.lanes.function_type import FunctionType
from softgen.lanes.host_function import HostFunction
from softgen.lanes.llvm.addressing import LlvmAddressing
from softgen.lanes.llvm.adjacent import LlvmAdjacent
from softgen.lanes.llvm.arithmetic import LlvmArithmetic
from softgen.lanes.llvm.blocks import LlvmBlocks
from softgen.lanes.llvm.call import LlvmCalls
from softgen.lanes.llvm.control import LlvmControl
from softgen.lanes.llvm.mask import LlvmMasks
from softgen.lanes.llvm.memory import LlvmMemory
from softgen.lanes.llvm.region import LlvmRegions
from softgen.lanes.llvm.scalar import LlvmCode, LlvmPointer, LlvmScalar
from softgen.lanes.llvm.text import LlvmModule, LlvmText
from softgen.lanes.types import LaneType
from softgen.lanes.value import Memory, Region, Value, Variable


class LlvmMachine(CodeMachine):
    """One function of a module. Payloads are operands of IR: a register, or a constant written out."""

    def __init__(self, module: LlvmModule | None = None) -> None:
        self.ir = LlvmText(module)
        self.masks = LlvmMasks(self.ir)
        self.code = LlvmCode(self, self.ir, self.masks)
        self.control = LlvmControl(self.ir, self.masks)
        self.arithmetic = LlvmArithmetic(self, self.ir, self.masks)
        self.calls = LlvmCalls(self.code)
        self.memories = LlvmMemory(self.ir, self.masks)
        self.addressing = LlvmAddressing(self.code, lambda: LlvmMachine(self.ir.module).addressing)
        self.regions = LlvmRegions(self.addressing)
        self.blocks, self.adjacent = LlvmBlocks(self.regions), LlvmAdjacent(self.regions)

    # -- control -------------------------------------------------------------------------------------------------------

    def decide(self, condition: Value) -> bool:
        raise TypeError("a Python decision must be on Python values; this one is known only at run time: use If, While or select")

    def If(self, condition: Value, rare: bool = False) -> Iterator[None]:
        return self.control.if_(condition, rare)

    def Else(self) -> Iterator[None]:
        return self.control.else_()

    def While(self, condition: Callable[[], Value]) -> Iterator[None]:
        return self.control.while_(condition)

    def _variable(self, initial: Value) -> Any:
        return self.control.variable(initial)

    def read_variable(self, variable: Variable) -> Value:
        return self.control.read_variable(variable)

    def write_variable(self, variable: Variable, value: Value) -> None:
        self.control.write_variable(variable, value)

    # -- computing -----------------------------------------------------------------------------------------------------

    def estimate_rsq(self, a: Value) -> Value | None:
        return self.arithmetic.estimate_rsq(a)

    def _constant(self, type: LaneType, numbers: list[float], lanes: int) -> Any:
        return self.arithmetic.constant(type, numbers, lanes)

    def _compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        return self.arithmetic.compute(name, type, lanes, payloads)

    def _rounded(self, name: str, type: LaneType, lanes: int, rounding: str, payloads: list[Any]) -> Any:
        return self.arithmetic.rounded(name, type, lanes, rounding, payloads)

    def _select(self, type: LaneType, lanes: int, condition: Any, a: Any, b: Any) -> Any:
        return self.arithmetic.select(type, lanes, condition, a, b)

    def _convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding: str) -> Any:
        return self.arithmetic.convert(source, type, lanes, a, rounding)

    def _bitcast(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any:
        return self.arithmetic.bitcast(source, type, lanes, a)

    def _regroup(self, source: LaneType, source_lanes: int, type: LaneType, lanes: int, a: Any) -> Any:
        return self.arithmetic.regroup(source, source_lanes, type, lanes, a)

    def _shuffle(self, type: LaneType, lanes: int, a: Any, indices: list[int]) -> Any:
        return self.arithmetic.shuffle(type, lanes, a, indices)

    def _concat(self, type: LaneType, a_lanes: int, b_lanes: int, a: Any, b: Any) -> Any:
        return self.arithmetic.concat(type, a_lanes, b_lanes, a, b)

    def _any(self, lanes: int, mask: Any) -> Any:
        return self.arithmetic.any(lanes, mask)

    def _mask_from_bits(self, type: LaneType, bits: Any, lanes: int) -> Any:
        return self.arithmetic.mask_from_bits(type, bits, lanes)

    def _bits_from_mask(self, lanes: int, mask: Any, type: LaneType) -> Any:
        return self.arithmetic.bits_from_mask(lanes, mask, type)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _permute(self, type: LaneType, lanes: int, a: Any, count: int, indices: Any) -> Any:
        return self.calls.permute(type, lanes, a, count, indices)

    def _call(self, type: FunctionType, address: Value, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        return self.calls.call(type, address, arguments)

    def _host(self, function: HostFunction, arguments: list[Any], lanes: int, results: int) -> list[Any]:
        return self.calls.host(function, arguments, lanes, results)

    # -- memory --------------------------------------------------------------------------------------------------------

    def _memory_at(self, address: Value, size: int, name: str) -> Memory:
        return self.calls.memory_at(address, size, name)

    def _append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> bool:
        return self.calls.append(value, base, cursor, mask)

    def _load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None) -> Any:
        if isinstance(base, Region):
            return self.regions.load(type, base, offsets, mask)
        return self.memories.load(type, base, offsets, mask)

    def _store(self, value: Value, base: Memory, offsets: Value, mask: Value | None) -> None:
        if isinstance(base, Region):
            self.regions.store(value, base, offsets, mask)
        else:
            self.memories.store(value, base, offsets, mask)

    def _atomic(self, op: str, type: LaneType, base: Memory, offsets: Value, operands: list[Any], mask: Value | None) -> Any:
        if isinstance(base, Region):
            return self.regions.atomic(op, type, base, offsets, operands, mask)
        return self.memories.atomic(op, type, base, offsets, operands, mask)

    def _load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Any:
        if isinstance(base, Region):
            return self.blocks.load(type, lanes, base, offset, mask, grain)
        return self.memories.load_block(type, lanes, base, offset, mask)

    def _store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None, grain: int) -> None:
        if isinstance(base, Region):
            self.blocks.store(value, base, offset, mask, grain)
        else:
            self.memories.store_block(value, base, offset, mask)

    def _load_adjacent(self, type: LaneType, count: int, base: Region, offsets: Value, mask: Value | None) -> list[Value]:
        return self.adjacent.load(type, count, base, offsets, mask)

    def _store_adjacent(self, values: list[Value], base: Region, offsets: Value, mask: Value | None) -> None:
        self.adjacent.store(values, base, offsets, mask)

    def _inside_region(self, base: Region, offsets: Value, size: int) -> Any:
        return self.regions.inside(base, offsets, size)

    def _update(self, type: LaneType, base: Region, offsets: Value, operands: list[Value], mask: Value,
                function: Callable[..., Value]) -> tuple[Any, Any]:
        return self.regions.update(type, base, offsets, operands, mask, function)

    # -- code around lane programs ---------------------------------------------------------------------------------------

    def number(self, type: LaneType, number: int) -> LlvmScalar:
        return self.code.number(type, number)

    def pointer(self, name: str) -> LlvmPointer:
        return self.code.pointer(name)

    def argument(self, type: LaneType, name: str) -> LlvmScalar:
        return self.code.argument(type, name)

    def scalar(self, value: Value) -> LlvmScalar:
        return self.code.scalar(value)

    def mask_scalar(self, mask: Value, type: LaneType) -> LlvmScalar:
        return self.code.mask_scalar(mask, type)

    def any_scalar(self, mask: Value) -> LlvmScalar:
        return self.code.any_scalar(mask)

    def choose(self, condition: Scalar, a: Any, b: Any) -> Any:
        return self.code.choose(condition, a, b)

    def stack(self, type: LaneType, lanes: int, count: int = 0, align: int = 0) -> LlvmPointer:
        return self.code.stack(type, lanes, count, align)

    def pick(self, a: Value, order: Sequence[int | None], b: Value | None = None) -> Value:
        return self.code.pick(a, order, b)

    def affine_inside(self, offsets: Value, mask: Value, size: Scalar, width: int) -> LlvmScalar:
        return self.addressing.affine_inside(offsets, mask, size, width)

    def rematerialised(self, offsets: Value, mask: Value) -> Value:
        return self.addressing.rematerialised(offsets, mask.payload)

    def conditional(self) -> bool:
        return self.ir.open > 0

    def labels(self, *names: str) -> list[str]:
        return self.ir.labels(*names)

    def start(self, label: str) -> None:
        self.ir.start(label)

    def jump(self, label: str) -> None:
        self.code.jump(label)

    def branch(self, condition: Scalar, then: str, other: str, likely: bool | None = None) -> None:
        self.code.branch(condition, then, other, likely)

    def give(self, result: Scalar | None = None) -> None:
        self.code.give(result)

    def call_native(self, function: str | HostPointer, *arguments: Scalar | HostPointer) -> None:
        self.code.call_native(function, *arguments)

    def tail_call(self, function: HostPointer, result: LaneType, *arguments: Scalar | HostPointer) -> None:
        self.code.tail_call(function, result, *arguments)

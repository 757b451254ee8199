"""Calls by address, permutations and compacted stores on the LLVM machine.

Vectors are passed in registers, as all modules share one vector width (text.ATTRIBUTES); a mask is passed as an integer of as many
bits, because how hosts pass vectors of bits depends on their features.
"""

from __future__ import annotations

from typing import Any

from softgen.lanes.function_type import FunctionType
from softgen.lanes.host_function import HostFunction
from softgen.lanes.llvm.scalar import LlvmCode
from softgen.lanes.types import Lanes, LaneType, bool_, f32, i32, u32, u64
from softgen.lanes.value import Memory, Region, Value

_PERMUTE = {16: ("avx512f", "llvm.x86.avx512.permvar.si.512"), 8: ("avx2", "llvm.x86.avx2.permd")}   # by lanes of 32 bits


class LlvmCalls:
    """What is reached through pointers."""

    def __init__(self, code: LlvmCode) -> None:
        self.code, self.ir, self.masks, self.machine = code, code.ir, code.masks, code.machine

    # -- functions -----------------------------------------------------------------------------------------------------

    def _passed(self, shape: Lanes) -> str:
        return f"i{shape.lanes}" if shape.type.is_bool else self.ir.vector(shape.type, shape.lanes)

    def _result(self, shapes: tuple[Lanes, ...]) -> str:
        kinds = [self._passed(shape) for shape in shapes]
        return "void" if not kinds else kinds[0] if len(kinds) == 1 else f"{{ {', '.join(kinds)} }}"

    def _to_pass(self, value: Value) -> str:
        ir = self.ir
        if not value.type.is_bool:
            return str(value.payload)
        return ir.emit(f"bitcast {ir.typed(value)} to i{value.lanes}")

    def _from_passed(self, shape: Lanes, text: str) -> Value:
        if shape.type.is_bool:
            text = self.masks.mask_of_bits(shape.lanes, text)
        return self.code.value(shape.type, shape.lanes, text)

    def parameters(self, shapes: tuple[Lanes, ...]) -> list[Value]:
        """The parameters of the function that is being written, as `define_lanes` names them."""
        return [self._from_passed(shape, f"%a{number}") for number, shape in enumerate(shapes)]

    def return_lanes(self, results: tuple[Value, ...]) -> None:
        ir = self.ir
        shapes = tuple(Lanes(result.type, result.lanes) for result in results)
        kind, passed = self._result(shapes), [self._to_pass(result) for result in results]
        if len(passed) < 2:
            ir.line(f"ret {kind} {passed[0]}" if passed else "ret void")
            return
        whole = "poison"
        for number, (shape, text) in enumerate(zip(shapes, passed, strict=True)):
            whole = ir.emit(f"insertvalue {kind} {whole}, {self._passed(shape)} {text}, {number}")
        ir.line(f"ret {kind} {whole}")

    def define_lanes(self, name: str, parameters: tuple[Lanes, ...], results: tuple[Lanes, ...]) -> None:
        given = ", ".join(f"{self._passed(shape)} %a{number}" for number, shape in enumerate(parameters))
        self.ir.define(f"{self._result(results)} @{name}({given})")

    def call(self, type: FunctionType, address: Value, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        ir = self.ir
        function = self.code.scalar(address).as_pointer()
        given = [f"{self._passed(shape)} {self._to_pass(argument)}" for shape, argument in zip(type.parameters, arguments, strict=True)]
        kind = self._result(type.results)
        call = f"call {kind} {function.text}({', '.join(given)})"
        if not type.results:
            ir.line(call)
            return ()
        whole = ir.emit(call)
        if len(type.results) == 1:
            return (self._from_passed(type.results[0], whole),)
        return tuple(self._from_passed(shape, ir.emit(f"extractvalue {kind} {whole}, {number}"))
                     for number, shape in enumerate(type.results))

    def host(self, function: HostFunction, arguments: list[Any], lanes: int, results: int) -> list[Any]:
        given, found = (self.code.stack(u32, lanes, count, align=64) for count in (len(arguments), results))
        for number, argument in enumerate(arguments):
            given.at(u32.bytes * lanes * number).store(self.code.value(u32, lanes, argument), align=4)
        self.code.call_native(function.name, given, found, self.code.number(u32, lanes))
        return [found.at(u32.bytes * lanes * number).load_lanes(u32, lanes, align=4).payload for number in range(results)]

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def permute(self, type: LaneType, lanes: int, a: Any, count: int, indices: Any) -> Any:
        ir = self.ir
        feature, name = _PERMUTE.get(lanes, ("", ""))
        if type in (u32, i32, f32) and count == lanes and name and ir.module.has(feature):
            kind = ir.vector(u32, lanes)
            bits = self.machine.bitcast(self.code.value(type, lanes, a), u32)
            found = ir.intrinsic(name, kind, [(kind, bits.payload), (kind, indices)], ())
            return self.machine.bitcast(self.code.value(u32, lanes, found), type).payload
        stack = self.code.stack(type, lanes)
        stack.store(self.code.value(type, lanes, a))
        places = self.machine.convert(self.code.value(u32, count, indices) * type.bytes, u64)
        return self.code.gather_lanes(type, stack.lanes_at(places), self.machine.constant(bool_, 1, count)).payload

    # -- memory --------------------------------------------------------------------------------------------------------

    def memory_at(self, address: Value, size: int, name: str) -> Memory:
        return Memory(self.machine, (self.code.scalar(address).as_pointer().text, ""), name, checked=False)

    def append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> bool:
        """A compressed store, where nothing needs checking."""
        ir = self.ir
        if base.checked or isinstance(base, Region):
            return False
        first = ir.emit(f"extractelement <1 x i64> {ir.far(cursor)}, i64 0")
        pointer = ir.emit(f"getelementptr i8, ptr {base.payload[0]}, i64 {first}")
        vector = ir.vector(value.type, value.lanes)
        operands = [(vector, str(value.payload)), ("ptr", pointer), (f"<{value.lanes} x i1>", str(mask.payload))]
        ir.intrinsic("llvm.masked.compressstore", "void", operands, (vector,))
        return True

"""Control flow and variables of lane programs on the LLVM machine: If, Else and While as basic blocks, variables as stack space that LLVM
promotes to registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from softgen.lanes.llvm.mask import LlvmMasks
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.types import bool_
from softgen.lanes.value import Value, Variable


class LlvmControl:
    """Bodies that run if a condition holds, and variables."""

    def __init__(self, ir: LlvmText, masks: LlvmMasks) -> None:
        self.ir, self.masks = ir, masks
        self.after_if = -1  # how many lines there were when the last If ended

    def _condition(self, condition: Value) -> str:
        if condition.type is not bool_ or condition.lanes != 1:
            raise TypeError(f"a decision must be on one lane of bool, not {condition.lanes} x {condition.type}: use any or select")
        return self.ir.emit(f"extractelement <1 x i1> {condition.payload}, i64 0")

    def _body(self) -> Iterator[None]:
        ir = self.ir
        ir.open += 1
        yield
        ir.open -= 1

    def if_(self, condition: Value, rare: bool = False) -> Iterator[None]:
        ir = self.ir
        then, other, end = ir.labels("then", "else", "end")
        ir.line(f"br i1 {self._condition(condition)}, label %{then}, label %{other}{', !prof !0' if rare else ''}")
        ir.start(then)
        yield from self._body()
        ir.line(f"br label %{end}")
        ir.start(other)
        ir.line(f"br label %{end}")
        ir.start(end)
        self.after_if = len(ir.lines)

    def else_(self) -> Iterator[None]:
        ir = self.ir
        if self.after_if != len(ir.lines):
            raise TypeError("Else must follow an If")
        ending = ir.lines[-2:]
        del ir.lines[-2:]                             # the If ended in an empty else block: this is what goes into it
        yield from self._body()
        ir.lines += ending

    def while_(self, condition: Callable[[], Value]) -> Iterator[None]:
        ir = self.ir
        again, body, end = ir.labels("while", "do", "done")
        ir.line(f"br label %{again}")
        ir.start(again)
        ir.line(f"br i1 {self._condition(condition())}, label %{body}, label %{end}")
        ir.start(body)
        yield from self._body()
        ir.line(f"br label %{again}")
        ir.start(end)

    def variable(self, initial: Value) -> str:
        ir = self.ir
        in_bytes = ir.module.masks_in_bytes(initial.type, initial.lanes)
        place = ir.place(f"<{initial.lanes} x i8>" if in_bytes else ir.vector(initial.type, initial.lanes))
        self._set(place, initial)
        return place

    def read_variable(self, variable: Variable) -> Value:
        ir = self.ir
        type, lanes = variable.type, variable.lanes
        if not ir.module.masks_in_bytes(type, lanes):
            return Value(variable.machine, type, lanes, ir.emit(f"load {ir.vector(type, lanes)}, ptr {variable.payload}"))
        held = ir.emit(f"load <{lanes} x i8>, ptr {variable.payload}")
        return Value(variable.machine, type, lanes, self.masks.from_mask_bytes(lanes, held))

    def write_variable(self, variable: Variable, value: Value) -> None:
        self._set(variable.payload, value)

    def _set(self, place: str, value: Value) -> None:
        ir = self.ir
        if ir.module.masks_in_bytes(value.type, value.lanes):
            ir.line(f"store <{value.lanes} x i8> {self.masks.mask_bytes(value.lanes, value.payload)}, ptr {place}")
        else:
            ir.line(f"store {ir.typed(value)}, ptr {place}")

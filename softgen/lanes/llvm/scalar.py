"""Scalars, pointers and basic blocks on the LLVM machine (lanes/code_machine.py), and what only IR has: switches, phis, functions with
parameters, text that is decided later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from softgen.lanes.code_machine import HostPointer, Scalar
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.mask import LlvmMasks
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, bool_
from softgen.lanes.value import Memory, Value

_LIKELY = {None: "", False: ", !prof !0", True: ", !prof !1"}


class LlvmScalar:
    """One scalar: an operand of IR and its type. Python integers beside it become constants; comparisons go by the type's sign."""

    __slots__ = ("code", "text", "type")

    def __init__(self, code: LlvmCode, type: LaneType, text: str) -> None:
        self.code, self.type, self.text = code, type, text

    @property
    def typed(self) -> str:
        return f"{self.code.ir.element(self.type)} {self.text}"

    def _binary(self, operation: str, other: Scalar | int, type: LaneType | None = None) -> LlvmScalar:
        operand = str(other) if isinstance(other, int) else other.text
        return LlvmScalar(self.code, type or self.type, self.code.ir.emit(f"{operation} {self.typed}, {operand}"))

    def _compare(self, how: str, other: Scalar | int) -> LlvmScalar:
        sign = "" if how in ("eq", "ne") else "s" if self.type.is_signed else "u"
        return self._binary(f"icmp {sign}{how}", other, bool_)

    def __add__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("add", other)

    def __sub__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("sub", other)

    def __mul__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("mul", other)

    def __and__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("and", other)

    def __or__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("or", other)

    def __lshift__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("shl", other)

    def __rshift__(self, other: Scalar | int) -> LlvmScalar:
        return self._binary("ashr" if self.type.is_signed else "lshr", other)

    def __invert__(self) -> LlvmScalar:
        return LlvmScalar(self.code, self.type, self.code.ir.emit(f"xor {self.typed}, {'true' if self.type is bool_ else -1}"))

    def __eq__(self, other: Scalar | int) -> LlvmScalar:  # type: ignore[override]    # a comparison is a scalar
        return self._compare("eq", other)

    def __ne__(self, other: Scalar | int) -> LlvmScalar:  # type: ignore[override]
        return self._compare("ne", other)

    def __lt__(self, other: Scalar | int) -> LlvmScalar:
        return self._compare("lt", other)

    def __le__(self, other: Scalar | int) -> LlvmScalar:
        return self._compare("le", other)

    def __gt__(self, other: Scalar | int) -> LlvmScalar:
        return self._compare("gt", other)

    def __ge__(self, other: Scalar | int) -> LlvmScalar:
        return self._compare("ge", other)

    __hash__ = object.__hash__

    def min(self, other: int) -> LlvmScalar:
        """The smaller of two unsigned numbers."""
        return self._intrinsic("llvm.umin", str(other))

    def rotate_left(self, count: Scalar) -> LlvmScalar:
        return self._intrinsic("llvm.fshl", self.text, count.text)

    def rotate_right(self, count: Scalar) -> LlvmScalar:
        return self._intrinsic("llvm.fshr", self.text, count.text)

    def _intrinsic(self, name: str, *operands: str) -> LlvmScalar:
        kind = self.code.ir.element(self.type)
        typed = [(kind, text) for text in (self.text, *operands)]
        return LlvmScalar(self.code, self.type, self.code.ir.intrinsic(name, kind, typed, (kind,)))

    def convert(self, type: LaneType) -> LlvmScalar:
        """Truncated, or extended as its own type's sign says."""
        if type.bits == self.type.bits:
            return LlvmScalar(self.code, type, self.text)
        how = "trunc" if type.bits < self.type.bits else "sext" if self.type.is_signed else "zext"
        return LlvmScalar(self.code, type, self.code.ir.emit(f"{how} {self.typed} to {self.code.ir.element(type)}"))

    def as_pointer(self) -> LlvmPointer:
        return LlvmPointer(self.code, self.code.ir.emit(f"inttoptr {self.typed} to ptr"))

    def lane(self) -> Value:
        """The scalar as a value of one lane."""
        kind = self.code.ir.element(self.type)
        return self.code.value(self.type, 1, self.code.ir.emit(f"insertelement <1 x {kind}> poison, {self.typed}, i64 0"))

    def mask(self, lanes: int) -> Value:
        """The low bits as a mask: lane i is bit i."""
        text = self.text if self.type.bits == lanes else self.code.ir.emit(f"trunc {self.typed} to i{lanes}")
        return self.code.value(bool_, lanes, self.code.masks.mask_of_bits(lanes, text))


def _readable(size: int) -> str:
    return f", !dereferenceable !{{i64 {size}}}, !align !{{i64 8}}" if size else ""


class LlvmPointer:
    """A host pointer: an operand of IR."""

    __slots__ = ("code", "text")

    def __init__(self, code: LlvmCode, text: str) -> None:
        self.code, self.text = code, text

    @property
    def typed(self) -> str:
        return f"ptr {self.text}"

    def at(self, offset: int | Scalar) -> LlvmPointer:
        """A pointer so many bytes further on."""
        operand = f"i64 {offset}" if isinstance(offset, int) else offset.typed
        return LlvmPointer(self.code, self.code.ir.emit(f"getelementptr i8, ptr {self.text}, {operand}"))

    def lanes_at(self, offsets: Value) -> str:
        """Pointers for lanes, by byte offsets of 64 bits: an operand for gather and scatter."""
        return self.code.ir.emit(f"getelementptr i8, ptr {self.text}, {self.code.ir.typed(offsets)}")

    def field(self, layout: RecordLayout, name: str) -> LlvmPointer:
        return self.at(layout.offset(name))

    def _load(self, kind: str, align: int, volatile: bool, invariant: bool, more: str = "") -> str:
        tail = f"{f', align {align}' if align else ''}{', !invariant.load !2' if invariant else ''}{more}"
        return self.code.ir.emit(f"load {'volatile ' if volatile else ''}{kind}, ptr {self.text}{tail}")

    def load(self, type: LaneType, align: int = 0, volatile: bool = False, invariant: bool = False) -> LlvmScalar:
        """A scalar; `invariant`: memory that does not change while the function runs."""
        return LlvmScalar(self.code, type, self._load(self.code.ir.element(type), align, volatile, invariant))

    def load_pointer(self, align: int = 0, invariant: bool = False, dereferenceable: int = 0) -> LlvmPointer:
        """A pointer; `dereferenceable`: bytes that it may be read for, aligned to 8."""
        return LlvmPointer(self.code, self._load("ptr", align, False, invariant, _readable(dereferenceable)))

    def load_pointer_as(self, name: str, dereferenceable: int) -> None:
        """Load a pointer from unchanging memory, under a name: `pointer(name)` of the machine, for code that was written before."""
        self.code.ir.line(f"%{name} = load ptr, ptr {self.text}, !invariant.load !2{_readable(dereferenceable)}")

    def load_lanes(self, type: LaneType, lanes: int, align: int = 0, volatile: bool = False) -> Value:
        """Contiguous lanes."""
        return self.code.value(type, lanes, self._load(self.code.ir.vector(type, lanes), align, volatile, False))

    def memory(self, name: str = "memory") -> Memory:
        """The memory it points to, for loads and stores of lane programs; accesses are not checked."""
        return Memory(self.code.machine, (self.text, ""), name, checked=False)

    def store(self, value: Scalar | HostPointer | Value, align: int = 0, volatile: bool = False) -> None:
        typed = self.code.ir.typed(value) if isinstance(value, Value) else value.typed
        self.code.ir.line(f"store {'volatile ' if volatile else ''}{typed}, ptr {self.text}{f', align {align}' if align else ''}")


class Parameter(NamedTuple):
    """A parameter of a function: of a type, or a pointer (None) with what callers promise of it."""

    name: str
    type: LaneType | None = None
    noalias: bool = False
    align: int = 0
    dereferenceable: int = 0

    def text(self, ir: LlvmText) -> str:
        promises = f"{' noalias' if self.noalias else ''}{f' align {self.align}' if self.align else ''}"
        promises += f" dereferenceable({self.dereferenceable})" if self.dereferenceable else ""
        return f"{ir.element(self.type) if self.type else 'ptr'}{promises} %{self.name}"


class LlvmCode:
    """Scalars, control flow and function frames. Values that are made belong to `machine`."""

    def __init__(self, machine: Machine, ir: LlvmText, masks: LlvmMasks) -> None:
        self.machine, self.ir, self.masks = machine, ir, masks

    def value(self, type: LaneType, lanes: int, payload: str) -> Value:
        return Value(self.machine, type, lanes, payload)

    # -- operands ------------------------------------------------------------------------------------------------------

    def number(self, type: LaneType, number: int) -> LlvmScalar:
        return LlvmScalar(self, type, ("false", "true")[number] if type is bool_ else str(number))

    def pointer(self, name: str) -> LlvmPointer:
        """A parameter, or a pointer that a phi defines."""
        return LlvmPointer(self, f"%{name}")

    def argument(self, type: LaneType, name: str) -> LlvmScalar:
        return LlvmScalar(self, type, f"%{name}")

    def scalar(self, value: Value) -> LlvmScalar:
        """The only lane of a value."""
        return LlvmScalar(self, value.type, self.ir.emit(f"extractelement {self.ir.typed(value)}, i64 0"))

    def mask_scalar(self, mask: Value, type: LaneType) -> LlvmScalar:
        """The bits of a mask as an integer, which must have enough of them."""
        ir = self.ir
        bits = ir.emit(f"bitcast {ir.typed(mask)} to i{mask.lanes}")
        return LlvmScalar(self, type, bits if type.bits == mask.lanes else ir.emit(f"zext i{mask.lanes} {bits} to i{type.bits}"))

    def any_scalar(self, mask: Value) -> LlvmScalar:
        return LlvmScalar(self, bool_, self.masks.any_lane(mask.lanes, str(mask.payload)))

    def choose(self, condition: Scalar, a: Any, b: Any) -> Any:
        """One of two scalars, or of two pointers."""
        text = self.ir.emit(f"select i1 {condition.text}, {a.typed}, {b.typed}")
        return LlvmPointer(self, text) if isinstance(a, LlvmPointer) else LlvmScalar(self, a.type, text)

    def stack(self, type: LaneType, lanes: int, count: int = 0, align: int = 0) -> LlvmPointer:
        """Room on the stack for a vector, or for `count` of them."""
        kind = self.ir.vector(type, lanes)
        return LlvmPointer(self, self.ir.place((f"[{count} x {kind}]" if count else kind) + (f", align {align}" if align else "")))

    # -- basic blocks --------------------------------------------------------------------------------------------------

    def jump(self, label: str) -> None:
        self.ir.line(f"br label %{label}")

    def branch(self, condition: Scalar, then: str, other: str, likely: bool | None = None) -> None:
        """`likely`: whether `then` is, where one of the two is rare."""
        self.ir.line(f"br i1 {condition.text}, label %{then}, label %{other}{_LIKELY[likely]}")

    def switch(self, on: Scalar, default: str, cases: Mapping[int, str]) -> None:
        ir = self.ir
        kind = ir.element(on.type)
        ir.line(f"switch {on.typed}, label %{default} [ {' '.join(f'{kind} {number}, label %{to}' for number, to in cases.items())} ]")

    def phi(self, result: LlvmScalar | LlvmPointer, sources: Mapping[str, Scalar | HostPointer]) -> None:
        """Defines a scalar or pointer that was named before (`argument`, `pointer`) by the block that control comes from."""
        ir = self.ir
        kind = "ptr" if isinstance(result, LlvmPointer) else ir.element(result.type)
        ir.line(f"{result.text} = phi {kind} {', '.join(f'[ {scalar.text}, %{label} ]' for label, scalar in sources.items())}")

    def give(self, result: Scalar | None = None) -> None:
        """Returns from the function."""
        self.ir.line("ret void" if result is None else f"ret {result.typed}")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_native(self, function: str | HostPointer, *arguments: Scalar | HostPointer) -> None:
        """Calls a function of the host that returns nothing: an import by name, or a pointer."""
        ir = self.ir
        if isinstance(function, str):
            kinds = tuple(argument.typed.partition(" ")[0] for argument in arguments)
            function = LlvmPointer(self, ir.outside(function, "void", kinds))
        ir.line(f"call void {function.text}({', '.join(argument.typed for argument in arguments)})")

    def tail_call(self, function: HostPointer, result: LaneType, *arguments: Scalar | HostPointer) -> None:
        """Returns what another function of the same type returns, in whose place it runs."""
        ir = self.ir
        kind, given = ir.element(result), ", ".join(argument.typed for argument in arguments)
        ir.line(f"ret {kind} {ir.emit(f'musttail call {kind} {function.text}({given})')}")

    def frame(self, name: str, result: LaneType | None, parameters: Sequence[Parameter], align_stack: int = 0) -> None:
        """Everything written so far becomes a function of the module."""
        ir = self.ir
        kind = "void" if result is None else ir.element(result)
        given = ", ".join(parameter.text(ir) for parameter in parameters)
        ir.define(f"{kind} @{name}({given}){f' alignstack({align_stack})' if align_stack else ''}")

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def pick(self, a: Value, order: Sequence[int | None], b: Value | None = None) -> Value:
        """A shuffle of one or two vectors of the same shape (lanes of b count on after those of a); None: any value will do."""
        ir = self.ir
        kind = ir.vector(a.type, a.lanes)
        indices = ", ".join(f"i32 {'poison' if lane is None else lane}" for lane in order)
        second = "poison" if b is None else b.payload
        text = f"shufflevector {kind} {a.payload}, {kind} {second}, <{len(order)} x i32> <{indices}>"
        return self.value(a.type, len(order), ir.emit(text))

    def one_lane(self, a: Value, number: int) -> Value:
        """A lane of integers; of an affine value by scalar operations, not out of a vector that is computed for its sake."""
        ir = self.ir
        known = affine.usable(ir, a.payload, affine.EVERY)
        if known is None or known.conditions:
            return self.pick(a, [number])
        text = affine.shifted(ir, a.type, known, number).base()
        return self.value(a.type, 1, ir.emit(f"insertelement {ir.vector(a.type, 1)} poison, {ir.element(a.type)} {text}, i64 0"))

    def splat_lanes(self, scalar: Scalar, lanes: int) -> Value:
        """The same scalar in all lanes, without a note that they are uniform."""
        ir = self.ir
        kind = ir.vector(scalar.type, lanes)
        first = ir.emit(f"insertelement {kind} poison, {scalar.typed}, i64 0")
        return self.value(scalar.type, lanes, ir.emit(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"))

    def with_lane(self, value: Value | None, lane: int, scalar: Scalar, lanes: int) -> Value:
        """A vector with one lane replaced; None: of any other lanes."""
        ir = self.ir
        kind = ir.vector(scalar.type, lanes)
        vector = "poison" if value is None else value.payload
        return self.value(scalar.type, lanes, ir.emit(f"insertelement {kind} {vector}, {scalar.typed}, i64 {lane}"))

    def lane(self, value: Value, lane: int) -> LlvmScalar:
        return LlvmScalar(self, value.type, self.ir.emit(f"extractelement {self.ir.typed(value)}, i64 {lane}"))

    def gather_lanes(self, type: LaneType, pointers: str, mask: Value) -> Value:
        """Lanes at pointers of `HostPointer.lanes_at`; inactive ones are zero."""
        ir = self.ir
        vector, kind = ir.vector(type, mask.lanes), f"<{mask.lanes} x ptr>"
        operands = [(kind, pointers), ("i32", "1"), (f"<{mask.lanes} x i1>", str(mask.payload)), (vector, "zeroinitializer")]
        return self.value(type, mask.lanes, ir.intrinsic("llvm.masked.gather", vector, operands, (vector, kind)))

    def scatter_lanes(self, value: Value, pointers: str, mask: Value) -> None:
        ir = self.ir
        vector, kind = ir.vector(value.type, value.lanes), f"<{value.lanes} x ptr>"
        operands = [(vector, str(value.payload)), (kind, pointers), ("i32", "1"), (f"<{value.lanes} x i1>", str(mask.payload))]
        ir.intrinsic("llvm.masked.scatter", "void", operands, (vector, kind))

    def promise(self, type: LaneType, lanes: int) -> Value:
        """A value that is used before `keep_promise` defines it."""
        return self.value(type, lanes, self.ir.fresh())

    def keep_promise(self, promised: Value, value: Value) -> None:
        """Define a promised value as the one written last."""
        ir = self.ir
        name, _, rest = ir.lines[-1].strip().partition(" = ")
        assert name == value.payload and ir.vector(promised.type, promised.lanes) == ir.vector(value.type, value.lanes)
        ir.lines[-1] = f"  {promised.payload} = {rest}"


__all__ = ["LlvmCode", "LlvmPointer", "LlvmScalar", "Parameter"]

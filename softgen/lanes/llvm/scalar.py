"""Scalars, pointers and basic blocks on the LLVM machine, for code around lane programs: entries and exits of functions, loops over
threads, fields of contexts.

    context = m.pointer("context")                          # a parameter
    budget = context.field(CONTEXT, "budget")               # a pointer to a field (record.py)
    left = budget.load(i64) - 1                             # operators write instructions
    budget.store(left)
    m.branch(left <= 0, "spent", "on", likely=False)        # ends a basic block
    m.start("on")                                           # begins one

Nothing of this exists on the NumPy machine: lane programs use values, records and If instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from softgen.lanes.llvm import affine
from softgen.lanes.llvm.mask import LlvmMasks
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, bool_
from softgen.lanes.value import Memory, Value

_LIKELY = {None: "", False: ", !prof !0", True: ", !prof !1"}


class Scalar:
    """One scalar: an operand of IR and its type. Python integers beside it become constants; comparisons go by the type's sign."""

    __slots__ = ("machine", "text", "type")

    def __init__(self, machine: LlvmMasks, type: LaneType, text: str) -> None:
        self.machine, self.type, self.text = machine, type, text

    @property
    def typed(self) -> str:
        return f"{self.machine.element(self.type)} {self.text}"

    def _binary(self, operation: str, other: Scalar | int, type: LaneType | None = None) -> Scalar:
        operand = other.text if isinstance(other, Scalar) else str(other)
        return Scalar(self.machine, type or self.type, self.machine.emit(f"{operation} {self.typed}, {operand}"))

    def _compare(self, how: str, other: Scalar | int) -> Scalar:
        sign = "" if how in ("eq", "ne") else "s" if self.type.is_signed else "u"
        return self._binary(f"icmp {sign}{how}", other, bool_)

    def __add__(self, other: Scalar | int) -> Scalar:
        return self._binary("add", other)

    def __sub__(self, other: Scalar | int) -> Scalar:
        return self._binary("sub", other)

    def __mul__(self, other: Scalar | int) -> Scalar:
        return self._binary("mul", other)

    def __and__(self, other: Scalar | int) -> Scalar:
        return self._binary("and", other)

    def __or__(self, other: Scalar | int) -> Scalar:
        return self._binary("or", other)

    def __lshift__(self, other: Scalar | int) -> Scalar:
        return self._binary("shl", other)

    def __rshift__(self, other: Scalar | int) -> Scalar:
        return self._binary("ashr" if self.type.is_signed else "lshr", other)

    def __invert__(self) -> Scalar:
        return Scalar(self.machine, self.type, self.machine.emit(f"xor {self.typed}, {'true' if self.type is bool_ else -1}"))

    def __eq__(self, other: Scalar | int) -> Scalar:  # type: ignore[override]    # a comparison is a scalar
        return self._compare("eq", other)

    def __ne__(self, other: Scalar | int) -> Scalar:  # type: ignore[override]
        return self._compare("ne", other)

    def __lt__(self, other: Scalar | int) -> Scalar:
        return self._compare("lt", other)

    def __le__(self, other: Scalar | int) -> Scalar:
        return self._compare("le", other)

    def __gt__(self, other: Scalar | int) -> Scalar:
        return self._compare("gt", other)

    def __ge__(self, other: Scalar | int) -> Scalar:
        return self._compare("ge", other)

    __hash__ = object.__hash__

    def min(self, other: int) -> Scalar:
        """The smaller of two unsigned numbers."""
        return self._intrinsic("llvm.umin", str(other))

    def rotate_left(self, count: Scalar) -> Scalar:
        return self._intrinsic("llvm.fshl", self.text, count.text)

    def rotate_right(self, count: Scalar) -> Scalar:
        return self._intrinsic("llvm.fshr", self.text, count.text)

    def _intrinsic(self, name: str, *operands: str) -> Scalar:
        kind = self.machine.element(self.type)
        typed = [(kind, text) for text in (self.text, *operands)]
        return Scalar(self.machine, self.type, self.machine.intrinsic(name, kind, typed, (kind,)))

    def convert(self, type: LaneType) -> Scalar:
        """Truncated, or extended as its own type's sign says."""
        if type.bits == self.type.bits:
            return Scalar(self.machine, type, self.text)
        how = "trunc" if type.bits < self.type.bits else "sext" if self.type.is_signed else "zext"
        return Scalar(self.machine, type, self.machine.emit(f"{how} {self.typed} to {self.machine.element(type)}"))

    def as_pointer(self) -> HostPointer:
        return HostPointer(self.machine, self.machine.emit(f"inttoptr {self.typed} to ptr"))

    def lane(self) -> Value:
        """The scalar as a value of one lane."""
        m, kind = self.machine, self.machine.element(self.type)
        return m._value(self.type, 1, m.emit(f"insertelement <1 x {kind}> poison, {self.typed}, i64 0"))

    def mask(self, lanes: int) -> Value:
        """The low bits as a mask: lane i is bit i."""
        m, bits = self.machine, self
        text = bits.text if bits.type.bits == lanes else m.emit(f"trunc {bits.typed} to i{lanes}")
        return m._value(bool_, lanes, m.mask_of_bits(lanes, text))


def _readable(size: int) -> str:
    return f", !dereferenceable !{{i64 {size}}}, !align !{{i64 8}}" if size else ""


class HostPointer:
    """A host pointer: an operand of IR."""

    __slots__ = ("machine", "text")

    def __init__(self, machine: LlvmMasks, text: str) -> None:
        self.machine, self.text = machine, text

    @property
    def typed(self) -> str:
        return f"ptr {self.text}"

    def at(self, offset: int | Scalar) -> HostPointer:
        """A pointer so many bytes further on."""
        operand = offset.typed if isinstance(offset, Scalar) else f"i64 {offset}"
        return HostPointer(self.machine, self.machine.emit(f"getelementptr i8, ptr {self.text}, {operand}"))

    def lanes_at(self, offsets: Value) -> str:
        """Pointers for lanes, by byte offsets of 64 bits: an operand for gather and scatter."""
        return self.machine.emit(f"getelementptr i8, ptr {self.text}, {self.machine.typed(offsets)}")

    def field(self, layout: RecordLayout, name: str) -> HostPointer:
        return self.at(layout.offset(name))

    def _load(self, kind: str, align: int, volatile: bool, invariant: bool, more: str = "") -> str:
        tail = f"{f', align {align}' if align else ''}{', !invariant.load !2' if invariant else ''}{more}"
        return self.machine.emit(f"load {'volatile ' if volatile else ''}{kind}, ptr {self.text}{tail}")

    def load(self, type: LaneType, align: int = 0, volatile: bool = False, invariant: bool = False) -> Scalar:
        """A scalar; `invariant`: memory that does not change while the function runs."""
        return Scalar(self.machine, type, self._load(self.machine.element(type), align, volatile, invariant))

    def load_pointer(self, align: int = 0, invariant: bool = False, dereferenceable: int = 0) -> HostPointer:
        """A pointer; `dereferenceable`: bytes that it may be read for, aligned to 8."""
        return HostPointer(self.machine, self._load("ptr", align, False, invariant, _readable(dereferenceable)))

    def load_pointer_as(self, name: str, dereferenceable: int) -> None:
        """The same of memory that does not change, under a name: `pointer(name)` of the machine, for code that was written before."""
        self.machine.line(f"%{name} = load ptr, ptr {self.text}, !invariant.load !2{_readable(dereferenceable)}")

    def load_lanes(self, type: LaneType, lanes: int, align: int = 0, volatile: bool = False) -> Value:
        """Contiguous lanes."""
        return self.machine._value(type, lanes, self._load(self.machine.vector(type, lanes), align, volatile, False))

    def memory(self, name: str = "memory") -> Memory:
        """The memory it points to, for loads and stores of lane programs; accesses are not checked."""
        return Memory(self.machine, (self.text, ""), name, checked=False)

    def store(self, value: Scalar | HostPointer | Value, align: int = 0, volatile: bool = False) -> None:
        typed = self.machine.typed(value) if isinstance(value, Value) else value.typed
        self.machine.line(f"store {'volatile ' if volatile else ''}{typed}, ptr {self.text}{f', align {align}' if align else ''}")


class Parameter(NamedTuple):
    """A parameter of a function: of a type, or a pointer (None) with what callers promise of it."""

    name: str
    type: LaneType | None = None
    noalias: bool = False
    align: int = 0
    dereferenceable: int = 0

    def text(self, m: LlvmMasks) -> str:
        promises = f"{' noalias' if self.noalias else ''}{f' align {self.align}' if self.align else ''}"
        promises += f" dereferenceable({self.dereferenceable})" if self.dereferenceable else ""
        return f"{m.element(self.type) if self.type else 'ptr'}{promises} %{self.name}"


class LlvmScalars(LlvmMasks):
    """Scalars, control flow and function frames."""

    # -- operands ------------------------------------------------------------------------------------------------------

    def number(self, type: LaneType, number: int) -> Scalar:
        return Scalar(self, type, ("false", "true")[number] if type is bool_ else str(number))

    def pointer(self, name: str) -> HostPointer:
        """A parameter, or a pointer that a phi defines."""
        return HostPointer(self, f"%{name}")

    def argument(self, type: LaneType, name: str) -> Scalar:
        return Scalar(self, type, f"%{name}")

    def scalar(self, value: Value) -> Scalar:
        """The only lane of a value."""
        return Scalar(self, value.type, self.emit(f"extractelement {self.typed(value)}, i64 0"))

    def mask_scalar(self, mask: Value, type: LaneType) -> Scalar:
        """The bits of a mask as an integer, which must have enough of them."""
        bits = self.emit(f"bitcast {self.typed(mask)} to i{mask.lanes}")
        return Scalar(self, type, bits if type.bits == mask.lanes else self.emit(f"zext i{mask.lanes} {bits} to i{type.bits}"))

    def any_scalar(self, mask: Value) -> Scalar:
        return Scalar(self, bool_, self.any_lane(mask.lanes, str(mask.payload)))

    def choose(self, condition: Scalar, a: Any, b: Any) -> Any:
        """One of two scalars, or of two pointers."""
        text = self.emit(f"select i1 {condition.text}, {a.typed}, {b.typed}")
        return HostPointer(self, text) if isinstance(a, HostPointer) else Scalar(self, a.type, text)

    def stack(self, type: LaneType, lanes: int, count: int = 0, align: int = 0) -> HostPointer:
        """Room on the stack for a vector, or for `count` of them."""
        kind = self.vector(type, lanes)
        return HostPointer(self, self.place((f"[{count} x {kind}]" if count else kind) + (f", align {align}" if align else "")))

    # -- basic blocks --------------------------------------------------------------------------------------------------

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: Scalar, then: str, other: str, likely: bool | None = None) -> None:
        """`likely`: whether `then` is, where one of the two is rare."""
        self.line(f"br i1 {condition.text}, label %{then}, label %{other}{_LIKELY[likely]}")

    def switch(self, on: Scalar, default: str, cases: Mapping[int, str]) -> None:
        kind = self.element(on.type)
        self.line(f"switch {on.typed}, label %{default} [ {' '.join(f'{kind} {number}, label %{to}' for number, to in cases.items())} ]")

    def phi(self, result: Scalar | HostPointer, sources: Mapping[str, Scalar | HostPointer]) -> None:
        """Defines a scalar or pointer that was named before (`argument`, `pointer`) by the block that control comes from."""
        kind = "ptr" if isinstance(result, HostPointer) else self.element(result.type)
        self.line(f"{result.text} = phi {kind} {', '.join(f'[ {scalar.text}, %{label} ]' for label, scalar in sources.items())}")

    def give(self, result: Scalar | None = None) -> None:
        """Returns from the function."""
        self.line("ret void" if result is None else f"ret {result.typed}")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_native(self, function: str | HostPointer, *arguments: Scalar | HostPointer) -> None:
        """Calls a function of the host that returns nothing: an import by name, or a pointer."""
        if isinstance(function, str):
            kinds = tuple(argument.typed.partition(" ")[0] for argument in arguments)
            function = HostPointer(self, self.outside(function, "void", kinds))
        self.line(f"call void {function.text}({', '.join(argument.typed for argument in arguments)})")

    def tail_call(self, function: HostPointer, result: LaneType, *arguments: Scalar | HostPointer) -> None:
        """Returns what another function of the same type returns, in whose place it runs."""
        kind, given = self.element(result), ", ".join(argument.typed for argument in arguments)
        self.line(f"ret {kind} {self.emit(f'musttail call {kind} {function.text}({given})')}")

    def frame(self, name: str, result: LaneType | None, parameters: Sequence[Parameter], align_stack: int = 0) -> None:
        """Everything written so far becomes a function of the module."""
        kind = "void" if result is None else self.element(result)
        given = ", ".join(parameter.text(self) for parameter in parameters)
        self.define(f"{kind} @{name}({given}){f' alignstack({align_stack})' if align_stack else ''}")

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def pick(self, a: Value, order: Sequence[int | None], b: Value | None = None) -> Value:
        """A shuffle of one or two vectors of the same shape (lanes of b count on after those of a); None: any value will do."""
        kind = self.vector(a.type, a.lanes)
        indices = ", ".join(f"i32 {'poison' if lane is None else lane}" for lane in order)
        second = "poison" if b is None else b.payload
        text = f"shufflevector {kind} {a.payload}, {kind} {second}, <{len(order)} x i32> <{indices}>"
        return self._value(a.type, len(order), self.emit(text))

    def one_lane(self, a: Value, number: int) -> Value:
        """A lane of integers; of an affine value by scalar operations, not out of a vector that is computed for its sake."""
        known = affine.usable(self, a.payload, affine.EVERY)
        if known is None or known.conditions:
            return self.pick(a, [number])
        text = affine.shifted(self, a.type, known, number).base()
        return self._value(a.type, 1, self.emit(f"insertelement {self.vector(a.type, 1)} poison, {self.element(a.type)} {text}, i64 0"))

    def splat_lanes(self, scalar: Scalar, lanes: int) -> Value:
        """The same scalar in all lanes, without a note that they are uniform."""
        kind = self.vector(scalar.type, lanes)
        first = self.emit(f"insertelement {kind} poison, {scalar.typed}, i64 0")
        return self._value(scalar.type, lanes, self.emit(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"))

    def with_lane(self, value: Value | None, lane: int, scalar: Scalar, lanes: int) -> Value:
        """A vector with one lane replaced; None: of any other lanes."""
        kind = self.vector(scalar.type, lanes)
        vector = "poison" if value is None else value.payload
        return self._value(scalar.type, lanes, self.emit(f"insertelement {kind} {vector}, {scalar.typed}, i64 {lane}"))

    def lane(self, value: Value, lane: int) -> Scalar:
        return Scalar(self, value.type, self.emit(f"extractelement {self.typed(value)}, i64 {lane}"))

    def gather_lanes(self, type: LaneType, pointers: str, mask: Value) -> Value:
        """Lanes at pointers of `HostPointer.lanes_at`; inactive ones are zero."""
        vector, kind = self.vector(type, mask.lanes), f"<{mask.lanes} x ptr>"
        operands = [(kind, pointers), ("i32", "1"), (f"<{mask.lanes} x i1>", str(mask.payload)), (vector, "zeroinitializer")]
        return self._value(type, mask.lanes, self.intrinsic("llvm.masked.gather", vector, operands, (vector, kind)))

    def scatter_lanes(self, value: Value, pointers: str, mask: Value) -> None:
        vector, kind = self.vector(value.type, value.lanes), f"<{value.lanes} x ptr>"
        operands = [(vector, str(value.payload)), (kind, pointers), ("i32", "1"), (f"<{value.lanes} x i1>", str(mask.payload))]
        self.intrinsic("llvm.masked.scatter", "void", operands, (vector, kind))

    # -- text that is decided later --------------------------------------------------------------------------------------

    def promise(self, type: LaneType, lanes: int) -> Value:
        """A value that is used before `keep_promise` defines it."""
        return self._value(type, lanes, self.fresh())

    def keep_promise(self, promised: Value, value: Value) -> None:
        """Define a promised value as the one written last."""
        name, _, rest = self.lines[-1].strip().partition(" = ")
        assert name == value.payload and self.vector(promised.type, promised.lanes) == self.vector(value.type, value.lanes)
        self.lines[-1] = f"  {promised.payload} = {rest}"

    def defer(self, item: object) -> None:
        """Write a placeholder, to be replaced after `detach`."""
        self.lines.append(cast(str, item))

    def detach(self) -> list[object]:
        """Remove and return what was written so far: lines, and placeholders of deferred text."""
        taken, self.lines = self.lines, []
        return cast(list[object], taken)

    def attach(self, line: object) -> None:
        """Put back a line that `detach` removed."""
        self.lines.append(cast(str, line))

    def mark(self) -> int:
        """Where the text is now, for `rewind`."""
        return len(self.lines)

    def rewind(self, mark: int) -> None:
        """Remove what was written since a mark."""
        del self.lines[mark:]


__all__ = ["HostPointer", "LlvmScalars", "Parameter", "Scalar"]

"""Machines that write code around lane programs, too: scalars, pointers and basic blocks, for entries and exits of functions, loops over
threads, fields of contexts.

    context = m.pointer("context")                          # a parameter
    budget = context.field(CONTEXT, "budget")               # a pointer to a field (record.py)
    left = budget.load(i64) - 1                             # operators write instructions
    budget.store(left)
    m.branch(left <= 0, "spent", "on", likely=False)        # ends a basic block
    m.start("on")                                           # begins one

The LLVM machine and the bytecode machine of handlers are such machines: what is written for a `CodeMachine` runs on both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType
from softgen.lanes.value import Memory, Value


class IrOperand(Protocol):
    """What a machine that writes IR knows as an operand; others raise Unsupported."""

    @property
    def text(self) -> str: ...

    @property
    def typed(self) -> str: ...


class Scalar(IrOperand, Protocol):
    """One scalar. Python integers beside it become constants; comparisons go by the type's sign."""

    @property
    def type(self) -> LaneType: ...

    def __add__(self, other: Scalar | int) -> Scalar: ...

    def __sub__(self, other: Scalar | int) -> Scalar: ...

    def __mul__(self, other: Scalar | int) -> Scalar: ...

    def __and__(self, other: Scalar | int) -> Scalar: ...

    def __or__(self, other: Scalar | int) -> Scalar: ...

    def __lshift__(self, other: Scalar | int) -> Scalar: ...

    def __rshift__(self, other: Scalar | int) -> Scalar: ...

    def __invert__(self) -> Scalar: ...

    def __eq__(self, other: Scalar | int) -> Scalar: ...  # type: ignore[override]    # a comparison is a scalar

    def __ne__(self, other: Scalar | int) -> Scalar: ...  # type: ignore[override]

    def __lt__(self, other: Scalar | int) -> Scalar: ...

    def __le__(self, other: Scalar | int) -> Scalar: ...

    def __gt__(self, other: Scalar | int) -> Scalar: ...

    def __ge__(self, other: Scalar | int) -> Scalar: ...

    def min(self, other: int) -> Scalar:
        """The smaller of two unsigned numbers."""
        ...

    def rotate_left(self, count: Scalar) -> Scalar: ...

    def rotate_right(self, count: Scalar) -> Scalar: ...

    def convert(self, type: LaneType) -> Scalar:
        """Truncated, or extended as its own type's sign says."""
        ...

    def as_pointer(self) -> HostPointer: ...

    def lane(self) -> Value:
        """The scalar as a value of one lane."""
        ...

    def mask(self, lanes: int) -> Value:
        """The low bits as a mask: lane i is bit i."""
        ...


class HostPointer(IrOperand, Protocol):
    """A host pointer."""

    def at(self, offset: int | Scalar) -> HostPointer:
        """A pointer so many bytes further on."""
        ...

    def field(self, layout: RecordLayout, name: str) -> HostPointer: ...

    def load(self, type: LaneType, align: int = 0, volatile: bool = False, invariant: bool = False) -> Scalar:
        """A scalar; `invariant`: memory that does not change while the function runs."""
        ...

    def load_pointer(self, align: int = 0, invariant: bool = False, dereferenceable: int = 0) -> HostPointer:
        """A pointer; `dereferenceable`: bytes that it may be read for, aligned to 8."""
        ...

    def load_lanes(self, type: LaneType, lanes: int, align: int = 0, volatile: bool = False) -> Value:
        """Contiguous lanes."""
        ...

    def memory(self, name: str = "memory") -> Memory:
        """The memory it points to, for loads and stores of lane programs; accesses are not checked."""
        ...

    def store(self, value: Scalar | HostPointer | Value, align: int = 0, volatile: bool = False) -> None: ...


class CodeMachine(Machine):
    """A lane machine with scalars, pointers and basic blocks."""

    # -- operands ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def number(self, type: LaneType, number: int) -> Scalar: ...

    @abstractmethod
    def pointer(self, name: str) -> HostPointer:
        """A parameter, or a pointer that a phi defines."""

    @abstractmethod
    def argument(self, type: LaneType, name: str) -> Scalar: ...

    @abstractmethod
    def scalar(self, value: Value) -> Scalar:
        """The only lane of a value."""

    @abstractmethod
    def mask_scalar(self, mask: Value, type: LaneType) -> Scalar:
        """The bits of a mask as an integer, which must have enough of them."""

    @abstractmethod
    def any_scalar(self, mask: Value) -> Scalar: ...

    @abstractmethod
    def choose(self, condition: Scalar, a: Any, b: Any) -> Any:
        """One of two scalars, or of two pointers."""

    @abstractmethod
    def stack(self, type: LaneType, lanes: int, count: int = 0, align: int = 0) -> HostPointer:
        """Room on the stack for a vector, or for `count` of them."""

    @abstractmethod
    def pick(self, a: Value, order: Sequence[int | None], b: Value | None = None) -> Value:
        """A shuffle of one or two vectors of the same shape (lanes of b count on after those of a); None: any value will do."""

    @abstractmethod
    def affine_inside(self, offsets: Value, mask: Value, size: Scalar, width: int) -> Scalar:
        """Whether `width` bytes at each active lane's offset are known to be inside: of ascending affine offsets, if the last ones are."""

    def rematerialised(self, offsets: Value, mask: Value) -> Value:
        """The offsets of active lanes, for code that seldom runs: affine ones are computed there, so that nothing else needs the vector."""
        return offsets

    # -- basic blocks --------------------------------------------------------------------------------------------------

    @abstractmethod
    def conditional(self) -> bool:
        """Whether what is written now may be skipped: it is in the body of an If or While."""

    @abstractmethod
    def labels(self, *names: str) -> Sequence[str]:
        """Labels with these names that are not taken."""

    @abstractmethod
    def start(self, label: str) -> None:
        """Begin a basic block."""

    @abstractmethod
    def jump(self, label: str) -> None: ...

    @abstractmethod
    def branch(self, condition: Scalar, then: str, other: str, likely: bool | None = None) -> None:
        """`likely`: whether `then` is, where one of the two is rare."""

    @abstractmethod
    def give(self, result: Scalar | None = None) -> None:
        """Return from the function."""

    # -- calls ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def call_native(self, function: str | HostPointer, *arguments: Scalar | HostPointer) -> None:
        """Call a function of the host that returns nothing: an import by name, or a pointer."""

    @abstractmethod
    def tail_call(self, function: HostPointer, result: LaneType, *arguments: Scalar | HostPointer) -> None:
        """Return what another function of the same type returns, in whose place it runs."""


__all__ = ["CodeMachine", "HostPointer", "Scalar"]

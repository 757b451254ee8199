"""Instruction semantics: what each opcode computes, written once as lane programs for interpreter and compilers.

A function takes its sources as lanes, already read, modified and converted to the execution type. `c` is the Computation around it:
the machine `c.m`, float arithmetic in the thread's rounding mode, and what some opcodes need besides their sources (predicate, condition,
accumulator). A Python `if` is decided at decode time; `m.select` per lane at run time.

alu.py     arithmetic, dot products, multiply-accumulate      logic.py   bits, shifts, fields, comparison and selection
convert.py moves, rounding, conversion                        math.py    extended math
control.py branches with an ip per channel                    mask_stack.py  branches with a mask stack
branch_machine.py  the interface of branch semantics          send.py    messages
pairs.py   doubles as pairs of elements
step.py    reads sources, calls these functions, writes results. An opcode without a function raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.lane_state import LaneState
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value


class Computation(Protocol):
    """One execution of one instruction: what its semantics may use."""

    state: LaneState
    instruction: Instruction
    m: Machine
    kind: str  # execution type: w d q hf f df
    target: LaneType  # the destination's type

    def add(self, a: Value, b: Value) -> Value: ...

    def sub(self, a: Value, b: Value) -> Value: ...

    def mul(self, a: Value, b: Value) -> Value: ...

    def fma(self, a: Value, b: Value, c: Value) -> Value: ...

    def clean(self, value: Value) -> Value: ...

    def number(self, value: float) -> Value: ...

    def source(self, index: int) -> Value: ...

    def unconverted(self, index: int) -> Value: ...

    def predicate(self) -> Value: ...

    def restrict(self, mask: Value) -> None: ...

    def accumulator(self) -> Value: ...

    def set_accumulator(self, value: Value) -> None: ...

    def set_flags(self, value: Value) -> None: ...

    def register(self, index: int, first: int, step: int) -> Value: ...

    def write_next(self, value: Value) -> None: ...


LaneFunction = Callable[..., Value]


@dataclass(frozen=True)
class OpSemantics:
    """An opcode's function and how `step` calls it."""

    function: LaneFunction
    modular: bool = False  # the low bits of an integer result depend only on the low bits of the sources
    ordered: bool = False  # only compares its sources
    raw: bool = False  # float sources keep their denormals
    own: bool = False  # reads its sources itself, through Computation
    selects: bool = False  # predicate and condition select between sources; they neither mask channels nor set flags


OPS: dict[str, OpSemantics] = {}


def op(name: str = "", **properties: bool) -> Callable[[LaneFunction], LaneFunction]:
    """Decorator: register a function as the semantics of an opcode, by default the one it is named after (without trailing underscore)."""

    def register(function: LaneFunction) -> LaneFunction:
        OPS[name or function.__name__.rstrip("_")] = OpSemantics(function, **properties)
        return function

    return register

"""What each opcode computes, written once as lane programs.

A function sees whole operands: lanes already read, modified and converted to the execution type. `c` is the computation it is part of:
the machine `c.m`, float arithmetic in the thread's rounding, and the few things some opcodes need beside their sources (predicate,
condition, accumulator). A Python `if` is decided when the instruction is decoded; `m.select` per lane when it runs.

alu.py     arithmetic, dot products, multiply-accumulate      logic.py   bits, shifts, fields, comparison and selection
convert.py moves, rounding, conversion                        math.py    extended math
control.py branches                                           send.py    messages
`step` puts the path around them. What has no function here is not simulated: `Unsupported`.
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
    """One execution of one instruction, as its function sees it."""

    state: LaneState
    instruction: Instruction
    m: Machine
    kind: str  # execution type: w d q hf f df
    target: LaneType  # the destination's

    def add(self, a: Value, b: Value) -> Value: ...

    def sub(self, a: Value, b: Value) -> Value: ...

    def mul(self, a: Value, b: Value) -> Value: ...

    def fma(self, a: Value, b: Value, c: Value) -> Value: ...

    def clean(self, value: Value) -> Value: ...

    def number(self, value: float) -> Value: ...

    def source(self, index: int) -> Value: ...

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
    """A function and what the path around it must know."""

    function: LaneFunction
    modular: bool = False  # the low bits of an integer result follow from the low bits of the sources
    ordered: bool = False  # compares its sources and computes nothing
    raw: bool = False  # float sources are taken as they are, denormals and all
    decides: bool = False  # gives truth per channel; flag and destination say it
    own: bool = False  # reads its sources itself
    selects: bool = False  # predicate and condition choose between sources, and mask and set nothing


OPS: dict[str, OpSemantics] = {}


def op(name: str = "", **known: bool) -> Callable[[LaneFunction], LaneFunction]:
    """Makes a function the meaning of an opcode: its own name without a trailing underscore, or the one given."""

    def keep(function: LaneFunction) -> LaneFunction:
        OPS[name or function.__name__.rstrip("_")] = OpSemantics(function, **known)
        return function

    return keep

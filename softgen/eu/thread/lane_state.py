"""LaneState: the interface through which instruction semantics read and write a thread's registers, as lanes of some machine.

The interpreter implements it over a ThreadState's bytes, the compilers over the values or memory they keep registers in. A `place` is a
register file ("grf", "mrf") or the name of an architecture register; offsets are bytes from its beginning. Offsets that are known at decode
time are Python numbers, the others are lanes.
"""

from __future__ import annotations

from typing import Protocol

from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.thread.state import FloatMode
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

Offsets = tuple[int, ...] | Value


class FlushedFloats(Protocol):
    """What a translation knows of floats that hold no denormal (eu/translate/flushed.py)."""

    def holds(self, value: Value) -> bool: ...

    def note(self, value: Value) -> None: ...


class LaneState(Protocol):
    """A thread's registers during one instruction."""

    @property
    def m(self) -> Machine: ...

    @property
    def gen(self) -> float: ...

    @property
    def rules(self) -> ExecutionRules: ...

    @property
    def mode(self) -> FloatMode: ...

    @property
    def accumulates(self) -> bool:
        """Whether cr0.0 enables implicit accumulator updates."""
        ...

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        """Read one lane at each offset; zero outside an architecture register."""
        ...

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None: ...

    def enabled(self, instruction: Instruction) -> Value:
        """The channels that execute an instruction, before predication."""
        ...

    def flags(self, first: int, count: int) -> Value:
        """Flag bits as booleans, numbered from f0.0's lowest bit through f1.1."""
        ...

    def write_flags(self, first: int, value: Value, mask: Value) -> None: ...

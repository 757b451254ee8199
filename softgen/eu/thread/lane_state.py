"""What instructions see of a thread while they compute: registers as lanes of some machine.

`step` is written against this; the interpreter implements it over a Thread's bytes, a translator over what it keeps registers in. A place
is a register file ("grf", "mrf") or the name of an architecture register; offsets are bytes from its beginning. Offsets that are known
when the instruction is decoded come as Python numbers, the others as lanes.
"""

from __future__ import annotations

from typing import Protocol

from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import Rules
from softgen.eu.thread.state import Mode
from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

Offsets = tuple[int, ...] | Value


class State(Protocol):
    """A thread in the middle of an instruction."""

    @property
    def m(self) -> Machine: ...

    @property
    def gen(self) -> float: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def accumulates(self) -> bool:
        """Whether cr0.0 lets instructions update the accumulator in passing."""
        ...

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        """A lane from each offset; zero where an architecture register has no such byte."""
        ...

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None: ...

    def enabled(self, instruction: Instruction) -> Value:
        """The channels that execute it, before predication."""
        ...

    def flags(self, first: int, count: int) -> Value:
        """Flag bits as truth, counted from f0.0's lowest through f1.1."""
        ...

    def write_flags(self, first: int, value: Value, mask: Value) -> None: ...

"""Illegal opcodes: which threads go on after them.

With its exception off, opcode 0 only sets its status bit, and the next instruction follows (BDW 21675-21710). Kernels that
intel-media-driver links have 128 bytes of zeros between their parts. A thread in longer ones has lost its way, which is an error, and so
are reserved opcodes: what they do is undefined (IVB 512-517).
"""

from __future__ import annotations

from typing import Protocol

from softgen.errors import SoftgenError
from softgen.eu.isa.instruction import Instruction

ILLEGAL = frozenset({"", "illegal"})  # opcodes that are no instruction
MOST_PADDING = 64  # illegal opcodes in a row that are skipped


class Line(Protocol):
    """A decoded instruction and its place."""

    @property
    def ip(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def instruction(self) -> Instruction: ...


class Lines(Protocol):
    """A program."""

    def line(self, ip: int) -> Line: ...


def skips_illegal(code: Lines, line: Line) -> bool:
    """Whether an illegal opcode is one of few in a row, with an instruction behind them."""
    for _ in range(MOST_PADDING):
        try:
            line = code.line(line.ip + line.size)
        except SoftgenError:
            return False
        if line.instruction.opcode not in ILLEGAL:
            return True
    return False

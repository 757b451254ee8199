"""Probes: a user's own analysis of what kernels do, in NumPy.

    class Strides(softgen.Probe):
        def accesses(self, rows):                      # 4,096 or more at a time
            for offset in np.unique(rows["offset"]):
                print(hex(offset), np.diff(rows["address"][rows["offset"] == offset]))

    softgen.open("saxpy").probe(Strides())

Rows of ACCESS and EXECUTED name kernels by number; `self.kernels[number]` is the kernel. Messages run on the interpreter while a probe asks
for accesses, which is slow; counts alone run compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from softgen.position import Position

if TYPE_CHECKING:
    from softgen.eu.interpreter import KernelProgram

BATCH = 4096  # rows that a probe is given at a time, at least
ACCESS = np.dtype([("kernel", "u4"), ("offset", "u4"), ("write", "?"), ("lane", "u1"), ("size", "u2"), ("address", "u8")])
EXECUTED = np.dtype([("kernel", "u4"), ("offset", "u4"), ("executed", "u8"), ("lanes", "u8")])
Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class ProbedKernel:
    """A kernel that rows name by its number."""

    number: int
    title: str
    code: bytes
    program: KernelProgram

    def text(self, offset: int) -> str:
        """The instruction at an offset."""
        from softgen.threads import places  # probes are defined before anything runs

        return places.text(self.program.line(self.program.start + offset).instruction)


class Probe:
    """What is called while a capture runs. Every method does nothing unless it is overridden."""

    kernels: dict[int, ProbedKernel]  # by number, as far as they have run

    def begin(self, position: Position, name: str) -> None:
        """A draw or dispatch begins."""

    def accesses(self, rows: Rows) -> None:
        """Memory accesses of lanes (ACCESS), in the order of execution."""

    def executed(self, position: Position, rows: Rows) -> None:
        """What a draw or dispatch has executed (EXECUTED): a row for each instruction."""

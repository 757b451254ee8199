"""The reference engine behind the scheduler: code that leaves every instruction to the interpreter. For C loops that start threads."""

from __future__ import annotations

from softgen.eu import native
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram


class InterpretedEngine:
    """An Engine whose threads run on the interpreter."""

    name = "reference"

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        return interpreted()

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Nothing to learn from that."""

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return True

    def settled(self, chosen: CompiledFunction) -> bool:
        return True

    def yield_to_foreground(self) -> None:
        """Nothing is done in the background."""


def interpreted() -> CompiledFunction:
    """Code for threads that only the interpreter runs."""
    return CompiledFunction(native.imports()["native_interpret"])

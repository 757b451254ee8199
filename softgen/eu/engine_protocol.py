"""The protocol of compiling engines: what an engine is asked for, what it returns, and what it may assume of the payload.

Engines (threaded/engine.py, translate/engine.py, promotion.py) and their callers import this module; it imports no engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from softgen.eu.interpreter import KernelProgram


class CompiledFunction(NamedTuple):
    """The compiled entry point of a kernel: `int64_t f(block, context)`, which returns a ThreadStatus (thread/block.py)."""

    address: int
    program: int = 0  # for context.program
    clean: bool = False  # the block is unchanged when a thread ends on its first call
    steady: bool = False  # stays valid when a thread changes its cr0
    joint: bool = False  # runs several threads in one call (Context.turns)
    needs: tuple[tuple[int, int], ...] | None = None  # live-in byte ranges of a block (start, size); None: all of it
    owner: object = None  # keeps the code alive
    indices: frozenset[int] = frozenset()  # binding table entries that its messages name
    in_order: bool = False  # joint, and leaves the blocks of threads that end as they were: all before the current one have ended


@dataclass(frozen=True)
class AffineRange:
    """A contiguous range of general-register elements with affine values: element i is base + i·stride, modulo the element's width."""

    start: int  # byte offset in the register file
    size: int  # bytes of an element
    count: int
    stride: int
    highest: int | None = None  # unsigned upper bound of all elements, if known

    @property
    def end(self) -> int:
        return self.start + self.size * self.count


class CompilerEngine(Protocol):
    """An engine that compiles kernels."""

    name: str

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        """Compiled code for threads with this cr0.0 and `simd` channels. `full`: every thread is dispatched with all of them; `entry`: the
        ip of a thread that is not at the kernel's start; `payload`: affine ranges that hold in the payload of every thread."""
        ...

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Reports executed instructions, for engines that profile."""
        ...

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        """Whether `function` would now give this code of the kernel again; on the hot path, where `settled` is asked once."""
        ...

    def settled(self, chosen: CompiledFunction) -> bool:
        """Whether `function` will go on giving this code for the same kernel and the same threads from now on."""
        ...

    def yield_to_foreground(self) -> None:
        """Called between instructions that are left to the interpreter, once in a slice of time: lets work in the background go on."""
        ...

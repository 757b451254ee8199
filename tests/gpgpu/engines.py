"""Engines for tests: those there are, and one whose code does nothing but leave each instruction to the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.thread.block import ThreadStatus
from softgen.lanes.compile import jit
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher

LEAVES = f"define i64 @leaves(ptr %block, ptr %context) {{ ret i64 {ThreadStatus.ESCAPE} }}"


@cache
def _leaves() -> jit.LoadedCode:
    return jit.load(LEAVES, ("leaves",))


class Leaving:
    """Compiled code that knows no instruction: what native.c and the reference do between them is all that happens."""

    name = "leaving"

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        return CompiledFunction(_leaves().address("leaves"), owner=_leaves())

    def ran(self, program: KernelProgram, instructions: int) -> None:
        pass

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return True

    def settled(self, chosen: CompiledFunction) -> bool:
        return True

    def yield_to_foreground(self) -> None:
        pass


class Recording:
    """A Dispatcher that runs nothing, and keeps the records."""

    def __init__(self) -> None:
        self.seen: list[tuple[DispatchContext, ThreadDispatch]] = []

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
        self.seen.append((context, dispatch))
        yield from ()


@dataclass(frozen=True)
class Choice:
    name: str
    threads: int = 1

    def groups(self) -> EngineDispatcher:
        if self.name.startswith("leaving"):
            return EngineDispatcher("leaving", self.threads, make=lambda name: Leaving())
        return EngineDispatcher(self.name, self.threads)


def engines() -> list[Choice]:
    return [Choice("reference"), Choice("leaving"), Choice("leaving, two threads", 2), Choice("t0"), Choice("t1")]

"""Which engine runs dispatches: the reference, or one that compiles kernels; and what each kernel came to.

    groups = Groups("t1", threads=2)
    for done in groups(around, plan, spent): …

Where compiled code cannot reach the memory or cannot be had, the reference runs the dispatch, and `notes` says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from softgen.errors import Unsupported
from softgen.eu.engine import Engine, engine
from softgen.eu.interpreter import KernelProgram
from softgen.gpgpu import group
from softgen.gpgpu.walker import Done, Plan, Spent, Surroundings

REFERENCE = "reference"
KEPT = 256  # programs


def host_threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class Ran:
    """What a kernel came to."""

    program: KernelProgram
    engine: str
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0
    seconds: float = 0.0


class Programs:
    """Kernels by where they are: the same bytes at the same place are the same Program, so that engines need not look twice."""

    def __init__(self) -> None:
        self._kept: dict[tuple[float, int, int], KernelProgram] = {}

    def load(self, around: Surroundings, kernel: int) -> KernelProgram:
        address, code = group.code(around, kernel)
        key = around.generation.number, kernel, address
        held = self._kept.get(key)
        if held is None or held.code != code:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            held = self._kept[key] = KernelProgram(key[0], code, kernel, f"kernel {address:#x}")
        return held


class Groups:
    """Runs the groups of dispatches on one engine. `make` gives the engine of a name."""

    def __init__(self, name: str = REFERENCE, threads: int | None = None, make: Callable[[str], Engine] | None = None) -> None:
        self.name, self.threads = name, 1 if name == REFERENCE else threads or host_threads()
        self.programs = Programs()
        self.notes: list[str] = []
        self.ran: dict[tuple[KernelProgram, str], Ran] = {}
        self._make = make or engine
        self._engine: Engine | None = None
        self._rooms: object = None

    def __call__(self, around: Surroundings, plan: Plan, spent: Spent = lambda: False) -> Iterator[Done]:
        program = self.programs.load(around, plan.kernel)
        if self.name != REFERENCE:
            try:
                yield from self._counted(program, self.name, self._compiled(around, plan, program, spent))
                return
            except Cannot as why:
                self._note(f"{why}; the reference ran it instead")
        yield from self._counted(program, REFERENCE, group.run(around, plan, spent, program))

    def _compiled(self, around: Surroundings, plan: Plan, program: KernelProgram, spent: Spent) -> Iterator[Done]:
        from softgen.gpgpu import compiled  # costs what the reference does not need

        try:
            if self._engine is None:
                self._engine = self._make(self.name)
            _ = around.space.table
        except Unsupported as why:
            raise Cannot(str(why)) from why
        if not isinstance(self._rooms, compiled.Rooms):
            self._rooms = compiled.Rooms(self.threads)
        yield from compiled.run(around, plan, program, self._engine, self._rooms, spent)

    def _counted(self, program: KernelProgram, engine: str, work: Iterator[Done]) -> Iterator[Done]:
        came = Ran(program, engine)
        began = time.perf_counter()
        try:
            for done in work:
                came.threads += done.threads
                came.instructions += done.instructions
                yield done
        except Cannot:
            raise
        except BaseException:
            self._keep(came, time.perf_counter() - began)
            raise
        self._keep(came, time.perf_counter() - began)

    def _keep(self, came: Ran, seconds: float) -> None:
        total = self.ran.setdefault((came.program, came.engine), Ran(came.program, came.engine))
        total.dispatches += 1
        total.threads += came.threads
        total.instructions += came.instructions
        total.seconds += seconds

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class Cannot(Exception):
    """This engine is not for this dispatch."""

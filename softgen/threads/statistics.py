"""Statistics of kernels: how often each ran on an engine, and for how long."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from softgen.errors import SoftgenError
from softgen.eu.encoding.program import kernel_end
from softgen.eu.interpreter import KernelProgram

BEHIND = 1 << 12  # bytes that are kept after a kernel's last instruction: binaries, which give kernels their names, pad their code


@dataclass
class KernelStatistics:
    """Work done by one kernel on one engine."""

    program: KernelProgram
    engine: str
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0
    seconds: float = 0.0
    stages: set[str] = field(default_factory=set)  # that it was a shader of, as positions name them
    whole: KernelStatistics | None = None  # what it has become a part of
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, threads: int, instructions: int, seconds: float, dispatches: int = 1) -> None:
        """Another dispatch, or several."""
        with self._lock:  # command streamers on several host threads may share a kernel
            whole = self.whole
            if whole is None:
                self.dispatches += dispatches
                self.threads += threads
                self.instructions += instructions
                self.seconds += seconds
                return
        whole.add(threads, instructions, seconds, dispatches)

    def join(self, whole: KernelStatistics) -> None:
        """Counts for another from now on, which gets what has been counted."""
        with self._lock, whole._lock:
            self._count_for(whole)
            whole.program.lines.update(summary(self.program).lines)
            whole.program.fallbacks.update(self.program.fallbacks)
            self.program.fallbacks = whole.program.fallbacks
            self.program = whole.program

    def join_others(self, others: KernelStatistics) -> None:
        """Counts for a total of several kernels from now on, whose code is not kept."""
        with self._lock, others._lock:
            self._count_for(others)
            self.program = others.program

    def _count_for(self, whole: KernelStatistics) -> None:
        self.whole = whole
        whole.stages |= self.stages
        whole.dispatches += self.dispatches
        whole.threads += self.threads
        whole.instructions += self.instructions
        whole.seconds += self.seconds


def own_code(program: KernelProgram) -> bytes:
    """A kernel's instructions, without what follows them in memory."""
    end, _ = kernel_end(program.code, program.gen)
    return program.code[:end]


def known_code(program: KernelProgram) -> bytes:
    """As much of a kernel as has been decoded or translated, of one that has run all but what only a register leads to: to find the end of
    each kernel would take long where a context with many of them ends."""
    return program.code[: program.reach] if program.reach else own_code(program)


def summary(program: KernelProgram) -> KernelProgram:
    """What reports need of a program: its own code, and the instructions that were left to the interpreter."""
    size = len(known_code(program)) + BEHIND
    made = KernelProgram(program.gen, program.beginning(size), program.start, program.title)
    made.fallbacks = program.fallbacks
    for ip in list(program.fallbacks):
        try:
            made.lines[ip] = program.line(ip)
        except SoftgenError:
            del program.fallbacks[ip]  # in a system routine that is no longer there
    return made

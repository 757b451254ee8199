"""Statistics of kernels: how often each ran on an engine, and for how long."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from softgen.eu.interpreter import KernelProgram


@dataclass
class KernelStatistics:
    """Work done by one kernel on one engine."""

    program: KernelProgram
    engine: str
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0
    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, threads: int, instructions: int, seconds: float) -> None:
        """Another dispatch."""
        with self._lock:  # command streamers on several host threads may share a kernel
            self.dispatches += 1
            self.threads += threads
            self.instructions += instructions
            self.seconds += seconds

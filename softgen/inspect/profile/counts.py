"""Profile: counts of a capture by draw, kernel and instruction. Counts are exact: two runs of the same capture have the same ones.

Three times are kept apart and never mixed: seconds on this host, the driver's own estimate, and a lower bound of the hardware's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class InstructionCounts:
    """An instruction of a kernel."""

    offset: int
    text: str
    executed: int = 0  # by threads
    lanes: int = 0  # channels that were on, of all executions
    line: str = ""  # FILE:NUMBER of the source, where it is known
    accesses: int | None = None  # memory accesses of lanes; None: traffic was not asked for
    bytes_read: int | None = None
    bytes_written: int | None = None
    lines_touched: int | None = None  # 64-byte lines, counted for each execution


@dataclass
class KernelCounts:
    """A kernel, whatever the addresses it ran at."""

    name: str
    stage: str
    code: str  # first digits of the SHA-256 of its bytes
    size: int
    threads: int = 0
    executed: int = 0
    lanes: int = 0
    draws: int = 0  # or dispatches
    host_seconds: float | None = None
    driver_cycles: float | None = None  # as the driver that compiled it estimates
    at_least_cycles: float | None = None  # of arithmetic on all EUs together
    instructions: list[InstructionCounts] = field(default_factory=list)


@dataclass
class DrawCounts:
    """A draw or dispatch."""

    position: str
    name: str
    threads: int = 0
    executed: int = 0
    lanes: int = 0
    host_seconds: float | None = None
    driver_cycles: float | None = None
    at_least_cycles: float | None = None
    kernels: dict[str, int] = field(default_factory=dict)  # instructions by kernel (KernelCounts.code)


@dataclass
class Profile:
    """The counts of one capture on one GPU."""

    capture: str
    gpu: str
    threads: int = 0
    executed: int = 0
    host_seconds: float | None = None
    traffic: bool = False
    problems: list[str] = field(default_factory=list)
    draws: list[DrawCounts] = field(default_factory=list)
    kernels: list[KernelCounts] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"format": "softgen profile", "version": 1} | asdict(self)

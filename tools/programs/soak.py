"""What a long run may not take more and more of: memory and descriptors of the simulator, processes of the program."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

STEP = 2.0  # seconds between two looks
SETTLED = 0.5  # of the run, after which nothing may grow
MOST_GROWN = 1.15  # memory in the end to memory when it had settled
MOST_MORE = 64 << 20  # bytes that do not count
MORE_DESCRIPTORS, MORE_PROCESSES = 32, 4


@dataclass
class Sample:
    """The state of a run at a moment."""

    memory: int  # bytes of the simulator
    descriptors: int
    processes: int


@dataclass
class Growth:
    """A run when it had settled and in the end."""

    settled: dict[str, int]
    end: dict[str, int]

    def complaint(self) -> str:
        """What has grown; '' where nothing has."""
        before, after = Sample(**self.settled), Sample(**self.end)
        if after.memory > before.memory * MOST_GROWN + MOST_MORE:
            return f"the simulator's memory grew from {before.memory >> 20} to {after.memory >> 20} MiB"
        if after.descriptors > before.descriptors + MORE_DESCRIPTORS:
            return f"the simulator's descriptors grew from {before.descriptors} to {after.descriptors}"
        if after.processes > before.processes + MORE_PROCESSES:
            return f"processes grew from {before.processes} to {after.processes}"
        return ""


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *descendants(child))]


def sample(launcher: int) -> Sample | None:
    """The state of a run now; its first child is the simulator."""
    try:
        server = children(launcher)[0]
        pages = int(Path(f"/proc/{server}/statm").read_text("ascii").split()[1])
        return Sample(pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{server}/fd")), len(descendants(launcher)))
    except (OSError, IndexError):
        return None


class Watch:
    """Looks at a run while it goes on."""

    def __init__(self, launcher: int) -> None:
        self.launcher = launcher
        self.samples: list[Sample] = []

    def wait(self, child: subprocess.Popen[bytes], seconds: float) -> int:
        """Wait for the run's end; TimeoutExpired as of Popen.wait."""
        until = time.monotonic() + seconds
        while True:
            try:
                return child.wait(min(STEP, max(until - time.monotonic(), 0.01)))
            except subprocess.TimeoutExpired:
                if time.monotonic() >= until:
                    raise
                if found := sample(self.launcher):
                    self.samples.append(found)

    def growth(self) -> dict[str, Any]:
        """Settled and last state; the run's end is left out."""
        if not self.samples:
            nothing = asdict(Sample(0, 0, 0))
            return {"settled": nothing, "end": nothing}
        looked = self.samples[:-1] or self.samples
        return {"settled": asdict(looked[int(len(looked) * SETTLED)]), "end": asdict(looked[-1])}

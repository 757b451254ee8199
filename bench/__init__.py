"""Speed, as ratios: each file here measures one package and compares it with a peer in the same run.

A benchmark is a file with `measure() -> Iterable[Measurement]`; `python -m bench [NAME…] [--json]` runs them.
Numbers are printed, never tested: a timed test fails on a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """`amount` units took `seconds`; the peer did the same work in `peer_seconds`."""

    what: str
    amount: float
    unit: str
    seconds: float
    peer: str = ""
    peer_seconds: float = 0.0
    note: str = ""
    quantity: str = "seconds"  # what `seconds` counts, where it is not time

    @property
    def rate(self) -> float:
        return self.amount / self.seconds

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer; None without one."""
        return self.peer_seconds / self.seconds if self.peer else None


def best_time(work: Callable[[], object], least: float = 0.5, rounds: int = 3) -> float:
    """Seconds of the quickest call, over at least `rounds` calls and `least` seconds: noise only ever adds."""
    best, spent, calls = float("inf"), 0.0, 0
    while calls < rounds or spent < least:
        start = time.perf_counter()
        work()
        took = max(time.perf_counter() - start, 1e-9)
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best

"""Vertical blanks: their count, and events that programs have asked for at one of them.

There is no refresh rate to wait for: each presented frame is a vertical blank. Where none is presented they come 60 times a second, so that
a program that waits for one without presenting goes on.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from softgen.driver.errors import Errno

PERIOD = 16_666_667  # ns between vertical blanks
NANOSECONDS = 1e9


class Vblank(NamedTuple):
    """A vertical blank: its number, and its time on the monotonic clock."""

    sequence: int
    when: int  # ns


Due = Callable[[Vblank], None]


class VblankCounter:
    """The count of vertical blanks; called with the lock of the display held."""

    def __init__(self) -> None:
        self.sequence, self.when = 0, time.monotonic_ns()

    def now(self) -> Vblank:
        """The last vertical blank."""
        passed = max(time.monotonic_ns() - self.when, 0) // PERIOD
        self.sequence, self.when = self.sequence + passed, self.when + passed * PERIOD
        return Vblank(self.sequence, self.when)

    def frame(self) -> Vblank:
        """A frame is presented: the next vertical blank, at this moment."""
        self.sequence, self.when = self.now().sequence + 1, time.monotonic_ns()
        return Vblank(self.sequence, self.when)

    def due(self, sequence: int) -> float:
        """When a vertical blank comes if no frame is presented, as time.monotonic() tells it."""
        return (self.when + (sequence - self.sequence) * PERIOD) / NANOSECONDS


class VblankEvents:
    """Events that programs have asked for, each at a vertical blank. A thread waits for the next one while there are any."""

    def __init__(self, counter: VblankCounter, lock: threading.RLock) -> None:
        self.counter, self.changed = counter, threading.Condition(lock)
        self.waiting: list[tuple[int, int, object, Due]] = []  # a heap: sequence, order of the requests, the node, what to call
        self.order = itertools.count()
        self.running = False

    def count(self, node: object) -> int:
        return sum(entry[2] is node for entry in self.waiting)

    def add(self, node: object, sequence: int, send: Due) -> None:
        """Call `send` at a vertical blank."""
        with self.changed:
            if not self.running:
                try:
                    threading.Thread(target=self._run, name="vertical blanks", daemon=True).start()
                except RuntimeError:
                    raise Errno(errno.ENOMEM, "no thread left to wait for vertical blanks") from None
                self.running = True
            heapq.heappush(self.waiting, (sequence, next(self.order), node, send))
            self.changed.notify()

    def forget(self, node: object) -> None:
        """The node is closed: nobody reads its events."""
        with self.changed:
            self.waiting = [entry for entry in self.waiting if entry[2] is not node]
            heapq.heapify(self.waiting)
            self.changed.notify()

    def send_due(self, everything: bool = False) -> None:
        """Send the events whose vertical blank has come; `everything`: all, because the CRTC is turned off (drm_crtc_vblank_off)."""
        with self.changed:
            now = self.counter.now()
            while self.waiting and (everything or self.waiting[0][0] <= now.sequence):
                heapq.heappop(self.waiting)[3](now)

    def _run(self) -> None:
        with self.changed:
            while self.waiting:
                self.send_due()
                if self.waiting:
                    self.changed.wait(max(self.counter.due(self.waiting[0][0]) - time.monotonic(), 0))
            self.running = False

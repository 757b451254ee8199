"""Parked submissions: how often each looks at the semaphore that it waits for, and who makes it look at once.

A semaphore in memory is signalled by work of another context, by the program itself, or never. When work is over, or waits itself, those
that wait for memory of its buffers look again. Whatever else may have changed memory is found by polling: at first often, then more seldom,
and the more submissions are parked, the more seldom each of them, so that all together take a small part of a processor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from softgen.driver.objects.gem_object import GemObject

LOOK_AGAIN = 0.001  # seconds until the first look, and in which one of all parked submissions looks
LOOK_SELDOM = 0.016  # seconds between two looks of one that has waited for long, where few are parked


class Parking:
    """The submissions of all contexts that wait at semaphores."""

    def __init__(self) -> None:
        self.waiting: dict[GemObject, set[threading.Event]] = {}  # by the buffer that has the semaphore
        self.count = 0
        self.lock = threading.Lock()

    @contextmanager
    def parked(self, bo: GemObject | None) -> Iterator[threading.Event]:
        """A submission that waits for memory of a buffer, if it is one: an event that is set when that may have changed."""
        woken = threading.Event()
        with self.lock:
            self.count += 1
            if bo is not None:
                self.waiting.setdefault(bo, set()).add(woken)
        try:
            yield woken
        finally:
            with self.lock:
                self.count -= 1
                if bo is not None:
                    self.waiting[bo].discard(woken)
                    if not self.waiting[bo]:
                        del self.waiting[bo]

    def interval(self, waited: float) -> float:
        """Seconds until the next look, after so many in vain: twice as many each time."""
        return max(min(max(waited, LOOK_AGAIN), LOOK_SELDOM), LOOK_AGAIN * self.count)

    def written(self, bos: Iterable[GemObject]) -> None:
        """Work that may have written to buffers is over, or waits. On the hot path, where `waiting` is empty most often."""
        if self.waiting:
            with self.lock:
                for bo in bos:
                    for woken in self.waiting.get(bo, ()):
                        woken.set()

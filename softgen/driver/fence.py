"""Fences: the promise that work will be done, and everything that waits for it.

One condition serves all fences of a server. A sync file is a fence with a descriptor: the reading end of a pipe, which becomes readable
when the fence is done, and whose inode says which fence it is wherever the descriptor goes.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Ready = Callable[[], bool]
Item = TypeVar("Item")
PATIENCE = 0.5  # seconds between two looks at whether the waiting program still lives


class Signals:
    """Where everybody waits, and is woken when any fence is done."""

    def __init__(self) -> None:
        self.changed = threading.Condition()

    def wait(self, ready: Ready, until: float | None, gone: Ready = lambda: False) -> bool:
        """Wait until something is ready, a moment of time.monotonic() has passed (None: none), or nobody is interested any more."""
        with self.changed:
            while not ready():
                left = PATIENCE if until is None else min(PATIENCE, until - time.monotonic())
                if left <= 0 or gone():
                    return ready()
                self.changed.wait(left)
            return True

    def tell(self) -> None:
        with self.changed:
            self.changed.notify_all()


class Fence:
    """Done or not yet; `error` is an error number when the work failed."""

    def __init__(self, signals: Signals, done: bool = False) -> None:
        self.signals, self.done, self.error = signals, done, 0
        self.when = time.monotonic_ns() if done else 0
        self._then: list[Callable[[], None]] = []

    def signal(self, error: int = 0) -> None:
        with self.signals.changed:
            if self.done:
                return
            self.error, self.done, self.when = error, True, time.monotonic_ns()
            then, self._then = self._then, []
            self.signals.changed.notify_all()
        for function in then:
            function()

    def then(self, function: Callable[[], None]) -> None:
        """Call a function when it is done; at once if it is."""
        with self.signals.changed:
            if not self.done:
                self._then.append(function)
                return
        function()


def all_of(signals: Signals, fences: list[Fence]) -> Fence:
    """Done when all are."""
    open_ones = [fence for fence in fences if not fence.done]
    if len(open_ones) == 1:
        return open_ones[0]
    whole = Fence(signals, done=not open_ones)
    whole.error = next((fence.error for fence in fences if fence.error), 0)

    def look() -> None:
        if all(fence.done for fence in fences):
            whole.signal(next((fence.error for fence in fences if fence.error), 0))

    for fence in open_ones:
        fence.then(look)
    return whole


class Pipes(Generic[Item]):
    """Things with a descriptor, found again by its inode for as long as somebody has it open."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[Item, int]] = {}  # inode -> item, writing end
        self.lock = threading.Lock()

    def new(self, item: Item) -> tuple[int, int]:
        """A descriptor to hand out, and the inode that names it."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        inode = os.fstat(reading).st_ino
        with self.lock:
            self._sweep()
            self.items[inode] = item, writing
        return reading, inode

    def find(self, inode: int) -> Item | None:
        found = self.items.get(inode)
        return found[0] if found else None

    def mark(self, inode: int) -> None:
        """The reading end becomes readable, and stays so."""
        with self.lock:
            if inode in self.items:
                try:
                    os.write(self.items[inode][1], b"!")
                except OSError:
                    pass  # nobody reads any more

    def _sweep(self) -> None:
        """Forget those whose reading ends are all closed."""
        poll = select.poll()
        ends = {writing: inode for inode, (_, writing) in self.items.items()}
        for writing in ends:
            poll.register(writing, 0)
        for writing, what in poll.poll(0):
            if what & (select.POLLERR | select.POLLHUP):
                del self.items[ends[writing]]
                os.close(writing)


class SyncFiles(Pipes[Fence]):
    """Fences with descriptors."""

    def make(self, fence: Fence) -> int:
        reading, inode = self.new(fence)
        fence.then(lambda: self.mark(inode))
        return reading

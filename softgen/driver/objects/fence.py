"""Fences: completion of submissions, and waiting for it; sync objects, which contain fences; sync files.

One condition serves all fences of a server. A sync file is a fence with a descriptor: the reading end of a pipe, which becomes readable
when the fence is done, and whose device and inode number identify the fence wherever the descriptor goes.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from softgen.driver.objects.descriptors import leave_some
from softgen.memory.store import Identity, identity

Ready = Callable[[], bool]
Item = TypeVar("Item")
POLL_INTERVAL = 0.5  # seconds between two looks at whether the waiting program still lives
RECENT = 4096  # changes that are known one by one
SWEPT = 1024  # events asked of epoll at a time


class Signals:
    """The condition variable of all fences of a server."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.following = threading.local()  # functions that a thread has yet to call for fences that are done
        self.changes = 0  # notifications so far
        self.recent: deque[object] = deque(maxlen=RECENT)  # what has changed last, while anybody waits
        self.waiting = 0  # threads in wait(); counted before they look, so that who changes something and then finds 0 need not notify

    def wait(self, ready: Ready, until: float | None, gone: Ready = lambda: False) -> bool:
        """Wait until `ready()`, until a deadline of time.monotonic() (None: none), or until `gone()`; returns whether it is ready."""
        with self.changed:
            self.waiting += 1
            try:
                while not ready():
                    left = POLL_INTERVAL if until is None else min(POLL_INTERVAL, until - time.monotonic())
                    if left <= 0 or gone():
                        return ready()
                    self.changed.wait(left)
                return True
            finally:
                self._waits_no_more()

    def wait_unlocked(self, ready: Ready, until: float | None, gone: Ready = lambda: False) -> bool:
        """Wait variant for a `ready` that takes long: it is called without the lock, which all fences of all programs need."""
        with self.lock:
            self.waiting += 1
        try:
            while True:
                seen = self.changes
                if ready():
                    return True
                left = POLL_INTERVAL if until is None else min(POLL_INTERVAL, until - time.monotonic())
                if left <= 0 or gone():
                    return ready()
                with self.changed:
                    if self.changes == seen:
                        self.changed.wait(left)
        finally:
            with self.lock:
                self._waits_no_more()

    def _waits_no_more(self) -> None:
        self.waiting -= 1
        if not self.waiting:
            self.recent.clear()

    def since(self, seen: int) -> list[object] | None:
        """What has changed since there were `seen` changes, for who has waited from then on; None where that is not known any more."""
        with self.lock:
            count = self.changes - seen
            return list(islice(self.recent, len(self.recent) - count, None)) if count <= len(self.recent) else None

    def follow(self, functions: list[Callable[[], None]]) -> None:
        """Call functions of a fence that is done, and those of the fences that they complete: one after the other, as a chain of fences
        may be longer than the stack."""
        left: deque[Callable[[], None]] | None = getattr(self.following, "left", None)
        if left is not None:
            left.extend(functions)  # this thread is at it
            return
        self.following.left = left = deque(functions)
        try:
            while left:
                left.popleft()()
        finally:
            self.following.left = None

    def notify(self, what: object = None) -> None:
        if self.waiting:
            with self.changed:
                self.tell(what)

    def tell(self, what: object = None) -> None:
        """Wake those that wait: `what` has changed, a fence or a sync object. Called with the lock held."""
        self.changes += 1
        self.recent.append(what)
        self.changed.notify_all()


class Fence:
    """Completion of a submission; `error` is an error number if it failed."""

    error = when = 0

    def __init__(self, signals: Signals, done: bool = False) -> None:
        self.signals, self.done = signals, done
        self._then: list[Callable[[], None]] = []
        if done:
            self.when = time.monotonic_ns()

    def signal(self, error: int = 0) -> None:
        signals = self.signals
        with signals.lock:
            if self.done:
                return
            self.error, self.done, self.when = error, True, time.monotonic_ns()
            if signals.waiting:
                signals.tell(self)
        if self._then:  # nothing is added any more
            then, self._then = self._then, []
            signals.follow(then)

    def then(self, function: Callable[[], None]) -> None:
        """Call a function when the fence is done; at once if it is done already."""
        with self.signals.changed:
            if not self.done:
                self._then.append(function)
                return
        function()


def all_of(signals: Signals, fences: list[Fence]) -> Fence:
    """A fence that is done when all of these are."""
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


class Syncobj:
    """A sync object: a timeline, points in rising order, each done when it and all before it are. A binary one has point 0 only."""

    def __init__(self, signals: Signals, fence: Fence | None = None) -> None:
        self.signals = signals
        self.points: list[tuple[int, Fence]] = [] if fence is None else [(0, fence)]

    def replace(self, fence: Fence | None) -> None:
        self.points = [] if fence is None else [(0, fence)]
        self.signals.notify(self)

    def add(self, point: int, fence: Fence) -> None:
        """Add a point to the timeline; point 0 replaces all."""
        if not point:
            self.replace(fence)
            return
        with self.signals.lock:  # others may add points
            before = [last for _, last in self.points[-1:] if not last.done]
            self.points = [*self.points[-63:], (point, all_of(self.signals, [*before, fence]) if before else fence)]
        self.signals.notify(self)

    def fence(self, point: int = 0) -> Fence | None:
        """The fence of a point; None where it has not been submitted yet."""
        if not point:
            return self.points[-1][1] if self.points else None
        return next((fence for value, fence in self.points if value >= point), None)

    def value(self, submitted: bool = False) -> int:
        return max((value for value, fence in self.points if submitted or fence.done), default=0)


class Pipes(Generic[Item]):
    """Items with a descriptor, found again by its identity for as long as a copy of the descriptor is open anywhere.

    The server keeps the writing end of each pipe, so the kernel cannot give the identity to another one. When the last reading end is
    closed, epoll reports the writing end: the cost is that of the ends closed, not of all that exist.
    """

    def __init__(self) -> None:
        self.items: dict[Identity, tuple[Item, int]] = {}  # -> item, writing end
        self.ends: dict[int, Identity] = {}  # writing end -> its key in items
        self.lock = threading.Lock()
        self.closed = select.epoll()

    def new(self, item: Item) -> tuple[int, Identity]:
        """A descriptor to hand out, and what identifies it."""
        with self.lock:
            self._sweep()
            leave_some()
            reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            key = identity(reading)
            try:
                self.closed.register(writing, 0)  # errors are always reported
            except OSError:  # a limit of the host
                os.close(reading)
                os.close(writing)
                raise
            self.items[key], self.ends[writing] = (item, writing), key
        return reading, key

    def find(self, key: Identity) -> Item | None:
        found = self.items.get(key)
        return found[0] if found else None

    def mark(self, key: Identity) -> None:
        """Make the reading end readable, for good."""
        with self.lock:
            if key in self.items:
                try:
                    os.write(self.items[key][1], b"!")
                except OSError:
                    pass  # the reader is gone

    def __del__(self) -> None:
        for writing in self.ends:
            os.close(writing)

    def sweep(self) -> None:
        """Forget items whose reading ends are all closed."""
        with self.lock:
            self._sweep()

    def _sweep(self) -> None:
        while found := self.closed.poll(0, SWEPT):
            for writing, _ in found:
                del self.items[self.ends.pop(writing)]
                os.close(writing)


class SyncFiles(Pipes[Fence]):
    """Fences with descriptors."""

    def make(self, fence: Fence) -> int:
        reading, key = self.new(fence)
        fence.then(lambda: self.mark(key))
        return reading

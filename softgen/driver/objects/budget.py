"""Memory budget: what the server may take for programs, in all and for each process.

Buffers count with the pages that are touched (an untouched page costs nothing, as in the kernel), everything else with its size: copies
of the program's memory, linear views of tiled buffers, arguments of ioctls, kernels that contexts keep. A request that would go beyond is
answered with ENOMEM before anything is allocated.
"""

from __future__ import annotations

import errno
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable

from softgen.driver.errors import Errno
from softgen.memory.host import host_memory
from softgen.memory.store import MemfdBuffer

HOST_SHARE = 0.75  # of the host's memory that a server may take by default
CLIENT_SHARE = 0.875  # of that, what one process may take
STALE = 0.25  # seconds after which the pages of buffers are counted again, where it matters


def default_limit() -> int:
    return int(host_memory() * HOST_SHARE)


class Budget:
    """Memory that is taken, by process, and how much there may be."""

    def __init__(self, limit: int, log: Callable[[str], None] = lambda text: None) -> None:
        self.limit, self.client_limit, self.log = limit, int(limit * CLIENT_SHARE), log
        self.buffers: weakref.WeakKeyDictionary[MemfdBuffer, int] = weakref.WeakKeyDictionary()  # -> process
        self.size: Counter[int] = Counter()  # of all pages of the buffers of a process
        self.resident: Counter[int] = Counter()  # of the touched ones, when they were last counted
        self.other: Counter[int] = Counter()  # memory besides buffers
        self.since: Counter[int] = Counter()  # granted since pages were counted
        self.exported: weakref.WeakSet[MemfdBuffer] = weakref.WeakSet()  # buffers that count with all of their pages
        self.counted = 0.0
        self.grown = 0  # how often memory was taken,
        self._fitting: dict[int, int] = {}  # and at which of those a process was within its limit, with all pages of its buffers
        self.lock = threading.RLock()
        self.logged: set[str] = set()
        self.gone: deque[tuple[Counter[int], int, int]] = deque()  # from finalizers, which may run anywhere

    def adopt(self, pid: int, buffer: MemfdBuffer) -> MemfdBuffer:
        """Count the pages of a buffer for a process, until the buffer is gone."""
        with self.lock:
            self.buffers[buffer] = pid
            self.size[pid] += buffer.capacity
            self.grown += 1
        weakref.finalize(buffer, self.gone.append, (self.size, pid, buffer.capacity)).atexit = False
        return buffer

    def take(self, pid: int, size: int, what: str) -> None:
        """Memory besides buffers; give() returns it."""
        with self.lock:
            self.check(pid, size, what)
            self.other[pid] += size
            self.grown += 1

    def give(self, pid: int, size: int) -> None:
        self.gone.append((self.other, pid, size))

    def note(self, pid: int, size: int) -> None:
        """Memory besides buffers that was taken without asking, or negative, given back: further requests may be too much."""
        self.gone.append((self.other, pid, -size))
        self.grown += 1

    def hold(self, owner: object, pid: int, size: int) -> None:
        """Memory that an object takes until it is gone, without asking."""
        self.note(pid, size)
        weakref.finalize(owner, self.give, pid, size).atexit = False

    def export(self, pid: int, buffer: MemfdBuffer) -> None:
        """A buffer whose file programs get, who may touch its pages without asking: from now on it counts with all of them."""
        with self.lock:
            if buffer not in self.exported:
                self.check(self.buffers.get(buffer, pid), buffer.capacity - buffer.resident(), "an exported buffer")
                self.exported.add(buffer)

    def outgrown(self, pid: int, before: int) -> tuple[int, bool]:
        """What a process has taken, and whether that is too much: more than one may take, or more than `before` while all together have
        more than the limit. For work that touches pages as it goes on."""
        with self.lock:
            self._settle()
            if self._fits(self.size, pid, 0):
                return before, False
            self._count()
            taken = self.resident[pid] + self.other[pid]
            return taken, not self._fits(self.resident, pid, 0) and (taken > self.client_limit or taken > before)

    def check(self, pid: int, more: int, what: str) -> None:
        """May a process take so many bytes more? Where even untouched pages fit, nothing needs to be counted."""
        if not more and self._fitting.get(pid) == self.grown:
            return
        with self.lock:
            self._settle()
            if self._fits(self.size, pid, more):
                self._fitting[pid] = self.grown
                return
            if time.monotonic() < self.counted + STALE and self._fits(self.resident + self.since, pid, more):
                self.since[pid] += more
                return
            self._count()
            if self._fits(self.resident, pid, more):
                self.since[pid] += more
                return
            taken = self.resident + self.other
            owner, used = ("the server", taken.total()) if taken.total() + more > self.limit else (f"process {pid}", taken[pid])
            first, self.logged = owner not in self.logged, self.logged | {owner}
        if first:
            self.log(f"{owner} may not take more memory ({used >> 20} MiB taken; the server's limit is {self.limit >> 20} MiB, "
                     f"a process's {self.client_limit >> 20} MiB: --memory-limit)")  # fmt: skip
        raise Errno(errno.ENOMEM, f"{what}: {more:#x} bytes are more than the memory limit leaves")

    def _fits(self, pages: Counter[int], pid: int, more: int) -> bool:
        return (pages.total() + self.other.total() + more <= self.limit) and (pages[pid] + self.other[pid] + more <= self.client_limit)

    def _settle(self) -> None:
        while self.gone:
            counter, pid, size = self.gone.popleft()
            counter[pid] -= size
            if not counter[pid]:
                del counter[pid]

    def _count(self) -> None:
        self.resident, self.since, self.counted = Counter(), Counter(), time.monotonic()
        for buffer, pid in list(self.buffers.items()):
            self.resident[pid] += buffer.capacity if buffer in self.exported else buffer.resident()

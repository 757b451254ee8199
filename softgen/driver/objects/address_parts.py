"""Parts of 4 GiB of the host's addresses: each that a program's address spaces have buffers in takes one, and there are only so many
(memory/arena.py).

A process that has its share is refused with ENOSPC when it submits work, as by a kernel whose address space is full; others go on.
"""

from __future__ import annotations

import errno
import threading
from collections import Counter, deque
from collections.abc import Callable

from softgen.driver.errors import Errno
from softgen.memory.arena import ARENA_SIZE, MOST_ARENAS

RESERVE = 64  # parts that no program gets: the simulator has address spaces of its own
MOST = MOST_ARENAS - RESERVE
SHARE = MOST // 4  # of a process


class AddressParts:
    """The parts that processes have."""

    def __init__(self, log: Callable[[str], None] = lambda text: None) -> None:
        self.log = log
        self.taken: Counter[int] = Counter()  # by process
        self.lock = threading.Lock()
        self.gone: deque[tuple[int, int]] = deque()  # from finalizers, which may run anywhere

    def take(self, pid: int, count: int) -> None:
        """So many more for a process; Errno(ENOSPC) where it has its share, or there are no more."""
        with self.lock:
            while self.gone:
                owner, less = self.gone.popleft()
                self.taken[owner] -= less
            had = self.taken[pid]
            if had + count <= SHARE and self.taken.total() + count <= MOST:
                self.taken[pid] += count
                return
        self.log(f"process {pid} has buffers in {had} parts of 4 GiB of its address spaces, and there are no more for it")
        raise Errno(errno.ENOSPC, f"buffers in {had + count} parts of 4 GiB; {SHARE} are a process's share")

    def give(self, pid: int, count: int) -> None:
        self.gone.append((pid, count))


def parts(start: int, end: int) -> range:
    """The parts that a range of addresses lies in."""
    return range(start // ARENA_SIZE, (end - 1) // ARENA_SIZE + 1)

"""Spare descriptors: a process that is out of them can still refuse a connection, keep a failing submission and clean up."""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SPARE = 16
LEFT_FOR_SERVER = 64  # of the descriptors, or a quarter of them; an import has a file or two open at a time, a submission too
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def few_left() -> bool:
    """Whether this process has so few descriptors left that they are for its own files alone. The kernel gives the lowest free number."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    os.close(lowest)
    return lowest >= limit - min(LEFT_FOR_SERVER, limit // 4)


def leave_some() -> None:
    """Called before a program gets something that has a descriptor here: OSError(EMFILE) where few are left. Without any, work of all
    other programs would fail as soon as it needs a module or a file."""
    if few_left():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == hard:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Reserve:
    """Reserved descriptors: held open so that some are left when all others are in use."""

    def __init__(self, count: int = SPARE) -> None:
        self.count, self.lock = count, threading.Lock()
        self.spare: list[int] = []
        self.refill()

    def refill(self) -> bool:
        """Take descriptors until all spare ones are there again; False: not even one could be had."""
        with self.lock:
            try:
                while len(self.spare) < self.count:
                    self.spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                pass
            return bool(self.spare)

    def close(self) -> None:
        with self.lock:
            free, self.spare = self.spare, []
        for descriptor in free:
            os.close(descriptor)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Free the spare descriptors for what is done inside."""
        self.close()
        try:
            yield
        finally:
            self.refill()

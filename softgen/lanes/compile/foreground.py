"""The foreground: host threads on which a program's work waits for Python code. Translations in the background give way to them.

Two threads that want Python's lock change over again and again, and each change takes longer than what most code between two has to do: a
dispatch of half a millisecond took six beside a translation (16 processors).
"""

from __future__ import annotations

import os
import threading
import time

STEP = 0.0002  # seconds between two looks
PATIENCE = 0.02  # seconds that are waited at a time,
SHARE = 0.005  # and then not waited: a program that always has work must not keep its kernels from being translated

_threads = set[int]()


class _Background:
    until = 0.0  # when it has to give way again


def enter() -> None:
    """The calling thread is in the foreground from now on."""
    _threads.add(threading.get_ident())


def leave() -> None:
    """The calling thread is not, or no longer: it is done, or in compiled code."""
    _threads.discard(threading.get_ident())


def yield_to_foreground() -> None:
    """Wait while there is a foreground, but not for long. A thread that is in it waits for nobody."""
    if not _threads or threading.get_ident() in _threads or time.monotonic() < _Background.until:
        return
    for _ in range(int(PATIENCE / STEP)):
        time.sleep(STEP)
        if not _threads:
            return
    _Background.until = time.monotonic() + SHARE


os.register_at_fork(after_in_child=_threads.clear)  # threads do not survive it

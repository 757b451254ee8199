"""Parts of a picture that host threads decode side by side.

In:  an entry of the C code and a structure for each part. Each part is a call after another under a guard of its own, until nothing of it
     is left. What comes out does not depend on the number of parts.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Sequence

from softgen.command import CommandStreamer, VideoWork
from softgen.errors import SoftgenError
from softgen.eu import native


class PartRun:
    """Calls of an entry for parts of a picture: the first on this host thread, which polls the time limit, the others on threads of
    their own."""

    def __init__(self, function: ctypes._NamedFuncPointer, parts: Sequence[ctypes.Structure]) -> None:
        self._calls, self._parts = [native.GuardedCall(function) for _ in parts], parts
        self._faulted, self._stopped = [False] * len(parts), False  # stopped: by an error of this host thread

    def run(self, cs: CommandStreamer) -> None:
        """Raises GpuFault for the first part that has one."""
        began, threads = time.perf_counter(), list[threading.Thread]()
        try:
            for number in range(1, len(self._parts)):
                thread = threading.Thread(target=self._work, args=(number,), daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads: their parts come last
                    break
                threads.append(thread)
            for number in (0, *range(len(threads) + 1, len(self._parts))):
                self._work(number, cs)
        except BaseException:
            self._stopped = True
            raise
        finally:
            for thread in threads:
                thread.join()
            cs.counters.video += VideoWork(seconds=time.perf_counter() - began)
            cs.memory_changed()
        for call, faulted in zip(self._calls, self._faulted, strict=True):
            if faulted:
                raise call.fault(cs.space, str)

    def _work(self, number: int, cs: CommandStreamer | None = None) -> None:
        while left := self._calls[number](self._parts[number]):
            if self._stopped:
                return
            if cs is not None and cs.timed_out():
                raise SoftgenError(f"time is up: {left} rows of macroblocks left")
        self._faulted[number] = left is None

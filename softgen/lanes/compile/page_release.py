"""Resident pages of a loaded library: those that were only read from its file are given back; the next access maps them again.

Loading LLVM touches 37 MB of its file, and compiling touches most of its code. Between two compilations none of that is needed.
"""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path

MADV_DONTNEED = 4  # <sys/mman.h> of Linux
IDLE = 1.0  # seconds without a use after which pages are given back


class LibraryPages:
    """The pages of a library that is used now and then: given back when it has not been used for a while."""

    def __init__(self, library: str = "") -> None:
        self.library = library
        self._lock = threading.Lock()
        self._used, self._waiting = 0.0, False

    def used(self) -> None:
        """The library is used now."""
        self._used = time.monotonic()
        with self._lock:
            start, self._waiting = not self._waiting, True
        if start:
            self._wait(IDLE)

    def _wait(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self._look)
        timer.daemon = True
        timer.start()

    def _look(self) -> None:
        left = self._used + IDLE - time.monotonic()
        if left > 0:
            self._wait(left)
            return
        with self._lock:
            self._waiting = False
        self.release()

    def release(self) -> None:
        release(self.library)
        trim_heap()


def trim_heap() -> None:
    """Give back memory that was allocated and freed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only the GNU C library has it
    if trim is not None:
        trim(0)


def release(library: str) -> int:
    """Give back the pages of a library that are as they are in its file; the bytes of address space they were mapped in.

    Its code, and what comes before it in the file: tables of symbols and relocations, constants. Nothing writes there, so nothing is lost.
    What follows the code may hold relocated addresses, which are in no file.
    """
    ranges, released = _unwritten(library), 0
    if ranges:
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        released = sum(end - start for start, end in ranges if madvise(start, end - start, MADV_DONTNEED) == 0)
    return released


def _unwritten(library: str) -> list[tuple[int, int]]:
    """Address ranges of a library's mappings up to the end of its code; none where there is no /proc."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found, read_only = list[tuple[int, int]](), list[tuple[int, int]]()
    for line in lines:
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or fields[5] != library:
            continue
        start, end = (int(address, 16) for address in fields[0].split("-"))
        if fields[1] == "r--p":
            read_only.append((start, end))
        elif fields[1] == "r-xp":
            found += [*read_only, (start, end)]
            read_only.clear()
    return found

"""Tiled buffers through the aperture (GEM_MMAP_GTT): on hardware a fence register shows their rows one after another.

Here the program maps a second memory that holds the rows in order. What one side changed goes over to the other whenever the program asks
about the buffer, before work that uses it starts, and before the fence of that work is done. Only bytes that changed are written, so that
both sides may be at work in different places; where both changed a byte, the program's counts. A row of tiles is the same range of bytes in
both memories; where neither has a page in it, it takes no memory and no time.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from softgen.driver.objects.budget import Budget
from softgen.driver.objects.fence import Fence, Signals
from softgen.driver.uapi import i915_drm as i915
from softgen.memory.store import MemfdBuffer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

BAND = 1 << 20  # bytes that are compared at a time
TILINGS = {i915.I915_TILING_X: "x_major", i915.I915_TILING_Y: "y_major"}


class LinearView:
    """A linear view of a tiled buffer: a second memory with its rows in order, and what both held when they were last the same."""

    def __init__(self, tiled: MemfdBuffer, size: int, budget: Budget, pid: int) -> None:
        """`pid`: the process for which its memory counts."""
        budget.check(pid, 3 * size - tiled.resident(), "a linear view")  # every page of all three may be touched
        budget.take(pid, 2 * size, "a linear view")
        weakref.finalize(self, budget.give, pid, 2 * size).atexit = False
        self.tiled, self.size = tiled, size
        self.buffer = MemfdBuffer(size, "aperture")
        self.lock = threading.Lock()
        self.begun = 0  # calls of sync() that began to compare

    def arrange(self, tiling: int, stride: int) -> None:
        """Show the buffer in a tiling."""
        import numpy as np

        with self.lock:
            self.rows = in_rows(self.tiled.array[: self.size], tiling, stride)
            self.shown = self.buffer.array[: self.rows.size].reshape(self.rows.shape)
            self.before = np.zeros(self.rows.shape, np.uint8)  # pages that are not written take no memory
            self.unit = self.rows.size // max(len(self.rows), 1) if self.rows.ndim > 1 else BAND  # bytes of a row of tiles
            self.used: set[int] = set()  # rows of tiles that were not empty
            for band in self._bands():
                self.shown[band] = self.rows[band]
                self.before[band] = self.shown[band]

    def sync(self) -> None:
        """Carry over what either side changed, band after band: what is compared takes memory too.

        A thread that waited while another began after it need not compare again.
        """
        begun = self.begun
        with self.lock:
            if self.begun != begun:
                return
            self.begun += 1
            for band in self._bands():
                merge(self.rows[band], self.shown[band], self.before[band])

    def _bands(self) -> Iterator[slice]:
        """Rows of tiles in which there are pages, as ranges of at most BAND bytes."""
        unit = self.unit
        for buffer in (self.tiled, self.buffer):
            self.used.update(populated(buffer.fd, self.rows.size, unit))
        rows, scale = sorted(self.used), 1 if self.rows.ndim > 1 else unit
        most = max(BAND // unit, 1) if unit else 1
        start = 0
        for end in range(1, len(rows) + 1):
            if end == len(rows) or end - start == most or rows[end] != rows[end - 1] + 1:
                yield slice(rows[start] * scale, (rows[end - 1] + 1) * scale)
                start = end


def populated(fd: int, size: int, unit: int) -> Iterator[int]:
    """The units of a memfd's first bytes that have pages; others read as zero, and reading them would allocate them."""
    at = 0
    while at < size:
        try:
            first = os.lseek(fd, at, os.SEEK_DATA)
            end = min(os.lseek(fd, first, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no more data
                return
            raise
        yield from range(max(first, at) // unit, -(-end // unit))
        at = max(-(-end // unit) * unit, at + unit)


def merge(rows: Bytes, shown: Bytes, before: Bytes) -> None:
    """Bring two arrays to the same contents: each has the bytes in which it differs from `before`, the program's first."""
    import numpy as np

    if same(shown, before) and same(rows, before):
        return
    ours = shown != before
    np.copyto(rows, shown, where=ours)
    np.copyto(shown, rows, where=(rows != before) & ~ours)
    before[...] = shown


@cache
def _memcmp() -> Any:
    found = ctypes.CDLL(None).memcmp
    found.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    return found


def same(left: Bytes, right: Bytes) -> bool:
    """Whether two arrays are equal. Most often nothing has changed: memory in one piece is compared without a copy, rows of tiles eight
    bytes at a time where they are that long."""
    if left.flags.c_contiguous and right.flags.c_contiguous:
        return not _memcmp()(left.ctypes.data, right.ctypes.data, left.nbytes)
    import numpy as np

    wide = np.uint64 if left.shape[-1] % 8 == 0 else np.uint8
    return bool((left.view(wide) == right.view(wide)).all())


def in_rows(memory: Bytes, tiling: int, stride: int) -> Bytes:
    """A buffer's memory as an array whose order is that of its rows; rows that fill no whole tile are left out."""
    from softgen.surface.tiling import orders

    if tiling not in TILINGS:
        return memory
    order = orders()[TILINGS[tiling]]
    across = stride >> order.count("X")  # tiles side by side
    down = memory.size // (across << len(order))
    runs = [(axis, 1 << len(list(bits))) for axis, bits in groupby(order)]
    tiles = memory[: down * across << len(order)].reshape(down, across, *(size for _, size in runs))
    axes: dict[str, list[int]] = {axis: [2 + at for at, run in enumerate(runs) if run[0] == axis] for axis in "XY"}
    return tiles.transpose([0, *axes["Y"], 1, *axes["X"]])


class ShownFence(Fence):
    """A fence that synchronises linear views before it is done."""

    def __init__(self, signals: Signals, views: list[LinearView]) -> None:
        super().__init__(signals)
        self.views = views

    def signal(self, error: int = 0) -> None:
        for view in self.views:
            view.sync()
        super().signal(error)


def fence(signals: Signals, views: list[LinearView]) -> Fence:
    """The fence of a submission that uses the buffers with these linear views, which are synchronised for it first."""
    for view in views:
        view.sync()
    return ShownFence(signals, views) if views else Fence(signals)

"""Tiled buffers through the aperture (GEM_MMAP_GTT): on hardware a fence register shows their rows one after another.

Here the program maps a second memory that holds the rows in order. What one side changed goes over to the other whenever the program asks
about the buffer, before work that uses it starts, and before the fence of that work is done. Only bytes that changed are written, so that
both sides may be at work in different places; where both changed a byte, the program's counts.
"""

from __future__ import annotations

import threading
from itertools import groupby
from typing import TYPE_CHECKING

from softgen.driver.fence import Fence, Signals
from softgen.memory.store import Buffer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from softgen.driver.gem import GemObject

TILINGS = {1: "x_major", 2: "y_major"}  # the kernel's numbers


class View:
    """The rows of one buffer, in order."""

    def __init__(self, bo: GemObject) -> None:
        self.bo = bo
        self.buffer = Buffer(bo.size, "aperture")
        self.lock = threading.Lock()
        self.arrange()

    def arrange(self) -> None:
        """Show the buffer as its tiling is now."""
        with self.lock:
            self.rows = in_rows(self.bo)
            self.shown = self.buffer.array[: self.rows.size].reshape(self.rows.shape)
            self.shown[...] = self.rows
            self.before = self.shown.copy()

    def sync(self) -> None:
        import numpy as np

        with self.lock:
            ours = self.shown != self.before
            if ours.any():
                np.copyto(self.rows, self.shown, where=ours)
            theirs = (self.rows != self.before) & ~ours
            if theirs.any():
                np.copyto(self.shown, self.rows, where=theirs)
            if ours.any() or theirs.any():
                self.before = self.shown.copy()


def in_rows(bo: GemObject) -> npt.NDArray[np.uint8]:
    """A buffer's memory as an array whose order is that of its rows; rows that fill no whole tile are left out."""
    from softgen.surface.tiling import orders

    memory: npt.NDArray[np.uint8] = bo.pieces[0].buffer.array[: bo.size]
    if bo.tiling not in TILINGS:
        return memory
    order = orders()[TILINGS[bo.tiling]]
    across = bo.stride >> order.count("X")  # tiles side by side
    down = bo.size // (across << len(order))
    runs = [(which, 1 << len(list(bits))) for which, bits in groupby(order)]
    tiles = memory[: down * across << len(order)].reshape(down, across, *(size for _, size in runs))
    axes: dict[str, list[int]] = {which: [2 + at for at, run in enumerate(runs) if run[0] == which] for which in "XY"}
    return tiles.transpose([0, *axes["Y"], 1, *axes["X"]])


class ShownFence(Fence):
    """Is done when the program can see through the aperture what the work wrote."""

    def __init__(self, signals: Signals, views: list[View]) -> None:
        super().__init__(signals)
        self.views = views

    def signal(self, error: int = 0) -> None:
        for view in self.views:
            view.sync()
        super().signal(error)


def fence(signals: Signals, bos: list[GemObject]) -> Fence:
    """The fence of work that uses these buffers; what the program wrote through the aperture is there before the work begins."""
    views = [bo.view for bo in bos if bo.view]
    for view in views:
        view.sync()
    return ShownFence(signals, views) if views else Fence(signals)

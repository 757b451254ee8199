"""A target whose accesses are reported, lane by lane, before they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.shared_functions.dataport.target import AccessTarget, Bytes, LocalMemory, Mask, Offsets


class MemoryAccess(NamedTuple):
    """One access of a message: the lanes that take part, and where. `addresses` are of graphics memory, or of local memory from 0 on."""

    sender: object  # the thread
    kind: str  # read, write or atomic
    local: bool
    addresses: npt.NDArray[np.uint64]  # of each lane in `lanes`
    lanes: npt.NDArray[np.intp]
    outside: npt.NDArray[np.intp]  # lanes beyond the end of the surface, which read zeros and write nothing
    beyond: npt.NDArray[np.uint64]  # their offsets from the start of the surface
    size: int | None  # of the surface
    width: int  # bytes of a lane
    data: npt.NDArray[np.uint8] | None  # that is written, a row for each of `lanes`


# Called with each access. LOWEST_WINS as a result: of lanes that store to the same byte, the lowest one wins and not the highest.
AccessWatch = Callable[[MemoryAccess], object]
LOWEST_WINS = "lowest wins"


class WatchedTarget(AccessTarget):
    """Another target, with a function that is called with each of its accesses."""

    def __init__(self, target: AccessTarget, watch: AccessWatch, sender: object) -> None:
        self.target, self.watch, self.sender = target, watch, sender
        self.size, self.name = target.size, target.name
        self._atomic = False  # loads and stores are parts of an atomic operation, which has been reported

    def load(self, offsets: Offsets, width: int, mask: Mask) -> Bytes:
        if not self._atomic:
            self._report("read", offsets, width, mask, None)
        return self.target.load(offsets, width, mask)

    def store(self, offsets: Offsets, data: Bytes, mask: Mask) -> None:
        if not self._atomic and self._report("write", offsets, data.shape[1], mask, data) is LOWEST_WINS:
            offsets, data, mask = offsets[::-1], data[::-1], mask[::-1]
        self.target.store(offsets, data, mask)

    def places(self, offsets: Offsets, mask: Mask, access: str) -> list[tuple[int, int]]:
        self._report("atomic", offsets, 4, mask, None)
        self._atomic = True
        return self.target.places(offsets, mask, access)

    def inside(self, offsets: Offsets, width: int) -> Mask:
        return self.target.inside(offsets, width)

    def _report(self, kind: str, offsets: Offsets, width: int, mask: Mask, data: Bytes | None) -> object:
        inside = self.target.inside(offsets, width)
        lanes, outside = np.flatnonzero(mask & inside), np.flatnonzero(mask & ~inside)
        addresses = self.target.addresses(offsets[lanes], lanes, kind)
        return self.watch(MemoryAccess(self.sender, kind, isinstance(self.target, LocalMemory), addresses, lanes, outside, offsets[outside],
                                       self.size, width, None if data is None else data[lanes]))  # fmt: skip

    def gather(self, offsets: Offsets, width: int, lanes: npt.NDArray[np.intp]) -> Bytes:
        return self.target.gather(offsets, width, lanes)

    def scatter(self, offsets: Offsets, data: Bytes, lanes: npt.NDArray[np.intp]) -> None:
        self.target.scatter(offsets, data, lanes)

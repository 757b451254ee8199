"""Access targets: memory of the interpreter's messages.

A target loads and stores a few bytes for each lane. Outside its size, reads give zero and writes are dropped (KBL 16401, 2479-2486).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgen.errors import GpuFault
from softgen.memory.space import Space

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

REACH = 1 << 16  # bytes between the lowest and highest lane that are read in one piece
CANONICAL_BITS = 48


class AccessTarget(ABC):
    """Memory of some kind; `size` bytes of it, or no end (None)."""

    size: int | None = None
    name: str = ""

    def load(self, offsets: Offsets, width: int, mask: Mask) -> Bytes:
        """`width` bytes for each lane; zero for lanes that are off or out of bounds."""
        found = np.zeros((len(offsets), width), np.uint8)
        lanes = np.flatnonzero(mask & self.inside(offsets, width))
        if len(lanes):
            found[lanes] = self.gather(offsets[lanes], width, lanes)
        return found

    def store(self, offsets: Offsets, data: Bytes, mask: Mask) -> None:
        """A row of `data` for each lane; where lanes meet, the highest wins."""
        lanes = np.flatnonzero(mask & self.inside(offsets, data.shape[1]))
        if len(lanes):
            self.scatter(offsets[lanes], data[lanes], lanes)

    def inside(self, offsets: Offsets, width: int) -> Mask:
        if self.size is None:
            return np.ones(len(offsets), np.bool_)
        return offsets <= np.uint64(self.size - width) if width <= self.size else np.zeros(len(offsets), np.bool_)

    def places(self, offsets: Offsets, mask: Mask, access: str) -> list[tuple[int, int]]:
        """Lane and address of the lanes in a mask."""
        lanes = np.flatnonzero(mask)
        return list(zip(lanes.tolist(), self.addresses(offsets[lanes], lanes, access).tolist(), strict=True))

    def addresses(self, offsets: Offsets, lanes: npt.NDArray[np.intp], access: str) -> Offsets:
        return offsets

    @abstractmethod
    def gather(self, offsets: Offsets, width: int, lanes: npt.NDArray[np.intp]) -> Bytes: ...

    @abstractmethod
    def scatter(self, offsets: Offsets, data: Bytes, lanes: npt.NDArray[np.intp]) -> None: ...


class Nothing(AccessTarget):
    """A null surface: reads zero, takes writes and keeps none (KBL 18933-18941)."""

    size = 0

    def gather(self, offsets: Offsets, width: int, lanes: npt.NDArray[np.intp]) -> Bytes:
        return np.zeros((len(offsets), width), np.uint8)

    def scatter(self, offsets: Offsets, data: Bytes, lanes: npt.NDArray[np.intp]) -> None:
        pass


# Called with each access of a message on the interpreter: "read" or "write", addresses, bytes of a lane, lanes.
observers: list[Callable[[str, Offsets, int, npt.NDArray[np.intp]], None]] = []


class GraphicsMemory(AccessTarget):
    """Graphics memory from `base` on."""

    def __init__(self, space: Space, base: int = 0, size: int | None = None) -> None:
        self.space, self.size, self.name = space, size, space.name
        self.wrap = np.uint64((1 << space.bits) - 1)
        self.base = np.uint64(base) & self.wrap

    def addresses(self, offsets: Offsets, lanes: npt.NDArray[np.intp], access: str) -> Offsets:
        return self.base + offsets & self.wrap

    def gather(self, offsets: Offsets, width: int, lanes: npt.NDArray[np.intp]) -> Bytes:
        at = self.addresses(offsets, lanes, "read")
        for observe in observers:
            observe("read", at, width, lanes)
        low, high = int(at.min()), int(at.max()) + width
        if high - low <= REACH and self.space.extent(low, high - low) == high - low:
            held = np.frombuffer(self.space.read(low, high - low), np.uint8)
            rows: Bytes = held[(at - np.uint64(low)).astype(np.intp)[:, None] + np.arange(width)]
            return rows
        return np.array([np.frombuffer(self._lane(int(start), width, lane), np.uint8) for start, lane in zip(at, lanes, strict=True)])

    def _lane(self, address: int, width: int, lane: int) -> bytes:
        try:
            return self.space.read(address, width)
        except GpuFault as fault:
            raise with_lane(fault, lane) from None

    def scatter(self, offsets: Offsets, data: Bytes, lanes: npt.NDArray[np.intp]) -> None:
        at, width = self.addresses(offsets, lanes, "write"), data.shape[1]
        for observe in observers:
            observe("write", at, width, lanes)
        if np.all(at[1:] == at[:-1] + np.uint64(width)):  # contiguous lanes
            try:
                self.space.write(int(at[0]), data.tobytes())
                return
            except GpuFault:
                pass  # nothing was written; lane by lane it shows which one it is
        for address, row, lane in zip(at, data, lanes, strict=True):
            try:
                self.space.write(int(address), row.tobytes())
            except GpuFault as fault:
                raise with_lane(fault, lane) from None


class Addresses(GraphicsMemory):
    """64-bit addresses: all of a space, in canonical form (KBL 866-887)."""

    def addresses(self, offsets: Offsets, lanes: npt.NDArray[np.intp], access: str) -> Offsets:
        high = offsets.view(np.int64) >> np.int64(CANONICAL_BITS - 1)
        wrong = np.flatnonzero((high != 0) & (high != -1))
        if len(wrong):
            first = int(wrong[0])
            raise with_lane(GpuFault(int(offsets[first]), access, self.space.name, why="not a canonical address"), lanes[first])
        return offsets & self.wrap


class LocalMemory(AccessTarget):
    """Shared local memory of one thread group."""

    name = "local memory"

    def __init__(self, held: Bytes | int) -> None:
        """`held`: the bytes, or how many."""
        self.held: Bytes = np.zeros(held, np.uint8) if isinstance(held, int) else held
        self.size = len(self.held)

    def _at(self, offsets: Offsets, width: int) -> npt.NDArray[np.intp]:
        return offsets.astype(np.intp)[:, None] + np.arange(width)

    def gather(self, offsets: Offsets, width: int, lanes: npt.NDArray[np.intp]) -> Bytes:
        return self.held[self._at(offsets, width)]

    def scatter(self, offsets: Offsets, data: Bytes, lanes: npt.NDArray[np.intp]) -> None:
        self.held[self._at(offsets, data.shape[1])] = data


def with_lane(fault: GpuFault, lane: int | np.intp) -> GpuFault:
    return GpuFault(fault.address, fault.access, fault.space, fault.by, f"{fault.why} (lane {lane})")

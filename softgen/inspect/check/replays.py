"""Replays side by side: a capture in several worlds at the same time, their memory compared after each submission.

Every replay has memory of its own. Where a world's memory differs from the plain replay's, the difference is kept, and the world goes on
with the plain replay's memory, so that the next difference is a new one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.inspect.check.observed import ObservedDispatcher
from softgen.memory.space import Space
from softgen.threads.places import TIME_IS_UP
from softgen.threads.world import PLAIN, World
from softgen.trace.replay import events
from softgen.trace.work import Expectation, Work, WorkTrace

PIECE = 1 << 20
PATIENCE = 60.0  # seconds that a submission may take

Bytes = npt.NDArray[np.uint8]
Opener = Callable[[], WorkTrace]


@dataclass(frozen=True)
class WorldDifference:
    """What one world made of a submission otherwise than the plain replay."""

    work: Work
    world: World
    address: int  # the first
    bytes: int  # how many differ
    error: str = ""  # that it failed


class WorldReplay:
    """A replay in one world."""

    def __init__(self, trace: WorkTrace, world: World, engine: str, timed_out: Callable[[], bool]) -> None:
        self.world, self.seconds, self.began = world, 0.0, 0.0
        self.dispatcher, self._timed_out = ObservedDispatcher(engine, world), timed_out
        self.gpu = GpuDevice(trace.device, itertools.count(1).__next__, self.timed_out, dispatcher=self.dispatcher)
        self.events = events(trace)
        self.work: Work | None = None
        self.error: SoftgenError | None = None

    def timed_out(self) -> bool:
        return self._timed_out() or time.perf_counter() - self.began > PATIENCE

    def next(self) -> Work | Expectation | None:
        return next(self.events, None)

    def execute(self, work: Work) -> None:
        """Execute a submission; its error is kept."""
        self.work, self.error = work, None
        began = self.began = time.perf_counter()
        self.dispatcher.scratch.clear()
        try:
            self.gpu.execute(work)
        except SoftgenError as error:
            self.error = error
        self.seconds += time.perf_counter() - began


class Replays:
    """The plain replay and one in each world."""

    def __init__(self, opener: Opener, worlds: list[World], engine: str, timed_out: Callable[[], bool] = lambda: False) -> None:
        self.plain = WorldReplay(opener(), PLAIN, engine, timed_out)
        self.others = [WorldReplay(opener(), world, engine, timed_out) for world in worlds]
        self.timed_out = timed_out
        self.comparing = 0.0  # seconds

    def submissions(self) -> Iterator[tuple[Work, list[WorldDifference]]]:
        """Each submission after it has been executed in every world, with the differences."""
        while (event := self.plain.next()) is not None:
            theirs = [replay.next() for replay in self.others]
            if not isinstance(event, Work):
                continue
            self.plain.execute(event)
            if TIME_IS_UP in str(self.plain.error or ""):
                yield event, []
                break
            found = []
            for replay, work in zip(self.others, theirs, strict=True):
                assert isinstance(work, Work)
                replay.execute(work)
                began = time.perf_counter()
                if (difference := self._compare(event, replay)) is not None:
                    found.append(difference)
                self.comparing += time.perf_counter() - began
            yield event, found
            if self.timed_out():
                break

    def _compare(self, work: Work, replay: WorldReplay) -> WorldDifference | None:
        """The difference of a world, which then has the plain replay's memory. Where work fails, how far it got is nothing to compare."""
        assert replay.work is not None
        first, count = None, 0
        undefined = sorted(self.plain.dispatcher.scratch | replay.dispatcher.scratch)
        for at, mine, other in differing(work.space, replay.work.space):
            where = np.flatnonzero(mine != other)
            replay.work.space.write(at, mine.tobytes())
            where = where[_outside(where + at, undefined)]
            if len(where):
                first, count = at + int(where[0]) if first is None else first, count + len(where)
        if self.plain.error is not None:
            return None
        error = "" if replay.error is None else str(replay.error)
        return WorldDifference(work, replay.world, first or 0, count, error) if count or error else None


def _outside(addresses: npt.NDArray[np.intp], ranges: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Whether addresses are outside of all ranges."""
    found = np.ones(len(addresses), np.bool_)
    for start, size in ranges:
        found &= (addresses < start) | (addresses >= start + size)
    return found


def differing(mine: Space, other: Space) -> Iterator[tuple[int, Bytes, Bytes]]:
    """The pieces of two spaces with the same mappings that differ: address and bytes of both."""
    for region in mine.regions():
        for at in range(region.start, region.start + region.size, PIECE):
            size = min(PIECE, region.start + region.size - at)
            try:
                here, there = (np.frombuffer(space.view(at, size) or space.read(at, size), np.uint8) for space in (mine, other))
            except SoftgenError:
                continue  # one that was unmapped by the work
            if not np.array_equal(here, there):
                yield at, here, there.copy()

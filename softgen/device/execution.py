"""An execution: work on one of a device's engines, that can be run, parked and resumed.

    execution = device.begin(work)
    while not execution.run():         # False: a command waits for a semaphore
        ...                            # others may run; then run() tries that command again

Executions of different engines may run on different host threads. Of one engine at most one may run at a time; one that is parked, or
whose `timed_out` hook lets others run, goes on with its own registers and state.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import NamedTuple

from softgen.command import Counters
from softgen.errors import SoftgenError
from softgen.streamer.execute import Streamer

NO_COUNTS = Counters()
FEW = 64  # followed executions


class FollowedCounters(NamedTuple):
    """Counters that are added to a total when somebody asks for it."""

    owner: weakref.ref[EngineExecution]
    counters: Counters
    reported: Counters


class CounterTotal:
    """The work of all executions of a device. Most report when they return; those that are restarted over and over are followed: only who
    asks for the total adds them up."""

    def __init__(self) -> None:
        self._counters, self._lock = Counters(), threading.Lock()
        self._followed: list[FollowedCounters] = []
        self._settle_at = FEW  # followed executions, of which some may be gone

    def report(self, counters: Counters, before: Counters) -> Counters:
        """Adds what was done since a report; this one."""
        now = replace(counters)
        with self._lock:
            self._counters.add(now.since(before))
        return now

    def follow(self, owner: EngineExecution, counters: Counters, reported: Counters) -> None:
        """Counts what an execution does from now on."""
        with self._lock:
            self._followed.append(FollowedCounters(weakref.ref(owner), counters, reported))
            if len(self._followed) >= self._settle_at:
                self._settle()
                self._settle_at = max(2 * len(self._followed), FEW)

    def __call__(self) -> Counters:
        """The total, always the same object."""
        with self._lock:  # also where none is followed: another thread may be adding them up
            self._settle()
        return self._counters

    def _settle(self) -> None:
        followed, self._followed = self._followed, []
        for owner, counters, reported in followed:
            alive, now = owner() is not None, replace(counters)  # in this order: nothing is counted after its owner is gone
            self._counters.add(now.since(reported))
            if alive:
                self._followed.append(FollowedCounters(owner, counters, now))


class EngineExecution:
    """Work in progress. `counters` counts its commands, threads and instructions; also those of batches that follow it in the same
    execution (GpuDevice.begin_again)."""

    def __init__(self, streamer: Streamer, counters: Counters, total: CounterTotal) -> None:
        self.streamer, self.counters, self._total = streamer, counters, total
        self._reported = NO_COUNTS  # of what was done by then
        self.restarted = False

    def run(self) -> bool:
        """Run to the end (True) or to a command that has to wait (False). Raises GpuFault, Unsupported or DecodeError with the place."""
        if self.restarted:
            return self.streamer.run()  # who asks for the total adds it up
        try:
            return self.streamer.run()
        finally:
            self._reported = self._total.report(self.counters, self._reported)

    def restart(self, batch: int) -> None:
        """Another batch begins, after the end of the one before."""
        if not self.restarted:
            self.restarted = True
            self._total.follow(self, self.counters, self._reported)
        self.streamer.start_again(batch)

    def run_to_end(self) -> None:
        """Run; a command that would have to wait is an error."""
        if not self.run():
            raise self.stuck()

    def stuck(self) -> SoftgenError:
        """The error of a wait that nothing will end."""
        return self.streamer.stuck()

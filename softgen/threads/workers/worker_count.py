"""How many host threads a dispatch gets: one, or all that it may have; and in how many pieces they take a group.

Host threads that contend for atomics, or for the memory, take longer than one that need not lock. That is measured: the
way that seems slower is tried again, ever more rarely; without atomics one worker is not tried before long. Short
dispatches are run in one way each; a long one is run in stages, and goes on as the faster stage did.
"""

from __future__ import annotations

import math
from collections.abc import Callable

EXPLORED = 0.1  # seconds at most of a dispatch that is run in the other way to see how long it takes
PATIENCE, MOST_PATIENCE = 1, 128  # times as long was spent in the better way before: at first, and at most, where that is confirmed
CALM = 32  # at first, without atomics
STAGE = 0.002  # seconds of a stage with one worker,
WORTH = 10  # which is for dispatches with at least so many times that left


def most_pieces(groups: int, threads: int, workers: int) -> int:
    """The pieces in which workers may take each group of so many independent threads. There are no more pieces than workers, so that all
    are under way at the same time, as whole groups would be: a thread may wait until any other has written something."""
    return max(min(workers // groups, threads), 1)


class WorkerCountTuner:
    """Whether dispatches of a kind are faster with one worker than with several."""

    def __init__(self, contends: Callable[[], bool]) -> None:
        """`contends`: whether workers may contend for atomics; asked after the first dispatch."""
        self.contends = contends
        self.times: dict[bool, float] = {}  # seconds of a dispatch, with one worker or not
        self.spent = 0.0  # seconds in the better way since the other one was tried
        self.patience = self._first = PATIENCE

    def alone(self, seconds: float) -> bool:
        """The choice for the next dispatch, of so many seconds of work: what one worker takes, as far as is known."""
        better = self.better_alone
        other = min(self.times.get(not better, seconds), seconds)  # one that took longer was disturbed, or contended
        if other * self.patience > self.spent or other > EXPLORED:
            return better
        self.spent, self.patience = 0.0, min(2 * self.patience, MOST_PATIENCE)
        return not better

    @property
    def better_alone(self) -> bool:
        return self.times.get(True, math.inf) < self.times.get(False, math.inf)

    def ran(self, alone: bool, seconds: float) -> None:
        """What disturbs only adds."""
        if not self.times and not self.contends():
            self.patience = self._first = CALM
        before = self.better_alone
        self.times[alone] = min(seconds, 1.2 * self.times.get(alone, math.inf))
        if alone == before:
            self.spent += seconds
        if self.better_alone != before:
            self.patience = self._first


class Stages:
    """The stages of one dispatch, of so many groups: what each tells about its way, and which way is next. `alone`: the way it begins."""

    def __init__(self, tuner: WorkerCountTuner, groups: int, alone: bool) -> None:
        self.tuner, self.groups, self.alone = tuner, groups, alone
        self.count = 0
        self._tried = False  # one worker, in this dispatch
        self._done, self._spent = 0, 0.0  # groups and seconds before this stage

    def begin(self, done: int, spent: float) -> None:
        """Begins a stage after so many groups and seconds."""
        self._done, self._spent = done, spent

    def end(self, workers: int, done: int, spent: float) -> bool:
        """Ends a stage of so many workers, after so many groups and seconds of the dispatch; whether one worker goes on. Where workers have
        not done a group each nothing is learnt."""
        groups, pace = done - self._done, (spent - self._spent) / max(done - self._done, 1)
        if groups < workers:
            self.alone &= not self._tried  # a trial with groups that take longer than it
            return self.alone
        self.begin(done, spent)
        self.count += 1
        self.tuner.ran(workers == 1, pace * self.groups)
        self.alone = self._next(pace * (self.groups - done))
        return self.alone

    def _next(self, left: float) -> bool:
        """The way of the next stage, with so many seconds left as it was."""
        if len(self.tuner.times) == 2:
            return self.tuner.better_alone
        trial = False in self.tuner.times and not self._tried and left > WORTH * STAGE
        self._tried |= trial
        return trial

"""The workers of a dispatch, with the bindings they use."""

from __future__ import annotations

from softgen.threads.bindings import BindingCache
from softgen.threads.workers.group_cache import GroupCache
from softgen.threads.workers.kept_loop import LoopCache
from softgen.threads.workers.worker import WorkerState


class WorkerSet:
    """The state of a dispatch's workers and the bindings they use, kept from one dispatch to the next."""

    def __init__(self, threads: int, strips: bool, fill: int = 0) -> None:
        self.threads, self.bindings, self.fill = threads, BindingCache(), fill
        self.loops = LoopCache(self.bindings, fill)
        self.groups = GroupCache(threads, self.bindings, strips, fill)
        self._states: list[WorkerState] = []

    def __getitem__(self, number: int) -> WorkerState:
        while len(self._states) <= number:
            self._states.append(WorkerState(self.fill))
        return self._states[number]

"""Python's garbage collector in the server: a full collection looks at what is new, not at every object of the process.

Most objects are pages, plans and code that live until the end, or that reference counts free: to look at all of them takes 60 ms and more,
for which a draw would wait. So what start-up and the first submissions leave is frozen, and what survives a full collection, too; full
collections are more frequent and short. Frozen objects that reference counts do not free wait until there are many of them: then one
collection looks at all.
"""

from __future__ import annotations

import gc

SETTLED = (1, 8, 64)  # submissions after which what is there will stay
FULL_AFTER = 2  # collections of the second generation: some 15,000 new objects
COUNTED_AFTER = 32  # full collections: counting frozen objects takes as long as a collection
MOST_FROZEN = 1 << 18  # objects more than after the last look at all


class Collector:
    """Counts submissions, and freezes what will stay."""

    def __init__(self) -> None:
        self.submissions = 0
        self._collections = 0  # full ones
        self._limit = 0  # frozen objects at which all are looked at
        self._all = False  # this collection looks at all

    def executed(self) -> None:
        """A submission has been executed."""
        self.submissions += 1
        if self.submissions in SETTLED:
            gc.freeze()
        if self.submissions == SETTLED[0]:
            self._limit = gc.get_freeze_count() + MOST_FROZEN
            gc.set_threshold(*gc.get_threshold()[:2], FULL_AFTER)
            gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Called before and after each collection."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._collections += 1
            self._all = self._collections % COUNTED_AFTER == 0 and gc.get_freeze_count() > self._limit
            if self._all:
                gc.unfreeze()
            return
        gc.freeze()
        if self._all:
            self._limit = gc.get_freeze_count() + MOST_FROZEN

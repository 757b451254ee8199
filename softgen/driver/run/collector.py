"""Python's garbage collector in the server: a full collection looks at what is new, not at every object of the process.

Most objects are pages, plans and code that live until the end, or that reference counts free: to look at all of them takes 60 ms and more,
for which a draw would wait. So what start-up and the first submissions leave is frozen, and what survives a full collection, too; full
collections are more frequent and short. Frozen objects that reference counts do not free wait until there are many of them, or until the
process has grown, because a few may hold much memory: then one collection looks at all, and the C library gives freed memory back.
"""

from __future__ import annotations

import gc
import os

from softgen.lanes.compile.page_release import trim_heap

SETTLED = (1, 8, 64)  # submissions after which what is there will stay
FULL_AFTER = 2  # collections of the second generation: some 15,000 new objects
COUNTED_AFTER = 32  # full collections: counting frozen objects takes as long as a collection
MOST_FROZEN = 1 << 18  # objects more than at the first count after the last look at all
MOST_GROWN = 256 << 20  # bytes of memory more than then
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of memory that the process occupies without what it shares with others (proc(5), statm); 0 where it has no descriptor left to
    find that out: a submission is not to fail for it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            _, pages, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(pages) - int(shared)) * PAGE


class Collector:
    """Counts submissions, and freezes what will stay."""

    def __init__(self) -> None:
        self.submissions = 0
        self._collections = 0  # full ones
        self._limit: int | None = None  # frozen objects at which all are looked at; None until they are counted
        self._most = 0  # bytes of memory at which they are
        self._all = False  # this collection looks at all

    def executed(self) -> None:
        """A submission has been executed."""
        self.submissions += 1
        if self.submissions in SETTLED:
            gc.freeze()
        if self.submissions == SETTLED[0]:
            self._look_again_later()
            gc.set_threshold(*gc.get_threshold()[:2], FULL_AFTER)
            gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Called before and after each collection."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._collections += 1
            self._all = self._collections % COUNTED_AFTER == 0 and self._too_many() or resident() > self._most
            if self._all:
                gc.unfreeze()
            return
        gc.freeze()
        if self._all:
            self._look_again_later()

    def _too_many(self) -> bool:
        """Whether there are many more frozen objects than when this was first asked after the last look: a short program is not to wait for
        the count."""
        count = gc.get_freeze_count()
        if self._limit is None:
            self._limit = count + MOST_FROZEN
        return count > self._limit

    def _look_again_later(self) -> None:
        if self._all:
            trim_heap()  # host threads have heaps of their own, of which each keeps what it had at most
        self._limit, self._most = None, resident() + MOST_GROWN

"""Python's garbage collector in the server: what start-up and the first submissions leave behind is not looked at again.

A full collection looks at every object of the process. Most of them are pages, plans and code that live until the end: with them it takes
about 60 ms, which a draw would wait for; without them about 10 ms.
"""

from __future__ import annotations

import gc

SETTLED = (1, 8, 64)  # submissions after which what is there will stay


class Collector:
    """Counts submissions, and tells the garbage collector what will stay."""

    def __init__(self) -> None:
        self.submissions = 0

    def executed(self) -> None:
        """A submission has been executed."""
        self.submissions += 1
        if self.submissions in SETTLED:
            gc.freeze()

"""Wait prediction: whether a program's thread waits for each submission before it goes on.

The answer to an EXECBUFFER2 usually comes before its work is done: the program prepares the next one meanwhile. A thread that waits at
once gains nothing by that: short work is done first, then the answer comes, and by then the result is there. Two switches between
processes and an ioctl are saved. Of a prepared batch the answer comes after its last command: what the server still does for itself
(fences, counters, address space) it does while the program goes on.
"""

from __future__ import annotations

from softgen.driver.uapi.uapi import NAMES

WAITING_NAMES = ("DRM_IOCTL_I915_GEM_WAIT", "DRM_IOCTL_I915_GEM_SET_DOMAIN", "DRM_IOCTL_SYNCOBJ_WAIT", "DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT")
WAITING = frozenset(number for number, name in NAMES.items() if name in WAITING_NAMES)
CERTAIN = 3  # submissions waited for one after another after which a wait is predicted
PROBED = 32  # submissions after which one is answered first again, to see whether it is waited for


class WaitPrediction:
    """What is known of one thread, from its ioctls in order."""

    def __init__(self) -> None:
        self.waits = 0  # submissions in a row that were answered first and waited for
        self.left = 0  # submissions until the next probe
        self._answered_first = self._waited = False

    def ioctl(self, number: int) -> None:
        """An ioctl that is no submission."""
        if number in WAITING:
            self._waited = True

    def work_first(self) -> bool:
        """A submission comes: whether its work should be done before the answer."""
        if self._answered_first:
            self.waits = self.waits + 1 if self._waited else 0
            self.left = PROBED if self.waits >= CERTAIN else 0
        self.left -= self.left > 0
        self._answered_first, self._waited = not self.left, False
        return not self._answered_first

    def queued(self) -> None:
        """The submission is answered first, for it cannot be done now."""
        self._answered_first = True

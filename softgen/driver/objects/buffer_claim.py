"""Claims on buffers: one submission at a time between what it writes to a buffer and the moment its use of the buffer is known.

Relocated buffers: of two submissions from different threads, the second must not write its addresses before the first one's work has read
its own. The kernel holds the locks of all buffers from their placement to the request's fence (eb_relocate_parse, eb_submit).

Copied USERPTR memory: buffers over the same memory of a program have copies of their own. A submission copies in, is made, and uses its
buffers until its fence is done, after the copy-back. If another one copied in meanwhile, it would miss what the first one writes, or
overwrite it in the copy before the copy-back. So a submission first waits until nobody uses a copy of that memory, and claims all of these.
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.run.protocol import Call

if TYPE_CHECKING:
    from softgen.driver.objects.node import GpuState

Range = tuple[int, int, int]  # process, start, end


def claim_copies(gpu: GpuState, call: Call, copied: Iterable[GemObject]) -> Callable[[], None]:
    """Claim the copies of USERPTR buffers, and others of the same memory; the result ends the claim.

    It comes before claim_relocated(): whoever has these copies may still wait, for the program's memory and for relocated buffers.
    """
    copies = sharing(gpu, copied)
    return BufferClaim(gpu, call, copies, lambda: all(bo.idle() for bo in copies)).release


def claim_relocated(gpu: GpuState, call: Call, relocated: Iterable[GemObject]) -> Callable[[], None]:
    """Claim buffers that are relocated, but for copies; the result ends the claim.

    They may be shared, so nothing that is done under this claim may wait for the program: others would wait for that program, too.
    """
    return BufferClaim(gpu, call, [bo for bo in relocated if not bo.copied]).release


class BufferClaim:
    """A submission's claim on buffers."""

    def __init__(self, gpu: GpuState, call: Call, bos: Iterable[GemObject], ready: Callable[[], bool] = lambda: True) -> None:
        """Waits until nobody claims them and they are `ready`. All are claimed at once, so no two claims wait for each other."""
        self.signals, self.bos, self.ready = gpu.signals, set(bos), ready
        if not self.signals.wait(self._claim, None, call.channel.gone):
            raise Errno(errno.EINTR, "the program has ended")

    def _claim(self) -> bool:
        """Called with the lock of all fences held."""
        if any(bo.claimed for bo in self.bos) or not self.ready():
            return False
        self._set(True)
        return True

    def _set(self, claimed: bool) -> None:
        for bo in self.bos:
            bo.claimed = claimed

    def release(self) -> None:
        """The submission uses its buffers from now on, or was refused."""
        with self.signals.lock:
            self._set(False)
        self.signals.notify()


def sharing(gpu: GpuState, bos: Iterable[GemObject]) -> list[GemObject]:
    """Buffers with copies of memory that these copy, themselves included."""
    joined = union((bo.copied.pid, bo.copied.address, bo.copied.end) for bo in bos if bo.copied)
    with gpu.lock:
        copies = list(gpu.copies)
    return [bo for bo in copies if bo.copied and overlaps(joined, (bo.copied.pid, bo.copied.address, bo.copied.end))]


def union(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in their order, those that overlap joined."""
    found: list[Range] = []
    for pid, start, end in sorted(ranges):
        if found and found[-1][0] == pid and start < found[-1][2]:
            found[-1] = pid, found[-1][1], max(found[-1][2], end)
        else:
            found.append((pid, start, end))
    return found


def overlaps(joined: list[Range], wanted: Range) -> bool:
    pid, start, end = wanted
    before = bisect_left(joined, (pid, end)) - 1  # the last one that starts before its end
    return before >= 0 and joined[before][0] == pid and joined[before][2] > start

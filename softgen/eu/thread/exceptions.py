"""Exceptions: how a thread comes into the system routine and back (IVB 2232-2528).

An exception sets its status bit in cr0.1, enabled or not. Enabled, it stores the application's ip in cr0.2, sets the master bit of cr0.0
and goes on at the system ip, which is the same for all threads and which no thread sees. The routine returns by clearing the master bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgen.errors import Unsupported
from softgen.eu.isa.control_register import mask
from softgen.eu.thread.state import Thread

MASTER, SUPPRESS = mask("master_exception"), mask("breakpoint_suppress")  # of cr0.0
APPLICATION = mask("application_ip")  # of cr0.2: ips have three zero bits


@dataclass(frozen=True)
class Kind:
    name: str
    field: str

    @property
    def status(self) -> int:
        """Its bit in cr0.1 that says it happened."""
        return mask(f"{self.field}_status")

    @property
    def enable(self) -> int:
        return mask(f"{self.field}_enable")


BREAKPOINT = Kind("breakpoint", "breakpoint")
EXTERNAL_HALT = Kind("external halt", "external_halt")
SOFTWARE = Kind("software exception", "software")
ILLEGAL = Kind("illegal opcode", "illegal_opcode")


def inside(thread: Thread) -> bool:
    return bool(thread.control & MASTER)


def enabled(thread: Thread, kind: Kind) -> bool:
    return bool(int(thread.dwords("cr")[1]) & kind.enable)


def happens(thread: Thread, kind: Kind, application: int) -> int | None:
    """Records an exception; where the thread goes on, or None where it is not enabled, or the routine itself is running."""
    control = thread.dwords("cr")
    control[1] |= kind.status
    if inside(thread) or not enabled(thread, kind):
        return None
    if thread.system_ip is None:
        raise Unsupported(f"{kind.name}: it is enabled, and there is no system routine")
    control[2] = application
    control[0] |= MASTER
    return thread.system_ip


def breaks(thread: Thread, ip: int) -> int | None:
    """Before an instruction with a breakpoint; one that is suppressed is passed, and the next one is not."""
    if inside(thread) or not enabled(thread, BREAKPOINT):
        return None
    control = thread.dwords("cr")
    if control[0] & SUPPRESS:
        control[0] &= ~np.uint32(SUPPRESS)
        return None
    return happens(thread, BREAKPOINT, ip)


def written(thread: Thread, before: npt.NDArray[np.uint32], behind: int) -> int | None:
    """After an instruction that wrote cr0: where the thread goes on if that was a return or an exception. Software cannot set the
    master bit; clearing it returns."""
    control = thread.dwords("cr")
    was, now = bool(before[0] & MASTER), bool(control[0] & MASTER)
    if was and not now:
        return int(control[2]) & APPLICATION
    if now and not was:
        control[0] &= ~np.uint32(MASTER)
    if control[1] & SOFTWARE.status and not before[1] & SOFTWARE.status and not was:
        return happens(thread, SOFTWARE, behind)
    return None

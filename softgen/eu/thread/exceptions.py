"""Exceptions: entry into the system routine and return from it (IVB 2232-2528).

An exception sets its status bit in cr0.1, enabled or not. If it is enabled, it stores the application's ip in cr0.2, sets the master bit of
cr0.0 and continues at the system ip, which is the same for all threads and not readable by them (IVB 2276-2290). The routine returns by
clearing the master bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgen.errors import Unsupported
from softgen.eu.isa.control_register import mask
from softgen.eu.thread.state import ThreadState

MASTER, SUPPRESS = mask("master_exception"), mask("breakpoint_suppress")  # of cr0.0
APPLICATION = mask("application_ip")  # of cr0.2; the low three bits of an ip are zero


@dataclass(frozen=True)
class ExceptionKind:
    """One cause of exceptions, with its bits in cr0.1."""

    name: str
    field: str

    @property
    def status(self) -> int:
        """The bit of cr0.1 that records the exception."""
        return mask(f"{self.field}_status")

    @property
    def enable(self) -> int:
        """The bit of cr0.1 that enables it."""
        return mask(f"{self.field}_enable")


BREAKPOINT = ExceptionKind("breakpoint", "breakpoint")
EXTERNAL_HALT = ExceptionKind("external halt", "external_halt")
SOFTWARE = ExceptionKind("software exception", "software")
ILLEGAL = ExceptionKind("illegal opcode", "illegal_opcode")
STACK_OVERFLOW = ExceptionKind("stack overflow", "stack_overflow")
LASTING = EXTERNAL_HALT, SOFTWARE  # raised as long as their status bits are set (IVB 2256-2263, 2427-2442)


def in_system_routine(thread: ThreadState) -> bool:
    return bool(thread.cr0 & MASTER)


def enabled(thread: ThreadState, kind: ExceptionKind) -> bool:
    return bool(int(thread.dwords("cr")[1]) & kind.enable)


def record_exception(thread: ThreadState, kind: ExceptionKind, application_ip: int) -> int | None:
    """Record an exception and enter the system routine: its address, or None where the exception is disabled or the routine is running."""
    control = thread.dwords("cr")
    control[1] |= kind.status
    if in_system_routine(thread) or not enabled(thread, kind):
        return None
    if thread.system_routine is None:
        raise Unsupported(f"{kind.name}: the exception is enabled, but no STATE_SIP has set a system routine")
    control[2] = application_ip
    control[0] |= MASTER
    return thread.system_routine


def check_breakpoint(thread: ThreadState, ip: int) -> int | None:
    """Take the breakpoint of the instruction at `ip`, if breakpoints are enabled; breakpoint suppress skips one and is cleared by it."""
    if in_system_routine(thread) or not enabled(thread, BREAKPOINT):
        return None
    control = thread.dwords("cr")
    if control[0] & SUPPRESS:
        control[0] &= ~np.uint32(SUPPRESS)
        return None
    return record_exception(thread, BREAKPOINT, ip)


def external_halt(thread: ThreadState) -> None:
    """Take the broadcast of an external halt (IVB 2427-2433): asynchronous, so the thread comes back to the instruction it is at."""
    routine = record_exception(thread, EXTERNAL_HALT, thread.ip)
    if routine is not None:
        thread.channel_ip = [routine if ip == thread.ip else ip for ip in thread.channel_ip]
        thread.ip = routine


def after_cr0_write(thread: ThreadState, before: npt.NDArray[np.uint32], next_ip: int) -> int | None:
    """The ip after an instruction that wrote cr0, if the write was a return from the system routine or raised an exception, else None.

    Software cannot set the master bit; clearing it returns. A routine that returns before all lasting exceptions are handled is entered
    again at once, for the next one (IVB 2256-2263).
    """
    control = thread.dwords("cr")
    was, now = bool(before[0] & MASTER), bool(control[0] & MASTER)
    if now and not was:
        control[0] &= ~np.uint32(MASTER)
    raised = int(control[1]) if was and not now else int(control[1]) & ~int(before[1])
    if was and now:
        return None
    back = int(control[2]) & APPLICATION if was else next_ip
    for kind in LASTING:
        if raised & kind.status and (routine := record_exception(thread, kind, back)) is not None:
            return routine
    return back if was else None

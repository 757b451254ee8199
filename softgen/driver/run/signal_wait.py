"""sigtimedwait of the C library: wait for one of several blocked signals, for a limited time.

That of Python's signal module returns a siginfo with arbitrary contents if the process was stopped meanwhile (Ctrl-Z) and continues after
the time is up (CPython 3.11).
"""

from __future__ import annotations

import ctypes
import errno
import time
from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)


class SignalSet(ctypes.Structure):
    """sigset_t: a bit for each signal, from signal 1 on."""

    _fields_ = [("bits", ctypes.c_ulong * (128 // ctypes.sizeof(ctypes.c_ulong)))]


class SignalInfo(ctypes.Structure):
    """siginfo_t as far as it is used here: which signal, and who sent it."""

    _fields_ = [("si_signo", ctypes.c_int), ("si_errno", ctypes.c_int), ("si_code", ctypes.c_int), ("rest", ctypes.c_char * 116)]
    si_signo: int
    si_code: int


class TimeSpec(ctypes.Structure):
    """timespec."""

    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def wait_for_signal(signals: Iterable[int], seconds: float) -> SignalInfo | None:
    """One of these signals, which are blocked, or None if none has come in time."""
    wanted, info, until = SignalSet(), SignalInfo(), time.monotonic() + seconds
    for number in signals:
        _libc.sigaddset(ctypes.byref(wanted), int(number))
    while True:
        left = max(until - time.monotonic(), 0.0)
        limit = TimeSpec(int(left), int(left % 1 * 1e9))
        if _libc.sigtimedwait(ctypes.byref(wanted), ctypes.byref(info), ctypes.byref(limit)) >= 0:
            return info
        if ctypes.get_errno() != errno.EINTR:
            return None

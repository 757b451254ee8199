"""Memory of another process, read and written from here where the kernel allows it, without a copy in between."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import threading
import weakref
from collections import deque

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = _libc.process_vm_writev.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = _libc.process_vm_writev.argtypes = (
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)  # fmt: skip
IOV_MAX = 1024  # ranges in a call
SMALL = 1 << 12  # bytes of a read without allocation
STEP = 1 << 28  # bytes in a call; the kernel does not take 2 GiB

Bytes = bytearray | memoryview


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Process:
    """A process, which is not mistaken for a later one that gets its number."""

    def __init__(self, pid: int) -> None:
        try:
            self._descriptor = os.pidfd_open(pid)
        except OSError:
            self._descriptor = -1  # a host that has no such descriptors: nobody knows when it ends
            return
        weakref.finalize(self, os.close, self._descriptor).atexit = False

    def ended(self) -> bool:
        if self._descriptor < 0:
            return False
        poll = select.poll()  # a new one: several threads may ask at once, and Python refuses that of one
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))


_processes: weakref.WeakValueDictionary[int, Process] = weakref.WeakValueDictionary()


def process(pid: int) -> Process:
    """The process that has a number now; the same object for as long as it lives and somebody keeps it."""
    found = _processes.get(pid)
    if found is None or found.ended():
        found = _processes[pid] = Process(pid)
    return found


def _address(data: Bytes) -> int:
    return ctypes.addressof((ctypes.c_ubyte * len(data)).from_buffer(data)) if len(data) else 0


class SmallReads:
    """Buffers and arguments of a read of a few bytes."""

    def __init__(self) -> None:
        self.data = ctypes.create_string_buffer(SMALL)
        self.view = memoryview(self.data).cast("B")
        self.here, self.there = _Iovec(ctypes.addressof(self.data)), _Iovec()
        self.arguments = ctypes.byref(self.here), 1, ctypes.byref(self.there), 1, 0


class ThreadReads(threading.local):
    """Buffers of small reads, one set for each thread."""

    def __init__(self) -> None:
        self.small = SmallReads()


_reads = ThreadReads()


def read_small(pid: int, address: int, size: int) -> bytes | None:
    """Read at most SMALL bytes of another process; None where they are not there, or may not be read."""
    small = _reads.small
    small.here.size = small.there.size = size
    small.there.base = address
    return bytes(small.view[:size]) if _libc.process_vm_readv(pid, *small.arguments) == size else None


def read_ranges(pid: int, ranges: list[tuple[int, int]], into: Bytes) -> bool:
    """Join ranges (address, size) of another process; False where they are not there, or may not be read."""
    base, at = _address(into), 0
    parts = deque((address + start, min(size - start, STEP)) for address, size in ranges for start in range(0, size, STEP))
    while parts:
        chunk, total = list[tuple[int, int]](), 0
        while parts and len(chunk) < IOV_MAX and total + parts[0][1] <= STEP:
            chunk.append(parts.popleft())
            total += chunk[-1][1]
        here, there = _Iovec(base + at, total), (_Iovec * len(chunk))(*(_Iovec(*span) for span in chunk))
        if _libc.process_vm_readv(pid, ctypes.byref(here), 1, there, len(chunk), 0) != total:
            return False
        at += total
    return True


def write_range(pid: int, address: int, data: Bytes) -> bool:
    """Write into another process; False where it has no such memory, or it may not be written."""
    base = _address(data)
    for at in range(0, len(data), STEP):
        size = min(len(data) - at, STEP)
        here, there = _Iovec(base + at, size), _Iovec(address + at, size)
        if _libc.process_vm_writev(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != size:
            return False
    return True


def write_to(pid: int, address: int, data: bytes) -> None:
    """Write into another process; one that has ended needs nothing any more."""
    source = ctypes.create_string_buffer(data, len(data))
    here, there = _Iovec(ctypes.addressof(source), len(data)), _Iovec(address, len(data))
    done = _libc.process_vm_writev(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    number = ctypes.get_errno()
    if done != len(data) and number not in (errno.ESRCH, 0):
        raise OSError(number, f"memory of process {pid} at {address:#x} cannot be written: {os.strerror(number)}")

"""Memory of another process, read and written from here where the kernel allows it."""

from __future__ import annotations

import ctypes
import errno
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = _libc.process_vm_writev.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = _libc.process_vm_writev.argtypes = (
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)  # fmt: skip


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def read_from(pid: int, address: int, size: int) -> bytes | None:
    """Bytes of another process; None where they are not there, or may not be read."""
    target = ctypes.create_string_buffer(size)
    here, there = _Iovec(ctypes.addressof(target), size), _Iovec(address, size)
    done = _libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return target.raw if done == size else None


def write_to(pid: int, address: int, data: bytes) -> None:
    """Write into another process; one that has ended needs nothing any more."""
    source = ctypes.create_string_buffer(data, len(data))
    here, there = _Iovec(ctypes.addressof(source), len(data)), _Iovec(address, len(data))
    done = _libc.process_vm_writev(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    number = ctypes.get_errno()
    if done != len(data) and number not in (errno.ESRCH, 0):
        raise OSError(number, f"memory of process {pid} at {address:#x} cannot be written: {os.strerror(number)}")

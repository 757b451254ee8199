"""mmap, munmap, memory and descriptor limits of the host, with errors that name the limit to raise.

Python's mmap cannot map at a fixed address and keeps a second descriptor per file: hundreds of buffers would exceed the usual limit of
1024. These functions call libc directly.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from softgen.bits.units import PAGE_SIZE
from softgen.errors import SoftgenError

PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x1, 0x2, 0x10, 0x20, 0x4000
_MADV_DONTDUMP = 16
_FAILED = 2**64 - 1
CGROUP_LIMITS = ("/sys/fs/cgroup{}/memory.max", "/sys/fs/cgroup/memory{}/memory.limit_in_bytes")  # version 2 and 1

_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _munmap, _madvise = _libc.mmap, _libc.munmap, _libc.madvise
_mmap.restype = ctypes.c_uint64
_mmap.argtypes = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_munmap.argtypes = (ctypes.c_uint64, ctypes.c_size_t)
_madvise.argtypes = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int)

Result = TypeVar("Result")


def round_up(size: int) -> int:
    """Round up to a multiple of the page size."""
    return -(-size // PAGE_SIZE) * PAGE_SIZE


def reserve(size: int) -> int:
    """Reserve address space without memory; every access faults."""
    base = _map(0, size, PROT_NONE, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0, "reserve")
    _madvise(base, size, _MADV_DONTDUMP)  # a core file would include terabytes
    return base


def unmap_to_reservation(address: int, size: int) -> None:
    """Replace what is mapped at an address by a reservation."""
    _map(address, size, PROT_NONE, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED, -1, 0, "unmap")


def map_file(fd: int, offset: int, size: int, writable: bool, address: int = 0) -> int:
    """Map a file, shared: anywhere, or over the reservation at an address."""
    flags = _MAP_SHARED | _MAP_NORESERVE | (_MAP_FIXED if address else 0)
    return _map(address, size, PROT_READ | (PROT_WRITE if writable else 0), flags, fd, offset, "map")


def unmap(address: int, size: int) -> None:
    _munmap(address, size)


def _map(address: int, size: int, protection: int, flags: int, fd: int, offset: int, verb: str) -> int:
    base = int(_mmap(address, size, protection, flags, fd, offset))
    if base == _FAILED:
        raise SoftgenError(f"host memory: cannot {verb} {size:#x} bytes: {_reason(ctypes.get_errno())}")
    return base


def _reason(number: int) -> str:
    if number == errno.ENOMEM:
        return f"{os.strerror(number)}; limits are `sysctl vm.max_map_count` (mappings a process may have) and `ulimit -v`"
    return os.strerror(number)


def with_descriptors(make: Callable[[], Result]) -> Result:
    """Call make(); if the process is out of descriptors, raise its soft limit to the hard limit and try again."""
    try:
        return make()
    except OSError as first:
        if first.errno != errno.EMFILE:
            raise SoftgenError(f"host memory: {first.strerror}") from None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return make()
    except OSError as second:
        raise SoftgenError(f"host memory: {second.strerror}; each buffer needs a descriptor, see `ulimit -Hn`") from None


def host_memory() -> int:
    """Bytes of memory this process can have: the machine's, or its control group's where that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        groups = [line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines()]
    except OSError:
        groups = []
    for path in {pattern.format(group.rstrip("/")) for pattern in CGROUP_LIMITS for group in ("", *groups)}:
        try:
            found.append(int(Path(path).read_text("ascii")))
        except (OSError, ValueError):
            pass  # no such group, or "max"
    return min(found)

"""Buffer objects: memory with a descriptor of its own, so that other processes and several address spaces can share it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import threading
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from softgen.errors import DriverError, SoftgenError
from softgen.memory import host

if TYPE_CHECKING:  # a decoder never asks for arrays, and starts twice as fast without them
    import numpy as np
    import numpy.typing as npt

LARGEST = 1 << 46  # half of what a process can see; a larger request is a wrong number, not a wish
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
MODE = 0o600
BLOCK = 512  # bytes of a block as stat() counts them

Identity = tuple[int, int]  # st_dev and st_ino: which file a descriptor is of, as the kernel says


class Store(Protocol):
    """Pages of a file, which address spaces map."""

    @property
    def name(self) -> str: ...
    @property
    def fd(self) -> int: ...
    @property
    def capacity(self) -> int:
        """Bytes that can be mapped, a multiple of a page."""
        ...

    def window(self, offset: int, size: int) -> memoryview:
        """A writable view of whole pages; the pages stay for as long as the view does."""
        ...


_guarding = threading.Lock()


def identity(fd: int) -> Identity:
    """The file behind a descriptor. The inode number alone is not enough: another file system has the same ones."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def view_of(address: int, size: int) -> memoryview:
    """A mapping as a view that owns it: the pages are unmapped when the last view of them is gone, and not before."""
    memory = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(memory, host.unmap, address, size).atexit = False
    return memoryview(memory).cast("B")


class MemfdBuffer:
    """A memfd of a fixed size, mapped once. Programs get descriptors of it, so its seals leave them nothing to change but its bytes.

    It cannot shrink: a mapped page never vanishes under running code. It cannot grow: pages beyond its end would be nobody's. No seal can
    be added: one against writing would keep the simulator from mapping it again. The size asked for is kept; what can be mapped is rounded
    up to a page, and the rest reads as zero.
    """

    identity: Identity

    def __init__(self, size: int, name: str = "") -> None:
        if not 0 < size <= LARGEST:
            raise DriverError(f"buffer {name!r}: size must be between 1 and {LARGEST:#x} bytes, not {size:#x}")
        label = re.sub("[^ -~]", "?", f"softgen {name[:200]}")  # memfd_create takes 249 bytes, none of them zero
        fd = host.with_descriptors(lambda: os.memfd_create(label, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        try:
            os.ftruncate(fd, host.round_up(size))
            self._adopt(fd, size, name)
        except (OSError, SoftgenError) as error:
            os.close(fd)
            raise SoftgenError(f"buffer {name!r} of {size:#x} bytes: {error}") from None

    def _adopt(self, fd: int, size: int, name: str) -> None:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        self.name, self.size, self.capacity, self.fd = name, size, host.round_up(size), fd
        self.identity = identity(fd)
        self._guard: int | None = None  # our own open file, from the first reopen() on
        self.address = host.map_file(fd, 0, self.capacity, writable=True)
        self._pages = view_of(self.address, self.capacity)
        self.view = self._pages[:size]
        self.close = weakref.finalize(self, os.close, fd)  # closes the descriptor only; mappings and views live on
        self.close.atexit = False

    @cached_property
    def array(self) -> npt.NDArray[np.uint8]:
        import numpy as np

        return np.frombuffer(self.view, np.uint8)

    def window(self, offset: int, size: int) -> memoryview:
        return self._pages[offset : offset + size]

    def reopen(self) -> int:
        """A descriptor for another process: an open file of its own, so that open_elsewhere() can tell whether it still exists.

        While the guard is open no other process can take a lease, for which this would have to wait. Before there is one, a program may
        have taken a lease with a descriptor that it got to map; BlockingIOError then.
        """
        with _guarding:
            if self._guard is None:
                self._guard = self._open()
                weakref.finalize(self, os.close, self._guard).atexit = False
        return self._open()

    def _open(self) -> int:
        try:
            fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)  # copies of this descriptor have its leases
        except OSError:
            pass  # it has none
        try:
            found = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            os.fchmod(self.fd, MODE)  # any holder of a descriptor may change the file's mode
            found = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(found, True)
        return found

    def open_elsewhere(self) -> bool:
        """Does a descriptor from reopen() still exist, in whatever process, or a mapping made with it?

        The kernel grants the guard a write lease only while nobody else has the file open, and does not count the open file that
        memfd_create() made. Opening the file in the moment of the lease sends SIGIO to the lease's holder, which must ignore it.
        """
        if self._guard is None:
            return False
        try:
            fcntl.fcntl(self._guard, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            return error.errno == errno.EAGAIN
        fcntl.fcntl(self._guard, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False

    def resident(self) -> int:
        """Bytes of memory that the pages touched so far take."""
        return os.fstat(self.fd).st_blocks * BLOCK

    def __repr__(self) -> str:
        return f"MemfdBuffer({self.size:#x}, {self.name!r})"

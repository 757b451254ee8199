"""Buffer objects: memory with a descriptor of its own, so that other processes and several address spaces can share it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from softgen.bits.units import PAGE_SIZE
from softgen.errors import DriverError, SoftgenError
from softgen.memory import host

if TYPE_CHECKING:  # a decoder never asks for arrays, and starts twice as fast without them
    import numpy as np
    import numpy.typing as npt

LARGEST = 1 << 46  # half of what a process can see; a larger request is a wrong number, not a wish


class Store(Protocol):
    """What an address space can map: pages of a file."""

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


def view_of(address: int, size: int) -> memoryview:
    """A mapping as a view that owns it: the pages are unmapped when the last view of them is gone, and not before."""
    memory = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(memory, host.unmap, address, size).atexit = False
    return memoryview(memory).cast("B")


class Buffer:
    """A memfd sealed against shrinking (a mapped page can never vanish under running code), mapped once.

    The size asked for is kept; what can be mapped is rounded up to a page, and the rest reads as zero.
    """

    def __init__(self, size: int, name: str = "") -> None:
        if not 0 < size <= LARGEST:
            raise DriverError(f"buffer {name!r}: size must be between 1 and {LARGEST:#x} bytes, not {size:#x}")
        fd = host.with_descriptors(lambda: os.memfd_create(f"softgen {name}"[:200], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        try:
            os.ftruncate(fd, host.round_up(size))
            self._adopt(fd, size, name)
        except (OSError, SoftgenError) as error:
            os.close(fd)
            raise SoftgenError(f"buffer {name!r} of {size:#x} bytes: {error}") from None

    @classmethod
    def from_fd(cls, fd: int, name: str = "") -> Buffer:
        """Take over a memfd that came from another process; it is sealed here if it was not."""
        buffer = cls.__new__(cls)
        size = os.fstat(fd).st_size
        if not 0 < size <= LARGEST:
            raise DriverError(f"buffer {name!r}: descriptor {fd} has {size:#x} bytes, expected 1 to {LARGEST:#x}")
        try:
            if os.fstat(fd).st_size % PAGE_SIZE:
                os.ftruncate(fd, host.round_up(size))
            buffer._adopt(fd, size, name)
        except OSError as error:
            raise DriverError(f"buffer {name!r}: descriptor {fd} is no memfd that can be sealed: {error.strerror}") from None
        return buffer

    def _adopt(self, fd: int, size: int, name: str) -> None:
        if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.name, self.size, self.capacity, self.fd = name, size, host.round_up(size), fd
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

    def __repr__(self) -> str:
        return f"Buffer({self.size:#x}, {self.name!r})"

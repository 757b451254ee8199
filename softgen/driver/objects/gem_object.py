"""Buffer objects (GEM): their memory and their state. gem.py has the ioctls on them.

A buffer's memory is a memfd that the program maps and the simulator reads. Memory that was the program's own (USERPTR) may be in several
pieces. A buffer is busy while a fence of a submission that uses it is not done.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol

from softgen.driver.ioctl.aperture import LinearView
from softgen.driver.ioctl.user_copy import Copied
from softgen.driver.objects.fence import Fence
from softgen.memory.store import MemfdBuffer

MOST_SPARED = 192  # uses of a buffer that are kept for their lists when they are over


class Piece(NamedTuple):
    buffer: MemfdBuffer
    offset: int
    size: int


def no_owner() -> None:
    """The owner of a use that is not used again."""


class Use:
    """A submission's use of a buffer. One that a list of buffers owns is used again when the list is submitted again (buffer_list.py)."""

    __slots__ = ("engine", "fence", "owner", "write")

    def __init__(self, fence: Fence, engine: str, write: bool, owner: Callable[[], UseOwner | None] = no_owner) -> None:
        """`owner`: a weak reference to the list."""
        self.fence, self.engine, self.write, self.owner = fence, engine, write, owner


class UseOwner(Protocol):
    """A list of buffers that uses its buffers again when it is submitted again."""

    def uses_changed(self) -> None:
        """Another use was added to one of its buffers, which it may have to wait for."""
        ...

    def forget_uses(self) -> None:
        """One of its uses was dropped."""
        ...


class Binding(Protocol):
    """An address space in which a buffer has an address (vm.py), as far as the buffer uses it."""

    def forget(self, bo: GemObject) -> None: ...


class GemObject:
    """A buffer object: one piece of memory, or several that follow one another."""

    def __init__(self, uid: int, pid: int, pieces: list[Piece], caching: int, copied: Copied | None = None, user: bool = False) -> None:
        """`pid`: the process for which its memory counts."""
        self.uid, self.pid, self.pieces, self.caching, self.copied, self.user = uid, pid, pieces, caching, copied, user
        self.size = sum(piece.size for piece in pieces)
        self.handles = 0
        self.tiling = self.stride = self.name = 0
        self.uses: list[Use] = []
        self.bound: set[weakref.ref[Binding]] = set()  # weak: an address space ends with its context, though its buffers live on
        self.view: LinearView | None = None  # if a program maps it through the aperture
        self.viewing = threading.Lock()  # while the view is made or arranged
        self.identity = None if user else pieces[0].buffer.identity
        self.exported = False
        self.claimed = False  # by a submission that is being made (buffer_claim.py)

    def sync_view(self) -> None:
        """Synchronise the linear view of a tiled buffer, if it has one, with its memory."""
        if self.view:
            self.view.sync()

    def use(self, fence: Fence, engine: str, write: bool) -> None:
        self.add_use(Use(fence, engine, write))

    def add_use(self, use: Use) -> None:
        """Another use; drops those that are over, but for the last ones of lists that may be submitted again."""
        uses = [other for other in self.uses if not other.fence.done or other.owner() is not None]
        if len(uses) > MOST_SPARED:
            over = [other for other in uses if other.fence.done]
            for other in over[: len(uses) - MOST_SPARED]:
                uses.remove(other)
                if (owner := other.owner()) is not None:
                    owner.forget_uses()
        for other in uses if use.write else [other for other in uses if other.write]:
            if (owner := other.owner()) is not None:
                owner.uses_changed()
        uses.append(use)
        self.uses = uses

    def busy(self) -> list[Use]:
        return [use for use in self.uses if not use.fence.done]

    def idle(self) -> bool:
        return all(use.fence.done for use in self.uses)

    def read(self, offset: int, size: int) -> bytes:
        return b"".join(self.views(offset, size))

    def views(self, offset: int, size: int) -> list[memoryview]:
        """A range of the memory as writable views, one for each piece."""
        found, at = [], 0
        for piece in self.pieces:
            first, last = max(offset, at), min(offset + size, at + piece.size)
            if first < last:
                found.append(piece.buffer.window(piece.offset, piece.size)[first - at : last - at])
            at += piece.size
        return found

    def bind(self, binding: Binding) -> None:
        """The buffer has an address there."""
        self.bound.add(weakref.ref(binding, self.bound.discard))

    def unbind(self) -> None:
        """Unmap the buffer from all address spaces, if it has no handle."""
        if not self.handles:
            for reference in list(self.bound):
                if (binding := reference()) is not None:
                    binding.forget(self)

"""Buffer lists of submissions: the buffer objects that they use, and the addresses of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from softgen.driver import i915_drm as i915
from softgen.driver.fence import Fence
from softgen.driver.gem_object import GemObject, Use


class Bound(NamedTuple):
    """A buffer in a submission."""

    bo: GemObject
    address: int
    handle: int
    flags: int
    relocations: int


class BufferList(list[Bound]):
    """The buffers of a submission. Drivers often submit the same list again: then what was found out about it still holds."""

    def __init__(self, bound: Iterable[Bound] = ()) -> None:
        super().__init__(bound)
        self.bos = [listed.bo for listed in self]
        self.accesses = [(listed.bo, bool(listed.flags & i915.EXEC_OBJECT_WRITE), not listed.flags & i915.EXEC_OBJECT_ASYNC)
                         for listed in self]  # fmt: skip  # whether each is written, and waits for earlier submissions
        self.copies = [bo.copied for bo in self.bos if bo.copied]  # memory of the program that is copied
        self.mapped_at = -1  # changes of the address space's mappings when all buffers were found mapped (vm.py)

    def use(self, fence: Fence, engine: str) -> None:
        """All are in use until a fence is done."""
        read, write = Use(fence, engine, False), Use(fence, engine, True)
        for bo, written, _ in self.accesses:
            uses = bo.uses
            if len(uses) > 1 or uses and not uses[0].fence.done:
                bo.uses = [*bo.busy(), write if written else read]
            else:
                bo.uses = [write if written else read]

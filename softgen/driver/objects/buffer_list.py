"""Buffer lists of submissions: the buffer objects that they use, and the addresses of these."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from softgen.driver.objects.fence import Fence
from softgen.driver.objects.gem_object import GemObject, Use, no_owner
from softgen.driver.uapi import i915_drm as i915


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
        self._uses: tuple[Use, ...] = ()  # the use of the buffers that are read, and of those that are written
        self._has_uses = False  # all buffers have it
        self._others: list[Use] | None = None  # uses of its buffers by others that it has to wait for; None: to be found out

    def at(self, address: int) -> GemObject | None:
        """The buffer at an address."""
        return next((bound.bo for bound in self if 0 <= address - bound.address < bound.bo.size), None)

    def submitted(self, fence: Fence, engine: str) -> list[Fence]:
        """In use by one more submission, until its fence is done; what that has to wait for."""
        uses = self._uses
        if self._has_uses and self._others == [] and uses[0].fence.done and uses[0].engine == engine:
            uses[0].fence = uses[1].fence = fence  # as the last one, and nobody else
            return []
        others = self.dependencies()
        self.use(fence, engine)
        return others

    def use(self, fence: Fence, engine: str) -> None:
        """All are in use until a fence is done."""
        uses = self._uses
        if self._has_uses and uses[0].fence.done and uses[0].engine == engine:
            uses[0].fence = uses[1].fence = fence
            return
        for use in uses:
            use.owner = no_owner
        owner = weakref.ref(self)
        uses = self._uses = Use(fence, engine, False, owner), Use(fence, engine, True, owner)
        for bo, written, _ in self.accesses:
            bo.add_use(uses[written])
        self._has_uses, self._others = True, None

    def dependencies(self) -> list[Fence]:
        """Implicit dependencies: earlier submissions that write a buffer, and for a buffer that this one writes also those that read it."""
        if not self._has_uses or not self._uses[0].fence.done:
            return [use.fence for use in self._conflicts() if not use.fence.done]
        if self._others is None:
            self._others = [use for use in self._conflicts() if use not in self._uses]
        return [use.fence for use in self._others if not use.fence.done] if self._others else []

    def _conflicts(self) -> Iterator[Use]:
        for bo, written, synchronised in self.accesses:
            if synchronised:
                yield from (use for use in bo.uses if use.write or written)

    def uses_changed(self) -> None:
        self._others = None

    def forget_uses(self) -> None:
        self._has_uses = False

"""A submission: one DRM_IOCTL_I915_GEM_EXECBUFFER2, from its arrival to the signal of its fence."""

from __future__ import annotations

from typing import NamedTuple

from softgen.driver.objects.buffer_list import BufferList
from softgen.driver.objects.fence import Fence
from softgen.driver.objects.gem_context import GemContext
from softgen.driver.objects.vm import Vm


class Submission(NamedTuple):
    """One EXECBUFFER2."""

    sequence: int
    pid: int
    program: str
    context: GemContext
    engine: str
    vm: Vm
    bound: BufferList
    batch: int
    batch_index: int
    batch_start: int
    batch_size: int
    relocations: int
    flags: int
    fence: Fence
    after: list[Fence]  # it waits for these
    slot: int = 0  # index in the context's engine map: each entry has hardware state of its own, also where two name one engine

    def __eq__(self, other: object) -> bool:
        """No two are the same."""
        return self is other

    def __hash__(self) -> int:
        return id(self)

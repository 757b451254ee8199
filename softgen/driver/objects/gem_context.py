"""Hardware contexts: their address space, engines and parameters. context.py has the ioctls on them."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.objects.fence import Fence
from softgen.driver.objects.vm import Vm
from softgen.driver.uapi import i915_drm as i915

RINGS = {
    i915.I915_EXEC_DEFAULT: "rcs0", i915.I915_EXEC_RENDER: "rcs0", i915.I915_EXEC_BSD: "vcs0", i915.I915_EXEC_BLT: "bcs0",
    i915.I915_EXEC_VEBOX: "vecs0",
}  # fmt: skip
KEPT = {
    i915.I915_CONTEXT_PARAM_NO_ZEROMAP: 0, i915.I915_CONTEXT_PARAM_NO_ERROR_CAPTURE: 0, i915.I915_CONTEXT_PARAM_BANNABLE: 1,
    i915.I915_CONTEXT_PARAM_RECOVERABLE: 1, i915.I915_CONTEXT_PARAM_PERSISTENCE: 1,
}  # fmt: skip  # parameters that are stored and read back, with their defaults


class AcceptedArgument(NamedTuple):
    """What an EXECBUFFER2 asks for."""

    engine: str
    slot: int  # entry of the engine map
    batch_first: bool
    fenced: bool  # it names fences
    fence_out: bool


class GemContext:
    """A hardware context."""

    def __init__(self, number: int, vm: Vm, available: tuple[str, ...]) -> None:
        """`available`: the names of the GPU's engines."""
        self.number, self.vm, self.available = number, vm, available
        self._engines: list[str | None] | None = None
        self.accepted: dict[tuple[int, ...], AcceptedArgument] = {}  # arguments of EXECBUFFER2 that were checked (execbuffer.py)
        self.params = dict(KEPT)
        self.priority = 0
        self.banned = self.cancelled = False
        self.guilty = self.innocent = 0
        self.last: Fence | None = None  # of the newest submission
        self.listed: dict[bytes, Any] = {}  # the buffers of the last ones (execbuffer.py)
        # By engine and entry of the engine map: submissions (queue.py), and what executes them (execute.py).
        self.queues: dict[tuple[str, int], Any] = {}
        self.context_engines: dict[tuple[str, int], Any] = {}

    @property
    def engines(self) -> list[str | None] | None:
        """The engine map; None: each ring of the GPU."""
        return self._engines

    @engines.setter
    def engines(self, engines: list[str | None] | None) -> None:
        self._engines = engines
        self.accepted.clear()

    def engine(self, flags: int) -> str:
        """The engine a submission asks for."""
        index = flags & i915.I915_EXEC_RING_MASK
        name = self.engines[index] if self.engines is not None and index < len(self.engines) else None
        if self.engines is None:
            name = RINGS.get(index)
        if name not in self.available:
            raise Errno(errno.EINVAL, f"no engine {index} in this context")
        assert name is not None
        return name

    def slot(self, flags: int) -> int:
        """The entry of the engine map that a submission asks for; 0 without a map, where each engine has one state."""
        return 0 if self.engines is None else flags & i915.I915_EXEC_RING_MASK

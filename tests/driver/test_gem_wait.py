"""Waiting for buffers: which ioctls wait for work, how long, and what they say about the time that is left."""

from __future__ import annotations

import errno
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from tests.driver.ioctl.test_gem import refused, submit
from tests.driver.program import Gpu, Held


def test_busy_until_the_work_is_done(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 0
    submit(program, handle, flags=1 << 2)
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 1 << 16 | 1
    refused(errno.ETIME, program, "DRM_IOCTL_I915_GEM_WAIT", handle=handle, timeout=0)
    began = time.monotonic()
    error, argument = program.refused("DRM_IOCTL_I915_GEM_WAIT", handle=handle, timeout=50_000_000)
    assert error == errno.ETIME and time.monotonic() - began >= 0.05
    assert (argument.handle, argument.timeout) == (handle, 0), "no time is left"
    held.finish()
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 0
    assert program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handle, timeout=10**9).timeout > 0


def test_a_wait_has_no_flags(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    error, argument = program.refused("DRM_IOCTL_I915_GEM_WAIT", handle=handle, flags=1, timeout=7)
    assert (error, argument.timeout) == (errno.EINVAL, 7)


def test_a_buffer_that_is_not_there_is_neither_busy_nor_idle(gpu: Gpu) -> None:
    """What the argument says is left as it was."""
    error, argument = gpu.program().refused("DRM_IOCTL_I915_GEM_BUSY", handle=9, busy=77)
    assert (error, argument.busy) == (errno.ENOENT, 77)


@pytest.mark.parametrize("name", ["DRM_IOCTL_I915_GEM_SET_DOMAIN", "DRM_IOCTL_I915_GEM_WAIT", "DRM_IOCTL_I915_GEM_PREAD"])
def test_what_needs_the_result_waits_for_it_and_others_go_on(gpu: Gpu, held: Held, name: str) -> None:
    program = gpu.program()
    handle, other = (program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle for _ in range(2))
    submit(program, handle)
    fields = {"DRM_IOCTL_I915_GEM_WAIT": {"timeout": -1},
              "DRM_IOCTL_I915_GEM_PREAD": {"data": program.memory(4).address, "size": 4}}.get(name, {})  # fmt: skip
    waiting = threading.Thread(target=program.thread().ioctl, args=(name,), kwargs={"handle": handle, **fields}, daemon=True)
    waiting.start()
    program.ioctl("DRM_IOCTL_I915_GEM_SET_DOMAIN", handle=other)
    waiting.join(0.1)
    assert waiting.is_alive()
    held.finish()
    waiting.join(2)
    assert not waiting.is_alive()


@pytest.mark.parametrize("timeout, idle, seconds, left, error", [
    (10**9, True, 0.25, 750_000_000, 0), (10**9, False, 1.0, 0, errno.ETIME), (10**9, True, 1.5, 0, 0),
    (0, True, 0.25, 0, 0), (0, False, 0.0, 0, errno.ETIME), (-1, True, 5.0, -1, 0), (-5, True, 5.0, -5, 0),
])  # fmt: skip
def test_the_time_that_a_wait_has_left(timeout: int, idle: bool, seconds: float, left: int, error: int,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing where the time was too short; a wait without a limit is one without a limit afterwards (i915_gem_wait_ioctl)."""
    now, until = [7.0], list[float | None]()

    def wait(ready: Any, deadline: float | None, gone: Any) -> bool:
        until.append(deadline)
        now[0] += seconds
        return idle

    monkeypatch.setattr(gem, "time", SimpleNamespace(monotonic_ns=lambda: int(now[0] * 10**9)))
    monkeypatch.setattr(gem, "lookup", lambda node, handle: SimpleNamespace(idle=None, sync_view=lambda: None))
    node: Any = SimpleNamespace(gpu=SimpleNamespace(signals=SimpleNamespace(wait=wait)))
    call: Any = SimpleNamespace(channel=SimpleNamespace(gone=None))
    argument = SimpleNamespace(handle=1, flags=0, timeout=timeout)
    if error:
        with pytest.raises(Errno) as found:
            gem.wait(node, call, argument)
        assert found.value.number == error
    else:
        gem.wait(node, call, argument)
    assert argument.timeout == left and until == [None if timeout < 0 else 7 + timeout / 10**9]


@pytest.mark.parametrize("timeout, left", [(1, 0), (0, 0), (-1, -1)])
def test_a_wait_says_how_much_of_its_time_is_left(gpu: Gpu, timeout: int, left: int) -> None:
    """Of a nanosecond nothing; a wait without an end has none."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    assert program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handle, timeout=timeout).timeout == left

"""Ioctls on dma-bufs and sync files."""

from __future__ import annotations

import errno
import os
import select
import threading
from types import SimpleNamespace

import pytest

from softgen.driver.uapi import DMABUF_SYNC_FILE
from tests.driver.program import Gpu, Held, Program
from tests.driver.test_gem import submit

READ, WRITE = 1, 2  # DMA_BUF_SYNC_READ, DMA_BUF_SYNC_WRITE
SYNC, EXPORT, IMPORT = 0, 2, 3  # DMA_BUF_IOCTL_SYNC and those of sync files


def exported(program: Program) -> tuple[int, int]:
    """A buffer's handle and the descriptor of its dma-buf."""
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    return handle, program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd


def argument(flags: int = READ, fd: int = -1) -> bytes:
    return DMABUF_SYNC_FILE.pack(SimpleNamespace(flags=flags, fd=fd))


def test_a_buffer_whose_last_descriptor_was_closed_is_forgotten_when_another_is_exported(gpu: Gpu) -> None:
    """Nobody is told that a program closed a descriptor: it is looked for now and then, or the memory would stay for ever."""
    program = gpu.program()
    (other, _), (handle, descriptor) = exported(program), exported(program)
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    program.received.remove(descriptor)
    os.close(descriptor)
    assert len(gpu.shared.objects) == 2
    program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=other)
    assert [bo.handles for bo in gpu.shared.objects.values()] == [1]


def test_access_of_the_processor_waits_for_the_work(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle, descriptor = exported(program)
    submit(program, handle)
    waiting = threading.Thread(target=program.thread().foreign, args=("dma-buf", SYNC, descriptor, argument()), daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    held.finish()
    waiting.join(10)
    assert not waiting.is_alive()


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("flags", [READ, WRITE])
def test_who_writes_waits_for_all_and_who_reads_for_writers(gpu: Gpu, held: Held, writes: bool, flags: int) -> None:
    program = gpu.program()
    handle, descriptor = exported(program)
    submit(program, handle, flags=writes << 2)
    answer = program.foreign("dma-buf", EXPORT, descriptor, argument(flags))
    assert answer is not None
    fence = DMABUF_SYNC_FILE.unpack(answer).fd
    assert bool(select.select([fence], [], [], 0)[0]) is (flags == READ and not writes)
    held.finish()
    assert select.select([fence], [], [], 10)[0]


@pytest.mark.parametrize("flags, busy", [(READ, 1 << 16), (WRITE, 1 << 16 | 1)])
def test_a_fence_that_is_put_in_reads_or_writes(gpu: Gpu, held: Held, flags: int, busy: int) -> None:
    """GEM_BUSY: engines that read in the upper half, the one that writes in the lower."""
    program = gpu.program()
    (source, first), (handle, second) = exported(program), exported(program)
    submit(program, source, flags=1 << 2)
    answer = program.foreign("dma-buf", EXPORT, first, argument())
    assert answer is not None
    program.foreign("dma-buf", IMPORT, second, argument(flags, DMABUF_SYNC_FILE.unpack(answer).fd))
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == busy
    held.finish()
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 0


def test_other_ioctls_are_none(gpu: Gpu) -> None:
    program = gpu.program()
    _, descriptor = exported(program)
    answer = program.foreign("dma-buf", EXPORT, descriptor, argument())
    assert answer is not None
    fence = DMABUF_SYNC_FILE.unpack(answer).fd
    for kind, number, target in (("dma-buf", 1, descriptor), ("dma-buf", 4, descriptor), ("sync file", 2, fence)):
        with pytest.raises(OSError) as refused:
            program.foreign(kind, number, target, bytes(64))
        assert refused.value.errno == errno.ENOTTY
    with pytest.raises(OSError, match="Invalid"):
        program.foreign("dma-buf", IMPORT, descriptor, argument(READ, descriptor))  # no sync file

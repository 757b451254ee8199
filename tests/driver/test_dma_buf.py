"""Ioctls on dma-bufs and sync files."""

from __future__ import annotations

import errno
import os
import select
import threading
from types import SimpleNamespace

import pytest

from softgen.driver.ioctl import ioctls
from softgen.driver.uapi.uapi import DMABUF_SYNC_FILE, SYNC_FENCE, SYNC_INFO, SYNC_MERGE
from tests.driver.ioctl.test_gem import submit
from tests.driver.program import Gpu, Held, Program

READ, WRITE = 1, 2  # DMA_BUF_SYNC_READ, DMA_BUF_SYNC_WRITE
SYNC, EXPORT, IMPORT = 0, 2, 3  # DMA_BUF_IOCTL_SYNC and those of sync files
MERGE, INFO = 3, 4  # SYNC_IOC_MERGE, SYNC_IOC_FILE_INFO


def exported(program: Program) -> tuple[int, int]:
    """A buffer's handle and the descriptor of its dma-buf."""
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    return handle, program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd


def argument(flags: int = READ, fd: int = 0) -> bytes:
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


def refused(program: Program, kind: str, number: int, target: int, data: bytes) -> int:
    """The error of an ioctl."""
    with pytest.raises(OSError) as found:
        program.foreign(kind, number, target, data)
    assert found.value.errno is not None
    return found.value.errno


ANY = {SYNC, EXPORT, IMPORT}


@pytest.mark.parametrize("flags, fine", [
    (0, set()), (1, ANY), (2, ANY), (3, ANY), (4, set()), (5, {SYNC}),
    (6, {SYNC}), (7, {SYNC}), (8, set()), (9, set()), (1 << 31 | 1, set()),
])  # fmt: skip
def test_an_access_is_named(gpu: Gpu, flags: int, fine: set[int]) -> None:
    """dma_buf_ioctl(): to read (1), to write (2), or both; of the processor's it may be the end (4)."""
    program = gpu.program()
    _, descriptor = exported(program)
    answer = program.foreign("dma-buf", EXPORT, descriptor, argument())
    assert answer is not None
    fence = DMABUF_SYNC_FILE.unpack(answer).fd
    for number, data in ((SYNC, argument(flags)), (EXPORT, argument(flags)), (IMPORT, argument(flags, fence))):
        if number in fine:
            assert program.foreign("dma-buf", number, descriptor, data) is not None
        else:
            assert refused(program, "dma-buf", number, descriptor, data) == errno.EINVAL
    assert refused(program, "dma-buf", SYNC, descriptor, argument(READ, fd=1)) == errno.EINVAL  # a flag above bit 31


def sync_file(program: Program) -> int:
    answer = program.foreign("dma-buf", EXPORT, exported(program)[1], argument())
    assert answer is not None
    return int(DMABUF_SYNC_FILE.unpack(answer).fd)


def test_what_is_no_sync_file_cannot_be_put_in_or_merged(gpu: Gpu) -> None:
    """sync_file_get_fence() and sync_file_fdget() of the kernel do not tell another file from none."""
    program = gpu.program()
    fence, (_, buffer) = sync_file(program), exported(program)
    closed = os.dup(fence)
    os.close(closed)
    for other in (buffer, closed, -1):
        merge = SYNC_MERGE.pack(SimpleNamespace(name=b"", other=other, fence=-1, flags=0, pad=0))
        assert refused(program, "sync file", MERGE, fence, merge) == errno.ENOENT
        assert refused(program, "dma-buf", IMPORT, buffer, argument(READ, other)) == errno.EINVAL
        handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
        assert program.refused("DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE", handle=handle, flags=1, fd=other)[0] == errno.EINVAL


@pytest.mark.parametrize("field", ["flags", "pad"])
def test_fields_of_sync_files_that_must_be_zero(gpu: Gpu, field: str) -> None:
    program = gpu.program()
    fence = sync_file(program)
    merge = {"name": b"", "other": fence, "fence": -1, "flags": 0, "pad": 0, field: 1}
    info = {"name": b"", "status": 0, "flags": 0, "count": 0, "pad": 0, "fences": 0, field: 1}
    assert refused(program, "sync file", MERGE, fence, SYNC_MERGE.pack(SimpleNamespace(**merge))) == errno.EINVAL
    assert refused(program, "sync file", INFO, fence, SYNC_INFO.pack(SimpleNamespace(**info))) == errno.EINVAL


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_fences_of_a_sync_file_are_described_where_there_is_room(gpu: Gpu, count: int) -> None:
    """Without room their number alone is told."""
    program = gpu.program()
    fence, room = sync_file(program), program.memory(b"x" * SYNC_FENCE.size)
    info = SimpleNamespace(name=b"", status=0, flags=0, count=count, pad=0, fences=room.address)
    answer = program.foreign("sync file", INFO, fence, SYNC_INFO.pack(info))
    assert answer is not None
    found = SYNC_INFO.unpack(answer)
    assert (found.name.rstrip(b"\0"), found.status, found.flags, found.count, found.pad) == (b"softgen", 1, 0, 1, 0)
    if not count:
        assert bytes(room) == b"x" * SYNC_FENCE.size
        return
    row = SYNC_FENCE.unpack(bytes(room))
    assert (row.object.rstrip(b"\0"), row.driver.rstrip(b"\0"), row.status, row.flags) == (b"softgen", b"i915", 1, 0) and row.timestamp > 0


@pytest.mark.parametrize("kind, number", [("dma-buf", SYNC), ("dma-buf", EXPORT), ("sync file", MERGE), ("sync file", INFO)])
def test_files_of_others_are_left_to_the_kernel(gpu: Gpu, kind: str, number: int) -> None:
    """Also a sync file that is taken for a dma-buf, and the other way round."""
    program = gpu.program()
    others = [os.open(os.devnull, os.O_RDONLY), sync_file(program) if kind == "dma-buf" else exported(program)[1]]
    assert [program.foreign(kind, number, descriptor, bytes(64)) for descriptor in others] == [None, None]
    os.close(others[0])


@pytest.mark.parametrize("request_number, name", [
    (0x40086200, "DMA_BUF_IOCTL_SYNC"), (0xC0086202, "DMA_BUF_IOCTL_EXPORT_SYNC_FILE"), (0x40086203, "DMA_BUF_IOCTL_IMPORT_SYNC_FILE"),
    (0xC0303E03, "SYNC_IOC_MERGE"), (0xC0383E04, "SYNC_IOC_FILE_INFO"), (0x40086300, "ioctl 0x00 of type 'c'"),
    (0x40083F03, "ioctl 0x03 of type '?'"), (0x40086201, "ioctl 0x01 of type 'b'"), (0x40086283, "ioctl 0x83 of type 'b'"),
])  # fmt: skip
def test_ioctls_are_named_by_their_type_and_number(request_number: int, name: str) -> None:
    assert ioctls.foreign_name(request_number) == name

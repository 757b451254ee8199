"""Buffers: handles, memory, sharing; as a driver meets them."""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.driver.ioctl import aperture
from softgen.driver.uapi.uapi import DMABUF_SYNC_FILE, EXEC_OBJECT, EXTENSION
from tests.driver.program import Gpu, Held, Program, served


def refused(number: int, program: Program, name: str, /, **fields: int) -> None:
    with pytest.raises(OSError) as found:
        program.ioctl(name, **fields)
    assert found.value.errno == number


def ask_at_once(count: int, program: Program, name: str, **fields: int) -> None:
    """Each of the program's threads calls, and has its answer."""
    threads = [threading.Thread(target=program.thread().ioctl, args=(name,), kwargs=fields) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def submit(program: Program, *handles: int, flags: int = 0) -> None:
    zeros = dict.fromkeys(EXEC_OBJECT.names, 0)
    rows = b"".join(EXEC_OBJECT.pack(SimpleNamespace(**{**zeros, "handle": handle, "flags": flags})) for handle in handles)
    program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=program.memory(rows).address, count=len(handles))


def test_a_size_is_rounded_up_and_the_lowest_free_handle_is_given(gpu: Gpu) -> None:
    program = gpu.program()
    made = [program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=5000) for _ in range(3)]
    assert [item.handle for item in made] == [1, 2, 3] and made[0].size == 8192
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=2)
    assert program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=1).handle == 2
    refused(errno.EINVAL, program, "DRM_IOCTL_GEM_CLOSE", handle=9)
    refused(errno.EINVAL, program, "DRM_IOCTL_I915_GEM_CREATE", size=0)
    refused(errno.E2BIG, program, "DRM_IOCTL_I915_GEM_CREATE", size=1 << 50)


@pytest.mark.parametrize("name, fields", [
    *((f"DRM_IOCTL_I915_GEM_{name}", {}) for name in ("BUSY", "WAIT", "SET_DOMAIN", "SW_FINISH", "MADVISE", "MMAP_OFFSET", "GET_TILING",
                                                       "SET_TILING", "GET_CACHING", "SET_CACHING")),
    *((f"DRM_IOCTL_I915_GEM_{name}", {"size": 4}) for name in ("PREAD", "PWRITE", "MMAP")),
    ("DRM_IOCTL_PRIME_HANDLE_TO_FD", {}),
])  # fmt: skip
def test_handles_of_one_program_mean_nothing_to_another(gpu: Gpu, name: str, fields: dict[str, int]) -> None:
    first, other = gpu.program(), gpu.program()
    handle = first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    refused(errno.ENOENT, other, name, handle=handle, **fields)


def test_no_buffer_is_ever_purged(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    for advice in (0, 1, 0):  # needed, not needed, needed again
        assert program.ioctl("DRM_IOCTL_I915_GEM_MADVISE", handle=handle, advice=advice).retained == 1
    refused(errno.EINVAL, program, "DRM_IOCTL_I915_GEM_MADVISE", handle=handle, advice=2)


@pytest.mark.parametrize("name, default", [("kbl", 1), ("g45", 0)])
def test_caching_of_a_buffer_is_what_was_set(name: str, default: int) -> None:
    """At first none, or cached where the GPU shares the last-level cache; 2 is for scanout, and there is nothing else (i915_drm.h)."""
    with served(name, Held()) as gpu:
        program = gpu.program()
        handle, other = (program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle for _ in range(2))
        for caching in (2, 0, 1, 0):
            program.ioctl("DRM_IOCTL_I915_GEM_SET_CACHING", handle=handle, caching=caching)
            assert program.ioctl("DRM_IOCTL_I915_GEM_GET_CACHING", handle=handle).caching == caching
        assert program.ioctl("DRM_IOCTL_I915_GEM_GET_CACHING", handle=other).caching == default
        refused(errno.EINVAL, program, "DRM_IOCTL_I915_GEM_SET_CACHING", handle=handle, caching=3)


def test_what_is_written_is_seen_through_every_door(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=8192).handle
    data, read = program.memory(b"across pages"), program.memory(12)
    written = program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=4090, size=12, data=data.address)
    answer = program.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=handle, offset=4090, size=12, data=read.address)
    assert bytes(read) == b"across pages" and (written.data, answer.data) == (data.address, read.address), "arguments stay as they are"
    descriptor, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=2).offset + 4096, 4096)
    with mmap.mmap(descriptor, 4096, offset=at) as view:
        assert view[:6] == b" pages"
    exported = program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd
    assert os.pread(exported, 12, 4090) == b"across pages" and os.lseek(exported, 0, os.SEEK_END) == 8192


@pytest.mark.parametrize("offset, size, fine", [(8188, 4, True), (8190, 4, False), (8192, 1, False), ((1 << 64) - 4, 8, False)])
@pytest.mark.parametrize("name", ["DRM_IOCTL_I915_GEM_PREAD", "DRM_IOCTL_I915_GEM_PWRITE"])
def test_what_is_beyond_a_buffer_is_neither_read_nor_written(gpu: Gpu, name: str, offset: int, size: int, fine: bool) -> None:
    """Nor is the part of it that is in the buffer."""
    program = gpu.program()
    handle, (before, after) = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=8192).handle, (program.memory(b"before__") for _ in range(2))
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=8184, size=8, data=before.address)
    data = program.memory(b"programs")
    if fine:
        program.ioctl(name, handle=handle, offset=offset, size=size, data=data.address)
        return
    refused(errno.EINVAL, program, name, handle=handle, offset=offset, size=size, data=data.address)
    program.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=handle, offset=8184, size=8, data=after.address)
    assert bytes(after) == b"before__" and bytes(data) == b"programs"


@pytest.mark.parametrize("name", ["DRM_IOCTL_I915_GEM_PREAD", "DRM_IOCTL_I915_GEM_PWRITE"])
def test_nothing_is_wrong_about_no_bytes(gpu: Gpu, name: str) -> None:
    """As in the kernel: neither the buffer nor the range is looked at."""
    gpu.program().ioctl(name, handle=77, offset=1 << 40, size=0, data=8)


def test_mmap_beyond_a_buffer_is_refused(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    offset = program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=1).offset
    with pytest.raises(OSError, match="Invalid"):
        program.mmap(offset, 8192)
    with pytest.raises(OSError, match="No such"):
        program.mmap(offset + (7 << 40), 4096)


def test_the_rows_of_a_buffer_are_mapped_where_an_ioctl_gave_their_offset(gpu: Gpu) -> None:
    program, rows = gpu.program(), 1 << 39
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    plain = program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=0).offset
    with pytest.raises(OSError, match="Invalid"):
        program.mmap(plain | rows, 4096)
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=512)
    assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=0).offset == plain | rows
    assert program.mmap(plain | rows, 4096)


def test_the_older_shorter_argument_of_mmap_gtt(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", shorter=16, handle=handle).offset == handle << 40


# Where a byte of a row is in memory: X tiles are 8 rows of 512 bytes, Y tiles 8 columns of 32 times 16 bytes.
PLACES = {1: lambda x, y, stride: (y // 8 * (stride // 512) + x // 512) * 4096 + y % 8 * 512 + x % 512,
          2: lambda x, y, stride: (y // 32 * (stride // 128) + x // 128) * 4096 + x % 128 // 16 * 512 + y % 32 * 16 + x % 16}  # fmt: skip


@pytest.mark.parametrize("mode", [1, 2])
def test_a_tiled_buffer_through_the_aperture(gpu: Gpu, held: Held, mode: int) -> None:
    """Its rows are in order there; what either side writes is seen by the other when the program asks, or the GPU has done."""
    program, stride, rows = gpu.program(), 1024, 64
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=stride * rows + 4096).handle  # the last page fills no tile
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=mode, stride=stride)
    spots = [(0, 0), (15, 0), (16, 1), (511, 7), (513, 8), (1023, 63), (130, 33)]
    offsets = [program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=flags).offset for flags in (2, 0)]
    raw, linear = (mmap.mmap(program.mmap(offset, stride * rows)[0], stride * rows) for offset in offsets)
    for number, (x, y) in enumerate(spots, 1):
        linear[y * stride + x] = number
    program.ioctl("DRM_IOCTL_I915_GEM_SET_DOMAIN", handle=handle, read_domains=1, write_domain=1)
    assert [raw[PLACES[mode](x, y, stride)] for x, y in spots] == list(range(1, 8))
    assert sum(raw[:]) == sum(range(1, 8))
    submit(program, handle)
    for x, y in spots:
        raw[PLACES[mode](x, y, stride)] += 10  # the GPU's doing
    linear[5 * stride] = 99
    held.finish()
    assert [linear[y * stride + x] for x, y in spots] == list(range(11, 18)) and raw[PLACES[mode](0, 5, stride)] == 99
    data = program.memory(b"!")
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=PLACES[mode](700, 20, stride), size=1, data=data.address)
    assert linear[20 * stride + 700] == ord("!")
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=0)
    assert linear[:] == raw[:]


def test_a_buffer_is_seen_through_the_aperture_of_every_program(gpu: Gpu) -> None:
    first, other = gpu.program("card0"), gpu.program("card0")
    handle = first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=8192).handle
    first.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=1024)
    theirs = other.ioctl("DRM_IOCTL_GEM_OPEN", name=first.ioctl("DRM_IOCTL_GEM_FLINK", handle=handle).name).handle
    views = [mmap.mmap(program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", shorter=16, handle=number).offset, 8192)[0], 8192)
             for program, number in ((first, handle), (other, theirs))]  # fmt: skip
    views[0][1024:1029] = b"hello"
    assert views[1][1024:1029] == b"hello"


def test_a_shared_buffer_is_one_buffer(gpu: Gpu) -> None:
    """PRIME: importing gives the handle there is already; another program shares memory and tiling."""
    first, other = gpu.program(), gpu.program()
    handle = first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    first.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=2, stride=128)
    descriptor = first.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd
    assert first.ioctl("DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=descriptor).handle == handle
    theirs = other.ioctl("DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=descriptor).handle
    assert other.ioctl("DRM_IOCTL_I915_GEM_GET_TILING", handle=theirs).mode == 2
    first.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    other.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=theirs, offset=0, size=4, data=other.memory(b"kept").address)
    assert os.pread(descriptor, 4, 0) == b"kept"
    other.ioctl("DRM_IOCTL_GEM_CLOSE", handle=theirs)
    again = other.ioctl("DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=descriptor).handle  # nobody had a handle, but the memory lived on
    read = other.memory(4)
    other.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=again, offset=0, size=4, data=read.address)
    assert bytes(read) == b"kept"


def test_an_ordinary_file_is_refused_and_not_touched(gpu: Gpu, tmp_path: Path) -> None:
    program, path = gpu.program(), tmp_path / "letter"
    path.write_bytes(b"hello")
    with open(path, "r+b") as file:
        refused(errno.EINVAL, program, "DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=file.fileno())
    assert path.read_bytes() == b"hello"


def test_memory_that_was_not_exported_here_is_refused_and_not_touched(gpu: Gpu) -> None:
    """A memfd of the program, and one of the server that it got to map and not to share."""
    program = gpu.program()
    descriptor = os.memfd_create("elsewhere", os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, 5000)
    refused(errno.EINVAL, program, "DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=descriptor)
    assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == 0 and os.fstat(descriptor).st_size == 5000
    os.close(descriptor)
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    mapped, _ = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=2).offset, 4096)
    refused(errno.EINVAL, gpu.program(), "DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=mapped)
    assert program.foreign("dma-buf", 0, mapped, bytes(8)) is None
    os.close(mapped)


def test_a_file_with_the_inode_number_of_a_buffer_is_not_that_buffer(gpu: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inode numbers are given by each file system, so on another one somebody may have a file with any number."""
    owner, thief = gpu.program(), gpu.program()
    exported = owner.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle).fd
    number, status = os.fstat(exported).st_ino, os.fstat
    (tmp_path / "bait").write_bytes(bytes(4096))
    with open(tmp_path / "bait", "r+b") as bait:
        real = status(bait.fileno())

        def same_number(fd: int) -> os.stat_result:
            found = status(fd)
            return os.stat_result((found[0], number, *found[2:])) if found.st_ino == real.st_ino else found

        monkeypatch.setattr(os, "fstat", same_number)
        refused(errno.EINVAL, thief, "DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=bait.fileno())
    assert thief.ioctl("DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=exported).handle


def test_a_program_that_lies_about_its_mappings_gets_nobody_elses_memory(gpu: Gpu, held: Held) -> None:
    owner, thief = gpu.program(), gpu.program()
    secret = owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    owner.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=secret, offset=0, size=6, data=owner.memory(b"secret").address)
    [bo] = gpu.shared.objects.values()
    own = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(own))
    thief.lent.append((address, 4096))
    device, inode = bo.pieces[0].buffer.identity
    thief.maps = f"{address:x}-{address + 4096:x} rw-s 00000000 {os.major(device):02x}:{os.minor(device):02x} {inode} /dev/shm/x\n".encode()
    submit(thief, thief.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=4096).handle)
    assert held.submissions[0].bound[0].bo.read(0, 6) == bytes(6)


def test_an_exported_buffer_is_forgotten_with_its_last_descriptor(gpu: Gpu) -> None:
    program = gpu.program()
    for number in range(3):
        handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
        descriptor = program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        assert len(gpu.shared.objects) == len(gpu.shared.orphans) == 1, number
        os.close(descriptor)
        program.received.remove(descriptor)
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle)
        assert not gpu.shared.objects and not gpu.shared.orphans, number


def test_a_descriptor_that_is_no_memory_is_refused(gpu: Gpu) -> None:
    program = gpu.program()
    reading, writing = os.pipe()
    refused(errno.EINVAL, program, "DRM_IOCTL_PRIME_FD_TO_HANDLE", fd=reading)
    os.close(reading)
    os.close(writing)


def test_names_for_buffers(gpu: Gpu) -> None:
    first, other = gpu.program("card0"), gpu.program("card0")
    handles = [first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle for size in (8192, 4096)]
    name, second, again = (first.ioctl("DRM_IOCTL_GEM_FLINK", handle=handle).name for handle in (*handles, handles[0]))
    assert [other.ioctl("DRM_IOCTL_GEM_OPEN", name=number).size for number in (name, second)] == [8192, 4096] and name == again != 0
    refused(errno.ENOENT, other, "DRM_IOCTL_GEM_OPEN", name=max(name, second) + 1)


def test_names_are_for_the_primary_node_alone(gpu: Gpu) -> None:
    """As the kernel's drm_ioctl_permit(): what lacks DRM_RENDER_ALLOW is EACCES on a render node."""
    primary, render = gpu.program("card0"), gpu.program("renderD128")
    name = primary.ioctl("DRM_IOCTL_GEM_FLINK", handle=primary.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle).name
    refused(errno.EACCES, render, "DRM_IOCTL_GEM_OPEN", name=name)
    refused(errno.EACCES, render, "DRM_IOCTL_GEM_FLINK", handle=render.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle)
    for other in ("DRM_IOCTL_GET_MAGIC", "DRM_IOCTL_AUTH_MAGIC", "DRM_IOCTL_SET_MASTER", "DRM_IOCTL_GET_CLIENT"):
        primary.ioctl(other)
        refused(errno.EACCES, render, other)


@pytest.mark.parametrize("mode, stride, fine", [(0, 77, True), (1, 512, True), (1, 128, False), (2, 128, True), (2, 0, False), (3, 512, 0)])
def test_tiling_wants_a_stride_that_fits(gpu: Gpu, mode: int, stride: int, fine: bool) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    if not fine:
        refused(errno.EINVAL, program, "DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=mode, stride=stride)
        return
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=mode, stride=stride)
    assert program.ioctl("DRM_IOCTL_I915_GEM_GET_TILING", handle=handle).mode == mode


def test_a_buffer_leaves_its_addresses_only_when_its_work_is_done(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    submit(program, handle)
    bo = held.submissions[0].bound[0].bo
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    assert bo.bound
    held.finish()
    assert not bo.bound


def test_dma_buf_fences(gpu: Gpu, held: Held) -> None:
    """A dma-buf's fences can be taken out as a sync file and put in again."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    descriptor = program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd
    submit(program, handle, flags=1 << 2)
    answer = program.foreign("dma-buf", 2, descriptor, DMABUF_SYNC_FILE.pack(SimpleNamespace(flags=1, fd=-1)))
    assert answer is not None
    fence = struct.unpack("<Ii", answer)[1]
    other = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    second = program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=other).fd
    program.foreign("dma-buf", 3, second, DMABUF_SYNC_FILE.pack(SimpleNamespace(flags=2, fd=fence)))
    assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=other).busy
    held.finish()
    assert not program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=other).busy
    with open(os.devnull, "rb") as file:
        assert program.foreign("dma-buf", 0, file.fileno(), bytes(8)) is None  # somebody else's


def test_extensions_of_creation(gpu: Gpu) -> None:
    program = gpu.program()

    def link(name: int, after: int = 0) -> int:
        return program.memory(EXTENSION.pack(SimpleNamespace(next=after, name=name, flags=0, r0=0, r1=0, r2=0, r3=0)) + bytes(64)).address

    assert program.ioctl("DRM_IOCTL_I915_GEM_CREATE_EXT", size=4096, extensions=link(0)).handle
    refused(errno.EINVAL, program, "DRM_IOCTL_I915_GEM_CREATE_EXT", size=4096, extensions=link(0, link(1)))
    refused(errno.EFAULT, program, "DRM_IOCTL_I915_GEM_CREATE_EXT", size=4096, extensions=8)
    endless = program.memory(EXTENSION.size)
    endless.buffer.raw = EXTENSION.pack(SimpleNamespace(next=endless.address, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
    refused(errno.E2BIG, program, "DRM_IOCTL_I915_GEM_CREATE_EXT", size=4096, extensions=endless.address)


def test_a_closed_node_lets_go_of_everything(gpu: Gpu) -> None:
    first, other = gpu.program("card0"), gpu.program("card0")
    name = first.ioctl("DRM_IOCTL_GEM_FLINK", handle=first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle).name
    first.node.close()
    end = time.monotonic() + 5
    while gpu.shared.flinks and time.monotonic() < end:
        time.sleep(0.01)
    refused(errno.ENOENT, other, "DRM_IOCTL_GEM_OPEN", name=name)
    assert len(gpu.server.nodes) == 1


def test_threads_that_ask_about_a_tiled_buffer_share_one_comparison(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """SET_DOMAIN of 16 threads once took seconds: each compared the whole buffer, one after the other."""
    program, size = gpu.program(), 1 << 20
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=2, stride=4096)
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=size, data=program.memory(bytes(size)).address)
    assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=0).offset
    compared, asked, all_asked, merge, sync = [], [], threading.Event(), aperture.merge, aperture.LinearView.sync

    def counted(view: aperture.LinearView) -> None:
        asked.append(view)
        if len(asked) == 16:
            threading.Timer(0.1, all_asked.set).start()  # the last one waits by then
        sync(view)

    def held(rows: Any, shown: Any, before: Any) -> None:
        compared.append(shown.size)
        all_asked.wait(30)
        merge(rows, shown, before)

    monkeypatch.setattr(aperture, "merge", held)
    monkeypatch.setattr(aperture.LinearView, "sync", counted)
    ask_at_once(16, program, "DRM_IOCTL_I915_GEM_SET_DOMAIN", handle=handle)
    assert compared == [size] * 2, "the first, and one for all who came while it compared"


@pytest.mark.parametrize("mode, stride, tile_row", [(1, 8192, 16 * 4096), (2, 4096, 32 * 4096), (2, 1 << 18, 1 << 23)])
def test_empty_rows_of_tiles_take_no_memory(gpu: Gpu, mode: int, stride: int, tile_row: int) -> None:
    """A sparse buffer of 1 GiB once took 3 GiB and half a minute when it was mapped."""
    program, size = gpu.program(), 1 << 30
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=mode, stride=stride)
    offset = program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=0).offset
    [bo] = gpu.shared.objects.values()
    assert bo.view is not None
    tiled, view = bo.pieces[0].buffer, bo.view.buffer
    assert tiled.resident() == view.resident() == 0
    descriptor, _ = program.mmap(offset, size)
    os.pwrite(descriptor, b"x", 5 * tile_row + stride)  # the second pixel row of the sixth row of tiles
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=3 * tile_row, size=2, data=program.memory(b"yz").address)
    program.ioctl("DRM_IOCTL_I915_GEM_SET_DOMAIN", handle=handle)
    assert bo.read(5 * tile_row + {1: 512, 2: 16}[mode], 1) == b"x" and os.pread(descriptor, 2, 3 * tile_row) == b"yz"
    assert tiled.resident() <= 2 * tile_row and view.resident() <= 2 * tile_row
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=0, stride=0)
    assert os.pread(descriptor, 2, 3 * tile_row) == b"yz" and os.pread(descriptor, 1, 5 * tile_row + stride) == b"\0"
    os.pwrite(descriptor, b"end", size - 3)
    program.ioctl("DRM_IOCTL_I915_GEM_SET_DOMAIN", handle=handle)
    assert bo.read(size - 3, 3) == b"end" and bo.read(5 * tile_row + {1: 512, 2: 16}[mode], 1) == b"x"
    os.close(descriptor)


def test_a_tiled_buffer_has_one_linear_view_for_all_programs(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    program, made, arrange = gpu.program(), [], aperture.LinearView.arrange
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=1 << 20).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=2, stride=4096)

    def slow(view: aperture.LinearView, tiling: int, stride: int) -> None:
        made.append(view)
        time.sleep(0.2)
        arrange(view, tiling, stride)

    monkeypatch.setattr(aperture.LinearView, "arrange", slow)
    ask_at_once(4, program, "DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle)
    assert len(made) == 1


def test_both_sides_of_a_tiled_buffer_may_change_at_once() -> None:
    """Each byte has what was changed in it; where both changed it, the program's counts."""
    chance = np.random.default_rng(5)
    before = chance.integers(0, 256, (4, 8, 16), np.uint8)
    rows, shown = before.copy(), before.copy()
    rows[0, 0, 0], rows[1, 2, 3], shown[3, 7, 15], shown[1, 2, 3] = rows[0, 0, 0] ^ 1, 77, shown[3, 7, 15] ^ 1, 99
    expected = before.copy()
    expected[0, 0, 0], expected[1, 2, 3], expected[3, 7, 15] = rows[0, 0, 0], 99, shown[3, 7, 15]
    aperture.merge(rows, shown, before)
    assert np.array_equal(rows, expected) and np.array_equal(shown, expected) and np.array_equal(before, expected)

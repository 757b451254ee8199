"""Memory of the server besides buffers: handles, addresses, lists of buffers and submissions that wait count for the program."""

from __future__ import annotations

import errno
import os
import struct
import time
import weakref

import pytest

from softgen.driver.ioctl.execbuffer import LISTED_BYTES, SUBMISSION_BYTES
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.node import OBJECT_BYTES
from softgen.driver.objects.vm import PLACED_BYTES
from softgen.driver.queue import execute
from softgen.memory.store import MemfdBuffer
from tests.driver.execbuffer import END, PINNED, buffer, row, submit
from tests.driver.program import Gpu, Held, Program, served

FEW = 3
MIB = 1 << 20
BLITTER = 3  # I915_EXEC_BLT


def taken(gpu: Gpu) -> int:
    budget: Budget = gpu.shared.budget
    budget.check(0, 1, "settled")
    return budget.other.total()


# -- pages that programs and their work touch without asking


def fill(handle: int, address: int) -> bytes:
    """XY_COLOR_BLT of 32 MiB: 2048 rows of 4096 pixels."""
    return struct.pack("<7I", 2 << 29 | 0x50 << 22 | 3 << 20 | 5, 3 << 24 | 0xF0 << 16 | 1 << 14, 0, 2048 << 16 | 4096, address, 0, handle)


@pytest.mark.parametrize("count, fine", [(1, True), (3, False)])
def test_work_that_touches_more_than_the_limit_is_ended(count: int, fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One submission once took 3 GiB of 512 MiB: no ioctl asks before it touches the pages of sparse buffers."""
    monkeypatch.setattr(execute, "LOOK", 0.0)  # at every poll of the time limit
    monkeypatch.setattr(execute, "LOOK_SHARE", 0)
    with served("kbl", memory_limit=64 * MIB) as gpu:
        program, other = gpu.program(), gpu.program()
        handles = [buffer(program, size=32 * MIB) for _ in range(count)]
        places = [0x1000000 * (2 + 4 * number) for number in range(count)]
        code = b"".join(map(fill, handles, places)) + struct.pack("<2I", END, 0)
        rows = [row(handle, offset=place, flags=PINNED) for handle, place in zip(handles, places, strict=True)]
        submit(program, [*rows, row(buffer(program, code), offset=0x10000, flags=PINNED)], flags=BLITTER)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handles[0], timeout=-1)
        touched = sum(each.resident() for each in gpu.shared.budget.buffers)
        if fine:
            assert touched >= 32 * MIB and not gpu.told
            return
        assert 56 * MIB < touched <= 56 * MIB + 2 * 16 * MIB and len(gpu.told) == 1
        assert "MiB, more than the memory limit leaves (" in gpu.told[0]
        with pytest.raises(OSError, match="Input/output error"):
            submit(program, rows[:1], flags=BLITTER)
        for handle in handles:
            program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        submit(other, [row(buffer(other, struct.pack("<2I", END, 0)))])


def test_whose_work_takes_too_much() -> None:
    """More than a process may have, or more than it had while there is too much in all."""
    budget = Budget(80 * MIB)
    one, two = (budget.adopt(pid, MemfdBuffer(1 << 40)) for pid in (1, 2))
    one.view[: 40 * MIB] = bytes(40 * MIB)
    assert budget.outgrown(1, 0) == (40 * MIB, False)
    two.view[: 41 * MIB] = bytes(41 * MIB)
    assert budget.outgrown(1, 40 * MIB) == (40 * MIB, False), "it was another"
    assert budget.outgrown(2, 40 * MIB) == (41 * MIB, True)
    budget.note(3, 71 * MIB)
    assert budget.outgrown(3, 1 << 40) == (71 * MIB, True)
    small = Budget(80 * MIB)
    small.adopt(1, MemfdBuffer(10 * MIB))
    assert small.outgrown(1, 5) == (5, False) and not small.counted, "nothing is counted where all pages fit"


def test_exported_buffers_count_with_all_their_pages() -> None:
    """Programs touch them with fallocate() and no ioctl: 1,600 MiB of 256."""
    with served("kbl", Held(), memory_limit=256 * MIB) as gpu:
        program, taken = gpu.program(), []
        handles = [buffer(program, size=100 * MIB) for _ in range(4)]
        assert program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handles[0]).fd
        for _ in range(3):
            taken.append(program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handles[1]).fd)
        for _ in range(2):
            assert program.refused("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handles[2])[0] == errno.ENOMEM
            time.sleep(0.3)  # until pages are counted again
        os.posix_fallocate(taken[0], 0, 100 * MIB)
        assert program.refused("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handles[2])[0] == errno.ENOMEM
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handles[0])
        small = buffer(program, size=20 * MIB)
        assert program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=small).fd


# -- objects


def test_handles_of_buffers_count_and_are_given_back(gpu: Gpu) -> None:
    """USERPTR buffers over the same memory have no descriptors that would bound them."""
    program = gpu.program()
    before, handles = taken(gpu), [buffer(program) for _ in range(FEW)]
    assert taken(gpu) - before == FEW * OBJECT_BYTES
    for handle in handles:
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    assert taken(gpu) == before


def test_a_buffer_that_gets_no_handle_is_gone(gpu: Gpu) -> None:
    program, one = gpu.program(), gpu.program()
    shared = program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=buffer(program)).fd
    for name in (program.name, one.name):
        gpu.server.nodes[name].objects.most = 1 if name == program.name else 0
    for refused, fields in (("I915_GEM_CREATE", {"size": 4096}), ("PRIME_FD_TO_HANDLE", {"fd": shared})):
        assert one.refused(f"DRM_IOCTL_{refused}", **fields)[0] == errno.ENOMEM
    (bo,) = gpu.shared.objects.values()
    assert bo.handles == 1
    assert len(gpu.server.nodes[one.name].handles) == 0


def test_addresses_and_lists_count_and_are_given_back(gpu: Gpu, held: Held) -> None:
    """Each address space may have all buffers of a program, and each context keeps lists of them."""
    program = gpu.program()
    handles = [buffer(program) for _ in range(FEW)]
    before, context = taken(gpu), program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
    own = taken(gpu) - before
    submit(program, [row(handle) for handle in handles], context=context)
    assert taken(gpu) - before - own == FEW * (PLACED_BYTES + LISTED_BYTES) + SUBMISSION_BYTES
    held.finish()
    program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", context=context)
    assert taken(gpu) == before


def test_a_buffer_that_is_closed_has_no_address_that_counts(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    one, other = buffer(program), buffer(program, struct.pack("<I", END))
    before = taken(gpu)
    submit(program, [row(one), row(other)])
    held.finish()
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=one)
    assert taken(gpu) - before == PLACED_BYTES - OBJECT_BYTES


def test_submissions_that_wait_count_until_they_are_done(gpu: Gpu, held: Held) -> None:
    program: Program = gpu.program()
    handle = buffer(program)
    submit(program, [row(handle)])
    held.finish()
    submit(program, [row(handle, offset=0x100000)])
    held.finish()
    before = taken(gpu)
    for _ in range(FEW):
        submit(program, [row(handle, offset=0x100000)])
    assert taken(gpu) - before == FEW * SUBMISSION_BYTES, "they have the same list"
    while held.submissions:
        held.finish()
    assert taken(gpu) == before


def test_what_an_object_takes_is_given_back_with_it() -> None:
    class Owner:
        pass

    budget, owner = Budget(1 << 30), Owner()
    budget.hold(owner, 7, 100)
    budget.check(7, 1, "settled")
    assert budget.other == {7: 100}
    ended = weakref.ref(owner)
    del owner
    budget.check(7, 1, "settled")
    assert ended() is None and not budget.other

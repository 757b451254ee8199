"""Memory of the server besides buffers: handles, addresses, lists of buffers and submissions that wait count for the program."""

from __future__ import annotations

import errno
import struct
import weakref

from softgen.driver.ioctl.execbuffer import LISTED_BYTES, SUBMISSION_BYTES
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.node import OBJECT_BYTES
from softgen.driver.objects.vm import PLACED_BYTES
from tests.driver.execbuffer import END, buffer, row, submit
from tests.driver.program import Gpu, Held, Program

FEW = 3


def taken(gpu: Gpu) -> int:
    budget: Budget = gpu.shared.budget
    budget.check(0, 1, "settled")
    return budget.other.total()


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

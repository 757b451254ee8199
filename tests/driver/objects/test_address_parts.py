"""Parts of 4 GiB of the host's addresses: a process that pins its buffers far apart does not take those of others."""

from __future__ import annotations

import errno
import gc
import os
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from softgen.driver.errors import Errno
from softgen.driver.objects import address_parts
from softgen.driver.objects.address_parts import MOST, RESERVE, SHARE, AddressParts, parts
from softgen.driver.run import server
from softgen.memory.arena import MOST_ARENAS
from tests.driver.execbuffer import END, HIGH, PINNED, buffer, refused, row, submit
from tests.driver.program import Gpu, served

GIB4 = 1 << 32
FLAGS = PINNED | HIGH


def test_a_process_has_a_quarter_of_what_there_is() -> None:
    assert MOST == MOST_ARENAS - RESERVE == 8128 and SHARE == 2032
    log = list[str]()
    held = AddressParts(log.append)
    for pid in range(4):
        held.take(pid, SHARE - 1)
        held.take(pid, 1)
    for pid, count in ((0, 1), (0, 5000), (4, 1)):
        with pytest.raises(Errno) as found:
            held.take(pid, count)
        assert found.value.number == errno.ENOSPC
    assert log[0] == "process 0 has buffers in 2032 parts of 4 GiB of its address spaces, and there are no more for it"
    held.give(2, 10)
    held.take(4, 10)


@pytest.mark.parametrize(("start", "end", "expected"), [
    (0, 1, [0]), (GIB4 - 1, GIB4, [0]), (GIB4 - 1, GIB4 + 1, [0, 1]), (5 * GIB4, 8 * GIB4, [5, 6, 7])])  # fmt: skip
def test_parts_of_a_range(start: int, end: int, expected: list[int]) -> None:
    assert list(parts(start, end)) == expected


def soon(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    return holds()


def taken(gpu: Gpu) -> int:
    gpu.shared.parts.take(0, 0)  # which counts what finalizers have given back
    return gpu.shared.parts.taken[os.getpid()]


def test_buffers_that_are_pinned_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """9,000 buffers of 4 KiB, each in a part of its own, once took all parts: then another program's work failed."""
    monkeypatch.setattr(address_parts, "SHARE", 6)
    monkeypatch.setattr(server, "DRAIN", 0.1)
    with served("kbl") as gpu:
        program, other = gpu.program(), gpu.program()
        batch = row(buffer(program, struct.pack("<2I", END, 0)), offset=0x10000, flags=FLAGS)  # part 0
        handles = [buffer(program) for _ in range(6)]

        def pinned(*numbers: int) -> list[SimpleNamespace]:
            return [*(row(handles[number], offset=(number + 1) * GIB4, flags=FLAGS) for number in numbers), batch]

        submit(program, pinned(0, 1, 2))
        submit(program, pinned(3, 2))
        assert taken(gpu) == 5
        refused(errno.ENOSPC, program, pinned(4, 5))
        submit(program, pinned(1, 4))
        refused(errno.ENOSPC, program, pinned(5))
        across = row(handles[5], offset=6 * GIB4 - 4096, flags=FLAGS)
        submit(program, [across, batch])  # its only page is in the part of another
        submit(program, pinned(0))
        program.node.close()
        assert soon(lambda: taken(gpu) == 0), "a space that is gone gives its parts back"
        spaces = [other.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(6)]
        plain = buffer(other, struct.pack("<2I", END, 0))
        for context in spaces:
            submit(other, [row(plain)], context=context)  # each address space has a part of its own
        refused(errno.ENOSPC, other, [row(plain)])
        other.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", context=spaces[0])
        assert soon(lambda: taken(gpu) == 5)
        submit(other, [row(plain)])

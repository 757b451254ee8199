"""Copies of a program's memory: only bytes that changed are written back."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver import user_copy
from softgen.driver.user_copy import Copied, changed
from softgen.memory.store import MemfdBuffer
from tests.driver.execbuffer import END, PINNED, SEMAPHORE, STORE, buffer, row, submit
from tests.driver.program import served

PART, ADDRESS = 4096, 0x7000_0000_0100


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bytes]]:
    """What was written to processes: which, where, what."""
    found = list[tuple[int, int, bytes]]()
    monkeypatch.setattr(user_copy, "PART", PART)
    monkeypatch.setattr(user_copy, "write_to", lambda pid, address, data: found.append((pid, address, bytes(data))))
    return found


def copied(size: int) -> Copied:
    """A copy of memory full of letters."""
    def read_into(address: int, view: memoryview) -> None:
        assert address == ADDRESS
        view[:] = b"a" * len(view)

    call: Any = SimpleNamespace(read_into=read_into)
    copy = Copied(77, ADDRESS, MemfdBuffer(size, "copy"))
    copy.bring(call)
    return copy


@pytest.mark.parametrize("at, data, writes", [
    (0, b"x", [(0, b"x")]), (5, b"xyz", [(5, b"xyz")]), (5, b"xay", [(5, b"x"), (7, b"y")]), (9, b"aaa", []),
    (PART - 1, b"xy", [(PART - 1, b"x"), (PART, b"y")]), (2 * PART + 3, b"x", [(2 * PART + 3, b"x")]),
    (3 * PART - 1, b"x", [(3 * PART - 1, b"x")]),
    (PART - 2, b"x" * (PART + 3), [(PART - 2, b"xx"), (PART, b"x" * PART), (2 * PART, b"x")]),
])  # fmt: skip
def test_changed_bytes_are_written_back_once(written: list[tuple[int, int, bytes]], at: int, data: bytes,
                                             writes: list[tuple[int, bytes]]) -> None:  # fmt: skip
    copy = copied(3 * PART)
    copy.give_back()
    assert not written
    copy.buffer.view[at : at + len(data)] = data
    copy.give_back()
    assert written == [(77, ADDRESS + offset, part) for offset, part in writes]
    copy.give_back()
    assert len(written) == len(writes)


@pytest.mark.parametrize("then, now, ranges", [
    (b"", b"", []), (b"abc", b"abc", []), (b"abc", b"xbc", [(0, 1)]), (b"abc", b"abx", [(2, 3)]), (b"abc", b"xyz", [(0, 3)]),
    (b"abcde", b"xbcyz", [(0, 1), (3, 5)]),
])  # fmt: skip
def test_ranges_that_differ(then: bytes, now: bytes, ranges: list[tuple[int, int]]) -> None:
    assert changed(then, now) == ranges


def test_memory_that_is_gone_is_a_fault_of_the_program() -> None:
    """It is unmapped while work that writes to it waits for a semaphore."""
    with served("kbl") as gpu:
        program = gpu.program()
        memory = mmap.mmap(-1, 4096)  # shared, so it is copied
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        program.lent.append((address, 4096))
        user = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=4096).handle
        semaphore = buffer(program)
        batch = buffer(program, struct.pack("<10I", SEMAPHORE | 4 << 12 | 1 << 15, 1, 0x20000, 0, STORE, 0x10000, 0, 7, END, 0))
        submit(program, [row(handle, offset=at, flags=PINNED) for handle, at in ((user, 0x10000), (semaphore, 0x20000), (batch, 0x30000))])
        memory.close()
        descriptor, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=semaphore, flags=2).offset, 4096)
        with mmap.mmap(descriptor, 4096, offset=at) as view:
            view[0] = 1
        os.close(descriptor)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        (told,) = gpu.told
        assert "itself" not in told and f"at {address:#x} cannot be written: Bad address" in told

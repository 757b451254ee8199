"""Copies of a program's memory: only bytes that changed are written back."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.ioctl import user_copy
from softgen.driver.ioctl.user_copy import Copied, changed
from softgen.driver.objects.buffer_claim import overlaps, sharing, union
from softgen.driver.run import process
from softgen.driver.run.protocol import Call
from softgen.memory.store import MemfdBuffer
from tests.driver.execbuffer import END, PINNED, SEMAPHORE, STORE, buffer, content, row, submit
from tests.driver.program import Program, served

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

    call: Any = SimpleNamespace(read_into=read_into, channel=SimpleNamespace(pid=77))
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


def test_a_copy_is_named_without_its_contents() -> None:
    """What a program computes with has no place in a message."""
    assert "aaa" not in repr(copied(PART)) and str(ADDRESS) in repr(copied(PART)) and copied(PART).end == ADDRESS + PART


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


def test_a_copy_is_of_the_process_that_made_it_whoever_submits_it() -> None:
    """A child that inherited the node has other memory at the same address, or none."""
    memory = ctypes.create_string_buffer(b"of the parent", 4096)
    copy = Copied(os.getpid(), ctypes.addressof(memory), MemfdBuffer(4096, "copy"))
    call: Any = SimpleNamespace(read_into=None, channel=SimpleNamespace(pid=os.getppid()))
    copy.bring(call)
    assert bytes(copy.buffer.view[:13]) == b"of the parent" and copy.before[0].startswith(b"of the parent")
    with pytest.raises(Errno, match="cannot be read") as found:
        Copied(os.getpid(), 0x1000, MemfdBuffer(4096, "copy")).bring(call)
    assert found.value.number == errno.EFAULT


# -- several submissions that share a copy

USER = 0x10000  # where the memory is in the GPU's address space


def shared_memory(program: Program) -> mmap.mmap:
    """A page that others may map too, so it is copied; its handles are those of user()."""
    memory = mmap.mmap(-1, 4096)
    program.lent.append((ctypes.addressof(ctypes.c_char.from_buffer(memory)), 4096))
    return memory


def user(program: Program) -> int:
    """A buffer of the page that was lent."""
    (address, size), = program.lent
    return int(program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=size).handle)


def store(address: int, value: int) -> bytes:
    return struct.pack("<4I", STORE, address, 0, value)


def test_two_threads_that_submit_the_same_copy_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one may copy in only when the first one's results are written back."""
    bring, give_back, order = Copied.bring, Copied.give_back, count()
    both, written, brought = threading.Event(), threading.Event(), threading.Event()

    def slow_bring(copy: Copied, call: Call) -> None:
        if not (number := next(order)):
            both.wait(0.3)  # if it can, the other one gets here as well
        else:
            both.set()
            written.wait(10)
        bring(copy, call)
        if number:
            brought.set()

    def slow_give_back(copy: Copied) -> None:
        if bytes(copy.buffer.view[:8]) != bytes(8):
            written.set()
            brought.wait(0.3)
        give_back(copy)

    with served("kbl") as gpu:
        program = gpu.program()
        memory = shared_memory(program)
        handle = user(program)
        monkeypatch.setattr(Copied, "bring", slow_bring)
        monkeypatch.setattr(Copied, "give_back", slow_give_back)

        def work(program: Program, number: int) -> None:
            context = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
            batch = buffer(program, store(USER + 4 * number, number + 1) + struct.pack("<2I", END, 0))
            submit(program, [row(handle, offset=USER, flags=PINNED), row(batch, offset=0x30000, flags=PINNED)], context=context)
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)

        threads = [threading.Thread(target=work, args=(program.thread(), number)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert struct.unpack("<2I", memory[:8]) == (1, 2) and gpu.told == []


def test_another_buffer_of_the_same_memory_is_copied_in_when_results_are_there() -> None:
    """Each has a copy of its own; on hardware both are the same pages."""
    copy_dword = 0x17000003  # MI_COPY_MEM_MEM
    with served("kbl") as gpu:
        program = gpu.program()
        memory, flag, target = shared_memory(program), buffer(program), buffer(program)
        places = {"user": USER, "flag": 0x20000, "batch": 0x30000, "target": 0x40000}
        waits = struct.pack("<4I", SEMAPHORE | 4 << 12 | 1 << 15, 1, places["flag"], 0)
        writes = buffer(program, waits + store(USER, 7) + struct.pack("<2I", END, 0))
        reads = buffer(program, struct.pack("<7I", copy_dword, places["target"], 0, USER, 0, END, 0))
        first = {"user": user(program), "flag": flag, "batch": writes}
        second = {"user": user(program), "target": target, "batch": reads}
        assert first["user"] != second["user"]
        descriptor, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag, flags=2).offset, 4096)
        opens = threading.Timer(0.2, os.pwrite, (descriptor, struct.pack("<I", 1), at))
        opens.start()
        for handles in (first, second):
            rows = [row(handle, offset=places[name], flags=PINNED) for name, handle in handles.items()]
            submit(program, rows)
        opens.join()
        os.close(descriptor)
        assert content(program, target)[0] == 7 and memory[0] == 7 and gpu.told == []


def test_a_submission_that_is_refused_leaves_the_copy_to_others() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        memory = shared_memory(program)
        handle, batch = user(program), buffer(program, store(USER, 3) + struct.pack("<2I", END, 0))
        rows = [row(handle, offset=USER, flags=PINNED), row(batch, offset=0x30000, flags=PINNED)]
        for wrong in ({"start": 4096, "size": 8}, {"flags": 1 << 16, "fence": 99}):  # beyond the batch; no such sync file
            with pytest.raises(OSError):
                submit(program, rows, **wrong)
        submit(program, rows)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert memory[0] == 3


@pytest.mark.parametrize("wanted, found", [
    ((1, 0, 1), False), ((1, 0, 2), True), ((1, 5, 6), True), ((1, 6, 8), False), ((1, 6, 9), True), ((1, 9, 99), True),
    ((1, 10, 99), False), ((1, 0, 99), True), ((2, 1, 6), False), ((3, 4, 5), True), ((0, 0, 99), False),
])  # fmt: skip
def test_ranges_of_one_process_overlap(wanted: tuple[int, int, int], found: bool) -> None:
    joined = union([(3, 4, 5), (1, 3, 6), (1, 8, 10), (1, 1, 4)])
    assert joined == [(1, 1, 6), (1, 8, 10), (3, 4, 5)] and overlaps(joined, wanted) is found


def test_copies_of_the_same_memory_are_claimed_together() -> None:
    """Of one process, where they have a byte in common; not those beside them, of others, or buffers that are no copies."""
    def bo(pid: int, address: int, end: int) -> Any:
        return SimpleNamespace(copied=SimpleNamespace(pid=pid, address=address, end=end))

    mine, inside, across, beside, other, plain = (bo(1, 100, 200), bo(1, 120, 130), bo(1, 199, 300), bo(1, 200, 300), bo(2, 100, 200),
                                                  SimpleNamespace(copied=None))  # fmt: skip
    gpu: Any = SimpleNamespace(lock=threading.Lock(), copies=[mine, inside, across, beside, other, plain])
    assert sharing(gpu, [mine, plain]) == [mine, inside, across]  # type: ignore[list-item]
    assert sharing(gpu, [other]) == [other] and sharing(gpu, [plain]) == []  # type: ignore[list-item]


def test_a_process_with_the_number_of_one_that_ended_is_another() -> None:
    """Its memory is neither read nor written: the first one may have passed its node on before it ended. The number is in use again here,
    because the parent is only told that the process has another one."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    memory = ctypes.create_string_buffer(b"mine", 8)
    copy = Copied(child.pid, ctypes.addressof(memory), MemfdBuffer(8, "copy"))
    assert process.process(child.pid) is copy.process and not copy.process.ended()
    child.communicate(b"\n")
    assert copy.process.ended() and process.process(child.pid) is not copy.process
    copy.pid = os.getpid()
    copy.before = [bytes(8)]
    copy.buffer.view[:] = b"stranger"
    copy.give_back()
    assert memory.raw[:4] == b"mine"
    for pid in (copy.pid, 1):
        asked: Any = SimpleNamespace(channel=SimpleNamespace(pid=pid), read_into=lambda address, view: None)
        with pytest.raises(Errno) as refused:
            copy.bring(asked)
        assert refused.value.number == errno.EFAULT
    assert bytes(copy.buffer.view) == b"stranger"


def test_any_number_of_threads_may_ask_whether_a_process_has_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        found = process.process(program.pid)
        with ThreadPoolExecutor(8) as threads:
            assert not any(threads.map(lambda number: found.ended(), range(20_000)))
    assert found.ended()

"""Memory that programs make the server take: bounded before it is allocated, answered with ENOMEM, given back."""

import errno
import gc
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from softgen.driver.errors import Errno
from softgen.driver.objects import budget as module
from softgen.driver.objects.budget import Budget
from softgen.driver.run.protocol import MESSAGE, Call
from softgen.driver.shim import shim_h
from softgen.driver.uapi.uapi import EXEC_OBJECT
from softgen.memory.host import host_memory
from softgen.memory.store import MemfdBuffer
from tests.driver.program import Gpu, Held, Program, served

MIB = 1 << 20


def refused(program: Program, name: str, **fields: int) -> None:
    with pytest.raises(OSError) as found:
        program.ioctl(name, **fields)
    assert found.value.errno == errno.ENOMEM


def tiled(program: Program, size: int) -> int:
    handle: int = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=512)
    return handle


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) << 10


class Growth:
    """How much the memory of this process grew meanwhile, at its peak."""

    def __enter__(self) -> "Growth":
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak starts from now
        self.before = memory("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = memory("VmHWM") - self.before


def test_a_server_takes_three_quarters_of_the_hosts_memory_and_a_process_most_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "host_memory", lambda: 32 << 30)
    assert module.default_limit() == 24 << 30
    budget = Budget(module.default_limit())
    assert (budget.limit, budget.client_limit) == (24 << 30, 21 << 30)


def test_memory_that_was_taken_without_asking_counts_for_later_requests() -> None:
    budget = Budget(80 * MIB)
    budget.check(1, 0, "nothing")
    budget.note(1, 60 * MIB)
    budget.check(1, 10 * MIB, "more")
    budget.note(1, 20 * MIB)
    for more in (0, MIB):
        with pytest.raises(Errno, match="memory limit"):
            budget.check(1, more, "more")
    budget.note(1, -80 * MIB)
    budget.check(1, 70 * MIB, "more")
    assert not budget.other


def test_untouched_pages_cost_nothing_and_touched_ones_are_counted() -> None:
    budget = Budget(80 * MIB)
    buffer = budget.adopt(1, MemfdBuffer(1 << 40))
    budget.check(1, 70 * MIB, "more")
    with pytest.raises(Errno, match="memory limit"):
        budget.check(1, 71 * MIB, "more")
    buffer.view[: 8 * MIB] = b"x" * (8 * MIB)
    budget.counted = 0.0
    with pytest.raises(Errno, match="memory limit"):
        budget.check(1, 63 * MIB, "more")
    budget.check(1, 62 * MIB, "more")


def test_no_process_takes_what_others_need_and_all_together_stay_below_the_limit() -> None:
    log: list[str] = []
    budget = Budget(80 * MIB, log.append)
    with pytest.raises(Errno):
        budget.take(1, 71 * MIB, "more")
    assert len(log) == 1 and log[0].startswith("process 1 may not take more memory") and "--memory-limit" in log[0]
    budget.take(1, 70 * MIB, "more")
    budget.take(2, 10 * MIB, "more")
    with pytest.raises(Errno):
        budget.take(2, 1, "more")
    assert log[1].startswith("the server may not take more memory (80 MiB taken")
    budget.give(1, 70 * MIB)
    budget.take(2, 60 * MIB, "more")


@pytest.mark.parametrize("others, who", [(0, "process 1"), (9, "process 1"), (10, "the server")])
def test_whose_limit_it_was_is_logged_once(others: int, who: str) -> None:
    """Of 80 MiB a process may have 70, and here it wants 71."""
    log: list[str] = []
    budget = Budget(80 * MIB, log.append)
    budget.take(2, others * MIB, "others")
    for _ in range(2):
        with pytest.raises(Errno, match="more: 0x4700000 bytes are more than the memory limit leaves"):
            budget.take(1, 71 * MIB, "more")
    taken = others if who == "the server" else 0
    assert log == [f"{who} may not take more memory ({taken} MiB taken; the server's limit is 80 MiB, a process's 70 MiB: --memory-limit)"]


def test_what_was_granted_counts_until_pages_are_counted_again() -> None:
    """Otherwise many requests in a quarter of a second would each find the same room."""
    budget = Budget(80 * MIB)
    sparse = budget.adopt(1, MemfdBuffer(1 << 40))
    for _ in range(20):
        budget.check(1, 10 * MIB, "more")
        sparse.view[budget.since[1] : budget.since[1] + MIB] = b"x" * MIB
    assert budget.resident[1] > 0, "pages were counted when the grants added up"


class Sparse:
    """A buffer of a TiB, and how often its pages were counted."""

    capacity, touched, counted = 1 << 40, 0, 0

    def resident(self) -> int:
        self.counted += 1
        return self.touched


def test_pages_are_counted_when_grants_add_up_and_after_a_quarter_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 MiB a process may have 70."""
    now = [100.0]
    monkeypatch.setattr("softgen.driver.objects.budget.time", SimpleNamespace(monotonic=lambda: now[0]))
    budget, buffer = Budget(80 * MIB), Sparse()
    budget.check(1, 70 * MIB, "before there are buffers")
    budget.adopt(1, buffer)  # type: ignore[arg-type]
    steps = ((0, 30, 1), (0, 30, 1), (0, 10, 1), (0, 1, 2), (0, 69, 2), (0, 1, 3), (0.125, 1, 3), (0.125, 1, 4), (1, 1, 5))
    for after, more, counted in steps:
        now[0] += after
        budget.check(1, more * MIB, "more")
        assert buffer.counted == counted
    buffer.touched = 70 * MIB
    with pytest.raises(Errno):
        budget.check(1, 70 * MIB, "more")


def test_what_fits_with_all_pages_is_not_looked_at_again_until_memory_is_taken() -> None:
    budget, buffer = Budget(8 * MIB), Sparse()
    buffer.capacity = buffer.touched = 7 * MIB
    budget.adopt(1, buffer)  # type: ignore[arg-type]
    budget.check(1, 0, "more")
    lock, budget.lock = budget.lock, None  # type: ignore[assignment]
    budget.check(1, 0, "more")
    budget.lock = lock
    assert buffer.counted == 0
    other = Sparse()
    other.capacity = other.touched = 1
    budget.adopt(1, other)  # type: ignore[arg-type]
    with pytest.raises(Errno):
        budget.check(1, 0, "more")


def test_a_buffer_that_is_gone_counts_no_more() -> None:
    budget = Budget(80 * MIB)
    buffers = [budget.adopt(1, MemfdBuffer(60 * MIB))]
    budget.check(1, 1, "more")
    assert budget.size[1] == 60 * MIB
    buffers.clear()
    gc.collect()
    budget.check(1, 70 * MIB, "more")
    assert not budget.size and not budget.buffers


def test_the_memory_of_the_host_is_known() -> None:
    assert 1 << 26 < host_memory() < 1 << 50


def test_a_linear_view_of_a_sparse_buffer_is_refused_before_anything_is_allocated() -> None:
    with served("kbl", Held(), memory_limit=256 * MIB) as gpu:
        program = gpu.program()
        handle = tiled(program, 64 << 30)
        with Growth() as growth:
            refused(program, "DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=0)
        assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=2).offset, "the buffer itself can be mapped"
        assert growth.bytes < 16 * MIB
        small = tiled(program, 32 * MIB)
        assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=small, flags=0).offset
        assert gpu.shared.budget.other.total() == 2 * 32 * MIB + 4096 + 2 * 1024, "and a context and two handles"
        other = tiled(program, 66 * MIB)
        refused(program, "DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=other, flags=0)
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=small)
        gc.collect()
        assert program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=other, flags=0).offset
        assert len(gpu.log) == 1 and "may not take more memory" in gpu.log[0]


@pytest.mark.parametrize("near", [True, False])
def test_reading_and_writing_a_large_buffer_needs_no_copy_of_it(near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not near:
        monkeypatch.setattr("softgen.driver.run.protocol.read_ranges", lambda pid, wanted, into: False)
        monkeypatch.setattr("softgen.driver.run.protocol.write_range", lambda pid, address, data: False)
    size = 128 * MIB
    with served("kbl", Held()) as gpu:
        program = gpu.program()
        data = program.memory(b"0123456789abcdef" * (size // 16))
        handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
        program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=size, data=data.address)
        data.buffer[size - 1] = b"?"
        with Growth() as growth:
            program.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=handle, size=size, data=data.address)
            program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=size, data=data.address)
        assert growth.bytes < 64 * MIB
        assert data.buffer[size - 1] == b"f" and bytes(data.buffer[:16]) == b"0123456789abcdef"


def test_a_program_beyond_its_limit_is_refused_and_recovers(gpu: Gpu) -> None:
    with served("kbl", Held(), memory_limit=64 * MIB) as gpu:
        program = gpu.program()
        data = program.memory(16 * MIB)
        handles = [program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=16 * MIB).handle for _ in range(4)]
        fields = {"size": 16 * MIB, "data": data.address}
        for handle in handles[:3]:
            program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, **fields)
        refused(program, "DRM_IOCTL_I915_GEM_PWRITE", handle=handles[3], **fields)
        refused(program, "DRM_IOCTL_I915_GEM_PREAD", handle=handles[3], **fields)
        for view in gpu.shared.objects.values():
            view.views(0, 16 * MIB)[0][:] = bytes(16 * MIB)  # as work of the GPU may do: all pages of all four
        gpu.shared.budget.counted = 0.0
        row = SimpleNamespace(**{**dict.fromkeys(EXEC_OBJECT.names, 0), "handle": handles[0]})
        rows = program.memory(EXEC_OBJECT.pack(row))
        refused(program, "DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=1)
        refused(program, "DRM_IOCTL_I915_GEM_CREATE", size=4096)
        for handle in handles[1:]:
            program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=1)


def test_a_program_may_submit_with_all_the_memory_that_it_may_have(gpu: Gpu) -> None:
    """To the last byte: a submission takes none itself. One byte more, and it is refused."""
    program, budget, pid = gpu.program(), gpu.shared.budget, os.getpid()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=4096, data=program.memory(4096).address)
    rows = program.memory(handle.to_bytes(4, "little").ljust(56, b"\0"))
    budget.check(pid, 1, "settled")
    budget.take(pid, budget.client_limit - budget.size[pid] - budget.other[pid], "the rest")
    program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=1)
    budget.note(pid, 1)
    refused(program, "DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=1)


def test_what_an_ioctl_takes_is_given_back_with_its_answer() -> None:
    """Once, also where the ioctl fails."""
    with served("kbl", Held()) as gpu:
        program, budget = gpu.program(), gpu.shared.budget
        before = budget.other.total()
        rows = program.memory(128 << 10)  # of handle 0, which is none; so many bytes that they are counted
        for _ in range(3):
            with pytest.raises(OSError, match="No such file"):
                program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=2000)
        program.ioctl("DRM_IOCTL_VERSION")  # is answered when what those took was given back
        call = Call(SimpleNamespace(budget=budget, pid=1))  # type: ignore[arg-type]
        call.reserve(MIB)
        call.release()
        call.release()
        budget.check(1, 1, "settled")
        assert budget.other.total() == before


TABLES = {"DRM_IOCTL_I915_GEM_CONTEXT_CREATE": "contexts", "DRM_IOCTL_SYNCOBJ_CREATE": "syncobjs", "DRM_IOCTL_I915_GEM_VM_CREATE": "vms"}


@pytest.mark.parametrize("create, table", TABLES.items())
def test_handles_of_a_node_are_bounded(gpu: Gpu, create: str, table: str) -> None:
    program, other = gpu.program(), gpu.program()
    handles = getattr(gpu.server.nodes[program.name], table)
    assert handles.most <= 1 << 20
    handles.most = 3
    for _ in range(3 - len(handles.items)):
        program.ioctl(create)
    refused(program, create)
    other.ioctl(create)


@pytest.mark.parametrize("size", [900 << 20, 1 << 15])
def test_a_message_longer_than_any_request_ends_the_channel(gpu: Gpu, size: int) -> None:
    program = gpu.program()
    program.channel.sendall(MESSAGE.pack(shim_h.IOCTL, size, 0x6400, 0, program.node.fileno(), program.name))
    program.channel.settimeout(5)
    assert program.channel.recv(1, socket.MSG_WAITALL) == b""
    assert program.thread().ioctl("DRM_IOCTL_VERSION").major == 1


@pytest.mark.parametrize("name, removal", [
    ("DRM_IOCTL_SYNCOBJ_CREATE", "DRM_IOCTL_SYNCOBJ_DESTROY"), ("DRM_IOCTL_I915_GEM_CONTEXT_CREATE", "DRM_IOCTL_I915_GEM_CONTEXT_DESTROY"),
    ("DRM_IOCTL_I915_GEM_VM_CREATE", "DRM_IOCTL_I915_GEM_VM_DESTROY")])  # fmt: skip
def test_objects_of_the_server_count_and_are_given_back(name: str, removal: str) -> None:
    """A node may have a million sync objects, and a program any number of nodes."""
    with served("kbl", Held(), memory_limit=MIB) as gpu:
        programs = [gpu.program() for _ in range(3)]
        before, made, field = gpu.shared.budget.other.total(), [], {"S": "handle", "C": "context", "V": "vm"}[name.split("_")[-2][0]]
        with pytest.raises(OSError) as refused:
            while len(made) < 10000:
                made.append(getattr(programs[len(made) % 3].ioctl(name), field))
        assert refused.value.errno == errno.ENOMEM and 100 < len(made)
        programs[0].ioctl(removal, **{field: made[0]})
        programs[0].ioctl(name)
        for program in programs[:2]:
            program.node.close()
        end = time.monotonic() + 10
        while len(gpu.server.nodes) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        for _ in range(100):
            programs[2].ioctl(name)
        assert gpu.shared.budget.other.total() > before


@pytest.mark.parametrize("node", ["renderD128", "card0"])
def test_a_node_that_the_limit_leaves_no_memory_for_is_not_opened(node: str) -> None:
    """ENOMEM; and one that is closed leaves room for another."""
    with served("kbl", Held(), memory_limit=MIB) as gpu:
        program = gpu.program()
        with pytest.raises(OSError):
            while True:
                program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE")
        with pytest.raises(OSError) as refused:
            gpu.program(node)
        assert refused.value.errno == errno.ENOMEM and len(gpu.server.nodes) == gpu.shared.opened == 1
        for handle in range(1, 10):
            program.ioctl("DRM_IOCTL_SYNCOBJ_DESTROY", handle=handle)
        assert gpu.program(node).ioctl("DRM_IOCTL_VERSION").major == 1 and gpu.shared.opened == 2

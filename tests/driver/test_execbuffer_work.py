"""EXECBUFFER2: contexts, engines, and work that is really done."""

import ctypes
import errno
import mmap
import os
import struct
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.ioctl import context as contexts
from softgen.driver.ioctl.context import ENGINES, VM
from softgen.driver.objects.submission import Submission
from softgen.driver.queue.queue import DeferredRun
from softgen.driver.run.protocol import Channel, ShimMessage
from softgen.driver.shim.shim_h import READ
from softgen.driver.uapi.uapi import CONTEXT_PARAM, EXTENSION
from tests.driver.execbuffer import (
    END,
    FIRST,
    PINNED,
    SEMAPHORE,
    STORE,
    buffer,
    content,
    refused,
    row,
    submit,
)
from tests.driver.program import Gpu, Held, Program, served

# -- contexts and engines


def context(program: Program, **param: int) -> int:
    """A context made with one parameter set."""
    head = EXTENSION.pack(SimpleNamespace(next=0, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
    setting = CONTEXT_PARAM.pack(SimpleNamespace(**{**dict.fromkeys(CONTEXT_PARAM.names, 0), **param}))
    return int(program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE", flags=1, extensions=program.memory(head + setting).address).context)


def test_entries_of_an_engine_map_have_states_of_their_own() -> None:
    """Mesa's iris draws and computes in two entries of one context, both of the render engine; legacy rings share a state."""
    general, load, store = 0x2600, 0x11000001, 0x12000002  # CS_GPR 0, MI_LOAD_REGISTER_IMM, MI_STORE_REGISTER_MEM
    with served("kbl") as gpu:
        program = gpu.program()
        engines = program.memory(struct.pack("<QHHHH", 0, 0, 0, 0, 0))
        mapped, target = context(program, param=ENGINES, size=16, value=engines.address), buffer(program)
        for number, at in ((mapped, 0), (0, 8)):
            sets = buffer(program, struct.pack("<4I", load, general, 7, END))
            reads = [buffer(program, struct.pack("<6I", store, general, 0x10000 + at + 4 * n, 0, END, 0)) for n in range(2)]
            for index, batch in ((0, sets), *enumerate(reads)):
                submit(program, [row(target, offset=0x10000, flags=PINNED), row(batch)], context=number, flags=index)
        assert content(program, target) == (7, 0, 7, 7)


def test_rings_without_a_map(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    for ring in range(5):
        submit(program, [row(handle)], flags=ring)
    assert [submission.engine for submission in held.submissions] == ["rcs0", "rcs0", "vcs0", "bcs0", "vecs0"]


def test_contexts_share_an_address_space_when_told(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    vm = program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE").vm
    for number in (context(program, param=VM, value=vm), context(program, param=VM, value=vm), context(program, param=8, value=0)):
        submit(program, [row(handle)], context=number)
    spaces = [submission.vm for submission in held.submissions]
    assert spaces[0] is spaces[1] is not spaces[2]
    with pytest.raises(OSError, match="No such"):
        context(program, param=VM, value=99)
    program.ioctl("DRM_IOCTL_I915_GEM_VM_DESTROY", vm=vm)


def test_old_gpus_have_one_address_space() -> None:
    with served("hsw", held := Held()) as gpu:
        program = gpu.program()
        handle = buffer(program)
        for number in (0, program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context):
            submit(program, [row(handle)], context=number)
        assert held.submissions[0].vm is held.submissions[1].vm
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE")
        assert found.value.errno == errno.ENODEV


# -- work that is done


def store(address: int, value: int) -> bytes:
    return struct.pack("<4I", STORE, address & 0xFFFFFFFF, address >> 32, value)


def test_work_is_done_and_seen() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x20008, 0xCAFE) + struct.pack("<2I", END, 0))
        rows = [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)]
        submit(program, rows)
        assert content(program, target) == (0, 0, 0xCAFE, 0)


def test_the_batch_may_come_first_and_start_inside() -> None:
    with served("icl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, bytes(64) + store(0x20000, 7) + struct.pack("<2I", END, 0))
        rows = [row(batch, offset=0x10000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        submit(program, rows, flags=FIRST, start=64)
        assert content(program, target)[0] == 7


def test_buffers_change_places() -> None:
    """The same address for another buffer, and the same buffer elsewhere: each submission sees its own."""
    with served("skl") as gpu:
        program = gpu.program()
        first, two = buffer(program), buffer(program)
        batch = buffer(program, store(0x20000, 1) + struct.pack("<2I", END, 0))
        for target in (first, two, first):
            submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, first)[0] == content(program, two)[0] == 1
        submit(program, [row(first, offset=0x50000, flags=PINNED), row(batch, offset=0x20000, flags=PINNED)])  # overwrites itself
        assert content(program, batch)[0] == 1


def test_a_fault_bans_the_context_and_nobody_hangs() -> None:
    kept: list[Submission] = []

    def save(submission: Submission, text: str) -> str:
        kept.append(submission)
        return "somewhere"

    with served("kbl", save=save) as gpu:
        program = gpu.program()
        batch = buffer(program, store(0x7F0000, 1) + struct.pack("<2I", END, 0))
        first, second = (program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2))
        submit(program, [row(batch, offset=0x10000, flags=PINNED)], context=first)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=10**10)
        [told] = gpu.told
        assert "0x7f0000" in told and "MI_STORE_DATA_IMM" in told and told.endswith("kept in somewhere") and len(kept) == 1
        refused(errno.EIO, program, [row(batch)], context=first)
        stats = program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=first)
        assert (stats.active, stats.pending) == (1, 0)
        assert program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=second).active == 0
        fine = buffer(program, struct.pack("<2I", END, 0))
        submit(program, [row(fine)], context=second)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=fine, timeout=10**10)
        assert len(gpu.told) == 1


def test_two_programs_at_once() -> None:
    """Each stores into its own buffer, many times, from two threads each."""
    with served("kbl") as gpu:

        def work(program: Program, base: int, wrong: list[str]) -> None:
            target = buffer(program)
            number = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
            for turn in range(1, 20):
                batch = buffer(program, store(base, turn) + struct.pack("<2I", END, 0))
                rows = [row(target, offset=base, flags=PINNED), row(batch, offset=base + 0x10000, flags=PINNED)]
                submit(program, rows, context=number)
                if content(program, target)[0] != turn:
                    wrong.append(f"{base:#x}: turn {turn}")
                program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=batch)

        wrong: list[str] = []
        programs = [gpu.program(), gpu.program()]
        threads = [threading.Thread(target=work, args=(program.thread(), 0x100000 * at, wrong))
                   for at, program in enumerate(programs * 2, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == [] and not any(thread.is_alive() for thread in threads)


def test_resets_are_asked_for_while_work_is_pending(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that polls gets its answer 2 ms later, and at once where no work was submitted or it is done."""
    program, waits = gpu.program(), list[float]()

    def stats() -> tuple[int, int, int]:
        found = program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=0, resets=9, active=9, pending=9)
        return found.resets, found.active, found.pending

    monkeypatch.setattr(contexts, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(gpu.shared.signals, "wait", lambda ready, until, gone: waits.append(until))
    assert stats() == (0, 0, 0) and not waits
    submit(program, [row(buffer(program))])
    assert stats() == (0, 0, 0) and waits == [100.002]
    held.finish()
    assert stats() == (0, 0, 0) and len(waits) == 1


def test_a_failure_that_cannot_be_kept_is_a_failure_nonetheless() -> None:
    """Whatever goes wrong while it is written down, the program is not left waiting."""

    def save(submission: Submission, text: str) -> str:
        raise MemoryError("no room for it")

    with served("kbl", save=save) as gpu:
        program = gpu.program()
        bad = buffer(program, store(0x7654000, 3) + struct.pack("<2I", END, 0))
        submit(program, [row(bad, offset=0x10000, flags=PINNED)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=bad, timeout=20 * 10**9)
        assert any("could not be kept: no room for it" in text for text in gpu.told) and any("0x7654000" in text for text in gpu.told)


def test_what_follows_a_failing_command_is_done() -> None:
    """A driver that looks at a tag must not look for ever."""
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x7F0000, 1) + store(0x20000, 0x7A6) + struct.pack("<2I", END, 0))
        submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, target)[0] == 0x7A6
        assert len(gpu.told) == 1 and program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=0).active == 1


def semaphore(address: int, value: int) -> bytes:
    """MI_SEMAPHORE_WAIT: poll until memory equals the value."""
    return struct.pack("<4I", SEMAPHORE | 1 << 15 | 4 << 12, value, address, 0)


def test_a_semaphore_parks_its_context_until_somebody_lets_it_pass() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        first, second = (program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2))
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        pinned = [row(flag, offset=0x30000, flags=PINNED | 1 << 6), row(target, offset=0x20000, flags=PINNED | 1 << 6)]
        submit(program, [*pinned, row(waits, offset=0x10000, flags=PINNED)], context=first)
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=50_000_000)
        assert found.value.errno == errno.ETIME
        opens = buffer(program, store(0x30000, 5) + struct.pack("<2I", END, 0))
        submit(program, [pinned[0], row(opens, offset=0x10000, flags=PINNED)], context=second)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []


@pytest.mark.parametrize("settle", [0.0, 10.0])
def test_a_recorded_program_goes_on_when_its_work_is_done(settle: float) -> None:
    """What a program writes while its work runs would be in the recording as if the work had written it."""
    with served("kbl") as gpu:
        program, gpu.shared.settle = gpu.program(), settle
        assert gpu.executor is not None
        slow = SimpleNamespace(before=lambda submission: time.sleep(0.1), after=lambda submission, fine: None)
        gpu.executor.recorders.append(slow)
        target = buffer(program)
        batch = buffer(program, store(0x20000, 7) + struct.pack("<2I", END, 0))
        submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert bool(program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=batch).busy) == (not settle)
        assert content(program, target)[0] == 7


def test_a_recorded_program_goes_on_while_its_work_waits_for_it() -> None:
    with served("kbl") as gpu:
        program, gpu.shared.settle = gpu.program(), 0.05
        flag = buffer(program)
        waits = buffer(program, semaphore(0x30000, 5) + struct.pack("<2I", END, 0))
        submit(program, [row(flag, offset=0x30000, flags=PINNED), row(waits, offset=0x10000, flags=PINNED)])
        assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=waits).busy
        shared, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag).offset, 4096)
        os.pwrite(shared, struct.pack("<I", 5), at)
        os.close(shared)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)


def test_a_program_goes_on_while_work_that_was_short_before_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short work runs on the thread that answers its program; when it waits, another answers."""
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        pinned = [row(flag, offset=0x30000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        quick, ran = buffer(program, store(0x20000, 7) + struct.pack("<2I", END, 0)), gpu.shared.runner.at_once
        here: list[bool] = []

        def at_once(submission: Submission, awaited: bool = False) -> DeferredRun | None:
            found = ran(submission, awaited)
            here.append(found is not None)
            return found

        monkeypatch.setattr(gpu.shared.runner, "at_once", at_once)
        for _ in range(100):
            submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=quick, timeout=10**10)
            if here[-1]:
                break
        assert here[-1] and content(program, target)[0] == 7
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        shared, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag).offset, 4096)
        submit(program, [*pinned, row(waits, offset=0x11000, flags=PINNED)])
        for _ in range(3):
            assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=waits).busy
        os.pwrite(shared, struct.pack("<I", 5), at)
        os.close(shared)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []


def test_a_thread_that_waits_each_time_finds_its_work_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing has to be waited for; where the work takes long after all, the answer comes before it is done."""
    monkeypatch.setattr("softgen.driver.queue.queue.SHORT", 60.0)  # whatever else the machine does
    monkeypatch.setattr("softgen.driver.queue.queue.PATIENT", 60.0)
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        pinned = [row(flag, offset=0x30000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        quick = buffer(program, store(0x20000, 7) + struct.pack("<2I", END, 0))
        for _ in range(10):
            submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=quick, timeout=10**10)
            assert gpu.shared.runner.drain(10)
        shared, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=target).offset, 4096)
        os.pwrite(shared, bytes(4), at)
        submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
        assert os.pread(shared, 4, at) == struct.pack("<I", 7)
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        submit(program, [*pinned, row(waits, offset=0x11000, flags=PINNED)])
        assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=waits).busy and os.pread(shared, 4, at) == struct.pack("<I", 7)
        opened, first = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag).offset, 4096)
        os.pwrite(opened, struct.pack("<I", 5), first)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []
        os.close(shared)
        os.close(opened)


@pytest.mark.parametrize("near", [True, False])
def test_lists_are_read_from_afar_or_asked_for(near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel does not let one process read another's memory, the program's thread is asked."""
    asked: list[int] = []
    ask = Channel.ask

    def noted(self: Channel, kind: int, *rest: Any, **more: Any) -> ShimMessage:
        asked.append(kind)
        return ask(self, kind, *rest, **more)

    monkeypatch.setattr(Channel, "ask", noted)
    if not near:
        monkeypatch.setattr("softgen.driver.run.protocol.read_ranges", lambda pid, wanted, into: False)
        monkeypatch.setattr("softgen.driver.run.protocol.write_range", lambda pid, address, data: False)
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x20000, 3) + struct.pack("<2I", END, 0))
        for _ in range(3):
            submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, target)[0] == 3
        assert asked.count(READ) == (0 if near else 4)
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=0x1000, count=1)
        assert found.value.errno == errno.EFAULT


def test_a_semaphore_nobody_opens_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.queue.execute.HANG", 0.05)
    with served("kbl") as gpu:
        program = gpu.program()
        flag = buffer(program)
        waits = buffer(program, semaphore(0x30000, 5) + struct.pack("<2I", END, 0))
        submit(program, [row(flag, offset=0x30000, flags=PINNED), row(waits, offset=0x10000, flags=PINNED)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert len(gpu.told) == 1 and "waits for ever" in gpu.told[0]


def test_nothing_is_kept_of_what_is_closed() -> None:
    """Descriptors and address space of a server that works for long."""
    with served("kbl") as gpu:
        program = gpu.program()

        def once() -> None:
            target, batch = buffer(program), buffer(program, store(0x20000, 3) + struct.pack("<2I", END, 0))
            rows = [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)]
            submit(program, rows, flags=1 << 17)  # with a sync file
            assert content(program, target)[0] == 3
            for handle in (target, batch):
                program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
            os.close(program.received.pop())

        for _ in range(5):
            once()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            once()
        assert len(os.listdir("/proc/self/fd")) <= before + 4
        [node] = gpu.server.nodes.values()
        context = node.contexts.get(0)
        assert context is not None and not context.vm.placed and not context.vm.mapped and not gpu.shared.objects


def test_copied_memory_is_there_before_the_tag_is() -> None:
    """A program that looks at a tag in a buffer must find the result in memory that was only copied."""
    with served("kbl") as gpu:
        program, shared = gpu.program(), mmap.mmap(-1, 4096)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memoryview(shared)))
        program.lent.append((address, 4096))
        user = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=4096).handle
        tag = buffer(program)
        code = store(0x20000, 0xD0) + store(0x30000, 1) + semaphore(0x30004, 1) + struct.pack("<2I", END, 0)  # result, tag, and it goes on
        places = ((user, 0x20000), (tag, 0x30000), (buffer(program, code), 0x10000))
        submit(program, [row(handle, offset=offset, flags=PINNED) for handle, offset in places])
        [node] = gpu.server.nodes.values()
        bo = node.objects.get(tag)
        assert bo is not None
        end = time.monotonic() + 10
        while bo.read(0, 4) == bytes(4) and time.monotonic() < end:
            pass
        assert shared[0] == 0xD0 and not bo.idle()
        bo.views(4, 4)[0][:] = struct.pack("<I", 1)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=tag, timeout=10**10)

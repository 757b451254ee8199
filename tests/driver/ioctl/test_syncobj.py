"""Sync objects, timelines and sync files."""

import errno
import os
import resource
import select
import struct
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from softgen.driver.objects.fence import Fence, Pipes, Signals, Syncobj, all_of
from softgen.driver.uapi.uapi import ARGUMENTS, EXEC_FENCE, EXEC_OBJECT, EXTENSION, SYNC_FENCE, SYNC_INFO, SYNC_MERGE, TIMELINE_FENCES
from tests.driver.ioctl.test_gem import refused
from tests.driver.program import Gpu, Held, Program

ALL, FOR_SUBMIT = 1, 2
ARRAY, IN, OUT, SUBMIT, EXTENSIONS = 1 << 19, 1 << 16, 1 << 17, 1 << 20, 1 << 21


def submit(program: Program, flags: int = 0, **fields: int) -> SimpleNamespace:
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    row = EXEC_OBJECT.pack(SimpleNamespace(**{**dict.fromkeys(EXEC_OBJECT.names, 0), "handle": handle}))
    return program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=program.memory(row).address, count=1, flags=flags, **fields)


def with_fences(program: Program, *pairs: tuple[int, int]) -> dict[str, int]:
    data = b"".join(EXEC_FENCE.pack(SimpleNamespace(handle=handle, flags=flags)) for handle, flags in pairs)
    return {"flags": ARRAY, "fences": len(pairs), "fences_at": program.memory(data).address}


def on_timeline(program: Program, handle: int, point: int, flags: int) -> dict[str, int]:
    data = EXEC_FENCE.pack(SimpleNamespace(handle=handle, flags=flags))
    return timeline(program, 1, program.memory(data).address, program.numbers("Q", point))


def timeline(program: Program, count: int, handles: int, values: int) -> dict[str, int]:
    """Many points: where their handles and values are."""
    body = TIMELINE_FENCES.pack(SimpleNamespace(count=count, handles=handles, values=values))
    head = EXTENSION.pack(SimpleNamespace(next=0, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
    return {"flags": EXTENSIONS, "fences_at": program.memory(head + body).address}


def wait(program: Program, *handles: int, flags: int = 0, seconds: float = 0.0) -> int | str:
    """Which came first, or the name of the error."""
    try:
        return int(program.ioctl("DRM_IOCTL_SYNCOBJ_WAIT", handles=program.numbers("I", *handles), count=len(handles), flags=flags,
                                 timeout=time.monotonic_ns() + int(seconds * 1e9)).first)  # fmt: skip
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def objects(gpu: Gpu, handles: list[int]) -> list[Syncobj]:
    """The sync objects of the only node."""
    [node] = gpu.server.nodes.values()
    return [line for handle in handles if (line := node.syncobjs.get(handle)) is not None]


def test_created_signalled_or_not(gpu: Gpu) -> None:
    program = gpu.program()
    empty, done = (program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=flags).handle for flags in (0, 1))
    assert wait(program, done) == 0
    assert wait(program, empty) == "EINVAL"  # nobody submitted anything
    assert wait(program, empty, flags=FOR_SUBMIT) == "ETIME"
    assert wait(program, empty, done, flags=FOR_SUBMIT) == 1
    assert wait(program, empty, done, flags=FOR_SUBMIT | ALL) == "ETIME"
    program.ioctl("DRM_IOCTL_SYNCOBJ_DESTROY", handle=done)
    assert wait(program, done) == "ENOENT"


def test_signal_and_reset(gpu: Gpu) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    program.ioctl("DRM_IOCTL_SYNCOBJ_SIGNAL", handles=program.numbers("I", handle), count=1)
    assert wait(program, handle) == 0
    program.ioctl("DRM_IOCTL_SYNCOBJ_RESET", handles=program.numbers("I", handle), count=1)
    assert wait(program, handle, flags=FOR_SUBMIT) == "ETIME"


UNKNOWN = [
    ("DESTROY", {"pad": 1}), ("HANDLE_TO_FD", {"pad": 1}), ("HANDLE_TO_FD", {"flags": 2}), ("FD_TO_HANDLE", {"pad": 1}),
    ("FD_TO_HANDLE", {"flags": 2}), ("FD_TO_HANDLE", {"flags": 3}), ("CREATE", {"flags": 2}), ("WAIT", {"flags": 1 << 2}),
    ("WAIT", {"flags": 1 << 4 | 1}), ("TIMELINE_WAIT", {"flags": 1 << 31}), ("TIMELINE_WAIT", {"flags": 1 << 3 | 1 << 2}),
    ("RESET", {"pad": 1}), ("RESET", {"count": 0}), ("SIGNAL", {"pad": 1 << 31}), ("SIGNAL", {"count": 0}),
    ("TIMELINE_SIGNAL", {"flags": 1}), ("TIMELINE_SIGNAL", {"count": 0}), ("QUERY", {"flags": 2}), ("QUERY", {"count": 0}),
    ("TRANSFER", {"pad": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wrong"), UNKNOWN)
def test_what_means_nothing_is_refused(gpu: Gpu, name: str, wrong: dict[str, int]) -> None:
    """As in the kernel (drm_syncobj.c); without that, the same call succeeds."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=1).handle
    fd = program.ioctl("DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD", handle=handle).fd
    several = {"handles": program.numbers("I", handle), "count": 1, "points": program.numbers("Q", 0)}
    fields = {"handle": handle, "fd": fd, "source": handle, "target": handle, **several}
    name, layout = f"DRM_IOCTL_SYNCOBJ_{name}", ARGUMENTS[f"DRM_IOCTL_SYNCOBJ_{name}"]
    given = {field: value for field, value in fields.items() if field in layout.names}
    refused(errno.EINVAL, program, name, **given | wrong)
    assert wait(program, handle) == 0, "nothing came of it"
    program.ioctl(name, **given)


@pytest.mark.parametrize("name", ["WAIT", "TIMELINE_WAIT"])
def test_a_wait_for_nothing_is_over(gpu: Gpu, name: str) -> None:
    gpu.program().ioctl(f"DRM_IOCTL_SYNCOBJ_{name}")


@pytest.mark.parametrize("name", ["RESET", "SIGNAL"])
def test_nothing_is_changed_where_one_of_the_sync_objects_is_none(gpu: Gpu, name: str) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=name == "RESET").handle
    refused(errno.ENOENT, program, f"DRM_IOCTL_SYNCOBJ_{name}", handles=program.numbers("I", handle, 99), count=2)
    assert wait(program, handle, flags=FOR_SUBMIT) == (0 if name == "RESET" else "ETIME")


def test_a_submission_signals_when_it_is_done(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    submit(program, **with_fences(program, (handle, 2)))
    assert wait(program, handle) == "ETIME"
    results: list[int | str] = []
    waiting = threading.Thread(target=lambda: results.append(wait(program.thread(), handle, seconds=10)))
    waiting.start()
    time.sleep(0.05)
    assert results == []
    held.finish()
    waiting.join(2)
    assert results == [0]


def test_a_submission_waits_for_what_it_is_told(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle, empty = (program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle for _ in range(2))
    submit(program, **with_fences(program, (handle, 2)))
    submit(program, **with_fences(program, (handle, 1)))
    assert held.submissions[1].after == [held.submissions[0].fence]
    with pytest.raises(OSError, match="Invalid"):
        submit(program, **with_fences(program, (empty, 1)))


def test_a_sync_object_that_is_not_signalled_keeps_its_fence(gpu: Gpu, held: Held) -> None:
    """It is waited for, or named for nothing; one that is both has the new fence afterwards."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    for flags, after, last in ((2, [], 0), (1, [0], 0), (0, [], 0), (3, [0], 3), (1, [3], 3)):
        submit(program, **with_fences(program, (handle, flags)))
        fences = [submission.fence for submission in held.submissions]
        assert held.submissions[-1].after == [fences[number] for number in after]
        assert objects(gpu, [handle])[0].points == [(0, fences[last])]


@pytest.mark.parametrize("where, flags, fine", [
    *(("array", flags, flags < 4) for flags in (0, 1, 2, 3, 4, 1 << 31)), *((0, flags, flags < 4) for flags in (0, 1, 2, 3, 4, 1 << 31)),
    *((5, flags, flags < 3) for flags in (0, 1, 2, 3, 4, 1 << 31)),
])  # fmt: skip
def test_what_may_be_said_of_a_fence(gpu: Gpu, held: Held, where: str | int, flags: int, fine: bool) -> None:
    """To wait for it and to signal it; not both at one point of a timeline (i915_gem_execbuffer.c: that would break it)."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    program.ioctl("DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL", handles=program.numbers("I", handle), points=program.numbers("Q", 5), count=1)
    fields = with_fences(program, (handle, flags)) if isinstance(where, str) else on_timeline(program, handle, where, flags)
    if fine:
        submit(program, **fields)
    else:
        with pytest.raises(OSError, match="Invalid"):
            submit(program, **fields)
    assert len(held.submissions) == fine


def test_fences_are_in_one_place(gpu: Gpu) -> None:
    """Extensions are where an array would be; a sync file is there to be waited for, or to start with."""
    program = gpu.program()
    handle, descriptor = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle, submit(program, OUT).fence >> 32
    for fields in (on_timeline(program, handle, 0, 2), {"flags": EXTENSIONS}, with_fences(program, (handle, 2))):
        submit(program, **fields)
    line = on_timeline(program, handle, 0, 2)
    for wrong in (line | {"flags": EXTENSIONS | ARRAY}, line | {"fences": 1}, {"flags": 0, "fences": 1}, {"flags": 0, "fences_at": 8}):
        with pytest.raises(OSError, match="Invalid"):
            submit(program, **wrong)
    for flags, fine in ((IN, True), (SUBMIT, True), (IN | SUBMIT, False)):
        if fine:
            submit(program, flags=flags, fence=descriptor)
        else:
            with pytest.raises(OSError, match="Invalid"):
                submit(program, flags=flags, fence=descriptor)


def test_a_sync_file_is_named_by_the_lower_half_of_its_field(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    files = [submit(program, flags=OUT).fence >> 32 for _ in range(2)]
    files += [os.dup(file) for file in files]
    for number, file in enumerate(files):
        for upper in (0, 1, 0xFFFFFFFF):
            submit(program, flags=IN, fence=file | upper << 32)
            assert held.submissions[-1].after == [held.submissions[number % 2].fence]
    for wrong in (1 << 30, 1 << 31, 0xFFFFFFFF, files[0] | 1 << 31):
        with pytest.raises(OSError, match="Invalid"):
            submit(program, flags=IN, fence=wrong)
    for file in files[2:]:
        os.close(file)


def test_points_of_a_timeline(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    submit(program, **on_timeline(program, handle, 5, 2))
    submit(program, **on_timeline(program, handle, 9, 2))
    value = program.memory(8)

    def now(flags: int = 0) -> int:
        program.ioctl("DRM_IOCTL_SYNCOBJ_QUERY", handles=program.numbers("I", handle), points=value.address, count=1, flags=flags)
        return int(struct.unpack("<Q", bytes(value))[0])

    assert now() == 0 and now(1) == 9
    held.submissions[1].fence.signal()  # the later one is done first, but a point needs all before it
    assert now() == 0
    held.submissions[0].fence.signal()
    assert now() == 9
    fields = {"handles": program.numbers("I", handle), "count": 1, "timeout": time.monotonic_ns()}
    program.ioctl("DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT", points=program.numbers("Q", 7), **fields)
    with pytest.raises(OSError, match="Invalid"):
        program.ioctl("DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT", points=program.numbers("Q", 10), **fields)
    program.ioctl("DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL", handles=program.numbers("I", handle), points=program.numbers("Q", 20), count=1)
    assert now() == 20


def test_a_timeline_without_values_has_point_0(gpu: Gpu, held: Held) -> None:
    """The sync object is a binary one: its fence is that of the submission."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    entry = program.memory(EXEC_FENCE.pack(SimpleNamespace(handle=handle, flags=2)))
    submit(program, **timeline(program, 1, entry.address, 0))
    assert wait(program, handle) == "ETIME" and [point for point, _ in objects(gpu, [handle])[0].points] == [0]
    held.submissions[0].fence.signal()
    assert wait(program, handle) == 0


def test_sync_objects_are_signalled_without_points(gpu: Gpu) -> None:
    """DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL: point 0 of each, as DRM_IOCTL_SYNCOBJ_SIGNAL."""
    program = gpu.program()
    handles = [program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle for _ in range(3)]
    program.ioctl("DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL", handles=program.numbers("I", *handles[:2]), count=2)
    assert [wait(program, handle) for handle in handles] == [0, 0, "EINVAL"]
    assert [[point for point, _ in line.points] for line in objects(gpu, handles)] == [[0], [0], []]


@pytest.mark.parametrize("name, points", [("DRM_IOCTL_SYNCOBJ_WAIT", None), ("DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT", (7,))])
@pytest.mark.parametrize("timeout", [0, 1, 10**9, 68_000 * 10**9 + 5, (1 << 63) - 1])
def test_a_wait_ends_at_a_time_of_the_monotonic_clock(gpu: Gpu, name: str, points: tuple[int, ...] | None, timeout: int,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    program, found = gpu.program(), list[float | None]()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    monkeypatch.setattr(gpu.shared.signals, "wait_unlocked", lambda ready, until, gone: found.append(until))
    fields = {"points": program.numbers("Q", *points)} if points else {}
    with pytest.raises(OSError) as refused:
        program.ioctl(name, handles=program.numbers("I", handle), count=1, flags=2, timeout=timeout, **fields)
    assert refused.value.errno == errno.ETIME and found == [pytest.approx(timeout / 10**9, rel=1e-12)]


NOWHERE = 0x10000  # an address at which programs have no memory
LISTS: dict[str, Callable[[Program, int], object]] = {
    "waits": lambda program, count: program.ioctl("DRM_IOCTL_SYNCOBJ_WAIT", handles=NOWHERE, count=count),
    "resets": lambda program, count: program.ioctl("DRM_IOCTL_SYNCOBJ_RESET", handles=NOWHERE, count=count),
    "fences": lambda program, count: submit(program, ARRAY, fences=count, fences_at=NOWHERE),
    "timeline": lambda program, count: submit(program, **timeline(program, count, NOWHERE, NOWHERE)),
    "timeline without values": lambda program, count: submit(program, **timeline(program, count, NOWHERE, 0)),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("count, number", [(1 << 16, errno.EFAULT), ((1 << 16) + 1, errno.EINVAL)])
def test_lists_have_65536_entries_at_most(gpu: Gpu, name: str, count: int, number: int) -> None:
    """Fewer are looked for in the program's memory, where there are none."""
    with pytest.raises(OSError) as found:
        LISTS[name](gpu.program(), count)
    assert found.value.errno == number


@pytest.mark.parametrize("values", [0, NOWHERE])
def test_no_memory_is_taken_for_a_timeline_that_is_too_long(gpu: Gpu, values: int) -> None:
    program = gpu.program()
    with pytest.raises(OSError, match="Invalid"):
        submit(program, **timeline(program, 1 << 60, NOWHERE, values))


def test_transfer_of_a_point(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    line, plain = (program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle for _ in range(2))
    submit(program, **on_timeline(program, line, 3, 2))
    program.ioctl("DRM_IOCTL_SYNCOBJ_TRANSFER", source=line, target=plain, source_point=3)
    assert wait(program, plain) == "ETIME"
    held.finish()
    assert wait(program, plain) == 0


def test_a_point_that_nobody_submitted_is_transferred_when_somebody_does(gpu: Gpu, held: Held) -> None:
    """Where the program asks to wait for that; otherwise it is refused at once."""
    program = gpu.program()
    line, plain = (program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle for _ in range(2))
    fields, other = {"source": line, "target": plain, "source_point": 3}, program.thread()
    for channel in (program.channel, other.channel):
        channel.settimeout(20)
    with pytest.raises(OSError, match="Invalid"):
        program.ioctl("DRM_IOCTL_SYNCOBJ_TRANSFER", **fields)
    waiting = threading.Thread(target=other.ioctl, args=("DRM_IOCTL_SYNCOBJ_TRANSFER",), kwargs={"flags": FOR_SUBMIT, **fields})
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    submit(program, **on_timeline(program, line, 3, 2))
    waiting.join(10)
    assert not waiting.is_alive() and wait(program, plain) == "ETIME"  # submitted, and not done
    held.finish()
    assert wait(program, plain) == 0


def test_a_sync_file_becomes_readable_and_goes_anywhere(gpu: Gpu, held: Held) -> None:
    first, other = gpu.program(), gpu.program()
    descriptor = submit(first, flags=OUT).fence >> 32
    assert not readable(descriptor)
    handle = other.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    other.ioctl("DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE", handle=handle, flags=1, fd=descriptor)
    assert wait(other, handle) == "ETIME"
    submit(other, flags=IN, fence=descriptor)
    assert held.submissions[1].after == [held.submissions[0].fence]
    held.finish()
    assert readable(descriptor) and wait(other, handle) == 0


def test_merging_and_asking_a_sync_file(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    first, second = (submit(program, flags=OUT).fence >> 32 for _ in range(2))
    merged = program.foreign("sync file", 3, first, SYNC_MERGE.pack(SimpleNamespace(name=b"both", other=second, fence=-1, flags=0, pad=0)))
    assert merged is not None
    both = SYNC_MERGE.unpack(merged).fence
    held.finish()
    assert readable(first) and not readable(both)

    def status(descriptor: int) -> tuple[int, int]:
        rows = program.memory(SYNC_FENCE.size)
        info = SimpleNamespace(name=b"", status=0, flags=0, count=1, pad=0, fences=rows.address)
        answer = program.foreign("sync file", 4, descriptor, SYNC_INFO.pack(info))
        assert answer is not None
        found = SYNC_INFO.unpack(answer)
        assert (found.name.rstrip(b"\0"), found.flags, found.count) == (b"softgen", 0, 1)
        return found.status, SYNC_FENCE.unpack(bytes(rows)).status

    assert status(first) == (1, 1) and status(both) == (0, 0)
    held.finish(errno.EIO)
    assert readable(both) and status(both) == (-errno.EIO, -errno.EIO)


def test_a_sync_object_travels_by_descriptor(gpu: Gpu) -> None:
    first, other = gpu.program(), gpu.program()
    handle = first.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle
    theirs = other.ioctl("DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE", fd=first.ioctl("DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD", handle=handle).fd).handle
    other.ioctl("DRM_IOCTL_SYNCOBJ_SIGNAL", handles=other.numbers("I", theirs), count=1)
    assert wait(first, handle) == 0
    exported = first.ioctl("DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD", handle=handle, flags=1).fd
    assert readable(exported)
    with open(os.devnull, "rb") as file, pytest.raises(OSError, match="Invalid"):
        other.ioctl("DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE", fd=file.fileno())


def test_fences_together() -> None:
    signals = Signals()
    first, two = Fence(signals), Fence(signals)
    both = all_of(signals, [first, two])
    first.signal(errno.EIO)
    assert not both.done
    two.signal()
    assert both.done and both.error == errno.EIO
    assert all_of(signals, []).done and all_of(signals, [first]).error == errno.EIO


def test_a_fence_is_done_once() -> None:
    calls: list[int] = []
    fence = Fence(Signals())
    fence.then(lambda: calls.append(1))
    fence.signal(5)
    fence.signal()
    fence.then(lambda: calls.append(2))
    assert fence.error == 5 and calls == [1, 2]


def test_a_long_line_of_points_stays_short() -> None:
    signals = Signals()
    line = Syncobj(signals)
    for point in range(1, 1000):
        line.add(point, Fence(signals, done=True))
    assert line.value() == 999 and len(line.points) <= 64
    assert line.fence(3) is not None


def test_closed_descriptors_are_forgotten() -> None:
    pipes = Pipes[str]()
    first, inode = pipes.new("first")
    assert pipes.find(inode) == "first"
    os.close(first)
    second, _ = pipes.new("second")
    assert pipes.find(inode) is None and len(pipes.items) == 1
    os.close(second)


def test_the_server_forgets_a_descriptor_as_soon_as_it_is_closed(gpu: Gpu) -> None:
    """Without another request: what it holds for descriptors that nobody has would count against its limit."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=1).handle
    taken = [program.ioctl("DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD", handle=handle, flags=flags).fd for flags in (0, 1, 0, 1)]
    assert len(gpu.shared.syncobjs.items) == len(gpu.shared.sync_files.items) == 2
    program.received.clear()
    for descriptor in taken:
        os.close(descriptor)
    end = time.monotonic() + 20
    while gpu.shared.syncobjs.items or gpu.shared.sync_files.items:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_descriptor_costs_the_same_however_many_there_are() -> None:
    """40,000 once took over a minute: each new descriptor looked at all others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pipes, taken, times = Pipes[int](), list[int](), []
    try:
        for _ in range(8):
            began = time.thread_time()
            taken += [pipes.new(len(taken))[0] for _ in range(400)]
            times.append(time.thread_time() - began)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        pipes.sweep()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not pipes.items and times[-1] < 5 * times[0] + 0.02, times

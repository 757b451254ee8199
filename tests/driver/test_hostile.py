"""Whatever a program sends, the server answers with an error number or goes on without it; others notice nothing."""

import array
import errno
import fcntl
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgen.bits.units import QWORD_MASK
from softgen.driver.kms.crtc import PLANES, Crtc, ModeObject
from softgen.driver.kms.monitor import mode
from softgen.driver.objects import descriptors
from softgen.driver.objects.fence import Fence, Syncobj
from softgen.driver.objects.submission import Submission
from softgen.driver.run import protocol, server, service
from softgen.driver.run.protocol import MESSAGE
from softgen.driver.shim import shim_h
from softgen.driver.uapi.i915_drm import I915_EXEC_BLT
from softgen.driver.uapi.uapi import ARGUMENTS, EXEC_OBJECT
from softgen.inspect.report.frames import frame
from tests.driver.execbuffer import END, PINNED, buffer, content, row, submit
from tests.driver.kms.test_atomic import held_properties, request, whole
from tests.driver.kms.test_resources import frame as kms_frame
from tests.driver.program import Gpu, Held, Program, served

NAMES = sorted(ARGUMENTS)
DISPLAYED = (*ModeObject, 101, 102, 640, 480, 32, 24, 2560, int.from_bytes(b"XR24", "little"), int.from_bytes(mode(640, 480), "little"))
MOST = 60  # buffers of a program that waits for descriptors
BATCH_START = 0x18800101  # MI_BATCH_BUFFER_START, in the context's space
HWS_PGA = 0x2080  # of the render engine
NEVER = {"timeout": 0}  # or the test would wait as long as the program asked to


class Instant:
    """Work is done the moment it is submitted."""

    def submit(self, submission: Submission) -> None:
        submission.vm.enter(submission.bound)
        submission.vm.leave(submission.bound)
        submission.fence.signal()

    def at_once(self, submission: Submission, awaited: bool = False) -> None:
        return None


@pytest.fixture(scope="module")
def gpu() -> Iterator[Gpu]:
    with served("kbl", Instant()) as gpu:
        yield gpu


def memory(program: Program, chance: random.Random) -> int:
    """An address with something at it: zeros, small numbers, noise, or a chain that leads on."""
    kind = chance.randrange(4)
    data = bytes(512) if kind == 0 else bytes(chance.choice((0, 0, 0, 1, 2)) for _ in range(512)) if kind == 1 else chance.randbytes(512)
    if kind == 3:
        data = memory(program, chance).to_bytes(8, "little") + bytes(504)
    return program.memory(data).address


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_any_sequence_of_ioctls_is_answered(gpu: Gpu, seed: int) -> None:
    chance = random.Random(seed)
    program = gpu.program(chance.choice(("card0", "renderD128")))
    for _ in range(20):
        name = chance.choice(NAMES)
        fields: dict[str, Any] = {}
        for field in ARGUMENTS[name].names:
            pick = chance.randrange(7)
            value = (0, chance.randrange(8), 4096 * chance.randrange(16), memory(program, chance), chance.getrandbits(20), 1,
                     chance.choice(DISPLAYED))[pick]  # fmt: skip
            fields[field] = NEVER.get(field, value)
        if name == "DRM_IOCTL_SYNCOBJ_TRANSFER":
            fields["flags"] = 0  # it may wait for ever for somebody to submit, and that is right
        packed = fields_that_fit(name, fields)
        try:
            program.ioctl(name, **packed)
        except OSError:
            pass
    program.close()
    gpu.programs.remove(program)
    assert [line for line in gpu.log if "itself failed" in line] == []


def fields_that_fit(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Cut to the width of each field."""
    layout, found = ARGUMENTS[name], {}
    for field in layout.names:
        at = layout.offsets[field]
        sizes = [other for other in [*layout.offsets.values(), layout.size] if other > at]
        size = min(sizes) - at
        found[field] = fields[field] & (1 << 8 * size - 1) - 1
        if isinstance(getattr(layout.unpack(b""), field), bytes):
            found[field] = found[field].to_bytes(size, "little")
    return found


def test_noise_on_a_channel_ends_that_channel_alone(gpu: Gpu) -> None:
    program = gpu.program()
    for seed in range(20):
        channel = socket.socket(socket.AF_UNIX)
        channel.connect(str(gpu.folder / "server"))
        channel.sendall(random.Random(seed).randbytes(200))
        channel.close()
    assert program.ioctl("DRM_IOCTL_VERSION").major == 1
    assert [line for line in gpu.log if "itself failed" in line] == []


def test_a_node_that_is_not_open(gpu: Gpu) -> None:
    program = gpu.program()
    program.name = b"\0nobody\0"
    with pytest.raises(OSError, match="Bad file"):
        program.ioctl("DRM_IOCTL_VERSION")


def test_the_node_of_another_program_cannot_be_named(gpu: Gpu) -> None:
    """The name of a node's socket is no secret; only a descriptor of it counts."""
    owner, thief = gpu.program(), gpu.program()
    handle = owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    assert thief.ioctl("DRM_IOCTL_VERSION").major == 1
    own, thief.name = thief.name, owner.name
    with pytest.raises(OSError, match="Bad file"):
        thief.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle)
    with pytest.raises(OSError, match="Bad file"):
        thief.mmap(handle << 40, 4096)
    with open(os.devnull, "rb") as nothing, socket.socket() as other:
        for descriptor in (nothing, other):
            message = MESSAGE.pack(shim_h.IOCTL, 8, 0x6400 | 0x57, 0, descriptor.fileno(), owner.name) + bytes(8)
            thief.channel.sendall(message)
            kind, *_ = thief._receive()
            assert kind == shim_h.GIVE
            thief._serve(kind, descriptor.fileno(), 0, 0, b"", [])
            assert thief._receive()[:2] == (shim_h.DONE, (-errno.EBADF) & QWORD_MASK)
    thief.name = own
    assert thief.ioctl("DRM_IOCTL_VERSION").major == 1


def test_descriptors_that_nobody_asked_for_are_not_kept(gpu: Gpu) -> None:
    program = gpu.program()
    reading, writing = os.pipe()
    argument = program.memory(ARGUMENTS["DRM_IOCTL_VERSION"].size)
    message = MESSAGE.pack(shim_h.IOCTL, 0, 0x6400, argument.address, program.node.fileno(), program.name)
    program.channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writing] * 100))])
    os.close(writing)
    kind, _, _, _, _, _ = program._receive()
    while kind != shim_h.DONE:
        program._serve(kind, program.node.fileno(), 0, 0, b"", [])
        kind, _, _, _, _, _ = program._receive()
    assert select.select([reading], [], [], 5)[0] and os.read(reading, 1) == b""  # all writing ends are closed
    os.close(reading)


def test_a_program_that_goes_away_in_the_middle_of_an_answer(gpu: Gpu) -> None:
    for _ in range(10):
        program = gpu.program()
        argument = ARGUMENTS["DRM_IOCTL_I915_GEM_EXECBUFFER2"].pack(
            SimpleNamespace(**{**dict.fromkeys(ARGUMENTS["DRM_IOCTL_I915_GEM_EXECBUFFER2"].names, 0), "buffers": 1 << 20, "count": 3})
        )
        message = MESSAGE.pack(shim_h.IOCTL, len(argument), 0x6469, 1 << 20, program.node.fileno(), program.name)
        program.channel.sendall(message + argument)
        program.close()
    assert gpu.program().ioctl("DRM_IOCTL_VERSION").major == 1
    end = time.monotonic() + 5
    while len(gpu.server.nodes) > 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert [line for line in gpu.log if "itself failed" in line] == []


def test_a_lease_on_a_buffers_file_is_an_error_for_the_next_export_alone(gpu: Gpu) -> None:
    """A descriptor that was given for mmap() can be opened again, and the open file leased: opening it would wait 45 seconds."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    mapped, _ = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=2).offset, 4096)
    opened = os.open(f"/proc/self/fd/{mapped}", os.O_RDWR)
    fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    program.channel.settimeout(5)
    with pytest.raises(OSError, match="busy"):
        program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle)
    os.close(opened)
    os.close(mapped)
    assert program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=handle).fd > 0
    signal.signal(signal.SIGIO, before)


@pytest.mark.parametrize(("limit", "lowest", "few"), [
    (1 << 20, 1000, False), (1065, 1000, False), (1064, 1000, True), (1000, 1000, True), (8, 1000, True),
    (256, 191, False), (256, 192, True), (100, 74, False), (100, 75, True),
])  # fmt: skip
def test_few_descriptors_are_left_near_the_limit(limit: int, lowest: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the lowest free number: 64 are for imports, or a quarter of a low limit."""
    closed = list[int]()
    lower = SimpleNamespace(getrlimit=lambda which: (limit, limit), RLIMIT_NOFILE=resource.RLIMIT_NOFILE)
    files = SimpleNamespace(**{**vars(os), "open": lambda path, flags: lowest, "close": closed.append})
    monkeypatch.setattr(descriptors, "resource", lower)  # for this module alone
    monkeypatch.setattr(descriptors, "os", files)
    assert descriptors.few_left() == few and closed == [lowest]


def test_descriptors_are_left_for_imports_until_all_modules_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy without a descriptor in the middle of its import cannot be imported again: every submission would fail."""
    with served("kbl", Instant()) as gpu:
        program, made, connected = gpu.program(), list[int](), list[Program]()
        monkeypatch.setattr(service, "few_left", lambda: len(made) >= 20)  # other tests give descriptors back at any time
        gpu.server.service.loaded.clear()

        def exhaust() -> None:
            while len(made) < MOST:
                made.append(program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle)

        threads = [threading.Thread(target=target, daemon=True) for target in (exhaust, lambda: connected.append(gpu.program()))]
        threads[0].start()
        end = time.monotonic() + 20
        while len(made) < 20 and time.monotonic() < end:
            time.sleep(0.01)
        threads[1].start()
        threads[1].join(0.3)
        assert len(made) == 20 and not connected
        gpu.server.service.loaded.set()
        for thread in threads:
            thread.join(30)
        assert len(made) == MOST and connected


def test_a_program_that_ends_while_it_waits_is_noticed_whatever_it_sent_before(gpu: Gpu) -> None:
    """An unread byte in the channel once hid its end, and the thread of it waited for ever."""
    program = gpu.program()
    handle, before = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE").handle, len(gpu.server.service.clients)
    layout = ARGUMENTS["DRM_IOCTL_SYNCOBJ_WAIT"]
    fields = {"handles": program.numbers("I", handle), "count": 1, "timeout": 1 << 62, "flags": 2}
    argument = layout.pack(SimpleNamespace(**{**vars(layout.unpack(b"")), **fields}))
    other = program.thread()
    message = MESSAGE.pack(shim_h.IOCTL, len(argument), 0x64C3, other.memory(argument).address, program.node.fileno(), program.name)
    other.channel.sendall(message + argument)
    kind, *_ = other._receive()
    assert kind == shim_h.GIVE
    other._serve(kind, program.node.fileno(), 0, 0, b"", [])
    time.sleep(0.2)
    assert len(gpu.server.service.clients) == before + 1
    other.channel.sendall(b"x")
    other.channel.close()
    end = time.monotonic() + 10
    while len(gpu.server.service.clients) > before and time.monotonic() < end:
        time.sleep(0.01)
    assert len(gpu.server.service.clients) == before


@pytest.mark.parametrize("line", [
    "1000-2000 rw-p 00000000 ffffffff:ffffffff 5 x", "1000-2000 rw-p 0 00:00 " + "9" * 5000 + " x", "1000-" + "f" * 5000 + " rw-p 0 0:0 0",
    "", "\0" * 100, "1000-2000 rw-s 0 fff:fffff 99999999999999999999 /memfd:softgen userptr"])  # fmt: skip
def test_what_a_program_says_about_its_memory_may_be_anything(gpu: Gpu, line: str) -> None:
    program = gpu.program()
    program.maps = line.encode() + b"\n"
    with pytest.raises(OSError, match=r"Bad address|Function not implemented"):
        program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=0x1000, size=0x1000)
    assert [text for text in gpu.log if "itself failed" in text] == []


def test_a_process_cannot_write_to_the_terminal_by_its_name(tmp_path: Path) -> None:
    script = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\x1b]0;\\x9b2J\\n\\xc2\\x9b'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert protocol.program_name(process.pid).isprintable()
        process.communicate()


def test_a_chain_of_fences_may_be_longer_than_the_stack(gpu: Gpu) -> None:
    """Points of a timeline that wait for the first one are all done with it."""
    signals = gpu.shared.signals
    syncobj, first = Syncobj(signals), Fence(signals)
    syncobj.add(1, first)
    points = []
    for point in range(2, 5000):
        fence = Fence(signals)
        syncobj.add(point, fence)
        points.append(syncobj.points[-1][1])
        fence.signal()
    assert not points[0].done
    first.signal()
    assert all(point.done for point in points)


@pytest.mark.parametrize("last", ["destroyed", "another engine"])
def test_work_without_end_is_cancelled_when_its_program_has_ended(monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    """Also that of a context which the program destroyed, and of one whose newest work, on another engine, is done."""
    monkeypatch.setattr(server, "DRAIN", 0.2)
    with served("kbl") as gpu:
        program = Program(gpu.folder)
        number = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
        endless = buffer(program, struct.pack("<4I", BATCH_START, 0x10000, 0, 0))
        submit(program, [row(endless, offset=0x10000, flags=PINNED)], context=number)
        if last == "destroyed":
            program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", context=number)
        else:
            short = buffer(program, struct.pack("<2I", END, 0))
            submit(program, [row(short)], context=number, flags=I915_EXEC_BLT)
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=short, timeout=20 * 10**9)
        program.close()
        try:
            assert gpu.shared.runner.drain(20)  # type: ignore[attr-defined]
        finally:
            assert gpu.executor is not None
            gpu.executor.ending = True


@pytest.mark.parametrize("thread_left", [True, False])
def test_work_of_many_contexts_that_is_left_behind_takes_one_thread(monkeypatch: pytest.MonkeyPatch, thread_left: bool) -> None:
    """A thread for each of 16384 contexts is more than a host has, and the server ended."""
    held = Held()
    monkeypatch.setattr(server, "DRAIN", 0.5)
    with served("kbl", held) as gpu:
        program, other = gpu.program(), gpu.program()
        handle, layout = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle, EXEC_OBJECT
        rows = program.memory(layout.pack(SimpleNamespace(**{**dict.fromkeys(layout.names, 0), "handle": handle})))
        for _ in range(50):
            number = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
            program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=1, context=number)
        started, start = list[threading.Thread](), threading.Thread.start

        def counted(thread: threading.Thread) -> None:
            started.append(thread)
            if not thread_left and isinstance(thread, threading.Timer):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", counted)
        contexts = {submission.context for submission in held.submissions}
        program.node.close()
        end = time.monotonic() + 10
        while not all(context.cancelled for context in contexts) and time.monotonic() < end:
            time.sleep(0.01)
        assert len(contexts) == 50 and all(context.cancelled for context in contexts)
        assert len([thread for thread in started if isinstance(thread, threading.Timer)]) == 1
        monkeypatch.setattr(threading.Thread, "start", start)
        assert other.ioctl("DRM_IOCTL_VERSION").major == 1 and gpu.program()


def test_a_failure_at_one_connection_is_not_the_end_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with served("kbl", Held()) as gpu:
        first, new = gpu.program(), server.context.new
        monkeypatch.setattr(server.context, "new", lambda node: [][0])
        second = socket.socket(socket.AF_UNIX)
        second.bind("")
        second.connect(str(gpu.folder / "renderD128"))
        end = time.monotonic() + 10
        while not gpu.log and time.monotonic() < end:
            time.sleep(0.01)
        monkeypatch.setattr(server.context, "new", new)
        assert "itself failed at a connection: IndexError" in gpu.log[0]
        assert gpu.program().ioctl("DRM_IOCTL_VERSION").major == first.ioctl("DRM_IOCTL_VERSION").major == 1
        second.close()


@pytest.mark.parametrize("name, commands", [
    ("kbl", [0x11000001, HWS_PGA, 0x5000]), ("hsw", [0x0C000000, 0x7000 | 8]), ("bdw", [0x04000001, 0]),
])  # fmt: skip
def test_batches_of_programs_are_not_privileged(name: str, commands: list[int]) -> None:
    """They load no register that all programs share (MI_LOAD_REGISTER_IMM), and switch no context (MI_SET_CONTEXT), which would be another
    program's if that named the same image; they go on behind such a command (here MI_ARB_ON_OFF, too)."""
    with served(name) as gpu:
        program = gpu.program()
        rows = [row(buffer(program)), row(buffer(program, struct.pack("<2I", END, 0)))]
        target, batch = submit(program, rows)
        store = [0x10000002, 0, target.offset] if name == "hsw" else [0x10000002, target.offset, 0]
        data = program.memory(struct.pack(f"<{len(commands) + 6}I", *commands, *store, 7, END, 0))
        program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=batch.handle, offset=0, size=len(bytes(data)), data=data.address)
        assert [again.offset for again in submit(program, [target, batch])] == [target.offset, batch.offset]
        assert content(program, target.handle, 4) == (7,)
        device = gpu.executor.device
        assert device.registers.read(HWS_PGA) == 0 and not any(address for address, _ in device.contexts)
        assert any("read as MI_NOOP" in remark for remark in device.remarks) and not gpu.told


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=50)
@given(seed=st.integers(0, 1 << 32))
def test_any_atomic_commit_is_shown_or_refused(gpu: Gpu, seed: int) -> None:
    """Properties of all objects, with values that are right, nearly right, or noise; what is shown can be made a picture of."""
    chance, program, shown = random.Random(seed), gpu.program("card0"), list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: shown.append(crtc)
    program.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
    sizes = [chance.choice(((640, 480), (64, 64), (100, 50))) for _ in range(3)]
    fbs = [kms_frame(program, *size, depth=chance.choice((24, 32)))[0] for size in sizes]
    contents = mode(640, 480), mode(100, 50), chance.randbytes(68), chance.randbytes(8 * 256), chance.randbytes(8 * 1024)
    blobs = [program.ioctl("DRM_IOCTL_MODE_CREATEPROPBLOB", data=program.memory(data).address, size=len(data)).blob for data in contents]
    numbers = [640, 480, 64, 100, 50, 1, 0, (1 << 64) - 1, (1 << 64) - 40, 1 << 31, chance.getrandbits(33)]
    values = [*fbs, *blobs, *numbers, *(number << 16 for number in numbers[:5]), ModeObject.CRTC, ModeObject.CONNECTOR]
    for _ in range(10):
        settings = list(whole(program, fbs[0], sizes[0])) if chance.random() < 0.8 else []
        for _ in range(chance.randrange(6)):
            object_ = chance.choice((*PLANES, ModeObject.CRTC, ModeObject.CONNECTOR))
            owned = list(held_properties(program, object_))
            settings.append((object_, chance.choice(owned), chance.choice(values)))
        flags = chance.choice((0x400, 0x400, 0x100, 0x500, 0x601, 0x401, 0))
        try:
            program.ioctl("DRM_IOCTL_MODE_ATOMIC", flags=flags, **request(program, settings))
        except OSError:
            pass
        while shown:
            picture = frame(crtc := shown.pop())
            assert picture is not None and picture.size == crtc.size
    program.close()
    gpu.programs.remove(program)
    assert [line for line in gpu.log if "itself failed" in line] == []

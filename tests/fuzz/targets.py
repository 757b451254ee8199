"""Fuzz targets: functions of bytes that return where softgen did what it may do, and raise where it did not.

decode   a file or a submission's JSON through `softgen decode --json`
replay   a compute job, a ring behind page tables or a capture, edited dword by dword, then executed on one of the engines
draws    a capture with fields of its state mutated, and
sends    with the send instructions of its kernels mutated, on two engines (captured_targets.py)
ioctls   a program's ioctls to a server
tbx      a client's messages to a simulator
media    objects of G45's video front end (media_targets.py)
mpeg2, jpeg, h264, vp8, hevc, vp9, vc1
         a captured clip with bytes of its slices and fields of its state mutated (video_targets.py)

A SoftgenError is an answer. Any other exception, output that is no JSON, an input that takes longer than LIMIT, a signal: each is a find.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import itertools
import json
import os
import random
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from softgen.bits.generation import device, devices
from softgen.device.gpu import GpuDevice
from softgen.driver.objects.submission import Submission
from softgen.driver.uapi.uapi import ARGUMENTS
from softgen.errors import SoftgenError
from softgen.inspect.cli.main import main
from softgen.memory.store import MemfdBuffer
from softgen.streamer.execute import Counters
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import ReplayedCapture, replay
from softgen.trace.tbx import Connection, Options, TbxSimulator
from softgen.trace.work import Work
from tests.conftest import ROOT
from tests.driver.program import Gpu as Served
from tests.driver.program import Program, served
from tests.fuzz import captured_targets, media_targets, video_targets
from tests.gpgpu.job import BATCH, Job, vector_add
from tests.trace import aub_bytes

LIMIT = 20.0  # seconds that any input may take
MOST_BYTES = 1 << 16  # of an input
GPUS = tuple(devices())
CAPTURES = tuple(ROOT / "tests" / "data" / name for name in ("kbl-vk-compute", "g45-gles-tri"))
COMMANDS, SECONDS = 200, 0.4  # of one execution
Edits = list[tuple[int, int, int]]
Base = Callable[[Edits, EngineDispatcher], Counters]
Target = Callable[[bytes], Counters | None]


class Find(AssertionError):
    """An answer that softgen may not give."""


@cache
def folder() -> Path:
    """Files of this process, in memory where there is room."""
    made = Path(tempfile.mkdtemp(prefix="softgen-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    atexit.register(shutil.rmtree, made, True)
    return made


class Reader:
    """Numbers out of an input; zero where it has ended."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int = 1) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


# -- decode --------------------------------------------------------------------------------------------------------


def decode(data: bytes) -> None:
    """Byte 0: a GPU, 0 for none. Byte 1: 0 a file, otherwise the JSON of a submission whose buffers are those of a real capture."""
    if len(data) < 2:
        return
    path = folder() / "decode"
    if data[1]:
        path = folder() / "capture"
        if not path.exists():
            path.mkdir()
            (path / "bo").symlink_to(CAPTURES[0] / "bo")
        (path / "exec-000001.json").write_bytes(data[2:])
    else:
        path.write_bytes(data[2:])
    arguments = ["decode", str(path), "--json", *(["--gpu", GPUS[(data[0] - 1) % len(GPUS)]] if data[0] else [])]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    if code not in (0, 1) or "Traceback" in err.getvalue() or code and not err.getvalue():
        raise Find(f"exit code {code}: {err.getvalue()}")
    for line in out.getvalue().splitlines():
        json.loads(line, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise Find(f"{name} is no JSON")


# -- replay --------------------------------------------------------------------------------------------------------


class EditedCapture(ReplayedCapture):
    """A capture with edits: (content, dword, value)."""

    edits: Edits = []

    def buffer(self, bo: Any, is_batch: bool = False) -> MemfdBuffer:
        fresh = bo.uid not in self.kept
        found = super().buffer(bo, is_batch)
        if fresh:
            for index, (content, dword, value) in enumerate(self.edits):
                if content % 8 == (bo.uid + index) % 8:
                    at = dword * 4 % (found.size - 3)
                    found.view[at : at + 4] = struct.pack("<I", value)
        return found


def budget() -> Callable[[], bool]:
    """Out of time after so many questions or seconds."""
    left, end = iter(range(COMMANDS)), time.monotonic() + SECONDS
    return lambda: next(left, None) is None or time.monotonic() > end


def replay_edited(data: bytes) -> Counters | None:
    """Byte 0: what is edited. Byte 1: the engine. Then edits of seven bytes: region, dword, value."""
    reader = Reader(data)
    base, engine = reader.number(), ("reference", "t0", "reference", "t1")[reader.number() % 4]
    edits = []
    while reader.more and len(edits) < 64:
        edits.append((reader.number(), reader.number(2), reader.number(4)))
    groups = EngineDispatcher(engine, 1)
    try:
        return BASES[base % len(BASES)](edits, groups)
    except SoftgenError as error:
        if not str(error):
            raise Find("an error without words") from error
        return None


def job(gpu: str) -> Base:
    """A batch that dispatches four groups. Regions: batch, dynamic state, surfaces, code, indirect data, two buffers."""

    def run(edits: Edits, groups: EngineDispatcher) -> Counters:
        made: Job = vector_add(gpu)
        space = made.memory()
        regions = sorted(space.regions(), key=lambda region: region.start)
        for number, dword, value in edits:
            region = regions[number % len(regions)]
            space.write(region.start + dword * 4 % region.size, struct.pack("<I", value))
        machine = GpuDevice(made.device, itertools.count(1).__next__, budget(), dispatcher=groups)
        machine.execute(Work("render", space, BATCH))
        return machine.counters

    return run


def ring(gpu: str) -> Base:
    """A trace with a ring, a context and four levels of page tables; edited as a file."""

    def run(edits: Edits, groups: EngineDispatcher) -> Counters:
        file = bytearray(aub_bytes.machine(gpu) + (aub_bytes.submit_queue() if gpu == "icl" else aub_bytes.submit_ports()))
        for _, dword, value in edits:
            at = dword * 4 % len(file)
            file[at : at + 4] = struct.pack("<I", value)
        path = folder() / "ring.aub"
        path.write_bytes(file)
        return replay(open_trace(path), itertools.count(1).__next__, budget(), groups).counters

    return run


def capture(path: Path) -> Base:
    def run(edits: Edits, groups: EngineDispatcher) -> Counters:
        trace = EditedCapture(path)
        trace.edits = edits
        gpu, spent = GpuDevice(trace.device, itertools.count(1).__next__, budget(), dispatcher=groups), budget()
        for work in trace.events():
            with contextlib.suppress(SoftgenError):
                gpu.execute(work)
            if spent():
                break
        return gpu.counters

    return run


BASES = (job("skl"), job("icl"), job("bdw"), ring("skl"), ring("icl"), *map(capture, CAPTURES))


# -- ioctls --------------------------------------------------------------------------------------------------------


class Instant:
    """Work is done the moment it is submitted."""

    def submit(self, submission: Submission) -> None:
        submission.vm.enter(submission.bound)
        submission.vm.leave(submission.bound)
        submission.fence.signal()

    def at_once(self, submission: Submission, awaited: bool = False) -> None:
        return None


NAMES = sorted(ARGUMENTS)
WAITS = {"timeout": 0}  # or the input would take as long as it asks for


@cache
def server() -> Served:
    """One server for all inputs of this process."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(served("kbl", Instant()))


def ioctls(data: bytes) -> None:
    """Byte 0: the node. Then ioctls: a byte for the name, and for each field a byte that says what it is, and that."""
    reader, gpu = Reader(data), server()
    program = gpu.program(("card0", "renderD128")[reader.number() % 2])
    try:
        for _ in range(24):
            if not reader.more:
                break
            name = NAMES[reader.number() % len(NAMES)]
            fields = {field: WAITS.get(field, value) for field, value in _fields(reader, program, name)}
            if name == "DRM_IOCTL_SYNCOBJ_TRANSFER":
                fields["flags"] = 0  # it may wait for ever for another thread's submission, and that is right
            with contextlib.suppress(OSError):
                program.ioctl(name, **fields)
    finally:
        program.close()
        gpu.programs.remove(program)
    if wrong := [line for line in gpu.log if "itself failed" in line]:
        gpu.log.clear()
        raise Find(wrong[0])
    gpu.log.clear()


def _fields(reader: Reader, program: Program, name: str) -> Iterator[tuple[str, int | bytes]]:
    layout = ARGUMENTS[name]
    defaults = layout.unpack(b"")
    for field in layout.names:
        at = layout.offsets[field]
        size = min(other for other in (*layout.offsets.values(), layout.size) if other > at) - at
        match reader.number() % 6:
            case 0:
                value = 0
            case 1:
                value = reader.number() % 8
            case 2:
                value = 4096 * (reader.number() % 16)
            case 3:
                value = memory(program, reader)
            case 4:
                value = reader.number(size)
            case _:
                value = 1
        value &= (1 << 8 * size - 1) - 1
        yield field, value.to_bytes(size, "little") if isinstance(getattr(defaults, field), bytes) else value


def memory(program: Program, reader: Reader, depth: int = 0) -> int:
    """An address with something at it: zeros, the input's bytes, noise, or a chain that leads on."""
    match reader.number() % 4:
        case 0:
            content = bytes(512)
        case 1:
            count = reader.number()
            content = reader.data[reader.at : reader.at + count].ljust(512, b"\0")
            reader.at += count
        case 2:
            content = random.Random(reader.number()).randbytes(512)
        case _:
            content = (memory(program, reader, depth + 1) if depth < 4 else 0).to_bytes(8, "little") + bytes(504)
    return program.memory(content).address


# -- tbx -----------------------------------------------------------------------------------------------------------


class Stream:
    """A socket whose client has sent everything and reads nothing."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.sent = data, 0, 0

    def recv_into(self, view: memoryview) -> int:
        count = min(len(view), len(self.data) - self.at)
        view[:count] = self.data[self.at : self.at + count]
        self.at += count
        return count

    def settimeout(self, seconds: float | None) -> None:
        """Nothing is waited for."""

    def sendall(self, data: bytes) -> None:
        self.sent += len(data)


def tbx(data: bytes) -> Counters:
    """Byte 0: a GPU. Then what the client sends."""
    gpu = ("skl", "bdw", "icl", "g45", "ivb")[(data[0] if data else 0) % 5]
    simulator = TbxSimulator(device(gpu), Options(deterministic=True, time_limit=0.3, memory=1 << 26), lambda text: None)
    stream: Any = Stream(data[1:])
    with contextlib.suppress(SoftgenError):
        Connection(stream, simulator).serve()
    return simulator.gpu.counters


# -- captured draws and dispatches ---------------------------------------------------------------------------------


def draws(data: bytes) -> Counters | None:
    return captured_targets.on_both(data, captured_targets.fields, budget)


def sends(data: bytes) -> Counters | None:
    return captured_targets.on_both(data, captured_targets.sends, budget)


def video(standard: str, data: bytes) -> Counters | None:
    return video_targets.decode_pictures(standard, data, budget)


def media(data: bytes) -> Counters | None:
    return media_targets.run_objects(data, budget)


TARGETS: dict[str, Target] = {"decode": decode, "replay": replay_edited, "draws": draws, "sends": sends, "ioctls": ioctls, "tbx": tbx,
                              "media": media,
                              **{standard: partial(video, standard) for standard in video_targets.STANDARDS}}  # fmt: skip

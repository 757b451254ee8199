"""Threads started from C: a loop over batches (batches.c) and a payload writer leave the same memory as a list of payloads from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.native import address
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, control_register
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.payload import FULL, LoopPayload, PayloadList, PayloadWriter, ThreadMasks, WrittenMasks
from softgen.threads.workers import kept_loop, pool, worker
from tests.conftest import ROOT
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import ADD, CODE, SURFACES, TABLE, Job, dwords, words
from tests.threads.native_loops import NativeLoop, run_loops
from tests.threads.workers.test_pool import MODE, SLOW

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is absent")
COMPILED = [choice for choice in engines() if choice.name != "reference"]
THREADS, LANES = 100, 16
CONSTANT = 1000
TINY = int(np.float32(2.0**-24).view(np.uint32))  # for MODE, which adds it to 1.0 and rounds up
HELD = dwords(*range(5, 5 + THREADS * LANES))


class Loop(ctypes.Structure):
    """struct loop of batches.c."""

    _fields_ = [("worker", ctypes.c_uint64), ("next", ctypes.c_uint64), ("end", ctypes.c_uint64), ("batch", ctypes.c_uint64),
                ("shared", ctypes.c_uint64), ("constant", ctypes.c_uint32), ("masked", ctypes.c_uint32), ("batches", ctypes.c_uint64),
                ("returns", ctypes.c_uint64), ("masks", ctypes.c_uint32 * 64)]  # fmt: skip

    def bind(self, worker: int) -> int:
        self.worker = worker
        return ctypes.addressof(self)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("batches") / "batches.so"
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'softgen' / 'threads' / 'native'}"]
    subprocess.run([*command, str(Path(__file__).with_name("batches.c")), "-o", str(made)], check=True)
    return ctypes.CDLL(str(made))


class Memory:
    """A kernel with two buffers, and the dispatches that run it."""

    def __init__(self, kernel: str = ADD, held: bytes = HELD, **more: Any) -> None:
        self.job = Job(kernel, [held, bytes(4 * THREADS * LANES)], **more)
        self.space: AddressSpace = self.job.memory()
        self.warnings: list[str] = []
        bases = {"instruction": CODE, "surface": SURFACES}
        self.context = DispatchContext(self.job.device.generation, self.space, bases, self.warnings.append)

    def record(self, payload: Any, threads: int, groups: int = 1, **more: Any) -> ThreadDispatch:
        return ThreadDispatch(0, control_register(self.job.gen), LANES, threads, groups, payload, binding_table=TABLE, **more)

    def result(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self.space.read(self.job.address(1), 4 * THREADS * LANES), np.uint32)


def listed(memory: Memory, constant: int, masked: bool) -> ThreadDispatch:
    """The same threads as batches.c starts, their payloads made here."""
    payloads = tuple(bytes(32) + words(*range(n * LANES, (n + 1) * LANES)) + dwords(constant, *[0] * 7) for n in range(THREADS))
    masks = ThreadMasks(tuple(0xFFFF if n % 3 else 0x00F1 for n in range(THREADS)))
    return memory.record(PayloadList(payloads), THREADS, masks=masks if masked else FULL)


def reference(kernel: str, constant: int, masked: bool, **more: Any) -> tuple[npt.NDArray[np.uint32], Finished]:
    memory = Memory(kernel, **more)
    (done,) = EngineDispatcher().run(memory.context, listed(memory, constant, masked))
    return memory.result(), done


def looped(library: ctypes.CDLL, memory: Memory, choice: Choice, batch: int, constant: int = CONSTANT, masked: bool = False,
           **more: Any) -> Loop:  # fmt: skip
    """Runs batches.c's loop; the loop afterwards."""
    loop = Loop(end=THREADS, batch=batch, constant=constant, masked=masked)
    record = memory.record(LoopPayload(3), batch, 0, masks=WrittenMasks() if masked else FULL)
    done = run_loops(choice.groups(), memory.context, record, [NativeLoop(address(library.run_batches), loop.bind)], **more)
    assert done.threads == THREADS and loop.batches == -(-THREADS // batch)
    return loop


@pytest.mark.covering(1)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize("choice", engines(), ids=str)
def test_batches_of_a_loop_leave_what_a_list_leaves(choice: Choice, batch: int, masked: bool, library: ctypes.CDLL) -> None:
    memory = Memory()
    looped(library, memory, choice, batch, masked=masked)
    expected, _ = reference(ADD, CONSTANT, masked)
    assert (memory.result() == expected).all() and (expected != 0).sum() == (THREADS * LANES if not masked else 34 * 5 + 66 * 16)


@pytest.mark.parametrize("choice", COMPILED, ids=str)
def test_a_fallback_in_the_middle_leaves_and_reenters(choice: Choice, library: ctypes.CDLL) -> None:
    """Surface 0 ends in the middle of thread 40, whose message is for the interpreter; those of other threads beyond it are not."""
    memory, short = Memory(held=HELD[: 40 * 64 + 32]), {"held": HELD[: 40 * 64 + 32]}
    loop = looped(library, memory, choice, 16)
    assert (memory.result() == reference(ADD, CONSTANT, False, **short)[0]).all()
    assert loop.returns >= 1 and (choice.name.startswith("leaving") or loop.returns <= 4)  # to the end of that thread
    assert len(memory.warnings) == 1 and "out of bounds" in memory.warnings[0]


@pytest.mark.covering(1)
@pytest.mark.parametrize("registers", [3, 4])
@pytest.mark.parametrize("choice", COMPILED, ids=str)
def test_registers_after_the_payload_are_zero(choice: Choice, registers: int, library: ctypes.CDLL) -> None:
    """Each thread adds the first dword after its payload, and sets it."""
    shown = f"     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r{registers}.0<0;1,0>:d\n(W)  mov (8|M0) r{registers}.0<1>:d 77:d"
    memory = Memory(ADD.replace("     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d", shown))
    looped(library, memory, choice, 16)
    assert memory.result().tolist() == list(range(5, 5 + THREADS * LANES))


@pytest.mark.parametrize("choice", COMPILED, ids=str)
def test_threads_that_change_their_mode_go_on(choice: Choice, library: ctypes.CDLL) -> None:
    memory = Memory(MODE)
    loop = looped(library, memory, choice, 16, constant=TINY)
    assert (memory.result() == 0x3F800001).all() and (memory.result() == reference(MODE, TINY, False)[0]).all()
    assert choice.name.startswith("leaving") or loop.returns <= 4  # each change is answered once, not once a thread


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_loop_out_of_budget_returns_at_the_deadline_and_goes_on(name: str, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SLICE", 0)
    monkeypatch.setattr(worker, "TURN", 100)  # SLOW goes round 500 times
    memory, polls = Memory(SLOW), list[int]()

    def timed_out() -> bool:
        polls.append(1)
        return False

    loop = looped(library, memory, Choice(name), 16, timed_out=timed_out)
    assert (memory.result() == np.arange(5, 5 + THREADS * LANES) + CONSTANT).all() and loop.returns >= THREADS <= len(polls)


def test_the_time_limit_ends_a_loop(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SLICE", 0)
    monkeypatch.setattr(worker, "TURN", 100)
    with pytest.raises(SoftgenError, match=r"time is up: thread \d+ of group \d+, kernel 0x40000"):
        looped(library, Memory(SLOW), Choice("t1"), 16, timed_out=lambda: True)


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_fault_in_a_batch_names_its_thread_and_leaves_nothing_behind(name: str, library: ctypes.CDLL) -> None:
    choice, broken = Choice(name), ADD.replace("0x08025E01", "0x08025EFF")  # stateless: nothing is mapped at 0
    with pytest.raises(GpuFault, match=r"write at 0x0 in job by .*send"):
        looped(library, Memory(broken), choice, 16)
    memory = Memory()
    looped(library, memory, choice, 16)
    assert (memory.result() == reference(ADD, CONSTANT, False)[0]).all()


@pytest.mark.parametrize("threads", [2, 4])
def test_loops_share_out_batches_among_host_threads(threads: int, library: ctypes.CDLL) -> None:
    """Each takes the next batch from one counter; every thread of the dispatch runs once."""
    memory, shared = Memory(), ctypes.c_uint64()
    loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(shared)) for _ in range(threads)]
    native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
    done = run_loops(EngineDispatcher("t1", threads), memory.context, memory.record(LoopPayload(3), 8, 0), native)
    assert done.threads == THREADS and sum(loop.batches for loop in loops) == 13
    assert (memory.result() == reference(ADD, CONSTANT, False)[0]).all()


def test_a_worker_says_how_many_threads_a_batch_may_have(library: ctypes.CDLL) -> None:
    seen, loop = list[int](), Loop(end=0)
    library.capacity.argtypes, library.capacity.restype = (ctypes.c_void_p,), ctypes.c_uint64

    def bind(worker: int) -> int:
        seen.append(library.capacity(worker))
        return loop.bind(worker)

    memory = Memory()
    record = memory.record(LoopPayload(3), 24, 0)
    run_loops(EngineDispatcher("t0", 1), memory.context, record, [NativeLoop(address(library.run_batches), bind)])
    assert seen == [24]


def test_a_batch_of_too_many_threads_is_refused(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of an earlier dispatch have room for the payloads that the loop writes; there are members for 8 threads alone."""
    monkeypatch.setattr(kept_loop, "MOST_KEPT", 0)
    memory, dispatcher = Memory(), EngineDispatcher("t1", 1)
    for capacity, batch in ((64, 64), (8, 9)):
        loop = Loop(end=THREADS, batch=batch, constant=CONSTANT)
        native = [NativeLoop(address(library.run_batches), loop.bind)]
        record = memory.record(LoopPayload(3), capacity, 0)
        if batch <= capacity:
            run_loops(dispatcher, memory.context, record, native)
            continue
        with pytest.raises(SoftgenError, match="a loop started more than the 8 threads of a batch"):
            run_loops(dispatcher, memory.context, record, native)
    looped(library, memory, Choice("t1"), 16)


def test_a_loop_that_would_write_past_the_registers_is_refused() -> None:
    """It says so itself, and has written nothing (THREADS_TOO_LONG)."""
    memory = Memory()
    too_long = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(lambda argument, record: 7)
    native = [NativeLoop(ctypes.cast(too_long, ctypes.c_void_p).value or 0, lambda worker: 0)]
    with pytest.raises(SoftgenError, match="kernel 0x0: a loop would write payloads longer than a thread's registers"):
        run_loops(EngineDispatcher("t1", 1), memory.context, memory.record(LoopPayload(3), 8, 0), native)


# -- records that are used again ---------------------------------------------------------------------------------------


def repeated(library: ctypes.CDLL, dispatcher: EngineDispatcher, memory: Memory, record: ThreadDispatch, context: DispatchContext) -> bytes:
    """What a dispatch by a record leaves."""
    memory.space.write(memory.job.address(1), bytes(4 * THREADS * LANES))
    loop = Loop(end=THREADS, batch=record.threads, constant=CONSTANT)
    run_loops(dispatcher, context, record, [NativeLoop(address(library.run_batches), loop.bind)])
    return memory.result().tobytes()


@pytest.mark.parametrize("change", ["kernel", "surface state", "binding table", "bases"])
@pytest.mark.parametrize("name", ["t0", "t1", "auto"])
def test_a_record_that_is_used_again_sees_what_was_rewritten(name: str, change: str, library: ctypes.CDLL) -> None:
    """The worker is kept; each dispatch leaves what the first by another dispatcher leaves."""
    memory, dispatcher = Memory(), EngineDispatcher(name, 1)
    record, context = memory.record(LoopPayload(3), 16, 0), memory.context
    before = repeated(library, dispatcher, memory, record, context)
    assert repeated(library, dispatcher, memory, record, context) == before
    other = Job(ADD.replace("add (16|M0) r12", "xor (16|M0) r12"), memory.job.buffers)
    smaller = memory.job.surface(0, bytes(64))
    memory.space.map(0x700_0000, MemfdBuffer(1 << 16, "elsewhere"))
    if change == "kernel":
        memory.space.write(CODE, other.pieces()[CODE])
    elif change == "surface state":
        memory.space.write(SURFACES, smaller)
    elif change == "binding table":
        memory.space.write(SURFACES + TABLE, dwords(64, 64))
    else:
        held = memory.space.read(SURFACES, 4096)
        memory.space.write(0x700_0000, smaller + held[len(smaller) :])
        context = replace(context, bases={**context.bases, "surface": 0x700_0000})
    after = repeated(library, dispatcher, memory, record, context)
    assert after != before
    assert after == repeated(library, EngineDispatcher(name, 1), memory, replace(record), context)
    assert after == repeated(library, dispatcher, memory, record, context)


def test_a_record_whose_dispatch_failed_is_used_again(library: ctypes.CDLL) -> None:
    memory, dispatcher = Memory(), EngineDispatcher("t1", 1)
    record, held = memory.record(LoopPayload(3), 16, 0), memory.space.read(SURFACES, 64)
    before = repeated(library, dispatcher, memory, record, memory.context)
    unmapped = memory.job.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, width=127, height=127, depth=1,
                               surface_base_address=0x7777_0000)  # fmt: skip
    memory.space.write(SURFACES, dwords(*unmapped))
    with pytest.raises(GpuFault):
        repeated(library, dispatcher, memory, record, memory.context)
    memory.space.write(SURFACES, held)
    assert repeated(library, dispatcher, memory, record, memory.context) == before


# -- payload writers ---------------------------------------------------------------------------------------------------


def written(library: ctypes.CDLL, memory: Memory, size: int, masked: bool) -> ThreadDispatch:
    state = ctypes.c_uint32(CONSTANT)
    payload = PayloadWriter(address(library.write_payloads), ctypes.addressof(state), 3, count=THREADS, owner=state)
    return memory.record(payload, size, -(-THREADS // size), masks=WrittenMasks() if masked else FULL)


@pytest.mark.covering(1)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [1, 16, 100])
@pytest.mark.parametrize("choice", engines(), ids=str)
def test_written_payloads_leave_what_a_list_leaves(choice: Choice, size: int, masked: bool, library: ctypes.CDLL) -> None:
    """The last group is not full; the reference engine asks the writer for one thread at a time."""
    memory = Memory()
    done = list(choice.groups().run(memory.context, written(library, memory, size, masked)))
    expected, listed = reference(ADD, CONSTANT, masked)
    assert (memory.result() == expected).all()
    assert (sum(item.threads for item in done), sum(item.instructions for item in done)) == (THREADS, listed.instructions)


def five(thread: int) -> list[int]:
    """Items of a thread that has five channels on."""
    return [thread * LANES + lane for lane in (0, 4, 5, 6, 7)]


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_a_vector_mask_follows_from_a_written_mask(choice: Choice, library: ctypes.CDLL) -> None:
    """All four channels of a group of which one is on (IVB 2220-2230)."""
    memory = Memory()
    control = control_register(memory.job.gen, vector_mask_enable=1)
    list(choice.groups().run(memory.context, replace(written(library, memory, 16, True), control=control)))
    assert (memory.result() != 0).sum() == 34 * 8 + 66 * 16


def test_one_group_of_written_payloads_alone(library: ctypes.CDLL) -> None:
    memory = Memory()
    list(EngineDispatcher("t1", 1).run(memory.context, written(library, memory, 16, True).only(6)))
    assert memory.result().nonzero()[0].tolist() == [*five(96), *range(97 * 16, 99 * 16), *five(99)]


def test_masks_that_were_written_are_gone_in_the_next_dispatch(library: ctypes.CDLL) -> None:
    memory, dispatcher = Memory(), EngineDispatcher("t1", 1)
    masked = written(library, memory, 16, True)
    for masks, count in ((masked.masks, 34 * 5 + 66 * 16), (FULL, THREADS * LANES)):
        memory.space.write(memory.job.address(1), bytes(4 * THREADS * LANES))
        list(dispatcher.run(memory.context, replace(masked, masks=masks)))
        assert (memory.result() != 0).sum() == count


# -- host threads ----------------------------------------------------------------------------------------------------------


def test_host_threads_are_used_again(library: ctypes.CDLL) -> None:
    before = scheduler.helpers()
    for _ in range(20):
        memory, shared = Memory(), ctypes.c_uint64()
        loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(shared)) for _ in range(3)]
        native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
        run_loops(EngineDispatcher("t1", 3), memory.context, memory.record(LoopPayload(3), 8, 0), native)
    assert scheduler.helpers() == max(before, 2)


def test_dispatches_one_after_another_use_the_same_workers(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops on one host thread and on several, and lists of payloads; also after faults."""
    made, real = list[int](), pool.WorkerSet
    monkeypatch.setattr(pool, "WorkerSet", lambda threads, strips, fill: (made.append(threads), real(threads, strips, fill))[1])
    broken, dispatcher = ADD.replace("0x08025E01", "0x08025EFF"), EngineDispatcher("t1", 3)  # stateless: nothing is mapped at 0

    def started(memory: Memory, count: int) -> int:
        shared = ctypes.c_uint64()
        loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(shared)) for _ in range(count)]
        native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
        return run_loops(dispatcher, memory.context, memory.record(LoopPayload(3), 8, 0), native).threads

    for count in (3, 1, 2):
        assert started(Memory(), count) == THREADS
        with pytest.raises(GpuFault):
            started(Memory(broken), count)
        memory = Memory()
        list(dispatcher.run(memory.context, listed(memory, CONSTANT, False)))
        assert (memory.result() == reference(ADD, CONSTANT, False)[0]).all()
        memory = Memory(broken)
        with pytest.raises(GpuFault):
            list(dispatcher.run(memory.context, listed(memory, CONSTANT, False)))
    assert made == [3]


def test_a_fault_in_each_of_several_loops_leaves_nothing_behind(library: ctypes.CDLL) -> None:
    broken, dispatcher = Memory(ADD.replace("0x08025E01", "0x08025EFF")), EngineDispatcher("t1", 3)  # stateless: nothing is mapped at 0

    def run(memory: Memory) -> None:
        shared = ctypes.c_uint64()
        loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(shared)) for _ in range(3)]
        native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
        run_loops(dispatcher, memory.context, memory.record(LoopPayload(3), 8, 0), native)

    with pytest.raises(GpuFault, match=r"write at 0x[0-9a-f]+ in job by .*send"):
        run(broken)
    memory = Memory()
    run(memory)
    assert (memory.result() == reference(ADD, CONSTANT, False)[0]).all()


def test_the_time_limit_ends_loops_on_all_host_threads(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SLICE", 0)
    monkeypatch.setattr(worker, "TURN", 100)
    memory, shared = Memory(SLOW), ctypes.c_uint64()
    loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(shared)) for _ in range(3)]
    native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
    with pytest.raises(SoftgenError, match=r"time is up: thread \d+ of group \d+, kernel 0x40000"):
        run_loops(EngineDispatcher("t1", 3), memory.context, memory.record(LoopPayload(3), 8, 0), native, lambda: True)

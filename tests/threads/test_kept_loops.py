"""C loops whose workers are kept: on one host thread and on several, what they report and to whom, and what the engine is told."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import replace

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.interpreter import KernelProgram
from softgen.eu.native import address
from softgen.eu.text import dialect
from softgen.threads import bindings
from softgen.threads.dispatch import DispatchContext, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import ReturnReason
from softgen.threads.payload import LoopPayload
from softgen.threads.workers import kept_loop, worker
from softgen.threads.workers.kept_loop import KeptLoop
from softgen.threads.workers.worker import WorkerState
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import ADD, CODE, SURFACES
from tests.threads.native_loops import NativeLoop, run_kept, run_loops
from tests.threads.test_loops import CONSTANT, HELD, LANES, THREADS, Loop, Memory, library, reference
from tests.threads.workers.test_pool import SLOW

__all__ = ["library"]  # a fixture
pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is absent")


def run(library: ctypes.CDLL, kept: KeptLoop, context: DispatchContext, count: int, timed_out: TimedOut = never) -> int:
    """Runs all threads by so many loops, as a draw does; how many threads the workers have run."""
    taken = ctypes.c_uint64()
    loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(taken)) for _ in range(count)]
    return run_kept(kept, context, [NativeLoop(address(library.run_batches), loop.bind) for loop in loops], timed_out).threads


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", ["t0", "t1"])
def test_workers_share_the_batches_of_a_prepared_dispatch(name: str, count: int, library: ctypes.CDLL) -> None:
    """Again and again, with more and fewer workers."""
    memory, expected = Memory(), reference(ADD, CONSTANT, False)[0]
    kept = EngineDispatcher(name, 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    for loops in (count, 1, count):
        memory.space.write(memory.job.address(1), bytes(4 * THREADS * LANES))
        assert run(library, kept, memory.context, loops) == THREADS and (memory.result() == expected).all()


def test_as_many_workers_are_made_as_loops_ask_for() -> None:
    """The first is that of the calling thread; those that were made stay."""
    memory = Memory()
    kept = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    assert [len(kept.workers_for(loops)) for loops in (1, 3, 2)] == [1, 3, 2] and len(kept.workers) == 3
    assert kept.workers_for(3)[0] is kept.worker and [made.first_slot for made in kept.workers] == [0, 8, 16]


def test_a_worker_of_loops_has_no_share_of_groups() -> None:
    """What a fault finds to halt is nothing."""
    memory, share = Memory(), scheduler.GroupShare()
    made = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0)).worker
    made.join(share)
    assert made.dispatch.share == ctypes.addressof(share)
    made.join()
    assert not made.dispatch.share


@pytest.mark.parametrize("name, settled", [("reference", True), ("t0", False), ("t1", True)])
def test_code_that_no_better_one_follows_is_settled(name: str, settled: bool) -> None:
    """That of t0 is linked again when threads are found elsewhere in the program; until then it is chosen once."""
    memory = Memory()
    kept = EngineDispatcher(name, 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    chosen = kept.worker.chosen
    kept.ready()
    assert kept.settled is settled and kept.worker.chosen is chosen


@pytest.mark.parametrize("count", [1, 2])
def test_warnings_are_reported_to_the_context_that_runs(count: int, library: ctypes.CDLL) -> None:
    """A surface that is too short: each dispatch reports it once, and where it was asked for."""
    memory, later = Memory(held=HELD[: 40 * 64 + 32]), list[str]()
    kept = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    run(library, kept, replace(memory.context, warn=later.append), count)
    assert len(later) == 1 and "out of bounds" in later[0] and not memory.warnings


@pytest.mark.parametrize("by_parts", [True, False])
def test_a_loop_that_failed_leaves_blocks_that_are_not_used_as_they_are(by_parts: bool, library: ctypes.CDLL,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """The time is up in the middle of a batch."""
    monkeypatch.setattr(worker, "TURN", 100)  # SLOW goes round 500 times
    memory = Memory(SLOW)
    kept = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    if by_parts:
        with pytest.raises(SoftgenError, match=r"time is up: thread \d of group 0, kernel 0x40000"):
            run(library, kept, memory.context, 1, timed_out=lambda: True)
    else:
        loop, call = Loop(end=THREADS, batch=8, constant=CONSTANT), kept.worker.call
        why = call.at(address(library.run_batches), loop.bind(kept.worker.address))
        assert why == ReturnReason.DEADLINE
        with pytest.raises(SoftgenError, match=r"time is up: thread \d of group 0, kernel 0x40000"):
            kept.answer(memory.context, why, lambda: True, call.record)
    assert kept.worker.state.dirty.all()


def test_a_fault_of_a_loop_is_described_by_its_record(library: ctypes.CDLL) -> None:
    """The caller has called the loop itself, with a record of its own."""
    memory = Memory(ADD.replace("0x08025E01", "0x08025EFF"))  # stateless: nothing is mapped at 0
    kept = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    other = EngineDispatcher("t1", 1).prepare(memory.context, memory.record(LoopPayload(3), 8, 0))
    loop = Loop(end=THREADS, batch=8, constant=CONSTANT)
    assert kept.worker.call.at(address(library.run_batches), loop.bind(kept.worker.address)) is None
    record = type(kept.worker.call.record).from_buffer_copy(kept.worker.call.record)
    kept.worker.call = other.worker.call  # whose record tells nothing
    with pytest.raises(GpuFault, match=r"write at 0x0 in job by .*send"):
        kept.answer(memory.context, None, never, record)


class Told(Leaving):
    """Notes how many instructions it is told to have run."""

    def __init__(self) -> None:
        self.told = 0

    def ran(self, program: KernelProgram, instructions: int) -> None:
        self.told += instructions


@pytest.mark.parametrize("count", [1, 3])
def test_the_engine_is_told_what_loops_ran(count: int, library: ctypes.CDLL) -> None:
    """By which it finds the kernels that are worth translating."""
    memory, told, taken = Memory(), Told(), ctypes.c_uint64()
    loops = [Loop(end=THREADS, batch=8, constant=CONSTANT, shared=ctypes.addressof(taken)) for _ in range(count)]
    native = [NativeLoop(address(library.run_batches), loop.bind) for loop in loops]
    dispatcher = EngineDispatcher("told", count, make=lambda name: told)
    done = run_loops(dispatcher, memory.context, memory.record(LoopPayload(3), 8, 0), native)
    assert done.instructions == told.told == THREADS * 8


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Loops that were made anew."""
    found, real = list[object](), kept_loop.KeptLoop

    def counted(*args: object) -> KeptLoop:
        found.append(args)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(kept_loop, "KeptLoop", counted)
    return found


def dispatch(library: ctypes.CDLL, dispatcher: EngineDispatcher, context: DispatchContext, record: ThreadDispatch) -> None:
    loop = Loop(end=THREADS, batch=8, constant=CONSTANT)
    run_loops(dispatcher, context, record, [NativeLoop(address(library.run_batches), loop.bind)])


def test_the_worker_of_a_record_is_kept(library: ctypes.CDLL, made: list[object]) -> None:
    memory, dispatcher = Memory(), EngineDispatcher("t1", 1)
    records = [memory.record(LoopPayload(3), 8, 0) for _ in range(2)]
    for record in (*records, *records, records[0]):
        dispatch(library, dispatcher, memory.context, record)
    assert len(made) == 2


@pytest.mark.parametrize("name", bindings.BASES)
def test_the_worker_of_a_record_is_kept_while_base_addresses_are_the_same(name: str, library: ctypes.CDLL, made: list[object]) -> None:
    """Commands may set them again, to what they were."""
    memory, dispatcher = Memory(), EngineDispatcher("t1", 1)
    bases = {"dynamic": 0x500000, "bindless": 0x500000, "general": 0, **memory.context.bases}
    moved, record = {"instruction": CODE - 0x1000, "surface": SURFACES - 0x1000}, memory.record(LoopPayload(3), 8, 0)
    context = replace(memory.context, bases=bases)
    for _ in range(2):
        dispatch(library, dispatcher, replace(context, bases=dict(bases)), record)
    dispatch(library, dispatcher, replace(context, bases={**bases, "indirect": 0x1000}), record)  # nothing here depends on it
    assert len(made) == 1
    other = replace(context, bases={**bases, name: moved.get(name, 0x600000)})
    if name in moved:
        with pytest.raises(GpuFault):  # there is nothing there
            dispatch(library, dispatcher, other, record)
    else:
        dispatch(library, dispatcher, other, record)
        assert len(made) == 2
    dispatch(library, dispatcher, context, record)
    assert (memory.result() == reference(ADD, CONSTANT, False)[0]).all()


def test_an_access_outside_is_told_in_each_dispatch_by_a_record(library: ctypes.CDLL, made: list[object]) -> None:
    """Once, and to the context of that dispatch."""
    memory, dispatcher, told = Memory(held=HELD[: 40 * 64 + 32]), EngineDispatcher("t1", 1), list[list[str]]()
    record = memory.record(LoopPayload(3), 8, 0)
    for _ in range(3):
        told.append([])
        dispatch(library, dispatcher, replace(memory.context, warn=told[-1].append), record)
    assert [len(warnings) for warnings in told] == [1, 1, 1] and len(made) == 1


def test_thread_blocks_are_used_again_whatever_became_of_their_loop(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could not be made, one that faulted, the one of a kernel that was written over, and the one used longest ago."""
    memory, dispatcher, made, real = Memory(), EngineDispatcher("t1", 1), list[WorkerState](), kept_loop.KeptLoop

    def state(fill: int = 0) -> WorkerState:
        made.append(WorkerState())
        return made[-1]

    def failing(*args: object) -> KeptLoop:
        raise MemoryError

    def again(record: ThreadDispatch) -> None:
        dispatch(library, dispatcher, memory.context, record)

    monkeypatch.setattr(kept_loop, "MOST_KEPT", 1)
    monkeypatch.setattr(kept_loop, "WorkerState", state)
    record = memory.record(LoopPayload(3), 8, 0)
    monkeypatch.setattr(kept_loop, "KeptLoop", failing)
    with pytest.raises(MemoryError):
        again(record)
    monkeypatch.setattr(kept_loop, "KeptLoop", real)
    for kernel in (ADD.replace("0x08025E01", "0x08025EFF"), ADD, ADD.replace("r2.0<0;1,0>:d", "1:w"), ADD):
        memory.space.write(CODE, dialect.read(kernel, memory.job.gen))
        if kernel == ADD.replace("0x08025E01", "0x08025EFF"):  # stateless: nothing is mapped at 0
            with pytest.raises(GpuFault):
                again(record)
        else:
            again(record)
    assert len(made) == 1 and (memory.result() == reference(ADD, CONSTANT, False)[0]).all()
    for another in [memory.record(LoopPayload(3), 8, 0) for _ in range(3)]:
        again(another)
    assert len(made) == 2

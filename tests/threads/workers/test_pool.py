"""Compiled engines: chunks of groups on several host threads, what the reference lends, the time limit and faults."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.eu.engine_protocol import AffineRange, CompiledFunction, CompilerEngine
from softgen.eu.interpreter import KernelProgram
from softgen.eu.text import dialect
from softgen.eu.thread import block
from softgen.eu.thread.regions import only_control
from softgen.memory.address_space import AddressSpace
from softgen.streamer import walk
from softgen.threads import reference
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.payload import TemplatePayload
from softgen.threads.programs import load
from softgen.threads.workers import groups as groups_module
from softgen.threads.workers import pool, worker, worker_count
from softgen.threads.workers.shared import SharedDispatch
from tests.gpgpu.engines import Leaving, Recording
from tests.gpgpu.job import ADD, END, Job, dwords, vector_add, words
from tests.threads.test_reference import ENDLESS

MANY = 4096
MANY_THREADS = {"maximum_number_of_threads": 63}  # that have scratch space: groups run at the same time on several host threads
# Goes round often: 500 times for each group, then adds its number's 16 items.
SLOW = ADD.replace("     shl (16|M0) r10.0<1>:d r0.1", """
(W)  mov (1|M0) r50.0<1>:d 0:d
again:
(W)  add (1|M0) r50.0<1>:d r50.0<0;1,0>:d 1:d
(W)  cmp (1|M0) (lt)f0.0 null<1>:d r50.0<0;1,0>:d 500:d
(W&f0.0) jmpi again
     shl (16|M0) r10.0<1>:d r0.1""", 1)  # fmt: skip
# Round up instead of to nearest, from the middle of a kernel on: 1 + 2^-24 is no longer 1.
MODE = ADD.replace("     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d", """
(W)  and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0xFFFFFFCF:ud
(W)  or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x10:ud
     add (16|M0) r12.0<1>:f r2.0<0;1,0>:f 1.0:f""")  # fmt: skip
# Every lane adds 1 to one dword.
COUNT = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     mov (8|M0)  r10.0<1>:ud 0x0:ud
     mov (8|M0)  r11.0<1>:ud 0x1:ud
     send (8|M0) r12 r10 0xC 0x0410B700
{END}
"""
# Groups from number 16 on have no end.
ENDLESS_LATER = ENDLESS.replace("(W)  jmpi again", f"(W)  cmp (1|M0) (ge)f0.0 null<1>:d r0.1<0;1,0>:d 16:d\n(W&f0.0) jmpi again\n{END}")


def job(kernel: str = ADD, count: int = MANY) -> Job:
    constants = {"shared": dwords(1000, *[0] * 7), "own": [words(*range(16))]}
    made = Job(kernel, [bytes(64 * MANY), bytes(64 * MANY)], ends=(count, 1, 1), front=MANY_THREADS, **constants)
    made.address = lambda number: 0x100000 + number * 0x100000  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_every_group_runs_once_on_however_many_host_threads(engine: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", 0.0)
    groups = EngineDispatcher(engine, threads)
    ran = job(SLOW).run(groups=groups)
    assert ran.buffer(1) == (1000,) * 16 * MANY
    assert (ran.gpu.counters.threads, ran.gpu.counters.instructions) == (MANY, MANY * (8 + 1 + 3 * 500))
    assert not groups.notes


@pytest.mark.parametrize("engine", ["t0", "t1", "leaving"])
def test_a_thread_finds_nothing_of_the_one_before_it(engine: str) -> None:
    """Each shows a register, a flag and an accumulator that nobody set, and then sets them."""
    kernel = ADD.replace("     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d", """
(W)  mov (1|M0) r60.0<1>:ud f1.0<0;1,0>:ud
     add (16|M0) r12.0<1>:d r100.0<8;8,1>:d r60.0<0;1,0>:d
     add (16|M0) r12.0<1>:f r12.0<8;8,1>:f acc0.0<8;8,1>:f
     mov (16|M0) r100.0<1>:f 7.0:f
     mov (16|M0) acc0.0<1>:f 3.0:f
(W)  mov (1|M0) f1.0<1>:ud 0x40000000:ud""")  # fmt: skip
    groups = EngineDispatcher(engine, 1, make=lambda name: Leaving()) if engine == "leaving" else EngineDispatcher(engine, 1)
    assert set(job(kernel, 100).run(groups=groups).buffer(1)[: 100 * 16]) == {0}


def test_a_thread_that_changes_its_mode_goes_on_in_code_for_it() -> None:
    tiny = replace(job(MODE, 1), shared=np.array([2.0**-24, *[0] * 7], np.float32).tobytes())
    tiny.address = job().address  # type: ignore[method-assign]
    for engine in ("reference", "t0", "t1"):
        found = tiny.run(groups=EngineDispatcher(engine, 1)).buffer(1)[:16]
        assert found == (0x3F800001,) * 16, engine


@pytest.mark.parametrize("own_first", [True, False])
@pytest.mark.parametrize("masks", [(0xFFFFFFFF, 0xFFFFFFFF), (0x00FF, 0xFFFF), (0xFFFF, 0x000F)])
def test_threads_start_as_the_reference_starts_them(own_first: bool, masks: tuple[int, int]) -> None:
    """Every thread of a group, on the second of two host threads, whose threads have scratch space and numbers of their own."""
    made = Job(ADD, [bytes(64)], shape=(3, 4, 1), shared=dwords(*range(16)), own=[dwords(*range(n, n + 8)) for n in range(12)],
               right=masks[0], bottom=masks[1], front={"per_thread_scratch_space": 3, "scratch_space_base_pointer": 0x40000})  # fmt: skip
    context, dispatch = recorded(made)
    assert isinstance(dispatch.payload, TemplatePayload)
    dispatch = replace(dispatch, payload=replace(dispatch.payload, own_first=own_first))
    shared = SharedDispatch(context, dispatch, load(context, dispatch), Leaving())
    started = worker.Worker(shared, 1, worker.WorkerState(), lambda worker: None)
    for number in range(12):
        thread = reference.start_thread(9.0, dispatch, 0, number)
        thread.save()
        thread.control_block.number = number
        payload = dispatch.start_registers(0, number, first_slot=12)
        thread.grf[: len(payload)] = np.frombuffer(payload, np.uint8)
        found = started.state.templates.bytes[number * block.BLOCK_SIZE : (number + 1) * block.BLOCK_SIZE]
        assert found.tobytes() == thread.block.tobytes(), number


def recorded(made: Job) -> tuple[DispatchContext, ThreadDispatch]:
    """The one dispatch of a job, not run."""
    recorder = Recording()
    made.run(groups=recorder)
    (found,) = recorder.seen
    return found


class Asked(Leaving):
    """Notes what code it is asked for."""

    def __init__(self) -> None:
        self.controls: list[int] = []

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        self.controls.append(control)
        return super().function(program, control, simd, full, entry)


def test_the_engine_is_asked_for_each_mode() -> None:
    asked = Asked()
    job(MODE, 1).run(groups=EngineDispatcher("asked", 1, make=lambda name: asked))
    assert [control & 0x30 for control in asked.controls] == [0x00, 0x10]


def test_a_change_of_mode_is_looked_up_for_the_first_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    escape = worker.Worker._escape
    monkeypatch.setattr(worker.Worker, "_escape", lambda self: (asked.append(self.control_of(self.dispatch.current).ip), escape(self))[1])
    tiny = replace(job(MODE, 500), shared=np.array([2.0**-24, *[0] * 7], np.float32).tobytes())
    tiny.address = job().address  # type: ignore[method-assign]
    ran = tiny.run(groups=EngineDispatcher("t0", 1))
    assert ran.buffer(1)[: 500 * 16] == (0x3F800001,) * 8000
    assert ran.gpu.counters.instructions == 500 * 10
    assert len([ip for ip in asked if asked.count(ip) > 1]) == 0


@pytest.mark.parametrize("line, pure", [
    ("(W) or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x4C0:uw", True), ("(W) mov (1|M0) cr0.0<1>:ud 0x10:ud", True),
    ("(W) or (1|M0) cr0.0<1>:ud r2.0<0;1,0>:ud 0x4C0:uw", False), ("or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x4C0:uw", False),
    ("(W) or (1|M0) cr0.1<1>:ud cr0.0<0;1,0>:ud 0x4C0:uw", False), ("(W) mov (1|M0) r2.0<1>:ud cr0.0<0;1,0>:ud", False),
    ("(W&f0.0) mov (1|M0) cr0.0<1>:ud 0x10:ud", False), ("(W) mov (1|M0) cr0.0<1>:ud sr0.0<0;1,0>:ud", False),
])  # fmt: skip
def test_what_depends_on_cr0_alone(line: str, pure: bool) -> None:
    assert only_control(KernelProgram(9.0, dialect.read(line, 9.0)).line(0).instruction) is pure


@pytest.mark.parametrize("engine", ["t0", "t1", "leaving"])
def test_an_endless_kernel_ends_with_the_time(engine: str) -> None:
    made = Job(ENDLESS, [bytes(4)], simd=8, shape=(2, 1, 1))
    groups = EngineDispatcher(engine, 1, make=lambda name: Leaving()) if engine == "leaving" else EngineDispatcher(engine, 1)
    calls = iter(range(10))
    with pytest.raises(SoftgenError, match="time is up"):  # compiled now
        made.run(GpuDevice(made.device, timed_out=lambda: next(calls, None) is None, dispatcher=groups))
    end = time.monotonic() + 0.5
    gpu = GpuDevice(made.device, timed_out=lambda: time.monotonic() > end, dispatcher=groups)
    with pytest.raises(SoftgenError, match=r"time is up: thread \d of group \(0, 0, 0\), kernel 0x40000\+0x\d+: .*(add|jmpi)"):
        made.run(gpu)
    assert time.monotonic() < end + 10


def test_an_endless_kernel_on_another_host_thread_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the groups behind the first chunk have no end."""
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", -1.0)
    dispatcher = EngineDispatcher("t1", 2)
    Job(ENDLESS_LATER, [bytes(4)], simd=8, front=MANY_THREADS, ends=(16, 1, 1)).run(groups=dispatcher)  # compiled now
    made, end = Job(ENDLESS_LATER, [bytes(4)], simd=8, front=MANY_THREADS, ends=(40, 1, 1)), time.monotonic() + 1
    gpu = GpuDevice(made.device, timed_out=lambda: time.monotonic() > end, dispatcher=dispatcher)
    with pytest.raises(SoftgenError, match="time is up: thread 0 of group"):
        made.run(gpu)
    assert gpu.counters.threads == 16


def test_ctrl_c_leaves_nobody_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", 0.0)
    calls = iter(range(8))

    def interrupted() -> bool:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return False

    made, parts = Job(ENDLESS_LATER, [bytes(4)], simd=8, front=MANY_THREADS, ends=(1000, 1, 1)), list[Any]()
    run_parts = scheduler.run_parts
    monkeypatch.setattr(scheduler, "run_parts", lambda given: (parts.append(given), run_parts(given))[1])
    with pytest.raises(KeyboardInterrupt):
        made.run(GpuDevice(made.device, timed_out=interrupted, dispatcher=EngineDispatcher("t1", 2)))
    assert len(parts[-1]) == 2 and scheduler.helpers() > 0
    counts = bytes(parts[-1])
    time.sleep(0.1)
    assert bytes(parts[-1]) == counts


def test_few_long_groups_get_a_second_host_thread() -> None:
    """Eight groups: the first dispatch learns how long one takes, the next has helpers from the start; none is made anew."""
    made, dispatcher, count = job(SLOW.replace("500:d", "500000:d"), 8), EngineDispatcher("t1", 2), list[int]()
    run_parts = scheduler.run_parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "run_parts", lambda given: (count.append(len(given)), run_parts(given))[1])
        patch.setattr(worker_count.WorkerCountTuner, "alone", lambda self, seconds: False)
        patch.setattr(worker_count, "WORTH", float("inf"))  # one worker is not tried: on a busy machine it may be as fast as two
        for _ in range(3):
            assert made.run(groups=dispatcher).buffer(1)[:128] == (1000,) * 128
            helpers = scheduler.helpers()
            assert count[-1] == 2
            again = count[:1]
            count.clear()
    assert again == [2] and scheduler.helpers() == helpers


def switches() -> tuple[int, bool]:
    """How often threads that are not Python's gave up the processor of their own accord, and whether all of them sleep."""
    ours = {str(threading.get_native_id()), *(str(thread.native_id) for thread in threading.enumerate())}
    others = [task.joinpath("status").read_text() for task in Path("/proc/self/task").iterdir() if task.name not in ours]
    counts = [int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in others]
    return sum(counts), all(text.split("\nState:")[1].split()[0] == "S" for text in others)


def asleep() -> int:
    """The same, once all sleep."""
    found, over = switches(), time.monotonic() + 20
    while not found[1] and time.monotonic() < over:
        time.sleep(0.001)
        found = switches()
    assert found[1]
    return found[0]


def test_helpers_are_woken_ahead_and_sleep_again_where_no_work_follows() -> None:
    made, dispatcher = job(SLOW.replace("500:d", "500000:d"), 8), EngineDispatcher("t1", 2)
    made.run(groups=dispatcher)
    assert scheduler.helpers() > 0
    before = asleep()
    scheduler.alert(0)
    assert asleep() == before
    scheduler.alert(1000)
    assert asleep() > before
    assert made.run(groups=dispatcher).buffer(1)[:128] == (1000,) * 128


def test_a_child_process_has_helpers_of_its_own() -> None:
    made, dispatcher = job(SLOW.replace("500:d", "500000:d"), 8), EngineDispatcher("t1", 2)
    made.run(groups=dispatcher)
    assert scheduler.helpers() > 0
    child = os.fork()
    if not child:
        found = made.run(groups=dispatcher).buffer(1)[:128] == (1000,) * 128 and scheduler.helpers() == 1
        os._exit(0 if found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_dispatches_of_several_streamers_run_at_the_same_time() -> None:
    """Each has a device and memory of its own; the dispatcher and its engine are shared."""
    dispatcher, found = EngineDispatcher("t1", 2), dict[int, tuple[int, ...]]()

    def work(number: int) -> None:
        made = replace(job(SLOW, 64), shared=dwords(number, *[0] * 7))
        made.address = job().address  # type: ignore[method-assign]
        for _ in range(5):
            found[number] = made.run(groups=dispatcher).buffer(1)[:1024]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: (number,) * 1024 for number in range(1, 5)}
    assert [(counts.dispatches, counts.threads) for counts in dispatcher.ran.values()] == [(20, 20 * 64)]


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_the_first_group_that_faults_is_the_one_that_is_told(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "MIN_PARALLEL_TIME", 0.0)
    kernel = ADD.replace("0x08025E01", "0x08025EFF")  # stateless from 0 on: nothing is mapped there
    said = []
    for name in ("reference", engine):
        with pytest.raises(GpuFault) as caught:
            job(kernel).run(groups=EngineDispatcher(name, 2))
        said.append(str(caught.value))
    assert said[0] == said[1] and "write at 0x0" in said[0] and "(lane 0)" in said[0]


@pytest.mark.parametrize("engine", ["t0", "t1"])
@pytest.mark.parametrize("kind, remarks", [("null", 0), ("short", 1)])
def test_lanes_outside_are_the_references_only_once(engine: str, kind: str, remarks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a null surface, not even that."""
    asked: list[int] = []
    escape = worker.Worker._escape
    monkeypatch.setattr(worker.Worker, "_escape", lambda self: (asked.append(self.control_of(self.dispatch.current).ip), escape(self))[1])
    made = job(count=64)
    if kind == "null":
        null = dwords(*made.pack("RENDER_SURFACE_STATE", surface_type=7))
        made.surface = lambda number, data: Job.surface(made, number, data) if number else null  # type: ignore[method-assign]
    else:
        made.buffers = [bytes(256), bytes(64 * MANY)]
    ran = made.run(groups=EngineDispatcher(engine, 1))
    assert ran.buffer(1)[: 64 * 16] == (1000,) * 1024
    assert len(ran.gpu.remarks) == remarks and asked.count(0x40) <= remarks


def test_space_without_host_addresses_is_for_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: AddressSpace) -> object:
        raise Unsupported("job has no host addresses")

    groups = EngineDispatcher("t1")
    monkeypatch.setattr(AddressSpace, "table", property(refuse))
    monkeypatch.setattr(walk, "AddressSpace", object)  # nor do walks over batches take it for one that has them
    assert vector_add("skl").run(groups=groups).buffer(1) == tuple(range(1000, 1064))
    assert groups.notes == ["job has no host addresses; the reference ran it instead"]
    assert [item.engine for item in groups.ran.values()] == ["reference"]


def test_workers_are_used_again_after_a_dispatch_that_the_reference_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: AddressSpace) -> object:
        raise Unsupported("no host addresses")

    made, real = list[int](), pool.WorkerSet
    monkeypatch.setattr(pool, "WorkerSet", lambda threads, strips, fill: (made.append(threads), real(threads, strips, fill))[1])
    groups = EngineDispatcher("t1", 3)
    for refused in (True, True, False, True, False):
        with monkeypatch.context() as patch:
            if refused:
                patch.setattr(AddressSpace, "table", property(refuse))
                patch.setattr(walk, "AddressSpace", object)
            assert vector_add("skl").run(groups=groups).buffer(1) == tuple(range(1000, 1064))
    assert made == [3] and [(item.engine, item.dispatches) for item in groups.ran.values()] == [("reference", 3), ("t1", 2)]


@pytest.mark.parametrize("groups, threads", [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize("engine, workers", [("reference", 1), ("t0", 1), ("t1", 1), ("t1", 3), ("auto", 3)])
def test_a_dispatch_without_threads_is_counted(engine: str, workers: int, groups: int, threads: int) -> None:
    """It does nothing else."""
    (context, dispatch), dispatcher = recorded(vector_add("skl")), EngineDispatcher(engine, workers)
    assert sum(finished.threads for finished in dispatcher.run(context, replace(dispatch, groups=groups, threads=threads))) == 0
    (ran,) = dispatcher.ran.values()
    assert (ran.engine, ran.dispatches, ran.threads, ran.instructions) == (engine, 1, 0, 0) and not dispatcher.notes


def test_a_dispatch_without_threads_is_the_references_where_no_engine_is() -> None:
    def refuse(name: str) -> CompilerEngine:
        raise Unsupported(f"there is no {name}")

    (context, dispatch), dispatcher = recorded(vector_add("skl")), EngineDispatcher("t1", 1, refuse)
    assert not list(dispatcher.run(context, replace(dispatch, groups=0)))
    assert [(ran.engine, ran.dispatches) for ran in dispatcher.ran.values()] == [("reference", 1)]
    assert dispatcher.notes == ["there is no t1; the reference ran it instead"]


def test_kernels_that_were_seen_are_known_again() -> None:
    groups = EngineDispatcher("t1", 1)
    for _ in range(3):
        vector_add("skl").run(groups=groups)
    (ran,) = groups.ran.values()
    assert (ran.dispatches, ran.threads, ran.instructions) == (3, 12, 96)

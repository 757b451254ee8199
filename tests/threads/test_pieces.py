"""Groups of independent threads that workers take in pieces: nothing but the time they take may differ from whole groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.programs import load
from softgen.threads.workers import groups, worker, worker_count
from tests.gpgpu.job import END, Job, Ran
from tests.gpgpu.shaped import ENGINES, FLAT, HEAD, HELD, READS, SHOW, Shape
from tests.threads.sets import runs_made
from tests.threads.test_turns import BARRIER, ESCAPES, NOWHERE, THREAD
from tests.threads.workers.test_pool import recorded

GROUPS, THREADS, ITEMS = 4, 8, 124  # of a group: the last thread has fewer channels
SHAPE = Shape((ITEMS, 1), groups=GROUPS)
MANY_THREADS = {"maximum_number_of_threads": 511}
FAR = 1e9

LOOPS = f"""{THREAD}
again:
(W)  add (1|M0) r5.0<1>:d r5.0<0;1,0>:d -1:d
(W)  cmp (1|M0) (ge)f0.0 null<1>:d r5.0<0;1,0>:d 0:d
(W&f0.0) jmpi again
"""
STATE = "     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d sr0.2<0;1,0>:ud\n     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d r0.1<0;1,0>:ud\n"
BODIES = {"in order": "", "loops": LOOPS, "the interpreter": LOOPS + ESCAPES["clock"], "another mode": ESCAPES["mode"] + LOOPS}

# All threads add 1 to the first dword of surface 0, and look until it is as much as r4.0 says; but for the first, which ends at once.
MEETS = f"""{THREAD}
(W)  mov (8|M0) r10.0<1>:ud 0:ud
(W)  mov (8|M0) r11.0<1>:ud 1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud 0:ud
(W&f0.0) jmpi ends
look:
(W)  send (1|M0) r20 r10 0xC 0x02106E00
(W)  cmp (1|M0) (lt)f0.0 null<1>:ud r20.0<0;1,0>:ud r4.0<0;1,0>:ud
(W&f0.0) jmpi look
ends:
{END}
"""


@cache
def expected(body: str) -> tuple[Any, ...]:
    """What the reference leaves."""
    return outcome(job(shows(BODIES[body])).run(groups=EngineDispatcher()))


def job(kernel: str, parameters: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 0, ITEMS), **more: Any) -> Job:
    return SHAPE.job(HEAD + kernel, [HELD, bytes(4 * ITEMS * GROUPS)], parameters, **{"local": 0, "front": MANY_THREADS, **more})


def shows(body: str) -> str:
    return FLAT + READS["surface"] + STATE + body + SHOW


def outcome(ran: Ran) -> tuple[Any, ...]:
    return [ran.buffer(number) for number in range(2)], list(ran.gpu.remarks), ran.gpu.counters.threads, ran.gpu.counters.instructions


def again(task: Job, dispatcher: EngineDispatcher, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Any, ...]]:
    """Runs the same dispatch in the same memory, its results cleared."""
    task.after = [task.pack("MEDIA_STATE_FLUSH")]
    memory, gpu = task.memory(), GpuDevice(task.device, dispatcher=dispatcher)
    monkeypatch.setattr(Job, "memory", lambda self: memory)

    def run() -> tuple[Any, ...]:
        before = gpu.counters.threads, gpu.counters.instructions
        memory.write(task.address(1), bytes(4 * ITEMS * GROUPS))
        held, remarks, threads, instructions = outcome(task.run(gpu))
        return held, remarks, threads - before[0], instructions - before[1]

    return run


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs of dispatches; their groups are divided whenever they may be."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.0)
    monkeypatch.setattr(worker_count.WorkerCountTuner, "alone", lambda self, seconds: False)
    return runs_made(monkeypatch)


@pytest.mark.parametrize("groups, threads, workers, pieces", [
    (4, 8, 16, 4), (4, 8, 8, 2), (4, 8, 7, 1), (4, 8, 4, 1), (4096, 8, 16, 1), (1, 8, 16, 8), (1, 8, 3, 3), (4, 1, 16, 1), (1, 8, 1, 1),
])  # fmt: skip
def test_there_are_as_many_pieces_as_workers_at_most(groups: int, threads: int, workers: int, pieces: int) -> None:
    assert worker_count.most_pieces(groups, threads, workers) == pieces


@pytest.mark.covering(1)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("workers", [12, 32])
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_pieces_do_what_their_group_does(engine: str, workers: int, body: str, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same memory, remarks and counts; workers that are kept take groups in pieces, whole, and in pieces again."""
    dispatcher, found, (_, _, threads, instructions) = EngineDispatcher(engine, workers), list[int](), expected(body)
    run = again(job(shows(BODIES[body])), dispatcher, monkeypatch)
    for worth in (0.0, FAR, 0.0, FAR, FAR, 0.0):
        monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", worth)
        assert run() == expected(body)
        found.append(made[-1].share.pieces)
    assert found == [workers // GROUPS, 1, workers // GROUPS, 1, 1, workers // GROUPS] and len(made) == 1
    (total,) = dispatcher.ran.values()
    assert (total.dispatches, total.threads, total.instructions) == (6, 6 * threads, 6 * instructions) and threads == GROUPS * THREADS


@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_four_groups_occupy_eight_workers(engine: str, made: list[Any]) -> None:
    """No thread ends before all of them have started: each worker runs its piece while the others run theirs."""
    task, end = job(MEETS, (GROUPS * THREADS,)), time.monotonic() + 20
    task.buffers = [bytes(4)]
    ran = task.run(GpuDevice(task.device, timed_out=lambda: time.monotonic() > end, dispatcher=EngineDispatcher(engine, 8)))
    assert ran.buffer(0) == (GROUPS * THREADS,)
    assert [taken.dispatch.threads_done for taken in made[0].workers] == [4] * 8


@pytest.mark.covering(2)
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
@pytest.mark.parametrize("workers", [1, 2, 5, 8])
@pytest.mark.parametrize("worth", [0.0, FAR])
def test_threads_of_a_group_that_wait_for_each_other_end(engine: str, workers: int, worth: float, made: list[Any],
                                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Also where one worker begins and does not ask for help."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", worth)
    shape, end = Shape((128, 1), groups=1), time.monotonic() + 20
    task = shape.job(HEAD + MEETS, [bytes(4)], (THREADS,), local=0, front=MANY_THREADS)
    ran = task.run(GpuDevice(task.device, timed_out=lambda: time.monotonic() > end, dispatcher=EngineDispatcher(engine, workers)))
    assert ran.buffer(0) == (THREADS,) and ran.gpu.counters.threads == THREADS
    assert [run.share.pieces for run in made] == [workers]


@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_groups_that_wait_for_each_other_end(engine: str, made: list[Any]) -> None:
    """As many as there are workers, whole; code that is looked for again does not keep the others from beginning."""
    task, end = job(MEETS, (GROUPS * THREADS,), descriptor={"barrier_enable": 1}), time.monotonic() + 20
    task.buffers = [bytes(4)]
    ran = task.run(GpuDevice(task.device, timed_out=lambda: time.monotonic() > end, dispatcher=EngineDispatcher(engine, GROUPS)))
    assert ran.buffer(0) == (GROUPS * THREADS,) and made[0].share.pieces == 1


SHARES = {
    "barrier": {"descriptor": {"barrier_enable": 1}}, "local memory": {"local": 1024}, "one thread at a time": {"front": {}},
}  # fmt: skip


@pytest.mark.behaviour("KBL-GPGPU-12", shows="action")
@pytest.mark.parametrize("what", SHARES)
@pytest.mark.parametrize("engine", ENGINES)
def test_groups_that_share_something_stay_whole(engine: str, what: str, made: list[Any]) -> None:
    assert outcome(job(shows(""), **SHARES[what]).run(groups=EngineDispatcher(engine, 32))) == expected("in order")
    assert [(run.most_pieces, run.share.pieces, run.most) for run in made] == [(1, 1, 1 if what.startswith("one") else GROUPS)]


@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_a_barrier_that_no_command_has_enabled_keeps_groups_whole(engine: str, made: list[Any]) -> None:
    """Also where a translation is at hand, and nothing of the kernel is decoded."""
    task = job(FLAT + READS["surface"] + BARRIER + SHOW)
    for _ in range(2):
        assert outcome(task.run(groups=EngineDispatcher(engine, 32))) == outcome(task.run(groups=EngineDispatcher()))
    assert [run.most_pieces for run in made] == [1, 1]


# How a kernel gets past the end of the code that it names: by an offset in r8, or an address in r60, counted in so many instructions.
INDIRECT = {
    "jmpi": ("(W)  mov (1|M0) r8.0<1>:d 16:d\n(W)  jmpi r8.0\n", 0),
    "brd": ("(W)  mov (1|M0) r8.0<1>:d 32:d\n(W)  brd (16|M0) r8\n", 0),
    "ret": ("(W)  mov (1|M0) r60.0<1>:ud {end}:ud\n(W)  mov (1|M0) r60.1<1>:ud 0xFFFF:ud\n(W)  ret (16|M0) r60.0\n", 4),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("how", INDIRECT)
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_a_barrier_that_a_register_leads_to_keeps_groups_whole(engine: str, how: str, made: list[Any]) -> None:
    before, (jump, lines) = FLAT + READS["surface"], INDIRECT[how]
    jump = jump.format(end=16 * (len((HEAD + before).splitlines()) + lines))
    task = job(f"{before}{jump}{END}\n{BARRIER}{SHOW}")
    assert outcome(task.run(groups=EngineDispatcher(engine, 32))) == outcome(task.run(groups=EngineDispatcher()))
    assert [run.most_pieces for run in made] == [1]


def test_groups_that_take_little_time_or_have_one_worker_stay_whole(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    again_run = again(job(shows(LOOPS)), EngineDispatcher("t1", 8), monkeypatch)

    def runs() -> tuple[int, int, int, int]:
        again_run()
        (run,) = made
        return run.share.pieces, run.share.end, run.limit, len(run.workers)

    assert runs()[:3] == (2, 8, 8)  # nothing is known of them yet
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", FAR)
    assert runs() == (1, GROUPS, GROUPS, 1)
    made[0].pace = 1.0
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.5)
    assert runs() == (2, 8, 8, 8)
    made[0].pace = 1.0
    monkeypatch.setattr(worker_count.WorkerCountTuner, "alone", lambda self, seconds: True)
    assert runs() == (1, GROUPS, 1, 1)


def test_the_pace_of_pieces_is_that_of_their_groups(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of compiled code takes a second."""
    run_parts, calls = scheduler.run_parts, list[int]()

    def slowly(given: Any) -> bool:
        calls.append(len(given))
        done = run_parts(given)
        made[0].share.seconds = 1.0
        return done

    monkeypatch.setattr(scheduler, "run_parts", slowly)
    job(shows("")).run(groups=EngineDispatcher("t1", 32))
    assert made[0].share.pieces == 8 and made[0].pace == sum(calls) / GROUPS


def test_code_of_which_nothing_is_known_may_wait() -> None:
    context, dispatch = recorded(job(shows("")))
    program = load(context, dispatch)
    assert program.waits
    EngineDispatcher("t0", 1)._built(context).function(program, dispatch.control[0], dispatch.simd)
    assert not program.waits


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("who", [0, 3, 7])
def test_a_fault_names_the_same_thread(engine: str, who: int, made: list[Any]) -> None:
    """Those after it fault as well, in all groups from the second on; others wait until it has written, which it will not."""
    kernel = f"""{THREAD}
(W)  mov (8|M0) r10.0<1>:ud r4.0<0;1,0>:ud
(W)  mul (1|M0) r6.0<1>:ud r5.0<0;1,0>:ud 4:ud
(W)  add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud r6.0<0;1,0>:ud
(W)  cmp (1|M0) (ge)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud
(W)  cmp (1|M0) (ge)f0.1 null<1>:ud r0.1<0;1,0>:ud 1:ud
(W&~f0.1) jmpi ends
(W&f0.0) jmpi faults
(W)  mov (8|M0) r10.0<1>:ud 0:ud
look:
(W)  send (1|M0) r20 r10 0xC 0x02106E01
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r20.0<0;1,0>:ud 0:ud
(W&f0.0) jmpi look
faults:
(W)  send (1|M0) null r10 0xC 0x04026EFF
ends:
{END}
"""
    said = []
    for dispatcher in (EngineDispatcher("t0", 1), EngineDispatcher(engine, 1), EngineDispatcher(engine, 32)):
        task, end = job(kernel, (NOWHERE, 0, 16 * who)), time.monotonic() + 20
        with pytest.raises(SoftgenError) as caught:
            task.run(GpuDevice(task.device, timed_out=lambda end=end: time.monotonic() > end, dispatcher=dispatcher))
        said.append(str(caught.value))
    assert said == [said[0]] * 3 and f"write at {NOWHERE + 64 * who:#x}" in said[0]
    assert made[-1].share.pieces == 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("who", [0, 3, 7])
def test_the_thread_that_goes_round_for_ever_is_named(engine: str, who: int, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 1_000_000)
    stays = f"""{THREAD}
(W)  cmp (1|M0) (ne)f0.1 null<1>:ud r0.1<0;1,0>:ud 2:ud
(W&f0.1) jmpi ends
again:
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud
(W&f0.0) jmpi again
ends:
{END}
"""
    task, end = job(stays, (0, 0, 16 * who)), time.monotonic() + 0.5
    gpu = GpuDevice(task.device, timed_out=lambda: time.monotonic() > end, dispatcher=EngineDispatcher(engine, 32))
    with pytest.raises(SoftgenError, match=rf"time is up: thread {who} of group \(2, 0, 0\)"):
        task.run(gpu)
    assert made[-1].share.pieces == 8
    assert gpu.counters.threads < GROUPS * THREADS  # those that had their turn by then


def test_pieces_are_compared_with_the_reference(made: list[Any]) -> None:
    task = job(shows(LOOPS))
    ran = task.run(groups=ComparingDispatcher(EngineDispatcher(), EngineDispatcher("t1", 32)))  # type: ignore[arg-type]
    assert outcome(ran) == expected("loops") and made[0].share.pieces == 8

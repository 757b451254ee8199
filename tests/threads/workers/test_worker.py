"""Workers of compiled engines: local memory to its last byte, turns, places in errors, statistics, and state that is used again."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import SENDS, KernelProgram
from softgen.eu.thread.block import ThreadStatus
from softgen.lanes.compile import compile_policy, jit
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.threads.dispatch import DispatchContext
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native.scheduler import GroupShare, ReturnReason
from softgen.threads.payload import PayloadList, TemplatePayload
from softgen.threads.programs import load
from softgen.threads.workers import group_cache, groups, shared, worker
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import WorkerState
from tests.gpgpu.engines import Choice, Leaving, engines
from tests.gpgpu.job import ADD, END, Job, dwords, local_dword, vector_add, words
from tests.gpgpu.test_dispatch import STAMPS
from tests.threads.sets import runs_made
from tests.threads.workers.test_pool import MODE, Asked, job, recorded

COMPILED = [engine for engine in engines() if engine.name != "reference"]


@pytest.mark.parametrize("engine", engines(), ids=str)
def test_the_last_dword_of_local_memory(engine: Choice) -> None:
    assert local_dword(0x3FC).run(groups=engine.groups()).buffer(0) == (7,)


@pytest.mark.parametrize("engine", engines(), ids=str)
def test_a_thread_that_jumps_to_itself_leaves_the_others_their_turns(engine: Choice) -> None:
    """Thread 0 never ends; thread 1 stores, and the time limit ends both."""
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  and (1|M0)  r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x7:ud
(W)  cmp (1|M0)  (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud 0x0:ud
here:
(W&f0.0) jmpi here
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
    made = Job(kernel, [bytes(4)], simd=8, shape=(2, 1, 1))
    space = made.memory()
    gpu = GpuDevice(made.device, timed_out=lambda: space.read32(made.address(0)) == 7, dispatcher=engine.groups())
    made.memory = lambda: space  # type: ignore[method-assign]
    with pytest.raises(SoftgenError, match=r"time is up: thread 0 of group \(0, 0, 0\), kernel 0x40000\+0x50: .*jmpi"):
        made.run(gpu)


STRANGE = "define i64 @strange(ptr %block, ptr %context) { ret i64 99 }"


@cache
def _strange() -> jit.LoadedCode:
    return jit.load(STRANGE, ("strange",))


class Strange(Leaving):
    """Compiled code that returns a status that does not exist."""

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        return CompiledFunction(_strange().address("strange"), owner=_strange())


@pytest.mark.parametrize("threads", [1, 3])
def test_code_with_an_unknown_status_is_named_by_its_thread(threads: int) -> None:
    made = Job(ADD, [bytes(64), bytes(64)], shape=(threads, 1, 1), shared=bytes(32), own=[bytes(32)] * threads)
    said = r"thread 0 of group \(0, 0, 0\), kernel 0x40000\+0x0: .*mov.*: compiled code came back with an unknown status"
    with pytest.raises(SoftgenError, match=said):
        made.run(groups=EngineDispatcher("strange", 1, make=lambda name: Strange()))


@pytest.mark.parametrize("engine", engines(), ids=str)
def test_seconds_of_a_kernel_are_those_it_took(engine: Choice) -> None:
    dispatcher, began = engine.groups(), time.perf_counter()
    for _ in range(2):
        vector_add("skl").run(groups=dispatcher)
    (ran,) = dispatcher.ran.values()
    assert 0 < ran.seconds < time.perf_counter() - began and ran.dispatches == 2


def test_the_engine_chosen_last_decides_whether_compiling_is_in_the_background() -> None:
    before = compile_policy.in_background()
    try:
        for name, expected in (("auto", True), ("t1", False), ("auto", True), ("reference", False)):
            EngineDispatcher(name, 1)
            assert compile_policy.in_background() is expected
    finally:
        compile_policy.compile_in_background(before)


def test_addresses_beyond_the_last_begin_at_the_first() -> None:
    """Commands hold canonical addresses, and offsets may be negative numbers of 64 bits."""
    context = DispatchContext(vector_add("skl").device.generation, AddressSpace("space", 48), {"instruction": 0xFFFF_FFFF_F000})
    assert context.address("instruction", 0x1010) == 0x10 and context.address("instruction", -0x10 & 2**64 - 1) == 0xFFFF_FFFF_EFF0
    assert context.address("general", 0x8000_0000_0001) == 0x8000_0000_0001


# -- dispatches that are not, or not all, kept -------------------------------------------------------------------------


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """States of workers that were made."""
    made: list[object] = []

    class Counted(WorkerState):
        def __init__(self, fill: int = 0) -> None:
            super().__init__(fill)
            made.append(self)

    monkeypatch.setattr(group_cache, "WorkerState", Counted)
    return made


@pytest.mark.parametrize("engine", COMPILED, ids=str)
def test_without_counters_each_dispatch_has_its_own_data(engine: Choice, states: list[object]) -> None:
    """Payloads from a template, but no patch: workers are not kept, and their state is used again."""
    made, dispatcher = vector_add("skl", ends=1), engine.groups()
    context, dispatch = recorded(made)
    assert isinstance(dispatch.payload, TemplatePayload)
    for constant in (1000, 2000, 3000):
        payload = replace(dispatch.payload, data=dwords(constant) + dispatch.payload.data[4:])
        assert sum(done.threads for done in dispatcher.run(context, replace(dispatch, payload=payload, patch=None, kind=None))) == 1
        assert context.space.read32(made.address(1) + 4) == constant + 1
    assert len(states) == 1


@pytest.mark.parametrize("engine", COMPILED, ids=str)
@pytest.mark.parametrize("dword", [1, 2, 3, 5, 7])
def test_headers_that_differ_where_threads_have_fields_of_their_own(dword: int, engine: Choice) -> None:
    """Dword 5 has fields of a thread's slot, dwords 1 and 7 have group IDs; others are the same in all threads."""
    kernel = ADD.replace("r2.0<0;1,0>:d", f"r0.{dword}<0;1,0>:d")
    made = Job(kernel, [bytes(64), bytes(64)], shape=(1, 1, 1), shared=bytes(32), own=[words(*range(16))], ends=(1, 1, 1))
    context, dispatch = recorded(made)
    assert isinstance(dispatch.payload, TemplatePayload)
    dispatcher, reference = engine.groups(), EngineDispatcher("reference")
    for value in (0, 0x7000_0000, 0x1230_0000, 0):
        header = bytearray(dispatch.payload.header)
        header[4 * dword : 4 * dword + 4] = dwords(value)
        changed = replace(dispatch, payload=replace(dispatch.payload, header=bytes(header)), kind=None)
        found = []
        for each in (reference, dispatcher):
            context.space.write(made.address(1), bytes(64))
            list(each.run(context, changed))
            found.append(context.space.read(made.address(1), 64))
        assert found[0] == found[1], value


def test_only_dispatches_whose_work_was_known_tell_how_many_workers_are_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one of a kind begins with one worker, and others come when it asks for help."""
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 10**12)  # no stages of a long dispatch, however busy the machine is
    made, dispatcher = runs_made(monkeypatch), EngineDispatcher("t1", 2)
    context, dispatch = recorded(job(count=64))
    list(dispatcher.run(context, dispatch))
    (run,) = made
    assert not run.tuner.times and run.pace > 0
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", run.pace * 32)
    list(dispatcher.run(context, dispatch))
    assert list(run.tuner.times) == [False] and run.tuner.contends() == run.shared.program.contends


def test_code_is_asked_for_by_all_of_a_threads_cr0() -> None:
    """Each thread sets other bits, of every byte (programs cannot set the highest); the first code is asked for before any does."""
    asked, bits = Asked(), [0x4040_2010, 0x0180_0020, 0x7FFF_0030]
    kernel = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud r1.0<0;1,0>:ud
{END}
"""
    made = Job(kernel, [bytes(4)], simd=8, shape=(3, 1, 1), own=[dwords(value, *[0] * 7) for value in bits])
    made.run(groups=EngineDispatcher("asked", 1, make=lambda name: asked))
    assert asked.controls == [0, *bits]


@pytest.mark.parametrize("engine", engines(), ids=str)
def test_time_stamps_count_instructions_of_earlier_dispatches_and_of_the_thread(engine: Choice) -> None:
    """Two groups, whose threads look after one instruction and after four."""
    made, dispatcher = Job(STAMPS, [bytes(16)], simd=8, ends=(2, 1, 1)), engine.groups()
    context, dispatch = recorded(made)
    for elapsed in (0, 1000):
        list(dispatcher.run(replace(context, elapsed=elapsed), dispatch))
        assert context.space.read(made.address(0), 16) == dwords(*[elapsed + 1, elapsed + 4] * 2)


def test_an_instruction_that_changes_cr0_alone_is_left_by_the_first_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter executes it once; scheduler.c does the same for every other thread."""
    left: list[int] = []
    escape = worker.Worker._escape
    monkeypatch.setattr(worker.Worker, "_escape", lambda self: (left.append(self.control_of(self.dispatch.current).ip), escape(self))[1])
    job(MODE, 5).run(groups=Choice("leaving").groups())
    assert sorted(Counter(left).values())[:3] == [1, 1, 5]  # there are two of them


def test_as_many_answers_are_repeated_as_there_is_room_for() -> None:
    context, dispatch = recorded(job(count=3))
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), lambda worker: None)
    code = Leaving().function(None, 0, 0)  # type: ignore[arg-type]
    for number in range(40):
        status = ThreadStatus.ESCAPE if number % 2 else ThreadStatus.CR0_CHANGED
        made._remember(status, number, 16 * number, number + 1, 16 * number + 16, code)
    assert made.dispatch.answer_count == 32 and len(made.answers) == 32
    found = [(answer.status, answer.control, answer.ip, answer.then, answer.next, answer.counts) for answer in made.answers]
    assert found[30:] == [(ThreadStatus.CR0_CHANGED, 30, 480, 31, 496, 0), (ThreadStatus.ESCAPE, 31, 496, 32, 512, 1)]
    assert {(answer.function, answer.program) for answer in made.answers} == {(code.address, code.program)}


def test_nothing_is_learnt_from_a_message_that_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter executes it, and reports why; compiled code would come back to it for ever."""
    context, dispatch = recorded(vector_add("skl"))
    found = SharedDispatch(context, dispatch, load(context, dispatch), Leaving())
    thread = worker.Worker(found, 0, WorkerState(), lambda worker: None)._runner(0).thread
    thread.ip = next(line.ip for line in map(found.program.line, range(dispatch.kernel, dispatch.kernel + 4096, 16))
                     if line.instruction.opcode in SENDS)  # fmt: skip
    assert found.learn(thread)

    def refused(*message: object) -> None:
        raise SoftgenError("payload outside of the registers")

    monkeypatch.setattr(shared, "build_message", refused)
    assert not found.learn(thread)


def test_the_last_thread_is_named_where_all_had_their_turns() -> None:
    context, dispatch = recorded(Job(ADD, [bytes(64)], shape=(3, 1, 1), shared=dwords(*range(16)), own=[words(*range(16))] * 3))
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), lambda worker: None)
    made.dispatch.current = 3
    assert made.place().startswith("thread 2 of group (0, 0, 0)")


def test_the_place_of_a_thread_that_is_at_no_instruction_is_its_kernel() -> None:
    """Who asks how far long work is may ask before a thread has begun: that is no fault of the work."""
    context, dispatch = recorded(vector_add("skl"))
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), lambda worker: None)
    made.control_of(0).ip = dispatch.kernel + (1 << 28)
    assert made.place(0) == f"thread 0 of group (0, 0, 0), kernel {made.shared.program.address:#x}"


@pytest.mark.parametrize("begin, current, ended, thread", [
    (0, 2, (), 1), (0, 2, (1,), 2), (0, 2, (1, 2), 0), (0, 0, (), 0), (0, 0, (0,), 1), (0, 4, (), 3), (0, 4, (3,), 0), (0, 4, (0, 1, 3), 2),
    (0, 2, (0, 1, 2, 3), 1), (2, 2, (), 2), (2, 3, (), 2), (2, 3, (2,), 3), (2, 2, (2,), 3), (2, 4, (3,), 2),
])  # fmt: skip
def test_a_time_limit_names_the_thread_that_had_its_turn_last(begin: int, current: int, ended: tuple[int, ...], thread: int) -> None:
    """Unless it has ended: then the next one that has not, of the group or of the piece of it that is under way."""
    context, dispatch = recorded(Job(ADD, [bytes(64)], shape=(4, 1, 1), shared=dwords(*range(16)), own=[words(*range(16))] * 4))
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), lambda worker: None)
    made.dispatch.begin, made.dispatch.current = begin, current
    for number in range(4):
        made.control_of(number).status = ThreadStatus.ENDED if number in ended else ThreadStatus.ESCAPE
    assert made.busy() == thread


@pytest.mark.parametrize("apart, turns, thread", [(0, 3, 0), (0, 2, 1), (0, 1, 2), (1, 3, 1)])
def test_a_fault_names_the_thread_whose_turn_it_was(apart: int, turns: int, thread: int) -> None:
    """Threads that run the same code have their turns in one call, which counts those that are left; others have a call each."""
    context, dispatch = recorded(Job(ADD, [bytes(64)], shape=(3, 1, 1), shared=dwords(*range(16)), own=[words(*range(16))] * 3))
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), lambda worker: None)
    made.context.turns, made.dispatch.apart, made.dispatch.current = turns, apart, 1
    made.call.record.ip, made.call.record.address, made.call.record.origin = guard.NO_IP, 0x40, 0
    said = rf"thread {thread} of group \(0, 0, 0\), kernel 0x40000\+0x0: .*mov.*: read at host address 0x40, which is in no arena"
    with pytest.raises(SoftgenError, match=said):
        made.answer(None)


class Replaced(Leaving):
    """An engine whose code is replaced while a dispatch runs."""

    def __init__(self) -> None:
        self.code = super().function(None, 0, 0)  # type: ignore[arg-type]

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        return self.code

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return chosen is self.code


def test_code_with_other_live_in_ranges_finds_no_clean_block() -> None:
    """Blocks that one function leaves clean may hold anything where it reads nothing, and another function reads there."""
    context, dispatch = recorded(job(count=3))
    engine, state = Replaced(), WorkerState()
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), engine), 0, state, lambda worker: None)
    code, register = engine.code, ((0x400, 32),)
    for needs, dirty in [((), True), ((), False), (register, True), (register, False), (None, True), ((), True)]:
        state.dirty[:] = 0
        engine.code = code._replace(needs=needs)
        made.choose()
        assert state.dirty.tolist() == [int(dirty)] * made.threads, needs


def test_the_next_poll_is_a_slice_after_the_start_and_after_each_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SLICE", 10**15)
    context, dispatch = recorded(job(count=3))
    polled: list[worker.Worker] = []
    made = worker.Worker(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), 0, WorkerState(), polled.append)
    share = GroupShare(end=3)
    for polls, act in enumerate((lambda: made.join(share), lambda: made.answer(ReturnReason.DEADLINE))):
        made.dispatch.deadline, before = 0, time.monotonic_ns()
        act()
        assert before <= made.dispatch.deadline - 10**15 <= time.monotonic_ns() and len(polled) == polls


def test_payloads_take_whole_registers() -> None:
    assert [PayloadList((bytes(8), bytes(size))).registers for size in (32, 33, 64)] == [1, 2, 2]


@pytest.mark.parametrize("left, workers", [(0, 1), (1, 2)])
def test_no_worker_joins_where_no_group_is_left(left: int, workers: int) -> None:
    context, dispatch = recorded(job(count=3))
    run = groups.GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), lambda number: WorkerState(), threads=2)
    run._staff(0.0)
    run.share.next = run.share.end - left
    run._late()
    assert len(run.workers) == workers

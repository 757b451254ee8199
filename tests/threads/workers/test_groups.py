"""Group runs: when they poll, what they answer, and which failure they report."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.errors import GpuFault, Unsupported
from softgen.eu.engine_protocol import AffineRange, CompiledFunction, CompilerEngine
from softgen.eu.thread.block import BLOCK_SIZE
from softgen.lanes.compile import foreground
from softgen.threads.dispatch import ThreadDispatch, control_register, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.payload import PayloadList, TemplatePayload
from softgen.threads.programs import load
from softgen.threads.workers import groups, worker
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import WorkerState
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import ADD, Job, dwords, words
from tests.threads.workers.test_pool import job, recorded


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slice ends, however busy the host is: workers stay as they are."""
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 10**15)


def group_run(threads: int = 1) -> groups.GroupRun:
    """A run of three groups."""
    context, dispatch = recorded(job(count=3))
    return groups.GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), lambda number: WorkerState(), threads)


def test_the_time_limit_is_polled_once_where_no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 10**15)
    run, polls = group_run(), list[int]()
    assert run.pace == 0  # nothing is known of it yet
    list(run.run(lambda: bool(polls.append(1))))  # type: ignore[func-returns-value]
    assert len(polls) == 1


def test_the_first_group_that_failed_is_reported() -> None:
    run = group_run()

    def fails(group: int) -> Any:
        def answer(why: int | None) -> None:
            raise GpuFault(group, "read")

        return SimpleNamespace(dispatch=SimpleNamespace(first=group, last=9, inside=1), answer=answer, state=WorkerState())

    failing = [fails(group) for group in (5, 3, 4)]
    for each in failing:
        run._answer_one(each, None)
    assert run.failed is not None and (run.failed[0], run.failed[1].address) == (3, 3)  # type: ignore[attr-defined]
    assert [(each.dispatch.first, each.dispatch.inside) for each in failing] == [(9, 0)] * 3  # what they had taken is given up,
    assert run.share.next == run.share.end  # and nobody takes more


@pytest.mark.parametrize("before, after", [(1e-12, 1.5e-12), (0.0, None), (1.0, None)])
def test_a_pace_rises_slowly_and_falls_at_once(before: float, after: float | None) -> None:
    """What disturbs a dispatch makes it longer; None: what the dispatch took."""
    run = group_run()
    run.pace = before
    list(run.run(never))
    assert run.pace == (after if after is not None else run.spent / 3)


@pytest.mark.parametrize("alone", [True, False])
def test_a_run_begins_with_one_worker_or_with_all(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 10**15)
    run = group_run(threads=2)
    run.pace = 1.0  # as long as if it were worth both
    monkeypatch.setattr(run.tuner, "alone", lambda seconds: alone)
    list(run.run(never))
    assert run.stages.alone is alone and run.limit == len(run.workers) == (1 if alone else 2)


@pytest.mark.usefixtures("unhurried")
def test_workers_of_the_dispatch_before_begin_with_nothing_done() -> None:
    """As those that join do: here with no groups left, so that nothing follows. After the slice they return."""
    run = group_run(threads=2)
    run.pace = 1.0
    list(run.run(never))
    made = run.workers[0].dispatch
    fields = ("share", "chunk", "numbered", "taken", "first", "last", "threads_done", "instructions", "inside", "answer_count")
    run.workers[0].join(run.share)
    joined = [getattr(made, name) for name in fields]
    for name in fields[1:]:
        setattr(made, name, 77)
    run.share.end, run.share.next, run.share.halted = 0, 77, 1
    assert scheduler.restarting(run.parts, 10**15)() and run.share.next == run.share.halted == 0
    assert [getattr(made, name) for name in fields] == joined and 0 < made.deadline - time.monotonic_ns() <= 10**15


@pytest.mark.parametrize("held", [True, False])
def test_workers_of_the_dispatch_before_go_on_with_better_code(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the engine has some."""
    run, asked = group_run(), list[int]()
    list(run.run(never))
    function = run.shared.function
    monkeypatch.setattr(run.shared.engine, "holds", lambda program, chosen: held)
    monkeypatch.setattr(run.shared, "function", lambda control, entry=None: (asked.append(control), function(control, entry))[1])
    assert run.renew(run.shared.reports.context, run.shared.dispatch)
    list(run.run(never))
    assert len(asked) == (0 if held else 1)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("differs", ["nothing", "code", "rows"])
def test_the_engine_is_asked_once_for_workers_with_the_same_code(differs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = group_run(threads=3), list[Any]()
    run.pace = 1.0
    list(run.run(never))
    last, held = run.workers[-1], run.shared.engine.holds
    assert len(run.workers) == 3 and last.chosen is not None
    monkeypatch.setattr(run.shared.engine, "holds", lambda program, chosen: (asked.append(chosen), held(program, chosen))[1])
    other = last.chosen = last.chosen._replace(program=last.chosen.program + (differs == "code"))
    last.rows = () if differs != "rows" else (AffineRange(0, 4, 1, 0),)
    run.shared.rows = ()
    for made in run.workers[:2]:
        made.rows = run.shared.rows
    run._choose_again()
    assert len(asked) == (2 if differs == "code" else 1) and (asked[-1] is other) == (differs == "code") and last.rows is run.shared.rows


@pytest.mark.usefixtures("unhurried")
def test_a_run_with_other_workers_than_before_has_them_join(monkeypatch: pytest.MonkeyPatch) -> None:
    run, again, restarting = group_run(threads=2), list[int](), scheduler.restarting

    def counted(parts: Any, slice: int) -> Any:
        restart = restarting(parts, slice)
        return lambda: (again.append(len(parts)), restart())[1]

    monkeypatch.setattr(scheduler, "restarting", counted)
    monkeypatch.setattr(run.tuner, "alone", lambda seconds: False)
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 3.0)
    for pace in (1.5, 1.5, 0.5, 0.5, 1.5):  # seconds of each of three groups
        assert run.renew(run.shared.reports.context, run.shared.dispatch)
        run.pace = pace
        assert sum(finished.threads for finished in run.run(never)) == 3 * run.shared.dispatch.threads
    assert again == [2, 1]


def test_work_that_is_not_worth_another_worker_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked, told = group_run(threads=2), list[float](), list[bool]()
    monkeypatch.setattr(run.tuner, "alone", lambda seconds: bool(asked.append(seconds)))  # type: ignore[func-returns-value]
    monkeypatch.setattr(run.tuner, "ran", lambda alone, seconds: told.append(alone))
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 3.0)
    for pace in (0.5, 1.0, 1.5):
        run.pace, run.share.next = pace, 0
        list(run.run(never))
    assert asked == [4.5] and told == [False]  # seconds of three groups; with both workers
    one = group_run(threads=1)
    monkeypatch.setattr(one.tuner, "alone", lambda seconds: bool(asked.append(seconds)))  # type: ignore[func-returns-value]
    one.pace = 1.5
    list(one.run(never))
    assert asked == [4.5]  # there is nothing to choose


@pytest.mark.parametrize("headers, same", [
    ([{2: 5}, {2: 6}, {}], [True, True, True]), ([{3: 5}, {2: 5}, {2: 5, 3: 5}, {3: 6}], [True, False, False, True]),
    ([{2: 5, 3: 5}, {3: 5}], [False, True]), ([{1: 5}, {5: 5}, {7: 5}, {0: 5}], [False, False, False, True]),
    ([{0: 5}, {1: 5}, {0: 6, 1: 5}], [True, False, False]),
])  # fmt: skip
def test_headers_that_workers_can_change(headers: list[dict[int, int]], same: list[bool]) -> None:
    """One dword of them, always the same, and none with counters (1, 6 and 7) or fields of a thread's slot (5)."""
    run, found = group_run(), list[bool]()
    payload = run.shared.dispatch.payload
    assert isinstance(payload, TemplatePayload)
    for changed in headers:
        data = bytearray(payload.header)
        for dword, value in changed.items():
            data[4 * dword : 4 * dword + 4] = dwords(value ^ int.from_bytes(data[4 * dword : 4 * dword + 4], "little"))
        dispatch = replace(run.shared.dispatch, payload=replace(payload, header=bytes(data)))
        found.append(run.renew(run.shared.reports.context, dispatch))
    assert found == same


def test_helpers_are_woken_for_the_next_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the last one had, besides the calling thread."""
    woken, run = list[int](), group_run(threads=3)
    monkeypatch.setattr(groups.scheduler, "alert", woken.append)
    run._staff(3 * groups.MIN_PARALLEL_TIME + 1.0)
    context, _ = recorded(job(count=3))
    assert run.renew(replace(context, space=run.shared.space), run.shared.dispatch) and woken == [2]
    for threads, expected in ((1, [2]), (2, [2, 1])):
        other = group_run(threads)
        other._staff(1.0)
        assert other.renew(replace(context, space=other.shared.space), other.shared.dispatch) and woken == expected


@pytest.mark.parametrize("at", [0, 8, 16])
def test_the_dword_of_a_header_that_differs_is_four_bytes(at: int) -> None:
    run = group_run()
    payload: Any = run.shared.dispatch.payload
    header = payload.header[:at] + bytes((0x81, 0x82, 0x83, 0x84)) + payload.header[at + 4 :]
    assert run.renew(run.shared.reports.context, replace(run.shared.dispatch, payload=replace(payload, header=header)))
    assert (run.share.constants, run.share.constant, run.share.constant_offset) == (1, 0x84838281, at)


def test_the_memory_of_a_run() -> None:
    """A block and a template for each thread of each worker, and 16 KiB of bindings."""
    own = [words(*range(16))] * 5
    context, dispatch = recorded(Job(ADD, [bytes(64)], shape=(5, 1, 1), shared=dwords(*range(16)), own=own, ends=(4, 1, 1)))
    run = groups.GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), lambda number: WorkerState(), threads=3)
    assert run.bytes == 0x4000
    run._employ(1)
    assert run.bytes == 0x4000 + 10 * BLOCK_SIZE
    run._employ(3)
    assert run.bytes == 0x4000 + 30 * BLOCK_SIZE


@pytest.mark.usefixtures("unhurried")
def test_a_worker_that_comes_later_has_the_header_of_its_dispatch() -> None:
    """Of a header one dword may differ between dispatches of a kind; workers write it as they write counters."""
    run = group_run(threads=2)
    list(run.run(never))
    payload, patch = run.shared.dispatch.payload, run.shared.dispatch.patch
    assert isinstance(payload, TemplatePayload) and patch is not None

    def renew(value: int) -> bool:
        header = payload.header[:8] + dwords(value) + payload.header[12:]
        return run.renew(run.shared.reports.context, replace(run.shared.dispatch, payload=replace(payload, header=header)))

    def constants() -> list[tuple[int, int, int]]:
        last = len(patch.counters)
        return [(made.dispatch.axes - last, made.dispatch.patch_offset[last], made.dispatch.origin[last]) for made in run.workers]

    run.work = 0.0
    assert renew(0x1234) and not run._begin() and constants() == [(1, 8, 0x1234)]
    run._staff(2 * groups.MIN_PARALLEL_TIME + 1.0)
    assert constants() == [(1, 8, 0x1234)] * 2
    run.work = 3.0
    assert renew(0x1235) and run._begin() and run._run_parts(True) and constants() == [(1, 8, 0x1235)] * 2


@pytest.mark.parametrize("inside, first, unfinished", [(0, 2, False), (1, 2, True), (0, 1, True)])
def test_a_worker_has_not_finished_inside_of_a_group_or_before_its_last(inside: int, first: int, unfinished: bool) -> None:
    run = group_run()
    run._staff(0.0)
    (made,) = run.workers
    made.dispatch.inside, made.dispatch.first, made.dispatch.last = inside, first, 2
    assert made.unfinished is unfinished


def test_what_a_dispatch_does_not_say() -> None:
    """State is at its bases, and floats are those of IEEE."""
    made = ThreadDispatch(kernel=0, control=(0,), simd=8, groups=1, threads=1, payload=PayloadList((bytes(32),)))
    assert (made.binding_table, made.samplers, made.local_bytes) == (0, 0, 0)
    other = replace(made, kind=object())
    assert other == made and repr(other) == repr(made) and "kind" not in repr(made)  # which objects they were made from is no part of them
    assert control_register(9) == control_register(9, single_program_flow=False, alternate_float_mode=False, rounding_mode=0)


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_an_error_is_gone_when_nobody_has_it_any_more(engine: str) -> None:
    """Without the garbage collector: its traceback leads to the submission that failed, with its buffers."""
    kernel = ADD.replace("0x08025E01", "0x08025EFF")  # stateless from 0 on: nothing is mapped there
    dispatcher, gone = EngineDispatcher(engine, 1), list[weakref.ref[GpuFault]]()
    context, dispatch = recorded(job(kernel, 1))
    gc.collect()
    gc.disable()
    try:
        try:
            list(dispatcher.run(context, dispatch))
        except GpuFault as fault:
            gone.append(weakref.ref(fault))
        assert [error() for error in gone] == [None]
    finally:
        gc.enable()


class InForeground(Leaving):
    """Notes what is done while others give way, and what is not; `error`: what linking ends with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.seen, self.error = set[tuple[str, bool]](), error
        for where, what in ((scheduler, "run_parts"), (worker.Worker, "answer")):
            monkeypatch.setattr(where, what, self.noted(what, getattr(where, what)))

    def noted(self, what: str, real: Any) -> Any:
        def run(*arguments: Any) -> Any:
            self.note(what)
            return real(*arguments)

        return run

    def note(self, what: str) -> None:
        self.seen.add((what, threading.get_ident() in foreground._threads))

    def function(self, *arguments: Any, **options: Any) -> CompiledFunction:
        self.note("function")
        if self.error is not None:
            raise self.error
        return super().function(*arguments, **options)


def test_translations_give_way_to_a_dispatch_but_for_its_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = InForeground(monkeypatch)
    for _ in EngineDispatcher("leaving", 1, make=lambda name: engine).run(*recorded(job(count=3))):
        engine.note("elsewhere")  # the streamer may wait for its turn
    assert engine.seen == {("function", True), ("run_parts", False), ("answer", True), ("elsewhere", False)} and not foreground._threads


@pytest.mark.parametrize("error", [GpuFault(0, "read"), KeyboardInterrupt()], ids=["fault", "Ctrl-C"])
def test_they_go_on_after_a_dispatch_that_fails(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = InForeground(monkeypatch, error)
    with pytest.raises(type(error)):
        list(EngineDispatcher("leaving", 1, make=lambda name: engine).run(*recorded(job(count=3))))
    assert engine.seen == {("function", True)} and not foreground._threads


def test_they_go_on_while_the_reference_runs_a_dispatch() -> None:
    def make(name: str) -> CompilerEngine:
        raise Unsupported("there is none")

    list(EngineDispatcher("none", 1, make=make).run(*recorded(job(count=3))))
    assert not foreground._threads

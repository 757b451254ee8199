"""Group runs: workers that are kept for the next dispatch of a kind, which of them are used again, and what a run answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.threads import groups, worker
from softgen.threads.dispatch import ThreadDispatch, control_register
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import PayloadList
from softgen.threads.programs import load
from softgen.threads.shared import SharedDispatch
from softgen.threads.worker import WorkerState
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import dwords, vector_add
from tests.threads.test_pool import job, recorded


def runs_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    class Counted(groups.GroupRun):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(groups, "GroupRun", Counted)
    return made


def compared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that are asked whether they suit a dispatch."""
    found, renew = list[Any](), groups.GroupRun.renew
    monkeypatch.setattr(groups.GroupRun, "renew", lambda self, *values: (found.append(self), renew(self, *values))[1])
    return found


def test_sets_of_buffers_in_turn_have_workers_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are kept of a kind, in any order; one more takes the place of the one used longest ago."""
    made, count = runs_made(monkeypatch), 4
    monkeypatch.setattr(groups, "MOST_OF_A_KIND", count)
    run = sets_of_buffers(count + 1)
    for number in (*range(count), *range(count), 2, 0, 3, 1, 0, 2):
        run(number)
    assert len(made) == count
    run(count)
    run(2)
    run(0)
    assert len(made) == count + 1


def test_blocks_of_kept_workers_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used longest ago go first; the last are kept however large they are."""
    made, run = runs_made(monkeypatch), sets_of_buffers(4)
    run(0)
    monkeypatch.setattr(groups, "MOST_BYTES", 2 * made[0].block_bytes)
    for number in (1, 2, 1, 2):
        run(number)
    assert len(made) == 3
    run(0)
    assert len(made) == 4
    assert made[3].employed[0].state in [run.employed[0].state for run in made[:3]]  # what was dropped is used again
    monkeypatch.setattr(groups, "MOST_BYTES", 1)
    for number in (3, 3, 3):
        run(number)
    assert len(made) == 5


def test_of_more_sets_than_are_kept_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_OF_A_KIND", 3)
    asked, run = compared(monkeypatch), sets_of_buffers(5)
    for number in (*range(5), *range(5)):
        run(number)
    asked.clear()
    run(0)
    assert len(asked) == groups.FEW
    run(0)
    asked.clear()
    run(3)
    assert len(asked) == 3  # something was found: all are compared again


def sets_of_buffers(count: int) -> Callable[[int], None]:
    """A function that dispatches a kernel with one of so many sets of surfaces."""
    job, dispatcher = vector_add("skl", ends=1), EngineDispatcher("t1", 1)
    context, dispatch = recorded(job)
    tables = []
    for number in range(count):  # tables with other surface states, which name other ranges of the second buffer
        state = dwords(*job.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, width=127, height=0,
                                 surface_base_address=job.address(1) + 64 * number))  # fmt: skip
        at = 0x900 + 0x80 * number
        context.space.write(0x30000 + at, dwords(0, at + 0x40).ljust(0x40, b"\0") + state)
        tables.append(at)

    def run(number: int) -> None:
        context.space.write(job.address(1), bytes(512))
        list(dispatcher.run(context, replace(dispatch, binding_table=tables[number])))
        assert context.space.read(job.address(1) + 64 * number, 4) == dwords(1000)

    return run


def test_sets_of_buffers_that_come_in_the_same_order_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, run = compared(monkeypatch), sets_of_buffers(4)
    for number in (*range(4), *range(4)):
        run(number)
    asked.clear()
    for number in range(4):
        run(number)
    assert len(asked) == 4


def test_workers_of_a_dispatch_that_failed_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, dispatcher = runs_made(monkeypatch), EngineDispatcher("t1", 1)
    context, dispatch = recorded(job(count=3))
    for turn in range(2):
        with pytest.raises(SoftgenError, match="time is up"):
            list(dispatcher.run(context, dispatch, lambda: True))
        assert len(made) == turn + 1


def test_workers_of_a_kernel_that_was_overwritten_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    made, dispatcher = runs_made(monkeypatch), EngineDispatcher("t1", 1)
    context, dispatch = recorded(job(count=3))
    list(dispatcher.run(context, dispatch))
    at = context.bases["instruction"] + dispatch.kernel
    code = context.space.read(at, 16)
    context.space.write(at, context.space.read(at + 16, 16) + code)  # the first two instructions in the other order
    list(dispatcher.run(context, dispatch))
    (workers,) = dispatcher._workers
    assert [run for runs in workers.groups._kept.values() for run in runs] == made[1:]


def group_run() -> groups.GroupRun:
    context, dispatch = recorded(job(count=3))
    return groups.GroupRun(SharedDispatch(context, dispatch, load(context, dispatch), Leaving()), lambda number: WorkerState(), threads=1)


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

    for group in (5, 3, 4):
        run._answer_one(fails(group), None)
    assert run.failed is not None and (run.failed[0], run.failed[1].address) == (3, 3)  # type: ignore[attr-defined]


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
    assert control_register(9) == control_register(9, single_program_flow=False, alternate_float_mode=False, rounding_mode=0)

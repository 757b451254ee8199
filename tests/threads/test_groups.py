"""Group runs: when they poll, what they answer, and which failure they report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.errors import GpuFault
from softgen.threads import groups, worker
from softgen.threads.dispatch import ThreadDispatch, control_register
from softgen.threads.payload import PayloadList
from softgen.threads.programs import load
from softgen.threads.shared import SharedDispatch
from softgen.threads.worker import WorkerState
from tests.gpgpu.engines import Leaving
from tests.threads.test_pool import job, recorded


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

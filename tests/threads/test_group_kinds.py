"""Kinds of dispatches whose group runs are kept: what they have in common, and when one is forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from softgen.errors import SoftgenError
from softgen.shared_functions.unit import TABLES_END
from softgen.threads.bindings import BASES, BindingCache
from softgen.threads.dispatch import Scratch, ThreadDispatch, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.native import scheduler
from softgen.threads.payload import HeaderPatch, PayloadList, TemplatePayload, ThreadMasks
from softgen.threads.programs import DispatchProgram, load
from softgen.threads.workers import group_cache, groups
from softgen.threads.workers.group_cache import GroupCache
from tests.gpgpu.engines import Leaving
from tests.threads.sets import Sets, copied, runs_made
from tests.threads.workers.test_pool import job, recorded


class Cache:
    """A cache, and runs of two sets of surfaces that it makes."""

    def __init__(self) -> None:
        self.sets, self.bindings = Sets(2), BindingCache()
        self.context, self.cache = self.sets.context, GroupCache(1, self.bindings, strips=True)
        self.program, self.engine = load(self.context, self.sets.dispatch), Leaving()

    def dispatch(self, number: int = 0) -> ThreadDispatch:
        return replace(self.sets.dispatch, binding_table=self.sets.tables[number])

    def run(self, number: int = 0, **changed: Any) -> groups.GroupRun:
        """A new run; `changed`: of this object, for this one."""
        used = {"context": self.context, "dispatch": self.dispatch(number), "program": self.program, "engine": self.engine, **changed}
        run = self.cache.make(used["context"], used["dispatch"], used["program"], used["engine"])
        list(run.run(never))
        self.cache.done(run, True)
        return run


@pytest.mark.parametrize("what", ["nothing", "equal bases", "program", "engine", "space", "bases"])
def test_runs_of_a_kind_have_program_engine_memory_and_bases_in_common(what: str) -> None:
    """Where any of them is another one, those that were kept are not found any more, and what their workers have is used again."""
    made = Cache()
    context, bases = made.context, dict(made.context.bases)
    changed: dict[str, dict[str, Any]] = {
        "nothing": {}, "equal bases": {"context": replace(context, bases=bases)}, "program": {"program": load(context, made.dispatch())},
        "engine": {"engine": Leaving()}, "space": {"context": replace(context, space=copied(context.space))},
        "bases": {"context": replace(context, bases={**bases, "dynamic": bases["dynamic"] + 0x1000})},
    }  # fmt: skip
    first, second = made.run(0), made.run(1, **changed[what])
    if what in ("nothing", "equal bases"):
        assert made.cache.kept() == [first, second] and second.kind is first.kind
        assert made.cache.find(context, made.dispatch(0)) is first and made.cache.find(context, made.dispatch(1)) is second
    else:
        assert made.cache.kept() == [second] and second.kind is not first.kind
        assert second.employed[0].state is first.employed[0].state


def test_only_runs_that_are_not_kept_use_the_bindings_that_are() -> None:
    """One that is kept follows its binding table, and the bindings with it."""
    made = Cache()
    assert made.run(0).shared.bound is not made.bindings.find(made.context, made.dispatch(0))
    lone = replace(made.dispatch(1), kind=None, patch=None)
    run = made.run(dispatch=lone)
    assert run.shared.bound is made.bindings.find(made.context, lone) and run.kind is None
    assert made.cache.find(made.context, lone) is None and run not in made.cache.kept()
    assert made.run(dispatch=lone).employed[0].state is run.employed[0].state


def test_a_kind_is_forgotten_with_its_last_run() -> None:
    """It holds a program and a space."""
    made = Cache()
    first, second = made.run(0), made.run(1)
    made.cache._drop(first)
    assert list(made.cache._kinds.values()) == [second.kind] and made.cache.find(made.context, made.dispatch(1)) is second
    made.cache._drop(second)
    assert not made.cache._kinds and made.cache.find(made.context, made.dispatch(1)) is None


def test_the_pace_of_a_program_is_known_of_any_kind() -> None:
    """Of a run that is kept, or of the last one that was not; nothing is known of other programs."""
    made = Cache()
    first, other = made.run(0), load(made.context, made.dispatch())
    first.pace = 5.0

    def pace(program: DispatchProgram, number: int = 1) -> float:
        return made.cache.make(made.context, replace(made.dispatch(number), kind=object()), program, made.engine).pace

    assert pace(made.program) == 5.0 and pace(other) == 0.0
    made.cache._drop(first)
    assert not made.cache.kept() and pace(made.program) == 5.0 and pace(other) == 0.0


def test_what_dispatches_of_a_kind_have_in_common() -> None:
    context, dispatch = recorded(job(count=3))
    payload = dispatch.payload
    assert isinstance(payload, TemplatePayload) and dispatch.patch is not None
    kind = group_cache._kind(context, dispatch)
    again = payload.again(bytes(32), bytes(len(payload.data)))
    same = [replace(dispatch, payload=again), replace(dispatch, binding_table=0x20), replace(dispatch, kind=object())]
    assert [group_cache._kind(context, each) for each in same] == [kind] * 3
    assert group_cache._kind(replace(context, bases=dict(context.bases), elapsed=5), dispatch) == kind
    fields: dict[str, Any] = {
        "kernel": 0x40, "control": (1,), "simd": 8, "threads": 2, "masks": ThreadMasks((1,)), "patch": HeaderPatch(()), "samplers": 0x20,
        "scratch": Scratch(0, 1024, 7), "local_bytes": 1024, "barrier": not dispatch.barrier, "units": ("data port",),
        "unit_states": (("sampler", 1),), "system_routine": 0x80,
    }  # fmt: skip
    payloads: dict[str, Any] = {"common": payload.common + 32, "own": payload.own + 32, "own_first": not payload.own_first, "slots": ()}
    others = [replace(dispatch, **{name: value}) for name, value in fields.items()]
    others += [replace(dispatch, payload=replace(payload, **{name: value})) for name, value in payloads.items()]
    kinds = [kind, *(group_cache._kind(context, each) for each in others)]
    kinds += [group_cache._kind(replace(context, bases={**context.bases, name: 0x7000}), dispatch) for name in BASES]
    assert len(set(kinds)) == len(kinds) == 1 + len(fields) + len(payloads) + len(BASES)


def test_dispatches_without_a_kind_have_no_workers_that_are_kept() -> None:
    """Those with payloads of their own, without counters, or with a pool of binding tables, where a table's end matters."""
    context, dispatch = recorded(job(count=3))
    assert group_cache._kind(context, replace(dispatch, payload=PayloadList((bytes(32),)))) == ()
    assert group_cache._kind(context, replace(dispatch, payload=PayloadList((bytes(32),)), patch=None)) == ()
    assert group_cache._kind(context, replace(dispatch, patch=None)) == ()
    assert group_cache._kind(replace(context, bases={**context.bases, TABLES_END: 0x40000}), dispatch) == ()


def test_a_program_that_was_overwritten_keeps_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    made, dispatcher = runs_made(monkeypatch), EngineDispatcher("t1", 1)
    context, dispatch = recorded(job(count=3))
    list(dispatcher.run(context, dispatch))
    at = context.bases["instruction"] + dispatch.kernel
    code = context.space.read(at, 16)
    context.space.write(at, context.space.read(at + 16, 16) + code)  # the first two instructions in the other order
    list(dispatcher.run(context, dispatch))
    (workers,) = dispatcher._workers
    assert workers.groups.kept() == made[1:]


def test_blocks_of_a_dispatch_that_is_given_up_are_dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its first part, with threads in the middle, as where a program is interrupted: what workers have is used again."""
    made, (context, dispatch), dispatcher = runs_made(monkeypatch), recorded(job(count=3)), EngineDispatcher("t1", 1)

    def stops(parts: Any) -> bool:
        for worker in made[0].employed:
            worker.state.dirty[:], worker.state.dispatch.fresh = 0, 1
        return False

    monkeypatch.setattr(scheduler, "run_parts", stops)
    ran: Any = dispatcher.run(context, dispatch)
    next(ran)
    ran.close()
    (workers,) = dispatcher._workers
    assert [(state.dirty.tolist(), state.dispatch.fresh) for state in workers.groups._free] == [([1], 0)]


def test_workers_of_a_dispatch_that_failed_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, dispatcher = runs_made(monkeypatch), EngineDispatcher("t1", 1)
    context, dispatch = recorded(job(count=3))
    for turn in range(2):
        with pytest.raises(SoftgenError, match="time is up"):
            list(dispatcher.run(context, dispatch, lambda: True))
        assert len(made) == turn + 1
    for expected in (3, 3):
        list(dispatcher.run(context, dispatch))
        assert len(made) == expected
    with pytest.raises(SoftgenError, match="time is up"):
        list(dispatcher.run(context, dispatch, lambda: True))
    list(dispatcher.run(context, dispatch))
    assert len(made) == 4

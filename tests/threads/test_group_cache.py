"""Group runs that are kept: which of them are used again, by what they are found, and how many there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product
from typing import Any
from unittest import mock

import pytest

from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from softgen.media import front_end
from softgen.memory.address_space import AddressSpace
from softgen.memory.space import Space
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.unit import TABLES_END
from softgen.threads import group_cache, groups, scheduler
from softgen.threads.bindings import BASES, BindingCache
from softgen.threads.dispatch import Scratch, ThreadDispatch, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.group_cache import GroupCache
from softgen.threads.payload import HeaderPatch, PayloadList, TemplatePayload, ThreadMasks
from softgen.threads.programs import DispatchProgram, load
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import CODE, Job, dwords, stores, vector_add, words
from tests.threads.test_pool import job, recorded
from tests.threads.test_system_routine import ROUTINE, raising

TABLES = 0x30000  # surface state base of the job


def runs_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    class Counted(groups.GroupRun):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(group_cache, "GroupRun", Counted)
    return made


class Sets:
    """A kernel with so many sets of surfaces: tables with other surface states, which name other ranges of the second buffer."""

    def __init__(self, count: int) -> None:
        self.job, self.dispatcher = vector_add("skl", ends=1), EngineDispatcher("t1", 1)
        self.context, dispatch = recorded(self.job)
        self.dispatch = replace(dispatch, kind=object())
        self.tables = [0x900 + 0x80 * number for number in range(count)]
        for number in range(count):
            self.write(number, number)

    def write(self, number: int, target: int, last: int = 127) -> None:
        """Writes the table of a set, whose kernel adds into a range of the buffer; `last`: its last byte, up to 127."""
        at = self.tables[number]
        state = dwords(*self.job.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, width=last, height=0,
                                      surface_base_address=self.job.address(1) + 64 * target))  # fmt: skip
        self.context.space.write(TABLES + at, dwords(0, at + 0x40).ljust(0x40, b"\0") + state)

    def run(self, number: int, target: int | None = None, meanwhile: Callable[[], None] = lambda: None) -> None:
        """`meanwhile`: what happens after the last thread, before the dispatch has ended."""
        self.context.space.write(self.job.address(1), bytes(512))
        finished = groups.GroupRun._finished
        with mock.patch.object(groups.GroupRun, "_finished", lambda run: (meanwhile(), finished(run))[1]):
            deque(self.dispatcher.run(self.context, replace(self.dispatch, binding_table=self.tables[number])), 0)
        assert self.context.space.read(self.job.address(1) + 64 * (number if target is None else target), 4) == dwords(1000)

    def kept(self) -> list[Any]:
        (workers,) = self.dispatcher._workers
        return workers.groups.kept()


def test_sets_of_buffers_in_turn_have_workers_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are kept, in any order; one more takes the place of the one used longest ago."""
    made, count = runs_made(monkeypatch), 4
    monkeypatch.setattr(group_cache, "MOST_KEPT", count)
    sets = Sets(count + 1)
    for number in (*range(count), *range(count), 2, 0, 3, 1, 0, 2):
        sets.run(number)
    assert len(made) == count
    sets.run(count)
    sets.run(2)
    sets.run(0)
    assert len(made) == count + 1 == len(sets.kept()) + 1


def test_a_set_is_found_without_a_look_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, renew = list[Any](), groups.GroupRun.renew
    monkeypatch.setattr(groups.GroupRun, "renew", lambda self, *values: (asked.append(self), renew(self, *values))[1])
    sets = Sets(5)
    for number in (*range(5), 3, 1, 4, 0, 2):
        sets.run(number)
    assert len(asked) == len(set(asked)) == 5


def test_workers_that_are_kept_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used longest ago go first; the last are kept however large they are."""
    made, sets = runs_made(monkeypatch), Sets(4)
    sets.run(0)
    monkeypatch.setattr(group_cache, "MOST_BYTES", 2 * made[0].bytes)
    for number in (1, 2, 1, 2):
        sets.run(number)
    assert len(made) == 3
    sets.run(0)
    assert len(made) == 4
    assert made[3].employed[0].state in [run.employed[0].state for run in made[:3]]  # what was dropped is used again
    monkeypatch.setattr(group_cache, "MOST_BYTES", 1)
    for number in (3, 3, 3):
        sets.run(number)
    assert len(made) == 5 and sets.kept() == made[4:]


@pytest.mark.parametrize("mebibytes, kept", [(33, 1), (16, 2), (11, 2), (8, 4)])
def test_workers_that_are_kept_take_32_mebibytes_at_most(mebibytes: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups.GroupRun, "bytes", mebibytes << 20)
    sets = Sets(5)
    for number in range(5):
        sets.run(number)
    assert len(sets.kept()) == kept


def test_workers_of_128_dispatches_are_kept_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sets = runs_made(monkeypatch), Sets(1)
    for target, last in islice(product((0, 1), range(63, 128)), 129):
        sets.write(0, target, last)
        sets.run(0, target)
    assert len(made) == 129 and sets.kept() == made[1:]


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_workers_of_a_run_that_was_dropped_have_the_header_of_the_next_one(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows the binding table in its header: that of the first run, whose workers had others by then."""
    monkeypatch.setattr(group_cache, "MOST_KEPT", 1)
    made, dispatcher = Job(stores("(8|M0) r11.0<1>:ud r0.4<0;1,0>:ud"), [bytes(64)]), EngineDispatcher(engine, 1)
    context, dispatch = recorded(made)
    assert isinstance(dispatch.payload, TemplatePayload)
    context.space.write(TABLES + 0x40, made.surface(0, bytes(32)))
    for table, state in ((0x840, 0), (0x880, 0x40)):
        context.space.write(TABLES + table, dwords(state))
    for table in (0x800, 0x840, 0x880, 0x800, 0x840, 0x800):
        header = front_end.with_table(made.gen, "GPGPU_THREAD_HEADER", dispatch.payload.header, table)
        list(dispatcher.run(context, dispatch.again(header, dispatch.payload.data, table)))
        assert context.space.read(made.address(0), 4) == dwords(table)


def test_surface_states_that_are_rewritten_in_place_are_other_surfaces() -> None:
    sets = Sets(2)
    for target in (0, 1, 5, 0, 5):
        sets.write(0, target)
        sets.run(0, target)
    assert len(sets.kept()) == 3


def test_a_run_that_takes_the_place_of_another_leaves_its_workers_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same surfaces, but a header that workers cannot change as they change counters."""
    made, sets = runs_made(monkeypatch), Sets(2)
    sets.run(0)
    payload = sets.dispatch.payload
    assert isinstance(payload, TemplatePayload)
    header = payload.header[:8] + dwords(0x1234, 0x5678) + payload.header[16:]
    sets.dispatch = replace(sets.dispatch, payload=replace(payload, header=header))
    sets.run(0)
    assert len(made) == 2 and sets.kept() == made[1:]
    sets.run(1)
    assert len(made) == 3 and made[2].employed[0].state is made[0].employed[0].state is not made[1].employed[0].state
    assert sets.kept() == made[1:]


def test_what_changed_while_a_run_used_it_keeps_no_run() -> None:
    """It has used what was there, and would be found by what is there now."""
    sets = Sets(2)
    sets.run(0, meanwhile=lambda: sets.write(0, 3))
    assert not sets.kept()
    sets.run(0, 3)
    assert len(sets.kept()) == 1


def test_a_run_that_used_nothing_new_stays_whatever_has_become_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by the surface states that it was made for, wherever they come again."""
    made, sets = runs_made(monkeypatch), Sets(2)
    sets.run(0)
    sets.run(0, meanwhile=lambda: sets.write(0, 3))
    assert sets.kept() == made
    sets.write(1, 0)
    sets.run(1, 0)
    assert sets.kept() == made and len(made) == 1


def test_what_can_no_longer_be_read_after_a_run_keeps_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that leads nowhere, and a kernel that is another one; what the worker has is used again."""
    made, sets = runs_made(monkeypatch), Sets(2)
    sets.run(0, meanwhile=lambda: sets.context.space.write32(TABLES + sets.tables[0] + 4, 0xFFFFFFC0))
    assert not sets.kept()
    sets.run(1, meanwhile=lambda: sets.context.space.write(CODE, bytes(16)))
    assert not sets.kept()
    assert len(made) == 2 and made[1].employed[0].state is made[0].employed[0].state


def test_a_surface_that_a_run_uses_later_counts_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sets = runs_made(monkeypatch), Sets(2)
    for number in (0, 1, 0, 1):
        sets.run(number)
    assert len(made) == 2
    third, size = TABLES + sets.tables[0] + 8, len(made[0].resolved.surfaces[1][1])
    sets.context.space.write(third, dwords(sets.tables[1] + 0x40))
    sets.run(0, meanwhile=lambda: made[0].shared.bound.dispatch.depend_on_surface(2, size))
    assert sets.kept() == made[:1]  # the other one was found by less
    sets.run(0)
    assert len(made) == 2
    sets.context.space.write(third, dwords(sets.tables[0] + 0x40))
    sets.run(0)
    assert len(made) == 3


def test_other_state_that_a_run_depends_on_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of bindless surfaces; where it cannot be read, nothing is kept."""
    made, sets, place = runs_made(monkeypatch), Sets(1), TABLES + 0x800
    sets.run(0, meanwhile=lambda: made[0].shared.bound.dispatch.depend(place, 4))
    sets.run(0)
    assert len(made) == 1
    sets.context.space.write(place, dwords(1))
    sets.run(0, meanwhile=lambda: made[1].shared.bound.dispatch.depend(0xDEAD0000, 4))
    assert len(made) == 2
    sets.run(0)
    assert len(made) == 3


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_local_ids_that_are_others_are_read_as_they_are(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code relies on those that count up, or are uniform, and a run that is kept has to choose its code again."""
    made, sets = runs_made(monkeypatch), Sets(1)
    sets.dispatcher, payload = EngineDispatcher(engine, 1), sets.dispatch.payload
    assert isinstance(payload, TemplatePayload)
    for ids in ([*range(16)], [5] * 16, [*range(16, 32)], [0, 3, 1, 9] * 4, [*range(15, -1, -1)]):
        own = words(*ids)
        sets.dispatch = replace(sets.dispatch, payload=payload.again(payload.header, payload.data[: payload.common] + own))
        sets.context.space.write(sets.job.address(1), bytes(512))
        list(sets.dispatcher.run(sets.context, replace(sets.dispatch, binding_table=sets.tables[0])))
        found = sets.context.space.read(sets.job.address(1), 512)
        assert found == dwords(*(1000 + number if number in ids else 0 for number in range(128)))
    assert len(made) == 1


def test_a_table_that_leads_nowhere_is_no_error_of_its_own() -> None:
    sets = Sets(1)
    sets.run(0)
    sets.context.space.write(TABLES + sets.tables[0], dwords(0, 0xFFFFFFC0))
    with pytest.raises(SoftgenError, match="surface 1"):
        sets.run(0)
    sets.write(0, 0)
    sets.run(0)


def test_memory_that_moves_under_a_surface_is_found_there() -> None:
    sets = Sets(1)
    sets.run(0)
    space, at = sets.context.space, sets.job.address(1)
    space.unmap(at, 4096)  # type: ignore[attr-defined]
    space.map(at, MemfdBuffer(4096))  # type: ignore[attr-defined]
    sets.run(0)


def test_other_base_addresses_are_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are elsewhere then, with other surfaces."""
    made, sets = runs_made(monkeypatch), Sets(2)
    sets.run(0)
    sets.context = replace(sets.context, bases={**sets.context.bases})
    sets.run(0)
    assert len(made) == 1
    moved = sets.tables[1] - sets.tables[0]
    sets.context.space.write(TABLES + sets.tables[1], dwords(0, sets.tables[0] + 0x40))
    sets.context.space.write(TABLES + moved, sets.context.space.read(TABLES, 0x40))
    sets.context = replace(sets.context, bases={**sets.context.bases, "surface": TABLES + moved})
    sets.run(0, 1)
    assert len(made) == 2


def test_another_address_space_is_another_kind() -> None:
    sets = Sets(1)
    sets.run(0)
    sets.context = replace(sets.context, space=copied(sets.context.space))
    sets.run(0)


def test_reports_go_to_the_context_of_the_dispatch() -> None:
    sets = Sets(1)
    sets.write(0, 0, last=15)
    for _ in range(3):
        told = list[str]()
        sets.context = replace(sets.context, warn=told.append)
        sets.run(0)
        assert len(told) == 1 and "out of bounds" in told[0]
    assert len(sets.kept()) == 1


def test_a_system_routine_that_changes_is_read_again() -> None:
    made, dispatcher = raising("illegal opcode"), EngineDispatcher("t1", 1)
    context, dispatch = recorded(made)
    for step in (1, 5):
        context.space.write(CODE + ROUTINE, dialect.read(made.handler.replace(" 1:d", f" {step}:d"), made.gen))
        list(dispatcher.run(context, dispatch))
        assert context.space.read(made.address(1), 4) == dwords(1000 + step)


# -- the cache alone ---------------------------------------------------------------------------------------------------


class Cache:
    """A cache, and runs of two sets of surfaces that it makes."""

    def __init__(self) -> None:
        self.sets, self.bindings = Sets(2), BindingCache()
        self.context, self.cache = self.sets.context, GroupCache(1, self.bindings)
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


def copied(space: Space) -> AddressSpace:
    """Another space with the same memory."""
    made = AddressSpace("another", space.bits)
    assert isinstance(space, AddressSpace)
    for region in list(space.regions()):
        made.map(region.start, MemfdBuffer(region.size))
        made.write(region.start, space.read(region.start, region.size))
    return made


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

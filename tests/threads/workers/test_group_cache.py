"""Group runs that are kept: which of them are used again, by what they are found, and how many there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest

from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from softgen.media import front_end
from softgen.memory.store import MemfdBuffer
from softgen.threads import programs
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import TemplatePayload
from softgen.threads.programs import DispatchProgram
from softgen.threads.workers import group_cache, groups
from softgen.threads.workers.worker import Worker
from tests.gpgpu.job import ADD, CODE, Job, dwords, stores, words
from tests.threads.sets import TABLES, Sets, copied, runs_made
from tests.threads.test_system_routine import ROUTINE, raising
from tests.threads.workers.test_pool import job, recorded


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


@pytest.mark.parametrize("mebibytes, kept", [(33, 1), (17, 1), (16, 2), (8, 4)])
def test_programs_of_workers_that_are_kept_take_32_mebibytes_at_most(mebibytes: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be large, and the cache of programs may have dropped them."""
    monkeypatch.setattr(DispatchProgram, "memory_bytes", mebibytes << 20)
    monkeypatch.setattr(programs, "MOST_BYTES", 1 << 40)
    dispatcher = EngineDispatcher("t0", 1)
    for number in range(5):
        job(f"(W)  mov (8|M0)  r126.0<1>:ud {number}:ud\n{ADD}", 1).run(groups=dispatcher)
    [workers] = dispatcher._workers
    assert len({run.shared.program for run in workers.groups.kept()}) == kept


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


def test_a_run_that_was_interrupted_as_it_was_renewed_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of neither dispatch: here it has the record of the second one, and templates of the first."""
    made, sets = runs_made(monkeypatch), Sets(1)
    payload: Any = sets.dispatch.payload
    other = replace(sets.dispatch, payload=replace(payload, data=payload.data.replace(dwords(1000), dwords(2000))))
    list(sets.dispatcher.run(sets.context, replace(other, binding_table=sets.tables[0])))
    assert sets.context.space.read(sets.job.address(1), 4) == dwords(2000)
    with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
        interrupted.setattr(Worker, "fill", interrupt)
        sets.run(0)
    assert not sets.kept() and made[0].employed[0].state.dirty.all()
    sets.run(0)
    assert made == [made[0], *sets.kept()] and made[1].employed[0].state is made[0].employed[0].state


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_system_routine_that_changes_is_read_again() -> None:
    made, dispatcher = raising("illegal opcode"), EngineDispatcher("t1", 1)
    context, dispatch = recorded(made)
    for step in (1, 5):
        context.space.write(CODE + ROUTINE, dialect.read(made.handler.replace(" 1:d", f" {step}:d"), made.gen))
        list(dispatcher.run(context, dispatch))
        assert context.space.read(made.address(1), 4) == dwords(1000 + step)

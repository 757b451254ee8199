"""Programs in memory: the same bytes at the same address are the same program, for a limited number of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from softgen.errors import GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.threads import programs
from softgen.threads.programs import ProgramCache, load
from tests.gpgpu.job import vector_add
from tests.threads.test_pool import recorded


def test_programs_are_kept_by_what_they_depend_on() -> None:
    cache, (context, dispatch) = ProgramCache(), recorded(vector_add("skl"))
    first = cache.load(context, dispatch)
    assert cache.load(context, dispatch) is first and cache.load(context, replace(dispatch, simd=8)) is first
    elsewhere = replace(context, bases={"instruction": context.bases["instruction"] + 0x10})
    others = [cache.load(context, replace(dispatch, kernel=dispatch.kernel + 0x10)), cache.load(elsewhere, dispatch),
              cache.load(context, replace(dispatch, system_routine=64))]  # fmt: skip
    assert len({id(program) for program in (first, *others)}) == 4 and cache.load(context, dispatch) is first
    at = context.address("instruction", dispatch.kernel)
    context.space.write(at, context.space.read(at + 16, 16))
    assert cache.load(context, dispatch) is not first


def test_address_spaces_in_use_at_the_same_time_have_programs_of_their_own() -> None:
    """One host thread has decoded what both have in common when another one gets to the same address of another space."""
    cache, (context, dispatch), (other, _) = ProgramCache(), *(recorded(vector_add("skl")) for _ in range(2))
    at = context.address("instruction", dispatch.kernel)
    other.space.write(at + 0x10, other.space.read(at + 0x20, 16))
    first = cache.load(context, dispatch)
    first.line(dispatch.kernel)
    with ThreadPoolExecutor(1) as another:
        second = another.submit(cache.load, other, dispatch).result()
        assert second is not first and another.submit(cache.load, other, dispatch).result() is second
        assert cache.load(context, dispatch) is first
    following = [program.line(dispatch.kernel + 0x10).instruction for program in (first, second)]
    assert following == [load(each, dispatch).line(dispatch.kernel + 0x10).instruction for each in (context, other)]
    assert following[0] != following[1]


@pytest.mark.parametrize("workers", [0, 1])
def test_address_spaces_with_the_same_bytes_share_a_program(workers: int) -> None:
    """Also of several host threads; of one, as far as it has been reached."""
    cache, (context, dispatch), (other, _) = ProgramCache(), *(recorded(vector_add("skl")) for _ in range(2))
    first = cache.load(context, dispatch)
    first.line(dispatch.kernel)
    if not workers:
        other.space.write32(context.address("instruction", dispatch.kernel) + 0x10, 0)
    with ThreadPoolExecutor(1) as another:
        assert (another.submit(cache.load, other, dispatch).result() if workers else cache.load(other, dispatch)) is first


def test_a_program_that_is_another_one_elsewhere_is_read_where_it_was() -> None:
    context, dispatch = recorded(vector_add("skl"))
    other, _ = recorded(vector_add("skl"))
    at, program = context.address("instruction", dispatch.kernel), load(context, dispatch)
    program.line(dispatch.kernel)
    other.space.write(at, other.space.read(at + 0x20, 32))
    assert not program.current(other)
    assert program.line(dispatch.kernel + 0x10).instruction == load(context, dispatch).line(dispatch.kernel + 0x10).instruction


def test_few_programs_of_an_address_are_kept() -> None:
    cache, (context, dispatch) = ProgramCache(), recorded(vector_add("skl"))
    at, found = context.address("instruction", dispatch.kernel), []
    code = [context.space.read(at + 16 * number, 16) for number in range(programs.MOST_AT_ADDRESS + 1)]
    for number in (*range(programs.MOST_AT_ADDRESS + 1), 1, 0):
        context.space.write(at, code[number])
        found.append(cache.load(context, dispatch))
        found[-1].line(dispatch.kernel)
    assert found[-2] is found[1] and found[-1] is not found[0]


def test_more_programs_than_are_kept_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_PROGRAMS", 2)
    cache, (context, dispatch) = ProgramCache(), recorded(vector_add("skl"))
    first, second = (replace(dispatch, kernel=dispatch.kernel + offset) for offset in (0, 0x10))
    kept = [cache.load(context, each) for each in (first, second)]
    assert [cache.load(context, each) for each in (first, second)] == kept
    third = cache.load(context, replace(dispatch, kernel=dispatch.kernel + 0x20))
    assert cache.load(context, replace(dispatch, kernel=dispatch.kernel + 0x20)) is third
    assert cache.load(context, first) is not kept[0]


def test_an_address_is_inside_of_a_program_up_to_its_last_byte() -> None:
    context, dispatch = recorded(vector_add("skl"))
    program = load(context, dispatch)
    size = len(program.code)
    found = {offset: program.inside(dispatch.kernel + offset) for offset in (-1, 0, 0x10, size - 1, size)}
    assert found == {-1: False, 0: True, 0x10: True, size - 1: True, size: False}


def test_a_program_depends_on_the_memory_that_was_reached() -> None:
    """All of it before anything was."""
    context, dispatch = recorded(vector_add("skl"))
    program = load(context, dispatch)
    reached = [int(program.range.size)]
    for offset in (0, 0x20, 0x10):
        assert program.line(dispatch.kernel + offset).size == 16
        reached.append(int(program.range.size))
    assert reached == [len(program.code), 0x10, 0x30, 0x30] and program.range.address == program.address == 0x40000
    assert program.current(context)
    context.space.write32(0x40030, 0)
    assert program.current(context)
    context.space.write32(0x4002C, 0x1234)
    assert not program.current(context)


def test_a_program_whose_memory_is_gone_is_not_current() -> None:
    cache, (context, dispatch) = ProgramCache(), recorded(vector_add("skl"))
    program = cache.load(context, dispatch)
    assert program.current(context) and isinstance(context.space, AddressSpace)
    context.space.unmap(0x40000, 0x1000)
    assert not program.current(context)
    with pytest.raises(GpuFault, match="instruction fetch at 0x40000"):
        cache.load(context, dispatch)


def test_a_program_that_is_not_mapped_is_a_fault() -> None:
    context, dispatch = recorded(vector_add("skl"))
    with pytest.raises(GpuFault, match="instruction fetch at 0x70000000 in job"):
        load(replace(context, bases={"instruction": 0x7000_0000}), replace(dispatch, kernel=0))

"""Programs in memory: the same bytes at the same address are the same program, for a limited number of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.encoding.program import LONGEST
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads import programs
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.programs import LINE_BYTES, WINDOW, ProgramCache, load
from softgen.threads.statistics import BEHIND
from tests.gpgpu.job import vector_add
from tests.threads.workers.test_pool import recorded


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


def test_four_programs_of_an_address_are_kept() -> None:
    """Those that were loaded last; a fifth takes the place of the first."""
    cache, (context, dispatch) = ProgramCache(), recorded(vector_add("skl"))
    at, found = context.address("instruction", dispatch.kernel), []
    code = [context.space.read(at + 16 * number, 16) for number in range(5)]
    for number in (*range(5), 1, 0):
        context.space.write(at, code[number])
        found.append(cache.load(context, dispatch))
        found[-1].line(dispatch.kernel)
    assert found[-2] is found[1] and found[-1] is not found[0]


def test_a_program_that_is_dropped_leaves_the_others_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    context, dispatch = heap()
    cache, at = ProgramCache(), context.address("instruction", dispatch.kernel)
    first = cache.load(context, dispatch)
    context.space.write(at, context.space.read(at + 4096, 16))
    second = cache.load(context, dispatch)
    other = cache.load(context, replace(dispatch, kernel=4096))
    monkeypatch.setattr(programs, "MOST_BYTES", 5 * WINDOW // 2)  # three programs, of which one must be dropped
    cache._count(other)
    assert first not in cache and second in cache and other in cache and cache.load(context, dispatch) is second


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


# -- how much of memory is kept

HEAP = 0x40_0000  # of many kernels


def heap(size: int = 2 * LONGEST) -> tuple[DispatchContext, ThreadDispatch]:
    """Kernels one after another, as drivers place them: instructions that differ in their constant."""
    context, dispatch = recorded(vector_add("skl"))
    assert isinstance(context.space, AddressSpace)
    memory = MemfdBuffer(size, "heap")
    inst = bytearray(context.space.read(context.address("instruction", dispatch.kernel), 16))
    for at in range(0, size, 4096):
        inst[12] = at // 4096 % 256
        memory.view[at : at + 16] = bytes(inst)
    context.space.map(HEAP, memory, 0, size)
    return replace(context, bases={**context.bases, "instruction": HEAP}), replace(dispatch, kernel=0)


def test_code_is_read_as_far_as_it_is_reached() -> None:
    """A kernel may lie at the start of a heap, and no state says where it ends."""
    context, dispatch = heap()
    program = load(context, dispatch)
    assert len(program.code) == WINDOW and program.inside(LONGEST - 1) and not program.inside(LONGEST)
    sizes = []
    for at in (WINDOW - 4096, WINDOW, 5 * WINDOW, LONGEST - 4096):
        assert program.line(at).instruction == load(context, replace(dispatch, kernel=at)).line(at).instruction
        sizes.append(len(program.code))
        assert program.code == context.space.read(HEAP, len(program.code)) and program.range.size == program.reach <= len(program.code)
    assert sizes[:2] == [2 * WINDOW, 2 * WINDOW] and 5 * WINDOW < sizes[2] < 11 * WINDOW and sizes[3] == LONGEST
    with pytest.raises(GpuFault, match="outside"):
        program.line(LONGEST)


@pytest.mark.parametrize("reach, compared", [(0, 2 * WINDOW), (160, 160)])
def test_code_that_is_read_is_compared_as_far_as_it_was_reached(reach: int, compared: int) -> None:
    """All of it where nothing says how far that is."""
    context, dispatch = heap()
    program = load(context, dispatch)
    program.reach = reach
    program._grow(WINDOW + 8)
    assert len(program.code) == 2 * WINDOW and program.range.size == compared


@pytest.mark.parametrize("left", [WINDOW, WINDOW + 4096, 2 * WINDOW - 4096])
def test_what_follows_a_kernel_may_be_unmapped_meanwhile(left: int) -> None:
    """Programs load and free kernels behind it: the code ends where memory does now, and only what is executed there is a fault."""
    context, dispatch = heap(2 * WINDOW)
    program = load(context, dispatch)
    context.space.unmap(HEAP + left, 2 * WINDOW - left)
    program.reach = WINDOW - 8
    assert program.code == context.space.read(HEAP, left) and program.range.size == WINDOW - 8
    assert program.inside(left - 1) and not program.inside(left)
    program.line(WINDOW - 16)
    with pytest.raises(SoftgenError):
        program.line(left)


def test_code_that_a_translation_depends_on_is_kept() -> None:
    """The comparisons in C read as many bytes as were reached; reports look a little further, where names are found."""
    context, dispatch = heap()
    program = load(context, dispatch)
    assert program.beginning(3 * WINDOW) == context.space.read(HEAP, 3 * WINDOW) and len(program.code) == WINDOW
    program.reach = WINDOW - BEHIND
    assert len(program.code) == WINDOW
    program.reach = WINDOW - BEHIND + 8
    assert len(program.code) == 2 * WINDOW
    program.reach = 3 * WINDOW
    assert len(program.code) >= 3 * WINDOW + BEHIND and program.range.size == 3 * WINDOW
    assert program.code == context.space.read(HEAP, len(program.code))
    context.space.write32(HEAP + 3 * WINDOW, 0)
    assert program.current(context)
    context.space.write32(HEAP + 3 * WINDOW - 4, 1)
    assert not program.current(context)


def test_a_program_shared_with_another_address_space_is_compared_to_its_end() -> None:
    """Each may reach what the other one has not: then the bytes that were not read yet have to be the same."""
    (context, dispatch), (other, _) = heap(), heap()
    other.space.write32(HEAP + 3 * WINDOW, 0)
    cache = ProgramCache()
    first = cache.load(context, dispatch)
    with ThreadPoolExecutor(1) as another:
        assert another.submit(cache.load, other, dispatch).result() is not first


def test_the_least_recently_used_programs_are_dropped_where_they_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_BYTES", 8 * WINDOW)
    context, dispatch = heap()
    at = [replace(dispatch, kernel=4096 * number) for number in range(9)]
    dropped, cache = list[bool](), ProgramCache(lambda: dropped.append(True))
    kept = [cache.load(context, each) for each in at[:8]]
    assert cache.load(context, at[0]) is kept[0] and not dropped and cache.usage.bytes == 8 * WINDOW
    assert cache.load(context, at[8]) in cache and dropped == [True] and cache.usage.bytes <= 8 * WINDOW
    assert kept[0] in cache and kept[1] not in cache and kept[2] not in cache and kept[3] in cache
    assert cache.load(context, at[0]) is kept[0] and cache.load(context, at[1]) is not kept[1]


@pytest.mark.parametrize("mebibyte, most", [(True, 32), (False, 256)])
def test_programs_of_32_mebibytes_and_256_addresses_are_kept_at_most(mebibyte: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more, and an eighth makes room: those that were loaded first."""
    monkeypatch.setattr(programs.DispatchProgram, "memory_bytes", (1 << 20) * mebibyte)
    context, dispatch = heap()
    cache = ProgramCache()
    loaded = [cache.load(context, replace(dispatch, kernel=16 * number)) for number in range(most)]
    assert all(program in cache for program in loaded)
    last = cache.load(context, replace(dispatch, kernel=16 * most))
    kept = [program in cache for program in (*loaded, last)]
    assert sum(kept) == most * 7 // 8 and kept == sorted(kept)


def test_the_last_bytes_that_are_kept_are_read_again_when_they_are_reached() -> None:
    """A compact instruction there, at the end of a window and at the end of memory: what is there by then counts."""
    context, dispatch = heap(2 * WINDOW)
    first, second = (dialect.read(f"(W) mov (8|M0) r{number}.0<1>:ud r2.0<8;8,1>:ud", 9, compact=True) for number in (4, 5))
    assert len(first) == len(second) == 8
    for at in (WINDOW - 8, 2 * WINDOW - 8):
        context.space.write(HEAP + at, first)
        program = load(context, dispatch)
        program.line(0)
        if at > WINDOW:
            program.reach = WINDOW
        assert len(program.code) == at + 8 and program.current(context)
        context.space.write(HEAP + at, second)
        found = program.line(at)
        assert found.size == 8 and found.instruction == load(context, replace(dispatch, kernel=at)).line(at).instruction
        assert program.code == context.space.read(HEAP, 2 * WINDOW)


@pytest.mark.parametrize("at", [WINDOW - 16, WINDOW - 8, WINDOW, WINDOW + 8])
def test_an_instruction_at_the_end_of_what_was_read_is_read_as_a_whole(at: int) -> None:
    context, dispatch = heap()
    start = 0x3000
    context.space.write(HEAP + start + at, context.space.read(HEAP + 4096, 16))
    program = load(context, replace(dispatch, kernel=start))
    found = program.line(start + at)
    assert found.size == 16 and found.instruction == load(context, dispatch).line(4096).instruction
    assert program.reach == at + 16 and program.code == context.space.read(HEAP + start, 2 * WINDOW)


@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.parametrize("at", [0, 16])
def test_code_that_was_read_counts_until_it_is_compared_with_memory(at: int, compared: bool) -> None:
    """From then on an instruction is read when it is first reached; what is before the kernel is not."""
    context, dispatch = heap()
    context.space.write(HEAP + 16, context.space.read(HEAP, 16))
    program = load(context, dispatch)
    assert not compared or program.current(context)
    context.space.write(HEAP + at, context.space.read(HEAP + 4096, 16))
    expected = load(context, dispatch).line(4096 if compared else 16 - at).instruction
    assert program.line(at).instruction == expected
    for outside in (-16, LONGEST):
        with pytest.raises(GpuFault, match="outside"):
            program.line(outside)
    assert len(program.code) == WINDOW


def test_memory_is_charged_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "COUNT_BYTES", 100 * LINE_BYTES)
    context, dispatch = heap()
    charged = list[int]()
    cache = ProgramCache(charge=charged.append)
    program = cache.load(context, dispatch)
    assert charged == [WINDOW] == [32 << 10]
    for at in range(0, 101 * 16, 16):
        program.line(at)
    assert cache.load(context, dispatch) is program and charged == [WINDOW, 101 * LINE_BYTES]
    cache.clear()
    assert sum(charged) == 0 and program not in cache


def test_decoded_instructions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of programs that were in the cache before: nothing is loaded then."""
    monkeypatch.setattr(programs, "MOST_BYTES", 2 * WINDOW + 12 * LINE_BYTES)
    context, dispatch = heap()
    cache = ProgramCache()
    first, second = (cache.load(context, replace(dispatch, kernel=kernel)) for kernel in (0, 4096))
    for at in range(0, 8 * 16, 16):
        first.line(at)
    assert cache.load(context, dispatch) is first and second in cache
    for at in range(8 * 16, 16 * 16, 16):
        first.line(at)
    assert cache.load(context, dispatch) is first and second not in cache


@pytest.mark.parametrize(("line", "contends"), [
    ("send (16|M0) r12:w r10 0xC 0x04205E00", False),
    ("send (16|M0) null:w r10 0xC 0x08008200", True),  # untyped_atomic
    ("send (16|M0) r12:w r10 0xC 0x040081FE", True),  # of local memory: its threads may share another one
    ("send (16|M0) r12:w r10 0xC a0.0", True),  # who knows
    ("send (16|M0) r12:w r10 0xF 0x04205E00", True),
    ("mov (8|M0) r12.0<1>:ud r13.0<8;8,1>:ud", False),
])  # fmt: skip
def test_host_threads_contend_where_a_kernel_has_atomics(line: str, contends: bool) -> None:
    context, dispatch = recorded(vector_add("skl"))
    program = load(context, dispatch)
    assert not program.contends  # of what was not read nothing is known
    program.code = dialect.read(f"mov (8|M0) r12.0<1>:ud r13.0<8;8,1>:ud\n{line}", 9)
    program.reach = 16
    assert not program.contends
    program.reach = len(program.code)
    assert program.contends == contends

"""Statistics of kernels outlive the programs: what a run reports at its end must not keep all that has ever run."""

from __future__ import annotations

import gc
import weakref

import pytest

from softgen.eu.interpreter import KernelProgram
from softgen.eu.text import dialect
from softgen.inspect.report import report
from softgen.inspect.report.kernel_names import KernelNames
from softgen.threads import dispatcher as dispatchers
from softgen.threads import programs, statistics
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import MOST_AT_ADDRESS, DispatchProgram
from softgen.threads.statistics import KernelStatistics
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import ADD, Job
from tests.threads.workers.test_pool import job

FEW = 4


def variant(number: int) -> Job:
    """The same kernel with another constant, at the same address."""
    return job(f"(W)  mov (8|M0)  r126.0<1>:ud {number}:ud\n{ADD}", 1)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatchers, "MOST_RAN", FEW)


def rows(groups: EngineDispatcher) -> dict[str, int]:
    """Dispatches of each kernel, as a report counts them."""
    return {row["code"]: row["dispatches"] for row in report.kernels(groups.ran.values(), KernelNames([]))}


def test_programs_that_were_written_over_are_let_go(few: None) -> None:
    groups = EngineDispatcher("t0", 1)
    for number in range(40):
        variant(number).run(groups=groups)
    assert sum(isinstance(program, DispatchProgram) for program, _ in groups.ran) <= 2 * FEW + MOST_AT_ADDRESS
    assert sum(isinstance(total.program, DispatchProgram) for total in groups.ran.values()) <= 2 * FEW + MOST_AT_ADDRESS
    found = rows(groups)
    assert len(found) == 40 and set(found.values()) == {1}


def test_kernels_in_turn_at_an_address_are_counted_together(few: None) -> None:
    kinds = MOST_AT_ADDRESS + 2
    groups = EngineDispatcher("t0", 1)
    for number in range(8 * kinds):
        variant(number % kinds).run(groups=groups)
    assert len(groups.ran) <= kinds + 2 * FEW + MOST_AT_ADDRESS
    found = rows(groups)
    assert len(found) == kinds and set(found.values()) == {8}


def test_as_many_programs_are_kept_as_were_added_since_the_last_summary(few: None) -> None:
    groups, kept = EngineDispatcher("t0", 1), []
    kernels = [KernelProgram(9, bytes(dialect.read(f"(W)  mov (8|M0)  r126.0<1>:ud {number}:ud\n{ADD}", 9))) for number in range(9)]
    for number, kernel in enumerate(kernels):
        groups._add(kernel, "t0", "cs", number, 10, 0.5)
        kept.append(sum(program in kernels for program, _ in groups.ran))
    assert kept == [1, 2, 3, 4, 1, 2, 3, 4, 1] and len(groups.ran) == 9
    assert sorted((total.dispatches, total.threads, total.instructions) for total in groups.ran.values()) == [
        (1, number, 10) for number in range(9)]  # fmt: skip


def test_statistics_are_equal_where_their_numbers_are() -> None:
    program = KernelProgram(9, bytes(dialect.read(ADD, 9)))
    first, second = KernelStatistics(program, "t0"), KernelStatistics(program, "t0")
    first.add(1, 10, 0.5)
    assert first != second and "lock" not in repr(first)
    second.add(1, 10, 0.5)
    assert first == second != KernelStatistics(program, "t1", 1, 1, 10, 0.5)


def test_a_part_counts_for_the_whole() -> None:
    """Also what a dispatch counts that still has the part: a worker may be kept longer than its program is loaded."""
    whole, part = (KernelStatistics(KernelProgram(9, bytes(dialect.read(ADD, 9))), "t0") for _ in range(2))
    part.add(1, 10, 0.5)
    part.program.fallbacks[0] += 1
    program = part.program
    part.join(whole)
    part.add(2, 20, 0.25)
    program.fallbacks[0] += 1
    assert (whole.dispatches, whole.threads, whole.instructions, whole.seconds) == (2, 3, 30, 0.75)
    assert whole.program.fallbacks == {0: 2} and part.program is whole.program


def test_the_whole_knows_the_instructions_of_a_part_that_were_left_to_the_interpreter() -> None:
    """Those of a system routine, too, which is no part of the kernel's code."""
    whole, part = (KernelStatistics(KernelProgram(9, bytes(dialect.read(ADD, 9))), "t0") for _ in range(2))
    routine = KernelProgram(9, bytes(dialect.read("(W)  mov (8|M0)  r126.0<1>:ud 7:ud", 9)))
    part.program.lines[0x10000] = routine.line(0)
    part.program.fallbacks.update({0: 2, 0x10000: 3, 0x10: 4})
    part.join(whole)
    assert report.fallbacks([whole]) == {"mov": 5, "shl": 4}


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_no_kernel_is_decoded_when_a_dispatcher_is_retired(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context may have had hundreds of kernels, and who waits for its end is the server."""
    groups = EngineDispatcher(engine, 1)
    variant(1).run(groups=groups)
    before = rows(groups)
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "kernel_end", lambda code, gen: pytest.fail("decoded"))
        groups.retire()
    assert rows(groups) == before and not any(isinstance(program, DispatchProgram) for program, _ in groups.ran)


def test_a_dispatcher_that_is_retired_keeps_its_statistics_alone() -> None:
    groups = EngineDispatcher("leaving", 1, make=lambda name: Leaving())
    ran = variant(1).run(groups=groups)
    before, space, gpu = (rows(groups), report.fallbacks(groups.ran.values())), weakref.ref(ran.space), weakref.ref(ran.gpu)
    assert sum(before[1].values()) > 1
    groups.retire()
    del ran
    gc.collect()
    assert space() is None and gpu() is None
    assert (rows(groups), report.fallbacks(groups.ran.values())) == before
    assert variant(1).run(groups=groups).buffer(1)[:16] == (1000,) * 16
    assert set(rows(groups).values()) == {2}


def test_both_dispatchers_of_a_comparison_are_retired() -> None:
    both = ComparingDispatcher(EngineDispatcher("t0", 1), EngineDispatcher())
    variant(1).run(groups=both)
    both.retire()
    assert not any(isinstance(program, DispatchProgram) for each in both.both for program, _ in each.ran)


def test_programs_that_the_cache_drops_are_not_kept_by_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few they are: each may be large."""
    monkeypatch.setattr(programs, "MOST_BYTES", 1)
    groups = EngineDispatcher("reference")
    for number in range(5):
        variant(number).run(groups=groups)
    gc.collect()
    assert sum(isinstance(program, DispatchProgram) for program, _ in groups.ran) <= 2
    found = rows(groups)
    assert len(found) == 5 and set(found.values()) == {1}


def test_summaries_are_limited_in_size(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that makes kernels for as long as it runs must not fill the memory; their work is counted in one row."""
    size = 5000
    monkeypatch.setattr(dispatchers, "MOST_SUMMARISED", 3 * size)
    groups = EngineDispatcher("t0", 1)
    for number in range(40):
        variant(number).run(groups=groups)
    assert sum(len(program.code) for program, _ in groups.ran if not isinstance(program, DispatchProgram)) <= 3 * size
    listed = {row["kernel"]: row for row in report.kernels(groups.ran.values(), KernelNames([]))}
    assert listed["other kernels"]["dispatches"] > 20 and listed["other kernels"]["bytes"] == 0
    assert sum(total.dispatches for total in groups.ran.values()) == 40 and not report.fallbacks(groups.ran.values())

"""A profile as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.inspect.cli.output import Paint, counted, table
from softgen.inspect.debug.sources import SourceTexts
from softgen.inspect.profile.bound import LABEL
from softgen.inspect.profile.counts import InstructionCounts, Profile

TIMES = ("host s", "driver's cycles", "cycles at least")
NUMBERS = ("threads", "instructions", "lanes")


def lines(profile: Profile, colour: Paint, kernels: int, instructions: int) -> Iterator[str]:
    """A profile: its draws, its kernels, and the instructions of those that execute most."""
    yield colour(f"{profile.capture}: {profile.gpu}", "heading")
    took = "" if profile.host_seconds is None else f" in {profile.host_seconds:.3f} s of this host"
    yield f"  {counted(profile.threads, 'thread')}, {counted(profile.executed, 'instruction')}{took}"
    yield from (f"  {colour(problem, 'bad')}" for problem in profile.problems)
    yield ""
    shown = [(draw.position, draw.name, *_numbers(draw)) for draw in profile.draws]
    yield from table(shown, ("draw", "command", *NUMBERS, *TIMES), right=range(2, 8))
    yield ""
    shown = [(kernel.name, kernel.stage, kernel.code, *_numbers(kernel)) for kernel in profile.kernels[:kernels]]
    yield from table(shown, ("kernel", "stage", "code", *NUMBERS, *TIMES), right=range(3, 9))
    if len(profile.kernels) > kernels:
        yield f"and {counted(len(profile.kernels) - kernels, 'more kernel')}"
    yield colour(f"cycles at least: {LABEL}", "note")
    for kernel in profile.kernels[:instructions]:
        yield ""
        yield colour(f"{kernel.name} {kernel.stage}".rstrip(), "heading")
        yield from _by_line(kernel.instructions)
        yield from _listing(kernel.instructions, profile.traffic)


def _by_line(rows: list[InstructionCounts]) -> Iterator[str]:
    """What each line of the source costs, where it is known."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.line:
            had = counts.setdefault(row.line, [0, 0])
            had[0] += row.executed
            had[1] += row.lanes
    if not counts:
        return
    whole, texts = sum(row.executed for row in rows), SourceTexts()
    cells = []
    for place, (executed, lanes) in sorted(counts.items(), key=lambda item: _place(item[0])):
        share = f"{100 * executed / whole:.1f} %" if whole else ""
        cells.append((f"{executed:,}", share, f"{lanes:,}", place, texts.line(*_place(place))))
    yield from table(cells, ("executed", "share", "lanes", "source", "line"), right=range(3))
    yield ""


def _place(text: str) -> tuple[str, int]:
    file, _, number = text.rpartition(":")
    return file, int(number)


def _listing(rows: list[InstructionCounts], traffic: bool) -> Iterator[str]:
    more = ("read", "written", "cache lines") if traffic else ()
    source = any(row.line for row in rows)
    header = ("executed", "lanes", *more, "offset", *(("source",) if source else ()), "instruction")
    cells = []
    for row in rows:
        memory = tuple("" if value is None else f"{value:,}" for value in (row.bytes_read, row.bytes_written, row.lines_touched))
        cells.append((f"{row.executed:,}", f"{row.lanes:,}", *(memory if traffic else ()), f"{row.offset:#06x}",
                      *((row.line,) if source else ()), row.text))  # fmt: skip
    yield from table(cells, header, right=range(2 + len(more)))


def _numbers(row: Any) -> tuple[str, ...]:
    """Counts, then the three times; '-' where one is not known."""
    times = ("-" if row.host_seconds is None else f"{row.host_seconds:.6f}", _cycles(row.driver_cycles), _cycles(row.at_least_cycles))
    return f"{row.threads:,}", f"{row.executed:,}", f"{row.lanes:,}", *times


def _cycles(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"

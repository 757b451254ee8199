"""What every suite needs on a worker: `softgen …` started with a job's limits, its log, its pictures."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from softgen.inspect.farm import child
from softgen.inspect.farm.process import EndedProcess, ProcessLimits, run_limited
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult

Stop = Callable[[], bool]
MOST_PICTURES = 16 << 20  # bytes of a unit's pictures that are kept


def start(job: Job, arguments: list[str], on_line: Callable[[str], None], stop: Stop, silence: bool = False) -> EndedProcess:
    """Run `softgen …` with the job's limits, variables and working folder."""
    command = [sys.executable, "-P", child.__file__, str(os.getpid()), *arguments]
    limits = ProcessLimits(job.seconds, job.memory, silence)
    return run_limited(command, limits, {**os.environ, **job.environment}, job.folder, on_line, stop)


def judged(unit: FarmUnit, ended: EndedProcess, verdict: tuple[str, str], findings: tuple[str, ...] = ()) -> JobOutcome:
    """The outcome of a job of one unit."""
    if ended.limit == "stopped":
        return JobOutcome(stopped=True)
    result, message = verdict
    found = UnitResult(unit.name, unit.gpu, result, ended.seconds, message, unit.key, findings)
    return JobOutcome([found], {} if found.good else {unit.key: log_text(ended)})


def log_text(ended: EndedProcess) -> str:
    """What a unit that went wrong printed."""
    parts = [f"exit code {ended.code} after {ended.seconds:.1f} s\n"]
    parts += [f"\n--- standard {name}\n{text}" for name, text in (("error", ended.err), ("output", ended.out)) if text]
    return "".join(parts)


@contextmanager
def pictures_folder(job: Job) -> Iterator[Path | None]:
    """A place for a unit's pictures, if they are wanted."""
    if not job.pictures:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="softgen-pictures-", ignore_cleanup_errors=True) as folder:
        yield Path(folder, "new")


def images(folder: Path | None) -> list[str]:
    return [] if folder is None else ["--images", str(folder)]


def taken(unit: FarmUnit, folder: Path | None) -> dict[str, dict[str, bytes]]:
    """The pictures that a unit left, the first ones if they are too many."""
    found: dict[str, bytes] = {}
    room = MOST_PICTURES
    for path in sorted(folder.rglob("*.png")) if folder else ():
        room -= path.stat().st_size
        if room < 0:
            break
        found[path.name] = path.read_bytes()
    return {unit.key: found} if found else {}


"""What every suite needs on a worker: `softgen …` started with a job's limits, and what it leaves behind: a log, pictures, a capture."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from softgen.inspect.farm import child
from softgen.inspect.farm.process import EndedProcess, ProcessLimits, run_limited
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult

Stop = Callable[[], bool]
MOST_KEPT = 16 << 20  # bytes of a unit's pictures, and of its capture, that are kept


class UnitFolder:
    """A folder for what a process leaves behind: `with UnitFolder(job) as folder`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.path = Path(tempfile.mkdtemp(prefix="softgen-unit-"))
        self.pictures, self.failures = self.path / "pictures", self.path / "failures"

    def __enter__(self) -> UnitFolder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def start(self, arguments: list[str], on_line: Callable[[str], None], stop: Stop, silence: bool = False) -> EndedProcess:
        """Run `softgen …` with the job's limits, variables and working folder. Its failing submissions are kept here."""
        command = [sys.executable, "-P", child.__file__, str(os.getpid()), *arguments]
        limits = ProcessLimits(self.job.seconds, self.job.memory, silence)
        environment = {**os.environ, **self.job.environment, "SOFTGEN_FAILURES": str(self.failures)}
        return run_limited(command, limits, environment, self.job.folder, on_line, stop)

    def images(self) -> list[str]:
        """The option of a run or replay whose pictures are wanted."""
        return ["--images", str(self.pictures)] if self.job.pictures else []

    def judge(self, unit: FarmUnit, ended: EndedProcess, verdict: tuple[str, str], findings: tuple[str, ...] = ()) -> JobOutcome:
        """The outcome of a job of one unit."""
        if ended.limit == "stopped":
            return JobOutcome(stopped=True)
        result, message = verdict
        outcome = JobOutcome([UnitResult(unit.name, unit.gpu, result, ended.seconds, message, unit.key, findings)])
        if pictures := limited(sorted(self.pictures.rglob("*.png")), self.pictures):
            outcome.pictures[unit.key] = pictures
        if not outcome.results[0].good:
            self.explain(unit, ended, outcome)
        return outcome

    def explain(self, unit: FarmUnit, ended: EndedProcess, outcome: JobOutcome) -> None:
        """Keep what a unit that went wrong printed, and the first submission that failed."""
        text, first = log_text(ended), min(self.failures.glob("*"), default=None, key=lambda path: path.stat().st_mtime_ns)
        if first is not None and (files := whole(first)):
            outcome.captures[unit.key] = files
            text = text.replace(str(first), f"captures/{unit.key}")
        outcome.logs[unit.key] = text


def log_text(ended: EndedProcess) -> str:
    parts = [f"exit code {ended.code} after {ended.seconds:.1f} s\n"]
    parts += [f"\n--- standard {name}\n{text}" for name, text in (("error", ended.err), ("output", ended.out)) if text]
    return "".join(parts)


def limited(paths: list[Path], root: Path) -> dict[str, bytes]:
    """The contents of the first files, as many as are kept."""
    found: dict[str, bytes] = {}
    room = MOST_KEPT
    for path in paths:
        room -= path.stat().st_size
        if room < 0:
            break
        found[str(path.relative_to(root))] = path.read_bytes()
    return found


def whole(folder: Path) -> dict[str, bytes]:
    """All files of a folder; none if they are too large."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    found = limited(paths, folder)
    return found if len(found) == len(paths) else {}

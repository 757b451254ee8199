"""Groups of cases that share the start of one program. Where the program dies, one case pays: the others run in a new group.

What goes wrong in a group runs again alone, and that result counts: it does not depend on the cases that came before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from softgen.inspect.farm.deqp_output import CaseResult
from softgen.inspect.farm.process import EndedProcess, ProcessLimits
from softgen.inspect.farm.unit import GOOD, FarmUnit, Job, JobOutcome, UnitOutcome, UnitResult, difference
from softgen.inspect.farm.verdicts import first_error, last_line, limit_verdict
from softgen.inspect.farm.worker import Stop, UnitFolder

UNKNOWN = "the program has no such case"


class CaseReader(Protocol):
    """Reads the output of a group: results of cases, and the case that has begun and not ended."""

    results: list[CaseResult]
    running: str
    complete: bool  # the program says that it has run all that it was told

    def line(self, text: str) -> None: ...


class GroupSuite(Protocol):
    """A suite whose program takes several cases at once."""

    def command(self, job: Job, units: list[FarmUnit], folder: Path, alone: bool) -> list[str]:
        """The program and its arguments."""

    def reader(self, units: list[FarmUnit]) -> CaseReader: ...

    def extras(self, folder: Path) -> tuple[str, dict[str, bytes]]:
        """Of a case that went wrong alone: what the program has written about it besides its output, and pictures."""


class CaseGroup:
    """The cases of a job: those that are done, and those that are left."""

    def __init__(self, job: Job, stop: Stop, suite: GroupSuite) -> None:
        self.job, self.stop, self.suite = job, stop, suite
        self.left = {unit.name: unit for unit in job.units}
        self.again: dict[str, FarmUnit] = {}  # cases that went wrong in a group
        self.first: dict[str, UnitOutcome] = {}  # and what they were there
        self.done: dict[str, UnitResult] = {}
        self.outcome = JobOutcome()

    def run(self) -> JobOutcome:
        """Run all cases, with as few starts of the program as their failures allow."""
        while not self.outcome.stopped and (self.left or self.again):
            if len(self.left) > 1:
                self._run_group()
            else:
                name, unit = (self.left or self.again).popitem()
                self.again.pop(name, None)
                self._run_alone(unit)
        self.outcome.results = list(self.done.values())
        return self.outcome

    def _start(self, units: list[FarmUnit], folder: UnitFolder, alone: bool) -> tuple[EndedProcess, CaseReader]:
        reader = self.suite.reader(units)
        program = self.suite.command(self.job, units, folder.path, alone)
        ended = folder.start(["run", "--gpu", self.job.gpu, *self.job.options, "--", *program], reader.line, self.stop, silence=True)
        return ended, reader

    def _run_group(self) -> None:
        with UnitFolder(self.job) as folder:
            ended, reader = self._start(list(self.left.values()), folder, alone=False)
        before = dict(self.left)
        for found in reader.results:
            if unit := self.left.pop(found.case, None):
                self._keep(unit, found.result, found.message, found.seconds)
        if ended.limit == "stopped":
            self.outcome.stopped = True
        elif reader.complete and not broken(ended):
            for unit in self.left.values():
                self._keep(unit, "fail", UNKNOWN, 0.0)
            self.left.clear()
        else:
            self._suspect(before, ended, reader)

    def _keep(self, unit: FarmUnit, result: str, message: str, seconds: float) -> None:
        """Keep what a case was in a group, if that is good or certain."""
        found = UnitResult(unit.name, unit.gpu, result, seconds, message, unit.key)
        if found.good or message == UNKNOWN:
            self.done[unit.name] = found
        else:
            self.again[unit.name], self.first[unit.name] = unit, found.outcome

    def _suspect(self, units: dict[str, FarmUnit], ended: EndedProcess, reader: CaseReader) -> None:
        """Find the cases that may have ended the program: the one that ran and, unless the program ended by itself, the one before, whose
        work the GPU may still have had. Where it has begun with none, one is tried alone."""
        last = reader.results[-1].case if reader.results else ""
        for name in {reader.running, last if broken(ended) else ""} & units.keys():
            self.left.pop(name, None)
            self.done.pop(name, None)
            self.again[name] = units[name]
        if reader.running in units:
            self.first[reader.running] = (*self._ending(ended), ())
        elif not last:
            self._give_up(self.left.pop(next(iter(self.left))))

    def _give_up(self, unit: FarmUnit) -> None:
        """The program begins with no case of a group. If it does not with one alone either, all have that case's result."""
        if self._run_alone(unit):
            return
        found, log = self.done[unit.name], self.outcome.logs[unit.key]
        for other in self.left.values():
            self.done[other.name] = UnitResult(other.name, other.gpu, found.result, 0.0, found.message, other.key)
            self.outcome.logs[other.key] = log
        self.left.clear()

    def _run_alone(self, unit: FarmUnit) -> bool:
        """Run one case; its result counts. Whether the program has begun with it, or is not to be blamed."""
        with UnitFolder(self.job) as folder:
            ended, reader = self._start([unit], folder, alone=True)
            if ended.limit == "stopped":
                self.outcome.stopped = True
                return True
            result, message = self._verdict(unit, ended, reader)
            found = UnitResult(unit.name, unit.gpu, result, ended.seconds, message, unit.key)
            if not found.good:
                folder.explain(unit, ended, self.outcome)
                text, pictures = self.suite.extras(folder.path)
                self.outcome.logs[unit.key] += text
                self.outcome.pictures |= {unit.key: pictures} if pictures else {}
        self.done[unit.name] = found
        if found.good and (first := self.first.get(unit.name)):
            self.outcome.findings.append(difference("goes wrong after other cases and not alone", found, first))
        return bool(found.good or reader.results or reader.running or message == UNKNOWN)

    def _verdict(self, unit: FarmUnit, ended: EndedProcess, reader: CaseReader) -> tuple[str, str]:
        """Result and message of a case that ran alone."""
        error = first_error(ended.err) if ended.code else ""
        if ended.limit or ended.signal:
            return self._ending(ended)
        for case in (case for case in reader.results if case.case == unit.name):
            good = case.result in GOOD
            return ("fail", error) if error and good else (case.result, " ".join(filter(None, (case.message, error))))
        return ("fail", UNKNOWN) if not (reader.running or ended.code) else self._ending(ended)

    def _ending(self, ended: EndedProcess) -> tuple[str, str]:
        """Result and message of the case within which a program ended."""
        limits = ProcessLimits(self.job.seconds, self.job.memory, silence=True)
        if limited := limit_verdict(ended, limits):
            return limited
        error = first_error(ended.err) if ended.code else ""
        return "fail", error or (last_line(ended) or f"exit code {ended.code}" if ended.code else "the program ended within the case")


def broken(ended: EndedProcess) -> bool:
    """Whether a program was ended by a limit, a signal or softgen, rather than by itself."""
    return bool(ended.limit or ended.signal or ended.code and first_error(ended.err))

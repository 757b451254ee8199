"""The folder of a farm's results: lines of JSON, a plan of what was to be run, and what units that went wrong printed and drew.

    results.jsonl, or results-3-of-40.jsonl of a shard     a line for each unit; whole lines, appended as results come
    plan.json, or plan-3-of-40.json                        how many units there are, and which failures are expected
    logs/HASH.txt, pictures/HASH/*.png, captures/HASH/     what a unit printed and drew, and the submission that failed
    index.html, failures.csv, findings.json                written when a run or a merge ends

Only one process writes to a file of results. One that was killed leaves at most half a line, which the next run removes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from softgen.errors import DecodeError, SoftgenError
from softgen.inspect.farm.shards import WHOLE, Shard
from softgen.inspect.farm.unit import FarmUnit, JobOutcome, UnitOutcome, UnitResult, difference, parse_result
from softgen.inspect.output_file import write_file

MOST_CAPTURES = 100  # of submissions that failed, which a run keeps
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}  # of file systems without locks


def read_results(folder: Path) -> Iterator[UnitResult]:
    """All results of a folder, those of the same hash as often as they are there."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from read_file(path)


def read_file(path: Path) -> Iterator[UnitResult]:
    """The results of a file. Half a line at its end is left by a process that was killed, or is being written."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    try:
                        yield parse_result(line)
                    except DecodeError as error:
                        raise DecodeError(f"{path}:{number}: {error}") from None
    except OSError as error:
        raise SoftgenError(f"{path}: cannot be read: {error.strerror}") from None


def suffix(shard: Shard) -> str:
    return "" if shard == WHOLE else f"-{shard.number}-of-{shard.total}"


class ResultStore:
    """The folder as one farm writes to it. `known` has the outcomes of all units in it, by hash."""

    def __init__(self, folder: Path, shard: Shard = WHOLE) -> None:
        self.folder, self.shard = folder, shard
        self.path = folder / f"results{suffix(shard)}.jsonl"
        self.known: dict[str, UnitOutcome] = {}
        self.before: dict[str, UnitOutcome] = {}  # of units that run again
        self.findings: list[dict[str, Any]] = []
        self.captures = 0  # of units that went wrong
        self.locks: list[int] = []
        self.file = -1

    def open(self, units: Iterable[FarmUnit], again: bool) -> None:
        """Lock the folder's file and read what is there. Results of these units under other hashes are dropped, and with `again` all."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            others = [path for path in sorted(self.folder.glob("*.jsonl")) if path != self.path] if self.shard == WHOLE else []
            for path in (self.path, *others):
                self._lock(path)
            self._read(others, {(unit.name, unit.gpu): unit.key for unit in units}, again)
            self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SoftgenError(f"{error.filename or self.folder}: {error.strerror}") from None

    def close(self) -> None:
        for descriptor in (*self.locks, *([self.file] if self.file >= 0 else [])):
            os.close(descriptor)
        self.locks, self.file = [], -1

    def _lock(self, path: Path) -> None:
        descriptor = os.open(path.with_name(f".{path.stem}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self.locks.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SoftgenError(f"{path}: another farm is writing to it") from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise

    def _read(self, others: list[Path], wanted: dict[tuple[str, str], str], again: bool) -> None:
        """Read what is there, and bring the results of a whole run into one file, without those that this run replaces."""
        kept, there = dict[str, UnitResult](), 0
        for path in (self.path, *others):
            for result in read_file(path) if path.exists() else ():
                there += 1
                if self._stays(result, wanted, again):
                    kept.setdefault(result.key, result)
        if len(kept) < there or others or not _ends_with_a_line(self.path):
            write_file(self.path, "".join(f"{result.line()}\n" for result in kept.values()).encode())
        for path in others:
            path.unlink()
        for result in read_results(self.folder):  # also of other shards, which are not ours to change
            if self._stays(result, wanted, again):
                self.known[result.key] = result.outcome

    def _stays(self, result: UnitResult, wanted: dict[tuple[str, str], str], again: bool) -> bool:
        """Whether a result still holds: not that of a unit which is to run again, or which has another hash by now."""
        key = wanted.get((result.name, result.gpu))
        if key == result.key and again:
            self.before[key] = result.outcome
        return key is None or key == result.key and not again

    def add(self, result: UnitResult) -> None:
        """Append a result. Where the disk is full the file keeps the lines before, whole, and the error says so."""
        if (before := self.before.pop(result.key, None) or self.known.get(result.key)) and before != result.outcome:
            self.findings.append(difference("two runs of the same unit differ", result, before))
        if result.key in self.known:
            return
        size = os.fstat(self.file).st_size
        data = f"{result.line()}\n".encode()
        try:
            if os.write(self.file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self.file, size)
            raise SoftgenError(f"{self.path}: cannot be written: {error.strerror}") from None
        self.known[result.key] = result.outcome

    def attach(self, outcome: JobOutcome) -> None:
        """Keep what units left behind, in place of what an earlier run of them did, and what was found out about them."""
        self.findings += outcome.findings
        for result in outcome.results:
            self._attach(Path("logs", f"{result.key}.txt"), outcome.logs.get(result.key, "").encode())
            for kind, files in (("pictures", outcome.pictures), ("captures", self._few(outcome.captures))):
                shutil.rmtree(self.folder / kind / result.key, ignore_errors=True)
                for name, data in files.get(result.key, {}).items():
                    self._attach(Path(kind, result.key, name), data)

    def _few(self, captures: dict[str, dict[str, bytes]]) -> dict[str, dict[str, bytes]]:
        """The captures of the first units that went wrong: the others often failed for the same reasons."""
        if captures:
            self.captures += 1
        return captures if self.captures <= MOST_CAPTURES else {}

    def _attach(self, name: Path, data: bytes) -> None:
        path = self.folder / name
        if not data and name.parts[0] == "logs":
            path.unlink(missing_ok=True)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SoftgenError(f"{path}: cannot be written: {error.strerror}") from None
        write_file(path, data)

    def write_plan(self, plan: dict[str, Any]) -> None:
        write_file(self.folder / f"plan{suffix(self.shard)}.json", f"{json.dumps(plan, indent=1)}\n".encode())

    def write_findings(self) -> None:
        path = self.folder / f"findings{suffix(self.shard)}.json"
        if self.findings:
            write_file(path, f"{json.dumps(self.findings, indent=1, ensure_ascii=False)}\n".encode())
        else:
            path.unlink(missing_ok=True)


def read_findings(folder: Path) -> list[dict[str, Any]]:
    """The differences that the farms of a folder have found."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("findings*.json")):
        try:
            found += json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, TypeError) as error:
            raise DecodeError(f"{path}: is no list of findings: {error}") from None
    return found


def is_written(folder: Path) -> bool:
    """Whether a farm writes to one of the folder's files now."""
    for path in folder.glob(".*.lock"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return False


def read_plans(folder: Path) -> list[dict[str, Any]]:
    """The plans of a folder, one for each shard that has begun."""
    plans = []
    for path in sorted(folder.glob("plan*.json")):
        try:
            plan = json.loads(path.read_text("utf-8"))
            int(plan["units"]), str(plan["list"]), [int(number) for number in plan["shard"].split("/")]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DecodeError(f"{path}: is no plan of a farm: {error}") from None
        plans.append(plan)
    return plans


def _ends_with_a_line(path: Path) -> bool:
    with open(path, "ab+") as file:
        if not file.tell():
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"

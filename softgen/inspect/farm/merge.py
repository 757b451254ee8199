"""Results of several farms in one folder, and how far the farms of a folder are."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import counted
from softgen.inspect.farm.expectations import Expectations, joined
from softgen.inspect.farm.progress import duration
from softgen.inspect.farm.store import is_written, read_findings, read_plans, read_results
from softgen.inspect.farm.summary import FarmSummary, summarise
from softgen.inspect.farm.unit import FarmUnit, UnitResult, difference
from softgen.inspect.output_file import write_file


@dataclass
class FarmFolders:
    """What is in the folders of one or several farms. `results`: each unit once, by GPU and name."""

    results: list[UnitResult] = field(default_factory=list)
    origin: dict[str, Path] = field(default_factory=dict)  # of each hash
    findings: list[dict[str, Any]] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)

    @property
    def expected(self) -> Expectations:
        return joined(plan.get("expected") for plan in self.plans)

    @property
    def planned(self) -> int:
        """How many units the lists have, with those of shards that have not begun."""
        return sum({plan["list"]: int(plan["units"]) for plan in self.plans}.values())

    @property
    def missing(self) -> int:
        return max(self.planned - len(self.results), 0)

    @property
    def missing_shards(self) -> list[str]:
        """Shards of which there is nothing, where there is another one of their list."""
        seen: dict[tuple[str, int], set[int]] = {}
        for plan in self.plans:
            number, total = map(int, plan["shard"].split("/"))
            seen.setdefault((plan["list"], total), set()).add(number)
        return [f"{number}/{total}" for (_, total), there in seen.items() for number in range(1, total + 1) if number not in there]

    @property
    def ambiguous(self) -> int:
        """Units with results of several hashes: of another softgen, other drivers or options."""
        return len(self.results) - len({(result.name, result.gpu) for result in self.results})

    def summary(self) -> FarmSummary:
        units = (FarmUnit(result.name, result.gpu, result.key) for result in self.results)
        found = summarise(units, {result.key: result.outcome for result in self.results}, self.expected)
        found.findings = sum(map(self.expected.worth_a_finding, self.findings))
        return found

    @property
    def fine(self) -> bool:
        return not self.missing and not self.missing_shards and self.summary().fine


def read_folders(folders: Iterable[Path]) -> FarmFolders:
    """All of several folders. Two results of one hash must be equal in all but their seconds."""
    found, by_key = FarmFolders(), dict[str, UnitResult]()
    plans: dict[tuple[str, str], dict[str, Any]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder")
        if not any(folder.glob("*.jsonl")):
            raise UsageError(f"{folder}: has no results of a farm (*.jsonl)")
        for result in read_results(folder):
            first = by_key.setdefault(result.key, result)
            found.origin.setdefault(result.key, folder)
            if first.outcome != result.outcome:
                found.findings.append(difference("two runs of the same unit differ", result, first.outcome))
        found.findings += read_findings(folder)
        plans |= {(plan["list"], plan["shard"]): plan for plan in read_plans(folder)}
    found.plans = list(plans.values())
    found.results = sorted(by_key.values(), key=lambda result: (result.gpu, result.name, result.key))
    return found


def write_merged(found: FarmFolders, out: Path) -> None:
    """One folder with everything: results, what units printed and drew, one plan for all."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SoftgenError(f"{out}: {error.strerror}") from None
    write_file(out / "results.jsonl", "".join(f"{result.line()}\n" for result in found.results).encode())
    lists = sorted({plan["list"] for plan in found.plans})
    plan = {"list": " ".join(lists), "shard": "1/1", "units": found.planned or len(found.results), "there": 0, "began": time.time(),
            "expected": found.expected.as_json()}  # fmt: skip
    write_file(out / "plan.json", f"{json.dumps(plan, indent=1)}\n".encode())
    if found.findings:
        write_file(out / "findings.json", f"{json.dumps(found.findings, indent=1, ensure_ascii=False)}\n".encode())
    for key, folder in found.origin.items():
        for part in (Path("logs", f"{key}.txt"), Path("pictures", key), Path("captures", key)):
            copy(folder / part, out / part)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder that may not be there."""
    if not source.exists():
        return
    try:
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise SoftgenError(f"{target}: cannot be written: {error.strerror}") from None


def progress_lines(found: FarmFolders, folders: Iterable[Path]) -> list[str]:
    """How far the farms of these folders are."""
    done, planned = len(found.results), max(found.planned, len(found.results))
    running = any(is_written(folder) for folder in folders)
    began = min((plan["began"] for plan in found.plans if isinstance(plan.get("began"), (int, float))), default=0)
    before = sum(int(plan.get("there", 0)) for plan in found.plans)
    rate = (done - before) / max(time.time() - began, 1) if running and began else 0.0
    left = f", {rate:,.1f} a second, {duration((planned - done) / rate)} left" if rate > 0 and done < planned else ""
    state = "running" if running else "complete" if done == planned else "not running; the same command goes on"
    lines = [f"{done:,} of {counted(planned, 'unit')} are done ({state}{left})"]
    if absent := found.missing_shards:
        lines.append(f"shards that have not begun: {', '.join(absent[:20])}{' …' if len(absent) > 20 else ''}")
    if found.ambiguous:
        lines.append(f"{counted(found.ambiguous, 'result')} of another hash: the same unit with another softgen, other drivers or options")
    return lines

"""Farms as people call them, and what they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult
from tests.conftest import ROOT

PATIENCE = 120  # seconds; only a farm that hangs takes so long


def start(*arguments: object, folder: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    """`softgen farm …` in a process of its own."""
    told = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen([sys.executable, "-m", "softgen", "farm", *map(str, arguments)], cwd=folder, env=told, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def farm(*arguments: object, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    process = start(*arguments, folder=folder, **environment)
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def lines(folder: Path) -> list[dict[str, Any]]:
    """The objects of all lines of results."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]


def by_name(folder: Path) -> dict[str, dict[str, Any]]:
    """Results by name; each name once."""
    found = lines(folder)
    assert len({line["name"] for line in found}) == len(found)
    return {line["name"]: line for line in found}


def write_list(path: Path, tests: Iterable[str]) -> Path:
    path.write_text("".join(f"{test}\n" for test in tests), "utf-8")
    return path


def result(name: str = "one", word: str = "pass", message: str = "", gpu: str = "kbl", key: str = "", seconds: float = 0.5) -> UnitResult:
    return UnitResult(name, gpu, word, seconds, message, key or f"{gpu}-{name}")


def job(*names: str, suite: str = "run", seconds: float = 20, memory: int = 1 << 32, folder: str = "/", **more: Any) -> Job:
    return Job(suite, "kbl", tuple(FarmUnit(name, "kbl", f"kbl-{name}") for name in names), seconds, memory, folder, **more)


def passing(one: Job) -> JobOutcome:
    """A job whose units all pass, without a process."""
    return JobOutcome([UnitResult(unit.name, unit.gpu, "pass", 0.0, "", unit.key) for unit in one.units])

"""Captures: each replayed, or checked, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from softgen.errors import UsageError
from softgen.inspect.farm import identity
from softgen.inspect.farm.inputs import local_path
from softgen.inspect.farm.lists import own_gpu
from softgen.inspect.farm.plans import UnitPlan, UnitSettings
from softgen.inspect.farm.process import EndedProcess, ProcessLimits
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome
from softgen.inspect.farm.verdicts import LONGEST, first_error, last_line, limit_verdict, stable
from softgen.inspect.farm.worker import Stop, UnitFolder

UNKNOWN = "unknown"  # the GPU of a capture that cannot be read


class ReplayPlan(UnitPlan):
    """Captures, each as its own GPU or as each of several."""

    def __init__(self, captures: list[str], gpus: list[str], checks: list[str], settings: UnitSettings) -> None:
        super().__init__(settings)
        self.checks, self.named = checks, bool(gpus)
        self.pairs = [(gpu, capture) for capture in captures for gpu in gpus or [own_gpu(capture)]]

    def everything(self) -> list[tuple[str, str]]:
        return sorted(self.pairs, key=lambda pair: pair[0])  # units of one GPU one after another: their kernels are compiled then

    def key(self, gpu: str, name: str) -> str:
        return identity.key("replay", gpu, self.settings.decisive, self.checks, name, identity.tree_sum(name))

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        for unit in units:
            as_gpu = ("--gpu", unit.gpu) if self.named else ()
            inputs = ((unit.name, identity.tree_sum(unit.name)),)
            yield self.settings.job("replay", unit.gpu, (unit,), program=as_gpu, commands=(tuple(self.checks),), inputs=inputs)


def check_worlds(text: str | None) -> list[str]:
    """The value of --check: worlds of `softgen check`."""
    from softgen.inspect.cli.main import VERBS

    if text is None:
        return []
    if "check" not in VERBS:
        raise UsageError("--check needs the verb check, which this softgen does not have")
    worlds = [world for world in text.split(",") if world]
    if not worlds:
        raise UsageError("--check needs worlds with commas between them, such as order,fill")
    return worlds


def run_replay(job: Job, stop: Stop) -> JobOutcome:
    """`softgen replay CAPTURE`, or `softgen check CAPTURE` where worlds are named."""
    unit, worlds = job.units[0], job.commands[0]
    path = local_path(job, unit.name)
    verb = ["check", "--worlds", ",".join(worlds)] if worlds else ["replay"]
    with UnitFolder(job) as folder:
        drawn = [] if worlds else folder.images()
        ended = folder.start([*verb, "--json", *job.program, *job.options, *drawn, "--", path], lambda line: None, stop)
        result, message, findings = replay_verdict(ended, ProcessLimits(job.seconds, job.memory))
        message = message.replace(path, unit.name)
        return folder.judge(unit, ended, (result, message), findings)


def replay_verdict(ended: EndedProcess, limits: ProcessLimits) -> tuple[str, str, tuple[str, ...]]:
    """Result, message and findings of a capture."""
    if limited := limit_verdict(ended, limits):
        return *limited, ()
    if ended.code == 0:
        return "pass", "", ()
    found = report(ended.out)
    findings = tuple(text_of(finding) for finding in found.get("findings") or ())
    problems = [text_of(problem) for kind in ("faults", "unsupported") for problem in found.get(kind) or ()]
    message = next(iter((*problems, *findings)), "") or first_error(ended.err) or last_line(ended) or f"exit code {ended.code}"
    return "fail", message[:LONGEST], findings


def report(out: str) -> dict[str, Any]:
    """The object that a verb printed; an empty one where there is none."""
    try:
        found = json.loads(out)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text_of(problem: object) -> str:
    """A fault, a finding or what is not supported in one line."""
    if isinstance(problem, dict):
        problem = next((problem[key] for key in ("message", "what", "text") if key in problem), json.dumps(problem, sort_keys=True))
    return stable(str(problem))

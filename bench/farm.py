"""The farm: its own cost for a unit, its memory, and how much faster several workers are than one, beside the goals.

Own cost: units that do nothing, so that hashes, jobs, results and the summary are all there is. Workers: a list of replayed captures, those
of the repository or of the folder FARM_CAPTURES. With SOFTGEN_DEQP, the path of deqp-gles2, and SOFTGEN_DEQP_CASES, a list of its cases, a
thousand of these run too.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from softgen.inspect.farm.deqp import DeqpPlan, read_cases
from softgen.inspect.farm.executors import LocalBackend, processors
from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.lists import find_captures
from softgen.inspect.farm.plans import CommandPlan, UnitPlan, UnitSettings
from softgen.inspect.farm.replays import ReplayPlan
from softgen.inspect.farm.session import FarmSession
from softgen.inspect.farm.store import ResultStore
from softgen.inspect.farm.suites import SUITES
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult

UNITS = 10_000
GOAL = 0.010  # seconds of a unit that does nothing
SPEEDUP = {2: 1.8, 16: 13.0}  # goals, by workers
LEAST = 48  # replays: with few captures each is replayed several times
CAPTURES = [str(Path(__file__).parent.parent / "tests" / "data" / name) for name in ("g45-gles-tri", "kbl-vk-compute", "kbl-vk-tri")]
CASES, CASE_GOAL = 1000, 0.36  # seconds of a case of dEQP on two processors


class EmptyPlan(CommandPlan):
    """Units that do nothing."""

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        return (self.settings.job("empty", unit.gpu, (unit,)) for unit in units)


class RepeatedPlan(ReplayPlan):
    """Captures, each several times."""

    def everything(self) -> list[tuple[str, str]]:
        repeats = -(-LEAST // len(self.pairs))
        return [(gpu, f"{name}{'/.' * number}") for number in range(repeats) for gpu, name in self.pairs]


def nothing(job: Job, stop: object) -> JobOutcome:
    [unit] = job.units
    return JobOutcome([UnitResult(unit.name, unit.gpu, "pass", 0.0, "", unit.key)])


def run(plan: UnitPlan, workers: int) -> tuple[float, list[UnitResult]]:
    """Seconds, and the results."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        session = FarmSession(plan, ResultStore(Path(folder)), LocalBackend(workers), Expectations())
        try:
            session.open()
            return time.perf_counter() - began, list(session.results())
        finally:
            session.summary()
            session.close()


def timed(plan: UnitPlan, workers: int) -> tuple[float, int, int]:
    """Seconds, how many units there were, and how many did not pass."""
    began = time.perf_counter()
    _, results = run(plan, workers)
    return time.perf_counter() - began, len(results), sum(not result.good for result in results)


def peak() -> float:
    """MB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def own_cost() -> Iterator[Measurement]:
    SUITES["empty"] = nothing
    timed(EmptyPlan([f"unit {number}" for number in range(UNITS // 10)], ["kbl"], UnitSettings()), processors())
    before = peak()
    seconds, units, _ = timed(EmptyPlan([f"unit {number}" for number in range(UNITS)], ["kbl"], UnitSettings()), processors())
    note = f"{seconds / units * 1e3:.2f} ms each, goal {GOAL * 1e3:g}"
    yield Measurement(f"{units:,} units that do nothing", units, "units", seconds, "the goal", GOAL * units, note)
    grown = peak() - before
    yield Measurement("memory", 1, "", max(grown, 0.1), note=f"{grown:.1f} MB more than for a tenth of them", quantity="megabytes")


def speedups() -> Iterator[Measurement]:
    """Several workers beside one, on a list of captures."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    places = [os.environ["FARM_CAPTURES"]] if "FARM_CAPTURES" in os.environ else CAPTURES
    plan = RepeatedPlan(find_captures(places), [], [], UnitSettings(options=("--threads", "1")))
    timed(plan, processors())  # what is compiled is kept
    single, units, bad = timed(plan, 1)
    for workers in sorted({2, 4, 8, 16, processors()} - {1}):
        if workers <= processors():
            several, _, _ = timed(plan, workers)
            goal = f", goal {SPEEDUP[workers]}" if workers in SPEEDUP else ""
            note = f"{single / several:.2f} times{goal}; {several / units * 1e3:.0f} ms a capture; {bad} did not pass"
            yield Measurement(f"{workers} workers, {units} captures", units, "captures", several, "one worker", single, note)


def deqp() -> Measurement:
    program, cases = os.environ.get("SOFTGEN_DEQP"), os.environ.get("SOFTGEN_DEQP_CASES")
    if not program or not cases:
        return Measurement("cases of dEQP", 1, "", 1, note="not measured: SOFTGEN_DEQP and SOFTGEN_DEQP_CASES name no program and list")
    plan = DeqpPlan(program, [], read_cases([cases])[:CASES], ["kbl"], UnitSettings(seconds=120))
    seconds, units, bad = timed(plan, processors())
    return Measurement(f"{units:,} cases of dEQP, {processors()} workers", units, "cases", seconds, "the goal", CASE_GOAL * units,
                       f"{seconds / units * 1e3:.0f} ms a case; {bad} did not pass")  # fmt: skip


def measure() -> Iterator[Measurement]:
    yield from own_cost()
    yield from speedups()
    yield deqp()

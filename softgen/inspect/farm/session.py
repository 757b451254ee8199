"""A farm from its start to its end: reads what is there, runs what is missing, keeps each result as it comes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from softgen.inspect.farm import identity
from softgen.inspect.farm.engine import FarmEngine
from softgen.inspect.farm.executors import Backend
from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.plans import UnitPlan
from softgen.inspect.farm.store import ResultStore, read_findings
from softgen.inspect.farm.summary import FarmSummary, summarise
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult


class Terminated(KeyboardInterrupt):
    """SIGTERM: a scheduler takes the machine back."""


class FarmSession:
    """Units of a plan, the folder of their results, and where they run."""

    def __init__(self, plan: UnitPlan, store: ResultStore, backend: Backend, expected: Expectations, again: bool = False) -> None:
        self.plan, self.store, self.backend, self.expected, self.again = plan, store, backend, expected, again
        self.units: list[FarmUnit] = []
        self.missing: list[FarmUnit] = []
        self.lost: list[tuple[FarmUnit, str]] = []

    def open(self) -> None:
        """Find out which units there are and which of them have a result."""
        self.units = list(dict.fromkeys(self.plan.units()))
        self.store.open(self.units, self.again)
        self.missing = [unit for unit in self.units if unit.key not in self.store.known]
        self.store.findings = [] if self.again else read_findings(self.store.folder)
        there = len(self.units) - len(self.missing)
        self.store.write_plan({**self.plan.whole_list(), "shard": str(self.store.shard), "there": there, "began": time.time(),
                               "softgen": identity.version(), "expected": self.expected.as_json()})  # fmt: skip

    def results(self) -> Iterator[UnitResult]:
        """Run what is missing; each result when it is kept. Whatever ends this early, what is done is kept."""
        engine = FarmEngine(self.backend, self.plan.jobs(self.missing, self.backend.workers))
        try:
            for job, outcome in engine.outcomes():
                yield from self._keep(job, outcome)
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                for job, outcome in engine.stop():
                    for _ in self._keep(job, outcome):
                        pass
            raise
        finally:
            self.lost += [(unit, why) for job, why in engine.lost for unit in job.units]
            self.store.write_findings()

    def _keep(self, job: Job, outcome: JobOutcome) -> Iterator[UnitResult]:
        self.store.attach(outcome)
        for result in outcome.results:
            self.store.add(result)
            yield result

    def summary(self) -> FarmSummary:
        found = summarise(self.units, self.store.known, self.expected)
        found.findings = sum(map(self.expected.worth_a_finding, self.store.findings))
        return found

    def close(self) -> None:
        self.backend.close()
        self.store.close()


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Have SIGTERM end the farm as Ctrl-C does: what is done is kept, and what runs is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

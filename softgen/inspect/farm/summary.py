"""Counts of results and the exit code that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from softgen.inspect.cli.output import counted
from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.unit import RESULTS, FarmUnit, UnitOutcome


@dataclass
class FarmSummary:
    """How many units ended how, by GPU, and what of it is not as expected."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)  # by GPU: RESULTS, "expected", "flake", "unexpected", "missing"
    findings: int = 0
    lost: list[str] = field(default_factory=list)  # units without a result, and why

    def add(self, name: str, gpu: str, outcome: UnitOutcome | None, expected: Expectations) -> str:
        """Count a unit; None has no result. The verdict of the expectations."""
        counts = self.counts.setdefault(gpu, Counter())
        if outcome is None:
            counts["missing"] += 1
            return "missing"
        verdict = expected.verdict(name, gpu, outcome[0])
        counts[outcome[0]] += 1
        counts[verdict] += 1
        return verdict

    @property
    def fine(self) -> bool:
        """Whether every unit has passed, was skipped or failed as expected, and nothing differed between two runs."""
        return not self.findings and not any(counts["unexpected"] or counts["missing"] for counts in self.counts.values())

    @property
    def total(self) -> int:
        return sum(counts[word] for counts in self.counts.values() for word in (*RESULTS, "missing"))

    def lines(self) -> list[str]:
        """A line for each GPU."""
        if not self.counts:
            return ["no units"]
        return [f"{gpu}: {counted(sum(counts[word] for word in (*RESULTS, 'missing')), 'unit')}: {self._row(counts)}"
                for gpu, counts in sorted(self.counts.items())]  # fmt: skip

    def _row(self, counts: Counter[str]) -> str:
        known = [f"{counts[word]:,} {text}" for word, text in (("expected", "as expected"), ("flake", "known as flaky")) if counts[word]]
        parts = [f"{counts[word]:,} {word}" for word in (*RESULTS, "missing") if counts[word]]
        return ", ".join(parts) + (f" (of those that did not pass, {' and '.join(known)})" if known else "")

    def as_json(self) -> dict[str, Any]:
        whole = Counter[str]()
        for counts in self.counts.values():
            whole.update(counts)
        words, more = (*RESULTS, "missing"), ("expected", "flake", "unexpected")
        gpus = {gpu: {word: counts[word] for word in words} for gpu, counts in sorted(self.counts.items())}
        return {"fine": self.fine, "units": self.total, **{word: whole[word] for word in (*words, *more)}, "findings": self.findings,
                "gpus": gpus}  # fmt: skip


def summarise(units: Iterable[FarmUnit], known: Mapping[str, UnitOutcome], expected: Expectations) -> FarmSummary:
    """The summary of the units of a list."""
    found = FarmSummary()
    for unit in units:
        found.add(unit.name, unit.gpu, known.get(unit.key), expected)
    return found

"""Expected failures and flakes, in the formats of deqp-runner: `case,Status` and regular expressions, a line each, `#` for comments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from softgen.errors import UsageError
from softgen.inspect.farm.lists import read_lines
from softgen.inspect.farm.unit import GOOD

# deqp-runner's statuses, and the results that each of them expects.
STATUSES = {"Pass": ("pass",), "Fail": ("fail",), "Crash": ("crash",), "Timeout": ("timeout",), "Skip": ("skip",), "Warn": ("pass", "fail"),
            "Missing": ("fail", "skip"), "Flake": ("pass", "fail", "crash", "timeout"), "KnownFlake": ("pass", "fail", "crash", "timeout"),
            "ExpectedFail": ("fail",), "UnexpectedImprovement(Pass)": ("pass",), "UnexpectedImprovement(Skip)": ("skip",),
            "UnexpectedImprovement(Fail)": ("fail",)}  # fmt: skip
STATUS_OF = {"pass": "Pass", "fail": "Fail", "crash": "Crash", "timeout": "Timeout", "skip": "Skip"}


def read_patterns(paths: Iterable[str]) -> list[str]:
    """Regular expressions, one a line."""
    found = []
    for path in paths:
        for number, line in read_lines(path):
            try:
                re.compile(line)
            except re.error as error:
                raise UsageError(f"{path}:{number}: is no regular expression: {error}") from None
            found.append(line)
    return found


def read_baseline(path: str) -> dict[str, str]:
    """Statuses by name. A name may have commas in it: the status follows the last one, or is followed by seconds, as in results.csv."""
    found: dict[str, str] = {}
    for number, line in read_lines(path):
        name, _, status = line.rpartition(",")
        if re.fullmatch(r"[\d.]+", status):
            name, _, status = name.rpartition(",")
        if status not in STATUSES or not name:
            raise UsageError(f"{path}:{number}: must be a name, a comma and a status ({', '.join(list(STATUSES)[:6])}), not {line!r}")
        found[name] = status
    return found


@dataclass
class Expectations:
    """Expected statuses by GPU ("" for all) and name, and patterns of names that pass at times only."""

    baseline: dict[str, dict[str, str]] = field(default_factory=dict)
    flakes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.flaky = re.compile("|".join(f"(?:{pattern})" for pattern in self.flakes)) if self.flakes else None

    def status(self, name: str, gpu: str) -> str:
        return self.baseline.get(gpu, {}).get(name, "") or self.baseline.get("", {}).get(name, "")

    def verdict(self, name: str, gpu: str, result: str) -> str:
        """ "" where a result is fine by itself, "expected" or "flake" where it is not and is known, "unexpected" otherwise: also a pass
        where the baseline has a failure, whose line is to be removed."""
        if self.flaky and self.flaky.search(name):
            return "" if result in GOOD else "flake"
        if status := self.status(name, gpu):
            expected = result in STATUSES[status]
            return "unexpected" if not expected else "" if result in GOOD else "expected"
        return "" if result in GOOD else "unexpected"

    def worth_a_finding(self, finding: dict[str, Any]) -> bool:
        """Whether two runs that differ are news: not of a unit that is known as flaky."""
        return not (self.flaky and self.flaky.search(finding["name"]))

    def as_json(self) -> dict[str, Any]:
        return {"baseline": self.baseline, "flakes": self.flakes}


def read_expectations(baselines: Iterable[str], flakes: Iterable[str]) -> Expectations:
    """The files of --baseline, each for all GPUs or, as in kbl=FILE, for one, and of --flakes."""
    from softgen.inspect.farm.lists import gpu_names

    found: dict[str, dict[str, str]] = {}
    for text in baselines:
        gpu, _, path = text.rpartition("=") if re.match(r"\w+=", text) else ("", "", text)
        found.setdefault(gpu and gpu_names(gpu)[0], {}).update(read_baseline(path))
    return Expectations(found, read_patterns(flakes))


def joined(several: Iterable[Any]) -> Expectations:
    """The expectations of several plans together."""
    found = Expectations()
    for one in several:
        expected = one if isinstance(one, dict) else {}
        for gpu, statuses in (expected.get("baseline") or {}).items():
            found.baseline.setdefault(gpu, {}).update(statuses)
        found.flakes += [pattern for pattern in expected.get("flakes") or () if pattern not in found.flakes]
    found.__post_init__()
    return found

#!/usr/bin/env python3
"""Which test reaches which line of a package, and how long each test takes: measured once with `coverage`, a context for each test.
Where it is not installed, every test counts as reaching every line.

A part of the map is about one test file and is measured again when that file, its helpers or the package change. Of a test
function whose cases take longer than LONGEST together, the others are left out: tests of a fault are chosen from the quickest on, within
BUDGET. As a program
(`coverage_map.py RESULT SOURCE... -- TEST_FILE...`, in the folder of the tree) it runs the tests of those files and writes their parts.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BUDGET = 60.0  # seconds of tests that reach a fault's line
BEYOND = 15.0  # and of others: values made at import or kept by a cache are used by tests that do not reach the line
LONGEST = 15.0  # seconds of the processor that the cases of one test function take together before the rest of them is left out
PYTEST = ("-q", "-x", "--no-header", "--tb=short", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "pyproject.toml",
          "--rootdir", ".")  # fmt: skip


class TimedTest(NamedTuple):
    name: str  # pytest's node id
    seconds: float  # of the processor, while measured


@dataclass(frozen=True)
class Part:
    """The tests of one file and the lines they reach: for each source file and line, a bit for each test."""

    key: str
    tests: list[TimedTest]
    failed: list[str]
    reached: dict[str, dict[int, int]]

    @classmethod
    def read(cls, row: dict[str, Any]) -> Part:
        reached = {path: {int(line): int(mask, 16) for line, mask in lines.items()} for path, lines in row["reached"].items()}
        return cls(row["key"], [TimedTest(*test) for test in row["tests"]], row["failed"], reached)

    def row(self) -> dict[str, Any]:
        reached = {path: {line: f"{mask:x}" for line, mask in lines.items()} for path, lines in self.reached.items()}
        return {"key": self.key, "tests": self.tests, "failed": self.failed, "reached": reached}

    def named(self, mask: int) -> Iterator[TimedTest]:
        return (test for index, test in enumerate(self.tests) if mask >> index & 1)

    @cached_property
    def breadth(self) -> dict[str, int]:
        """How many lines each test reaches: a test of few is specific to them."""
        counts = [0] * len(self.tests)
        for lines in self.reached.values():
            for mask in lines.values():
                while mask:
                    counts[(mask & -mask).bit_length() - 1] += 1
                    mask &= mask - 1
        return {test.name: count for test, count in zip(self.tests, counts, strict=True)}


class CoverageMap:
    """The parts of all test files of a package."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self.parts = list(parts)

    def selection(self, path: str, whole: str, line: int) -> list[TimedTest]:
        """The tests of a fault in a line, the quickest and most specific first: those that reach it, up to BUDGET; then, up to BEYOND,
        those of the test file named after the module, those that reach the module, and the others."""
        statement = set(lines_of_statement(whole, line))
        near = self._reaching(path, statement)
        own = f"test_{Path(path).stem}.py"
        tiers = [near, [test for part in self.parts for test in part.tests if test.name.partition("::")[0].endswith(f"/{own}")],
                 self._reaching(path, None), [test for part in self.parts for test in part.tests]]  # fmt: skip
        chosen = dict[str, TimedTest]()
        for tests, budget in zip(tiers, (BUDGET, BEYOND, BEYOND, BEYOND), strict=True):
            spent = 0.0 if tests is near else sum(test.seconds for test in chosen.values() if test not in near)
            for test in sorted(set(tests) - set(chosen.values()), key=self._rank):
                spent += test.seconds
                if spent > budget and chosen:
                    break
                chosen[test.name] = test
        return list(chosen.values())

    def quickest(self, seconds: float) -> list[TimedTest]:
        """Tests of about so much time together, of every file some."""
        chosen, spent = list[TimedTest](), 0.0
        for test in sorted((test for part in self.parts for test in part.tests), key=lambda test: test.seconds):
            spent += test.seconds
            if spent > seconds and chosen:
                break
            chosen.append(test)
        return chosen

    def _reaching(self, path: str, lines: set[int] | None) -> list[TimedTest]:
        found = []
        for part in self.parts:
            mask = 0
            for line, tests in part.reached.get(path, {}).items():
                if lines is None or line in lines:
                    mask |= tests
            found += part.named(mask)
        return found

    def _rank(self, test: TimedTest) -> tuple[int, int, str]:
        """By the magnitude of its time, so that tests of a file mostly stay together, then by how specific it is."""
        return max(int(test.seconds * 20), 1).bit_length(), self._breadth[test.name], test.name

    @cached_property
    def _breadth(self) -> dict[str, int]:
        return {name: count for part in self.parts for name, count in part.breadth.items()}


def lines_of_statement(whole: str, line: int) -> range:
    """The lines of the innermost statement around a line; of a compound one its head alone."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(whole)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = (body[0].lineno - 1 if body[0].lineno > node.lineno else node.lineno) if body else node.end_lineno or node.lineno
        if node.lineno <= line <= last and (best == range(line, line + 1) or node.lineno >= best.start):
            best = range(node.lineno, last + 1)
    return best


def guided() -> bool:
    return importlib.util.find_spec("coverage") is not None


def keys(root: Path, sources: list[str], tests: list[str]) -> dict[str, str]:
    """What each test file's part depends on: the sources, helpers beside the tests, the file."""
    folders = {root / Path(test).parent for test in tests}
    helpers = {path for folder in folders for path in folder.glob("*.py") if not path.name.startswith("test_")}
    common = hashlib.sha256(f"{guided()}".encode())
    for path in [*map(root.joinpath, sources), *sorted(helpers), Path(__file__)]:
        common.update(path.read_bytes())
    return {test: hashlib.sha256(common.digest() + (root / test).read_bytes()).hexdigest() for test in tests}


def read(path: Path) -> dict[str, Part]:
    return {test: Part.read(row) for test, row in json.loads(path.read_text("utf-8")).items()} if path.exists() else {}


def write(path: Path, parts: dict[str, Part]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({test: part.row() for test, part in parts.items()}), "utf-8")
    os.replace(fresh, path)


# -- measuring -----------------------------------------------------------------------------------------------------


def _function(name: str) -> str:
    """The test function of a case."""
    return name.partition("[")[0]


class Measure:
    """A plugin of pytest: a context for each test, its time, and which are left out."""

    def __init__(self, sources: list[str]) -> None:
        self.root, self.sources, self.seconds = Path.cwd(), sources, dict[str, float]()
        self.failed, self.left_out, self.spent = set[str](), set[str](), defaultdict[str, float](float)
        self._tracer: Any = None
        if guided():
            import coverage

            files = [str(self.root / source) for source in sources]
            self._tracer = coverage.Coverage(data_file=None, include=files, config_file=False, messages=False)
            self._tracer.start()

    def _switch(self, context: str) -> None:
        if self._tracer:
            self._tracer.switch_context(context)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._switch(nodeid)
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()
        self.spent[_function(nodeid)] += self.seconds[nodeid]
        self._switch("")

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.spent[_function(item.nodeid)] > LONGEST:
            self.left_out.add(item.nodeid)
            pytest.skip("other cases took long enough")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport

    def reached(self) -> Iterator[tuple[str, int, Iterable[str]]]:
        """Source files with lines and the tests that reach them."""
        if self._tracer is None:
            for source in self.sources:
                lines = len((self.root / source).read_text("utf-8").splitlines())
                yield from ((source, line, self.seconds) for line in range(1, lines + 1))
            return
        self._tracer.stop()
        data = self._tracer.get_data()
        for path in sorted(data.measured_files()):
            for line, contexts in data.contexts_by_lineno(path).items():
                yield str(Path(path).relative_to(self.root)), line, filter(None, contexts)


def measure(sources: list[str], tests: list[str]) -> tuple[dict[str, Part], int]:
    """Runs test files in this process and folder; the parts, and pytest's exit code."""
    plugin = Measure(sources)
    code = pytest.main([*(option for option in PYTEST if option != "-x"), *tests], plugins=[plugin])
    reached = defaultdict[str, dict[str, dict[int, set[str]]]](lambda: defaultdict(lambda: defaultdict(set)))
    for path, line, names in plugin.reached():
        for name in names:
            reached[name.partition("::")[0]][path][line].add(name)
    known = keys(plugin.root, sources, tests)
    return {test: _part(known[test], test, plugin, reached[test]) for test in tests}, code


def _part(key: str, test: str, plugin: Measure, reached: dict[str, dict[int, set[str]]]) -> Part:
    failed = sorted(name for name in plugin.failed if name.partition("::")[0] == test)
    ran = [TimedTest(name, round(seconds, 4)) for name, seconds in plugin.seconds.items()
           if name.partition("::")[0] == test and name not in plugin.failed | plugin.left_out]  # fmt: skip
    bits = {item.name: 1 << index for index, item in enumerate(ran)}
    masks = {path: {line: sum(bits.get(name, 0) for name in names) for line, names in lines.items()} for path, lines in reached.items()}
    return Part(key, ran, failed, masks)


def main(arguments: list[str]) -> int:
    result, middle = Path(arguments[0]), arguments.index("--")
    parts, code = measure(arguments[1:middle], arguments[middle + 1 :])
    write(result, parts)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

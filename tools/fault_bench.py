"""A copy of the tree into which faults are put, and the process that runs its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage_map
from coverage_map import CoverageMap, TimedTest
from fork_server import EXTRA, Answer, ForkServer, Request
from mutations import Mutation

COPIED = ("softgen", "tests", "docs", "examples", "bench", "tools", "pyproject.toml")  # tests execute what all of these say
FIRST_FILES, FIRST_SECONDS = 2, 5.0  # of the tests that are run before all others
MEASURING = 7200  # seconds of the clock for all tests of a package, with coverage


@dataclass(frozen=True)
class Result:
    key: str  # the fault's name
    caught: bool
    seconds: float
    how: str  # the test that noticed, or "timeout" and the test that did not end


class Bench:
    """A copy of the tree, kept in `folder`; each fault has an object cache of its own, which begins as a copy of a warm one."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.tree, self.cache, self._fault_cache = folder / "tree", folder / "cache", folder / "fault-cache"
        self._short = tempfile.TemporaryDirectory(prefix="softgen-")  # tests make sockets, whose paths have room for 107 bytes
        self._ticks, self.extra = int(time.time()), EXTRA
        self.tree.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            synchronise(root / name, self.tree / name)
        shared = os.environ.get("SOFTGEN_SHARED", str(root.parent / "shared"))
        self._environment = {**os.environ, "PYTHONPATH": str(self.tree), "XDG_CACHE_HOME": str(self.cache), "CI": "1",
                             "SOFTGEN_SHARED": shared, "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
        self._server: ForkServer | None = None

    def measure(self, sources: list[str], tests: list[str], result: Path) -> str:
        """The parts of the coverage map for some test files, written to a file; what pytest printed."""
        command = [sys.executable, coverage_map.__file__, str(result), *sources, "--", *tests]
        done = subprocess.run(command, cwd=self.tree, env=self._environment, capture_output=True, text=True, check=False, timeout=MEASURING)
        return done.stdout + done.stderr

    def warm(self, tests: list[TimedTest]) -> Answer:
        """Runs tests without a fault; the objects they compile are then in the cache, and their bytecode beside them."""
        return self._run(tests, self.cache, write_bytecode=True)

    def test(self, mutation: Mutation, coverage: CoverageMap) -> tuple[Result, str]:
        start, path = time.monotonic(), self.tree / mutation.path
        before = path.stat()
        tests = coverage.selection(mutation.path, mutation.whole, mutation.line)
        self._ticks += 10  # a time of its own: keys of compiled objects have the times of sources, in seconds for bytecode
        try:
            path.write_text(mutation.applied(), "utf-8")
            os.utime(path, (self._ticks, self._ticks))
            link_tree(self.cache, self._fault_cache)
            for stage in stages(tests):
                answer = self._run(stage, self._fault_cache)
                if answer.caught:
                    break
        finally:
            path.write_text(mutation.whole, "utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        how = answer.test if answer.outcome == "failed" else f"{answer.outcome} {answer.test}".strip() if answer.caught else ""
        return Result(mutation.name, answer.caught, time.monotonic() - start, how), answer.text

    def _run(self, tests: list[TimedTest], cache: Path, write_bytecode: bool = False) -> Answer:
        if not tests:
            return Answer("passed", "", "no test is left to run")
        if self._server is None:
            self._server = ForkServer(self.tree, self._environment)
        return self._server.run(Request(tests, str(cache), f"{self._short.name}/run", write_bytecode, self.extra))

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._short.cleanup()


def stages(tests: list[TimedTest]) -> list[list[TimedTest]]:
    """The tests of the files that come first, then all others: most faults need no collection of further files."""
    files = set(list(dict.fromkeys(test.name.partition("::")[0] for test in tests))[:FIRST_FILES])
    first, spent = list[TimedTest](), 0.0
    for test in tests:
        if test.name.partition("::")[0] in files and spent < FIRST_SECONDS:
            first.append(test)
            spent += test.seconds
    rest = [test for test in tests if test not in set(first)]
    return [first, rest] if rest else [first]


def files_below(folder: Path) -> Iterator[Path]:
    """Files by their path inside a folder, or the folder itself where it is a file."""
    if folder.is_file():
        yield Path()
    for path in folder.rglob("*"):
        if "__pycache__" not in path.parts and path.is_file():
            yield path.relative_to(folder)


def synchronise(source: Path, target: Path) -> None:
    """Makes a copy of files, with their times, in which unchanged files are left alone and vanished ones are removed."""
    wanted = set(files_below(source))
    for path in set(files_below(target)) - wanted:
        (target / path).unlink()
    for path in wanted:
        old, new = (source / path).stat(), (target / path)
        if not new.exists() or (new.stat().st_size, new.stat().st_mtime_ns) != (old.st_size, old.st_mtime_ns):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / path, new)


def link_tree(source: Path, target: Path) -> None:
    """A copy by hard links: the object cache replaces files and never writes into one."""
    shutil.rmtree(target, ignore_errors=True)
    source.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(source, target, copy_function=os.link)

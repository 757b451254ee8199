"""Test suites of OpenCL programs that others wrote, unchanged, on the software GPU: pyopencl's and silx's.

A suite is found by what is installed for an interpreter (`INTERPRETER`): it needs the package and pytest. Each file is run by a pytest of
its own, whose JUnit file has the result of each test. Tests that fail for a reason that is known stand in strangers_failures.txt: suite,
test, reason, with tabs between; a test is called file.class.function[parameters], and `file.*` stands for a file as a whole.

    SOFTGEN_STRANGERS_PYTHON=…/bin/python SOFTGEN_PYOPENCL_TESTS=…/test python -m tests.driver.strangers pyopencl test_clmath.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from tests.conftest import ROOT
from tests.driver.running import Softgen

INTERPRETER = os.environ.get("SOFTGEN_STRANGERS_PYTHON", "/usr/bin/python3")
KNOWN = ROOT / "tests" / "driver" / "strangers_failures.txt"
PATIENCE = 3600  # seconds a file may take
DEVICE = re.compile(r"<context factory for .*?>>-?")  # pyopencl's tests are called after the device they run on
# Runs in the interpreter: one file after the other, each with a JUnit file of its own. Work that fails takes the GPU away from all that the
# process does later, so where several tests of a file failed, each of them is tried again in a process of its own.
LOOP = f"""
import json, pathlib, subprocess, sys
folder, out, *names = sys.argv[1:]
def run(test, report, cache):
    options = ["-q", "--tb=short", "--rootdir", folder, "-o", f"cache_dir={{cache}}", f"--junitxml={{report}}"]
    try:
        subprocess.run([sys.executable, "-m", "pytest", *options, f"{{folder}}/{{test}}"], cwd=out, timeout={PATIENCE})
    except subprocess.TimeoutExpired:
        print("takes longer than {PATIENCE} s", flush=True)
for number, name in enumerate(names):
    print("FILE", name, flush=True)
    run(name, f"{{out}}/{{number}}.xml", f"{{out}}/{{number}}")
    noted = pathlib.Path(out, str(number), "v", "cache", "lastfailed")
    failed = [test for test in json.loads(noted.read_text("utf-8")) if "::" in test] if noted.exists() else []
    for again, test in enumerate(failed if len(failed) > 1 else []):
        run(test, f"{{out}}/{{number}}-{{again}}.xml", f"{{out}}/{{number}}-again")
"""


@dataclass
class Outcome:
    """Results of tests by name, and the output of the run."""

    results: dict[str, str] = field(default_factory=dict)
    said: str = ""

    @property
    def failed(self) -> set[str]:
        return {name for name, result in self.results.items() if result == "fail"}

    @property
    def passed(self) -> int:
        return Counter(self.results.values())["pass"]


@cache
def package(name: str) -> Path | None:
    """The folder of a package of the interpreter, without importing it."""
    look = f"import importlib.util as u; s = u.find_spec({name!r}); print(s.origin if s else '')"
    try:
        found = subprocess.run([INTERPRETER, "-c", look], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return None
    return Path(found).parent if found else None


def folder(suite: str) -> Path | str:
    """The folder of a suite's tests, or why there is none."""
    for needed in (suite, "pytest"):
        if package(needed) is None:
            return f"{INTERPRETER} has no {needed} (SOFTGEN_STRANGERS_PYTHON names another interpreter)"
    home = package(suite)
    assert home is not None
    named = os.environ.get("SOFTGEN_PYOPENCL_TESTS")  # in pyopencl's source package the tests are beside the package
    place = home / "opencl" if suite == "silx" else Path(named).absolute() if named else home.parent / "test"
    missing = f"the tests of {suite} are absent: there are none in {place}"
    return place if files(place) else missing + (" (SOFTGEN_PYOPENCL_TESTS names another folder)" if suite == "pyopencl" else "")


def files(place: Path) -> list[str]:
    """Every file with tests."""
    return sorted(str(file.relative_to(place)) for file in place.rglob("test_*.py"))


def known(suite: str) -> dict[str, str]:
    rows = [line.split("\t") for line in KNOWN.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {test: reason for of, test, reason in rows if of == suite}


def module(file: str) -> str:
    """A file's name as JUnit files have it."""
    return file.removesuffix(".py").replace("/", ".")


def read(file: str, text: str) -> dict[str, str]:
    """The results in a JUnit file; of a file that ran no test to its end, `*` failed."""
    if not text:
        return {f"{module(file)}.*": "fail"}
    results = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        name = DEVICE.sub("", case.get("name", "")).replace("[]", "")
        kinds = {part.tag for part in case}
        result = "fail" if kinds & {"failure", "error"} else "skip" if "skipped" in kinds else "pass"
        key = f"{case.get('classname')}.{name}" if case.get("classname") else f"{module(file)}.*"  # the latter: it cannot be imported
        results[key] = "fail" if "fail" in (result, results.get(key)) else result
    return results


def results(out: Path, names: list[str]) -> dict[str, str]:
    """The results that the loop left in a folder; the last of those that a test has."""
    found = {}
    for number, name in enumerate(names):
        first = out / f"{number}.xml"
        found |= read(name, first.read_text("utf-8") if first.exists() else "")
        for again in out.glob(f"{number}-*.xml"):
            found |= read(name, again.read_text("utf-8"))
    return found


def run(place: Path, names: list[str], gpu: str = "kbl") -> Outcome:
    with tempfile.TemporaryDirectory(prefix="sg-strangers-") as out:
        environment = {"XDG_CACHE_HOME": out, "PYTHONDONTWRITEBYTECODE": "1"}
        started = Softgen("--gpu", gpu, "--keep-going", "--", INTERPRETER, "-c", LOOP, str(place), out, *names, **environment)
        started.finish(seconds=PATIENCE * len(names))
        return Outcome(results(Path(out), names), started.out + started.err)


if __name__ == "__main__":
    suite, *chosen = sys.argv[1:]
    where = folder(suite)
    if isinstance(where, str):
        sys.exit(where)
    done = run(where, chosen or files(where))
    print(done.said, f"{done.passed} passed, {len(done.failed)} failed", *sorted(done.failed), sep="\n")

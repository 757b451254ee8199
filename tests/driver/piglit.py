"""piglit's OpenCL programs on the software GPU, many in one run.

Each file of `tests/cl` and `generated_tests/cl` holds a few tests. piglit's own cl-program-tester builds the file with the runtime, runs
each test's kernel and says `pass`, `fail` or `skip` for it; here its words are read. Tests that fail for a reason that is known stand in
piglit_failures.txt: a file, a test's name (`*`: the file as a whole), the reason, with tabs between.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT
from tests.driver.running import Softgen

HOME = Path("/usr/lib/x86_64-linux-gnu/piglit")
TESTER = HOME / "bin" / "cl-program-tester"
KNOWN = ROOT / "tests" / "driver" / "piglit_failures.txt"
SUFFIXES = (".cl", ".program_test")
EACH = 100  # one file in so many is in the sample
PATIENCE = 120  # seconds a file may take
WORDS = re.compile(r"^PIGLIT: (\{.*\})$", re.MULTILINE)
# Runs in the distribution's Python: one program after the other, each announced by its name.
LOOP = f"""
import subprocess, sys
for name in sys.argv[1:]:
    try:
        command, both = [{str(TESTER)!r}, name], dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = subprocess.run(command, cwd={str(HOME)!r}, timeout={PATIENCE}, **both).stdout
    except subprocess.TimeoutExpired:
        said = b""
    print("FILE", name, flush=True)
    sys.stdout.buffer.write(said + b"\\n")
"""


@dataclass
class Outcome:
    """What became of the tests of some files: (file, test) by result; `*` stands for a file that ran no test."""

    results: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def failed(self) -> set[tuple[str, str]]:
        return {item for item, result in self.results.items() if result not in ("pass", "skip")}

    @property
    def passed(self) -> int:
        return Counter(self.results.values())["pass"]


def files() -> list[str]:
    """Every file with tests; the templates for new tests hold none."""
    found = [path for where in ("tests/cl", "generated_tests/cl") for path in (HOME / where).rglob("*") if path.suffix in SUFFIXES]
    return sorted(str(item.relative_to(HOME)) for item in found if not item.name.startswith("template_program"))


def sample() -> list[str]:
    """Always the same hundredth."""
    return files()[EACH // 2 :: EACH]


def known() -> dict[tuple[str, str], str]:
    rows = [line.split("\t") for line in KNOWN.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {(file, test): reason for file, test, reason in rows}


def read(text: str) -> Outcome:
    """The results in what the loop printed."""
    outcome = Outcome()
    for part in re.split(r"^FILE ", text, flags=re.MULTILINE)[1:]:
        name, _, said = part.partition("\n")
        words = [json.loads(digits) for digits in WORDS.findall(said)]
        tests = {test: result for word in words for test, result in word.get("subtest", {}).items()}
        whole = [word["result"] for word in words if "result" in word]
        if not whole:
            tests["*"] = "crash"
        elif not tests or whole[-1] == "fail" and "fail" not in tests.values():
            tests["*"] = whole[-1]
        outcome.results |= {(name, test): result for test, result in tests.items()}
    return outcome


def run(names: list[str], gpu: str = "kbl", engine: str = "auto") -> tuple[Outcome, str]:
    """The outcome, and what softgen itself said."""
    started = Softgen("--gpu", gpu, "--engine", engine, "--keep-going", "--", "/usr/bin/python3", "-c", LOOP, *names)
    started.finish(seconds=PATIENCE * len(names))
    return read(started.out), started.err


if __name__ == "__main__":
    done, said = run(sys.argv[1:] or sample())
    print(f"{done.passed} passed, {len(done.failed)} failed", *(f"{file}\t{test}" for file, test in sorted(done.failed)), said, sep="\n")

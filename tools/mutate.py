#!/usr/bin/env python3
"""Plants small faults, one at a time, and runs tests: a fault that no test notices is a missing test.

    tools/mutate.py --package surface --count 100   faults in that package's files, noticed by tests/surface (make mutate PACKAGE=surface)
    tools/mutate.py --count 200 --seed 1            faults in the semantics and the lane machines, spread over the files by size
    tools/mutate.py --list                          only say which
    tools/mutate.py --only 17                       one of them, with what the tests print
    tools/mutate.py --file softgen/eu/semantics/step.py       faults of one file

Works on a copy of the package and its tests in a temporary directory, never in the tree. Results are kept in a file (--results) as they
come; a second call goes on where the first was stopped. A fault counts as caught when the tests fail, or take too long. Faults that change
nothing anybody could see stand in tools/equivalent_mutants.txt, each with its reason, and do not count.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Queue

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutations import Mutation, compiles, mutations

ROOT = Path(__file__).resolve().parent.parent
FILES = ("softgen/eu/semantics/*.py", "softgen/eu/thread/regions.py", "softgen/eu/thread/predicate.py", "softgen/lanes/*.py")
NOT_MACHINES = frozenset({"cache.py", "jit.py", "routine.py", "signature.py", "__init__.py"})  # of lanes/: how objects are kept and called
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
EXECUTION = ("tests/eu/semantics/test_examples.py", "tests/eu/semantics/test_control.py", "tests/eu/semantics/test_masks.py",
             "tests/eu/semantics/test_float_modes.py", "tests/eu/semantics/test_placed.py", "tests/eu/semantics/test_interpreter.py",
             "tests/eu/semantics/test_math.py", "tests/eu/semantics/test_exceptions.py", "tests/eu/test_engines_agree.py",
             "tests/eu/semantics/test_wide_types.py", "tests/eu/semantics/test_kernels.py")  # fmt: skip
MACHINES = tuple(f"tests/lanes/test_{name}.py" for name in ("agreement", "machine", "examples", "memory", "numpy", "llvm", "half"))
REGIONS = ("tests/lanes/test_region.py", "tests/shared_functions/test_dataport.py", "tests/shared_functions/test_compiled.py")
AFFINE = ("tests/lanes/test_affine.py", "tests/eu/translate/test_affine.py", "tests/threads/test_affine.py")
# Of lanes/: what messages are tests of.
REACH = frozenset({"llvm_text.py", "llvm_access.py", "llvm_fast_path.py", "llvm_addressing.py", "llvm_region.py", "numpy_region.py"})
SECONDS, WAITING = 180, 1800  # of the processor that the tests of one fault may take, and of the clock: other work is no fault
SLOWER = 3
WORKERS = 2


@dataclass(frozen=True)
class Result:
    key: str
    caught: bool
    seconds: float
    how: str  # the test that noticed, or "timeout"


def chosen(count: int, seed: int, only: str = "", package: str = "") -> list[Mutation]:
    """Faults spread over the files by their size, at most one to a line while there are lines enough."""
    if package:
        paths = sorted((ROOT / "softgen" / package).rglob("*.py"))
    else:
        matching = (path for pattern in FILES for path in ROOT.glob(pattern))
        paths = sorted(path for path in matching if path.parent.name != "lanes" or path.name not in NOT_MACHINES)
    paths = [path for path in paths if not only or path == ROOT / only]
    known = {path: mutations(path.read_text("utf-8"), str(path.relative_to(ROOT))) for path in paths}
    known = {path: found for path, found in known.items() if found}
    total, taken, picked = sum(map(len, known.values())), 0, list[Mutation]()
    for index, (path, found) in enumerate(known.items()):
        share = round(count * sum(map(len, list(known.values())[: index + 1])) / total) - taken if total else 0
        taken += share
        picked += spread(found, share, random.Random(f"{seed} {path.relative_to(ROOT)}"))
    return picked


def spread(found: list[Mutation], count: int, rng: random.Random) -> list[Mutation]:
    mixed, lines, first, later = list(found), set[int](), list[Mutation](), list[Mutation]()
    rng.shuffle(mixed)
    for mutation in mixed:
        (later if mutation.line in lines else first).append(mutation)
        lines.add(mutation.line)
    sound = (mutation for mutation in first + later if compiles(mutation.applied()))
    return sorted(islice(sound, count), key=lambda mutation: (mutation.line, mutation.column))


def equivalents(path: Path = EQUIVALENT) -> dict[str, str]:
    """Faults that change nothing: key -> reason."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines() if path.exists() else (), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, arrow, reason = line.partition(" ## ")
        if not arrow or len(key.split(" :: ")) != 3 or not reason.strip():
            raise SystemExit(f"{path.name}:{number}: expected 'FILE :: LINE :: CHANGED LINE ## REASON', not {line!r}")
        found[key.strip()] = reason.strip()
    return found


# -- running -------------------------------------------------------------------------------------------------------


class Bench:
    """A copy of the package with its tests, into which faults are put."""

    def __init__(self, folder: Path, origin: Path | None = None, package: str = "") -> None:
        self.folder, self.ticks, self.package, self.seconds = folder, int(time.time()), package, SECONDS
        origin = origin or ROOT
        for name in ("softgen", "tests"):
            shutil.copytree(origin / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        shutil.copy(origin / "pyproject.toml", folder)

    def _write(self, path: str, text: str) -> None:
        """With a time of its own, so that nothing compiled from the last fault is taken for this one."""
        self.ticks += 10
        (self.folder / path).write_text(text, "utf-8")
        os.utime(self.folder / path, (self.ticks, self.ticks))

    def test(self, mutation: Mutation) -> tuple[Result, str]:
        self._write(mutation.path, mutation.applied())
        try:
            return self._test(mutation.key, mutation.path)
        finally:
            self._write(mutation.path, mutation.whole)

    def _test(self, key: str, path: str) -> tuple[Result, str]:
        start, text, how, caught = time.monotonic(), "", "", False
        for tests in order(path, self.package):
            code, text = self.run([*tests], self.seconds)
            if code != 0:
                how, caught = noticed(text) if code > 0 else text, True
                break
        return Result(key, caught, time.monotonic() - start, how), text

    def run(self, tests: list[str], seconds: int) -> tuple[int, str]:
        """The exit code of pytest and what it said; negative where it took too long, or a fault brought it down."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"), "CI": "1",
                       "SOFTGEN_SHARED": os.environ.get("SOFTGEN_SHARED", str(ROOT.parent / "shared"))}  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=line", "-rfE", "-p", "no:cacheprovider",
                   "-c", "pyproject.toml", "--rootdir", str(self.folder), *tests]  # fmt: skip

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

        try:
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=WAITING,
                                  preexec_fn=limited)  # fmt: skip
        except subprocess.TimeoutExpired:
            return -signal.SIGALRM, "timeout"
        if done.returncode < 0:
            ended = signal.Signals(-done.returncode)
            return done.returncode, "timeout" if ended in (signal.SIGXCPU, signal.SIGKILL) else f"ended by {ended.name}"
        return done.returncode, done.stdout + done.stderr


def packages() -> list[str]:
    """Packages that have tests of their own."""
    return sorted(path.name for path in (ROOT / "softgen").iterdir() if (ROOT / "tests" / path.name).is_dir() and any(path.rglob("*.py")))


def order(path: str, package: str = "") -> list[tuple[str, ...]]:
    """The tests of a fault, those that notice soonest first. Of a package: the tests named after the module, then all of its tests."""
    if package:
        own = sorted(str(test.relative_to(ROOT)) for test in (ROOT / "tests" / package).rglob(f"test_{Path(path).stem}.py"))
        return [*([tuple(own)] if own else []), (f"tests/{package}",)]
    if path.endswith("semantics/send.py"):
        return [REGIONS, EXECUTION]
    if Path(path).name in REACH:
        return [REGIONS, MACHINES, AFFINE]
    if Path(path).name == "affine.py":
        return [AFFINE, MACHINES]
    return [MACHINES, EXECUTION] if path.startswith("softgen/lanes") else [EXECUTION]


def noticed(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0] if lines else next((line for line in reversed(text.splitlines()) if line.strip()), "?")[:100]


# -- results -------------------------------------------------------------------------------------------------------


def kept(path: Path) -> dict[str, Result]:
    if not path.exists():
        return {}
    return {row["key"]: Result(**row) for row in map(json.loads, path.read_text("utf-8").splitlines())}


def difference(mutation: Mutation) -> Iterator[str]:
    lines = difflib.unified_diff(mutation.whole.splitlines(), mutation.applied().splitlines(), lineterm="", n=1)
    return (line for line in list(lines)[3:])


def summary(picked: list[Mutation], results: dict[str, Result]) -> int:
    known = equivalents()
    done = [mutation for mutation in picked if mutation.key in results]
    survived = [mutation for mutation in done if not results[mutation.key].caught]
    unexplained = [mutation for mutation in survived if mutation.key not in known]
    for mutation in unexplained:
        print(f"\nsurvived: {mutation.path}:{mutation.line}  {mutation.what}")
        print("\n".join(f"    {line}" for line in difference(mutation)))
        print(f"    {mutation.key}")
    counted = [mutation for mutation in done if mutation.key not in known]
    rate = 1 - len(unexplained) / len(counted) if counted else 1.0
    explained = len(survived) - len(unexplained)
    print(f"\n{len(done)} of {len(picked)} faults tried: {len(done) - len(survived)} caught, {explained} survived that change nothing, "
          f"{len(unexplained)} survived; caught {rate:.1%}")  # fmt: skip
    return 0 if not unexplained and len(done) == len(picked) else 1


def sweep(picked: list[Mutation], results: Path, workers: int, temporary: Path, package: str = "") -> None:
    found = kept(results)
    left = [mutation for mutation in picked if mutation.key not in found]
    if not left:
        return
    free: Queue[Bench] = Queue()
    benches = [Bench(temporary / "bench0", package=package)]
    benches += [Bench(temporary / f"bench{index}", benches[0].folder, package) for index in range(1, min(workers, len(left)))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, text = benches[0].run([f"tests/{package}"] if package else [*EXECUTION, *MACHINES, *REGIONS, *AFFINE], 10 * SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for bench in benches:
        bench.seconds = max(bench.seconds, int(SLOWER * took) if package else 0)  # only a fault takes so much longer
        free.put(bench)
    if code:
        raise SystemExit(f"the tests fail without a fault, so none can be noticed:\n{text[-2000:]}")
    random.Random(0).shuffle(left)  # so that a sweep that is stopped says something of every file

    def try_one(mutation: Mutation) -> Result:
        bench = free.get()
        try:
            return bench.test(mutation)[0]
        finally:
            free.put(bench)

    with ThreadPoolExecutor(workers) as pool, results.open("a", encoding="utf-8") as file:
        going = {pool.submit(try_one, mutation): mutation for mutation in left}
        for number, future in enumerate(as_completed(going), len(picked) - len(left) + 1):
            mutation, result = going[future], future.result()
            file.write(json.dumps(vars(result)) + "\n")
            file.flush()
            word, place = "caught" if result.caught else "SURVIVED", f"{mutation.path}:{mutation.line}"
            print(f"[{number:3}/{len(picked)}] {word:8} {result.seconds:5.1f} s  {place}  {mutation.what}  {result.how}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="small faults, one at a time, and whether tests notice them")
    parser.add_argument("--package", default="", choices=packages(), help="faults of this package, noticed by its tests; default: the "
                        "semantics and the lane machines")  # fmt: skip
    parser.add_argument("--count", type=int, default=200, help="how many faults")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--file", default="", help="faults of this file only")
    parser.add_argument("--list", action="store_true", help="say which, and try none")
    parser.add_argument("--only", type=int, metavar="N", help="try the Nth of them and show what the tests print")
    parser.add_argument("--workers", type=int, default=WORKERS, choices=(1, 2), help="at the same time")
    parser.add_argument("--results", type=Path, help="where results are kept; the next call goes on from there")
    given = parser.parse_args()
    picked = chosen(given.count, given.seed, given.file, given.package)
    if not picked:
        parser.error(f"there is nothing to change in {given.file or given.package}")
    name = f"softgen-mutants-{given.package or 'semantics'}-{given.seed}.jsonl"
    results = given.results or Path(tempfile.gettempdir()) / name
    if given.list:
        for number, mutation in enumerate(picked):
            print(f"{number:3} {mutation.path}:{mutation.line}  {mutation.what}")
        return 0
    with tempfile.TemporaryDirectory(prefix="softgen-mutants-") as temporary:
        if given.only is not None:
            mutation = picked[given.only]
            print(f"{mutation.path}:{mutation.line}  {mutation.what}", *difference(mutation), sep="\n")
            result, text = Bench(Path(temporary), package=given.package).test(mutation)
            print(text)
            return 0 if result.caught else 1
        try:
            sweep(picked, results, given.workers, Path(temporary), given.package)
        except KeyboardInterrupt:
            print(f"stopped; what was tried is in {results}", file=sys.stderr)
    return summary(picked, kept(results))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Plants small faults, one at a time, and runs tests: a fault that no test notices is a missing test.

    tools/mutate.py --package surface --count 100   faults in that package's files, noticed by tests/surface (make mutate PACKAGE=surface)
    tools/mutate.py --count 200 --seed 1            faults in the semantics and the lane machines
    tools/mutate.py --list                          only say which
    tools/mutate.py --only 17                       one of them, with what the tests print
    tools/mutate.py --again                         those that survived, once more, after tests were written
    tools/mutate.py --file softgen/eu/semantics/step.py       faults of one file

Which faults those are depends on the seed and each fault's own line, so that a change redraws only the faults of the lines it changes.
Works on copies of the package and its tests in build/mutants, never in the tree. Each fault runs the tests that reach its line
(coverage_map.py, measured once) in a forked process (fork_server.py). Results are kept in a file (--results) as they come; a second call
goes on where the first was stopped. A fault counts as caught when a test fails, or takes ten times as long as without the fault. Some
faults change nothing anybody could see; who reads the survivors knows which.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from queue import Queue

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage_map
from coverage_map import CoverageMap
from fault_bench import Bench, Result
from mutations import Mutation, changes, mutations

ROOT = Path(__file__).resolve().parent.parent
FILES = ("softgen/eu/semantics/*.py", "softgen/eu/thread/regions.py", "softgen/eu/thread/predicate.py", "softgen/lanes/**/*.py")
EXECUTION = ("tests/eu/semantics/test_examples.py", "tests/eu/semantics/test_control.py", "tests/eu/semantics/test_masks.py",
             "tests/eu/semantics/test_float_modes.py", "tests/eu/semantics/test_placed.py", "tests/eu/semantics/test_interpreter.py",
             "tests/eu/semantics/test_math.py", "tests/eu/semantics/test_exceptions.py", "tests/eu/test_engines_agree.py",
             "tests/eu/semantics/test_wide_types.py", "tests/eu/semantics/test_kernels.py")  # fmt: skip
MACHINES = tuple(f"tests/lanes/test_{name}.py" for name in ("agreement", "machine", "examples", "memory", "numpy", "llvm", "half"))
REGIONS = ("tests/lanes/test_region.py", "tests/shared_functions/test_dataport.py", "tests/shared_functions/test_dataport_blocks.py",
           "tests/shared_functions/test_compiled.py")  # fmt: skip
AFFINE = ("tests/lanes/llvm/test_affine.py", "tests/eu/translate/test_affine.py", "tests/threads/workers/test_affine.py")
WARM = 30.0  # seconds of tests that are run without a fault before a sweep
WORKERS = 2
PROCESSORS = os.cpu_count() or 1


def sources(package: str = "") -> list[Path]:
    """Files that faults are planted in."""
    if package:
        return sorted(path for path in (ROOT / "softgen" / package).rglob("*.py") if not path.name.endswith("_h.py"))  # made of headers
    return sorted(path for pattern in FILES for path in ROOT.glob(pattern) if path.parent.name != "compile")


def witnesses(package: str = "") -> list[str]:
    """Files with tests that may notice them."""
    if package:
        return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / package).rglob("test_*.py"))
    return [*EXECUTION, *MACHINES, *REGIONS, *AFFINE]


def chosen(count: int, seed: int, only: str = "", package: str = "") -> list[Mutation]:
    """Faults in the order of a hash of each, at most one to a line while there are lines enough: what changes elsewhere leaves them."""
    paths = [path for path in sources(package) if not only or path == ROOT / only]
    found = [mutation for path in paths for mutation in mutations(path.read_text("utf-8"), str(path.relative_to(ROOT)))]
    lines, first, later = set[tuple[str, int]](), list[Mutation](), list[Mutation]()
    for mutation in mixed(found, seed):
        (later if (mutation.path, mutation.line) in lines else first).append(mutation)
        lines.add((mutation.path, mutation.line))
    return sorted(islice(filter(changes, first + later), count), key=lambda mutation: (mutation.path, mutation.line, mutation.column))


def mixed(found: list[Mutation], seed: int) -> list[Mutation]:
    """Faults by their hashes."""
    return sorted(found, key=lambda mutation: sha256(f"{seed} {mutation.key} {mutation.turn}".encode()).digest())


def packages() -> list[str]:
    """Packages that have tests of their own."""
    return sorted(path.name for path in (ROOT / "softgen").iterdir() if (ROOT / "tests" / path.name).is_dir() and any(path.rglob("*.py")))


# -- results -------------------------------------------------------------------------------------------------------


def kept(path: Path) -> dict[str, Result]:
    if not path.exists():
        return {}
    return {row["key"]: Result(**row) for row in map(json.loads, path.read_text("utf-8").splitlines())}


def difference(mutation: Mutation) -> Iterator[str]:
    lines = difflib.unified_diff(mutation.whole.splitlines(), mutation.applied().splitlines(), lineterm="", n=1)
    return (line for line in list(lines)[3:])


def summary(picked: list[Mutation], results: dict[str, Result]) -> int:
    done = [mutation for mutation in picked if mutation.name in results]
    survived = [mutation for mutation in done if not results[mutation.name].caught]
    for mutation in survived:
        print(f"\nsurvived: {mutation.path}:{mutation.line}  {mutation.what}")
        print("\n".join(f"    {line}" for line in difference(mutation)))
    caught = len(done) - len(survived)
    print(f"\n{len(done)} of {len(picked)} faults tried: {caught} caught ({caught / max(len(done), 1):.1%}), {len(survived)} survived")
    return 0 if caught == len(picked) else 1


# -- running -------------------------------------------------------------------------------------------------------


def measured(bench: Bench, folder: Path, package: str) -> CoverageMap:
    """The coverage map of a package, of which only parts are measured that are not known yet."""
    names, tests = [str(path.relative_to(ROOT)) for path in sources(package)], witnesses(package)
    wanted, known = coverage_map.keys(bench.tree, names, tests), coverage_map.read(folder / "coverage.json")
    parts = {test: known[test] for test in tests if test in known and known[test].key == wanted[test]}
    if missing := [test for test in tests if test not in parts]:
        print(f"measuring which lines the tests of {len(missing)} files reach", flush=True)
        text = bench.measure(names, missing, folder / "measured.json")
        parts |= coverage_map.read(folder / "measured.json")
        (folder / "measured.json").unlink(missing_ok=True)
        if set(missing) - set(parts) or not any(part.tests for part in parts.values()):
            raise SystemExit(f"the tests fail without a fault, so none can be noticed:\n{text[-2000:]}")
        coverage_map.write(folder / "coverage.json", parts)
    for name in sorted(name for part in parts.values() for name in part.failed):
        print(f"fails without a fault and is left out: {name}", flush=True)
    return CoverageMap(parts.values())


@contextmanager
def prepared(folder: Path, workers: int, package: str) -> Iterator[tuple[list[Bench], CoverageMap]]:
    """Benches whose tests pass without a fault, and their coverage map."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lock = stack.enter_context((folder / "lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        benches = [Bench(ROOT, folder / f"bench{index}") for index in range(workers)]
        coverage = measured(benches[0], folder, package)
        for bench in benches:
            stack.callback(bench.close)
            answer = bench.warm(coverage.quickest(WARM))
            if answer.caught:
                raise SystemExit(f"the tests fail without a fault, so none can be noticed: {answer.test}\n{answer.text[-2000:]}")
        yield benches, coverage


def sweep(picked: list[Mutation], results: Path, workers: int, folder: Path, package: str = "", again: bool = False) -> None:
    """Tries the faults that have no result yet; with `again` also those that survived."""
    found = kept(results)
    survived = {name for name, result in found.items() if not result.caught} if again else set()
    left = [mutation for mutation in picked if mutation.name not in found or mutation.name in survived]
    if not left:
        return
    random.Random(0).shuffle(left)  # so that a sweep that is stopped says something of every file
    with prepared(folder, min(workers, len(left)), package) as (benches, coverage):
        free: Queue[Bench] = Queue()
        for bench in benches:
            free.put(bench)

        def try_one(mutation: Mutation) -> Result:
            bench = free.get()
            try:
                return bench.test(mutation, coverage)[0]
            finally:
                free.put(bench)

        with ThreadPoolExecutor(workers) as pool, results.open("a", encoding="utf-8") as file:
            going = {pool.submit(try_one, mutation): mutation for mutation in left}
            try:
                for number, future in enumerate(as_completed(going), len(picked) - len(left) + 1):
                    mutation, result = going[future], future.result()
                    file.write(json.dumps(vars(result)) + "\n")
                    file.flush()
                    word, place = "caught" if result.caught else "SURVIVED", f"{mutation.path}:{mutation.line}"
                    took = f"{result.seconds:5.1f} s"
                    print(f"[{number:3}/{len(picked)}] {word:8} {took}  {place}  {mutation.what}  {result.how}", flush=True)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def try_only(mutation: Mutation, folder: Path, package: str) -> int:
    """One fault, and what the tests print."""
    print(f"{mutation.path}:{mutation.line}  {mutation.what}", *difference(mutation), sep="\n")
    with prepared(folder, 1, package) as (benches, coverage):
        result, text = benches[0].test(mutation, coverage)
    print(text)
    print(f"{'caught' if result.caught else 'SURVIVED'} {result.seconds:.1f} s {result.how}")
    return 0 if result.caught else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="small faults, one at a time, and whether tests notice them")
    parser.add_argument("--package", default="", choices=packages(), help="faults of this package, noticed by its tests; default: the "
                        "semantics and the lane machines")  # fmt: skip
    parser.add_argument("--count", type=int, default=200, help="how many faults")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--file", default="", help="faults of this file only")
    parser.add_argument("--list", action="store_true", help="say which, and try none")
    parser.add_argument("--only", type=int, metavar="N", help="try the Nth of them and show what the tests print")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--workers", type=int, default=WORKERS, choices=range(1, PROCESSORS + 1), metavar="N", help="at the same time")
    parser.add_argument("--results", type=Path, help="where results are kept; the next call goes on from there")
    given = parser.parse_args()
    picked = chosen(given.count, given.seed, given.file, given.package)
    if not picked:
        parser.error(f"there is nothing to change in {given.file or given.package}")
    folder = ROOT / "build" / "mutants" / (given.package or "semantics")
    results = given.results or folder / f"results-{given.seed}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    if given.fresh:
        results.unlink(missing_ok=True)
    if given.list:
        for number, mutation in enumerate(picked):
            print(f"{number:3} {mutation.path}:{mutation.line}  {mutation.what}")
        return 0
    if given.only is not None:
        return try_only(picked[given.only], folder, given.package)
    try:
        sweep(picked, results, given.workers, folder, given.package, given.again)
    except KeyboardInterrupt:
        print(f"stopped; what was tried is in {results}", file=sys.stderr)
    return summary(picked, kept(results))


if __name__ == "__main__":
    sys.exit(main())

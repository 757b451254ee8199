"""What is written when a run or a merge ends: the page, JUnit, and failures.csv (of several GPUs failures-kbl.csv …), a baseline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from softgen.errors import SoftgenError
from softgen.inspect.farm.expectations import STATUS_OF, Expectations
from softgen.inspect.farm.junit import junit
from softgen.inspect.farm.page import page
from softgen.inspect.farm.shards import WHOLE, Shard
from softgen.inspect.farm.store import read_results, suffix
from softgen.inspect.farm.summary import FarmSummary
from softgen.inspect.farm.unit import UnitResult
from softgen.inspect.output_file import write_file


def chosen(folder: Path, keys: Iterable[str]) -> Iterator[UnitResult]:
    """The results of these units, each once."""
    left = set(keys)
    for result in read_results(folder):
        if result.key in left:
            left.discard(result.key)
            yield result


def write_reports(folder: Path, results: list[UnitResult], expected: Expectations, summary: FarmSummary, notes: list[str],
                  junit_file: str | None, shard: Shard = WHOLE) -> None:  # fmt: skip
    write_file(folder / f"index{suffix(shard)}.html", page(folder, results, expected, summary, notes).encode("utf-8", "replace"))
    gpus = sorted({result.gpu for result in results})
    for gpu in gpus:
        name = f"failures{'' if len(gpus) == 1 else f'-{gpu}'}{suffix(shard)}.csv"
        write_file(folder / name, failures(result for result in results if result.gpu == gpu).encode())
    if junit_file:
        write_file(junit_file, junit(results, expected, read_logs(folder, results)))


def failures(results: Iterable[UnitResult]) -> str:
    """Lines of a baseline: all that did not pass, whether it was expected or not."""
    return "".join(f"{result.name},{STATUS_OF[result.result]}\n" for result in results if not result.good)


def read_logs(folder: Path, results: Iterable[UnitResult]) -> dict[str, str]:
    """What units that went wrong printed, by hash."""
    found = {}
    for result in results:
        if not result.good:
            try:
                found[result.key] = (folder / "logs" / f"{result.key}.txt").read_text("utf-8", "replace")
            except OSError:
                continue
    return found


def check_junit(path: str | None) -> None:
    """Refuse a file that could not be written, before anything runs."""
    if path is not None and (not path or os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
        raise SoftgenError(f"--junit {path or repr('')}: must be a file in a folder that exists")

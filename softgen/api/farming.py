"""`softgen.farm`: captures or commands, run in parallel here or by an executor, and their results as they come."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.errors import UsageError

if TYPE_CHECKING:
    from softgen.inspect.farm.plans import UnitPlan, UnitSettings
    from softgen.inspect.farm.unit import UnitResult

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class FarmResult:
    """What became of a capture or a command on a GPU. `result` is pass, fail, crash, timeout or skip."""

    name: str
    gpu: str
    result: str
    seconds: float
    message: str
    findings: tuple[str, ...] = ()
    hash: str = ""

    @property
    def capture(self) -> str:
        return self.name

    @property
    def ok(self) -> bool:
        return self.result in ("pass", "skip")


def farm(captures: Paths = (), *, tests: Paths | None = None, gpu: str | Iterable[str] | None = None, check: Iterable[str] = (),
         executor: Any = None, workers: int | None = None, out: str | os.PathLike[str] | None = None, time_limit: float = 600,
         memory_limit: int = 8 << 30, shard: str | None = None, again: bool = False, images: bool = False,
         progress: bool | None = None) -> Iterator[FarmResult]:  # fmt: skip
    """Replay captures (files, and folders with captures in them), or run the commands `tests` (a list, or a file with one on each line).

    Units are subprocesses of this machine, `workers` at once, or of `executor`: any concurrent.futures.Executor, or a Dask client. Results
    come as units end, first those that the folder `out` has already; without `out` none are kept. `progress` shows a bar: by default in
    notebooks and on terminals.

    >>> import softgen
    >>> for found in softgen.farm("tests/data/kbl-vk-compute", gpu=["kbl"]):
    ...     print(found.capture, found.gpu, found.ok, found.message or "-")
    tests/data/kbl-vk-compute kbl True -
    """
    if not time_limit > 0:
        raise UsageError(f"a time limit is a number of seconds above zero, not {time_limit:g}")
    from softgen.inspect.farm.plans import UnitSettings  # the farm takes time to load, which others need not spend
    from softgen.inspect.farm.shards import parse_shard

    settings = UnitSettings(time_limit, memory_limit, (), images, parse_shard(shard, os.environ))
    plan = _plan(captures, tests, gpu, list(check), settings)
    return _results(plan, settings, executor, workers, out, again, progress)


def _plan(captures: Paths, tests: Paths | None, gpu: str | Iterable[str] | None, check: list[str], settings: UnitSettings) -> UnitPlan:
    from softgen.inspect.farm.lists import check_line, find_captures, gpu_names, read_tests
    from softgen.inspect.farm.plans import CommandPlan
    from softgen.inspect.farm.replays import ReplayPlan, check_worlds

    gpus = gpu_names(gpu if isinstance(gpu, str) else ",".join(gpu)) if gpu is not None else []
    paths = [os.fspath(captures)] if isinstance(captures, str | os.PathLike) else [os.fspath(path) for path in captures]
    if bool(paths) == (tests is not None):
        raise UsageError("a farm needs captures to replay, or tests to run: one of both")
    if tests is None:
        return ReplayPlan(find_captures(paths), gpus, check_worlds(",".join(check)) if check else [], settings)
    if check:
        raise UsageError("check is for captures")
    if isinstance(tests, str | os.PathLike):
        lines = read_tests(os.fspath(tests))
    else:
        lines = list(dict.fromkeys(check_line(os.fspath(line), f"test {number}") for number, line in enumerate(tests, 1)))
    return CommandPlan(lines, gpus or ["kbl"], settings)


def _results(plan: UnitPlan, settings: UnitSettings, executor: Any, workers: int | None, out: str | os.PathLike[str] | None, again: bool,
             progress: bool | None) -> Iterator[FarmResult]:  # fmt: skip
    from softgen.inspect.farm.backends import from_executor
    from softgen.inspect.farm.expectations import Expectations
    from softgen.inspect.farm.progress import farm_progress
    from softgen.inspect.farm.reports import chosen
    from softgen.inspect.farm.session import FarmSession
    from softgen.inspect.farm.store import ResultStore

    with ExitStack() as stack:
        folder = Path(out) if out is not None else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="softgen-farm-")))
        session = FarmSession(plan, ResultStore(folder, settings.shard), from_executor(executor, workers), Expectations(), again)
        stack.callback(session.close)
        session.open()
        there = {unit.key for unit in session.units} - {unit.key for unit in session.missing}
        yield from map(public, list(chosen(folder, there)))
        bar = farm_progress(len(session.missing), progress)
        stack.callback(bar.close)
        for result in session.results():
            bar.step(result.good)
            yield public(result)
        for unit, why in session.lost:
            yield FarmResult(unit.name, unit.gpu, "crash", 0.0, f"no result: {why}", (), unit.key)


def public(result: UnitResult) -> FarmResult:
    return FarmResult(result.name, result.gpu, result.result, result.seconds, result.message, result.findings, result.key)

"""Parts of a list for machines that know nothing of each other: `--shard 3/40`, or `auto` from the variables of a job array."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from softgen.errors import UsageError

T = TypeVar("T")
MOST = 1_000_000


class Shard(NamedTuple):
    """Part `number` of `total`, counted from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def part(self, items: list[T]) -> list[T]:
        """Every total-th item: neighbours, which often take about as long, go to different shards."""
        return items[self.number - 1 :: self.total]


WHOLE = Shard(1, 1)


class JobArray(NamedTuple):
    """The variables in which a scheduler tells a job its number. `first` and `step` may be numbers themselves."""

    scheduler: str
    number: str
    totals: tuple[str, ...]  # any of these has how many jobs there are
    first: str = "0"
    step: str = "1"
    last: str = ""  # where jobs are counted by first and last number


ARRAYS = (
    JobArray("Slurm", "SLURM_ARRAY_TASK_ID", ("SLURM_ARRAY_TASK_COUNT",), "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP",
             "SLURM_ARRAY_TASK_MAX"),
    JobArray("Kubernetes", "JOB_COMPLETION_INDEX", ("JOB_COMPLETIONS", "JOB_COMPLETION_COUNT")),
    JobArray("GitLab", "CI_NODE_INDEX", ("CI_NODE_TOTAL",), "1"),
    JobArray("GitHub", "STRATEGY_JOB_INDEX", ("STRATEGY_JOB_TOTAL",)),
    JobArray("Buildkite", "BUILDKITE_PARALLEL_JOB", ("BUILDKITE_PARALLEL_JOB_COUNT",)),
    JobArray("CircleCI", "CIRCLE_NODE_INDEX", ("CIRCLE_NODE_TOTAL",)),
    JobArray("LSF", "LSB_JOBINDEX", (), "1", "LSB_JOBINDEX_STEP", "LSB_JOBINDEX_END"),
    JobArray("Grid Engine", "SGE_TASK_ID", (), "SGE_TASK_FIRST", "SGE_TASK_STEPSIZE", "SGE_TASK_LAST"),
)  # fmt: skip


def parse_shard(text: str | None, environment: Mapping[str, str]) -> Shard:
    """The value of --shard: `3/40`, `auto`, or `auto/40` where the scheduler tells a job its number but not how many there are."""
    if text is None:
        return WHOLE
    if match := re.fullmatch(r"auto(?:/(\d{1,7}))?", text):
        return _automatic(environment, int(match[1]) if match[1] else None)
    match = re.fullmatch(r"(\d{1,7})/(\d{1,7})", text, re.ASCII)
    if match is None:
        raise UsageError(f"a shard is one of several, such as 3/40, or auto, not {text!r}")
    return _checked(int(match[1]), int(match[2]), f"--shard {text}")


def _automatic(environment: Mapping[str, str], told: int | None) -> Shard:
    array = next((array for array in ARRAYS if environment.get(array.number, "") not in ("", "undefined")), None)
    if array is None and environment.get("CI_NODE_TOTAL") == "1":
        return WHOLE  # GitLab's, of a job without `parallel`
    if array is None:
        raise UsageError(f"--shard auto: no variable of a job array is set ({', '.join(array.number for array in ARRAYS)})")
    index, first, step = (_number(array, name, environment) for name in (array.number, array.first, array.step))
    count = told if told is not None else _count(array, environment, first, step)
    if step < 1 or (index - first) % step:
        raise UsageError(f"--shard auto: {array.number}={index} is not {array.first} plus a multiple of {array.step}: {first} and {step}")
    return _checked((index - first) // step + 1, count, f"--shard auto: {array.number}={index}")


def _count(array: JobArray, environment: Mapping[str, str], first: int, step: int) -> int:
    """How many jobs an array has."""
    span = None
    if environment.get(array.last):
        span = (_number(array, array.last, environment) - first) // max(step, 1) + 1
    for name in array.totals:
        if environment.get(name):
            count = _number(array, name, environment)
            if span is not None and span != count:
                raise UsageError(f"--shard auto: {name}={count}, but from {array.first} to {array.last} are {span}: "
                                 "jobs of an array are numbered without gaps, such as --array=1-40")  # fmt: skip
            return count
    if span is None:
        name = array.totals[0] if array.totals else array.last
        raise UsageError(f"--shard auto: {array.scheduler} tells a job its number ({array.number}) and not how many there are: "
                         f"set {name} in the job's environment, or say --shard auto/40")  # fmt: skip
    return span


def _number(array: JobArray, name: str, environment: Mapping[str, str]) -> int:
    """A variable's number; `name` may be a number itself. Variables of steps that are not set mean 1."""
    if name.isdigit():
        return int(name)
    default = {array.step: "1", array.first: "0"}.get(name, "")
    text = environment.get(name) or default
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise UsageError(f"--shard auto: {name} is {text!r}, not a number")
    return int(text)


def _checked(index: int, count: int, said: str) -> Shard:
    if not 1 <= count <= MOST:
        raise UsageError(f"{said}: shards are 1 to {MOST:,}, not {count}")
    if not 1 <= index <= count:
        raise UsageError(f"{said}: shard {index} of {count} does not exist; they are 1 to {count}")
    return Shard(index, count)

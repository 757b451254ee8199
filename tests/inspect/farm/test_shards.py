"""Shards: every unit is in one of them, and each scheduler's variables say which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import UsageError
from softgen.inspect.farm.shards import WHOLE, Shard, parse_shard


@given(st.integers(0, 60), st.integers(1, 12))
def test_every_item_is_in_one_shard(items: int, total: int) -> None:
    parts = [Shard(number, total).part(list(range(items))) for number in range(1, total + 1)]
    assert sorted(item for part in parts for item in part) == list(range(items)) and max(map(len, parts)) - min(map(len, parts)) <= 1


def test_what_is_said() -> None:
    assert parse_shard(None, {}) == WHOLE and parse_shard("3/40", {}) == Shard(3, 40) and str(Shard(3, 40)) == "3/40"
    refused = {"0/4": "shard 0 of 4 does not exist", "5/4": "shard 5 of 4", "1/0": "shards are 1 to"}
    for text, told in (refused | dict.fromkeys(("x", "3", "-1/4", "1/4/5", "", "autos"), "such as 3/40")).items():
        with pytest.raises(UsageError, match=told):
            parse_shard(text, {})


@pytest.mark.parametrize("environment, shard", [
    ({"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "4",
      "SLURM_ARRAY_TASK_STEP": "1"}, "1/4"),
    ({"SLURM_ARRAY_TASK_ID": "16", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_MAX": "19",
      "SLURM_ARRAY_TASK_STEP": "3"}, "3/4"),
    ({"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "8"}, "1/8"),
    ({"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "5"}, "1/5"), ({"JOB_COMPLETION_INDEX": "4", "JOB_COMPLETION_COUNT": "5"}, "5/5"),
    ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "3"}, "1/3"), ({"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "3"}, "3/3"),
    ({"CI_NODE_TOTAL": "1"}, "1/1"), ({"STRATEGY_JOB_INDEX": "1", "STRATEGY_JOB_TOTAL": "2"}, "2/2"),
    ({"BUILDKITE_PARALLEL_JOB": "0", "BUILDKITE_PARALLEL_JOB_COUNT": "2"}, "1/2"),
    ({"CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "2"}, "2/2"),
    ({"LSB_JOBINDEX": "2", "LSB_JOBINDEX_END": "6"}, "2/6"),
    ({"SGE_TASK_ID": "7", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "9", "SGE_TASK_STEPSIZE": "2"}, "4/5"),
    ({"SGE_TASK_ID": "undefined", "CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "2"}, "2/2"),
])  # fmt: skip
def test_variables_of_schedulers(environment: dict[str, str], shard: str) -> None:
    assert str(parse_shard("auto", environment)) == shard


def test_a_number_without_a_total() -> None:
    """Kubernetes tells a pod its index alone."""
    with pytest.raises(UsageError, match=r"Kubernetes tells a job its number .* set JOB_COMPLETIONS in the job's environment, or say "
                                         r"--shard auto/40"):  # fmt: skip
        parse_shard("auto", {"JOB_COMPLETION_INDEX": "2"})
    assert parse_shard("auto/40", {"JOB_COMPLETION_INDEX": "2"}) == Shard(3, 40)


@pytest.mark.parametrize("environment, told", [
    ({}, "no variable of a job array is set .SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, CI_NODE_INDEX"),
    ({"SLURM_ARRAY_TASK_ID": "x", "SLURM_ARRAY_TASK_COUNT": "4"}, "SLURM_ARRAY_TASK_ID is 'x', not a number"),
    ({"CI_NODE_INDEX": "4", "CI_NODE_TOTAL": "3"}, "CI_NODE_INDEX=4: shard 4 of 3 does not exist"),
    ({"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "3"}, "shard 0 of 3 does not exist"),
    ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "7"},
     "from SLURM_ARRAY_TASK_MIN to SLURM_ARRAY_TASK_MAX are 7: jobs of an array are numbered without gaps"),
    ({"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "8",
      "SLURM_ARRAY_TASK_STEP": "2"}, "SLURM_ARRAY_TASK_ID=6 is not SLURM_ARRAY_TASK_MIN plus a multiple of SLURM_ARRAY_TASK_STEP"),
])  # fmt: skip
def test_variables_that_make_no_sense(environment: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_shard("auto", environment)

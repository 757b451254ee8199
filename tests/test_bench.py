"""The benchmark runner prints rates and ratios."""

import subprocess
import sys

import bench
from bench.__main__ import available, row
from tests.conftest import ROOT


def test_rate_and_ratio() -> None:
    one = bench.Measurement("decode", 1000, "commands", 0.5, "peer", 1.0)
    assert (one.rate, one.ratio) == (2000, 2.0)
    assert row("x", one)[1:] == ("decode", "2,000", "commands/s", "2.00 x peer")
    assert bench.Measurement("decode", 1000, "commands", 0.5).ratio is None


def test_best_time_calls_often_enough() -> None:
    calls: list[int] = []
    assert bench.best_time(lambda: calls.append(1), least=0.0, rounds=4) > 0
    assert len(calls) == 4


def test_an_unknown_benchmark_is_misuse() -> None:
    found = subprocess.run([sys.executable, "-m", "bench", "nonsense"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.returncode == 2 and "no benchmark 'nonsense'" in found.stderr
    assert "nonsense" not in available()

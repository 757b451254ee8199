"""500 distinct states in a row: the longest time that a draw takes, with an empty cache of compiled objects and with the one that it left.

states.c draws with stock Mesa on a software GPU through `softgen run`: wall-clock time from each draw to the end of glFinish, with the
driver. The submissions are recorded and then executed again in a process of their own: processor time of each draw on the thread that
executes it, which other work of the machine does not add to. The first draw is counted apart: it brings shaders along, or starts the
pipeline.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from bench.graphics import GPU, lacking
from softgen.errors import SoftgenError

SOURCE = Path(__file__).parent / "programs" / "states.c"
COUNT = int(os.environ.get("SOFTGEN_BENCH_STATES", "500"))
GOAL, PATIENCE = 0.05, 1800  # seconds of the longest draw; of a run


def build(folder: Path) -> Path:
    program = folder / "states"
    made = subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE), "-lEGL", "-lOpenGL"], capture_output=True, text=True, check=False)
    if made.returncode:
        raise SoftgenError(f"{SOURCE.name} cannot be built: {made.stderr.strip().splitlines()[-1]}")
    return program


def run(command: list[str], cache: Path) -> list[float]:
    """The seconds of each draw that a command prints; compiled objects are kept in a folder."""
    try:
        ran = subprocess.run(command, env=os.environ | {"XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True, check=False,
                             timeout=PATIENCE)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SoftgenError(f"{COUNT} draws take longer than {PATIENCE} s") from None
    if ran.returncode:
        raise SoftgenError(" ".join(ran.stderr.split())[-300:])
    return [float(line) for line in ran.stdout.split()]


def row(what: str, seconds: list[float]) -> Measurement:
    first, *others = seconds
    ranked = sorted(others)
    shares = ", ".join(f"{share:.0%} {ranked[int(share * (len(ranked) - 1))] * 1e3:.0f} ms" for share in (0.5, 0.9, 0.99))
    above = sum(seconds > GOAL for seconds in ranked)
    note = f"longest {ranked[-1] * 1e3:.0f} ms, {shares}; {above} above {GOAL * 1e3:.0f} ms; the first draw {first * 1e3:.0f} ms"
    return Measurement(what, len(others), "states", sum(others), "the goal for the longest", GOAL * sum(others) / ranked[-1], note)


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("distinct states", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        try:
            yield from measured(Path(folder))
        except SoftgenError as error:
            yield Measurement("distinct states", 1, "", 1.0, note=f"not measured: {error}")


def measured(folder: Path) -> Iterator[Measurement]:
    program, capture = [str(build(folder)), str(COUNT)], folder / "capture"
    softgen = [sys.executable, "-m", "softgen", "run", "--gpu", GPU]
    for name in ("live", "replayed"):
        (folder / name).mkdir()
    yield row("states of a program, nothing cached", run([*softgen, "--", *program], folder / "live"))
    yield row("states of a program, cached", run([*softgen, "--", *program], folder / "live"))
    run([*softgen, "--record", str(capture), "--", *program], folder / "live")
    for what in ("nothing cached", "cached"):
        replay = [sys.executable, "-m", "bench._states", str(capture), str(COUNT)]
        yield row(f"states replayed, {what}: processor time", run(replay, folder / "replayed"))

"""Starts with each part of the cold-start machinery switched off (docs/cold_start.md), beside starts with all of it.

The programs are those of bench/driver.py: vector-add, and one triangle. Warm is with caches that starts before have filled, cold
without any. A round has one start with each part off, in random order, so that other work of the host falls on all alike. CPU time is
that of the launcher, the server and the program. ROUNDS says how many rounds there are (11), PARTS names some of the parts, with commas
between them.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import Measurement
from bench._without import PARTS
from bench.driver import GPU, SCENES, Programs, lacking
from softgen.errors import SoftgenError

WITHOUT = "nothing"  # switched off
LIBRARIES = ("EGL", "GLESv2", "m")


class Start(NamedTuple):
    seconds: float
    cpu: float


def start(command: list[str], part: str, cache: Path) -> Start:
    """Run a program once, with a part switched off and a folder for its caches."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    began = time.monotonic()
    run = subprocess.Popen([sys.executable, "-m", "bench._without", part, "run", "--gpu", GPU, "--", *command], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SoftgenError(f"{command[0]} failed without {part}")
    return Start(time.monotonic() - began, used.ru_utime + used.ru_stime)


def rounds(command: list[str], parts: list[str], folder: Path, warm: bool, count: int) -> dict[str, list[Start]]:
    found: dict[str, list[Start]] = {part: [] for part in parts}
    for number in range(-warm, count):  # a round more fills the caches
        for part in random.sample(parts, len(parts)):
            cache = folder / part.replace(" ", "-")
            if not warm:
                shutil.rmtree(cache, ignore_errors=True)
            taken = start(command, part, cache)
            if number >= 0:
                found[part].append(taken)
    return found


def compared(name: str, found: dict[str, list[Start]]) -> Iterator[Measurement]:
    """A row for each part: starts without it, and by how much more they take."""
    middle = {part: Start(*(statistics.median(column) for column in zip(*taken, strict=True))) for part, taken in found.items()}
    whole = middle.pop(WITHOUT)
    yield Measurement(f"{name} with all parts", 1, "", whole.seconds, note=f"{whole.seconds * 1e3:.0f} ms, {whole.cpu * 1e3:.0f} ms of CPU")
    for part, taken in middle.items():
        more, cpu = (taken.seconds - whole.seconds) * 1e3, (taken.cpu - whole.cpu) * 1e3
        note = f"{more:+.0f} ms, {cpu:+.0f} ms of CPU"
        yield Measurement(f"{name} without {part}", 1, "", taken.seconds, "all parts", whole.seconds, note)


def measure() -> Iterator[Measurement]:
    count, named = int(os.environ.get("ROUNDS", "11")), os.environ.get("PARTS")
    parts = [WITHOUT, *(named.split(",") if named else PARTS)]
    if unknown := set(parts) - {WITHOUT, *PARTS}:
        raise SoftgenError(f"no part of the cold start is called {min(unknown)}; parts are {', '.join(PARTS)}")
    missing = lacking() or lacking("OpenGL", "/usr/include/EGL/egl.h", "libegl-dev")
    if missing or not SCENES.exists():
        yield Measurement("starts", 1, "", 1.0, note=f"not measured: {missing or SCENES.name} is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        here = Path(folder)
        triangle = Programs(here, SCENES, LIBRARIES).program
        commands = {"vector-add": [str(Programs(here).program)],
                    "triangle": [str(triangle), "triangle", str(here / "picture"), "width=64", "height=64"]}  # fmt: skip
        for name, command in commands.items():
            for warm in (True, False):
                kind = "warm" if warm else "cold"
                yield from compared(f"{name}, {kind},", rounds(command, parts, here / name / kind, warm, count))

"""Programs on the software GPU: how long `softgen run` takes around them, how long a wait is, and the memory it adds, beside the goals.

The program is vector_add.c on Intel's OpenCL runtime. Cold is without compiled objects on disk, warm with them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement, best_time
from softgen.driver.facts import runtimes_of
from softgen.errors import SoftgenError

SOURCE = Path(__file__).parent / "programs" / "vector_add.c"
GPU = "kbl"
WAITS = 2000
COLD, WARM, WAIT, MEMORY = 2.0, 1.0, 1e-3, 200.0  # goals: seconds, seconds, seconds, MB


def lacking() -> str:
    """What is not installed here and needed; '' if nothing."""
    drivers = [one for one in runtimes_of(GPU) if one.api == "OpenCL"]
    if not any(one.found() for one in drivers):
        return f"Intel's OpenCL runtime ({drivers[0].package})"
    if not shutil.which("cc"):
        return "a C compiler (gcc)"
    return "" if os.path.exists("/usr/include/CL/cl.h") else "OpenCL headers (ocl-icd-opencl-dev)"


class Programs:
    """vector_add, built, and folders for caches."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.program = folder, folder / "vector_add"
        self.caches = 0
        made = subprocess.run(["cc", "-O2", "-o", str(self.program), str(SOURCE), "-lOpenCL"], capture_output=True, text=True, check=False)
        if made.returncode:
            raise SoftgenError(f"{SOURCE.name} cannot be built: {made.stderr.strip().splitlines()[-1]}")

    def start(self, *arguments: str, cache: str = "warm") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--", str(self.program), *arguments]
        told = {**os.environ, "XDG_CACHE_HOME": str(self.folder / cache)}
        return subprocess.Popen(command, env=told, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments: str, cache: str = "warm") -> str:
        return finish(self.start(*arguments, cache=cache))

    def cold(self) -> str:
        self.caches += 1
        return self.run(cache=f"cold-{self.caches}")


def finish(run: subprocess.Popen[str]) -> str:
    out, err = run.communicate()
    if run.returncode:
        raise SoftgenError(f"softgen run failed: {' '.join(err.split())}")
    return out


def wait_times(text: str) -> tuple[float, float, float]:
    """Seconds of the quickest, the middle and the slowest wait, as the program tells."""
    found = re.search(r"waits ([\d.]+) ([\d.]+) ([\d.]+) us", text)
    if found is None:
        raise SoftgenError(f"vector_add said nothing about waits: {text!r}")
    first, middle, last = (float(one) * 1e-6 for one in found.groups())
    return first, middle, last


def server_memory(launcher: int) -> float:
    """MB that the server has for itself: all but the buffers, which it shares with the program. The server is the first child."""
    try:
        children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text("ascii").split()
        status = Path(f"/proc/{children[0]}/status").read_text("ascii") if len(children) > 1 else ""
    except OSError:
        return 0.0
    return sum(int(size) for size in re.findall(r"^Rss(?:Anon|File):\s+(\d+) kB", status, re.MULTILINE)) / 1000


def most_memory(run: subprocess.Popen[str]) -> float:
    most = 0.0
    while run.poll() is None:
        most = max(most, server_memory(run.pid))
        time.sleep(0.005)
    finish(run)
    return most


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("softgen run", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        programs = Programs(Path(folder))
        cold = best_time(programs.cold, rounds=5)
        programs.run()
        warm = best_time(programs.run, rounds=5)
        first, middle, last = min((wait_times(programs.run(str(WAITS))) for _ in range(3)), key=lambda one: one[1])
        memory = most_memory(programs.start(str(WAITS)))
    yield Measurement("run vector-add, cold", 1, "", cold, "the goal", COLD, f"{cold:.2f} s; goal {COLD:g} s")
    yield Measurement("run vector-add, warm", 1, "", warm, "the goal", WARM, f"{warm:.2f} s; goal {WARM:g} s")
    yield Measurement("empty enqueue and wait", 1, "", middle, "the goal", WAIT,
                      f"{middle * 1e3:.2f} ms, quickest {first * 1e3:.2f}, slowest {last * 1e3:.1f}; goal {WAIT * 1e3:g} ms")  # fmt: skip
    yield Measurement("memory beside the program's buffers", 1, "", memory, "the goal", MEMORY, f"{memory:.0f} MB; goal {MEMORY:g} MB",
                      "megabytes")  # fmt: skip

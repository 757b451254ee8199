"""Programs on the software GPU: how long `softgen run` takes around them, how long a wait is, and the memory it adds, beside the goals.

The programs are true(1), vector_add.c on Intel's OpenCL runtime, and one triangle of 64x64 pixels on Mesa, which llvmpipe draws as well.
Cold is without anything on disk that softgen or Mesa compiled, warm with it.
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
from softgen.driver.uapi.kernel_tables import runtimes_of
from softgen.errors import SoftgenError

SOURCE = Path(__file__).parent / "programs" / "vector_add.c"
SCENES = Path(__file__).parent.parent / "tests" / "pictures" / "programs" / "gl_scene.c"
GPU = "kbl"
WAITS = 2000
GOALS = {"true": 0.2, "vector-add, cold": 1.2, "vector-add, warm": 0.6, "triangle, cold": 2.0, "triangle, warm": 0.9}  # seconds
WAIT, MEMORY = 3e-4, 100.0  # goals: seconds, MB
LLVMPIPE = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe"}
ROUNDS = 5


def lacking(api: str = "OpenCL", header: str = "/usr/include/CL/cl.h", package: str = "ocl-icd-opencl-dev") -> str:
    """What is not installed here and needed for programs of an API; '' if nothing."""
    drivers = [runtime for runtime in runtimes_of(GPU) if runtime.api == api]
    if not any(runtime.found() for runtime in drivers):
        return f"a driver for {api} ({drivers[0].package})"
    if not shutil.which("cc"):
        return "a C compiler (gcc)"
    return "" if os.path.exists(header) else f"headers of {api} ({package})"


class Programs:
    """A program, built, and folders for caches."""

    def __init__(self, folder: Path, source: Path = SOURCE, libraries: tuple[str, ...] = ("OpenCL",), usual: tuple[str, ...] = ()) -> None:
        """`usual`: the program's arguments, before those of a run."""
        self.folder, self.program, self.usual = folder, folder / source.stem, usual
        self.caches = 0
        build = ["cc", "-O2", "-o", str(self.program), str(source), *(f"-l{library}" for library in libraries)]
        made = subprocess.run(build, capture_output=True, text=True, check=False)
        if made.returncode:
            raise SoftgenError(f"{source.name} cannot be built: {made.stderr.strip().splitlines()[-1]}")

    def start(self, *arguments: str, cache: str = "warm", simulated: bool = True) -> subprocess.Popen[str]:
        """Not simulated: on llvmpipe."""
        command = [str(self.program), *self.usual, *arguments]
        told = {**os.environ, "XDG_CACHE_HOME": str(self.folder / cache)} | ({} if simulated else LLVMPIPE)
        prefix = [sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--"] if simulated else []
        return subprocess.Popen([*prefix, *command], env=told, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments: str, cache: str = "warm", simulated: bool = True) -> str:
        return finish(self.start(*arguments, cache=cache, simulated=simulated))

    def cold(self, simulated: bool = True) -> str:
        self.caches += 1
        return self.run(cache=f"cold-{self.caches}", simulated=simulated)


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
    first, middle, last = (float(microseconds) * 1e-6 for microseconds in found.groups())
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


def first_result(name: str, seconds: float, note: str = "") -> Measurement:
    """A row: seconds from the start to the end of `softgen run` beside the goal."""
    goal = GOALS[name]
    return Measurement(f"run {name}", 1, "", seconds, "the goal", goal, f"{seconds:.2f} s; goal {goal:g} s{note}")


def compute(folder: Path) -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("softgen run of vector-add", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    programs = Programs(folder)
    yield first_result("vector-add, cold", best_time(programs.cold, rounds=ROUNDS))
    programs.run()
    yield first_result("vector-add, warm", best_time(programs.run, rounds=ROUNDS))
    first, middle, last = min((wait_times(programs.run(str(WAITS))) for _ in range(3)), key=lambda times: times[1])
    memory = most_memory(programs.start(str(WAITS)))
    yield Measurement("empty enqueue and wait", 1, "", middle, "the goal", WAIT,
                      f"{middle * 1e3:.2f} ms, quickest {first * 1e3:.2f}, slowest {last * 1e3:.1f}; goal {WAIT * 1e3:g} ms")  # fmt: skip
    yield Measurement("memory beside the program's buffers", 1, "", memory, "the goal", MEMORY, f"{memory:.0f} MB; goal {MEMORY:g} MB",
                      "megabytes")  # fmt: skip


def triangle(folder: Path) -> Iterator[Measurement]:
    missing = lacking("OpenGL", "/usr/include/EGL/egl.h", "libegl-dev")
    if missing or not SCENES.exists():
        yield Measurement("softgen run of a triangle", 1, "", 1.0, note=f"not measured: {missing or SCENES.name} is not installed")
        return
    programs = Programs(folder, SCENES, ("EGL", "GLESv2", "m"), ("triangle", str(folder / "picture"), "width=64", "height=64"))
    for name, work in (("triangle, cold", programs.cold), ("triangle, warm", programs.run)):
        work()
        seconds, peer = best_time(work, rounds=ROUNDS), best_time(lambda work=work: work(simulated=False), rounds=ROUNDS)  # type: ignore[misc]
        yield first_result(name, seconds, f"; llvmpipe {peer:.2f} s")


def measure() -> Iterator[Measurement]:
    command = [sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--", "true"]
    yield first_result("true", best_time(lambda: subprocess.run(command, check=True), rounds=ROUNDS))
    for program in (compute, triangle):
        with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
            yield from program(Path(folder))

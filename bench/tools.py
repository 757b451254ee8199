"""The tools, beside their goals: steps of the debugger, the history of a pixel, the page, counting, and checking in eight worlds.

Captures are recorded here: a program of 100 draws of 640 x 480 pixels (examples/triangle.c, drawn 100 times), and the OpenCL kernel of a
capture. Times are those of the processor, but for the page: a person waits for that.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import Measurement
from bench.graphics import lacking
from softgen.inspect.check.check import Check
from softgen.inspect.check.worlds import DEFAULT, RUNS, worlds
from softgen.inspect.profile.measure import ProfilingDispatcher
from softgen.inspect.session.control import SessionDispatcher
from softgen.inspect.session.execution import CaptureExecution
from softgen.inspect.session.session import Session
from softgen.inspect.view.data import ViewData
from softgen.inspect.view.server import FILES, ViewServer
from softgen.trace.file import open_trace

ROOT = Path(__file__).parent.parent
TRIANGLE, THREAD = ROOT / "tests/data/kbl-vk-tri", "2:245/ps/g0.t4"
COMPUTE = ROOT / "tests/data/kbl-vk-compute"
GPU, DRAWS, WIDTH, HEIGHT = "kbl", 100, 640, 480
PIXEL = 320, 260  # that many of the draws cover
STEPS, ROUNDS = 11, 5
ONE = "glDrawArrays(GL_TRIANGLES, 0, 3);"
MANY = f"for (int draw = 0; draw < {DRAWS}; draw++) {{ glViewport(draw, draw / 2, width, height); {ONE} }}"
PATIENCE = 300  # seconds


def measure() -> Iterator[Measurement]:
    yield from steps()
    yield from world_runs(COMPUTE, "of a dispatch", 1)
    if missing := lacking():
        yield Measurement("100 draws of 640 x 480", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        capture = recorded(Path(folder))
        yield from history(capture)
        yield from page(capture)
        yield counting(capture)
        yield from world_runs(capture, "of 100 draws", 1)


def recorded(folder: Path) -> Path:
    """A capture of many draws."""
    source = (ROOT / "examples/triangle.c").read_text()
    assert ONE in source
    (folder / "many.c").write_text(source.replace(ONE, MANY))
    compiler = shutil.which("cc")
    assert compiler is not None
    subprocess.run([compiler, "-O1", "-o", str(folder / "many"), str(folder / "many.c"), "-lEGL", "-lGLESv2"], check=True)
    program = [str(folder / "many"), str(folder / "picture.ppm"), str(WIDTH), str(HEIGHT)]
    subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--record", str(folder / "capture"), "--", *program], check=True,
                   capture_output=True, timeout=PATIENCE)  # fmt: skip
    return folder / "capture"


def processor(work: Callable[[], object]) -> float:
    """Processor seconds of all threads of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def goal(what: str, seconds: float, most: float, amount: float = 1, unit: str = "") -> Measurement:
    return Measurement(what, amount, unit, seconds, "the goal", most, f"{seconds:.4g} s, goal {most:g} s")


def steps() -> Iterator[Measurement]:
    """Single steps of a pixel shader's thread."""
    thread = Session(TRIANGLE).thread(THREAD)
    thread.step()
    both: dict[str, list[float]] = {"step": [], "step back": []}
    for _ in range(STEPS):
        both["step"].append(processor(thread.step))
        both["step back"].append(processor(thread.back))
    for what, times in both.items():
        yield goal(what, statistics.median(times), 0.005, 1, "steps")


def history(capture: Path) -> Iterator[Measurement]:
    data = ViewData(Session(capture), count=False)
    drawn = data.session.work()[DRAWS // 2].position  # the last one reads the picture back
    name = f"history-{drawn.submission}-{drawn.command}-0-{PIXEL[0]}-{PIXEL[1]}"
    yield goal(f"history of a pixel through {DRAWS} draws of {WIDTH} x {HEIGHT}", processor(lambda: data.json(name)), 5.0)
    shaded = sum(bool(row["fragments"]) for row in data.json(name))
    yield Measurement("draws that shade the pixel", shaded, "", 1.0, note=f"{shaded} of {len(data.session.work())}")


def page(capture: Path) -> Iterator[Measurement]:
    """From the request of the page to all that its first view loads, without the browser's own time."""
    server = ViewServer(ViewData(Session(capture)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        began, size = time.perf_counter(), 0
        for name in (*FILES, "data/outline.js"):
            size += len(got(server, name))
        listed = time.perf_counter() - began
        first = server.data.session.work()[0].position
        got(server, f"data/event-{first.submission}-{first.command}.js")
        yield goal("page: list of commands and timeline", listed, 1.0)
        yield goal("page: and state and targets of the first draw", time.perf_counter() - began, 1.0)
    finally:
        server.shutdown()
        server.server_close()
    yield Measurement(
        "page: bytes of its files and its list", size, "", size, "the goal", 300_000, f"{size:,} bytes, goal 300,000", "bytes"
    )


def got(server: ViewServer, name: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", f"/{server.token}/{name}")
    answer = connection.getresponse()
    data = answer.read()
    assert answer.status == 200, (name, answer.status)
    return data


def counting(capture: Path) -> Measurement:
    """A run that counts beside one that does not, in turns, after one of each: the first compiles."""

    def run(dispatcher: SessionDispatcher) -> float:
        return processor(CaptureExecution(open_trace(capture), dispatcher=dispatcher).run_to_end)

    plain, counted = SessionDispatcher("t1", 1), ProfilingDispatcher(traffic=False)
    times = [(run(plain), run(counted)) for _ in range(ROUNDS)][1:]
    (without, on) = (min(column) for column in zip(*times, strict=True))
    note = f"{on:.3f} s with counts, {without:.3f} s without: {100 * (on / without - 1):+.0f} %, goal +15 %"
    return Measurement("counting (profile)", 1, "", on, "without", without, note)


def world_runs(capture: Path, of: str, rounds: int) -> Iterator[Measurement]:
    """All that a check does beside one plain run."""

    def checked() -> None:
        report = Check(lambda: open_trace(capture), worlds(DEFAULT, RUNS), "t1").run()
        results.append(str(report.as_json()["result"]))

    results: list[str] = []
    best = min(processor(checked) for _ in range(rounds + 1))
    plain = min(processor(CaptureExecution(open_trace(capture), "t1", 1).run_to_end) for _ in range(rounds + 1))
    note = f"{best:.3f} s, plain {plain:.3f} s: {best / plain:.1f} times, goal 10; {results[-1]}"
    yield Measurement(f"check {of} in {RUNS} worlds", 1, "", best, "ten plain runs", 10 * plain, note)

"""EU kernels executed: each compiled engine beside vectorised C of the same work, CPU time of one core, best of interleaved rounds.

The kernels are OpenCL programs as Intel's compiler made them for Kaby Lake (bench/programs); the C is bench/peers.c by the better of the
compilers there are. Results are compared before anything is timed. Then: two host threads, and how soon a first result is there.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from ctypes import CDLL
from dataclasses import dataclass, replace
from pathlib import Path

from bench import Measurement
from bench._program import Dispatch
from bench._work import Array, Work, peer, peers, works
from softgen.errors import SoftgenError
from softgen.eu.engine import engine
from softgen.eu.interpreter import KernelProgram

ROUNDS, SECONDS = 15, 1.5  # at most, of each
LONG = 3.0  # seconds that a run of the slower engine may take
KSIM = 0.92e9  # SIMD8 instructions a second and core, of another simulator of this GPU
SNIPPET = 100  # instructions


@dataclass
class Timed:
    """A piece of work under the clock."""

    name: str
    run: Callable[[], object]
    best: float = math.inf
    spent: float = 0.0

    def once(self) -> None:
        start = time.thread_time()
        self.run()
        took = max(time.thread_time() - start, 1e-9)
        self.best, self.spent = min(self.best, took), self.spent + took


@dataclass(frozen=True)
class Result:
    work: Work
    instructions: int
    t1: float
    t0: float  # scaled to all groups
    c: float
    compiler: str

    @property
    def nanoseconds(self) -> float:
        return self.t1 / self.instructions * 1e9


def measure() -> Iterator[Measurement]:
    libraries = peers()
    if not libraries:
        print("no C compiler: nothing to compare with", file=sys.stderr)
    results = []
    for work in works():
        found = measured(work, libraries)
        results.append(found)
        yield from told(found)
    yield from summed(results)
    yield from scaling()
    yield from starting()
    yield from loading()


def measured(work: Work, libraries: dict[str, CDLL]) -> Result:
    """Rounds in which everyone has a turn: what disturbs one disturbs all."""
    whole = work.dispatch()
    done = whole.run()
    rivals = list(rivals_of(work, libraries, whole.arrays[work.result].copy()))
    part, share = shortened(work)
    t1, t0 = Timed("t1", whole.run), Timed("t0", part.run)
    everyone = [t1, t0, *rivals]
    for _ in range(ROUNDS):
        for timed in everyone:
            if timed.spent < SECONDS:
                timed.once()
    best = min(rivals, key=lambda timed: timed.best, default=Timed("", lambda: None))
    return Result(work, done.instructions, t1.best, t0.best / share, best.best, best.name)


def rivals_of(work: Work, libraries: dict[str, CDLL], found: Array) -> Iterator[Timed]:
    for compiler, library in libraries.items():
        made = peer(library, work.name, work)
        if made is None:
            continue
        call, result = made
        call()
        apart = work.apart(found, result)
        if not apart <= work.allowed:
            raise SoftgenError(f"{work.name}: {compiler}'s result and ours are {apart:g} apart; {work.allowed:g} is allowed")
        yield Timed(f"C ({compiler})", call)


def shortened(work: Work) -> tuple[Dispatch, float]:
    """The whole on t0 if that takes a moment only, else some rows or columns of groups; and which part of all these are."""
    part = work.dispatch("t0")
    count, share = part.groups, 1.0
    counts = [size // group for size, group in zip(work.size, work.group, strict=True)]
    while True:
        try:
            part.run(time_limit=LONG)
            return part, part.groups / count
        except SoftgenError as error:
            if "time is up" not in str(error) or share * count < 1:
                raise
        share /= 8
        rows = max(1, int(counts[-1] * share))
        columns = max(1, int(counts[0] * min(1.0, share * counts[-1]))) if len(counts) > 1 else rows
        part.resize([columns * work.group[0], *(rows * group for group in work.group[1:])])


def told(result: Result) -> Iterator[Measurement]:
    note = f"{result.nanoseconds:.2f} ns an instruction"
    if math.isfinite(result.c):
        yield Measurement(f"{result.work.name}, t1", result.instructions, "instructions", result.t1, result.compiler, result.c, note)
    else:
        yield Measurement(f"{result.work.name}, t1", result.instructions, "instructions", result.t1, note=note)
    note = f"{result.t0 / result.t1:.1f} times slower"
    yield Measurement(f"{result.work.name}, t0", result.instructions, "instructions", result.t0, "t1", result.t1, note)


def summed(results: list[Result]) -> Iterator[Measurement]:
    """The figures that the whole is judged by."""
    ratios = [result.c / result.t1 for result in results if math.isfinite(result.c)]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        worst = min((result for result in results if math.isfinite(result.c)), key=lambda result: result.c / result.t1)
        note = f"worst: {worst.work.name} {worst.c / worst.t1:.2f}"
        yield Measurement("t1 beside C, geometric mean", 1, "", 1.0, "C", mean, note)
    slowest = max(results, key=lambda result: result.t0 / result.t1)
    note = f"{slowest.work.name}: {slowest.t0 / slowest.t1:.1f} times slower"
    yield Measurement("t0 beside t1, worst", 1, "", slowest.t0, "t1", slowest.t1, note)
    for result in results:
        if result.work.alu:
            rate = 2 * result.instructions / result.t1  # nearly all are SIMD16
            yield Measurement(f"{result.work.name}, t1, as SIMD8", rate, "instructions", 1.0, "ksim's 0.92 G", rate / KSIM)


def scaling() -> Iterator[Measurement]:
    """Wall time with two host threads: what the host gives, which on a busy machine is little."""
    work = next(work for work in works() if work.name == "mandel_loop")
    arguments = [*work.arguments[:3], type(work.arguments[3])(4096)]
    runs = [replace(work, arguments=arguments).dispatch(threads=count) for count in (1, 2)]
    best = [math.inf, math.inf]
    for _ in range(7):
        for number, dispatch in enumerate(runs):
            start = time.perf_counter()
            dispatch.run()
            best[number] = min(best[number], time.perf_counter() - start)
    cores = len(os.sched_getaffinity(0))
    yield Measurement("two host threads", 1, "", best[1], "one", best[0], f"wall time, {cores} processors, load {os.getloadavg()[0]:.1f}")


def starting() -> Iterator[Measurement]:
    """The first result of a snippet in a fresh process, with an empty object cache and with a full one."""
    text = "".join(f"{snippet_line(number)}\n" for number in range(SNIPPET))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snippet.asm"
        file.write_text(text, "utf-8")
        fresh(file, "reference", Path(folder))
        for name in ("t0", "t1"):
            for state in ("empty", "full"):
                rounds = [fresh(file, name, Path(folder) / f"cache {name}{n if state == 'empty' else 0}") for n in range(3)]
                wall, cpu = (min(seconds) for seconds in zip(*rounds, strict=True))
                what = f"first result of {SNIPPET} instructions, {name}, {state} cache"
                yield Measurement(what, 1, "results", wall, note=f"{wall:.2f} s, {cpu:.2f} s of CPU time")


def snippet_line(number: int) -> str:
    """Floats and integers in turn, over registers that follow one another."""
    to, left, other = (f"r{10 + 2 * (number * step % 40)}.0" for step in (1, 7, 3))
    if number % 2:
        return f"add (16|M0) {to}<1>:f {left}<8;8,1>:f {other}<8;8,1>:f"
    return f"mul (16|M0) {to}<1>:d {left}<8;8,1>:d {number + 3}:w"


def fresh(file: Path, name: str, cache: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a process that runs a file."""
    command = [sys.executable, "-m", "bench._snippet", str(file), name]
    before, start = os.times(), time.perf_counter()
    around = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    around.pop("PYTHONDONTWRITEBYTECODE", None)  # Python's own cache is full either way
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=around)
    wall, after = time.perf_counter() - start, os.times()
    if ran.returncode:
        raise SoftgenError(f"a snippet on {name}: {ran.stderr.strip()}")
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def loading() -> Iterator[Measurement]:
    """A kernel that was compiled before, by an engine that has not seen it."""
    for name in ("saxpy", "conv"):
        dispatch = next(work for work in works() if work.name == name).dispatch()
        dispatch.run()
        code, gen = dispatch.kernel.code, dispatch.gpu.device.generation.number
        best = math.inf
        for _ in range(9):
            made, program = engine("t1"), KernelProgram(gen, code)
            start = time.perf_counter()
            made.function(program, 0, dispatch.kernel.simd)
            best = min(best, time.perf_counter() - start)
        yield Measurement(f"{name} from the object cache, t1", 1, "kernels", best, note=f"{best * 1e3:.2f} ms")

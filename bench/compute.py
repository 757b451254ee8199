"""OpenCL kernels through their runtimes: softgen beside pocl and Intel's runtime for CPUs, wall clock from enqueue to finish.

Six kernels of bench/programs by programs/compute.c, in processes that run side by side and have turns: what disturbs one disturbs all.
Beside one thread, plain C (peers.c) has turns as well: how far its median is from its best is the machine's own noise.
Results are compared before anything is timed. A peer is found by its ICD file (OCL_ICD_VENDORS, /etc/OpenCL/vendors) or its library
(LD_LIBRARY_PATH, this Python's lib folder, the system's); one that is not there is skipped and named.
"""

from __future__ import annotations

import ctypes
import glob
import itertools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench import Measurement, _work
from bench._program import FOLDER, GPU, Array
from bench._work import Work, works
from bench.driver import lacking
from softgen.errors import SoftgenError

SOURCE = FOLDER / "compute.c"
KERNELS = ("saxpy", "matmul", "mandel", "nbody", "hist", "conv")
THREADS = (1, 2)
ROUNDS, SECONDS = 12, 0.15  # turns of each, and how long one is
WARM = 2.0  # seconds until kernels are compiled at their best
MOST = 200  # enqueues of a turn
ESTIMATES = 10  # times as far apart as C: native functions may be estimates
ICD_FOLDER = "/etc/OpenCL/vendors"
SYSTEM_LIBRARIES = ("/usr/lib/*", "/usr/lib64", "/usr/local/lib", "/opt/intel/oneapi/compiler/latest/lib")


@dataclass(frozen=True)
class Peer:
    """An OpenCL runtime that computes on the CPU; `threads` is the environment variable that says on how many."""

    name: str
    package: str
    library: str
    threads: str

    def found(self) -> str:
        """Its library; '' where it is not installed."""
        named = [path for icd in sorted(glob.glob(f"{os.environ.get('OCL_ICD_VENDORS', ICD_FOLDER)}/*.icd"))
                 for path in Path(icd).read_text("utf-8").split() if self.library in path]  # fmt: skip
        if named:
            return named[0]
        folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), f"{sys.prefix}/lib", *SYSTEM_LIBRARIES]
        return next((path for folder in folders for path in sorted(glob.glob(f"{folder}/{self.library}.so*"))), "")


PEERS = (
    Peer("pocl", "pocl-opencl-icd", "libpocl", "POCL_MAX_PTHREAD_COUNT"),
    Peer("Intel's CPU runtime", "intel-opencl-rt and intel-cmplr-lib-rt of PyPI", "libintelocl", "DPCPP_CPU_NUM_CUS"),
)


@dataclass
class Times:
    """Seconds from enqueue to finish, of one kernel on one runtime, turn by turn."""

    turns: list[list[float]] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(map(min, self.turns))

    @property
    def median(self) -> float:
        return statistics.median(itertools.chain(*self.turns))

    @property
    def spread(self) -> float:
        """The median of a turn over its best, of the middle turn: other work on the host slows whole turns, which `median` counts."""
        return statistics.median(statistics.median(turn) / min(turn) for turn in self.turns)


class Runner:
    """compute.c in a process of its own."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.times: dict[str, Times] = {}
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)  # fmt: skip

    def ask(self, order: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SoftgenError(f"{self.name}: compute.c ended at `{order.splitlines()[0]}`")
        return answer

    def add(self, work: Work, folder: Path) -> None:
        size, group = (*work.size, 1)[:2], (*work.group, 1)[:2]
        source = FOLDER / f"{work.name}.cl"
        lines = [f"kernel {work.name} {source} {size[0]} {size[1]} {group[0]} {group[1]} {len(work.arguments)}"]
        for number, value in enumerate(work.arguments):
            if isinstance(value, np.ndarray):
                value.tofile(folder / f"{work.name}{number}")
                lines.append(f"buffer {folder / f'{work.name}{number}'}")
            else:
                lines.append(f"{'float' if value.dtype == np.float32 else 'uint'} {value!s}")
        self.ask("\n".join(lines))

    def result(self, work: Work, folder: Path) -> Array:
        """What one run of a kernel leaves in its result."""
        self.run(work.name, 1)
        self.ask(f"read {work.name} {work.result} {folder / 'result'}")
        told = work.arguments[work.result]
        return np.fromfile(folder / "result", told.dtype).reshape(told.shape)

    def run(self, name: str, count: int) -> list[float]:
        return [float(microseconds) * 1e-6 for microseconds in self.ask(f"run {name} {count}").split()]

    def turn(self, name: str, seconds: float = SECONDS) -> list[float]:
        return turn(self, name, seconds)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class PlainLoop:
    """The same work as a loop of plain C in this process, with the interface of a Runner."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.name, self.library = "plain C", library
        self.times: dict[str, Times] = {}
        self.calls: dict[str, tuple[Callable[[], object], Array]] = {}

    def add(self, work: Work, folder: Path) -> None:
        found = _work.peer(self.library, work.name, work)
        assert found is not None  # peers.c has all of KERNELS
        self.calls[work.name] = found

    def result(self, work: Work, folder: Path) -> Array:
        self.run(work.name, 1)
        return self.calls[work.name][1]

    def run(self, name: str, count: int) -> list[float]:
        call, times = self.calls[name][0], []
        for _ in range(count):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return times

    def turn(self, name: str, seconds: float = SECONDS) -> list[float]:
        return turn(self, name, seconds)

    def close(self) -> None:
        """Nothing was started."""


AnyRunner = Runner | PlainLoop


def turn(runner: AnyRunner, name: str, seconds: float) -> list[float]:
    """One run, and as many more as take about so long."""
    times = runner.run(name, 1)
    return times + runner.run(name, min(max(int(seconds / times[0]), 2), MOST))


def build(folder: Path) -> Path:
    program = folder / "compute"
    made = subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE), "-lOpenCL"], capture_output=True, text=True, check=False)
    if made.returncode:
        raise SoftgenError(f"{SOURCE.name} cannot be built: {made.stderr.strip().splitlines()[-1]}")
    return program


def runners(program: Path, folder: Path, threads: int, peers: list[Peer], engine: str = "auto") -> list[Runner]:
    """softgen, and every peer."""
    command = [sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--threads", str(threads), "--engine", engine, "--", str(program)]
    found = [Runner("softgen", command, {"XDG_CACHE_HOME": str(folder / "cache")})]
    if found[0].ask("type") != "gpu\n":
        found[0].close()
        raise SoftgenError("compute.c found another OpenCL device than softgen's GPU: does the loader of a peer come first?")
    for peer in peers:
        vendors = folder / f"vendors-{peer.library}"
        vendors.mkdir(exist_ok=True)
        (vendors / "peer.icd").write_text(peer.found() + "\n", "utf-8")
        own = {"OCL_ICD_VENDORS": str(vendors), peer.threads: str(threads), "POCL_CACHE_DIR": str(folder / "pocl")}
        found.append(Runner(peer.name, [str(program)], own))
    return found


def compare(work: Work, everyone: list[AnyRunner], folder: Path) -> None:
    first, *others = [runner.result(work, folder) for runner in everyone]
    for runner, other in zip(everyone[1:], others, strict=True):
        apart = work.apart(first, other)
        if not apart <= work.allowed * ESTIMATES:
            raise SoftgenError(f"{work.name}: {runner.name}'s result and ours are {apart:g} apart; {work.allowed * ESTIMATES:g} is allowed")


def measured(program: Path, folder: Path, threads: int, peers: list[Peer]) -> list[AnyRunner]:
    everyone: list[AnyRunner] = [*runners(program, folder, threads, peers)]
    if threads == 1:
        everyone += [PlainLoop(library) for library in list(_work.peers().values())[:1]]
    try:
        for work in works():
            if work.name in KERNELS:
                for runner in everyone:
                    runner.add(work, folder)
                compare(work, everyone, folder)
                everyone[0].turn(work.name, WARM)
                take_turns(everyone, work.name, ROUNDS, SECONDS)
    finally:
        for runner in everyone:
            runner.close()
    return everyone


def take_turns(everyone: Sequence[AnyRunner], name: str, rounds: int, seconds: float) -> None:
    """Time a kernel on each runtime, one after the other in each round: all see the same host."""
    for runner in everyone:
        runner.times[name] = Times()
    for _ in range(rounds):
        for runner in everyone:
            runner.times[name].turns.append(runner.turn(name, seconds))


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def table(ours: AnyRunner, theirs: AnyRunner, threads: int) -> Iterator[Measurement]:
    """A row for each kernel, and the geometric mean."""
    text = f"{threads} thread{'s' if threads > 1 else ''}"
    for name, mine in ours.times.items():
        other = theirs.times[name]
        note = (f"best {mine.best * 1e3:.2f} ms beside {other.best * 1e3:.2f}, median {mine.median * 1e3:.2f} beside "
                f"{other.median * 1e3:.2f}, over best {mine.median / mine.best:.2f} beside {other.median / other.best:.2f}, "
                f"in a turn {mine.spread:.2f} beside {other.spread:.2f}")  # fmt: skip
        yield Measurement(f"{name}, {text}", 1, "", mine.best, theirs.name, other.best, note)
    best = mean([theirs.times[name].best / mine.best for name, mine in ours.times.items()])
    middle = mean([theirs.times[name].median / mine.median for name, mine in ours.times.items()])
    yield Measurement(f"geometric mean, {text}", 1, "", 1.0, theirs.name, best, f"of medians {middle:.2f}; load {os.getloadavg()[0]:.1f}")


def scaling(single: AnyRunner, two: AnyRunner) -> Iterator[Measurement]:
    for name, mine in single.times.items():
        yield Measurement(f"{name}, {two.name}, two threads", 1, "", two.times[name].best, "one", mine.best)


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("OpenCL kernels", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    peers = [peer for peer in PEERS if peer.found()]
    for peer in PEERS:
        if peer not in peers:
            yield Measurement(f"OpenCL kernels beside {peer.name}", 1, "", 1.0, note=f"not measured: {peer.package} is not installed")
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as name:
        folder, found = Path(name), {}
        program = build(folder)
        for threads in THREADS:
            found[threads] = ours, *others = measured(program, folder, threads, peers)
            for other in others:
                yield from table(ours, other, threads)
    for single, two in zip(found[1], found[2], strict=False):  # plain C has one thread only
        yield from scaling(single, two)

"""The kernels of `shared/kernels` through their runtimes, enlarged to tens of milliseconds: softgen beside pocl and Intel's CPU runtime.

The same groups run again and again, in another dimension that the kernel does not look at: its buffers stay as they are, and every access
inside them. Each case has processes of its own, which take turns; one thread each. What a runtime cannot build is said in its row. softgen
translates a kernel before it first runs (engine t1), as its peers do: translations of auto may be done long after.
KERNELS=NAME,… in the environment measures some of them only.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import Measurement
from bench.compute import PEERS, Peer, Runner, build, mean, runners, take_turns
from bench.driver import lacking
from softgen.errors import SoftgenError

SHARED = Path(os.environ.get("SOFTGEN_SHARED", Path(__file__).parent.parent.parent / "shared"))
LEAST, MOST = 0.01, 0.5  # seconds that the quickest should take, and that the slowest may
GROWTH, LARGEST = 4, 1 << 20  # of the number of repetitions
WARM, ROUNDS, SECONDS = 1.0, 3, 0.1
FLOOR = 0.25  # of a peer's speed; what is below has a reason in docs/speed.md
ORDERS = {"R": 0x10B0, "RG": 0x10B2, "RGBA": 0x10B5}  # <CL/cl.h>
TYPES = {"UNORM_INT8": 0x10D2, "UNSIGNED_INT8": 0x10DA, "UNSIGNED_INT16": 0x10DB, "FLOAT": 0x10DE}


class Case:
    """A folder of shared/kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spec = folder, json.loads((folder / "case.json").read_text("utf-8"))
        self.name: str = self.spec["kernel"]

    @property
    def grows(self) -> bool:
        """Whether there is a dimension that the kernel does not use."""
        return len(self.spec["global"]) < 3

    def size(self, repetitions: int = 1) -> str:
        """The order for compute.c that repeats all groups."""
        used = len(self.spec["global"])
        size = [*self.spec["global"], *[1] * (3 - used)]
        if self.grows:
            size[used] = repetitions
        group, offset = [*self.spec["local"], 1, 1][:3], [*(self.spec["offset"] or []), 0, 0, 0][:3]
        return " ".join(["size", self.name, *map(str, (*size, *group, *offset))])

    def order(self, folder: Path) -> str:
        """The order for compute.c that builds the kernel and sets its arguments, whose content it finds in `folder`."""
        arguments = sorted(self.spec["args"], key=lambda argument: argument["index"])
        first = f"kernel {self.name} {self.folder / self.folder.name}.cl 1 1 1 1 {len(arguments)}"
        return "\n".join([first, *(self._argument(argument, folder) for argument in arguments)])

    def _argument(self, argument: dict[str, Any], folder: Path) -> str:
        kind, name = argument["kind"], f"{self.folder.name}-{argument['name']}"
        if kind == "scalar":
            return f"bytes {np.array(argument['v'], np.dtype(argument['dt'])).tobytes().hex()}"
        if kind == "local":
            return f"local {argument['nbytes']}"
        file = folder / name
        if argument.get("file"):
            np.ascontiguousarray(np.load(self.folder / argument["file"])).tofile(file)
        elif not kind.startswith("img"):
            np.zeros(argument["n"], np.dtype(argument["dt"])).tofile(file)
        if not kind.startswith("img"):
            return f"buffer {file}"
        width, height = argument["shape"]
        content = file if argument.get("file") else "-"
        return f"image {int(kind == 'img_out')} {ORDERS[argument['order']]} {TYPES[argument['ctype']]} {width} {height} {content}"


def cases() -> list[Case]:
    wanted = os.environ.get("KERNELS", "")
    found = [Case(path.parent) for path in sorted((SHARED / "kernels").glob("*/case.json"))]
    return [case for case in found if not wanted or case.folder.name in wanted.split(",")]


def prepared(case: Case, everyone: list[Runner], folder: Path) -> list[Runner]:
    """The runners that can build the case."""
    able = []
    for runner in everyone:
        try:
            runner.ask(f"options {','.join(case.spec['options'].split()) or '-'}")
            runner.ask(case.order(folder))
            runner.ask(case.size())
            runner.run(case.name, 1)
            able.append(runner)
        except (SoftgenError, BrokenPipeError):
            pass
    return able


def enlarged(case: Case, able: list[Runner]) -> int:
    """Repetitions with which the quickest takes tens of milliseconds; all runners have them then."""
    count = 1
    while True:
        for runner in able:
            runner.ask(case.size(count))
        times = [min(runner.run(case.name, 2)) for runner in able]
        if min(times) >= LEAST or max(times) * GROWTH > MOST or count * GROWTH > LARGEST:
            return count
        count *= GROWTH


def timed(case: Case, able: list[Runner]) -> None:
    able[0].turn(case.name, WARM)
    take_turns(able, case.name, ROUNDS, SECONDS)


def measured(case: Case, program: Path, folder: Path, peers: list[Peer]) -> Iterator[Measurement]:
    everyone = runners(program, folder, 1, peers, "t1")
    try:
        able = prepared(case, everyone, folder)
        if everyone[0] not in able:
            raise SoftgenError(f"{case.folder.name} does not run on softgen")
        if not case.grows:
            yield Measurement(case.folder.name, 1, "", able[0].run(case.name, 1)[0], note="not enlarged: it uses all three dimensions")
            return
        count = enlarged(case, able)
        timed(case, able)
        mine = able[0].times[case.name]
        for runner in everyone[1:]:
            if runner not in able:
                yield Measurement(case.folder.name, 1, "", mine.best, note=f"{runner.name} cannot build it")
                continue
            other = runner.times[case.name]
            note = f"{mine.best * 1e3:.1f} ms beside {other.best * 1e3:.1f}, {count} times"
            yield Measurement(case.folder.name, 1, "", mine.best, runner.name, other.best, note)
    finally:
        for runner in everyone:
            try:
                runner.close()
            except BrokenPipeError:
                runner.process.wait()


def measure() -> Iterator[Measurement]:
    found, missing = cases(), lacking()
    if missing or not found:
        yield Measurement("kernels", 1, "", 1.0, note=f"not measured: {missing or SHARED / 'kernels'} is not installed")
        return
    peers, ratios = [peer for peer in PEERS if peer.found()], dict[str, list[float]]()
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as name:
        program = build(Path(name))
        for case in found:
            for row in measured(case, program, Path(name), peers):
                if row.ratio is not None:
                    ratios.setdefault(row.peer, []).append(row.ratio)
                yield row
    for peer, values in ratios.items():
        low = sum(value < FLOOR for value in values)
        yield Measurement(f"geometric mean of {len(values)}", 1, "", 1.0, peer, mean(values), f"{low} under {FLOOR}")

"""Drawing: scenes of textured triangles with one sample and with four, then single steps of the pipeline, beside llvmpipe and goals.

Frames of graphics.c (1024 x 1024 pixels, depth test) with stock Mesa: on a software GPU through `softgen run`, and on llvmpipe, each with
one thread. Wall-clock time of the quickest frame, from the clear to the end of glFinish, resolves included; the two take turns, since the
speed of a shared machine changes within seconds. A step's time is that of a frame with many of them, less a frame with none, divided by
their number.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import Measurement
from softgen.driver.uapi.kernel_tables import runtimes_of
from softgen.errors import SoftgenError

SOURCE = Path(__file__).parent / "programs" / "graphics.c"
GPU = "kbl"
RENDERERS = ("softgen", "llvmpipe")
ROUNDS, FRAMES, PATIENCE = 3, 20, 300  # turns of each; frames of a turn; seconds that they may take
SIDE = 1024  # pixels
BLOCKS = SIDE * SIDE // 16  # of 4x4 pixels, in a frame
NEAR = 2  # units of 8-bit colour by which pictures may differ
SCENES = (("fill", "fill", 0, 4 * SIDE * SIDE, "pixels"), ("mesh", "mesh", 64, 2 * 64 * 64, "triangles"),
          ("small", "mesh", 256, 2 * 256 * 256, "triangles"),
          ("fill, 4 samples and resolve", "fill:4", 0, 4 * SIDE * SIDE, "pixels"),
          ("mesh, 4 samples and resolve", "mesh:4", 64, 2 * 64 * 64, "triangles"),
          ("small, 4 samples and resolve", "mesh:4", 256, 2 * 256 * 256, "triangles"))  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A step of the pipeline: a frame of `scene` with `count` has `count * each` of them more than a frame of `less`."""

    what: str
    scene: str
    count: int
    each: int
    goal: float  # nanoseconds
    less: tuple[str, int]


STEPS = (
    Step("draw with clean plans", "draws", 2000, 1, 8_000, ("draws", 0)),
    Step("draw with a changed uniform", "uniforms", 2000, 1, 8_000, ("uniforms", 0)),
    Step("vertex of a trivial vertex shader", "vertices", 200_000, 1, 15, ("vertices", 0)),
    Step("object through setup and bins", "objects", 200_000, 1, 60, ("vertices", 200_000)),
    Step("4x4 block rejected by depth", "hidden", 20, BLOCKS, 15, ("hidden", 0)),
    Step("4x4 block shaded and written: thread, payload, RGBA8", "flat", 20, BLOCKS, 50, ("flat", 0)),
)


def lacking() -> str:
    """What is not installed here and needed; '' if nothing."""
    drivers = [runtime for runtime in runtimes_of(GPU) if runtime.api == "OpenGL"]
    if not any(driver.found() for driver in drivers):
        return f"Mesa's OpenGL driver ({drivers[0].package})"
    if not shutil.which("cc"):
        return "a C compiler (gcc)"
    headers = {"/usr/include/EGL/egl.h": "libegl-dev", "/usr/include/GLES2/gl2.h": "libgles-dev"}
    return ", ".join(package for path, package in headers.items() if not os.path.exists(path))


class Frames:
    """A program that times frames, built; the quickest frame of a scene on a renderer, measured once."""

    def __init__(self, folder: Path, source: Path = SOURCE, library: str = "-lGLESv2", threads: int = 1) -> None:
        self.folder, self.program, self.threads = folder, folder / source.stem, threads
        self.times: dict[tuple[str, str, int], float] = {}
        build = ["cc", "-O2", "-o", str(self.program), str(source), "-lEGL", library, "-lm"]
        made = subprocess.run(build, capture_output=True, text=True, check=False)
        if made.returncode:
            raise SoftgenError(f"{source.name} cannot be built: {made.stderr.strip().splitlines()[-1]}")

    def seconds(self, renderer: str, scene: str, count: int) -> float:
        """The quickest frame of all turns of a renderer, one of RENDERERS."""
        if (renderer, scene, count) not in self.times:
            turns = [[self._turn(name, scene, count) for name in RENDERERS] for _ in range(ROUNDS)]
            for name, seconds in zip(RENDERERS, zip(*turns, strict=True), strict=True):
                self.times[name, scene, count] = min(seconds)
        return self.times[renderer, scene, count]

    def _turn(self, renderer: str, scene: str, count: int) -> float:
        command = self.command(scene, count, FRAMES, self.picture(renderer, scene, count))
        environment = dict(os.environ)
        if renderer == "softgen":
            command = [sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--threads", str(self.threads), "--", *command]
        else:
            helpers = self.threads if self.threads > 1 else 0
            environment |= {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe", "LP_NUM_THREADS": str(helpers)}
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise SoftgenError(f"{scene} takes longer than {PATIENCE} s on {renderer}") from None
        if ran.returncode:
            raise SoftgenError(f"{scene} on {renderer}: {' '.join(ran.stderr.split())[-300:]}")
        return float(ran.stdout)

    def command(self, scene: str, count: int, frames: int, picture: Path) -> list[str]:
        return [str(self.program), scene, str(count), str(frames), str(picture)]

    def picture(self, renderer: str, scene: str, count: int) -> Path:
        return self.folder / f"{renderer}-{scene}-{count}"

    def agreement(self, scene: str, count: int) -> float:
        """The share of pixels of both pictures that are nearly the same."""
        ours, other = (np.fromfile(self.picture(renderer, scene, count), np.uint8).astype(int) for renderer in RENDERERS)
        return float((np.abs(ours - other).reshape(-1, 4).max(-1) <= NEAR).mean())


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("drawing", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        frames = Frames(Path(folder))
        for name, scene, count, amount, unit in SCENES:
            yield measured_scene(frames, name, scene, count, amount, unit)
        for step in STEPS:
            yield measured_step(frames, step)


def measured_scene(frames: Frames, name: str, scene: str, count: int, amount: int, unit: str) -> Measurement:
    try:
        ours, theirs = frames.seconds("softgen", scene, count), frames.seconds("llvmpipe", scene, count)
    except SoftgenError as error:
        return Measurement(name, 1, "", 1.0, note=f"not measured: {error}")
    note = f"{ours * 1e3:.1f} ms a frame, llvmpipe {theirs * 1e3:.1f} ms; {frames.agreement(scene, count):.2%} of the pixels agree"
    return Measurement(name, amount, unit, ours, "llvmpipe", theirs, note)


def measured_step(frames: Frames, step: Step) -> Measurement:
    """Beside the goal; llvmpipe's time is in the note."""
    number = step.count * step.each
    try:
        ours, theirs = (frames.seconds(renderer, step.scene, step.count) - frames.seconds(renderer, *step.less)
                        for renderer in RENDERERS)  # fmt: skip
    except SoftgenError as error:
        return Measurement(step.what, 1, "", 1.0, note=f"not measured: {error}")
    if ours <= 0 or theirs <= 0:
        return Measurement(step.what, 1, "", 1.0, note="not measured: the machine is too busy, a frame without it took longer")
    note = f"{ours / number * 1e9:,.0f} ns; goal {step.goal:,g} ns, llvmpipe {theirs / number * 1e9:,.0f} ns"
    return Measurement(step.what, number, "", ours, "the goal", step.goal * number * 1e-9, note)
